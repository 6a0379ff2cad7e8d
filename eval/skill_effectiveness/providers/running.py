"""The children of one call: its program, and what is run after it in the same session.

Source: providers.md P3, P5, P10, P13; field-failures.md F6, F7, F17.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.execution import Ended, LimitName, run_process
from skill_effectiveness.providers.asking import Aftermath, Output
from skill_effectiveness.providers.calls import CallKind, CallWarning, WarningCode
from skill_effectiveness.providers.recording import Recording
from skill_effectiveness.providers.stream import BOUNDS, EventLog, call_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.execution import ProcessResult
    from skill_effectiveness.providers.asking import Asked, CallSession, Told
    from skill_effectiveness.providers.calls import Approve, CallOutcome, Cancelled
    from skill_effectiveness.providers.confinement import Confinement
    from skill_effectiveness.providers.launch import Launch
    from skill_effectiveness.providers.stream import Bounds
    from skill_effectiveness.providers.walls import Walls


_STOPPED: Final = frozenset({Ended.CANCELLED, Ended.WALL_TIMEOUT})
_EXPORT: Final = BOUNDS[CallKind.WORK]
"""A session as a whole may be one line."""


@dataclass(frozen=True, slots=True)
class Order:
    """A call of any kind, as far as this shell has to know it.

    `readable` is all that can be read inside a sandbox, or `None` for everything. `copy` is the working copy
    of a call whose launch is looked at, and `approve` whoever looks at it.
    """

    kind: CallKind
    model: str
    seconds: float
    ask: Callable[[CallSession], Asked]
    cancelled: Cancelled
    readable: tuple[Path, ...] | None = None
    copy: Path | None = None
    approve: Approve | None = None
    confinement: Confinement | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


class Running:
    """The children of one call, and what its stream said."""

    def __init__(
        self, session: CallSession, asked: Asked, launch: Launch, order: Order, walls: Walls, *, began: float
    ) -> None:
        bounds = BOUNDS[order.kind]
        self._bounds = bounds
        self._session = session
        self._asked = asked
        self._launch = launch
        self._order = order
        self._walls = walls
        self._began = began
        self._further: list[ProcessResult] = []
        self._stopped: Ended | None = None
        self.log: Final = EventLog(
            asked.reader.read,
            asked.reader.salvage,
            bounds.lines,
            tools_end_it=order.kind is CallKind.JUDGE,
            profile=bounds.line,
        )

    def program(self) -> ProcessResult:
        """Run the program of the call to its end."""
        return self._run(
            self._launch.argv,
            self._launch.stdin,
            self._bounds,
            on_line=self.log.take,
            cancelled=lambda: self.log.doomed or self._order.cancelled(),
        )

    def aftermath(self, process: ProcessResult) -> Aftermath:
        """What there is to ask for once the program is gone."""
        return Aftermath(
            self._session,
            self._asked,
            process,
            self.log.events,
            self._further_child,
            lambda: self._stopped,
        )

    def completed(self, outcome: CallOutcome, process: ProcessResult, told: Told) -> CallOutcome:
        """An outcome with everything that is known beside its events."""
        if process.ended is Ended.UNSTARTABLE:
            return outcome
        found = sum(child.survivors for child in self._further)
        alive = sum(child.unkilled for child in self._further)
        warnings = [*outcome.warnings, *told.warnings]
        warnings += [CallWarning(WarningCode.PROCESSES_LEFT, str(found))] if found else []
        warnings += [CallWarning(WarningCode.PROCESSES_ALIVE, str(alive))] if alive else []
        recording = Recording(self.log.taken + process.unterminated, process.stderr, told.export)
        return replace(
            outcome,
            warnings=tuple(warnings),
            survivors=outcome.survivors + found,
            recording=recording,
            sandbox=self._walls.word,
            observation=self._walls.observation(),
        )

    def _further_child(self, argv: list[str]) -> Output | None:
        if self._left() <= 0 or self._order.cancelled():
            self._stopped = Ended.WALL_TIMEOUT if self._left() <= 0 else Ended.CANCELLED
            return None
        kept: list[bytes] = []

        def keep(line: bytes) -> bool:
            kept.append(line + b"\n")
            return False

        process = self._run(argv, b"", _EXPORT, on_line=keep, cancelled=self._order.cancelled)
        self._further.append(process)
        if process.ended in _STOPPED:
            self._stopped = process.ended
        return Output(process, b"".join(kept) + process.unterminated)

    def _left(self) -> float:
        return self._order.seconds - (self._session.around.monotonic() - self._began)

    def _run(
        self,
        argv: Sequence[str],
        stdin: bytes,
        bounds: Bounds,
        *,
        on_line: Callable[[bytes], bool],
        cancelled: Cancelled,
    ) -> ProcessResult:
        process = run_process(
            self._walls.around(argv),
            cwd=self._launch.folder,
            env=self._launch.environment,
            stdin=stdin,
            limits=call_limits(self._left(), bounds),
            on_line=on_line,
            cancelled=lambda: cancelled() or self._walls.overflowed(),
            around=self._session.around,
        )
        if process.ended is Ended.CANCELLED and self._walls.overflowed() and not cancelled():
            return replace(process, ended=Ended.LIMIT, limit=LimitName.TRACE_BYTES)
        return process
