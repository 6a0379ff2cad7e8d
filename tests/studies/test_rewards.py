"""Every form of a reward."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.rewards import FAILED, Reward, grading_of, read_reward
from skill_effectiveness.studies.words import GradeState

NO_TRIAL = "sha256:" + "0" * 64
VALID, INVALID, BROKEN = GradeState.VALID, GradeState.GRADER_INVALID, GradeState.GRADER_FAILED


class TestOneFile:
    @pytest.mark.parametrize(
        ("text", "state", "reward"),
        [
            (b"1", VALID, 1.0),
            (b" 0.25\n", VALID, 0.25),
            (b"0", VALID, 0.0),
            (b"-0.0", VALID, 0.0),
            (b"1e-3", VALID, 0.001),
            (b"1.5", INVALID, None),
            (b"-0.1", INVALID, None),
            (b"", BROKEN, None),
            (b"\n", BROKEN, None),
            (b"NaN", BROKEN, None),
            (b"Infinity", BROKEN, None),
            (b"1e999", BROKEN, None),
            (b"true", BROKEN, None),
            (b"null", BROKEN, None),
            (b'"1"', BROKEN, None),
            (b"1 1", BROKEN, None),
            (b"passed", BROKEN, None),
            (b"\xff", BROKEN, None),
            (b"[1]", BROKEN, None),
            (b'{"reward": 1}', BROKEN, None),
        ],
    )
    def test_text(self, text: bytes, state: GradeState, reward: float | None) -> None:
        """S14: a text holds one JSON number."""
        found = read_reward(None, text)
        assert (found.state, found.reward) == (state, reward)

    @pytest.mark.parametrize(
        ("json", "state", "reward", "secondary"),
        [
            (b"0.5", VALID, 0.5, {}),
            (b'{"reward": 0.5}', VALID, 0.5, {}),
            (b'{"accuracy": 0.5}', VALID, 0.5, {}),
            (b'{"reward": 1, "lines": 120, "style": -3.5}', VALID, 1.0, {"lines": 120.0, "style": -3.5}),
            (b'{"reward": 2, "style": 1}', INVALID, None, {}),
            (b'{"a": 1, "b": 1}', BROKEN, None, {}),
            (b"{}", BROKEN, None, {}),
            (b'{"reward": true}', BROKEN, None, {}),
            (b'{"reward": 1, "style": null}', BROKEN, None, {}),
            (b'{"reward": 1, "style": false}', BROKEN, None, {}),
            (b'{"reward": 1, "a/b": 1}', BROKEN, None, {}),
            (b'{"reward": 1, "reward": 1}', BROKEN, None, {}),
            (b'{"reward": NaN}', BROKEN, None, {}),
            (b'{"reward": [1]}', BROKEN, None, {}),
        ],
    )
    def test_json(
        self, json: bytes, state: GradeState, reward: float | None, secondary: dict[str, float]
    ) -> None:
        """S14: JSON holds a number, or an object of numbers of which one counts."""
        found = read_reward(json, None)
        assert (found.state, found.reward, dict(found.secondary)) == (state, reward, secondary)

    @given(data=st.binary(max_size=40), as_json=st.booleans())
    def test_anything(self, data: bytes, *, as_json: bool) -> None:
        """S14: whatever a grader writes has one of three states, and is a number only between 0 and 1."""
        found = read_reward(data if as_json else None, None if as_json else data)
        assert (found.reward is not None) is (found.state is VALID)
        assert found.reward is None or 0 <= found.reward <= 1


class TestTwoFiles:
    @pytest.mark.parametrize(
        ("json", "text", "state"),
        [
            (b"1", b"1", VALID),
            (b'{"reward": 1, "x": 2}', b"1.0", VALID),
            (b"1", b"0", BROKEN),
            (b"1", b"", BROKEN),
            (b"x", b"1", BROKEN),
            (b"2", b"1", BROKEN),
            (b"2", b"3", INVALID),
            (None, None, BROKEN),
        ],
    )
    def test_both_must_agree(self, json: bytes | None, text: bytes | None, state: GradeState) -> None:
        """S14: two files that differ are no reward, and neither is none."""
        assert read_reward(json, text).state is state


class TestTwoRuns:
    @pytest.mark.parametrize(
        ("first", "second", "state"),
        [
            (Reward(VALID, 1.0), Reward(VALID, 1.0), VALID),
            (Reward(VALID, 1.0), Reward(VALID, 0.0), GradeState.REPLAY_DIFFERS),
            (Reward(VALID, 1.0, {"a": 1.0}), Reward(VALID, 1.0), GradeState.REPLAY_DIFFERS),
            (Reward(VALID, 1.0), FAILED, BROKEN),
            (Reward(INVALID), FAILED, BROKEN),
            (Reward(VALID, 1.0), Reward(INVALID), INVALID),
        ],
    )
    def test_state(self, first: Reward, second: Reward, state: GradeState) -> None:
        """S14 S41: only two equal valid runs are a grade."""
        grading = grading_of(first, second, trial_fingerprint=NO_TRIAL, grader_hash=NO_TRIAL, pass_at=1.0)
        assert grading.state is state
        assert (grading.grade_hash is not None) is (state is VALID)
        assert grading.passed is (state is VALID)

    def test_pass_at(self) -> None:
        runs = Reward(VALID, 0.7), Reward(VALID, 0.7)
        found = [
            grading_of(*runs, trial_fingerprint=NO_TRIAL, grader_hash=NO_TRIAL, pass_at=limit).passed
            for limit in (0.7, 0.71)
        ]
        assert found == [True, False]

    def test_a_failure_of_safety_is_a_check_of_its_own(self) -> None:
        run = Reward(VALID, 1.0, {"data_loss": 0.0, "safety": 1.0})
        grading = grading_of(run, run, trial_fingerprint=NO_TRIAL, grader_hash=NO_TRIAL, pass_at=1.0)
        assert grading.grade is not None
        assert [check.check_id for check in grading.grade.outranking_failures] == ["data_loss"]
        assert not grading.passed
