"""What others can find out about a process of ours."""

from __future__ import annotations

import ctypes
import json
import resource
import subprocess
import sys

import pytest

from skill_effectiveness.launch import privacy
from tests.support.processes import IMPORTS, PATH, python

# One that may hold a key in its memory, and a program below it that looks, as no more than a user.
HOLDING = """
import subprocess, sys
from skill_effectiveness.launch.privacy import close_to_others
from tests.support.intruders import SPYING, drop_root_s_sight
from tests.support.processes import python
if sys.argv[1] == "first":
    drop_root_s_sight()
    subprocess.run([sys.executable, "-c", sys.orig_argv[2], *sys.argv[2:]], check=True)
else:
    if sys.argv[1] == "closed":
        close_to_others()
    subprocess.run(python(SPYING), check=True)
"""


def spied(how: str) -> dict[str, object]:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", HOLDING, "first", how],
        env={**PATH, "PYTHONPATH": IMPORTS},
        check=True,
        capture_output=True,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_program_below_sees_no_folder_memory_or_environment() -> None:
    """P9: what is left is the command line."""
    found = spied("closed")
    assert set(found) == {"cwd", "exe", "environ", "maps", "mem", "fd", "copy"}
    assert set(found.values()) <= {1, 13}  # EPERM, EACCES


def test_otherwise_it_would() -> None:
    found = spied("open")
    assert {name for name, what in found.items() if what is True} >= {"cwd", "exe", "environ", "maps", "fd"}


def test_what_it_starts_is_open_again() -> None:
    """A debugger works there, and /proc answers about it."""
    source = (
        "import ctypes, subprocess, sys\n"
        "from skill_effectiveness.launch.privacy import close_to_others\n"
        "close_to_others()\n"
        "subprocess.run(sys.argv[1:], check=True)"
    )
    child = python("import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))")
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", source, *child],
        env={**PATH, "PYTHONPATH": IMPORTS},
        check=True,
        capture_output=True,
    )
    assert done.stdout == b"1\n"


@pytest.mark.parametrize("missing", [OSError, AttributeError])
def test_where_the_platform_has_no_such_switch_core_files_are_off(
    monkeypatch: pytest.MonkeyPatch, missing: type[Exception]
) -> None:
    def fail(_name: object) -> object:
        raise missing

    set_to: list[object] = []
    monkeypatch.setattr(ctypes, "CDLL", fail)
    monkeypatch.setattr(resource, "setrlimit", lambda *given: set_to.append(given))
    privacy.close_to_others()
    assert set_to == [(resource.RLIMIT_CORE, (0, 0))]
