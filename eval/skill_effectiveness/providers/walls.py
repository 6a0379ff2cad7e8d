"""What is put around the children of a call: a sandbox, a record of accesses, both or neither.

Source: providers.md P13; studies.md sections 1 and 3; trials.md section 5.

* Where nothing is demanded, there is the sandbox of `execution`, if the adapter asks for one and the machine
  has it.
* In a sandbox that is demanded, nothing is there but the system, the program, its login, the session and what
  is named. The working copy lies at the demanded place; `/tmp` and `/dev/shm` are the session's temporary
  folder.
* A record is strace outside of all that. Its logs lie beside the session's folders, where no sandbox shows
  them.

The roots of a record follow from what is shown, so they cannot differ from it. A place that is new inside has
no name on the machine and is called `inside` of the session; so is what lies in /proc, which means something
else to everyone who looks.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.resolution import PathResolver, UnresolvedError, holds
from skill_effectiveness.execution import Place, Sandbox, Tracer, View, read_trace
from skill_effectiveness.execution.sandbox import SHOWN
from skill_effectiveness.execution.tracing import LOG_BYTES, logged_bytes
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.calls import SandboxKind, WarningCode
from skill_effectiveness.providers.confinement import Confinement, Observation, Touch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Access
    from skill_effectiveness.execution.installation import Installation
    from skill_effectiveness.providers.asking import Asked, CallSession

_INSIDE: Final = "inside"
_LOG: Final = "accesses"
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_OF_THE_KERNEL: Final = tuple(f"/dev/{name}" for name in _DEVICES)
"""What a program that nobody confines reads and writes without touching anything of anybody's."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a call has to be shown beside its session.

    Attributes:
        linked: the real files behind the login, which may be renewed.
        in_place: login files that the program looks for where they are.
        program: what belongs to the program itself.
        readable: all that a worker can read besides; `None` for everything.
    """

    linked: tuple[Path, ...] = ()
    in_place: tuple[Path, ...] = ()
    program: Installation | None = None
    readable: tuple[Path, ...] | None = None


class Walls:
    """What is around the children of one call.

    Attributes:
        word: for the record.
    """

    def __init__(
        self, asked: Asked, session: CallSession, shown: Shown, confinement: Confinement | None = None
    ) -> None:
        """See `Shown`.

        Raises:
            CannotAskError: `requisite_missing`: what is demanded is not on this machine;
                `session_unavailable`: what must be hidden would be shown, or what must be written cannot be.
            FileError: a place cannot be looked up.
        """
        self._session = session.folders
        self._around = session.around
        self._demanded = confinement or Confinement()
        self._tracer = _demanded_tracer(session.around) if self._demanded.traced else None
        self._logs: list[Path] = []
        self._view: View | None = None
        self._sandbox: Sandbox | None = None
        self.word = asked.sandbox
        if self._demanded.place is not None:
            self._confine(self._demanded.place, asked, shown)
        elif asked.writable is not None:
            self._surround(asked, shown)
        self._roots = self._rooted(asked, shown)
        if confinement is not None:
            self._demand_apart()

    def around(self, argv: Sequence[str]) -> Sequence[str]:
        """The argument vector that runs a program inside, and has it watched."""
        inside = self._inside(argv)
        if self._tracer is None:
            return inside
        log = self._session.beside(f"{_LOG}-{len(self._logs)}.log")
        self._logs.append(log)
        return self._tracer.watching(inside, log)

    def overflowed(self) -> bool:
        """Whether the record has become longer than it may: whoever works on so would fill the disk."""
        return bool(self._logs) and logged_bytes(self._around.fs, self._logs) > LOG_BYTES

    def observation(self) -> Observation | None:
        """What was observed so far; `None` where nobody asked for walls or a record."""
        read, write = self._roots
        enforced = self._view is not None
        if self._tracer is None:
            return Observation(read, write, enforced=True) if enforced else None
        fs, folder = self._around.fs, self._folder
        prelude = 0 if self._sandbox is None else 1
        traces = [read_trace(fs, log, prelude=prelude, folder=folder) for log in self._logs]
        touched: dict[Touch, None] = {}
        refused: dict[Touch, None] = {}
        resolver = None if enforced else PathResolver(fs)
        for trace in traces:
            touched |= dict.fromkeys(self._touched(access, resolver) for access in trace.accesses)
            refused |= dict.fromkeys(self._refused(trace.refused))
        faults = tuple(dict.fromkeys(fault for trace in traces for fault in trace.faults))
        if not enforced:
            faults = (*faults, "without a sandbox the log is within reach of what is watched")
        return Observation(read, write, tuple(touched), tuple(refused), not faults, enforced, faults)

    def _surround(self, asked: Asked, shown: Shown) -> None:
        """The sandbox that an adapter asks for, where there is one."""
        self._sandbox = Sandbox.found(self._around)
        if self._sandbox is None:
            return
        self.word = SandboxKind.BUBBLEWRAP
        self._folder = self._resolved(asked.folder)
        named = [self._resolved(place) for place in asked.writable or ()]
        self._writable = (*self._session.folders, *shown.linked, *named)
        self._readable = shown.readable

    _folder: Path = Path("/")
    _writable: tuple[Path, ...] = ()
    _readable: tuple[Path, ...] | None = None
    _links: tuple[tuple[str, str], ...] = ()

    def _confine(self, place: str, asked: Asked, shown: Shown) -> None:
        """The sandbox that was demanded."""
        self._sandbox = Sandbox.found(self._around)
        if self._sandbox is None:
            sentence = "A sandbox was demanded; install bubblewrap, or let it make namespaces for users."
            raise CannotAskError(WarningCode.REQUISITE_MISSING, sentence)
        self.word = SandboxKind.BUBBLEWRAP
        self._folder = Path(place)
        tmp = self._session.tmp
        program = shown.program
        places = [
            *(Place.same(folder, writable=True) for folder in self._session.folders),
            *(Place(tmp, new, writable=True) for new in ("/tmp", "/dev/shm")),  # noqa: S108 - inside
            *(Place.same(file, writable=True) for file in shown.linked),
            *(Place(self._resolved(file), str(file)) for file in shown.in_place),
            *(Place.same(file) for file in (program.files if program else ())),
            *(Place(self._resolved(path), str(path)) for path in self._demanded.readable),
            *(Place.same(path) for path in shown.readable or ()),
            Place(self._resolved(asked.folder), place, writable=True),
        ]
        kept = tuple(one for one in places if one.writable or not _in_system(one))
        links = [(str(path), str(target)) for path, target in (program.links if program else ())]
        shown_anyway = [one.inside for one in kept if not one.writable]
        self._links = tuple((path, target) for path, target in links if not _in_any(path, shown_anyway))
        self._view = View(kept, self._session.beside(_INSIDE))

    def _inside(self, argv: Sequence[str]) -> Sequence[str]:
        if self._sandbox is None:
            return argv
        if self._view is not None:
            places, links, folder = self._view.places, self._links, str(self._folder)
            return self._sandbox.holding(argv, folder=folder, places=places, links=links)
        if self._readable is None:
            return self._sandbox.reading(argv, folder=self._folder, writable=self._writable)
        readable, writable = self._readable, self._writable
        return self._sandbox.working(argv, folder=self._folder, readable=readable, writable=writable)

    def _rooted(self, asked: Asked, shown: Shown) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Read roots and write roots, none inside another one."""
        fs = self._around.fs
        system = [place for place in SHOWN if _is_there(fs, place)]
        if self._view is not None:
            writes = [str(place.outside) for place in self._view.places if place.writable]
            writes.append(str(self._view.elsewhere))
            reads = [*system, *(str(place.outside) for place in self._view.places)]
        else:
            named = [self._resolved(asked.folder), *(self._resolved(one) for one in self._demanded.readable)]
            copy, *readable = (str(path) for path in named)
            new = str(self._session.beside(_INSIDE))
            writes = [*map(str, self._session.folders), new, copy, *map(str, shown.linked), *_OF_THE_KERNEL]
            program = shown.program.files if shown.program else ()
            reads = [*system, *readable, *map(str, (*program, *shown.in_place, *(shown.readable or ())))]
        written = _outermost(_led_to(fs, writes))
        read = _outermost(path for path in _led_to(fs, reads) if not _in_any(path, written))
        return (*written, *read), written

    def _demand_apart(self) -> None:
        read, write = self._roots
        if any(_reaches(root, str(path)) for root in read for path in self._demanded.hidden):
            sentence = "What the agent is shown holds the study's own folder, or that of its state."
            raise CannotAskError(WarningCode.SESSION_UNAVAILABLE, sentence)
        if any(_in_any(home, read) for home in self._homes()):
            sentence = "Your home lies in folders of the system, which an agent is shown; have one elsewhere."
            raise CannotAskError(WarningCode.SESSION_UNAVAILABLE, sentence)
        if any(_in_any(path, read[len(write) :]) for path in write):
            sentence = (
                "A folder of the session lies in one that can only be read; set TMPDIR to another place."
            )
            raise CannotAskError(WarningCode.SESSION_UNAVAILABLE, sentence)

    def _homes(self) -> list[str]:
        """The home of the user, as the environment has it and as the system has it."""
        named = (self._around.environ.get("HOME", ""), self._around.fs.user_home())
        return _led_to(self._around.fs, [home for home in named if home.startswith("/") and home != "/"])

    def _touched(self, access: Access, resolver: PathResolver | None) -> Touch:
        path = _text(access.path)
        if self._view is not None:
            path = self._view.outside(posixpath.normpath(path))
        elif _in_any(path, ["/proc"]):
            path = str(self._session.beside(_INSIDE)) + posixpath.normpath(path)
        elif resolver is not None:
            # Links that the agent made are gone with its working copy.
            try:
                path = resolver.resolve(path)
            except UnresolvedError:
                path = posixpath.normpath(path)
        return Touch(access.operation, access.mode, path)

    def _refused(self, refused: Iterable[Access]) -> Iterable[Touch]:
        """What lies outside the roots, or must be hidden; that something is not there is else no refusal."""
        read, _ = self._roots
        hidden = [str(path) for path in self._demanded.hidden]
        for access in refused:
            path = posixpath.normpath(_text(access.path))
            if self._view is not None:
                within = self._view.shows(path) or _in_any(path, ("/proc", "/dev", "/run"))
            else:
                within = _in_any(path, (*read, "/proc"))
            if not within or _in_any(path, hidden):
                yield Touch(access.operation, access.mode, path)

    def _resolved(self, path: Path) -> Path:
        with reported("a folder of the call", reading=True):
            # Links on the way to a folder are not there inside, where only the folder itself is shown.
            return Path(self._around.fs.resolve(str(path)))


def _demanded_tracer(around: Surroundings) -> Tracer:
    tracer = Tracer.found(around)
    if tracer is None:
        sentence = "A record of accesses was demanded; install strace, or let it watch processes here."
        raise CannotAskError(WarningCode.REQUISITE_MISSING, sentence)
    return tracer


def _text(path: bytes) -> str:
    text = path.decode("utf-8", "backslashreplace")
    return text if text.startswith("/") and not text.startswith("//") else "/" + text.lstrip("/")


def _in_system(place: Place) -> bool:
    """Whether the system shows it anyway, where it is."""
    return place.inside == str(place.outside) and _in_any(place.inside, SHOWN)


def _is_there(fs: FileSystem, path: str) -> bool:
    try:
        fs.lstat(None, path)
    except OSError:
        return False
    return True


def _led_to(fs: FileSystem, paths: Iterable[str]) -> list[str]:
    """Paths without links; what is not there stays as it is named."""
    found = []
    for path in paths:
        try:
            found.append(fs.resolve(path) if _is_there(fs, path) else path)
        except (OSError, ValueError):
            found.append(path)
    return found


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Each path once, without those that lie in another one."""
    distinct = sorted(set(paths))
    return tuple(path for path in distinct if not _in_any(path, [one for one in distinct if one != path]))


def _in_any(path: str, folders: Iterable[str]) -> bool:
    return any(holds(folder, path) for folder in folders)


def _reaches(one: str, other: str) -> bool:
    return holds(one, other) or holds(other, one)
