"""What a person who waits is shown: a live line on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from skill_effectiveness.cli import screen

if TYPE_CHECKING:
    from types import TracebackType


class LiveProgress:
    """A line that goes on where stderr is a terminal; a context manager, since it must be put away again.

    Args:
        label: what the line is about.
        total: how many steps it has.
    """

    def __init__(self, label: str, total: int) -> None:
        self._label = screen.neutral(label)
        self._live: Progress | None = None
        shown = screen.live_console()
        if shown.is_terminal and not shown.is_dumb_terminal:
            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[state]}", markup=False),
                TimeElapsedColumn(),
                console=shown,
                # Otherwise rich puts itself in the place of the stream it writes to, and calls itself.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._live.add_task(self._label, total=total, state="")

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


class ExaminationProgress(LiveProgress):
    """An observer of one examination.

    Args:
        label: who is examined, as the person named it.
        repeats: how many repeats the examination has.
    """

    def __init__(self, label: str, repeats: int) -> None:
        super().__init__(label, repeats)

    def leftovers_found(self, processes: int, removed: int | None, left: int | None) -> None:
        """Killed runs left something."""
        if removed is None:
            screen.complain(f"{self._label}: session folders of killed runs could not be looked for")
        elif removed or left:
            screen.complain(
                f"{self._label}: killed runs left session folders ({removed} removed, {left} not removable)"
            )
        if processes:
            screen.complain(f"{self._label}: killed runs left {processes} processes, which go on running")

    def repeat_started(self, repeat: int, of: int, attempt: int) -> None:
        """A repeat begins."""
        again = f", attempt {attempt}" if attempt > 1 else ""
        self._say(f"repeat {repeat} of {of}{again}", done=repeat - 1)

    def repeat_kept(self, repeat: int, of: int) -> None:
        """A repeat is complete."""
        self._say(f"repeat {repeat} of {of} kept", done=repeat)

    def call_started(self, timeout_seconds: int) -> None:
        """The model call begins."""
        self._say(f"waiting for the reviewer, at most {timeout_seconds} s", done=None)

    def call_ended(self, ending: str) -> None:
        """The model call is over."""
        self._say(f"the call ended: {ending}", done=None)

    def published(self, calibration_status: str) -> None:
        """The pair is complete."""
        self._say(f"published: {calibration_status}", done=None)

    def _say(self, state: str, *, done: int | None) -> None:
        if self._live is None:
            screen.complain(f"{self._label}: {state}")
        elif done is None:
            self._live.update(self._task, state=screen.neutral(state))
        else:
            self._live.update(self._task, state=screen.neutral(state), completed=done)
