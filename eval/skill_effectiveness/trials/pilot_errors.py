"""Why a gate cannot be applied at all: a bundle or a plan that is not one (trials.md section 9).

A gate that can be applied answers with a verdict, pass or fail. These are the others:

| code | refused because |
|---|---|
| `bundle_missing` | there is no bundle, or a file that it names is not there |
| `bundle_invalid` | a file of the bundle is malformed |
| `bundle_mismatch` | a file of the bundle is not the one whose digest the bundle holds |
| `bundle_occupied` | the folder for a new bundle holds something else |
| `plan_invalid` | tasks, manifests or plan rows contradict each other, or a cell has too few |
| `plan_mismatch` | the bundle was made for another plan or configuration |
| `tier_mismatch` | the configuration asks for another tier than the arms' registry has |
"""

from __future__ import annotations

from enum import StrEnum


class PilotCode(StrEnum):
    """Why a gate cannot be applied; see the table above."""

    BUNDLE_MISSING = "bundle_missing"
    BUNDLE_INVALID = "bundle_invalid"
    BUNDLE_MISMATCH = "bundle_mismatch"
    BUNDLE_OCCUPIED = "bundle_occupied"
    PLAN_INVALID = "plan_invalid"
    PLAN_MISMATCH = "plan_mismatch"
    TIER_MISMATCH = "tier_mismatch"


class PilotError(Exception):
    """A gate cannot be applied.

    Attributes:
        code: the closed word.
        where: a file of the bundle, or the name and pointer of an input; never a machine path.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: PilotCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}" if where else sentence)
