"""kill -9 of a run: at every step of its slots, and again and again at random.

One child forks a worker per kill, so that no interpreter has to start for each. `STUDY_KILLS` says how often
the long run is killed; with 50 it is killed as often as is asked for, and a slot at every single step.
"""

from __future__ import annotations

import os

import pytest

from tests.support.crash_images import fast_folder
from tests.support.private import child_output

pytestmark = pytest.mark.slow

BEGIN = """
import itertools, json, os, pathlib, random, shutil, signal, sys
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from skill_effectiveness.trials.replay import replay
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.private import surroundings, wrong_modes
from tests.support.studies import bench, example
from tests.support.study_runs import outcomes, rows_of, run, state_of
base, number = pathlib.Path(sys.argv[1]), int(sys.argv[2])

def run_in(folder, fs=None, jobs=1):
    with bench(folder, surroundings(fs)) as held:
        return run(held, jobs=jobs).status

def killed(folder, nth, jobs=1):
    pid = os.fork()
    if pid == 0:
        run_in(folder, MortalFs(RealFs(), nth, by_signal), jobs)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in {0, -signal.SIGKILL}, code
    return code != 0

def told(folder):
    "What the journal has acknowledged of every slot that ended."
    found = {}
    with bench(folder) as held, state_of(held) as state:
        for slot in state.slots.values():
            if slot.ended is not None:
                found[slot.slot] = (str(slot.ended), slot.completion_binding_hash, slot.grade_hash)
    return found

def agree(before, after):
    for slot, (ended, binding, grade) in before.items():
        assert after[slot][:2] == (ended, binding), slot
        assert grade in {None, after[slot][2]}, slot

def whole(folder, clean):
    "Every trial once, as it was acknowledged, and as an undisturbed run has it."
    with bench(folder) as held:
        rows = rows_of(held)
        for kind in ("slot_ended", "graded"):
            slots = [row["body"]["slot"] for row in rows if row["type"] == kind]
            assert len(slots) == len(set(slots)), kind
        found = outcomes(held)
        # Kills use attempts up; a slot that has none left ends where an undisturbed one goes on.
        with state_of(held) as state:
            lost = {slot.slot for slot in state.slots.values()
                    if len(slot.attempts) == 5 and any(each.detail == "killed" for each in slot.attempts)}
        assert {slot: each for slot, each in found.items() if slot not in lost} == {
            slot: each for slot, each in clean.items() if slot not in lost}
        assert found.keys() == clean.keys()
        with held.open() as study, study.store() as store, study.journal(held.state) as journal:
            documents = [json.loads((study.root.path / "trials" / key.path / "trial.json").read_bytes())
                         for key in store.keys()]
            for key, document in zip(store.keys(), documents):
                if document["status"] == "completed": replay(store, key)
            bindings = {document["completion_binding_hash"] for document in documents}
            told = {slot.completion_binding_hash for slot in journal.state.slots.values()}
            assert bindings - {None} == told - {None}
            # An attempt that came to its end was never made again.
            for slot in journal.state.slots.values():
                for attempt in slot.attempts[:-1]:
                    place = study.root.path / f"attempts/{slot.slot}/a{attempt.number}/exit.json"
                    assert not (place.exists() and attempt.detail == "killed"), slot.slot
    assert wrong_modes(folder / "R") == []
    return len(lost)
"""

EVERY_STEP = (
    BEGIN
    + """
class Draining(SimulatedAgent):
    def attempt(self, order, place, cancelled):
        self.halt.request()
        return super().attempt(order, place, cancelled)

first = base / "planned"
first.mkdir(mode=0o700)
with bench(first) as held:
    held.plan(example(first, tasks=1, edits={"samples: 3": "samples: 1"}))
with bench(first) as held, held.open() as study:
    agent = Draining(study.plan, study.study().simulated_settings(), Chance(study.seed()), study.around)
    agent.halt = Halt()
    assert run(held, agent, halt=agent.halt).status == "drained"
shutil.copytree(first, base / "clean")
run_in(base / "clean")
with bench(base / "clean") as held:
    clean = outcomes(held)
assert len(clean) == 2
for nth in itertools.count(number, 4):
    folder = base / str(nth)
    shutil.copytree(first, folder)
    if not killed(folder, nth): break
    before = told(folder)
    assert run_in(folder) == "complete", nth
    after = told(folder)
    agree(before, after)
    assert whole(folder, clean) == 0, nth
    shutil.rmtree(folder)
print(nth)
"""
)

AT_RANDOM = (
    BEGIN
    + """
chance = random.Random(20261130)
base.joinpath("clean").mkdir(mode=0o700)
for folder in ("clean", "killed"):
    base.joinpath(folder).mkdir(mode=0o700, exist_ok=True)
    with bench(base / folder) as held:
        held.plan(example(base / folder, tasks=min(12, max(3, number // 3)), edits={
            "samples: 3": "samples: 3\\nattempts: 5",
            "effect: 0.4": "effect: 0.4\\n    endings: {crashed: 0.1, provider_error: 0.2, void: 0.05}"}))
run_in(base / "clean", jobs=2)
with bench(base / "clean") as held:
    clean = outcomes(held)
kills, seen = 0, {}
while kills < number:
    if not killed(base / "killed", chance.randrange(1, 200), jobs=2): break
    kills += 1
    now = told(base / "killed")
    agree(seen, now)
    seen = now
assert run_in(base / "killed", jobs=2) == "complete"
now = told(base / "killed")
agree(seen, now)
lost = whole(base / "killed", clean)
before = {path: path.read_bytes() for path in (base / "killed" / "R").rglob("*") if path.is_file()}
assert run_in(base / "killed") == "complete"
assert before == {path: path.read_bytes() for path in (base / "killed" / "R").rglob("*") if path.is_file()}
print(kills, len(clean), lost)
"""
)


KILLS = int(os.environ.get("STUDY_KILLS", "8"))
STARTS = (1, 2, 3, 4) if KILLS >= 50 else (1,)
"""Which of four steps in a row a run is killed at; all of them where time is given."""


@pytest.mark.parametrize("start", STARTS)
def test_at_every_step(start: int) -> None:
    """E54 S23 S24 F3 F10: killed before a step and in the middle of each write, the run goes on.

    From the start of a study's last slot to the close of its batch.
    """
    with fast_folder() as base:
        steps = int(child_output(EVERY_STEP, base, str(start)))
    assert steps >= 60


def test_again_and_again() -> None:
    """S23 S28 F4: every acknowledged trial once, none twice, with the digests it was acknowledged with."""
    with fast_folder() as base:
        kills, slots, lost = map(int, child_output(AT_RANDOM, base, str(KILLS)).split())
    assert kills == KILLS
    assert slots >= 18
    assert lost <= slots // 6
