"""A study in the form of an Inspect log, held against the table of studies.md section 7 without Inspect."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.studies.inspect_log import inspect_log, log_name
from tests.support.logged_studies import PLAN, ROWS, STUDY, VALUES, ended
from tests.support.study_results import ADVISORY, SYNTHETIC, study_plan

if TYPE_CHECKING:
    from skill_effectiveness.studies.inspect_log import LoggedStudy


def members(study: LoggedStudy = STUDY, arm: str = "full") -> dict[str, Any]:
    """Every member of a log by its name."""
    with zipfile.ZipFile(io.BytesIO(inspect_log(study, arm))) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def sample(study: LoggedStudy = STUDY, name: str = "t1_epoch_1", arm: str = "full") -> dict[str, Any]:
    found: dict[str, Any] = members(study, arm)[f"samples/{name}.json"]
    return found


class TestTheZip:
    def test_members(self) -> None:
        """S59: a header, a file for each sample of the arm, and their list."""
        assert set(members()) == {
            "header.json",
            "summaries.json",
            *(f"samples/{task}_epoch_{number}.json" for task in ("t1", "t2") for number in (1, 2)),
        }

    def test_same_bytes(self) -> None:
        """S59: nothing of the moment gets in; arms differ."""
        assert inspect_log(STUDY, "full") == inspect_log(STUDY, "full")
        assert inspect_log(STUDY, "off") != inspect_log(STUDY, "full")

    def test_the_name(self) -> None:
        """S59: moment, study and arm, on every file system."""
        assert log_name(PLAN, "full") == f"{PLAN.created_at.replace(':', '-')}_style-guide_full.eval"
        assert ":" not in log_name(PLAN, "off")


class TestTheHeader:
    def test_fields(self) -> None:
        """S59: the columns of the table."""
        header = members()["header.json"]
        assert set(header) == {"version", "status", "eval", "plan", "results", "stats"}
        assert (header["version"], header["status"]) == (2, "success")
        said = header["eval"]
        assert set(said) == {
            "eval_id", "run_id", "created", "task", "task_id", "task_version", "task_args", "solver",
            "dataset", "model", "config", "packages", "metadata",
        }  # fmt: skip
        assert (said["created"], said["task"], said["task_args"]) == (
            PLAN.created_at,
            "style-guide",
            {"arm": "full"},
        )
        assert said["solver"] == PLAN.driver.provider
        assert said["model"] == f"{PLAN.driver.provider}/{PLAN.driver.model}"
        assert said["dataset"] == {"name": "style-guide", "samples": 2, "sample_ids": ["t1", "t2"]}
        assert (said["config"], said["packages"]) == ({"epochs": 2}, {"skill_effectiveness": "1.2.3"})
        assert said["metadata"] == {
            "plan_digest": PLAN.plan_digest,
            "synthetic": False,
            "verdict_tier": "advisory-paired",
            "coverage_limitations": [str(item) for item in ADVISORY.coverage_limitations],
        }

    def test_ids(self) -> None:
        """S59: one run of all arms, one evaluation each."""
        full, off = (members(arm=arm)["header.json"]["eval"] for arm in ("full", "off"))
        assert full["run_id"] == off["run_id"]
        assert len({full["eval_id"], off["eval_id"], full["task_id"], off["task_id"], full["run_id"]}) == 5

    def test_results(self) -> None:
        """S59: means over what has a score; the missing sample is unscored and no zero."""
        results = members()["header.json"]["results"]
        assert (results["total_samples"], results["completed_samples"]) == (4, 4)
        for score in results["scores"]:
            assert (score["scored_samples"], score["unscored_samples"]) == (3, 1)
            assert score["metrics"]["mean"]["value"] == 1.0
        assert [score["name"] for score in results["scores"]] == ["value", "reward"]
        value = members(arm="off")["header.json"]["results"]["scores"][0]
        assert (value["scored_samples"], value["metrics"]["mean"]["value"]) == (4, 0.625)

    def test_stats(self) -> None:
        """S59: from the first start to the last end, and the tokens of all."""
        stats = members()["header.json"]["stats"]
        assert (stats["started_at"], stats["completed_at"]) == (
            "2026-01-02T03:04:07+00:00",
            "2026-01-02T03:05:43+00:00",
        )
        (usage,) = stats["model_usage"].values()
        assert usage == {
            "input_tokens": 4000,
            "output_tokens": 800,
            "total_tokens": 4800,
            "reasoning_tokens": 0,
        }

    def test_given_up(self) -> None:
        """S59: what never started is no sample, and the evaluation was cancelled."""
        rows = [
            row
            if row.sample == 1
            else row._replace(end_class="not_started", counted="missing", reward=None, value=None)
            for row in ROWS
        ]
        found = members(replace(STUDY, rows=rows, abandoned=True))
        assert found["header.json"]["status"] == "cancelled"
        assert found["header.json"]["results"]["total_samples"] == 4
        assert sorted(found)[1:-1] == ["samples/t1_epoch_1.json", "samples/t2_epoch_1.json"]

    def test_nothing_at_all(self) -> None:
        """S59: unknown is left out, and nothing is divided by."""
        header = members(replace(STUDY, rows=[], abandoned=True))["header.json"]
        assert header["stats"] == {"started_at": "", "completed_at": "", "model_usage": {}}
        assert [score["metrics"] for score in header["results"]["scores"]] == [{}, {}]

    def test_synthetic(self) -> None:
        """S59 S40: a synthetic study has no tier here either."""
        study = replace(STUDY, plan=study_plan(VALUES, synthetic=True), verdict=SYNTHETIC)
        metadata = members(study)["header.json"]["eval"]["metadata"]
        assert (metadata["synthetic"], metadata["verdict_tier"]) == (True, "synthetic_not_a_tier")


class TestASample:
    def test_fields(self) -> None:
        """S59: the columns of the table."""
        found = sample()
        assert set(found) == {
            "id", "epoch", "input", "target", "messages", "output", "scores", "metadata", "model_usage",
            "started_at", "completed_at", "total_time", "uuid",
        }  # fmt: skip
        assert (found["id"], found["epoch"], found["input"], found["target"]) == ("t1", 1, "Do t1.\n", "")
        assert found["scores"] == {"value": {"value": 1}, "reward": {"value": 1}}
        slot = next(row.slot for row in ROWS if (row.task_id, row.arm, row.sample) == ("t1", "full", 1))
        assert found["metadata"] == {
            "slot": slot,
            "arm": "full",
            "end_class": "completed",
            "counted": "value",
        }
        assert (found["output"]["model"], found["output"]["completion"]) == (
            "model-1",
            f"left by slot-{slot}",
        )
        assert [message["content"] for message in found["messages"]] == ["Do t1.\n", f"left by slot-{slot}"]
        assert found["output"]["choices"] == [{"message": found["messages"][1], "stop_reason": "stop"}]
        assert found["total_time"] == 90

    def test_every_sample_has_an_id_of_its_own(self) -> None:
        ids = [
            each["uuid"]
            for arm in ("off", "full")
            for name, each in members(arm=arm).items()
            if "epoch" in name
        ]
        assert len(set(ids)) == 8

    def test_missing(self) -> None:
        """S59: no score."""
        assert sample(name="t1_epoch_2")["scores"] == {}
        assert sample(ended("void", "missing"))["scores"] == {}

    def test_failure(self) -> None:
        """S59: counts 0 and has no reward."""
        assert sample(ended("no_answer"))["scores"] == {"value": {"value": 0}}

    @pytest.mark.parametrize("end_class", ["crashed", "provider_error", "interrupted"])
    def test_errors(self, end_class: str) -> None:
        """S59: the class as message, no trace; the sample is not completed."""
        study = ended(end_class)
        assert sample(study)["error"] == {"message": end_class, "traceback": "", "traceback_ansi": ""}
        found = members(study)
        assert found["header.json"]["results"]["completed_samples"] == 3
        assert [each.get("error") for each in found["summaries.json"]].count(end_class) == 1

    @pytest.mark.parametrize("end_class", ["completed", "no_answer", "refused", "contaminated", "void"])
    def test_no_error(self, end_class: str) -> None:
        """S59: what the agent did is none."""
        found = sample(ended(end_class, "missing"))
        assert not {"error", "limit"} & set(found)
        assert found["metadata"]["end_class"] == end_class

    @pytest.mark.parametrize(
        ("end_class", "detail", "limit"),
        [
            ("timeout", None, ["time", 50.0]),
            ("limit", "wall_time_seconds", ["time", 50.0]),
            ("limit", "tokens", ["token", 1000.0]),
            ("limit", "cost_units", ["cost", 2.5]),
            ("limit", "tool_calls", ["custom", 7.0]),
            ("limit", "result_size", ["custom", 268_435_456.0]),
            ("limit", "turns", ["custom", -1.0]),
            ("limit", None, ["custom", -1.0]),
        ],
    )
    def test_limits(self, end_class: str, detail: str | None, limit: list[object]) -> None:
        """S59: by its kind, with how much there was; -1 where nobody knows."""
        budgets = {"tokens": 1000, "wall_time_seconds": 50.0, "tool_calls": 7, "cost_units": 2.5}
        held = PLAN.budgets.trial.model_copy(update=budgets)
        plan = PLAN.model_copy(update={"budgets": PLAN.budgets.model_copy(update={"trial": held})})
        found = sample(replace(ended(end_class, detail=detail), plan=plan))
        assert [found["limit"]["type"], found["limit"]["limit"]] == limit

    def test_a_timeout_without_a_budget(self) -> None:
        """S59: then the task's own limit."""
        limits = {task.task_id: task.limits.agent_seconds for task in PLAN.tasks}
        assert sample(ended("timeout"))["limit"] == {"type": "time", "limit": limits["t1"]}

    def test_unknown_tokens(self) -> None:
        """S59: no usage instead of zeros."""
        assert sample(ended("completed", "missing", input_tokens=None))["model_usage"] == {}

    def test_summaries(self) -> None:
        """S59: the same of every sample, without its messages."""
        found = members()
        for summary in found["summaries.json"]:
            whole = found[f"samples/{summary['id']}_epoch_{summary['epoch']}.json"]
            assert summary["completed"] is True
            assert {name: whole[name] for name in ("input", "scores", "metadata", "uuid")} == {
                name: summary[name] for name in ("input", "scores", "metadata", "uuid")
            }
            assert not {"messages", "output"} & set(summary)
