"""A journal in the hands of chance: appends, crashes, power losses, restarts, rotations and tampering.

By default a hundred histories are tried, so that the suite stays fast. The number that evidence.md, section
12, asks for (E56) is run by

    JOURNAL_EXAMPLES=2000 python -m pytest tests/evidence/test_journal_machine.py -q -n 0
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import JournalStatus
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from tests.support.crash_images import Recording, fast_folder
from tests.support.journals import FORMS, Desk, add, lines, number_of, numbers, put_lines
from tests.support.killing_fs import Died, MortalFs

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.journal import Journal
    from skill_effectiveness.evidence.journal_rows import Row
    from skill_effectiveness.evidence.single_file import FileJournal

EXAMPLES = int(os.environ.get("JOURNAL_EXAMPLES", "100"))
GROUP_MAX = 4
_groups = st.lists(st.integers(0, 300), min_size=1, max_size=GROUP_MAX)
_torn = st.binary(max_size=40) | st.just(b"\0" * 700) | st.just(b'{"body":{"n"')


class JournalMachine(RuleBasedStateMachine):
    """One journal and what is known about it.

    Attributes:
        acknowledged: numbers of the rows that the program was promised, in order.
        tried: those, and behind them the rows of an append that a crash interrupted.
    """

    form = ""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._place = self._stack.enter_context(fast_folder())
        self.desk = Desk(self._place / "desk", self.form, segment_limit=900, group_max=GROUP_MAX)
        self.desk.base.mkdir(mode=0o700)
        self.acknowledged: list[int] = []
        self.tried: list[int] = []
        self._next = 0
        self._older: list[tuple[Path, int]] = []
        self._open: ExitStack | None = None
        self._journal: Journal | FileJournal | None = None

    def teardown(self) -> None:
        self._close()
        self._stack.close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = self._journal = None

    def _fresh(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))

    @initialize()
    def begin(self) -> None:
        self.restart()

    @rule()
    def restart(self) -> None:
        """What opening hands out holds from then on."""
        self._close()
        self._open = ExitStack()
        self._journal = self._open.enter_context(self.desk.open())
        kept = numbers(self._journal)
        assert kept[: len(self.acknowledged)] == self.acknowledged
        assert kept == self.tried[: len(kept)]
        self.acknowledged = self.tried = kept

    @rule(sizes=_groups)
    def append(self, sizes: list[int]) -> None:
        """Whole groups, each acknowledged."""
        if self._journal is None:
            self.restart()
        assert self._journal is not None
        group = self._fresh(len(sizes))
        add(self._journal, *group, note="x" * max(sizes))
        self.acknowledged = self.tried = [*self.acknowledged, *group]
        assert numbers(self._journal) == self.acknowledged

    @rule()
    def rotate(self) -> None:
        """A row that fills its file, and one that goes to the next."""
        self.append([900])
        self.append([0])

    @rule(sizes=_groups, nth=st.integers(1, 40), pick=st.none() | st.integers(0, 400))
    def crash(self, sizes: list[int], nth: int, pick: int | None) -> None:
        """Die at some step of opening and appending; perhaps lose power too."""
        self._close()
        group = self._fresh(len(sizes))
        recording = Recording(self.desk.base)
        tried = [self.tried, [*self.acknowledged, *group]]
        try:
            with self.desk.open(MortalFs(recording.fs, nth)) as journal:
                kept = numbers(journal)
                recording.acknowledge(kept)
                tried = [self.tried, [*kept, *group]]
                add(journal, *group, note="x" * max(sizes))
                recording.acknowledge([*kept, *group])
        except Died:
            pass
        promised = [what for _, what in recording._acknowledged]
        if pick is not None:
            promised = self._lose_power(recording, pick)
        if promised:
            self.acknowledged = promised[-1]
        # What was pending before and what was pending now cannot both be there.
        self.tried = tried[-1] if promised else self.tried

    def _lose_power(self, recording: Recording, pick: int) -> list[Any]:
        chosen, promised = list(islice(recording.images(), pick + 1))[-1]
        shutil.rmtree(self.desk.base)
        chosen.materialise(self.desk.base)
        return promised

    @precondition(lambda self: bool(self.acknowledged))
    @rule(data=_torn)
    def leave_torn_bytes(self, data: bytes) -> None:
        """Bytes behind the last row, as an interrupted write leaves them."""
        self.restart()
        self._close()
        with self.desk.last().open("ab") as file:
            file.write(data.replace(b"\n", b""))

    @rule()
    def remember(self) -> None:
        """Keep a copy of today's journal for tomorrow's forger."""
        self.restart()
        self._close()
        older = self._place / f"older-{len(self._older)}"
        shutil.copytree(self.desk.base / "root", older)
        self._older.append((older, len(self.acknowledged)))

    @precondition(lambda self: bool(self.acknowledged))
    @rule(data=st.data())
    def tamper(self, data: st.DataObject) -> None:
        """Every tampering with a settled journal is found, stops opening, and changes nothing."""
        self.restart()
        self._close()
        honest = self._place / "honest"
        shutil.copytree(self.desk.base, honest)
        name = data.draw(st.sampled_from(sorted(TAMPERINGS)), label="tampering")
        if TAMPERINGS[name](self, data):
            report = self.desk.verify()
            assert report.status in {JournalStatus.DAMAGED, JournalStatus.UNREADABLE}, name
            with pytest.raises(EvidenceError), self.desk.open():
                pass
            assert self.desk.verify() == report
        shutil.rmtree(self.desk.base)
        honest.rename(self.desk.base)

    @invariant()
    def verification_agrees(self) -> None:
        """Acknowledged rows are the beginning of what is accepted, and nothing is called damaged."""
        seen: list[Row] = []
        if self.form == "single":
            report = verify_file(RealFs(), self.desk.rows(), on_row=seen.append)
        else:
            report = verify_segments(RealFs(), self.desk.folder, on_row=seen.append)
        begun = report.status is not JournalStatus.UNREADABLE
        assert report.sound or not (begun or self.acknowledged), report
        kept = [
            number_of(row.value if self.form == "single" else row.body)
            for row in seen
            if self.form == "single" or row.type == "note"
        ]
        assert kept[: len(self.acknowledged)] == self.acknowledged
        assert kept == self.tried[: len(kept)]


# Tamperings: each says whether it changed anything that must be found.


def _some_rows(machine: JournalMachine, data: st.DataObject) -> Path:
    files = [path for path in machine.desk.folder.glob("*.*json*") if path.suffix in {".jsonl", ".ndjson"}]
    return data.draw(st.sampled_from(sorted(path for path in files if path.stat().st_size)), label="file")


def _flip(path: Path, data: st.DataObject) -> None:
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    content[at] ^= data.draw(st.integers(1, 255), label="with")
    path.write_bytes(content)


def flip_in_rows(machine: JournalMachine, data: st.DataObject) -> bool:
    _flip(_some_rows(machine, data), data)
    return True


def flip_in_pin(machine: JournalMachine, data: st.DataObject) -> bool:
    before = machine.desk.pin.read_bytes()
    _flip(machine.desk.pin, data)
    # Nothing else in a single file's folder tells its id, so another one is another journal's.
    identity = before.index(b'"journal_id":"') + 14
    changed = machine.desk.pin.read_bytes()
    elsewhere = changed[:identity] + before[identity : identity + 32] + changed[identity + 32 :]
    return machine.form == "segmented" or elsewhere != before


def delete_pin(machine: JournalMachine, _data: st.DataObject) -> bool:
    machine.desk.pin.unlink()
    return True


def edit_lines(machine: JournalMachine, data: st.DataObject) -> bool:
    path = _some_rows(machine, data)
    whole = lines(path)
    at = data.draw(st.integers(0, len(whole) - 1), label="at")
    act = data.draw(st.sampled_from(["drop", "double", "swap", "truncate", "blank"]), label="act")
    match act:
        case "drop":
            changed = [*whole[:at], *whole[at + 1 :]]
        case "double":
            changed = [*whole[:at], whole[at], *whole[at:]]
        case "swap":
            other = (at + 1) % len(whole)
            changed = list(whole)
            changed[at], changed[other] = whole[other], whole[at]
        case "truncate":
            changed = whole[:at]
        case _:
            changed = [*whole[:at], b"\n", *whole[at:]]
    put_lines(path, changed)
    return changed != whole and not (act == "blank" and at == len(whole))


def cut_bytes(machine: JournalMachine, data: st.DataObject) -> bool:
    path = _some_rows(machine, data)
    size = path.stat().st_size
    os.truncate(path, data.draw(st.integers(0, size - 1), label="size"))
    # A last row that only lost its line feed is settled, not damaged (E30).
    return path != machine.desk.last() or path.stat().st_size < size - 1


def delete_rows(machine: JournalMachine, data: st.DataObject) -> bool:
    _some_rows(machine, data).unlink()
    return True


def exchange_files(machine: JournalMachine, data: st.DataObject) -> bool:
    one, two = _some_rows(machine, data), _some_rows(machine, data)
    content = one.read_bytes(), two.read_bytes()
    one.write_bytes(content[1])
    two.write_bytes(content[0])
    return one != two


def harm_torn_tail(machine: JournalMachine, data: st.DataObject) -> bool:
    found = sorted(machine.desk.torn.iterdir()) if machine.desk.torn.exists() else []
    if not found:
        return False
    path = data.draw(st.sampled_from(found), label="file")
    if data.draw(st.booleans(), label="delete"):
        path.unlink()
    else:
        _flip(path, data)
    return True


def roll_back(machine: JournalMachine, data: st.DataObject) -> bool:
    if not machine._older:
        return False
    older, count = data.draw(st.sampled_from(machine._older), label="older")
    shutil.rmtree(machine.desk.base / "root")
    shutil.copytree(older, machine.desk.base / "root")
    return count < len(machine.acknowledged)


def add_foreign_file(machine: JournalMachine, _data: st.DataObject) -> bool:
    (machine.desk.folder / "000001.jsonl.bak").write_bytes(b"")
    return machine.form == "segmented"


TAMPERINGS = {
    function.__name__: function
    for function in (
        flip_in_rows,
        flip_in_pin,
        delete_pin,
        edit_lines,
        cut_bytes,
        delete_rows,
        exchange_files,
        harm_torn_tail,
        roll_back,
        add_foreign_file,
    )
}


@pytest.mark.parametrize("form", FORMS)
def test_no_history_breaks_a_journal(form: str) -> None:
    """E56: acknowledged rows are always there, in order, and every tampering is found."""
    machine = type("Machine", (JournalMachine,), {"form": form})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES // 2,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
