"""Verifying the bundle of a study against hashing the same bytes with hashlib (studies.md, section 9).

The figure is the rate of all fourteen checks divided by that of hashing, over a bundle of large files: there
the bytes decide. Over thousands of small ones opening them and reading the seal does, and of a bundle without
padding it is the analysis that is made again; both are printed and held against nothing.
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

GOAL = 0.8
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


def measure(bundle: Bundle) -> float:
    def verifying() -> None:
        assert bundle.verify().passed

    return ratio(hashed(bundle), verifying, rounds=3)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o700)
        whole = sealed_study(place / "study")
        start = time.perf_counter()
        assert whole.verify().passed
        print(f"study_verify_analysis seconds={time.perf_counter() - start:.2f} files={len(whole.files())}")
        print(
            f"study_verify_small ratio={measure(padded(whole, place / 'small', *SMALL)):.3f} files={SMALL[0]}"
        )
        rate = measure(padded(whole, place / "large", *LARGE))
    return report(Figure("study_verify", rate, GOAL, at_most=False))


if __name__ == "__main__":
    sys.exit(main())
