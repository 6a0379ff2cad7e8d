"""What an examination is bound to, and the claim that makes its folder one-shot (calibration.md, section 7).

The claim is published first, the binding second, both before any call. Either alone is what a kill between
the two leaves, and a resume completes it; whatever else contradicts is refused and left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode, demand_seen
from skill_effectiveness.calibration.models import Binding, Claim, Record, to_line
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.root import PrivateRoot

SIMULATED: Final = "simulated"
"""The provider whose every record is synthetic; no other is."""

CLAIM: Final = ".reviewer-calibration.lock"
BINDING: Final = "reviewer-calibration-binding.json"
TOKEN_BYTES: Final = 32

RecordT = TypeVar("RecordT", bound=Record)


def sample_runner_contract(provider: str) -> str:
    """The contract under which one sample of a provider is taken."""
    return f"{provider}-cli-reviewer-calibration-single-sample-v1"


def repeats_runner_contract(provider: str) -> str:
    """The contract under which the pair of a multi-repeat examination is published."""
    return f"{provider}-cli-reviewer-calibration-v1"


def runner_hash(runner_contract: str, runtime_manifest_hash: str, provider_executable_hash: str) -> str:
    """What ran: the contract, our code and the provider's executable (calibration.md, section 4)."""
    return digest_object(
        {
            "runner_contract": runner_contract,
            "runtime_manifest_hash": runtime_manifest_hash,
            "provider_executable_hash": provider_executable_hash,
        }
    )


def differing_field(held: Binding, given: Binding) -> str | None:
    """The first field in which two bindings differ, a simulation's settings by name; None when equal."""
    for name in Binding.model_fields:
        before, now = getattr(held, name), getattr(given, name)
        if before == now:
            continue
        if isinstance(before, Record) and isinstance(now, Record):
            settings = type(before).model_fields
            inner = next(each for each in settings if getattr(before, each) != getattr(now, each))
            return f"{name}.{inner}"
        return name
    return None


def refuse_claimed(out: PrivateRoot) -> None:
    """Return only if nobody has claimed the folder.

    Raises:
        ExaminationRefused: `already_claimed`.
    """
    if out.exists(CLAIM) or out.exists(BINDING):
        raise ExaminationRefused(
            RefusalCode.ALREADY_CLAIMED,
            "The folder is already claimed by an examination; resume it, or start in a new folder.",
        )


def bind_folder(out: PrivateRoot, proposal: Mapping[str, Any], belongings: Iterable[str]) -> Binding:
    """Claim the folder for what is proposed, or take up the examination that it was claimed for.

    Args:
        out: the folder; locked by the caller.
        proposal: every field of `Binding` but its token.
        belongings: names that only an examination puts there.

    Returns:
        The binding as it lies in the folder.

    Raises:
        ExaminationRefused: `binding_differs`, naming the field; `claim_invalid` or `binding_invalid` when
            what lies there cannot be the beginning of one examination.
        EvidenceError: a write failed, or a read for a reason that may pass; the call can be repeated.
    """
    claim = _read(out, CLAIM, Claim, RefusalCode.CLAIM_INVALID)
    held = _read(out, BINDING, Binding, RefusalCode.BINDING_INVALID)
    if held is None:
        _refuse_orphans(out, claim, belongings)
        token = claim.claim_token if claim else out.around.entropy(TOKEN_BYTES).hex()
    else:
        token = held.claim_token
    wanted = Binding.model_validate({**proposal, "claim_token": token})
    if held is not None and (field := differing_field(held, wanted)):
        raise ExaminationRefused(
            RefusalCode.BINDING_DIFFERS,
            f"This folder was opened with another {field}; resume with the same, or start in a new folder.",
            field=field,
        )
    if claim is None:
        out.publish(CLAIM, to_line(Claim(claim_token=token)))
    elif claim.claim_token != token:
        raise ExaminationRefused(
            RefusalCode.CLAIM_INVALID,
            f"{CLAIM} is not the claim of this examination and was left as it is; start in a new folder.",
            field=CLAIM,
        )
    out.publish(BINDING, to_line(wanted))
    return wanted


def held_binding(out: PrivateRoot) -> Binding:
    """The binding of a claimed folder, which is only read.

    Raises:
        ExaminationRefused: `claim_invalid`, `binding_invalid`: absent ones included.
    """
    claim = _read(out, CLAIM, Claim, RefusalCode.CLAIM_INVALID)
    held = _read(out, BINDING, Binding, RefusalCode.BINDING_INVALID)
    if held is None:
        raise ExaminationRefused(
            RefusalCode.BINDING_INVALID,
            f"The folder holds no {BINDING}, so it is no folder of an examination; name one.",
            field=BINDING,
        )
    if claim is None or claim.claim_token != held.claim_token:
        raise ExaminationRefused(
            RefusalCode.CLAIM_INVALID,
            f"{CLAIM} is not the claim of this examination; the folder was changed and does not count.",
            field=CLAIM,
        )
    return held


def _refuse_orphans(out: PrivateRoot, claim: Claim | None, belongings: Iterable[str]) -> None:
    """Without a binding there was no call yet, so nothing that comes later can be there."""
    for name in belongings:
        if out.exists(name):
            missing, code = (
                (BINDING, RefusalCode.BINDING_INVALID) if claim else (CLAIM, RefusalCode.CLAIM_INVALID)
            )
            raise ExaminationRefused(
                code,
                f"The folder holds {name} but no {missing}, so nobody can say what it belongs to; "
                "start in a new folder.",
                field=missing,
            )


def _read(out: PrivateRoot, name: str, model: type[RecordT], code: RefusalCode) -> RecordT | None:
    """A record of the folder; None when it is absent."""
    try:
        return parse(model, out.read(name), Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        if error.code is FileCode.MISSING:
            return None
        demand_seen(error)
        raise ExaminationRefused(
            code,
            f"{name} cannot be believed and was left as it is ({error.code}); start in a new folder.",
            field=name,
        ) from error
