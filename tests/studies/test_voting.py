"""Ballots, votes and what an answer counts for."""

from __future__ import annotations

import json

import pytest

from skill_effectiveness.providers import CallOutcome, Ending
from skill_effectiveness.providers.calls import ProviderErrorKind, StreamLimit
from skill_effectiveness.studies.canaries import as_pair, drawn_canaries
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.pairing import ShownPair
from skill_effectiveness.studies.state import VoteState
from skill_effectiveness.studies.voting import (
    Asked,
    ShownCanary,
    VoteDocument,
    VoteUsage,
    ballot,
    judged,
    read_vote,
    unanswered,
    vote_hash,
    vote_id_of,
    vote_line,
)
from tests.support.examinations import INPUTS

CHANCE = Chance(bytes(32))
LICENCE = 32 * "a"
PAIRS = tuple(
    ShownPair(f"pair-{number:064x}", number % 2, "task", "rubric", "a", "b") for number in range(40)
)
PRESENTATION = PAIRS[0].presentation()
UNKNOWN = VoteUsage(
    input_tokens=None,
    cached_tokens=None,
    output_tokens=None,
    reasoning_tokens=None,
    cost_units=None,
    latency_ms=None,
)


def canaries() -> dict[int, ShownCanary]:
    """Those of forty showings."""
    drawn = drawn_canaries(INPUTS.bank, INPUTS.policy.canary_rule, CHANCE, LICENCE, len(PAIRS))
    return {place: ShownCanary(canary, as_pair(canary, None)) for place, canary in drawn.items()}


def document(**changes: object) -> VoteDocument:
    """A valid vote."""
    fields: dict[str, object] = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-study-vote-v1",
        "vote_id": "vote-1",
        "licence_id": LICENCE,
        "pair_id": PAIRS[0].pair_id,
        "position": 0,
        "canary": None,
        "prompt_sha256": "sha256:" + 64 * "0",
        "chars_a": 1,
        "chars_b": 1,
        "ending": Ending.SUCCESS,
        "state": "valid",
        "verdict": "tie",
        "executable_hash": "sha256:" + 64 * "1",
        "cli_version": "tool 1",
        "model": "model-1",
        "usage": UNKNOWN.model_dump(),
        "voted_at": "2026-03-04T05:06:07Z",
    }
    return VoteDocument.model_validate_json(json.dumps(fields | changes))


def entry(**changes: object) -> str:
    """An answer about the one case."""
    return json.dumps({"judgments": [{"case": "case-01", "verdict": "A win"} | changes]})


# Ballots.


def test_a_ballot_holds_every_showing_once_and_its_canaries() -> None:
    """S39: canaries at their places, the last line is a pair."""
    known = canaries()
    lines = ballot(CHANCE, LICENCE, PAIRS, known)
    assert sorted(line.shown.pair_id for line in lines if line.canary is None) == [
        one.pair_id for one in PAIRS
    ]
    asked = {place for place, line in enumerate(lines) if line.canary is not None}
    assert asked == {place for place in known if place < len(lines)}
    assert len(asked) == 2
    assert lines[-1].canary is None


def test_the_order_of_votes_is_drawn() -> None:
    """S38 S39: not that of the pairs, not the same for two licences, the same for one seed."""
    lines = ballot(CHANCE, LICENCE, PAIRS, canaries())
    order = [line.shown.pair_id for line in lines if line.canary is None]
    assert order != sorted(order)
    assert ballot(CHANCE, LICENCE, reversed(PAIRS), canaries()) == lines
    assert ballot(CHANCE, 32 * "b", PAIRS, {}) != ballot(CHANCE, LICENCE, PAIRS, {})
    assert ballot(CHANCE, LICENCE, (), canaries()) == ()


def test_vote_ids_tell_nothing() -> None:
    """S38: one for each vote, drawn from the seed, with nothing of pair, place or licence in it."""
    ids = {vote_id_of(CHANCE, LICENCE, one.pair_id, attempt) for one in PAIRS for attempt in (0, 1)}
    assert len(ids) == 80
    assert vote_id_of(Chance(bytes([1]) * 32), LICENCE, PAIRS[0].pair_id, 0) not in ids
    assert not any(LICENCE[:8] in name or PAIRS[0].pair_id[5:] in name for name in ids)


def test_only_what_brought_no_answer_is_asked_again() -> None:
    """S39: an answer stands, whatever it was; a started vote is never started again."""
    lines = [Asked(one) for one in PAIRS[:7]]
    states = ["valid", "invalid", "no_verdict", "refused", "provider_error", None]
    votes = [
        VoteState(f"vote-{number}", LICENCE, lines[number].shown.pair_id, 0, "", state)
        for number, state in enumerate(states)
    ]
    again = VoteState("vote-9", LICENCE, lines[4].shown.pair_id, 0, "", "provider_error")
    assert list(unanswered(lines, [*votes, again])) == [(lines[4], 2), (lines[6], 0)]
    answered = VoteState("vote-8", LICENCE, lines[4].shown.pair_id, 0, "", "valid")
    assert list(unanswered(lines, [*votes, answered])) == [(lines[6], 0)]


# What an answer counts for.


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (entry(), "valid"),
        (entry(verdict="a win"), "invalid"),
        (entry(verdict="A win, but B is close"), "invalid"),
        (entry(score=1), "invalid"),
        (entry(case="case-02"), "invalid"),
        (json.dumps({"judgments": json.loads(entry())["judgments"] * 2}), "invalid"),
        (f"Surely: {entry()}", "invalid"),
        (f"```json\n{entry()}\n```", "invalid"),
        ('{"judgments":[{"case":"case-01"}]}', "no_verdict"),
        ('{"judgments":[]}', "no_verdict"),
        ('{"judgments":[{"case":"case-01","ver', "no_verdict"),
        ("A win", "no_verdict"),
        ("{}", "no_verdict"),
    ],
)
def test_an_answer(answer: str, state: str) -> None:
    """S38 F23 F24 F25 F26 F27: one verdict in the asked form, or none; nothing is looked for elsewhere."""
    found, verdict = judged(CallOutcome(Ending.SUCCESS, answer=answer), PRESENTATION, json_fence=False)
    assert found == state
    assert (verdict == "A win") is (state == "valid")


def test_a_fence_counts_where_the_provider_may_use_one() -> None:
    """F25: exactly one."""
    outcome = CallOutcome(Ending.SUCCESS, answer=f"```json\n{entry()}\n```")
    assert judged(outcome, PRESENTATION, json_fence=True)[0] == "valid"


ENDINGS = {
    Ending.NO_ANSWER: "no_verdict",
    Ending.ANSWER_INVALID: "invalid",
    Ending.REFUSED: "refused",
    Ending.TOOL_ACTIVITY: "invalid",
    Ending.MODEL_MISMATCH: "invalid",
    Ending.PROVIDER_ERROR: "provider_error",
    Ending.STREAM_INVALID: "provider_error",
    Ending.LIMIT: "provider_error",
    Ending.TIMEOUT: "provider_error",
    Ending.CANCELLED: "provider_error",
    Ending.UNSTARTABLE: "provider_error",
}


def test_every_ending_without_an_answer() -> None:
    """S39: none of them is a verdict."""
    assert set(ENDINGS) == set(Ending) - {Ending.SUCCESS}
    for ending, state in ENDINGS.items():
        kind = ProviderErrorKind.RATE_LIMITED if ending is Ending.PROVIDER_ERROR else None
        limit = StreamLimit.LINES if ending is Ending.LIMIT else None
        outcome = CallOutcome(ending, error_kind=kind, limit=limit)
        assert judged(outcome, PRESENTATION, json_fence=False) == (state, None)


# Files.


def test_a_vote_is_read_back() -> None:
    """S39: the file is the vote, byte for byte."""
    vote = document()
    assert read_vote(vote_line(vote), "vote-1") == vote
    assert vote_hash(vote).startswith("sha256:")
    assert vote.right is None
    assert "tie" not in repr(vote)


def test_canaries_are_right_or_wrong_by_their_truth() -> None:
    """S39: and neither without a verdict."""
    asked = {"case_id": "c", "swapped": True, "truth": "A win"}
    given = [("A win", "valid"), ("tie", "valid"), (None, "refused")]
    found = [document(canary=asked, verdict=verdict, state=state).right for verdict, state in given]
    assert found == [True, False, None]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        vote_line(document()).replace(b'"tie"', b'"Tie"'),
        vote_line(document()).replace(b'"valid"', b'"invalid"'),
        vote_line(document()).replace(b'"position":0', b'"position":2'),
        vote_line(document()) + b"\n",
        vote_line(document(vote_id="vote-2")),
    ],
)
def test_another_file_is_no_vote(data: bytes) -> None:
    """S65: the file is named."""
    with pytest.raises(StudyError) as caught:
        read_vote(data, "vote-1")
    assert (caught.value.code, caught.value.where) == (StudyCode.VOTE_INVALID, "votes/vote-1.json")
