"""Nothing paints, and a stream that has gone ends what it must and no more."""

from __future__ import annotations

import io
import json
import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.cli import screen
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.commands import steers

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = {
    "colour": ("\x1b[32mpass\x1b[0m", "\\x1b[32mpass\\x1b[0m"),
    "erase and repaint": ("\x1b[2K\rcalibration_status=pass", "\\x1b[2K\\x0dcalibration_status=pass"),
    "8-bit introducer": ("\x9b2J", "\\x9b2J"),
    "window title": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "line break": ("fail\ncalibration_status=pass", "fail\\x0acalibration_status=pass"),
    "other line breaks": ("a\x0bb\x0cc\x85d\u2028e\u2029f", "a\\x0bb\\x0cc\\x85d\\u2028e\\u2029f"),
    "right to left": ("abc\u202edcba\u2066x\u2069", "abc\\u202edcba\\u2066x\\u2069"),
    "invisible": ("pa\u200bss\ufeff\u00ad", "pa\\u200bss\\ufeff\\xad"),
    "tag letters": ("x\U000e0041", "x\\U000e0041"),
    "backspace": ("fail\b\b\b\bpass", "fail\\x08\\x08\\x08\\x08pass"),
    "delete and null": ("a\x7fb\x00c", "a\\x7fb\\x00c"),
    "not UTF-8": ("a\udcffb", "a\\udcffb"),
    "blank that is none": ("a\u00a0b", "a\\xa0b"),
}
CASES = pytest.mark.parametrize(("given_text", "shown"), HOSTILE.values(), ids=HOSTILE)
PLAIN = "gpt-6.2-sol, Straße, 模型, 👍, [bold]x[/bold], :smile:"


class Word(StrEnum):
    PASS = "pass"


class TestNeutral:
    @CASES
    def test_what_steers_is_spelled_out(self, given_text: str, shown: str) -> None:
        """F21: escapes, overrides, line breaks, invisible letters."""
        assert screen.neutral(given_text) == shown

    def test_ordinary_text_stays(self) -> None:
        assert screen.neutral(PLAIN) == PLAIN

    @given(st.text())
    def test_of_any_text(self, text: str) -> None:
        """F21: one line that no terminal acts on, and the same when done again."""
        shown = screen.neutral(text)
        assert steers(shown) == []
        assert "\n" not in shown
        assert screen.neutral(shown) == shown
        shown.encode("utf-8")


VALUES: dict[str, object] = {"b": True, "a": 1, "n": None, "w": Word.PASS, "f": 0.5, "t": "x=y"}


class TestResults:
    def test_lines_in_the_order_given(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen.results(VALUES, as_json=False)
        assert capsys.readouterr().out == "b=true\na=1\nn=unknown\nw=pass\nf=0.5\nt=x=y\n"

    def test_one_canonical_object(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen.results(VALUES, as_json=True)
        out = capsys.readouterr().out
        assert out == '{"a":1,"b":true,"f":0.5,"n":null,"t":"x=y","w":"pass"}\n'
        assert out.encode() == rfc8785.dumps(json.loads(out)) + b"\n"

    @pytest.mark.parametrize("as_json", [False, True])
    @CASES
    def test_text_from_elsewhere_is_neutral(
        self, capsys: pytest.CaptureFixture[str], given_text: str, shown: str, *, as_json: bool
    ) -> None:
        """F21: on stdout, as a value and as a name, in lines and in JSON."""
        screen.results({"model": given_text, given_text: "x"}, as_json=as_json)
        out = capsys.readouterr().out
        assert steers(out) == []
        lines = [f"model={shown}", f"{shown}=x"]
        assert (json.loads(out) == {"model": shown, shown: "x"}) if as_json else out.splitlines() == lines

    def test_also_deep_inside(self, capsys: pytest.CaptureFixture[str]) -> None:
        """F21: in the JSON of a scored table."""
        screen.results({"categories": [{"category": "\u202ex"}, ("\x9b",)]}, as_json=True)
        assert capsys.readouterr().out == '{"categories":[{"category":"\\\\u202ex"},["\\\\x9b"]]}\n'


class TestPeople:
    @CASES
    def test_a_sentence_is_one_neutral_line(
        self, capsys: pytest.CaptureFixture[str], given_text: str, shown: str
    ) -> None:
        """F21: on stderr."""
        screen.complain(given_text)
        assert capsys.readouterr() == ("", f"{shown}\n")

    @pytest.mark.parametrize("stderr", [False, True])
    @CASES
    def test_title_and_cells_of_a_table_are_neutral(
        self, capsys: pytest.CaptureFixture[str], given_text: str, shown: str, *, stderr: bool
    ) -> None:
        """F21: on both streams; a cell is one line of the table."""
        screen.table(given_text, ("who", "what"), [(given_text, "x"), ("y", given_text)], stderr=stderr)
        text = capsys.readouterr()[stderr]
        assert steers(text) == []
        assert text.count(shown) == 3
        assert len(text.splitlines()) == 7

    def test_no_markup_and_no_emoji_in_a_cell(self, capsys: pytest.CaptureFixture[str]) -> None:
        """F21: square brackets and colons mean themselves."""
        screen.table("t", ("who",), [(PLAIN,), ("[/]",), ("[link=http://x]y[/link]",)], stderr=False)
        out = capsys.readouterr().out
        for text in (PLAIN, "[/]", "[link=http://x]y[/link]"):
            assert text in out

    @pytest.mark.parametrize(
        "variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CLICOLOR_FORCE"]
    )
    def test_variables_do_not_paint_where_no_terminal_is(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        monkeypatch.setenv(variable, "1")
        screen.table("title", ("who", "what"), [("a", "b")], stderr=False)
        screen.table("title", ("who", "what"), [("a", "b")], stderr=True)
        assert [steers(text) for text in capsys.readouterr()] == [[], []]

    def test_a_long_sentence_is_not_broken(self, capsys: pytest.CaptureFixture[str]) -> None:
        screen.complain("word " * 200)
        assert len(capsys.readouterr().err.splitlines()) == 1


class Failing(io.StringIO):
    """A stream whose other end is gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


class TestStreamsThatFail:
    def test_a_sentence_nobody_hears_ends_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", Failing())
        screen.complain("hello")
        screen.table("t", ("who",), [("x",)], stderr=True)

    @pytest.mark.parametrize(
        "write",
        [
            lambda: screen.results({"a": 1}, as_json=True),
            lambda: screen.results({"a": 1}, as_json=False),
            lambda: screen.table("t", ("who",), [("x",)], stderr=False),
            lambda: screen.line("x"),
        ],
    )
    def test_results_nobody_gets_end_the_command(
        self, monkeypatch: pytest.MonkeyPatch, write: Callable[[], Any]
    ) -> None:
        monkeypatch.setattr(sys, "stdout", Failing())
        with pytest.raises(BrokenPipeError):
            write()

    def test_whoever_writes_a_stdout_that_is_full_is_told_as_that(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The framework prints its help itself; any other fault of a file stays what it is."""
        with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
            monkeypatch.setattr(sys, "stdout", full)
            with pytest.raises(screen.StdoutLostError), screen.guarded_stdout():
                print("help", flush=True)  # noqa: T201 - what a framework does
            assert sys.stdout is full
            with pytest.raises(OSError, match="other") as other, screen.guarded_stdout():
                raise OSError(28, "other")
            assert type(other.value) is OSError
            screen.silence(full)

    def test_a_guarded_stdout_is_otherwise_the_same(self, capsys: pytest.CaptureFixture[str]) -> None:
        bare = sys.stdout
        with screen.guarded_stdout():
            assert (sys.stdout.encoding, sys.stdout.isatty()) == (bare.encoding, bare.isatty())
            assert sys.stdout.write("abc") == 3
            screen.line("d")
        assert capsys.readouterr().out == "abcd\n"
        assert sys.stdout is bare

    def test_after_a_failure_without_a_null_device_nothing_fails_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none(*_: object) -> int:
            raise FileNotFoundError(2, "none")

        monkeypatch.setattr(RealFs, "open_update", none)
        number = os.open("/dev/full", os.O_WRONLY)
        with open(number, "w", closefd=False) as full:
            monkeypatch.setattr(sys, "stderr", full)
            live = screen.Stderr()
            for _ in range(2):
                screen.complain("nobody hears it")
                assert live.write("x") == 1
            assert full.closed
            assert not sys.stderr.isatty()
        os.close(number)

    def test_characters_the_locale_does_not_know_are_no_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        screen.speak_plainly()
        screen.results({"model": "Straße"}, as_json=True)
        screen.complain("Straße")
        screen.table("Straße", ("who",), [("x",)], stderr=True)
        assert out.buffer.getvalue() == '{"model":"Straße"}\n'.encode()  # type: ignore[attr-defined]
        told = err.buffer.getvalue()  # type: ignore[attr-defined]
        assert told.startswith(b"Stra\\xdfe\n")
        assert told.isascii()


def test_a_sentence_in_the_middle_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """F5: a signal's sentence comes at once, although the buffer is taken, and raises nothing."""
    reading, writing = os.pipe()

    class Busy(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError(f"reentrant call while {len(text)} characters were to be written")

        def fileno(self) -> int:
            return writing

    monkeypatch.setattr(sys, "stderr", Busy())
    screen.complain("Stopping now.")
    monkeypatch.undo()
    os.close(writing)
    with os.fdopen(reading, "rb") as reader:
        assert reader.read() == b"Stopping now.\n"
