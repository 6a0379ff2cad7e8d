"""Private roots for tests: surroundings with chosen parts, roots in a temporary folder, children under other
conditions.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.fsops import RealFs, remove_tree
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skill_effectiveness.evidence.fsops import FileSystem

NOBODY = 65534
REPOSITORY = Path(__file__).resolve().parents[2]


def surroundings(
    fs: FileSystem | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
    now: datetime = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
    pid: int | None = None,
) -> Surroundings:
    """Surroundings of this process with some parts replaced."""
    return Surroundings(
        fs=fs or RealFs(),
        now=lambda: now,
        monotonic=time.monotonic,
        sleep=time.sleep,
        entropy=entropy,
        environ={} if environ is None else environ,
        pid=os.getpid() if pid is None else pid,
        boot_id="boot",
        host="host",
    )


def out_root(folder: Path, fs: FileSystem | None = None) -> PrivateRoot:
    """The private root `root` in a folder, made if missing."""
    return PrivateRoot.create(folder / "root", RootKind.OUT, around=surroundings(fs), checkout=None)


def wrong_modes(folder: Path) -> list[str]:
    """Everything below a private folder that is neither a 0600 file nor a 0700 folder."""
    wrong = []
    for path in folder.rglob("*"):
        status = path.lstat()
        expected = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
        if stat.S_IMODE(status.st_mode) != expected:
            wrong.append(f"{path.name}: {stat.S_IMODE(status.st_mode):04o}")
    return wrong


def temporaries(folder: Path) -> list[str]:
    """Names of temporaries anywhere below a folder."""
    return sorted(path.name for path in folder.rglob(".*.tmp"))


def listing(folder: Path) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def imprint(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that a write would change of a folder and what is below it: names, modes, inodes, times of change
    and bytes.
    """
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        about = (status.st_mode, status.st_ino, status.st_mtime_ns, data)
        found[path.relative_to(folder).as_posix()] = about
    return found


def run_child(
    code: str, *arguments: object, prefix: tuple[str, ...] = (), timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a child; `sys.argv[1:]` are the arguments."""
    return subprocess.run(  # noqa: S603 - this interpreter with code of the test
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'eval'}"},
    )


def child_output(code: str, *arguments: object, prefix: tuple[str, ...] = ()) -> str:
    """What a child printed; it must have succeeded."""
    done = run_child(code, *arguments, prefix=prefix)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def mounts_permitted() -> bool:
    """Whether a child may have a mount namespace of its own."""
    tool = shutil.which("unshare")
    if tool is None:
        return False
    done = subprocess.run([tool, "-m", "true"], check=False, capture_output=True)  # noqa: S603 - fixed words
    return done.returncode == 0


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """A folder that another user owns and reaches (pytest's own are closed to others); of this user when not
    run as root.
    """
    path = Path(tempfile.mkdtemp(prefix="skill-effectiveness-test-")).resolve()
    try:
        path.chmod(0o755)
        mine = path / "mine"
        mine.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(mine, NOBODY, NOBODY)
        yield mine
    finally:
        # Also folders that a test closed to everybody.
        remove_tree(RealFs(), path)


AS_NOBODY = f"""
import os
def become_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid({NOBODY})
        os.setuid({NOBODY})
"""
"""Code that defines `become_nobody()`, called after the imports: the interpreter itself may be unreadable
for others.
"""
