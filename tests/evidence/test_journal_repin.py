"""A pin is made anew only by a person with a reason, and the journal remembers it."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Journal
from skill_effectiveness.evidence.journal_faults import Finding, JournalCode, JournalError, JournalStatus
from skill_effectiveness.evidence.single_file import FileJournal
from tests.support.journals import (
    FORMS,
    Desk,
    add,
    copied,
    edited,
    lines,
    numbers,
    put_lines,
    tear,
    template,
)
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REASON = "The pin was deleted by a clean-up script."


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    base = tmp_path_factory.mktemp("templates").resolve()
    return {form: template(base, form, 4) for form in FORMS}


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


def refused(desk: Desk, reason: str = REASON) -> JournalCode:
    before = {name: data for name, data in content(desk.base).items() if not name.endswith(".lock")}
    with pytest.raises(JournalError) as caught:
        desk.repin(reason)
    after = {name: data for name, data in content(desk.base).items() if not name.endswith(".lock")}
    assert after == before
    return JournalCode(caught.value.faults[0].code)


def kept(desk: Desk) -> dict[str, object]:
    """What the journal keeps about the making."""
    if desk.form == "single":
        record = json.loads(desk.pin.read_bytes())["repins"][-1]
    else:
        with desk.open() as journal:
            record = [row.body for row in journal.rows() if row.type == "repin"][-1]
    assert isinstance(record, dict)
    return record


def cut(desk: Desk) -> None:
    put_lines(desk.rows(), lines(desk.rows())[:-2])


def roll_back(desk: Desk) -> None:
    yesterday = {path: path.read_bytes() for path in (desk.rows(), desk.pin)}
    desk.fill(2, 80)
    for path, data in yesterday.items():
        path.write_bytes(data)


def lag(desk: Desk) -> None:
    pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
    with desk.open() as journal:
        add(journal, *range(4, 12))
        add(journal, 12)
    desk.pin.write_bytes(pin)
    desk.copy().write_bytes(copy)


@pytest.mark.parametrize(
    ("harm", "finding", "left"),
    [
        (lambda desk: desk.pin.unlink(), Finding.PIN_MISSING, 4),
        (lambda desk: desk.pin.write_bytes(b"\0" * 200), Finding.PIN_DAMAGED, 4),
        (cut, Finding.TRUNCATED, 2),
        (roll_back, Finding.ROLLED_BACK, 4),
        (lag, Finding.PIN_BEHIND, 13),
    ],
    ids=["missing", "damaged", "truncated", "rolled-back", "behind"],
)
def test_with_a_reason_it_goes_on_and_remembers(
    desk: Desk, harm: Callable[[Desk], object], finding: Finding, left: int
) -> None:
    """E35: the finding and the reason are kept in a row, or (E62) in the new pin."""
    known = json.loads(desk.pin.read_bytes())
    harm(desk)
    was = desk.pin.exists() and desk.pin.read_bytes()
    report = desk.repin(REASON)
    assert report.status is JournalStatus.INTACT
    record = kept(desk)
    assert (record["findings"], record["reason"]) == ([str(finding)], REASON)
    if finding in {Finding.PIN_MISSING, Finding.PIN_DAMAGED}:
        assert record["former"] is None
    else:
        pin = json.loads(was)
        assert record["former"] == {"count": pin["count"], "head": pin["head"]}
    with desk.open() as journal:
        add(journal, 99)
        assert len(numbers(journal)) == left + 1
        renamed = desk.form == "single" and record["former"] is None
        assert (journal.journal_id == known["journal_id"]) is not renamed
    assert desk.verify().status is JournalStatus.INTACT


def test_a_second_time(desk: Desk) -> None:
    """E62: the single-file form keeps every making, oldest first."""
    for reason in ("one", "two"):
        put_lines(desk.pin, [edited(desk.pin.read_bytes(), count=77)])
        desk.repin(reason)
    if desk.form == "single":
        assert [entry["reason"] for entry in json.loads(desk.pin.read_bytes())["repins"]] == ["one", "two"]
    else:
        with desk.open() as journal:
            assert [row.body["reason"] for row in journal.rows() if row.type == "repin"] == ["one", "two"]


@pytest.mark.parametrize("reason", ["", " ", "\n\t", "x" * 10_001, "\ud800"])
def test_without_a_reason_nothing_happens(desk: Desk, reason: str) -> None:
    """E35: and what is no text is no reason."""
    desk.pin.unlink()
    assert refused(desk, reason) is JournalCode.REASON_NEEDED


def test_a_right_pin_is_left_alone(desk: Desk) -> None:
    assert refused(desk) is JournalCode.REPIN_REFUSED
    with desk.last().open("ab") as file:
        file.write(b"torn")
    assert refused(desk) is JournalCode.REPIN_REFUSED


def test_wrong_rows_are_not_repaired_by_a_pin(desk: Desk) -> None:
    """F43: no new pin covers a damage of the rows."""
    whole = lines(desk.rows())
    put_lines(desk.rows(), [*whole[:2], *whole[3:]])
    assert refused(desk) is JournalCode.REPIN_REFUSED
    desk.pin.unlink()
    assert refused(desk) is JournalCode.REPIN_REFUSED
    put_lines(desk.rows(), [b"{}\n", *whole[1:]])
    assert refused(desk) is JournalCode.REPIN_REFUSED


def changed_at_the_end(desk: Desk) -> None:
    """Another last row, chained as it must be; only a pin can tell."""
    whole = lines(desk.rows())
    changes: dict[str, object] = {"body": {"n": 77, "note": ""}} if desk.form == "segmented" else {"n": 77}
    put_lines(desk.rows(), [*whole[:-1], edited(whole[-1], **changes)])


@pytest.mark.parametrize("copied_pin", [True, False])
def test_a_changed_last_row_is_not_repaired_by_a_pin(desk: Desk, copied_pin: bool) -> None:  # noqa: FBT001
    """E32 F43: what was acknowledged last was changed, and a new pin would say that it was not."""
    changed_at_the_end(desk)
    if not copied_pin:
        desk.copy().unlink()
    assert [found.finding for found in desk.verify().findings] == [Finding.PREV_MISMATCH]
    assert refused(desk) is JournalCode.REPIN_REFUSED


def test_a_changed_last_row_beside_a_lost_pin_is_told(tmp_path: Path) -> None:
    """E34: the copy still knows which row was acknowledged, and the journal keeps that it did."""
    desk = Desk(tmp_path.resolve())
    desk.fill(3)
    changed_at_the_end(desk)
    desk.pin.unlink()
    findings = [Finding.PIN_MISSING, Finding.ROLLED_BACK]
    assert [found.finding for found in desk.verify().findings] == findings
    desk.repin(REASON)
    assert kept(desk)["findings"] == [str(finding) for finding in findings]


def test_a_lost_end_beside_a_lost_pin_is_told(tmp_path: Path) -> None:
    """E34: rows cut off together with the pin are missed by the copy."""
    desk = Desk(tmp_path.resolve())
    desk.fill(3)
    cut(desk)
    for harm in (lambda: desk.pin.write_bytes(b"{}\n"), desk.pin.unlink):
        harm()
        assert [found.finding for found in desk.verify().findings][1:] == [Finding.ROLLED_BACK]
    desk.repin(REASON)
    assert kept(desk)["findings"] == [str(Finding.PIN_MISSING), str(Finding.ROLLED_BACK)]


class TestElsewhere:
    """A journal that is carried to another machine, which has no copy of its pin."""

    @staticmethod
    def carried(desk: Desk, tmp_path: Path) -> Desk:
        there = copied(desk, tmp_path.resolve() / "there")
        shutil.rmtree(there.base / "state")
        return there

    def test_it_goes_on_and_comes_back(self, desk: Desk, tmp_path: Path) -> None:
        there = self.carried(desk, tmp_path)
        there.fill(2, 4)
        assert there.verify().status is JournalStatus.INTACT
        shutil.rmtree(desk.base / "root")
        shutil.copytree(there.base / "root", desk.base / "root")
        assert desk.verify().status is JournalStatus.INTACT
        desk.fill(1, 6)
        with desk.open() as journal:
            assert numbers(journal) == list(range(7))

    def test_two_histories_do_not_become_one(self, desk: Desk, tmp_path: Path) -> None:
        """E34: rows that this machine acknowledged are not forgotten for longer ones from elsewhere."""
        there = self.carried(desk, tmp_path)
        there.fill(3, 100)
        desk.fill(1, 200)
        shutil.rmtree(desk.base / "root")
        shutil.copytree(there.base / "root", desk.base / "root")
        assert [found.finding for found in desk.verify().findings] == [Finding.ROLLED_BACK]
        with pytest.raises(JournalError) as caught, desk.open():
            pass
        assert caught.value.code is JournalCode.JOURNAL_DAMAGED


class TestWhereItWasCut:
    """What docs/evidence.md says about going on."""

    @pytest.mark.parametrize("size", [2, 50, 150])
    def test_inside_a_row_at_the_end_it_goes_on(self, desk: Desk, size: int) -> None:
        """E31 E35: the piece that was left is kept."""
        desk.rows().write_bytes(desk.rows().read_bytes()[:-size])
        assert [found.finding for found in desk.verify().findings] == [Finding.TRUNCATED]
        assert desk.repin(REASON).status is JournalStatus.INTACT_WITH_TEARS
        with desk.open() as journal:
            add(journal, 9)

    def test_a_broken_row_with_its_line_feed_is_no_end(self, desk: Desk) -> None:
        """E31 E35: whoever has a backup goes on with that, and the journal says what it lacks."""
        backup = {path: path.read_bytes() for path in (desk.rows(), desk.pin)}
        desk.fill(2, 80)
        desk.rows().write_bytes(desk.rows().read_bytes()[:-50] + b"\n")
        assert Finding.BAD_ROW in [found.finding for found in desk.verify().findings]
        assert refused(desk) is JournalCode.REPIN_REFUSED
        for path, data in backup.items():
            path.write_bytes(data)
        assert desk.verify(state=False).sound
        assert desk.repin(REASON).sound
        assert kept(desk)["reason"] == REASON
        with desk.open() as journal:
            add(journal, 9)


HARMS: dict[str, Callable[[Desk], object]] = {
    "missing": lambda desk: desk.pin.unlink(),
    "truncated": cut,
    "torn as well": lambda desk: (cut(desk), tear(desk, b"torn")),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_kill_at_any_step_loses_neither_rows_nor_the_need_of_a_reason(
    desk: Desk, tmp_path: Path, harm: str
) -> None:
    """E35 E54: afterwards the pin is still wrong, or it was made anew and the reason is kept."""
    HARMS[harm](desk)
    with_reasons = 0
    for nth in count(1):
        (tmp_path / f"{nth}").mkdir()
        once = copied(desk, tmp_path.resolve() / f"{nth}")
        fs = MortalFs(RealFs(), nth)
        with suppress(Died):
            once.repin("first", fs)
        report = once.verify()
        if not report.sound:
            once.repin("second")
        with once.open() as journal:
            left = 2 if harm != "missing" else 4
            assert numbers(journal) == list(range(left))
            add(journal, 9)
        record = kept(once)
        assert record["reason"] == ("first" if report.sound else "second")
        with_reasons += report.sound
        assert wrong_modes(once.base) == []
        if not fs.dead:
            break
    assert nth > 10
    assert with_reasons > 1


class TestRaces:
    def test_an_open_journal_whose_pin_is_made_anew_must_look_again(self, desk: Desk) -> None:
        with desk.roots() as (root, state), desk.open_in(root, state) as journal:
            desk.pin.unlink()
            desk.repin(REASON)
            before = content(desk.base)
            with pytest.raises(JournalError) as caught:
                add(journal, 9)
            assert caught.value.code is JournalCode.JOURNAL_CHANGED
            assert content(desk.base) == before
        with desk.open() as journal:
            add(journal, 9)

    def test_of_two_one_makes_it_and_the_other_finds_it_right(self, desk: Desk) -> None:
        """E35: the lock lets one in, and the other has nothing to give its reason for."""
        desk.pin.unlink()
        said: list[str] = []

        def make(reason: str) -> None:
            try:
                said.append(str(desk.repin(reason).status))
            except JournalError as error:
                said.append(str(error.code))

        threads = [threading.Thread(target=make, args=(reason,)) for reason in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(said) == ["intact", "repin_refused"]
        assert desk.verify().status is JournalStatus.INTACT

    def test_while_somebody_appends(self, desk: Desk) -> None:
        """A living journal has a right pin whenever the lock is free, so nothing is ever made anew."""
        with desk.roots() as (root, state), desk.open_in(root, state) as journal:
            for number in range(5):
                add(journal, number)
                with pytest.raises(JournalError) as caught:
                    desk.repin(REASON)
                assert caught.value.code is JournalCode.REPIN_REFUSED


def test_a_missing_segment_is_not_repaired_by_a_pin(tmp_path: Path) -> None:
    desk = Desk(tmp_path.resolve(), segment_limit=300)
    desk.fill(6)
    desk.rows(1).unlink()
    assert refused(desk) is JournalCode.REPIN_REFUSED
    for path in desk.folder.glob("0*.jsonl"):
        path.unlink()
    assert refused(desk) is JournalCode.REPIN_REFUSED


def test_a_torn_tail_is_settled_on_the_way(desk: Desk) -> None:
    """E30: bytes behind the last row are set aside as always."""
    put_lines(desk.pin, [edited(desk.pin.read_bytes(), count=77)])
    with desk.last().open("ab") as file:
        file.write(b"torn")
    report = desk.repin(REASON)
    assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)
    assert [path.read_bytes() for path in desk.torn.iterdir()] == [b"torn"]


def test_tears_of_a_lost_pin_are_found_again(tmp_path: Path) -> None:
    """E62: the files of torn tails tell what the pin told."""
    desk = Desk(tmp_path.resolve(), "single")
    desk.fill(2)
    with desk.rows().open("ab") as file:
        file.write(b"torn")
    desk.fill(1, 2)
    tears = json.loads(desk.pin.read_bytes())["tears"]
    desk.pin.unlink()
    report = desk.repin(REASON, group_max=5)
    assert (report.status, report.tears) == (JournalStatus.INTACT_WITH_TEARS, 1)
    pin = json.loads(desk.pin.read_bytes())
    assert (pin["tears"], pin["group_max"]) == (tears, 5)


def test_nothing_is_begun_by_it(tmp_path: Path) -> None:
    for form in FORMS:
        desk = Desk(tmp_path.resolve() / form, form)
        desk.base.mkdir()
        with desk.roots():
            pass
        assert refused(desk) is JournalCode.JOURNAL_MISSING


@pytest.mark.parametrize("data", [b"", b"x", b'{"a":1}\n'])
def test_nothing_is_left_beside_a_file_that_is_no_journal(tmp_path: Path, data: bytes) -> None:
    """E62: a lock file beside the receipts of another contract would be a stranger there."""
    desk = Desk(tmp_path.resolve(), "single", state=False)
    with desk.roots() as (root, _):
        root.publish(desk.rows().name, data)
    before = content(desk.base)
    with pytest.raises(JournalError) as caught:
        desk.repin(REASON)
    assert caught.value.faults[0].code is JournalCode.REPIN_REFUSED
    assert content(desk.base) == before


@pytest.mark.parametrize("name", ["000001.jsonl", "000002.jsonl", "1000000.jsonl"])
def test_a_part_of_a_journal_is_none_by_itself(tmp_path: Path, name: str) -> None:
    """E62: a pin and a lock file among the parts would damage the journal that they belong to."""
    desk = Desk(tmp_path.resolve(), "segmented")
    with desk.roots() as (root, state), Journal.open(root, purpose="test", state=state):
        pass
    before = content(desk.base)
    with desk.roots() as (root, state), root.child("journal") as folder:
        for make in (
            lambda: FileJournal.repin(folder, name, reason=REASON, state=state),
            lambda: FileJournal.open(folder, name, state=state),
        ):
            with pytest.raises(JournalError) as caught:
                make()
            assert caught.value.code is JournalCode.NOT_A_JOURNAL
    assert content(desk.base) == before
