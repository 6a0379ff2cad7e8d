"""A window in which a termination waits. Signals are sent in children only."""

from __future__ import annotations

import signal

import pytest

from tests.support.private import child_output, run_child

FOUR = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]

PRELUDE = """
import os, signal, sys, threading, time
from skill_effectiveness.evidence.signals import Terminated, TerminationWindow
number = int(sys.argv[1])
def send(): os.kill(os.getpid(), number)
def say(*words): print(*words, flush=True)
"""


def printed(code: str, number: int = signal.SIGTERM) -> list[str]:
    return child_output(PRELUDE + code, int(number)).splitlines()


@pytest.mark.parametrize("number", FOUR)
class TestEachSignal:
    def test_has_its_ordinary_effect_after_the_window(self, number: signal.Signals) -> None:
        """E63: the process ends by the signal itself, after the block and not in it."""
        code = PRELUDE + (
            "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
            "with TerminationWindow() as window:\n"
            "    send()\n"
            "    say('still here', window.terminated())\n"
            "say('never')\n"
        )
        done = run_child(code, int(number))
        assert (done.returncode, done.stdout) == (-number, "still here True\n")

    def test_meets_the_handler_it_would_have_met(self, number: signal.Signals) -> None:
        """E63: a handler that returns is followed by `Terminated`, from which 128 + n is made."""
        code = (
            "signal.signal(number, lambda *_: say('handled'))\n"
            "try:\n"
            "    with TerminationWindow() as window:\n"
            "        send()\n"
            "        say('inside')\n"
            "except Terminated as error: say(error.signum == number)\n"
            "send()\n"
        )
        assert printed(code, number) == ["inside", "handled", "True", "handled"]

    def test_that_was_ignored_stays_ignored(self, number: signal.Signals) -> None:
        code = (
            "signal.signal(number, signal.SIG_IGN)\n"
            "with TerminationWindow() as window:\n"
            "    send()\n"
            "    say(window.terminated(), signal.getsignal(number) is signal.SIG_IGN)\n"
            "say(signal.getsignal(number) is signal.SIG_IGN)\n"
        )
        assert printed(code, number) == ["False True", "True"]

    def test_taken_by_another_thread_is_recorded_too(self, number: signal.Signals) -> None:
        """E63: the kernel may hand the signal to a thread that does not block it."""
        code = (
            "stop = threading.Event()\n"
            "thread = threading.Thread(target=stop.wait)\n"
            "thread.start()\n"
            "signal.signal(number, lambda *_: say('handled'))\n"
            "try:\n"
            "    with TerminationWindow() as window:\n"
            "        signal.pthread_kill(thread.ident, number)\n"
            "        while not window.terminated(): time.sleep(0.001)\n"
            "        say('recorded')\n"
            "except Terminated as error: say(error.signum == number)\n"
            "stop.set()\n"
        )
        assert printed(code, number) == ["recorded", "handled", "True"]


def test_a_quiet_window_changes_nothing() -> None:
    code = (
        "def state():\n"
        "    handlers = [signal.getsignal(n) for n in (1, 2, 3, 15)]\n"
        "    return handlers, signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "before = state()\n"
        "with TerminationWindow() as window: say(window.terminated())\n"
        "say(before == state())\n"
    )
    assert printed(code) == ["False", "True"]


def test_an_error_in_the_window_passes_and_everything_is_put_back() -> None:
    code = (
        "former = signal.getsignal(number)\n"
        "try:\n"
        "    with TerminationWindow(): raise LookupError\n"
        "except LookupError: say('passed')\n"
        "say(signal.getsignal(number) is former, signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set())\n"
    )
    assert printed(code) == ["passed", "True True"]


def test_a_signal_beside_an_error_wins_and_keeps_it() -> None:
    code = (
        "signal.signal(number, lambda *_: None)\n"
        "try:\n"
        "    with TerminationWindow():\n"
        "        send()\n"
        "        raise LookupError\n"
        "except Terminated as error: say(type(error.__cause__).__name__)\n"
    )
    assert printed(code) == ["LookupError"]


def test_keyboard_interrupt_is_what_an_interrupt_becomes() -> None:
    code = (
        "try:\n"
        "    with TerminationWindow(): send()\n"
        "except KeyboardInterrupt: say('interrupted')\n"
        "say(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set())\n"
    )
    assert printed(code, signal.SIGINT) == ["interrupted", "True"]


def test_every_signal_that_arrived_is_raised_once() -> None:
    code = (
        "for n in (1, 2, 15): signal.signal(n, lambda n, _: say('handled', n))\n"
        "try:\n"
        "    with TerminationWindow():\n"
        "        for n in (15, 15, 1): os.kill(os.getpid(), n)\n"
        "except Terminated: say('terminated')\n"
    )
    assert sorted(printed(code)) == ["handled 1", "handled 15", "terminated"]


def test_a_handler_that_raises_while_the_window_opens_leaves_nothing_blocked() -> None:
    code = (
        "class Stop(Exception): pass\n"
        "def stop(*_): raise Stop\n"
        "signal.signal(number, stop)\n"
        "class Sending(TerminationWindow):\n"
        "    def _take_handlers(self):\n"
        "        super()._take_handlers()\n"
        "        raise Stop\n"
        "try:\n"
        "    with Sending(): say('never')\n"
        "except Stop: say('stopped')\n"
        "say(signal.getsignal(number) is stop, signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set())\n"
    )
    assert printed(code) == ["stopped", "True True"]


def test_in_another_thread_only_its_own_signals_wait() -> None:
    """E63: outside the main thread the mask alone is set; a signal sent to that thread waits there."""
    code = (
        "signal.signal(number, lambda *_: None)\n"
        "former = signal.getsignal(number)\n"
        "def work():\n"
        "    try:\n"
        "        with TerminationWindow() as window:\n"
        "            say(signal.getsignal(number) is former)\n"
        "            signal.pthread_kill(threading.get_ident(), number)\n"
        "            say(window.terminated())\n"
        "    except Terminated: say('terminated')\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    assert printed(code) == ["True", "True", "terminated"]


class TestDelivery:
    def test_a_handler_hears_at_the_point_of_choice_and_once(self) -> None:
        """One that returns lets the program go on where the window does not insist."""
        code = (
            "signal.signal(number, lambda *_: say('handled'))\n"
            "with TerminationWindow(insist=False) as window:\n"
            "    send()\n"
            "    say('before')\n"
            "    say(window.deliver(), window.deliver())\n"
            "say('after')\n"
        )
        assert printed(code) == ["before", "handled", "False False", "after"]

    def test_what_a_handler_raises_comes_out_there(self) -> None:
        code = (
            "with TerminationWindow(insist=False) as window:\n"
            "    send()\n"
            "    try: window.deliver()\n"
            "    except KeyboardInterrupt: say('caught', window.terminated())\n"
            "say('after')\n"
        )
        assert printed(code, signal.SIGINT) == ["caught False", "after"]

    def test_one_without_a_handler_is_told_and_waits_for_the_end(self) -> None:
        code = PRELUDE + (
            "with TerminationWindow(insist=False) as window:\n"
            "    send()\n"
            "    say(window.deliver(), window.deliver())\n"
            "say('never')\n"
        )
        done = run_child(code, int(signal.SIGTERM))
        assert (done.returncode, done.stdout) == (-signal.SIGTERM, "True True\n")

    def test_an_undelivered_one_meets_its_handler_at_the_end(self) -> None:
        code = (
            "signal.signal(number, lambda *_: say('handled'))\n"
            "with TerminationWindow(insist=False): send()\n"
            "say('after')\n"
        )
        assert printed(code) == ["handled", "after"]
