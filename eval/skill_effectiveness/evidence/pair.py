"""Two documents that count only together: the evidence, then the result that holds the evidence's hash.

Source: evidence.md, section 8, whose step numbers stand at the steps. The caller holds the root lock
throughout.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from skill_effectiveness.evidence import files, writes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, Fault, FileCode, FileError, PairCode, PairError
from skill_effectiveness.evidence.names import check_written_name
from skill_effectiveness.evidence.rootwalk import identity_of
from skill_effectiveness.evidence.signals import TerminationWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.rootwalk import Identity

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Member:
    """One document of a pair.

    Attributes:
        name: its canonical name, one segment.
        data: its bytes.
    """

    name: str
    data: bytes


def pending_name(name: str) -> str:
    """Where a document waits before it has its canonical name: `.<stem>.pending.json`."""
    return f".{PurePosixPath(name).stem}.pending.json"


def load_pair(
    root: PrivateRoot, evidence_name: str, result_name: str, load: Callable[[bytes, bytes], _T]
) -> _T:
    """Read a published pair; one document alone, or none, is no pair.

    Args:
        root: the folder of both.
        evidence_name: canonical name.
        result_name: canonical name.
        load: makes something of the bytes of evidence and result, checking shapes and cross hashes; what it
            raises is passed on.

    Raises:
        PairError: `pair_incomplete`.
        FileError: a document is not a private file (`file_mode`, `file_symlink`, …).
    """
    absent = [name for name in (evidence_name, result_name) if not root.exists(name)]
    if absent:
        where = root.folder.where(absent[0])
        sentence = f"{' and '.join(absent)} missing: the publication was not completed and does not count."
        raise PairError(Fault(PairCode.PAIR_INCOMPLETE, where, sentence))
    return load(root.read(evidence_name), root.read(result_name))


def publish_pair(
    root: PrivateRoot,
    evidence: Member,
    result: Member,
    *,
    load: Callable[[bytes, bytes], _T],
    overwrite_half: bool = False,
) -> _T:
    """Publish two documents so that readers see both or neither.

    A pair that is there already with the same bytes stays as it is; half of it, which only a kill leaves, is
    published again; whatever else has one of the names is refused and stays. A termination that arrives
    between the renames takes both back and then has its effect (see `TerminationWindow`, also for threads); a
    later one leaves the complete pair.

    Args:
        root: the folder of both, whose lock the caller holds.
        evidence: published first.
        result: published second.
        load: the loader that consumers of the pair use; it judges the staged bytes before anything is
            renamed.
        overwrite_half: whatever lies under one name alone is the caller's own and may be replaced; for a
            caller that holds the folder by a claim.

    Returns:
        What `load` made of the pair.

    Raises:
        PairError: `pair_unsafe`: a staged or canonical path is a link, not regular, not ours, not 0600 or has
            a second name; it is named and untouched. `pair_invalid`: what was staged did not read back.
        FileError: `exists_different`: another document has one of the names, and stays; or the code of a
            failed write. Nothing that this call put there is there then, unless both are.
        Terminated: after a termination whose handler returned.
    """
    for member in (evidence, result):
        check_written_name(pending_name(member.name), root.folder.prefix)
    publication = _Publication(root, evidence, result, overwrite_half=overwrite_half)
    publication.demand_safe()
    if publication.stands():
        publication.discard(staged_only=True)
        return load(evidence.data, result.data)
    try:
        loaded = publication.stage(load)
    except BaseException:
        publication.discard(staged_only=True)
        raise
    with TerminationWindow() as window:  # step 3; its end is step 6
        try:
            publication.rename()
        except BaseException:
            publication.discard(staged_only=publication.complete)
            raise
        if window.terminated():  # step 5
            publication.discard()
    return loaded


class _Publication:
    """The four names of one publication and how far it has come."""

    def __init__(self, root: PrivateRoot, evidence: Member, result: Member, *, overwrite_half: bool) -> None:
        self._root = root
        self._folder = root.folder
        self._members = (evidence, result)
        self._staged = (pending_name(evidence.name), pending_name(result.name))
        if len({evidence.name, result.name, *self._staged}) != len(self._members) + len(self._staged):
            raise ValueError("the documents of a pair need names with different stems")
        self._overwrite_half = overwrite_half
        self._ours: dict[str, Identity] = {}
        """Which file waits to get, or has got, each canonical name."""
        self.complete = False

    def demand_safe(self) -> None:
        """Demand that each of the four names is free or a private file of ours."""
        for name in (*self._staged, *(member.name for member in self._members)):
            try:
                with reported(self._folder.where(name)):
                    status = self._folder.status(name)
                    if status is not None:
                        files.demand_replaceable(self._folder, name, status)
            except FileError as error:
                fault = error.faults[0]
                sentence = f"The publication stopped and left this as it is: {fault.sentence}"
                raise PairError(Fault(PairCode.PAIR_UNSAFE, fault.where, sentence)) from error

    def stands(self) -> bool:
        """Whether exactly this pair is published already.

        Raises:
            FileError: `exists_different`: something else has one of the names. Half a pair of other bytes is
                no more ours than a whole one, unless the caller says so.
        """
        present = [member for member in self._members if self._root.exists(member.name)]
        if self._overwrite_half and len(present) < len(self._members):
            return False
        for member in present:
            if self._read(member.name, member) != member.data:
                where = self._folder.where(member.name)
                sentence = f"{where} is published already with other content and stays; use a new folder."
                raise FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence))
        if len(present) < len(self._members):
            return False
        self._sync()
        return True

    def stage(self, load: Callable[[bytes, bytes], _T]) -> _T:
        """Steps 1 and 2: write both documents beside their names and judge what reads back."""
        read: list[bytes] = []
        for member, staged in zip(self._members, self._staged, strict=True):
            self._root.replace(staged, member.data)
            read.append(self._read(staged, member))
            if read[-1] != member.data:
                where = self._folder.where(staged)
                sentence = f"{where} reads back differently from what was written; check the disk."
                raise PairError(Fault(PairCode.PAIR_INVALID, where, sentence))
            with reported(self._folder.where(staged)):
                self._ours[member.name] = identity_of(self._folder.fs.lstat(self._folder.fd, staged))
        return load(read[0], read[1])

    def rename(self) -> None:
        """Step 4: evidence first, result second, each durable before the next."""
        self.demand_safe()
        self.stands()
        fs, fd = self._folder.fs, self._folder.fd
        for member, staged in zip(self._members, self._staged, strict=True):
            with reported(self._folder.where(member.name)):
                fs.rename(fd, staged, fd, member.name)
                self.complete = member is self._members[-1]
            self._sync()

    def discard(self, *, staged_only: bool = False) -> None:
        """Take back what this publication has put there, and nothing that it found.

        A canonical name goes only if it leads to the very file that was staged: a rename that failed may have
        happened all the same, and what never was renamed may be half a pair of somebody else.
        """
        fs, fd = self._folder.fs, self._folder.fd
        # The error or signal that brought us here is what counts; what cannot be removed is half a pair,
        # which no reader accepts.
        with suppress(EvidenceError):
            for name in self._staged:
                with suppress(OSError):
                    fs.unlink(fd, name)
            for name, identity in () if staged_only else tuple(self._ours.items()):
                with suppress(OSError):
                    if identity_of(fs.lstat(fd, name)) == identity:
                        fs.unlink(fd, name)
            self._sync()

    def _read(self, name: str, member: Member) -> bytes:
        return self._root.read(name, max(files.READ_LIMIT, len(member.data)))

    def _sync(self) -> None:
        with reported(self._folder.prefix or "."):
            writes.sync_folder(self._folder.fs, self._folder.fd)
