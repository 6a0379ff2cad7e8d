"""The decision document and how people see it.

Source: closeout.md, section 9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pydantic import Field

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.evaluation import verdict_of
from skill_effectiveness.acceptance.closeout.policy_models import ClosedModel, Edition, optional
from skill_effectiveness.acceptance.closeout.records import ATTEMPT_MOST
from skill_effectiveness.acceptance.closeout.words import (
    MESSAGE_MOST,
    NO_POLICY,
    RUNNER,
    SPEC_VERSION,
    PolicyFrom,
    State,
    Trust,
    Verdict,
    WarningCode,
)
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.acceptance.closeout.evaluation import ItemResult
    from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy
    from skill_effectiveness.acceptance.closeout.site import Request, Site
    from skill_effectiveness.evidence.strict import JsonValue

_COMMIT_OR_NONE: Final = r"^([0-9a-f]{40}|[0-9a-f]{64})?$"
_ELLIPSIS: Final = "…"


class CandidateIdentity(ClosedModel):
    """Who made the candidate, as the orchestrator said."""

    session: str
    model: str
    provider: str


class PolicyReference(ClosedModel):
    """Which policy was used: none at all, one, or (all null and not absent) one that did not load."""

    path: str | None
    digest: str | None = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    absent: bool


class DecidedItem(ClosedModel):
    """One requirement and its state; `attempt` names the record that decided, where there is one."""

    id: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    state: State
    message: str = Field(max_length=MESSAGE_MOST)
    attempt: int = Field(default=0, ge=1, le=ATTEMPT_MOST, json_schema_extra=optional)


class Notice(ClosedModel):
    """A warning: a closed code and a sentence."""

    code: WarningCode
    message: str = Field(max_length=MESSAGE_MOST)


class Options(ClosedModel):
    """How the decision was asked for, where that was not the default."""

    policyFrom: PolicyFrom  # noqa: N815 - the document's own spelling
    trust: Trust


class DecisionDocument(ClosedModel):
    """One decision. Members that do not apply are absent, never null, except those of `policy`."""

    specVersion: Edition  # noqa: N815 - the document's own spelling
    publisher: str = Field(pattern=rf"^runner:{RUNNER}@.{{1,64}}$")
    decision: Verdict
    gate: Literal["beforePR"]
    base: str = Field(pattern=_COMMIT_OR_NONE)
    head: str = Field(pattern=_COMMIT_OR_NONE)
    candidate: CandidateIdentity
    policy: PolicyReference
    items: tuple[DecidedItem, ...]
    warnings: tuple[Notice, ...]
    message: str = Field(default="", min_length=1, max_length=MESSAGE_MOST, json_schema_extra=optional)
    options: Options = Field(
        default=Options(policyFrom=PolicyFrom.WORKTREE, trust=Trust.PRODUCER), json_schema_extra=optional
    )


def shown(message: str) -> str:
    """A message as a document holds it: harmless on a terminal, and cut to the longest that is allowed."""
    plain = printable(message)
    return plain if len(plain) <= MESSAGE_MOST else plain[: MESSAGE_MOST - 1] + _ELLIPSIS


@dataclass(frozen=True, slots=True)
class Draft:
    """A decision as far as it is known: it grows until something blocks or everything is evaluated.

    Attributes:
        site: whose options and version it tells.
        request: what was asked.
        base: full id, empty while unresolved.
        head: likewise.
        policy: `None` while none has loaded.
        warnings: so far.
    """

    site: Site
    request: Request
    base: str = ""
    head: str = ""
    policy: EffectivePolicy | None = None
    warnings: tuple[Notice, ...] = ()

    def at(self, base: str, head: str) -> Draft:
        """With commits."""
        return replace(self, base=base, head=head)

    def under(self, policy: EffectivePolicy | None) -> Draft:
        """With a policy."""
        return replace(self, policy=policy)

    def warned(self, warnings: tuple[Notice, ...]) -> Draft:
        """With warnings."""
        return replace(self, warnings=warnings)

    def blocked(self, error: CloseoutError) -> DecisionDocument:
        """The document of a decision that is blocked as a whole."""
        return self._document(Verdict.BLOCKED, message=shown(error.message))

    def decided(self, results: Sequence[ItemResult]) -> DecisionDocument:
        """The document of an evaluation."""
        items = tuple(map(_item, results))
        absent = self.policy is not None and self.policy.absent
        message = {"message": NO_POLICY} if absent else {}
        return self._document(verdict_of(results), items=items, **message)

    def _document(self, decision: Verdict, **members: Any) -> DecisionDocument:  # noqa: ANN401 - members of the model
        site, candidate, policy = self.site, self.request.candidate, self.policy
        if (site.policy_from, site.trust) != (PolicyFrom.WORKTREE, Trust.PRODUCER):
            members["options"] = Options(policyFrom=site.policy_from, trust=site.trust)
        return DecisionDocument(
            specVersion=SPEC_VERSION,
            publisher=f"runner:{RUNNER}@{site.version}",
            decision=decision,
            gate="beforePR",
            base=self.base,
            head=self.head,
            candidate=CandidateIdentity(
                session=candidate.session, model=candidate.model, provider=candidate.provider
            ),
            policy=PolicyReference(
                path=policy.path if policy else None,
                digest=policy.digest if policy else None,
                absent=policy.absent if policy else False,
            ),
            warnings=self.warnings,
            **{"items": (), **members},
        )


def _item(result: ItemResult) -> DecidedItem:
    attempt = {} if result.attempt is None else {"attempt": result.attempt}
    return DecidedItem(
        id=result.id, kind=result.kind, state=result.state, message=shown(result.message), **attempt
    )


def to_json(document: DecisionDocument) -> dict[str, JsonValue]:
    """The document as plain values, held against its own schema once more.

    Raises:
        CloseoutError: `decision_misfit`.
    """
    value = cast("dict[str, JsonValue]", document.model_dump(mode="json", exclude_unset=True))
    try:
        validate(DecisionDocument, value)
    except EvidenceError:
        raise CloseoutError(
            CloseoutCode.DECISION_MISFIT,
            "the decision does not fit its own schema",
            "This is a defect of the program; nothing was accepted.",
        ) from None
    return value


def text_form(document: DecisionDocument) -> Iterator[str]:
    """The lines for people."""
    yield f"{document.decision} {document.gate}"
    yield f"base {document.base or '-'}"
    yield f"head {document.head or '-'}"
    yield f"policy {document.policy.digest or 'none'}"
    if document.message:
        yield document.message
    if document.items:
        yield ""
    for item in document.items:
        yield f"{item.id}  {item.state}  {item.message}"
