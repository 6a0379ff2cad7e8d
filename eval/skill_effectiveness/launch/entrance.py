"""Opening a door: bind the code, load the room's `main` through the verifying importer, hand over to it.

Source: bridge.md sections 1 to 3; calibration.md section 3.

1. Standard output is set apart (F53), and the process is closed to others (`privacy.py`).
2. The runtime manifest is computed; no module but those of `launch` and the standard library has run.
3. The verifying importer takes over and loads the door's module.
4. Its `main(started) -> exit code` reads the request and answers it.

Whatever fails before `main` has answered is answered here, in the door's own words, and told on stderr as
`<reason>: <sentence>`. A traceback could quote a request, so none is printed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from skill_effectiveness.launch.doors import DOORS, UNVALIDATED_REQUEST
from skill_effectiveness.launch.faults import (
    LaunchError,
    UndeliverableError,
    UnforeseenError,
    UnloadableError,
)
from skill_effectiveness.launch.importer import Importer
from skill_effectiveness.launch.privacy import close_to_others
from skill_effectiveness.launch.wire import Wire, never

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.launch.bridge_manifest import Reading
    from skill_effectiveness.launch.code_cache import CodeCache
    from skill_effectiveness.launch.doors import Door
    from skill_effectiveness.launch.guard import Guard
    from skill_effectiveness.launch.start import FirstFinder

ENTRY: Final = "main"


@dataclass(frozen=True, slots=True)
class Bridged:
    """What the door of the bridge receives besides.

    Attributes:
        checkout: the folder of `bridge.py`, absolute.
        request: what was read already; None when requests come line by line.
        reading: the look at the entries that `manifest` is from.
        running: the interpreter (`bridge_manifest.interpreter`).
        guard: knows which artifact root is in hand.
        cache: of compiled code.
    """

    checkout: str
    request: bytes | None
    reading: Reading
    running: Mapping[str, object]
    guard: Guard
    cache: CodeCache


@dataclass(frozen=True, slots=True)
class Started:
    """What a door's `main` receives.

    Attributes:
        arguments: what was given on the command line, the door's own name left out.
        environ: the environment of whoever started the door, as data (`isolation.py`); the process's own
            holds five names at most.
        manifest: the runtime manifest that the running code was verified against.
        importer: for `require` and `loaded_checkout_modules`.
        wire: the request, and answers that speak of no verified code: refusals.
        bridged: what the bridge alone has.
    """

    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    manifest: Mapping[str, object]
    importer: Importer
    wire: Wire
    bridged: Bridged | None = None

    def answer(self, line: bytes, given_up: Callable[[], bool] = never) -> None:
        """Send an answer, provided that everything loaded so far was verified.

        Args:
            line: the answer.
            given_up: see `Wire.send`.

        Raises:
            LaunchError: it was not; nothing was sent. `UndeliverableError` when nobody reads.
        """
        self.importer.require()
        self.wire.send(line, given_up)


def open_door(name: str, environ: Mapping[str, str], first: FirstFinder) -> int:
    """Run a door in a process that is isolated already.

    Args:
        name: in `DOORS`.
        environ: the environment of whoever started it.
        first: what loaded this room.

    Returns:
        The exit code of the door's contract.
    """
    door = DOORS[name]
    try:
        wire = Wire.open()
    except UndeliverableError as broken:
        return _tell(door, broken)

    def started() -> Started:
        close_to_others()
        manifest = door.manifest()
        importer = Importer(manifest, first)
        return Started(tuple(sys.argv[1:]), environ, manifest, importer, wire)

    return serve(door, wire, started)


def serve(door: Door, wire: Wire, prepare: Callable[[], Started]) -> int:
    """Run a door whose standard output was set apart; whatever goes wrong is answered.

    Args:
        door: which.
        wire: the same as that of what is prepared.
        prepare: binds the code; its importer is not installed yet.

    Returns:
        The exit code of the door's contract.
    """
    importer: Importer | None = None
    try:
        started = prepare()
        importer = started.importer
        importer.install()
        return _load(door, importer)(started)
    except LaunchError as refusal:
        return _refuse(door, wire, refusal)
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the last resort of a door that owes one line
        return _refuse(door, wire, _refusal_behind(importer, unforeseen))
    finally:
        _let_go()


def turn_away(name: str, refusal: LaunchError) -> int:
    """Answer for a door that could not even be started isolated; returns its exit code."""
    try:
        return _refuse(DOORS[name], Wire.open(), refusal)
    except UndeliverableError as broken:
        return _tell(DOORS[name], broken)


def refuse(name: str, wire: Wire, failure: Exception) -> int:
    """Answer for a door in which something failed before its code was bound; returns its exit code."""
    refusal = failure if isinstance(failure, LaunchError) else _refusal_behind(None, failure)
    try:
        return _refuse(DOORS[name], wire, refusal)
    finally:
        _let_go()


def _load(door: Door, importer: Importer) -> Callable[[Started], int]:
    """The door's `main`, everything that was loaded for it verified."""
    try:
        found = vars(importlib.import_module(door.module))[ENTRY]
    except LaunchError:
        raise
    except (Exception, SystemExit) as error:
        importer.require()
        raise UnloadableError(f"{door.module} cannot be loaded: {_place_of(error)}.") from error
    importer.require()
    return cast("Callable[[Started], int]", found)


def _refusal_behind(importer: Importer | None, unforeseen: BaseException) -> LaunchError:
    """A refusal that somebody wrapped or swallowed, else the fact that something unforeseen happened."""
    try:
        if importer is not None:
            importer.require()
    except LaunchError as refusal:
        return refusal
    return UnforeseenError(f"Something unforeseen happened: {_place_of(unforeseen)}.")


def _place_of(error: BaseException) -> str:
    """Kind of an error, and where it was raised; its text, which may quote a request, stays out."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    missing = f" {error.name}" if isinstance(error, ImportError) and error.name else ""
    if trace is None:
        return f"{type(error).__name__}{missing}"
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{type(error).__name__}{missing} in {module}, line {trace.tb_lineno}"


def _refuse(door: Door, wire: Wire, refusal: LaunchError) -> int:
    """Answer with a refusal, unless something was answered already; the exit code."""
    code = _tell(door, refusal)
    if wire.spoken:
        return code
    words = door.words[type(refusal)]
    answer = {
        "schema": door.schema,
        "request_id": wire.request_id or UNVALIDATED_REQUEST,
        "status": words.status,
        "reason_code": words.reason_code,
        **dict(door.besides),
    }
    try:
        wire.send(json.dumps(answer, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n")
    except UndeliverableError as broken:
        return _tell(door, broken)
    return code


def _tell(door: Door, refusal: LaunchError) -> int:
    """Say it to people, in text that no terminal acts upon; the exit code."""
    words = door.words[type(refusal)]
    text = f"{words.reason_code}: {refusal}"
    safe = "".join(letter if letter.isprintable() else "?" for letter in text)
    try:
        os.write(2, safe.encode("ascii", "backslashreplace") + b"\n")
    except OSError:
        return words.exit_code  # nobody listens, and nothing else is to be told
    return words.exit_code


def _let_go() -> None:
    """Empty the text streams now: at exit, one that nobody reads would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            os.close(nowhere)
