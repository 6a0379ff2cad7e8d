"""Rows of a journal: one canonical line each, chained by digest.

Source: evidence.md, section 7. In the segmented form a row is
`{"body":{…},"prev":"sha256:…","seq":n,"time":"…","type":"…"}` and the kernel has four types of its own. In
the single-file form a row is whatever its contract says, with `seq` and `prev` among its members. The digest
of a row is over its line without LF; `prev` of the first row is 64 zeros.

`read_row` accepts a line exactly when `strict` reads it as an object under the `row` profile and `canonical`
writes the same bytes again. Reading a whole journal is mostly that, so lines that are plain take a shorter
way with the same answer (proved equal by test).
"""

from __future__ import annotations

import json
import re
from enum import Enum
from json import encoder as json_encoder
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_bytes, dump, dump_plain
from skill_effectiveness.evidence.faults import Fault, StrictCode, StrictError
from skill_effectiveness.evidence.journal_faults import Finding
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, JsonValue, Profile, read_json

if TYPE_CHECKING:
    from datetime import datetime

ORIGIN: Final = "sha256:" + "0" * 64
"""`prev` of the first row."""
LARGEST_GROUP: Final = 1_024
"""Rows that one append may hold at most, whatever the journal allows."""
LARGEST_GROUP_BYTES: Final = 67_108_864
"""Bytes that one append may hold; a longer torn tail is therefore not ours."""

DigestText = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
JournalId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
GroupMax = Annotated[int, Field(ge=1, le=LARGEST_GROUP)]
Number = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class JournalOpen(_Body):
    """Body of row 0.

    Attributes:
        group_max: rows that one append may hold, so also how many may be found beyond the pin.
        journal_id: made once, at random.
        purpose: what the journal is for.
    """

    group_max: GroupMax
    journal_id: JournalId
    purpose: Annotated[str, Field(min_length=1, max_length=200)]


class SegmentOpen(_Body):
    """Body of the first row of every later segment.

    Attributes:
        closed: digest of the whole file before this one.
        segment: number of this file.
    """

    closed: DigestText
    segment: Annotated[int, Field(ge=2)]


class Tear(_Body):
    """A torn tail that was set aside as `<seq>-<64 hex>.bin`: body of a row, or entry of a pin.

    Attributes:
        bytes: its size.
        digest: of its bytes.
        seq: number of the row that would have stood there.
    """

    bytes: Annotated[int, Field(ge=1)]
    digest: DigestText
    seq: Number

    @property
    def file_name(self) -> str:
        """The name of the file with its bytes."""
        return f"{self.seq}-{self.digest.removeprefix('sha256:')}.bin"


class FormerPin(_Body):
    """What the pin said before it was made anew.

    Attributes:
        count: rows.
        head: digest of the last one.
    """

    count: Number
    head: DigestText


class Repin(_Body):
    """That a person had the pin made anew: body of a row, or entry of a pin.

    Attributes:
        findings: what was wrong before.
        former: the former pin, when it could be read.
        reason: in the person's words.
    """

    findings: tuple[Finding, ...]
    former: FormerPin | None
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]


KERNEL_BODIES: Final[dict[str, type[_Body]]] = {
    "journal_open": JournalOpen,
    "segment_open": SegmentOpen,
    "tear": Tear,
    "repin": Repin,
}
"""The types of row that only the kernel writes, in the segmented form."""


class RowForm(Enum):
    """Who decides what a row holds."""

    KERNEL = "kernel"
    """The segmented form."""
    OWN = "own"
    """The single-file form: the contract, apart from `seq` and `prev`."""


class Entry(NamedTuple):
    """What a caller appends in the segmented form.

    Attributes:
        type: a word of the caller's contract.
        body: a plain JSON object.
    """

    type: str
    body: dict[str, Any]


class Row(NamedTuple):
    """A row that was read.

    Attributes:
        seq: its number.
        digest: of its line without LF.
        value: the whole row as plain JSON.
    """

    seq: int
    digest: str
    value: dict[str, JsonValue]

    @property
    def type(self) -> str:
        """The type, in the segmented form."""
        return cast("str", self.value["type"])

    @property
    def time(self) -> str:
        """The time, in the segmented form."""
        return cast("str", self.value["time"])

    @property
    def body(self) -> dict[str, JsonValue]:
        """The body, in the segmented form."""
        return cast("dict[str, JsonValue]", self.value["body"])


def row_time(now: datetime) -> str:
    """A moment (aware, UTC) as rows write it: `YYYY-MM-DDThh:mm:ss.mmmZ`."""
    return now.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def is_type(text: object) -> bool:
    """Whether a text can be the type of a row: a letter, then at most 63 letters, digits and `_./:-`."""
    return isinstance(text, str) and _TYPE.fullmatch(text) is not None


_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./:-]{0,63}")
_TIME: Final = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_KERNEL_MEMBERS: Final = ["body", "prev", "seq", "time", "type"]


def fits(row: dict[str, Any], form: RowForm) -> bool:
    """Whether a row that was read has the members of its form, each of the right kind."""
    if type(row.get("seq")) is not int or not _is_digest(row.get("prev")):
        return False
    if form is RowForm.OWN:
        return True
    return (
        # Canonical rows have their members in this order.
        list(row) == _KERNEL_MEMBERS
        and type(row["body"]) is dict
        and isinstance(row["time"], str)
        and _TIME.fullmatch(row["time"]) is not None
        and is_type(row["type"])
    )


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def row_digest(line: bytes) -> str:
    """The digest of a row, over its line without LF."""
    return digest_bytes(line)


def write_row(row: dict[str, Any]) -> bytes:
    """The line of a row, without its LF; `read_row` reads it again.

    Raises:
        CanonicalError: as `dump`.
        StrictError: it could not be read again.
    """
    line = dump_plain(row)
    # Of these nothing but the nesting can be more than is read again (proved by test).
    if line is not None and line.count(b"{") + line.count(b"[") <= Profile.ROW.max_depth:
        return line
    line = dump(row)
    read_row(line)
    return line


def read_row(line: bytes) -> dict[str, JsonValue]:
    """Read a line without its LF.

    Raises:
        StrictError: a code of `strict.read_json`; `not_canonical`.
    """
    row = _read_plain(line)
    if row is not None:
        return row
    value = read_json(line, Profile.ROW, want_object=True)
    if dump(value) != line:
        sentence = "The row is not in the canonical form (RFC 8785) that this program writes; it was changed."
        raise StrictError(Fault(StrictCode.NOT_CANONICAL, "", sentence))
    return cast("dict[str, JsonValue]", value)


# The shorter way. It goes wrong on its own side only: whatever it is not sure of takes the long one.


class _NotPlainError(ValueError):
    """A number that needs a closer look."""


def _integer(token: str) -> int:
    if len(token) > _SURELY_EXACT:
        raise _NotPlainError
    return int(token)


def _no_number(_token: str) -> Literal[0]:
    # A fraction, an exponent, NaN or Infinity: its one canonical spelling is not Python's.
    raise _NotPlainError


_SURELY_EXACT: Final = 15
"""Characters of a whole number that is within ±(2^53 - 1), whatever its digits are."""
_PLAIN_SIZE: Final = 65_536
"""Bytes; a shorter line holds fewer values than the profile allows."""

# Both are what the standard library makes anew for every document; for a row that costs more than the work.
_scan: Final = cast(
    "Any", json.JSONDecoder(parse_int=_integer, parse_float=_no_number, parse_constant=_no_number)
).scan_once
_make: Final = cast("Any", json_encoder).c_make_encoder
_escape: Final = json_encoder.encode_basestring
_write: Final = _make(None, None, _escape, None, ":", ",", True, False, False)  # noqa: FBT003 - C signature


def _read_plain(line: bytes) -> dict[str, JsonValue] | None:
    """A row of ASCII without odd numbers, or `None` when this way cannot be sure."""
    if len(line) > _PLAIN_SIZE or not line.isascii():
        return None
    text = line.decode("ascii")
    # Nesting cannot be deeper than there are opening brackets.
    if text.count("{") + text.count("[") > Profile.ROW.max_depth:
        return None
    try:
        value, end = _scan(text, 0)
        # What was named twice, escaped needlessly, spaced or sorted otherwise does not come out the same; and
        # ASCII member names sort alike by code point and by UTF-16 code unit.
        same = end == len(text) and "".join(_write(value, 0)) == text
    except (StopIteration, ValueError):
        return None
    return value if same and type(value) is dict else None
