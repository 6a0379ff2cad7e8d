"""Seal verification of one large file against hashing the same bytes with hashlib (evidence.md, section 13).

The figure is the rate of verification divided by the rate of hashing.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import BaseModel

from benchmarks.harness import Figure, ratio, report
from skill_effectiveness.evidence.canonical import digest_file
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, verify
from skill_effectiveness.evidence.subjects import FolderSubjects

GOAL = 0.8
SIZE = 256 << 20


class Nothing(BaseModel):
    """A predicate without members."""


def measure(folder: Path) -> float:
    fs, key = RealFs(), Ed25519PrivateKey.generate()
    path = folder / "large.bin"
    with path.open("wb") as file:
        for block in range(SIZE >> 20):
            file.write(bytes([block]) * (1 << 20))
    subject = Subject.of_digest("large.bin", digest_file(fs, path))
    seal = sign(Statement((subject,), PredicateType.BUNDLE, {}), key)

    def hashing() -> None:
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")

    def verifying() -> None:
        source = FolderSubjects(fs, folder, besides=[])
        predicates = {PredicateType.BUNDLE: Nothing}
        assert verify(seal, [key.public_key()], subjects=source, predicates=predicates).passed

    return ratio(hashing, verifying, rounds=5)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        rate = measure(Path(folder))
    return report(Figure("seal_verify", rate, GOAL, at_most=False))


if __name__ == "__main__":
    sys.exit(main())
