from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import pytest

from skill_effectiveness.calibration.errors import PairFault, PairRefused
from skill_effectiveness.calibration.loader import LoadedCalibration, load_calibration
from skill_effectiveness.calibration.models import Simulation
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.protocol.gates import gates_hash
from skill_effectiveness.protocol.words import BankName
from tests.support.examinations import INPUTS, OTHER, PROBES, Anything
from tests.support.frozen import bank_of
from tests.support.published import (
    REAL,
    SIMULATED,
    SIMULATION,
    VARIANTS,
    Pair,
    all_tie,
    at,
    leaves,
    nodes,
    other_value,
    pair,
    removed,
    replaced,
    single,
    truthful,
)

EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"


def load(found: Pair) -> LoadedCalibration:
    return load_calibration(found.evidence, found.result, inputs=found.inputs)


def refusal(found: Pair) -> PairRefused:
    with pytest.raises(PairRefused) as caught:
        load(found)
    return caught.value


def loads(found: Pair) -> bool:
    try:
        load(found)
    except PairRefused:
        return False
    return True


def with_result(found: Pair, **changes: Anything) -> Pair:
    return replace(found, result=dump_line({**json.loads(found.result), **changes}))


def rehashed(found: Pair, evidence: Anything) -> Pair:
    """Another evidence document, with its digest put right in the result."""
    changed = with_result(found, calibration_evidence_hash=digest_object(evidence))
    return replace(changed, evidence=dump_line(evidence))


class TestEveryVariant:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_loads(self, variant: str) -> None:
        """R19: whole pairs of every door and bank are read by this one loader."""
        loaded = load(VARIANTS[variant])
        assert loaded.synthetic is ("simulated" in variant)
        assert loaded.bank is (BankName.BIAS_PROBE if "probes" in variant else BankName.JUDGED)
        expected = "fail" if variant == "failed" else "not_applicable" if "probes" in variant else "pass"
        assert loaded.result.calibration_status == expected

    def test_a_result_says_what_follows_from_the_answers(self) -> None:
        """Every derived field by hand, for 24 right answers in two runs."""
        result = json.loads(VARIANTS["real"].result)
        evidence = json.loads(VARIANTS["real"].evidence)
        assert (result["repeat_count"], result["case_count"]) == (2, 24)
        assert result["known_answer_fixture_hash"] == INPUTS.gates.reviewer_calibration_fixture_hash
        assert result["case_fixture_hash"] == INPUTS.gates.reviewer_calibration_case_fixture_hash
        assert result["pilot_gates_hash"] == gates_hash(INPUTS.gates)
        assert result["calibration_evidence"] == EVIDENCE
        assert result["calibration_evidence_hash"] == digest_object(evidence)
        assert result["calibration_evaluation_hash"] == digest_object(result["calibration_evaluation"])
        assert result["calibration_evaluation"]["mutual_status"] == "not_applicable_single_reviewer"
        assert result["conclusion_boundary"] == "reviewer_calibration_only_not_skill_effectiveness"
        assert (result["enforcement"], result["execution_status"]) == ("advisory", "evaluated")
        assert "synthetic" not in result
        assert "simulation" not in result

    def test_a_single_sample_pair_names_its_samples(self) -> None:
        assert json.loads(VARIANTS["single sample"].result)["sample_ids"] == ["s-1", "s-2"]
        assert "sample_ids" not in json.loads(VARIANTS["real"].result)


class TestTampering:
    """Every field, one at a time."""

    FREE: ClassVar[dict[str, set[Anything]]] = {
        "real": {
            ("model",),
            ("provider_cli_version",),
            ("provider_environment_keys", 0),
            ("provider_environment_keys", 1),
        },
        # The model is the alias of the configuration that is bound, so it is found by that.
        "bound": {
            ("provider_cli_version",),
            ("provider_environment_keys", 0),
            ("provider_environment_keys", 1),
        },
        "simulated": {
            ("model",),
            ("provider_cli_version",),
            *(("simulation", name) for name in Simulation.model_fields),
        },
        "single sample": {
            ("model",),
            ("provider_cli_version",),
            ("provider_environment_keys", 0),
            ("provider_environment_keys", 1),
            ("sample_ids", 0),
            ("sample_ids", 1),
        },
    }

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_only_what_no_pair_can_prove_may_be_another(self, variant: str) -> None:
        """R19: any other value of the result is found by deriving it again."""
        found = VARIANTS[variant]
        result = json.loads(found.result)
        accepted = {
            path
            for path in leaves(result)
            if loads(replace(found, result=dump_line(replaced(result, path, other_value(at(result, path))))))
        }
        kind = "simulated" if "simulated" in variant else variant
        # Environment keys of a simulated reviewer are none, and a list is a leaf then.
        extra = {("provider_environment_keys",)} if kind == "simulated" else set()
        assert accepted == self.FREE.get(kind, self.FREE["real"]) | extra

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_nothing_may_be_missing(self, variant: str) -> None:
        found = VARIANTS[variant]
        result = json.loads(found.result)
        optional = [path for path in nodes(result) if len(path) == 1]
        assert len(optional) >= 26
        for path in nodes(result):
            if path in {("provider_environment_keys", 0), ("provider_environment_keys", 1)}:
                continue
            assert not loads(replace(found, result=dump_line(removed(result, path)))), path

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_nothing_may_be_added(self, variant: str) -> None:
        found = VARIANTS[variant]
        result = json.loads(found.result)
        assert refusal(with_result(found, extra=1)).code is PairFault.DOCUMENT
        for path in nodes(result):
            if isinstance(at(result, path), dict):
                assert not loads(replace(found, result=dump_line(replaced(result, (*path, "extra"), 1)))), (
                    path
                )

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_evidence_under_its_old_digest(self, variant: str) -> None:
        """R19: the result holds the evidence fast."""
        found = VARIANTS[variant]
        evidence = json.loads(found.evidence)
        for path in leaves(evidence):
            changed = replaced(evidence, path, other_value(at(evidence, path)))
            assert not loads(replace(found, evidence=dump_line(changed))), path

    @pytest.mark.parametrize("variant", ["real", "simulated", "single sample", "probes"])
    def test_evidence_under_a_new_digest(self, variant: str) -> None:
        """R19: and what it says is held against the frozen bank and the evaluation."""
        found = VARIANTS[variant]
        evidence = json.loads(found.evidence)
        for path in nodes(evidence):
            if not isinstance(at(evidence, path), dict | list):
                changed = replaced(evidence, path, other_value(at(evidence, path)))
                assert not loads(rehashed(found, changed)), path
            assert not loads(rehashed(found, removed(evidence, path))), path

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("model", "a b"),
            ("provider_cli_version", "two\nlines"),
            ("provider_environment_keys", ["PATH", "HOME"]),
            ("provider_environment_keys", ["HOME", "HOME"]),
            ("provider_environment_keys", ["A=B"]),
            ("reviewer_family", "family-2"),
            ("provider", "unknown"),
            ("requested_session_mode", "simulated"),
            ("tool_access", "verified-none"),
            ("runner_contract", "codex-cli-reviewer-calibration-v2"),
            ("sample_ids", ["s-1", "s-2"]),
            ("schema_version", 2),
            ("repeat_count", 3),
            ("simulation", SIMULATION.model_dump()),
            ("synthetic", True),
            ("runtime_manifest_hash", OTHER),
            ("provider_executable_hash", OTHER),
            ("calibration_status", "invalid"),
            ("calibration_evidence", "elsewhere.json"),
        ],
    )
    def test_the_field_is_named(self, field: str, value: object) -> None:
        found = refusal(with_result(VARIANTS["real"], **{field: value}))
        named = {"reviewer_family": f"{EVIDENCE}:/reviewers", "repeat_count": f"{EVIDENCE}:/reviewers/0/runs"}
        # What changes together with the field may be met first.
        derived = {"runtime_manifest_hash": "runner_hash", "provider_executable_hash": "runner_hash"}
        expected = named.get(field, f"{RESULT}:/{derived.get(field, field)}")
        assert found.field.startswith(expected)
        assert found.field in found.sentence or found.code is PairFault.DOCUMENT


class TestSynthetic:
    """R43: every result of a simulated reviewer says so, and no other does."""

    def test_a_simulated_result_without_the_mark(self) -> None:
        """R43: hiding it is found."""
        result = removed(json.loads(VARIANTS["simulated"].result), ("synthetic",))
        found = refusal(replace(VARIANTS["simulated"], result=dump_line(result)))
        assert found.field == f"{RESULT}:/synthetic"

    def test_a_simulated_result_without_its_settings(self) -> None:
        """R43: they belong to it."""
        result = removed(json.loads(VARIANTS["simulated"].result), ("simulation",))
        found = refusal(replace(VARIANTS["simulated"], result=dump_line(result)))
        assert found.field == f"{RESULT}:/simulation"

    def test_a_real_result_with_the_mark(self) -> None:
        """R43: nor can a real one carry it."""
        assert not loads(with_result(VARIANTS["real"], synthetic=True))
        assert not loads(with_result(VARIANTS["real"], synthetic=True, simulation=SIMULATION.model_dump()))

    def test_a_simulated_reviewer_under_a_real_name(self) -> None:
        """R43: labels, version and settings would have to change with it."""
        assert not loads(with_result(VARIANTS["simulated"], provider="codex"))


class TestRuns:
    @pytest.mark.parametrize("count", [1, 6])
    def test_two_to_five(self, count: int) -> None:
        evidence = json.loads(VARIANTS["real"].evidence)
        runs = count * [evidence["reviewers"][0]["runs"][0]]
        changed = replaced(evidence, ("reviewers", 0, "runs"), runs)
        assert not loads(rehashed(VARIANTS["real"], changed))
        assert not loads(with_result(rehashed(VARIANTS["real"], changed), repeat_count=count))

    @pytest.mark.parametrize("change", ["reversed", "twice", "short", "foreign"])
    def test_each_answers_every_case_once_in_order(self, change: str) -> None:
        evidence = json.loads(VARIANTS["real"].evidence)
        run = evidence["reviewers"][0]["runs"][1]
        other = {
            "reversed": run[::-1],
            "twice": [run[0], *run[:-1]],
            "short": run[:-1],
            "foreign": [*run[:-1], {**run[-1], "case_id": "plan-99"}],
        }[change]
        changed = replaced(evidence, ("reviewers", 0, "runs", 1), other)
        assert refusal(rehashed(VARIANTS["real"], changed)).field == f"{EVIDENCE}:/reviewers/0/runs/1"

    def test_a_second_family_belongs_in_a_pair_of_its_own(self) -> None:
        evidence = json.loads(VARIANTS["real"].evidence)
        second = {**evidence["reviewers"][0], "family": "family-2"}
        changed = replaced(evidence, ("reviewers",), [*evidence["reviewers"], second])
        assert refusal(rehashed(VARIANTS["real"], changed)).field == f"{EVIDENCE}:/reviewers"

    def test_sample_ids_are_distinct_and_as_many_as_runs(self) -> None:
        found = VARIANTS["single sample"]
        for ids in (["s-1", "s-1"], ["s-1"], ["s-1", "s-2", "s-3"]):
            assert refusal(with_result(found, sample_ids=ids)).field == f"{RESULT}:/sample_ids"

    def test_five_runs_of_five_samples(self) -> None:
        five = replace(single(REAL), sample_ids=("a", "b", "c", "d", "e"))
        assert load(pair(five, INPUTS, *5 * [truthful(INPUTS)])).result.repeat_count == 5


class TestFrozenInputs:
    def test_another_bank_is_refused(self) -> None:
        """R2: a valid bank that is not the frozen one, also at read-back."""
        rows = [
            (case.case_id, answer.expected_verdict, case.candidate_a, case.candidate_b)
            for case, answer in zip(INPUTS.bank.cases, INPUTS.bank.known_answers, strict=True)
        ]
        other = replace(INPUTS, bank=bank_of(rows))
        foreign = pair(REAL, other)
        assert load(foreign).result.calibration_status == "pass"
        assert refusal(replace(foreign, inputs=INPUTS)).code is PairFault.DIFFERS

    def test_other_gates_are_refused(self) -> None:
        """R2: thresholds are not for choosing afterwards."""
        lower = INPUTS.gates.thresholds.model_copy(update={"reviewer_known_answer_accuracy_min": 0.1})
        lax = replace(INPUTS, gates=INPUTS.gates.model_copy(update={"thresholds": lower}))
        mixed = pair(REAL, lax, truthful(INPUTS), all_tie(INPUTS))
        assert refusal(replace(mixed, inputs=INPUTS)).code is PairFault.DIFFERS

    def test_probes_are_no_judged_bank(self) -> None:
        found = VARIANTS["probes"]
        assert refusal(replace(found, inputs=INPUTS)).code is PairFault.DOCUMENT
        assert refusal(replace(VARIANTS["real"], inputs=PROBES)).code is PairFault.DOCUMENT


class TestBytes:
    @pytest.mark.parametrize(
        "spoil",
        [
            lambda data: data[:-1],
            lambda data: data + b"\n",
            lambda data: json.dumps(json.loads(data)).encode() + b"\n",
            lambda data: b"\xef\xbb\xbf" + data,
            lambda data: data[: len(data) // 2],
            lambda _data: b"",
            lambda _data: b"[]\n",
            lambda _data: b"[" * 100_000,
            lambda _data: b"\x00\xff\x7f",
            lambda data: data.replace(b'{"', b'{"schema_version":1,"', 1),
        ],
    )
    def test_only_the_one_written_form_is_read(self, spoil: Anything) -> None:
        """F22 R19: strict, canonical, whole."""
        found = VARIANTS["simulated"]
        for changed in (
            replace(found, evidence=spoil(found.evidence)),
            replace(found, result=spoil(found.result)),
        ):
            assert refusal(changed).code is PairFault.DOCUMENT

    def test_swapped_files_are_refused(self) -> None:
        found = VARIANTS["real"]
        assert not loads(replace(found, evidence=found.result, result=found.evidence))

    def test_halves_of_two_pairs_are_refused(self) -> None:
        """R19: each half alone is good."""
        assert not loads(replace(VARIANTS["real"], result=VARIANTS["failed"].result))
        assert not loads(replace(VARIANTS["real"], result=pair(SIMULATED).result))
