"""The attempts of a multi-repeat examination: what came of them, and which one comes next (section 7).

An attempt is an artifact root of one sample, `attempts/r<NN>-a<M>`, whose id is the folder's name. Attempts
of a repeat are numbered without gap from 1; one begins only when the one before is spent without a sample. A
repeat has at most three whose call may have been made, and at most nine in all.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.binding import runner_hash, sample_runner_contract
from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    CallFailed,
    ExaminationRefused,
    RefusalCode,
    SpentEnding,
    demand_seen,
)
from skill_effectiveness.calibration.ledger import judge_receipts
from skill_effectiveness.calibration.models import (
    UNKNOWN_COST,
    AttemptEnding,
    Binding,
    SampleIntent,
    to_line,
)
from skill_effectiveness.calibration.provider_log import read_log
from skill_effectiveness.calibration.publication import Attempt, Run
from skill_effectiveness.calibration.receipts import Found, read_listing
from skill_effectiveness.calibration.reviewer import ADAPTERS
from skill_effectiveness.calibration.sample import inspect
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.providers import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.calibration.ledger import CompletedSample, RootState
    from skill_effectiveness.evidence.root import PrivateRoot

ATTEMPTS: Final = "attempts"
ENDINGS: Final = "endings"
ATTEMPTS_MAX: Final = 3
"""Attempts of one repeat whose call was made, or may have been."""
FOLDERS_MAX: Final = 9
"""Attempts of one repeat in all: a disk that fails every time does not fill itself with attempts."""
LOCK_WAIT_SECONDS: Final = 30.0
SIGNAL: Final = "signal"
"""The detail of an ending that a signal to the command brought about."""

_NAME: Final = re.compile(r"r([0-9]{2})-a([1-9])")
_BOUND: Final = (
    "provider",
    "provider_cli_version",
    "provider_executable_hash",
    "model",
    "reviewer_family",
    "timeout_seconds",
    "runtime_manifest_hash",
    "known_answer_fixture_hash",
    "case_fixture_hash",
    "synthetic",
)
"""Fields that every sample has in common with the binding of its examination."""


def attempt_name(repeat: int, attempt: int) -> str:
    """Folder and sample id of an attempt; both numbers count from 1."""
    return f"r{repeat:02d}-a{attempt}"


@dataclass(frozen=True, slots=True)
class Repeat:
    """One repeat as it lies on disk.

    Attributes:
        attempts: those that are spent, in order; the last one holds the sample if there is one.
        upcoming: number of the attempt that may make a call, which may exist without one; None when the
            repeat has its sample or no attempt is left.
    """

    attempts: tuple[Attempt, ...]
    upcoming: int | None

    @property
    def complete(self) -> bool:
        """Whether the repeat has its sample."""
        return any(attempt.run for attempt in self.attempts)


def read_repeats(out: PrivateRoot, binding: Binding, inputs: FrozenInputs) -> list[Repeat]:
    """All repeats of an examination as they lie on disk.

    Raises:
        ExaminationRefused: `samples_invalid` when what lies there is not what this examination left, so that
            neither counting it nor asking again would be right; `folder_unusable`, `folder_busy`.
    """
    _check_names(out, binding.repeat_count)
    return [_read_repeat(out, number, binding, inputs) for number in range(1, binding.repeat_count + 1)]


def record_ending(out: PrivateRoot, name: str, failed: CallFailed, *, synthetic: bool) -> None:
    """Keep how the call of an attempt ended; EvidenceError when that cannot be written."""
    fields = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-reviewer-calibration-attempt-ending-v1",
        "attempt": name,
        "ending": failed.ending,
        "detail": failed.detail,
        "usage": failed.usage,
    }
    if synthetic:
        fields["synthetic"] = True
    with out.child(ENDINGS, create=True) as endings:
        endings.publish(f"{name}.json", to_line(AttemptEnding.model_validate(fields)))


def record_cut_off(out: PrivateRoot, name: str, *, synthetic: bool) -> None:
    """Keep that a signal ended an attempt, if it is spent and has no sample.

    Raises:
        EvidenceError: that cannot be written, or what lies there cannot be read.
        ExaminationRefused: the folder of the attempt is not private any more.
    """
    if name not in _names(out, ATTEMPTS):
        return
    with _child(out, ATTEMPTS, name) as root:
        state = judge_receipts(read_listing(root))
    if state.cause is None:
        return
    ending = SpentEnding.NEVER_CALLED if name in state.uncalled else Ending.CANCELLED
    cut_off = CallFailed(ending.value, SIGNAL, "A signal ended it.", UNKNOWN_COST)
    record_ending(out, name, cut_off, synthetic=synthetic)


def _check_names(out: PrivateRoot, repeats: int) -> None:
    """Attempts are those of this examination, without gaps, and endings belong to attempts."""
    names = _names(out, ATTEMPTS)
    last: Counter[int] = Counter()
    for name in sorted(names):
        match = _NAME.fullmatch(name)
        repeat, attempt = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= repeat <= repeats or attempt != last[repeat] + 1:
            raise _invalid(f"{ATTEMPTS}/{name} is not the next attempt of a repeat", name)
        last[repeat] = attempt
    for name in _names(out, ENDINGS):
        if name not in {f"{attempt}.json" for attempt in names}:
            raise _invalid(f"{ENDINGS}/{name} belongs to no attempt", name)


def _names(out: PrivateRoot, folder: str) -> set[str]:
    if not out.exists(folder):
        return set()
    with _child(out, folder) as place:
        place.sweep()
        return set(place.names())


def _child(out: PrivateRoot, *segments: str) -> PrivateRoot:
    try:
        return out.child(*segments)
    except FileError as error:
        demand_seen(error)
        raise
    except RootError as error:
        raise ExaminationRefused(RefusalCode.FOLDER_UNUSABLE, str(error), field="/".join(segments)) from error


def _read_repeat(out: PrivateRoot, number: int, binding: Binding, inputs: FrozenInputs) -> Repeat:
    names = [name for name in sorted(_names(out, ATTEMPTS)) if name.startswith(attempt_name(number, 0)[:-1])]
    spent: list[Attempt] = []
    for name in names:
        found = _read_attempt(out, name, binding, inputs) if _may_follow(spent) else None
        if found is None:
            break
        spent.append(found)
    unspent = names[len(spent) :]
    complete = any(each.run for each in spent)
    if not _may_follow(spent) and unspent:
        told = "that has its sample" if complete else "that is its last"
        raise _invalid(f"{ATTEMPTS}/{unspent[0]} lies behind the attempt of its repeat {told}", unspent[0])
    if len(unspent) > 1:
        raise _invalid(f"{ATTEMPTS}/{unspent[1]} lies behind an attempt that is not spent", unspent[1])
    upcoming = len(spent) + 1
    return Repeat(tuple(spent), upcoming if _may_follow(spent) and upcoming <= FOLDERS_MAX else None)


def _may_follow(spent: Sequence[Attempt]) -> bool:
    """Whether there is another attempt behind these."""
    called = sum(each.called for each in spent)
    return called < ATTEMPTS_MAX and not any(each.run for each in spent)


def _read_attempt(out: PrivateRoot, name: str, binding: Binding, inputs: FrozenInputs) -> Attempt | None:
    """What came of an attempt; None when its one call is still to be made."""
    state = _state(out, name)
    ending = _ending(out, name)
    if state.cause is not None:
        _demand_no_answer_lost(out, name, state.cause)
        never = ending is not None and ending.ending == SpentEnding.NEVER_CALLED
        called = not (never or name in state.uncalled)
        return Attempt(name, None, ending, called=called, session=_session(out, name))
    if ending is not None and not (state.complete and ending.ending == SpentEnding.NOT_STORED):
        raise _invalid(f"{ENDINGS}/{name}.json says the call failed, but its receipts do not", name)
    if not state.complete:
        if state.reserved in (None, name):
            return None
        raise _invalid(f"{ATTEMPTS}/{name} reserves another id", name)
    if set(state.complete) != {name} or state.reserved is not None:
        raise _invalid(f"{ATTEMPTS}/{name} holds other samples than its own", name)
    # An ending `not_stored` beside it means that only the last confirmation of the medium was missing.
    run = _run(state.complete[name], binding, inputs)
    return Attempt(name, run, None, session=_session(out, name, demanded=True))


def _demand_no_answer_lost(out: PrivateRoot, name: str, cause: CalibrationError) -> None:
    """Return only if the receipts of a quarantined attempt can be read and tell of no completed sample.

    What cannot be read may be a paid answer: asking again would pay twice, and would draw a bad repeat anew.
    """
    with _child(out, ATTEMPTS, name) as root:
        listing = read_listing(root)
    groups = (listing.ledgers, listing.intents, listing.samples, listing.observations)
    for found in (found for group in groups for found in group.values()):
        if isinstance(found, EvidenceError):
            raise _invalid(f"a receipt of {name} cannot be read ({found.code})", name) from found
    if listing.strays:
        raise _invalid(f"{ATTEMPTS}/{name} holds {min(listing.strays)}, which is no receipt", name)
    for intent in listing.intents.values():
        if _says_completed(intent):
            raise _invalid(f"{name} was completed and does not count ({cause.sentence})", name)


def _says_completed(intent: Found) -> bool:
    try:
        return (
            not isinstance(intent, bytes)
            or parse(SampleIntent, intent, Profile.DOCUMENT).state == "completed"
        )
    except EvidenceError:
        return True


def _session(out: PrivateRoot, name: str, *, demanded: bool = False) -> str | None:
    """Digest of the session that the provider named; None when it named none."""
    try:
        with _child(out, ATTEMPTS, name) as root:
            log = read_log(root, name)
    except EvidenceError as error:
        if not demanded and error.code in (FileCode.MISSING, RootCode.ROOT_MISSING):
            return None
        demand_seen(error)
        raise _invalid(f"the private log of {name} cannot be believed ({error.code})", name) from error
    if log.sample_id != name:
        raise _invalid(f"the private log of {name} is about another attempt", name)
    return log.session_id_hash


def _state(out: PrivateRoot, name: str) -> RootState:
    try:
        with _child(out, ATTEMPTS, name) as root:
            state = inspect(root, LOCK_WAIT_SECONDS)
    except CalibrationError as error:
        if error.code is CalibrationCode.SAMPLE_LOCK_UNAVAILABLE:
            raise ExaminationRefused(RefusalCode.FOLDER_BUSY, error.sentence, field=name) from error
        # The receipts behind a lock that cannot be trusted may be whole: asking again would pay twice.
        raise _invalid(f"{ATTEMPTS}/{name} has an unsafe lock ({error.sentence})", name) from error
    if state.cause is not None and state.cause.code is CalibrationCode.ARTIFACT_ROOT_MISMATCH:
        # A moved folder holds good samples, bound to where they were taken: asking again would pay twice.
        raise _invalid("the folder was moved; put it back where it was taken", name)
    return state


def _run(found: CompletedSample, binding: Binding, inputs: FrozenInputs) -> Run:
    sample, name = found.sample, found.sample.sample_id
    for field in _BOUND:
        if getattr(sample, field) != getattr(binding, field):
            raise _invalid(f"the sample {name} has another {field} than the examination", name)
    adapter, contract = ADAPTERS[binding.provider], sample_runner_contract(binding.provider)
    expected = {
        "runner_contract": contract,
        "runner_hash": runner_hash(contract, binding.runtime_manifest_hash, binding.provider_executable_hash),
        "requested_session_mode": adapter.session_label,
        "tool_access": adapter.tool_label,
    }
    for field, value in expected.items():
        if getattr(sample, field) != value:
            raise _invalid(f"the sample {name} has another {field} than was asked for", name)
    if tuple(judgment.case_id for judgment in sample.judgments) != inputs.bank.case_ids:
        raise _invalid(f"the sample {name} does not judge every case of the bank once, in its order", name)
    if found.observation is None:
        raise _invalid(f"the observation of {name} is missing", name)
    return Run(sample, found.observation)


def _ending(out: PrivateRoot, name: str) -> AttemptEnding | None:
    file = f"{name}.json"
    if file not in _names(out, ENDINGS):
        return None
    try:
        with _child(out, ENDINGS) as endings:
            ending = parse(AttemptEnding, endings.read(file), Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        demand_seen(error)
        raise _invalid(f"{ENDINGS}/{file} cannot be believed ({error.code})", name) from error
    if ending.attempt != name:
        raise _invalid(f"{ENDINGS}/{file} is about another attempt", name)
    return ending


def _invalid(told: str, name: str) -> ExaminationRefused:
    return ExaminationRefused(
        RefusalCode.SAMPLES_INVALID,
        f"Nothing was counted and nothing asked again: {told}. Repair it, or start in a new folder.",
        field=name,
    )
