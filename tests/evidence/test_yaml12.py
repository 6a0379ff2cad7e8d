"""YAML 1.2 as JSON values that know where they stood."""

from __future__ import annotations

import pytest

from skill_effectiveness.evidence.yaml12 import Mark, YamlError, read_yaml, read_yaml_document

TEXT = b"""\
name: first
driver:
  settings: {effect: 0.4, "a/b": yes}
tasks:
  - one
  - [two, 3]
"""


class TestValues:
    def test_core_schema(self) -> None:
        assert read_yaml(TEXT) == {
            "name": "first",
            "driver": {"settings": {"effect": 0.4, "a/b": "yes"}},
            "tasks": ["one", ["two", 3]],
        }

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"a: 1\na: 2\n", "duplicated mapping key a (line 2, column 1)"),
            (b"--- 1\n--- 2\n", "more than one document"),
            (b"a: .nan\n", "a number that is not finite (line 1, column 4)"),
            (b"a: !!str 1\n", "tags are not read"),
            (b"<<: {a: 1}\n", "merge keys are not read"),
            (b"1: a\n", "a mapping key that is not text"),
            (b"\xff", "the file is not UTF-8"),
            (b"%YAML 1.1\n--- a\n", "only YAML 1.2 is read"),
        ],
    )
    def test_refused(self, data: bytes, reason: str) -> None:
        with pytest.raises(YamlError) as caught:
            read_yaml(data)
        assert str(caught.value).startswith(reason)


class TestPlaces:
    def test_keys_and_values(self) -> None:
        document = read_yaml_document(TEXT)
        assert document.keys["/name"] == Mark(1, 1)
        assert document.values["/name"] == Mark(1, 7)
        assert document.keys["/driver/settings/effect"] == Mark(3, 14)
        assert document.keys["/driver/settings/a~1b"] == Mark(3, 27)
        assert document.values["/tasks/1/1"] == Mark(6, 11)
        assert document.values[""] == Mark(1, 1)

    def test_what_is_missing_is_where_it_belongs(self) -> None:
        document = read_yaml_document(TEXT)
        assert document.mark("/driver/settings/base_rate") == Mark(3, 3)
        assert document.mark("/question") == Mark(1, 1)
        assert read_yaml_document(b"").mark("/a") == Mark(1, 1)

    def test_an_alias_has_its_own_place(self) -> None:
        document = read_yaml_document(b"a: &x {b: 1}\nc: *x\n")
        assert document.value == {"a": {"b": 1}, "c": {"b": 1}}
        assert document.mark("/c/b") == Mark(2, 1)
        assert document.mark("/a/b") == Mark(1, 8)

    def test_the_error_has_place_and_reason_apart(self) -> None:
        with pytest.raises(YamlError) as caught:
            read_yaml(b"a: [1\n")
        assert caught.value.mark is not None
        assert caught.value.reason
        assert "line" not in caught.value.reason
