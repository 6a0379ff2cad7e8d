"""Attempts on disk: written once and whole, judged by the coordinator, read back strictly."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.studies import attempts
from skill_effectiveness.studies.attempt_records import AttemptOrder
from skill_effectiveness.studies.attempts import AttemptFolders, judged
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.rows import Usage
from skill_effectiveness.studies.spending import consumed
from skill_effectiveness.studies.state import AttemptState
from skill_effectiveness.studies.study_file import Isolation
from skill_effectiveness.studies.words import Arm, Audit, EndClass, Network, Sandbox
from tests.support.private import content, listing, out_root, wrong_modes
from tests.support.study_runs import MODEL, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsdoubles import Step
    from skill_effectiveness.studies.agent import AttemptResult

DIGEST = "sha256:" + "0" * 64
FREE = Budgets(tokens=None, wall_time_seconds=None, tool_calls=None, cost_units=None)
TIMES = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC))
FILES = {"note.txt": b"done\n", "deep/er.txt": b"x"}


def order(slot: int = 7, attempt: int = 1) -> AttemptOrder:
    return AttemptOrder(
        kind="attempt",
        root_id="root-1",
        plan_digest=DIGEST,
        slot=slot,
        attempt=attempt,
        task_id="t",
        arm=Arm.OFF,
        sample=1,
        salt="0" * 64,
        driver={"model": MODEL},
        budget=FREE,
        isolation=Isolation(sandbox=Sandbox.NONE, audit=Audit.NONE, network=Network.NONE),
        inputs=(),
        runtime_manifest_hash=DIGEST,
    )


def started(slot: int = 7, attempt: int = 1) -> AttemptState:
    return AttemptState(attempt, order(slot, attempt).digest, "t")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[AttemptFolders]:
    with out_root(tmp_path) as root:
        held = AttemptFolders(root)
        yield held
        held.close()


def test_what_an_attempt_leaves(folders: AttemptFolders, tmp_path: Path) -> None:
    """The layout of section 3; the tree's digest is that of the folder."""
    told = result(stream=b"{}\n", stderr=b"oh")
    made = folders.publish(order(), told, (EndClass.COMPLETED, None), TIMES)
    place = tmp_path / "root/attempts/7/a1"
    assert str(place) == folders.place(7, 1)
    assert listing(place) == ["collected", "exit.json", "stderr.bin", "stream.jsonl", "tree.json"]
    assert (
        made.tree
        == digest_tree(RealFs(), place / "collected")
        == digest_bytes((place / "tree.json").read_bytes())
    )
    assert folders.found(7, started()) == made
    assert wrong_modes(tmp_path / "root") == []
    kept = AttemptState(1, made.order_digest, "t", EndClass.COMPLETED, None, made.tree)
    held = folders.files(7, kept)
    assert {entry.path: held.blob(entry) for entry in held.tree.files} == FILES


def recorded(tmp_path: Path, prepare: Callable[[AttemptFolders], object] = lambda _held: None) -> list[Step]:
    """The steps of publishing one attempt."""
    fs = RecordingFs(RealFs())
    with out_root(tmp_path, fs) as root:
        held = AttemptFolders(root)
        prepare(held)
        fs.steps.clear()
        held.publish(order(), result(stream=b"{}\n"), (EndClass.COMPLETED, None), TIMES)
        held.close()
    return fs.steps


def test_everything_is_durable_before_the_exit_is_there(tmp_path: Path) -> None:
    """S23 E53: the folder appears with all of it, and each file and folder is synced once."""
    steps = recorded(tmp_path)
    place = tmp_path / "root/attempts"
    renamed = [step for step in steps if step.operation == "rename"]
    assert [step.target for step in renamed] == [str(place / "7/a1")]
    assert [step.operation for step in steps[steps.index(renamed[0]) :]] == ["rename", "fsync_dir"]
    synced = [
        step.path.replace(renamed[0].path, str(place / "7/a1")) for step in steps if "fsync" in step.operation
    ]
    assert sorted(synced) == [
        str(place / path)
        for path in (
            "", "7", "7/a1", "7/a1/collected", "7/a1/collected/deep", "7/a1/collected/deep/er.txt",
            "7/a1/collected/note.txt", "7/a1/exit.json", "7/a1/stream.jsonl", "7/a1/tree.json",
        )
    ]  # fmt: skip
    created = [step.path for step in steps if step.operation == "create_exclusive"]
    assert created[-1].endswith("/exit.json")


def test_a_folder_that_was_there_gets_its_exit_last(folders: AttemptFolders, tmp_path: Path) -> None:
    """S23: what a run that was killed put there is completed, name by name."""
    folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    place = tmp_path / "root/attempts/7/a1"
    for name in ("exit.json", "collected/note.txt"):
        (place / name).unlink()
    steps = recorded(tmp_path)
    linked = [step.target.removeprefix(f"{place}/") for step in steps if step.operation == "link"]
    assert linked == ["collected/note.txt", "stream.jsonl", "exit.json"]
    assert [step.path for step in steps[-2:]] == [str(place), str(place.parent)]
    assert {step.operation for step in steps[-2:]} == {"fsync_dir"}
    assert folders.found(7, started()) is not None


def test_publishing_again_changes_nothing(folders: AttemptFolders, tmp_path: Path) -> None:
    """S31 E20: the same attempt may come twice; another under its number is refused."""
    first = folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    before = content(tmp_path / "root")
    assert folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES) == first
    assert content(tmp_path / "root") == before
    with pytest.raises(FileError) as caught:
        folders.publish(order(), result(stream=b"{}"), (EndClass.CRASHED, None), TIMES)
    assert caught.value.code is FileCode.EXISTS_DIFFERENT
    assert (tmp_path / "root/attempts/7/a1/exit.json").read_bytes() == before["attempts/7/a1/exit.json"]


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize("operation", ["fsync", "fsync_dir", "create_exclusive", "mkdir"])
def test_a_full_disk_leaves_no_attempt_and_the_same_call_succeeds(
    tmp_path: Path, operation: str, nth: int
) -> None:
    """E22 S23: whichever file or folder could not be made or synced."""
    out_root(tmp_path).close()
    with out_root(tmp_path) as root:
        AttemptFolders(root).close()
    fs = FaultFs(RealFs(), Injection(operation, errno.ENOSPC, nth=nth))
    with out_root(tmp_path, fs) as root:
        held = AttemptFolders(root)
        with pytest.raises(FileError) as caught:
            held.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
        assert caught.value.code is FileCode.NO_SPACE
        assert held.found(7, started()) is None
        made = held.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
        assert held.found(7, started()) == made
        held.close()
    assert listing(tmp_path / "root/attempts/7") == ["a1"]


def test_an_exit_that_is_found_is_made_durable(folders: AttemptFolders, tmp_path: Path) -> None:
    """E53: whoever put it there may have died between the rename and the sync."""
    folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    fs = RecordingFs(RealFs())
    with out_root(tmp_path, fs) as root:
        held = AttemptFolders(root)
        assert held.exit_of(7, started()) is not None
        assert fs.steps == []
        assert held.found(7, started()) is not None
        held.close()
    place = tmp_path / "root/attempts"
    assert [(step.operation, step.path) for step in fs.steps] == [
        ("fsync_dir", str(place)),
        ("fsync_dir", str(place / "7")),
        ("fsync_dir", str(place / "7/a1")),
    ]


def test_an_attempt_without_its_exit_never_ended(folders: AttemptFolders, tmp_path: Path) -> None:
    """S23: everything else may be there."""
    assert folders.found(7, started()) is None
    folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    (tmp_path / "root/attempts/7/a1/exit.json").unlink()
    assert folders.found(7, started()) is None


@pytest.mark.parametrize("data", [b"", b"{}\n", b"nonsense", b"\xff"])
def test_an_exit_that_was_not_written_here_is_refused(
    folders: AttemptFolders, tmp_path: Path, data: bytes
) -> None:
    """What lies there has to be an exit."""
    folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    (tmp_path / "root/attempts/7/a1/exit.json").write_bytes(data)
    with pytest.raises(StudyError) as caught:
        folders.found(7, started())
    assert caught.value.code is StudyCode.PLAN_CHANGED


def test_an_exit_of_another_order_is_refused(folders: AttemptFolders) -> None:
    """S23: the journal's order is what counts."""
    folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    with pytest.raises(StudyError):
        folders.found(7, AttemptState(1, DIGEST, "t"))


@pytest.mark.parametrize("name", ["tree.json", "collected/note.txt"])
def test_files_that_changed_are_refused(folders: AttemptFolders, tmp_path: Path, name: str) -> None:
    """What is graded is what was collected."""
    made = folders.publish(order(), result(), (EndClass.COMPLETED, None), TIMES)
    (tmp_path / "root/attempts/7/a1" / name).write_bytes(b"[]")
    with pytest.raises(StudyError):
        folders.files(7, AttemptState(1, made.order_digest, "t", EndClass.COMPLETED, None, made.tree))


def test_a_second_attempt_lies_beside_the_first(folders: AttemptFolders, tmp_path: Path) -> None:
    """S26: no attempt's evidence is overwritten."""
    for number in (1, 2):
        folders.publish(order(attempt=number), result(), (EndClass.CRASHED, None), TIMES)
    assert listing(tmp_path / "root/attempts/7") == ["a1", "a2"]


def test_a_result_beyond_all_size_is_a_limit_and_is_not_kept(
    folders: AttemptFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S21: `limit` by size; the exit says so."""
    monkeypatch.setattr(attempts, "LARGEST_RESULT", 5)
    told = result()
    found = judged(told, MODEL, FREE, consumed([]))
    assert found == (EndClass.LIMIT, "result_size")
    made = folders.publish(order(), told, found, TIMES)
    assert made.tree is None
    assert listing(tmp_path / "root/attempts/7/a1") == ["exit.json"]


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (result(), ("completed", None)),
        (result(model_reported=None), ("completed", None)),
        (result(model_reported="other"), ("void", "model_differs")),
        (result("crashed", model_reported="other"), ("void", "model_differs")),
        (result("void", detail="assay", model_reported="other"), ("void", "assay")),
        (result("contaminated", detail="canary", model_reported="other"), ("contaminated", "canary")),
        (result(usage=Usage(input_tokens=90, output_tokens=11)), ("limit", "tokens")),
        (result("no_answer", usage=Usage(input_tokens=90, output_tokens=11)), ("limit", "tokens")),
        (result("crashed", usage=Usage(input_tokens=90, output_tokens=11)), ("crashed", None)),
        (result(usage=Usage(input_tokens=90, output_tokens=10)), ("completed", None)),
    ],
)
def test_what_the_coordinator_makes_of_a_result(told: AttemptResult, found: tuple[str, str | None]) -> None:
    """S21 S26 F37: model and budget are held against what was asked for."""
    budget = Budgets(tokens=100, wall_time_seconds=None, tool_calls=None, cost_units=None)
    ended, detail = judged(told, MODEL, budget, consumed([], told.usage))
    assert (str(ended), detail) == found


def test_a_tree_has_its_folders() -> None:
    """Every parent is listed, as on disk."""
    assert [entry.path for entry in HeldTree.of_files({"a/b/c": b"1", "d": b"2"}).tree.entries] == [
        "a",
        "a/b",
        "a/b/c",
        "d",
    ]
    assert HeldTree.of_files({}).tree.entries == ()
