from __future__ import annotations

import pytest

from skill_effectiveness.evidence.pointer import Location, json_pointer, pointer_to, printable


@pytest.mark.parametrize(
    ("segments", "pointer"),
    [
        ([], ""),
        (["foo"], "/foo"),
        (["foo", 0], "/foo/0"),
        ([""], "/"),
        (["a/b"], "/a~1b"),
        (["m~n"], "/m~0n"),
        (["~1"], "/~01"),
        ([" "], "/ "),
        (["é"], "/é"),
    ],
)
def test_pointers_as_in_rfc_6901_section_5(segments: list[str | int], pointer: str) -> None:
    assert json_pointer(segments) == pointer


def test_a_long_name_is_cut() -> None:
    assert json_pointer(["x" * 128]) == "/" + "x" * 128
    assert json_pointer(["x" * 129]) == "/" + "x" * 128 + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\x7f", "a\\x0ab\\x7f"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\ud800", "\\ud800"),
        ("\udcff", "\\udcff"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_location_is_spelled_from_the_top() -> None:
    assert pointer_to(None) == ""
    assert pointer_to(Location(Location(Location(None, "a"), 3), "b")) == "/a/3/b"
