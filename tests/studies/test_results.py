"""`results.json`: what it holds, what it may say, and what it refuses to say."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.results import (
    Results,
    StudyVerdict,
    read_results,
    results_json,
    results_line,
)
from skill_effectiveness.studies.results_making import (
    Circumstances,
    analysis_plan,
    build_results,
    table_files,
)
from skill_effectiveness.studies.tables import Tables
from tests.support.study_results import (
    ADVISORY,
    AT,
    SEED,
    SYNTHETIC,
    UNEVALUATED,
    full_study,
    results_of,
    study,
    study_plan,
)
from tests.support.study_tables import from_differences, from_thirds, trials

if TYPE_CHECKING:
    from collections.abc import Callable

EIGHT = from_thirds((1, 0, 2, 1, -1, 3, 1, 1))


class TestContents:
    def test_known_answer(self) -> None:
        """S42: the eight tasks, as they are written down."""
        primary = study(EIGHT).results.primary
        assert primary.interval is not None
        assert (round(primary.interval.low, 4), round(primary.interval.high, 4)) == (0.0, 0.6667)
        assert (primary.effect, primary.p, primary.level) == (pytest.approx(1 / 3), 24 / 256, 0.95)
        assert (primary.tasks, primary.informative_tasks, str(primary.conclusion)) == (8, 7, "inconclusive")

    def test_names_are_those_of_the_contract(self) -> None:
        """S42: section 7, name by name."""
        body = results_json(full_study(anytime=True).results)
        assert list(body) == [
            "schema_version", "artifact_contract", "plan_digest", "registry", "synthetic", "verdict",
            "primary", "secondary", "anytime", "rates", "preference", "reviewers", "blinding", "missing",
            "flow", "usage", "amendments", "deviations", "unblinded_at", "seed", "tables", "results_digest",
        ]  # fmt: skip
        names: dict[str, Any] = body  # type: ignore[assignment]
        assert list(names["verdict"]) == [
            "gate_status", "verdict_tier", "coverage_limitations", "failures", "not_evaluated_checks",
        ]  # fmt: skip
        assert list(names["primary"]) == [
            "comparison", "outcome", "conclusion", "reasons", "effect", "interval", "level", "method", "p",
            "tasks", "informative_tasks", "to_decide",
        ]  # fmt: skip
        assert list(names["primary"]["to_decide"]) == ["tasks", "trials", "tokens", "cost_units"]
        assert list(names["secondary"][0])[-1] == "p_holm"
        assert list(names["anytime"][0]) == ["task_id", "e", "low", "high"]
        assert list(names["missing"]) == ["by_class", "bounds", "tipping"]

    def test_digests(self) -> None:
        """S57: of the rest of the document and of every table in both forms."""
        held = full_study()
        body = results_json(held.results)
        digest = body.pop("results_digest")
        assert digest == digest_object(body)
        assert body["tables"] == {name: digest_bytes(data) for name, data in table_files(held.tables).items()}
        assert sorted(held.results.tables) == [
            "judgements.csv", "judgements.parquet", "pairs.csv", "pairs.parquet", "trials.csv",
            "trials.parquet",
        ]  # fmt: skip
        assert body["seed"] == SEED.hex()

    def test_round_trip_to_the_byte(self) -> None:
        """S57: what is read back writes the same bytes, whole floats, negative zeros and all."""
        for held in (full_study(), full_study(anytime=True), study(EIGHT)):
            data = results_line(held.results)
            assert read_results(data) == held.results
            assert results_line(read_results(data)) == data

    def test_the_published_schema_describes_it(self) -> None:
        """S57: a stranger's validator agrees."""
        schema = Results.model_json_schema()
        for held in (full_study(anytime=True), study(EIGHT)):
            Draft202012Validator(schema).validate(json.loads(results_line(held.results)))

    def test_to_decide_in_proportion(self) -> None:
        """S42: 17 tasks for 8: 102 trials of 2 arms and 3 samples; 1,200 tokens and .25 a trial."""
        wanted = study(EIGHT).results.primary.to_decide
        assert wanted is not None
        assert (wanted.tasks, wanted.trials) == (17, 102)
        assert (wanted.tokens, wanted.cost_units) == (102 * 1200, 102 * 0.25)

    def test_unknown_is_null_and_never_zero(self) -> None:
        """F40: one trial without tokens makes the sum unknown."""
        rows = list(trials(EIGHT))
        rows[3] = rows[3]._replace(output_tokens=None)
        plan = study_plan(EIGHT)
        results = results_of(plan, Tables(tuple(rows)), UNEVALUATED)
        assert results.usage.total.tokens is None
        assert results.usage.total.cost_units == 48 * 0.25
        assert results.primary.to_decide is not None
        assert results.primary.to_decide.tokens is None

    def test_all_missing(self) -> None:
        """F52 S65: nothing to say, said in words."""
        held = study({f"t{k}": {"off": [1.0], "full": [None]} for k in range(3)})
        primary: Any = results_json(held.results)["primary"]
        assert (primary["effect"], primary["interval"], primary["p"], primary["to_decide"]) == (None,) * 4
        assert (primary["conclusion"], primary["reasons"]) == ("underpowered", ["no_tasks"])

    def test_order_of_rows_changes_no_byte_but_the_tables(self) -> None:
        """S57 S49: the same rows in another order."""
        held = full_study()
        mixed = [list(held.tables.trials), list(held.tables.pairs), list(held.tables.judgements)]
        for rows in mixed:
            random.Random(3).shuffle(rows)  # noqa: S311 - an order
        there = results_json(results_of(held.plan, Tables(*map(tuple, mixed)), ADVISORY))  # type: ignore[arg-type]
        here = results_json(results_of(held.plan, held.tables, ADVISORY))
        for body in (there, here):
            del body["tables"], body["results_digest"]
        assert there == here


class TestFlow:
    def test_counts(self) -> None:
        """S42: two lost slots, one of each arm; everything else is analysed."""
        flow = full_study().results.flow
        assert {arm: (f.planned, f.started, f.graded, f.analysed) for arm, f in flow.items()} == {
            "off": (36, 36, 35, 35), "full": (36, 36, 35, 35), "reference": (36, 36, 36, 36),
        }  # fmt: skip
        assert flow["off"].lost == {"void": 1}
        assert (flow["off"].exposed, flow["reference"].exposed) == (35, 36)

    def test_a_task_without_one_arm_is_not_analysed(self) -> None:
        """F52: its values in the other arm are graded and left out."""
        values = from_differences([1.0] * 6) | {"t07": {"full": [1.0], "off": [None]}}
        flow = study(values).results.flow
        assert (flow["full"].graded, flow["full"].analysed) == (7, 6)

    def test_slots_closed_by_the_evidence_are_neither_started_nor_lost(self) -> None:
        """S49: rows of four of eight tasks."""
        plan = study_plan(EIGHT, anytime=True)
        rows = tuple(row for row in trials(EIGHT) if row.task_id <= "t04")
        flow = results_of(plan, Tables(rows), UNEVALUATED).flow["full"]
        assert (flow.planned, flow.closed, flow.started, flow.lost) == (24, 12, 12, {})

    def test_failures_count_by_the_estimand(self) -> None:
        rows = list(trials(EIGHT))
        rows[0] = rows[0]._replace(
            counted="failure", reward=None, passed=None, end_class="timeout", grade_hash=None
        )
        flow = results_of(study_plan(EIGHT), Tables(tuple(rows)), UNEVALUATED).flow["full"]
        assert (flow.counted_failure, flow.completed, flow.analysed) == (1, 23, 24)


class TestVerdicts:
    @pytest.mark.parametrize(
        "verdict", [ADVISORY, UNEVALUATED, ADVISORY.model_copy(update={"verdict_tier": None})]
    )
    def test_a_synthetic_study_has_no_tier(self, verdict: StudyVerdict) -> None:
        """S40: whatever a caller says of its gate."""
        plan = study_plan(EIGHT, synthetic=True)
        with pytest.raises(EvidenceError):
            results_of(plan, Tables(trials(EIGHT)), verdict)
        found = results_of(plan, Tables(trials(EIGHT)), SYNTHETIC)
        assert found.verdict.verdict_tier == "synthetic_not_a_tier"

    def test_a_real_study_is_not_called_synthetic(self) -> None:
        """S40: nor the reverse."""
        with pytest.raises(EvidenceError):
            results_of(study_plan(EIGHT), Tables(trials(EIGHT)), SYNTHETIC)

    def test_the_tier_is_that_of_the_registry(self) -> None:
        """S40: paired profiles are advisory, and no verdict relabels them."""
        causal = ADVISORY.model_copy(
            update={"verdict_tier": EvidenceTierName.CAUSAL, "coverage_limitations": ()}
        )
        with pytest.raises(EvidenceError):
            results_of(study_plan(EIGHT), Tables(trials(EIGHT)), causal)

    @pytest.mark.parametrize(
        "changed",
        [
            {"coverage_limitations": ["mount_evidence", "complete_access_audit"]},
            {"coverage_limitations": ["mount_evidence", "mount_evidence"]},
            {"coverage_limitations": ["another_one"]},
            {"coverage_limitations": None},
            {"verdict_tier": "causal"},
            {"verdict_tier": None},
            {"gate_status": "fail"},
            {"failures": ["blinding_leak"]},
        ],
    )
    def test_what_no_gate_says(self, changed: dict[str, Any]) -> None:
        """S40: edited, doubled, unsorted or contradictory."""
        with pytest.raises(EvidenceError):
            validate(StudyVerdict, ADVISORY.model_dump(mode="json") | changed)


class TestEdited:
    @pytest.mark.parametrize(
        "edit",
        [
            lambda body: body["verdict"]["coverage_limitations"].pop(),
            lambda body: body["primary"].update(effect=0.9),
            lambda body: body["tables"].update({"trials.csv": "sha256:" + "1" * 64}),
            lambda body: body["tables"].pop("pairs.csv"),
            lambda body: body["missing"].update(tipping=0),
            lambda body: body.pop("deviations"),
            lambda body: body.update(extra=1),
            lambda body: body.update(results_digest="sha256:" + "1" * 64),
        ],
    )
    def test_does_not_load(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """S40 S57: one changed value, and the digest says so."""
        body: dict[str, Any] = json.loads(results_line(full_study().results))
        edit(body)
        with pytest.raises(EvidenceError):
            validate(Results, body)

    @pytest.mark.parametrize("data", [b"", b"{}", b"[]\n", b"\xff", b'{"schema_version": 1}\n'])
    def test_other_bytes(self, data: bytes) -> None:
        """S65: a typed error."""
        with pytest.raises(EvidenceError):
            read_results(data)

    def test_an_order_of_other_tasks(self) -> None:
        """S17: the allocation names exactly the tasks of the plan."""
        plan = study_plan(EIGHT)
        with pytest.raises(ValueError, match="exactly the tasks"):
            analysis_plan(plan, ["t01"])

    def test_times_are_times(self) -> None:
        plan = study_plan(EIGHT)
        fixed = analysis_plan(plan, sorted(EIGHT))
        for moment in ("yesterday", "2026-01-03", ""):
            with pytest.raises(EvidenceError):
                build_results(
                    Tables(trials(EIGHT)),
                    plan,
                    fixed,
                    Chance(SEED),
                    Circumstances(UNEVALUATED, (), (), moment),
                )


def test_limitations_are_verbatim() -> None:
    """S40: as the gate gave them."""
    assert full_study().results.verdict.coverage_limitations == (
        WaivableItem.COMPLETE_ACCESS_AUDIT,
        WaivableItem.MOUNT_EVIDENCE,
    )
    assert full_study().results.unblinded_at == AT
