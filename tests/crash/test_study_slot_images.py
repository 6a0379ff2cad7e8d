"""Every image that a crash can leave of a study's slot recovers (evidence.md section 10, "study slot").

One slot is recorded from its batch's opening to its grade; every legal image of every prefix is then made and
the same run repeated on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.runner import RunStatus
from tests.support.crash_images import Image, Recording, fast_folder
from tests.support.private import surroundings, wrong_modes
from tests.support.studies import bench, example
from tests.support.study_runs import FakeAgent, outcomes, result, run, state_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from skill_effectiveness.studies.agent import Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder

BARE = result(files=HeldTree.of_files({"note.txt": b"done\n"}))
ENDINGS = {1: [BARE], 2: [BARE]}


def recorded(base: Path, source: Path) -> Recording:
    """The steps of one slot, and when each acknowledgement was given."""
    with bench(base) as held:
        held.plan(example(source, tasks=1, edits={"samples: 3": "samples: 1"}))
    recording = Recording(base)
    halt = Halt()

    def drain(_order: AttemptOrder, _cancelled: Cancelled) -> None:
        recording.acknowledge("started")
        halt.request()

    with bench(base, surroundings(recording.fs)) as held:
        agent = FakeAgent(endings=ENDINGS, during=drain)
        assert run(held, agent, halt=halt).status is RunStatus.DRAINED
        recording.acknowledge("graded")
    return recording


def test_of_a_slot(capsys: pytest.CaptureFixture[str]) -> None:
    """E53 S23 S24: acknowledged work is there, and an attempt that ended is not made again."""
    seen: set[tuple[Image, int]] = set()
    images = 0
    with fast_folder() as fast:
        base = fast / "base"
        base.mkdir(mode=0o700)
        recording = recorded(base, fast)
        assert recording.wrong_modes == []
        for image, promised in recording.images(seen):
            images += 1
            place = fast / f"image-{images}"
            image.materialise(place)
            try:
                judge(place, promised)
            except BaseException as error:
                error.add_note(f"image {images}, promised {promised}: {sorted(image.folders)}")
                raise
    with capsys.disabled():
        print(f"\nstudy slot: {images} crash images ", end="")  # noqa: T201 - the count is to be seen
    assert images >= 150


def judge(place: Path, promised: list[object]) -> None:
    """Look at an image, and run what is left of it."""
    with bench(place) as held:
        with state_of(held) as state:
            slot = state.slot(1)
            attempts = len(slot.attempts)
            assert attempts == 1 or "started" not in promised
            assert slot.grade_hash is not None or "graded" not in promised
            acknowledged = (slot.completion_binding_hash, slot.grade_hash)
        ended = (place / "R/attempts/1/a1/exit.json").exists() and attempts == 1
        agent = FakeAgent(endings=ENDINGS)
        assert run(held, agent).status is RunStatus.COMPLETE
        assert [order.slot for order in agent.asked] == ([2] if ended else [1, 2])
        assert outcomes(held) == dict.fromkeys((1, 2), ("completed", 1.0))
        with state_of(held) as state:
            slot = state.slot(1)
            for before, after in zip(
                acknowledged, (slot.completion_binding_hash, slot.grade_hash), strict=True
            ):
                assert before in {None, after}
    assert wrong_modes(place / "R") == []
