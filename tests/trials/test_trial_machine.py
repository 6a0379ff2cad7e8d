"""Trials in the hands of chance: preparing, checkpoints, breaches, crashes, power losses, moves, tampering.

By default a few histories are tried, so that the suite stays fast. So many steps as are asked for, and the
count of each kind on the screen, are had by

    TRIAL_STEPS=10000 python -m pytest tests/trials/test_trial_machine.py -q -n 0 -s
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    ExpectedIsolation,
    IsolationEvidence,
    Mode,
    TrialKey,
    read_record,
)
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay
from tests.support.crash_images import Recording, fast_folder
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import wrong_modes
from tests.support.trials import SAFE, Json, Place, cursor, order, put, put_lines, request

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

EXAMPLES = 12
STEPS = 40
WANTED = int(os.environ.get("TRIAL_STEPS", "0"))
"""Steps that are carried out at least; 0 for as many as the default examples come to."""
OPEN = ("prepared", "running", "interim-budget-stop")
TAINTED = ("contaminated", "failed")
ACTIONS = ("prepare", "running", "interim-budget-stop", "completed", "breached", *TAINTED)
FILES = ("events.jsonl", "access-audit.jsonl", "outcome/result.json", "trial.json")

_samples = st.integers(1, 4)
# Going on is drawn more often than ending, or histories would be short.
_actions = st.sampled_from([*ACTIONS, "running", "interim-budget-stop", "completed"])
_rarely = st.integers(0, 9).map(lambda drawn: drawn == 0)


@dataclass(frozen=True)
class Known:
    """What is known of one sample.

    Attributes:
        status: empty when there is no trial.
        version: of its document.
        marked: whether a breach was observed.
    """

    status: str = ""
    version: int = 0
    marked: bool = False

    def after(self, action: str) -> tuple[Known, object]:
        """What an action makes of it, and its answer: a code when it is refused."""
        if action == "prepare":
            return (self, self._found()) if self.status else (Known("prepared"), Mode.CREATED)
        if not self.status:
            return self, TrialCode.TRIAL_MISSING
        if self.status not in OPEN:
            return self, TrialCode.TERMINAL
        if action in TAINTED:
            return Known(action, self.version + 1, self.marked), self.version + 1
        if self.marked or action == "breached":
            return Known(self.status, self.version, marked=True), TrialCode.ISOLATION_BREACH
        return Known(action, self.version + 1), self.version + 1

    def _found(self) -> object:
        if self.status == "completed":
            return Mode.COMPLETE
        if self.status in TAINTED:
            return Mode.TERMINAL
        return TrialCode.ISOLATION_BREACH if self.marked else Mode.RESUME


class TrialMachine(RuleBasedStateMachine):
    """A store with four samples and what is known about them.

    Attributes:
        tally: steps carried out by all machines, by kind; what hypothesis drew and could not use is none.
    """

    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        folder = self._stack.enter_context(fast_folder())
        self.place = Place(folder / "agent")
        self.place.base = folder / "desk"
        self.place.base.mkdir(mode=0o700)
        self.place.root = self.place.base / "root"
        self.known = {sample: Known() for sample in (1, 2, 3, 4)}
        self.completed: dict[int, bytes] = {}
        self._used = 0
        self._moves = 0

    def teardown(self) -> None:
        self._stack.close()

    def key(self, sample: int) -> TrialKey:
        return TrialKey("task-a", "profile-full", sample)

    def document_bytes(self, sample: int) -> bytes:
        return (self.place.trial(self.key(sample)) / "trial.json").read_bytes()

    def ready(self, sample: int, action: str) -> None:
        """Write the evidence files, as the runner has done by then; those of an ended trial stay."""
        self._used += 1
        key = self.key(sample)
        if self.known[sample].status in OPEN:
            self.place.fill(key)
            if action == "breached":
                row = {"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}
                put_lines(self.place.trial(key) / "access-audit.jsonl", [*self.place.rows(key), row])

    def carry_out(self, sample: int, action: str, fs: FileSystem | None = None) -> object:
        """Do it; the answer, or the code of the refusal."""
        key = self.key(sample)
        used = cursor(self._used, tokens=self._used)
        try:
            with self.place.open(fs) as store:
                if action == "prepare":
                    return prepare(store, order(sample=sample, expected=self.expected(sample))).mode
                if action in {"completed", "breached"}:
                    wanted = self.place.completion(key, resume_cursor=used)
                else:
                    wanted = request(action, resume_cursor=used)
                return checkpoint(store, key, wanted).state_version
        except TrialError as error:
            return error.code

    def expected(self, sample: int) -> ExpectedIsolation:
        roots = {name: tuple(paths) for name, paths in self.place.roots(self.key(sample)).items()}
        return ExpectedIsolation(read_record(IsolationEvidence, SAFE), **roots)

    def meant(self, sample: int, action: str, *, blindly: bool) -> str:
        """What is done: to a sample that has no trial mostly its preparation."""
        return action if blindly or self.known[sample].status else "prepare"

    @rule(sample=_samples, action=_actions, blindly=_rarely)
    def act(self, sample: int, action: str, *, blindly: bool) -> None:
        """What the model says happens, happens."""
        action = self.meant(sample, action, blindly=blindly)
        self.tally[action] += 1
        self.ready(sample, action)
        after, answer = self.known[sample].after(action)
        assert self.carry_out(sample, action) == answer
        self.settle(sample, after)

    @rule(sample=_samples, action=_actions, nth=st.integers(1, 40), pick=st.none() | st.integers(0, 60))
    def crash(self, sample: int, action: str, nth: int, pick: int | None) -> None:
        """Die at some step; perhaps lose power too. Then it is as before, or done; answered means done."""
        action = self.meant(sample, action, blindly=False)
        # A checkpoint has a third of the steps that a preparation has.
        nth = nth if action == "prepare" else nth % 14 + 1
        self.ready(sample, action)
        before = self.known[sample]
        after, answer = before.after(action)
        recording = Recording(self.place.base)
        try:
            assert self.carry_out(sample, action, MortalFs(recording.fs, nth)) == answer
            recording.acknowledge(answer)
        except Died:
            self.tally["crash"] += 1
        else:
            self.tally[action] += 1
        promised = [what for _, what in recording._acknowledged]
        if pick is not None:
            chosen, promised = list(islice(recording.images(), pick + 1))[-1]
            shutil.rmtree(self.place.base)
            chosen.materialise(self.place.base)
            self.tally["power loss"] += 1
        found = self.look(sample)
        assert found in ([after] if promised else [before, after])
        self.settle(sample, found)

    def settle(self, sample: int, found: Known) -> None:
        self.known[sample] = found
        if found.status == "completed":
            self.completed.setdefault(sample, self.document_bytes(sample))

    def look(self, sample: int) -> Known:
        trial = self.place.trial(self.key(sample))
        if not (trial / "trial.json").exists():
            return Known()
        document = self.place.document(self.key(sample))
        return Known(document["status"], document["state_version"], (trial / "breach.json").exists())

    @rule()
    def move(self) -> None:
        """The store goes elsewhere; what it holds stays true."""
        if self.place.root.exists():
            self._moves += 1
            self.tally["move"] += 1
            target = self.place.base / f"root-{self._moves}"
            self.place.root.rename(target)
            self.place.root = target

    @rule(sample=_samples, data=st.data())
    def tamper(self, sample: int, data: st.DataObject) -> None:
        """A completed trial with one changed byte is no completed trial; changed back, it is again."""
        if sample not in self.completed:
            return
        path = self.place.trial(self.key(sample)) / data.draw(st.sampled_from(FILES), label="file")
        honest = path.read_bytes()
        at = data.draw(st.integers(0, len(honest) - 1), label="at")
        if path.name == "trial.json" and not self._is_bound(honest, at):
            return
        self.tally["tamper"] += 1
        changed = bytes([honest[at] ^ data.draw(st.integers(1, 255), label="with")])
        put(path, honest[:at] + changed + honest[at + 1 :])
        with self.place.open() as store, pytest.raises(TrialError):
            replay(store, self.key(sample))
        put(path, honest)

    @staticmethod
    def _is_bound(document: bytes, at: int) -> bool:
        """Whether a byte belongs to the hash that binds all the others."""
        start = document.index(b'"completion_binding_hash":"') + 27
        return start <= at < start + 71

    @invariant()
    def what_is_known_is_there(self) -> None:
        """No acknowledged state is lost, and a completion is never done twice."""
        if not self.place.root.exists():
            return
        for sample, known in self.known.items():
            assert self.look(sample) == known
        for sample, document in self.completed.items():
            assert self.document_bytes(sample) == document
        with self.place.open() as store:
            there = [self.key(sample) for sample, known in self.known.items() if known.status]
            assert list(store.keys()) == there
            for sample in self.completed:
                assert replay(store, self.key(sample)).document.status == "completed"
        assert wrong_modes(self.place.root) == []


def test_no_history_loses_or_doubles_a_completion() -> None:
    """E54: acknowledged states stay, completions are made once, every tampering is found."""
    run: Json = run_state_machine_as_test
    TrialMachine.tally.clear()
    done = 0
    while done == 0 or done < WANTED:
        run(
            TrialMachine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        done = steps(TrialMachine.tally)
        if WANTED:
            sys.stdout.write(f"\n{done} steps: {dict(TrialMachine.tally.most_common())}")
            sys.stdout.flush()


def steps(tally: Counter[str]) -> int:
    """How many steps were carried out; losing power is a part of the step during which it happens."""
    return tally.total() - tally["power loss"]
