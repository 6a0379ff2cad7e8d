"""kill -9 of an engine call of a milestone at every step of its two rows."""

from __future__ import annotations

from tests.support.crash_images import fast_folder
from tests.support.private import child_output

CODE = """
import os, pathlib, shutil, signal, sys
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.milestone_calls import ask, begin, judge, opened
base = pathlib.Path(sys.argv[1])
whole = base / "whole"
whole.mkdir(mode=0o700)
begin(whole)
kills = 0
for nth in range(1, 500):
    place = base / f"kill-{nth}"
    shutil.copytree(whole, place)
    pid = os.fork()
    if pid == 0:
        mark = place / "asked"
        with opened(place, MortalFs(RealFs(), nth, by_signal)) as run:
            ask(run, place, lambda: mark.write_bytes(b""))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in {0, -signal.SIGKILL}, code
    asked = (place / "asked").exists()
    judge(place, ["asked"] if asked else [])
    shutil.rmtree(place)
    if code == 0:
        break
    kills += 1
print(kills)
"""


def test_at_every_step() -> None:
    """E53 M109: whatever was asked has its prepared row, and the next process says that it repeats it."""
    with fast_folder() as fast:
        assert int(child_output(CODE, fast)) >= 25
