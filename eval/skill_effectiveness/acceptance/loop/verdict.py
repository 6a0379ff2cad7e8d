"""What a verdict file says. Pure: bytes in, a word out.

Source: loop.md, section 6; L53 to L56, L79.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.acceptance.loop.limits import VERDICT_BYTES
from skill_effectiveness.acceptance.loop.words import VerdictFault, VerdictWord
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError, StrictCode, StrictError
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_AMBIGUOUS: Final = frozenset({StrictCode.DUPLICATE_KEY, StrictCode.BOM, StrictCode.TRAILING_DATA})


class VerdictDocument(BaseModel):
    """The file that a reviewer writes.

    Attributes:
        verdict: `pass` or `fail`, exactly.
        feedback: what has to change.
        candidate: digest of the content that was reviewed.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    verdict: Literal["pass", "fail"]
    feedback: str = ""
    candidate: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged verdict.

    Attributes:
        word: what counts.
        fault: why it is invalid, if it is.
        feedback: of the file; empty when it is invalid.
    """

    word: VerdictWord
    fault: VerdictFault | None = None
    feedback: str = ""

    @property
    def decision(self) -> str:
        """The measured word, without prose."""
        return self.word.value if self.fault is None else f"{self.word.value}:{self.fault.value}"


def invalid(fault: VerdictFault) -> Verdict:
    """A verdict that fails closed."""
    return Verdict(VerdictWord.INVALID, fault)


def judge_verdict(
    data: bytes | None, *, file: str, names: Iterable[str], under_review: str, bound: bool
) -> Verdict:
    """Judge a verdict file.

    Args:
        data: its bytes; `None` when there is none.
        file: its name in the output of the reviewer.
        names: every file of that output.
        under_review: digest of the content that the reviewer was given.
        bound: whether the file must carry that digest.
    """
    read = _fault_of_names(file, names) or _read(data)
    if isinstance(read, VerdictFault):
        return invalid(read)
    if read.candidate is None and bound:
        return invalid(VerdictFault.UNBOUND)
    if read.candidate not in (None, under_review):
        return invalid(VerdictFault.STALE)
    return Verdict(VerdictWord(read.verdict), feedback=read.feedback)


def _read(data: bytes | None) -> VerdictDocument | VerdictFault:
    if data is None:
        return VerdictFault.MISSING
    if len(data) > VERDICT_BYTES:
        return VerdictFault.OVERSIZED
    try:
        value = read_json(data, Profile.WIRE, want_object=True)
    except StrictError as error:
        codes = {fault.code for fault in error.faults}
        return VerdictFault.AMBIGUOUS if codes & _AMBIGUOUS else VerdictFault.NOT_JSON
    # A null is no text and no digest, though the model takes it for an absent member.
    if isinstance(value, dict) and None in value.values():
        return VerdictFault.FIELDS
    try:
        return validate(VerdictDocument, value)
    except DocumentError:
        return VerdictFault.FIELDS


def _fault_of_names(file: str, names: Iterable[str]) -> VerdictFault | None:
    """Whether there is another file that a reader could take for the verdict."""
    last = file.rpartition("/")[2].casefold()
    others = [name for name in names if name != file and name.rpartition("/")[2].casefold() == last]
    return VerdictFault.AMBIGUOUS if others else None
