"""A full disk: what was written stays, what fails says so, and the same call succeeds once there is space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.private import child_output, mounts_permitted

if TYPE_CHECKING:
    from pathlib import Path

FILL = """
import pathlib, resource, subprocess, sys
from skill_effectiveness.evidence.faults import FileError, LockError
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pair import publish_pair
from tests.support.pairs import members, load
from tests.support.private import out_root, temporaries
place, how = pathlib.Path(sys.argv[1]), sys.argv[2]

def refused(call):
    try: call()
    except (FileError, LockError) as error: return str(error.code)
    return "accepted"

if how == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", place], check=True)
with out_root(place) as root:
    root.publish("report.json", b"old")
    if how == "tmpfs":
        kept = 0
        for size in (65536, 4096, 1):
            while refused(lambda: root.publish(f"f{kept}", b"x" * size)) == "accepted": kept += 1
    else:
        kept = 1
        root.publish("f0", b"x" * 65536)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    print(kept > 0)
    new = b"n" * 5000
    print(refused(lambda: root.publish("g", new)), refused(lambda: root.replace("report.json", new)))
    print(refused(lambda: root.archive("report.json", b"n" * 5000)))
    big = [type(member)(member.name, member.data + b" " * 5000) for member in members()]
    print(refused(lambda: publish_pair(root, *big, load=load)))
    whole = all(set(root.read(f"f{n}")) == {120} for n in range(kept))
    print(root.read("report.json"), whole, temporaries(place))
    if how == "tmpfs":
        print(refused(lambda: Lock(root, "l").hold(0, "x" * 5000).__enter__()))
        for number in range(4): root.remove(f"f{number}")
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("lock_unavailable")
    root.archive("report.json", b"n" * 5000)
    publish_pair(root, *members(), load=load)
    with Lock(root, "l").hold(0, "x"): print(root.read("report.json") == b"n" * 5000, temporaries(place))
"""

EXPECTED = [
    "True",
    "no_space no_space",
    "no_space",
    "no_space",
    "b'old' True []",
    "lock_unavailable",
    "True []",
]


def test_on_a_tiny_file_system(tmp_path: Path) -> None:
    """E22 E55: a 1 MiB file system filled to the last byte, where a test may mount one, else a limit on the
    size of files.
    """
    how, prefix = ("tmpfs", ("unshare", "-m")) if mounts_permitted() else ("limit", ())
    assert child_output(FILL, tmp_path.resolve(), how, prefix=prefix).splitlines() == EXPECTED


def test_over_the_limit_of_a_file(tmp_path: Path) -> None:
    """E22: EFBIG of `RLIMIT_FSIZE`, met in the middle of a write, is `no_space` too."""
    assert child_output(FILL, tmp_path.resolve(), "limit").splitlines() == EXPECTED
