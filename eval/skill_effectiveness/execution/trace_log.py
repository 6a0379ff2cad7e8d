r"""What a log of strace says about files: pure reading, a line at a time, in bounded memory.

Source: trials.md section 5 (the rows of an audit). Facts were observed on strace 6.1.

The log is one of `Tracer.watching`: every text in it is spelt in hexadecimal escapes (`\x2f\x61`), so nothing
that a program chose, a name above all, can look like a part of a line. A descriptor stands with the path it
leads to, also `AT_FDCWD`, so most paths are whole. For the few calls that take a path from the working folder
and have no descriptor, that folder is followed through `chdir`, `fchdir` and every kind of fork.

An access counts when the call was carried out. Where a file was opened, its path is the one the kernel gives
for the new descriptor, links followed. A call that failed is no access, but kept apart as refused. Looking
whether something is there (the calls of the family of stat) is no access either.

| operation | calls |
|---|---|
| `open`, for reading or writing or both | open, openat, openat2, creat |
| `read` | execve, execveat, and the source of a hard link |
| `enumerate` | getdents, getdents64, inotify_add_watch |
| `write` | every call that makes, removes, renames or changes a name, mode, owner, time or attribute |

The record is `whole` only if nothing could have been missed: every line is one that is known, every process
was seen from its first to its last moment, no call ran behind the log (io_uring, handles, untraced clones),
and no process gave itself another file system, in which paths would mean something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["read", "open", "enumerate", "write"]
Mode = Literal["read", "write"]

MOST_ACCESSES: Final = 200_000
"""Distinct accesses that are kept; more make the record incomplete."""
MOST_PATH_BYTES: Final = 33_554_432
"""Bytes of their paths, all together; likewise."""
MOST_REFUSED: Final = 1_000
"""Distinct refusals that are kept; what comes after them is not."""
LINE_BYTES: Final = 1_048_576
"""Longest line; two longest paths take a twentieth of that."""
_MOST_FAULTS: Final = 20


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that was done to a path, as the program called it.

    Attributes:
        operation: see the module's text.
        mode: for `open` only.
        path: absolute, as bytes; `.` and `..` may be in it unless a file was opened.
    """

    operation: Kind
    mode: Mode | None
    path: bytes


@dataclass(frozen=True, slots=True)
class Trace:
    """What a log comes to.

    Attributes:
        accesses: distinct ones, in the order of their first time.
        refused: distinct ones that failed.
        faults: why the record may not be whole, each in a few words; nothing that a program chose.
    """

    accesses: tuple[Access, ...]
    refused: tuple[Access, ...]
    faults: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing could have been missed."""
        return not self.faults


@dataclass(slots=True)
class _Cwd:
    """A working folder; threads share one."""

    path: bytes | None


@dataclass(slots=True)
class _Task:
    """A process or thread that is alive."""

    cwd: _Cwd
    pending: tuple[str, bytes] | None = None
    guessed: bool = False


_LINE: Final = re.compile(rb"(\d+) +(.*)")
_CALL: Final = re.compile(rb"([a-z_][a-z0-9_]*)\((.*)", re.DOTALL)
_RESUMED: Final = re.compile(rb"<\.\.\. ([a-z_][a-z0-9_]*) resumed>(.*)", re.DOTALL)
_UNKNOWN: Final = "???"
_KILLED_AT: Final = re.compile(rb"\?\?\?\( <unfinished \.\.\.>")
"""A thread that was killed at the beginning of a call, which the kernel then does not carry out.

Its next line is its end, which has the exit code of the group where that is what ended it.
"""
_UNFINISHED: Final = re.compile(rb" ?<unfinished \.\.\.>(?:\) += \?)?$")
_ENDED: Final = re.compile(rb"\+\+\+ (?:exited with \d+|killed by [A-Z0-9_+]+(?: \(core dumped\))?) \+\+\+")
_SUPERSEDED: Final = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
_NOISE: Final = re.compile(rb"--- .* ---|\[ Process PID=\d+ runs in [ \w]+ mode\. \]")
_RESULT: Final = re.compile(
    rb"\) +=? ?= (?P<value>-?\d+|\?|0x[0-9a-f]+)(?:<(?P<path>[^<>]*)>(?P<deleted>\(deleted\))?)?"
    rb"(?: (?P<errno>E[A-Z0-9_]+)(?: \([^()]*\))?)?(?: \([^()]*\))?"
    rb"(?: /\* (?P<outer>\d+) in strace's PID NS \*/)?$"
)
_TEXT: Final = rb'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?'
_DESCRIPTOR: Final = rb"(AT_FDCWD|-?\d+)(?:<([^<>]*)>(?:\(deleted\))?)?"
_HEX: Final = re.compile(rb"\\x([0-9a-f]{2})")
_AT: Final = re.compile(_DESCRIPTOR + rb", (?:" + _TEXT + rb"|NULL)")
_PLAIN: Final = re.compile(_TEXT)
_FD: Final = re.compile(_DESCRIPTOR)
_SOCKET_PATH: Final = re.compile(rb'sun_path="((?:\\x[0-9a-f]{2})*)"')
_SPECIAL: Final = b"/memfd:"

_WRITES: Final = {
    "rename": "pp", "renameat": "aa", "renameat2": "aa", "unlink": "p", "unlinkat": "a", "rmdir": "p",
    "mkdir": "p", "mkdirat": "a", "mknod": "p", "mknodat": "a", "symlink": ".p", "symlinkat": ".a",
    "truncate": "p", "chmod": "p", "fchmodat": "a", "fchmod": "d", "chown": "p", "lchown": "p", "fchown": "d",
    "fchownat": "a", "utime": "p", "utimes": "p", "futimesat": "a", "utimensat": "a", "setxattr": "p",
    "lsetxattr": "p", "fsetxattr": "d", "removexattr": "p", "lremovexattr": "p", "fremovexattr": "d",
}  # fmt: skip
"""Calls that write, and their first arguments: `p` a path, `a` a descriptor and a path, `d` a descriptor."""

_LINKS: Final = {"link": "pp", "linkat": "aa"}
_READS: Final = {"execve": "p", "execveat": "a"}
_LISTS: Final = {"getdents": "d", "getdents64": "d", "inotify_add_watch": ".p"}
_FORMS: Final[Mapping[str, tuple[tuple[Kind, ...], str]]] = MappingProxyType(
    {
        **{name: (("write", "write"), form) for name, form in _WRITES.items()},
        **{name: (("read", "write"), form) for name, form in _LINKS.items()},
        **{name: (("read",), form) for name, form in _READS.items()},
        **{name: (("enumerate",), form) for name, form in _LISTS.items()},
    }
)
_OPENS: Final = {"open": "p", "openat": "a", "openat2": "a", "creat": "p"}
_FORKS: Final = frozenset({"clone", "clone3", "fork", "vfork"})
_UNSEEN: Final = frozenset({"io_uring_setup", "open_by_handle_at"})
_MOVED: Final = frozenset(
    {"chroot", "pivot_root", "mount", "umount2", "move_mount", "open_tree", "fsmount", "setns"}
)

TRACED: Final = tuple(
    sorted(
        {*_WRITES, *_LINKS, *_READS, *_LISTS, *_OPENS, *_FORKS, *_UNSEEN, *_MOVED}
        | {"bind", "chdir", "fchdir", "unshare"}
    )
)
"""Names of the calls that the log has to hold."""


@dataclass(slots=True)
class TraceReader:
    """Reads a log, line by line; `finish` answers what it comes to.

    Args:
        prelude: programs that were started for us before the one that is watched (1 for a sandbox).
        folder: in which the first program was started, absolute.
        most: distinct accesses that are kept.
        most_bytes: of the paths of these.
    """

    prelude: int = 0
    folder: bytes | None = None
    most: int = MOST_ACCESSES
    most_bytes: int = MOST_PATH_BYTES
    _tasks: dict[int, _Task] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)
    _made: set[int] = field(default_factory=set)
    _accesses: dict[Access, None] = field(default_factory=dict)
    _refused: dict[Access, None] = field(default_factory=dict)
    _faults: dict[str, None] = field(default_factory=dict)
    _held: int = 0
    _started: int = 0
    _seen_one: bool = False

    def take(self, line: bytes) -> None:
        """Read one line, without its LF."""
        match = _LINE.fullmatch(line)
        if match is None:
            self._fault("a line that is none of strace")
            return
        number, text = int(match[1]), match[2]
        task = self._task(number)
        if (
            not self._is_end(number, task, text)
            and _NOISE.fullmatch(text) is None
            and not self._is_call(task, text)
        ):
            self._fault("a line of an unknown form")

    def broken(self, reason: str) -> None:
        """The log itself is not whole: cut, too long, or not to be read."""
        self._fault(reason)

    def finish(self) -> Trace:
        """What the log comes to."""
        if self._started <= self.prelude:
            self._fault("the program was never started")
        if self._tasks:
            self._fault("a process whose end is not there")
        if self._made - self._ended:
            self._fault("a process that was started and not seen")
        return Trace(tuple(self._accesses), tuple(self._refused), tuple(self._faults))

    def _fault(self, reason: str) -> None:
        if len(self._faults) < _MOST_FAULTS:
            self._faults[reason] = None

    @property
    def _open(self) -> bool:
        """Whether the program that is watched has begun."""
        return self._started > self.prelude

    def _task(self, number: int) -> _Task:
        task = self._tasks.get(number)
        if task is None:
            task = self._tasks[number] = self._newcomer()
            self._ended.discard(number)
        return task

    def _newcomer(self) -> _Task:
        """A process whose parent is not known yet: the calls that may be starting it have not returned."""
        if not self._seen_one:
            self._seen_one = True
            return _Task(_Cwd(self.folder))
        parents = [
            task for task in self._tasks.values() if task.pending is not None and task.pending[0] in _FORKS
        ]
        folders = {task.cwd.path for task in parents}
        known = folders.pop() if len(folders) == 1 else None
        if len(parents) == 1 and parents[0].pending is not None and b"CLONE_FS" in parents[0].pending[1]:
            return _Task(parents[0].cwd, guessed=True)
        return _Task(_Cwd(known), guessed=True)

    def _is_end(self, number: int, task: _Task, text: bytes) -> bool:
        if _ENDED.fullmatch(text):
            self._gone(number)
            return True
        superseded = _SUPERSEDED.fullmatch(text)
        if superseded is None:
            return False
        # A thread that starts a program takes the number of its group's first one.
        other = int(superseded[1])
        thread = self._tasks.get(other)
        if thread is None:
            self._fault("a thread that is not there started a program")
            return True
        task.cwd, task.pending = thread.cwd, thread.pending
        self._gone(other)
        return True

    def _gone(self, number: int) -> None:
        self._tasks.pop(number, None)
        self._ended.add(number)

    def _is_call(self, task: _Task, text: bytes) -> bool:
        resumed = _RESUMED.fullmatch(text)
        if resumed is not None:
            name, rest = resumed[1].decode(), resumed[2]
            pending, task.pending = task.pending, None
            if pending is None or pending[0] != name:
                return False
            return self._called(task, name, pending[1] + rest)
        if task.pending is not None:
            return False
        call = _CALL.fullmatch(text)
        if call is None:
            task.pending = (_UNKNOWN, b"")
            return _KILLED_AT.fullmatch(text) is not None
        name, rest = call[1].decode(), call[2]
        unfinished = _UNFINISHED.search(rest)
        if unfinished is None:
            return self._called(task, name, rest)
        task.pending = (name, rest[: unfinished.start()])
        return True

    def _called(self, task: _Task, name: str, text: bytes) -> bool:
        """One call from its arguments to its result."""
        result = _RESULT.search(text)
        if result is None:
            return False
        value, errno = result["value"], result["errno"]
        if value == b"?":
            # Ended or interrupted before it was carried out; the kernel asks for it again.
            return True
        failed = errno is not None
        self._note_folder(task, text)
        if not failed:
            self._follow(task, name, text, result)
        if name in _READS and not failed:
            self._started += 1
        if self._open:
            self._record(task, name, text[: result.start()], result, failed=failed)
        return True

    def _note_folder(self, task: _Task, text: bytes) -> None:
        at = _FD.match(text)
        if at is not None and at[1] == b"AT_FDCWD" and at[2] is not None:
            task.cwd.path = _unhex(at[2])

    def _follow(self, task: _Task, name: str, text: bytes, result: re.Match[bytes]) -> None:
        """What a call that was carried out changes for the paths after it."""
        if name == "chdir":
            told = _PLAIN.match(text)
            task.cwd.path = None if told is None else _joined(task.cwd.path, _unhex(told[1]))
        elif name == "fchdir":
            told = _FD.match(text)
            task.cwd.path = None if told is None or told[2] is None else _unhex(told[2])
        elif name in _FORKS:
            self._forked(task, text, result)
        elif self._open and name in _UNSEEN:
            self._fault(f"{name} gives access that is not seen")
        elif self._open and (name in _MOVED or (name == "unshare" and b"CLONE_NEWNS" in text)):
            self._fault(f"{name} gave a process another file system")
        elif name == "unshare" and b"CLONE_FS" in text:
            task.cwd = _Cwd(task.cwd.path)

    def _forked(self, task: _Task, text: bytes, result: re.Match[bytes]) -> None:
        child = int(result["outer"] or result["value"])
        if self._open and b"CLONE_UNTRACED" in text:
            self._fault("a process was started so that it is not seen")
        if self._open and b"CLONE_NEWNS" in text:
            self._fault("clone gave a process another file system")
        shared = b"CLONE_FS" in text
        known = self._tasks.get(child)
        if known is None:
            ended_early = child in self._ended and child not in self._made
            self._made.add(child)
            if ended_early:
                return
            self._ended.discard(child)
            self._tasks[child] = _Task(task.cwd if shared else _Cwd(task.cwd.path))
        elif known.guessed:
            known.guessed = False
            if shared:
                task.cwd.path = known.cwd.path or task.cwd.path
                known.cwd = task.cwd
            elif known.cwd.path is None:
                known.cwd = _Cwd(task.cwd.path)
        self._made.add(child)

    def _record(self, task: _Task, name: str, text: bytes, result: re.Match[bytes], *, failed: bool) -> None:
        if name in _OPENS:
            self._opened(task, name, text, result, failed=failed)
        elif name == "bind":
            self._bound(task, text, failed=failed)
        elif name in _FORMS:
            operations, form = _FORMS[name]
            paths = self._paths(task, form, text, failed=failed)
            for operation, path in zip(operations, paths, strict=False):
                self._add(Access(operation, None, path), failed=failed)

    def _opened(self, task: _Task, name: str, text: bytes, result: re.Match[bytes], *, failed: bool) -> None:
        if b"O_PATH" in text:
            return
        real = None if failed or result["path"] is None else _unhex(result["path"])
        if real is not None and real.startswith(b"/"):
            if real.startswith(_SPECIAL) and result["deleted"]:
                return
            path = real
        else:
            paths = self._paths(task, _OPENS[name], text, failed=failed)
            if not paths:
                return
            path = paths[0]
        writes = name == "creat" or b"O_WRONLY" in text or b"O_RDWR" in text
        # Emptying or making a file changes it, whatever it is opened for.
        changes = b"O_TRUNC" in text or b"O_CREAT" in text
        if writes or changes:
            self._add(Access("open", "write", path), failed=failed)
        if not writes or b"O_RDWR" in text:
            self._add(Access("open", "read", path), failed=failed)

    def _bound(self, task: _Task, text: bytes, *, failed: bool) -> None:
        """A socket with a name in the file system."""
        told = _SOCKET_PATH.search(text)
        path = None if told is None else _joined(task.cwd.path, _unhex(told[1]))
        if told is not None and path is None and not failed:
            self._fault("a path from a folder that is not known")
        if path is not None:
            self._add(Access("write", None, path), failed=failed)

    def _paths(self, task: _Task, form: str, text: bytes, *, failed: bool) -> list[bytes]:
        """The paths in the first arguments of a call; a fault where one of a call carried out is not told."""
        found: list[bytes] = []
        at = 0
        for kind in form:
            match = {"p": _PLAIN, "a": _AT, "d": _FD, ".": _ANY}[kind].match(text, at)
            path = None if match is None else _path(task.cwd.path, kind, match)
            if match is None or (path is None and kind != "."):
                if not failed:
                    self._fault("a path that is not told")
                return found
            if path is not None and path.startswith(b"/"):
                found.append(path)
            at = match.end() + len(", ")
        return found

    def _add(self, access: Access, *, failed: bool) -> None:
        if failed:
            if len(self._refused) < MOST_REFUSED:
                self._refused[access] = None
        elif access not in self._accesses:
            self._held += len(access.path)
            if len(self._accesses) >= self.most or self._held > self.most_bytes:
                self._fault("more accesses than are kept")
                return
            self._accesses[access] = None


_ANY: Final = re.compile(rb"[^,]*")


def _path(cwd: bytes | None, kind: str, match: re.Match[bytes]) -> bytes | None:
    """The path of one argument; None where it is not told whole."""
    if kind == ".":
        return None
    if kind == "d":
        return None if match[2] is None else _unhex(match[2])
    if kind == "p":
        return None if match[2] else _joined(cwd, _unhex(match[1]))
    if match[4]:
        return None
    # Without a path it is the descriptor itself that is meant.
    path = _unhex(match[3] or b"")
    if path.startswith(b"/"):
        return path
    base = cwd if match[2] is None and match[1] == b"AT_FDCWD" else None
    base = base if match[2] is None else _unhex(match[2])
    return _joined(base, path)


def _joined(folder: bytes | None, path: bytes) -> bytes | None:
    if path.startswith(b"/"):
        return path
    if folder is None:
        return None
    return folder if path == b"" else folder.rstrip(b"/") + b"/" + path


def _unhex(text: bytes) -> bytes:
    return _HEX.sub(lambda found: bytes((int(found[1], 16),)), text)
