"""`milestone.json` and the configuration as documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skill_effectiveness.acceptance.milestone.configuration import SHIPPED, read_configuration
from skill_effectiveness.acceptance.milestone.errors import MilestoneError
from skill_effectiveness.acceptance.milestone.input import read_input
from skill_effectiveness.acceptance.milestone.words import PassName

PLAIN: dict[str, Any] = {
    "plan": "p", "id": "m1", "repository": "/r", "target": "main", "base": "b", "criteria": ["One.", "Two."],
}  # fmt: skip


def read(**members: Any) -> Any:  # noqa: ANN401 - any members
    return read_input(json.dumps(PLAIN | members).encode())


def test_what_may_be_left_out() -> None:
    given = read().value
    assert given.criterion_ids == ("c1", "c2")
    assert (given.read_grade, given.needs_qa, given.required, given.nodes) == ("C3", False, (), ())


def test_a_changed_annotation_changes_the_digest() -> None:
    """M5: of the whole document, however it is spaced."""
    entry = {"id": "c1", "checks": [{"kind": "remote_push"}]}
    digests = {read().digest, read(delivery_criteria=[entry]).digest, read(delivery_criteria=[]).digest}
    assert len(digests) == 3
    spaced = read_input(json.dumps(PLAIN, indent=3, sort_keys=True).encode())
    assert spaced.digest == read().digest


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"extra": 1}, "input_invalid: /extra "),
        ({"repository": "relative"}, "input_invalid: /repository "),
        ({"criteria": []}, "input_invalid: /criteria "),
        ({"grade": "X"}, "input_invalid: /grade "),
        ({"id": "a/b"}, "input_invalid: /id "),
        ({"required": [[]]}, "input_invalid: /required/0 "),
        ({"required": [["a"], ["a"]]}, "input_invalid: / A required command is named twice"),
        ({"surfaces": {"c9": "web"}}, "input_invalid: / A surface is given"),
        ({"decisions": [{"id": "c1", "text": "x"}]}, "input_invalid: / A decision has an id"),
        (
            {"nodes": [{"id": "n", "slice": "s", "criteria": [], "base": "b", "decisions": ["d"]}]},
            "input_inv",
        ),
    ],
)
def test_what_is_refused(members: dict[str, Any], told: str) -> None:
    with pytest.raises(MilestoneError) as caught:
        read(**members)
    assert str(caught.value).startswith(told)
    assert caught.value.code.exit == 2


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"plan":1,"plan":1}', b"\xff"])
def test_bytes_that_are_no_document(data: bytes) -> None:
    with pytest.raises(MilestoneError, match=r"^input_invalid: "):
        read_input(data)


def test_the_shipped_profiles() -> None:
    """M115: in their order, with their limits and floors; what `command` cannot observe is stated as null."""
    astra, grok = SHIPPED.profiles
    assert (astra.name, astra.adapter, astra.model, astra.family) == ("astra", "codex", "gpt-6-astra", "gpt")
    assert (astra.limit_seconds, astra.floors.commands, astra.floors.tokens) == (2400, 1, 1000)
    assert (astra.floors.seconds, astra.floors.unobserved) == (10, ())
    assert (grok.name, grok.adapter, grok.family) == ("grok", "command", "grok")
    assert grok.argv == ("grok", "-m", "grok-4.7", "{{prompt}}")
    assert grok.floors.unobserved == ("commands", "tokens")


def test_engines_of_a_round() -> None:
    """M113: one profile after the other for both passes, or the pair that is named."""
    one, two = ({"name": n, "adapter": "a", "model": "m", "family": "f"} for n in ("one", "two"))
    in_turn = read_configuration(json.dumps({"profiles": [one, two]}).encode()).sets_of_engines()
    assert [[each.name for each in engines.values()] for engines in in_turn] == [["one"] * 2, ["two"] * 2]
    paired = {"profiles": [one, two], "pass_engines": {"A": "two", "B": "one"}}
    (pair,) = read_configuration(json.dumps(paired).encode()).sets_of_engines()
    assert {name: each.name for name, each in pair.items()} == {PassName.A: "two", PassName.B: "one"}


@pytest.mark.parametrize(
    "members",
    [
        {"profiles": [{"name": "x", "adapter": "a", "model": "m", "family": "f"}] * 2},
        {"explorer": "nobody"},
        {"pass_engines": {"A": "astra", "B": "nobody"}},
        {"tracker": {"kind": "file"}},
        {"test_report": "../out.xml"},
        {"unknown": 1},
    ],
)
def test_configurations_that_are_refused(members: dict[str, Any]) -> None:
    with pytest.raises(MilestoneError, match=r"^configuration_invalid: "):
        read_configuration(json.dumps(members).encode())
