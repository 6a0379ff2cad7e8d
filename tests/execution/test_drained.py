"""Output beyond its limit that is read and dropped instead of ending the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, LimitName, Limits, ProcessResult, run_process


def run(text: str, most: int = 100) -> tuple[ProcessResult, bytes]:
    lines: list[bytes] = []

    def keep(line: bytes) -> bool:
        lines.append(line + b"\n")
        return False

    limits = Limits(20, line_bytes=most, stdout_bytes=most, stderr_bytes=most, drain=True)
    result = run_process(
        ["/bin/sh", "-c", text], cwd=Path("/"), env={"PATH": "/usr/bin:/bin"}, stdin=b"", limits=limits,
        on_line=keep, around=Surroundings.real(),
    )  # fmt: skip
    return result, b"".join(lines) + result.unterminated


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("printf %99s", b" " * 99),
        ("printf %100s", b" " * 100),
        ("printf %101s", b" " * 100),
        ("yes | head -n 100000", b"y\n" * 50),
        ("printf '%99s\\n%9s'", b" " * 99 + b"\n"),
    ],
)
def test_stdout_is_cut_at_its_limit_and_the_program_goes_on(text: str, kept: bytes) -> None:
    """F17: the child never blocks and ends by itself."""
    result, said = run(f"{text}; exit 7")
    assert said == kept
    assert (result.ended, result.exit_code) == (Ended.EXITED, 7)
    more = text not in {"printf %99s", "printf %100s"}
    assert result.drained == ({LimitName.STDOUT_BYTES} if more else set())


def test_stderr_too() -> None:
    """F17: each stream on its own."""
    result, said = run("head -c 5000000 /dev/zero >&2; echo out")
    assert (result.stderr, said) == (b"\0" * 100, b"out\n")
    assert result.drained == {LimitName.STDERR_BYTES}
    assert result.ended is Ended.EXITED


def test_without_draining_a_limit_ends_the_program() -> None:
    """F17: as before."""
    result = run_process(
        ["/bin/sh", "-c", "yes"], cwd=Path("/"), env={"PATH": "/usr/bin:/bin"}, stdin=b"",
        limits=Limits(20, stdout_bytes=100), on_line=lambda _line: False, around=Surroundings.real(),
    )  # fmt: skip
    assert (result.ended, result.limit, result.drained) == (Ended.LIMIT, LimitName.STDOUT_BYTES, frozenset())


def test_lines_need_as_much_room() -> None:
    """F17: else a long line would end what is to be drained."""
    with pytest.raises(ValueError, match="line_bytes"):
        Limits(20, line_bytes=10, stdout_bytes=100, drain=True)
