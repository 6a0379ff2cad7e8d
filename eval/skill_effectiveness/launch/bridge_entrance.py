"""Opening the bridge: guarded first, a manifest probe answered at once, everything else through the importer.

Source: bridge.md sections 2 and 3.

1. Standard output is set apart; no core file; from here on the audit hook refuses what the bridge never does.
2. The request is read, unless the bridge serves a stream. A manifest probe is answered with the modules
   loaded so far, which are of `launch` and the standard library alone.
3. Otherwise the verifying importer takes over, and `bridge.door` is loaded and run.
"""

import gc
import resource
import sys

from skill_effectiveness.launch.bridge_manifest import Reading, interpreter, plain_bytes, runtime_binding
from skill_effectiveness.launch.bridge_request import (
    REQUEST_LIMIT,
    RESPONSE_SCHEMA,
    asks_for_manifest,
    manifest_answer,
    request_id_of,
)
from skill_effectiveness.launch.code_cache import CodeCache, state_folder
from skill_effectiveness.launch.faults import LaunchError
from skill_effectiveness.launch.guard import Guard
from skill_effectiveness.launch.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.launch.entrance import Started
    from skill_effectiveness.launch.start import FirstFinder

NAME = "bridge"
INTERNAL = 4


def open_bridge(checkout: str, environ: "Mapping[str, str]", first: "FirstFinder") -> int:
    """Run the bridge in a process that is isolated already.

    Args:
        checkout: the folder of `bridge.py`, absolute.
        environ: the environment of whoever started it, as data.
        first: what loaded this room.

    Returns:
        The exit code of the contract.
    """
    try:
        wire = Wire.open()
    except LaunchError as broken:
        from skill_effectiveness.launch.entrance import turn_away  # noqa: PLC0415 - needs other modules

        return turn_away(NAME, broken)
    try:
        # A probe ends before there is any garbage; whoever goes on turns this on again.
        gc.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        guard = Guard(state_folder())
        guard.install()
        request = None if sys.argv[1:] else wire.request(REQUEST_LIMIT)
        if request is not None:
            wire.request_id = request_id_of(request)
            if wire.request_id is not None and asks_for_manifest(request):
                reading = Reading(checkout)
                reading.demand_of(first.sources)
                manifest = reading.manifest
                binding = runtime_binding(manifest, interpreter())
                wire.send(plain_bytes(manifest_answer(wire.request_id, binding, manifest)) + b"\n")
                return 0
    except (LaunchError, OSError, ValueError) as refused:
        from skill_effectiveness.launch.entrance import refuse  # noqa: PLC0415 - likewise

        return refuse(NAME, wire, refused)
    return _serve((checkout, environ, first), wire, guard, request)


def unloadable(request_id: str | None) -> bytes:
    """The answer of a bridge whose own first code cannot be loaded."""
    answer = {
        "schema": RESPONSE_SCHEMA,
        "request_id": request_id or "redacted-invalid-request-id",
        "status": "error",
        "reason_code": "unsupported_evaluator",
        "runtime_binding": {},
        "result": {},
    }
    return plain_bytes(answer) + b"\n"


def _serve(
    given: "tuple[str, Mapping[str, str], FirstFinder]", wire: Wire, guard: Guard, request: bytes | None
) -> int:
    """Everything that needs the room itself; `given` is what `open_bridge` was."""
    checkout, environ, first = given
    try:
        from skill_effectiveness.launch import entrance  # noqa: PLC0415 - a manifest probe does without
        from skill_effectiveness.launch.bridge_distributions import bridge_dependencies  # noqa: PLC0415 - likewise
        from skill_effectiveness.launch.doors import DOORS  # noqa: PLC0415 - likewise
        from skill_effectiveness.launch.importer import Importer  # noqa: PLC0415 - likewise
    except Exception:  # noqa: BLE001 - damaged code can fail in any way, and one line is owed
        wire.send(unloadable(wire.request_id))
        return INTERNAL

    def prepare() -> "Started":
        reading = Reading(checkout)
        bound = {**reading.manifest, "dependencies": bridge_dependencies()}
        cache = CodeCache(state_folder())
        importer = Importer(bound, first, cache)
        bridged = entrance.Bridged(checkout, request, reading, interpreter(), guard, cache)
        return entrance.Started(tuple(sys.argv[1:]), environ, bound, importer, wire, bridged)

    return entrance.serve(DOORS[NAME], wire, prepare)
