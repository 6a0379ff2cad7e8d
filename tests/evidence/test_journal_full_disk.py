"""A full disk under a journal: earlier rows verify, the failed append says so, later appends work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.journals import FORMS
from tests.support.private import child_output, mounts_permitted

if TYPE_CHECKING:
    from pathlib import Path

FILL = """
import pathlib, resource, subprocess, sys
from skill_effectiveness.evidence.faults import FileError, LockError
from tests.support.journals import Desk, add, numbers
from tests.support.private import temporaries, wrong_modes
place, form, how = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

if how == "tmpfs":
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none", place], check=True)
desk = Desk(place, form, segment_limit=200_000)

def fill(journal, size):
    known = numbers(journal)
    while True:
        try: add(journal, len(known), note="x" * size)
        except (FileError, LockError) as error:
            assert error.code in ("no_space", "lock_unavailable"), error
            return known
        known.append(len(known))

(place / "ballast").write_bytes(b"b" * 50_000)
with desk.open() as journal:
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
    known = fill(journal, 20_000)
    known = fill(journal, 100)
    known = fill(journal, 1)
    print(len(known) > 5, numbers(journal) == known, desk.verify().status, temporaries(place))
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (place / "ballast").unlink()
    add(journal, len(known), note="x" * 20_000)
    print(numbers(journal) == [*known, len(known)], desk.verify().status)
with desk.open() as journal:
    print(numbers(journal) == [*known, len(known)])
print(wrong_modes(place / "root"), temporaries(place))
"""

EXPECTED = ["True True intact []", "True intact", "True", "[] []"]


@pytest.mark.parametrize("form", FORMS)
def test_on_a_tiny_file_system(tmp_path: Path, form: str) -> None:
    """E55 F2: 1 MiB filled to the last byte, where one may be mounted, else a limit on the size of files."""
    how, prefix = ("tmpfs", ("unshare", "-m")) if mounts_permitted() else ("limit", ())
    assert child_output(FILL, tmp_path.resolve(), form, how, prefix=prefix).splitlines() == EXPECTED


@pytest.mark.parametrize("form", FORMS)
def test_over_the_limit_of_a_file(tmp_path: Path, form: str) -> None:
    """E55 F2: a write that stops half-way at `RLIMIT_FSIZE`."""
    assert child_output(FILL, tmp_path.resolve(), form, "limit").splitlines() == EXPECTED
