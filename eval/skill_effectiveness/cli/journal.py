"""`run.py journal`: verify a journal anywhere, have its pin made anew with a reason (evidence.md, section 7).

A journal is named by what holds its rows: the folder of the segmented form, the file of the other. Copies of
pins are looked for in the product's state folder, where they betray that a journal and its pin were both
replaced by older ones.

| exit of `verify` | meaning |
|---|---|
| 0 | `intact`, `intact_with_tears`, `recoverable`: everything that was acknowledged is there |
| 1 | `damaged`: there are findings |
| 2 | `unreadable`: no journal, or it cannot be read |
"""

from __future__ import annotations

import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.evidence.faults import RootCode, RootError
from skill_effectiveness.evidence.journal import Journal
from skill_effectiveness.evidence.journal_faults import JournalStatus
from skill_effectiveness.evidence.journal_rows import LARGEST_GROUP
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path
from skill_effectiveness.evidence.single_file import GROUP_MAX, FileJournal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.journal_faults import Found, JournalReport
    from skill_effectiveness.evidence.surroundings import Surroundings

app = typer.Typer(
    add_completion=False, help="Verify journals, and have a pin made anew.", rich_markup_mode=None
)

Place = Annotated[
    Path, typer.Argument(help="Folder of the journal, or its file.", metavar="JOURNAL", show_default=False)
]

EXITS: Final = {
    JournalStatus.INTACT: ExitCode.DONE,
    JournalStatus.INTACT_WITH_TEARS: ExitCode.DONE,
    JournalStatus.RECOVERABLE: ExitCode.DONE,
    JournalStatus.DAMAGED: ExitCode.NOT_PASSED,
    JournalStatus.UNREADABLE: ExitCode.REFUSED,
}


@app.command()
def verify(
    place: Place,
    *,
    without_state: Annotated[
        bool, typer.Option("--without-state", help="Ask no copies of pins: for a backup, which is older.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Verify a journal without changing it.

    Exit 0: everything that was acknowledged is there. 1: it is damaged. 2: there is no journal to read.
    """
    around = surroundings()
    path = absolute(place)
    look = verify_segments if _is_folder(path, around) else verify_file
    with _known_state(around, wanted=not without_state) as state:
        report = look(around.fs, path, state=state)
    _tell(report, as_json=as_json)
    return EXITS[report.status]


@app.command()
def repin(
    place: Place,
    *,
    reason: Annotated[str, typer.Option(help="Why, in your own words; kept for ever.", show_default=False)],
    group_max: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LARGEST_GROUP,
            help=f"Rows one append may hold, of a file whose pin does not say (default: {GROUP_MAX}).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make the pin of a journal anew when it leads, lags, is missing or cannot be read.

    Whatever was cut off or rolled back stays lost, and the journal says so from then on. Exit 2: refused;
    nothing is wrong with the pin, or something is wrong with the rows.
    """
    around = surroundings()
    path = absolute(place)
    segmented = _is_folder(path, around)
    if segmented and group_max is not None:
        raise typer.BadParameter("a folder keeps its own --group-max; leave it out")
    with (
        # Whoever made the journal decided where it may lie; here it only has to be private.
        PrivateRoot.open(path.parent, RootKind.REPO, around=around, checkout=None) as root,
        PrivateRoot.create(state_path(around), RootKind.STATE, around=around, checkout=checkout()) as state,
    ):
        if segmented:
            report = Journal.repin(root, reason=reason, state=state, name=path.name)
        else:
            report = FileJournal.repin(
                root, path.name, reason=reason, state=state, group_max=group_max or GROUP_MAX
            )
    _tell(report, as_json=as_json)
    return EXITS[report.status]


def _is_folder(path: Path, around: Surroundings) -> bool:
    """Whether a folder has this name; whatever else does, or nothing, is judged by whoever reads it."""
    try:
        return stat.S_ISDIR(around.fs.lstat(None, str(path)).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def _known_state(around: Surroundings, *, wanted: bool) -> Iterator[PrivateRoot | None]:
    """The state folder, if there is one; verifying makes none."""
    if not wanted:
        yield None
        return
    try:
        state = PrivateRoot.open(state_path(around), RootKind.STATE, around=around, checkout=checkout())
    except RootError as error:
        if error.code is not RootCode.ROOT_MISSING:
            raise
        yield None
        return
    with state:
        yield state


def _tell(report: JournalReport, *, as_json: bool) -> None:
    """The report: sentences for people, values for machines."""
    screen.complain(report.sentence)
    for found in (*report.findings, *report.warnings):
        screen.complain(f"{found.finding}{_where(found)}: {found.sentence}")
    told = values(report)
    screen.results(told if as_json else _lines(told), as_json=as_json)


def _where(found: Found) -> str:
    """The place of a finding, for people."""
    parts = (("file", found.segment), ("row", found.seq), ("byte", found.offset))
    told = ", ".join(f"{name} {number}" for name, number in parts if number is not None)
    return f" ({told})" if told else ""


def values(report: JournalReport) -> dict[str, object]:
    """What machines are told about a journal; sentences, which quote names, are for people."""
    told: dict[str, object] = {
        "journal_status": report.status.value,
        "journal_id": report.journal_id,
        "count": report.count,
        "head": report.head,
        "segments": report.segments,
        "tears": report.tears,
        "unpinned": report.unpinned,
        "torn_bytes": report.torn_bytes,
        "findings": [_members(found) for found in report.findings],
        "warnings": [_members(found) for found in report.warnings],
    }
    if report.why is not None:
        told["why"] = report.why.value
    return told


def _members(found: Found) -> dict[str, object]:
    return {
        "finding": found.finding.value,
        "segment": found.segment,
        "seq": found.seq,
        "offset": found.offset,
    }


def _lines(told: dict[str, object]) -> dict[str, object]:
    """The same in lines: a list as its length, then each member under its number."""
    lines: dict[str, object] = {}
    for name, value in told.items():
        if not isinstance(value, list):
            lines[name] = value
            continue
        lines[name] = len(value)
        for number, members in enumerate(value, start=1):
            lines |= {f"{name}.{number}.{key}": member for key, member in members.items()}
    return lines
