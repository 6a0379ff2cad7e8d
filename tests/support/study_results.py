"""A whole made-up study: plan, tables, results and what its agents wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.studies.analysis.misclassification import KnownAccuracy
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.plan import StudyPlan, build_plan
from skill_effectiveness.studies.report import PairTexts, PlanSeal, render
from skill_effectiveness.studies.results import AmendmentRecord, DeviationRecord, Results, StudyVerdict
from skill_effectiveness.studies.results_making import Circumstances, analysis_plan, build_results
from skill_effectiveness.studies.tables import Tables
from tests.support.study_tables import Values, canary, pairs, trials, vote

if TYPE_CHECKING:
    from skill_effectiveness.studies.tables import JudgementRow

SEED: Final = bytes(range(32))
AT: Final = "2026-01-03T10:00:00Z"
DIGEST: Final = "sha256:" + "0" * 64
LIMITS: Final = {"tokens": None, "wall_time_seconds": None, "tool_calls": None, "cost_units": None}

SEAL: Final = PlanSeal("ed25519:" + "ab" * 8, "2026-01-01T09:00:01Z")

HOSTILE: Final = (
    "</pre></details><script>document.title='owned'</script>"
    '<img src=http://127.0.0.1:9/x onerror="alert(1)">'
    "\x1b[2J\x1b[31mPASSED\x1b[0m ]]> <![CDATA[ {{ 7*7 }} {% raw %} \u202egnihton\u202c a\u2028b\u2029c "
    "zero\u200bwidth \ufeff\x00\x07 <style>body{display:none}</style>"
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>"
    '" onmouseover="alert(2)" \' &lt;b&gt; \ud800'
)
"""Text of an agent that tries everything."""

ADVISORY: Final = StudyVerdict(
    gate_status="pass",
    verdict_tier=EvidenceTierName.ADVISORY_PAIRED,
    coverage_limitations=(WaivableItem.COMPLETE_ACCESS_AUDIT, WaivableItem.MOUNT_EVIDENCE),
    failures=(),
    not_evaluated_checks=(),
)
UNEVALUATED: Final = StudyVerdict(
    gate_status="not_evaluated",
    verdict_tier=None,
    coverage_limitations=(),
    failures=(),
    not_evaluated_checks=(),
)
SYNTHETIC: Final = StudyVerdict(
    gate_status="not_evaluated_synthetic",
    verdict_tier="synthetic_not_a_tier",
    coverage_limitations=(),
    failures=(),
    not_evaluated_checks=(),
)


def study_plan(
    values: Values,
    *,
    synthetic: bool = False,
    anytime: bool = False,
    primary: str = "reward",
    minimum_effect: float = 0.05,
    question: str = "Does the house style guide help the agent fix regressions?",
) -> StudyPlan:
    """A plan for these values; their arms, tasks and samples are its own."""
    arms = list(next(iter(values.values())))
    samples = max(len(rewards) for task in values.values() for rewards in task.values())
    per_batch = 50 - 50 % len(arms)
    return build_plan(
        {
            "name": "style-guide",
            "question": question,
            "registry": "paired-profile",
            "tier": "advisory-paired",
            "scope": "main",
            "synthetic": synthetic,
            "created_at": "2026-01-01T09:00:00Z",
            "driver": {
                "provider": "simulated" if synthetic else "claude",
                "executable_hash": DIGEST,
                "cli_version": "2.1.0",
                "model": "model-1",
                "settings_hash": DIGEST,
            },
            "arms": [
                {"arm": arm, "arm_id": f"arm-{number}", "manifest_hash": DIGEST, "tree": DIGEST}
                for number, arm in enumerate(arms)
            ],
            "arm_registry_plan_hash": DIGEST,
            "tasks": [
                {
                    "task_id": task_id,
                    "task_hash": DIGEST,
                    "tree": DIGEST,
                    "grader_hash": DIGEST,
                    "family": "implementation",
                    "limits": {"agent_seconds": 600.0, "verifier_seconds": 60.0},
                }
                for task_id in sorted(values)
            ],
            "samples": samples,
            "attempts": 3,
            "batch_slots": per_batch,
            "budgets": {"trial": LIMITS, "study": LIMITS},
            "isolation": {"sandbox": "none", "audit": "none", "network": "provider", "read_only": []},
            "reviewers": [],
            "outcome": {
                "primary": primary, "pass_at": 1.0, "minimum_effect": minimum_effect, "secondary": ["passed"],
            },
            "analysis": {
                "alpha": 0.05,
                "sides": "two",
                "stopping": "anytime" if anytime else "fixed",
                "estimand": {},
                "base_rate": 0.5,
                "task_sd": 0.15,
            },
            "power": {"at_minimum_effect": 0.62, "detectable": 0.25, "draws": 2000},
            "gates_hash": DIGEST,
            "runtime_manifest_hash": DIGEST,
            "allocation": {
                "slots": len(values) * len(arms) * samples,
                "seed_commitment": DIGEST,
                "commitments_hash": DIGEST,
            },
        }
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that a report is made of."""

    plan: StudyPlan
    tables: Tables
    results: Results
    texts: dict[str, PairTexts]
    seal: PlanSeal | None = SEAL

    def page(self) -> bytes:
        return render(self.results, self.plan, self.tables, self.texts, self.seal)


def results_of(
    plan: StudyPlan,
    tables: Tables,
    verdict: StudyVerdict = ADVISORY,
    *,
    amendments: tuple[AmendmentRecord, ...] = (),
    deviations: tuple[DeviationRecord, ...] = (),
    accuracy: KnownAccuracy | None = None,
) -> Results:
    """Results of a plan whose allocation named its tasks in their own order."""
    fixed = analysis_plan(plan, [task.task_id for task in plan.tasks], accuracy)
    circumstances = Circumstances(verdict, amendments, deviations, AT)
    return build_results(tables, plan, fixed, Chance(SEED), circumstances)


def study(values: Values, *, verdict: StudyVerdict | None = None, **planned: object) -> Study:
    """A study without reviewers."""
    plan = study_plan(values, **planned)  # type: ignore[arg-type]
    tables = Tables(trials(values))
    chosen = verdict or (SYNTHETIC if plan.synthetic else UNEVALUATED)
    return Study(plan, tables, results_of(plan, tables, chosen), {})


def full_study(*, anytime: bool = False, synthetic: bool = False) -> Study:
    """Twelve tasks with a reference arm, two reviewers, missing values, an amendment and hostile text."""
    steps = (3, 1, 2, 0, 1, -1, 2, 1, 1, 2, 3, 0)
    values: Values = {}
    for number, step in enumerate(steps, start=1):
        base = 0 if step > 2 else number % 2
        values[f"fix-{number:02}"] = {
            "off": [1.0] * (base + max(-step, 0)) + [0.0] * (3 - base - max(-step, 0)),
            "full": [1.0] * min(3, base + max(step, 0)) + [0.0] * (3 - min(3, base + max(step, 0))),
            "reference": [1.0] * base + [0.0] * (3 - base),
        }
    values["fix-04"]["full"][2] = None
    values["fix-09"]["off"][0] = None
    rows = trials(values)
    words = ("win", "win", "tie", "loss", "win", "inconsistent")
    chosen = {
        (task_id, sample): words[(number + sample) % 6]
        for number, task_id in enumerate(values)
        for sample in (1, 2, 3)
        if values[task_id]["full"][sample - 1] is not None and values[task_id]["off"][sample - 1] is not None
    }
    judged = pairs(rows, chosen)
    plan = study_plan(values, anytime=anytime, synthetic=synthetic)
    tables = Tables(rows, judged, tuple(_votes([(row.pair_id, row.preference) for row in judged])))
    amendments = (
        AmendmentRecord(
            pointer="/budgets/study/cost_units", value=40.0, former=30.0, reason="Prices rose.", at=AT
        ),
    )
    deviations = (
        DeviationRecord(
            code="slots_abandoned", sentence="Two trials never ended and were given up.", at=None
        ),
    )
    texts = {
        row.pair_id: PairTexts(
            f"diff --git a/app.py b/app.py\n+    return value  # {row.pair_id}\n",
            "diff --git a/app.py\n+pass\n",
        )
        for row in judged
    }
    texts["pair-2"] = PairTexts(HOSTILE, None)
    results = results_of(
        plan,
        tables,
        SYNTHETIC if synthetic else ADVISORY,
        amendments=amendments,
        deviations=deviations,
        accuracy=KnownAccuracy(0.9, 40, 0.85, 40),
    )
    return Study(plan, tables, results, texts)


def unsealed(held: Study) -> Study:
    """The same study, its plan without a seal."""
    return replace(held, seal=None)


def _votes(judged: list[tuple[str, str]]) -> list[JudgementRow]:
    votes: list[JudgementRow] = []
    seats = {
        "win": ("A win", "B win"),
        "loss": ("B win", "A win"),
        "tie": ("tie", "tie"),
        "inconsistent": ("A win", "A win"),
    }
    for number, (pair_id, preference) in enumerate(judged):
        for reviewer in ("claude", "codex"):
            for position in (0, 1):
                verdict = seats[preference][position]
                if reviewer == "codex" and number % 5 == 0:
                    verdict = "tie"
                guess = ("A", "B", "unsure")[(number + position) % 3]
                chars = (120 + number, 110 + 2 * number)
                votes.append(
                    vote(
                        len(votes),
                        pair_id,
                        verdict,
                        position=position,
                        reviewer=reviewer,
                        guess=guess,
                        chars=chars,
                    )
                )
    truths = ("A win", "B win", "tie")
    for reviewer in ("claude", "codex"):
        for number in range(9):
            verdict = truths[number % 3] if number else "tie"
            votes.append(canary(len(votes), verdict, truths[number % 3], reviewer))
    return votes
