"""YAML 1.2 by its core schema, and everything a policy may not hold."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.yaml12 import YamlError, read_yaml

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def refusal(text: str) -> str:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode("utf-8", "surrogatepass"))
    return str(caught.value)


class TestCoreSchema:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("~", None), ("null", None), ("", None), ("# nothing\n", None),
            ("true", True), ("False", False), ("yes", "yes"), ("on", "on"), ("NO", "NO"),
            ("12", 12), ("-3", -3), ("+4", 4), ("017", 17), ("0o17", 15), ("0x1F", 31), ("0b11", "0b11"),
            ("1_000", "1_000"), ("1:30", "1:30"), ("2026-01-01", "2026-01-01"),
            ("1.5", 1.5), ("60.0", 60.0), (".5", 0.5), ("1e3", 1000.0),
            ('"0.1"', "0.1"), ("'12'", "12"), ("|\n  a\n  b\n", "a\nb\n"), (">\n  a\n  b\n", "a b\n"),
            ("[1, [2]]", [1, [2]]), ("{a: {b: c}}", {"a": {"b": "c"}}), ('"<<": 1', {"<<": 1}),
            ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
            ("%YAML 1.2\n---\na: 1", {"a": 1}), ("--- a\n...\n", "a"),
        ],
    )  # fmt: skip
    def test_a_plain_scalar_means_what_the_core_schema_says(self, text: str, value: object) -> None:
        found = read_yaml(text.encode())
        assert found == value
        assert type(found) is type(value)

    @given(VALUES)
    def test_json_is_yaml(self, value: object) -> None:
        """C4: YAML 1.2 holds JSON: a JSON text reads as itself."""
        assert read_yaml(json.dumps(value).encode()) == value


class TestRefusals:
    @pytest.mark.parametrize(
        "text",
        [
            "a: 1\na: 2",
            "x:\n  - {b: 1, b: 2}",
            'a: 1\n"a": 2',
            "a: {b: {c: {d: 1, d: 1}}}",
            "? a\n: 1\n? a\n: 2",
        ],
    )
    def test_a_repeated_key_at_any_depth(self, text: str) -> None:
        """C4: also with the same value, and under another spelling."""
        assert "duplicated mapping key" in refusal(text)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a: !!str 1", "tags are not read"),
            ("!x {a: 1}", "tags are not read"),
            ("- !<tag:yaml.org,2002:int> 1", "tags are not read"),
            ("<<: {a: 1}", "merge keys are not read"),
            ("a: 1\n---\na: 2", "more than one document"),
            ("%YAML 1.1\n---\na: 1", "only YAML 1.2 is read"),
            ("1: a", "a mapping key that is not text"),
            ("? [a]\n: 1", "a mapping key that is not text"),
            ("true: a", "a mapping key that is not text"),
            ("~: a", "a mapping key that is not text"),
            ("a: &x [*x]", "alias of an anchor that is not known here"),
            ("a: *nowhere", "alias of an anchor that is not known here"),
            ("a: .nan", "a number that is not finite"),
            ("a: -.INF", "a number that is not finite"),
            ("a: 1e999", "a number that cannot be kept exactly"),
            ("a: 9007199254740992", "a number outside the safe integers"),
            ("a: 0x" + "f" * 60, "a number outside the safe integers"),
            ("a: 1." + "0" * 100, "a number that cannot be kept exactly"),
            ('a: "\\ud800"', "one half of a surrogate pair"),
            ("[" * 65 + "]" * 65, "nested more than 64 deep"),
        ],
    )
    def test_what_a_policy_may_not_hold(self, text: str, reason: str) -> None:
        """C4: each refusal names its reason."""
        assert reason in refusal(text)

    @pytest.mark.parametrize(
        "text", ["a: [", "\ta: 1", "a: 'x", "@", "a: b: c", "- a\nb", "{a: 1]", "a: \x00"]
    )
    def test_what_is_no_yaml(self, text: str) -> None:
        assert refusal(text)

    def test_places_are_told(self) -> None:
        assert refusal("a: 1\nbb: 2\na: 3") == "duplicated mapping key a (line 3, column 1)"

    def test_aliases_count_as_often_as_they_are_used(self) -> None:
        """A few lines that mean a billion values are refused before anything is built from them."""
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
        assert "more than 100000 values" in refusal("\n".join(lines))

    def test_a_file_that_is_not_utf8_or_too_large(self) -> None:
        with pytest.raises(YamlError, match="not UTF-8"):
            read_yaml(b"a: \xff")
        with pytest.raises(YamlError, match="larger than 1048576 bytes"):
            read_yaml(b"#" * 1_048_577)

    def test_control_characters_in_a_key_are_shown_harmless(self) -> None:
        assert "\x1b" not in refusal('"\\e[2J": 1\n"\\e[2J": 2')

    @given(st.binary(max_size=60))
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        """C2: nothing but the typed refusal leaves the reader."""
        with suppress(YamlError):
            read_yaml(data)
