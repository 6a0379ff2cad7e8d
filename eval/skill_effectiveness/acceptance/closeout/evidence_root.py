"""The evidence directory, `.closeout/`: reading every record, storing the next one, keeping the decision.

Source: closeout.md, sections 3 and 7. It is a private root of kind `repo`. Below `evidence/` it counts what a
name is, not its mode: a folder, or a regular `.json` file with one valid record; anything else blocks.
"""

from __future__ import annotations

import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.acceptance.closeout import layout
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.evaluation import StoredRecord
from skill_effectiveness.acceptance.closeout.policy_paths import is_relative
from skill_effectiveness.acceptance.closeout.records import (
    ATTEMPT_MOST,
    RECORD_BYTES,
    Artifact,
    RecordError,
    read_record,
)
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, LockCode, LockError
from skill_effectiveness.evidence.fsops import closing, demand_regular, read_all
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.staging import publish_staged
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from types import TracebackType

    from skill_effectiveness.acceptance.closeout.evaluation import Inputs
    from skill_effectiveness.acceptance.closeout.layout import Place
    from skill_effectiveness.acceptance.closeout.records import Record
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.evidence.tree import Found

LOCK_SECONDS: Final = 10.0


class EvidenceRoot:
    """The open evidence directory; made by `open` only."""

    def __init__(self, root: PrivateRoot) -> None:
        self._root = root

    @classmethod
    def open(cls, path: Path, around: Surroundings) -> Self:
        """Open the directory, making it (0700, with a `.gitignore` of `*`) where it is missing.

        Raises:
            CloseoutError: `evidence_unreadable`: it is no private folder of ours, or cannot be made.
        """
        try:
            root = PrivateRoot.create(path, RootKind.REPO, around=around, checkout=None)
        except EvidenceError as error:
            raise _unreadable(error) from error
        try:
            if not root.exists(layout.IGNORE):
                root.publish(layout.IGNORE, b"*\n")
        except EvidenceError as error:
            root.close()
            raise _unreadable(error) from error
        return cls(root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._root.close()

    # Reading.

    def records(
        self, inputs: Inputs | None = None, journalled: Callable[[str], bool] = lambda _digest: False
    ) -> tuple[StoredRecord, ...]:
        """Every record, in the order of its path.

        Args:
            inputs: artifacts are verified of the records that match these.
            journalled: whether the runner's journal holds a digest of a record's bytes.

        Raises:
            CloseoutError: `evidence_invalid` naming the first file that is no record; `evidence_unreadable`.
        """
        return tuple(self._stored(data, where, inputs, journalled) for where, data in self._files())

    def _stored(
        self, data: bytes, where: str, inputs: Inputs | None, journalled: Callable[[str], bool]
    ) -> StoredRecord:
        try:
            record = read_record(data)
        except RecordError as error:
            raise _invalid(where, str(error)) from None
        if inputs is None or not inputs.matches(record):
            return StoredRecord(record)
        return StoredRecord(record, self._broken_artifact(record), journalled(digest_bytes(data)))

    def _files(self) -> Iterator[tuple[str, bytes]]:
        try:
            if not self._root.exists(layout.EVIDENCE):
                return
            for found in walk_tree(self._root.around.fs, self._root.path / layout.EVIDENCE):
                if not stat.S_ISDIR(found.status.st_mode):
                    yield found.path, self._read(found)
        except EvidenceError as error:
            raise _unreadable(error) from error

    def _read(self, found: Found) -> bytes:
        if not found.name.endswith(layout.RECORD_SUFFIX):
            raise _invalid(found.path, "not a .json file")
        fs = self._root.around.fs
        try:
            with reported(found.name, reading=True):
                demand_regular(found.status, found.name)
                with closing(fs, fs.open_read(found.parent, found.name)) as fd:
                    # The name may have been given to something else since it was looked at.
                    demand_regular(fs.fstat(fd), found.name)
                    return read_all(fs, fd, RECORD_BYTES, found.name)
        except EvidenceError as error:
            raise _invalid(found.path, str(error.code)) from error

    def _broken_artifact(self, record: Record) -> str | None:
        for artifact in record.artifacts:
            if not self._holds(artifact):
                return printable(artifact.path)
        return None

    def _holds(self, artifact: Artifact) -> bool:
        """Whether the named file is there with the named content; a path that leads outside names nothing."""
        if not is_relative(artifact.path):
            return False
        *folders, name = artifact.path.split("/")
        try:
            if not folders:
                return digest_bytes(self._root.read(name)) == f"sha256:{artifact.sha256}"
            with self._root.child(*folders) as folder:
                return digest_bytes(folder.read(name)) == f"sha256:{artifact.sha256}"
        except EvidenceError:
            return False

    # Storing.

    def store(
        self, place: Place, make: Callable[[int, tuple[Artifact, ...]], Record], log: bytes | None, least: int
    ) -> tuple[Record, str]:
        """Store the next attempt of an item: its log first, then its record.

        Args:
            place: whose attempt.
            make: the record, given its number and its artifacts.
            log: the log, which becomes the record's artifact; `None`: it has none.
            least: no smaller number is given.

        Returns:
            The record and the digest of its bytes.

        Raises:
            CloseoutError: `evidence_locked`, `evidence_not_stored`; nothing that counts was stored.
        """
        with self._locked("store evidence"):
            staging = self._root.child(layout.STAGING, create=True)
            with staging:
                staging.sweep()
                attempt = max(least, self._last(place) + 1)
                if attempt > ATTEMPT_MOST:
                    raise CloseoutError(
                        CloseoutCode.EVIDENCE_NOT_STORED,
                        "evidence_not_stored",
                        "There are too many attempts.",
                    )
                artifacts: tuple[Artifact, ...] = ()
                if log is not None:
                    self._publish(staging, layout.LOGS, place, f"{attempt}{layout.LOG_SUFFIX}", log)
                    digest = digest_bytes(log).removeprefix("sha256:")
                    artifacts = (Artifact(path=place.log_path(attempt), sha256=digest),)
                record = make(attempt, artifacts)
                data = record_bytes(record)
                self._publish(staging, layout.EVIDENCE, place, f"{attempt}{layout.RECORD_SUFFIX}", data)
        return record, digest_bytes(data)

    def _publish(self, staging: PrivateRoot, kind: str, place: Place, name: str, data: bytes) -> None:
        with self._root.child(kind, *place.folders, create=True) as folder:
            publish_staged(staging, folder, name, data)

    def _last(self, place: Place) -> int:
        """The greatest attempt that has a record, or a log that a kill left without one."""
        return max(
            (
                layout.attempt_of(name)
                for kind in (layout.EVIDENCE, layout.LOGS)
                for name in self._names(kind, place)
            ),
            default=0,
        )

    def _names(self, kind: str, place: Place) -> Collection[str]:
        folder = self._root
        opened: list[PrivateRoot] = []
        try:
            for segment in (kind, *place.folders):
                if not folder.exists(segment):
                    return ()
                folder = folder.child(segment)
                opened.append(folder)
            return folder.names()
        finally:
            for each in opened:
                each.close()

    def keep_decision(self, folders: tuple[str, ...], name: str, data: bytes) -> None:
        """Keep the latest decision of a candidate; the same one again changes nothing.

        Raises:
            CloseoutError: `evidence_locked`, `evidence_not_stored`.
        """
        with self._locked("keep a decision"), self._root.child(*folders, create=True) as folder:
            folder.sweep()
            if not (folder.exists(name) and folder.read(name) == data):
                folder.replace(name, data)

    @contextmanager
    def _locked(self, action: str) -> Iterator[None]:
        try:
            with Lock(self._root, layout.LOCK).hold(LOCK_SECONDS, action):
                yield
        except LockError as error:
            code = CloseoutCode.EVIDENCE_NOT_STORED
            if error.code is LockCode.LOCK_BUSY:
                code = CloseoutCode.EVIDENCE_LOCKED
            raise CloseoutError(code, code.value, str(error)) from error
        except EvidenceError as error:
            code = CloseoutCode.EVIDENCE_NOT_STORED
            raise CloseoutError(code, code.value, str(error)) from error


def record_bytes(record: Record) -> bytes:
    """The bytes of a record's file: canonical JSON and LF."""
    return dump_line(record.model_dump(mode="json", exclude_unset=True))


def last_attempt(records: Collection[StoredRecord], place: Place) -> int:
    """The greatest attempt of an item at a candidate under a policy, wherever its record lies."""
    wanted = (place.item_id, place.head, place.digest)
    attempts = (
        stored.record.attempt
        for stored in records
        if (stored.record.itemId, stored.record.head, stored.record.policyDigest) == wanted
    )
    return max(attempts, default=0)


def _invalid(where: str, reason: str) -> CloseoutError:
    return CloseoutError(
        CloseoutCode.EVIDENCE_INVALID,
        f"evidence file {printable(where)} is invalid: {reason}",
        "Look at it and move it away; it was left as it is.",
    )


def _unreadable(error: EvidenceError) -> CloseoutError:
    return CloseoutError(
        CloseoutCode.EVIDENCE_UNREADABLE, "could not read the evidence directory", str(error)
    )
