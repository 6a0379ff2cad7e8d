"""The closed words of the loop, and the exit code of each outcome.

Source: loop.md, sections 7 and 8.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """How a run or a job ended.

    `passed`: the measured state passed. `exhausted`: the maximum was reached and the last attempt was
    measured and did not pass. `limitCycle`: the loop returned to a state it had been in. `aborted`: nobody
    can say. `not_run`: a job that was never reached; no outcome of a run.
    """

    PASSED = "passed"
    EXHAUSTED = "exhausted"
    LIMIT_CYCLE = "limitCycle"
    ABORTED = "aborted"
    NOT_RUN = "not_run"


INVALID: Final = "invalid"
"""What `--json` says instead of an outcome when nothing ran."""

EXITS: Final = {Outcome.PASSED: 0, Outcome.EXHAUSTED: 2, Outcome.LIMIT_CYCLE: 3, Outcome.ABORTED: 4}
"""The exit code of every outcome of a run; 1 is none."""
REFUSED_EXIT: Final = 5
"""The exit code of an invalid configuration or invocation: nothing ran."""


class Reason(StrEnum):
    """Why an attempt passed or did not."""

    PASSED = "passed"
    NOT_PASSED = "not_passed"
    AGENT_FAILED = "agent_failed"
    AGENT_TIMED_OUT = "agent_timed_out"
    INPUT_UNAVAILABLE = "input_unavailable"
    OUTPUT_REJECTED = "output_rejected"
    PROTECTED_PATH_CHANGED = "protected_path_changed"
    CHECK_FAILED = "check_failed"
    REPOSITORY_CHANGED = "repository_changed"
    INNER_LOOP = "inner_loop_not_passed"
    BLOCK_FAILED = "block_failed"


class VerdictWord(StrEnum):
    """What a verdict file came to."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    INVALID = "invalid"


class VerdictFault(StrEnum):
    """Why a verdict is invalid."""

    MISSING = "missing"
    OVERSIZED = "oversized"
    NOT_JSON = "not_json"
    AMBIGUOUS = "ambiguous"
    FIELDS = "fields"
    STALE = "stale"
    UNBOUND = "unbound"
    REVIEWER_FAILED = "reviewer_failed"
    REVIEWER_TIMED_OUT = "reviewer_timed_out"
    REPOSITORY_CHANGED = "repository_changed"
    OUTPUT_REJECTED = "output_rejected"
    INPUT_UNAVAILABLE = "input_unavailable"


class OutputFault(StrEnum):
    """Why an agent's output is rejected as a whole."""

    LINK = "link"
    SPECIAL = "special"
    NAME = "name"
    FILE_SIZE = "file_size"
    TOTAL_SIZE = "total_size"
    ENTRIES = "entries"
    DEPTH = "depth"
    UNREADABLE = "unreadable"


class RunState(StrEnum):
    """What can be told of a run from outside."""

    RUNNING = "running"
    FINISHED = "finished"
    CRASHED = "crashed"


class Role(StrEnum):
    """What an agent is in an attempt; the last step of a loop that waits for a verdict is its reviewer."""

    WORKER = "worker"
    REVIEWER = "reviewer"


class LimitCycle(StrEnum):
    """Whether a repeated state ends a loop."""

    ON = "on"
    OFF = "off"
