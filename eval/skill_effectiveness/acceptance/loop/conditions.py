"""Conditions: what has to be measured for a loop to end.

Source: loop.md, section 2; L45 to L50, L52. A condition is any callable that takes a `StateView` and answers
with a bool or a `Measurement`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.loop.command_words import split_words
from skill_effectiveness.acceptance.loop.texts import is_text
from skill_effectiveness.acceptance.loop.tree_files import segments
from skill_effectiveness.acceptance.loop.verdict import Verdict, invalid, judge_verdict
from skill_effectiveness.acceptance.loop.words import VerdictFault, VerdictWord

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.loop.state_view import StateView


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a condition measured.

    Attributes:
        passed: whether that is enough.
        word: what was measured, in a word without prose; two equal words are one state.
        feedback: what the next prompt may say about it.
    """

    passed: bool
    word: str = ""
    feedback: str = ""

    @property
    def sound(self) -> bool:
        """Whether its members are what they are declared to be: "no" is true in Python."""
        passed: object = self.passed
        return isinstance(passed, bool) and is_text(self.word) and is_text(self.feedback)


Condition = Callable[["StateView"], "bool | Measurement"]


@dataclass(frozen=True, slots=True)
class VerdictPassed:
    """Passes on a verdict file with exactly `pass`, written by the last step of the body.

    Attributes:
        file: its name in the output of that step.
        bound: whether it has to carry the digest of the content under review.
    """

    file: str = "verdict.json"
    bound: bool = False

    def judge(self, view: StateView) -> Verdict:
        """The verdict itself."""
        latest = view._latest  # noqa: SLF001 - what no other condition needs is not on the page
        if latest is None:
            return invalid(VerdictFault.MISSING)
        if latest.changed:
            return invalid(VerdictFault.REPOSITORY_CHANGED)
        files = view._outputs.output(latest.number)  # noqa: SLF001 - likewise: bytes, and every name
        return judge_verdict(
            files.get(self.file),
            file=self.file,
            names=files,
            under_review=latest.content,
            bound=self.bound,
        )

    def __call__(self, view: StateView) -> Measurement:
        """Measure it."""
        return verdict_measured(self.judge(view))


def verdict_measured(verdict: Verdict) -> Measurement:
    """A verdict as a measurement."""
    told = f"The verdict does not count: {verdict.fault}." if verdict.fault else verdict.feedback
    return Measurement(verdict.word is VerdictWord.PASS, verdict.decision, told)


@dataclass(frozen=True, slots=True)
class ChecksPass:
    """Passes when every command exits with 0; all are run. An empty list never passes.

    Attributes:
        commands: argument vectors.
    """

    commands: tuple[tuple[str, ...], ...]

    def __call__(self, view: StateView) -> Measurement:
        """Measure it."""
        ran = [(argv, view.run_command(argv)) for argv in self.commands]
        word = ",".join("none" if each.exit_code is None else str(each.exit_code) for _, each in ran)
        failed = [(argv, each) for argv, each in ran if each.exit_code != 0]
        told = [f"$ {' '.join(argv)}\n{_ended(each.exit_code)}\n{each.output}" for argv, each in failed]
        return Measurement(bool(ran) and not failed, word or "no checks", "\n".join(told))


def _ended(code: int | None) -> str:
    return "ended by a signal or at its time limit" if code is None else f"exit code {code}"


@dataclass(frozen=True, slots=True)
class FileExists:
    """Passes when a path of the repository leads to a regular file inside it.

    Attributes:
        path: repository-relative.
    """

    path: str

    def __call__(self, view: StateView) -> Measurement:
        """Measure it."""
        there = view._is_file(self.path)  # noqa: SLF001 - `exists` also knows folders
        return Measurement(there, "there" if there else "absent", "" if there else f"{self.path} is missing")


def verdict_passed(file: str = "verdict.json") -> VerdictPassed:
    """The latest step's verdict file says exactly `pass`.

    Raises:
        PathRefusedError: the name leaves the output.
    """
    return VerdictPassed("/".join(segments(file)))


def checks_pass(commands: Sequence[str | Sequence[str]]) -> ChecksPass:
    """Every command exits with 0; a text is split by POSIX quoting rules.

    Raises:
        LoopRefusedError: a text holds an operator of a shell.
    """
    return ChecksPass(tuple(split_words(each) if isinstance(each, str) else tuple(each) for each in commands))


def file_exists(path: str) -> FileExists:
    """A repository-relative file exists.

    Raises:
        PathRefusedError: the path leaves the repository or enters `.git`.
    """
    return FileExists("/".join(segments(path)))
