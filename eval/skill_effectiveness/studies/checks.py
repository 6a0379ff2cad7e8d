"""The checks of a study before it is planned (studies.md section 1).

| check | what has to hold |
|---|---|
| `schema` | every task folder can be used, and its scripts name no place that is not there |
| `driver` | this version can drive the agent that is named, and give it what the arms and tasks ask for |
| `model` | asked one thing through the driver, it answers; asked only where nothing else is wrong |
| `licences` | every reviewer's licence is signed by a trusted key, live, and of one world with the driver |
| `price` | a limit of cost is on a model whose cost is told or whose prices are stated |
| `treatment_diff` | the arms, and what a real agent of each is started with, differ in the treatment alone |
| `prompt_leak` | no instruction names a skill or holds eight words in a row of a treatment |
| `oracle` | the solution in a fresh copy passes, twice alike |
| `nothing` | the untouched copy does not pass and scores below the oracle |
| `forged` | a copy with planted reward files and a printed verdict scores as the untouched one |

A check is `pass`, `fail` or `absent`: there was nothing it could be made on. An absent oracle is a fault
unless it is allowed; what needs tasks is absent while one of them is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.licence import LicenceRefused
from skill_effectiveness.calibration.licensing import (
    NamedReviewer,
    check_licence,
    reviewer_at,
    verified_licence,
)
from skill_effectiveness.calibration.standing import LicenceStatus, demand_one_world
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.tasks import TaskError
from skill_effectiveness.providers import ProviderError
from skill_effectiveness.studies.confining import confinement_of
from skill_effectiveness.studies.driver_checks import DriverFacts, ask_model, look_at_driver
from skill_effectiveness.studies.frozen import freeze_study
from skill_effectiveness.studies.launches import undeclared_differences
from skill_effectiveness.studies.pricing import unpriced
from skill_effectiveness.studies.task_checks import TaskChecks, check_task
from skill_effectiveness.studies.task_folder import WORKDIR
from skill_effectiveness.studies.words import Arm, Sandbox
from skill_effectiveness.trials.leaks import LeakKind, LeakRules, scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.loading import HeldLicence, LoadedStudy
    from skill_effectiveness.studies.task_folder import TaskFolder


class CheckName(StrEnum):
    """Every check, in the order in which they are made and told."""

    SCHEMA = "schema"
    DRIVER = "driver"
    MODEL = "model"
    LICENCES = "licences"
    PRICE = "price"
    TREATMENT_DIFF = "treatment_diff"
    PROMPT_LEAK = "prompt_leak"
    ORACLE = "oracle"
    NOTHING = "nothing"
    FORGED = "forged"


class CheckStatus(StrEnum):
    """How a check came out."""

    PASS = "pass"  # noqa: S105 - a word, no password
    FAIL = "fail"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check; `findings` are sentences for people, each with its place."""

    name: CheckName
    status: CheckStatus
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All checks of one study.

    Attributes:
        results: in the order of `CheckName`.
        oracle_needed: whether a task without an oracle is a fault.
    """

    results: tuple[CheckResult, ...]
    oracle_needed: bool

    @property
    def passed(self) -> bool:
        """Whether the study may be planned."""
        return not any(self._faulty(result) for result in self.results)

    def _faulty(self, result: CheckResult) -> bool:
        if result.status is CheckStatus.ABSENT:
            return result.name is CheckName.ORACLE and self.oracle_needed
        return result.status is CheckStatus.FAIL

    def status(self, name: CheckName) -> CheckStatus:
        """How one check came out."""
        return next(result.status for result in self.results if result.name is name)


_TASK_CHECKS: Final = (CheckName.ORACLE, CheckName.NOTHING, CheckName.FORGED)
_FIXED: Final = ("/tests", "/logs", "/solution")
_AFTER: Final = r"(?=[/\s\"'`;:)\]}|&<>]|$)"


def check_study(
    loaded: LoadedStudy,
    *,
    trusted: Sequence[Ed25519PublicKey],
    around: Surroundings,
    allow_missing_oracle: bool = False,
    scripts_last: bool = False,
    on_task: Callable[[str], None] = lambda _task_id: None,
) -> CheckReport:
    """Make every check; a fault of one does not hide the others.

    Args:
        loaded: the study.
        trusted: keys that may have signed a licence.
        around: files, clock and randomness.
        allow_missing_oracle: a task without a solution is no fault.
        scripts_last: run no script where another check failed; theirs are absent then.
        on_task: told the id of each task before its scripts are run.

    Raises:
        StudyError: `grader_unusable`: nothing can be run here at all.
        ProtocolError: the frozen inputs of this installation cannot be read.
        EvidenceError: the folders of a call or a script cannot be made.
    """
    driver = look_at_driver(loaded, around)
    results = [
        _schema(loaded),
        _result(CheckName.DRIVER, driver.faults),
        _licences(loaded, trusted, around),
        _price(loaded),
    ]
    if loaded.refused:
        waiting = (CheckName.TREATMENT_DIFF, CheckName.PROMPT_LEAK, *_TASK_CHECKS)
        results += [CheckResult(name, CheckStatus.ABSENT) for name in waiting]
    else:
        results += [_treatment_diff(loaded, driver, around), _prompt_leak(loaded)]
        wrong = any(result.status is CheckStatus.FAIL for result in results)
        if scripts_last and wrong:
            results += [CheckResult(name, CheckStatus.ABSENT) for name in _TASK_CHECKS]
        else:
            results += _task_checks(loaded, around, on_task)
    wrong = any(result.status is CheckStatus.FAIL for result in results)
    results.append(_model(loaded, driver, around, ask=not wrong))
    order = list(CheckName)
    results.sort(key=lambda result: order.index(result.name))
    return CheckReport(tuple(results), oracle_needed=not allow_missing_oracle)


def _result(name: CheckName, findings: Sequence[str]) -> CheckResult:
    return CheckResult(name, CheckStatus.FAIL if findings else CheckStatus.PASS, tuple(findings))


# The study as a whole.


def _schema(loaded: LoadedStudy) -> CheckResult:
    findings = [
        f"task {refused.task_id}: {refusal}" for refused in loaded.refused for refusal in refused.refusals
    ]
    if loaded.study.isolation.sandbox is Sandbox.NONE:
        for task in loaded.tasks:
            findings += _needs_sandbox(task, loaded.task_path(task.task_id), loaded)
    return _result(CheckName.SCHEMA, findings)


def _needs_sandbox(task: TaskFolder, folder: Path, loaded: LoadedStudy) -> Iterator[str]:
    """Places in a task's scripts that exist in a sandbox alone."""
    names = "|".join(re.escape(name) for name in (*_FIXED, task.workdir))
    fixed = re.compile(rf"(?<![\w$}}./:-])({names}){_AFTER}")
    for part, tree in (("tests", task.tests), ("solution", task.solution)):
        for entry in tree.files:
            text = loaded.script_text(folder / part, entry)
            for number, line in enumerate(text.split("\n"), start=1):
                if (found := fixed.search(line)) is not None:
                    yield (
                        f"task {task.task_id}: needs_sandbox: {part}/{entry.path} names {found[1]} (line "
                        f"{number}); use $TASK_DIR, $TASK_TESTS or $TASK_LOGS, or a sandbox."
                    )


def _model(loaded: LoadedStudy, driver: DriverFacts, around: Surroundings, *, ask: bool) -> CheckResult:
    """A simulated model is what it is called; any other is asked one thing, where nothing else is wrong."""
    if loaded.study.driver.simulated:
        return _result(CheckName.MODEL, [])
    if driver.provider is None or not ask:
        return CheckResult(CheckName.MODEL, CheckStatus.ABSENT)
    fault = ask_model(
        driver.provider,
        loaded.study.driver.model,
        around,
        confinement_of(loaded.study.isolation, WORKDIR, traced=False),
    )
    return _result(CheckName.MODEL, [] if fault is None else [fault])


def _price(loaded: LoadedStudy) -> CheckResult:
    """A limit of cost needs a program that tells what a session cost, or a price of its model."""
    study = loaded.study
    if (sentence := unpriced(study)) is None:
        return _result(CheckName.PRICE, [])
    findings = [
        f"/budgets/{name}/cost_units: {sentence}, or write null."
        for name, held in (("trial", study.budgets.trial), ("study", study.budgets.study))
        if held.cost_units is not None
    ]
    return _result(CheckName.PRICE, findings)


def _licences(loaded: LoadedStudy, trusted: Sequence[Ed25519PublicKey], around: Surroundings) -> CheckResult:
    if not loaded.licences:
        return CheckResult(CheckName.LICENCES, CheckStatus.ABSENT)
    findings: list[str] = []
    for index, held in enumerate(loaded.licences):
        pointer = f"/reviewers/{index}"
        findings += [f"{pointer}: {told}" for told in _licence_faults(loaded, index, held, trusted, around)]
    claimed = [held.claimed for held in loaded.licences]
    try:
        demand_one_world(claimed, driver_simulated=loaded.study.driver.simulated)
    except LicenceRefused as error:
        findings.append(f"/reviewers: {error.sentence}")
    if loaded.study.driver.simulated and not all(licence.synthetic for licence in claimed):
        findings.append(
            "/reviewers: beside a simulated driver every reviewer is simulated; take this one out."
        )
    if len({licence.licence_id for licence in claimed}) < len(claimed):
        findings.append("/reviewers: one licence stands twice; name each once.")
    return _result(CheckName.LICENCES, findings)


def _licence_faults(
    loaded: LoadedStudy,
    index: int,
    held: HeldLicence,
    trusted: Sequence[Ed25519PublicKey],
    around: Surroundings,
) -> Iterator[str]:
    """Why a licence does not count now."""
    path = loaded.study.reviewers[index].executable
    try:
        licence = next((found for key in trusted if (found := verified_licence(held.data, key))), None)
        named = NamedReviewer(model=held.claimed.reviewer.model)
        if path is not None:
            named = reviewer_at(held.claimed, loaded.base / path, around)
        standing = check_licence(licence, named, around.now(), fs=around.fs)
    except (LicenceRefused, ProviderError, ExecutableError, EvidenceError) as error:
        yield str(error)
        return
    except KeyError:
        yield f"this version has no adapter for {held.claimed.reviewer.provider}."
        return
    if standing.status is not LicenceStatus.LIVE:
        yield f"the licence is not live ({standing.word}); examine the reviewer again."


# Arms and instructions.


def _treatment_diff(loaded: LoadedStudy, driver: DriverFacts, around: Surroundings) -> CheckResult:
    if driver.frozen is None:
        # What cannot be driven is told by the check of the driver.
        return CheckResult(CheckName.TREATMENT_DIFF, CheckStatus.ABSENT)
    try:
        freeze_study(around.fs, loaded, driver.frozen)
    except ArmError as error:
        return _result(CheckName.TREATMENT_DIFF, [f"/arms: {error.sentence}"])
    except TaskError as error:
        return _result(CheckName.TREATMENT_DIFF, [f"/tasks: {error.sentence}"])
    if driver.provider is None:
        return _result(CheckName.TREATMENT_DIFF, [])
    return _result(CheckName.TREATMENT_DIFF, list(undeclared_differences(loaded, driver.provider, around)))


def _prompt_leak(loaded: LoadedStudy) -> CheckResult:
    names = sorted({skill.name for payload in loaded.payloads.values() for skill in payload.skills})
    rules = LeakRules(profile_texts=treatment_texts(loaded))
    findings = []
    for task in loaded.tasks:
        text = task.instruction.decode("utf-8")
        for told, offset in instruction_leaks(text, names, rules):
            line = text.count("\n", 0, offset) + 1
            findings.append(f"task {task.task_id}: instruction.md (line {line}) {told}.")
    return _result(CheckName.PROMPT_LEAK, findings)


def treatment_texts(loaded: LoadedStudy) -> list[str]:
    """Every text that one arm has and off has not."""
    return [
        text for arm, payload in loaded.payloads.items() if arm is not Arm.OFF for text in payload.texts()
    ]


def instruction_leaks(text: str, names: Sequence[str], rules: LeakRules) -> Iterator[tuple[str, int]]:
    """What an instruction gives away, each with its offset.

    Args:
        text: of the instruction.
        names: of skills.
        rules: made of the treatments' texts.
    """
    for name in names:
        whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
        for found in whole.finditer(text):
            yield f"names the skill {name}", found.start()
    for hit in scan({"instruction": text}, rules):
        if hit.kind is LeakKind.PROFILE_TEXT:
            yield "holds eight or more words in a row of a treatment", hit.offset


# Scripts.


def _task_checks(
    loaded: LoadedStudy, around: Surroundings, on_task: Callable[[str], None]
) -> list[CheckResult]:
    found: dict[CheckName, list[tuple[CheckStatus, str]]] = {name: [] for name in _TASK_CHECKS}
    for task in loaded.tasks:
        on_task(task.task_id)
        checked = check_task(task, loaded, around)
        for name, status, told in _told_task(task.task_id, checked):
            found[name].append((status, told))
    return [_joined(name, found[name]) for name in _TASK_CHECKS]


def _told_task(task_id: str, checked: TaskChecks) -> Iterator[tuple[CheckName, CheckStatus, str]]:
    held: Mapping[CheckName, str | None] = {
        CheckName.ORACLE: checked.oracle,
        CheckName.NOTHING: checked.nothing,
        CheckName.FORGED: checked.forged,
    }
    for name, fault in held.items():
        if name is CheckName.ORACLE and not checked.has_oracle:
            told = (
                f"task {task_id}: there is no solution/solve.sh; write one, or give --allow-missing-oracle."
            )
            yield name, CheckStatus.ABSENT, told
        elif fault is None:
            yield name, CheckStatus.PASS, ""
        else:
            yield name, CheckStatus.FAIL, f"task {task_id}: {fault}"


def _joined(name: CheckName, found: Sequence[tuple[CheckStatus, str]]) -> CheckResult:
    """The worst of all tasks; of what passed nothing is told."""
    order = (CheckStatus.FAIL, CheckStatus.ABSENT, CheckStatus.PASS)
    statuses = {status for status, _ in found}
    status = next(each for each in order if each in statuses)
    return CheckResult(name, status, tuple(told for _, told in found if told))
