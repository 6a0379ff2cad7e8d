"""Publishing an examination: the pair, whole or not at all, and the sheet of figures beside it (section 6).

Everything is derived from samples on disk, so a publication that was cut off is simply made again and comes
out the same. The caller holds the lock of the folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.binding import repeats_runner_contract
from skill_effectiveness.calibration.documents import (
    PAIR_NAMES,
    Declared,
    evidence_document,
    result_document,
)
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode, demand_seen
from skill_effectiveness.calibration.loader import LoadedCalibration, load_calibration
from skill_effectiveness.calibration.models import (
    UNKNOWN_COST,
    AttemptEnding,
    Binding,
    Observation,
    Sample,
    Usage,
    to_line,
)
from skill_effectiveness.calibration.sheet import MetricsSheet, ReviewerRecords, build_sheet
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, PairCode, PairError
from skill_effectiveness.evidence.pair import Member, pending_name, publish_pair
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.evidence.root import PrivateRoot


@dataclass(frozen=True, slots=True)
class Run:
    """One completed repeat: its sample, and how that was shown and answered."""

    sample: Sample
    observation: Observation


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt came to.

    Attributes:
        name: of its folder, and the id of its sample.
        run: the sample, in one attempt of each repeat.
        ending: how it ended without one; None as well when nobody lived to record it.
        called: whether its call was made, or may have been.
        session: digest of the provider's id of the session; None when it is not known.
    """

    name: str
    run: Run | None
    ending: AttemptEnding | None
    called: bool = True
    session: str | None = None


def publish_examination(
    out: PrivateRoot, binding: Binding, attempts: Sequence[Attempt], inputs: FrozenInputs
) -> LoadedCalibration:
    """Publish the pair of an examination, then its metrics sheet.

    A pair that is there already and says the same stays byte for byte; half of it, which only a kill leaves,
    is published again. The samples give one pair and no other, so a file that says anything else is not ours.

    Args:
        out: the folder of the examination; locked by the caller.
        binding: what it was opened for.
        attempts: all of them, in order; the completed ones are the runs.
        inputs: the frozen inputs.

    Raises:
        ExaminationRefused: `publication_blocked`, naming the file, which stays as it is;
            `publication_differs`.
        EvidenceError: a write failed; nothing canonical is there then, and the publication can be repeated.
    """
    names = PAIR_NAMES[binding.bank]
    members = pair_members(binding, attempts, inputs)
    _check_files(out, members, names.metrics)
    try:
        loaded = publish_pair(
            out, *members, load=lambda evidence, result: load_calibration(evidence, result, inputs=inputs)
        )
    except PairError as error:
        if error.code is PairCode.PAIR_UNSAFE:
            if isinstance(error.__cause__, EvidenceError):
                demand_seen(error.__cause__)
            raise _blocked(error) from error
        raise
    sheet = examination_sheet(loaded, binding, attempts, inputs)
    demand_same_keys(out, names.metrics, sheet)
    _write_sheet(out, names.metrics, to_line(sheet))
    return loaded


def demand_same_keys(out: PrivateRoot, name: str, derived: MetricsSheet) -> None:
    """Return only if the published sheet, where there is one, commits to the keys that lie there now.

    Raises:
        ExaminationRefused: `samples_invalid`: keys and observations were replaced together.
    """
    if commits_otherwise(out, name, derived):
        raise ExaminationRefused(
            RefusalCode.SAMPLES_INVALID,
            f"Nothing was counted: {name} commits to other orientation keys than those that lie beside the "
            "samples, so the samples were changed; start in a new folder.",
            field=name,
        )


def commits_otherwise(folder: PrivateRoot, name: str, derived: MetricsSheet) -> bool:
    """Whether a published sheet of the same pair commits to other orientation keys than the derived one.

    A sheet that is absent or malformed commits to nothing: it may be rebuilt at will.

    Raises:
        FileError: `io_error`: it could not be read for a reason that may pass.
    """
    try:
        held = parse(MetricsSheet, folder.read(name), Profile.DOCUMENT)
    except EvidenceError as error:
        demand_seen(error)
        return False
    if held.calibration_evidence_hash != derived.calibration_evidence_hash:
        return False
    keys, wanted = ([each.orientation_key_hashes for each in sheet.reviewers] for sheet in (held, derived))
    return keys != wanted


def pair_members(
    binding: Binding, attempts: Sequence[Attempt], inputs: FrozenInputs
) -> tuple[Member, Member]:
    """The two documents that the samples of an examination give; at least one attempt has its sample."""
    names = PAIR_NAMES[binding.bank]
    samples = [attempt.run.sample for attempt in attempts if attempt.run]
    evidence = evidence_document(inputs, binding.reviewer_family, [sample.judgments for sample in samples])
    keys = sorted({key for sample in samples for key in sample.provider_environment_keys})
    declared = Declared(
        provider=binding.provider,
        provider_cli_version=binding.provider_cli_version,
        provider_executable_hash=binding.provider_executable_hash,
        provider_environment_keys=tuple(keys),
        model=binding.model,
        reviewer_family=binding.reviewer_family,
        runner_contract=repeats_runner_contract(binding.provider),
        runtime_manifest_hash=binding.runtime_manifest_hash,
        requested_session_mode=samples[0].requested_session_mode,
        tool_access=samples[0].tool_access,
        provider_binding=binding.provider_binding,
        simulation=binding.simulation,
    )
    result = result_document(declared, evidence, inputs)
    return Member(names.evidence, to_line(evidence)), Member(names.result, to_line(result))


def _check_files(out: PrivateRoot, members: tuple[Member, Member], sheet: str) -> None:
    """Whatever has one of the names must be ours to overwrite, or say the same already."""
    _found(out, sheet)
    found = {
        name: _found(out, name) for member in members for name in (member.name, pending_name(member.name))
    }
    for member in members:
        if found[member.name] not in (None, member.data):
            raise ExaminationRefused(
                RefusalCode.PUBLICATION_DIFFERS,
                f"{member.name} is published already and is not what the samples give; use a new folder.",
                field=member.name,
            )
    if any(found[member.name] is None for member in members):
        return
    for member in members:
        staged = pending_name(member.name)
        if found[staged] not in (None, member.data):
            raise ExaminationRefused(
                RefusalCode.PUBLICATION_BLOCKED,
                f"{staged} is not what the samples give, but the pair is complete; remove it, then resume.",
                field=staged,
            )


def _found(out: PrivateRoot, name: str) -> bytes | None:
    """The bytes under a name of the publication, None when it is free."""
    try:
        data = out.read(name)
        read_json(data, Profile.DOCUMENT)
    except EvidenceError as error:
        if error.code is FileCode.MISSING:
            return None
        demand_seen(error)
        raise _blocked(error, name) from error
    return data


def _blocked(error: EvidenceError, name: str | None = None) -> ExaminationRefused:
    fault = error.faults[0]
    field = name or fault.where
    return ExaminationRefused(
        RefusalCode.PUBLICATION_BLOCKED,
        f"{field} cannot be taken for a file of this publication and was left as it is ({fault.code}): "
        f"{fault.sentence} Repair or remove exactly it, then resume.",
        field=field,
    )


def examination_sheet(
    loaded: LoadedCalibration, binding: Binding, attempts: Sequence[Attempt], inputs: FrozenInputs
) -> MetricsSheet:
    """The figures; derived like the pair, and as often as wanted."""
    runs = [attempt.run for attempt in attempts if attempt.run]
    records = ReviewerRecords(
        family=binding.reviewer_family,
        runs=[[judgment.verdict for judgment in run.sample.judgments] for run in runs],
        seen=[run.observation.shown for run in runs],
        calls=[_cost(attempt) for attempt in attempts if attempt.called],
        attempts=len(attempts),
        orientation_key_hashes=[run.observation.orientation_key_hash for run in runs],
    )
    return build_sheet(
        inputs.bank,
        [records],
        evidence_hash=loaded.result.calibration_evidence_hash,
        synthetic=loaded.synthetic,
        policy=inputs.policy,
    )


def _cost(attempt: Attempt) -> Usage:
    if attempt.run is not None:
        return attempt.run.observation.usage
    return attempt.ending.usage if attempt.ending is not None else UNKNOWN_COST


def _write_sheet(out: PrivateRoot, name: str, data: bytes) -> None:
    """Write the sheet unless it stands there already."""
    if _found(out, name) != data:
        out.replace(name, data)
