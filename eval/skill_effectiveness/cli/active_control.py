"""`run.py active-control-…`: nine commands from two candidates to a declared matched-call contract.

Source: controls.md, section 2; what each step means is in `controls.steps`. Brief, rubric and constraints are
ordinary files; candidates, references, decisions, declarations and every artifact are private ones: 0600,
outside the checkout, no links.

| exit | meaning |
|---|---|
| 0 | done; for `measure`: within the tolerance |
| 1 | measured, and outside the tolerance |
| 2 | refused |
| 3 | the matched-call contract is declared; nothing was observed and no gate is satisfied |
| 4 | a declared contract is what its documents give; likewise |

An unforeseen end of a step leaves its crash file in the state folder: the folder of a selection holds its own
files alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from skill_effectiveness.cli import controller_paths, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.controls import candidates as judgement
from skill_effectiveness.controls import chain, steps
from skill_effectiveness.controls.documents import (
    EVIDENCE_FILES,
    MEASUREMENT_FILE,
    SELECTION_FILE,
    SELECTOR_INPUT_FILE,
    Brief,
    Candidate,
    Constraints,
    Decision,
    MatchedCallEvidence,
    Measurement,
    OwnerReference,
    Rubric,
    Selection,
    line_of,
    read_control_document,
)
from skill_effectiveness.controls.matched_call import check_evidence
from skill_effectiveness.controls.registry import PairRegistry
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from skill_effectiveness.protocol.registries import Scope  # noqa: TC001 - typer evaluates it

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.document import FrozenModel

CANDIDATE_FILE: Final = "active-control-candidate.json"
REFERENCE_FILE: Final = "owner-reference.json"
PUBLIC_LIMIT: Final = 16_777_216
"""Bytes; a brief of a million code points is smaller, however it is escaped."""

DocumentT = TypeVar("DocumentT", bound="FrozenModel")


class ControlExit(IntEnum):
    """Successes that must not look like a satisfied gate to whoever reads exit codes alone."""

    DECLARED = 3
    DECLARATION_VALID = 4


BriefFile = Annotated[Path, typer.Option("--brief", help="What both authors were asked to write.")]
SubagentText = Annotated[Path, typer.Option("--subagent", help="Private text for subagents.")]
MainText = Annotated[Path, typer.Option("--main", help="Private text for the main agent.")]
NewFolder = Annotated[Path, typer.Option("--out", help="Private folder to write in.")]
Folder = Annotated[Path, typer.Option("--out", help="Private folder of this selection.")]
SelectionFile = Annotated[Path, typer.Option("--selection", help="The sealed selection.")]
MeasurementFile = Annotated[Path, typer.Option("--measurement", help="Its owner-relative measurement.")]
ReferenceFile = Annotated[Path, typer.Option("--owner-reference", help="The frozen owner reference.")]
Registry = Annotated[
    Path | None,
    typer.Option("--registry", help="Private folder that remembers every pair, so that each is drawn once."),
]


def freeze_candidate(  # one parameter per option is what a command line is
    *,
    brief: BriefFile,
    subagent: SubagentText,
    main: MainText,
    commitment: Annotated[
        Path, typer.Option(help="Private text: the author's declaration of authorship; its digest is kept.")
    ],
    attestation: Annotated[
        Path, typer.Option(help="Private text: the author's declaration of independence; likewise.")
    ],
    out: NewFolder,
) -> None:
    """Freeze one author's texts for both scopes, under hashes."""
    candidate = judgement.freeze_candidate(
        _public(Brief, brief),
        judgement.scope_contents(_private(subagent), _private(main), "candidate"),
        commitment=_private(commitment),
        attestation=_private(attestation),
    )
    values = {"execution_status": "candidate-frozen", "package_hash": candidate.package_hash}
    _show(values | {"candidate": _freeze(out, CANDIDATE_FILE, candidate)})


def freeze_owner_reference(*, subagent: SubagentText, main: MainText, out: NewFolder) -> None:
    """Freeze the owner's texts, which the choice will be measured against."""
    contents = judgement.scope_contents(_private(subagent), _private(main), "owner reference")
    reference = judgement.freeze_reference(contents)
    values = {"execution_status": "owner-reference-frozen", "reference_hash": reference.reference_hash}
    _show(values | {"owner_reference": _freeze(out, REFERENCE_FILE, reference)})


def prepare(  # one parameter per option is what a command line is
    *,
    brief: BriefFile,
    rubric: Annotated[Path, typer.Option(help="What the selector looks at.")],
    constraints: Annotated[Path, typer.Option(help="How long the texts may be.")],
    owner_reference: ReferenceFile,
    candidate: Annotated[list[Path], typer.Option(help="A frozen candidate; twice.")],
    out: Folder,
    registry: Registry = None,
) -> None:
    """Make what the selector will see, with opaque ids in a random order."""
    request = chain.Request(
        _public(Brief, brief),
        _public(Rubric, rubric),
        _public(Constraints, constraints),
        _handed(OwnerReference, owner_reference, "owner reference"),
        tuple(
            _handed(Candidate, path, f"candidate {number}") for number, path in enumerate(candidate, start=1)
        ),
    )
    # Before the folder is made: of candidates that do not fit nothing stays.
    judgement.check_candidates(request.brief, request.constraints, request.candidates)
    with _root(out, create=True) as root, _registry(registry, root) as pairs:
        found = steps.prepare_root(root, request, pairs)
    values = {
        "execution_status": "prepared",
        "selector_input_hash": found.selector_input.selector_input_hash,
        "selector_input": _place(out, SELECTOR_INPUT_FILE),
    }
    _show(values)


def finalize(
    *, out: Folder, decision: Annotated[Path, typer.Option(help="The selector's private decision.")]
) -> None:
    """Seal the selector's one decision."""
    decided = _handed(Decision, decision, "decision")
    with _root(out) as root:
        selection = steps.finalize_root(root, decided)
    values = {"execution_status": "finalized", "artifact_hash": selection.artifact_hash}
    _show(values | {"selection": _place(out, SELECTION_FILE)})


def verify(*, selection: SelectionFile) -> None:
    """Check a selection: every hash, and that it follows from its own parts."""
    found = _published(Selection, selection, "selection")
    chain.check_selection(found)
    _show(
        {
            "verification_status": "valid",
            "artifact_hash": found.artifact_hash,
            "selected_package_hash": found.selected_package_hash,
        }
    )


def measure(*, out: Folder, owner_reference: ReferenceFile, registry: Registry = None) -> int:
    """Compare the choice with the owner's texts in size and form; once, whatever comes out.

    Exit 0: within a tenth in every count. 1: measured, and not. 2: refused.
    """
    reference = _handed(OwnerReference, owner_reference, "owner reference")
    with _root(out) as root, _registry(registry, root) as pairs:
        measurement = steps.measure_root(root, reference, pairs)
    values = {
        "execution_status": f"measured-{measurement.status}",
        "measurement_hash": measurement.measurement_hash,
        "measurement": _place(out, MEASUREMENT_FILE),
    }
    _show(values)
    return ExitCode.DONE if measurement.status == "pass" else ExitCode.NOT_PASSED


def measure_verify(
    *, selection: SelectionFile, owner_reference: ReferenceFile, measurement: MeasurementFile
) -> None:
    """Check that a measurement, passed or failed, is the one these documents give."""
    reference = _handed(OwnerReference, owner_reference, "owner reference")
    named = _measured(selection, measurement)
    chain.check_measurement(named.selection, reference, named.measurement)
    values = {"verification_status": "valid", "measurement_hash": named.measurement.measurement_hash}
    _show(values)


def matched_call(  # one parameter per option is what a command line is
    *,
    out: Folder,
    selection: SelectionFile,
    measurement: MeasurementFile,
    owner_reference: ReferenceFile,
    scope: Annotated[Scope, typer.Option(help="Which of the two texts.")],
    active_bundle_id: Annotated[str, typer.Option(help="<selected opaque id>-<scope>.")],
    oracle_bundle_id: Annotated[str, typer.Option(help="oracle-owner-<scope>.")],
) -> int:
    """Declare the matched-call contract of one scope over seven fixtures; nothing is observed.

    Exit 3: declared, and the gate is not satisfied. 2: refused.
    """
    reference = _handed(OwnerReference, owner_reference, "owner reference")
    named = _measured(selection, measurement)
    with _root(out) as root:
        evidence = steps.declare_root(
            root, named, reference, scope, active=active_bundle_id, oracle=oracle_bundle_id
        )
    _show_unsatisfied(evidence, "execution_status", evidence.status, "created", EVIDENCE_FILES[scope])
    return ControlExit.DECLARED


def matched_call_verify(
    *,
    selection: SelectionFile,
    measurement: MeasurementFile,
    owner_reference: ReferenceFile,
    evidence: Annotated[Path, typer.Option(help="The matched-call evidence of one scope.")],
) -> int:
    """Check that a declared contract is the one these documents give.

    Exit 4: it is, and the gate is not satisfied. 2: refused.
    """
    reference = _handed(OwnerReference, owner_reference, "owner reference")
    named = _measured(selection, measurement)
    found = _published(MatchedCallEvidence, evidence, "evidence")
    check_evidence(named.selection, named.measurement, reference, found, evidence.name)
    status = "fixture-contract-valid-no-observation"
    _show_unsatisfied(found, "verification_status", status, "not-applicable-read-only", None)
    return ControlExit.DECLARATION_VALID


def _show_unsatisfied(
    evidence: MatchedCallEvidence, name: str, status: str, write_status: str, file: str | None
) -> None:
    values: dict[str, object] = {
        name: status,
        "artifact_write_status": write_status,
        **controller_paths.GATE,
        "observation_status": evidence.observation_status,
        "artifact_hash": evidence.artifact_hash,
    }
    # Its name only: where a controller keeps it is not for whoever reads these lines.
    _show(values if file is None else values | {"evidence": file})


def _show(values: dict[str, object] | dict[str, str]) -> None:
    screen.results(values, as_json=False)


def _place(out: Path, name: str) -> str:
    return str(absolute(out) / name)


def _root(path: Path, *, create: bool = False) -> PrivateRoot:
    reach = PrivateRoot.create if create else PrivateRoot.open
    return reach(absolute(path), RootKind.OUT, around=surroundings(), checkout=checkout())


def _freeze(out: Path, name: str, document: FrozenModel) -> str:
    with _root(out, create=True) as root:
        root.publish(name, line_of(document))
    return _place(out, name)


def _public(model: type[DocumentT], path: Path) -> DocumentT:
    data = read_public(surroundings().fs, absolute(path), PUBLIC_LIMIT)
    return read_control_document(model, data, model.__name__.lower())


def _private(path: Path) -> bytes:
    """A private file: 0600, ours, no link, in a folder that only we write in and that is in no checkout."""
    whole = absolute(path)
    with PrivateRoot.open(whole.parent, RootKind.STORE, around=surroundings(), checkout=checkout()) as folder:
        return folder.read(whole.name)


def _handed(model: type[DocumentT], path: Path, name: str) -> DocumentT:
    return read_control_document(model, _private(path), name)


def _published(model: type[DocumentT], path: Path, name: str) -> DocumentT:
    return read_control_document(model, _private(path), name, published=True)


def _measured(selection: Path, measurement: Path) -> steps.Measured:
    return steps.Measured(
        _published(Selection, selection, "selection"), _published(Measurement, measurement, "measurement")
    )


@contextmanager
def _registry(path: Path | None, root: PrivateRoot) -> Iterator[PairRegistry | None]:
    if path is None:
        yield None
        return
    around = surroundings()
    if controller_paths.resolved(absolute(path)).is_relative_to(root.path):
        told = "The registry lies in the folder of one selection; keep it in a folder of its own."
        raise Refusal(CommandCode.USAGE, told)
    with (
        _root(path, create=True) as folder,
        PrivateRoot.create(state_path(around), RootKind.STATE, around=around, checkout=checkout()) as state,
    ):
        yield PairRegistry(folder, state)
