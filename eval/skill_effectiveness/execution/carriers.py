"""Processes that carry the token of a call: what is left when nobody watched over them.

Source: field-failures.md F10.

Every process of a call inherits `SKILL_EFFECTIVENESS_CALL` unless it empties its environment. The
supervisor kills by descent, not by token; this is for the two cases in which it could not: it was itself
killed, or the platform has no subreapers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from skill_effectiveness.execution.supervision import CALL_VARIABLE, SUPERVISOR_VARIABLE

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
    carried = [(process.pid, environment) for process, environment in _environments()]
    supervisors = {
        environment[SUPERVISOR_VARIABLE] for _, environment in carried if SUPERVISOR_VARIABLE in environment
    }
    found = [
        Leftover(pid, environment[CALL_VARIABLE], environment[CALL_VARIABLE] in supervisors)
        for pid, environment in carried
        if environment.get(CALL_VARIABLE, "").startswith(token_prefix) and CALL_VARIABLE in environment
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


def _environments() -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                yield process, process.environ()
        except psutil.Error:
            continue  # gone meanwhile, or another user's
