"""`run.py gate`: judge the trials of one bundle (trials.md, section 9)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.named_files import naming
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.faults import (
    EvidenceError,
    FileCode,
    FileError,
    RootCode,
    RootError,
    StrictError,
)
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.row_files import RowFile
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.trials.gate_evidence import Evaluated, Expected, evaluate_bundle
from skill_effectiveness.trials.gate_result import result_json
from skill_effectiveness.trials.gate_words import FailureCode, GateStatus, NotEvaluated
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.store import TrialStore
from skill_effectiveness.trials.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from skill_effectiveness.calibration.figures import Share
    from skill_effectiveness.trials.gate_result import GateResult

RESULT: Final = "gate-result.json"
SUMMARY: Final = "verdict-summary.json"
MACHINE_ID: Final = "/etc/machine-id"
_FILE_LIMIT: Final = 67_108_864
_ID_LIMIT: Final = 4_096


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What stands on the command line; `store` and `config` may be absent."""

    bundle: Path | None
    tasks: Path | None
    manifests: Path | None
    trials: Path | None
    store: Path | None
    config: Path | None
    out: Path | None


def run_gate(options: GateOptions, *, as_json: bool) -> int:
    """Judge one bundle and write the verdict, and beside a terminal one its summary.

    Exit 0: pass. 1: fail, or not evaluated because the run is synthetic. 2: refused.
    """
    bundle, out = _needed(options.bundle, "--bundle"), _needed(options.out, "--out")
    around = surroundings()
    expected = _expected(options)
    inputs = load_inputs(around.fs, BankName.JUDGED)
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
        ExitStack() as stack,
    ):
        store = None
        if options.store is not None:
            # The gate reads trials; a store that was sealed, copied or moved stays as it is.
            opened = TrialStore.look(absolute(options.store), around=around, checkout=checkout())
            store = stack.enter_context(opened)
        # Nothing stale stays if the evaluation is refused.
        root.archive(RESULT, None)
        root.archive(SUMMARY, None)
        with _bundle(bundle) as folder:
            found = evaluate_bundle(folder, expected, inputs, store=store)
        _write(root, found)
    _show(found, as_json=as_json)
    return ExitCode.DONE if found.result.status is GateStatus.PASS else ExitCode.NOT_PASSED


def _bundle(path: Path) -> PrivateRoot:
    try:
        return PrivateRoot.open(absolute(path), RootKind.OUT, around=surroundings(), checkout=checkout())
    except RootError as error:
        if error.code is RootCode.ROOT_MISSING:
            sentence = "there is no bundle in that folder; write one, or name the folder that holds it."
            raise PilotError(PilotCode.BUNDLE_MISSING, "", sentence) from error
        raise


def _needed(path: Path | None, option: str) -> Path:
    if path is None:
        raise Refusal(CommandCode.USAGE, f"Missing option '{option}'. See --help.")
    return path


def _expected(options: GateOptions) -> Expected:
    return Expected(
        config=None if options.config is None else _document(options.config),
        tasks=_list(_needed(options.tasks, "--tasks"), "tasks"),
        manifests=_list(_needed(options.manifests, "--manifests"), "manifests"),
        trials=_rows(_needed(options.trials, "--trials")),
    )


def _document(path: Path) -> JsonValue:
    with naming(path):
        return read_json(read_public(surroundings().fs, absolute(path), _FILE_LIMIT), Profile.DOCUMENT)


def _list(path: Path, name: str) -> list[JsonValue]:
    value = _document(path)
    if not isinstance(value, list):
        raise PilotError(PilotCode.PLAN_INVALID, name, "the file holds one JSON array; write it so.")
    return value


def _rows(path: Path) -> Iterator[JsonValue]:
    """The rows of a JSONL file, as they are asked for."""
    file = RowFile(file_chunks(surroundings().fs, None, str(absolute(path)), path.name))
    for number, line in enumerate(file.lines(), start=1):
        try:
            yield read_json(line, Profile.ROW)
        except StrictError as error:
            raise PilotError(PilotCode.PLAN_INVALID, f"trials:{number}", str(error)) from error


def _write(root: PrivateRoot, found: Evaluated) -> None:
    summary = None if found.facts is None else dump_line(to_json(summarise(found.facts, _machine_id())))
    root.publish(RESULT, dump_line(result_json(found.result)))
    if summary is None:
        return
    try:
        root.publish(SUMMARY, summary)
    except EvidenceError:
        # Half of it would be taken for a verdict, and the command answers that there is none.
        root.remove(RESULT)
        raise


def _machine_id() -> str | None:
    """The operating system's id of this machine; None where it has none (machine-id(5))."""
    fs = surroundings().fs
    try:
        text = read_public(fs, absolute(MACHINE_ID), _ID_LIMIT).decode("ascii", "replace").strip()
    except FileError as error:
        if error.code in {
            FileCode.MISSING,
            FileCode.NOT_READABLE,
            FileCode.NOT_REGULAR,
            FileCode.FILE_SYMLINK,
        }:
            return None
        raise
    return text if text and text != "uninitialized" else None


def _show(found: Evaluated, *, as_json: bool) -> None:
    result = found.result
    _show_checks(result)
    tier = result.evidence_tier
    lists: dict[str, tuple[str, ...]] = {
        "failures": result.failures,
        "not_evaluated": tuple(check.value for check in result.not_evaluated_checks),
        "coverage_limitations": tuple(item.value for item in tier.coverage_limitations),
    }
    values: dict[str, object] = {
        "gate_status": result.status.value,
        "verdict_tier": "none" if tier.verdict_tier is None else tier.verdict_tier.value,
        "trials": result.metrics.trials,
        **{name: list(words) if as_json else ",".join(words) or "none" for name, words in lists.items()},
        "next_action": result.decision.next_action.value,
        "result": RESULT,
        "summary": "none" if found.facts is None else SUMMARY,
    }
    screen.results(values, as_json=as_json)


def _show_checks(result: GateResult) -> None:
    """A table for people: the figures, and every word that did not come out well."""
    metrics = result.metrics
    rows = [
        (arm, str(found.trials), *map(_share, (found.runner_completion, found.contamination)))
        for arm, found in metrics.arms.items()
    ]
    screen.table("arms", ("arm", "trials", "completed", "contaminated"), rows, stderr=True)
    failed = {text.split(":")[0] for text in result.failures}
    words = [(code.value, "failed") for code in FailureCode if code.value in failed]
    words += [
        (check.value, "not evaluated") for check in NotEvaluated if check in result.not_evaluated_checks
    ]
    words += [(warning.value, "warning") for warning in result.warnings]
    words += [(f"{claim} differs", str(times)) for claim, times in metrics.contradicted.items()]
    screen.table("checks", ("check", "outcome"), words or [("all", "passed")], stderr=True)


def _share(share: Share) -> str:
    return f"{share.part} of {share.whole}"
