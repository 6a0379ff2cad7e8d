"""Journals for tests: both forms behind one face, and hands that tamper with them."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Acknowledged, Entry, Journal
from skill_effectiveness.evidence.journal_faults import JournalCode, JournalError, JournalStatus
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.single_file import FileJournal
from tests.support.private import content, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.journal_faults import Finding, JournalReport

FORMS = ("segmented", "single")
PURPOSE = "test"
FILE = "events.ndjson"
ZEROS = "sha256:" + "0" * 64


@dataclass
class Desk:
    """A base folder with a root, a state root and a journal of one form in it.

    Attributes:
        base: the folder.
        form: one of `FORMS`.
        segment_limit: when segments are closed, in bytes.
        group_max: of a new journal.
        state: whether copies of pins are kept.
        tokens: where its random bytes come from, so that equal histories make equal files.
    """

    base: Path
    form: str = "segmented"
    segment_limit: int = 1 << 20
    group_max: int = 8
    state: bool = True
    tokens: Iterator[int] = field(default_factory=count)

    def entropy(self, size: int) -> bytes:
        """Bytes that never come twice."""
        return next(self.tokens).to_bytes(size, "big")

    @property
    def folder(self) -> Path:
        """The folder of pin, torn tails and (segmented) rows."""
        return self.base / "root" / "journal" if self.form == "segmented" else self.base / "root"

    @property
    def pin(self) -> Path:
        return self.folder / ("head.json" if self.form == "segmented" else f"{FILE}.head.json")

    @property
    def torn(self) -> Path:
        return self.folder / ("torn" if self.form == "segmented" else f"{FILE}.torn")

    def rows(self, segment: int = 1) -> Path:
        """A file with rows."""
        return self.folder / (f"{segment:06d}.jsonl" if self.form == "segmented" else FILE)

    def last(self) -> Path:
        """The last file with rows."""
        return self.rows(len(list(self.folder.glob("0*.jsonl")))) if self.form == "segmented" else self.rows()

    def copy(self) -> Path:
        """The copy of the pin."""
        (found,) = (self.base / "state" / "pins").iterdir()
        return found

    @contextmanager
    def roots(self, fs: FileSystem | None = None) -> Iterator[tuple[PrivateRoot, PrivateRoot | None]]:
        """The open roots."""
        with ExitStack() as stack:
            around = surroundings(fs, entropy=self.entropy)
            root = PrivateRoot.create(self.base / "root", RootKind.OUT, around=around, checkout=None)
            stack.enter_context(root)
            state = None
            if self.state:
                state = PrivateRoot.create(self.base / "state", RootKind.STATE, around=around, checkout=None)
                stack.enter_context(state)
            yield root, state

    @contextmanager
    def open(self, fs: FileSystem | None = None, **options: object) -> Iterator[Journal | FileJournal]:
        """The open journal."""
        with self.roots(fs) as (root, state), self.open_in(root, state, **options) as journal:
            yield journal

    def open_in(
        self, root: PrivateRoot, state: PrivateRoot | None, **options: object
    ) -> Journal | FileJournal:
        """The open journal in roots that are open already."""
        wanted = cast("dict[str, Any]", {"group_max": self.group_max, **options})
        if self.form == "single":
            return FileJournal.open(root, FILE, state=state, **wanted)
        wanted = {"purpose": PURPOSE, "segment_limit": self.segment_limit, **wanted}
        return Journal.open(root, state=state, **wanted)

    def repin(self, reason: str, fs: FileSystem | None = None, **options: object) -> JournalReport:
        """Make the pin anew."""
        wanted = cast("dict[str, Any]", options)
        with self.roots(fs) as (root, state):
            if self.form == "single":
                return FileJournal.repin(root, FILE, reason=reason, state=state, **wanted)
            return Journal.repin(root, reason=reason, state=state, **wanted)

    def verify(self, *, state: bool | None = None) -> JournalReport:
        """Verify it by its path."""
        with self.roots() as (_, copies):
            asked = copies if state in {None, True} else None
            if self.form == "single":
                return verify_file(RealFs(), self.rows(), state=asked)
            return verify_segments(RealFs(), self.folder, state=asked)

    def fill(self, count: int, start: int = 0) -> None:
        """Append rows, one at a time."""
        with self.open() as journal:
            for number in range(start, start + count):
                add(journal, number)


def add(journal: Journal | FileJournal, *numbers: int, note: str = "") -> Acknowledged:
    """Append a group of numbered rows."""
    if isinstance(journal, FileJournal):
        return journal.append([{"n": number, "note": note} for number in numbers])
    return journal.append([Entry("note", {"n": number, "note": note}) for number in numbers])


def numbers(journal: Journal | FileJournal) -> list[int]:
    """The numbers of the numbered rows that a journal holds."""
    if isinstance(journal, FileJournal):
        return [number_of(row.value) for row in journal.rows()]
    return [number_of(row.body) for row in journal.rows() if row.type == "note"]


def number_of(members: dict[str, Any]) -> int:
    number = members["n"]
    assert isinstance(number, int)
    return number


def lines(path: Path) -> list[bytes]:
    """The lines of a file, with their LF."""
    return path.read_bytes().splitlines(keepends=True)


def put_lines(path: Path, content: Sequence[bytes]) -> None:
    """Write lines into a file that is there."""
    path.write_bytes(b"".join(content))


def edited(line: bytes, **changes: object) -> bytes:
    """A row with other members, canonical again."""
    row = json.loads(line) | changes
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def found(report: JournalReport) -> list[tuple[Finding, int | None]]:
    """Findings with the numbers of their rows."""
    return [(finding.finding, finding.seq) for finding in report.findings]


def template(base: Path, form: str, rows: int, *, group_max: int = 8, segment_limit: int = 1 << 20) -> Desk:
    """A filled journal, made once: every append waits for the disk, copies do not."""
    desk = Desk(base / form, form, segment_limit, group_max)
    desk.base.mkdir()
    desk.fill(rows)
    return desk


def copied(desk: Desk, target: Path) -> Desk:
    """The same journal at another place."""
    shutil.copytree(desk.base, target / "desk", symlinks=True)
    return Desk(target / "desk", desk.form, desk.segment_limit, desk.group_max, tokens=count(1 << 40))


# What verification and opening say.


def damage_verified(desk: Desk) -> list[tuple[Finding, int | None]]:
    """The findings of a damaged journal; looking changes nothing."""
    before = content(desk.base)
    report = desk.verify()
    assert content(desk.base) == before
    assert report.status is JournalStatus.DAMAGED
    assert not report.sound
    for finding in report.findings:
        assert finding.sentence.isprintable()
        assert finding.sentence.endswith(".")
        assert str(desk.base) not in finding.sentence
    return found(report)


def refused(desk: Desk, **options: object) -> JournalError:
    """The refusal of opening, which changes nothing but that a lock file may be there."""
    before = without_locks(desk)
    with pytest.raises(JournalError) as caught, desk.open(**options):  # type: ignore[arg-type]
        pass
    assert without_locks(desk) == before
    return caught.value


def without_locks(desk: Desk) -> dict[str, bytes]:
    return {name: data for name, data in content(desk.base).items() if not name.endswith(".lock")}


def damage_refused(desk: Desk) -> list[tuple[Finding, int | None]]:
    """The findings with which opening is refused."""
    error = refused(desk)
    assert error.code == JournalCode.JOURNAL_DAMAGED
    assert error.report is not None
    assert error.report.status is JournalStatus.DAMAGED
    assert len(error.faults) == len(error.report.findings)
    return found(error.report)


def unpin(desk: Desk, *rows: int, note: str = "") -> None:
    """Append rows as a crash before the exchange of the pin leaves them."""
    with desk.open() as journal:
        pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
        add(journal, *rows, note=note)
    desk.pin.write_bytes(pin)
    desk.copy().write_bytes(copy)


def tear(desk: Desk, data: bytes) -> None:
    """Put bytes behind the last row."""
    with desk.last().open("ab") as file:
        file.write(data)


def torn_contents(desk: Desk) -> list[bytes]:
    return [path.read_bytes() for path in sorted(desk.torn.iterdir())] if desk.torn.exists() else []


def templates_in(base: Path, rows: int) -> dict[str, Desk]:
    """A filled journal of each form, and one of several files."""
    several = base / "several"
    several.mkdir()
    return {
        "segmented": template(base, "segmented", rows - 1, group_max=3),
        "single": template(base, "single", rows, group_max=3),
        "several": template(several, "segmented", rows, group_max=3, segment_limit=300),
    }
