"""Verdict files: one form passes, everything else fails closed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.loop.verdict import Verdict, judge_verdict
from skill_effectiveness.acceptance.loop.words import VerdictFault, VerdictWord

DIGEST = "sha256:" + "1a" * 32
OTHER = "sha256:" + "2b" * 32
PASSING = b'{"verdict":"pass","candidate":"%b","feedback":"fine"}' % DIGEST.encode()


def judged(data: bytes | None, *names: str, bound: bool = False) -> Verdict:
    return judge_verdict(
        data, file="verdict.json", names=names or ("verdict.json",), under_review=DIGEST, bound=bound
    )


def test_the_two_forms() -> None:
    """L53: either word, with or without feedback."""
    assert judged(b'{"verdict": "pass"}') == Verdict(VerdictWord.PASS)
    assert judged(b'{"verdict": "fail", "feedback": "x"}') == Verdict(VerdictWord.FAIL, feedback="x")
    assert judged(b'\n{ "feedback" : "" , "verdict":"pass" }\n').word is VerdictWord.PASS


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (None, VerdictFault.MISSING),
        (b"", VerdictFault.NOT_JSON),
        (b"pass", VerdictFault.NOT_JSON),
        (b"{'verdict': 'pass'}", VerdictFault.NOT_JSON),
        (b'"pass"', VerdictFault.NOT_JSON),
        (b"[]", VerdictFault.NOT_JSON),
        (b'{"verdict":"pass"}\xff', VerdictFault.NOT_JSON),
        (b"{}", VerdictFault.FIELDS),
        (b'{"verdict":"Pass"}', VerdictFault.FIELDS),
        (b'{"verdict":"pass "}', VerdictFault.FIELDS),
        (b'{"verdict":true}', VerdictFault.FIELDS),
        (b'{"verdict":["pass"]}', VerdictFault.FIELDS),
        (b'{"verdict":"pass","feedback":1}', VerdictFault.FIELDS),
        (b'{"verdict":"pass","feedback":null}', VerdictFault.FIELDS),
        (b'{"verdict":"pass","candidate":null}', VerdictFault.FIELDS),
        (b'{"verdict":"pass","candidate":"x"}', VerdictFault.FIELDS),
        (b'{"verdict":"pass","note":"x"}', VerdictFault.FIELDS),
        (b'{"verdict":"fail","verdict":"pass"}', VerdictFault.AMBIGUOUS),
        (b'{"verdict":"pass"}{"verdict":"pass"}', VerdictFault.AMBIGUOUS),
        (b'{"verdict":"pass"} DONE', VerdictFault.AMBIGUOUS),
        (b'\xef\xbb\xbf{"verdict":"pass"}', VerdictFault.AMBIGUOUS),
        (b'{"verdict":"pass","feedback":"%b"}' % (b"x" * 65_536), VerdictFault.OVERSIZED),
    ],
)
def test_each_cause_alone(data: bytes | None, fault: VerdictFault) -> None:
    """L54 L55 L56: missing, malformed, ambiguous, oversized."""
    assert judged(data) == Verdict(VerdictWord.INVALID, fault)


def test_the_largest_file() -> None:
    """L56: 64 KiB pass."""
    frame = b'{"verdict":"pass","feedback":""}'
    data = frame[:-2] + b"x" * (65_536 - len(frame)) + frame[-2:]
    assert len(data) == 65_536
    assert judged(data).word is VerdictWord.PASS


@pytest.mark.parametrize("other", ["Verdict.json", "old/verdict.json", "a/VERDICT.JSON"])
def test_two_verdict_files(other: str) -> None:
    """L55: nobody knows which is meant."""
    assert judged(b'{"verdict":"pass"}', "verdict.json", other).fault is VerdictFault.AMBIGUOUS
    assert judged(None, other).fault is VerdictFault.AMBIGUOUS


@pytest.mark.parametrize(
    ("members", "bound", "fault"),
    [
        ({}, False, None),
        ({"candidate": DIGEST}, False, None),
        ({"candidate": DIGEST}, True, None),
        ({"candidate": OTHER}, False, VerdictFault.STALE),
        ({"candidate": OTHER}, True, VerdictFault.STALE),
        ({}, True, VerdictFault.UNBOUND),
    ],
)
def test_bound_to_content(members: dict[str, Any], bound: bool, fault: VerdictFault | None) -> None:  # noqa: FBT001 - a column
    """L79: a present candidate has to be equal; an absent one counts unless it is demanded."""
    data = json.dumps({"verdict": "pass"} | members).encode()
    assert judged(data, bound=bound).fault is fault


@given(st.integers(0, len(PASSING) - 1), st.integers(0, 255))
@example(2, ord("V"))
def test_no_mutation_passes(position: int, byte: int) -> None:
    """L73: one byte changed, white space and feedback text apart."""
    mutated = PASSING[:position] + bytes([byte]) + PASSING[position + 1 :]
    feedback = range(PASSING.index(b"fine"), PASSING.index(b"fine") + 4)
    verdict = judged(mutated)
    if mutated == PASSING or position in feedback:
        return
    assert verdict.word is not VerdictWord.PASS


@given(st.binary(max_size=200))
def test_anything_else_is_judged_without_an_error(data: bytes) -> None:
    """L54: whatever lies there."""
    assert judged(data).word is not VerdictWord.PASS
