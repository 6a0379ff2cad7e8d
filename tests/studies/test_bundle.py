"""Sealing a study, what a bundle holds and what it never does, and one trial taken out of it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import public_key_id
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.bundle import prove, seal_study
from skill_effectiveness.studies.bundle_form import ENVELOPE, INCLUSION, belongs
from skill_effectiveness.studies.errors import StudyCode, StudyError
from tests.support.bundles import Bundle, bundle_of, judged, report, seal, sealed_study
from tests.support.private import surroundings, wrong_modes
from tests.support.study_runs import types_of

if TYPE_CHECKING:
    from pathlib import Path

TRIAL = "note-amber/profile-full/sample-001"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return sealed_study(tmp_path_factory.mktemp("sealed"))


class TestSeal:
    def test_again(self, tmp_path: Path) -> None:
        """S57: the same bundle, and one row."""
        with judged(tmp_path) as study:
            report(study)
            first = seal(study)
            held = bundle_of(study)
            before = {name: (held.path / name).read_bytes() for name in held.files()}
            assert seal(study) == first
            assert {name: (held.path / name).read_bytes() for name in held.files()} == before
            assert types_of(study.place).count("sealed") == 1
            assert seal(study, "C") == first
            assert wrong_modes(held.path) == []

    def test_a_bundle_that_was_begun_is_completed(self, tmp_path: Path) -> None:
        """S65: whoever was killed in between goes on; without the envelope it is no bundle."""
        with judged(tmp_path) as study:
            report(study)
            seal(study)
            held = bundle_of(study)
            (held.path / ENVELOPE).unlink()
            shutil.rmtree(held.path / "votes")
            (held.path / "trials" / ".x.0123456789abcdef.tmp").write_bytes(b"")
            assert not held.verify().passed
            (held.path / "trials" / ".x.0123456789abcdef.tmp").unlink()
            seal(study)
            assert held.verify().passed

    @pytest.mark.parametrize(("operation", "nth"), [("write", 1), ("write", 9), ("fsync", 30), ("link", 25)])
    def test_a_full_disk(self, tmp_path: Path, operation: str, nth: int) -> None:
        """S65: what was begun is completed by the same call, and nothing in between verifies."""
        with judged(tmp_path) as study:
            report(study)
            full = surroundings(FaultFs(RealFs(), Injection(operation, 28, nth=nth)))
            target = PrivateRoot.create(tmp_path / "B", RootKind.OUT, around=full, checkout=None)
            with pytest.raises(EvidenceError), target, study.opened(full) as (root, journal):
                seal_study(root, journal, target, study.place.key)
            held = bundle_of(study)
            assert not held.verify().passed
            seal(study)
            assert held.verify().passed
            assert types_of(study.place).count("sealed") == 1

    def test_no_report(self, tmp_path: Path) -> None:
        """S1: refused; nothing is sealed before it was analysed."""
        with judged(tmp_path) as study:
            with pytest.raises(StudyError) as refused:
                seal(study)
            assert refused.value.code is StudyCode.REPORT_MISSING

    def test_an_edited_report(self, tmp_path: Path) -> None:
        """S65: refused before anything is copied."""
        with judged(tmp_path) as study:
            report(study)
            table = study.place.folder / study.out / "report" / "trials.csv"
            table.write_bytes(table.read_bytes().replace(b"completed", b"crashed"))
            with pytest.raises(StudyError) as refused:
                seal(study)
            assert refused.value.code is StudyCode.REPORT_CHANGED
            assert "sealed" not in types_of(study.place)

    def test_another_key(self, tmp_path: Path) -> None:
        """S1: one public key must do for plan and bundle."""
        with judged(tmp_path) as study:
            report(study)
            with pytest.raises(StudyError) as refused:
                seal(study, key=Ed25519PrivateKey.generate())
            assert refused.value.code is StudyCode.PLAN_SEAL

    def test_an_occupied_folder(self, tmp_path: Path) -> None:
        """S65: what no seal would name is not sealed in."""
        with judged(tmp_path) as study:
            report(study)
            target = study.place.folder / "B"
            target.mkdir(mode=0o700)
            (target / "notes.txt").write_bytes(b"mine")
            with pytest.raises(StudyError) as refused:
                seal(study)
            assert refused.value.code is StudyCode.BUNDLE_OCCUPIED
            assert [path.name for path in target.iterdir()] == ["notes.txt"]


class TestContents:
    def test_no_secret(self, tmp_path: Path) -> None:
        """S63: no key, no private run order, no hidden test, no collected tree; not even their bytes."""
        with judged(tmp_path) as study:
            root = study.place.folder / study.out
            blinding = (root / "blinding.key").read_bytes()
            (root / "keys").mkdir(mode=0o700)
            (root / "keys" / "mine.key").write_bytes(b"4c5f-not-for-strangers")
            report(study)
            seal(study)
            held = bundle_of(study)
        everything = b"".join((held.path / name).read_bytes() for name in held.files())
        assert blinding not in everything
        assert b"BEGIN" not in everything.replace(b"BEGIN_", b"")
        assert b"#!/bin/bash" not in everything
        assert b"4c5f-not-for-strangers" not in everything
        tops = {name.split("/")[0] for name in held.files()}
        assert tops == {
            "assays", "attempts", "blinding", "bundle.dsse.json", "commitments.jsonl", "frozen.json",
            "journal", "licences", "openings.jsonl", "plan.dsse.json", "plan.json", "report", "root.json",
            "status.json", "study.yaml", "trials", "votes",
        }  # fmt: skip
        of_attempts = {name.split("/")[-1] for name in held.files() if name.startswith("attempts/")}
        assert of_attempts == {"exit.json", "tree.json"}

    @pytest.mark.parametrize(
        ("path", "goes"),
        [
            ("plan.json", True),
            ("private/allocation.json", False),
            ("blinding.key", False),
            ("crash/x.json", False),
            ("inputs/" + "0" * 64, False),
            ("attempts/1/a1/exit.json", True),
            ("attempts/1/a1/stream.jsonl", False),
            ("attempts/1/a1/stderr.bin", False),
            ("attempts/1/a1/collected/exit.json", False),
            ("trials/t/a/sample-001/.trial.lock", False),
            ("trials/t/a/sample-001/trial.json", True),
            (".study.lock", False),
            ("journal/torn/0-ab.bin", True),
            ("keys/study.key", False),
        ],
    )
    def test_what_goes_in(self, path: str, *, goes: bool) -> None:
        """S63: by list, so nothing that was not thought of."""
        assert belongs(path) is goes

    def test_the_seed_is_secret_until_then(self, tmp_path: Path) -> None:
        """S18 S63: nothing that a bundle takes over tells the seed before arms are known."""
        with judged(tmp_path) as study:
            root = study.place.folder / study.out
            seed = bytes(32).hex().encode()
            told = [path for path in root.rglob("*") if path.is_file() and seed in path.read_bytes()]
            assert {str(path.relative_to(root)).split("/")[0] for path in told} <= {"private", "journal"}
            assert not any(b'"seed"' in path.read_bytes() for path in told if path.parent.name == "journal")


def test_a_foreign_client(whole: Bundle) -> None:
    """S61: securesystemslib accepts the envelope, and refuses it for another key."""
    envelope = Envelope.from_dict(json.loads((whole.path / ENVELOPE).read_bytes()))
    for key, holds in ((whole.key, True), (Ed25519PrivateKey.generate(), False)):
        public = key.public_key()
        foreign = SSlibKey.from_crypto(public, public_key_id(whole.key.public_key()))
        if holds:
            assert len(envelope.verify([foreign], 1)) == 1
        else:
            with pytest.raises(VerificationError):
                envelope.verify([foreign], 1)


class TestProof:
    def proof(self, whole: Bundle, place: Path, trial: str = TRIAL) -> Bundle:
        with PrivateRoot.create(place, RootKind.OUT, around=surroundings(), checkout=None) as target:
            prove(RealFs(), whole.path, trial, target)
        return Bundle(place, whole.key)

    def test_one_trial(self, whole: Bundle, tmp_path: Path) -> None:
        """S62: its files and attempts, two checks, and no others are made."""
        held = self.proof(whole, tmp_path / "D")
        found = held.verify()
        assert found.passed
        assert found.trial == TRIAL
        assert found.results is None
        words = {check.number: check.passed for check in found.checks}
        assert {number for number, passed in words.items() if passed} == {1, 3}
        assert {words[number] for number in set(range(1, 15)) - {1, 3}} == {None}
        assert {f"trials/{TRIAL}/trial.json", ENVELOPE, INCLUSION} <= set(held.files())
        assert any(name.startswith("attempts/") for name in held.files())

    @pytest.mark.parametrize("spoilt", ["byte", "more", "less", "index", "other_key", "garbage"])
    def test_spoilt(self, whole: Bundle, tmp_path: Path, spoilt: str) -> None:
        """S62: whatever is changed, it proves nothing."""
        held = self.proof(whole, tmp_path / "D")
        match spoilt:
            case "byte":
                held.edit(f"trials/{TRIAL}/outcome/result.json", b"completed", b"complatad")
            case "more":
                (held.path / "trials" / "more.txt").write_bytes(b"")
            case "less":
                (held.path / "trials" / TRIAL / "trial.json").unlink()
            case "index":
                held.edit(INCLUSION, b'"leaf_index":', b'"leaf_index":1')
            case "garbage":
                (held.path / INCLUSION).write_bytes(b"\x00")
            case _:
                held = Bundle(held.path, Ed25519PrivateKey.generate())
        assert not held.verify().passed

    @pytest.mark.parametrize("part", ["grading/grade.json", "events.jsonl"])
    def test_a_part_left_out(self, whole: Bundle, tmp_path: Path, part: str) -> None:
        """S62: the names that were sealed say what a trial has, so that nothing of it can be kept back."""
        held = self.proof(whole, tmp_path / "D")
        proofs = held.document(INCLUSION)
        proofs["files"] = [one for one in proofs["files"] if not one["path"].endswith(part)]
        (held.path / INCLUSION).write_bytes(dump_line(proofs))
        (held.path / "trials" / TRIAL / part).unlink()
        assert held.failed() == {3}
        assert f"{part} was sealed of this trial" in held.verify().checks[2].sentence

    def test_another_trials_name(self, whole: Bundle, tmp_path: Path) -> None:
        """S62: the proofs of one trial do not pass for those of another."""
        held = self.proof(whole, tmp_path / "D")
        other = TRIAL.replace("profile-full", "profile-off")
        (held.path / INCLUSION).write_bytes(dump_line(held.document(INCLUSION) | {"trial": other}))
        assert held.failed() == {3}

    def test_a_bundle_is_never_taken_for_a_proof(self, whole: Bundle, tmp_path: Path) -> None:
        """S60 S62: a proof beside a whole bundle does not make the other checks go away."""
        proof = self.proof(whole, tmp_path / "D")
        copy = whole.copy(tmp_path / "copy")
        shutil.copyfile(proof.path / INCLUSION, copy.path / INCLUSION)
        assert copy.failed() == {2}

    def test_no_such_trial(self, whole: Bundle, tmp_path: Path) -> None:
        """S62: refused, nothing written."""
        with pytest.raises(StudyError) as refused:
            self.proof(whole, tmp_path / "D", "note-amber/profile-full/sample-009")
        assert refused.value.code is StudyCode.TRIAL_UNKNOWN
        assert list((tmp_path / "D").iterdir()) == []

    def test_a_changed_bundle_proves_nothing(self, whole: Bundle, tmp_path: Path) -> None:
        copy = whole.copy(tmp_path / "copy")
        copy.edit("report/trials.csv", b"completed", b"complatad")
        with pytest.raises(StudyError) as refused:
            self.proof(copy, tmp_path / "D")
        assert refused.value.code is StudyCode.BUNDLE_INVALID
