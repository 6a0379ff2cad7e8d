"""The eight steps of a request that changes something (bridge.md, section 5).

| step | what | killed after it, the same request again |
|---|---|---|
| 1 | settle what others left | runs |
| 2 | a known id is answered from its receipt | runs |
| 3 | everything is judged, the new state and the answer are values | runs |
| 4 | the intent is published | runs, same answer |
| 5 | the state changes, by one replace or rename | receipt written, same answer, replayed |
| 6 | the receipt is published | replayed |
| 7 | the intent is dropped | replayed |
| 8 | the answer is sent (`door`) | replayed |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.bridge.answers import answer_line
from skill_effectiveness.bridge.messages import RuntimeBinding
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.trials.faults import TrialCode, TrialError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from skill_effectiveness.bridge.envelope import Envelope
    from skill_effectiveness.bridge.receipts import Ledger

REPLAYED: Final = "replayed_receipt"
ATTEMPTS: Final = 8
"""How often a change is planned anew because somebody else moved the trial in between."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A change that was judged.

    Attributes:
        target: the file below the artifact root that changes.
        before: digest of its bytes; None where there is none.
        after: digest of its bytes afterwards.
        result: the answer, `replayed_receipt` left out.
        apply: makes the change; may be repeated.
    """

    target: str
    before: str | None
    after: str
    result: Mapping[str, JsonValue]
    apply: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Steps:
    """What the steps need from outside.

    Attributes:
        look: see `Ledger.settle`.
        plan: step 3.
        still_bound: demands that the code is what was bound; the last check before step 4.
        defer: from here on, signals wait.
        cancelled: whether one has come since, and the request is given up for it.
    """

    look: Callable[[str], str | None]
    plan: Callable[[], Planned]
    still_bound: Callable[[], None]
    defer: Callable[[], None]
    cancelled: Callable[[], bool]


def carry_out(
    ledger: Ledger, envelope: Envelope, binding: Mapping[str, JsonValue], steps: Steps
) -> dict[str, JsonValue]:
    """Answer a request under the lock of its artifact root.

    Raises:
        BridgeError: `stale_state`, `unknown_finality`, `artifact_mismatch`, `cancelled`; the response is over
            its bound.
        Whatever planning and applying raise.
    """
    ledger.settle(steps.look)
    request_hash = digest_object(envelope.request)
    known = _known(ledger, envelope.request_id, request_hash, binding)
    if known is not None:
        return known
    for _ in range(ATTEMPTS):
        planned = steps.plan()
        result = {**planned.result, REPLAYED: False}
        # The longer of the two answers has to fit as well.
        answer_line(envelope.request_id, binding, result)
        steps.still_bound()
        steps.defer()
        intent: dict[str, JsonValue] = {
            "request_hash": request_hash,
            "runtime_binding": dict(binding),
            "target": planned.target,
            "before": planned.before,
            "after": planned.after,
            "result": result,
        }
        ledger.intend(envelope.request_id, intent)
        if steps.cancelled():
            ledger.abandon(envelope.request_id)
            raise BridgeError(ReasonCode.CANCELLED)
        try:
            planned.apply()
        except TrialError as error:
            if error.code is not TrialCode.VERSION_CONFLICT:
                raise
            ledger.abandon(envelope.request_id)
            continue
        ledger.conclude(envelope.request_id, request_hash, binding, result)
        return result
    raise BridgeError(ReasonCode.UNKNOWN_FINALITY, "the trial keeps changing outside the bridge")


def _known(
    ledger: Ledger, request_id: str, request_hash: str, binding: Mapping[str, JsonValue]
) -> dict[str, JsonValue] | None:
    """The answer to an id that was used before."""
    if ledger.is_unsettled(request_id):
        raise BridgeError(ReasonCode.UNKNOWN_FINALITY, "the trial was changed outside the bridge")
    receipt = ledger.stored(request_id)
    if receipt is None:
        if ledger.has_twin(request_id):
            raise BridgeError(ReasonCode.STALE_STATE, "request id in another case")
        return None
    same_runtime = receipt.runtime_binding == validate(RuntimeBinding, dict(binding))
    if receipt.request_hash != request_hash or not same_runtime:
        raise BridgeError(ReasonCode.STALE_STATE, "request id was used")
    return {**receipt.result, REPLAYED: True}
