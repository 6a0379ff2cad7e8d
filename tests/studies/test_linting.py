"""What no judge may see, kind by kind."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.linting import JudgeLint, SignKind
from skill_effectiveness.trials.leaks import LeakRules

TREATMENT = (
    "Before you change anything, write down which behaviour has to stay, run the oldest test first, and "
    "never delete a check that you cannot explain."
)
LINT = JudgeLint(
    LeakRules(
        arm_ids=["profile-full", "profile-off"],
        owners=["first:file-notes"],
        digests=["sha256:" + 64 * "a"],
        profile_texts=[TREATMENT],
    ),
    skills=["file-notes", "deep-review"],
    places=["/srv-of-ours/studies/R", "/"],
)
CLEAN = {
    "task": "Make `total` right for an empty list. It is in /tmp/in/total.py, made at 2026-01-02 03:04:05.",
    "rubric": "Correctness decides.",
    "A": "total.py:\ndef total(values):\n    return sum(values)  # 0 for an empty list\n",
    "B": "total.py:\ndef total(values):\n    result = 0\n    for value in values:\n        result += value\n",
}


def kinds(**changed: str) -> set[str]:
    """The kinds of signs in what is shown, with some members changed."""
    return {str(sign.kind) for sign in LINT.signs(CLEAN | changed)}


def test_ordinary_work_has_no_sign() -> None:
    """S38: nothing is refused that tells nothing."""
    assert LINT.signs(CLEAN) == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("As profile-full says, tests first.", SignKind.ARM_ID),
        ("class ProfileFull: pass", SignKind.ARM_ID),
        ("sha256:" + 64 * "b", SignKind.DIGEST),
        (64 * "a", SignKind.DIGEST),
        ("by first:file-notes", SignKind.OWNER_PREFIX),
        ("ccl-skills:anything", SignKind.OWNER_PREFIX),
        ("the manifest hash was checked", SignKind.METADATA_TOKEN),
        ("I wrote down which behaviour has to stay, run the oldest test first.", SignKind.TREATMENT_TEXT),
        ("This is the treatment arm.", SignKind.ARM_NAME),
        ("arm: full", SignKind.ARM_NAME),
        ("from the control-arm", SignKind.ARM_NAME),
        ("I used file-notes for it.", SignKind.SKILL_NAME),
        ("see DeepReview", SignKind.SKILL_NAME),
    ],
)
@pytest.mark.parametrize("member", ["task", "rubric", "A", "B"])
def test_what_names_an_arm_is_found_everywhere(member: str, text: str, kind: SignKind) -> None:
    """S38 F30: arms, skills and their texts, in every member that a judge gets."""
    assert str(kind) in kinds(**{member: text})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("written to /tmp/call-8/x/total.py", SignKind.PATH),
        ("see /home/ann/notes.md", SignKind.PATH),
        ("see ~/.config/notes.md", SignKind.PATH),
        (r"see C:\Users\ann\notes.md", SignKind.PATH),
        ("see file:///x/y", SignKind.PATH),
        ("read .agent/skills/notes/ first", SignKind.PATH),
        ("read SKILL.md first", SignKind.PATH),
        ("under /srv-of-ours/studies/R/attempts", SignKind.PATH),
        ("done at 2026-03-04T05:06:07Z", SignKind.TIME),
        ("done at 2026-03-04 05:06", SignKind.TIME),
        ("log 20260304T050607", SignKind.TIME),
        ("[05:06:07] done", SignKind.TIME),
        ("Wed, 04 Mar 2026", SignKind.TIME),
        ("Wed Mar  4", SignKind.TIME),
        ("ts=1772600767", SignKind.TIME),
        ("ts=1772600767123", SignKind.TIME),
        ("used 12,345 tokens", SignKind.TOKEN_COUNT),
        ("12k input tokens", SignKind.TOKEN_COUNT),
        ('"total_tokens": 9120', SignKind.TOKEN_COUNT),
        ("tokens used: 17", SignKind.TOKEN_COUNT),
        ("after 14 tool calls", SignKind.TOKEN_COUNT),
        ("cost_units=0.3", SignKind.TOKEN_COUNT),
        ("from slot-12", SignKind.ORDERED_ID),
        ("sample-003", SignKind.ORDERED_ID),
        ("attempts/12/a1", SignKind.ORDERED_ID),
        ("session_0a1b2c3d4e", SignKind.ORDERED_ID),
        ("0190a5d2-7c1e-7f3a-9b1c-2d3e4f5a6b7c", SignKind.ORDERED_ID),
        ("01J2ZK5T8N4XW9Q3M7V6B1C0DE", SignKind.ORDERED_ID),
    ],
)
@pytest.mark.parametrize("member", ["A", "B"])
def test_what_tells_arms_apart_is_found_in_both_sides(member: str, text: str, kind: SignKind) -> None:
    """S38 F30: paths, times, counts and ids, each alone."""
    assert kinds(**{member: CLEAN[member] + text}) == {str(kind)}


@pytest.mark.parametrize("text", ["/tmp/in/total.py", "made at 2026-01-02 03:04:05"])  # noqa: S108 - a text
def test_what_the_task_says_is_known_to_both(text: str) -> None:
    """S38: a side may repeat what both were told."""
    assert kinds(A=text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "/usr/bin/env python3",
        "either/or, 1/2 and </div>",
        "https://example.org/home/x",
        "since 2019-05-01",
        "a ratio of 10:30",
        "tokens = tokenize(line)",
        "the full list is off by one",
        "3f2a9c",
        "run 2 of the checks, attempt 3, sample_1 = batch[0]",
        "port 17000",
        "GET /api/v1/users",
    ],
)
def test_ordinary_words_do_not_trip(text: str) -> None:
    """S38: what every program is full of is no sign."""
    assert kinds(A=text) == set()


def test_signs_say_where_they_are() -> None:
    """S38: member, offset and length, and no text."""
    found = LINT.signs(CLEAN | {"B": "at 05:06:07"})
    assert [(sign.member, sign.kind, sign.offset, sign.length) for sign in found] == [
        ("B", SignKind.TIME, 3, 8)
    ]


@pytest.mark.parametrize(
    "piece",
    [
        "arm ",
        "arm" + " " * 400,
        "1 ",
        "1,",
        "1" * 400 + " ",
        "tokens ",
        'tokens"*' + " " * 400,
        "input_",
        "~a",
        ".a",
        "/tmp",  # noqa: S108 - a text
        "/tmp/",  # noqa: S108 - a text
        "C:\\",
        "2026-",
        "0190a5d2-",
        "01J2ZK5T8N4XW9Q3M7V6B1C0D",
        "slot-",
        "Mon ",
        "skills/",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    """S38 F28: the largest text that could be sent, of whatever a pattern begins with."""
    text = piece * (98_304 // len(piece))
    began = time.process_time()
    LINT.signs(CLEAN | {"A": text})
    assert time.process_time() - began < 3


@given(st.text(), st.text())
def test_any_text_is_looked_through(first: str, second: str) -> None:
    """S38: whatever a side holds, signs lie inside of it and come in order."""
    shown = CLEAN | {"A": first, "B": second}
    found = LINT.signs(shown)
    assert list(found) == sorted(set(found))
    assert all(0 <= sign.offset <= sign.offset + sign.length <= len(shown[sign.member]) for sign in found)
