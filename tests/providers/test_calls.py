"""What is asked and what comes back: objects that exist in a valid state only."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.execution import LimitName
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    JudgeCall,
    Mount,
    ProviderCode,
    ProviderError,
    ProviderErrorKind,
    ReadCall,
    Recording,
    SandboxKind,
    WarningCode,
    WorkCall,
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

    def test_the_words_for_a_sandbox_are_closed(self) -> None:
        """P13: the record says which there was."""
        assert [kind.value for kind in SandboxKind] == [
            "program",
            "bubblewrap",
            "permissions_only",
            "unconfined",
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


READ: dict[str, Any] = {
    "prompt": "Look.",
    "checkout": Path("/checkout"),
    "model": "model",
    "timeout_seconds": 1,
    "answer_schema": SCHEMA,
}
WORK: dict[str, Any] = {
    "prompt": "Mend.",
    "working_copy": Path("/copy"),
    "model": "model",
    "timeout_seconds": 1,
    "answer_schema": SCHEMA,
    "mount": Mount((Path("/arm/skill"),), "Be good."),
}


@pytest.mark.parametrize(("kind", "good"), [(ReadCall, READ), (WorkCall, WORK)], ids=["read", "work"])
class TestReadAndWorkCalls:
    def test_a_whole_one_is_made(self, kind: type[Any], good: dict[str, Any]) -> None:
        """P13: it says what is asked and where."""
        call = kind(**good)
        assert {name: getattr(call, name) for name in good} == good

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("prompt", " "),
            ("prompt", "\ud800"),
            ("model", "--model"),
            ("timeout_seconds", 0),
            ("timeout_seconds", math.inf),
            ("timeout_seconds", True),
        ],
    )
    def test_it_is_bound_like_a_judge_call(
        self, kind: type[Any], good: dict[str, Any], name: str, value: object
    ) -> None:
        """P2: an exact model, something to ask, a time."""
        self.refused(kind, good, name, value)

    def test_its_folder_is_absolute(self, kind: type[Any], good: dict[str, Any]) -> None:
        """P13: there is one folder it can mean."""
        (name,) = (name for name, value in good.items() if isinstance(value, Path))
        self.refused(kind, good, name, Path("relative"))

    def test_the_prompt_does_not_show_in_a_trace(self, kind: type[Any], good: dict[str, Any]) -> None:
        """P7: nor the schema."""
        text = repr(kind(**good | {"prompt": "canary"}))
        assert "canary" not in text
        assert "judgments" not in text

    def refused(self, kind: type[Any], good: dict[str, Any], name: str, value: object) -> None:
        with pytest.raises(ProviderError) as caught:
            kind(**good | {name: value})
        assert caught.value.code is ProviderCode.INVALID_CALL

    def test_it_may_ask_for_free_text(self, kind: type[Any], good: dict[str, Any]) -> None:
        """P12 P13: a schema is asked for where the answer has a form."""
        call = kind(**good | {"answer_schema": None})
        assert call.schema_bytes() is None
        assert kind(**good).schema_bytes() == dump(SCHEMA)

    def test_a_schema_that_has_no_json_form_is_refused(self, kind: type[Any], good: dict[str, Any]) -> None:
        self.refused(kind, good, "answer_schema", {"enum": {1, 2}})


class TestAWorkCall:
    def test_without_a_mount_nothing_is_given(self) -> None:
        """P13: nor is anything of the user's."""
        assert WorkCall("Mend.", Path("/copy"), "model", 1).mount is None

    def test_what_it_may_read_is_named_by_absolute_paths(self) -> None:
        """P13: there is one place that each can mean."""
        with pytest.raises(ProviderError) as caught:
            WorkCall("Mend.", Path("/copy"), "model", 1, read_roots=(Path("/a"), Path("b")))
        assert caught.value.code is ProviderCode.INVALID_CALL


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
        assert outcome.recording is None
        assert outcome.sandbox is None
        assert not outcome.retryable

    def test_model_output_does_not_show_in_a_trace(self) -> None:
        """P7: answers and a provider's words stay out of `repr`."""
        outcome = CallOutcome(
            Ending.SUCCESS,
            answer="canary-answer",
            warnings=(CallWarning(WarningCode.PROVIDER_NOTICE, "canary-words"),),
            recording=Recording(b"canary-stream", b"canary-stderr"),
        )

        assert "canary" not in repr(outcome)
