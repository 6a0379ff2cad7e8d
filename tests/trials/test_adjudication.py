"""What people decided about pairs (trials.md, section 9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError, EvidenceError
from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.trials.adjudication import Adjudication, Confidence, read_adjudications
from tests.support.private import out_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

PAIR = "pair-" + "a" * 64
OTHER_PAIR = "pair-" + "b" * 64


def said(**changes: object) -> dict[str, Any]:
    return {
        "pair_id": PAIR,
        "grader_id": "ana",
        "verdict": "A win",
        "reason": "A keeps the tests.",
        "rubric_version": "2",
        "confidence": "high",
        "needs_adjudication": False,
    } | changes


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        yield opened


def put(root: PrivateRoot, document: dict[str, Any], pair: str = PAIR, name: str = "ana.json") -> None:
    with root.child("adjudication", pair, create=True) as folder:
        folder.publish(name, json.dumps(document).encode())


class TestFields:
    @pytest.mark.parametrize("verdict", ["A win", "tie", "B win"])
    @pytest.mark.parametrize("confidence", ["high", "low"])
    def test_a_decision(self, verdict: str, confidence: str) -> None:
        """T62: exactly these seven fields."""
        held = validate(Adjudication, said(verdict=verdict, confidence=confidence, needs_adjudication=True))
        assert (held.verdict, held.confidence) == (Verdict(verdict), Confidence(confidence))
        assert held.needs_adjudication is True
        assert sorted(Adjudication.model_fields) == sorted(said())

    @pytest.mark.parametrize("field", sorted(said()))
    def test_every_field_is_needed(self, field: str) -> None:
        """T62: none has a default."""
        document = said()
        del document[field]
        with pytest.raises(DocumentError):
            validate(Adjudication, document)

    @pytest.mark.parametrize(
        "changes",
        [
            {"other": 1},
            {"pair_id": "pair-" + "A" * 64},
            {"pair_id": "a" * 64},
            {"grader_id": ""},
            {"grader_id": "a/b"},
            {"grader_id": ".ana"},
            {"grader_id": 3},
            {"verdict": "a win"},
            {"verdict": "inconsistent"},
            {"reason": ""},
            {"reason": " \n"},
            {"rubric_version": ""},
            {"rubric_version": 2},
            {"confidence": "medium"},
            {"needs_adjudication": 0},
            {"needs_adjudication": "false"},
            {"needs_adjudication": None},
        ],
    )
    def test_what_is_no_decision(self, changes: dict[str, object]) -> None:
        """T62: no text empty, no other word, no look-alike of a boolean."""
        with pytest.raises(DocumentError):
            validate(Adjudication, said(**changes))


class TestReading:
    def test_none_given(self, root: PrivateRoot) -> None:
        """T62: they are optional."""
        assert read_adjudications(root) == ()

    def test_all_of_them_in_order(self, root: PrivateRoot) -> None:
        """T62: by pair, then by person."""
        put(root, said(pair_id=OTHER_PAIR), OTHER_PAIR)
        put(root, said(grader_id="ben"), name="ben.json")
        put(root, said())
        found = [(held.pair_id, held.grader_id) for held in read_adjudications(root)]
        assert found == [(PAIR, "ana"), (PAIR, "ben"), (OTHER_PAIR, "ana")]

    def test_leftovers_of_writes_are_none(self, root: PrivateRoot) -> None:
        put(root, said())
        (root.path / "adjudication" / PAIR / ".ben.json.0123456789abcdef.tmp").write_bytes(b"{")
        assert len(read_adjudications(root)) == 1

    @pytest.mark.parametrize(
        ("pair", "name"),
        [(OTHER_PAIR, "ana.json"), (PAIR, "ben.json"), (PAIR, ".ana.json"), ("notes", "ana.json")],
    )
    def test_one_in_the_wrong_place(self, root: PrivateRoot, pair: str, name: str) -> None:
        """T62: a decision counts for the pair and person it names, or not at all."""
        put(root, said(), pair, name)
        with pytest.raises(DocumentError, match="Move it"):
            read_adjudications(root)

    def test_a_bad_one_is_never_left_out(self, root: PrivateRoot) -> None:
        """T62: a reader never counts part of them."""
        put(root, said())
        put(root, said(grader_id="ben", reason=""), name="ben.json")
        with pytest.raises(EvidenceError):
            read_adjudications(root)
