"""What a controller may have done: probe, take one sample, finalize (calibration.md, section 3).

Each action carries the checks of its request to their end, in the order of the section, and acts. Nothing is
printed here and no request is read.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration import finalization, receipts
from skill_effectiveness.calibration.documents import PAIR_NAMES
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, passing
from skill_effectiveness.calibration.messages import FinalizeResult, ProbeResult, SampleResult
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.observer import Silent
from skill_effectiveness.calibration.repeats import look_for_leftovers
from skill_effectiveness.calibration.reviewer import ADAPTERS, CONTROLLED
from skill_effectiveness.calibration.root_lock import LOCK_WAIT_SECONDS
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, take_sample
from skill_effectiveness.calibration.wire import (
    probe_result,
    read_finalize,
    read_probe,
    read_sample,
    read_sample_ids,
)
from skill_effectiveness.evidence import crash
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.execution import ExecutableError, locate
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.calibration.orientation import Presentation
    from skill_effectiveness.calibration.wire import Envelope
    from skill_effectiveness.evidence.signals import Cutoff
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider

    Bind = Callable[[Path, Surroundings], Provider]

_STORAGE: Final = frozenset({FileCode.NO_SPACE, FileCode.IO_ERROR})


def _binder(adapter: type[Provider]) -> Bind:
    return lambda path, around: adapter.at(path, around=around)


BINDERS: Final[Mapping[str, Bind]] = {name: _binder(ADAPTERS[name]) for name in CONTROLLED}
"""How the adapter of each provider that a controller may sample is bound to a program."""


@dataclass(frozen=True, slots=True)
class Doorway:
    """What requests are carried out with.

    Attributes:
        around: the surroundings; their environment is the caller's.
        checkout: the source checkout, from which every private root keeps away.
        manifest: the runtime manifest of the code that runs, computed anew at every call; raises
            `CalibrationError` when it is not the one that was verified, or cannot be computed.
        cutoff: the termination signals.
        binders: see `BINDERS`.
        tell: says a line to people, which is never part of an answer.
        lock_wait: seconds to wait for another process that uses a root.
    """

    around: Surroundings
    checkout: Path
    manifest: Callable[[], Mapping[str, object]]
    cutoff: Cutoff
    binders: Mapping[str, Bind]
    tell: Callable[[str], object]
    lock_wait: float = LOCK_WAIT_SECONDS

    def manifest_hash(self) -> str:
        """Its hash alone."""
        return str(self.manifest()["manifest_hash"])


class UnforeseenError(Exception):
    """Something unforeseen whose crash file lies in the artifact root, or was at least tried.

    Attributes:
        told: half a sentence that says where.
    """

    def __init__(self, told: str) -> None:
        self.told = told
        super().__init__(told)


@dataclass(frozen=True, slots=True)
class _BoundLater:
    """Whoever answers one sample, bound to its program when everything else has been checked."""

    bound: Callable[[], Provider]

    def adapter_for(self, _presentation: Presentation, _sample_id: str) -> Provider:
        """See `AdapterSource`."""
        return self.bound()


class _Teller(Silent):
    """Tells people what killed runs left; a machine is told of its own request alone."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    def leftovers_found(self, processes: int, removed: int | None, left: int | None) -> None:
        """See `Observer`."""
        if removed is None:
            self._tell("Session folders of killed runs could not be looked for.")
        else:
            self._tell(f"Killed runs left session folders: {removed} removed, {left} not removable.")
        if processes:
            self._tell(f"Killed runs left {processes} processes, which go on running.")


def probe(envelope: Envelope, way: Doorway) -> ProbeResult:
    """What this installation can do, and what it runs on.

    Raises:
        CalibrationError: `invalid_payload`, `runtime_manifest_unavailable`, `runtime_drift`.
    """
    read_probe(envelope.payload)
    return probe_result(way.manifest())


def sample(envelope: Envelope, way: Doorway) -> SampleResult:
    """One sample, with one model call.

    Raises:
        CalibrationError: any code of a sample; the call was made, or may have been, only with
            `model_call_unresolved` and `sample_publication_failed`.
        UnforeseenError: nothing was spent, and the same request may be repeated.
    """
    terms = read_sample(envelope.payload, partial(_resolves, around=way.around))
    _demand_manifest(terms.runtime_manifest_hash, way)
    request = SampleRequest(
        sample_id=terms.sample_id,
        model=terms.model,
        reviewer_family=terms.reviewer_family,
        timeout_seconds=terms.timeout_seconds,
        runtime_manifest_hash=terms.runtime_manifest_hash,
    )
    with _artifact_root(envelope, way, PrivateRoot.create) as root, _crashes_kept(root, way):
        look_for_leftovers(way.around, _Teller(way.tell))
        spending = _Spending(root, terms.sample_id, way)
        given = Sampling(
            reviewer=_BoundLater(partial(way.binders[terms.provider], terms.executable, way.around)),
            manifest=way.manifest_hash,
            cancelled=way.cutoff.arrived,
            lock_wait=way.lock_wait,
            spending=spending.begin,
        )
        with spending.resolved():
            taken = take_sample(root, request, given)
    return SampleResult(
        sample_id=taken.sample_id,
        sample_artifact=receipts.sample_name(taken.sample_id),
        sample_hash=digest_object(to_json(taken)),
        runtime_manifest_hash=taken.runtime_manifest_hash,
        model_call_count=1,
    )


def finalize(envelope: Envelope, way: Doorway) -> FinalizeResult:
    """The pair of a root, without a model call.

    Raises:
        CalibrationError: any code of a finalization.
        UnforeseenError: nothing was published, or everything that was can be finished by the same request.
    """
    manifest_hash = read_finalize(envelope.payload)
    _demand_manifest(manifest_hash, way)
    sample_ids = read_sample_ids(envelope.payload)
    with _artifact_root(envelope, way, PrivateRoot.open) as root, _crashes_kept(root, way):
        loaded = finalization.finalize(
            root, sample_ids, manifest_hash, lock_wait=way.lock_wait, published=way.cutoff.defer
        )
    names = PAIR_NAMES[BankName.JUDGED]
    return FinalizeResult.model_validate(
        {
            "calibration_status": loaded.result.calibration_status,
            "calibration_evidence": names.evidence,
            "calibration_result": names.result,
            "runtime_manifest_hash": manifest_hash,
            "model_call_count": 0,
        }
    )


class _Spending:
    """Knows whether the one call of a sample may have been spent by this request.

    From the moment the record that spends it is written, a signal no longer interrupts, and whatever goes
    wrong leaves an unresolved call.
    """

    def __init__(self, root: PrivateRoot, sample_id: str, way: Doorway) -> None:
        self._root = root
        self._sample_id = sample_id
        self._way = way
        self._begun = False

    def begin(self) -> None:
        """The record is about to be written.

        Raises:
            Terminated: a signal has come before, and somebody swallowed it; nothing is spent.
        """
        self._way.cutoff.hear()
        self._begun = True
        self._way.cutoff.defer()

    @contextmanager
    def resolved(self) -> Iterator[None]:
        """Turn what nobody foresaw after `begin` into `model_call_unresolved`, if the record may stand."""
        try:
            yield
        except CalibrationError:
            raise
        except Exception as error:
            if not self._begun or not receipts.intent_may_stand(self._root, self._sample_id):
                raise
            raise CalibrationError(
                CalibrationCode.MODEL_CALL_UNRESOLVED,
                "Something unforeseen happened when the call of this sample was spent; "
                f"{_crash_file(error, self._root, self._way)}. Start again in a new root.",
            ) from error


def _resolves(path: Path, around: Surroundings) -> bool:
    try:
        locate(path, around=around)
    except ExecutableError:
        return False
    return True


def _demand_manifest(given: str, way: Doorway) -> None:
    if given != way.manifest_hash():
        raise CalibrationError(
            CalibrationCode.RUNTIME_DRIFT,
            "The code or a frozen input is not what the request names; probe again and ask anew.",
        )


@contextmanager
def _artifact_root(
    envelope: Envelope, way: Doorway, opening: Callable[..., PrivateRoot]
) -> Iterator[PrivateRoot]:
    """The artifact root of a request, open."""
    given = envelope.artifact_root
    if not isinstance(given, str):
        raise _no_root("it is no text")
    try:
        root = opening(given, RootKind.OUT, around=way.around, checkout=way.checkout)
    except RootError as error:
        if error.code is RootCode.ROOT_MISSING:
            raise CalibrationError(
                CalibrationCode.SAMPLE_SET_MISMATCH,
                "There are no samples at this artifact root; take them first.",
            ) from error
        raise _no_root(error.code.value) from error
    except FileError as error:
        if error.code in _STORAGE:
            raise
        raise _no_root(error.code.value) from error
    with root:
        yield root


def _no_root(why: str) -> CalibrationError:
    # The error itself names paths, which no typed error of this door does.
    return CalibrationError(
        CalibrationCode.INVALID_ARTIFACT_ROOT,
        f"The artifact root was refused ({why}); name an absolute path to a private folder of yours outside "
        "the source checkout, with mode 0700 if it exists.",
    )


@contextmanager
def _crashes_kept(root: PrivateRoot, way: Doorway) -> Iterator[None]:
    """Within it, something unforeseen leaves its crash file in the artifact root."""
    try:
        yield
    except CalibrationError:
        raise
    except (Exception, Terminated) as unforeseen:
        told = _crash_file(unforeseen, root, way)
        if isinstance(unforeseen, EvidenceError) and passing(unforeseen):
            told += "; nothing was spent, so try again with the same request"
        raise UnforeseenError(told) from unforeseen


def _crash_file(unforeseen: BaseException, root: PrivateRoot, way: Doorway) -> str:
    return crash.record(unforeseen, way.around, root, checkout=way.checkout)
