"""Binding the tested agent again, the executor by its number of jobs, and halting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies import agents
from skill_effectiveness.studies.agents import bound_agent
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from tests.support.crash_images import fast_folder
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.studies.root import StudyRoot


@pytest.fixture
def study() -> Iterator[StudyRoot]:
    """A planned study of a simulated agent."""
    with fast_folder() as folder, bench(folder) as held:
        held.plan(example(folder))
        with held.open() as opened:
            yield opened


def test_the_agent_of_a_plan(study: StudyRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated one, as it was frozen."""
    monkeypatch.setattr(agents, "runtime_manifest_hash", lambda: study.plan.runtime_manifest_hash)
    assert isinstance(bound_agent(study), SimulatedAgent)


def test_another_version_of_the_program_is_refused(study: StudyRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """S65: what planned must run, or evidence of two programs would be mixed."""
    monkeypatch.setattr(agents, "runtime_manifest_hash", lambda: "sha256:" + "0" * 64)
    with pytest.raises(StudyError) as caught:
        bound_agent(study)
    assert (caught.value.code, caught.value.where) == (StudyCode.PLAN_CHANGED, "/runtime_manifest_hash")


def test_another_driver_is_refused(study: StudyRoot) -> None:
    """S65: an edited study file, under an untouched plan."""
    path = study.root.path / "study.yaml"
    path.write_bytes(path.read_bytes().replace(b"effect: 0.4", b"effect: 0.9"))
    with pytest.raises(StudyError) as caught:
        bound_agent(study)
    assert (caught.value.code, caught.value.where) == (StudyCode.DRIVER_DIFFERS, "/driver")
