"""The falsifier probe: a profile judges nothing before it has found one planted defect.

Source: milestone.md, section 7, Falsifier probe. The copy is a small repository of our own in a private
folder that is thrown away; the repository under review is never touched by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.answers import (
    ANSWER_SCHEMA,
    Answer,
    AnswerInvalidError,
    Asked,
    read_answer,
)
from skill_effectiveness.acceptance.milestone.calls import CallDesk, CallOrder
from skill_effectiveness.acceptance.milestone.criteria import Criterion
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.floors import reading_of, shortfalls
from skill_effectiveness.acceptance.milestone.packets import PacketFacts, ReceiptsFile, pass_packet
from skill_effectiveness.acceptance.milestone.passes import state_of_ending
from skill_effectiveness.acceptance.milestone.store import not_written
from skill_effectiveness.acceptance.milestone.words import PassName, PassState, Purpose, Role, RowType, Word
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.laying import drop_file, lay_file
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.providers import CallOutcome, Provider


@dataclass(frozen=True, slots=True)
class Defect:
    """One planted defect.

    Attributes:
        file: where it is.
        sound: the file without it.
        planted: the file with it.
        lines: where a finding may point.
        intended: what the code is said to do.
    """

    file: str
    sound: str
    planted: str
    lines: range
    intended: str


_WINDOW: Final = '''\
"""Windows over a list."""


def windows(values, size):
    """Every window of `size` neighbours, in order; the last one included."""
    return [values[start : start + size] for start in range(len(values) - size + 1)]
'''
_SHARE: Final = '''\
"""Shares of a whole, in cents."""


def shares(cents, people):
    """Split an amount; what cannot be divided goes to the first ones, so that nothing is lost."""
    each, rest = divmod(cents, people)
    return [each + (1 if number < rest else 0) for number in range(people)]
'''
_ACCESS: Final = '''\
"""Who may read a document."""


def may_read(user, document):
    """The owner may, and whoever is on its list; nobody else."""
    return user == document["owner"] or user in document["readers"]
'''
DEFECTS: Final = (
    Defect(
        "windows.py",
        _WINDOW,
        _WINDOW.replace("- size + 1", "- size"),
        range(4, 7),
        "windows(values, size) gives every window of neighbours, the last one included.",
    ),
    Defect(
        "shares.py",
        _SHARE,
        _SHARE.replace("each + (1 if number < rest else 0)", "each"),
        range(4, 8),
        "shares(cents, people) gives shares whose sum is the amount.",
    ),
    Defect(
        "access.py",
        _ACCESS,
        _ACCESS.replace("or user in", "or user not in"),
        range(4, 7),
        "may_read(user, document) is true for the owner and the listed readers alone.",
    ),
)


@dataclass(frozen=True, slots=True)
class Fitness:
    """Whether a profile may judge, and why not.

    Attributes:
        fit: it found the defect in a valid answer above its floors.
        why: the reason; empty when it is fit.
        passing: the trouble may pass by itself, so that it is no word about the engine.
    """

    fit: bool
    why: str = ""
    passing: PassState | None = None


def fitness(run: Run, profile: EngineProfile, provider: Provider) -> Fitness:
    """Whether a profile may judge in this run; it is probed once.

    Raises:
        MilestoneError: `git_failed`: the copy could not be made; `row_not_written`.
    """
    for row in reversed(run.rows.all(RowType.PROBE, profile=profile.name)):
        if row.body.get("passing") is None:
            return Fitness(bool(row.body.get("fit")), str(row.body.get("why")))
        break
    found, call = _probe(run, profile, provider)
    passing = None if found.passing is None else found.passing.value
    run.note(
        RowType.PROBE,
        call=call,
        fit=found.fit,
        model=profile.model,
        passing=passing,
        profile=profile.name,
        why=found.why,
    )
    return found


def _probe(run: Run, profile: EngineProfile, provider: Provider) -> tuple[Fitness, str]:
    around = run.site.around
    defect = DEFECTS[around.entropy(1)[0] % len(DEFECTS)]
    try:
        with SessionFolders(around) as session:
            base, head = _plant(session.work, defect, run)
            receipts = b"# Executor receipts\n\nnone\n"
            path = session.publish("receipts.md", receipts)
            facts = PacketFacts(
                base=base,
                head=head,
                criteria=(Criterion("c1", defect.intended),),
                decisions=(),
                receipts=ReceiptsFile(path, digest_bytes(receipts), ()),
            )
            order = CallOrder(
                role=Role.REVIEWER,
                purpose=Purpose.PROBE,
                profile=profile,
                provider=provider,
                prompt=pass_packet(PassName.B, facts),
                folder=session.work,
                schema=ANSWER_SCHEMA,
                about={"file": defect.file},
            )
            (done,) = CallDesk(run).ask([order])
    except EvidenceError as error:
        raise not_written(error) from error
    return _judged(done.outcome, profile, provider, defect), done.call


def _judged(outcome: CallOutcome, profile: EngineProfile, provider: Provider, defect: Defect) -> Fitness:
    state = state_of_ending(outcome)
    if state is not PassState.VALID:
        passing = state if state in {PassState.QUOTA, PassState.NO_ANSWER} else None
        return Fitness(fit=False, why=state.value, passing=passing)
    try:
        asked = Asked(PassName.B, (), json_fence=provider.json_fence)
        answer = read_answer(outcome.answer or "", asked)
    except AnswerInvalidError as error:
        return Fitness(fit=False, why=f"invalid: {error}")
    short = shortfalls(reading_of(outcome, provider.tool_label), profile.floors)
    if short:
        return Fitness(fit=False, why=f"not_read: {', '.join(short)}")
    return Fitness(fit=True) if found_it(answer, defect) else Fitness(fit=False, why="missed the defect")


def found_it(answer: Answer, defect: Defect) -> bool:
    """Whether an answer reports the defect: needs changes, by a finding that blocks and points at it."""
    return answer.verdict is Word.NEEDS_CHANGES and any(
        finding.blocks and Path(finding.file).name == defect.file and finding.line in defect.lines
        for finding in answer.findings
    )


def _plant(folder: Path, defect: Defect, run: Run) -> tuple[str, str]:
    """Make the copy: one commit without the defect, one with it."""
    around = run.site.around
    git = Git(folder, around)
    author = ("-c", "user.name=author", "-c", "user.email=author@localhost", "-c", "commit.gpgsign=false")
    commits = []
    if not git.ask("init", "--quiet", "--initial-branch=main").good:
        raise _unmade()
    for number, text in enumerate((defect.sound, defect.planted)):
        if number:
            drop_file(around.fs, folder / defect.file)
        lay_file(around.fs, folder / defect.file, text.encode())
        added = git.ask("add", "--all").good
        word = "Rework" if number else "Begin"
        done = added and git.ask(*author, "commit", "--quiet", "--no-verify", "-m", word).good
        commit = git.commit("HEAD") if done else None
        if commit is None:
            raise _unmade()
        commits.append(commit)
    return commits[0], commits[1]


def _unmade() -> MilestoneError:
    return MilestoneError(MilestoneCode.GIT_FAILED, "probe", "git could not make the copy for the probe.")
