"""A root that somebody changes while a sample is taken there: nothing is acknowledged that is not usable."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.actions import BINDERS
from skill_effectiveness.calibration.disturbance import Disturbance
from skill_effectiveness.calibration.errors import CalibrationCode, CallFailed
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.calibration.sample import SampleRequest, Sampling, inspect, take_sample
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from tests.support.commands import codex_that_answers
from tests.support.controller import Controller
from tests.support.examinations import BANK, MANIFEST, Scripted, UnsyncedFs, always, manifest, open_out
from tests.support.private import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.calibration.models import Sample
    from skill_effectiveness.evidence.root import PrivateRoot


def take(root: PrivateRoot, sample_id: str, during: Callable[[], object] = lambda: None) -> Sample:
    provider = Scripted(always("tie"), during=lambda _self: during())
    asked = SampleRequest(sample_id, "model-1", "family-1", 220, MANIFEST)
    return take_sample(root, asked, Sampling(Reviewer.real(provider), manifest, lock_wait=0.0))


def blank(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def private_file(path: Path, data: bytes = b"") -> None:
    path.write_bytes(data)
    path.chmod(0o600)


def a_folder_for_a_lock(root: Path) -> None:
    (root / ".sample.lock").unlink()
    (root / ".sample.lock").mkdir(mode=0o700)


def another_folder(root: Path) -> None:
    root.rename(root.with_name("moved"))
    root.mkdir(mode=0o700)


def a_copy(root: Path) -> None:
    root.rename(root.with_name("moved"))
    shutil.copytree(root.with_name("moved"), root)


def a_link(root: Path) -> None:
    root.rename(root.with_name("moved"))
    root.symlink_to("moved")


CHANGES: dict[str, tuple[Disturbance, Callable[[Path], object]]] = {
    "a blank in the ledger": (Disturbance.RECEIPTS, lambda root: blank(root / "sample-ledger/s-1.json")),
    "a blank in the intent": (Disturbance.RECEIPTS, lambda root: blank(root / "samples/.s-1.intent.json")),
    "a blank in an earlier sample": (Disturbance.RECEIPTS, lambda root: blank(root / "samples/s-0.json")),
    "an earlier observation": (Disturbance.RECEIPTS, lambda root: blank(root / "observations/s-0.json")),
    "no ledger": (Disturbance.RECEIPTS, lambda root: shutil.rmtree(root / "sample-ledger")),
    "a ledger that others may read": (
        Disturbance.RECEIPTS,
        lambda root: (root / "sample-ledger").chmod(0o755),
    ),
    "no orientation key": (Disturbance.RECEIPTS, lambda root: (root / ".orientation.key").unlink()),
    "another orientation key": (Disturbance.RECEIPTS, lambda root: blank(root / ".orientation.key")),
    "a key that others may read": (
        Disturbance.RECEIPTS,
        lambda root: (root / ".orientation.key").chmod(0o644),
    ),
    "a stray": (Disturbance.RECEIPTS, lambda root: private_file(root / "samples/notes.txt")),
    "an id of its own": (Disturbance.RECEIPTS, lambda root: private_file(root / "samples/s-9.json", b"{}\n")),
    "closed": (
        Disturbance.FINALIZATION_INTENT,
        lambda root: private_file(root / ".finalization.intent.json"),
    ),
    "no lock": (Disturbance.SAMPLE_LOCK, lambda root: (root / ".sample.lock").unlink()),
    "a folder for a lock": (Disturbance.SAMPLE_LOCK, a_folder_for_a_lock),
    "moved away": (Disturbance.ARTIFACT_ROOT, lambda root: root.rename(root.with_name("moved"))),
    "moved, and a fresh one": (Disturbance.ARTIFACT_ROOT, another_folder),
    "moved, and a copy": (Disturbance.ARTIFACT_ROOT, a_copy),
    "moved, and a link": (Disturbance.ARTIFACT_ROOT, a_link),
    "open to others": (Disturbance.ARTIFACT_ROOT, lambda root: root.chmod(0o755)),
    "under a folder that others may write": (
        Disturbance.ARTIFACT_ROOT,
        lambda root: root.parent.chmod(0o777),
    ),
}
"""What somebody does to a root that holds the completed sample `s-0`, by what is found then."""


class TestDuringTheCall:
    @pytest.mark.parametrize("change", CHANGES)
    def test_the_answer_does_not_count(self, tmp_path: Path, change: str) -> None:
        """R9 R11: before it is stored; the sentence carries no path."""
        found, alter = CHANGES[change]
        root = open_out(tmp_path)
        take(root, "s-0")
        with pytest.raises(CallFailed) as caught:
            take(root, "s-1", lambda: alter(tmp_path / "out"))
        assert caught.value.code is CalibrationCode.MODEL_CALL_UNRESOLVED
        assert (caught.value.ending, caught.value.detail) == ("binding_changed", found.value)
        assert str(tmp_path) not in caught.value.sentence
        for place in (tmp_path / "out", tmp_path / "moved"):
            assert not [
                name for name in content(place) if name in ("samples/s-1.json", "observations/s-1.json")
            ]


class TestAfterStoring:
    @pytest.mark.parametrize("change", CHANGES)
    def test_nothing_is_acknowledged(self, tmp_path: Path, change: str) -> None:
        """R9: the last look is at the whole root, after the intent was completed."""
        found, alter = CHANGES[change]
        folder = tmp_path / "out"
        intent = folder / "samples/.s-1.intent.json"

        late = Injection(
            "open_dir", about=lambda path: is_last_look(path, intent), before=lambda: alter(folder)
        )
        root = open_out(tmp_path, FaultFs(UnsyncedFs(), late))
        take(root, "s-0")
        with pytest.raises(CallFailed) as caught:
            take(root, "s-1")
        assert caught.value.code is CalibrationCode.SAMPLE_PUBLICATION_FAILED
        assert (caught.value.ending, caught.value.detail) == ("not_stored", found.value)
        assert str(tmp_path) not in caught.value.sentence


def is_last_look(path: str, intent: Path) -> bool:
    """Whether the way down to the root begins when the intent says that the sample is complete."""
    return path == "/" and intent.exists() and b'"completed"' in intent.read_bytes()


class TestUndisturbed:
    def test_a_look_that_fails_for_a_passing_reason_accuses_nobody(self, tmp_path: Path) -> None:
        """R9: the answer does not count all the same."""
        asked: list[str] = []
        fs = FaultFs(
            UnsyncedFs(), Injection("open_dir", errno.EMFILE, about=lambda path: bool(asked) and path == "/")
        )
        with pytest.raises(CallFailed) as caught:
            take(open_out(tmp_path, fs), "s-1", lambda: asked.append("s-1"))
        assert (caught.value.ending, caught.value.detail) == ("unconfirmed", "io_error")
        assert caught.value.code is CalibrationCode.MODEL_CALL_UNRESOLVED

    def test_five_samples_are_acknowledged_and_found(self, tmp_path: Path) -> None:
        root = open_out(tmp_path)
        stored = {sample_id: take(root, sample_id) for sample_id in ("s-1", "s-2", "s-3", "s-4", "s-5")}
        found = inspect(open_out(tmp_path)).complete
        assert {name: complete.sample for name, complete in found.items()} == stored


class TestByTheReviewerItself:
    """A real program under our own user, at the door of a controller."""

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            ("open('root/sample-ledger/s-1.json', 'a').write(' ')", Disturbance.RECEIPTS),
            ("os.unlink('root/.orientation.key')", Disturbance.RECEIPTS),
            ("os.rename('root', 'moved')", Disturbance.ARTIFACT_ROOT),
            ("os.rename('root', 'moved'); os.mkdir('root', 0o700)", Disturbance.ARTIFACT_ROOT),
        ],
    )
    def test_its_answer_is_not_acknowledged(self, tmp_path: Path, change: str, found: Disturbance) -> None:
        """R9: whoever asks hears now, not at the next request, that the root is of no use."""
        program = codex_that_answers(
            tmp_path / "codex", BANK, before=f"os.chdir({str(tmp_path)!r}); {change}\n"
        )
        controller = Controller(tmp_path, settings={"binders": BINDERS})
        reply = controller.sample(executable=str(program))
        assert (reply.exit_code, reply.word) == (3, "model_call_unresolved")
        assert f"changed during the call: {found}." in reply.told
        assert str(tmp_path) not in reply.told
