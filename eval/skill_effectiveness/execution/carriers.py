"""Processes that carry the token of a call: what is left when nobody watched over them.

Source: field-failures.md F10.

Every process of a call inherits `SKILL_EFFECTIVENESS_CALL` unless it empties its environment. The
supervisor kills by descent, not by token; this is for the cases in which it could not: it was itself killed,
something was started outside its tree, or the platform has no subreapers. It is also how its word that
nothing is left is checked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from skill_effectiveness.execution.supervision import CALL_VARIABLE, SUPERVISOR_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

# How long KILL is repeated, in seconds.
KILL_SECONDS = 5.0
PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process of a call.

    Attributes:
        pid: its process id.
        token: its call.
        supervised: whether a process that says to be the call's supervisor is alive: then it belongs
            to a call that is still running.
    """

    pid: int
    token: str
    supervised: bool


def leftovers(token_prefix: str = "") -> tuple[Leftover, ...]:
    """Processes that carry a token with this prefix, by pid; asked before the first call, to record them.

    Processes of other users are seen by root alone. Nothing is signalled.
    """
    carried = [(process.pid, environment.get(CALL_VARIABLE)) for process, environment in _environments()]
    supervised = _supervised()
    found = [
        Leftover(pid, token, token in supervised)
        for pid, token in carried
        if token is not None and token.startswith(token_prefix)
    ]
    return tuple(sorted(found, key=lambda one: one.pid))


def kill_carriers(token: str, session: int | None, around: Surroundings) -> tuple[int, int]:
    """Kill whatever carries the token or belongs to the session, and everything below.

    Returns:
        How many were found, and how many are alive still.
    """
    found: set[psutil.Process] = set()
    until = around.monotonic() + KILL_SECONDS
    while alive := set(_of_call(token, session)):
        found |= alive
        if around.monotonic() >= until:
            break
        for number in ("suspend", "kill"):
            for process in alive:
                _signal(process, number)
        around.sleep(PAUSE_SECONDS)
    return len(found), len(alive)


def _signal(process: psutil.Process, method: str) -> None:
    try:
        getattr(process, method)()
    except psutil.Error:
        return  # gone, or not ours to signal: the next look counts it


def _of_call(token: str, session: int | None) -> Iterator[psutil.Process]:
    me = os.getpid()
    for process, environment in _environments():
        if process.pid != me and (
            environment.get(CALL_VARIABLE) == token or _session(process.pid) == session
        ):
            yield process
            yield from _children(process)


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    except psutil.Error:
        return []


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _supervised() -> set[str]:
    """The tokens of the calls whose supervisors are alive, by what these say of themselves."""
    marks = set()
    for process in psutil.process_iter():
        try:
            marks.update(process.cmdline()[-1:])
        except psutil.Error:
            continue  # gone meanwhile
    head = f"{SUPERVISOR_MARK}="
    return {mark.removeprefix(head) for mark in marks if mark.startswith(head)}


def _environments() -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    """Every process that runs, and its environment; an empty one where that cannot be read."""
    for process in psutil.process_iter():
        try:
            # A leader that ended before its threads shows as a zombie although the process still runs.
            if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
                continue
        except psutil.Error:
            continue  # gone meanwhile
        yield process, _environment(process)


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}  # another user's, closed to others, or gone: its session may still tell
