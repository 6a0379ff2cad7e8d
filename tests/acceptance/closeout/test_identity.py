"""The policy identity, against digests of texts written by hand."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.closeout.identity import by_code_units, canonical_bytes, policy_digest
from skill_effectiveness.acceptance.closeout.policy_models import (
    ResolvedCommand,
    ResolvedReview,
    Unsupported,
)
from skill_effectiveness.acceptance.closeout.words import Severity


def digest_of(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class TestIdentity:
    def test_the_document_that_is_hashed(self) -> None:
        """C10: files by path, items in execution order, members sorted, no white space."""
        items = [
            ResolvedCommand("q/check", "beforePR", ("bun", "run"), 120),
            ResolvedReview("careful", "beforePR", "s/SKILL.md", True, False, Severity.P1),  # noqa: FBT003 - its members in order
            Unsupported("later", "beforePR", "manual"),
        ]
        text = (
            '{"files":[{"path":"a","sha256":"'
            + "1" * 64
            + '"},{"path":"b","sha256":"'
            + "0" * 64
            + '"}],"items":['
            '{"exec":["bun","run"],"gate":"beforePR","id":"q/check","kind":"command","timeoutSeconds":120},'
            '{"failOn":"P1","gate":"beforePR","id":"careful","independence":'
            '{"differentModel":false,"differentSession":true},"kind":"review","skill":"s/SKILL.md"},'
            '{"gate":"beforePR","id":"later","kind":"manual","supported":false}],"specVersion":"0.1"}'
        )
        assert policy_digest({"b": "0" * 64, "a": "1" * 64}, items) == digest_of(text)

    def test_the_order_of_items_counts_and_that_of_files_does_not(self) -> None:
        one, two = (ResolvedCommand(name, "beforePR", ("a",), 1) for name in ("one", "two"))
        assert policy_digest({}, [one, two]) != policy_digest({}, [two, one])
        assert policy_digest({"a": "0", "b": "1"}, []) == policy_digest({"b": "1", "a": "0"}, [])


class TestOrder:
    def test_names_are_sorted_by_utf16_code_units(self) -> None:
        """C11: U+1F600 is written with two code units below U+E000, so it comes first."""
        assert sorted(["\ue000", "\U0001f600"], key=by_code_units) == ["\U0001f600", "\ue000"]
        text = (
            '{"files":[{"path":"\U0001f600","sha256":"b"},{"path":"\ue000","sha256":"a"}],'
            '"items":[],"specVersion":"0.1"}'
        )
        assert policy_digest({"\ue000": "a", "\U0001f600": "b"}, []) == digest_of(text)


class TestCanonicalJson:
    @pytest.mark.parametrize("value", [1.0, 1.5, 2**53, -(2**53), {"a": [{"b": 1e300}]}, [float("nan")]])
    def test_only_safe_integers(self, value: object) -> None:
        """C12: floats, also whole ones, and larger integers."""
        with pytest.raises(ValueError, match="canonical JSON only accepts safe integers"):
            canonical_bytes(value)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (2**53 - 1, "9007199254740991"),
            (-(2**53) + 1, "-9007199254740991"),
            ({"b": True, "a": None}, '{"a":null,"b":true}'),
            ('"\\/\b\f\n\r\t\x0b\x7fé\u2028', '"\\"\\\\/\\b\\f\\n\\r\\t\\u000b\x7fé\u2028"'),
        ],
    )
    def test_one_spelling_for_each_value(self, value: object, text: str) -> None:
        """C12: integers without exponent, short escapes, everything else raw."""
        assert canonical_bytes(value) == text.encode()

    @given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), st.integers(0, 9), max_size=6))
    def test_members_are_sorted_by_code_units_too(self, value: dict[str, int]) -> None:
        """C11: the same order as that of paths."""
        found = list(json.loads(canonical_bytes(value)))
        assert found == sorted(value, key=lambda name: name.encode("utf-16-be"))
