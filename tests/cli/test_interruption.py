"""Signals become one exception, once."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.evidence.signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Iterator

FOUR = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    before = [signal.getsignal(number) for number in FOUR]
    yield
    assert [signal.getsignal(number) for number in FOUR] == before


def send(signum: int) -> None:
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize("signum", FOUR)
def test_each_of_the_four_is_raised(signum: int) -> None:
    interruption = Interruption(Clock())
    with interruption.heard():
        interruption.arm()
        with pytest.raises(Terminated) as caught:
            send(signum)
    assert caught.value.signum == signum


def test_one_that_was_ignored_stays_ignored() -> None:
    """As under `nohup`."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interruption = Interruption(Clock())
        with interruption.heard():
            interruption.arm()
            send(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)


def test_one_that_comes_early_is_raised_as_soon_as_that_is_safe() -> None:
    interruption = Interruption(Clock())
    with interruption.heard():
        send(signal.SIGTERM)
        with pytest.raises(Terminated):
            interruption.arm()


def test_one_that_comes_late_changes_nothing() -> None:
    interruption = Interruption(Clock())
    with interruption.heard():
        interruption.arm()
        interruption.disarm()
        send(signal.SIGTERM)


def test_a_second_one_does_not_cut_off_the_cleaning_up() -> None:
    clock = Clock()
    interruption = Interruption(clock)
    with interruption.heard():
        interruption.arm()
        with pytest.raises(Terminated):
            send(signal.SIGINT)
        clock.seconds += 10
        send(signal.SIGINT)
        send(signal.SIGTERM)
        clock.seconds += 0.5
        with pytest.raises(Terminated) as caught:
            send(signal.SIGTERM)
    assert caught.value.signum == signal.SIGTERM


def test_in_another_thread_the_handlers_stay_those_of_the_program() -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with Interruption(Clock()).heard():
                pass
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed == []
