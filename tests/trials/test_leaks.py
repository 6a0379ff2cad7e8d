"""What gives an arm away, at any depth, and what does not."""

from __future__ import annotations

import copy
import random
import time
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.trials.leaks import LeakHit, LeakKind, LeakRules, scan

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue

DIGEST = "sha256:" + "0123456789abcdef" * 4
KNOWN = "sha256:" + "ab" * 32
TREATMENT = "Always name the oldest caller, then change one file at a time and say which test you ran."
RULES = LeakRules(
    arm_ids=["profile-full", "profile-off", "S1", "lateArrival"],
    owners=["demo:pdf"],
    digests=[KNOWN],
    profile_texts=[TREATMENT],
)


def kinds(payload: object) -> set[LeakKind]:
    return {hit.kind for hit in scan(cast("JsonValue", payload), RULES)}


def nested(value: object, depth: int) -> object:
    """The value below objects and arrays in turn."""
    for level in range(depth):
        value = {"entry": value, "size": level} if level % 2 else [level, value]
    return value


KEYS = {
    "arm": LeakKind.METADATA_KEY,
    "arm_id": LeakKind.METADATA_KEY,
    "armId": LeakKind.METADATA_KEY,
    "ArmID": LeakKind.METADATA_KEY,
    "arm-id": LeakKind.METADATA_KEY,
    "armid": LeakKind.METADATA_KEY,
    "manifest": LeakKind.METADATA_KEY,
    "manifest_hash": LeakKind.METADATA_KEY,
    "manifestHash": LeakKind.METADATA_KEY,
    "manifesthash": LeakKind.METADATA_KEY,
    "skill_invocations": LeakKind.METADATA_KEY,
    "skillInvocations": LeakKind.METADATA_KEY,
    "skills_invoked": LeakKind.METADATA_KEY,
    "skillsInvoked": LeakKind.METADATA_KEY,
    "SKILLSINVOKED": LeakKind.METADATA_KEY,
    "treatment": LeakKind.METADATA_KEY,
    "Treatment": LeakKind.METADATA_KEY,
    "tre\u0430tment": LeakKind.METADATA_KEY,
    "treat\u200bment": LeakKind.METADATA_KEY,
}

TEXTS = {
    DIGEST: LeakKind.DIGEST,
    DIGEST.upper(): LeakKind.DIGEST,
    "sha256: " + "f" * 64: LeakKind.DIGEST,
    "ab" * 32: LeakKind.DIGEST,
    "AB" * 32: LeakKind.DIGEST,
    "ccl-skills:review": LeakKind.OWNER_PREFIX,
    "CCL-Skills: review": LeakKind.OWNER_PREFIX,
    "ccl_skills:review": LeakKind.OWNER_PREFIX,
    "demo:pdf": LeakKind.OWNER_PREFIX,
    "Demo:PDF": LeakKind.OWNER_PREFIX,
    "manifest hash": LeakKind.METADATA_TOKEN,
    "manifest_hash": LeakKind.METADATA_TOKEN,
    "manifestHashes": LeakKind.METADATA_TOKEN,
    "skills invoked": LeakKind.METADATA_TOKEN,
    "Skill invocations": LeakKind.METADATA_TOKEN,
    "arm id: x": LeakKind.METADATA_TOKEN,
    "arm_id=3": LeakKind.METADATA_TOKEN,
    '"arm_id": "x"': LeakKind.METADATA_TOKEN,
    '\\"armId\\": \\"x\\"': LeakKind.METADATA_TOKEN,
    "profile-full": LeakKind.ARM_ID,
    "Profile-Full": LeakKind.ARM_ID,
    "profile_full": LeakKind.ARM_ID,
    "profileFull": LeakKind.ARM_ID,
    "the answer of profile-\n  full": LeakKind.ARM_ID,
    "> made by profile-\r\n> full": LeakKind.ARM_ID,
    "Done." + "".join(chr(0xE0000 + ord(letter)) for letter in "profile-full"): LeakKind.ARM_ID,
    "**profile**-full": LeakKind.ARM_ID,
    "--profile-off": LeakKind.ARM_ID,
    "run/profile-off/sample-001": LeakKind.ARM_ID,
    "x-profile-off-2": LeakKind.ARM_ID,
    "pr\u043efile\u2011f\u200bull": LeakKind.ARM_ID,
    "%70rofile-full": LeakKind.ARM_ID,
    "&#112;rofile-full": LeakKind.ARM_ID,
    "%FF%70rofile-full": LeakKind.ARM_ID,
    "\\ud800\\u0070rofile-full": LeakKind.ARM_ID,
    "late-arrival": LeakKind.ARM_ID,
    "S1": LeakKind.ARM_ID,
    "(S1)": LeakKind.ARM_ID,
    "name the oldest caller, then change one file": LeakKind.PROFILE_TEXT,
    "NAME THE OLDEST CALLER -- THEN CHANGE ONE FILE": LeakKind.PROFILE_TEXT,
    "name\nthe\t oldest **caller** (then) change; one/file": LeakKind.PROFILE_TEXT,
    "name\u200bthe\u200boldest\u200bcaller\u200bthen\u200bchange\u200bone\u200bfile": LeakKind.PROFILE_TEXT,
    "name%20the%20oldest%20caller%20then%20change%20one%20file": LeakKind.PROFILE_TEXT,
}


class TestEveryKind:
    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("depth", [0, 1, 6, 40])
    def test_metadata_in_keys(self, key: str, depth: int) -> None:
        """T32: camel, snake and compact forms, whatever the value and the depth."""
        assert KEYS[key] in kinds(nested({key: None}, depth))
        assert kinds(nested({key: None}, depth)) <= {LeakKind.METADATA_KEY, LeakKind.METADATA_TOKEN}

    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("depth", [0, 1, 6, 40])
    def test_in_values(self, text: str, depth: int) -> None:
        """T32: each other kind in a text at any depth, alone and within a sentence."""
        assert kinds(nested(text, depth)) == {TEXTS[text]}
        assert TEXTS[text] in kinds(nested(f"The answer is ({text}), I think.", depth))

    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("depth", [0, 5])
    def test_in_keys(self, text: str, depth: int) -> None:
        """T32: the same in the key of a member."""
        assert TEXTS[text] in kinds(nested({text: 1}, depth))

    @given(st.sampled_from([*TEXTS]), st.text(" ,.;()!?\n", max_size=5), st.text(" ,.;()!?\n", max_size=5))
    def test_between_any_punctuation(self, text: str, before: str, after: str) -> None:
        """T32: no punctuation around hides anything."""
        assert TEXTS[text] in kinds([before + text + after])


class TestOrdinaryWords:
    @pytest.mark.parametrize(
        "text",
        [
            "The treatment of errors in the manifest is full of holes; turn the check off.",
            "an arm, an armchair, a full profile, the profile is full, off we go",
            "s1 = s2; m0, S10, S1x, xS1, profiles-full, profile-fuller, unprofile-full",
            "charm id: 3, alarm id = 4, arm ids vary",
            "skills, invoked later; a manifest; hash of the file; hash: 3",
            "sha256:0123 and sha256 of a file, " + "0123456789abcdef" * 4,
            "data:base64,x and xdemo:pdf and demo:pdfs",
            "ccl skills are nice, accl-skill",
            "the oldest caller, then change one file",
            "reference oracle control placebo off full S 1 S-1",
            "I read the profile.\nFull details are below: a profile - full of them.",
        ],
    )
    def test_do_not_trip(self, text: str) -> None:
        """T32: words that happen to be near."""
        assert kinds({"text": text, text: 0}) == set()

    @pytest.mark.parametrize(
        "key",
        ["arms", "army", "alarm", "manifests", "armour_id", "hash", "skills", "invoked", "treatments", "id"],
    )
    def test_keys_do_not_trip(self, key: str) -> None:
        """T32: keys that hold more or less than the word."""
        assert kinds({key: 1}) == set()

    @pytest.mark.parametrize("value", [None, True, 0, 1.5, [], {}, ""])
    def test_values_without_text(self, value: object) -> None:
        """T32: nothing is found in nothing."""
        assert kinds(value) == set()

    @given(st.lists(st.sampled_from([*"abcdefgh", "and", "the", "of", "file", "test", "loop"]), max_size=60))
    def test_plain_prose(self, words: list[str]) -> None:
        """T32: no order of ordinary words trips."""
        assert kinds({"prose": " ".join(words), "words": [*words]}) == set()


WORDS = [f"w{letter}{digit}" for letter in "abcdefgh" for digit in range(8)]
SEPARATORS = st.sampled_from([" ", "\n", ", ", " - ", "\t\t", "; ", "*", "\u00a0", "\u2014"])


class TestRunsOfWords:
    @given(st.integers(0, len(WORDS) - 8), st.lists(SEPARATORS, min_size=8, max_size=8), st.data())
    def test_eight_words_trip(self, start: int, separators: list[str], data: st.DataObject) -> None:
        """T32: any eight consecutive words, whatever separates them and whatever case they have."""
        rules = LeakRules(profile_texts=[" ".join(WORDS)])
        taken = [data.draw(st.sampled_from([word, word.upper()])) for word in WORDS[start : start + 8]]
        text = "".join(f"{word}{separator}" for word, separator in zip(taken, separators, strict=True))
        (hit,) = scan(f"No. {text} End.", rules)
        assert hit.kind is LeakKind.PROFILE_TEXT
        assert hit.offset == 4
        assert hit.length == len(text) - len(separators[-1])

    @given(st.permutations(WORDS), st.integers(1, 7))
    def test_seven_words_do_not_trip(self, words: list[str], length: int) -> None:
        """T32: fewer than eight, as often as one likes, each followed by a word of the payload's own."""
        rules = LeakRules(profile_texts=[" ".join(words)])
        pieces = [" ".join(words[at : at + length]) for at in range(0, len(words), length)]
        assert scan(" other ".join(pieces), rules) == ()

    def test_a_run_over_lines_kept_as_an_array(self) -> None:
        """T32: texts of one array are one text; each of them is named."""
        lines: JsonValue = [
            "I did as told.",
            "Name the oldest",
            "caller, then",
            "change one file",
            "and more.",
        ]
        hits = scan({"lines": lines}, RULES)
        assert [(hit.pointer, hit.offset, hit.length) for hit in hits] == [
            ("/lines/1", 0, 15),
            ("/lines/2", 0, 12),
            ("/lines/3", 0, 15),
        ]

    def test_a_run_over_keys(self) -> None:
        """T32: likewise the keys of an object, in the order a judge reads them."""
        rules = LeakRules(profile_texts=["a b c d e f g h"])
        keyed: JsonValue = dict.fromkeys("hgfedcba", 0)
        assert {hit.kind for hit in scan(keyed, rules)} == {LeakKind.PROFILE_TEXT}

    def test_a_run_over_keys_and_values(self) -> None:
        """T32: and keys with values in turn."""
        payload: JsonValue = {"a name the": "oldest caller", "b": 0, "then change": "one file at a time"}
        rules = LeakRules(profile_texts=["name the oldest caller b then change one file"])
        assert {hit.pointer for hit in scan(payload, rules)} == {"/a name the", "/b", "/then change"}

    def test_no_run_from_one_treatment_text_into_another(self) -> None:
        """T32: two component texts are two texts."""
        rules = LeakRules(profile_texts=["one two three four", "five six seven eight"])
        assert scan("one two three four five six seven eight", rules) == ()

    def test_a_treatment_that_is_itself_disguised(self) -> None:
        """T32: accents and escapes in the treatment hide nothing."""
        rules = LeakRules(
            profile_texts=["\u00dcber f\u00fcnf Stra\u00dfen&nbsp;gehen wir\\nimmer nach Hause"]
        )
        assert scan("uber funf strassen gehen wir immer nach hause", rules) != ()

    def test_characters_without_spaces(self) -> None:
        """T32: eight Chinese characters in a row are a run, seven are not."""
        rules = LeakRules(
            profile_texts=["\u5728\u66f4\u6539\u4ee3\u7801\u4e4b\u524d\u5148\u5199\u6d4b\u8bd5"]
        )
        assert scan("x\u66f4\u6539\u4ee3\u7801\u4e4b\u524d\u5148\u5199x", rules) != ()
        assert scan("x\u66f4\u6539\u4ee3\u7801\u4e4b\u524d\u5148x", rules) == ()

    def test_effort_is_linear_in_treatment_and_payload(self) -> None:
        """T32: 200,000 words of each are compared within seconds, not within 40 thousand million steps."""
        drawn = random.Random(1)  # noqa: S311 - made-up words
        vocabulary = [f"word{n}" for n in range(3_000)]
        text, other = (" ".join(drawn.choices(vocabulary, k=200_000)) for _ in range(2))
        began = time.process_time()
        rules = LeakRules(profile_texts=[text])
        assert scan({"x": other}, rules) == ()
        assert len(scan({"x": other + text[-200:]}, rules)) == 1
        assert time.process_time() - began < 20


class TestHits:
    def test_pointer_offset_and_length(self) -> None:
        """T33: where it stands, in a value and in a key."""
        payload: JsonValue = {"a/b": [{"t": "see profile-full!"}], "profile_off": 1}
        assert scan(payload, RULES) == (
            LeakHit("/a~1b/0/t", 4, 12, LeakKind.ARM_ID),
            LeakHit("/profile_off", 0, 11, LeakKind.ARM_ID),
        )

    def test_the_whole_payload_is_a_text(self) -> None:
        """T33: its pointer is empty."""
        assert scan("S1", RULES) == (LeakHit("", 0, 2, LeakKind.ARM_ID),)

    def test_every_hit_is_told_once(self) -> None:
        """T33: although a text is read in several ways."""
        hits = scan("\u00e9 profile-full %20 profile-full", RULES)
        assert [(hit.offset, hit.length) for hit in hits] == [(2, 12), (19, 12)]

    def test_order_of_members_plays_no_part(self) -> None:
        """T31: two programs that make the same object find the same."""
        one: JsonValue = {"b": "S1", "a": "profile-full"}
        other: JsonValue = {"a": "profile-full", "b": "S1"}
        assert scan(one, RULES) == scan(other, RULES)

    def test_nothing_is_changed(self) -> None:
        """T33: what leaks is refused, not edited."""
        payload: JsonValue = {"a": ["profile-full", {"arm": DIGEST}]}
        before = copy.deepcopy(payload)
        scan(payload, RULES)
        assert payload == before

    @given(
        st.recursive(st.text(max_size=20), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
    )
    def test_anything_is_scanned(self, payload: JsonValue) -> None:
        """T32: no text is too strange."""
        assert isinstance(scan(payload, RULES), tuple)


class TestRules:
    def test_a_registry_is_added(self) -> None:
        """T32: arms and hashes of a plan are looked for besides what was there."""
        rules = LeakRules(owners=["a:b"], profile_texts=[TREATMENT]).with_registry(["late-arm"], [DIGEST])
        found = {hit.kind for hit in scan(["late-arm", DIGEST[7:], "a:b", TREATMENT], rules)}
        assert found == {LeakKind.ARM_ID, LeakKind.DIGEST, LeakKind.OWNER_PREFIX, LeakKind.PROFILE_TEXT}

    @pytest.mark.parametrize("name", ["", "--", "\u200b"])
    def test_a_name_without_a_letter_is_refused(self, name: str) -> None:
        """T32: it would be found everywhere or nowhere."""
        with pytest.raises(ValueError, match="letter or digit"):
            LeakRules(arm_ids=[name])
        with pytest.raises(ValueError, match="letter or digit"):
            LeakRules(owners=[name])
