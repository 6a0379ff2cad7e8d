"""A reviewer made of chance, whose chances are known."""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import ExecutableCode, ExecutableError
from skill_effectiveness.protocol.cases import Verdict
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    Ending,
    JudgeCall,
    ProviderCode,
    ProviderError,
    ShownTruth,
    SimulatedReviewer,
    SimulatedSettings,
    simulated,
)
from tests.support.provider_calls import question, surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.providers import CallOutcome

VERDICTS = (Verdict.A_WIN, Verdict.B_WIN, Verdict.TIE)


def truths(count: int, *, swapped: bool | None = None) -> list[ShownTruth]:
    """Cases with every verdict in turn; every other pair of them shown swapped, unless `swapped` says."""
    return [
        ShownTruth(
            shown_label=f"case-{number + 1:02}",
            case_id=f"implementation-{number + 1:02}",
            verdict=VERDICTS[number % 3],
            swapped=number % 4 < 2 if swapped is None else swapped,
        )
        for number in range(count)
    ]


def asked(
    tmp_path: Path, settings: SimulatedSettings, truth: Sequence[ShownTruth], repeat: str = "r01"
) -> CallOutcome:
    return SimulatedReviewer(settings, truth, repeat=repeat).judge(question(), around=surroundings(tmp_path))


def shown_verdicts(outcome: CallOutcome) -> dict[str, str]:
    assert outcome.answer is not None
    document = json.loads(outcome.answer)
    assert list(document) == ["judgments"]
    assert all(list(entry) == ["case", "verdict"] for entry in document["judgments"])
    return {entry["case"]: entry["verdict"] for entry in document["judgments"]}


def in_bank_orientation(outcome: CallOutcome, truth: Sequence[ShownTruth]) -> list[Verdict]:
    shown = shown_verdicts(outcome)
    given = [Verdict(shown[one.shown_label]) for one in truth]
    return [verdict.turned() if one.swapped else verdict for verdict, one in zip(given, truth, strict=True)]


def settings(accuracy: float = 1.0, seed: int = 7, **others: float) -> SimulatedSettings:
    return SimulatedSettings.model_validate({"accuracy": accuracy, "seed": seed, **others})


class TestSettings:
    @pytest.mark.parametrize("name", ["accuracy", "position_bias", "flakiness", "refusal_rate"])
    @pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), True, "0.5", None])
    def test_a_share_is_a_number_from_0_to_1(self, name: str, value: object) -> None:
        """R44: five settings with a closed range."""
        with pytest.raises(ValidationError):
            SimulatedSettings.model_validate({"accuracy": 0.5, name: value})

    @pytest.mark.parametrize("seed", [-1, 2**53, 1.0, True, "7"])
    def test_a_seed_is_an_integer_that_json_keeps(self, seed: object) -> None:
        with pytest.raises(ValidationError):
            SimulatedSettings.model_validate({"accuracy": 0.5, "seed": seed})

    @pytest.mark.parametrize("seed", [0, 2**53 - 1])
    def test_the_ends_of_its_range_are_seeds(self, tmp_path: Path, seed: int) -> None:
        assert asked(tmp_path, settings(seed=seed), truths(3)).ending is Ending.SUCCESS

    def test_nothing_else_can_be_set(self) -> None:
        with pytest.raises(ValidationError):
            SimulatedSettings.model_validate({"accuracy": 0.5, "charm": 1.0})


class TestTruth:
    @pytest.mark.parametrize(
        "second",
        [
            ShownTruth("case-01", "plan-02", Verdict.TIE, swapped=False),
            ShownTruth("case-02", "plan-01", Verdict.TIE, swapped=False),
        ],
    )
    def test_each_case_and_each_label_occurs_once(self, second: ShownTruth) -> None:
        first = ShownTruth("case-01", "plan-01", Verdict.TIE, swapped=False)

        with pytest.raises(ProviderError) as caught:
            SimulatedReviewer(settings(), [first, second])
        assert caught.value.code is ProviderCode.INVALID_TRUTH


class TestAnswers:
    def test_a_perfect_reviewer_says_the_truth_as_it_is_shown(self, tmp_path: Path) -> None:
        """R44: accuracy 1, turned where the case is shown swapped."""
        truth = [
            ShownTruth("case-01", "plan-01", Verdict.A_WIN, swapped=False),
            ShownTruth("case-02", "plan-02", Verdict.A_WIN, swapped=True),
            ShownTruth("case-03", "plan-03", Verdict.B_WIN, swapped=True),
            ShownTruth("case-04", "plan-04", Verdict.TIE, swapped=True),
        ]
        outcome = asked(tmp_path, settings(accuracy=1.0), truth)

        assert shown_verdicts(outcome) == {
            "case-01": "A win",
            "case-02": "B win",
            "case-03": "A win",
            "case-04": "tie",
        }

    def test_what_it_cost_is_unknown(self, tmp_path: Path) -> None:
        """F40: nothing was counted, so nothing is zero."""
        outcome = asked(tmp_path, settings(), truths(3))

        assert outcome.usage == UNKNOWN_USAGE
        assert outcome.session_id is None
        assert outcome.events == ()
        assert outcome.warnings == ()

    def test_a_reviewer_that_is_always_wrong_is_never_right(self, tmp_path: Path) -> None:
        """R44: accuracy 0 gives one of the two others, and both of them."""
        truth = truths(120)
        given = in_bank_orientation(asked(tmp_path, settings(accuracy=0.0), truth), truth)

        pairs = {(one.verdict, verdict) for one, verdict in zip(truth, given, strict=True)}
        assert pairs == {(a, b) for a in VERDICTS for b in VERDICTS if a is not b}

    def test_position_bias_is_for_the_seat_not_for_the_text(self, tmp_path: Path) -> None:
        """R44: bias 1 gives the first seat every case, however it is shown."""
        outcome = asked(tmp_path, settings(accuracy=0.0, position_bias=1.0), truths(24))

        assert set(shown_verdicts(outcome).values()) == {"A win"}

    @pytest.mark.parametrize(("accuracy", "low", "high"), [(0.8, 0.76, 0.84), (0.5, 0.45, 0.55)])
    def test_shares_are_kept_over_many_cases(
        self, tmp_path: Path, accuracy: float, low: float, high: float
    ) -> None:
        """R44: about as accurate as it is set; four standard errors of 2,000 cases."""
        truth = truths(2000)
        given = in_bank_orientation(asked(tmp_path, settings(accuracy=accuracy), truth), truth)

        right = sum(verdict is one.verdict for one, verdict in zip(truth, given, strict=True))
        assert low < right / 2000 < high

    def test_bias_and_accuracy_mix(self, tmp_path: Path) -> None:
        """R44: at bias 0.4 a perfect reviewer errs where the first seat is wrong: 0.4 of two thirds."""
        truth = truths(3000)
        given = in_bank_orientation(asked(tmp_path, settings(accuracy=1.0, position_bias=0.4), truth), truth)

        wrong = sum(verdict is not one.verdict for one, verdict in zip(truth, given, strict=True))
        assert 0.23 < wrong / 3000 < 0.30


class TestRepeats:
    def test_without_flakiness_every_repeat_says_the_same(self, tmp_path: Path) -> None:
        """R44: in bank orientation, whatever the order and the orientation shown."""
        shown = truths(60)
        turned = [
            ShownTruth(f"case-{60 - n:02}", one.case_id, one.verdict, swapped=not one.swapped)
            for n, one in enumerate(shown)
        ][::-1]
        mixed = settings(accuracy=0.5)

        first = dict(
            zip(
                (one.case_id for one in shown),
                in_bank_orientation(asked(tmp_path, mixed, shown), shown),
                strict=True,
            )
        )
        second = dict(
            zip(
                (one.case_id for one in turned),
                in_bank_orientation(asked(tmp_path, mixed, turned, "r02"), turned),
                strict=True,
            )
        )
        assert first == second

    def test_flakiness_draws_anew_per_repeat(self, tmp_path: Path) -> None:
        """R44: at flakiness 1 repeats agree by chance alone, at 0.3 mostly."""
        truth = truths(900)

        def agreeing(flakiness: float) -> float:
            first, second = (
                in_bank_orientation(
                    asked(tmp_path, settings(accuracy=0.5, flakiness=flakiness), truth, repeat), truth
                )
                for repeat in ("r01", "r02")
            )
            return sum(a is b for a, b in zip(first, second, strict=True)) / 900

        # Two independent draws agree at 0.5 * 0.5 + 2 * 0.25 * 0.25 = 0.375.
        assert 0.31 < agreeing(1.0) < 0.44
        assert 0.62 < agreeing(0.3) < 0.76

    def test_equal_settings_and_seed_give_equal_answers(self, tmp_path: Path) -> None:
        """R44: to the last byte."""
        same = settings(accuracy=0.6, position_bias=0.2, flakiness=0.5, refusal_rate=0.1)

        assert [asked(tmp_path, same, truths(24), f"r{n}").answer for n in range(20)] == [
            asked(tmp_path, same, truths(24), f"r{n}").answer for n in range(20)
        ]

    def test_another_seed_gives_another_answer(self, tmp_path: Path) -> None:
        answers = [
            asked(tmp_path, settings(accuracy=0.5, seed=seed), truths(24)).answer for seed in range(20)
        ]

        assert len(set(answers)) == 20

    def test_the_first_answers_of_a_seed_are_fixed_for_good(self, tmp_path: Path) -> None:
        """R44: computed here from SHAKE-256 by hand, so that no change of code can move them unnoticed."""

        def words(use: str) -> list[float]:
            preimage = f'{{"seed":"{7:064x}","use":"{use}"}}'
            data = hashlib.shake_256(preimage.encode()).digest(12)
            return [int.from_bytes(data[at : at + 4], "little") / 2**32 for at in (0, 4, 8)]

        expected = {}
        for one in truths(24):
            bias, accuracy, other = words(f"simulated/first/{one.case_id}")
            others = [verdict for verdict in VERDICTS if verdict is not one.verdict]
            bank = one.verdict if accuracy < 0.5 else others[int(other * 2)]
            shown = bank.turned() if one.swapped else bank
            expected[one.shown_label] = "A win" if bias < 0.25 else shown.value

        outcome = asked(tmp_path, settings(accuracy=0.5, position_bias=0.25), truths(24))
        assert shown_verdicts(outcome) == expected


class TestRefusals:
    def test_a_call_is_refused_as_a_whole(self, tmp_path: Path) -> None:
        """R44 P6: the one ending `refused` there is so far."""
        outcome = asked(tmp_path, settings(refusal_rate=1.0), truths(24))

        assert outcome.ending is Ending.REFUSED
        assert outcome.answer is None

    def test_refusals_are_drawn_per_repeat(self, tmp_path: Path) -> None:
        endings = [asked(tmp_path, settings(refusal_rate=0.4), truths(1), f"r{n}").ending for n in range(400)]

        assert 0.3 < endings.count(Ending.REFUSED) / 400 < 0.5
        assert len(set(pairwise(endings))) == 4


class TestCalls:
    def test_a_cancelled_call_answers_nothing(self, tmp_path: Path) -> None:
        reviewer = SimulatedReviewer(settings(), truths(3))

        outcome = reviewer.judge(question(), around=surroundings(tmp_path), cancelled=lambda: True)
        assert outcome.ending is Ending.CANCELLED

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "object", "properties": {}},
            {"type": "object", "properties": {"verdict": {"enum": ["A win", "B win", "tie"]}}},
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array"}}},
            {
                "type": "object",
                "properties": {
                    "a": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"case": {"type": "string"}, "verdict": {"enum": ["pass", "fail"]}},
                        },
                    }
                },
            },
        ],
    )
    def test_another_form_of_answer_is_refused(self, tmp_path: Path, schema: dict[str, object]) -> None:
        """P12: it answers what was asked for or says that it cannot."""
        reviewer = SimulatedReviewer(settings(), truths(3))

        with pytest.raises(ProviderError) as caught:
            reviewer.judge(JudgeCall("Ask.", schema, "m", 1), around=surroundings(tmp_path))
        assert caught.value.code is ProviderCode.INVALID_CALL

    def test_the_names_in_the_answer_are_the_asked_ones(self, tmp_path: Path) -> None:
        """P12: read from the schema, as any reviewer does."""
        schema = {
            "type": "object",
            "properties": {
                "votes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "says": {"type": "string", "enum": ["A win", "B win", "tie"]},
                            "pair": {"type": "string"},
                        },
                    },
                }
            },
        }
        outcome = SimulatedReviewer(settings(), truths(1, swapped=False)).judge(
            JudgeCall("Ask.", schema, "m", 1), around=surroundings(tmp_path)
        )

        assert outcome.answer == '{"votes": [{"pair": "case-01", "says": "A win"}]}'


class TestIdentity:
    def test_its_source_stands_for_the_program(self, tmp_path: Path) -> None:
        """P2: version and the digest of the module's own source."""
        executable = SimulatedReviewer(settings()).identify(surroundings(tmp_path))
        source = Path(simulated.__file__)

        assert executable.version == "simulated-1"
        assert executable.resolved == source.resolve()
        assert executable.sha256 == f"sha256:{hashlib.sha256(source.read_bytes()).hexdigest()}"

    def test_a_source_that_cannot_be_read_is_no_identity(self, tmp_path: Path) -> None:
        """P2: typed like that of any other provider."""
        around = surroundings(tmp_path)
        broken = Injection("read", errno.EIO, about=lambda path: path.endswith("simulated.py"))

        with pytest.raises(ExecutableError) as caught:
            SimulatedReviewer(settings()).identify(replace(around, fs=FaultFs(around.fs, broken)))
        assert caught.value.code is ExecutableCode.UNREADABLE

    def test_it_passes_no_environment_on(self) -> None:
        assert SimulatedReviewer(settings()).environment_keys({"PATH": "/bin", "KEY": "x"}) == ()
