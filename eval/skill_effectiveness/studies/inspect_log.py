"""One arm of a study in the form of an Inspect log, format 2 (studies.md section 7).

A log is a zip of `header.json`, one file for each sample and `summaries.json`. It says what the table of
trials says, in the words of Inspect, and nothing that a study does not know: no trace, no events, no tool
calls.

| of a trial | in a sample |
|---|---|
| task and sample | `id` and `epoch` |
| value and reward, where it has them | `scores` |
| `crashed`, `provider_error`, `interrupted` | `error` with the class as its message |
| `timeout`, `limit` | `limit`; -1 where nobody knows at how much |
| every class, and what it counted for | `metadata` |

Source: the log format of Inspect 0.3.285 (`inspect_ai.log`: `EvalSpec`, `EvalSample`, `EvalResults`).
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object, dump
from skill_effectiveness.studies.attempts import LARGEST_RESULT, RESULT_SIZE
from skill_effectiveness.studies.trial_rows import NOT_STARTED
from skill_effectiveness.studies.words import EndClass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.results import StudyVerdict
    from skill_effectiveness.studies.tables import TrialRow

Json = dict[str, "JsonValue"]

_ERRORS: Final = frozenset({EndClass.CRASHED, EndClass.PROVIDER_ERROR, EndClass.INTERRUPTED})
_LIMIT_TYPES: Final = {
    "tokens": "token",
    "wall_time_seconds": "time",
    "tool_calls": "custom",
    "cost_units": "cost",
    RESULT_SIZE: "custom",
}
_UNKNOWN: Final = -1.0
_SCORES: Final = ("value", "reward")
_ID_LENGTH: Final = 22
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_COMPRESSION: Final = 6
_FILE_ATTRIBUTES: Final = 0o600 << 16


@dataclass(frozen=True, slots=True)
class LoggedStudy:
    """What all logs of one study say alike.

    Attributes:
        plan: as sealed.
        verdict: of its results.
        rows: the table of trials.
        abandoned: whether slots were given up.
        version: of this program.
        instruction: of a task.
        completion: what a trial handed in, by its id.
    """

    plan: StudyPlan
    verdict: StudyVerdict
    rows: Sequence[TrialRow]
    abandoned: bool
    version: str
    instruction: Callable[[str], str]
    completion: Callable[[str], str]


def log_name(plan: StudyPlan, arm: str) -> str:
    """The name of an arm's log."""
    return f"{plan.created_at.replace(':', '-')}_{plan.name}_{arm}.eval"


def inspect_log(study: LoggedStudy, arm: str) -> bytes:
    """The log of one arm; the same study gives the same bytes.

    Args:
        study: the study.
        arm: its name in the plan.

    Raises:
        As `study.instruction` and `study.completion`.
    """
    rows = [row for row in study.rows if row.arm == arm and row.end_class != NOT_STARTED]
    out = io.BytesIO()
    summaries: list[JsonValue] = []
    with zipfile.ZipFile(out, "w") as archive:
        for row in rows:
            sample = _sample(study, row)
            _add(archive, f"samples/{row.task_id}_epoch_{row.sample}.json", sample)
            summaries.append(_summary(sample))
        _add(archive, "summaries.json", summaries)
        _add(archive, "header.json", _header(study, arm, rows))
    return out.getvalue()


def _add(archive: zipfile.ZipFile, name: str, value: JsonValue) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = _FILE_ATTRIBUTES
    archive.writestr(info, dump(value), zipfile.ZIP_DEFLATED, _COMPRESSION)


# The header.


def _header(study: LoggedStudy, arm: str, rows: Sequence[TrialRow]) -> Json:
    plan = study.plan
    return {
        "version": 2,
        "status": "cancelled" if study.abandoned else "success",
        "eval": _spec(study, arm),
        "plan": {"name": "plan", "steps": [{"solver": plan.driver.provider, "params": {}}], "config": {}},
        "results": {
            "total_samples": len(plan.tasks) * plan.samples,
            "completed_samples": sum(row.end_class not in _ERRORS for row in rows),
            "scores": [_score_of_all(name, rows) for name in _SCORES],
        },
        "stats": {
            "started_at": _time(min((row.started_at for row in rows if row.started_at), default=None)),
            "completed_at": _time(max((row.ended_at for row in rows if row.ended_at), default=None)),
            "model_usage": _usage_of_all(_model(plan), rows),
        },
    }


def _spec(study: LoggedStudy, arm: str) -> Json:
    plan, verdict = study.plan, study.verdict
    tasks: list[JsonValue] = [str(task.task_id) for task in plan.tasks]
    limitations: list[JsonValue] = [str(item) for item in verdict.coverage_limitations]
    return {
        "eval_id": _id(plan, "eval", arm),
        "run_id": _id(plan, "run"),
        "created": plan.created_at,
        "task": plan.name,
        "task_id": _id(plan, "task", arm),
        "task_version": 0,
        "task_args": {"arm": arm},
        "solver": plan.driver.provider,
        "dataset": {"name": plan.name, "samples": len(tasks), "sample_ids": tasks},
        "model": _model(plan),
        "config": {"epochs": plan.samples},
        "packages": {"skill_effectiveness": study.version},
        "metadata": {
            "plan_digest": plan.plan_digest,
            "synthetic": plan.synthetic,
            "verdict_tier": None if verdict.verdict_tier is None else str(verdict.verdict_tier),
            "coverage_limitations": limitations,
        },
    }


def _model(plan: StudyPlan) -> str:
    return f"{plan.driver.provider}/{plan.driver.model}"


def _id(plan: StudyPlan, *parts: str) -> str:
    """An id of the kind that Inspect draws, from what it is the id of."""
    named: list[JsonValue] = [plan.plan_digest, *parts]
    return digest_object(named).removeprefix("sha256:")[:_ID_LENGTH]


def _score_of_all(name: str, rows: Sequence[TrialRow]) -> Json:
    found = [score for row in rows if (score := _scores(row).get(name)) is not None]
    mean: Json = {"mean": {"name": "mean", "value": fmean(found), "params": {}}} if found else {}
    return {
        "name": name,
        "scorer": name,
        "scored_samples": len(found),
        "unscored_samples": len(rows) - len(found),
        "params": {},
        "metrics": mean,
    }


# One sample.


def _sample(study: LoggedStudy, row: TrialRow) -> Json:
    instruction, completion = study.instruction(row.task_id), study.completion(row.trial_id)
    model = row.model_reported or row.model_requested
    answer: Json = {"role": "assistant", "content": completion, "source": "generate", "model": model}
    sample: Json = {
        "id": row.task_id,
        "epoch": row.sample,
        "input": instruction,
        "target": "",
        "messages": [{"role": "user", "content": instruction, "source": "input"}, answer],
        "output": {
            "model": model,
            "choices": [{"message": answer, "stop_reason": _stop_reason(row)}],
            "completion": completion,
        },
        "scores": {name: {"value": score} for name, score in _scores(row).items()},
        "metadata": {
            "slot": row.slot,
            "arm": row.arm,
            "end_class": row.end_class,
            "counted": row.counted,
        },
        "model_usage": _usage_of_all(_model(study.plan), [row]),
        "started_at": _time(row.started_at) or None,
        "completed_at": _time(row.ended_at) or None,
        "total_time": row.wall_seconds,
        "uuid": _id(study.plan, "sample", row.trial_id),
    }
    if row.end_class in _ERRORS:
        sample["error"] = {"message": row.end_class, "traceback": "", "traceback_ansi": ""}
    if row.end_class in {EndClass.TIMEOUT, EndClass.LIMIT}:
        sample["limit"] = _limit(study.plan, row)
    return sample


def _summary(sample: Mapping[str, JsonValue]) -> Json:
    """The few members of a sample that a list of samples shows."""
    summary: Json = {
        name: sample[name]
        for name in (
            "id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at",
            "completed_at", "total_time", "uuid",
        )
    }  # fmt: skip
    error, limit = sample.get("error"), sample.get("limit")
    if isinstance(error, dict):
        summary["error"] = error["message"]
    if isinstance(limit, dict):
        summary["limit"] = limit["type"]
    return summary | {"completed": True, "message_count": 2}


def _scores(row: TrialRow) -> dict[str, float]:
    """The scores that a trial has; what is missing has none."""
    if row.counted == "missing":
        return {}
    return {name: score for name in _SCORES if (score := getattr(row, name)) is not None}


def _stop_reason(row: TrialRow) -> str:
    return "stop" if row.end_class == EndClass.COMPLETED else "unknown"


def _limit(plan: StudyPlan, row: TrialRow) -> Json:
    budget = plan.budgets.trial
    if row.end_class == EndClass.TIMEOUT:
        known = [float(plan.task(row.task_id).limits.agent_seconds), budget.wall_time_seconds]
        return {"type": "time", "limit": min(limit for limit in known if limit is not None)}
    detail = row.detail or ""
    limit = LARGEST_RESULT if detail == RESULT_SIZE else getattr(budget, detail, None)
    return {
        "type": _LIMIT_TYPES.get(detail, "custom"),
        "limit": _UNKNOWN if limit is None else float(limit),
    }


def _usage_of_all(model: str, rows: Sequence[TrialRow]) -> Json:
    """Tokens by model; none where one of the trials does not tell."""
    if not rows or any(row.input_tokens is None or row.output_tokens is None for row in rows):
        return {}
    taken, given = _sum(rows, "input_tokens"), _sum(rows, "output_tokens")
    usage: Json = {"input_tokens": taken, "output_tokens": given, "total_tokens": taken + given}
    for ours, theirs in (
        ("cached_tokens", "input_tokens_cache_read"),
        ("reasoning_tokens", "reasoning_tokens"),
    ):
        if all(getattr(row, ours) is not None for row in rows):
            usage[theirs] = _sum(rows, ours)
    return {model: usage}


def _sum(rows: Sequence[TrialRow], name: str) -> int:
    return sum(int(getattr(row, name)) for row in rows)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()
