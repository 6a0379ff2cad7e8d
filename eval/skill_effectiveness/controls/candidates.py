"""Freezing candidates and owner references, and what two candidates must be to oppose each other.

Source: controls.md sections 1 and 4. Pure: whoever calls has read the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.controls.documents import (
    LONGEST_TEXT,
    Brief,
    Candidate,
    Constraints,
    GenerationEvidence,
    OwnerReference,
    ScopeContents,
    sealed,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.reading import readings, reads_alike
from skill_effectiveness.controls.reserved_words import reserved_words
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.protocol.registries import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence


def freeze_candidate(
    brief: Brief, contents: ScopeContents, *, commitment: bytes, attestation: bytes
) -> Candidate:
    """One author's texts with digests of what the author declared.

    Args:
        brief: what was asked for.
        contents: what was written.
        commitment: the author's declaration of authorship; only its digest is kept.
        attestation: the author's declaration of independence; only its digest is kept.

    Raises:
        ControlError: `reserved_word`, also for the digest of a declaration; or `declaration_empty`.
    """
    refuse_reserved_words(brief.instruction, "brief#/instruction")
    for scope in Scope:
        refuse_reserved_words(contents.of(scope), f"candidate#/scope_contents/{scope}")
    for name, declaration in (("commitment", commitment), ("attestation", attestation)):
        if not declaration.strip():
            raise ControlError(
                ControlCode.DECLARATION_EMPTY, name, "it says nothing; have the author write it."
            )
    evidence = GenerationEvidence(
        source_kind="human-author",
        author_commitment_hash=digest_bytes(commitment),
        independence_attestation_hash=digest_bytes(attestation),
        input_hash=digest_object(brief.model_dump(mode="json")),
        output_hash=digest_object(contents.model_dump(mode="json")),
    )
    candidate = sealed(
        Candidate,
        {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-active-control-candidate-v1",
            "brief_hash": evidence.input_hash,
            "scope_contents": contents,
            "scope_hashes": contents.hashes(),
            "generation_evidence": evidence,
        },
    )
    for scope in Scope:
        _refuse_digests(contents.of(scope), f"candidate#/scope_contents/{scope}", [candidate])
    return candidate


def scope_contents(subagent: bytes, main: bytes, whose: str) -> ScopeContents:
    """The texts of both scopes, as they were written, line ends included.

    Args:
        subagent: bytes of the text for subagents.
        main: bytes of the text for the main agent.
        whose: how errors call them.

    Raises:
        ControlError: `document_invalid`: a text is empty, too long or not UTF-8.
    """
    texts: dict[str, str] = {}
    for scope, data in ((Scope.SUBAGENT, subagent), (Scope.MAIN, main)):
        where = f"{whose}, the text for the scope {scope}"
        try:
            texts[scope.value] = data.decode("utf-8")
        except UnicodeDecodeError as error:
            sentence = f"byte {error.start} is not UTF-8; save the text as UTF-8."
            raise ControlError(ControlCode.DOCUMENT_INVALID, where, sentence) from error
        if not 1 <= len(texts[scope.value]) <= LONGEST_TEXT:
            raise ControlError(
                ControlCode.DOCUMENT_INVALID,
                where,
                f"it has {len(texts[scope.value])} characters; 1 to {LONGEST_TEXT} are taken.",
            )
    return validate(ScopeContents, texts)


def freeze_reference(contents: ScopeContents) -> OwnerReference:
    """The owner's texts, to be measured against."""
    return sealed(
        OwnerReference,
        {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-active-control-owner-reference-v1",
            "scope_contents": contents,
            "scope_hashes": contents.hashes(),
        },
    )


def check_candidates(brief: Brief, constraints: Constraints, candidates: Sequence[Candidate]) -> None:
    """Demand exactly two candidates that may oppose each other.

    Raises:
        ControlError: `candidates_unfit`, `length_out_of_bounds` or `reserved_word`, naming the rule.
    """
    if len(candidates) != 2:  # noqa: PLR2004 - by two authors
        raise _unfit(f"exactly two candidates are needed, and {len(candidates)} were given.")
    one, other = candidates
    if {one.brief_hash, other.brief_hash} != {digest_object(brief.model_dump(mode="json"))}:
        raise _unfit("both candidates must have been written for this brief.")
    ours, theirs = one.generation_evidence, other.generation_evidence
    if ours.author_commitment_hash == theirs.author_commitment_hash:
        raise _unfit("both candidates carry one author's commitment; two authors are needed.")
    if ours.independence_attestation_hash == theirs.independence_attestation_hash:
        raise _unfit("both candidates carry one attestation; each author attests for themselves.")
    for scope in Scope:
        if reads_alike(one.scope_contents.of(scope), other.scope_contents.of(scope)):
            raise _unfit(f"the two texts for the scope {scope} are the same, gaps and line ends apart.")
    refuse_reserved_words(brief.instruction, "brief#/instruction")
    _refuse_digests(brief.instruction, "brief#/instruction", candidates)
    for number, candidate in enumerate(candidates, start=1):
        for scope in Scope:
            where = f"candidate {number}#/scope_contents/{scope}"
            _check_length(candidate.scope_contents.of(scope), constraints, where)
            refuse_reserved_words(candidate.scope_contents.of(scope), where)
            _refuse_digests(candidate.scope_contents.of(scope), where, candidates)


def refuse_reserved_words(text: str, where: str) -> None:
    """Demand a text without a reserved word.

    Raises:
        ControlError: `reserved_word`, with scope, line, column and word of the first.
    """
    for found in reserved_words(text):
        raise ControlError(
            ControlCode.RESERVED_WORD,
            where,
            f"line {found.line}, column {found.column} holds the reserved word {found.word!r}, which would "
            "tell the selector what it must not know; have the author change the text.",
        )


def _refuse_digests(text: str, where: str, candidates: Sequence[Candidate]) -> None:
    """Demand a text without a digest that names a candidate or what its author declared.

    Whoever published a declaration, or its digest, would be known by it.
    """
    read = "\n".join(letters for line in text.split("\n") for letters, _ in readings(line))
    for candidate in candidates:
        declared = candidate.generation_evidence
        for digest in (
            declared.author_commitment_hash,
            declared.independence_attestation_hash,
            declared.output_hash,
            candidate.package_hash,
        ):
            if digest.removeprefix("sha256:") in read:
                raise ControlError(
                    ControlCode.RESERVED_WORD,
                    where,
                    "it holds the digest of a candidate or of an author's declaration, which would tell the "
                    "selector what it must not know; have the author change the text.",
                )


def _check_length(text: str, constraints: Constraints, where: str) -> None:
    least, greatest = constraints.minimum_characters_per_scope, constraints.maximum_characters_per_scope
    if not least <= len(text) <= greatest:
        raise ControlError(
            ControlCode.LENGTH_OUT_OF_BOUNDS,
            where,
            f"{len(text)} characters; {least} to {greatest} are allowed. Have the author change the text.",
        )


def _unfit(sentence: str) -> ControlError:
    return ControlError(ControlCode.CANDIDATES_UNFIT, "candidates", sentence)
