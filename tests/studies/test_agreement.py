"""A study file beside the plan that was made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.agreement import disagreement
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.study_file import read_study
from tests.support.studies import bench, example
from tests.support.study_runs import FakeAgent, run

if TYPE_CHECKING:
    from pathlib import Path

EDITS = [
    ("name: ", "name: x", "/name"),
    ("question: ", "question: Or ", "/question"),
    ("samples: 3", "samples: 4", "/samples"),
    ("samples: 3", "samples: 3\nattempts: 1", "/attempts"),
    ("wall_time_seconds: 600", "wall_time_seconds: 601", "/budgets"),
    ("network: none", "network: provider", "/isolation"),
    ("model: simulated-agent", "model: other-agent", "/driver/model"),
    ("effect: 0.4", "effect: 0.5", "/driver/settings_hash"),
    ("  full:", "  reference:\n    skills: [skills/file-notes]\n  full:", "/arms"),
    ("primary: reward", "primary: passed", "/outcome/primary"),
    ("minimum_effect: 0.3", "minimum_effect: 0.2", "/outcome/minimum_effect"),
    ("minimum_effect: 0.3", "pass_at: 0.5\n  minimum_effect: 0.3", "/outcome/pass_at"),
    ("alpha: 0.05", "alpha: 0.2", "/analysis/alpha"),
    ("sides: two", "sides: greater", "/analysis/sides"),
    ("stopping: fixed", "stopping: anytime", "/analysis/stopping"),
    ("stopping: fixed", "stopping: fixed\n  base_rate: 0.4", "/analysis/base_rate"),
    ("stopping: fixed", "stopping: fixed\n  estimand: {timeout: missing}", "/analysis/estimand"),
]


@pytest.mark.parametrize(("old", "new", "where"), EDITS, ids=[row[2] for row in EDITS])
def test_every_field_counts(tmp_path: Path, old: str, new: str, where: str) -> None:
    """S16 S65: another study file is told by the field of the plan that it contradicts."""
    with bench(tmp_path) as place:
        plan = place.plan(example(tmp_path, tasks=2))
    text = (tmp_path / "R" / "study.yaml").read_text()
    assert disagreement(read_study(text.encode()), plan) is None
    assert disagreement(read_study(text.replace(old, new, 1).encode()), plan) == where


def test_a_run_refuses_another_study_file(tmp_path: Path) -> None:
    """S16 S65: before anything is started."""
    with bench(tmp_path) as place:
        place.plan(example(tmp_path, tasks=2))
        path = tmp_path / "R" / "study.yaml"
        path.write_text(path.read_text().replace("samples: 3", "samples: 2"))
        agent = FakeAgent()
        with pytest.raises(StudyError) as refused:
            run(place, agent)
    assert (refused.value.code, refused.value.where) == (StudyCode.PLAN_CHANGED, "/samples")
    assert agent.asked == []
