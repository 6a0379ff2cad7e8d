"""Studies of an agent program: a fake of codex that does what it is told to, and planned studies of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from skill_effectiveness.providers import CodexProvider
from skill_effectiveness.studies.attempt_records import AttemptOrder
from skill_effectiveness.studies.state import SlotState
from skill_effectiveness.studies.words import Arm
from skill_effectiveness.studies.working_agent import PlannedAgent
from skill_effectiveness.trials.allocation import Slot
from tests.support.crash_images import fast_folder
from tests.support.fake_program import write_fake
from tests.support.private import surroundings
from tests.support.provider_calls import DONE, THREAD, TURN, message
from tests.support.studies import bench, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.agent import AttemptResult
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.root import StudyRoot

SKILL = "right-words"
HEAD = """
prompt = sys.stdin.buffer.read().decode()
given = os.path.join(os.environ["CODEX_HOME"], "skills")
skills = sorted(os.listdir(given)) if os.path.isdir(given) else []
def text(skill):
    return open(os.path.join(given, skill, "SKILL.md")).read()
def answer(*documents):
    say(thread, turn, *documents, said, done)
checked = "exposure check" in prompt
"""
OBEYING = """
if checked:
    import re
    words = [word for skill in skills for word in re.findall("nonce-[0-9a-f]{32}", text(skill))][:1]
    open("exposure.txt", "w").write("\\n".join(words + skills) or "none")
"""
"""What an agent does that sees its own skills and nothing else."""

STUDY = """
schema: skill-effectiveness.study.v1
name: working
question: Does it help?
registry: paired-profile
tier: advisory-paired
scope: main
driver: {provider: codex, executable: %PROGRAM%, model: fake-model, settings: {}}
arms:
  off: {}
  full: {skills: [skills/right-words], instructions: [house.md]}
tasks: tasks
samples: 1
budgets:
  trial: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}
  study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}
isolation: {sandbox: none, audit: none, network: provider}
reviewers: []
outcome: {primary: reward}
analysis: {sides: two, stopping: fixed}
"""


def files(program: Path, edits: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """A study of two tasks on a program."""
    text = STUDY.replace("%PROGRAM%", str(program))
    for old, new in (edits or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    held = {
        "study.yaml": text.encode(),
        "house.md": b"House rules.\n",
        f"skills/{SKILL}/SKILL.md": f"---\nname: {SKILL}\ndescription: Words.\n---\nWords.\n".encode(),
    }
    for number in (1, 2):
        task = f"tasks/task-{number}"
        held |= {
            f"{task}/task.toml": b'schema_version = "1.0"\n[agent]\ntimeout_sec = 20\n',
            f"{task}/instruction.md": f"Write the word of task {number}.\n".encode(),
            f"{task}/environment/start.txt": b"start\n",
            f"{task}/tests/test.sh": (
                b'test -x "$TASK_DIR/answer.sh" && echo 1 > "$TASK_LOGS/reward.txt" '
                b'|| echo 0 > "$TASK_LOGS/reward.txt"\n'
            ),
            f"{task}/solution/solve.sh": b'touch "$TASK_DIR/answer.sh"; chmod +x "$TASK_DIR/answer.sh"\n',
        }
    return held


class WorkingStudy:
    """A planned study of a fake program, open, with its agent."""

    def __init__(self, folder: Path, study: StudyRoot, around: Surroundings, program: Path) -> None:
        self.folder = folder
        self.study = study
        self.around = around
        self.agent = PlannedAgent(study, CodexProvider.at(program, around=around))

    @property
    def task(self) -> PlanTask:
        return self.study.plan.tasks[0]

    def order(self, arm: str, **changes: object) -> AttemptOrder:
        """An order for the first task."""
        slot = Slot(1, self.task.task_id, arm, 1)
        order = AttemptOrder(
            kind="attempt",
            root_id="root-1",
            plan_digest=self.study.plan.plan_digest,
            slot=1,
            attempt=1,
            task_id=self.task.task_id,
            arm=Arm(arm),
            sample=1,
            salt="0" * 64,
            driver=dict(self.agent.told(slot, SlotState(1))),
            budget=self.study.plan.budgets.trial,
            isolation=self.study.plan.isolation,
            inputs=(),
            runtime_manifest_hash=self.study.plan.runtime_manifest_hash,
        )
        return order.model_copy(update=changes)

    def attempt(self, arm: str, **changes: object) -> AttemptResult:
        """One attempt of the first task."""
        return self.agent.attempt(self.order(arm, **changes), "/place", lambda: False)

    @property
    def left(self) -> list[str]:
        """What lies in the temporary folder."""
        return sorted(path.name for path in (self.folder / "temporary").iterdir())


@contextmanager
def working(
    body: str, *, edits: Mapping[str, str] | None = None, **constants: object
) -> Iterator[WorkingStudy]:
    """A planned study whose agent runs `HEAD` and this body."""
    with fast_folder() as folder:
        home, temporary = folder / "home", folder / "temporary"
        home.mkdir(mode=0o700)
        temporary.mkdir(mode=0o700)
        around = surroundings()
        environ = {"HOME": str(home), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin"}
        around = replace(around, environ=environ)
        program = write_fake(
            folder / "codex", HEAD + body,
            thread=THREAD, turn=TURN, done=DONE, said=message("done"), home=str(home), **constants,
        )  # fmt: skip
        with bench(folder, around) as held:
            held.plan(write(folder / "study", files(program, edits)))
            with held.open() as study:
                yield WorkingStudy(folder, study, around, program)
