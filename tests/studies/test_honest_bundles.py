"""Whatever happens to an honest study, its bundle verifies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.runner import RunStatus
from tests.support.bundles import Bundle, bundle_of, report, seal
from tests.support.judged_studies import JudgedStudy, planned
from tests.support.studies import bench, example
from tests.support.study_runs import FakeAgent, result, run, types_of

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.studies.agent import AttemptResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from tests.support.studies import Bench

pytestmark = pytest.mark.slow

MIXED = (
    "{no_answer: 0.08, crashed: 0.08, refused: 0.08, timeout: 0.08, limit: 0.08, provider_error: 0.1, "
    "interrupted: 0.1, contaminated: 0.08, void: 0.08}"
)


def checked(bundle: Bundle) -> None:
    found = bundle.verify()
    assert found.passed, [check.sentence for check in found.checks if check.passed is not True]


@pytest.mark.parametrize("models", [(), ("sim-1",), ("sim-1", "sim-2")], ids=len)
def test_every_ending(tmp_path: Path, models: tuple[str, ...]) -> None:
    """S21 S60: all classes, with reruns, with and without reviewers."""
    with planned(tmp_path, models=models, tasks=6, samples=3, effect=f"0.4\n    endings: {MIXED}") as study:
        study.run()
        if models:
            study.judge()
        results = report(study)
        assert len(results.missing.by_class) >= 2
        seal(study)
        checked(bundle_of(study))


def test_given_up_before_and_amid_the_run(tmp_path: Path) -> None:
    """S1 S60: open slots are explained."""
    for name, slots in (("early", 0), ("amid", 3)):
        with bench(tmp_path / name) as place:
            place.plan(example(tmp_path / name, tasks=3))
            _run_some(place, slots)
            _finish(place, abandon="no time left")


def test_an_interrupted_run(tmp_path: Path) -> None:
    """S25 S60: attempts that were stopped stay, and new ones follow."""
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        _run_some(place, 5)
        assert types_of(place).count("drained") == 1
        run(place)
        _finish(place)


@pytest.mark.parametrize("resumed", [True, False])
def test_a_runner_that_died(tmp_path: Path, *, resumed: bool) -> None:
    """S23 S60: an attempt that nobody saw the end of, taken up by a later run or given up."""

    def during(order: AttemptOrder, _cancelled: Cancelled) -> AttemptResult | None:
        if order.slot == 3:
            raise MemoryError
        return None

    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        with pytest.raises(MemoryError):
            run(place, FakeAgent(during=during))
        if resumed:
            run(place)
            assert b'"class":"interrupted"' in (tmp_path / "R" / "journal" / "000001.jsonl").read_bytes()
        _finish(place, abandon=None if resumed else "the machine is gone")


def test_a_void_batch(tmp_path: Path) -> None:
    """S36 S60: a failed closing assay."""
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        run(place, FakeAgent(assays={(1, "close"): "failed"}))
        assert "batch_void" in types_of(place)
        _finish(place)


def test_an_exposure_that_failed_at_first(tmp_path: Path) -> None:
    """S36 S60: nothing was started, so once the cause is gone the same line goes on; both stay."""
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        assert run(place, FakeAgent(assays={(1, "open"): "failed"})).status is RunStatus.BLOCKED
        assert run(place, FakeAgent()).status is RunStatus.COMPLETE
        assert types_of(place).count("assay") == 6
        _finish(place)


def test_a_model_that_is_reported_by_no_name(tmp_path: Path) -> None:
    """S21 S56 S58: what a program tells is quoted, so that it is no formula and breaks no report."""
    odd = '=HYPERLINK("x")\n\u202ereversed'
    agent = FakeAgent(endings={1: [result("void", model_reported=odd)]})
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        run(place, agent)
        _finish(place)
    table = (tmp_path / "R" / "report" / "trials.csv").read_text()
    assert ',"""=HYPERLINK(""x"")\\x0a\\u202ereversed""",' in table


@pytest.mark.parametrize(
    "edits",
    [
        {"stopping: fixed": "stopping: anytime", "    effect: 0.4": "    effect: 0.6"},
        {"sides: two": "sides: greater", "primary: reward": "primary: passed"},
        {"samples: 3": "samples: 1"},
    ],
    ids=["anytime", "greater", "once"],
)
def test_other_designs(tmp_path: Path, edits: dict[str, str]) -> None:
    """S60: early stopping, one-sided, one sample."""
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=12, edits=edits))
        run(place, jobs=4)
        _finish(place)


def test_a_causal_study(tmp_path: Path) -> None:
    """S60: three arms of the registry skill-content, every proof present."""
    full = "{skills: [skills/file-notes], instructions: [more.md], hooks: [hooks.json]}"
    oracle = "{skills: [skills/file-notes], hooks: [hooks.json]}"
    edits = {
        "registry: paired-profile": "registry: skill-content",
        "tier: advisory-paired": "tier: causal",
        "  off: {}\n": f"  off: {{}}\n  oracle: {oracle}\n  full: {full}\n",
        "  full:\n    skills: [skills/file-notes]\n": "",
    }
    with bench(tmp_path) as place:
        study = example(tmp_path, tasks=3, edits=edits)
        (study / "more.md").write_bytes(b"Look twice.\n")
        (study / "hooks.json").write_bytes(b"{}\n")
        place.plan(study)
        run(place)
        _finish(place)


def _run_some(place: Bench, slots: int) -> None:
    """Run until some slots have started, then drain."""
    halt, seen = Halt(), [0]

    def during(_order: AttemptOrder, _cancelled: Cancelled) -> AttemptResult | None:
        seen[0] += 1
        if seen[0] >= slots:
            halt.request()
        return None

    if slots:
        run(place, FakeAgent(during=during), halt=halt)


def _finish(place: Bench, abandon: str | None = None) -> None:
    study = JudgedStudy(place)
    report(study, abandon)
    seal(study)
    checked(bundle_of(study))
