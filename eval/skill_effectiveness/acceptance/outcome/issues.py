"""Reading issues afresh, from a file or through `gh`, and closing one there.

Source: outcome.md, sections 8 and 11. `gh` is asked with an argument vector, never through a shell; it gets
no terminal, and what it prints is read strictly. Whether a close happened is not believed of its exit code
alone: the issue is read back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.records import IssueKey, IssueRecord, Number, Repository
from skill_effectiveness.acceptance.outcome.words import COMPLETED, REPOSITORY, IssueState
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.documents import parse, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.execution import Ended, Limits, run_process
from skill_effectiveness.execution.git import without_routing
from skill_effectiveness.execution.programs import find_tool

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.outcome.claims import Ledger
    from skill_effectiveness.evidence.surroundings import Surroundings

GH: Final = "gh"
GH_SECONDS: Final = 60.0
_BODY_BYTES: Final = 1_048_576
_OUTPUT_BYTES: Final = 4_194_304
_REFERENCE: Final = re.compile(r"(?P<repository>[^#]+)#(?P<number>[1-9][0-9]{0,15})")
_CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)
# What would make it ask a person, paint, or answer in another form.
_UNWANTED: Final = frozenset(
    {"GH_FORCE_TTY", "GH_DEBUG", "DEBUG", "CLICOLOR_FORCE", "GH_PAGER", "PAGER", "GH_REPO"}
)
_QUIET: Final = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "NO_COLOR": "1",
    "LC_ALL": "C.UTF-8",
}


class _Key(BaseModel):
    model_config = _CLOSED
    repository: Repository
    number: Number


class _Viewed(BaseModel):
    """What `gh issue view` answers to the four members that are asked for."""

    model_config = _CLOSED
    number: int
    state: Annotated[str, Field(max_length=40)]
    stateReason: Annotated[str, Field(max_length=40)] | None  # noqa: N815 - the document's own spelling
    body: str


@dataclass(frozen=True, slots=True)
class IssuePlace:
    """Where an issue is.

    Attributes:
        key: which.
        file: its Markdown file; `None`: at the forge, through `gh`.
    """

    key: IssueKey
    file: Path | None = None


def issue_key(repository: str, number: int) -> IssueKey:
    """A repository and a number, checked.

    Raises:
        OutcomeError: `record_invalid`.
    """
    try:
        validate(_Key, {"repository": repository, "number": number})
    except EvidenceError as error:
        fault = error.faults[0]
        sentence = f"The issue has no usable {fault.where.removeprefix('/')}: {fault.sentence}"
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence) from error
    return IssueKey(repository, number)


def issue_reference(text: str) -> IssueKey | None:
    """The issue that `OWNER/NAME#N` names; `None` when the text has another form."""
    match = _REFERENCE.fullmatch(text)
    if match is None or re.fullmatch(REPOSITORY, match["repository"]) is None:
        return None
    return issue_key(match["repository"], int(match["number"]))


def read_issue(place: IssuePlace, ledger: Ledger, around: Surroundings) -> IssueRecord:
    """An issue as it is now.

    Args:
        place: where it is.
        ledger: says whether an issue in a file was closed.
        around: the surroundings.

    Raises:
        OutcomeError: `record_invalid` (the file is no text), `issue_unreadable`.
    """
    if place.file is None:
        return _viewed(place.key, around)
    closed = ledger.closed_here(place.key)
    return _record(
        place.key,
        source="file",
        body=read_body(place.file, around),
        state=IssueState.CLOSED if closed else IssueState.OPEN,
        reason=COMPLETED if closed else "",
    )


def demand_same_source(place: IssuePlace, ledger: Ledger) -> None:
    """Demand that an issue is read where it was read before: a file must not speak for one at the forge.

    Raises:
        OutcomeError: `record_invalid`.
    """
    known = ledger.issues.get(place.key)
    source = "gh" if place.file is None else "file"
    if known is not None and known.source != source:
        told = "through gh" if known.source == "gh" else "in a file"
        sentence = f"This issue was read {told} before; name it as it was named then. Nothing was done."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence, " at /issue")


def read_body(file: Path, around: Surroundings) -> str:
    """The body of an issue in a file.

    Raises:
        OutcomeError: `issue_unreadable`, `record_invalid`.
    """
    try:
        data = read_public(around.fs, file, _BODY_BYTES)
    except EvidenceError as error:
        sentence = f"{error.faults[0].sentence} Nothing was done."
        raise OutcomeError(OutcomeCode.ISSUE_UNREADABLE, sentence) from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        sentence = "The issue file is not UTF-8; save it as UTF-8. Nothing was done."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence) from error


def _record(key: IssueKey, *, source: str, body: str, state: IssueState, reason: str) -> IssueRecord:
    value = {
        "repository": key.repository,
        "issue_number": key.number,
        "source": source,
        "body": body,
        "body_digest": digest_text(body),
        "state": state.value,
        "state_reason": reason,
    }
    try:
        return validate(IssueRecord, value)
    except EvidenceError as error:
        sentence = f"The issue cannot be kept: {error.faults[0].sentence} Nothing was done."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence) from error


def _viewed(key: IssueKey, around: Surroundings) -> IssueRecord:
    words = (
        "issue",
        "view",
        str(key.number),
        "--repo",
        key.repository,
        "--json",
        "number,state,stateReason,body",
    )
    answered = _ask(words, around)
    if answered is None:
        raise _unreadable("gh did not say what the issue is; it may be missing, offline or refused")
    try:
        viewed = parse(_Viewed, answered, Profile.DOCUMENT)
        state = IssueState(viewed.state.lower())
    except (EvidenceError, ValueError) as error:
        raise _unreadable("what gh said is no issue") from error
    if viewed.number != key.number:
        raise _unreadable("gh answered about another issue")
    return _record(key, source="gh", body=viewed.body, state=state, reason=(viewed.stateReason or "").lower())


def _unreadable(told: str) -> OutcomeError:
    return OutcomeError(OutcomeCode.ISSUE_UNREADABLE, f"The issue cannot be read: {told}. Nothing was done.")


def close_at_forge(key: IssueKey, around: Surroundings) -> bool:
    """Ask `gh` to close an issue as completed; whether it says that it did."""
    words = ("issue", "close", str(key.number), "--repo", key.repository, "--reason", COMPLETED)
    return _ask(words, around) is not None


def _ask(words: tuple[str, ...], around: Surroundings) -> bytes | None:
    """What `gh` printed; `None` when it is missing or did not end well in its time."""
    program = find_tool(GH, around)
    if program is None:
        return None
    said: list[bytes] = []

    def keep(line: bytes) -> bool:
        said.append(line + b"\n")
        return False

    environ = {
        name: value for name, value in without_routing(around.environ).items() if name not in _UNWANTED
    }
    result = run_process(
        [str(program), *words],
        # Not the working folder: a repository there must not steer what is asked.
        cwd=Path("/"),
        env=environ | _QUIET,
        stdin=b"",
        limits=Limits(GH_SECONDS, line_bytes=_OUTPUT_BYTES, stdout_bytes=_OUTPUT_BYTES),
        on_line=keep,
        around=around,
    )
    if result.ended is not Ended.EXITED or result.exit_code != 0:
        return None
    return b"".join(said) + result.unterminated
