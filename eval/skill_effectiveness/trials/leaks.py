"""Whether a payload tells a judge which arm it comes from.

Source: trials.md section 7, table of leak kinds. Keys and texts at any depth are searched, in every reading
that `readings` lists; numbers and truth values are not. What is found decides, nothing is ever taken out.

- `metadata_key`: a key that, without case, separators and disguise, is one of `METADATA_KEYS`.
- `digest`: `sha256:` and 64 hex digits, or 64 hex digits alone that are a digest of the registry.
- `owner_prefix`: `ccl-skills:`, or an expected owner `a:b` that no letter or digit touches.
- `metadata_token`: the words manifest hash, skills invoked or skill invocations, or arm id and a value.
- `arm_id`: a registered arm id that no letter or digit touches. Between its parts may stand hyphens,
  underscores, points, emphasis marks or nothing (`profile-full`, `profile_full`, `profileFull`), also where a
  line was broken behind a hyphen. Ids of fewer than four letters and digits (`S1`) count in their own case
  only, since code is full of names like `s1`.
- `profile_text`: 8 or more consecutive words of a treatment text, whatever stands between the words, also if
  they go on from one text of the payload into the next (lines of an array, keys, keys and values). A word is
  a run of letters and digits, or one Chinese or Japanese character.

A treatment text of fewer than 8 words is not looked for. Effort grows with the size of the payload and of the
treatment texts, not with their product; `LeakRules` are made once and used for every payload.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.pointer import Location, pointer_to
from skill_effectiveness.trials.readings import Reading, Readings, cased, folded, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.strict import JsonValue

WORDS: Final = 8
METADATA_KEYS: Final = frozenset(
    {
        "arm",
        "armid",
        "manifest",
        "manifesthash",
        "skillinvocations",
        "skillsinvoked",
        "treatment",
    }
)
SHORT_ID: Final = 4
"""Arm ids with fewer letters and digits are looked for in their own case."""

_CHARACTER: Final = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"[{_CHARACTER}]|[^\W_{_CHARACTER}]+")
_NOT_COMPACT: Final = re.compile(r"[\W_]+")
# Between the words of a camel-case name.
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
# A line may be broken behind a hyphen, never within a word.
_SEPARATORS: Final = r"(?:[-_.*`~]*-[ \t]*\r?\n[ \t>]*|[-_.*`~]*)"
_DIGEST: Final = re.compile(r"sha-?256\s*[:=]\s*[0-9a-f]{64}")
_BARE_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_NAMESPACE: Final = re.compile(r"ccl[-_\s]?skills\s*:")
_METADATA_TOKEN: Final = re.compile(
    rf"{_BEFORE}(?:manifest[-_\s]*hash(?:es)?|skills?[-_\s]*(?:invoked|invocations?)){_AFTER}"
    rf"|{_BEFORE}arm[-_\s]*id[\"'`*]*\s*[:=]+[>\s\"'`*]*[^\s\"'`*]"
)
_DIGEST_DIGITS: Final = 64
_ID_BITS: Final = 32
_RUN: Final = (1 << (_ID_BITS * WORDS)) - 1


class LeakKind(StrEnum):
    """What kind of sign was found; see the list above."""

    METADATA_KEY = "metadata_key"
    DIGEST = "digest"
    OWNER_PREFIX = "owner_prefix"
    METADATA_TOKEN = "metadata_token"  # noqa: S105 - a word, no password
    ARM_ID = "arm_id"
    PROFILE_TEXT = "profile_text"


@dataclass(frozen=True, slots=True, order=True)
class LeakHit:
    """One sign of an arm in a payload.

    Attributes:
        pointer: JSON pointer of the member or element. For a sign in a key it is that of the key's member.
        offset: where it begins in the text or key, in code points.
        length: in code points.
        kind: of sign.
    """

    pointer: str
    offset: int
    length: int
    kind: LeakKind


class LeakRules:
    """What the controller looks for. Made once, used for many payloads."""

    def __init__(
        self,
        *,
        arm_ids: Iterable[str] = (),
        owners: Iterable[str] = (),
        digests: Iterable[str] = (),
        profile_texts: Iterable[str] = (),
    ) -> None:
        """Prepare a search.

        Args:
            arm_ids: registered arm ids.
            owners: expected owners beyond the namespace `ccl-skills:`.
            digests: `sha256:…` texts that are refused also without their prefix.
            profile_texts: texts of treatment components.

        Raises:
            ValueError: an arm id or owner without any letter or digit, which would be found everywhere.
        """
        self._names = _Names.of(arm_ids, owners, digests)
        self._profile = _Profile.of(profile_texts)

    def with_registry(self, arm_ids: Iterable[str], digests: Iterable[str]) -> LeakRules:
        """The same and the arms of a registry, without reading the treatment texts again."""
        wider = LeakRules()
        wider._names = self._names.joined(_Names.of(arm_ids, (), digests))
        wider._profile = self._profile
        return wider

    @property
    def names(self) -> _Names:
        """What `scan` looks for as names."""
        return self._names

    @property
    def profile(self) -> _Profile:
        """What `scan` looks for as runs of words."""
        return self._profile


def scan(payload: JsonValue, rules: LeakRules) -> tuple[LeakHit, ...]:
    """Every sign of an arm in a payload, sorted, each place and kind once; empty when there is none.

    The order of the members of an object does not matter: they are taken in the order of their names, as a
    judge gets them.
    """
    texts = list(_texts(payload, None))
    hits: set[LeakHit] = set()
    for text in texts:
        hits.update(text.hit(*found) for found in _signs(text, rules.names))
    if rules.profile.runs:
        hits.update(_runs_of_words(texts, rules.profile))
    return tuple(sorted(hits))


@dataclass(frozen=True, slots=True)
class _Text:
    """A key or a text of the payload in its readings."""

    place: Location | None
    is_key: bool
    readings: Readings

    def hit(self, kind: LeakKind, offset: int, length: int) -> LeakHit:
        return LeakHit(pointer_to(self.place), offset, length, kind)


def _texts(node: JsonValue, place: Location | None) -> Iterator[_Text]:
    match node:
        case str():
            yield _Text(place, is_key=False, readings=readings(node))
        case dict():
            for key in sorted(node, key=lambda name: name.encode("utf-16-be", "surrogatepass")):
                below = Location(place, key)
                yield _Text(below, is_key=True, readings=readings(key))
                yield from _texts(node[key], below)
        case list():
            for number, element in enumerate(node):
                yield from _texts(element, Location(place, number))


# Names: everything that one text alone can tell.


@dataclass(frozen=True, slots=True)
class _Search:
    """One pattern.

    Attributes:
        kind: of sign.
        pattern: what is a sign.
        needles: texts of which every sign holds one; looking for them first is many times faster.
        in_case: whether the case counts.
    """

    kind: LeakKind
    pattern: re.Pattern[str]
    needles: tuple[str, ...]
    in_case: bool = False

    def found(self, reading: Reading) -> Iterable[re.Match[str]]:
        text = reading.cased if self.in_case else reading.folded
        return self.pattern.finditer(text) if any(needle in text for needle in self.needles) else ()


_ALWAYS: Final = (
    _Search(LeakKind.DIGEST, _DIGEST, ("256",)),
    _Search(LeakKind.METADATA_TOKEN, _METADATA_TOKEN, ("manifest", "skill", "arm")),
    _Search(LeakKind.OWNER_PREFIX, _NAMESPACE, ("ccl",)),
)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names and digests, and how they are searched."""

    arm_ids: frozenset[str]
    owners: frozenset[str]
    digests: frozenset[str]
    searches: tuple[_Search, ...]

    @classmethod
    def of(cls, arm_ids: Iterable[str], owners: Iterable[str], digests: Iterable[str]) -> _Names:
        arms, owned = frozenset(arm_ids), frozenset(owners)
        if not all(map(_compact, arms | owned)):
            raise ValueError("an arm id or owner holds a letter or digit")
        short = {arm for arm in arms if len(_compact(arm)) < SHORT_ID}
        searches = (
            *_ALWAYS,
            *_owners(owned),
            *_tokens([_HUMP.sub("-", cased(arm)).casefold() for arm in sorted(arms - short)], in_case=False),
            *_tokens([cased(arm) for arm in sorted(short)], in_case=True),
        )
        bare = frozenset(digest.removeprefix("sha256:") for digest in digests)
        return cls(arms, owned, bare, searches)

    def joined(self, other: _Names) -> _Names:
        return _Names.of(
            self.arm_ids | other.arm_ids, self.owners | other.owners, self.digests | other.digests
        )


def _compact(text: str) -> str:
    return _NOT_COMPACT.sub("", folded(text))


def _owners(owners: Iterable[str]) -> Iterator[_Search]:
    for owner in sorted(owners):
        said = folded(owner)
        pattern = re.compile(_BEFORE + re.escape(said) + _AFTER)
        yield _Search(LeakKind.OWNER_PREFIX, pattern, (said,))


def _tokens(names: Iterable[str], *, in_case: bool) -> Iterator[_Search]:
    """Whole tokens, whatever separates their parts."""
    for name in names:
        parts = [part for part in _NOT_COMPACT.split(name) if part]
        pattern = re.compile(_BEFORE + _SEPARATORS.join(parts) + _AFTER)
        yield _Search(LeakKind.ARM_ID, pattern, (parts[0],), in_case)


_Sign = tuple[LeakKind, int, int]


def _signs(text: _Text, names: _Names) -> Iterator[_Sign]:
    for reading in _distinct(text.readings):
        if text.is_key and _NOT_COMPACT.sub("", reading.folded) in METADATA_KEYS:
            yield LeakKind.METADATA_KEY, *reading.span(0, len(reading.folded))
        for search in names.searches:
            for match in search.found(reading):
                yield search.kind, *reading.span(*match.span())
        if len(reading.folded) >= _DIGEST_DIGITS:
            for match in _BARE_DIGEST.finditer(reading.folded):
                if match.group() in names.digests:
                    yield LeakKind.DIGEST, *reading.span(*match.span())


def _distinct(found: Sequence[Reading]) -> Sequence[Reading]:
    first = found[0]
    if all(reading is first for reading in found):
        return (first,)
    return list({id(reading): reading for reading in found}.values())


# Runs of words, which may go on from one text into the next.


@dataclass(frozen=True, slots=True)
class _Profile:
    """The words of the treatment texts by number, and every run of `WORDS` of them as one number."""

    words: Mapping[str, int]
    runs: frozenset[int]

    @classmethod
    def of(cls, texts: Iterable[str]) -> _Profile:
        words: dict[str, int] = {}
        runs: set[int] = set()
        for text in texts:
            for reading in _distinct(readings(text)):
                numbers = [words.setdefault(word, len(words) + 1) for word in _WORD.findall(reading.folded)]
                runs.update(run for _, run in _windows(numbers))
        return cls(words, frozenset(runs))

    def numbers(self, reading: Reading) -> list[int]:
        """The words of a reading by number, 0 for those that no treatment has."""
        known = self.words
        return [known.get(word, 0) for word in _WORD.findall(reading.folded)]

    def inside(self, numbers: Sequence[int]) -> bytearray | None:
        """For each word 1 where it belongs to a run, else 0; None when none does."""
        ends = [place for place, run in _windows(numbers) if run in self.runs]
        if not ends:
            return None
        inside = bytearray(len(numbers))
        for place in ends:
            inside[place + 1 - WORDS : place + 1] = b"\1" * WORDS
        return inside


def _windows(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Each run of `WORDS` words without an unknown one (0) as one number, with the place of its last word.

    Word numbers stand side by side in it, so that equal numbers are equal words: nothing is left to chance.
    """
    held = known = 0
    for place, number in enumerate(numbers):
        if not number:
            held = known = 0
            continue
        held = ((held << _ID_BITS) | number) & _RUN
        known += 1
        if known >= WORDS:
            yield place, held


def _runs_of_words(texts: Sequence[_Text], profile: _Profile) -> Iterator[LeakHit]:
    """A hit for each text that a run of treatment words goes through: keys, values, both in turn."""
    numbers = {
        id(reading): profile.numbers(reading) for text in texts for reading in _distinct(text.readings)
    }
    different = any(len(_distinct(text.readings)) > 1 for text in texts)
    keys, values = ([text for text in texts if text.is_key is of_keys] for of_keys in (True, False))
    for stream in (keys, values, texts):
        for which in range(len(texts[0].readings) if different else 1):
            yield from _runs_of_a_stream(stream, which, profile, numbers)


def _runs_of_a_stream(
    stream: Sequence[_Text], which: int, profile: _Profile, numbers: Mapping[int, list[int]]
) -> Iterator[LeakHit]:
    own = [numbers[id(text.readings[which])] for text in stream]
    inside = profile.inside([number for those in own for number in those])
    if inside is None:
        return
    begin = 0
    for text, those in zip(stream, own, strict=True):
        part = inside[begin : begin + len(those)]
        begin += len(those)
        if any(part):
            yield from _hits_of_a_text(text, text.readings[which], part)


def _hits_of_a_text(text: _Text, reading: Reading, inside: bytearray) -> Iterator[LeakHit]:
    """A hit for each stretch of words that are inside a run."""
    words = zip(inside, _WORD.finditer(reading.folded), strict=True)
    for is_inside, stretch in groupby(words, key=itemgetter(0)):
        if is_inside:
            matches = [match for _, match in stretch]
            offset, length = reading.span(matches[0].start(), matches[-1].end())
            yield text.hit(LeakKind.PROFILE_TEXT, offset, length)
