"""What is refused in a claim, and what is merely not there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skill_effectiveness.acceptance.outcome.claim import criteria_of, is_present, read_claim
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from tests.support.outcomes import claim


def refused(data: bytes) -> str:
    with pytest.raises(OutcomeError) as caught:
        read_claim(data)
    assert not caught.value.undecidable
    return caught.value.message


def without(name: str) -> dict[str, Any]:
    return {each: value for each, value in claim().items() if each != name}


class TestRefused:
    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (without("actor"), "claim_invalid: /actor missing_field"),
            (claim(actor="Agent"), "claim_invalid: /actor wrong_value"),
            (claim(actor="humn"), "claim_invalid: /actor wrong_value"),
            (claim(actor=None), "claim_invalid: /actor wrong_value"),
            (claim(actor=["human"]), "claim_invalid: /actor wrong_value"),
        ],
    )
    def test_the_actor(self, value: object, told: str) -> None:
        """O72: an error of the input, never an exemption."""
        assert refused(json.dumps(value).encode()) == told

    @pytest.mark.parametrize(
        ("value", "where"),
        [
            (claim() | {"more": 1}, "/more"),
            (claim(issue__title="x"), "/issue/title"),
            (claim(issue__sections__risks="x"), "/issue/sections/risks"),
            (claim(attempt__state="x"), "/attempt/state"),
            (claim(verification__notes="x"), "/verification/notes"),
            (claim(verification__verifier__name="x"), "/verification/verifier/name"),
            (claim(evidence=[{"criterion": "a", "receipt": "b", "note": "c"}]), "/evidence/0/note"),
        ],
    )
    def test_unknown_members(self, value: object, where: str) -> None:
        assert refused(json.dumps(value).encode()) == f"claim_invalid: {where} unknown_field"

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"agent"', b'{"actor":"agent","actor":"human"}'])
    def test_what_is_no_object(self, data: bytes) -> None:
        assert refused(data).startswith("claim_invalid: /")


def test_wrong_types_are_nothing_there() -> None:
    """A member of another type is graded as one that is missing."""
    value = {
        "actor": "agent", "issue": 7, "attempt": [], "verification": "ci", "evidence": {"criterion": "a"},
    }  # fmt: skip
    read = read_claim(json.dumps(value).encode())
    assert (read.issue.number, read.attempt.budget, read.verification.verifier.id) == (None, None, None)
    assert read.evidence == ()
    listed = read_claim(json.dumps(claim(evidence=["x", {"criterion": "a", "receipt": "b"}])).encode())
    assert [each.receipt for each in listed.evidence] == [None, "b"]


@pytest.mark.parametrize("value", ["x", " x ", [0], {"a": None}, False, 0, 0.5, True])
def test_present(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Text that is not blank, what is not empty, and everything else but null."""
    assert is_present(value)


@pytest.mark.parametrize("value", ["", " \t\n", [], {}, None])
def test_absent(value: Any) -> None:  # noqa: ANN401 - any JSON
    assert not is_present(value)


@pytest.mark.parametrize(
    ("said", "criteria"),
    [
        ("one", ("one",)),
        (" one ", (" one ",)),
        (["one", "two"], ("one", "two")),
        (["one", " "], ()),
        (["one", 2], ()),
        (["one", None], ()),
        ([], ()),
        ("", ()),
        (5, ()),
        (True, ()),
        ({"a": "one"}, ()),
        (None, ()),
    ],
)
def test_criteria(said: object, criteria: tuple[str, ...]) -> None:
    """O27 O73: one text or a list of texts; anything blank or of another type in it leaves none."""
    value = claim(issue__sections__acceptance_criteria=said)
    assert criteria_of(read_claim(json.dumps(value).encode())) == criteria
