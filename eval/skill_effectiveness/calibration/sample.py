"""The lifecycle of one sample in one artifact root: at most one model call, ever (calibration.md, section 5).

Both doors run it, an external controller for one sample at a time and the repeat command once per attempt.
`take_sample` holds `.sample.lock` over the whole lifecycle, so that receipts are judged at rest only:

1. publish the ledger entry `reserved`; 2. publish the intent `model_call_started`; 3. ledger to
`model_call_started`, read back; 4. one call, and its private log; 5. validate the answer; 6. check
executable, version, manifest and root again; 7. publish the observation; 8. turn the answer back, publish the
sample, read back; 9. intent to `completed`, read back, and the whole
root judged as the next request will.

A record stands before each effect and is never an authority to repeat it: whatever ends between 2 and 9
leaves a root that takes no further call. Nothing of an answer that does not count is stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from skill_effectiveness.calibration import receipts
from skill_effectiveness.calibration.answers import AnswerError, read_answer
from skill_effectiveness.calibration.binding import SIMULATED, runner_hash, sample_runner_contract
from skill_effectiveness.calibration.disturbance import after_call, disturbed, unusable
from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    CallFailed,
    SpentEnding,
)
from skill_effectiveness.calibration.inputs import FrozenInputs, load_inputs
from skill_effectiveness.calibration.ledger import RootState, judge_receipts
from skill_effectiveness.calibration.models import (
    SAMPLE_ID,
    UNKNOWN_COST,
    Judgment,
    LedgerEntry,
    Observation,
    Record,
    Sample,
    SampleBindings,
    SampleIntent,
    ShownAnswer,
    Usage,
    to_json,
    to_line,
)
from skill_effectiveness.calibration.observer import Observer, Silent
from skill_effectiveness.calibration.orientation import Presentation, draw, key_commitment
from skill_effectiveness.calibration.prompt import PromptTooLarge, answer_schema, render
from skill_effectiveness.calibration.provider_log import provider_log, write_log
from skill_effectiveness.calibration.root_lock import LOCK_WAIT_SECONDS, locked
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, KeyCode
from skill_effectiveness.evidence.keys import mac_key
from skill_effectiveness.execution import (
    NOT_LOOKED_AT,
    TEMPORARY_FOLDER,
    Executable,
    ExecutableCode,
    ExecutableError,
    never,
)
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.words import BankName, Verdict
from skill_effectiveness.providers import CallOutcome, Ending, JudgeCall, Provider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.calibration.receipts import Listing
    from skill_effectiveness.calibration.reviewer import AdapterSource
    from skill_effectiveness.evidence.root import PrivateRoot

ACTION: Final = "calibration sample"

_TODO: Final[Mapping[str, str]] = {
    ExecutableCode.NO_SESSION_FOLDERS: (
        f"The temporary folder cannot hold the private folders in which it is asked. {TEMPORARY_FOLDER}"
    ),
    ExecutableCode.NO_RESOURCES: (
        "No process, memory or descriptor was left to look at it. End other programs or raise the limits "
        "(ulimit -n, -u), and ask again."
    ),
}
"""What to do where the program is not at fault."""
_SAMPLE_ID: Final = re.compile(SAMPLE_ID)
_UNSAFE_KEY: Final = frozenset(
    {
        FileCode.FILE_SYMLINK,
        FileCode.FILE_MODE,
        FileCode.FILE_OWNER,
        FileCode.FILE_LINKS,
        FileCode.FILE_SIZE,
        FileCode.NOT_REGULAR,
        KeyCode.KEY_SIZE,
    }
)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """What one sample is asked for; whoever asks names the runtime it expects.

    Model, family and timeout have been judged by the door (calibration.md, section 3); here only their form
    is demanded.
    """

    sample_id: str
    model: str
    reviewer_family: str
    timeout_seconds: int
    runtime_manifest_hash: str
    bank: BankName = BankName.JUDGED


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a sample is taken with.

    Attributes:
        reviewer: who is asked; the adapter is made once everything else has been checked.
        manifest: computes the current runtime manifest hash anew at every call; raises `CalibrationError`
            when it cannot.
        observer: is told of the call.
        cancelled: asked during the call; True ends it.
        lock_wait: seconds to wait for another process that uses the root.
        spending: called once, before the record that spends the one call of the id; nothing has been spent
            when it raises.
    """

    reviewer: AdapterSource
    manifest: Callable[[], str]
    observer: Observer = Silent()  # noqa: RUF009 - it has no state
    cancelled: Callable[[], bool] = never
    lock_wait: float = LOCK_WAIT_SECONDS
    spending: Callable[[], object] = never


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A request that passed every check: nothing but the reservation stands before its call.

    Attributes:
        receipts: what lay in the root, the orientation key included.
    """

    presentation: Presentation
    receipts: Listing
    key_hash: str
    provider: Provider
    executable: Executable
    call: JudgeCall
    bindings: SampleBindings


def take_sample(root: PrivateRoot, request: SampleRequest, given: Sampling) -> Sample:
    """Take one sample: check everything, make one call, store the answer.

    Args:
        root: the artifact root, open and private; its lock is taken here.
        request: what is asked for.
        given: reviewer, observer and limits.

    Returns:
        The sample as it was stored, in bank orientation and order.

    Raises:
        CallFailed: the call of this id is spent and gave nothing that counts, whether or not it was made (see
            `SpentEnding`); the root takes no further call.
        CalibrationError: any other code of section 3; nothing was spent.
        EvidenceError: a write before the call failed (a full disk); nothing was spent, and after a repair the
            same request may be repeated.
        ValidationError: (pydantic) model, family or timeout are not of their form; nothing was reserved.
    """
    if given.manifest() != request.runtime_manifest_hash:
        raise CalibrationError(
            CalibrationCode.RUNTIME_DRIFT,
            "The code or a frozen input is not what the request names; probe again and ask anew.",
        )
    with locked(root, given.lock_wait, ACTION):
        admitted = _admit(root, request, given)
        _reserve(root, admitted.bindings)
        given.spending()
        _start(root, admitted.bindings)
        verdicts, usage = _ask(root, admitted, given)
        _check_unchanged(root, admitted, usage, given)
        sample = _store(root, admitted, verdicts, usage)
        _check_usable(root, sample, usage)
        return sample


def inspect(root: PrivateRoot, lock_wait: float = LOCK_WAIT_SECONDS) -> RootState:
    """The judgement of a root's receipts, at rest.

    Raises:
        CalibrationError: `sample_lock_unavailable`; `artifact_root_quarantined` for an unsafe lock.
    """
    with locked(root, lock_wait, ACTION):
        return judge_receipts(receipts.read_listing(root))


def _admit(root: PrivateRoot, request: SampleRequest, given: Sampling) -> _Admitted:
    """Every check of section 3 that needs the lock, in its order; makes the orientation key."""
    if not _SAMPLE_ID.fullmatch(request.sample_id):
        raise CalibrationError(
            CalibrationCode.INVALID_FIELD,
            "A sample id has 1 to 64 letters, digits, dots, dashes or underscores, a letter or digit first.",
        )
    if root.exists(receipts.FINALIZATION_INTENT):
        raise CalibrationError(
            CalibrationCode.FINALIZE_ALREADY_STARTED,
            "This root was closed by a finalization; take further samples in a new one.",
        )
    listing = receipts.read_listing(root)
    judge_receipts(listing).admit(request.sample_id)
    inputs = _inputs(root, request)
    key = _orientation_key(root)
    presentation = draw(inputs.bank, request.sample_id, key)
    provider = _adapter_for(given.reviewer, presentation, request.sample_id)
    executable = identify(root, provider)
    check_login(root, provider)
    bindings = _bindings(root, request, provider, executable, inputs)
    return _Admitted(
        presentation=presentation,
        receipts=replace(listing, orientation_key=key),
        key_hash=key_commitment(key),
        provider=provider,
        executable=executable,
        call=_call(request, presentation),
        bindings=bindings,
    )


def _inputs(root: PrivateRoot, request: SampleRequest) -> FrozenInputs:
    try:
        return load_inputs(root.around.fs, request.bank)
    except ProtocolError as error:
        raise CalibrationError(CalibrationCode.FIXTURE_INVALID, str(error)) from error


def _orientation_key(root: PrivateRoot) -> bytes:
    try:
        return mac_key(root, receipts.ORIENTATION_KEY)
    except EvidenceError as error:
        if error.code in _UNSAFE_KEY:
            raise CalibrationError(CalibrationCode.ARTIFACT_ROOT_QUARANTINED, str(error)) from error
        raise


def _adapter_for(reviewer: AdapterSource, presentation: Presentation, sample_id: str) -> Provider:
    """The provider that answers; a controller's is bound to its program only here."""
    try:
        return reviewer.adapter_for(presentation, sample_id)
    except (ExecutableError, EvidenceError) as error:
        raise _unbound(error) from error


def identify(root: PrivateRoot, provider: Provider) -> Executable:
    """The program of a provider as it is now.

    Raises:
        CalibrationError: `provider_identity_unavailable`.
    """
    try:
        return provider.identify(root.around)
    except (ExecutableError, EvidenceError) as error:
        raise _unbound(error) from error


def check_login(root: PrivateRoot, provider: Provider) -> None:
    """Return only if nothing about the user's login keeps a call from being started.

    Raises:
        CalibrationError: `provider_identity_unavailable`, which names the file without its path.
    """
    try:
        provider.check_login(root.around)
    except FileError as error:
        raise CalibrationError(
            CalibrationCode.PROVIDER_IDENTITY_UNAVAILABLE, error.faults[0].sentence
        ) from error


def _unbound(error: ExecutableError | EvidenceError) -> CalibrationError:
    # The error names the path of the program; a typed error of this room names none.
    todo = _TODO.get(error.code, "Check path, mode and version.")
    return CalibrationError(
        CalibrationCode.PROVIDER_IDENTITY_UNAVAILABLE,
        f"The reviewer's program cannot be bound ({_why(error)}). {todo}",
    )


def _why(error: ExecutableError | EvidenceError) -> str:
    """The code, and that of what is behind it where people need both."""
    behind = error.__cause__ if error.code is ExecutableCode.NO_SESSION_FOLDERS else None
    return f"{error.code}, {behind.code}" if isinstance(behind, EvidenceError) else error.code.value


def _call(request: SampleRequest, presentation: Presentation) -> JudgeCall:
    try:
        prompt = render(presentation)
    except PromptTooLarge as error:
        raise CalibrationError(CalibrationCode.FIXTURE_INVALID, str(error)) from error
    return JudgeCall(
        prompt=prompt,
        answer_schema=answer_schema(presentation),
        model=request.model,
        timeout_seconds=request.timeout_seconds,
    )


def _bindings(
    root: PrivateRoot,
    request: SampleRequest,
    provider: Provider,
    executable: Executable,
    inputs: FrozenInputs,
) -> SampleBindings:
    contract = sample_runner_contract(provider.name)
    fields: dict[str, Any] = {
        "schema_version": 1,
        "sample_id": request.sample_id,
        "artifact_root_hash": receipts.artifact_root_hash(root),
        "provider": provider.name,
        "provider_cli_version": executable.version,
        "provider_executable_hash": executable.sha256,
        "model": request.model,
        "reviewer_family": request.reviewer_family,
        "timeout_seconds": request.timeout_seconds,
        "max_model_calls": 1,
        "runtime_manifest_hash": request.runtime_manifest_hash,
        "known_answer_fixture_hash": inputs.bank.known_answer_fixture_hash,
        "case_fixture_hash": inputs.bank.case_fixture_hash,
        "runner_hash": runner_hash(contract, request.runtime_manifest_hash, executable.sha256),
    }
    if provider.name == SIMULATED:
        fields["synthetic"] = True
    return SampleBindings.model_validate(fields)


def _reserve(root: PrivateRoot, bindings: SampleBindings) -> None:
    """Step 1, and the folders of the later ones: the same id may begin again here."""
    with (
        root.child(receipts.LEDGERS, create=True) as ledgers,
        root.child(receipts.SAMPLES, create=True),
        root.child(receipts.OBSERVATIONS, create=True),
    ):
        ledgers.publish(receipts.sample_name(bindings.sample_id), to_line(_entry(bindings, "reserved")))


def _start(root: PrivateRoot, bindings: SampleBindings) -> None:
    """Steps 2 and 3: after them the one call of this id is spent, whether or not it is made.

    Raises:
        CallFailed: `never_called`: they failed when the intent stood, or may have stood, already.
        EvidenceError: they failed before.
    """
    name = receipts.sample_name(bindings.sample_id)
    started, intent = _started(bindings)
    try:
        with root.child(receipts.LEDGERS) as ledgers, root.child(receipts.SAMPLES) as samples:
            samples.publish(receipts.intent_name(bindings.sample_id), to_line(intent))
            ledgers.replace(name, to_line(started))
            _verify(ledgers, name, started)
    except EvidenceError as error:
        if not receipts.intent_may_stand(root, bindings.sample_id):
            raise
        # Not the sentence of the error, which says to repeat the command: that would be another id.
        raise _never_called(error.code.value) from error
    except CalibrationError as error:
        raise _never_called("changed", error.code) from error


def _never_called(detail: str, code: CalibrationCode = CalibrationCode.MODEL_CALL_UNRESOLVED) -> CallFailed:
    return CallFailed(
        SpentEnding.NEVER_CALLED.value,
        detail,
        f"No call was made ({detail}), but the record that stands before it was begun, so its id is spent.",
        UNKNOWN_COST,
        code,
    )


def _started(bindings: SampleBindings) -> tuple[LedgerEntry, SampleIntent]:
    """The two records of a call that is about to be made."""
    intent = SampleIntent(**_fields(bindings), state="model_call_started")
    return _entry(bindings, "model_call_started"), intent


def _entry(bindings: SampleBindings, state: Literal["reserved", "model_call_started"]) -> LedgerEntry:
    return LedgerEntry(
        schema_version=1,
        artifact_contract="skill-effectiveness-reviewer-calibration-sample-ledger-entry-v2",
        sample_id=bindings.sample_id,
        artifact_root_hash=bindings.artifact_root_hash,
        state=state,
    )


def _ask(root: PrivateRoot, admitted: _Admitted, given: Sampling) -> tuple[tuple[Verdict, ...], Usage]:
    """Steps 4 and 5: the one call, and its answer in shown order."""
    if given.cancelled():
        raise _never_called(Ending.CANCELLED.value)
    given.observer.call_started(int(admitted.call.timeout_seconds))
    outcome = admitted.provider.judge(admitted.call, around=root.around, cancelled=given.cancelled)
    usage = Usage(
        input_tokens=outcome.usage.input_tokens,
        output_tokens=outcome.usage.output_tokens,
        cost_units=outcome.usage.cost_units,
        latency_ms=outcome.latency_ms,
    )
    unlogged = _log(root, admitted, outcome)
    try:
        verdicts = _read(outcome, admitted, usage)
    except CallFailed as failed:
        given.observer.call_ended(failed.ending)
        if unlogged is not None:
            # What the call came to matters more, so it stays the ending.
            told = f"{failed.sentence} Its private log could not be written ({unlogged.code.value})."
            raise CallFailed(failed.ending, failed.detail, told, usage) from failed
        raise
    given.observer.call_ended(outcome.ending.value)
    if unlogged is not None:
        raise _not_stored(unlogged, usage) from unlogged
    return verdicts, usage


def _log(root: PrivateRoot, admitted: _Admitted, outcome: CallOutcome) -> EvidenceError | None:
    """Keep what the provider said beside its answer; what prevents that is answered, not raised."""
    bindings = admitted.bindings
    log = provider_log(bindings.sample_id, outcome, synthetic=bindings.synthetic is True)
    try:
        write_log(root, log)
    except EvidenceError as error:
        return error
    return None


def _read(outcome: CallOutcome, admitted: _Admitted, usage: Usage) -> tuple[Verdict, ...]:
    if outcome.answer is None:
        detail = outcome.error_kind or outcome.limit
        told = f"{outcome.ending.value} ({detail.value})" if detail else outcome.ending.value
        raise CallFailed(outcome.ending.value, detail and detail.value, f"The call ended with {told}.", usage)
    try:
        fence = admitted.provider.json_fence
        return read_answer(outcome.answer, admitted.presentation, json_fence=fence)
    except AnswerError as error:
        told = f"An answer came and does not count: {error.code.value}."
        raise CallFailed(Ending.ANSWER_INVALID.value, error.code.value, told, usage) from error


def _check_unchanged(root: PrivateRoot, admitted: _Admitted, usage: Usage, given: Sampling) -> None:
    """Step 6: an answer counts only if what was bound before the call is still there after it."""
    try:
        changed = _changed(root, admitted, given)
    except (ExecutableError, EvidenceError) as error:
        told = (
            f"The answer does not count, because nobody could look whether anything changed ({error.code})."
        )
        raise CallFailed(SpentEnding.UNCONFIRMED.value, error.code.value, told, usage) from error
    if changed:
        told = f"The answer does not count, because this changed during the call: {changed}."
        raise CallFailed(SpentEnding.BINDING_CHANGED.value, changed, told, usage)


def _changed(root: PrivateRoot, admitted: _Admitted, given: Sampling) -> str | None:
    """What changed under the call; None when nothing did.

    Raises:
        ExecutableError, FileError: nobody could look, which is none of their faults.
    """
    try:
        now = admitted.provider.identify(root.around)
    except ExecutableError as error:
        if error.code in NOT_LOOKED_AT:
            raise
        return "provider_executable"
    if now.sha256 != admitted.executable.sha256:
        return "provider_executable"
    if now.version != admitted.executable.version:
        return "provider_cli_version"
    try:
        manifest = given.manifest()
    except CalibrationError:
        return "runtime_manifest"
    if manifest != admitted.bindings.runtime_manifest_hash:
        return "runtime_manifest"
    found = disturbed(root, after_call(admitted.receipts, *_started(admitted.bindings)))
    return found and found.value


def _check_usable(root: PrivateRoot, sample: Sample, usage: Usage) -> None:
    """The end of step 9: what is acknowledged is what the next request will find."""
    try:
        found = unusable(root, sample)
    except EvidenceError as error:
        raise _not_stored(error, usage) from error
    if found:
        told = f"The answer was good and somebody else changed the root under it ({found}); its id is spent."
        code = CalibrationCode.SAMPLE_PUBLICATION_FAILED
        raise CallFailed(SpentEnding.NOT_STORED.value, found.value, told, usage, code)


def _store(root: PrivateRoot, admitted: _Admitted, verdicts: tuple[Verdict, ...], usage: Usage) -> Sample:
    """Steps 7 to 9."""
    bindings = admitted.bindings
    observation = _observation(admitted, verdicts, usage)
    sample = _sample(root, admitted, verdicts)
    completed = SampleIntent(
        **_fields(bindings), state="completed", sample_hash=digest_object(to_json(sample))
    )
    name = receipts.sample_name(bindings.sample_id)
    intent_name = receipts.intent_name(bindings.sample_id)
    try:
        with root.child(receipts.SAMPLES) as samples, root.child(receipts.OBSERVATIONS) as observations:
            observations.publish(name, to_line(observation))
            samples.publish(name, to_line(sample))
            _verify(samples, name, sample)
            samples.replace(intent_name, to_line(completed))
            _verify(samples, intent_name, completed)
    except EvidenceError as error:
        raise _not_stored(error, usage) from error
    except CalibrationError as error:
        raise CallFailed(SpentEnding.NOT_STORED.value, None, error.sentence, usage, error.code) from error
    return sample


def _not_stored(error: EvidenceError, usage: Usage) -> CallFailed:
    return CallFailed(
        SpentEnding.NOT_STORED.value,
        error.code.value,
        f"The answer was good and could not be stored ({error.code.value}); it is lost and its id is spent.",
        usage,
        CalibrationCode.SAMPLE_PUBLICATION_FAILED,
    )


def _observation(admitted: _Admitted, verdicts: tuple[Verdict, ...], usage: Usage) -> Observation:
    shown = tuple(
        ShownAnswer(case_id=case.case_id, orientation=int(case.swapped), verdict=verdict)
        for case, verdict in zip(admitted.presentation.shown, verdicts, strict=True)
    )
    fields: dict[str, Any] = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-reviewer-calibration-observation-v1",
        "sample_id": admitted.bindings.sample_id,
        "case_fixture_hash": admitted.bindings.case_fixture_hash,
        "orientation_key_hash": admitted.key_hash,
        "shown": shown,
        "usage": usage,
    }
    if admitted.bindings.synthetic:
        fields["synthetic"] = True
    return Observation(**fields)


def _sample(root: PrivateRoot, admitted: _Admitted, verdicts: tuple[Verdict, ...]) -> Sample:
    provider, presentation = admitted.provider, admitted.presentation
    turned = presentation.turn_back(verdicts)
    return Sample(
        **_fields(admitted.bindings),
        artifact_contract="skill-effectiveness-reviewer-calibration-sample-v1",
        provider_environment_keys=provider.environment_keys(root.around.environ),
        runner_contract=sample_runner_contract(provider.name),
        requested_session_mode=provider.session_label,
        tool_access=provider.tool_label,
        judgments=tuple(
            Judgment(case_id=case_id, verdict=verdict)
            for case_id, verdict in zip(presentation.case_ids, turned, strict=True)
        ),
    )


def _verify(place: PrivateRoot, name: str, record: Record) -> None:
    """Read back: what is acknowledged is what lies there."""
    if place.read(name) != to_line(record):
        raise CalibrationError(
            CalibrationCode.ARTIFACT_ROOT_QUARANTINED,
            f"{name} was changed by somebody else while this sample was taken; start again in a new root.",
        )


def _fields(bindings: SampleBindings) -> dict[str, Any]:
    """The bindings as constructor arguments, without what their variant does not have."""
    return bindings.model_dump(exclude_defaults=True)
