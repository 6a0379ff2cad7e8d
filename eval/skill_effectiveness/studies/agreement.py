"""Whether a study file is the one that a plan was made of, as far as the plan tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.study_file import StudyFile


def disagreement(study: StudyFile, plan: StudyPlan) -> str | None:
    """The first field in which a study file says otherwise than the plan; None where none does.

    Paths are in no plan, and what a study leaves open a plan fixes: neither is compared.

    Returns:
        A JSON pointer into the plan.
    """
    return next((where for where, one, other in _pairs(study, plan) if one != other), None)


def _pairs(study: StudyFile, plan: StudyPlan) -> Iterator[tuple[str, object, object]]:
    for name in (
        "name",
        "question",
        "registry",
        "tier",
        "scope",
        "samples",
        "attempts",
        "budgets",
        "isolation",
    ):
        yield f"/{name}", getattr(study, name), getattr(plan, name)
    yield "/driver/provider", study.driver.provider, plan.driver.provider
    yield "/driver/model", study.driver.model, plan.driver.model
    yield "/driver/settings_hash", digest_object(dict(study.driver.settings)), plan.driver.settings_hash
    yield "/arms", {str(arm) for arm in study.arms.by_name()}, set(plan.arm_names)
    yield "/reviewers", len(study.reviewers), len(plan.reviewers)
    for name in ("primary", "pass_at", "secondary"):
        yield f"/outcome/{name}", getattr(study.outcome, name), getattr(plan.outcome, name)
    if study.outcome.minimum_effect is not None:
        yield "/outcome/minimum_effect", study.outcome.minimum_effect, plan.outcome.minimum_effect
    for name in ("alpha", "sides", "stopping", "base_rate", "task_sd"):
        yield f"/analysis/{name}", getattr(study.analysis, name), getattr(plan.analysis, name)
    yield "/analysis/estimand", study.rules(), plan.analysis.estimand
