"""kill -9 at every step of every journal protocol: what was acknowledged is there, and the journal goes on.

One child forks a worker per step, so that no interpreter has to start for each. (Files and pairs:
tests/evidence/test_kill.py.)
"""

from __future__ import annotations

import pytest

from tests.support.crash_images import fast_folder
from tests.support.journals import FORMS
from tests.support.private import child_output

KILL = """
import itertools, json, os, pathlib, signal, sys
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.crash_images import fast_folder
from tests.support.journals import Desk, add, numbers
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import wrong_modes
base, form, protocol = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
promised = os.open(base / "promised", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

def promise(*known): os.pwrite(promised, json.dumps(known).encode().ljust(200), 0)

def tear(desk):
    pins = desk.pin.read_bytes(), desk.copy().read_bytes()
    with desk.open() as journal: add(journal, 2, 3, note="y" * 300)
    desk.pin.write_bytes(pins[0])
    desk.copy().write_bytes(pins[1])
    desk.rows().write_bytes(desk.rows().read_bytes()[:-100])

def run(desk, fs=None):
    with desk.open(fs) as journal:
        match protocol:
            case "begin": promise()
            case "append 1": add(journal, 2); promise(0, 1, 2)
            case "append 3": add(journal, 2, 3, 4); promise(0, 1, 2, 3, 4)
            case "rotation":
                add(journal, 2, note="z" * 400); promise(0, 1, 2)
                add(journal, 3); promise(0, 1, 2, 3)
            case "tear repair": promise(0, 1, 2)

for nth in itertools.count(1):
    desk = Desk(base / str(nth), form, segment_limit=900, tokens=itertools.count(nth << 32))
    desk.base.mkdir()
    if protocol != "begin": desk.fill(2)
    if protocol == "tear repair": tear(desk)
    promise(*([0, 1] if protocol != "begin" else []))
    pid = os.fork()
    if pid == 0:
        run(desk, MortalFs(RealFs(), nth, by_signal))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    desk.tokens = itertools.count(1 << 60)
    known = json.loads(os.pread(promised, 200, 0))
    assert wrong_modes(desk.base) == []
    status = desk.verify().status
    assert status in {"intact", "intact_with_tears", "recoverable"} or not known, (nth, status)
    with desk.open() as journal:
        kept = numbers(journal)
        assert kept[: len(known)] == known and kept == list(range(len(kept))), (nth, known, kept)
        add(journal, 90)
    assert desk.verify().status in {"intact", "intact_with_tears"}
    with desk.open() as journal: assert numbers(journal) == [*kept, 90]
    if code == 0: break
    assert code == -signal.SIGKILL, code
print(nth - 1)
"""

STEPS = {"begin": 30, "append 1": 20, "append 3": 20, "rotation": 40, "tear repair": 30}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("protocol", STEPS)
def test_at_every_step(form: str, protocol: str) -> None:
    """E54 E24: killed before each step and in the middle of each write, nothing acknowledged is lost."""
    with fast_folder() as base:
        steps = int(child_output(KILL, base, form, protocol))
    assert steps >= (STEPS[protocol] if form == "segmented" else 15)
