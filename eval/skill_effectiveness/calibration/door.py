"""The controller door, once its code is verified: one request in, one line out, an exit code.

Source: calibration.md section 3; bridge.md section 2. `launch` runs `main` in an isolated process, with every
module verified against the runtime manifest. What cannot be answered in the words of the contract any more is
answered by `launch`.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration import actions
from skill_effectiveness.calibration.actions import BINDERS, Doorway, UnforeseenError
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, Status
from skill_effectiveness.calibration.manifest import runtime_manifest
from skill_effectiveness.calibration.messages import Action
from skill_effectiveness.calibration.wire import (
    REQUEST_LIMIT,
    Heading,
    answer_line,
    heading_of,
    read_envelope,
    read_request,
    refusal_line,
)
from skill_effectiveness.evidence import crash
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.root import find_checkout
from skill_effectiveness.evidence.signals import TERMINATIONS, Cutoff, Terminated
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.launch.faults import DriftError, LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skill_effectiveness.calibration.wire import Envelope, Result
    from skill_effectiveness.launch.entrance import Started

_ACTIONS: Final[Mapping[Action, Callable[[Envelope, Doorway], Result]]] = {
    Action.PROBE: actions.probe,
    Action.SAMPLE: actions.sample,
    Action.FINALIZE: actions.finalize,
}
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
    """Answer one request; the exit code.

    Raises:
        LaunchError: the request could not be read, or the answer not be sent.
    """
    cutoff = Cutoff()
    # A signal is raised only where somebody waits for it.
    cutoff.defer()
    # One that a finalizer swallows is heard again before the call is spent; it has no traceback to show.
    sys.unraisablehook = lambda _raised: None
    with cutoff.heard():
        around = replace(Surroundings.real(), environ=started.environ)
        way = Doorway(
            around=around,
            checkout=find_checkout(around.fs, Path(__file__)),
            manifest=lambda: current_manifest(started),
            cutoff=cutoff,
            binders=BINDERS,
            tell=_tell,
        )
        answer = respond(lambda: started.wire.request(REQUEST_LIMIT), started.arguments, way)
        before = cutoff.times
        started.answer(answer.line, lambda: cutoff.times > before)
        if answer.told:
            _tell(answer.told)
        # The exit code belongs to the answer that was given; nothing is left that a signal could stop.
        signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATIONS)
    return answer.exit_code


def respond(read: Callable[[], bytes], arguments: Sequence[str], way: Doorway) -> Answer:
    """Carry out one request and answer it, whatever it is; from its end on a signal is only remembered.

    Args:
        read: gives the bytes of the request; not called when there are arguments.
        arguments: of the command line; there must be none.
        way: what it is carried out with.

    Raises:
        LaunchError: from `read`.
    """
    asked = _Asked()
    try:
        way.cutoff.hear()
        answer = _answer_of(read, arguments, way, asked)
        way.cutoff.defer()
    except Terminated as signalled:
        # Only the first is ever raised, so this is not disturbed.
        return _unforeseen(asked.heading, crash.record(signalled, way.around, checkout=way.checkout))
    return answer


class _Asked:
    """What is known of the request in hand."""

    def __init__(self) -> None:
        self.heading = Heading()


def _answer_of(read: Callable[[], bytes], arguments: Sequence[str], way: Doorway, asked: _Asked) -> Answer:
    """The answer, unless a signal ends the request.

    Raises:
        LaunchError: from `read`.
        Terminated: a signal came; nothing was spent, and a publication can be finished.
    """
    try:
        _demand_no_arguments(arguments)
        request = read_request(read())
        asked.heading = heading_of(request)
        envelope = read_envelope(request)
        line = answer_line(asked.heading, _ACTIONS[envelope.action](envelope, way))
    except CalibrationError as refusal:
        return _refused(asked.heading, refusal.code, refusal.sentence)
    except UnforeseenError as unforeseen:
        return _unforeseen(asked.heading, unforeseen.told)
    except LaunchError:
        raise
    except Exception as unforeseen:  # noqa: BLE001 - the boundary: one line, whatever happens
        return _unforeseen(asked.heading, crash.record(unforeseen, way.around, checkout=way.checkout))
    return Answer(line, Status.OK.exit_code)


def _demand_no_arguments(arguments: Sequence[str]) -> None:
    if arguments:
        raise CalibrationError(
            CalibrationCode.PROTOCOL_MISMATCH,
            "This door takes no arguments: send one request on standard input.",
        )


def current_manifest(started: Started) -> Mapping[str, object]:
    """The runtime manifest, computed anew, of the code that runs.

    Raises:
        CalibrationError: `runtime_drift`: code was loaded that was not verified, or the files are no longer
            those that were; `runtime_manifest_unavailable`.
    """
    try:
        started.importer.require()
    except LaunchError as error:
        code = CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE
        if isinstance(error, DriftError):
            code = CalibrationCode.RUNTIME_DRIFT
        raise CalibrationError(code, str(error)) from error
    now = runtime_manifest()
    if now["manifest_hash"] != started.manifest["manifest_hash"]:
        raise CalibrationError(
            CalibrationCode.RUNTIME_DRIFT, "The installation changed while this request ran; probe again."
        )
    return now


def _tell(told: str) -> None:
    """Say it to people; that nobody listens changes nothing about the answer."""
    # Not the text stream, which a process that was started without a stderr does not have.
    with suppress(OSError):
        os.write(STDERR, f"{printable(told)}\n".encode("utf-8", "backslashreplace"))


def _refused(heading: Heading, code: CalibrationCode, sentence: str) -> Answer:
    return Answer(refusal_line(heading, code), code.status.exit_code, f"{code.value}: {sentence}")


def _unforeseen(heading: Heading, told: str) -> Answer:
    return _refused(heading, CalibrationCode.INTERNAL_ERROR, f"Something unforeseen happened; {told}.")
