"""Simulated trials of a study: one cold, thousands durable, and the status of many (studies.md, section 9).

| figure | goal |
|---|---|
| `study_trial_cold` | a process from start to end of a first trial, against one mock sample in Inspect |
| `study_trials` | seconds per trial, durable, against as many mock samples; the memory that a run takes |
| `study_trials_growth` | per trial at the larger size against the smaller |
| `study_status` | seconds and memory of the status of 100,000 trials |

Processor time, and how often a trial syncs, opens and looks at something (of a run of its own), are printed
beside the seconds: they say the same on a busy machine.

Inspect is measured where the interpreter that `INSPECT_PYTHON` names (this one by default) has it; nothing
here needs it, and without it that comparison is said to be missing. Trials are fsynced many times each, so
the figures depend on the disk: run it where evidence is kept (`TMPDIR`). `STUDY_SIZES` names other sizes than
200 and 2,000, such as `500,5000,50000`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, report

SIZES = tuple(int(size) for size in os.environ.get("STUDY_SIZES", "200,2000").split(","))
JOBS = 8
INSPECT = os.environ.get("INSPECT_PYTHON", sys.executable)
COLD_GOAL, TRIAL_GOAL, GROWTH_GOAL = 0.1, 1 / 3, 1.2
MEMORY_MEGABYTES = 80
STATUS_TRIALS, STATUS_SECONDS, STATUS_MEGABYTES = 100_000, 1.0, 200
TASKS = 10

RUN = """
import json, resource, sys, time
from pathlib import Path
from collections import Counter
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.studies.executors import thread_executor
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.runner import RunParts, run_study
from tests.support.study_runs import simulated
folder, jobs = Path(sys.argv[1]), int(sys.argv[2])
class Silent:
    def resumed(self, *_): pass
    def progressed(self, *_): pass
    def resting(self, *_): pass
def counting(name, call):
    def counted(*given, **named):
        calls[name] += 1
        return call(*given, **named)
    return counted
calls = Counter()
KINDS = {"syncs": ["fsync"], "stats": ["fstat", "lstat"],
         "opens": ["open_dir", "open_read", "open_update", "create_exclusive"]}
for kind, names in KINDS.items() if len(sys.argv) > 3 else ():
    for name in names:
        # Of several threads a call may be lost once in a while: the counts are about right.
        setattr(RealFs, name, counting(kind, getattr(RealFs, name)))
around = Surroundings.real()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
with (PrivateRoot.create(folder / "state", RootKind.STATE, around=around, checkout=None) as state,
      StudyRoot.open(folder / "R", around=around, checkout=None) as study,
      thread_executor(jobs) as executor):
    agent = simulated(study)
    calls.clear()
    before, start, busy = peak(), time.perf_counter(), time.process_time()
    outcome = run_study(RunParts(study, state, agent, executor, jobs, Halt(), Silent()))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps({"seconds": seconds, "processor": busy, "trials": outcome.counts.ended, "calls": calls,
                  "before": before, "peak": peak()}))
"""
STATUS = """
import json, resource, sys, time
from pathlib import Path
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.studies.root import StudyRoot
start = time.perf_counter()
with StudyRoot.open(Path(sys.argv[1]) / "R", around=Surroundings.real(), checkout=None) as study:
    ended = study.status().ended
print(json.dumps({"seconds": time.perf_counter() - start, "trials": ended,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
MOCK = """
import json, sys, time
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate
task = Task([Sample(input="do it", target="done", id=str(n)) for n in range(int(sys.argv[2]))],
            solver=generate(), scorer=match())
start = time.perf_counter()
eval(task, model="mockllm/model", log_dir=sys.argv[1], display="none")
print(json.dumps({"seconds": time.perf_counter() - start}))
"""
PLAN = """
import sys
from pathlib import Path
from tests.support.studies import CHECKED, bench, write
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.studies.example import example_files
folder, tasks, samples = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
files = dict(example_files("bench", tasks=1))
text = files["study.yaml"].decode().replace("samples: 3", f"samples: {samples}").encode()
first = next(path for path in files if path.endswith("/task.toml")).split("/")[1]
study = write(folder / "study", files | {"study.yaml": text} | {
    path.replace(f"/{first}/", f"/task-{number:04d}/"): data
    for path, data in files.items() if f"/{first}/" in path for number in range(1, tasks)})
with bench(folder, Surroundings.real()) as held:
    plan = held.plan(study)
    if len(sys.argv) > 4:
        from skill_effectiveness.studies import rows
        from skill_effectiveness.studies.words import EndClass, GradeState
        done = {"class": EndClass.COMPLETED}
        with held.open() as opened, opened.journal(held.state) as journal:
            digest, group = plan.plan_digest, []
            for slot in range(1, plan.allocation.slots + 1):
                usage = rows.Usage(input_tokens=1_000, output_tokens=100, cost_units=0.5, wall_seconds=1.0)
                group += [
                    rows.SlotStarted(slot=slot, attempt=1, order_digest=digest),
                    rows.AttemptEnded(slot=slot, attempt=1, **done, detail=None,
                                      tree=digest, usage=usage),
                    rows.SlotEnded(slot=slot, **done, completion_binding_hash=digest),
                    rows.Graded(slot=slot, grade_hash=digest, state=GradeState.VALID),
                ]
                if len(group) >= 1_000:
                    journal.append(*group)
                    group = []
            if group:
                journal.append(*group)
"""


def child(code: str, *arguments: object, python: str = sys.executable) -> tuple[float, dict[str, Any]]:
    """Seconds from the start of a process to its end, and what it printed."""
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [python, "-c", code, *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environ)  # noqa: S603 - our own code
    lines = done.stdout.splitlines()
    return time.perf_counter() - start, json.loads(lines[-1]) if lines else {}


def planned(base: Path, slots: int, *filled: str) -> Path:
    """A planned study of so many slots, two arms."""
    tasks = min(TASKS, max(1, slots // 2)) if slots <= 2 * TASKS * 1_000 else -(-slots // 2_000)
    base.mkdir(mode=0o700)
    child(PLAN, base, tasks, max(1, slots // (2 * tasks)), *filled)
    return base


def mocked(base: Path, samples: int) -> tuple[float, float] | None:
    """Seconds of as many mock samples in Inspect, in all and without its start; None where it is missing."""
    looking = [INSPECT, "-c", "import inspect_ai"]
    found = subprocess.run(looking, check=False, capture_output=True)  # noqa: S603 - a fixed command
    if found.returncode:
        return None
    whole, told = child(MOCK, base / f"inspect-{samples}", samples, python=INSPECT)
    return whole, float(told["seconds"])


def against(name: str, ours: float, theirs: float | None, goal: float) -> list[Figure]:
    """The figure, or the words that there is none."""
    if theirs is None:
        print(f"{name} ratio=not measured goal={goal:.3g}: inspect_ai is not installed")
        return []
    return [Figure(name, ours / theirs, goal)]


def cold(base: Path) -> list[Figure]:
    whole, told = child(RUN, planned(base / "cold", 2), 1)
    print(f"study_trial_cold seconds={whole:.2f} of which running {told['seconds']:.3f} for two trials")
    rival = mocked(base, 1)
    return against("study_trial_cold", whole - told["seconds"] / 2, rival and rival[0], COLD_GOAL)


def counted(base: Path) -> None:
    """Print how often one trial asks the file system for something."""
    _, told = child(RUN, planned(base / "counted", SIZES[0]), JOBS, "count")
    each = " ".join(f"{kind}={number / told['trials']:.1f}" for kind, number in told["calls"].items())
    print(f"study_trials_each {each}")


def many(base: Path) -> list[Figure]:
    counted(base)
    figures, costs = [], []
    for size in SIZES:
        _, told = child(RUN, planned(base / f"run-{size}", size), JOBS)
        costs.append(told["seconds"] / told["trials"])
        grown = told["peak"] - told["before"]
        print(
            f"study_trials trials={told['trials']} ms_each={costs[-1] * 1e3:.1f} "
            f"processor_ms_each={told['processor'] / told['trials'] * 1e3:.1f} jobs={JOBS} "
            f"peak_mb={told['peak']:.0f} of which the run {grown:.0f}"
        )
        figures.append(Figure(f"study_trials_memory_{size}", grown, MEMORY_MEGABYTES))
        shutil.rmtree(base / f"run-{size}")
        rival = mocked(base, size)
        each = None if rival is None else rival[1] / size
        figures += against(f"study_trials_{size}", costs[-1], each, TRIAL_GOAL)
    return [*figures, Figure("study_trials_growth", costs[-1] / costs[0], GROWTH_GOAL)]


def status(base: Path) -> list[Figure]:
    _, told = child(STATUS, planned(base / "status", STATUS_TRIALS, "filled"))
    assert told["trials"] == STATUS_TRIALS
    return [
        Figure("study_status_seconds", told["seconds"], STATUS_SECONDS),
        Figure("study_status_memory_mb", told["peak"], STATUS_MEGABYTES),
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        return report(*cold(base), *many(base), *status(base))


if __name__ == "__main__":
    sys.exit(main())
