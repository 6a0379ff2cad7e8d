"""Studies for tests: the example of the product in a temporary folder, and plans of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.keys import load_signing_key, new_signing_key
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.checks import CheckName, CheckReport, CheckResult, CheckStatus
from skill_effectiveness.studies.example import example_files
from skill_effectiveness.studies.loading import load_study
from skill_effectiveness.studies.planning import PlanRequest, plan_study
from skill_effectiveness.studies.root import StudyRoot
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.plan import StudyPlan

SEED = bytes(32)
MANIFEST = "sha256:" + "e" * 64
CHECKED = CheckReport(tuple(CheckResult(name, CheckStatus.PASS) for name in CheckName), oracle_needed=True)
"""A report in which everything passed, for tests that have no use for the scripts' being run."""


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder; answers the folder."""
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def example(
    folder: Path, *, tasks: int = 2, name: str = "first", edits: Mapping[str, str] | None = None
) -> Path:
    """The example in `folder/<name>`; in its study file each key of `edits` is replaced by its value."""
    files = dict(example_files(name, tasks=tasks))
    text = files["study.yaml"].decode()
    for old, new in (edits or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    return write(folder / name, files | {"study.yaml": text.encode()})


def loaded(folder: Path, around: Surroundings | None = None) -> LoadedStudy:
    """The study in a folder."""
    return load_study((around or surroundings()).fs, folder / "study.yaml")


@dataclass(frozen=True)
class Bench:
    """A place to plan in: a state root with a key."""

    folder: Path
    around: Surroundings
    state: PrivateRoot
    key: Ed25519PrivateKey

    def request(self, study: Path, out: str = "R", **others: object) -> PlanRequest:
        """An order to plan a study; by default nothing of its scripts is run."""
        request = PlanRequest(
            loaded=loaded(study, self.around),
            out=self.folder / out,
            key=self.key,
            trusted=[self.key.public_key()],
            around=self.around,
            checkout=None,
            state=self.state,
            seed=SEED,
            checked=CHECKED,
            manifest=lambda: MANIFEST,
        )
        return replace(request, **others)  # type: ignore[arg-type]

    def plan(self, study: Path, out: str = "R", **others: object) -> StudyPlan:
        """The plan of a study, in `out`."""
        planned = plan_study(self.request(study, out, **others)).plan
        assert planned is not None
        return planned

    def open(self, out: str = "R") -> StudyRoot:
        """A study that was planned."""
        return StudyRoot.open(self.folder / out, around=self.around, checkout=None)


@contextmanager
def bench(folder: Path, around: Surroundings | None = None) -> Iterator[Bench]:
    """A place to plan in below a folder."""
    known = around or surroundings()
    with PrivateRoot.create(folder / "state", RootKind.STATE, around=known, checkout=None) as state:
        new_signing_key(state, "study")
        yield Bench(folder, known, state, load_signing_key(state, "study"))
