"""kill -9 at every step of every write: old or new stays, the same call finishes, sweep clears the rest.

One child forks a worker per step, so that no interpreter has to start for each.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.private import child_output

if TYPE_CHECKING:
    from pathlib import Path

KILL = """
import json, os, pathlib, signal, sys
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pair import load_pair, publish_pair
from skill_effectiveness.evidence.faults import PairError
from tests.support.pairs import ALL, EVIDENCE, RESULT, load, members
from tests.support.private import content, out_root, temporaries, wrong_modes

OLD, NEW = b"old", b"new"
base, protocol = pathlib.Path(sys.argv[1]), sys.argv[2]

def run(root):
    match protocol:
        case "publish": root.publish("fresh.json", NEW)
        case "replace": root.replace("report.json", NEW)
        case "archive": root.archive("report.json", NEW)
        case "pair": publish_pair(root, *members(), load=load)
        case "lock":
            with Lock(root, "x.lock").hold(0, "x"): root.replace("report.json", NEW)
    os.write(acknowledged, b"done")

def judge(folder):
    with out_root(folder) as root:
        held = {name: root.read(name) for name in ("report.json", "fresh.json") if root.exists(name)}
        history = content(root.path / "history").values() if root.exists("history") else []
        match protocol:
            case "publish": assert held.get("fresh.json") in (None, NEW) and held["report.json"] == OLD
            case "replace" | "lock": assert held["report.json"] in (OLD, NEW)
            case "archive":
                assert held["report.json"] in (OLD, NEW)
                assert held["report.json"] == OLD or OLD in history
            case "pair":
                try: assert load_pair(root, EVIDENCE, RESULT, load) == "observed"
                except PairError as error: assert error.code == "pair_incomplete"
    return held

acknowledged = os.open(base / "acknowledged", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
nth = 0
answers = 0
while True:
    nth += 1
    folder = base / str(nth)
    folder.mkdir()
    with out_root(folder) as root: root.publish("report.json", OLD)
    os.ftruncate(acknowledged, 0); os.lseek(acknowledged, 0, 0)
    pid = os.fork()
    if pid == 0:
        fs = FaultFs(RealFs(), Injection("*", nth=nth, before=lambda: os.kill(os.getpid(), signal.SIGKILL)))
        run(out_root(folder, fs))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    answered = os.fstat(acknowledged).st_size > 0
    answers += answered
    assert answered == (code == 0) or protocol == "lock", (nth, code)
    assert wrong_modes(folder / "root") == []
    held = judge(folder)
    if answered:
        assert NEW in held.values() or protocol == "pair"
    with out_root(folder) as root:
        run(root)
        judge(folder)
        root.sweep()
        if root.exists("history"):
            with root.child("history") as history: history.sweep()
        assert temporaries(folder) == []
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
print(json.dumps({"steps": nth - 1, "answers": answers}))
"""


@pytest.mark.parametrize(
    ("protocol", "steps"), [("publish", 6), ("replace", 5), ("archive", 13), ("pair", 14), ("lock", 13)]
)
def test_at_every_step(tmp_path: Path, protocol: str, steps: int) -> None:
    """E24 E43 E54: killed before each mutating step, a protocol leaves old or new, 0600, and its repeat
    finishes.
    """
    printed = json.loads(child_output(KILL, tmp_path.resolve(), protocol))
    assert printed["steps"] == steps
    assert printed["answers"] >= 1
