"""What cannot be asked or read: closed codes, each of them raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.providers import (
    CallKind,
    CommandSettings,
    JudgeCall,
    ProviderCode,
    ProviderError,
    ReplyError,
    ShownTruth,
    SimulatedReviewer,
    SimulatedSettings,
    one_json_object,
)
from tests.support.provider_calls import SCHEMA, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = SimulatedSettings(accuracy=1.0)
TWICE = [ShownTruth("case-01", "code-01", Verdict.TIE, swapped=False)] * 2


SITUATIONS: dict[ProviderCode, Callable[[Path], object]] = {
    ProviderCode.CALL_KIND_UNSUPPORTED: lambda _: SimulatedReviewer(SETTINGS).require(CallKind.WORK),
    ProviderCode.INVALID_CALL: lambda _: JudgeCall("", SCHEMA, "model", 1),
    ProviderCode.INVALID_COMMAND: lambda _: CommandSettings(("no prompt",)),
    ProviderCode.INVALID_TRUTH: lambda _: SimulatedReviewer(SETTINGS, TWICE),
    ProviderCode.NO_PROGRAM: lambda path: SimulatedReviewer.at(path, around=surroundings(path)),
    ProviderCode.REPLY_INVALID: lambda _: one_json_object("tie"),
    ProviderCode.REPLY_NO_OBJECT: lambda _: one_json_object("[]"),
}


def test_every_code_has_a_situation() -> None:
    """P6: a code that nothing raises is no code."""
    assert set(SITUATIONS) == set(ProviderCode)


@pytest.mark.parametrize("code", ProviderCode)
def test_each_is_raised_with_one_sentence_for_people(code: ProviderCode, tmp_path: Path) -> None:
    """P6: the code for machines, the sentence for people, the same sentence as text."""
    with pytest.raises(ProviderError) as caught:
        SITUATIONS[code](tmp_path)
    assert caught.value.code is code
    assert str(caught.value) == caught.value.sentence
    assert caught.value.sentence[0].isupper() or caught.value.sentence.startswith("simulated ")
    assert caught.value.sentence.endswith(".")
    assert isinstance(caught.value, ReplyError) is (code.value.startswith("reply_"))
