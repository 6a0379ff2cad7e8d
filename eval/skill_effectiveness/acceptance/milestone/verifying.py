"""Running a command at a commit and recording what was observed.

Source: milestone.md, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.errors import StopCode, held
from skill_effectiveness.acceptance.milestone.verification import make_record, packages_run
from skill_effectiveness.acceptance.milestone.words import RowType
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.execution import Ended, Limits, ProcessResult, StartFault, run_process
from skill_effectiveness.execution.git import without_routing
from skill_effectiveness.execution.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.acceptance.milestone.verification import VerificationRecord

STREAM_BYTES: Final = 1_048_576
REPORT_BYTES: Final = 16_777_216
# Endings of which nobody can say what the command would have come to.
_UNOBSERVED: Final = frozenset(
    {Ended.SUPERVISOR_LOST, Ended.UNKILLED, Ended.CANCELLED, Ended.LIMIT, Ended.UNSTARTABLE}
)


def verify(run: Run, argv: Sequence[str], commit: str, node: str | None = None) -> VerificationRecord:
    """Run one command in a fresh worktree of a commit; its `crw.verify` row is written.

    Raises:
        Stopped: the hold `verify_unavailable`: it could not be started, or nobody saw how it ended.
        MilestoneError: `git_failed`, `row_not_written`.
    """
    call = f"verify-{len(run.rows.all(RowType.VERIFY)) + 1}"
    with run.repository.scratch(commit) as worktree:
        before = run.repository.identity_of(worktree, commit)
        result, log = run_command(run, argv, worktree.path)
        after = run.repository.identity_of(worktree, commit)
        count = _report(run, worktree.path)
    if result.ended in _UNOBSERVED:
        why = result.start_fault or result.ended
        told = f"The command {argv[0]!a} could not be run to its end ({why}); mend that and resume."
        raise held(StopCode.VERIFY_UNAVAILABLE, told, command=_position(run, argv), why=why.value)
    members: dict[str, Any] = {
        "argv": list(argv),
        "exit": None if result.ended is Ended.WALL_TIMEOUT else result.exit_code,
        "signal": result.signal,
        "timedOut": result.ended is Ended.WALL_TIMEOUT,
        "before": before.model_dump(mode="json"),
        "after": after.model_dump(mode="json"),
        "log": digest_bytes(log),
    }
    record = make_record(**members, **({} if count is None else {"testPackagesRun": count}))
    run.folder.replace(log, "calls", call, "log.txt")
    run.note(
        RowType.VERIFY,
        call=call,
        node=node,
        head=commit,
        record=record.plain(),
        warnings=list(record.warnings),
    )
    return record


def _position(run: Run, argv: Sequence[str]) -> int:
    """Which of the required commands it is, counted from 0."""
    return [list(each) for each in run.facts.required].index(list(argv))


def run_command(run: Run, argv: Sequence[str], folder: Path) -> tuple[ProcessResult, bytes]:
    """Run an argument vector in a worktree; what it came to, and what it said."""
    around = run.site.around
    program = find_program(argv[0], folder, around)
    if program is None:
        return ProcessResult(Ended.UNSTARTABLE, start_fault=StartFault.MISSING), b""
    said: list[bytes] = []

    def keep(line: bytes) -> bool:
        said.append(line + b"\n")
        return False

    result = run_process(
        [str(program), *argv[1:]],
        cwd=folder,
        env={**without_routing(around.environ), "PWD": str(folder)},
        stdin=b"",
        limits=Limits(
            run.facts.configuration.verify_seconds,
            line_bytes=STREAM_BYTES,
            stdout_bytes=STREAM_BYTES,
            stderr_bytes=STREAM_BYTES,
            drain=True,
        ),
        on_line=keep,
        cancelled=run.site.cancelled,
        around=around,
    )
    return result, b"STDOUT\n%b\nSTDERR\n%b" % (b"".join(said) + result.unterminated, result.stderr)


def _report(run: Run, worktree: Path) -> int | None:
    """How many test packages ran, as the configured report tells; nothing is guessed without one."""
    name = run.facts.configuration.test_report
    if name is None:
        return None
    try:
        return packages_run(read_public(run.site.around.fs, worktree / name, REPORT_BYTES))
    except EvidenceError:
        return None
