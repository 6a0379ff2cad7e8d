"""What may be changed once a study is planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies import rows
from skill_effectiveness.studies.amendments import (
    amendment_of,
    demand_known_cost,
    effective_budgets,
    effective_reviewers,
    read_setting,
)
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import PlanReviewer
from skill_effectiveness.studies.state import fold
from skill_effectiveness.studies.study_file import read_study
from tests.support.studies import bench, example
from tests.support.study_rows import DIGEST, LICENCE, journal, vote_started
from tests.support.working_studies import files

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.studies.plan import StudyPlan

OTHER = "d" * 32


@pytest.fixture
def plan(tmp_path: Path) -> StudyPlan:
    with bench(tmp_path) as place:
        made = place.plan(example(tmp_path))
    reviewers = tuple(
        PlanReviewer(family="x", licence_id=licence, licence_hash=DIGEST) for licence in [LICENCE, OTHER]
    )
    return made.model_copy(update={"reviewers": reviewers})


def refused(plan: StudyPlan, text: str, *before: rows.StudyRow, reason: str = "why") -> StudyError:
    with pytest.raises(StudyError) as caught:
        amendment_of(plan, fold(journal(*before)), read_setting(text), reason)
    return caught.value


class TestAllowed:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("/budgets/study/tokens=5000", 5000.0),
            ("/budgets/study/cost_units=0.25", 0.25),
            ("/budgets/study/wall_time_seconds=null", None),
            ("/budgets/study/tool_calls=7", 7.0),
        ],
    )
    def test_study_budgets(self, plan: StudyPlan, text: str, value: float | None) -> None:
        """S20: a study budget, at any time before the last slot has ended."""
        row = amendment_of(plan, fold(journal()), read_setting(text), "we have more")
        assert (row.value, row.former, row.reason) == (value, None, "we have more")
        budgets = effective_budgets(plan, fold(journal(row)))
        assert getattr(budgets, row.pointer.rsplit("/", 1)[1]) == value
        again = amendment_of(plan, fold(journal(row)), read_setting(text), "again")
        assert again.former == value

    def test_a_reviewer_that_has_not_voted(self, plan: StudyPlan) -> None:
        """S20: the other one may have."""
        before = journal(vote_started())
        row = amendment_of(plan, fold(before), read_setting("/reviewers/1=null"), "gone")
        assert row.former == OTHER
        after = effective_reviewers(plan, fold(journal(vote_started(), row)))
        assert [reviewer.licence_id for reviewer in after] == [LICENCE]


class TestRefused:
    @pytest.mark.parametrize(
        "text",
        [
            "/samples=4",
            "/analysis/alpha=0.1",
            "/budgets/trial/tokens=5",
            "/budgets/study=null",
            "/budgets/study/other=5",
            "/budgets/study/tokens=0",
            "/budgets/study/tokens=-1",
            "/budgets/study/tokens=lots",
            "/budgets/study/tokens=1e9",
            "/budgets/study/tokens=",
            "/reviewers/2=null",
            "/reviewers/01=null",
            "/reviewers/0=other.json",
            "/seed=1",
            "budgets=1",
            "/budgets/study/tokens",
        ],
    )
    def test_the_rest(self, plan: StudyPlan, text: str) -> None:
        """S20: whatever decides what the study means is planned anew."""
        with pytest.raises(StudyError) as caught:
            amendment_of(plan, fold(journal()), read_setting(text), "why")
        assert caught.value.code is StudyCode.AMENDMENT_REFUSED

    def test_without_a_reason(self, plan: StudyPlan) -> None:
        """S20: an amendment says why."""
        assert refused(plan, "/budgets/study/tokens=5", reason=" ").code is StudyCode.AMENDMENT_REFUSED

    def test_twice(self, plan: StudyPlan) -> None:
        row = amendment_of(plan, fold(journal()), read_setting("/reviewers/0=null"), "gone")
        assert refused(plan, "/reviewers/0=null", row).code is StudyCode.AMENDMENT_REFUSED

    def test_too_late(self, plan: StudyPlan) -> None:
        """S20: a reviewer that has voted, arms that are known, slots that are closed."""
        assert refused(plan, "/reviewers/0=null", vote_started()).code is StudyCode.AMENDMENT_LATE
        unblinded = rows.Unblinded(reason="x")
        assert refused(plan, "/reviewers/0=null", unblinded).code is StudyCode.AMENDMENT_LATE
        closed = rows.SlotsClosed(reason="abandoned", slots=3)
        assert refused(plan, "/budgets/study/tokens=5", closed).code is StudyCode.AMENDMENT_LATE

    @pytest.mark.parametrize("text", ["/budgets/study/cost_units=3", "/budgets/study/cost_units=0.5"])
    def test_a_limit_of_a_cost_that_nobody_tells(self, tmp_path: Path, text: str) -> None:
        """S20 F39: the run would be blocked by it after its next trial."""
        study = read_study(files(tmp_path / "codex")["study.yaml"])
        with pytest.raises(StudyError) as caught:
            demand_known_cost(study, read_setting(text))
        assert caught.value.code is StudyCode.AMENDMENT_REFUSED
        assert str(caught.value) == (
            "/budgets/study/cost_units: codex does not tell what a session cost; state the prices of "
            "fake-model in /driver/settings/prices, and plan anew."
        )

    @pytest.mark.parametrize(
        ("text", "edits"),
        [
            ("/budgets/study/cost_units=null", {}),
            ("/budgets/study/tokens=3", {}),
            ("/budgets/study/cost_units=3", {"provider: codex": "provider: claude"}),
            (
                "/budgets/study/cost_units=3",
                {"settings: {}": "settings: {prices: {fake-model: {input: 1, output: 2}}}"},
            ),
        ],
    )
    def test_a_limit_of_a_cost_that_somebody_tells(
        self, tmp_path: Path, text: str, edits: dict[str, str]
    ) -> None:
        """S20 F39: or none at all."""
        demand_known_cost(read_study(files(tmp_path / "codex", edits)["study.yaml"]), read_setting(text))
