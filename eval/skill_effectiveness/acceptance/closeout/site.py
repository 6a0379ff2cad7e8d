"""Where a command of closeout works, and what it finds there before anything else.

Source: closeout.md, sections 8 (order of the whole-decision checks), 10 and 11.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.commit_tree import CommitTree
from skill_effectiveness.acceptance.closeout.decision import Notice, shown
from skill_effectiveness.acceptance.closeout.errors import (
    CloseoutCode,
    CloseoutError,
    PolicyError,
    UsageRefused,
)
from skill_effectiveness.acceptance.closeout.evaluation import Candidate, Inputs
from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy, load_policy
from skill_effectiveness.acceptance.closeout.tree import TreeUnreadableError
from skill_effectiveness.acceptance.closeout.words import (
    GATE,
    UNRESOLVED,
    PolicyFrom,
    Trust,
    WarningCode,
)
from skill_effectiveness.acceptance.closeout.working_tree import WorkingTree
from skill_effectiveness.evidence.root import state_path
from skill_effectiveness.evidence.strict import LONE_SURROGATE
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.worktree import DetachedWorktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

_UNLOADABLE = "unloadable"
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Site:
    """Where policy, evidence and journal are, and how they are to be taken.

    Attributes:
        root: the policy root, absolute.
        around: the surroundings.
        version: of this runner.
        evidence: the evidence directory; `None`: `.closeout` in the root.
        store: the private store; `None`: the state folder of the user.
        policy_from: where the policy is read.
        trust: what a command record needs.
    """

    root: Path
    around: Surroundings
    version: str
    evidence: Path | None = None
    store: Path | None = None
    policy_from: PolicyFrom = PolicyFrom.WORKTREE
    trust: Trust = Trust.PRODUCER

    @property
    def evidence_path(self) -> Path:
        """Where the evidence directory is."""
        return self.evidence or self.root / ".closeout"

    @property
    def store_path(self) -> Path:
        """Where the private store is.

        Raises:
            RootError: `root_form`: there is no home folder.
        """
        return self.store or state_path(self.around)

    @property
    def git(self) -> Git:
        """Git in the policy root."""
        return Git(self.root, self.around)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked about: a candidate at a gate.

    Attributes:
        base: a revision.
        head: a revision, of the candidate.
        candidate: who made it.
        gate: the gate.
    """

    base: str
    head: str
    candidate: Candidate = field(default_factory=Candidate)
    gate: str = GATE


@dataclass(frozen=True, slots=True)
class Situation:
    """What every command starts from once policy and commits are known.

    Attributes:
        policy: the effective policy.
        base: full id.
        head: full id of the candidate.
        warnings: about the policy.
    """

    policy: EffectivePolicy
    base: str
    head: str
    warnings: tuple[Notice, ...] = ()

    def inputs(self, site: Site, request: Request) -> Inputs:
        """What evidence has to be about."""
        digest = self.policy.digest or ""
        return Inputs(self.base, self.head, digest, request.candidate, site.version, site.trust)


class UnresolvedError(CloseoutError):
    """A revision names no commit here, or the root is not the top of its checkout.

    Attributes:
        base: full id, empty when unresolved.
        head: likewise.
        policy: what was loaded before; `None` when it is read from the base commit.
    """

    def __init__(
        self,
        code: CloseoutCode,
        message: str,
        advice: str,
        *,
        base: str,
        head: str,
        policy: EffectivePolicy | None,
    ) -> None:
        super().__init__(code, message, advice)
        self.base = base
        self.head = head
        self.policy = policy


def demand_text(identities: Mapping[str, str]) -> None:
    """Refuse identities that no document can hold: bytes of a command line that are not UTF-8.

    Args:
        identities: by name of their option.

    Raises:
        UsageRefused: with the first of them.
    """
    for name, text in identities.items():
        if LONE_SURROGATE.search(text):
            raise UsageRefused(f"--{name} is not UTF-8 text")


def survey(site: Site, request: Request) -> Situation:
    """Load the policy, resolve the commits and hold the policy against the base commit's.

    Raises:
        UsageRefused: the candidate's identity is no text.
        PolicyError: the policy is there and invalid.
        UnresolvedError: `commits_unresolved`, `root_not_top`.
    """
    candidate = request.candidate
    demand_text(
        {
            "candidate-session": candidate.session,
            "candidate-model": candidate.model,
            "candidate-provider": candidate.provider,
        }
    )
    from_base = site.policy_from is PolicyFrom.BASE
    loaded = None if from_base else worktree_policy(site)
    git = site.git
    base = git.commit(request.base) or ""
    head = base if request.head == request.base else git.commit(request.head) or ""
    if not base or not head:
        advice = "Name commits that this repository has; nothing was run."
        raise UnresolvedError(
            CloseoutCode.COMMITS_UNRESOLVED, UNRESOLVED, advice, base=base, head=head, policy=loaded
        )
    if not git.is_top():
        raise UnresolvedError(
            CloseoutCode.ROOT_NOT_TOP,
            "policy root is not the top of its repository",
            "Policy paths start at the top of the repository; name it with --root.",
            base=base,
            head=head,
            policy=loaded,
        )
    at_base = policy_at(git, base)
    if loaded is None:
        if isinstance(at_base, PolicyError):
            raise at_base
        loaded = at_base
    return Situation(loaded, base, head, differing(loaded, at_base))


def worktree_policy(site: Site) -> EffectivePolicy:
    """The effective policy of the working tree.

    Raises:
        PolicyError: it is there and invalid, or the root is no directory.
    """
    return load_policy(WorkingTree(site.around.fs, site.root))


def policy_at(git: Git, commit: str) -> EffectivePolicy | PolicyError:
    """The effective policy of a commit, or why it does not load."""
    try:
        return load_policy(CommitTree(git, commit))
    except PolicyError as error:
        return error
    except TreeUnreadableError as error:
        return PolicyError(f"the base commit: {error}")


def differing(used: EffectivePolicy, at_base: EffectivePolicy | PolicyError) -> tuple[Notice, ...]:
    """The warning that a policy is not the one of the base commit; nothing when it is."""
    theirs = _UNLOADABLE if isinstance(at_base, PolicyError) else at_base.digest or _NONE
    own = used.digest or _NONE
    if own == theirs:
        return ()
    message = f"the policy in use is {own}, that of the base commit is {theirs}"
    return (Notice(code=WarningCode.POLICY_DIFFERS_FROM_BASE, message=shown(message)),)


@contextmanager
def candidate_worktree(git: Git, commit: str, around: Surroundings) -> Iterator[DetachedWorktree]:
    """A worktree of the candidate for one command or one reviewer.

    Raises:
        CloseoutError: `worktree_unavailable`; nothing of it stays.
    """
    with ExitStack() as stack:
        try:
            worktree = stack.enter_context(DetachedWorktree(git, commit, around))
        except WorktreeError as error:
            message = "could not create a worktree at the candidate commit"
            raise CloseoutError(CloseoutCode.WORKTREE_UNAVAILABLE, message, error.sentence) from error
        yield worktree
