"""What one process of the bridge has, made when it is first needed: words, binding, rooms.

A probe has no time for the models, and an artifact must not be read before everything that reads it was
loaded and verified; so the order in which things are loaded is decided here.
"""

from __future__ import annotations

import gc
import importlib
import os
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.probe import (
    REQUEST_SCHEMA_FILE,
    Installation,
    check_pin,
    configuration,
    full_result,
    is_pinned,
)
from skill_effectiveness.bridge.shapes import Shapes
from skill_effectiveness.bridge.words import Action, BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.launch.bridge_manifest import Reading, runtime_binding
from skill_effectiveness.launch.faults import LaunchError, UnloadableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from skill_effectiveness.bridge.artifacts import Way
    from skill_effectiveness.bridge.envelope import Envelope
    from skill_effectiveness.evidence.signals import Cutoff
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.launch.entrance import Bridged, Started
    from skill_effectiveness.protocol.gates import PilotGates

ARTIFACTS: Final = "skill_effectiveness.bridge.artifacts"
VERDICTS: Final = "skill_effectiveness.bridge.verdicts"
# Its plug-ins would be code that nothing binds.
NO_PLUGINS: Final = ("PYDANTIC_DISABLE_PLUGINS", "__all__")


class House:
    """One process of the bridge.

    Args:
        started: what `launch` hands over.
        bridged: its part for the bridge.
        interruptions: of the process.
        streaming: whether signals wait for the end of each request anyway.
    """

    def __init__(self, started: Started, bridged: Bridged, interruptions: Cutoff, *, streaming: bool) -> None:
        self._started = started
        self._bridged = bridged
        self._interruptions = interruptions
        self._streaming = streaming
        self._reading = bridged.reading
        self._drifted = False
        entries = {name: started.manifest[name] for name in ("schema_version", "entries", "manifest_hash")}
        dependencies: Any = started.manifest["dependencies"]
        self.installation = Installation(Path(bridged.checkout), entries, dependencies)

    @cached_property
    def shapes(self) -> Shapes:
        """The types of every payload."""
        return Shapes(self.installation.frozen(REQUEST_SCHEMA_FILE))

    def fits(self, pinned: object) -> bool:
        """Whether a pin is the manifest of this installation."""
        return is_pinned(pinned, self.installation)

    @cached_property
    def _configuration(self) -> dict[str, Any]:
        return configuration(self.installation)

    @cached_property
    def binding(self) -> dict[str, Any]:
        """Of phase full."""
        configured = digest_object(self._configuration)
        return runtime_binding(self.installation.manifest, self._bridged.running, configured)

    @cached_property
    def around(self) -> Surroundings:
        """The surroundings, with the environment of whoever started the process as data."""
        from dataclasses import replace  # noqa: PLC0415 - no probe needs the surroundings

        from skill_effectiveness.bridge.quiet_fs import QuietFs  # noqa: PLC0415 - likewise
        from skill_effectiveness.evidence.surroundings import Surroundings  # noqa: PLC0415 - likewise

        return replace(Surroundings.real(), environ=self._started.environ, fs=QuietFs())

    @cached_property
    def checkout(self) -> Path:
        """The source checkout, from which every private root keeps away."""
        from skill_effectiveness.evidence.root import find_checkout  # noqa: PLC0415 - likewise

        return find_checkout(self.around.fs, Path(self._bridged.checkout) / "bridge.py")

    @cached_property
    def _gates(self) -> PilotGates:
        """The frozen gates, read before any root is opened."""
        from skill_effectiveness.protocol.gates import load_gates  # noqa: PLC0415 - no probe needs the models

        return load_gates(self.around.fs)

    def probe(self, envelope: Envelope) -> tuple[dict[str, Any], dict[str, Any]]:
        """Binding and result of a probe.

        Raises:
            BridgeError: `unsupported_evaluator`.
        """
        manifest = self.installation.manifest
        if envelope.payload["phase"] == "manifest":
            bound = runtime_binding(manifest, self._bridged.running)
            return bound, {"phase": "manifest", "runtime_manifest": dict(manifest)}
        check_pin(envelope.payload["pinned_manifest"], self.installation)
        binding = self.binding
        return binding, full_result(self._configuration, self._started.importer.loaded_checkout_modules())

    def act(self, envelope: Envelope) -> tuple[dict[str, Any], dict[str, Any]]:
        """Binding and result of a request with an artifact root.

        Raises:
            BridgeError: every reason that was foreseen.
            LaunchError: the code is not what was bound.
        """
        gc.enable()
        with self._undisturbed():
            artifacts = self._load(ARTIFACTS)
            if envelope.action is Action.EVALUATE:
                self._load(VERDICTS)
            binding, way = self.binding, self._way(artifacts)
        self.check_drift()
        try:
            result: dict[str, Any] = artifacts.act(envelope, way)
        finally:
            self._bridged.guard.admit(None)
        return binding, result

    def _way(self, artifacts: ModuleType) -> Way:
        way: Way = artifacts.Way(
            around=self.around,
            checkout=self.checkout,
            state=self._bridged.guard.state,
            binding=self.binding,
            admit=self._bridged.guard.admit,
            still_bound=self.check_drift,
            defer=self._begin,
            cancelled=lambda: not self._streaming and self._interruptions.arrived(),
            gates=self._gates,
        )
        return way

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Let signals wait: one that is raised in the making of a class comes out as another error.

        Raises:
            Terminated: at the end, when one has come.
        """
        self._interruptions.defer()
        yield
        if not self._streaming:
            self._interruptions.hear()

    def _begin(self) -> None:
        """From here on, the change is made and answered.

        Raises:
            Terminated: a signal has come before, and somebody swallowed it.
        """
        if not self._streaming:
            self._interruptions.hear()
        self._interruptions.defer()

    def _load(self, name: str) -> ModuleType:
        """A module of this room with everything it needs, verified."""
        os.environ.setdefault(*NO_PLUGINS)
        try:
            loaded = importlib.import_module(name)
        except LaunchError:
            raise
        except Exception as error:
            self._started.importer.require()
            raise UnloadableError("A module of the bridge cannot be loaded; restore it.") from error
        self._started.importer.require()
        return loaded

    def check_drift(self) -> None:
        """Demand that code and frozen inputs are still what was bound; once they were not, for good.

        Raises:
            BridgeError: `unsupported_evaluator`.
            LaunchError: something else than the importer loaded code.
        """
        self._started.importer.require()
        if not self._drifted and not self._reading.unchanged():
            try:
                again = Reading(self._bridged.checkout)
            except LaunchError:
                self._drifted = True
            else:
                self._drifted = again.manifest != self.installation.manifest
                self._reading = again
        if self._drifted:
            raise BridgeError(ReasonCode.UNSUPPORTED_EVALUATOR, "the installation changed")

    def settle_down(self) -> None:
        """Keep what was compiled, once the answer was given."""
        fresh = self._bridged.cache.fresh
        if fresh:
            from skill_effectiveness.bridge.code_store import keep  # noqa: PLC0415 - only after a change

            keep(fresh, self.around, self.checkout)
            fresh.clear()
