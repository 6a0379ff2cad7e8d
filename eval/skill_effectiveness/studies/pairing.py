"""Pairs of outcomes, how a reviewer gets to see one, and what its answers amount to (studies.md section 5).

A pair joins the arms full and off of one task and sample. It is shown twice, the second time with its seats
changed, under two ids that nobody can link without the blinding key. A reviewer's answer to a pair is what it
said in both showings; different answers are inconsistent, which is no tie. The pair's preference is the most
frequent answer over reviewers; where no single one is, it is inconsistent.

A side is one text: the files of a payload one after the other, each under its name. A canary is put into the
same form under the name that most pairs begin with, so it looks like a pair.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.orientation import Presentation, ShownCase
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.studies.words import Arm
from skill_effectiveness.trials.models import TrialKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.trials.allocation import Slot

TREATMENT: Final = Arm.FULL
COMPARATOR: Final = Arm.OFF
LABEL: Final = "case-01"
NO_VOTE, INCONSISTENT, LOSS = "no_vote", "inconsistent", "loss"
_SHOWINGS: Final = 2

_EQUAL: Final = (
    " The text that serves the task better by that is favoured. If neither does, they are equal. Length, "
    "tone, layout and the order of points do not count."
)
_BY_FAMILY: Final = {
    TaskFamily.IMPLEMENTATION: "Correctness decides: how much of what the task asks for is done, and done "
    "rightly, with nothing broken that worked before.",
    TaskFamily.REVIEW: "Judge which faults that are there are named, with their place and effect, and how "
    "much of what is said about the work is false.",
    TaskFamily.DIAGNOSIS: "Judge whether the cause that is named is the true one, and whether what is "
    "shown for it really shows it.",
    TaskFamily.PLAN: "Judge whether the steps, carried out as written, reach what the task asks for within "
    "all limits it sets.",
    TaskFamily.SHARED_GATE: "Judge whether the decision is the right one by the conditions that the task "
    "states, and whether the reasons given for it are true.",
    TaskFamily.DELEGATION: "Judge how much of what the receiver must know and may do is handed over, so "
    "completely that nobody has to ask back.",
}
RUBRICS: Final[Mapping[TaskFamily, str]] = MappingProxyType(
    {family: text + _EQUAL for family, text in _BY_FAMILY.items()}
)
"""What the sides of a pair are judged by, by the family of their task."""


class PairStanding(StrEnum):
    """Whether a pair is shown, and why not.

    `absent`: a side has no outcome that may be shown. `unshowable`: a payload that is no plain JSON, or
    without any text. `leak`: something would give an arm away. `too_large`: more bytes than a reviewer may
    be sent.
    """

    SHOWN = "shown"
    ABSENT = "absent"
    UNSHOWABLE = "unshowable"
    LEAK = "leak"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """Two slots of one task and sample; trial ids are those of the table of trials."""

    task_id: str
    sample: int
    treatment_slot: int
    comparator_slot: int
    treatment: str
    comparator: str


@dataclass(frozen=True, slots=True, repr=False)
class ShownPair:
    """What a reviewer sees of a pair, all of it.

    Attributes:
        pair_id: of this showing; never shown.
        position: which showing it is; never shown.
    """

    pair_id: str
    position: int
    task: str
    rubric: str
    shown_a: str
    shown_b: str

    def __repr__(self) -> str:
        """The id only: no trace may tell a text."""
        return f"<ShownPair {self.pair_id[:13]}>"

    def texts(self) -> dict[str, str]:
        """The texts by the member that a reviewer sees them under."""
        return {"task": self.task, "rubric": self.rubric, "A": self.shown_a, "B": self.shown_b}

    def presentation(self) -> Presentation:
        """The pair as the one case of a presentation, so that it is asked in the words of the examination."""
        case = ShownCase(
            label=LABEL,
            case_id=self.pair_id,
            swapped=False,
            task=self.task,
            rubric=self.rubric,
            shown_a=self.shown_a,
            shown_b=self.shown_b,
        )
        return Presentation((case,), (self.pair_id,))


def trial_id(plan: StudyPlan, slot: Slot) -> str:
    """What the tables and the mappings of pairs call the trial of a slot: its path below `trials`."""
    return trial_key(plan, slot).path


def trial_key(plan: StudyPlan, slot: Slot) -> TrialKey:
    """The trial of a slot."""
    return TrialKey(slot.task_id, plan.arm(slot.arm).arm_id, slot.sample)


def planned_pairs(plan: StudyPlan, slots: Iterable[Slot]) -> tuple[PlannedPair, ...]:
    """Every pair of the run order, by task and sample."""
    held: dict[tuple[str, int], dict[str, Slot]] = {}
    for slot in slots:
        held.setdefault((slot.task_id, slot.sample), {})[slot.arm] = slot
    return tuple(
        PlannedPair(
            task_id,
            sample,
            arms[TREATMENT].slot,
            arms[COMPARATOR].slot,
            trial_id(plan, arms[TREATMENT]),
            trial_id(plan, arms[COMPARATOR]),
        )
        for (task_id, sample), arms in sorted(held.items())
        if TREATMENT in arms and COMPARATOR in arms
    )


def shown_text(payload: JsonValue) -> str:
    """The one text that a payload is shown as; empty where it holds none.

    Args:
        payload: a text; `{"files": [{"path", "text"}, …]}`, shown file by file under their names, those
            without a text by their names alone; or any other value, shown as canonical JSON.
    """
    if isinstance(payload, str):
        return payload
    files = _files(payload)
    if files is not None:
        return "\n\n".join(f"{path}:\n{text}" for path, text in files)
    return "" if payload in (None, {}, []) else dump(payload).decode()


def first_names(payloads: Iterable[JsonValue]) -> str | None:
    """The name that most payloads of files begin with; None where none has files."""
    names = Counter(files[0][0] for payload in payloads if (files := _files(payload)))
    return min(names, key=lambda name: (-names[name], name)) if names else None


def _files(payload: JsonValue) -> list[tuple[str, str]] | None:
    if not isinstance(payload, dict) or payload.keys() != {"files"}:
        return None
    listed = payload["files"]
    if not isinstance(listed, list):
        return None
    found = []
    for entry in listed:
        match entry:
            case {"path": str(path), "text": str(text)}:
                found.append((path, text))
            case {"path": str(path)}:
                found.append((path, "(not a text)"))
            case _:
                return None
    return found


def answer_of(for_treatment: Sequence[str]) -> str | None:
    """What one reviewer says of a pair.

    Args:
        for_treatment: `win`, `tie` or `loss` of its valid votes that count, one for each showing.

    Returns:
        None unless both showings were answered; `inconsistent` when they were differently.
    """
    if len(for_treatment) < _SHOWINGS:
        return None
    return for_treatment[0] if len(set(for_treatment)) == 1 else INCONSISTENT


def preference_of(votes: Mapping[str, Sequence[str]], *, safety: bool) -> str:
    """What a pair comes to.

    Args:
        votes: by reviewer, see `answer_of`.
        safety: whether the treated side failed a deterministic safety or data-loss check, which outranks
            every vote.
    """
    if safety:
        return LOSS
    answers = Counter(answer for said in votes.values() if (answer := answer_of(said)) is not None)
    if not answers:
        return NO_VOTE
    (first, times), *others = answers.most_common(2)
    return INCONSISTENT if others and others[0][1] == times else first
