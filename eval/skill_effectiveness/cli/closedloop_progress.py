"""The progress of a run for people, one line an event.

Source: loop.md, section 7. Pure; events that are not listed there give no line.
"""

from __future__ import annotations

import shlex
from typing import Any

Event = dict[str, Any]


def progress_line(event: Event, *, hint: bool = True) -> str | None:
    """The line for an event, if it has one.

    Args:
        event: as stored.
        hint: say how to follow the run.
    """
    if event["type"] == "run_started":
        follow = f" · follow with: closedloop watch {event['run']}" if hint else ""
        return f"run {event['run']} started{follow}"
    if event["type"] == "run_finished":
        return f"run finished: {event['outcome']} ({event['attempts']} attempts, {event['seconds']:.1f}s)"
    told = _of_attempt(event)
    return None if told is None else f"[{event['attempt']}] {event['type']}{told}"


def _of_attempt(event: Event) -> str | None:
    match event["type"]:
        case "worker_started":
            return ""
        case "worker_exited" | "reviewer_exited":
            return f" exit={_exit(event)} {event['seconds']:.1f}s"
        case "check_result":
            return f" {shlex.join(event['argv'])} exit={_exit(event)} {event['seconds']:.1f}s"
        case "verdict":
            return f" {event['verdict']}" + ("" if event["reason"] is None else f" ({event['reason']})")
        case _:
            return None


def _exit(event: Event) -> str:
    if event["exit"] is not None:
        return str(event["exit"])
    if event.get("timed_out"):
        return "timeout"
    return "none" if event.get("signal") is None else f"signal:{event['signal']}"
