"""Gates that a caller brings: the frozen ones, but for tier and budgets (trials.md section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import check_portable
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import json_pointer
from skill_effectiveness.protocol.document import to_json, told
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.gates import EvidenceTierName, PilotGates

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "pilot-gates"
FREE: Final = ("evidence_tier", "budgets")
"""The only members a caller may choose."""

_CAUSAL: Final = {"schema_version": 1, "requested_tier": str(EvidenceTierName.CAUSAL), "waived_items": []}


def caller_gates(frozen: PilotGates, value: object) -> PilotGates:
    """The gates a caller brings, if they are the frozen ones but for tier and budgets.

    Gates without `evidence_tier` ask for the causal tier without waivers (trials.md section 6).

    Args:
        frozen: the committed gates.
        value: what the caller's file says, as a plain JSON value.

    Raises:
        ProtocolError: `gates_changed`; `where` is `pilot-gates#` and the pointer of the first difference or
            malformed field.
    """
    if not isinstance(value, dict):
        raise _changed("", "the gates are a JSON object; start from the committed file.")
    given = {"evidence_tier": dict(_CAUSAL)} | value
    try:
        # First, so that 1.0 in the place of 1 is named as a spelling and not as a difference.
        check_portable(given)
    except EvidenceError as error:
        raise _malformed(error) from error
    ours: dict[str, object] = dict(to_json(frozen))
    for name in FREE:
        # Whatever stands there is the model's to judge; its absence is a difference.
        if name in given:
            ours[name] = given[name]
    place = next(_differences(ours, given, ()), None)
    if place is not None:
        sentence = (
            "this differs from the frozen gates; a caller chooses evidence_tier and budgets and nothing "
            "else, so put the frozen value back."
        )
        raise _changed(json_pointer(place), sentence)
    try:
        return validate(PilotGates, given)
    except EvidenceError as error:
        raise _malformed(error) from error


def _malformed(error: EvidenceError) -> ProtocolError:
    return _changed(error.faults[0].where, f"correct this. Found: {told(error)}")


def _changed(pointer: str, sentence: str) -> ProtocolError:
    return ProtocolError(ProtocolCode.GATES_CHANGED, f"{NAME}#{pointer}", sentence)


def _differences(
    ours: object, theirs: object, place: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    """Places where two JSON values differ; true is not 1, although Python holds them equal."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in (*ours, *(name for name in theirs if name not in ours)):
            if name in ours and name in theirs:
                yield from _differences(ours[name], theirs[name], (*place, name))
            else:
                yield (*place, name)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(mine, other, (*place, index))
    elif ours != theirs or isinstance(ours, bool) is not isinstance(theirs, bool):
        yield place
