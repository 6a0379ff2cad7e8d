"""Verifying the bundle of a study against hashing the same bytes with hashlib (studies.md, section 9).

The figure is the rate of all fourteen checks divided by that of hashing, over a bundle of large files: there
the bytes decide. Over thousands of small ones opening them and reading the seal does, and of a bundle without
padding it is the analysis that is made again; both are printed and held against nothing. So is the ratio of
processor times, which stays the same on a busy machine.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Figure, ratio, report
from tests.support.bundles import Bundle, sealed_study

if TYPE_CHECKING:
    from collections.abc import Callable

GOAL, ROUNDS = 0.8, 7
LARGE, SMALL = (4, 256 << 20), (4_096, 32 << 10)


def padded(source: Bundle, place: Path, files: int, size: int) -> Bundle:
    """A copy with padding, as so many former reports of `size` bytes each, sealed anew."""
    bundle = source.copy(place)
    history = place / "report" / "history"
    history.mkdir(parents=True)
    for number in range(files):
        made = history / "made"
        with made.open("wb") as file:
            file.write(number.to_bytes(8, "big"))
            # Without blocks on the disk, so that none is measured.
            file.truncate(size)
        with made.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        made.rename(history / f"report-{digest}.html")
    bundle.reseal()
    return bundle


def hashed(bundle: Bundle) -> Callable[[], object]:
    """The rival: every file of the bundle through hashlib, by plain paths."""

    def hashing() -> None:
        for name in bundle.files():
            with (bundle.path / name).open("rb") as file:
                hashlib.file_digest(file, "sha256")

    return hashing


def verified(bundle: Bundle) -> Callable[[], object]:
    """Ours."""

    def verifying() -> None:
        assert bundle.verify().passed

    return verifying


def processor_seconds(work: Callable[[], object]) -> float:
    """The least processor time of a few turns."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o700)
        whole = sealed_study(place / "study")
        start = time.perf_counter()
        assert whole.verify().passed
        print(f"study_verify_analysis seconds={time.perf_counter() - start:.2f} files={len(whole.files())}")
        small = padded(whole, place / "small", *SMALL)
        rate = ratio(hashed(small), verified(small), rounds=ROUNDS)
        print(f"study_verify_small ratio={rate:.3f} files={SMALL[0]}")
        large = padded(whole, place / "large", *LARGE)
        rate = ratio(hashed(large), verified(large), rounds=ROUNDS)
        processor = processor_seconds(hashed(large)) / processor_seconds(verified(large))
        print(f"study_verify_processor ratio={processor:.3f}")
    return report(Figure("study_verify", rate, GOAL, at_most=False))


if __name__ == "__main__":
    sys.exit(main())
