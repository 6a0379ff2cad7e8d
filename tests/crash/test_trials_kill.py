"""kill -9 at every step of preparing, checkpointing and completing a trial.

One child forks a worker per step, so that no interpreter has to start for each.
"""

from __future__ import annotations

import pytest

from tests.support.crash_images import fast_folder
from tests.support.private import child_output

KILL = """
import itertools, os, pathlib, signal, sys
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.models import TrialKey
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import wrong_modes
from tests.support.trials import Place, cursor, order, put_lines, request
base, protocol = pathlib.Path(sys.argv[1]), sys.argv[2]
KEY = TrialKey("task-a", "profile-full", 1)
promised = os.open(base / "promised", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

def begin(place):
    with place.open() as store:
        if protocol == "prepare": return
        prepare(store, order())
        if protocol == "interrupted":
            (place.trial(KEY) / "trial.json").unlink()
            (place.trial(KEY) / "outcome").rmdir()
            return
        place.fill(KEY)
        if protocol == "breach":
            put_lines(place.trial(KEY) / "access-audit.jsonl",
                      [{"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}])

def run(place, fs=None):
    with place.open(fs) as store:
        match protocol:
            case "prepare" | "interrupted":
                return prepare(store, order()).mode
            case "checkpoint":
                return checkpoint(store, KEY, request("running", resume_cursor=cursor())).state_version
            case "completion":
                return checkpoint(store, KEY, place.completion(KEY)).state_version
            case "breach":
                try:
                    checkpoint(store, KEY, place.completion(KEY))
                except TrialError as error:
                    return error.code

for nth in itertools.count(1):
    place = Place(base / str(nth))
    begin(place)
    os.ftruncate(promised, 0)
    pid = os.fork()
    if pid == 0:
        run(place, MortalFs(RealFs(), nth, by_signal))
        os.pwrite(promised, b"x", 0)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done = os.fstat(promised).st_size > 0
    assert wrong_modes(place.root) == []
    path = place.trial(KEY) / "trial.json"
    match protocol:
        case "prepare" | "interrupted":
            assert path.exists() or not done, nth
            there = path.exists()
            assert run(place) == ("resume" if there else "created"), nth
            assert run(place) == "resume"
        case "checkpoint":
            version = place.document(KEY)["state_version"]
            assert version == 1 or (version == 0 and not done), (nth, version)
            assert run(place) == version + 1
        case "completion":
            completed = place.document(KEY)["status"] == "completed"
            assert completed or not done, nth
            if not completed: assert run(place) == 1
            with place.open() as store:
                assert replay(store, KEY).document.state_version == 1
        case "breach":
            assert (place.trial(KEY) / "breach.json").exists() or not done, nth
            if (place.trial(KEY) / "breach.json").exists(): place.fill(KEY)
            assert run(place) == "isolation_breach", nth
    left = [found.name for found in place.root.rglob("*") if found.name.endswith(".new")]
    assert left == [], (nth, left)
    if code == 0: break
    assert code == -signal.SIGKILL, code
print(nth - 1)
"""

STEPS = {"prepare": 25, "interrupted": 15, "checkpoint": 6, "completion": 6, "breach": 6}


@pytest.mark.parametrize("protocol", STEPS)
def test_at_every_step(protocol: str) -> None:
    """E54 T8 T10: killed before each step and in the middle of each write, the same call goes through."""
    with fast_folder() as base:
        steps = int(child_output(KILL, base, protocol))
    assert steps >= STEPS[protocol]
