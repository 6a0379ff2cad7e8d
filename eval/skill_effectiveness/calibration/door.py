"""The controller door, once its code is verified: one request in, one line out, an exit code.

Source: calibration.md section 3; bridge.md section 2. `launch` runs `main` in an isolated process, with every
module verified against the runtime manifest. What cannot be answered in the words of the contract any more is
answered by `launch`.
"""

from __future__ import annotations

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
from skill_effectiveness.evidence.signals import Cutoff, Terminated
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
        cutoff.defer()
        started.answer(answer.line)
        if answer.told:
            _tell(answer.told)
    return answer.exit_code


def respond(read: Callable[[], bytes], arguments: Sequence[str], way: Doorway) -> Answer:
    """Carry out one request and answer it, whatever it is.

    Args:
        read: gives the bytes of the request; not called when there are arguments.
        arguments: of the command line; there must be none.
        way: what it is carried out with.

    Raises:
        LaunchError: from `read`.
    """
    heading = Heading()
    try:
        _demand_no_arguments(arguments)
        request = read_request(read())
        heading = heading_of(request)
        envelope = read_envelope(request)
        line = answer_line(heading, _ACTIONS[envelope.action](envelope, way))
    except CalibrationError as refusal:
        return _refused(heading, refusal.code, refusal.sentence)
    except UnforeseenError as unforeseen:
        return _unforeseen(heading, unforeseen.told)
    except LaunchError:
        raise
    except (Exception, Terminated) as unforeseen:  # noqa: BLE001 - the boundary: one line, whatever happens
        return _unforeseen(heading, crash.record(unforeseen, way.around, checkout=way.checkout))
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
    with suppress(OSError):
        sys.stderr.write(f"{printable(told)}\n")


def _refused(heading: Heading, code: CalibrationCode, sentence: str) -> Answer:
    return Answer(refusal_line(heading, code), code.status.exit_code, f"{code.value}: {sentence}")


def _unforeseen(heading: Heading, told: str) -> Answer:
    return _refused(heading, CalibrationCode.INTERNAL_ERROR, f"Something unforeseen happened; {told}.")
