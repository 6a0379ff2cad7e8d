"""The seal over a plan and its commitments: `plan.dsse.json` (studies.md section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, unverified, verify
from skill_effectiveness.evidence.subjects import HeldSubjects
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.studies.errors import StudyCode, StudyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.seal import Verification
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.trials.allocation import Commitment

PLAN: Final = "plan.json"
COMMITMENTS: Final = "commitments.jsonl"
PLAN_SEAL: Final = "plan.dsse.json"
SEAL_CONTRACT: Final = "skill-effectiveness-study-plan-seal-v1"


class PlanPredicate(FrozenModel):
    """What is sealed beside the two files."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-plan-seal-v1"]
    plan_digest: DigestText
    commitments_hash: DigestText


_PREDICATES: Final = {PredicateType.PLAN: PlanPredicate}


def commitment_lines(published: Sequence[Commitment]) -> bytes:
    """The bytes of `commitments.jsonl`: one canonical line a slot, in the order of the slots."""
    return b"".join(dump_line({"slot": row.slot, "commitment": row.commitment}) for row in published)


def check_commitments(data: bytes, plan: StudyPlan) -> None:
    """Demand that the bytes of `commitments.jsonl` are those that a plan names.

    A plan names the digest of the rows as one list, whose canonical form is that of the lines with commas
    between them; so no line need be read. A line can end nowhere but at the end of a row, because each has to
    begin and end like one and there are as many as slots.

    Raises:
        StudyError: `plan_changed`: they are not those of the plan.
    """
    *lines, rest = data.split(b"\n")
    rows = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    if rest or not rows or len(lines) != plan.allocation.slots:
        raise _changed()
    if digest_bytes(b"[" + b",".join(lines) + b"]") != plan.allocation.commitments_hash:
        raise _changed()


def _changed() -> StudyError:
    sentence = "these are not the commitments of the plan; restore the study's folder, or plan anew."
    return StudyError(StudyCode.PLAN_CHANGED, "/allocation/commitments_hash", sentence)


def seal_plan(plan: StudyPlan, plan_file: bytes, commitments: bytes, key: Ed25519PrivateKey) -> bytes:
    """The bytes of `plan.dsse.json`; the same for the same plan and key.

    Args:
        plan: that is sealed.
        plan_file: bytes of `plan.json`.
        commitments: bytes of `commitments.jsonl`.
        key: signs.
    """
    predicate = PlanPredicate(
        schema_version=1,
        artifact_contract=SEAL_CONTRACT,
        plan_digest=plan.plan_digest,
        commitments_hash=plan.allocation.commitments_hash,
    )
    subjects = (Subject.of(COMMITMENTS, commitments), Subject.of(PLAN, plan_file))
    return sign(Statement(subjects, PredicateType.PLAN, to_json(predicate)), key)


def verify_plan_seal(
    envelope: bytes, keys: Sequence[Ed25519PublicKey], *, plan_file: bytes, commitments: bytes
) -> Verification:
    """Whether a trusted key sealed exactly these two files; the predicate is a `PlanPredicate`."""
    held = HeldSubjects({PLAN: plan_file, COMMITMENTS: commitments})
    return verify(envelope, keys, subjects=held, predicates=_PREDICATES)


def check_own_seal(envelope: bytes, plan: StudyPlan, plan_file: bytes, commitments: bytes) -> None:
    """Demand that a seal is over these files, whoever signed it: for the one who made it.

    Raises:
        StudyError: `plan_seal`.
    """
    sentence = "the seal is not over this plan and these commitments; restore the folder, or plan anew."
    try:
        statement, predicate = unverified(envelope, _PREDICATES)
    except EvidenceError as error:
        raise StudyError(StudyCode.PLAN_SEAL, PLAN_SEAL, sentence) from error
    expected = (Subject.of(COMMITMENTS, commitments), Subject.of(PLAN, plan_file))
    if (
        statement.subjects != expected
        or not isinstance(predicate, PlanPredicate)
        or predicate.plan_digest != plan.plan_digest
        or predicate.commitments_hash != plan.allocation.commitments_hash
    ):
        raise StudyError(StudyCode.PLAN_SEAL, PLAN_SEAL, sentence)
