"""Reads Inspect logs with Inspect and prints what it finds; run by an interpreter that has `inspect_ai`."""

from __future__ import annotations

import json
import sys
from typing import Any

from inspect_ai.log import (  # type: ignore[import-not-found,unused-ignore]
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)


def sample_of(sample: Any) -> dict[str, Any]:  # noqa: ANN401 - of the other program
    """What Inspect says of one sample."""
    return {
        "id": sample.id,
        "epoch": sample.epoch,
        "input": sample.input,
        "scores": {name: score.value for name, score in (sample.scores or {}).items()},
        "completion": sample.output.completion,
        "metadata": sample.metadata,
        "error": sample.error and sample.error.message,
        "limit": sample.limit and [sample.limit.type, sample.limit.limit],
        "tokens": {model: usage.total_tokens for model, usage in sample.model_usage.items()},
        "seconds": sample.total_time,
    }


def log_of(path: str) -> dict[str, Any]:
    """What Inspect says of one log."""
    log = read_eval_log(path)
    first = (log.samples or [None])[0]
    alone = first and read_eval_log_sample(path, id=first.id, epoch=first.epoch)
    return {
        "version": log.version,
        "status": log.status,
        "task": log.eval.task,
        "task_args": log.eval.task_args,
        "model": log.eval.model,
        "epochs": log.eval.config.epochs,
        "sample_ids": log.eval.dataset.sample_ids,
        "metadata": log.eval.metadata,
        "total": log.results.total_samples,
        "completed": log.results.completed_samples,
        "means": {
            score.name: {name: metric.value for name, metric in score.metrics.items()}
            for score in log.results.scores
        },
        "scored": {
            score.name: [score.scored_samples, score.unscored_samples] for score in log.results.scores
        },
        "samples": [sample_of(sample) for sample in log.samples or []],
        "alone": alone and sample_of(alone),
        "summaries": [
            [each.id, each.epoch, {name: score.value for name, score in (each.scores or {}).items()}]
            for each in read_eval_log_sample_summaries(path)
        ],
    }


sys.stdout.write(json.dumps([log_of(path) for path in sys.argv[1:]]))
