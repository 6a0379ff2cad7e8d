"""The pairs of a study as reviewers will see them: blinded, linted, measured (studies.md section 5).

Everything here may be done again: the same outcomes give the same files and ids. A pair that is not shown is
counted by its reason and stays in no vote.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.prompt import PromptTooLarge, render
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.providers import ShownTruth
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.linting import JudgeLint
from skill_effectiveness.studies.pairing import (
    COMPARATOR,
    LABEL,
    RUBRICS,
    TREATMENT,
    PairStanding,
    ShownPair,
    first_names,
    planned_pairs,
    shown_text,
)
from skill_effectiveness.studies.task_folder import INSTRUCTION
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.binding import OUTCOME
from skill_effectiveness.trials.blinding import (
    BlindingCode,
    BlindingRefused,
    BlindOutcome,
    Position,
    blind_pair,
    read_mapping,
)
from skill_effectiveness.trials.leaks import LeakRules
from skill_effectiveness.trials.store import TRIALS
from skill_effectiveness.trials.trial_facts import JUDGE_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.frozen import FrozenStudy
    from skill_effectiveness.studies.pairing import PlannedPair
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.state import StudyState
    from skill_effectiveness.studies.trial_rows import StudyEvidence
    from skill_effectiveness.studies.words import Arm

_SKILLS: Final = "skills"
_NEVER_SHOWN: Final = frozenset({EndClass.CONTAMINATED, EndClass.VOID})


@dataclass(frozen=True, slots=True, repr=False)
class Roster:
    """Every showing of every pair that is shown.

    Attributes:
        shown: both showings of each pair.
        pair_of: by showing, a name for its pair.
        truths: by showing, what a simulated reviewer is handed.
        standings: how many pairs there are of each standing.
        file_name: that most payloads begin with, for canaries.
    """

    shown: tuple[ShownPair, ...]
    pair_of: Mapping[str, str]
    truths: Mapping[str, ShownTruth]
    standings: Mapping[PairStanding, int]
    file_name: str | None


def study_lint(study: StudyRoot, frozen: FrozenStudy) -> JudgeLint:
    """What no judge of this study may see.

    Raises:
        StudyError: `plan_changed`.
        RootError, FileError: a frozen input cannot be read.
    """
    texts: list[str] = []
    skills: set[str] = set()
    for arm in study.plan.arms:
        held = study.inputs.held(arm.tree)
        for entry in held.tree.entries:
            folder, _, rest = entry.path.partition("/")
            name = rest.split("/")[0]
            if folder == _SKILLS and any(sign.isalnum() for sign in name):
                skills.add(name)
        texts += [held.blob(entry).decode("utf-8", "replace") for entry in held.tree.files]
    owners = {owner for task in frozen.tasks.values() for owner in task.expected_owners}
    around = study.around
    places = (str(study.root.path), around.environ.get("HOME", ""), around.fs.user_home())
    rules = LeakRules(owners=owners, profile_texts=texts).with_registry(
        frozen.registry_plan.manifest_hashes, frozen.registry_plan.manifest_hashes.values()
    )
    return JudgeLint(rules, skills=skills, places=places)


def call_roster(
    study: StudyRoot, frozen: FrozenStudy, evidence: StudyEvidence, rewards: Mapping[int, float | None]
) -> Roster:
    """Blind every pair and see which of them can be shown.

    Args:
        study: whose folder holds the blinding.
        frozen: of the study.
        evidence: plan, run order, state and reader.
        rewards: by slot, as far as they are known.

    Raises:
        StudyError: `plan_changed`, `input_refused`.
        EvidenceError: a file cannot be read or written.
    """
    rolling = _Rolling(study, frozen, evidence)
    for pair in planned_pairs(study.plan, evidence.slots):
        rolling.standings[rolling.take(pair, rewards)] += 1
    return Roster(
        tuple(rolling.shown),
        rolling.pair_of,
        rolling.truths,
        rolling.standings,
        first_names(rolling.payloads),
    )


@dataclass(slots=True)
class _Rolling:
    """Pairs as they are gone through."""

    study: StudyRoot
    frozen: FrozenStudy
    evidence: StudyEvidence
    shown: list[ShownPair] = field(default_factory=list)
    pair_of: dict[str, str] = field(default_factory=dict)
    truths: dict[str, ShownTruth] = field(default_factory=dict)
    payloads: list[JsonValue] = field(default_factory=list)
    standings: Counter[PairStanding] = field(default_factory=Counter)
    lint: JudgeLint = field(init=False)
    instructions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lint = study_lint(self.study, self.frozen)

    def take(self, pair: PlannedPair, rewards: Mapping[int, float | None]) -> PairStanding:
        """Blind one pair and say how it stands."""
        sides = [
            self._side(TREATMENT, pair.treatment_slot, pair.treatment),
            self._side(COMPARATOR, pair.comparator_slot, pair.comparator),
        ]
        treated, compared = sides
        if treated is None or compared is None:
            return PairStanding.ABSENT
        try:
            showings = [self._showing(pair, treated, compared, position) for position in Position]
        except BlindingRefused as refused:
            if refused.code is BlindingCode.LEAK:
                return PairStanding.LEAK
            if refused.code is BlindingCode.PAYLOAD_FORM:
                return PairStanding.UNSHOWABLE
            raise
        standing = self._standing(showings)
        if standing is PairStanding.SHOWN:
            self.payloads += [treated.judge_payload, compared.judge_payload]
            self._note(pair, showings, rewards)
        return standing

    def _standing(self, showings: list[ShownPair]) -> PairStanding:
        if any(not text.strip() for one in showings for text in (one.shown_a, one.shown_b)):
            return PairStanding.UNSHOWABLE
        try:
            for one in showings:
                render(one.presentation())
        except PromptTooLarge:
            return PairStanding.TOO_LARGE
        leaks = any(self.lint.signs(one.texts()) for one in showings)
        return PairStanding.LEAK if leaks else PairStanding.SHOWN

    def _side(self, arm: Arm, slot: int, name: str) -> BlindOutcome | None:
        """One outcome; None where there is none that may be shown."""
        if not may_be_shown(self.evidence.state, slot):
            return None
        data = self.evidence.reader.read(f"{TRIALS}/{name}/{OUTCOME}")
        payload = None if data is None else _payload(data)
        if payload is None:
            return None
        planned = self.study.plan.arm(arm)
        return BlindOutcome(
            outcome_id=name,
            arm_id=planned.arm_id,
            manifest_hash=planned.manifest_hash,
            arm_registry_plan_hash=self.frozen.registry_plan.plan_hash,
            judge_payload=payload,
        )

    def _showing(
        self, pair: PlannedPair, treated: BlindOutcome, compared: BlindOutcome, position: Position
    ) -> ShownPair:
        given = blind_pair(
            self.study.root,
            self.frozen.registry_plan,
            treated,
            compared,
            rules=self.lint.rules,
            position=position,
        )
        return ShownPair(
            pair_id=given.pair_id,
            position=int(position),
            task=self._instruction(pair.task_id),
            rubric=RUBRICS[self.study.plan.task(pair.task_id).family],
            shown_a=shown_text(given.A),
            shown_b=shown_text(given.B),
        )

    def _instruction(self, task_id: str) -> str:
        if task_id not in self.instructions:
            tree = self.study.inputs.tree(self.study.plan.task(task_id).tree)
            entry = tree.find(INSTRUCTION)
            if entry is None or entry.sha256 is None:
                sentence = "a frozen task has no instruction; restore the study's folder, or plan anew."
                raise StudyError(StudyCode.PLAN_CHANGED, f"/tasks/{task_id}", sentence)
            self.instructions[task_id] = self.study.inputs.read(entry.sha256).decode("utf-8", "replace")
        return self.instructions[task_id]

    def _note(
        self, pair: PlannedPair, showings: list[ShownPair], rewards: Mapping[int, float | None]
    ) -> None:
        name = showings[0].pair_id
        better = _better(rewards.get(pair.treatment_slot), rewards.get(pair.comparator_slot))
        for one in showings:
            self.shown.append(one)
            self.pair_of[one.pair_id] = name
            if self.study.plan.synthetic:
                seats = read_mapping(self.study.root, one.pair_id).mapping
                # As the first showing has it: the same truth, drawn once, for both.
                first = seats.A if one.position == 0 else seats.B
                verdict = better if first == pair.treatment else better.turned()
                self.truths[one.pair_id] = ShownTruth(LABEL, name, verdict, swapped=bool(one.position))


def _better(treated: float | None, compared: float | None) -> Verdict:
    """Which reward is higher, the treated one being A."""
    difference = (treated or 0.0) - (compared or 0.0)
    if difference == 0:
        return Verdict.TIE
    return Verdict.A_WIN if difference > 0 else Verdict.B_WIN


def may_be_shown(state: StudyState, slot: int) -> bool:
    """Whether the outcome of a slot may be shown to a reviewer at all, if there is one."""
    ended = state.slot(slot).ended
    return ended is not None and ended not in _NEVER_SHOWN


def _payload(data: bytes) -> JsonValue:
    try:
        outcome = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError as error:
        sentence = "an outcome is not as it was written; restore the study's folder."
        raise StudyError(StudyCode.INPUT_REFUSED, OUTCOME, sentence) from error
    return outcome.get(JUDGE_PAYLOAD) if isinstance(outcome, dict) else None
