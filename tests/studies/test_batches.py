"""Batches and their assays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.batches import AssayParts, Batch, assay, assayed, batches, is_closed
from skill_effectiveness.studies.state import BatchState
from tests.support.crash_images import fast_folder
from tests.support.studies import bench, example
from tests.support.study_runs import FakeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.studies import Bench


@pytest.fixture
def held() -> Iterator[Bench]:
    """A planned study of 72 slots, whose batches have 50."""
    with fast_folder() as folder, bench(folder) as made:
        made.plan(example(folder, tasks=12))
        yield made


def test_the_last_batch_has_what_is_left(held: Bench) -> None:
    """Whole blocks, 50 slots at most."""
    with held.open() as study:
        assert batches(study.plan) == (Batch(1, 1, 50), Batch(2, 51, 72))


def test_what_is_found_is_written_before_its_rows(held: Bench) -> None:
    """S34: one file for a phase, one row for an arm; what the journal has is not asked again."""
    agent = FakeAgent(assays={(1, "open"): "failed"})
    with held.open() as study:
        parts = AssayParts(study.root, study.plan, agent)
        rows = assay(parts, None, 1, "open")
        assert [(row.arm, row.phase, row.result) for row in rows] == [
            ("off", "open", "failed"),
            ("full", "open", "failed"),
        ]
        known = BatchState(1, 1, 50, (("open", "off", "passed"),))
        assert [row.arm for row in assay(parts, known, 1, "open")] == ["full"]
        told = json.loads((study.root.path / "assays/1-open.json").read_bytes())
        assert told["results"] == {"off": "passed", "full": "failed"}


def test_when_a_batch_is_closed(held: Bench) -> None:
    """Every arm assayed at the close, and voided where one failed."""
    with held.open() as study:
        plan = study.plan
    both = (("close", "off", "passed"), ("close", "full", "passed"))
    failed = (("close", "off", "passed"), ("close", "full", "failed"))
    assert not is_closed(None, plan)
    assert not is_closed(BatchState(1, 1, 50, both[:1]), plan)
    assert is_closed(BatchState(1, 1, 50, both), plan)
    assert not is_closed(BatchState(1, 1, 50, failed), plan)
    assert is_closed(BatchState(1, 1, 50, failed, void=True), plan)
    assert assayed(BatchState(1, 1, 50, both), "open") == {}
