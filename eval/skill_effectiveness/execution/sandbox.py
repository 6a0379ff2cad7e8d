"""A sandbox around a program that has none of its own: bubblewrap, found on the machine, never brought along.

Source: providers.md P13; studies.md section 1; trials.md section 5. Facts were observed on bubblewrap 0.8.0.

Normally::

    sandbox = Sandbox.found(around)
    if sandbox is not None:
        argv = sandbox.reading(argv, folder=checkout, writable=private_folders)

Two kinds. Whoever *reads* sees the whole file system, read-only but for the folders named. Whoever *works*
sees the system's own software, read-only, and besides that only the places named, each where it is named
(`holding`; `working` is the same for places that lie inside where they lie outside). In both, /dev, /proc and
/run are new, the kernel's settings in /proc can only be read, of /run only what names and finds the network's
and the system's own things is shown; processes outside are neither seen nor signalled; no capability is left,
since with one a read-only mount could be made writable again; everything inside dies with the program that
was started, and that with whoever started it.
The network stays unless it is said otherwise: agents talk to their models.

What it does not do: close sockets that lie in shown folders outside /run, or those of the network, loopback
and abstract ones included, hide what may be read, or let a program end slowly. A signal to bubblewrap ends
everything inside at once, so the grace between TERM and KILL is not used, and what a program left running is
ended without being counted as a survivor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.resolution import holds
from skill_effectiveness.execution.executable import ExecutableError, locate
from skill_effectiveness.execution.limits import Limits
from skill_effectiveness.execution.outcome import Ended
from skill_effectiveness.execution.process import run_process

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings

PROGRAM: Final = "bwrap"
PROBE_SECONDS: Final = 10.0

SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/sys",
)
"""What of the system a worker sees, as far as it is there."""

RUN_SHOWN: Final = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/media",
)
"""What of /run is shown, as far as it is there.

The names of hosts, the software of some systems, people's disks. The rest is sockets of daemons, some of
which would do anything for the user.
"""


SHOWN: Final = (*SYSTEM, *RUN_SHOWN)
"""What of the machine a worker sees in any case."""

_OF_THE_KERNEL: Final = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/mtrr",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/fs",
)
"""Of /proc, what is the whole machine's, as far as it is there."""

_NEW: Final = ("/dev", "/run")
"""Where a temporary folder or a checkout may lie, and what is empty inside."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or file of the machine, and where it is inside.

    Attributes:
        outside: absolute and without links; it is there.
        inside: absolute.
        writable: whether it can be written inside.
    """

    outside: Path
    inside: str
    writable: bool = False

    @classmethod
    def same(cls, outside: Path, *, writable: bool = False) -> Self:
        """A place that is called inside what it is called outside."""
        return cls(outside, str(outside), writable)


@dataclass(frozen=True, slots=True)
class View:
    """What paths mean to a program that works inside.

    Attributes:
        places: that are shown.
        elsewhere: what a path is called that lies in none of them and not in the system either: it is new
            inside, or nothing at all.
    """

    places: tuple[Place, ...]
    elsewhere: Path
    _by_inside: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {place: place for place in SHOWN}
        known |= {place.inside: str(place.outside) for place in self.places}
        object.__setattr__(self, "_by_inside", known)

    def outside(self, path: str) -> str:
        """What an absolute path without `..` inside is called on the machine."""
        rest: list[str] = []
        here = PurePosixPath(path)
        while True:
            found = self._by_inside.get(str(here))
            if found is not None:
                return "/".join([found.rstrip("/"), *reversed(rest)]) or "/"
            if here == here.parent:
                return "/".join([str(self.elsewhere), *reversed(rest)])
            rest.append(here.name)
            here = here.parent

    def shows(self, path: str) -> bool:
        """Whether an absolute path inside is one of the machine's, and not merely one inside."""
        return not holds(str(self.elsewhere), self.outside(path))


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Bubblewrap as it is on this machine.

    Attributes:
        program: its absolute path.
    """

    program: Path

    @classmethod
    def found(cls, around: Surroundings) -> Self | None:
        """Bubblewrap on the PATH of the surroundings, if this machine lets it work; None otherwise.

        Being there is not enough: some machines do not let users make namespaces. So it is tried.
        """
        folders = [Path(folder) for folder in around.environ.get("PATH", "").split(":")]
        for folder in (folder for folder in folders if folder.is_absolute()):
            try:
                sandbox = cls(locate(folder / PROGRAM, around=around))
            except ExecutableError:
                continue
            return sandbox if sandbox.works(around) else None
        return None

    def works(self, around: Surroundings) -> bool:
        """Whether this machine lets it work; it is tried."""
        result = run_process(
            self.reading([str(self.program), "--version"], folder=Path("/"), writable=()),
            cwd=Path("/"),
            env={},
            stdin=b"",
            limits=Limits(PROBE_SECONDS),
            on_line=lambda _: False,
            around=around,
        )
        return result.ended is Ended.EXITED and result.exit_code == 0

    def reading(self, argv: Sequence[str], *, folder: Path, writable: Iterable[Path]) -> list[str]:
        """The argument vector that runs a program which may read everything and write a little.

        Args:
            argv: the program by absolute path, and its arguments.
            folder: its working folder, absolute.
            writable: folders and files, absolute and without links, that are there.
        """
        hidden = [folder] if any(folder.is_relative_to(place) for place in _NEW) else []
        shown = ["--ro-bind", "/", "/", *_own_places(), *_binds("--ro-bind", hidden)]
        # Places of ours may lie in a new place, so that is closed once they are laid.
        named = [*_binds("--bind", writable), "--remount-ro", "/run"]
        return [*self._walls(), *shown, *named, *_inside(str(folder), argv)]

    def working(
        self, argv: Sequence[str], *, folder: Path, readable: Iterable[Path], writable: Iterable[Path]
    ) -> list[str]:
        """The argument vector that runs a program which sees nothing but the system and what is named.

        Args:
            argv: the program by absolute path, and its arguments; it lies in the system or in `readable`.
            folder: its working folder, absolute; it lies in one that is named.
            readable: folders and files, absolute, that can be read; what lies in the system can be anyway.
            writable: the same, that can be read and written; one that lies in a readable one can be written,
                and one that lies in another writable one too.
        """
        further = [place for place in readable if not any(place.is_relative_to(known) for known in SYSTEM)]
        places = [Place.same(place) for place in further]
        return self.holding(
            argv,
            folder=str(folder),
            places=[*places, *(Place.same(place, writable=True) for place in writable)],
        )

    def holding(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        places: Iterable[Place],
        links: Iterable[tuple[str, str]] = (),
        network: bool = True,
        throwaway: bool = False,
    ) -> list[str]:
        """The argument vector that runs a program which sees nothing but the system and these places.

        Args:
            argv: the program by absolute path inside, and its arguments.
            folder: its working folder inside, absolute.
            places: what is there besides; one that lies in another one is laid over it.
            links: paths that are links inside, and what each leads to; those in the system are there anyway.
            network: whether there is any.
            throwaway: whether what is new inside, and gone afterwards, can be written too.
        """
        system = [word for place in SYSTEM for word in ("--ro-bind-try", place, place)]
        shown = ["--tmpfs", "/", *system, *_own_places(), "--tmpfs", "/tmp"]  # noqa: S108 - a new one, inside
        ordered = sorted(set(places), key=lambda place: (*_outer_first(place.inside), place.writable))
        named = [
            word
            for place in ordered
            for word in ("--bind" if place.writable else "--ro-bind", str(place.outside), place.inside)
        ]
        laid = [(path, target) for path, target in links if not any(holds(known, path) for known in SYSTEM)]
        named += [word for path, target in laid for word in ("--symlink", target, path)]
        closed = ["--remount-ro", "/run", *([] if throwaway else ["--remount-ro", "/"])]
        alone = [] if network else ["--unshare-net"]
        return [*self._walls(), *alone, *shown, *named, *closed, *_inside(folder, argv)]

    def _walls(self) -> list[str]:
        walls = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
        return [str(self.program), *walls, "--cap-drop", "ALL"]


def _own_places() -> list[str]:
    run = [word for place in RUN_SHOWN for word in ("--ro-bind-try", place, place)]
    # The settings of the kernel belong to root also where it has no capability left, and some of them start
    # programs outside. Bubblewrap 0.8 covers what it takes for writable, and these it does not.
    proc = [
        "--proc",
        "/proc",
        *(word for place in _OF_THE_KERNEL for word in ("--ro-bind-try", place, place)),
    ]
    return ["--dev", "/dev", *proc, "--tmpfs", "/run", *run]


def _binds(option: str, places: Iterable[Path]) -> list[str]:
    """The words that show some places, outer ones before those that lie in them."""
    ordered = sorted(set(places), key=lambda place: _outer_first(str(place)))
    return [word for place in ordered for word in (option, str(place), str(place))]


def _outer_first(path: str) -> tuple[int, tuple[str, ...]]:
    parts = PurePosixPath(path).parts
    return len(parts), parts


def _inside(folder: str, argv: Sequence[str]) -> list[str]:
    return ["--chdir", folder, "--", *argv]
