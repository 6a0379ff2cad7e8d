"""The steps of an active control in one private folder, each taken once (controls.md sections 3 to 7).

| step | reads | publishes |
|---|---|---|
| `prepare_root` | the request | claim, controller state, selector input, in that order |
| `finalize_root` | those, a decision | the selection |
| `measure_root` | all before, the owner reference | the measurement, pass or fail |
| `declare_root` | all before | the matched-call evidence of one scope |

Every step judges the listing before it writes anything, holds the folder's lock and reads everything before
it again. Preparation and measurement are staged first, so that one cut off by a crash is finished by the same
command; a step whose result is gone, with nothing staged, has been tampered with and is not taken again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from skill_effectiveness.controls import chain
from skill_effectiveness.controls.documents import (
    CLAIM_FILE,
    EVIDENCE_FILES,
    MEASUREMENT_FILE,
    SELECTION_FILE,
    SELECTOR_INPUT_FILE,
    STATE_FILE,
    Claim,
    ControllerState,
    Measurement,
    Selection,
    SelectorInput,
    line_of,
    read_control_document,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.matched_call import check_bundle_ids, declare
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.names import temporary_of
from skill_effectiveness.evidence.pair import pending_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.controls.chain import Preparation, Request
    from skill_effectiveness.controls.documents import Decision, MatchedCallEvidence, OwnerReference
    from skill_effectiveness.controls.registry import PairRegistry
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.document import FrozenModel
    from skill_effectiveness.protocol.registries import Scope

LOCK_FILE: Final = ".active-control.lock"
SELECTED_FILE: Final = ".active-control-selection.lock"
"""Says which selection was sealed here, so that it cannot be taken away and another one made."""

MEASURED_FILE: Final = ".owner-relative-measurement.lock"
"""Says that a measurement was attempted here, so that a failed one cannot be taken away and made again."""

LOCK_WAIT_SECONDS: Final = 60.0
PREPARED: Final = (CLAIM_FILE, STATE_FILE, SELECTOR_INPUT_FILE)
PUBLISHED: Final = (*PREPARED, SELECTION_FILE, MEASUREMENT_FILE, *EVIDENCE_FILES.values())
_AFTER_SELECTION: Final = (MEASURED_FILE, pending_name(MEASUREMENT_FILE), *PUBLISHED[4:])
_OWN: Final = frozenset(
    {
        *PUBLISHED,
        *(pending_name(name) for name in (*PREPARED, MEASUREMENT_FILE)),
        LOCK_FILE,
        f"{LOCK_FILE}.holder",
        SELECTED_FILE,
        MEASURED_FILE,
    }
)

DocumentT = TypeVar("DocumentT", bound="FrozenModel")


class Measured(NamedTuple):
    """A selection and how it compares with the owner's texts."""

    selection: Selection
    measurement: Measurement


@contextmanager
def held(root: PrivateRoot, action: str) -> Iterator[None]:
    """Hold the folder's lock, with our interrupted writes dropped and nothing foreign beside ours.

    Raises:
        LockError: somebody else holds it.
        ControlError: `root_foreign`.
    """
    # Before the lock as well, which would itself leave a file in a folder that is none of ours.
    _demand_nothing_foreign(root)
    with Lock(root, LOCK_FILE).hold(LOCK_WAIT_SECONDS, action):
        _demand_nothing_foreign(root)
        root.sweep()
        yield


def _demand_nothing_foreign(root: PrivateRoot) -> None:
    for name in root.names():
        if name not in _OWN and temporary_of(name) not in _OWN:
            raise ControlError(
                ControlCode.ROOT_FOREIGN,
                name,
                "no step of an active control makes this; use a folder that holds nothing else.",
            )


def prepare_root(root: PrivateRoot, request: Request, registry: PairRegistry | None = None) -> Preparation:
    """Publish what a selector will see, and what only the controller knows.

    A draw is staged before the registry hears of it and before it is claimed, so that neither is ever about
    one that is lost.

    Raises:
        ControlError: `root_used`, `root_spent`, `root_foreign`, `pair_reused`, or a rule of the candidates.
    """
    fresh = chain.prepare(request, root.around.entropy)
    with held(root, "prepare"):
        preparation = _begun(root)
        if preparation is None:
            preparation = fresh
            _stage(root, _documents(preparation))
        _demand_same_request(preparation, request)
        if registry is not None:
            registry.record_preparation(root, preparation)
        for name, document in _documents(preparation).items():
            root.publish(name, line_of(document))
        _unstage(root, PREPARED)
        return preparation


def finalize_root(root: PrivateRoot, decision: Decision) -> Selection:
    """Publish the sealed selection of a decision.

    Raises:
        ControlError: `root_used`, `root_spent`, `step_missing`, `decision_unfit`, `chain_broken`,
            `document_invalid`.
    """
    with held(root, "finalize"):
        _demand_untaken(root, SELECTION_FILE)
        if any(root.exists(name) for name in _AFTER_SELECTION):
            raise _spent(SELECTION_FILE)
        selection = chain.select(read_preparation(root), decision)
        _demand_mark_of(root, selection)
        # Marked first: after a crash the same decision goes through, and no other.
        root.publish(SELECTED_FILE, line_of(chain.selected_mark(selection)))
        _publish(root, SELECTION_FILE, selection)
        return selection


def measure_root(
    root: PrivateRoot, reference: OwnerReference, registry: PairRegistry | None = None
) -> Measurement:
    """Publish how the choice compares with the owner's texts; once, whatever comes out.

    Raises:
        ControlError: `root_used`, `root_spent`, `step_missing`, `reference_differs`, `chain_broken`.
    """
    with held(root, "measure"):
        _demand_untaken(root, MEASUREMENT_FILE)
        staged = root.exists(pending_name(MEASUREMENT_FILE))
        if root.exists(MEASURED_FILE) and not staged:
            raise _spent(MEASUREMENT_FILE)
        selection = read_selection(root)
        measurement = chain.measure(selection, reference)
        if registry is not None:
            registry.record_measurement(root, selection)
        # Staged before the mark and published after it: after a crash one of them tells what happened.
        root.replace(pending_name(MEASUREMENT_FILE), line_of(measurement))
        root.publish(MEASURED_FILE, line_of(chain.measured_mark(measurement)))
        root.publish(MEASUREMENT_FILE, line_of(measurement))
        _unstage(root, (MEASUREMENT_FILE,))
        return measurement


def declare_root(
    root: PrivateRoot, named: Measured, reference: OwnerReference, scope: Scope, *, active: str, oracle: str
) -> MatchedCallEvidence:
    """Publish the matched-call contract of one scope.

    Args:
        root: the folder of the selection.
        named: the artifacts that the caller means it to rest on, which must be the folder's own.
        reference: the owner's texts.
        scope: which of the two.
        active: bundle id of the chosen control, which must be the derived one.
        oracle: bundle id of the oracle, which must be the derived one.

    Raises:
        ControlError: `root_used`, `step_missing`, `bundle_id_free`, `measurement_failed`, `contents_equal`,
            `reference_differs`, `chain_broken`.
    """
    with held(root, "matched-call"):
        name = EVIDENCE_FILES[scope]
        _demand_untaken(root, name)
        if named != Measured(read_selection(root), read_measurement(root)):
            raise ControlError(
                ControlCode.CHAIN_BROKEN, name, "selection or measurement are not those of this folder."
            )
        check_bundle_ids(named.selection, scope, active=active, oracle=oracle)
        evidence = declare(named.selection, named.measurement, reference, scope)
        _publish(root, name, evidence)
        return evidence


def read_preparation(root: PrivateRoot) -> Preparation:
    """The three documents of a prepared folder, held against each other.

    Raises:
        ControlError: `step_missing`, `document_invalid`, `chain_broken`.
    """
    found = chain.Preparation(
        _read(root, Claim, CLAIM_FILE),
        _read(root, ControllerState, STATE_FILE),
        _read(root, SelectorInput, SELECTOR_INPUT_FILE),
    )
    chain.check_preparation(found)
    return found


def read_selection(root: PrivateRoot) -> Selection:
    """The selection of a folder, which must follow from the preparation beside it.

    Raises:
        ControlError: `step_missing`, `document_invalid`, `chain_broken`, `root_spent`.
    """
    selection = _read(root, Selection, SELECTION_FILE)
    if chain.select(read_preparation(root), selection.decision) != selection:
        raise ControlError(
            ControlCode.CHAIN_BROKEN, SELECTION_FILE, "it does not follow from the preparation beside it."
        )
    _demand_mark_of(root, selection)
    return selection


def read_measurement(root: PrivateRoot) -> Measurement:
    """The measurement of a folder, by itself.

    Raises:
        ControlError: `step_missing`, `document_invalid`.
    """
    return _read(root, Measurement, MEASUREMENT_FILE)


def _demand_mark_of(root: PrivateRoot, selection: Selection) -> None:
    """Demand that no other selection was sealed here.

    Raises:
        ControlError: `root_spent`.
    """
    if not root.exists(SELECTED_FILE):
        return
    if root.read(SELECTED_FILE) != line_of(chain.selected_mark(selection)):
        raise ControlError(
            ControlCode.ROOT_SPENT,
            SELECTION_FILE,
            "another choice was sealed here; give that decision again, or start in a new folder.",
        )


def _begun(root: PrivateRoot) -> Preparation | None:
    """The draw that a crash interrupted; None where none was staged whole, and so none was claimed."""
    claimed = root.exists(CLAIM_FILE)
    if not claimed and any(root.exists(name) for name in (*PUBLISHED, SELECTED_FILE, MEASURED_FILE)):
        raise _spent(CLAIM_FILE)
    if claimed and not root.exists(pending_name(STATE_FILE)):
        complete = all(root.exists(name) for name in PREPARED)
        raise _used(CLAIM_FILE) if complete else _spent(CLAIM_FILE)
    try:
        found = chain.Preparation(
            _read(root, Claim, CLAIM_FILE if claimed else pending_name(CLAIM_FILE)),
            _read(root, ControllerState, pending_name(STATE_FILE)),
            _read(root, SelectorInput, _staged_or_published(root, SELECTOR_INPUT_FILE)),
        )
        chain.check_preparation(found)
    except ControlError as error:
        if claimed:
            raise _spent(CLAIM_FILE) from error
        return None
    return found


def _staged_or_published(root: PrivateRoot, name: str) -> str:
    return pending_name(name) if root.exists(pending_name(name)) else name


def _demand_same_request(found: Preparation, request: Request) -> None:
    shown = found.selector_input
    packages = sorted(candidate.package_hash for candidate in request.candidates)
    same = (
        (shown.brief, shown.rubric, shown.constraint_spec)
        == (request.brief, request.rubric, request.constraints)
        and found.state.owner_reference_hash == request.reference.reference_hash
        and [candidate.package_hash for candidate in found.state.candidate_packages] == packages
    )
    if not same:
        raise ControlError(
            ControlCode.ROOT_USED,
            CLAIM_FILE,
            "a preparation of other input was begun here; repeat that command, or use a new folder.",
        )


def _documents(preparation: Preparation) -> dict[str, FrozenModel]:
    """In the order of their publication."""
    return {
        CLAIM_FILE: preparation.claim,
        STATE_FILE: preparation.state,
        SELECTOR_INPUT_FILE: preparation.selector_input,
    }


def _stage(root: PrivateRoot, documents: dict[str, FrozenModel]) -> None:
    for name, document in documents.items():
        root.replace(pending_name(name), line_of(document))


def _unstage(root: PrivateRoot, names: tuple[str, ...]) -> None:
    # The state's goes last: as long as it is staged, the same command can finish, whatever else is left.
    for name in sorted(names, key=lambda name: name == STATE_FILE):
        root.remove(pending_name(name))


def _publish(root: PrivateRoot, name: str, document: FrozenModel) -> None:
    root.publish(name, line_of(document))


def _read(root: PrivateRoot, model: type[DocumentT], name: str) -> DocumentT:
    if not root.exists(name):
        raise ControlError(ControlCode.STEP_MISSING, name, "it is not there; take the earlier step first.")
    return read_control_document(model, root.read(name), name, published=True)


def _demand_untaken(root: PrivateRoot, name: str) -> None:
    if root.exists(name):
        raise _used(name)


def _used(name: str) -> ControlError:
    return ControlError(ControlCode.ROOT_USED, name, "this step was taken here already, and stays as it is.")


def _spent(name: str) -> ControlError:
    return ControlError(
        ControlCode.ROOT_SPENT, name, "it was claimed here and is gone; keep the folder, start in a new one."
    )
