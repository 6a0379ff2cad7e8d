"""kill -9 at every step of a request that changes something; the same request settles it.

One child forks a worker per step, so that no interpreter has to start for each.
"""

from __future__ import annotations

import pytest

from tests.support.crash_images import fast_folder
from tests.support.private import child_output

pytestmark = pytest.mark.slow


KILL = """
import itertools, json, os, pathlib, signal, sys
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge
from tests.support.bridge_room import Room
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import wrong_modes
from tests.support.trials import cursor
base, protocol, other_first = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "True"
KEY = TrialKey("task-a", "profile-full", 1)
promised = os.open(base / "promised", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
known = None

def request_of(bridge):
    match protocol:
        case "prepare":
            return bridge.prepare("k", sample_index=2)
        case "checkpoint":
            return bridge.checkpoint(KEY, "running", "k", resume_cursor=cursor())
        case "completion":
            bridge.place.fill(KEY)
            return bridge.completion(KEY, "k")

def intent_of(bridge):
    return bridge.root / "bridge-receipts" / "intents" / "k.json"

for nth in itertools.count(1):
    bridge = Bridge((base / str(nth)), base)
    assert Room().ask(bridge.prepare("p"))[0] == "ok"
    request = request_of(bridge)
    os.ftruncate(promised, 0)
    pid = os.fork()
    if pid == 0:
        word, result = Room(fs=MortalFs(RealFs(), nth, by_signal)).ask(request)
        os.pwrite(promised, json.dumps(result).encode(), 0)
        os._exit(0 if word == "ok" else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    answered = json.loads(os.pread(promised, 65536, 0) or b"null")
    assert wrong_modes(bridge.root) == []
    intended = intent_of(bridge).exists()
    if other_first:
        assert Room().ask(bridge.prepare("other", sample_index=3))[0] == "ok"
    word, result = Room().ask(request)
    assert word == "ok", (nth, word)
    assert not answered or result == {**answered, "replayed_receipt": True}
    replayed = result.pop("replayed_receipt")
    known = known or result
    assert result == known, (nth, result, known)
    again = Room().ask(request)
    assert again == ("ok", {**result, "replayed_receipt": True}), nth
    version = {"prepare": 0, "checkpoint": 1, "completion": 1}[protocol]
    key = TrialKey("task-a", "profile-full", 2) if protocol == "prepare" else KEY
    assert bridge.place.document(key)["state_version"] == version, nth
    assert list((bridge.root / "bridge-receipts" / "intents").iterdir()) == [], nth
    if code == 0: break
    assert code == -signal.SIGKILL, code
print(nth - 1)
"""

STEPS = {"prepare": 30, "checkpoint": 20, "completion": 20}


@pytest.mark.parametrize("other_first", [False, True])
@pytest.mark.parametrize("protocol", STEPS)
def test_at_every_step(protocol: str, other_first: bool) -> None:  # noqa: FBT001 - both
    """B34 E54: killed before each step and in the middle of each write, the answer is the one right one."""
    with fast_folder() as base:
        steps = int(child_output(KILL, base, protocol, other_first))
    assert steps >= STEPS[protocol]
