"""The frozen bank that a generated placebo is made of."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.controls.structure import counts
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.placebo_sentences import (
    PLACEBO_SENTENCES,
    load_placebo_sentences,
    words_in,
)
from skill_effectiveness.protocol.registries import TREATMENT_WORDS
from skill_effectiveness.protocol.resources import frozen_folder
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMITTED = (frozen_folder() / PLACEBO_SENTENCES).read_bytes()
BANK = load_placebo_sentences(RealFs())


def test_the_bytes_are_pinned() -> None:
    """S7: the bank is frozen."""
    assert hashlib.sha256(COMMITTED).hexdigest() == (
        "e97caf0cf8aac37c5179a2e12ea60faf6946159e3177a8c206fd5f7bdd23dd1f"
    )


def test_how_long_a_text_is() -> None:
    """S7: as the three counts measure it."""
    assert (words_in("quiet harbour"), counts("quiet harbour").token_count) == (2, 2)
    assert {counts(each).token_count - words_in(each) for each in BANK.sentences} == {1}
    assert {counts(each).token_count - words_in(each) for each in BANK.headings} == {0}


def test_nobody_is_told_to_do_anything() -> None:
    """S7: no arm is named, and there are texts enough of each length that nothing is said over and over."""
    words = {word for text in BANK.sentences for word in text.lower().rstrip(".").split()}
    assert not words & (
        TREATMENT_WORDS | {"you", "must", "should", "always", "never", "please", "file", "test"}
    )
    assert all(sum(words_in(each) + 1 == size for each in BANK.sentences) >= 3 for size in range(3, 13))


@pytest.mark.parametrize(
    "change",
    [
        lambda bank: bank["sentences"].append("Two words"),
        lambda bank: bank["sentences"].append("A second, with a comma."),
        lambda bank: bank["sentences"].append("Ends. Begins."),
        lambda bank: bank["headings"].append("lower case"),
        lambda bank: bank["fragments"].append("three small words"),
        lambda bank: bank.update(fragments=["one"]),
        lambda bank: bank.update(headings=["Two words"]),
        lambda bank: bank.update(sentences=["Rain falls."]),
        lambda bank: bank.update(author="nobody"),
        lambda bank: bank.pop("headings"),
    ],
)
def test_another_bank(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """S7: what could not fill every place, or would be counted otherwise, is refused."""
    fs = CopiedFs(tmp_path)
    fs.edit(PLACEBO_SENTENCES, change)
    with pytest.raises(ProtocolError) as caught:
        load_placebo_sentences(fs)
    assert caught.value.code is ProtocolCode.FIXTURE_INVALID
    assert caught.value.where.startswith(PLACEBO_SENTENCES)


def test_the_form() -> None:
    assert set(json.loads(COMMITTED)) == {
        "schema_version",
        "artifact_contract",
        "fragments",
        "headings",
        "sentences",
    }
