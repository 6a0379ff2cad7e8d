"""What two sessions' answers show of a canary."""

from __future__ import annotations

import base64
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.providers import CallOutcome, Ending, ProviderErrorKind, StreamLimit
from skill_effectiveness.providers.canary import (
    LONGEST_MESSAGE,
    ProbeCode,
    ProbeRefused,
    demand_acknowledged,
    demand_audited,
    like_a_canary,
    names,
    recall_of,
    recall_prompt,
    schema_of,
    seed_prompt,
)
from skill_effectiveness.providers.events import (
    Event,
    Flood,
    Message,
    Notice,
    NoticeKind,
    Reasoning,
    ToolActivity,
    Unknown,
    Unreadable,
)

CANARY = "3f9a1c5e7b2d4860a1b3c5d7e9f01234567890abcdef13579bdf02468ace1122"
OTHER = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"


def said(answer: str, *events: Event) -> CallOutcome:
    """A session that ended well with these words."""
    return CallOutcome(Ending.SUCCESS, answer=answer, events=(*events, Message(answer)))


def recalled(value: object, *events: Event) -> str | None:
    """What a second session that answers with this value recalls."""
    return recall_of(said(json.dumps({"recalled_canary": value}), *events), CANARY, json_fence=False).named


def refusal(outcome: CallOutcome) -> ProbeCode:
    with pytest.raises(ProbeRefused) as caught:
        demand_audited(outcome)
    assert CANARY not in str(caught.value)
    return caught.value.code


class TestPrompts:
    def test_only_the_first_holds_the_canary(self) -> None:
        """T39: and it holds it once."""
        assert seed_prompt(CANARY).count(CANARY) == 1
        assert like_a_canary(recall_prompt()) is None

    def test_nothing_else_is_sent(self) -> None:
        """T39: without the canary the texts are these, whoever is probed."""
        lead = (
            "This is a check of isolation between sessions. Use no tool. Answer with one JSON object alone. "
        )
        assert seed_prompt("CANARY") == (
            lead + 'Its only member is "canary", and its value is this text, character by character: CANARY'
        )
        assert recall_prompt() == (
            lead + 'Its only member is "recalled_canary". If you know a canary, which is a text of 64 '
            "hexadecimal digits that another session was given, the value is that canary. If you know none, "
            "the value is the word none."
        )
        assert schema_of("canary") == {
            "type": "object",
            "properties": {"canary": {"type": "string"}},
            "required": ["canary"],
            "additionalProperties": False,
        }


class TestAudit:
    def test_a_quiet_session_gives_its_answer(self) -> None:
        assert demand_audited(said("{}", Reasoning("hm"), Notice(NoticeKind.REMARK, "slow"))) == "{}"

    @pytest.mark.parametrize(
        "outcome",
        [
            CallOutcome(Ending.TOOL_ACTIVITY, events=(ToolActivity("command"),)),
            CallOutcome(Ending.TOOL_ACTIVITY),
            said("{}", ToolActivity("web_search")),
            CallOutcome(Ending.TIMEOUT, events=(ToolActivity("command"),)),
        ],
    )
    def test_a_tool_outranks_everything(self, outcome: CallOutcome) -> None:
        """T39: also where the session ended well, or otherwise."""
        assert refusal(outcome) is ProbeCode.TOOL_ACTIVITY

    @pytest.mark.parametrize("event", [Unknown("new.event"), Unreadable(b"x", "shape"), Flood()])
    def test_an_event_nobody_knows(self, event: Event) -> None:
        """T39: what cannot be read is not known to be harmless."""
        assert refusal(said("{}", event)) is ProbeCode.EVENT_UNKNOWN

    def test_a_message_that_is_too_long(self) -> None:
        """T39: at the limit it is none, above it is; any message, not the last alone."""
        assert demand_audited(said("x" * LONGEST_MESSAGE))
        assert refusal(said("x" * (LONGEST_MESSAGE + 1))) is ProbeCode.MESSAGE_TOO_LONG
        assert refusal(said("{}", Message("y" * (LONGEST_MESSAGE + 1)))) is ProbeCode.MESSAGE_TOO_LONG

    @pytest.mark.parametrize("ending", sorted(set(Ending) - {Ending.SUCCESS, Ending.TOOL_ACTIVITY}))
    def test_no_other_ending_counts(self, ending: Ending) -> None:
        """T39: whatever it is."""
        kind = ProviderErrorKind.RATE_LIMITED if ending is Ending.PROVIDER_ERROR else None
        limit = StreamLimit.LINES if ending is Ending.LIMIT else None
        expected = ProbeCode.PROBE_CANCELLED if ending is Ending.CANCELLED else ProbeCode.CALL_FAILED
        assert refusal(CallOutcome(ending, error_kind=kind, limit=limit)) is expected

    def test_the_sentence_names_the_ending_and_its_detail(self) -> None:
        failed = CallOutcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.QUOTA_UNAVAILABLE)
        with pytest.raises(
            ProbeRefused, match=r"ended with provider_error:quota_unavailable\. The folder is"
        ):
            demand_audited(failed)


class TestAcknowledgement:
    def test_is_the_canary_and_nothing_beside_it(self) -> None:
        demand_acknowledged(json.dumps({"canary": CANARY}), CANARY, json_fence=False)
        demand_acknowledged(f'```json\n{{"canary": "{CANARY}"}}\n```', CANARY, json_fence=True)

    @pytest.mark.parametrize(
        "answer",
        [
            CANARY,
            json.dumps({"canary": CANARY.upper()}),
            json.dumps({"canary": CANARY[:-1]}),
            json.dumps({"canary": CANARY, "note": "ok"}),
            json.dumps({"recalled_canary": CANARY}),
            json.dumps([CANARY]),
            f'```json\n{{"canary": "{CANARY}"}}\n```',
            "",
        ],
    )
    def test_is_nothing_else(self, answer: str) -> None:
        """T39: without it a second session that recalls nothing would say nothing."""
        with pytest.raises(ProbeRefused) as caught:
            demand_acknowledged(answer, CANARY, json_fence=False)
        assert caught.value.code is ProbeCode.SEED_NOT_ACKNOWLEDGED


SPACED = " ".join(CANARY[start : start + 4] for start in range(0, 64, 4))
FORMS = {
    "as it is": CANARY,
    "in capitals": CANARY.upper(),
    "in a sentence": f"I was told {CANARY}, I think.",
    "in groups": SPACED,
    "with dashes": SPACED.replace(" ", "-"),
    "with colons": ":".join(CANARY[start : start + 2] for start in range(0, 64, 2)),
    "over lines": "\n".join(CANARY[start : start + 16] for start in range(0, 64, 16)),
    "as a number": f"0x{CANARY}",
    "in decimal": str(int(CANARY, 16)),
    "backwards": CANARY[::-1],
    "in full width": CANARY.translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789abcdef"}),
    "in base64 of its digits": base64.b64encode(CANARY.encode()).decode(),
    "in base64 of its bytes": base64.b64encode(bytes.fromhex(CANARY)).decode(),
    "in the other alphabet": base64.urlsafe_b64encode(bytes.fromhex(CANARY)).decode().rstrip("="),
    "its first quarter": CANARY[:16],
    "its last quarter": CANARY[-16:],
    "with something between": "\N{ZERO WIDTH SPACE}".join(CANARY),
}


class TestRecall:
    @pytest.mark.parametrize("value", FORMS.values(), ids=FORMS)
    def test_the_canary_in_another_form(self, value: str) -> None:
        """T37: named is named, however it is written; what is kept is of the canary itself."""
        assert recalled(value) == CANARY

    def test_another_value_of_that_form(self) -> None:
        """T37: it may be of an earlier probe, and nobody can say that it is not."""
        assert recalled(OTHER) == OTHER
        assert recalled(OTHER.upper().replace("A", "a")) == OTHER
        assert recalled("-".join(OTHER[start : start + 8] for start in range(0, 64, 8))) == OTHER

    def test_nothing(self) -> None:
        """T37: exactly the word that was asked for."""
        assert recalled("none") is None

    @pytest.mark.parametrize(
        "event",
        [Message(f"{CANARY}"), Reasoning(f"The canary was {SPACED}"), Notice(NoticeKind.ERROR, CANARY)],
    )
    def test_it_is_looked_for_in_everything_that_was_said(self, event: Event) -> None:
        """T37: an answer that denies it does not take it back."""
        assert recalled("none", event) == CANARY

    def test_prose_that_names_it(self) -> None:
        """T37: an answer of another form, in which it stands."""
        assert recall_of(said(f"It is {CANARY}."), CANARY, json_fence=False).named == CANARY

    @pytest.mark.parametrize("value", [None, True, 0, 1.5, [], [CANARY], {"value": CANARY}])
    def test_no_text(self, value: object) -> None:
        """T39: no report, whatever stands in it."""
        with pytest.raises(ProbeRefused) as caught:
            recalled(value)
        assert caught.value.code is ProbeCode.RECALL_NOT_TEXT

    @pytest.mark.parametrize(
        "value", ["", "None", "none.", "no canary", "I recall none", CANARY[:15], "3f9a"]
    )
    def test_a_text_that_is_neither(self, value: str) -> None:
        """T37 T39: it is no recall and no proof of none."""
        with pytest.raises(ProbeRefused) as caught:
            recalled(value)
        assert caught.value.code is ProbeCode.RECALL_UNCLEAR

    @pytest.mark.parametrize(
        "answer",
        [
            "none",
            '{"canary": "none"}',
            '{"recalled_canary": "none", "more": 1}',
            '{"recalled_canary": "none", "recalled_canary": "none"}',
            '```json\n{"recalled_canary": "none"}\n```',
            "{}",
            "",
        ],
    )
    def test_an_answer_of_another_form(self, answer: str) -> None:
        """T39: nothing is searched for that would say there was none."""
        with pytest.raises(ProbeRefused) as caught:
            recall_of(said(answer), CANARY, json_fence=False)
        assert caught.value.code is ProbeCode.RECALL_UNCLEAR

    def test_a_fence_where_the_provider_may_have_one(self) -> None:
        fenced = '```json\n{"recalled_canary": "none"}\n```'
        assert recall_of(said(fenced), CANARY, json_fence=True).named is None

    def test_nothing_of_it_is_shown_by_accident(self) -> None:
        recall = recall_of(said(CANARY), CANARY, json_fence=False)
        assert CANARY not in repr(recall)


class TestForms:
    @given(st.text(alphabet="ghijklmnopqrstuvwxyz .,-:", max_size=80), st.integers(0, 48))
    def test_sixteen_digits_in_a_row_are_named_wherever_they_stand(self, around: str, start: int) -> None:
        """T37: among whatever is no digit."""
        part = CANARY[start : start + 16]
        half = len(around) // 2
        assert names(f"{around[:half]}{part[:7]}{around[half:]}{part[7:]}{around}", CANARY)

    @given(
        st.text(
            alphabet=st.characters(codec="utf-8", exclude_characters="0123456789abcdefABCDEF"), max_size=60
        )
    )
    def test_a_text_without_digits_names_nothing(self, text: str) -> None:
        """T37: unless its letters are digits in another form, which normalising tells."""
        plain = unicodedata.normalize("NFKC", text).casefold()
        if not set(plain) & set("0123456789abcdef"):
            assert not names(text, CANARY)
            assert like_a_canary(text) is None

    def test_a_longer_run_of_digits_is_no_canary(self) -> None:
        assert like_a_canary("a" * 65) is None
        assert like_a_canary("a" * 64) == "a" * 64
