"""Running a task's own scripts: the grader twice on fresh copies, and the oracle (studies.md section 1).

A copy is made anew for every run, so nothing that a run leaves reaches the next, and the tested agent is long
dead. With `bubblewrap` the copy lies at the task's `workdir`, `/tests` can only be read, and there is no
network; with `none` the script finds the same places in `$TASK_DIR`, `$TASK_TESTS` and `$TASK_LOGS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.laying import lay_folder
from skill_effectiveness.execution import (
    Ended,
    ExecutableError,
    Limits,
    Place,
    ProcessResult,
    SessionFolders,
    locate,
    never,
    run_process,
)
from skill_effectiveness.execution import Sandbox as Bubblewrap
from skill_effectiveness.execution.sandbox import PROGRAM as BUBBLEWRAP
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree, Oddity, scan
from skill_effectiveness.studies.rewards import FAILED, Reward, read_reward
from skill_effectiveness.studies.task_folder import SOLVE_SCRIPT, TEST_SCRIPT
from skill_effectiveness.studies.words import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.evidence.surroundings import Surroundings

REWARD_LIMIT: Final = 1_048_576
BASH: Final = Path("/bin/bash")
_SEARCHED: Final = ("/usr/bin", "/bin", "/usr/local/bin")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OUTPUT: Final = 16 * 1024 * 1024
_LOGS: Final = "/logs/verifier"


@dataclass(frozen=True, slots=True)
class ScriptOrder:
    """What a task's script is run on.

    Attributes:
        work: the tree it works on or looks at.
        scripts: the folder with the script: `tests/` of a grader, `solution/` of an oracle.
        workdir: where the working copy lies in a sandbox.
        seconds: until it has to be over.
        sandbox: what holds it.
        env: variables of the task.
    """

    work: HeldTree
    scripts: HeldTree
    workdir: str
    seconds: float
    sandbox: Sandbox
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Solved:
    """What an oracle left.

    Attributes:
        ended: how its script ended.
        exit_code: None where it did not end by itself.
        work: the tree afterwards; None where it cannot be frozen.
    """

    ended: Ended
    exit_code: int | None
    work: HeldTree | None
    oddities: tuple[Oddity, ...] = ()


@dataclass(frozen=True, slots=True)
class _Script:
    """One kind of script: what it is called, and where its folder lies inside a sandbox."""

    name: str
    inside: str
    variable: str


_GRADER: Final = _Script(TEST_SCRIPT, "/tests", "TASK_TESTS")
_ORACLE: Final = _Script(SOLVE_SCRIPT, "/solution", "TASK_SOLUTION")


def grade_tree(
    order: ScriptOrder, *, around: Surroundings, cancelled: Callable[[], bool] = never
) -> tuple[Reward, Reward]:
    """What grading a tree comes to, twice, each time on a copy of its own.

    Args:
        order: `scripts` is the task's `tests/`.
        around: files, clock and randomness.
        cancelled: asked now and then; True ends the script.

    Raises:
        StudyError: `grader_unusable`: bash or bubblewrap is missing; or a file of the order cannot be had.
        EvidenceError: the folders of a run cannot be made.
    """
    return (
        _graded_once(order, around, cancelled),
        _graded_once(order, around, cancelled),
    )


def _graded_once(order: ScriptOrder, around: Surroundings, cancelled: Callable[[], bool]) -> Reward:
    with SessionFolders(around) as session:
        ran = _run(order, _GRADER, session, around, cancelled)
        if ran.ended is not Ended.EXITED:
            return FAILED
        return _reward_in(session.work / "logs", around)


def _reward_in(logs: Path, around: Surroundings) -> Reward:
    found: dict[str, bytes | None] = {}
    for name in ("reward.json", "reward.txt"):
        try:
            found[name] = read_public(around.fs, logs / name, REWARD_LIMIT)
        except FileError as error:
            if error.code is not FileCode.MISSING:
                # A link, a pipe or a file beyond all reason is no reward, whatever lies beside it.
                return FAILED
            found[name] = None
    return read_reward(found["reward.json"], found["reward.txt"])


def solve(order: ScriptOrder, *, around: Surroundings, cancelled: Callable[[], bool] = never) -> Solved:
    """Let the oracle work on a copy of the task's files and answer what it left.

    Args:
        order: `scripts` is the task's `solution/`.
        around: files, clock and randomness.
        cancelled: asked now and then; True ends the script.

    Raises:
        As `grade_tree`.
    """
    with SessionFolders(around) as session:
        ran = _run(order, _ORACLE, session, around, cancelled)
        folder = session.work / "app"
        try:
            scanned = scan(around.fs, folder)
        except EvidenceError:
            return Solved(ran.ended, ran.exit_code, None)
        if scanned.oddities:
            return Solved(ran.ended, ran.exit_code, None, scanned.oddities)
        held = HeldTree.on_disk(around.fs, folder, scanned.tree).in_memory()
        return Solved(ran.ended, ran.exit_code, held)


def _run(
    order: ScriptOrder,
    script: _Script,
    session: SessionFolders,
    around: Surroundings,
    cancelled: Callable[[], bool],
) -> ProcessResult:
    app, scripts, logs = (session.work / name for name in ("app", "scripts", "logs"))
    for folder in (app, scripts, logs):
        lay_folder(around.fs, folder)
    order.work.lay_down(around.fs, app)
    order.scripts.lay_down(around.fs, scripts)
    shown = [Place(app, order.workdir, writable=True), Place(scripts, script.inside)]
    if script is _GRADER:
        shown.append(Place(logs, _LOGS, writable=True))
    bash = _program(BASH.name, around)
    if order.sandbox is Sandbox.BUBBLEWRAP:
        places = {"TASK_DIR": order.workdir, script.variable: script.inside}
        logs_at = _LOGS
        home = tmp = "/tmp"  # noqa: S108 - a new one, inside the sandbox
        inside = [str(bash), f"{script.inside}/{script.name}"]
        # The rest of what is there inside may be written: some scripts do, and it is gone afterwards.
        argv = Bubblewrap(_program(BUBBLEWRAP, around)).holding(
            inside, folder=order.workdir, places=shown, network=False, throwaway=True
        )
    else:
        places = {"TASK_DIR": str(app), script.variable: str(scripts)}
        logs_at = str(logs)
        home, tmp = str(session.home), str(session.tmp)
        argv = [str(bash), str(scripts / script.name)]
    if script is _GRADER:
        places["TASK_LOGS"] = logs_at
    env = {"PATH": _PATH, "LANG": "C.UTF-8", "TZ": "UTC", **order.env, "HOME": home, "TMPDIR": tmp, **places}
    ran = run_process(
        argv,
        cwd=app,
        env=env,
        stdin=b"",
        limits=Limits(wall_seconds=order.seconds, line_bytes=_OUTPUT, stdout_bytes=_OUTPUT, drain=True),
        on_line=_nothing,
        cancelled=cancelled,
        around=around,
    )
    if ran.ended is Ended.UNSTARTABLE:
        raise _unusable(f"{Path(argv[0]).name} cannot be started here ({ran.start_fault})")
    return ran


def _nothing(_line: bytes) -> bool:
    """What a script prints never counts."""
    return False


def _program(name: str, around: Surroundings) -> Path:
    """A program of the system.

    Raises:
        StudyError: `grader_unusable`.
    """
    for folder in _SEARCHED:
        try:
            return locate(Path(folder) / name, around=around)
        except ExecutableError:
            continue
    raise _unusable(f"{name} is not installed")


def sandbox_available(around: Surroundings) -> bool:
    """Whether bubblewrap is installed, and this machine lets it work."""
    try:
        return Bubblewrap(_program(BUBBLEWRAP, around)).works(around)
    except StudyError:
        return False


def _unusable(told: str) -> StudyError:
    sentence = f"{told}; install it, or set isolation.sandbox to none."
    return StudyError(StudyCode.GRADER_UNUSABLE, "", sentence)
