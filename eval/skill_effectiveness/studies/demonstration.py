"""The whole of it with a known answer: simulated agents and reviewers, from question to verified bundle.

```
OUT/  keys/  state/  reviewers/<name>/{judged,probes}/  study/  run/  bundle/
```

The planted effect is known, so whoever looks sees whether the machinery finds it. The run order's seed is
public here, which no real study's is; with it everything that chance decides comes out the same again. Every
step may be repeated: a demonstration that was killed goes on, a finished one finds everything done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.licence import LicenceCode, LicenceRefused
from skill_effectiveness.calibration.licensing import issue_licence
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.keys import load_signing_key, new_signing_key
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import SimulatedSettings
from skill_effectiveness.studies.agents import bound_agent
from skill_effectiveness.studies.bundle import seal_study
from skill_effectiveness.studies.example import example_files
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.judging import judge_study
from skill_effectiveness.studies.loading import load_study
from skill_effectiveness.studies.planning import PlanRequest, plan_study
from skill_effectiveness.studies.reporting import report_study
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.runner import RunParts, RunStatus, run_study
from skill_effectiveness.studies.study_file import STUDY_FILE
from skill_effectiveness.studies.verification import verify_bundle
from skill_effectiveness.studies.words import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.studies.bundle import SealedBundle
    from skill_effectiveness.studies.halting import Halt
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.runner import RunObserver
    from skill_effectiveness.studies.verification import StudyVerification

KEY: Final = "demo"
NAME: Final = "demo"
STATE, REVIEWERS, SOURCE, RUN, BUNDLE = "state", "reviewers", "study", "run", "bundle"
PLANTED: Final = 0.4
"""What the arm `full` adds to the share of samples that pass; that of the example's driver."""

REPEATS: Final = 3
JOBS: Final = 8
SEED: Final = bytes(32)
_LICENCES: Final = "licences"
_SETTINGS: Final[Mapping[str, SimulatedSettings]] = {
    "careful": SimulatedSettings(accuracy=0.97, position_bias=0.02, flakiness=0.1, seed=2),
    "quick": SimulatedSettings(accuracy=0.95, position_bias=0.02, flakiness=0.1, seed=7),
}


class DemoWatch(Protocol):
    """Who watches a demonstration."""

    def step(self, sentence: str) -> None:
        """What happens next."""

    def running(self, name: str, slots: int) -> AbstractContextManager[RunObserver]:
        """Whoever watches the run."""

    def votes(self, done: int, of: int) -> None:
        """Votes that were answered."""


@dataclass(frozen=True, slots=True)
class Demonstrated:
    """What a demonstration came to.

    Attributes:
        results: of the study.
        sealed: its bundle.
        verified: what a stranger with the public key finds.
        complete: whether the run came to its end; without it there is nothing else.
    """

    results: Results
    sealed: SealedBundle
    verified: StudyVerification


class DrainedError(Exception):
    """The run was told to end before all its slots had."""


def demonstrate(root: PrivateRoot, halt: Halt, watch: DemoWatch, *, checkout: Path | None) -> Demonstrated:
    """Do everything that a study is, in one private folder.

    Args:
        root: the folder.
        halt: tells the run to end.
        watch: is told how far it has come.
        checkout: the source checkout that the folder keeps away from.

    Raises:
        DrainedError: the run was told to end; the same call goes on.
        Whatever the rooms below raise.
    """
    new_signing_key(root, KEY)
    key = load_signing_key(root, KEY)
    licences = {name: _licence(root, name, settings, key, watch) for name, settings in _SETTINGS.items()}
    source = _source(root, licences)
    with root.child(STATE, create=True) as state:
        watch.step("Checking the study, trying out its tasks' scripts, freezing and signing the plan.")
        _plan(root, source, key, state, checkout)
        with StudyRoot.open(root.path / RUN, around=root.around, checkout=checkout) as study:
            _run(study, state, halt, watch)
            return _finish(study, state, root, key, watch)


def _licence(
    root: PrivateRoot, name: str, settings: SimulatedSettings, key: Ed25519PrivateKey, watch: DemoWatch
) -> bytes:
    """Examine one simulated reviewer with both banks, and let its licence be issued.

    Calls of an examination that was killed stay in it as unanswered. Where they are too many for a licence
    the reviewer is examined from the beginning, in a folder beside it.
    """
    watch.step(f"Examining the simulated reviewer {name} with known answers, {REPEATS} times each.")
    folder, number = name, 1
    while True:
        try:
            return _examined(root, name, folder, settings, key)
        except LicenceRefused as refused:
            if all(fault.code is not LicenceCode.USABLE_ANSWERS_TOO_FEW for fault in refused.faults):
                raise
            watch.step(f"The examination of {name} was cut off too often; it begins anew.")
            number += 1
            folder = f"{name}-{number}"


def _examined(
    root: PrivateRoot, name: str, where: str, settings: SimulatedSettings, key: Ed25519PrivateKey
) -> bytes:
    file = f"{name}.json"
    with root.child(REVIEWERS, where, create=True) as place:
        for bank, folder in ((BankName.JUDGED, "judged"), (BankName.BIAS_PROBE, "probes")):
            plan = ExaminationPlan(
                model=f"simulated-{name}", reviewer_family=SIMULATED, repeats=REPEATS, bank=bank
            )
            reviewer = Reviewer.simulated(settings, load_inputs(root.around.fs, bank).bank)
            with place.child(folder, create=True) as out:
                examine(plan, reviewer, out=out, resume=True)
        if not place.exists(file):
            with place.child("judged") as judged, place.child("probes") as probes:
                issue_licence(judged, probes, key, place.path / file)
        return read_public(root.around.fs, place.path / file, 1_048_576)


def _source(root: PrivateRoot, licences: Mapping[str, bytes]) -> Path:
    """The study as its author has it; what is there already stays."""
    folder = root.path / SOURCE
    files = dict(example_files(NAME))
    named = ", ".join(f"{{licence: {_LICENCES}/{name}.json, executable: null}}" for name in licences)
    text = files[STUDY_FILE].decode().replace("reviewers: []", f"reviewers: [{named}]")
    text = text.replace("secondary: []", "secondary: [preference]")
    files[STUDY_FILE] = text.encode()
    files |= {f"{_LICENCES}/{name}.json": data for name, data in licences.items()}
    for path, data in files.items():
        *folders, last = path.split("/")
        with root.child(SOURCE, *folders, create=True) as held:
            held.sweep()
            if not held.exists(last):
                held.publish(last, data)
    return folder


def _plan(
    root: PrivateRoot, source: Path, key: Ed25519PrivateKey, state: PrivateRoot, checkout: Path | None
) -> None:
    request = PlanRequest(
        loaded=load_study(root.around.fs, source / STUDY_FILE),
        out=root.path / RUN,
        key=key,
        trusted=[key.public_key()],
        around=root.around,
        checkout=checkout,
        state=state,
        seed=SEED,
    )
    planned = plan_study(request)
    if planned.plan is None:
        failed = next(str(finding) for result in planned.report.results for finding in result.findings)
        raise RuntimeError(f"the demonstration's own study fails its checks: {failed}")


def _run(study: StudyRoot, state: PrivateRoot, halt: Halt, watch: DemoWatch) -> None:
    slots = study.plan.allocation.slots
    watch.step(f"Running {slots} trials of a simulated agent in a hidden order, grading each twice.")
    with thread_executor(JOBS) as executor, watch.running(study.plan.name, slots) as observer:
        outcome = run_study(RunParts(study, state, bound_agent(study), executor, JOBS, halt, observer))
    if outcome.status is not RunStatus.COMPLETE:
        raise DrainedError


def _finish(
    study: StudyRoot, state: PrivateRoot, root: PrivateRoot, key: Ed25519PrivateKey, watch: DemoWatch
) -> Demonstrated:
    with study.lock().hold(action="study demo"), study.journal(state) as journal:
        watch.step("Showing the pairs, blinded and in both positions, to the simulated reviewers.")
        judge_study(study, journal, progress=watch.votes)
        watch.step("Making known which arm was which, analysing, writing the report.")
        results = report_study(study, journal)
        watch.step("Sealing the evidence, then verifying the bundle as a stranger would.")
        with root.child(BUNDLE, create=True) as bundle:
            sealed = seal_study(study, journal, bundle, key)
            verified = verify_bundle(bundle.path, key.public_key(), fs=root.around.fs)
    return Demonstrated(results, sealed, verified)
