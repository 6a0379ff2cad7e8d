"""What no judge may see: every byte that is sent to one is looked through before (studies.md section 5).

`trials.leaks` finds what names an arm; here is what tells arms apart without naming them. A text that the
task itself holds is known to both sides and tells nothing, so it is no sign where a side repeats it.

| sign | looked for in | what it is |
|---|---|---|
| `arm_id`, `digest`, `owner_prefix`, `metadata_token`, `treatment_text` | everything | see `trials.leaks` |
| `arm_name` | everything | an arm called one, such as `treatment arm` or `arm: full` |
| `skill_name` | everything | the name of a skill of any arm, however its parts are separated |
| `path` | A, B | a place of the controller, of a person or of a session; a folder of skills |
| `time` | A, B | a time of day, with a date or without; seconds since 1970 within the years of this program |
| `token_count` | A, B | how many tokens, tool calls or cost units something used |
| `ordered_id` | A, B | an id of when or where something ran: our own and those of sessions, UUIDs, ULIDs |

What is found decides; nothing is ever taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.trials.leaks import LeakKind, LeakRules, scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SIDES: Final = ("A", "B")
_SHORTEST_PLACE: Final = 2


class SignKind(StrEnum):
    """What kind of sign was found; see the table above."""

    ARM_ID = "arm_id"
    DIGEST = "digest"
    OWNER_PREFIX = "owner_prefix"
    METADATA_TOKEN = "metadata_token"  # noqa: S105 - a word, no password
    TREATMENT_TEXT = "treatment_text"
    ARM_NAME = "arm_name"
    SKILL_NAME = "skill_name"
    PATH = "path"
    TIME = "time"
    TOKEN_COUNT = "token_count"  # noqa: S105 - likewise
    ORDERED_ID = "ordered_id"


@dataclass(frozen=True, slots=True, order=True)
class Sign:
    """One sign.

    Attributes:
        member: of what is shown: `task`, `rubric`, `A` or `B`.
        kind: of sign.
        offset: where it begins, in code points.
        length: in code points.
    """

    member: str
    kind: SignKind
    offset: int
    length: int


_OF_LEAKS: Final = {
    LeakKind.METADATA_KEY: SignKind.METADATA_TOKEN,
    LeakKind.DIGEST: SignKind.DIGEST,
    LeakKind.OWNER_PREFIX: SignKind.OWNER_PREFIX,
    LeakKind.METADATA_TOKEN: SignKind.METADATA_TOKEN,
    LeakKind.ARM_ID: SignKind.ARM_ID,
    LeakKind.PROFILE_TEXT: SignKind.TREATMENT_TEXT,
}
_ARMS: Final = r"(?:off|full|reference|oracle|control|treatment|treated|untreated|placebo|baseline)"
# Every repetition is bounded, so that no text takes more time than its length.
_SPACE, _QUOTES = r"\s{0,3}", r"[\"'`*]{0,4}"
_ARM_NAME: Final = re.compile(
    rf"\b{_ARMS}[ _-]arm\b|\barm{_SPACE}[ _:=-]{_SPACE}{_QUOTES}{_ARMS}\b", re.IGNORECASE
)

# Folders where controllers, sessions and people keep things; a task's own working folder is none of them.
_PLACES: Final = r"home|root|Users|tmp|var/(?:tmp|folders|lib)|private|mnt|media|run|srv"
_PATHS: Final = (
    re.compile(rf"(?<![\w.~/])/(?:{_PLACES})/[^\s\"'`<>|;:,()\[\]{{}}]+"),
    re.compile(r"(?<![\w/])~[\w.-]*/[\w.-][^\s\"'`<>|;:,()\[\]{}]*"),
    re.compile(r"(?<!\w)[A-Za-z]:\\(?:[^\s\"'`<>|]+)"),
    re.compile(r"file://\S+"),
    re.compile(r"(?<!\w)(?:\.[\w-]+/)?skills/[\w.-]+/?|\bSKILL\.md\b"),
)
_TIMES: Final = (
    re.compile(r"\b\d{4}-\d{2}-\d{2}[T _]\d{2}[:.]?\d{2}(?:[:.]?\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"),
    re.compile(r"\b\d{8}T\d{4,6}Z?\b"),
    re.compile(r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?![\d:])"),
    re.compile(
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+(?:\d{1,2}\s+)?"
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\s+\d{1,4}\b"
    ),
    # 2024 to 2033, in seconds, milliseconds, microseconds or nanoseconds.
    re.compile(r"(?<![\w.])1(?:7\d|8\d|9\d)\d{7}(?:\d{3}){0,3}(?![\w])"),
)
_NUMBER: Final = r"\d[\d,._]{0,24} ?[kKmM]?"
_OF_WHAT: Final = r"(?:input|output|prompt|completion|cached|reasoning|total)"
_COUNTED: Final = r"(?:tokens?|tool[ _-]?calls?|tool[ _-]?uses|cost[ _-]?units?)"
_TOKEN_COUNTS: Final = (
    re.compile(
        rf"(?<![\w.]){_NUMBER}{_SPACE}(?:{_OF_WHAT}[ _-])?{_COUNTED}\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:{_OF_WHAT}|used)?[ _-]?{_COUNTED}(?:[ _-](?:used|count|total))?"
        rf"{_QUOTES}{_SPACE}(?:[:=]|were|was|is){_SPACE}{_QUOTES}{_NUMBER}",
        re.IGNORECASE,
    ),
)
_ORDERED_IDS: Final = (
    re.compile(r"(?<!\w)(?:slot-\d+|sample-\d{3,}|attempts/\d+(?:/a\d+)?)(?!\w)"),
    re.compile(r"(?<!\w)(?:pair|vote|session|thread|trial)[-_][0-9a-f]{8,}(?!\w)", re.IGNORECASE),
    re.compile(
        r"(?<![0-9a-zA-Z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-zA-Z])",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])"),
)
_OF_SIDES: Final = (
    (SignKind.PATH, _PATHS),
    (SignKind.TIME, _TIMES),
    (SignKind.TOKEN_COUNT, _TOKEN_COUNTS),
    (SignKind.ORDERED_ID, _ORDERED_IDS),
)


class JudgeLint:
    """What is looked for in everything that a judge gets. Made once, used for every showing."""

    def __init__(
        self,
        rules: LeakRules,
        *,
        skills: Iterable[str] = (),
        places: Iterable[str] = (),
    ) -> None:
        """Prepare a search.

        Args:
            rules: arms, owners, digests and texts of the treatments.
            skills: names of the skills of all arms.
            places: absolute paths that belong to the controller, wherever they lie.
        """
        self._rules = rules
        self._skills = LeakRules(arm_ids=skills)
        known = sorted({place.rstrip("/") for place in places if len(place.rstrip("/")) > _SHORTEST_PLACE})
        self._places = re.compile(rf"(?:{'|'.join(map(re.escape, known))})(?![\w.-])") if known else None

    @property
    def rules(self) -> LeakRules:
        """Arms, owners, digests and texts of the treatments."""
        return self._rules

    def signs(self, shown: Mapping[str, str]) -> tuple[Sign, ...]:
        """Every sign in what a judge would get, sorted; empty when there is none.

        Args:
            shown: the texts by member: `task`, `rubric`, `A` and `B`.
        """
        found: set[Sign] = set()
        for member, text in shown.items():
            found.update(self._named(member, text))
            if member in SIDES:
                found.update(self._told(member, text, shown.get("task", "")))
        return tuple(sorted(found))

    def _named(self, member: str, text: str) -> Iterator[Sign]:
        for hit in scan(text, self._rules):
            yield Sign(member, _OF_LEAKS[hit.kind], hit.offset, hit.length)
        for hit in scan(text, self._skills):
            if hit.kind is LeakKind.ARM_ID:
                yield Sign(member, SignKind.SKILL_NAME, hit.offset, hit.length)
        for match in _ARM_NAME.finditer(text):
            yield Sign(member, SignKind.ARM_NAME, match.start(), len(match[0]))

    def _told(self, member: str, text: str, task: str) -> Iterator[Sign]:
        for kind, patterns in _OF_SIDES:
            for pattern in patterns:
                for match in pattern.finditer(text):
                    if match[0] not in task:
                        yield Sign(member, kind, match.start(), len(match[0]))
        if self._places is not None:
            for match in self._places.finditer(text):
                yield Sign(member, SignKind.PATH, match.start(), len(match[0]))
