"""What a person who waits sees, on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.progress import ExaminationProgress

if TYPE_CHECKING:
    from skill_effectiveness.calibration.observer import Observer


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        return True


class HungUp(Terminal):
    """A terminal whose line was cut."""

    def write(self, _text: str) -> int:
        raise OSError(5, "Input/output error")


def on_terminal(monkeypatch: pytest.MonkeyPatch, kind: str = "xterm") -> Terminal:
    """Let stderr be a terminal; called in a test, not before it, since stderr is another one there."""
    monkeypatch.setenv("TERM", kind)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def watch(observer: Observer) -> None:
    """A whole examination: a repeat that was kept, and one whose second attempt succeeds."""
    observer.repeat_kept(1, 2)
    observer.repeat_started(2, 2, 2)
    observer.call_started(220)
    observer.call_ended("success")
    observer.published("pass")


class TestPlain:
    def test_one_line_a_step_on_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        with ExaminationProgress("codex model-1", 2) as progress:
            watch(progress)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines() == [
            "codex model-1: repeat 1 of 2 kept",
            "codex model-1: repeat 2 of 2, attempt 2",
            "codex model-1: waiting for the reviewer, at most 220 s",
            "codex model-1: the call ended: success",
            "codex model-1: published: pass",
        ]

    def test_a_name_that_paints_is_neutral(self, capsys: pytest.CaptureFixture[str]) -> None:
        """F21: of a model that calls itself a verdict."""
        with ExaminationProgress("m\x1b[2K\rpublished: pass\n", 2) as progress:
            progress.call_ended("success\x1b[0m")
        assert capsys.readouterr().err == (
            "m\\x1b[2K\\x0dpublished: pass\\x0a: the call ended: success\\x1b[0m\n"
        )

    @pytest.mark.parametrize("kind", ["dumb", "unknown"])
    def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
        self, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        terminal = on_terminal(monkeypatch, kind)
        with ExaminationProgress("m", 2) as progress:
            progress.published("pass")
        assert terminal.getvalue() == "m: published: pass\n"

    def test_a_watcher_who_left_costs_no_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", type("Cut", (HungUp,), {"isatty": lambda _self: False})())
        with ExaminationProgress("m", 2) as progress:
            watch(progress)


class TestTerminal:
    def test_a_live_line_that_ends_with_the_last_state(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        with ExaminationProgress("codex model-1", 2) as progress:
            watch(progress)
        shown = terminal.getvalue()
        assert "\x1b[" in shown
        last = shown.rsplit("codex model-1", 1)[1]
        assert "published: pass" in last
        assert "1/2" in last

    @pytest.mark.parametrize("label", ["[/x] [bold]", "{task.description} {0}", ":smile: %s"])
    def test_a_name_is_no_markup(self, monkeypatch: pytest.MonkeyPatch, label: str) -> None:
        """F21: brackets, braces and colons mean themselves."""
        terminal = on_terminal(monkeypatch)
        with ExaminationProgress(label, 2):
            pass
        assert label in terminal.getvalue()

    def test_a_name_that_paints_is_neutral(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """F21: nothing of the name acts on the terminal."""
        terminal = on_terminal(monkeypatch)
        with ExaminationProgress("m\x1b]0;owned\x07", 2) as progress:
            progress.call_ended("\x1b]0;owned\x07")
        assert "\x1b]" not in terminal.getvalue()
        assert "\x07" not in terminal.getvalue()

    def test_it_is_put_away_when_the_command_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        with pytest.raises(KeyError), ExaminationProgress("m", 2):
            raise KeyError
        assert terminal.getvalue().rstrip().endswith("\x1b[?25h"), "the cursor is shown again"

    def test_a_watcher_who_left_costs_no_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stderr", HungUp())
        with ExaminationProgress("m", 2) as progress:
            watch(progress)
