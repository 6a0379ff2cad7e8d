"""What a program said, kept byte for byte."""

from __future__ import annotations

import pytest

from skill_effectiveness.providers import Recording


@pytest.mark.parametrize(
    ("stdout", "lines"),
    [
        (b"", ()),
        (b"half", ()),
        (b"\n", (b"",)),
        (b'{"a":1}\n{"b":\n', (b'{"a":1}', b'{"b":')),
        ("a\u2028b\x0b\x85\r\nc".encode(), ("a\u2028b\x0b\x85\r".encode(),)),
    ],
)
def test_lines_are_framed_by_lf_alone(stdout: bytes, lines: tuple[bytes, ...]) -> None:
    """F44 P5: nothing else ends a line, and half a line is none."""
    assert Recording(stdout).lines == lines


def test_nothing_of_it_shows_in_a_trace() -> None:
    """P7: it may hold anything a model or a server said."""
    assert repr(Recording(b"canary", b"canary", b"canary")) == "Recording()"
