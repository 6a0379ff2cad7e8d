"""The reviewers of a study: whose licence, by which program, and how it stands (studies.md section 5).

A licence was verified by its seal when the plan was made, and the plan pins its bytes; what is asked here,
before every vote, is whether it is live now: time, program, version, model, prompt, banks and policy, and
whether its canaries have revoked it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from skill_effectiveness.calibration.licence import LicenceRefused
from skill_effectiveness.calibration.licensing import NamedReviewer, claimed_licence, present
from skill_effectiveness.calibration.prompt import answer_schema, render
from skill_effectiveness.calibration.reviewer import ADAPTERS
from skill_effectiveness.calibration.standing import LicenceStatus, Standing, demand_one_world, judge_standing
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import Executable, ExecutableError
from skill_effectiveness.providers import (
    JudgeCall,
    ProviderError,
    ShownTruth,
    SimulatedReviewer,
    SimulatedSettings,
)
from skill_effectiveness.studies.amendments import effective_reviewers
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.guesses import guess_prompt, guess_schema, read_guess, simulated_guess
from skill_effectiveness.studies.pairing import LABEL
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.calibration.orientation import Presentation
    from skill_effectiveness.calibration.standing import Present
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome, Provider, ProviderBinding
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.guesses import Side
    from skill_effectiveness.studies.pairing import ShownPair
    from skill_effectiveness.studies.root import StudyRoot
    from skill_effectiveness.studies.state import StudyState
    from skill_effectiveness.studies.voting import Asked

VOTE_SECONDS: Final = 600
_SEED_BYTES: Final = 6


class Answering(Protocol):
    """Whoever answers."""

    @property
    def json_fence(self) -> bool:
        """Whether an answer may stand in one fence."""
        ...

    @property
    def binding(self) -> ProviderBinding | None:
        """What is taken from the user's configuration, the same for every vote."""
        ...

    def vote(self, asked: Asked, presentation: Presentation, vote_id: str) -> CallOutcome:
        """One call about one pair."""
        ...

    def guess(self, shown: ShownPair) -> Side | None:
        """One call about the treated side; None where nothing readable came."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """One reviewer.

    Attributes:
        index: its place in the plan.
        licence: as it was frozen.
        executable: what answers; None where it cannot be bound.
        present: what the licence is held against.
        answering: asked through this; None where the program cannot be bound.
        unbound: why not, in a closed word.
    """

    index: int
    licence: LicencePredicate
    present: Present
    executable: Executable | None = None
    answering: Answering | None = None
    unbound: str | None = None

    @property
    def licence_id(self) -> str:
        """The id of the licence."""
        return self.licence.licence_id

    def standing(self, at: datetime, state: StudyState) -> Standing:
        """How the licence stands."""
        return judge_standing(self.licence, self.present, at, revoked=self.licence_id in state.revoked)

    def fault(self, at: datetime, state: StudyState) -> str | None:
        """Why this reviewer cannot be asked now; None where it can."""
        standing = self.standing(at, state)
        if standing.status is not LicenceStatus.LIVE:
            return standing.word
        return self.unbound


def seat_reviewers(
    study: StudyRoot,
    state: StudyState,
    chance: Chance,
    truths: Mapping[str, ShownTruth],
    cancelled: Callable[[], bool],
) -> tuple[Bench, ...]:
    """Every reviewer that is still to be asked, in the order of the plan.

    Raises:
        StudyError: `licence_refused`: there is none, one cannot be read, or real and simulated ones are
            mixed; `plan_changed`.
        ProtocolError: the frozen banks or the policy cannot be read.
        RootError, FileError: a file cannot be read.
    """
    plan, wanted = study.plan, effective_reviewers(study.plan, state)
    if not wanted:
        sentence = "the plan has no reviewer, so there is nobody to judge; plan anew with a licence."
        raise StudyError(StudyCode.LICENCE_REFUSED, "/reviewers", sentence)
    programs = [reviewer.executable for reviewer in study.study().reviewers]
    licences = []
    for index, reviewer in enumerate(plan.reviewers):
        if reviewer in wanted:
            where = f"/reviewers/{index}"
            data = study.licence(reviewer.licence_id, f"{where}/licence_hash", reviewer.licence_hash)
            licences.append((index, _licence(data, where)))
    _demand_one_world([licence for _, licence in licences], driver_simulated=plan.synthetic)
    seating = _Seating(study.around, chance, truths, cancelled)
    return tuple(seating.bench(index, licence, programs[index]) for index, licence in licences)


def _licence(data: bytes, where: str) -> LicencePredicate:
    try:
        return claimed_licence(data)
    except LicenceRefused as error:
        raise StudyError(StudyCode.LICENCE_REFUSED, where, error.sentence) from error


def _demand_one_world(licences: Sequence[LicencePredicate], *, driver_simulated: bool) -> None:
    try:
        demand_one_world(licences, driver_simulated=driver_simulated)
    except LicenceRefused as error:
        raise StudyError(StudyCode.LICENCE_REFUSED, "/reviewers", error.sentence) from error
    if driver_simulated and not all(licence.synthetic for licence in licences):
        sentence = "a real reviewer beside a simulated driver judges nothing that is real; leave it out."
        raise StudyError(StudyCode.LICENCE_REFUSED, "/reviewers", sentence)


@dataclass(frozen=True, slots=True)
class _Seating:
    around: Surroundings
    chance: Chance
    truths: Mapping[str, ShownTruth]
    cancelled: Callable[[], bool]

    def bench(self, index: int, licence: LicencePredicate, program: str | None) -> Bench:
        answering: _Simulated | _Real
        try:
            if licence.reviewer.provider == SIMULATED:
                answering = _Simulated.of(licence, self)
            else:
                answering = _Real.of(licence, program, self)
            executable = answering.identify(self.around)
        except (ExecutableError, EvidenceError, ProviderError) as error:
            now = present(self.around.fs, NamedReviewer())
            return Bench(index, licence, now, unbound=f"unbound:{error.code}")
        named = NamedReviewer(executable, licence.reviewer.model, answering.binding)
        now = present(self.around.fs, named)
        return Bench(index, licence, now, executable, answering)


class _Real:
    """A program that is asked through its adapter; it is handed the prompt and nothing else."""

    def __init__(self, adapter: Provider, licence: LicencePredicate, seating: _Seating) -> None:
        self._adapter = adapter
        self._model = licence.reviewer.model
        self._around = seating.around
        self._cancelled = seating.cancelled

    @classmethod
    def of(cls, licence: LicencePredicate, program: str | None, seating: _Seating) -> _Real:
        """Bind the program of a licence.

        Raises:
            StudyError: `licence_refused`: no program is named, or there is no adapter for it.
            ExecutableError, EvidenceError, ProviderError: it cannot be bound.
        """
        kind = ADAPTERS.get(licence.reviewer.provider)
        if kind is None or program is None:
            sentence = "this version cannot ask this reviewer; name its program in the study file."
            raise StudyError(StudyCode.LICENCE_REFUSED, "/reviewers", sentence)
        # What the provider takes from the user's configuration is the same for all votes.
        bound: Provider = kind.at(Path(program), around=seating.around)
        adapter = bound.for_model(licence.reviewer.model, seating.around)
        adapter.check_login(seating.around)
        return cls(adapter, licence, seating)

    @property
    def json_fence(self) -> bool:
        """See `Answering`."""
        return self._adapter.json_fence

    @property
    def binding(self) -> ProviderBinding | None:
        """What was taken from the user's configuration."""
        return self._adapter.binding

    def identify(self, around: Surroundings) -> Executable:
        """The program as it is now."""
        return self._adapter.identify(around)

    def vote(self, asked: Asked, presentation: Presentation, vote_id: str) -> CallOutcome:
        """See `Answering`."""
        del asked, vote_id
        return self._call(render(presentation), answer_schema(presentation))

    def guess(self, shown: ShownPair) -> Side | None:
        """See `Answering`."""
        outcome = self._call(guess_prompt(shown), guess_schema())
        return read_guess(outcome.answer, json_fence=self.json_fence)

    def _call(self, prompt: str, schema: Mapping[str, object]) -> CallOutcome:
        call = JudgeCall(prompt=prompt, answer_schema=schema, model=self._model, timeout_seconds=VOTE_SECONDS)
        return self._adapter.judge(call, around=self._around, cancelled=self._cancelled)


class _Simulated:
    """A reviewer made of chance, as accurate as its licence says; it alone is handed the truth."""

    json_fence: Final = SimulatedReviewer.json_fence
    binding: Final = None

    def __init__(self, settings: SimulatedSettings, licence: LicencePredicate, seating: _Seating) -> None:
        self._settings = settings
        self._licence = licence
        self._seating = seating

    @classmethod
    def of(cls, licence: LicencePredicate, seating: _Seating) -> _Simulated:
        """The reviewer of a synthetic licence, its draws from the plan's seed."""
        drawn = seating.chance.key({"use": "simulated-reviewer", "licence_id": licence.licence_id})
        settings = SimulatedSettings(
            accuracy=licence.metrics.accuracy.value, seed=int.from_bytes(drawn[:_SEED_BYTES])
        )
        return cls(settings, licence, seating)

    def identify(self, around: Surroundings) -> Executable:
        """What stands for its program."""
        return SimulatedReviewer(self._settings).identify(around)

    def vote(self, asked: Asked, presentation: Presentation, vote_id: str) -> CallOutcome:
        """See `Answering`."""
        reviewer = SimulatedReviewer(self._settings, [self._truth(asked)], repeat=vote_id)
        call = JudgeCall(
            prompt=render(presentation),
            answer_schema=answer_schema(presentation),
            model=self._licence.reviewer.model,
            timeout_seconds=VOTE_SECONDS,
        )
        return reviewer.judge(call, around=self._seating.around, cancelled=self._seating.cancelled)

    def _truth(self, asked: Asked) -> ShownTruth:
        canary = asked.canary
        if canary is None:
            return self._seating.truths[asked.shown.pair_id]
        swapped = canary.showing.swapped
        verdict = canary.truth.turned() if swapped else canary.truth
        return ShownTruth(LABEL, canary.showing.case_id, verdict, swapped=swapped)

    def guess(self, shown: ShownPair) -> Side | None:
        """See `Answering`."""
        return simulated_guess(self._seating.chance, self._licence.licence_id, shown.pair_id)
