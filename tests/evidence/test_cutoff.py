from __future__ import annotations

import signal

import pytest

from skill_effectiveness.evidence.signals import TERMINATIONS, Cutoff, Terminated


@pytest.mark.parametrize("number", TERMINATIONS)
def test_a_signal_is_raised_where_the_program_is(number: int) -> None:
    """E63: each of the four; the former handlers are back afterwards."""
    former = signal.getsignal(number)
    cutoff = Cutoff()
    with cutoff.heard():
        assert not cutoff.arrived()
        with pytest.raises(Terminated) as caught:
            signal.raise_signal(number)
        assert caught.value.signum == number
        assert cutoff.arrived()
    assert signal.getsignal(number) is former


def test_the_first_alone_is_raised() -> None:
    """Whatever tidies up afterwards is not cut off as well."""
    cutoff = Cutoff()
    with cutoff.heard():
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", TERMINATIONS)
def test_deferred_it_is_only_remembered(number: int) -> None:
    """E63: once a call may have been paid for."""
    cutoff = Cutoff()
    with cutoff.heard():
        cutoff.defer()
        signal.raise_signal(number)
        assert cutoff.arrived()


def test_an_ignored_signal_stays_ignored() -> None:
    """As under nohup."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        cutoff = Cutoff()
        with cutoff.heard():
            signal.raise_signal(signal.SIGHUP)
            assert not cutoff.arrived()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)
