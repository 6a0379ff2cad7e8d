"""Every image that a crash can leave of the evidence room's protocols recovers.

Each protocol is recorded once on the real file system; then every legal image of every prefix is made, read
by a verifier, recovered, compared with what had been acknowledged, and the protocol is repeated on it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import count as count_from
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import PairError
from skill_effectiveness.evidence.folders import publish_tree
from skill_effectiveness.evidence.journal_faults import JournalStatus, Unreadable
from skill_effectiveness.evidence.pair import load_pair, publish_pair
from tests.support.crash_images import Image, Recording, fast_folder
from tests.support.journals import FORMS, Desk, add, lines, numbers
from tests.support.killing_fs import Died, MortalFs
from tests.support.pairs import EVIDENCE, RESULT, load, members
from tests.support.private import content, out_root, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot

OLD, NEW = b"old content", b"new content " * 90
SAID = "observed " * 180
ACCEPTED = {JournalStatus.INTACT, JournalStatus.INTACT_WITH_TEARS, JournalStatus.RECOVERABLE}


@pytest.fixture
def fast() -> Iterator[Path]:
    with fast_folder() as path:
        yield path


@dataclass
class Count:
    """How many images a protocol had, printed whatever happens to output."""

    capsys: pytest.CaptureFixture[str]
    images: int = 0
    seen: set[tuple[Image, int]] = field(default_factory=set)

    def close(self, name: str, floor: int) -> None:
        with self.capsys.disabled():
            print(f"\n{name}: {self.images} crash images ", end="")  # noqa: T201 - the count is to be seen
        assert self.images >= floor


def every_image(
    fast: Path, recording: Recording, judge: Callable[[Path, list[Any]], None], count: Count
) -> None:
    """Lay out each image in turn and judge it."""
    assert recording.wrong_modes == []
    for image, promised in recording.images(count.seen):
        count.images += 1
        place = fast / f"image-{count.images}"
        image.materialise(place)
        try:
            judge(place, promised)
            assert wrong_modes(place) == []
        except BaseException as error:
            error.add_note(f"image {count.images}, promised {promised}: {_shown(image)}")
            raise


def _shown(image: Image) -> str:
    return "\n".join(f"{path} {data!r}" for path, data, _ in sorted(image.files))


# Files.

TREE = {"fresh.json": NEW, "below/more.json": OLD, "below/empty": b""}


def publish_missing(root: PrivateRoot) -> None:
    if not root.exists("x"):
        publish_tree(root, "x", files=TREE.items())


FILE_PROTOCOLS: dict[str, tuple[Callable[[PrivateRoot], object], int]] = {
    "publish": (lambda root: root.publish("fresh.json", NEW), 12),
    "replace": (lambda root: root.replace("report.json", NEW), 12),
    "archive": (lambda root: root.archive("report.json", NEW), 18),
    "replace all": (lambda root: root.replace_all({"report.json": NEW, "fresh.json": NEW}), 40),
    "publish tree": (publish_missing, 20),
}


def held(root: PrivateRoot) -> dict[str, bytes]:
    return {name: root.read(name) for name in ("report.json", "fresh.json") if root.exists(name)}


def judge_file(root: PrivateRoot, name: str) -> bool:
    """Whether the protocol has had its effect; the names hold old or new in any case."""
    now = held(root)
    if name == "publish":
        assert now["report.json"] == OLD
        assert now.get("fresh.json") in {None, NEW}
        return "fresh.json" in now
    assert now["report.json"] in {OLD, NEW}
    if name == "publish tree":
        assert content(root.path / "x") == (TREE if root.exists("x") else {})
        return root.exists("x")
    if name == "replace all":
        assert now.get("fresh.json") in {None, NEW}
        return now == {"report.json": NEW, "fresh.json": NEW}
    if name == "archive" and now["report.json"] == NEW:
        with root.child("history") as history:
            assert history.read(f"report-{hashlib.sha256(OLD).hexdigest()}.json") == OLD
    return now["report.json"] == NEW


@pytest.mark.parametrize("name", FILE_PROTOCOLS)
def test_of_a_write(fast: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E24: old or new, never a mixture; acknowledged means new; the repeat finishes it."""
    run, floor = FILE_PROTOCOLS[name]
    base = fast / "base"
    base.mkdir(mode=0o700)
    with out_root(base) as root:
        root.publish("report.json", OLD)
    recording = Recording(base)
    with out_root(base, recording.fs) as root:
        run(root)
        recording.acknowledge("new")

    def judge(place: Path, promised: list[Any]) -> None:
        with out_root(place) as root:
            assert judge_file(root, name) or not promised
            root.sweep()
            assert judge_file(root, name) or not promised
            run(root)
            assert judge_file(root, name)
            if root.exists("history"):
                with root.child("history") as history:
                    history.sweep()
        assert temporaries(place) == []

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close(name, floor)


def test_of_a_pair(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E24: both documents or a half that no loader accepts; acknowledged means both."""
    base = fast / "base"
    base.mkdir(mode=0o700)
    out_root(base).close()
    recording = Recording(base)
    with out_root(base, recording.fs) as root:
        publish_pair(root, *members(SAID), load=load)
        recording.acknowledge("both")

    def judge(place: Path, promised: list[Any]) -> None:
        with out_root(place) as root:
            if promised or (root.exists(EVIDENCE) and root.exists(RESULT)):
                assert load_pair(root, EVIDENCE, RESULT, load) == SAID
            else:
                with pytest.raises(PairError, match="does not count"):
                    load_pair(root, EVIDENCE, RESULT, load)
            publish_pair(root, *members(SAID), load=load)
            assert load_pair(root, EVIDENCE, RESULT, load) == SAID
            root.sweep()
            assert root.names() == (EVIDENCE, RESULT)

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close("pair", 20)


# Journals.


@dataclass
class History:
    """What is done to a journal while it is recorded.

    Attributes:
        desk: where it is.
        tried: every number whose append was begun, in order.
        size: of the text in a row.
    """

    desk: Desk
    tried: list[int] = field(default_factory=list)
    size: int = 2_000


def judge_journal(history: History, place: Path, promised: list[Any]) -> None:
    """Verify, recover, compare, go on."""
    was = history.desk
    desk = Desk(place, was.form, was.segment_limit, was.group_max, tokens=count_from(1 << 40))
    acknowledged = max(promised, default=[], key=len)
    report = desk.verify()
    begun = report.status in ACCEPTED
    assert begun or (report.status is JournalStatus.UNREADABLE and not acknowledged), report
    assert begun or report.why in {Unreadable.NOT_BEGUN, Unreadable.MISSING}, report
    before = content(place)
    with desk.open() as journal:
        kept = numbers(journal)
        assert kept == history.tried[: len(kept)]
        assert kept[: len(acknowledged)] == acknowledged
        after = content(place)
        _demand_nothing_lost(desk, before, after)
        add(journal, 1000, 1001)
        assert numbers(journal) == [*kept, 1000, 1001]
    report = desk.verify()
    assert report.status in {JournalStatus.INTACT, JournalStatus.INTACT_WITH_TEARS}, report
    assert report.tears == (len(list(desk.torn.iterdir())) if desk.torn.exists() else 0)
    assert desk.copy().read_bytes() == desk.pin.read_bytes()
    settled = content(place)
    with desk.open():
        pass
    assert content(place) == settled
    with desk.roots() as (root, _):
        # What the making of the lock left is the root's; everything else is cleared already.
        assert all(".lock." in name for name in temporaries(place))
        root.sweep()
    assert temporaries(place) == []


def _demand_nothing_lost(desk: Desk, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Every line that was in a file with rows is still there, or lies among the torn tails."""
    kept = b"\n".join(after.values())
    for name, data in before.items():
        if (desk.base / name).parent == desk.folder and name.endswith((".jsonl", ".ndjson")):
            for line in data.split(b"\n"):
                assert line in kept, (name, line)


def record(desk: Desk, run: Callable[[Recording, History], None], history: History) -> Recording:
    with desk.roots():
        pass
    recording = Recording(desk.base)
    run(recording, history)
    return recording


def do_append(recording: Recording, history: History, fs: FileSystem, groups: list[list[int]]) -> None:
    """Append groups and note what was promised."""
    with history.desk.open(fs) as journal:
        for group in groups:
            history.tried += group
            add(journal, *group, note="x" * history.size)
            recording.acknowledge(list(history.tried))


GROUPS = {"append of 1 row": [[10], [11]], "append of 3 rows": [[10, 11, 12], [13, 14, 15]]}
FLOORS = {"append of 1 row": 45, "append of 3 rows": 95}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GROUPS)
def test_of_an_append(fast: Path, form: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E39 E24: what was acknowledged stays, what was not is adopted whole rows at a time or set aside."""
    desk = Desk(fast / "base", form)
    desk.base.mkdir(mode=0o700)
    desk.fill(2)
    history = History(desk, [0, 1])
    recording = record(desk, lambda run, past: do_append(run, past, run.fs, GROUPS[name]), history)
    count = Count(capsys)
    every_image(fast, recording, lambda place, promised: judge_journal(history, place, promised), count)
    count.close(f"{name}, {form}", FLOORS[name])


@pytest.mark.parametrize("form", FORMS)
def test_of_a_beginning(fast: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E24: a journal that is begun is there, or can be begun again."""
    desk = Desk(fast / "base", form)
    desk.base.mkdir(mode=0o700)
    history = History(desk)
    recording = record(desk, lambda run, past: do_append(run, past, run.fs, [[0]]), history)
    count = Count(capsys)
    every_image(fast, recording, lambda place, promised: judge_journal(history, place, promised), count)
    count.close(f"beginning, {form}", 35)


def test_of_a_rotation(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E24: closing a file and beginning the next loses nothing at any step."""
    desk = Desk(fast / "base", segment_limit=500)
    desk.base.mkdir(mode=0o700)
    desk.fill(2)
    assert not desk.rows(2).exists()
    history = History(desk, [0, 1])
    recording = record(desk, lambda run, past: do_append(run, past, run.fs, [[10], [11, 12]]), history)
    assert desk.rows(2).exists()
    count = Count(capsys)
    every_image(fast, recording, lambda place, promised: judge_journal(history, place, promised), count)
    count.close("rotation", 80)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_tear_repair(fast: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E30 E24: repairing a torn tail may itself be interrupted anywhere."""
    desk = Desk(fast / "base", form)
    desk.base.mkdir(mode=0o700)
    desk.fill(3)
    # Rows 1 and 2 unpinned, the second one torn.
    with desk.open() as journal:
        pins = desk.pin.read_bytes(), desk.copy().read_bytes()
        add(journal, 3, 4, note="y" * 600)
    desk.pin.write_bytes(pins[0])
    desk.copy().write_bytes(pins[1])
    whole = desk.rows().read_bytes()
    desk.rows().write_bytes(whole[:-400])
    history = History(desk, [0, 1, 2, 3])

    def repair(recording: Recording, past: History) -> None:
        with past.desk.open(recording.fs):
            recording.acknowledge([0, 1, 2, 3])

    recording = record(desk, repair, history)
    assert len(lines(desk.torn / desk.torn.iterdir().__next__().name)) == 1
    count = Count(capsys)
    every_image(fast, recording, lambda place, promised: judge_journal(history, place, promised), count)
    count.close(f"tear repair, {form}", 24)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_crash_while_recovering(fast: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53: a second crash, at any step of the recovery from any image of the first, recovers too."""
    desk = Desk(fast / "base", form, segment_limit=900)
    desk.base.mkdir(mode=0o700)
    desk.fill(2)
    history = History(desk, [0, 1], size=600)
    recording = record(desk, lambda run, past: do_append(run, past, run.fs, [[10, 11]]), history)
    count = Count(capsys)

    def recover(place: Path, promised: list[Any]) -> None:
        again = Desk(place, form, desk.segment_limit, tokens=count_from(1 << 30))
        acknowledged = max(promised, default=[0, 1], key=len)
        second = Recording(place)
        with again.open(second.fs) as journal:
            second.acknowledge(acknowledged)
            del journal
        judge = Count(capsys)
        inside = place.with_name(f"{place.name}-again")
        inside.mkdir()
        every_image(
            inside,
            second,
            lambda inner, kept: judge_journal(history, inner, kept or promised),
            judge,
        )
        count.images += judge.images

    first = Count(capsys)
    every_image(fast, recording, recover, first)
    count.close(f"crash while recovering, {form}", 300)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_power_loss_after_a_kill(fast: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 E54: what a recovery hands out after a kill is durable, whatever the killed process left."""
    count = Count(capsys)
    for nth in count_from(1):
        desk = Desk(fast / f"base-{nth}", form, segment_limit=300)
        desk.base.mkdir(mode=0o700)
        history = History(desk, size=20)
        recording = Recording(desk.base)
        try:
            do_append(recording, history, MortalFs(recording.fs, nth), [[0], [1, 2]])
            alive = True
        except Died:
            alive = False
        with desk.open(recording.fs) as journal:
            recording.acknowledge(numbers(journal))
        inside = fast / f"{nth}"
        inside.mkdir()

        def judge(place: Path, promised: list[Any], past: History = history) -> None:
            judge_journal(past, place, promised)

        every_image(inside, recording, judge, count)
        if alive:
            break
    count.close(f"power loss after a kill, {form}", 250)
