"""Requests that need an artifact root: opened, locked, carried out (bridge.md, sections 4 and 5).

This is the one module of the room through which the models and the rooms below are loaded. It is loaded, with
all that an action may need, before any root is opened.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import filelock  # noqa: F401 - what a lock loads on its first use is verified before a root is opened
import rfc8785  # noqa: F401 - likewise for numbers

from skill_effectiveness.bridge.codes import STORAGE, refusal_of
from skill_effectiveness.bridge.receipts import UNREADABLE, Ledger
from skill_effectiveness.bridge.transaction import Planned, Steps, carry_out
from skill_effectiveness.bridge.trial_requests import plan_of_checkpoint, plan_of_prepare
from skill_effectiveness.bridge.words import LOCK_WAIT_SECONDS, Action, BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.models import TrialKey
from skill_effectiveness.trials.store import TRIAL, TRIALS, TrialStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from skill_effectiveness.bridge.envelope import Envelope
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.protocol.gates import PilotGates

ROOTED: Final = frozenset({Action.PREPARE, Action.CHECKPOINT, Action.EVALUATE})


@dataclass(frozen=True, slots=True)
class Way:
    """What a request is carried out with.

    Attributes:
        around: the surroundings.
        checkout: of the sources, from which an artifact root keeps away.
        binding: of this process, phase full.
        state: the state root, resolved; None when there is none.
        admit: told the artifact root in hand, resolved.
        still_bound: demands that the code is what was bound; BridgeError `unsupported_evaluator`.
        defer: from here on, signals wait.
        cancelled: whether one has come since, and the request is given up for it.
        lock_wait: seconds.
        gates: the frozen ones; read for each request if absent.
    """

    around: Surroundings
    checkout: Path | None
    state: str | None
    binding: Mapping[str, JsonValue]
    admit: Callable[[str | None], None]
    still_bound: Callable[[], None]
    defer: Callable[[], None]
    cancelled: Callable[[], bool]
    lock_wait: float = LOCK_WAIT_SECONDS
    gates: PilotGates | None = None


def act(envelope: Envelope, way: Way) -> dict[str, JsonValue]:
    """The result of a request.

    Raises:
        BridgeError: every reason that was foreseen.
        Exception: anything else.
    """
    try:
        return _act(envelope, way)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None or refusal is error:
            raise
        raise refusal from error


def _act(envelope: Envelope, way: Way) -> dict[str, JsonValue]:
    planner = _planner(envelope, way)
    with _opened(envelope.artifact_root, way) as root:
        way.admit(str(root.path))
        # Before the lock of the receipts: its identity is noted under a lock of its own.
        store = TrialStore(root, way.gates)
        with closing(Ledger(root)) as ledger, ledger.locked(way.lock_wait, envelope.action.value):
            steps = Steps(
                look=partial(_look, store),
                plan=partial(planner, store),
                still_bound=way.still_bound,
                defer=way.defer,
                cancelled=way.cancelled,
            )
            return carry_out(ledger, envelope, way.binding, steps)


def _planner(envelope: Envelope, way: Way) -> Callable[[TrialStore], Planned]:
    """How the action is planned; frozen inputs are read before any root is opened."""
    payload = envelope.payload
    match envelope.action:
        case Action.PREPARE:
            return partial(plan_of_prepare, payload=payload)
        case Action.CHECKPOINT:
            return partial(plan_of_checkpoint, payload=payload)
        case _:
            from skill_effectiveness.bridge.verdicts import inputs_of, plan_of_evaluate  # noqa: PLC0415 - slow

            inputs = inputs_of(way.around.fs)
            # A verdict that blocks is written without another look.
            way.still_bound()
            return partial(
                plan_of_evaluate,
                payload=payload,
                inputs=inputs,
                request_id=envelope.request_id,
            )


def _opened(given: JsonValue, way: Way) -> PrivateRoot:
    """The artifact root of a request."""
    if not isinstance(given, str):
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "the artifact root is an absolute path")
    try:
        root = PrivateRoot.open(given, RootKind.STORE, around=way.around, checkout=way.checkout)
    except EvidenceError as error:
        if error.code in STORAGE:
            raise
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, f"artifact root: {error.code.value}") from error
    if way.state is not None and f"{root.path}/".startswith(f"{way.state}/"):
        # What is kept there for our own use goes when there is too much of it.
        root.close()
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "artifact root: in the state folder")
    return root


def _look(store: TrialStore, target: str) -> str | None:
    """The digest of the file that an intent was about, as it is now."""
    try:
        folder, *rest = target.split("/")
        if folder == TRIALS:
            return _trial_digest(store, "/".join(rest).removesuffix(f"/{TRIAL}"))
        if not store.root.exists(folder):
            return None
        with store.root.child(folder) as found:
            return digest_bytes(found.read(rest[0])) if found.exists(rest[0]) else None
    except (EvidenceError, TrialError, IndexError) as error:
        if isinstance(error, EvidenceError) and error.code in STORAGE:
            raise
        return UNREADABLE


def _trial_digest(store: TrialStore, path: str) -> str | None:
    key = TrialKey.parse(path)
    trial = store.trial(key)
    if trial is None:
        return None
    with trial:
        return digest_bytes(trial.read(TRIAL)) if trial.exists(TRIAL) else None
