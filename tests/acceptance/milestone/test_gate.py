"""The gate's judgement."""

from __future__ import annotations

from typing import Any

import pytest

from skill_effectiveness.acceptance.milestone.gate import (
    GateJudgement,
    GateQuestion,
    StoredReceipt,
    StoredVerification,
    judge_gate,
)
from skill_effectiveness.acceptance.milestone.identity import UNAVAILABLE, Identity
from skill_effectiveness.acceptance.milestone.verification import make_record, packages_run
from skill_effectiveness.acceptance.milestone.words import QaWord

HEAD, TREE, OTHER = "a" * 40, "b" * 40, "c" * 40
PINNED = Identity.at(HEAD, TREE, dirty=False)
TEST, LINT = ("make", "test"), ("make", "lint")


def stored(
    argv: tuple[str, ...] = TEST,
    *,
    code: int | None = 0,
    before: Identity = PINNED,
    after: Identity = PINNED,
    **members: Any,  # noqa: ANN401 - members of a record
) -> StoredVerification:
    record = make_record(
        argv=list(argv), exit=code, signal=None, timedOut=code is None,
        before=before.model_dump(mode="json"), after=after.model_dump(mode="json"), log="sha256:x", **members,
    )  # fmt: skip
    return StoredVerification(7, record)


def judge(
    *records: StoredVerification,
    qa: bool = False,
    receipt: StoredReceipt | None = None,
    **others: Any,  # noqa: ANN401 - members of the question,  # noqa: ANN401 - members of the question
) -> GateJudgement:
    question: dict[str, Any] = {
        "milestone": "m1", "pinned": PINNED, "head": HEAD, "base": OTHER, "required": (TEST,),
        "records": records, "needs_qa": qa, "receipt": receipt,
    }  # fmt: skip
    return judge_gate(GateQuestion(**(question | others)))


def receipt(
    word: QaWord = QaWord.PASS, made_for: Identity = PINNED, source: Identity = PINNED
) -> StoredReceipt:
    return StoredReceipt(9, word, made_for, source)


def states(judged: GateJudgement) -> list[tuple[str, str]]:
    return [(each.kind, each.state.value) for each in judged.pieces]


def test_no_evidence() -> None:
    """M6: pending, and it says what is needed."""
    judged = judge()
    assert (judged.state, judged.need_tests, judged.need_qa) == ("pending", (TEST,), False)
    assert states(judged) == [("verification", "missing")]


@pytest.mark.parametrize("side", ["before", "after"])
def test_evidence_on_another_head(side: str) -> None:
    """M7: stale, and it verifies nothing."""
    judged = judge(stored(**{side: Identity.at(OTHER, TREE, dirty=False)}))  # type: ignore[arg-type]
    assert (judged.state, states(judged)) == ("pending", [("verification", "stale")])
    assert judged.pieces[0].passes is None


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_identity_that_cannot_be_resolved(side: str) -> None:
    """M8: stale."""
    judged = judge(stored(**{side: UNAVAILABLE}))  # type: ignore[arg-type]
    assert (judged.state, states(judged)) == ("pending", [("verification", "stale")])


def test_a_pinned_head_that_cannot_be_resolved() -> None:
    """M8: then nothing stands on it."""
    assert judge(stored(), pinned=UNAVAILABLE).state == "pending"


def test_a_dirty_tree_is_never_fresh() -> None:
    """M15: also when it is the pinned commit, and even if the pinned tree were dirty itself."""
    dirty = Identity.at(HEAD, TREE, dirty=True)
    assert states(judge(stored(before=dirty))) == [("verification", "stale")]
    assert states(judge(stored(after=dirty))) == [("verification", "stale")]
    assert states(judge(stored(before=dirty, after=dirty), pinned=dirty)) == [("verification", "stale")]


@pytest.mark.parametrize("code", [1, None])
def test_a_fresh_verification_that_fails(code: int | None) -> None:
    """M9: failed, by its exit or its time."""
    judged = judge(stored(code=code))
    assert (judged.state, len(judged.failed_tests)) == ("failed", 1)


def test_zero_tests() -> None:
    """M10: a warning of the gate and of its evidence; the state is unchanged."""
    judged = judge(stored(testPackagesRun=0))
    assert judged.state == "pass"
    assert [(each.code, each.argv) for each in judged.warnings] == [("no_tests_run", TEST)]
    assert judged.pieces[0].warnings == ("no_tests_run",)


def test_no_count() -> None:
    """M11: unknown is never zero."""
    assert judge(stored()).warnings == ()
    assert judge(stored(testPackagesRun=3)).warnings == ()


def test_failed_outranks_pending() -> None:
    """M16: what is missing cannot make it pass."""
    judged = judge(stored(code=1), required=(TEST, LINT))
    assert (judged.state, judged.need_tests) == ("failed", (LINT,))


def test_every_piece_has_to_pass() -> None:
    judged = judge(stored(), stored(LINT), qa=True, receipt=receipt(), required=(TEST, LINT))
    assert judged.state == "pass"
    assert judge(stored(), stored(LINT), qa=True, required=(TEST, LINT)).need_qa is True


@pytest.mark.parametrize("word", [QaWord.REVISE, QaWord.FAIL, QaWord.INCONCLUSIVE])
def test_a_receipt_that_does_not_pass(word: QaWord) -> None:
    """M9 M19: a fresh receipt of any other word fails; also one whose capture changed its tree."""
    changed = Identity.at(HEAD, TREE, dirty=True)
    judged = judge(stored(), qa=True, receipt=receipt(word, source=changed))
    assert (judged.state, judged.failed_qa) == ("failed", word)


def test_a_pass_counts_over_the_head_alone() -> None:
    """M7: the identity the capture ended in is compared again."""
    changed = Identity.at(HEAD, TREE, dirty=True)
    assert judge(stored(), qa=True, receipt=receipt(source=changed)).state == "pending"
    elsewhere = Identity.at(OTHER, TREE, dirty=False)
    assert judge(stored(), qa=True, receipt=receipt(made_for=elsewhere)).need_qa is True


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b'{"testPackagesRun": 0}', 0),
        (b'{"testPackagesRun": 4, "more": 1}', 4),
        (b'{"testPackagesRun": true}', None),
        (b'{"testPackagesRun": -1}', None),
        (b"{}", None),
        (b"[]", None),
        (b'<testsuites><testsuite tests="2" skipped="1"/><testsuite tests="1" skipped="1"/></testsuites>', 1),
        (b'<testsuite tests="0"/>', 0),
        (b"<html/>", None),
        (b'<testsuite tests="many"/>', None),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><testsuite tests="1"/>', None),
        (b"nothing", None),
        (b"", None),
    ],
)
def test_how_many_packages_ran(data: bytes, count: int | None) -> None:
    """M10 M11: read from JSON or JUnit; what does not say is unknown."""
    assert packages_run(data) == count
