"""Judging a reviewer's answer: complete and exact, or no answer at all (calibration.md, sections 3 and 8).

That it is one strict JSON object and nothing else is `providers.one_json_object`'s to say.

Whatever is missing, doubled, cut off or worded differently makes the whole answer unusable. Nothing is
searched for in surrounding text, no default exists, and no gap becomes a tie.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.providers import ProviderCode, ReplyError, one_json_object

if TYPE_CHECKING:
    from pydantic import JsonValue

    from skill_effectiveness.calibration.orientation import Presentation


class AnswerCode(StrEnum):
    """Why an answer does not count; the first that applies, in this order."""

    NOT_JSON = "not_json"
    WRONG_SHAPE = "wrong_shape"
    CASE_UNKNOWN = "case_unknown"
    CASE_TWICE = "case_twice"
    CASE_MISSING = "case_missing"
    VERDICT_UNKNOWN = "verdict_unknown"


_SENTENCES: Final = {
    AnswerCode.NOT_JSON: "the answer is not one strict JSON value and nothing else",
    AnswerCode.WRONG_SHAPE: "the answer is not an object of judgments with exactly a case and a verdict each",
    AnswerCode.CASE_UNKNOWN: "the answer judges a case that was not shown",
    AnswerCode.CASE_TWICE: "the answer judges a case more than once",
    AnswerCode.CASE_MISSING: "the answer leaves out a case",
    AnswerCode.VERDICT_UNKNOWN: "the answer uses another word than the three verdicts",
}


class AnswerError(Exception):
    """A reviewer's answer does not count; it is counted as unusable and never scored.

    Attributes:
        code: why.
        sentence: the same for people; quotes nothing of the answer.
    """

    def __init__(self, code: AnswerCode) -> None:
        self.code = code
        self.sentence = f"{_SENTENCES[code]}; it is not scored, ask for a new sample"
        super().__init__(self.sentence)


def read_answer(text: str, presentation: Presentation, *, json_fence: bool = False) -> tuple[Verdict, ...]:
    """The verdicts in shown order, as given.

    Args:
        text: what the reviewer replied: one bare object `{"judgments":[{"case":…,"verdict":…},…]}`.
        presentation: what it was shown.
        json_fence: whether its adapter declares that the object may stand in one fence.

    Raises:
        AnswerError: anything else.
    """
    given = [_entry(entry) for entry in _entries(text, json_fence=json_fence)]
    labels = Counter(label for label, _ in given)
    if labels.keys() - set(presentation.labels):
        raise AnswerError(AnswerCode.CASE_UNKNOWN)
    if any(times > 1 for times in labels.values()):
        raise AnswerError(AnswerCode.CASE_TWICE)
    if len(labels) < len(presentation.labels):
        raise AnswerError(AnswerCode.CASE_MISSING)
    verdicts = {label: _verdict(word) for label, word in given}
    return tuple(verdicts[label] for label in presentation.labels)


def _entries(text: str, *, json_fence: bool) -> list[JsonValue]:
    try:
        value = one_json_object(text, allow_json_fence=json_fence)
    except ReplyError as error:
        shape = error.code is ProviderCode.REPLY_NO_OBJECT
        raise AnswerError(AnswerCode.WRONG_SHAPE if shape else AnswerCode.NOT_JSON) from None
    if value.keys() != {"judgments"}:
        raise AnswerError(AnswerCode.WRONG_SHAPE)
    entries = value["judgments"]
    if not isinstance(entries, list):
        raise AnswerError(AnswerCode.WRONG_SHAPE)
    return entries


def _entry(entry: JsonValue) -> tuple[str, str]:
    if not isinstance(entry, dict) or entry.keys() != {"case", "verdict"}:
        raise AnswerError(AnswerCode.WRONG_SHAPE)
    label, word = entry["case"], entry["verdict"]
    if not isinstance(label, str) or not isinstance(word, str):
        raise AnswerError(AnswerCode.WRONG_SHAPE)
    return label, word


def _verdict(word: str) -> Verdict:
    try:
        return Verdict(word)
    except ValueError:
        raise AnswerError(AnswerCode.VERDICT_UNKNOWN) from None
