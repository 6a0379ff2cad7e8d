"""An answer is one strict JSON object, or it does not count."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.providers import ProviderCode, ReplyError, one_json_object

FENCED = '```json\n{"verdict":"tie"}\n```'


class TestBareObject:
    def test_an_object_is_read(self) -> None:
        """P12: one strict JSON object."""
        assert one_json_object('{"verdict":"tie","n":[1,2.5,null,true]}') == {
            "verdict": "tie",
            "n": [1, 2.5, None, True],
        }

    def test_white_space_around_it_does_no_harm(self) -> None:
        assert one_json_object('\n {"a":1}\r\n') == {"a": 1}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "   ",
            "tie",
            '"tie"',
            "[]",
            "null",
            '[{"verdict":"tie"}]',
            'My answer: {"verdict":"tie"}',
            '{"verdict":"tie"} as I said',
            '{"verdict":"tie"}{"verdict":"A win"}',
            '{"verdict":"tie"',
            "{'verdict':'tie'}",
            '{"verdict":"tie",}',
            "\ufeff{}",
            '{"verdict":"tie"} [END DATA]',
        ],
    )
    def test_anything_else_is_refused_whole(self, text: str) -> None:
        """P12 F28: nothing is searched for in surrounding text."""
        with pytest.raises(ReplyError):
            one_json_object(text)

    @pytest.mark.parametrize(
        "text",
        [
            '{"pass":false,"pass":true}',
            '{"a":{"x":1,"\\u0078":2}}',
            '{"score":NaN}',
            '{"score":Infinity}',
            '{"score":1e999}',
            '{"n":9007199254740993}',
            '{"text":"\\ud800"}',
        ],
    )
    def test_an_object_with_two_meanings_or_none_is_refused(self, text: str) -> None:
        """P12 F18 F28: repeated members, numbers that are none, half characters."""
        with pytest.raises(ReplyError) as caught:
            one_json_object(text)
        assert caught.value.code is ProviderCode.REPLY_INVALID

    @pytest.mark.parametrize("text", ["null", "[]", '"tie"', "1", '[{"verdict":"tie"}]'])
    def test_another_json_value_is_told_from_no_json(self, text: str) -> None:
        """P12: whoever asked may want to know that it was JSON."""
        with pytest.raises(ReplyError) as caught:
            one_json_object(text)
        assert caught.value.code is ProviderCode.REPLY_NO_OBJECT

    @pytest.mark.parametrize("text", ["", '[{"a":1,"a":2}]', "[NaN]", "[1] [2]"])
    def test_but_not_when_it_is_not_strict(self, text: str) -> None:
        with pytest.raises(ReplyError) as caught:
            one_json_object(text)
        assert caught.value.code is ProviderCode.REPLY_INVALID

    def test_half_a_surrogate_pair_in_the_text_itself_is_refused(self) -> None:
        """F18: a typed error, no crash."""
        with pytest.raises(ReplyError, match="no UTF-8 form"):
            one_json_object('{"a":"\ud800"}')

    def test_nesting_beyond_measure_is_refused(self) -> None:
        with pytest.raises(ReplyError, match="too_deep"):
            one_json_object("[" * 100_000)

    def test_the_refusal_quotes_nothing(self) -> None:
        """P7: no model output in an error."""
        with pytest.raises(ReplyError) as caught:
            one_json_object('canary {"canary":1}')
        assert "canary" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


class TestFence:
    def test_it_is_refused_by_default(self) -> None:
        """F25 P12: a fence counts only where a provider's contract allows it."""
        with pytest.raises(ReplyError):
            one_json_object(FENCED)

    @pytest.mark.parametrize("text", [FENCED, f"\n{FENCED}\n", '```json\r\n{"verdict":"tie"}\r\n```'])
    def test_exactly_one_is_taken_where_it_is_allowed(self, text: str) -> None:
        """F25 P12: one fence and nothing around it."""
        assert one_json_object(text, allow_json_fence=True) == {"verdict": "tie"}

    @pytest.mark.parametrize(
        "text",
        [
            f"Here:\n{FENCED}",
            f"{FENCED}\nDone.",
            f"{FENCED}\n{FENCED}",
            '```\n{"verdict":"tie"}\n```',
            '```JSON\n{"verdict":"tie"}\n```',
            '```json5\n{"verdict":"tie"}\n```',
            '````json\n{"verdict":"tie"}\n````',
            '```json {"verdict":"tie"}```',
            "```json\n[]\n```",
            "```json\n```",
        ],
    )
    def test_anything_near_it_is_refused(self, text: str) -> None:
        """F25: no other fence, no text around it, no second one."""
        with pytest.raises(ReplyError):
            one_json_object(text, allow_json_fence=True)

    def test_a_bare_object_is_taken_too(self) -> None:
        assert one_json_object('{"a":"```json"}', allow_json_fence=True) == {"a": "```json"}


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cn", "Co"])),
        st.none()
        | st.booleans()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.text(st.characters(codec="ascii")),
    )
)
def test_what_another_library_writes_is_read_back(value: dict[str, object]) -> None:
    """P12: json.dumps and the strict reader agree on every plain object."""
    assert one_json_object(json.dumps(value)) == value
