"""Front matter with the keys of another and none of its words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skill_effectiveness.evidence.yaml12 import read_yaml
from skill_effectiveness.studies.placebo_matter import UnwritableError, placebo_matter
from skill_effectiveness.studies.placebo_prose import Prose, tokens_in
from skill_effectiveness.studies.placebo_text import placebo_text
from tests.support.placebos import BANK, WORDS, letters

GUIDE = "guide-0123abcd"
TEXT = """\
# Zq comment
name: zq-skill
description: >-
  Zq when: zq # zq
  - zq more

version: 1.5  # zq
quoted: "zq: \\"zq\\" # zq"
single: 'it''s zq'
plain: zq zq
  zq more
enabled: true
nothing:
empty: ""
allowed-tools: [Zq, "Zq(zq:*)"]
none: []
metadata:
  author: zq
  "level": 3
  deep:
    - zq
    - name: zq
      why: |
        Zq: zq
  # zq
list:
- zq zq
- 7
"""


def made(text: str, guide: str | None = GUIDE) -> str | None:
    return placebo_matter(text, Prose(BANK, bytes(32), "x"), guide)


def test_keys_and_kinds() -> None:
    """S7: keys, numbers and truth are kept, texts are of the bank, the name is the guide's."""
    found = made(TEXT)
    assert found is not None
    value = read_yaml(found.encode())
    assert isinstance(value, dict)
    assert list(value) == [
        "name", "description", "version", "quoted", "single", "plain", "enabled", "nothing", "empty",
        "allowed-tools", "none", "metadata", "list",
    ]  # fmt: skip
    assert value["name"] == GUIDE
    assert (value["version"], value["enabled"], value["nothing"], value["none"]) == (1.5, True, None, [])
    tools, metadata, listed = value["allowed-tools"], value["metadata"], value["list"]
    assert isinstance(tools, list)
    assert isinstance(listed, list)
    assert (len(tools), listed[1]) == (2, 7)
    assert isinstance(metadata, dict)
    assert (list(metadata), metadata["level"]) == (["author", "level", "deep"], 3)
    keys = letters(" ".join([*value, *metadata, "why", GUIDE, "true"]))
    assert letters(found) <= WORDS | keys
    assert found.count("\n") == TEXT.count("\n")
    assert tokens_in(found) == tokens_in(TEXT)


def test_a_name_is_a_text_where_there_is_no_guide() -> None:
    """S7: only a skill's own file names a skill."""
    found = made("name: zq-skill\n", None)
    assert found is not None
    assert letters(found) <= WORDS | {"name"}


@pytest.mark.parametrize("text", ["zq\n", "- zq\n", "a: b: c\n", "a: 1\na: 2\n", "\n", "'\n"])
def test_no_front_matter(text: str) -> None:
    """S7: two lines of dashes around something else are lines as any other."""
    assert made(text) is None
    assert letters(placebo_text(f"---\n{text}---\nzq\n", Prose(BANK, bytes(32), "x"))) <= WORDS


@pytest.mark.parametrize(
    "text",
    [
        "{name: zq, description: zq}\n",
        "? zq\n: zq\n",
        "a: {b: zq}\n",
        "a: [zq,\n  zq]\n",
    ],
)
def test_a_form_that_is_not_taken_apart(text: str) -> None:
    """S7: refused, and never nearly right."""
    with pytest.raises(UnwritableError):
        made(text)


def test_what_the_name_is_shorter_or_longer_is_made_up() -> None:
    """S7: the counts are of the file as a whole."""
    for name in ("zq", "zq-zq-zq-zq-zq"):
        text = f"name: {name}\ndescription: zq zq zq zq zq zq\n"
        found = made(text)
        assert found is not None
        assert tokens_in(found) == tokens_in(text)


@given(st.lists(st.sampled_from(list("abzq:-#[]{}|>\"'&*!?,%@ \n\t0.~")), max_size=40).map("".join))
@example("a:\n - b: zq\n   c: [zq]\n")
@example("a: |2-\n   zq\n")
@example("zq: 1")
def test_any_characters(text: str) -> None:
    """S7: it is front matter of the same keys, none at all, or refused."""
    try:
        found = made(f"{text}\n", None)
    except UnwritableError:
        return
    if found is not None:
        value, original = read_yaml(found.encode()), read_yaml(f"{text}\n".encode())
        assert isinstance(value, dict)
        assert isinstance(original, dict)
        assert list(value) == list(original)
