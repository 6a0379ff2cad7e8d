"""Every image that a crash can leave of an engine call's two rows recovers (evidence.md section 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.crash_images import Image, Recording, fast_folder
from tests.support.milestone_calls import ask, begin, judge, opened

if TYPE_CHECKING:
    import pytest


def test_of_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    """E53 M109: the prepared row is there before the engine is asked, and no completed one is made up."""
    seen: set[tuple[Image, int]] = set()
    images = 0
    with fast_folder() as fast:
        base = fast / "base"
        base.mkdir(mode=0o700)
        begin(base)
        recording = Recording(base)
        with opened(base, recording.fs) as run:
            ask(run, base, lambda: recording.acknowledge("asked"))
            recording.acknowledge("completed")
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
        print(f"\nmilestone call: {images} crash images ", end="")  # noqa: T201 - the count is to be seen
    assert images >= 40
