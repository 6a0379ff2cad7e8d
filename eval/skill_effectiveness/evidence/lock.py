"""Exclusive lifecycles: a kernel lock on a file that is never unlinked.

The normal way: `with Lock(root, ".sample.lock").hold(wait, "take sample s-1"): …`. The kernel releases the
lock of a dead holder, so nothing is ever stolen and there is nothing to clean up. Source: evidence.md,
section 6.

`filelock` gives the lock as an operation on a descriptor (`lock_descriptor`), which has no soft fallback at
all and contends with every other user of `filelock.FileLock` on the same file. Its path-based classes are not
used, because they open the file by path.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence import files, writes
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import (
    EvidenceError,
    Fault,
    FileCode,
    FileError,
    LockCode,
    LockError,
)
from skill_effectiveness.evidence.rootwalk import identity_of
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType, TracebackType

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot

DEFAULT_WAIT: Final = 30.0
"""Seconds."""

_POLL_SECONDS: Final = 0.02
_HOLDER_LIMIT: Final = 4096
# A process takes its locks for a few actions, over and over.
_REMEMBERED: Final = 64
_NOT_SUPPORTED: Final = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
_UNSAFE: Final = frozenset(
    {
        FileCode.FILE_SYMLINK,
        FileCode.NOT_REGULAR,
        FileCode.FILE_OWNER,
        FileCode.FILE_MODE,
        FileCode.FILE_LINKS,
        FileCode.EXISTS_DIFFERENT,
        FileCode.NAME_COLLISION,
        # It was there a moment ago, and nothing of ours ever unlinks it.
        FileCode.MISSING,
    }
)


class LockLevel(IntEnum):
    """The order in which locks are taken: never one of a lower level while one of a higher level is held."""

    ROOT = 1
    TRIAL = 2
    JOURNAL = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock, as recorded beside it. Advisory: only the lock decides.

    Attributes:
        pid: process id.
        process_start: start mark of that process, see `FileSystem.process_start`.
        boot_id: of the kernel it ran under.
        host: host name.
        action: what it is doing, for people.
        time: when it took the lock, ISO 8601 in UTC.
    """

    pid: int
    process_start: str
    boot_id: str
    host: str
    action: str
    time: str


@dataclass(slots=True, eq=False)
class Held:
    """Proof that this thread holds a lock; worthless after the end of its `with`.

    Attributes:
        where: root-relative name of the lock.
        folder: path of its folder.
        level: its place in the order.
        named: whether the record beside the lock may name this holder.
    """

    where: str
    folder: Path
    level: LockLevel
    _fs: FileSystem
    _fd: int | None = None
    named: bool = False

    def keep(self, fd: int) -> int:
        """Own an open lock file, which is not locked yet; the same descriptor."""
        self._fd = fd
        return fd

    def unlock(self) -> None:
        """Let others have the lock, however often this is said."""
        if self._fd is not None:
            # Where there are no locks, nothing is locked.
            with suppress(OSError):
                _kernel_locks().unlock_descriptor(self._fd)

    def abandon(self) -> None:
        """Close the descriptor without unlocking it."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._fs.close(fd)


class LockOrderError(AssertionError):
    """Locks were asked for in an order in which two processes could wait for each other for ever."""


class _Thread(threading.local):
    """The locks of one thread, outermost first."""

    def __init__(self) -> None:
        self.held: list[Held] = []


_thread = _Thread()
_everywhere: set[Held] = set()


def held_locks() -> tuple[Held, ...]:
    """The locks that the calling thread holds, outermost first."""
    return tuple(_thread.held)


def _forget_in_child() -> None:
    """Let go of the parent's locks in a forked child.

    A lock belongs to the open file description, which a fork shares: a child that lives on would keep a dead
    parent's lock, and a child that unlocks would take it from a living one. Closing the child's copy does
    neither. (Descriptors are close-on-exec, but a forked worker never executes.)
    """
    for held in _everywhere:
        held.abandon()
    _everywhere.clear()
    _thread.held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class Lock:
    """One lock file in a private root.

    Args:
        root: where it lies.
        name: its name; `<name>.holder` beside it names the holder.
        level: its place in the order.
    """

    def __init__(self, root: PrivateRoot, name: str, level: LockLevel = LockLevel.ROOT) -> None:
        self._root = root
        self._name = name
        self._level = level
        self._where = root.folder.where(name)
        self._holder_name = f"{name}.holder"
        # Made once: a journal takes its lock for every append.
        self._folder = root.path

    @contextmanager
    def hold(self, wait: float = DEFAULT_WAIT, action: str = "") -> Iterator[Held]:
        """Hold the lock during the block.

        Args:
            wait: seconds to wait for another holder; 0 tries once.
            action: what is being done, shown to whoever waits.

        Raises:
            LockError: `lock_busy`, `lock_unavailable`, `lock_unsupported`, `lock_unsafe`; nothing was
                touched.
            LockOrderError: a lock of a higher level, or of the same level and not above this one, is held by
                this thread.
        """
        self._assert_order()
        held = Held(self._where, self._folder, self._level, self._root.folder.fs)
        try:
            try:
                # Before there is anything to forget, so that no fork and no signal falls in between.
                _everywhere.add(held)
                with _Judged():
                    self._take(held, wait, action)
                _thread.held.append(held)
                yield held
            finally:
                self._let_go(held)
        finally:
            # A signal handler may have raised in the middle of that; then the rest is left to do.
            self._let_go(held)

    def holder(self) -> Holder | None:
        """Who says to hold the lock; `None` when nobody says so or the record cannot be read."""
        try:
            data = self._root.read(self._holder_name, _HOLDER_LIMIT)
            found = read_json(data, Profile.WIRE, want_object=True)
        except EvidenceError:
            # Advisory: whatever is wrong with the record, the lock itself has been judged already.
            return None
        return _holder(found)

    def _assert_order(self) -> None:
        for held in held_locks():
            nested = held.level == self._level and held.folder in self._folder.parents
            if held.level >= self._level and not nested:
                asked = f"{self._where} ({self._level.name})"
                raise LockOrderError(f"{asked} asked for while {held.where} ({held.level.name}) is held")

    def _take(self, held: Held, wait: float, action: str) -> None:
        """Open, lock, look again, say who holds it.

        Raises:
            LockError: `lock_busy`, or the file was exchanged.
            FileError: a step failed.
        """
        fd = held.keep(self._open())
        with reported(self._where):
            self._acquire(fd, wait)
            self._demand_still_named(fd)
        held.named = True
        self._record(action)

    def _open(self) -> int:
        """Open the lock file, making it once."""
        folder = self._root.folder
        try:
            return files.open_private(folder, self._name, update=True)
        except FileError as error:
            if error.code is not FileCode.MISSING:
                raise
        # Published rather than created in place, so that no other process ever sees it with a wrong mode.
        try:
            self._root.publish(self._name, b"")
        except FileError as error:
            # Whoever made the file meanwhile holds it, and may have swept our temporary away as a leftover.
            if error.code is not FileCode.MISSING:
                raise
        return files.open_private(folder, self._name, update=True)

    def _acquire(self, fd: int, wait: float) -> None:
        """Wait for the lock."""
        lock_descriptor = _kernel_locks().lock_descriptor
        if lock_descriptor(fd, blocking=False):
            return
        around = self._root.around
        deadline = around.monotonic() + wait
        while not lock_descriptor(fd, blocking=False):
            left = deadline - around.monotonic()
            if left <= 0:
                raise LockError(Fault(LockCode.LOCK_BUSY, self._where, self._busy_sentence()))
            around.sleep(min(_POLL_SECONDS, left))

    def _busy_sentence(self) -> str:
        holder = self.holder()
        if holder is None:
            return f"{self._where} is held by another process that has not said who it is; wait and repeat."
        who = f"process {holder.pid} on {holder.host}"
        doing = f", which is busy with: {holder.action}" if holder.action else ""
        since = f"{self._where} has been held since {holder.time} by {who}{doing}."
        return f"{since} Wait until it is done, or stop it, and repeat."

    def _demand_still_named(self, fd: int) -> None:
        """Demand that the name still leads to the file that is locked now: two files would be two locks."""
        folder = self._root.folder
        status = folder.fs.lstat(folder.fd, self._name)
        files.demand_private(folder, self._name, status)
        if identity_of(status) != identity_of(folder.fs.fstat(fd)):
            sentence = (
                f"{self._where} was exchanged while it was being locked; keep others out of the folder."
            )
            raise LockError(Fault(LockCode.LOCK_UNSAFE, self._where, sentence))

    def _record(self, action: str) -> None:
        """Say who holds the lock."""
        around = self._root.around
        told = _untimed(action, around.boot_id, around.host, around.pid, around.fs.process_start(around.pid))
        time = around.now().isoformat(timespec="milliseconds")
        # Not durable: after a power loss there is no holder.
        writes.note(self._root.folder, self._holder_name, b'%b"time":"%b"}\n' % (told, time.encode()))

    def _let_go(self, held: Held) -> None:
        """Undo what was done to take the lock, unless a fork took it away from this process.

        It may be cut short after any step and is begun again then. That is why the lock is given up by name:
        a descriptor must not be closed twice, and one that nobody closes any more keeps no lock.
        """
        if held not in _everywhere:
            return
        named, held.named = held.named, False
        try:
            if named:
                # A record that stays behind is what a killed holder leaves too: it decides nothing.
                with suppress(OSError):
                    folder = self._root.folder
                    folder.fs.unlink(folder.fd, self._holder_name)
        finally:
            held.unlock()
            held.abandon()
            if held in _thread.held:
                _thread.held.remove(held)
            _everywhere.discard(held)


@lru_cache(maxsize=1)
def _kernel_locks() -> ModuleType:
    """The library of the lock; this room loads with the standard library alone."""
    import filelock  # noqa: PLC0415 - see above

    return filelock


@lru_cache(maxsize=_REMEMBERED)
def _untimed(action: str, boot_id: str, host: str, pid: int, process_start: str) -> bytes:
    """A holder's record up to its last member, the time, which alone changes from one hold to the next."""
    holder: dict[str, object] = {
        "action": action,
        "boot_id": boot_id,
        "host": host,
        "pid": pid,
        "process_start": process_start,
        "time": "",
    }
    return dump(holder).removesuffix(b'"time":""}')


class _Judged:
    """Turns the fault of a file into what it means for the lock."""

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Raise the `LockError`, if a file is at fault."""
        if isinstance(error, FileError):
            raise LockError(_judged(error)) from error


def _judged(error: FileError) -> Fault:
    fault = error.faults[0]
    number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
    if number in _NOT_SUPPORTED:
        sentence = f"The file system of {fault.where} has no locks and cannot hold evidence; use another."
        return Fault(LockCode.LOCK_UNSUPPORTED, fault.where, sentence)
    if fault.code in _UNSAFE:
        sentence = f"The lock cannot be trusted and was left as it is: {fault.sentence}"
        return Fault(LockCode.LOCK_UNSAFE, fault.where, sentence)
    sentence = f"The lock could not be taken: {fault.sentence} Nothing was changed."
    return Fault(LockCode.LOCK_UNAVAILABLE, fault.where, sentence)


def _holder(found: object) -> Holder | None:
    """A holder out of its record; `None` when it is not one."""
    if not isinstance(found, dict) or set(found) != {field.name for field in fields(Holder)}:
        return None
    pid = found.pop("pid")
    texts = {name: value for name, value in found.items() if isinstance(value, str)}
    if type(pid) is not int or len(texts) != len(found):
        return None
    return Holder(pid=pid, **texts)
