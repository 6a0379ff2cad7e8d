"""The bridge once its code is verified: one request, or a stream of them (bridge.md, sections 1 and 7).

`launch` runs `main` in an isolated, guarded process, with every module verified against the runtime manifest.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.bridge.answers import answer_line, refusal_line
from skill_effectiveness.bridge.envelope import mismatch, read_envelope, read_request
from skill_effectiveness.bridge.house import House
from skill_effectiveness.bridge.payloads import check_payload
from skill_effectiveness.bridge.words import (
    REQUEST_LIMIT,
    UNVALIDATED_REQUEST,
    Action,
    BridgeError,
    Exit,
    ReasonCode,
)
from skill_effectiveness.evidence.signals import TERMINATIONS, Cutoff, Terminated
from skill_effectiveness.launch.faults import DriftError, LaunchError, ManifestError, UnloadableError

if TYPE_CHECKING:
    from skill_effectiveness.launch.entrance import Started

STREAM: Final = ("--stream",)
SIGNALLED: Final = 128
STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request gets.

    Attributes:
        line: for machines, on stdout.
        exit_code: of the contract.
        told: for people, on stderr; empty when all went well.
    """

    line: bytes
    exit_code: int
    told: str = ""


def main(started: Started) -> int:
    """Serve the bridge; the exit code.

    Raises:
        LaunchError: the request could not be read, or the answer not be sent.
    """
    bridged = started.bridged
    if bridged is None:
        raise ValueError("not started as the bridge")
    interruptions = Cutoff()
    # A signal is raised only where somebody waits for it.
    interruptions.defer()
    # One that a finalizer swallows is heard again before the change; it has no traceback to show.
    sys.unraisablehook = lambda _raised: None
    with interruptions.heard():
        streaming = started.arguments == STREAM
        house = House(started, bridged, interruptions, streaming=streaming)
        if streaming:
            exit_code = _serve(started, house, interruptions)
        else:
            answer = _answer_of(started, house, interruptions)
            started.answer(answer.line)
            _tell(answer.told)
            house.settle_down()
            exit_code = answer.exit_code
        # The exit code belongs to the answer that was given; nothing is left that a signal could stop.
        signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATIONS)
    return exit_code


def _answer_of(started: Started, house: House, interruptions: Cutoff) -> Answer:
    """The answer of a process that serves one request; from its end on a signal is only remembered."""
    try:
        interruptions.hear()
        if started.arguments:
            answer = _refused(UNVALIDATED_REQUEST, mismatch("arguments: none, or --stream alone"))
        else:
            request = started.bridged.request if started.bridged else None
            answer = respond(request or b"", house)
        interruptions.defer()
    except Terminated:
        # It came while a refusal was made; no change was begun, or it would have been deferred.
        return _refused(UNVALIDATED_REQUEST, BridgeError(ReasonCode.CANCELLED))
    return answer


def _serve(started: Started, house: House, interruptions: Cutoff) -> int:
    """Requests line by line, each answered before the next is read."""
    gc.enable()
    interruptions.defer()
    _tell(f"ready {house.around.pid} {started.manifest['manifest_hash']}")
    served = 0
    while True:
        try:
            interruptions.hear()
            line, ended = started.wire.line(REQUEST_LIMIT)
            interruptions.defer()
        except Terminated as signalled:
            return SIGNALLED + signalled.signum
        if not ended and not line:
            if not served:
                _tell(mismatch("no request").told)
            return Exit.OK if served else Exit.INVALID
        answer = (
            respond(line, house)
            if ended
            else _refused(UNVALIDATED_REQUEST, mismatch("the last line has no line feed"))
        )
        started.wire.send(answer.line)
        _tell(answer.told)
        if not ended:
            return Exit.INVALID
        served += 1
        house.settle_down()


def respond(data: bytes, house: House) -> Answer:
    """Carry out one request and answer it, whatever it is."""
    request_id = UNVALIDATED_REQUEST
    try:
        envelope = read_envelope(read_request(data))
        check_payload(envelope, lambda: house.shapes, house.fits)
        request_id = envelope.request_id
        house.check_drift()
        if envelope.action is Action.PROBE:
            binding, result = house.probe(envelope)
        else:
            binding, result = house.act(envelope)
        return Answer(answer_line(request_id, binding, result), Exit.OK)
    except BridgeError as refusal:
        return _refused(request_id, refusal)
    except Terminated:
        return _refused(request_id, BridgeError(ReasonCode.CANCELLED))
    except (DriftError, ManifestError):
        return _refused(request_id, BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "drift"))
    except UnloadableError:
        unloadable = BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "cannot be loaded", internal=True)
        return _refused(request_id, unloadable)
    except LaunchError:
        raise
    except Exception as unforeseen:  # noqa: BLE001 - the boundary: one line, whatever happens
        return _unforeseen(request_id, unforeseen, house)


def _unforeseen(request_id: str, unforeseen: Exception, house: House) -> Answer:
    from skill_effectiveness.evidence import crash  # noqa: PLC0415 - hardly ever

    written = crash.record(unforeseen, house.around, checkout=house.checkout)
    where = "no crash file" if written.startswith("no ") else "a crash file lies in the state folder"
    return _refused(request_id, BridgeError(ReasonCode.UNKNOWN_FINALITY, where))


def _refused(request_id: str, refusal: BridgeError) -> Answer:
    return Answer(refusal_line(request_id, refusal), refusal.exit_code, refusal.told)


def _tell(told: str) -> None:
    """Say it to people; that nobody listens changes nothing about the answer."""
    if told:
        # Not the text stream, which a process that was started without a stderr does not have.
        with suppress(OSError):
            os.write(STDERR, f"{told}\n".encode("ascii", "backslashreplace"))
