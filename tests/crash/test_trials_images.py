"""Every image that a crash can leave of prepare, checkpoint and completion recovers.

Each protocol is recorded once on the real file system; then every legal image of every prefix is made, looked
at, recovered by repeating the same call, and compared with what had been acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import Mode, TrialKey, TrialStatus
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import read_document
from tests.support.crash_images import Image, Recording, fast_folder
from tests.support.private import content, wrong_modes
from tests.support.trials import Place, cursor, order, put_lines, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.trials.store import TrialStore

KEY = TrialKey("task-a", "profile-full", 1)


class CrashedPlace(Place):
    """A store that is laid out from an image; its agents read a checkout that no crash touches."""

    def __init__(self, base: Path, checkout: Path) -> None:
        super().__init__(checkout)
        self.base = base
        self.root = base / "root"


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


@pytest.fixture
def fast() -> Iterator[Path]:
    with fast_folder() as path:
        yield path


def base_of(fast: Path) -> CrashedPlace:
    base = fast / "base"
    base.mkdir(mode=0o700)
    return CrashedPlace(base, fast / "agent")


def every_image(
    fast: Path, recording: Recording, judge: Callable[[CrashedPlace, list[Any]], None], count: Count
) -> None:
    assert recording.wrong_modes == []
    for image, promised in recording.images(count.seen):
        count.images += 1
        base = fast / f"image-{count.images}"
        image.materialise(base)
        place = CrashedPlace(base, fast / "agent")
        try:
            judge(place, promised)
            assert wrong_modes(base) == []
        except BaseException as error:
            told = "\n".join(f"{path} {data!r}" for path, data, _ in sorted(image.files))
            error.add_note(f"image {count.images}, promised {promised}: {sorted(image.folders)}\n{told}")
            raise


def leftovers(place: Place) -> list[str]:
    """What recovery should have taken away; a lock's own temporary belongs to whoever waits for the lock."""
    found = [path.name for path in place.root.rglob("*") if path.name.endswith((".new", ".tmp"))]
    return [name for name in found if ".lock" not in name]


def status_of(store: TrialStore) -> TrialStatus:
    with store.demand_trial(KEY) as trial:
        return read_document(trial).status


def whole(place: Place) -> dict[str, bytes]:
    """The trial's files, as they are after an undisturbed preparation."""
    return {name: data for name, data in content(place.trial(KEY)).items() if "trial.lock" not in name}


def interrupt(place: Place) -> None:
    """Leave of a prepared trial what an interrupted first creation leaves."""
    (place.trial(KEY) / "trial.json").unlink()
    (place.trial(KEY) / "events.jsonl").unlink()
    (place.trial(KEY) / "outcome").rmdir()


@pytest.mark.parametrize(("begun", "floor"), [("nothing", 30), ("interrupted", 15), ("no logs", 6)])
def test_of_preparing(fast: Path, capsys: pytest.CaptureFixture[str], begun: str, floor: int) -> None:
    """E53 T8 T10: no trial or a whole one; acknowledged means there; preparing again finishes."""
    place = base_of(fast)
    with place.open() as store:
        if begun != "nothing":
            prepare(store, order())
    if begun == "interrupted":
        interrupt(place)
    if begun == "no logs":
        (place.trial(KEY) / "events.jsonl").unlink()
        (place.trial(KEY) / "access-audit.jsonl").unlink()
    recording = Recording(place.base)
    with place.open(recording.fs) as store:
        prepare(store, order())
        recording.acknowledge("prepared")
    made = whole(place)

    def judge(place: CrashedPlace, promised: list[Any]) -> None:
        there = (place.trial(KEY) / "trial.json").exists()
        assert there or not promised
        with place.open() as store:
            found = prepare(store, order())
            assert found.mode is (Mode.RESUME if there else Mode.CREATED)
            assert {name: data for name, data in whole(place).items() if ".tmp" not in name} == made
            assert (place.trial(KEY) / "outcome").is_dir()
            assert prepare(store, order()).mode is Mode.RESUME
            assert list(store.keys()) == [KEY]
        assert [name for name in leftovers(place) if name.endswith(".new")] == []

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close(f"prepare from {begun}", floor)


def test_of_a_checkpoint(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 T8: the old version or the new one; acknowledged means the new one."""
    place = base_of(fast)
    with place.open() as store:
        prepare(store, order())
    recording = Recording(place.base)
    wanted = request("running", resume_cursor=cursor(7, tokens=3), expected_state_version=0)
    with place.open(recording.fs) as store:
        checkpoint(store, KEY, wanted)
        recording.acknowledge("running")

    def judge(place: CrashedPlace, promised: list[Any]) -> None:
        with place.open() as store:
            status = status_of(store)
            assert status in {TrialStatus.PREPARED, TrialStatus.RUNNING}
            assert status is TrialStatus.RUNNING or not promised
            if status is TrialStatus.PREPARED:
                checkpoint(store, KEY, wanted)
            else:
                with pytest.raises(TrialError) as caught:
                    checkpoint(store, KEY, wanted)
                assert caught.value.code is TrialCode.VERSION_CONFLICT
            assert place.document(KEY)["state_version"] == 1
            assert place.document(KEY)["resume_cursor"] == cursor(7, tokens=3)
            checkpoint(store, KEY, request("interim-budget-stop", resume_cursor=cursor(8, tokens=4)))
        assert leftovers(place) == []

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close("checkpoint", 10)


def test_of_a_completion(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 T8: running, or completed with its isolation and binding together; never half of it."""
    place = base_of(fast)
    with place.open() as store:
        prepare(store, order())
        checkpoint(store, KEY, request("running", resume_cursor=cursor()))
    place.fill(KEY)
    recording = Recording(place.base)
    with place.open(recording.fs) as store:
        checkpoint(store, KEY, place.completion(KEY))
        recording.acknowledge("completed")

    def judge(place: CrashedPlace, promised: list[Any]) -> None:
        # The audit names the place where it was recorded.
        place.fill(KEY)
        with place.open() as store:
            document = place.document(KEY)
            completed = document["status"] == "completed"
            parts = (document["completion_isolation"], document["completion_binding_hash"])
            assert all((part is not None) is completed for part in parts)
            assert completed or not promised
            if not completed:
                checkpoint(store, KEY, place.completion(KEY))
                replay(store, KEY)
            with pytest.raises(TrialError) as caught:
                checkpoint(store, KEY, place.completion(KEY))
            assert caught.value.code is TrialCode.TERMINAL
        if not completed:
            assert leftovers(place) == []

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close("completion", 14)


def test_of_a_breach(fast: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """E53 T19: a breach that was answered is marked, and no image of it completes afterwards."""
    place = base_of(fast)
    with place.open() as store:
        prepare(store, order())
    place.fill(KEY)
    outside = [{"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}]
    put_lines(place.trial(KEY) / "access-audit.jsonl", outside)
    recording = Recording(place.base)
    with place.open(recording.fs) as store:
        with pytest.raises(TrialError):
            checkpoint(store, KEY, place.completion(KEY))
        recording.acknowledge("breach")

    def judge(place: CrashedPlace, promised: list[Any]) -> None:
        marked = (place.trial(KEY) / "breach.json").exists()
        assert marked or not promised
        if marked:
            place.fill(KEY)
        with place.open() as store:
            with pytest.raises(TrialError) as caught:
                checkpoint(store, KEY, place.completion(KEY))
            assert caught.value.code is TrialCode.ISOLATION_BREACH
            checkpoint(store, KEY, request("contaminated"))

    count = Count(capsys)
    every_image(fast, recording, judge, count)
    count.close("breach mark", 5)
