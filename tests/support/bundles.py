"""Bundles of small judged studies, and bundles that somebody with the key has made wrong."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, unverified
from skill_effectiveness.studies.bundle import seal_study
from skill_effectiveness.studies.bundle_form import ENVELOPE, PREDICATES, root_text, tree_over
from skill_effectiveness.studies.reporting import report_study
from skill_effectiveness.studies.verification import verify_bundle
from tests.support.judged_studies import JudgedStudy, ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from skill_effectiveness.studies.bundle import SealedBundle
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.verification import StudyVerification


@dataclass(frozen=True)
class Bundle:
    """A bundle and the key that signed it."""

    path: Path
    key: Ed25519PrivateKey

    def verify(self) -> StudyVerification:
        """What a stranger finds."""
        return verify_bundle(self.path, self.key.public_key(), fs=RealFs())

    def words(self) -> dict[int, bool | None]:
        """How each check came out."""
        return {check.number: check.passed for check in self.verify().checks}

    def failed(self) -> set[int]:
        """The checks that failed."""
        return {number for number, passed in self.words().items() if passed is False}

    def copy(self, place: Path) -> Bundle:
        """The same in another place."""
        shutil.copytree(self.path, place)
        return Bundle(place, self.key)

    def files(self) -> list[str]:
        """Every file, the seal included."""
        found = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.path)) for path in found)

    def edit(self, name: str, old: bytes, new: bytes) -> None:
        """Replace bytes of a file once."""
        data = (self.path / name).read_bytes()
        assert old in data
        (self.path / name).write_bytes(data.replace(old, new, 1))

    def reseal(self, *, key: Ed25519PrivateKey | None = None, **claims: object) -> None:
        """Sign whatever lies there, as somebody with the key could; `claims` replace what the seal says."""
        _, former = unverified((self.path / ENVELOPE).read_bytes(), PREDICATES)
        held = [
            (name, len(data), digest_bytes(data))
            for name in self.files()
            if name != ENVELOPE
            for data in [(self.path / name).read_bytes()]
        ]
        tree = tree_over(held)
        predicate = former.model_dump(mode="json")
        predicate |= {"merkle_root": root_text(tree.root), "tree_size": tree.size} | claims
        subjects = tuple(Subject.of_digest(name, digest) for name, _, digest in held)
        sealed = sign(Statement(subjects, PredicateType.BUNDLE, predicate), key or self.key)
        (self.path / ENVELOPE).write_bytes(sealed)

    def rejournal(self, change: Callable[[list[dict[str, Any]]], None]) -> None:
        """Change the rows of the journal and sign a whole chain of them, as somebody with the key could."""
        journal, pin = self.path / "journal" / "000001.jsonl", self.path / "journal" / "head.json"
        found = [json.loads(line) for line in journal.read_bytes().splitlines()]
        change(found)
        lines, head = [], "sha256:" + "0" * 64
        for number, row in enumerate(found):
            lines.append(dump_line(row | {"prev": head, "seq": number}))
            head = digest_bytes(lines[-1][:-1])
        data = b"".join(lines)
        journal.write_bytes(data)
        held = json.loads(pin.read_bytes()) | {"count": len(lines), "head": head, "offset": len(data)}
        pin.write_bytes(dump_line(held))
        self.reseal(journal={"journal_id": held["journal_id"], "count": len(lines), "head": head})

    def document(self, name: str) -> dict[str, Any]:
        """A file as JSON."""
        found: dict[str, Any] = json.loads((self.path / name).read_bytes())
        return found


def report(study: JudgedStudy, abandon: str | None = None) -> Results:
    """Make the report of a study."""
    with study.opened() as (root, journal):
        return report_study(root, journal, abandon=abandon)


def seal(study: JudgedStudy, out: str = "B", key: Ed25519PrivateKey | None = None) -> SealedBundle:
    """Seal a study into a folder beside it."""
    target = PrivateRoot.create(
        study.place.folder / out, RootKind.OUT, around=study.place.around, checkout=None
    )
    with target, study.opened() as (root, journal):
        return seal_study(root, journal, target, key or study.place.key)


def bundle_of(study: JudgedStudy, out: str = "B") -> Bundle:
    """The bundle of a study that was sealed."""
    return Bundle(study.place.folder / out, study.place.key)


@contextmanager
def judged(folder: Path, **given: object) -> Iterator[JudgedStudy]:
    """A study that was run and judged, ready for its report."""
    with ready(folder, **given) as study:
        if study.place.open(study.out).plan.reviewers:
            study.judge()
        yield study


def sealed_study(folder: Path, **given: object) -> Bundle:
    """A judged study with its report, sealed."""
    with judged(folder, **given) as study:
        report(study)
        seal(study)
        return bundle_of(study)
