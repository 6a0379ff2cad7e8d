"""Verbs, crashes and moved heads in any order: nothing closes without a verified crosscheck of its head."""

from __future__ import annotations

import io
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skill_effectiveness.cli import door
from skill_effectiveness.evidence.signals import Terminated
from tests.support.milestones import QUOTA, Asked, Case, Hall, finding, needs, unread, verified

pytestmark = pytest.mark.slow

REPLIES = {
    "verified": verified(),
    "needs": needs(finding()),
    "evidence": needs(finding(kind="evidence_missing")),
    "void": lambda asked: unread(verified()(asked)),
    "invalid": "Looks good.",
    "quota": QUOTA,
}


def _die(_asked: Asked) -> NoReturn:
    raise Terminated(signal.SIGTERM)


class _Streams:
    """Both streams of a command that runs in this process."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def readouterr(self) -> tuple[str, str]:
        told = tuple(
            each.getvalue() if isinstance(each, io.StringIO) else "" for each in (sys.stdout, sys.stderr)
        )
        self._patch.setattr(sys, "stdout", io.StringIO())
        self._patch.setattr(sys, "stderr", io.StringIO())
        return told[0], told[1]


class Closing(RuleBasedStateMachine):
    """One plan, run after run."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.base = Path(tempfile.mkdtemp(prefix="skill-effectiveness-test-")).resolve()
        self.hall = Hall()
        self.runs: list[str] = []
        self.heads: dict[str, str] = {}
        self.moving = threading.Lock()

    @initialize()
    def begin(self) -> None:
        streams = _Streams(self.patch)
        self.case = Case(self.base / "case", self.hall, self.patch, streams)  # type: ignore[arg-type]
        self.case.document["required"] = [["true"]]
        self.start()

    def start(self) -> None:
        name = f"r{len(self.runs) + 1}"
        said = self.case.start(name)
        assert said.code == 0, said
        self.runs.append(name)

    @rule(times=st.integers(1, 2))
    def close(self, times: int) -> None:
        for _ in range(times):
            self.carry_out("close")

    @rule()
    def resume(self) -> None:
        self.carry_out("resume")

    @rule(verbs=st.sampled_from([("gate",), ("crosscheck",), ("close", "--recorded"), ("gate", "--make")]))
    def one_verb(self, verbs: tuple[str, ...]) -> None:
        self.carry_out(*verbs)

    @rule(moves=st.booleans())
    def one_by_one(self, moves: bool) -> None:  # noqa: FBT001 - drawn
        self.carry_out("gate", "--make")
        self.carry_out("crosscheck")
        if moves:
            self.move()
        self.carry_out("close", "--recorded")

    def carry_out(self, *words: str) -> None:
        if "finished" in self.case.types(self.runs[-1]):
            self.start()
        said = self.case(*words, run=self.runs[-1])
        assert said.code in {0, 1, 2, 3, 128 + signal.SIGTERM}, said
        if self.case.rows("crw.milestoneClose", self.runs[-1]):
            self.heads.setdefault(self.runs[-1], self.case.head)

    def move(self) -> None:
        # Both passes may want to, at the same time, and git lets one at a time.
        with self.moving:
            self.case.repository.commit(moved=str(len(self.case.types(self.runs[-1]))))

    @rule(
        kind=st.sampled_from(["move", "say", "say", "crash", "moving"]),
        name=st.sampled_from("AB"),
        reply=st.sampled_from(sorted(REPLIES)),
        purpose=st.sampled_from(["A", "B", "probe", "fix", "evidence"]),
    )
    def disturb(self, kind: str, name: str, reply: str, purpose: str) -> None:
        if kind == "move":
            self.move()
        elif kind == "say":
            self.hall.script[name] = [REPLIES[reply], verified()]
        elif kind == "crash":
            self.hall.script[purpose] = [_die, *(self.hall.script.get(purpose) or [_usual(purpose)])]
        else:
            self.hall.script[name] = [self.moved, verified()]

    def moved(self, asked: Asked) -> object:
        """A pass during which the target moves."""
        self.move()
        return verified()(asked)

    @invariant()
    def no_close_without_its_crosscheck(self) -> None:
        """What a close rests on stands before it, at its head."""
        for run in self.runs:
            rows = self.case.rows(run=run)
            closes = [row for row in rows if row["type"] == "crw.milestoneClose"]
            assert len(closes) <= 1
            for close in closes:
                head = close["body"]["head"]
                before = [row for row in rows if row["seq"] < close["seq"]]
                gates = [row["body"] for row in before if row["type"] == "crw.finalGate"]
                assert any((each["head"], each["state"]) == (head, "pass") for each in gates)
                said = [row["body"] for row in before if row["type"] == "crw.crosscheck"]
                found = next(each for each in said if each["digest"] == close["body"]["crosscheck"])
                assert (found["word"], found["head"], found["milestone"]) == ("verified", head, "m1")
                assert not any(
                    each["severity"] != "P3" or each["impact"] not in {None, "minor_separable"}
                    for each in found["verdict"]["findings"]
                )
                assert self.heads[run] == head

    def teardown(self) -> None:
        self.patch.undo()
        door.surroundings.cache_clear()
        shutil.rmtree(self.base)


def _usual(purpose: str) -> object:
    from tests.support.milestones import USUAL  # noqa: PLC0415 - the table of what engines say by themselves

    return USUAL[purpose]


class TestClosing(Closing.TestCase):  # type: ignore[misc,valid-type]
    """M67 M68 M69: in every order of verbs, answers, moved heads and crashes."""

    settings = settings(
        max_examples=10,
        stateful_step_count=8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
