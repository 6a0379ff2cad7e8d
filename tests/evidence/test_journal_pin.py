"""Pins: what is encoded once and moved gives the bytes of the model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.journal_faults import Finding
from skill_effectiveness.evidence.journal_pin import (
    CONTRACT,
    FilePin,
    PinLine,
    Position,
    SegmentedPin,
    read_pin,
)
from skill_effectiveness.evidence.journal_rows import FormerPin, Repin, RowForm, Tear

LARGEST = 2**53 - 1
ID = "0123456789abcdef" * 2
_digits = st.text("0123456789abcdef", min_size=64, max_size=64).filter(lambda text: text.strip("0"))
_heads = _digits.map("sha256:".__add__)
_ends = st.builds(Position, st.integers(1, LARGEST), _heads, st.integers(1, 10**6), st.integers(1, LARGEST))


def members(end: Position) -> dict[str, object]:
    return {
        "artifact_contract": CONTRACT,
        "count": end.count,
        "head": end.head,
        "journal_id": ID,
        "offset": end.offset,
        "schema_version": 1,
    }


def spelled(document: dict[str, object]) -> bytes:
    """The canonical line, by the standard library alone."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


@given(_ends, _ends)
def test_a_pin_of_the_segmented_form(first: Position, end: Position) -> None:
    pin = SegmentedPin.model_validate(members(first) | {"segment": first.segment})
    data = PinLine(pin).at(end)
    assert data == spelled(members(end) | {"segment": end.segment})
    assert read_pin(data, RowForm.KERNEL).position == end


@given(_ends, _ends, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_pin_of_the_other_form(first: Position, end: Position, reason: str) -> None:
    """E62: members of the same names inside it stay, and so does a per cent sign."""
    former = FormerPin(count=3, head="sha256:" + "1" * 64)
    tear = Tear(bytes=5, digest="sha256:" + "2" * 64, seq=2)
    repin = Repin(findings=(Finding.TRUNCATED,), former=former, reason=f"%d %(count)d %{reason}")
    pin = FilePin.model_validate(members(first) | {"group_max": 8, "tears": (tear,), "repins": (repin,)})
    expected = members(end) | {
        "group_max": 8,
        "repins": [
            {
                "findings": ["truncated"],
                "former": {"count": 3, "head": "sha256:" + "1" * 64},
                "reason": f"%d %(count)d %{reason}",
            }
        ],
        "tears": [{"bytes": 5, "digest": "sha256:" + "2" * 64, "seq": 2}],
    }
    assert json.loads(PinLine(pin).at(end)) == expected
    assert PinLine(pin).at(Position(first.count, first.head, 1, first.offset)) == pin.data()


@pytest.mark.parametrize("repins", [None, ()])
def test_what_was_never_made_anew_says_nothing_about_it(repins: tuple[Repin, ...] | None) -> None:
    end = Position(1, "sha256:" + "3" * 64, 1, 200)
    pin = FilePin.model_validate(members(end) | {"group_max": 8, "tears": (), "repins": repins})
    assert (b"repins" in PinLine(pin).at(end)) is (repins is not None)
