"""The records a claim is built from, as rows of the journal hold them, and the policy beside it.

Source: outcome.md, sections 7, 8 and 11.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from skill_effectiveness.acceptance.outcome.words import (
    CLOSER,
    COMMIT,
    FAILURES,
    PUBLIC,
    REPOSITORY,
    RESULTS,
    Actor,
    AttemptState,
    CheckStatus,
    Family,
    IssueState,
)
from skill_effectiveness.evidence.documents import One, RuleBroken
from skill_effectiveness.evidence.strict import LARGEST_INTEGER

_CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)

Commit = Annotated[str, Field(pattern=COMMIT)]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Repository = Annotated[str, Field(pattern=REPOSITORY, max_length=200)]
Number = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
AttemptId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
EdgeId = Annotated[str, Field(pattern=r"^edge-[0-9a-f]{24}$")]
Principal = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}:\S[^\x00-\x1f\x7f]{0,159}$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Result = Annotated[str, Field(min_length=1, max_length=40)]


CITED_MOST: Final = 1_000
"""Criteria that one claim can cite evidence for."""


class IssueKey(NamedTuple):
    """Which issue."""

    repository: str
    number: int


class _OfIssue(BaseModel):
    """A record that is about one issue."""

    model_config = _CLOSED
    repository: Repository
    issue_number: Number

    @property
    def issue(self) -> IssueKey:
        """Which issue."""
        return IssueKey(self.repository, self.issue_number)


class IssueRecord(_OfIssue):
    """An issue as it was read, with the digest of its body."""

    source: Literal["file", "gh"]
    # As long as the forge takes; a criterion is no longer than the body it stands in.
    body: Annotated[str, Field(max_length=65_536)]
    body_digest: Digest
    state: IssueState
    state_reason: Annotated[str, Field(max_length=40)]


class Attempt(_OfIssue):
    """One `forge_assignments` row: who was asked to do what, and how far that is.

    Attributes:
        attempt_id: of whoever started the agent.
        actor: who does the work.
        principal: who asked for it, `type:id`; `None` is unknown.
        budget: what it was given; `None` is unknown.
        state: how far it is.
        commit: where it ended; `None` where there is none.
        session: of the agent; `None` is unknown.
        source: who says so: a person, or the events of a loop.
    """

    attempt_id: AttemptId
    actor: Actor
    principal: Principal | None
    budget: dict[str, JsonValue] | None
    state: AttemptState
    commit: Commit | None
    session: Name | None
    source: Literal["manual", "closedloop"]

    @model_validator(mode="after")
    def _nobody_is_the_closer(self) -> Attempt:
        if self.principal is not None and self.principal.strip() == CLOSER:
            raise RuleBroken("This name belongs to the program that closes issues; name who asked.")
        return self


class ClosingReference(_OfIssue):
    """One `issue_closing_references` row: a commit names the issue; who closed it by that, if anybody."""

    commit: Commit
    closed_by_user_id: Name | None

    @model_validator(mode="after")
    def _nobody_is_the_closer(self) -> ClosingReference:
        if self.closed_by_user_id is not None and self.closed_by_user_id.strip() == CLOSER:
            raise RuleBroken("This name belongs to the program that closes issues; name the person.")
        return self


class CheckResult(BaseModel):
    """One `deployment_check_results` row: a verdict about named bytes.

    Attributes:
        repository: of the bytes.
        name: of the check.
        commit: that it was about.
        artifact_digest: of that commit's tree.
        status: what it came to.
        publisher: who says so; `None` is unknown.
        session: of a reviewer.
        evidence_digest: of the file that says so.
    """

    model_config = _CLOSED
    repository: Repository
    name: Annotated[str, Field(min_length=1, max_length=120)]
    commit: Commit
    artifact_digest: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{1,15}:[0-9a-f]{32,89}$")]
    status: CheckStatus
    publisher: Name | None
    session: Annotated[str, Field(min_length=1, max_length=256)] | None
    evidence_digest: Digest | None

    @property
    def falsifier(self) -> str:
        """What would have shown the claim wrong: this very check, failed."""
        return f"deployment_check_results:{self.name}@{self.artifact_digest}=failed"


class Edge(_OfIssue):
    """One `issue_evidence` row: a receipt that is about an issue at a commit.

    Attributes:
        edge_id: by which evidence cites it.
        commit: exactly.
        family: what kind of receipt.
        receipt: its reference.
        result: the receipt's own word; `None` for a push.
        environment: of a deployment that names one.
        check: of a qualification.
    """

    edge_id: EdgeId
    commit: Commit
    family: Family
    receipt: Name
    result: Result | None
    environment: Annotated[str, Field(min_length=1, max_length=120)] | None
    check: CheckResult | None

    @model_validator(mode="after")
    def _fits_its_family(self) -> Edge:
        known = self.result is None if self.family is Family.PUSH else self.result in RESULTS[self.family]
        if not known:
            raise RuleBroken("The result is no word of this family.")
        if (self.check is not None) is not (self.family is Family.QUALIFICATION):
            raise RuleBroken("A qualification has a check result, and nothing else has one.")
        if self.check is not None and (self.check.status.value, self.check.commit) != (
            self.result,
            self.commit,
        ):
            raise RuleBroken("The check is about another commit, or says something else, than the edge.")
        return self

    @property
    def contradicts(self) -> bool:
        """Whether it carries its family's word for failure."""
        return self.result in FAILURES[self.family]

    @property
    def said(self) -> str:
        """`family:result`."""
        return f"{self.family.value}:{self.result}"

    def rests_on(self, digests: frozenset[str]) -> bool:
        """Whether what its check says stands in one of these files."""
        return self.check is not None and self.check.evidence_digest in digests

    def qualifies(self, issue: IssueKey, commit: str) -> bool:
        """Whether it can satisfy a criterion of an issue at exactly this commit."""
        return (
            self.family is Family.QUALIFICATION
            and self.result == CheckStatus.SUCCEEDED.value
            and (self.issue, self.commit) == (issue, commit)
        )


class Cited(BaseModel):
    """Which edge satisfied which criterion, as the caller says."""

    model_config = _CLOSED
    criterion: Annotated[str, Field(max_length=65_536)]
    evidence_id: Annotated[str, Field(max_length=200)]


class Citations(BaseModel):
    """All that a caller gives; classes named against the own result can only make the verdict worse."""

    model_config = _CLOSED
    evidence: Annotated[tuple[Cited, ...], Field(max_length=CITED_MOST)]
    false_green_classes: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=100)
    ] = ()


class RepositoryPolicy(BaseModel):
    """One `repository_closure_policies` row; whatever it leaves out is off, private, nobody."""

    model_config = _CLOSED
    agents_enabled: bool = False
    verified_closing_enabled: bool = False
    visibility: Annotated[str, Field(max_length=40)] = "private"
    admitted_verifiers: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()

    @property
    def public(self) -> bool:
        """Whether everybody may see receipts; any other word than `public` is private."""
        return self.visibility == PUBLIC


class PolicyDocument(BaseModel):
    """`policy.json`."""

    model_config = _CLOSED
    schema_version: One
    repositories: dict[Repository, RepositoryPolicy]

    def of(self, repository: str) -> RepositoryPolicy:
        """The row of a repository; an absent one is off."""
        return self.repositories.get(repository, RepositoryPolicy())


NO_POLICY: Final = PolicyDocument(schema_version=1, repositories={})
