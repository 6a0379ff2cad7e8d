"""The study file: one question, fixed before anything runs (studies.md section 1).

`read_study(data)` answers a `StudyFile` or every fault with line, column and key. Here is only what the file
says; whether the folders it names are there, is for `inputs` and `checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import Field

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.yaml12 import Mark, YamlDocument, YamlError, read_yaml_document
from skill_effectiveness.protocol.document import FrozenModel, Rate
from skill_effectiveness.protocol.gates import Budgets, EvidenceTierName
from skill_effectiveness.protocol.registries import RegistrySchema, Scope
from skill_effectiveness.providers.prices import ModelPrice
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.words import (
    DEFAULT_RULES,
    GRADABLE,
    SIMULATED,
    THIRD_ARM,
    TIERS,
    Arm,
    Audit,
    EndClass,
    Network,
    Outcome,
    Rule,
    Sandbox,
    Sides,
    Stopping,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

STUDY_FILE: Final = "study.yaml"
STUDY_FILE_LIMIT: Final = 1_048_576
ATTEMPTS: Final = 3
MOST_ATTEMPTS: Final = 5
MOST_SAMPLES: Final = 1_000
_MOST_SETTINGS: Final = 64
_MOST_SLEEP: Final = 3_600.0

StudyName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
"""Also the namespace of the owners of its tasks."""

OneSentence = Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""Text on one line."""

PathText = Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A path, meant from the folder of the study file unless it is absolute."""

AbsolutePath = Annotated[str, Field(max_length=4_096, pattern=r"^/[^\x00-\x1f\x7f]+$")]
"""A path that means the same everywhere."""

Paths = Annotated[tuple[PathText, ...], Field(max_length=100)]
Provider = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Model = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
SettingName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]


class SimulatedSettings(FrozenModel):
    """What a simulated driver is like (studies.md section 5).

    Attributes:
        base_rate: share of samples that pass without help, in the middle of all tasks.
        task_sd: spread of that share between tasks.
        effect: what the arm `full` adds.
        sleep_seconds: how long one attempt takes.
        endings: share of attempts that end in each class instead of an answer.
    """

    base_rate: Rate
    task_sd: Rate
    effect: Annotated[float, Field(ge=-1, le=1)]
    sleep_seconds: Annotated[float, Field(ge=0, le=_MOST_SLEEP)] = 0.0
    endings: dict[EndClass, Rate] = {}  # noqa: RUF012 - pydantic copies a default


class RealSettings(FrozenModel):
    """What can be said of a driver that is a program.

    Attributes:
        prices: by model, exactly as it is asked for; used where the program tells no cost.
    """

    prices: dict[Model, ModelPrice] = {}  # noqa: RUF012 - pydantic copies a default


class Driver(FrozenModel):
    """The tested agent; a simulated one has no program."""

    provider: Provider
    executable: AbsolutePath | None
    model: Model
    settings: Annotated[dict[SettingName, object], Field(max_length=_MOST_SETTINGS)]

    @property
    def simulated(self) -> bool:
        """Whether it is made of chance."""
        return self.provider == SIMULATED


class ArmContent(FrozenModel):
    """What an arm adds to the agent as it is; the three together are its payload.

    Attributes:
        skills: folders with a `SKILL.md` each.
        instructions: files that the agent reads at its start.
        hooks: files that say which commands the agent's program runs by itself.
    """

    skills: Paths = ()
    instructions: Paths = ()
    hooks: Paths = ()

    @property
    def empty(self) -> bool:
        """Whether it adds nothing."""
        return not (self.skills or self.instructions or self.hooks)


class ReferenceArm(ArmContent):
    """The arm that full is compared with besides off; a placebo is generated and names nothing."""

    placebo: bool = False


class Arms(FrozenModel):
    """Every arm of a study; which third one there may be is its registry's to say."""

    off: ArmContent
    full: ArmContent
    reference: ReferenceArm | None = None
    oracle: ArmContent | None = None

    def by_name(self) -> dict[Arm, ArmContent]:
        """The arms that there are, off and full first."""
        held = {
            Arm.OFF: self.off,
            Arm.FULL: self.full,
            Arm.REFERENCE: self.reference,
            Arm.ORACLE: self.oracle,
        }
        return {name: content for name, content in held.items() if content is not None}


class StudyBudgets(FrozenModel):
    """What one trial, and the study as a whole, may use up; null is unlimited."""

    trial: Budgets
    study: Budgets


class Isolation(FrozenModel):
    """What holds and watches the tested agent."""

    sandbox: Sandbox
    audit: Audit
    network: Network
    read_only: Annotated[tuple[AbsolutePath, ...], Field(max_length=100)] = ()


class StudyReviewer(FrozenModel):
    """One reviewer: its licence file, and its program unless it is simulated."""

    licence: PathText
    executable: AbsolutePath | None


class StudyOutcome(FrozenModel):
    """What the arms are measured by.

    Attributes:
        primary: decides the study.
        pass_at: the least reward that is a pass.
        minimum_effect: delta, above 0; None stands for that of the frozen gates.
        secondary: measured besides.
    """

    primary: Outcome
    pass_at: Annotated[float, Field(gt=0, le=1)] = 1.0
    minimum_effect: Annotated[float, Field(gt=0, le=1)] | None = None
    secondary: Annotated[tuple[Outcome, ...], Field(max_length=len(Outcome))] = ()


class StudyAnalysis(FrozenModel):
    """How it is decided.

    Attributes:
        alpha: error rate, above 0 and below 0.5.
        estimand: what a class of endings counts for, where it is not as usual.
        base_rate, task_sd: what is supposed of the tasks when the power is planned.
    """

    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    sides: Sides
    stopping: Stopping
    estimand: dict[EndClass, Rule] = {}  # noqa: RUF012 - pydantic copies a default
    base_rate: Rate = 0.5
    task_sd: Rate = 0.15


class StudyFile(FrozenModel):
    """The whole of a study file."""

    schema_id: Annotated[Literal["skill-effectiveness.study.v1"], Field(alias="schema")]
    name: StudyName
    question: OneSentence
    registry: RegistrySchema
    tier: EvidenceTierName
    scope: Scope
    driver: Driver
    arms: Arms
    tasks: PathText
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
    attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)] = ATTEMPTS
    budgets: StudyBudgets
    isolation: Isolation
    reviewers: Annotated[tuple[StudyReviewer, ...], Field(max_length=16)]
    outcome: StudyOutcome
    analysis: StudyAnalysis

    def simulated_settings(self) -> SimulatedSettings:
        """The settings of a simulated driver.

        Raises:
            DocumentError: the driver has other settings; `read_study` lets none such through.
        """
        return validate(SimulatedSettings, dict(self.driver.settings))

    def price(self) -> ModelPrice | None:
        """What the model of a driver that is a program costs, as far as it is stated.

        Raises:
            DocumentError: the driver has other settings; `read_study` lets none such through.
        """
        if self.driver.simulated:
            return None
        return validate(RealSettings, dict(self.driver.settings)).prices.get(self.driver.model)

    def rules(self) -> dict[EndClass, Rule]:
        """What each class that is not fixed counts for."""
        return {**DEFAULT_RULES, **self.analysis.estimand}


class FileFault(NamedTuple):
    """One fault of a study file.

    Attributes:
        pointer: JSON pointer of the key; empty for the whole.
        line, column: where a person should look; None where the text itself cannot be read.
        sentence: what is wrong.
    """

    pointer: str
    mark: Mark | None
    sentence: str

    def __str__(self) -> str:
        """Line, column, key and reason."""
        places = [] if self.mark is None else [str(self.mark)]
        places += [self.pointer] if self.pointer else []
        return f"{', '.join(places)}: {self.sentence}" if places else self.sentence


class StudyFileError(StudyError):
    """A study file is not of its form.

    Attributes:
        faults: all of them, in the order of the text.
    """

    def __init__(self, *faults: FileFault) -> None:
        self.faults = faults
        told = " ".join(str(fault) for fault in faults[:_FAULTS_TOLD])
        if len(faults) > _FAULTS_TOLD:
            told += f" And {len(faults) - _FAULTS_TOLD} more."
        super().__init__(StudyCode.STUDY_INVALID, STUDY_FILE, told)


_FAULTS_TOLD: Final = 10


def read_study(data: bytes) -> StudyFile:
    """The study of a file.

    Raises:
        StudyFileError: `study_invalid`: it is not YAML 1.2 as it is read here, a key is missing, unknown or
            has another value than it may have, or keys contradict each other.
    """
    try:
        document = read_yaml_document(data)
    except YamlError as error:
        raise StudyFileError(FileFault("", error.mark, f"{error.reason}.")) from error
    try:
        study = validate(StudyFile, document.value)
        _demand_settings(study)
    except EvidenceError as error:
        told = [(fault.where, fault.sentence) for fault in error.faults]
        raise _refused(document, told) from error
    broken = list(_broken_rules(study))
    if broken:
        raise _refused(document, broken)
    return study


def _refused(document: YamlDocument, told: list[tuple[str, str]]) -> StudyFileError:
    faults = [FileFault(pointer, document.mark(pointer), sentence) for pointer, sentence in told]
    return StudyFileError(*sorted(faults, key=lambda fault: (fault.mark or Mark(0, 0), fault.pointer)))


def _demand_settings(study: StudyFile) -> None:
    """Hold the settings of a driver against their model, told by their place in the file.

    Raises:
        EvidenceError: with pointers from the top of the file.
    """
    placed = _PlacedSimulated if study.driver.simulated else _PlacedReal
    validate(placed, {"driver": {"settings": dict(study.driver.settings)}})


class _SimulatedDriver(FrozenModel):
    settings: SimulatedSettings


class _RealDriver(FrozenModel):
    settings: RealSettings


class _PlacedSimulated(FrozenModel):
    driver: _SimulatedDriver


class _PlacedReal(FrozenModel):
    driver: _RealDriver


def _broken_rules(study: StudyFile) -> Iterator[tuple[str, str]]:
    """Where keys contradict each other: pointer and sentence."""
    yield from _broken_arms(study)
    yield from _broken_driver(study)
    yield from _broken_words(study)


def _broken_arms(study: StudyFile) -> Iterator[tuple[str, str]]:
    if study.tier is not TIERS[study.registry]:
        yield "/tier", f"The registry {study.registry} has the tier {TIERS[study.registry]} alone."
    for name in (Arm.REFERENCE, Arm.ORACLE):
        if name in study.arms.by_name() and name is not THIRD_ARM[study.registry]:
            yield f"/arms/{name}", f"The registry {study.registry} has no arm {name}; take it out."
    if study.registry is RegistrySchema.SKILL_CONTENT and study.arms.oracle is None:
        yield "/arms", "The registry skill-content needs an arm oracle; add it."
    if study.registry is RegistrySchema.PAIRED_PROFILE and study.scope is not Scope.MAIN:
        yield "/scope", "The registry paired-profile has arms of the scope main alone."
    if not study.arms.off.empty:
        yield "/arms/off", "The arm off is the agent as it is; it names nothing."
    reference = study.arms.reference
    if reference is not None and reference.placebo and not reference.empty:
        yield "/arms/reference", "A generated placebo names nothing itself; take the files out, or placebo."


def _broken_driver(study: StudyFile) -> Iterator[tuple[str, str]]:
    driver = study.driver
    if driver.simulated and driver.executable is not None:
        yield "/driver/executable", "A simulated driver has no program; write null."
    if not driver.simulated and driver.executable is None:
        yield "/driver/executable", "Name the driver's program by its absolute path."
    if driver.simulated:
        endings = study.simulated_settings().endings
        if EndClass.COMPLETED in endings:
            yield "/driver/settings/endings", "What is left over completes; name the other classes alone."
        if sum(endings.values()) > 1:
            yield "/driver/settings/endings", "The shares of all endings come to more than 1."
    for index, reviewer in enumerate(study.reviewers):
        if not driver.simulated and reviewer.executable is None:
            told = "A reviewer of a real driver is a program; name it by its absolute path."
            yield f"/reviewers/{index}/executable", told
        if driver.simulated and reviewer.executable is not None:
            told = "Beside a simulated driver every reviewer is simulated and has no program; write null."
            yield f"/reviewers/{index}/executable", told


def _broken_words(study: StudyFile) -> Iterator[tuple[str, str]]:
    for ended, rule in study.analysis.estimand.items():
        pointer = f"/analysis/estimand/{ended}"
        if ended not in DEFAULT_RULES:
            yield pointer, f"What {ended} counts for is fixed; take it out."
        elif rule is Rule.VALUE or (rule is Rule.GRADED and ended not in GRADABLE):
            yield pointer, f"{ended} cannot count as {rule}."
    secondary = study.outcome.secondary
    if len(set(secondary)) < len(secondary) or study.outcome.primary in secondary:
        yield "/outcome/secondary", "Every outcome is named once, and the primary one is none of these."
    if Outcome.PREFERENCE in (study.outcome.primary, *secondary) and not study.reviewers:
        yield "/outcome", "A preference needs a reviewer; add one."
    if study.analysis.stopping is Stopping.ANYTIME and study.analysis.sides is not Sides.TWO:
        yield "/analysis/sides", "Evidence that is looked at any time has two sides."
