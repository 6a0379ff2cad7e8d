"""The multi-repeat examination: one folder, one model call per attempt (calibration.md, section 7).

```
DIR/  .examination.lock  .reviewer-calibration.lock (the claim)  reviewer-calibration-binding.json
      attempts/r<NN>-a<M>/ (a root of one sample each)   endings/r<NN>-a<M>.json
      the pair, its staged names and the metrics sheet
```

The normal way is `examine(plan, reviewer, out=root)` once, and with `resume=True` after whatever cut it off.
The claim is published first and makes the folder one-shot; the binding, which says for what, stands before
the first call. A repeat that has its sample is never asked again. An attempt that was cut off after its call
may have started stays as it is, and its repeat gets a new folder, at most three, not counting those whose
call was certainly not made. A repeat that fails stops the command, so that nothing more is spent before
somebody looks.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.calibration import attempts as tries
from skill_effectiveness.calibration.binding import (
    CLAIM,
    SIMULATED,
    bind_folder,
    held_binding,
    refuse_claimed,
)
from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.errors import (
    CalibrationError,
    CallFailed,
    ExaminationRefused,
    RefusalCode,
)
from skill_effectiveness.calibration.full_disk import MAKE_ROOM, one_advice, place_without_space
from skill_effectiveness.calibration.inputs import FrozenInputs, load_inputs
from skill_effectiveness.calibration.loader import LoadedCalibration, load_calibration
from skill_effectiveness.calibration.manifest import runtime_manifest_hash
from skill_effectiveness.calibration.models import FAMILY_NAME, MODEL_NAME, Binding, BoundConfiguration
from skill_effectiveness.calibration.observer import Observer, Silent
from skill_effectiveness.calibration.prompt import prompt_hash
from skill_effectiveness.calibration.publication import (
    demand_same_keys,
    examination_sheet,
    pair_members,
    publish_examination,
)
from skill_effectiveness.calibration.reviewer import ADAPTERS, Reviewer, binds_configuration
from skill_effectiveness.calibration.sample import (
    SampleRequest,
    Sampling,
    check_login,
    identify,
    take_sample,
)
from skill_effectiveness.evidence.faults import EvidenceError, LockCode, LockError
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pair import load_pair
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.execution import SessionSweep, leftovers, never, sweep_sessions
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import family_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skill_effectiveness.calibration.attempts import Repeat
    from skill_effectiveness.calibration.sheet import MetricsSheet
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import Provider

EXAMINATION_LOCK: Final = ".examination.lock"
REPEATS: Final = range(2, 6)
TIMEOUT_SECONDS: Final = range(1, 601)


@dataclass(frozen=True, slots=True)
class ExaminationPlan:
    """What is to be examined, and how often; the reviewer says by whom."""

    model: str
    reviewer_family: str
    repeats: int = 2
    timeout_seconds: int = 220
    bank: BankName = BankName.JUDGED


@dataclass(frozen=True, slots=True)
class Examination:
    """A published examination.

    Attributes:
        calibration: the pair as its loader read it.
        calls: model calls that this invocation made; 0 when everything was there already.
    """

    calibration: LoadedCalibration
    calls: int

    @property
    def execution_status(self) -> str:
        """`evaluated`: the pair is published."""
        return self.calibration.result.execution_status

    @property
    def calibration_status(self) -> str:
        """`pass` or `fail` by the gates; `not_applicable` for the bias probes."""
        return self.calibration.result.calibration_status

    @property
    def result(self) -> str:
        """File name of the result document."""
        return PAIR_NAMES[self.calibration.bank].result


@dataclass(frozen=True, slots=True)
class DerivedExamination:
    """A published examination, read from its samples.

    Attributes:
        binding: what its folder was opened for.
        calibration: the published pair, which is exactly what the samples give.
        sheet: the figures, from the samples and not from the published sheet.
    """

    binding: Binding
    calibration: LoadedCalibration
    sheet: MetricsSheet


def examine(
    plan: ExaminationPlan,
    reviewer: Reviewer,
    *,
    out: PrivateRoot,
    resume: bool = False,
    manifest: Callable[[], str] = runtime_manifest_hash,
    observer: Observer | None = None,
    cancelled: Callable[[], bool] = never,
) -> Examination:
    """Examine a reviewer and publish what came of it.

    Args:
        plan: what is asked.
        reviewer: who is asked; a simulated one must have been made with the bank of the plan.
        out: the folder, a private root of kind `out` with nothing else in it.
        resume: go on with what was begun there; also right for a folder in which nothing was begun.
        manifest: computes the runtime manifest hash anew at every call.
        observer: is told how far it has come.
        cancelled: asked before and during each call; True stops.

    Raises:
        ExaminationRefused: with its code; also when a repeat failed, whose attempt is spent then.
        EvidenceError: a write or read failed; after a repair, resume.
        ValueError: an adapter that the loader of pairs does not know.
    """
    watching = observer or Silent()
    check_plan(plan, reviewer.adapter, simulated=reviewer.simulation is not None)
    with one_advice(out), _locked(out):
        if reviewer.simulation is None:
            look_for_leftovers(out.around, watching)
        if not resume:
            refuse_claimed(out)
        inputs = _inputs(out, plan.bank)
        current = _manifest(manifest)
        reviewer = _frozen(reviewer, plan.model, out.around)
        binding = _bind(out, plan, reviewer, inputs, current)
        given = Sampling(reviewer, manifest, watching, cancelled, tries.LOCK_WAIT_SECONDS)
        calls = _complete(out, binding, inputs, given)
        repeats = tries.read_repeats(out, binding, inputs)
        _refuse_reused_sessions(repeats)
        attempts = [each for repeat in repeats for each in repeat.attempts]
        loaded = publish_examination(out, binding, attempts, inputs)
        watching.published(loaded.result.calibration_status)
        return Examination(loaded, calls)


def derive_again(out: PrivateRoot, bank: BankName) -> DerivedExamination:
    """A published examination, its pair and figures derived from the samples once more; makes no call.

    Raises:
        ExaminationRefused: another examination uses the folder, or it does not hold one whole examination
            with this bank whose samples give exactly the published pair.
        PairError, PairRefused: there is no whole pair, or it does not load.
        EvidenceError: a file could not be read.
    """
    with _locked(out):
        inputs, names = _inputs(out, bank), PAIR_NAMES[bank]

        def load(evidence: bytes, result: bytes) -> tuple[LoadedCalibration, dict[str, bytes]]:
            loaded = load_calibration(evidence, result, inputs=inputs)
            return loaded, {names.evidence: evidence, names.result: result}

        loaded, published = load_pair(out, names.evidence, names.result, load)
        binding = held_binding(out)
        _demand_bank(binding, inputs)
        repeats = tries.read_repeats(out, binding, inputs)
        _refuse_reused_sessions(repeats)
        attempts = [each for repeat in repeats for each in repeat.attempts]
        if not all(repeat.complete for repeat in repeats) or published != {
            member.name: member.data for member in pair_members(binding, attempts, inputs)
        }:
            raise ExaminationRefused(
                RefusalCode.PUBLICATION_DIFFERS,
                f"{names.evidence} is not what the samples in its folder give, so it does not count.",
                field=names.evidence,
            )
        sheet = examination_sheet(loaded, binding, attempts, inputs)
        demand_same_keys(out, names.metrics, sheet)
        return DerivedExamination(binding, loaded, sheet)


def _demand_bank(binding: Binding, inputs: FrozenInputs) -> None:
    """The folder was opened for this bank, as it is frozen here."""
    for field in ("known_answer_fixture_hash", "case_fixture_hash"):
        if getattr(binding, field) != getattr(inputs.bank, field):
            raise ExaminationRefused(
                RefusalCode.BINDING_DIFFERS,
                f"This folder was opened with another {field} than that of the frozen bank; examine anew.",
                field=field,
            )


def look_for_leftovers(around: Surroundings, observer: Observer) -> None:
    """Tell what killed runs of anybody left, and remove session folders, which may show a login (F10)."""
    running = sum(not leftover.supervised for leftover in leftovers())
    try:
        sessions = sweep_sessions(around)
    except EvidenceError:
        # Without that folder there is no call either, which the call itself says.
        observer.leftovers_found(running, None, None)
        return
    if running or sessions != SessionSweep(0, 0):
        observer.leftovers_found(running, sessions.removed, sessions.left)


def check_plan(plan: ExaminationPlan, adapter: Provider | type[Provider], *, simulated: bool) -> None:
    """Return only if a reviewer can be examined like that; `examine` asks first of all.

    Args:
        plan: what is asked.
        adapter: of the reviewer, bound to a program or not.
        simulated: whether there are settings of a simulation.

    Raises:
        ExaminationRefused: `invalid_repeats`, `invalid_timeout`, `invalid_model`, `invalid_simulation`;
            `invalid_reviewer_family`, whose field names the right one where the provider has only one.
        ValueError: an adapter that the loader of pairs does not know.
    """
    if ADAPTERS.get(adapter.name) is None:
        raise ValueError(f"no adapter of the name {adapter.name} can be examined")
    if plan.repeats not in REPEATS:
        raise ExaminationRefused(
            RefusalCode.INVALID_REPEATS, f"A reviewer is asked 2 to 5 times, not {plan.repeats}."
        )
    if plan.timeout_seconds not in TIMEOUT_SECONDS:
        raise ExaminationRefused(
            RefusalCode.INVALID_TIMEOUT, f"A call may take 1 to 600 seconds, not {plan.timeout_seconds}."
        )
    if not re.fullmatch(MODEL_NAME, plan.model):
        raise ExaminationRefused(
            RefusalCode.INVALID_MODEL,
            "A model id has 1 to 128 letters, digits and . _ : / - and begins with a letter or digit.",
        )
    if not re.fullmatch(FAMILY_NAME, plan.reviewer_family):
        raise ExaminationRefused(
            RefusalCode.INVALID_REVIEWER_FAMILY,
            "A reviewer family has 1 to 64 letters, digits and . _ - and begins with a letter or digit.",
        )
    family = family_of(adapter.name, plan.model)
    if family not in (None, plan.reviewer_family):
        raise ExaminationRefused(
            RefusalCode.INVALID_REVIEWER_FAMILY,
            f"Reviewers of {adapter.name} belong to the family {family}; name that one.",
            field=family,
        )
    if (adapter.name == SIMULATED) is not simulated:
        raise ExaminationRefused(
            RefusalCode.INVALID_SIMULATION,
            "Settings of a simulation belong to a simulated reviewer and to no other.",
        )


@contextmanager
def _locked(out: PrivateRoot) -> Iterator[None]:
    """One command at a time in a folder; nobody waits for a command that may take an hour."""
    with ExitStack() as held:
        try:
            held.enter_context(Lock(out, EXAMINATION_LOCK).hold(0, "reviewer calibration"))
        except LockError as error:
            busy = error.code is LockCode.LOCK_BUSY
            code = RefusalCode.FOLDER_BUSY if busy else RefusalCode.FOLDER_UNUSABLE
            raise ExaminationRefused(code, str(error), field=EXAMINATION_LOCK) from error
        out.sweep()
        yield


def _inputs(out: PrivateRoot, bank: BankName) -> FrozenInputs:
    try:
        return load_inputs(out.around.fs, bank)
    except ProtocolError as error:
        raise ExaminationRefused(RefusalCode.FIXTURE_INVALID, str(error), field=error.where) from error


def _manifest(manifest: Callable[[], str]) -> str:
    try:
        return manifest()
    except CalibrationError as error:
        raise ExaminationRefused(RefusalCode.RUNTIME_MANIFEST_UNAVAILABLE, error.sentence) from error


def _identity(out: PrivateRoot, reviewer: Reviewer) -> Executable:
    """The reviewer's program; of a folder that nobody has claimed yet the login is looked at as well."""
    try:
        executable = identify(out, reviewer.adapter)
        if not out.exists(CLAIM):
            # Later every sample asks for itself: what is complete needs no login.
            check_login(out, reviewer.adapter)
    except CalibrationError as error:
        raise ExaminationRefused(RefusalCode.PROVIDER_IDENTITY_UNAVAILABLE, error.sentence) from error
    return executable


def _frozen(reviewer: Reviewer, model: str, around: Surroundings) -> Reviewer:
    """The reviewer with what its provider takes from the user's configuration, read once for all repeats."""
    if not binds_configuration(type(reviewer.adapter)) or reviewer.adapter.binding is not None:
        return reviewer
    return Reviewer.real(reviewer.adapter.for_model(model, around))


def _bind(
    out: PrivateRoot, plan: ExaminationPlan, reviewer: Reviewer, inputs: FrozenInputs, manifest_hash: str
) -> Binding:
    executable = _identity(out, reviewer)
    proposal: dict[str, Any] = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-reviewer-calibration-binding-v1",
        "provider": reviewer.adapter.name,
        "provider_cli_version": executable.version,
        "provider_executable_hash": executable.sha256,
        "model": plan.model,
        "reviewer_family": plan.reviewer_family,
        "bank": plan.bank,
        "known_answer_fixture_hash": inputs.bank.known_answer_fixture_hash,
        "case_fixture_hash": inputs.bank.case_fixture_hash,
        "pilot_gates_hash": inputs.gates_hash,
        "licence_policy_hash": inputs.policy_hash,
        "prompt_hash": prompt_hash(),
        "repeat_count": plan.repeats,
        "timeout_seconds": plan.timeout_seconds,
        "runtime_manifest_hash": manifest_hash,
    }
    if (bound := reviewer.adapter.binding) is not None:
        proposal["provider_binding"] = BoundConfiguration(**asdict(bound))
    if reviewer.simulation is not None:
        proposal |= {"simulation": reviewer.simulation, "synthetic": True}
    names = PAIR_NAMES[plan.bank]
    return bind_folder(out, proposal, (tries.ATTEMPTS, tries.ENDINGS, names.evidence, names.result))


def _complete(out: PrivateRoot, binding: Binding, inputs: FrozenInputs, given: Sampling) -> int:
    """Take the samples that are missing; the number of calls made."""
    repeats = tries.read_repeats(out, binding, inputs)
    names = PAIR_NAMES[binding.bank]
    for name in (names.evidence, names.result, names.metrics):
        if out.exists(name) and not all(repeat.complete for repeat in repeats):
            raise ExaminationRefused(
                RefusalCode.PUBLICATION_DIFFERS,
                f"{name} is published, but the samples it came from are not whole; start in a new folder.",
                field=name,
            )
    _refuse_reused_sessions(repeats)
    calls = 0
    for number, repeat in enumerate(repeats, start=1):
        if repeat.complete:
            given.observer.repeat_kept(number, binding.repeat_count)
        else:
            _sample(out, number, repeat, binding, given)
            calls += 1
    return calls


def _refuse_reused_sessions(repeats: Sequence[Repeat]) -> None:
    """Each call has a session of its own; what one call was told must not be known in another."""
    seen: dict[str, str] = {}
    for attempt in (each for repeat in repeats for each in repeat.attempts):
        if attempt.session is None:
            continue
        earlier = seen.setdefault(attempt.session, attempt.name)
        if earlier != attempt.name:
            raise ExaminationRefused(
                RefusalCode.SESSION_REUSED,
                f"The provider gave the attempts {earlier} and {attempt.name} one session, so they are not "
                "independent and nothing of them is published; start in a new folder.",
                field=attempt.name,
            )


def _sample(out: PrivateRoot, number: int, repeat: Repeat, binding: Binding, given: Sampling) -> None:
    """Make the next attempt of a repeat; its failure ends the command."""
    of = binding.repeat_count
    if repeat.upcoming is None:
        raise ExaminationRefused(
            RefusalCode.ATTEMPTS_EXHAUSTED,
            f"Repeat {number} of {of} has used all its attempts ({tries.ATTEMPTS_MAX} whose call was made, "
            f"{tries.FOLDERS_MAX} in all); start in a new folder.",
        )
    if given.cancelled():
        raise ExaminationRefused(
            RefusalCode.CANCELLED, f"Stopped before repeat {number} of {of}; resume to go on with it."
        )
    given.observer.repeat_started(number, of, repeat.upcoming)
    name = tries.attempt_name(number, repeat.upcoming)
    request = SampleRequest(
        sample_id=name,
        model=binding.model,
        reviewer_family=binding.reviewer_family,
        timeout_seconds=binding.timeout_seconds,
        runtime_manifest_hash=binding.runtime_manifest_hash,
        bank=binding.bank,
    )
    try:
        _attempt(out, request, f"{number} of {of} failed in its attempt {repeat.upcoming}", binding, given)
    except Terminated:
        _record_cut_off(out, name, binding)
        raise


def _attempt(
    out: PrivateRoot, request: SampleRequest, failing: str, binding: Binding, given: Sampling
) -> None:
    """Take the sample of one attempt, or say why it failed and keep how its call ended."""
    name = request.sample_id
    try:
        with out.child(tries.ATTEMPTS, name, create=True) as root:
            take_sample(root, request, given)
    except CallFailed as failed:
        told = f"{failed.sentence}{_record(out, name, failed, binding)}"
        state = f"{failed.ending}:{failed.detail}" if failed.detail else failed.ending
        raise _failed(failing, state, f"{told} {_advice(failed)}") from failed
    except CalibrationError as error:
        # What it says for itself about a full disk is no use once the folder is claimed.
        told = f"{error.sentence} " if place_without_space(error) is None else ""
        raise _failed(failing, error.code.value, f"{told}{_advice(error)}") from error


def _record(out: PrivateRoot, name: str, failed: CallFailed, binding: Binding) -> str:
    """Keep how the call ended; when that fails, say so beside the failure that matters more."""
    try:
        tries.record_ending(out, name, failed, synthetic=binding.synthetic is True)
    except EvidenceError as error:
        return f" How it ended could not be recorded ({error.code})."
    return ""


def _record_cut_off(out: PrivateRoot, name: str, binding: Binding) -> None:
    """Keep that a signal ended an attempt; without the record it counts as one that nobody lived to end."""
    # The signal is what the caller has to hear about.
    with suppress(EvidenceError, ExaminationRefused):
        tries.record_cut_off(out, name, synthetic=binding.synthetic is True)


def _advice(error: CalibrationError) -> str:
    if place_without_space(error) is not None:
        return f"There is no space left; {MAKE_ROOM}"
    return "Completed repeats are kept; resume to go on."


def _failed(failing: str, state: str, told: str) -> ExaminationRefused:
    return ExaminationRefused(
        RefusalCode.REPEAT_FAILED, f"Repeat {failing} with {state}: {told}", field=state
    )
