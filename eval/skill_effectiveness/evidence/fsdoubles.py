"""File operations that record, fail or stop on purpose: test doubles of `fsops.FileSystem`.

Source: evidence.md, section 10.

Both wrap another `FileSystem`, so they combine: `FaultFs(RecordingFs(RealFs()), …)`. No product code uses
them; they stand here because they must change together with the protocol.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.fsops import FileSystem, Place

_T = TypeVar("_T")

MUTATIONS: Final = frozenset(
    {
        "create_exclusive",
        "write",
        "truncate",
        "fsync",
        "fsync_dir",
        "fchmod",
        "chmod_dir",
        "mkdir",
        "rmdir",
        "link",
        "rename",
        "unlink",
    }
)
"""Operations that change what a crash would leave behind."""


class _Wrapper:
    """A `FileSystem` that passes every operation through `_through`, together with the path it is about."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner
        self._paths: dict[int, str] = {}

    def _through(self, operation: str, path: str, call: Callable[[], _T], *details: object) -> _T:
        """Do the operation; a double overrides this."""
        del operation, path, details
        return call()

    def _named(self, parent: int | None, name: str) -> str:
        """The path of a name, as it was reached."""
        if parent is None:
            return name
        return os.path.normpath(f"{self._path_of(parent).rstrip('/')}/{name}")

    def _opened(self, operation: str, parent: int | None, name: str, call: Callable[[], int]) -> int:
        """Do an opening operation and remember the path of the new descriptor."""
        path = self._named(parent, name)
        fd = self._through(operation, path, call)
        self._paths[fd] = path
        return fd

    @property
    def open_paths(self) -> list[str]:
        """The paths behind descriptors that were opened here and not closed, sorted."""
        return sorted(self._paths.values())

    def _path_of(self, fd: int) -> str:
        return self._paths.get(fd, "?")

    def user(self) -> int:
        """See `FileSystem`."""
        return self._inner.user()

    def user_home(self) -> str:
        """See `FileSystem`."""
        return self._inner.user_home()

    def boot_id(self) -> str:
        """See `FileSystem`."""
        return self._inner.boot_id()

    def process_start(self, pid: int) -> str:
        """See `FileSystem`."""
        return self._inner.process_start(pid)

    def resolve(self, path: str) -> str:
        """See `FileSystem`."""
        return self._through("resolve", path, lambda: self._inner.resolve(path))

    def place(self, fd: int) -> Place | None:
        """See `FileSystem`."""
        return self._through("place", self._path_of(fd), lambda: self._inner.place(fd))

    def open_dir(self, parent: int | None, name: str, *, search: bool = False) -> int:
        """See `FileSystem`."""
        return self._opened(
            "open_dir", parent, name, lambda: self._inner.open_dir(parent, name, search=search)
        )

    def open_read(self, parent: int | None, name: str) -> int:
        """See `FileSystem`."""
        return self._opened("open_read", parent, name, lambda: self._inner.open_read(parent, name))

    def open_update(self, parent: int | None, name: str) -> int:
        """See `FileSystem`."""
        return self._opened("open_update", parent, name, lambda: self._inner.open_update(parent, name))

    def create_exclusive(self, parent: int | None, name: str, mode: int = 0o600) -> int:
        """See `FileSystem`."""
        return self._opened(
            "create_exclusive", parent, name, lambda: self._inner.create_exclusive(parent, name, mode)
        )

    def read(self, fd: int, size: int) -> bytes:
        """See `FileSystem`."""
        return self._through("read", self._path_of(fd), lambda: self._inner.read(fd, size), fd)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """See `FileSystem`."""
        return self._through("write", self._path_of(fd), lambda: self._inner.write(fd, data), fd, bytes(data))

    def seek(self, fd: int, offset: int) -> int:
        """See `FileSystem`."""
        return self._through("seek", self._path_of(fd), lambda: self._inner.seek(fd, offset), fd, offset)

    def truncate(self, fd: int, size: int) -> None:
        """See `FileSystem`."""
        self._through("truncate", self._path_of(fd), lambda: self._inner.truncate(fd, size), size)

    def fsync(self, fd: int) -> None:
        """See `FileSystem`."""
        self._through("fsync", self._path_of(fd), lambda: self._inner.fsync(fd))

    def fsync_dir(self, fd: int) -> None:
        """See `FileSystem`."""
        self._through("fsync_dir", self._path_of(fd), lambda: self._inner.fsync_dir(fd))

    def fchmod(self, fd: int, mode: int) -> None:
        """See `FileSystem`."""
        self._through("fchmod", self._path_of(fd), lambda: self._inner.fchmod(fd, mode), mode)

    def chmod_dir(self, parent: int | None, name: str, mode: int) -> None:
        """See `FileSystem`."""
        path = self._named(parent, name)
        self._through("chmod_dir", path, lambda: self._inner.chmod_dir(parent, name, mode), mode)

    def fstat(self, fd: int) -> os.stat_result:
        """See `FileSystem`."""
        return self._through("fstat", self._path_of(fd), lambda: self._inner.fstat(fd))

    def lstat(self, parent: int | None, name: str) -> os.stat_result:
        """See `FileSystem`."""
        return self._through("lstat", self._named(parent, name), lambda: self._inner.lstat(parent, name))

    def may_execute(self, parent: int | None, name: str) -> bool:
        """See `FileSystem`."""
        path = self._named(parent, name)
        return self._through("may_execute", path, lambda: self._inner.may_execute(parent, name))

    def listdir(self, fd: int) -> list[str]:
        """See `FileSystem`."""
        return self._through("listdir", self._path_of(fd), lambda: self._inner.listdir(fd))

    def readlink(self, parent: int | None, name: str) -> str:
        """See `FileSystem`."""
        path = self._named(parent, name)
        return self._through("readlink", path, lambda: self._inner.readlink(parent, name))

    def mkdir(self, parent: int | None, name: str, mode: int = 0o700) -> None:
        """See `FileSystem`."""
        self._through("mkdir", self._named(parent, name), lambda: self._inner.mkdir(parent, name, mode))

    def rmdir(self, parent: int | None, name: str) -> None:
        """See `FileSystem`."""
        self._through("rmdir", self._named(parent, name), lambda: self._inner.rmdir(parent, name))

    def link(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """See `FileSystem`."""
        self._through(
            "link",
            self._named(source_parent, source),
            lambda: self._inner.link(source_parent, source, target_parent, target),
            self._named(target_parent, target),
        )

    def rename(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """See `FileSystem`."""
        self._through(
            "rename",
            self._named(source_parent, source),
            lambda: self._inner.rename(source_parent, source, target_parent, target),
            self._named(target_parent, target),
        )

    def unlink(self, parent: int | None, name: str) -> None:
        """See `FileSystem`."""
        self._through("unlink", self._named(parent, name), lambda: self._inner.unlink(parent, name))

    def close(self, fd: int) -> None:
        """See `FileSystem`."""
        self._through("close", self._path_of(fd), lambda: self._inner.close(fd))
        self._paths.pop(fd, None)


@dataclass(frozen=True, slots=True)
class Step:
    """One mutating operation that succeeded.

    Attributes:
        operation: name of the `FileSystem` method.
        path: absolute path of the object as it was reached; of the source for `link` and `rename`.
        target: absolute path of the new name of `link` and `rename`, else empty.
        offset: where a `write` began.
        data: what a `write` wrote (only what was taken).
        number: size of a `truncate`, mode of a `fchmod` or `chmod_dir`.
    """

    operation: str
    path: str
    target: str = ""
    offset: int = 0
    data: bytes = b""
    number: int = 0


class RecordingFs(_Wrapper):
    """Logs every mutating operation that succeeded.

    Args:
        inner: where the operations go.
        after: called with each step once it is logged, so that a test can look at the disk between two steps.
    """

    def __init__(self, inner: FileSystem, after: Callable[[Step], object] = lambda _step: None) -> None:
        super().__init__(inner)
        self.steps: list[Step] = []
        self._after = after
        self._offsets: dict[int, int] = {}

    def _through(self, operation: str, path: str, call: Callable[[], _T], *details: object) -> _T:
        result = call()
        if operation == "seek":
            fd, offset = details
            self._offsets[_number(fd)] = _number(offset)
        if operation == "read" and isinstance(result, bytes):
            fd = _number(details[0])
            self._offsets[fd] = self._offsets.get(fd, 0) + len(result)
        if operation in MUTATIONS:
            step = self._step(operation, path, result, details)
            self.steps.append(step)
            self._after(step)
        return result

    def _step(self, operation: str, path: str, result: object, details: tuple[object, ...]) -> Step:
        match operation, details:
            case "write", (int(fd), bytes(data)):
                offset = self._offsets.get(fd, 0)
                taken = data[: _number(result)]
                self._offsets[fd] = offset + len(taken)
                return Step(operation, path, offset=offset, data=taken)
            case (("link" | "rename"), (str(target),)):
                return Step(operation, path, target=target)
            case (("truncate" | "fchmod" | "chmod_dir"), (int(number),)):
                return Step(operation, path, number=number)
            case _:
                return Step(operation, path)

    def _opened(self, operation: str, parent: int | None, name: str, call: Callable[[], int]) -> int:
        fd = super()._opened(operation, parent, name, call)
        self._offsets[fd] = 0
        return fd


def _number(value: object) -> int:
    """A value known to be an integer."""
    assert isinstance(value, int)  # noqa: S101 - a double states what its own calls pass
    return value


@dataclass(slots=True)
class Injection:
    """Something that happens at chosen calls of an operation.

    Attributes:
        operation: name of the method; `*` for every mutating one, `any` for every one but `close`.
        errno: raised as `OSError` instead of doing the operation.
        nth: at which call counted from 1 among those that match; 0 for every one.
        about: which paths count.
        before: called first, for instance to kill the process, deliver a signal or swap a folder for a link.
        change: makes the result that the caller sees out of the real one.
        hits: how often it happened so far.
    """

    operation: str
    errno: int | None = None
    nth: int = 1
    about: Callable[[str], bool] = lambda _path: True
    before: Callable[[], object] = lambda: None
    change: Callable[[Any], Any] | None = None
    hits: int = 0
    _calls: int = field(default=0, repr=False)

    def due(self, operation: str, path: str) -> bool:
        """Whether this call is one of the chosen ones; counts it."""
        named = self.operation == operation
        mutating = self.operation == "*" and operation in MUTATIONS
        anything = self.operation == "any" and operation != "close"
        if not (named or mutating or anything) or not self.about(path):
            return False
        self._calls += 1
        if self.nth not in (0, self._calls):
            return False
        self.hits += 1
        return True


class FaultFs(_Wrapper):
    """Lets chosen calls fail, or lets something happen at them; everything else passes through."""

    def __init__(self, inner: FileSystem, *injections: Injection) -> None:
        super().__init__(inner)
        self.injections = injections

    def _through(self, operation: str, path: str, call: Callable[[], _T], *details: object) -> _T:
        del details
        due = [injection for injection in self.injections if injection.due(operation, path)]
        for injection in due:
            injection.before()
            if injection.errno is not None:
                raise OSError(injection.errno, os.strerror(injection.errno), path)
        result = call()
        for injection in due:
            if injection.change is not None:
                result = injection.change(result)
        return result
