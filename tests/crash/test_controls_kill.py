"""kill -9 at every step of preparing an active control."""

from __future__ import annotations

from tests.support.crash_images import fast_folder
from tests.support.private import child_output

KILL = """
import itertools, os, pathlib, signal, sys
from skill_effectiveness.controls.errors import ControlError
from skill_effectiveness.controls.steps import prepare_root, read_preparation
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.controls import request
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import out_root, wrong_modes
base = pathlib.Path(sys.argv[1])

for nth in itertools.count(1):
    place = base / str(nth)
    place.mkdir(mode=0o700)
    pid = os.fork()
    if pid == 0:
        with out_root(place, MortalFs(RealFs(), nth, by_signal)) as root:
            prepare_root(root, request())
        (place / "promised").touch()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done = (place / "promised").exists()
    with out_root(place) as root:
        claimed = root.exists("active-control-claim.json")
        before = root.read("active-control-claim.json") if claimed else None
        try:
            prepare_root(root, request())
            assert not done, nth
        except ControlError as error:
            assert error.code == "root_used", (nth, error)
        read_preparation(root)
        if claimed: assert root.read("active-control-claim.json") == before, nth
        assert not [name for name in root.names() if "pending" in name or name.endswith(".tmp")] or done, nth
    assert wrong_modes(root.path) == []
    if code == 0: break
    assert code == -signal.SIGKILL, code
print(nth - 1)
"""


def test_at_every_step() -> None:
    """E54 A6: killed before each step and in the middle of each write, the same command goes through."""
    with fast_folder() as base:
        steps = int(child_output(KILL, base))
    assert steps >= 25
