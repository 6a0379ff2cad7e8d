"""Running a folder of conformance cases: sample repositories, and what an evaluator has to get from them.

Source: closeout.md, section 13. Each case runs on a private copy; the folder itself is only read.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field, JsonValue

from skill_effectiveness.acceptance.closeout.errors import CloseoutError
from skill_effectiveness.acceptance.closeout.evaluation import Candidate
from skill_effectiveness.acceptance.closeout.layout import EVIDENCE
from skill_effectiveness.acceptance.closeout.policy_models import ClosedModel
from skill_effectiveness.acceptance.closeout.policy_paths import is_policy_path, resolve
from skill_effectiveness.acceptance.closeout.runner import Blocked, decide
from skill_effectiveness.acceptance.closeout.site import Request, Site, worktree_policy
from skill_effectiveness.acceptance.closeout.tree import TreeUnreadableError
from skill_effectiveness.acceptance.closeout.validation import validate_policy
from skill_effectiveness.acceptance.closeout.words import State, Verdict
from skill_effectiveness.acceptance.closeout.working_tree import WorkingTree
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.copies import append_public, copy_public_tree
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.evidence.tree import walk_tree
from skill_effectiveness.execution import SessionFolders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution.git import Git

EXPECT: Final = "expect.json"
REPO: Final = "repo"
_EXPECT_BYTES: Final = 4_194_304
_COMMITTER: Final = {
    "GIT_AUTHOR_NAME": "conformance",
    "GIT_AUTHOR_EMAIL": "conformance@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "conformance",
    "GIT_COMMITTER_EMAIL": "conformance@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
_PLAIN: Final = ("-c", "commit.gpgSign=false", "-c", "core.autocrlf=false", "-c", "core.fileMode=true")


_TOLD: Final = ("message", "messageContains", "warningCodes")


class Check(StrEnum):
    """What a case checks."""

    VALIDATE = "validate"
    DECISION = "decision"
    DIGEST = "digest"


class ExpectedItem(ClosedModel):
    """One item of the expected result; what is left out is not compared."""

    id: str
    state: State | None = None
    message: str | None = None


class ExpectedCandidate(ClosedModel):
    """Who made the candidate."""

    session: str = ""
    model: str = ""
    provider: str = ""


class Expectation(ClosedModel):
    """`expect.json`; members that do not belong to the check are refused."""

    check: Check
    description: str = ""
    git: bool = False
    records: tuple[JsonValue, ...] = ()
    touched: str | None = Field(default=None, alias="touch")
    ok: bool | None = None
    message: str | None = None
    messageContains: str | None = None  # noqa: N815 - the document's own spelling
    warningCodes: tuple[str, ...] | None = None  # noqa: N815 - the document's own spelling
    decision: Verdict | None = None
    candidate: ExpectedCandidate = Field(default_factory=ExpectedCandidate)
    items: tuple[ExpectedItem, ...] | None = None

    def misfit(self) -> str | None:
        """Why the members do not make a case; `None` when they do."""
        needed = {Check.VALIDATE: "ok", Check.DECISION: "decision", Check.DIGEST: "touched"}[self.check]
        if getattr(self, needed) is None:
            return "touch is missing" if needed == "touched" else f"{needed} is missing"
        allowed = {
            Check.VALIDATE: {*_TOLD, "ok"},
            Check.DECISION: {*_TOLD, "records", "decision", "candidate", "items"},
            Check.DIGEST: {"touched"},
        }[self.check]
        foreign = sorted(self.model_fields_set - allowed - {"check", "description", "git"})
        if foreign:
            name = "touch" if foreign[0] == "touched" else foreign[0]
            return f"{name} does not belong to a {self.check} case"
        if self.touched is not None and not is_policy_path(self.touched):
            return "touch is not a repository-relative path"
        return None


class Outcome(StrEnum):
    """How a case came out."""

    OK = "ok"
    FAIL = "FAIL"
    MALFORMED = "malformed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case.

    Attributes:
        name: its folder.
        outcome: how it came out; `malformed` and `broken` (it could not be run) beat every disagreement.
        expected: what differs, as expected; of a malformed or broken case, why.
        got: what differs, as it was.
    """

    name: str
    outcome: Outcome
    expected: str = ""
    got: str = ""

    def line(self) -> str:
        """The case on one line."""
        match self.outcome:
            case Outcome.OK:
                return f"{self.name} ok"
            case Outcome.FAIL:
                return f"{self.name} FAIL {self.expected} {self.got}"
            case _:
                return f"{self.name} {self.outcome}: {self.expected}"


class _Malformed(Exception):  # noqa: N818 - a word about the case
    """The case is not one; the text says why."""


class _Broken(Exception):  # noqa: N818 - a word about the case
    """The case could not be run; the text says why."""


def case_names(folder: Path, around: Surroundings) -> tuple[str, ...]:
    """The names of the folders in a folder, sorted.

    Raises:
        FileError: there is no such folder.
    """
    fs = around.fs
    with reported(folder.name, reading=True):
        top = fs.open_dir(None, fs.resolve(str(folder)))
        try:
            names = [name for name in fs.listdir(top) if stat.S_ISDIR(fs.lstat(top, name).st_mode)]
        finally:
            fs.close(top)
    return tuple(sorted(names))


def run_case(folder: Path, name: str, around: Surroundings, version: str) -> CaseResult:
    """Run one case on a private copy.

    Args:
        folder: the folder of cases, absolute.
        name: of the case.
        around: the surroundings.
        version: of this evaluator.
    """
    try:
        expected = _expectation(folder / name, around)
        with SessionFolders(around) as session:
            copy = session.work / REPO
            try:
                with PrivateRoot.create(copy, RootKind.REPO, around=around, checkout=None):
                    copy_public_tree(around.fs, folder / name / REPO, copy)
                _demand_no_repository(copy, around)
            except EvidenceError as error:
                raise _Malformed(f"repo cannot be copied ({error.code})") from error
            store = session.data / "store"
            found = _Case(expected, Site(copy, around, version, store=store)).differences()
    except _Malformed as error:
        return CaseResult(name, Outcome.MALFORMED, str(error))
    except _Broken as error:
        return CaseResult(name, Outcome.BROKEN, str(error))
    except (EvidenceError, CloseoutError) as error:
        return CaseResult(name, Outcome.BROKEN, str(error.code))
    if found is None:
        return CaseResult(name, Outcome.OK)
    return CaseResult(name, Outcome.FAIL, *found)


def _demand_no_repository(copy: Path, around: Surroundings) -> None:
    """Refuse a sample with a repository in it: git would obey its settings, or write where it leads to."""
    for found in walk_tree(around.fs, copy):
        if found.name.casefold() == ".git":
            raise _Malformed("repo holds a .git")


def _expectation(case: Path, around: Surroundings) -> Expectation:
    try:
        expected = parse(Expectation, read_public(around.fs, case / EXPECT, _EXPECT_BYTES), Profile.DOCUMENT)
    except EvidenceError as error:
        fault = error.faults[0]
        raise _Malformed(f"{EXPECT} {fault.where} {fault.code}".replace("  ", " ")) from error
    if (misfit := expected.misfit()) is not None:
        raise _Malformed(misfit)
    return expected


@dataclass(frozen=True, slots=True)
class _Case:
    """One case over its copy."""

    expected: Expectation
    site: Site

    def differences(self) -> tuple[str, str] | None:
        """The first thing that differs, as expected and as it was."""
        match self.expected.check:
            case Check.VALIDATE:
                return self._validate()
            case Check.DIGEST:
                return self._digest()
            case _:
                return self._decision()

    def _validate(self) -> tuple[str, str] | None:
        found = validate_policy(self.site, None)
        return (
            _differ("ok", self.expected.ok, found.error is None)
            or self._message(found.message)
            or self._warnings([each.code.value for each in found.warnings])
        )

    def _digest(self) -> tuple[str, str] | None:
        touched = self.expected.touched or ""
        fs, root = self.site.around.fs, self.site.root
        before = worktree_policy(self.site).digest
        try:
            if resolve(WorkingTree(fs, root), touched).linked:
                # Behind a link there may be a file that is no part of the copy.
                raise _Malformed("touch leads through a link")
            append_public(fs, root / touched, b"\n")
        except TreeUnreadableError as error:
            raise _Malformed(f"touch {error}") from error
        except EvidenceError as error:
            raise _Malformed(f"touch cannot be touched ({error.code})") from error
        after = worktree_policy(self.site).digest
        return ("another digest", str(after)) if before == after else None

    def _decision(self) -> tuple[str, str] | None:
        expected = self.expected
        commit = self._commit() if expected.git else ""
        self._place_records(commit)
        candidate = Candidate(
            expected.candidate.session, expected.candidate.model, expected.candidate.provider
        )
        request = Request(commit or "HEAD", commit or "HEAD", candidate)
        try:
            found = decide(self.site, request)
        except Blocked as blocked:
            found = blocked.document
        return (
            _differ("decision", expected.decision, found.decision)
            or self._message(found.message)
            or self._warnings([each.code.value for each in found.warnings])
            or self._items(found)
        )

    def _message(self, message: str) -> tuple[str, str] | None:
        expected = self.expected
        if expected.message is not None and message != expected.message:
            return _told("message", expected.message, message)
        if expected.messageContains is not None and expected.messageContains not in message:
            return _told("messageContains", expected.messageContains, message)
        return None

    def _warnings(self, codes: list[str]) -> tuple[str, str] | None:
        expected = self.expected.warningCodes
        return None if expected is None else _differ("warningCodes", list(expected), codes)

    def _items(self, found: DecisionDocument) -> tuple[str, str] | None:
        if self.expected.items is None:
            return None
        ids = _differ("items", [item.id for item in self.expected.items], [item.id for item in found.items])
        if ids is not None:
            return ids
        for wanted, got in zip(self.expected.items, found.items, strict=True):
            if wanted.state not in (None, got.state):
                return _told(f"{got.id} state", wanted.state, got.state)
            if wanted.message not in (None, got.message):
                return _told(f"{got.id} message", wanted.message, got.message)
        return None

    def _commit(self) -> str:
        """Commit the copy as it is; the commit."""
        git = self.site.git
        _demand(git, "init", "--quiet", "--template=")
        # Evidence that a sample repository may hold is no part of its candidate.
        _demand(git, *_PLAIN, "add", "--all", "--force", "--", ".", ":(exclude).closeout")
        _demand(git, *_PLAIN, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", "sample")
        commit = git.commit("HEAD")
        if commit is None:
            raise _Broken("the sample could not be committed")
        return commit

    def _place_records(self, commit: str) -> None:
        if not self.expected.records:
            return
        try:
            digest = worktree_policy(self.site).digest or ""
        except CloseoutError:
            digest = ""
        words = {"$base": commit, "$head": commit, "$digest": digest, "$version": self.site.version}
        path, around = self.site.evidence_path, self.site.around
        with (
            PrivateRoot.create(path, RootKind.REPO, around=around, checkout=None) as root,
            root.child(EVIDENCE, "cases", create=True) as folder,
        ):
            for number, template in enumerate(self.expected.records, 1):
                folder.publish(f"{number}.json", dump(_filled(template, words)))


def _demand(git: Git, *words: str) -> None:
    if not git.ask(*words, environ=_COMMITTER).good:
        raise _Broken("the sample could not be committed")


def _filled(template: JsonValue, words: Mapping[str, str]) -> JsonValue:
    """A record template with its words replaced wherever they stand in a text."""
    match template:
        case str():
            for word, text in words.items():
                template = template.replace(word, text)
            return template
        case list():
            return [_filled(each, words) for each in template]
        case dict():
            return {key: _filled(each, words) for key, each in template.items()}
        case _:
            return template


def _differ(what: str, expected: object, got: object) -> tuple[str, str] | None:
    return None if expected == got else _told(what, expected, got)


def _told(what: str, expected: object, got: object) -> tuple[str, str]:
    return f"{what}={_plain(expected)}", f"{what}={_plain(got)}"


def _plain(value: Any) -> str:  # noqa: ANN401 - whatever a result holds
    return dump([str(each) for each in value]).decode() if isinstance(value, list) else str(value)
