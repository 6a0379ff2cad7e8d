"""What is refused of arm templates, manifests and registry plans.

| code | refused because |
|---|---|
| `bad_record` | a template, a manifest, a plan or a set of components is not of its exact form |
| `template_unknown` | the reference names no committed template |
| `template_changed` | the declared template is not the committed one |
| `registry_mismatch` | arms of two registries or scopes; an arm id that is a treatment word |
| `unallowlisted_diff` | something differs from the off arm, or is declared to, beyond the treatment |
| `allowlisted_diff_not_realized` | something that the treatment changes is the same as in the off arm |
| `off_not_empty` | an off arm holds a part of the treatment |
| `hash_mismatch` | a stored hash is not the hash of what it names |
| `control_selection` | an active control's selection does not belong to this arm |
| `not_runnable` | an arm that may not run is part of a plan |
| `plan_incomplete` | a plan lacks an arm it needs, or has one twice |
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from skill_effectiveness.protocol.document import told

if TYPE_CHECKING:
    from skill_effectiveness.evidence.faults import EvidenceError


class ArmCode(StrEnum):
    """Why an arm or a plan is refused; see the table above."""

    BAD_RECORD = "bad_record"
    TEMPLATE_UNKNOWN = "template_unknown"
    TEMPLATE_CHANGED = "template_changed"
    REGISTRY_MISMATCH = "registry_mismatch"
    UNALLOWLISTED_DIFF = "unallowlisted_diff"
    ALLOWLISTED_DIFF_NOT_REALIZED = "allowlisted_diff_not_realized"
    OFF_NOT_EMPTY = "off_not_empty"
    HASH_MISMATCH = "hash_mismatch"
    CONTROL_SELECTION = "control_selection"
    NOT_RUNNABLE = "not_runnable"
    PLAN_INCOMPLETE = "plan_incomplete"


class ArmError(Exception):
    """An arm or a plan cannot be frozen or read.

    Attributes:
        code: the closed word.
        where: the arm, component, field or pointer it is about; never a machine path.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: ArmCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}" if where else sentence)


def bad_record(what: str, error: EvidenceError) -> ArmError:
    """The error of a document that does not fit its model; its place is that of the first fault."""
    sentence = f"the {what} is malformed; correct it. Found: {told(error)}"
    return ArmError(ArmCode.BAD_RECORD, error.faults[0].where or what, sentence)
