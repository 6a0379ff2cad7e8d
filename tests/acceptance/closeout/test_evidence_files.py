"""No file that anybody puts below `evidence/` turns a blocked decision into an accepted one."""

from __future__ import annotations

import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.evaluation import Inputs, evaluate, verdict_of
from skill_effectiveness.acceptance.closeout.evidence_root import EvidenceRoot
from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand, ResolvedReview
from skill_effectiveness.acceptance.closeout.words import Severity, Verdict
from tests.support.closeout import BASE_ID, CANDIDATE, DIGEST, HEAD_ID, VERSION, command_record, review_record
from tests.support.private import surroundings

CHECK = ResolvedCommand("check", "beforePR", ("true",), 60)
CAREFUL = ResolvedReview(
    "careful", "beforePR", "s/SKILL.md", different_session=True, different_model=True, fail_on=Severity.P1
)
INPUTS = Inputs(BASE_ID, HEAD_ID, DIGEST, CANDIDATE, VERSION)
PASSING = {"good.json": command_record()}
"""What is there: the command passed, the review is missing, so the decision is blocked."""

STALE = st.sampled_from(
    [{"head": "c" * 40}, {"base": "c" * 40}, {"policyDigest": "sha256:" + "c" * 64}, {"head": "A" * 40}]
)
REVIEWS = st.builds(
    lambda change, attempt: review_record(attempt=attempt, **change), STALE, st.integers(1, 3)
)
FOREIGN = st.builds(
    review_record,
    st.sampled_from(["Careful", "careful/x", "q/careful", "care", "careful "]),
    st.integers(1, 3),
)
DEPENDENT = st.builds(
    lambda producer: review_record(producer=producer),
    st.sampled_from([{"session": ""}, {"model": CANDIDATE.model}, {"session": CANDIDATE.session + " "}]),
)
INVALID = st.builds(
    lambda members: review_record(**members),
    st.sampled_from([{"outcome": "pass"}, {"findings": None}, {"recordType": "command"}, {"attempt": 0}]),
)
DUPLICATES = st.builds(lambda attempt: command_record(attempt=attempt), st.integers(1, 2))
RECORDS = st.one_of(REVIEWS, FOREIGN, DEPENDENT, INVALID, DUPLICATES).map(
    lambda value: json.dumps(value).encode()
)


WHOLE = json.dumps(review_record()).encode()
CUT = st.integers(0, len(WHOLE) - 1).map(lambda end: WHOLE[:end])
"""A passing review of which the end is missing, as a torn write leaves it."""

NAMES = st.sampled_from(["a.json", "b.json", "x/y.json", "c.txt", ".json", "good.json.bak", "deep/er/z.json"])
FILES = st.lists(st.tuples(NAMES, RECORDS | CUT | st.binary(max_size=20)), max_size=5)


def decided(files: dict[str, bytes]) -> Verdict | None:
    """The verdict over these files; None when one of them blocks everything."""
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        with EvidenceRoot.open(base / ".closeout", surroundings()) as root:
            for name, data in files.items():
                place = base / ".closeout" / "evidence" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            try:
                records = root.records(INPUTS)
            except CloseoutError as error:
                if error.code is not CloseoutCode.EVIDENCE_INVALID:
                    raise
                return None
    return verdict_of(evaluate([CHECK, CAREFUL], INPUTS, records))


def encoded(records: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    return {name: json.dumps(record).encode() for name, record in records.items()}


def test_the_review_that_is_missing_would_be_accepted() -> None:
    """C33: so that the property below means something."""
    assert decided(encoded(PASSING)) is Verdict.BLOCKED
    assert decided(encoded({**PASSING, "review.json": review_record()})) is Verdict.ACCEPTED


@settings(max_examples=200)
@given(FILES)
def test_no_invalid_stale_foreign_or_duplicate_file_makes_it_accepted(files: list[tuple[str, bytes]]) -> None:
    """C36 C37 C20 C59: any number of them, anywhere, in any mixture."""
    assert decided({**encoded(PASSING), **dict(files)}) in (Verdict.BLOCKED, None)


@settings(max_examples=50)
@given(st.lists(RECORDS, max_size=6), st.integers(0, 2**32))
def test_names_and_order_of_files_change_nothing(records: list[bytes], seed: int) -> None:
    """C48: the same records under other names, made in another order."""
    order = list(range(len(records)))
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, no secret
    first = {f"{number}.json": data for number, data in enumerate(records)}
    second = {f"x/{seed % 7}-{number}.json": records[number] for number in order}
    assert decided(first) == decided(second)


def test_names_that_are_not_text() -> None:
    """C59: a name that is not UTF-8 blocks, or is read like any other."""
    assert decided({os.fsdecode(b"\xff.txt"): b""}) is None
