"""Which criteria the crosscheck judges and which wait for the delivery check.

Source: milestone.md, section 2. A bad annotation is a warning and leaves its criterion in the crosscheck; the
words of a criterion remove nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.words import DeliveryKind

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.input import DeliveryEntry, MilestoneInput

_REFERENCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+#[1-9][0-9]*")
_LIKELY: Final = re.compile(
    r"\b(push(ed|es)?|origin|publish(ed|es)?|issues? (is|are) closed|milestone is closed)\b", re.IGNORECASE
)


def is_reference(text: str | None) -> bool:
    """Whether a text names one issue or tracking milestone as `OWNER/NAME#N`."""
    return text is not None and _REFERENCE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion and the id it keeps."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class AnnotationWarning:
    """What is wrong with an annotation, or what a criterion without one reads like.

    Attributes:
        code: `unknown_id`, `duplicate_id`, `no_checks`, `unknown_check`, `duplicate_check`,
            `invalid_reference`, or the advisory `delivery_phrase`.
        id: the criterion id it is about, as written.
    """

    code: str
    id: str


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria, sorted.

    Attributes:
        build: what the crosscheck judges, with its original ids.
        deferred: criterion ids and their checks, for the delivery check.
        warnings: about annotations.
    """

    build: tuple[Criterion, ...]
    deferred: tuple[DeliveryEntry, ...]
    warnings: tuple[AnnotationWarning, ...]

    @property
    def deferred_ids(self) -> tuple[str, ...]:
        """The ids that wait for the delivery check."""
        return tuple(entry.id for entry in self.deferred)


def sort_criteria(given: MilestoneInput) -> Criteria:
    """Sort the criteria of an input."""
    known = set(given.criterion_ids)
    counts = [entry.id for entry in given.delivery_criteria]
    warnings: list[AnnotationWarning] = []
    deferred = []
    for entry in given.delivery_criteria:
        fault = _fault(entry, known, counts.count(entry.id))
        if fault is None:
            deferred.append(entry)
        elif (warning := AnnotationWarning(fault, entry.id)) not in warnings:
            warnings.append(warning)
    moved = {entry.id for entry in deferred}
    build = tuple(
        Criterion(name, text)
        for name, text in zip(given.criterion_ids, given.criteria, strict=True)
        if name not in moved
    )
    annotated = set(counts)
    warnings += [
        AnnotationWarning("delivery_phrase", each.id)
        for each in build
        if each.id not in annotated and _LIKELY.search(each.text)
    ]
    return Criteria(build, tuple(deferred), tuple(warnings))


def _fault(entry: DeliveryEntry, known: set[str], count: int) -> str | None:
    """What keeps an annotation from counting."""
    kinds = [check.kind for check in entry.checks]
    faults = (
        ("unknown_id", entry.id not in known),
        ("duplicate_id", count > 1),
        ("no_checks", not kinds),
        ("unknown_check", not set(kinds) <= {kind.value for kind in DeliveryKind}),
        ("duplicate_check", len({(check.kind, check.ref) for check in entry.checks}) != len(kinds)),
        ("invalid_reference", any(not _well_referred(check.kind, check.ref) for check in entry.checks)),
    )
    return next((name for name, found in faults if found), None)


def _well_referred(kind: str, ref: str | None) -> bool:
    return is_reference(ref) if kind == DeliveryKind.MILESTONE_CLOSED.value else ref is None
