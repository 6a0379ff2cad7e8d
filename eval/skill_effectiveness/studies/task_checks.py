"""Trying out a task's own scripts before anybody is measured by them (studies.md section 1, "Checks").

A grader that passes nobody, or everybody, or whoever writes into the right file, measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.execution import Ended
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.grader import ScriptOrder, grade_tree, solve
from skill_effectiveness.studies.rewards import Grading, grading_of
from skill_effectiveness.studies.words import GradeState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.task_folder import TaskFolder

_NO_TRIAL: Final = "sha256:" + "0" * 64
_ONE: Final = b"1\n"
_VERDICT: Final = b"ALL TESTS PASSED\nreward: 1\nexit status 0\n"
PLANTED: Final[Mapping[str, bytes]] = {
    **{
        f"{folder}{name}": _ONE
        for folder in ("", "logs/", "logs/verifier/", "verifier/", "tests/")
        for name in ("reward.txt", "reward.json")
    },
    "verdict.txt": _VERDICT,
    "stdout.txt": _VERDICT,
    "test-stdout.txt": _VERDICT,
    "result.json": b'{"reward":1,"passed":true}\n',
}
"""What somebody leaves who hopes that the grader reads it."""


@dataclass(frozen=True, slots=True)
class TaskChecks:
    """What trying out a task came to: per check what is wrong, None where nothing is.

    Attributes:
        has_oracle: whether there is a solution at all; `oracle` says nothing without.
    """

    has_oracle: bool
    oracle: str | None
    nothing: str | None
    forged: str | None


def check_task(task: TaskFolder, loaded: LoadedStudy, around: Surroundings) -> TaskChecks:
    """Try out one task.

    Args:
        task: its folder.
        loaded: the study it belongs to.
        around: files, clock and randomness.

    Raises:
        StudyError: `grader_unusable`.
        EvidenceError: the folders of a run cannot be made.
    """
    trying = _Trying(task, loaded, around)
    nothing = trying.graded(trying.untouched)
    oracle, fault = trying.oracle() if task.has_oracle else (None, None)
    forged = trying.graded(trying.untouched.with_files(PLANTED))
    return TaskChecks(task.has_oracle, fault, _nothing_fault(nothing, oracle), _forged_fault(forged, nothing))


class _Trying:
    """One task and how it is graded."""

    def __init__(self, task: TaskFolder, loaded: LoadedStudy, around: Surroundings) -> None:
        folder = loaded.task_path(task.task_id)
        self._task = task
        self._around = around
        self._sandbox = loaded.study.isolation.sandbox
        self._pass_at = loaded.study.outcome.pass_at
        self.untouched = HeldTree.on_disk(around.fs, folder / "environment", task.environment)
        self._tests = HeldTree.on_disk(around.fs, folder / "tests", task.tests)
        self._solution = HeldTree.on_disk(around.fs, folder / "solution", task.solution)

    def graded(self, work: HeldTree) -> Grading:
        order = ScriptOrder(
            work=work,
            scripts=self._tests,
            workdir=self._task.workdir,
            seconds=self._task.limits.verifier_seconds,
            sandbox=self._sandbox,
            env={**self._task.environment_env, **self._task.verifier_env},
        )
        first, second = grade_tree(order, around=self._around)
        return grading_of(
            first,
            second,
            trial_fingerprint=_NO_TRIAL,
            grader_hash=self._task.tests.digest,
            pass_at=self._pass_at,
        )

    def oracle(self) -> tuple[Grading | None, str | None]:
        """What the solution's tree is worth, and what is wrong with it."""
        order = ScriptOrder(
            work=self.untouched,
            scripts=self._solution,
            workdir=self._task.workdir,
            seconds=self._task.limits.agent_seconds,
            sandbox=self._sandbox,
            env={**self._task.environment_env, **self._task.solution_env},
        )
        solved = solve(order, around=self._around)
        if solved.ended is not Ended.EXITED:
            return None, f"solution/solve.sh did not end by itself ({solved.ended}); correct it."
        if solved.work is None:
            return None, "solution/solve.sh left files that cannot be kept; correct it."
        grading = self.graded(solved.work)
        if grading.state is not GradeState.VALID:
            return (
                grading,
                f"what solution/solve.sh leaves cannot be graded ({grading.state}); correct tests/.",
            )
        if not grading.passed:
            return grading, f"what solution/solve.sh leaves does not pass ({_reward(grading)}); correct it."
        return grading, None


def _reward(grading: Grading) -> str:
    return "no reward" if grading.reward is None else f"reward {grading.reward.reward}"


def _nothing_fault(nothing: Grading, oracle: Grading | None) -> str | None:
    if nothing.state is not GradeState.VALID:
        return f"the untouched copy cannot be graded ({nothing.state}); correct tests/test.sh."
    if nothing.passed:
        return f"doing nothing passes ({_reward(nothing)}); correct tests/."
    if oracle is None or oracle.reward is None or nothing.reward is None:
        return None
    if (nothing.reward.reward or 0.0) >= (oracle.reward.reward or 0.0):
        return f"doing nothing scores as the solution does ({_reward(nothing)}); correct tests/."
    return None


def _forged_fault(forged: Grading, nothing: Grading) -> str | None:
    if nothing.state is not GradeState.VALID:
        return None
    if forged.state is not GradeState.VALID:
        return f"a copy with planted files cannot be graded ({forged.state}); correct tests/test.sh."
    if forged.reward != nothing.reward:
        return f"planted reward files or a printed verdict count ({_reward(forged)}); correct tests/."
    return None
