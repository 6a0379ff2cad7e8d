"""Lines that are JSON and not strict JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.loose import Members, loose_members


def refused(line: bytes) -> Members | None:
    with pytest.raises(StrictError) as caught:
        read_json(line, Profile.ROW, want_object=True)
    return loose_members(caught.value, line)


def test_members_that_share_a_name_are_both_there() -> None:
    """P5 F22: none of them hides the other."""
    document = refused(b'{"item": {"type": "web"}, "id": 1, "id": 2}')

    assert document is not None
    assert document.named("id") == ["1", "2"]
    assert [item.named("type") for item in document.objects("item")] == [["web"]]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "tool", "x": "\\ud800"}',
        b'{"type": "tool", "x": 1e999}',
        b'{"type": "tool", "x": "\\uffff"}',
    ],
)
def test_a_value_that_is_refused_hides_nothing(line: bytes) -> None:
    """F18: half a character, a number out of range, a noncharacter."""
    document = refused(line)

    assert document is not None
    assert document.named("type") == ["tool"]


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b'{"type": 1} x', b"\xff", b"[" * 100_000, b"NaN"])
def test_from_anything_else_nothing_is_told(line: bytes) -> None:
    """P5: text that is no JSON object, or deeper than a line may be."""
    assert refused(line) is None


@given(st.dictionaries(st.text(), st.text(alphabet=st.characters(categories=["Cs", "L"])), min_size=1))
def test_whatever_a_line_holds_it_ends_in_an_answer(document: dict[str, str]) -> None:
    """F18: lone surrogates anywhere."""
    whole = json.dumps({**document, "half": "\ud800"}).encode()

    assert refused(whole) is not None
