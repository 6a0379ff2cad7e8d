"""evaluate: from a bundle to a verdict, its file and its receipt."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.bridge.verdicts import listed
from tests.support.bridge_pilots import Evaluation
from tests.support.bridge_room import Room
from tests.support.pilots import CLEAN, UNVERIFIABLE, Ending, pair_bytes
from tests.support.trials import CONTENT, SAFE, put

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.bridge import Json

pytestmark = pytest.mark.slow

ROWS = 100_000


def ask(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    word, result = Room().ask(request)
    return word, result.get("verdict", {})


def test_a_verdict_over_the_wire(tmp_path: Path) -> None:
    """B26 B30 B32: inline and by reference give the same verdict; it is written, and replayed."""
    evaluation = Evaluation(tmp_path)
    bridge = evaluation.bridge
    with bridge.stream() as stream:
        inline = stream.ask(evaluation.request("inline"))
        referred = stream.ask(evaluation.referenced("referred"))
        again = stream.ask(evaluation.referenced("referred"))
    verdict = inline.result["verdict"]
    assert verdict["status"] == "pass"
    assert verdict["evidence_tier"]["verdict_tier"] == "advisory-paired"
    assert referred.result["verdict"] == verdict
    assert again.replayed
    assert again.answered == referred.answered
    assert json.loads(evaluation.verdict_file("inline").read_bytes()) == verdict
    assert evaluation.verdict_file("inline").stat().st_mode & 0o777 == 0o600


def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    """B27: a plan by reference, read row by row and judged; almost all of its trials are missing."""
    evaluation = Evaluation(tmp_path)
    evaluation.plan(ROWS)
    with evaluation.bridge.stream() as stream:
        reply = stream.ask(evaluation.referenced())
        status = Path(f"/proc/{stream.process.pid}/status").read_text(encoding="ascii")
    verdict = reply.result["verdict"]
    assert verdict["status"] == "fail"
    arms = verdict["metrics"]["arms"]
    assert [arms[name]["trials"] for name in ("profile-full", "profile-off")] == [ROWS // 2, ROWS // 2]
    assert [arms[name]["runner_completion"]["part"] for name in arms] == [6, 6]
    peak = int(re.findall(r"^VmHWM:\s+([0-9]+) kB$", status, re.MULTILINE)[0])
    assert peak < 400_000


def test_a_failing_gate_is_an_answer(tmp_path: Path) -> None:
    """B30: status `fail`, and the request is ok."""
    spoilt = {f"task_a__profile_full__{n}": Ending("failed", "crashed") for n in (1, 2, 3)}
    evaluation = Evaluation(tmp_path, **spoilt)
    word, verdict = ask(evaluation.request())
    assert word == "ok"
    assert verdict["status"] == "fail"
    assert verdict["failures"]
    assert evaluation.verdict_file().is_file()


def test_a_causal_verdict(tmp_path: Path) -> None:
    """B26: the manifests of skill-content declare their registry on the wire and nowhere else."""
    evaluation = Evaluation(tmp_path, CONTENT)
    word, verdict = ask(evaluation.request())
    assert word == "ok"
    assert verdict["evidence_tier"]["requested_tier"] == "causal"


@pytest.mark.parametrize(
    "change",
    [
        lambda manifests: [{k: v for k, v in one.items() if k != "registry_schema"} for one in manifests],
        lambda manifests: [manifests[0] | {"registry_schema": "skill-content"}, *manifests[1:]],
        lambda _manifests: [],
        lambda manifests: manifests[:1],
        lambda manifests: [*manifests, manifests[0]],
    ],
)
def test_manifests_declare_one_registry(tmp_path: Path, change: Callable[[Json], Json]) -> None:
    """B28: each of them, and the one of the request."""
    evaluation = Evaluation(tmp_path)
    changed = change(evaluation.values["expected_manifests"])
    assert ask(evaluation.request(expected_manifests=changed))[0] == "evidence_invalid"
    assert not evaluation.verdict_file().exists()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"registry_schema": "skill-content"}, "evidence_invalid"),
        ({"registry_schema": "none"}, "evidence_invalid"),
        ({"evidence_path": "nowhere"}, "artifact_missing"),
        ({"evidence_path": "../bundle"}, "evidence_invalid"),
        ({"evidence_path": "/bundle"}, "evidence_invalid"),
        ({"expected_tasks": []}, "evidence_invalid"),
        ({"expected_trials": []}, "evidence_invalid"),
    ],
)
def test_what_cannot_be_judged(tmp_path: Path, changes: dict[str, Json], word: str) -> None:
    """B28: absent, unsafe, empty."""
    evaluation = Evaluation(tmp_path)
    assert ask(evaluation.request(**changes))[0] == word


def test_a_configuration_that_is_not_the_frozen_one(tmp_path: Path) -> None:
    """B28: another threshold is evidence; another tier is what the bundle was not made for."""
    evaluation = Evaluation(tmp_path)
    config = json.loads(json.dumps(evaluation.pilot.config))
    config["thresholds"]["contamination_rate_max"] = 0.5
    assert ask(evaluation.request(config=config))[0] == "evidence_invalid"
    config = evaluation.pilot.config | {"budgets": {**evaluation.pilot.config["budgets"], "tokens": 5.5}}
    assert ask(evaluation.request(config=config))[0] == "artifact_mismatch"


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("bundle.json", b"{", "evidence_invalid"),
        ("bundle.json", None, "artifact_missing"),
        ("trial-records.jsonl", b"{}\n", "artifact_mismatch"),
        ("trial-records.jsonl", None, "artifact_missing"),
        ("reviewer-calibration.json", b"{}", "artifact_mismatch"),
        ("reviewer-calibration.json", b"[", "evidence_invalid"),
    ],
)
def test_a_corrupt_bundle(tmp_path: Path, name: str, data: bytes | None, word: str) -> None:
    """B28: absent files, broken files, other files."""
    evaluation = Evaluation(tmp_path)
    place = evaluation.pilot.bundle / name
    if data is None:
        place.unlink()
    else:
        put(place, data)
    assert ask(evaluation.request())[0] == word


def test_a_linked_bundle(tmp_path: Path) -> None:
    """B28: a folder that is a link is evidence of nothing."""
    evaluation = Evaluation(tmp_path)
    evaluation.pilot.bundle.rename(tmp_path / "aside")
    evaluation.pilot.bundle.symlink_to(tmp_path / "aside")
    assert ask(evaluation.request())[0] == "evidence_invalid"


# References.


@pytest.mark.parametrize("name", ["config", "expected_tasks", "expected_manifests", "expected_trials"])
def test_a_referenced_file_that_changed(tmp_path: Path, name: str) -> None:
    """B26: other bytes, no file, no strict JSON, a link, a wrong mode."""
    evaluation = Evaluation(tmp_path)
    request = evaluation.referenced()
    place = evaluation.bridge.root / "inputs" / f"{name}.json"
    kept = place.read_bytes()
    put(place, kept + b" ")
    assert ask(request)[0] == "artifact_mismatch"
    put(place, kept[:-2])
    assert ask(request)[0] == "artifact_mismatch"
    place.chmod(0o644)
    assert ask(request)[0] == "evidence_invalid"
    place.unlink()
    assert ask(request)[0] == "artifact_missing"
    place.symlink_to(evaluation.bridge.root / "root.json")
    assert ask(request)[0] == "evidence_invalid"
    shutil.rmtree(place.parent)
    assert ask(request)[0] == "artifact_missing"
    assert ask(evaluation.referenced(**{f"{name}_path": "../x.json"}))[0] == "evidence_invalid"


def test_a_torn_or_broken_row(tmp_path: Path) -> None:
    """B26 B28: rows are strict lines."""
    from skill_effectiveness.evidence.canonical import digest_bytes  # noqa: PLC0415 - beside its use

    evaluation = Evaluation(tmp_path)
    request = evaluation.referenced()
    place = evaluation.bridge.root / "inputs" / "expected_trials.json"
    kept = place.read_bytes()
    for data in (kept[:-1], kept + b"{}\n", kept + b"\n", kept + b'{"a":1,"a":1}\n', b""):
        put(place, data)
        changed = request | {"payload": request["payload"] | {"expected_trials_sha256": digest_bytes(data)}}
        assert ask(changed)[0] == "evidence_invalid"


# What blocks.


def spoilt(folder: Path, kind: str) -> Evaluation:
    """A pilot with one thing wrong."""
    match kind:
        case "reviewer_calibration_failed":
            evidence, result = pair_bytes()
            document = json.loads(evidence)
            document["status"] = "unheard of"
            return Evaluation(folder, pairs=[(json.dumps(document).encode(), result)])
        case "capability_unavailable":
            return Evaluation(folder, CONTENT, probes=False)
        case "invocation_unverifiable":
            events = {
                f"task_{task}__{arm}__{n}": Ending(events=[CLEAN, UNVERIFIABLE])
                for task in "ab"
                for arm in ("S0", "S2")
                for n in (1, 2, 3)
            }
            return Evaluation(folder, CONTENT, **events)
        case _:
            return Evaluation(folder)


@pytest.mark.parametrize(
    "word", ["reviewer_calibration_failed", "capability_unavailable", "invocation_unverifiable"]
)
def test_what_blocks_has_its_code_and_its_verdict_file(tmp_path: Path, word: str) -> None:
    """B29 B23: blocked, without a receipt, with the verdict on disk."""
    evaluation = spoilt(tmp_path, word)
    assert ask(evaluation.request())[0] == word
    verdict = json.loads(evaluation.verdict_file().read_bytes())
    assert verdict["status"] == "fail"
    assert not (evaluation.bridge.root / "bridge-receipts" / "e-1.json").exists()


def test_a_missing_causal_proof(tmp_path: Path) -> None:
    """B29: what no judge can be shown is not evaluated, and the causal tier waives nothing."""
    evaluation = Evaluation(tmp_path, CONTENT, task_a__S2__1=Ending(outcome={"answer": "42"}))
    assert ask(evaluation.request())[0] == "causal_core_unavailable"
    assert evaluation.verdict_file().is_file()


def test_a_breach_that_counts_as_complete(tmp_path: Path) -> None:
    """B29 B21: marked beside a completion, it is a violation, whatever the tier waives."""
    evaluation = Evaluation(tmp_path)
    key = evaluation.pilot.trials()[0]
    put(evaluation.pilot.place.trial(key) / "breach.json", b'{"breaches":["read_outside_roots"]}\n')
    assert ask(evaluation.request())[0] == "isolation_violation"
    assert evaluation.verdict_file().is_file()


def test_an_older_verdict_goes_to_history(tmp_path: Path) -> None:
    """B29: blocked first, answered later under the same id."""
    evaluation = Evaluation(tmp_path)
    key = evaluation.pilot.trials()[0]
    mark = evaluation.pilot.place.trial(key) / "breach.json"
    put(mark, b'{"breaches":["read_outside_roots"]}\n')
    assert ask(evaluation.request())[0] == "isolation_violation"
    first = evaluation.verdict_file().read_bytes()
    mark.unlink()
    assert ask(evaluation.request())[0] == "ok"
    assert evaluation.verdict_file().read_bytes() != first
    kept = list((evaluation.bridge.root / "verdicts" / "history").iterdir())
    assert [path.read_bytes() for path in kept] == [first]


def test_waived_items_are_verbatim(tmp_path: Path) -> None:
    """B20: in the verdict as in the trials."""
    unproven = Ending(isolation=SAFE | {"fresh_session": None}, audited=False)
    evaluation = Evaluation(tmp_path, task_a__profile_off__1=unproven)
    word, verdict = ask(evaluation.request())
    assert word == "ok"
    limitations = verdict["evidence_tier"]["coverage_limitations"]
    assert {"complete_access_audit", "memory_isolation_proof"} <= set(limitations)


def test_repeated_failures_are_listed_a_hundred_times() -> None:
    """B30: then how many more."""
    failures = [f"trial_record_identity_invalid:{n}" for n in range(250)]
    assert list(listed(["no_trial_records", *failures])) == [
        "no_trial_records",
        *failures[:100],
        "trial_record_identity_invalid:+150",
    ]
