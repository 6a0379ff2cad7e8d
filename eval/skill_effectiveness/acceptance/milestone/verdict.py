"""V: the verdict of a round that gave one, and every attempt behind it.

Source: milestone.md, section 7, Merge. Code never improves an engine's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from skill_effectiveness.acceptance.milestone.findings import Finding, merge
from skill_effectiveness.acceptance.milestone.words import CLOSED, PassName, PassState, Word
from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.acceptance.milestone.answers import Answer


class AttemptRecord(BaseModel):
    """One attempt of a pass, as V and the row of a stop hold it."""

    model_config = CLOSED

    name: PassName
    attempt: int
    asked: int
    call: str
    profile: str
    state: PassState
    verdict: Word | None
    reason: str
    voided: bool
    model: str
    family: str
    observed_model: str
    commands: int | None
    tokens: int | None
    milliseconds: int
    unobserved_floors: tuple[str, ...]
    warnings: tuple[str, ...]


class EngineRecord(BaseModel):
    """Which engine judged a pass."""

    model_config = CLOSED

    profile: str
    family: str
    model: str
    observed_model: str
    unobserved_floors: tuple[str, ...]


class AuthorRecord(BaseModel):
    """Who wrote a part of the range, as far as it is known."""

    model_config = CLOSED

    source: str
    name: str
    model: str
    family: str


class NodeReceipt(BaseModel):
    """What was handed over about the executor of one node."""

    model_config = CLOSED

    node: str
    state: str
    sha256: str | None
    source_run: str | None


class Verdict(BaseModel):
    """V."""

    model_config = CLOSED

    word: Word
    findings: tuple[Finding, ...]
    engines: dict[PassName, EngineRecord]
    round: int
    milestone: str
    plan: str
    head: str
    base: str
    run: str
    author_families: tuple[str, ...]
    authors: tuple[AuthorRecord, ...]
    receipts: tuple[NodeReceipt, ...]
    passes: tuple[AttemptRecord, ...]
    carried: tuple[str, ...]
    follow_ups: tuple[str, ...]
    author_warnings: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """V as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def digest(self) -> str:
        """The canonical digest of V."""
        return digest_object(self.plain())

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that block."""
        return tuple(finding for finding in self.findings if finding.blocks)


class RoundIdentity(BaseModel):
    """What a round is about, and what it was handed."""

    model_config = CLOSED

    round: int
    milestone: str
    plan: str
    head: str
    base: str
    run: str
    authors: tuple[AuthorRecord, ...]
    receipts: tuple[NodeReceipt, ...]


def make_verdict(
    about: RoundIdentity, answers: Mapping[PassName, Answer], attempts: Sequence[AttemptRecord]
) -> Verdict:
    """The verdict of two valid answers."""
    findings = merge(answers[PassName.A].findings, answers[PassName.B].findings)
    said = all(answer.verdict is Word.VERIFIED for answer in answers.values())
    clean = not any(finding.blocks for finding in findings)
    carried = [finding for finding in findings if not finding.blocks]
    unknown = [author for author in about.authors if not author.model]
    families = sorted({author.family for author in about.authors if author.family})
    return Verdict(
        word=Word.VERIFIED if said and clean else Word.NEEDS_CHANGES,
        findings=findings,
        engines={name: _engine(name, attempts) for name in PassName},
        round=about.round,
        milestone=about.milestone,
        plan=about.plan,
        head=about.head,
        base=about.base,
        run=about.run,
        author_families=tuple(families),
        authors=about.authors,
        receipts=about.receipts,
        passes=tuple(attempts),
        carried=tuple(finding.id for finding in carried),
        follow_ups=tuple(finding.follow_up for finding in carried),
        author_warnings=tuple(f"author_model_unknown: {author.name}" for author in unknown),
    )


def _engine(name: PassName, attempts: Sequence[AttemptRecord]) -> EngineRecord:
    judged = next(each for each in reversed(attempts) if each.name is name and each.state is PassState.VALID)
    return EngineRecord(
        profile=judged.profile,
        family=judged.family,
        model=judged.model,
        observed_model=judged.observed_model,
        unobserved_floors=judged.unobserved_floors,
    )
