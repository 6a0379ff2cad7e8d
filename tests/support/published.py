"""Published pairs of every variant, made once, and ways to tamper with a document."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.documents import Declared, evidence_document, result_document
from skill_effectiveness.calibration.models import BoundConfiguration, Judgment, Simulation, to_line
from skill_effectiveness.protocol.words import Verdict
from tests.support.examinations import INPUTS, MANIFEST, PROBES, Anything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.calibration.inputs import FrozenInputs

SIMULATION = Simulation(accuracy=1.0, position_bias=0.0, flakiness=0.0, refusal_rate=0.0, seed=7)

REAL = Declared(
    provider="codex",
    provider_cli_version="tool 1.2.3",
    provider_executable_hash="sha256:" + 64 * "e",
    provider_environment_keys=("HOME", "PATH"),
    model="model-1",
    reviewer_family="family-1",
    runner_contract="codex-cli-reviewer-calibration-v1",
    runtime_manifest_hash=MANIFEST,
    requested_session_mode="ephemeral",
    tool_access="read-only-observed-none",
)
BOUND = BoundConfiguration(
    binding_type="kimi-selected-config-v1",
    model_alias="alias-1",
    provider_id="loop",
    underlying_model="model-1",
    selected_config_hash="sha256:" + 64 * "c",
)
KIMI = Declared(
    provider="kimi",
    provider_cli_version="2.1.0",
    provider_executable_hash="sha256:" + 64 * "e",
    provider_environment_keys=("HOME", "PATH"),
    model="alias-1",
    reviewer_family="moonshot",
    runner_contract="kimi-cli-reviewer-calibration-v1",
    runtime_manifest_hash=MANIFEST,
    requested_session_mode="private-kimi-home-explicit-model-stream",
    tool_access="config-denied-stream-audited-detection-only",
    provider_binding=BOUND,
)
SIMULATED = Declared(
    provider="simulated",
    provider_cli_version="simulated-1",
    provider_executable_hash="sha256:" + 64 * "e",
    provider_environment_keys=(),
    model="sim-1",
    reviewer_family="simulated",
    runner_contract="simulated-cli-reviewer-calibration-v1",
    runtime_manifest_hash=MANIFEST,
    requested_session_mode="simulated",
    tool_access="none",
    simulation=SIMULATION,
)


def single(declared: Declared) -> Declared:
    """The same reviewer, by the door of single samples."""
    from dataclasses import replace  # noqa: PLC0415 - used here alone

    contract = f"{declared.provider}-cli-reviewer-calibration-single-sample-v1"
    return replace(declared, runner_contract=contract, sample_ids=("s-1", "s-2"))


@dataclass(frozen=True)
class Pair:
    """The bytes of a pair and what it is about."""

    evidence: bytes
    result: bytes
    inputs: FrozenInputs


def truthful(inputs: FrozenInputs) -> tuple[Judgment, ...]:
    """A run without a wrong answer."""
    rows = zip(inputs.bank.case_ids, inputs.bank.truth, strict=True)
    return tuple(Judgment(case_id=case_id, verdict=verdict) for case_id, verdict in rows)


def all_tie(inputs: FrozenInputs) -> tuple[Judgment, ...]:
    """A run that decides nothing."""
    return tuple(Judgment(case_id=case_id, verdict=Verdict.TIE) for case_id in inputs.bank.case_ids)


def pair(declared: Declared, inputs: FrozenInputs = INPUTS, *runs: tuple[Judgment, ...]) -> Pair:
    """A pair of this reviewer; two truthful runs unless others are given."""
    answered = evidence_document(inputs, declared.reviewer_family, runs or 2 * (truthful(inputs),))
    return Pair(to_line(answered), to_line(result_document(declared, answered, inputs)), inputs)


VARIANTS = {
    "real": pair(REAL),
    "single sample": pair(single(REAL)),
    "bound": pair(KIMI),
    "simulated": pair(SIMULATED),
    "failed": pair(REAL, INPUTS, truthful(INPUTS), all_tie(INPUTS), all_tie(INPUTS)),
    "probes": pair(REAL, PROBES),
    "simulated probes": pair(SIMULATED, PROBES),
}


def leaves(value: Anything, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value in a document that holds no other."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for key, below in inner:
        found = True
        yield from leaves(below, (*path, key))
    if not found:
        yield path


def nodes(value: Anything, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every member and element of a document."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from nodes(below, (*path, key))


def at(document: Anything, path: tuple[str | int, ...]) -> Anything:
    """The value at a path."""
    for key in path:
        document = document[key]
    return document


def replaced(document: Anything, path: tuple[str | int, ...], value: Anything) -> Anything:
    """A copy with another value at a path."""
    document = copy.deepcopy(document)
    at(document, path[:-1])[path[-1]] = value
    return document


def removed(document: Anything, path: tuple[str | int, ...]) -> Anything:
    """A copy without what is at a path."""
    document = copy.deepcopy(document)
    del at(document, path[:-1])[path[-1]]
    return document


def other_value(value: Anything) -> Anything:
    """Another value of the same JSON type, and of the same form where that matters."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if value < 1 else value - 1
    if isinstance(value, str):
        return _OTHER_WORDS.get(value) or _other_text(value)
    return {"x": 1} if value == {} else ["X"] if value == [] else 1


_OTHER_WORDS = {"A win": "B win", "tie": "B win", "B win": "A win", "pass": "fail", "fail": "pass"}


def _other_text(text: str) -> str:
    if text.startswith("sha256:"):
        return text[:-1] + ("0" if text[-1] != "0" else "1")
    return f"{text}x"
