"""`closeout review`: one fresh session of a reviewer, and the record of what it found.

Source: closeout.md, section 12; providers.md P13. It stores facts and decides nothing. Whatever goes wrong,
no record is stored and one code says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout import runner_journal
from skill_effectiveness.acceptance.closeout.decision import Notice
from skill_effectiveness.acceptance.closeout.desk import open_desk
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, UsageRefused
from skill_effectiveness.acceptance.closeout.intake import review_item, store_review
from skill_effectiveness.acceptance.closeout.policy_paths import SKILL_FILE
from skill_effectiveness.acceptance.closeout.records import IDENTITY_MOST, RecordError, Reviewer
from skill_effectiveness.acceptance.closeout.review_prompt import (
    ANSWER_SCHEMA,
    PROMPT_BYTES,
    findings_of,
    render,
)
from skill_effectiveness.acceptance.closeout.site import candidate_worktree, survey
from skill_effectiveness.acceptance.closeout.words import WarningCode
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal import Entry
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.execution.programs import find_tool
from skill_effectiveness.execution.worktree import sweep_worktrees
from skill_effectiveness.providers import (
    CallKind,
    Ending,
    ProviderError,
    ProviderErrorKind,
    ReadCall,
    holding,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.acceptance.closeout.desk import Desk
    from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy
    from skill_effectiveness.acceptance.closeout.policy_models import ResolvedReview
    from skill_effectiveness.acceptance.closeout.records import Finding, ReviewRecord
    from skill_effectiveness.acceptance.closeout.site import Request, Site
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome, Provider

TIMEOUT_SECONDS: Final = 1800
TIMEOUT_MOST: Final = 86_400
STARTED: Final = "review_started"

REVIEWERS: Final[Mapping[str, type[Provider]]] = holding(CallKind.READ)
"""Every adapter that holds read calls, by name."""

_ENDINGS: Final[Mapping[Ending, CloseoutCode]] = {
    Ending.NO_ANSWER: CloseoutCode.REVIEW_ANSWER_INVALID,
    Ending.ANSWER_INVALID: CloseoutCode.REVIEW_ANSWER_INVALID,
    Ending.REFUSED: CloseoutCode.REVIEW_ANSWER_INVALID,
    Ending.TIMEOUT: CloseoutCode.REVIEW_TIMED_OUT,
    Ending.UNSTARTABLE: CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE,
}
_PASSING: Final = frozenset({ProviderErrorKind.SERVER_ERROR, ProviderErrorKind.CONNECTION_LOST})
_ADVICE: Final = {
    CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE: "Check program, login, model and quota, then repeat.",
    CloseoutCode.REVIEW_TIMED_OUT: "Give it more --timeout-seconds, or a smaller change.",
    CloseoutCode.REVIEW_FAILED: "The session broke off; repeat the command.",
    CloseoutCode.REVIEW_ANSWER_INVALID: "The answer was not the array of findings; repeat the command.",
    CloseoutCode.REVIEW_WORKTREE_CHANGED: "The reviewer changed what it may only read; nothing counts.",
    CloseoutCode.REVIEW_PROMPT_TOO_LARGE: "It is over 120 KiB; use a shorter path for temporary files.",
}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What came of a review.

    Attributes:
        record: as stored.
        warnings: what should be known about the reviewer's identity.
    """

    record: ReviewRecord
    warnings: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class ReviewOrder:
    """What is to be reviewed, and by whom.

    Attributes:
        item_id: qualified id of the review requirement.
        provider: the adapter's name.
        model: exact model id.
        timeout_seconds: for the session.
        program: absolute path of the program; `None`: the one of the provider's name on PATH.
    """

    item_id: str
    provider: str
    model: str
    timeout_seconds: int = TIMEOUT_SECONDS
    program: Path | None = None


def review(site: Site, request: Request, order: ReviewOrder) -> Reviewed:
    """Run one reviewer and store what it found.

    Raises:
        UsageRefused: there is no such review requirement, or the model id has no legal form.
        CloseoutError: policy, commits, store or evidence block, or a `review_…` code; no record was stored.
    """
    situation = survey(site, request)
    item = review_item(situation, order.item_id, request.gate)
    provider = _bound(order, site)
    with open_desk(site, request, situation) as desk:
        # Before anything is spent: what cannot be read now could not be stored then.
        desk.records()
        sweep_worktrees(site.git, site.around)
        outcome = _session(desk, item, provider, order)
        findings = _findings(outcome, provider)
        reviewer = Reviewer(
            session=(outcome.session_id or "")[:IDENTITY_MOST],
            model=(outcome.observed_model or "")[:IDENTITY_MOST],
            provider=provider.name,
        )
        log = (outcome.answer or "").encode()
        record = store_review(desk, item.id, reviewer, findings, row=runner_journal.REVIEW, log=log)
    return Reviewed(record, tuple(_warnings(outcome, order.model)))


def _bound(order: ReviewOrder, site: Site) -> Provider:
    """The adapter, bound to its program."""
    adapter = REVIEWERS.get(order.provider)
    if adapter is None:
        raise _refused(CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE, "No adapter of this name holds read calls.")
    program = order.program or find_tool(order.provider, site.around)
    if program is None:
        raise _refused(CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE, f"There is no {order.provider} on PATH.")
    try:
        return adapter.at(program, around=site.around)
    except (ExecutableError, ProviderError) as error:
        raise _refused(CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE, str(error)) from error


def _session(desk: Desk, item: ResolvedReview, provider: Provider, order: ReviewOrder) -> CallOutcome:
    """One session over a fresh worktree, which must look afterwards as it was made."""
    site, situation = desk.site, desk.situation
    with candidate_worktree(site.git, situation.head, site.around) as worktree:
        skill = _copy_skill(situation.policy, item.skill, worktree.session.data / "skill", site.around)
        prompt = render(skill, situation.base, situation.head)
        if len(prompt.encode()) > PROMPT_BYTES:
            raise _refused(CloseoutCode.REVIEW_PROMPT_TOO_LARGE)
        try:
            call = ReadCall(prompt, worktree.path, order.model, order.timeout_seconds, ANSWER_SCHEMA)
        except ProviderError as error:
            raise UsageRefused(str(error)) from error
        place = desk.place(item.id)
        about = {**desk.about(place), "provider": provider.name, "model": order.model}
        desk.journal.note(Entry(STARTED, about))
        outcome = provider.read(call, around=site.around)
        if worktree.dirty(ignored=True) or worktree.head_moved():
            raise _refused(CloseoutCode.REVIEW_WORKTREE_CHANGED)
    return outcome


def _copy_skill(policy: EffectivePolicy, skill: str, place: Path, around: Surroundings) -> Path:
    """A private copy of a skill's folder, from the bytes that the policy digest is over; its SKILL.md."""
    folder = skill.removesuffix(SKILL_FILE)
    try:
        with PrivateRoot.create(place, RootKind.REPO, around=around, checkout=None) as root:
            for path, data in policy.files.items():
                if path.startswith(folder):
                    _publish(root, path.removeprefix(folder).split("/"), data)
    except EvidenceError as error:
        raise _refused(CloseoutCode.REVIEW_FAILED, f"The skill cannot be copied: {error}") from error
    return place / SKILL_FILE


def _publish(root: PrivateRoot, segments: list[str], data: bytes) -> None:
    *folders, name = segments
    if not folders:
        root.publish(name, data)
        return
    with root.child(*folders, create=True) as folder:
        folder.publish(name, data)


def _findings(outcome: CallOutcome, provider: Provider) -> tuple[Finding, ...]:
    code = failure_of(outcome)
    if code is not None:
        raise _refused(code)
    try:
        return findings_of(outcome.answer or "", json_fence=provider.json_fence)
    except RecordError as error:
        raise _refused(CloseoutCode.REVIEW_ANSWER_INVALID, f"{error}. Repeat the command.") from None


def failure_of(outcome: CallOutcome) -> CloseoutCode | None:
    """The code for how a session ended; `None` when it gave an answer (providers.md, section 1)."""
    if outcome.ending is Ending.SUCCESS:
        return None
    if outcome.ending is Ending.PROVIDER_ERROR:
        passing = outcome.error_kind in _PASSING
        return CloseoutCode.REVIEW_FAILED if passing else CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE
    return _ENDINGS.get(outcome.ending, CloseoutCode.REVIEW_FAILED)


def _warnings(outcome: CallOutcome, model: str) -> list[Notice]:
    unobserved = [
        what
        for what, seen in (("session", outcome.session_id), ("model", outcome.observed_model))
        if not seen
    ]
    warnings = []
    if unobserved:
        told = f"the provider did not tell the reviewer's {' and '.join(unobserved)}; recorded as empty"
        warnings.append(Notice(code=WarningCode.REVIEWER_IDENTITY_UNOBSERVED, message=told))
    if outcome.observed_model not in (None, model):
        told = "another model than the one asked for answered; the record holds the one that did"
        warnings.append(Notice(code=WarningCode.REVIEWER_MODEL_DIFFERS, message=told))
    return warnings


def _refused(code: CloseoutCode, advice: str = "") -> CloseoutError:
    return CloseoutError(code, code.value, advice or _ADVICE[code])
