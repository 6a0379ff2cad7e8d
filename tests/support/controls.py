"""Candidates, an owner's texts and a selection made of them, for tests of the active control."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from skill_effectiveness.controls.candidates import freeze_candidate, freeze_reference
from skill_effectiveness.controls.chain import Request
from skill_effectiveness.controls.documents import (
    Brief,
    Candidate,
    Constraints,
    Decision,
    OwnerReference,
    Rubric,
    ScopeContents,
    SelectorInput,
)
from skill_effectiveness.controls.steps import finalize_root, measure_root, prepare_root
from skill_effectiveness.evidence.documents import validate

if TYPE_CHECKING:
    from skill_effectiveness.controls.registry import PairRegistry
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.document import FrozenModel

BRIEF: dict[str, Any] = {
    "schema_version": 1,
    "task_families": ["implementation", "review"],
    "instruction": "Write guidance on careful work for both scopes.",
}
RUBRIC: dict[str, Any] = {
    "schema_version": 1,
    "criteria": ["readability", "actionability", "information_density"],
}
CONSTRAINTS: dict[str, Any] = {
    "schema_version": 1,
    "scopes": ["subagent", "main"],
    "minimum_characters_per_scope": 10,
    "maximum_characters_per_scope": 2000,
}

# Two paragraphs, three instructions, sixteen tokens each (controls.md section 5, known answer).
TEXTS = {
    "one": "- Inspect scope carefully.\n- State assumptions clearly.\n\n- Verify evidence before reporting.",
    "one-main": "- Read files first.\n- Name limits early.\n\n- Check results before answering.",
    "two": "- Plan small steps.\n- Keep notes short.\n\n- Test each change twice.",
    "two-main": "- Ask few questions.\n- Save work often.\n\n- Compare both versions again.",
    "owner": "- Load skills first.\n- Follow rules strictly.\n\n- Report every gap found.",
    "owner-main": "- Route tasks well.\n- Guard context size.\n\n- Finish with proofs attached.",
}


def rehashed(document: dict[str, Any], field: str) -> dict[str, Any]:
    """An edited document under an own hash that fits, computed without the product (ASCII keys, no float)."""
    rest = {name: value for name, value in document.items() if name != field}
    return rest | {field: plain_hash(rest)}


def plain_hash(value: object) -> str:
    """The object digest of plain JSON without floats, computed without the product."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def text_hash(text: str) -> str:
    """The digest of a text, computed without the product."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def plain(document: FrozenModel) -> dict[str, Any]:
    """A document as plain JSON values."""
    found: dict[str, Any] = document.model_dump(mode="json")
    return found


def contents(who: str) -> ScopeContents:
    """The texts of `one`, `two` or `owner`."""
    return ScopeContents(subagent=TEXTS[who], main=TEXTS[f"{who}-main"])


def brief(**changed: Any) -> Brief:  # noqa: ANN401 - any field
    """The brief, some of it changed."""
    return validate(Brief, BRIEF | changed)


def constraints(**changed: Any) -> Constraints:  # noqa: ANN401 - any field
    """The constraints, some changed."""
    return validate(Constraints, CONSTRAINTS | changed)


def candidate(  # each part may be another one
    who: str,
    *,
    texts: ScopeContents | None = None,
    asked: Brief | None = None,
    commitment: bytes | None = None,
    attestation: bytes | None = None,
) -> Candidate:
    """The frozen candidate of `one` or `two`."""
    return freeze_candidate(
        asked or brief(),
        texts or contents(who),
        commitment=commitment or f"I, {who}, wrote it.".encode(),
        attestation=attestation or f"I, {who}, saw nothing else.".encode(),
    )


def reference(texts: ScopeContents | None = None) -> OwnerReference:
    """The frozen texts of the owner."""
    return freeze_reference(texts or contents("owner"))


def request(
    *candidates: Candidate, owner: OwnerReference | None = None, asked: Brief | None = None
) -> Request:
    """A preparation of these candidates; of `one` and `two` when none is given."""
    return Request(
        asked or brief(),
        validate(Rubric, RUBRIC),
        constraints(),
        owner or reference(),
        candidates or (candidate("one"), candidate("two")),
    )


def decision(shown: SelectorInput, *, place: int = 0, **changed: Any) -> Decision:  # noqa: ANN401 - any field
    """The selector's choice of the candidate at a place."""
    fields: dict[str, Any] = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-active-control-decision-v1",
        "selector_input_hash": shown.selector_input_hash,
        "rubric_hash": shown.rubric_hash,
        "selected_opaque_id": shown.opaque_order[place],
    }
    return validate(Decision, fields | changed)


def selected_root(root: PrivateRoot, *, owner: OwnerReference | None = None) -> None:
    """Prepare a root and finalize it."""
    prepared = prepare_root(root, request(owner=owner))
    finalize_root(root, decision(prepared.selector_input))


def measured_root(root: PrivateRoot, registry: PairRegistry | None = None) -> None:
    """Prepare, finalize and measure a root; it passes."""
    selected_root(root)
    assert measure_root(root, reference(), registry).status == "pass"
