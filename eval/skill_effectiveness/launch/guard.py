"""What the process of the bridge may no longer do once it has started: a hook that cannot be taken out.

Source: bridge.md section 2, step 3; sys.addaudithook (PEP 578). Refused for the rest of the process are
child processes, program replacement, sockets, loading shared libraries through ctypes, and every change of
the file system outside the artifact root in hand and the state root.

It stops what a library does without our knowledge. It is no sandbox: code in this process that means harm can
reach the kernel without an audit event.

A name relative to an open folder is judged by where that folder is. The kernel's answer to that is in
/proc/self/fd; opening gives no audit event with the folder, so there the operations of `evidence.fsops`, the
only ones of the product, are looked up in the calling frame.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FILES = "skill_effectiveness.evidence.fsops"
PARENT = "parent"
HERE = -1
DESCRIPTORS = "/proc/self/fd/"
REFUSED = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.startfile",
        "os.system",
        "pty.spawn",
        # Its library writes without an audit event.
        "sqlite3.connect",
        "subprocess.Popen",
    }
)
REFUSED_KINDS = ("ctypes.", "socket.")
# The host name is asked of the kernel, without a socket.
ALLOWED = frozenset({"socket.gethostname"})


class GuardedError(PermissionError):
    """Something in this process tried what the bridge never does."""


class Guard:
    """The hook, and where it lets files be changed.

    Args:
        state: the state root, absolute; None when there is none.

    Attributes:
        state: the same, resolved.
    """

    def __init__(self, state: str | None) -> None:
        self.state = None if state is None else os.path.realpath(state)
        self._artifacts: str | None = None
        self._checks = {
            "open": self._open,
            "os.chmod": self._one,
            "os.chown": self._one,
            "os.link": self._two,
            "os.mkdir": self._folder,
            "os.remove": self._removal,
            "os.rename": self._two,
            "os.rmdir": self._removal,
            "os.symlink": self._link,
            "os.truncate": self._plain,
            "os.utime": self._one,
            "os.removexattr": self._plain,
            "os.setxattr": self._plain,
        }

    def install(self) -> None:
        """From now on, for good."""
        sys.addaudithook(self._hear)

    def admit(self, artifacts: str | None) -> None:
        """Make this the artifact root in hand, instead of the one before.

        Args:
            artifacts: absolute, resolved.
        """
        self._artifacts = artifacts

    def _hear(self, event: str, arguments: "tuple[Any, ...]") -> None:
        check = self._checks.get(event)
        if check is not None:
            check(arguments)
        elif event in REFUSED or (event.startswith(REFUSED_KINDS) and event not in ALLOWED):
            raise GuardedError(1, f"the bridge never does this ({event})")

    def _open(self, arguments: "tuple[Any, ...]") -> None:
        path, _mode, flags = arguments
        if not flags & WRITING or isinstance(path, int) or os.fsdecode(path) == os.devnull:
            return
        folder: int | None = None
        caller = sys._getframe(2)  # noqa: SLF001 - the one way to the folder
        if caller.f_globals.get("__name__") == FILES:
            folder = caller.f_locals.get(PARENT)
        self._demand(path, HERE if folder is None else folder)

    def _one(self, arguments: "tuple[Any, ...]") -> None:
        self._demand(arguments[0], arguments[-1])

    def _removal(self, arguments: "tuple[Any, ...]") -> None:
        self._demand(arguments[0], arguments[1])

    def _plain(self, arguments: "tuple[Any, ...]") -> None:
        self._demand(arguments[0], HERE)

    def _two(self, arguments: "tuple[Any, ...]") -> None:
        source, target, source_folder, target_folder = arguments
        self._demand(source, source_folder)
        self._demand(target, target_folder)

    def _link(self, arguments: "tuple[Any, ...]") -> None:
        self._demand(arguments[1], arguments[2])

    def _folder(self, arguments: "tuple[Any, ...]") -> None:
        self._demand(arguments[0], arguments[2], on_the_way=True)

    def _demand(self, path: "Any", folder: int, *, on_the_way: bool = False) -> None:  # noqa: ANN401 - of the kernel
        """Refuse a change outside the two roots; folders above the state root may come into being."""
        place = _place(path, folder)
        if place is not None:
            for root in (self._artifacts, self.state):
                if root is not None and (place == root or place.startswith(f"{root}/")):
                    return
            if on_the_way and self.state is not None and self.state.startswith(f"{place}/"):
                return
        raise GuardedError(1, "the bridge changes nothing outside its artifact root and its state")


def _place(path: "Any", folder: int) -> str | None:  # noqa: ANN401 - of the kernel
    """The absolute path of what is changed; None where nobody can tell."""
    try:
        if isinstance(path, int):
            return os.readlink(f"{DESCRIPTORS}{path}")  # noqa: PTH115 - pathlib is not loaded
        name = os.fsdecode(path)
        if name.startswith(DESCRIPTORS):
            return os.readlink(name)  # noqa: PTH115 - likewise
        if name.startswith("/"):
            above, _, last = name.rpartition("/")
            return f"{os.path.realpath(above or '/')}/{last}"
        if folder == HERE or "/" in name or name == "..":
            return None
        above = os.readlink(f"{DESCRIPTORS}{folder}")  # noqa: PTH115 - likewise
    except (OSError, TypeError, ValueError):
        return None
    return above if name == "." else f"{above}/{name}"
