"""What is asked and what comes back: objects that exist in a valid state only."""

from __future__ import annotations

import math

import pytest

from skill_effectiveness.execution import LimitName
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    JudgeCall,
    ProviderCode,
    ProviderError,
    ProviderErrorKind,
    WarningCode,
)
from tests.support.provider_calls import SCHEMA, question


class TestWords:
    def test_the_words_for_an_ending_are_closed(self) -> None:
        """P6: these endings and no other."""
        assert [ending.value for ending in Ending] == [
            "success",
            "no_answer",
            "answer_invalid",
            "provider_error",
            "refused",
            "tool_activity",
            "model_mismatch",
            "stream_invalid",
            "limit",
            "timeout",
            "cancelled",
            "unstartable",
        ]

    def test_the_kinds_of_provider_error_are_closed(self) -> None:
        """P7: these kinds and no other."""
        assert [kind.value for kind in ProviderErrorKind] == [
            "auth_unavailable",
            "quota_unavailable",
            "rate_limited",
            "server_error",
            "connection_lost",
            "model_unavailable",
            "unsupported_flag",
            "invalid_schema",
            "permission_denied",
            "other",
        ]

    def test_there_are_three_kinds_of_call(self) -> None:
        """P13: judge, read and work."""
        assert [kind.value for kind in CallKind] == ["judge", "read", "work"]

    @pytest.mark.parametrize("kind", ProviderErrorKind)
    def test_three_kinds_may_pass_by_themselves(self, kind: ProviderErrorKind) -> None:
        """P6 F13: whether an error is retryable follows from its kind."""
        outcome = CallOutcome(Ending.PROVIDER_ERROR, error_kind=kind)

        assert outcome.retryable is (kind.value in {"rate_limited", "server_error", "connection_lost"})


class TestJudgeCall:
    @pytest.mark.parametrize("prompt", ["", " \n\t"])
    def test_an_empty_prompt_is_refused(self, prompt: str) -> None:
        self.refused(prompt=prompt)

    def test_a_prompt_without_a_utf8_form_is_refused(self) -> None:
        """F18: half a surrogate pair never reaches a program's stdin."""
        self.refused(prompt="before \ud800 after")

    @pytest.mark.parametrize("model", ["", "-model", "--model", "two words", "m\n", "m;rm", "a" * 129, "é"])
    def test_a_model_id_that_could_be_anything_else_is_refused(self, model: str) -> None:
        """P2: an exact model id cannot be an option or several words."""
        self.refused(model=model)

    @pytest.mark.parametrize("model", ["gpt-5.5", "openai/gpt:5", "A", "a" * 128])
    def test_model_ids_as_vendors_write_them_are_taken(self, model: str) -> None:
        assert question(model=model).model == model

    @pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True])
    def test_a_time_that_never_ends_or_never_begins_is_refused(self, seconds: float) -> None:
        self.refused(seconds=seconds)

    def test_a_schema_without_a_json_form_is_refused(self) -> None:
        with pytest.raises(ProviderError) as caught:
            JudgeCall("Ask.", {"enum": {1, 2}}, "model", 1)
        assert caught.value.code is ProviderCode.INVALID_CALL

    def test_the_schema_is_sent_in_its_canonical_form(self) -> None:
        assert (
            JudgeCall("Ask.", {"b": [1], "a": "é"}, "model", 1).schema_bytes() == '{"a":"é","b":[1]}'.encode()
        )

    def test_neither_prompt_nor_schema_shows_in_a_trace(self) -> None:
        """P7: what is asked does not leak through `repr`."""
        call = JudgeCall("canary-prompt", {"title": "canary-schema"}, "model", 5)

        assert repr(call) == "JudgeCall(model='model', timeout_seconds=5)"

    def refused(self, prompt: str = "Ask.", model: str = "model", seconds: float = 1) -> None:
        with pytest.raises(ProviderError) as caught:
            JudgeCall(prompt, SCHEMA, model, seconds)
        assert caught.value.code is ProviderCode.INVALID_CALL
        assert caught.value.sentence.startswith("This call cannot be made: ")


class TestCallOutcome:
    def test_only_a_success_has_an_answer(self) -> None:
        """P6: an outcome cannot hold an answer that does not count, nor a success without one."""
        assert CallOutcome(Ending.SUCCESS, answer="{}").answer == "{}"
        for ending in Ending:
            if ending is not Ending.SUCCESS:
                with pytest.raises(ValueError, match="answer goes with the ending success"):
                    CallOutcome(ending, answer="{}")
        with pytest.raises(ValueError, match="answer"):
            CallOutcome(Ending.SUCCESS)

    def test_an_error_kind_goes_with_a_provider_error_alone(self) -> None:
        with pytest.raises(ValueError, match="error_kind"):
            CallOutcome(Ending.TIMEOUT, error_kind=ProviderErrorKind.OTHER)
        with pytest.raises(ValueError, match="error_kind"):
            CallOutcome(Ending.PROVIDER_ERROR)

    def test_a_limit_is_named_exactly_when_one_was_crossed(self) -> None:
        """P5: the ending `limit` says which."""
        assert CallOutcome(Ending.LIMIT, limit=LimitName.LINE_BYTES).limit == "line_bytes"
        with pytest.raises(ValueError, match="limit"):
            CallOutcome(Ending.LIMIT)
        with pytest.raises(ValueError, match="limit"):
            CallOutcome(Ending.CANCELLED, limit=LimitName.LINE_BYTES)

    def test_what_was_not_told_is_unknown(self) -> None:
        """F40 P8: nothing that is missing reads as zero."""
        outcome = CallOutcome(Ending.TIMEOUT)

        assert outcome.usage is UNKNOWN_USAGE
        assert outcome.usage.input_tokens is None
        assert outcome.usage.cost_units is None
        assert not outcome.retryable

    def test_model_output_does_not_show_in_a_trace(self) -> None:
        """P7: answers and a provider's words stay out of `repr`."""
        outcome = CallOutcome(
            Ending.SUCCESS,
            answer="canary-answer",
            warnings=(CallWarning(WarningCode.PROVIDER_NOTICE, "canary-words"),),
        )

        assert "canary" not in repr(outcome)
