"""The commitments of a plan, held against it without being read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan_seal import check_commitments, commitment_lines
from skill_effectiveness.trials.allocation import Commitment, commitments_hash

ROWS = [Commitment(number, f"sha256:{number:064x}") for number in (1, 2, 3)]
LINES = (
    b'{"commitment":"sha256:' + b"0" * 63 + b'1","slot":1}\n'
    b'{"commitment":"sha256:' + b"0" * 63 + b'2","slot":2}\n'
    b'{"commitment":"sha256:' + b"0" * 63 + b'3","slot":3}\n'
)  # fmt: skip


def plan(rows: list[Commitment]) -> Any:  # noqa: ANN401 - as much of a plan as is looked at
    allocation = SimpleNamespace(slots=len(rows), commitments_hash=commitments_hash(rows))
    return SimpleNamespace(allocation=allocation)


def test_the_lines_of_the_plan() -> None:
    """S16: one canonical line a slot."""
    assert commitment_lines(ROWS) == LINES
    check_commitments(LINES, plan(ROWS))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        LINES[:-1],
        LINES + b"\n",
        LINES.replace(b"\n", b"\r\n"),
        LINES.replace(b"}\n{", b"},{", 1),
        LINES.replace(b'1",', b'1"\n', 1),
        LINES.replace(b'1",', b'1"\n', 1).replace(b"}\n{", b"},{", 1),
        LINES.replace(b'"slot":2', b'"slot":4'),
        b"".join(reversed(LINES.splitlines(keepends=True))),
        LINES.replace(b":1}", b": 1}"),
    ],
    ids=[
        "empty",
        "torn",
        "blank",
        "crlf",
        "two on a line",
        "split",
        "two and split",
        "other",
        "order",
        "space",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    """S16: also where the digest alone could not tell."""
    with pytest.raises(StudyError) as caught:
        check_commitments(data, plan(ROWS))
    assert caught.value.code is StudyCode.PLAN_CHANGED
