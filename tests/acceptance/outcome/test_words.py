"""Closed words: each is said somewhere, each has a case, and the page names those that people meet."""

from __future__ import annotations

import pytest

from skill_effectiveness.acceptance.outcome.errors import UNDECIDABLE, OutcomeCode
from skill_effectiveness.acceptance.outcome.words import FalseGreen, ReasonKey, Withheld
from tests.support.private import REPOSITORY

ROOM = REPOSITORY / "eval" / "skill_effectiveness" / "acceptance" / "outcome"
CASES = (
    *(REPOSITORY / "tests" / "acceptance" / "outcome").glob("test_*.py"),
    REPOSITORY / "tests" / "cli" / "test_accepted_outcome.py",
)


def source() -> str:
    defining = {"errors.py", "words.py"}
    return "\n".join(path.read_text() for path in ROOM.glob("*.py") if path.name not in defining)


@pytest.mark.parametrize(("name", "words"), [("OutcomeCode", OutcomeCode), ("Withheld", Withheld)])
def test_each_is_said_and_has_a_case(name: str, words: type[OutcomeCode | Withheld]) -> None:
    """O81: no word without a place that says it and a test that hears it."""
    said, heard = source(), "\n".join(path.read_text() for path in CASES)
    assert [word.value for word in words if f"{name}.{word.name}" not in said] == []
    assert [word.value for word in words if word.value not in heard] == []


def test_reasons() -> None:
    """O81: the same of every reason."""
    said, heard = source(), "\n".join(path.read_text() for path in CASES)
    assert [key.value for key in ReasonKey if f"ReasonKey.{key.name}" not in said] == []
    assert [key.value for key in ReasonKey if key.value not in heard] == []


def test_the_page_names_every_reason() -> None:
    """O81: for who meets one."""
    page = (REPOSITORY / "docs" / "accepted-outcome.md").read_text()
    words = [*ReasonKey, *Withheld, *FalseGreen]
    assert [word.value for word in words if word.value not in page] == []


def test_what_is_undecidable() -> None:
    """O81: exit 3, written here by hand; every other code is an error of the input."""
    assert {code.value for code in UNDECIDABLE} == {
        "invalid_contract", "contract_divergence", "policy_unreadable", "policy_unsafe", "store_unsafe",
        "store_locked", "journal_broken", "claim_not_recorded", "record_not_stored", "issue_unreadable",
        "close_unconfirmed",
    }  # fmt: skip
