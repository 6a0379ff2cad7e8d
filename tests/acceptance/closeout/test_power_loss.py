"""Every image that a power loss can leave of storing a log with its record."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.evidence_root import EvidenceRoot
from skill_effectiveness.evidence.canonical import digest_bytes
from tests.acceptance.closeout.test_evidence_root import PLACE, make
from tests.support.crash_images import Recording, fast_folder
from tests.support.private import surroundings, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

LOG = b"log " * 200


def opened(base: Path, numbers: count[int], fs: FileSystem | None = None) -> EvidenceRoot:
    around = surroundings(fs, entropy=lambda size: next(numbers).to_bytes(size, "big"))
    return EvidenceRoot.open(base / ".closeout", around)


@pytest.mark.parametrize(("before", "floor"), [(0, 40), (1, 20)])
def test_log_with_record(capsys: pytest.CaptureFixture[str], before: int, floor: int) -> None:
    """E53 C65: no record or a whole one with its log, an acknowledged one always; storing goes on."""
    with fast_folder() as fast:
        base = fast / "base"
        base.mkdir()
        with opened(base, count(1)) as root:
            for _ in range(before):
                root.store(PLACE, make, b"first", 1)
        recording = Recording(base)
        with opened(base, count(1000), recording.fs) as root:
            record, _ = root.store(PLACE, make, LOG, 1)
            recording.acknowledge(record.attempt)
        assert recording.wrong_modes == []
        images = 0
        for image, promised in recording.images():
            images += 1
            place = fast / f"image-{images}"
            image.materialise(place)
            found = judge(place)
            assert found in (list(range(1, before + 1)), list(range(1, before + 2)))
            assert len(found) >= before + len(promised)
        with capsys.disabled():
            print(f"\nlog with record: {images} crash images ", end="")  # noqa: T201 - the count is to be seen
        assert images >= floor


def judge(place: Path) -> list[int]:
    """The attempts of an image, each whole with its log; storing goes on behind them."""
    with opened(place, count(2000)) as root:
        found = [stored.record for stored in root.records()]
        for each in found:
            (artifact,) = each.artifacts
            log = (place / ".closeout" / artifact.path).read_bytes()
            assert digest_bytes(log) == f"sha256:{artifact.sha256}"
        attempts = [each.attempt for each in found]
        assert root.store(PLACE, make, b"next", 1)[0].attempt > max(attempts, default=0)
    assert list((place / ".closeout" / "staging").iterdir()) == []
    assert wrong_modes(place / ".closeout") == []
    return attempts
