from __future__ import annotations

import base64
import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from skill_effectiveness.calibration.errors import ExaminationRefused, PairRefused, RefusalCode
from skill_effectiveness.calibration.sealing import (
    SEAL,
    FolderVerification,
    NumberedCheck,
    seal_pair,
    verify_folder,
)
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.envelope import seal_payload
from skill_effectiveness.evidence.faults import FileCode, FileError, PairCode, PairError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import public_key_id, public_pem
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign
from tests.support.examinations import Anything, open_out
from tests.support.frozen import CopiedFs
from tests.support.private import content, wrong_modes
from tests.support.published import VARIANTS, Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.root import PrivateRoot

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"


def publish(folder: Path, found: Pair, name: str = "out") -> PrivateRoot:
    """A folder with this pair in it."""
    root = open_out(folder, name=name)
    stem = "bias-probe" if found.inputs.bank.name == "bias-probe" else "reviewer-calibration"
    root.publish(f"{stem}.json", found.evidence)
    root.publish(f"{stem}-result.json", found.result)
    return root


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A sealed folder of a real reviewer's pair."""
    seal_pair(publish(tmp_path, VARIANTS["real"]), KEY, open_out(tmp_path, name="sealed"))
    return tmp_path / "sealed"


def verify(folder: Path, key: Anything = PUBLIC) -> FolderVerification:
    return verify_folder(folder, key, fs=RealFs())


def failed(folder: Path, key: Anything = PUBLIC) -> list[int]:
    """Numbers of the failed checks; nothing is handed out with one."""
    found = verify(folder, key)
    numbers = [check.number for check in found.checks if check.passed is False]
    assert numbers
    assert (found.passed, found.calibration) == (False, None)
    assert [check.number for check in found.checks] == list(range(1, 11))
    return numbers


class TestSealing:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_a_sealed_pair_of_every_variant_verifies(self, tmp_path: Path, variant: str) -> None:
        """R45: ten checks, all passed."""
        found = VARIANTS[variant]
        seal_pair(publish(tmp_path, found), KEY, open_out(tmp_path, name="sealed"))
        verification = verify(tmp_path / "sealed")
        assert verification.passed
        assert [check.passed for check in verification.checks] == 10 * [True]
        assert verification.calibration is not None
        assert verification.calibration.synthetic is ("simulated" in variant)
        assert wrong_modes(tmp_path / "sealed") == []
        assert len(content(tmp_path / "sealed")) == 3

    def test_the_predicate_says_what_the_pair_says(self, sealed: Path) -> None:
        """R43 R45: read from the bytes that were signed."""
        envelope = json.loads((sealed / SEAL).read_bytes())
        statement = json.loads(base64.b64decode(envelope["payload"]))
        result = json.loads(VARIANTS["real"].result)
        assert statement["predicateType"] == "urn:skill-effectiveness:calibration:v1"
        assert [subject["name"] for subject in statement["subject"]] == [RESULT, EVIDENCE]
        assert statement["predicate"] == {
            "schema_version": 1,
            "calibration_status": "pass",
            "provider": "codex",
            "model": "model-1",
            "reviewer_family": "family-1",
            "provider_executable_hash": result["provider_executable_hash"],
            "runner_hash": result["runner_hash"],
            "synthetic": False,
        }

    def test_a_foreign_client_verifies_it(self, sealed: Path) -> None:
        """R45: DSSE as anybody speaks it."""
        envelope = Envelope.from_dict(json.loads((sealed / SEAL).read_bytes()))
        keyid = public_key_id(PUBLIC)
        pem = public_pem(PUBLIC).decode()
        key = SSlibKey(keyid, "ed25519", "ed25519", {"public": PUBLIC.public_bytes_raw().hex()})
        assert pem.startswith("-----BEGIN PUBLIC KEY-----")
        assert envelope.verify([key], 1).keys() == {keyid}

    def test_doing_it_again_changes_nothing(self, tmp_path: Path, sealed: Path) -> None:
        before = content(sealed)
        seal_pair(open_out(tmp_path), KEY, open_out(tmp_path, name="sealed"))
        assert content(sealed) == before

    def test_an_interrupted_seal_is_completed(self, tmp_path: Path) -> None:
        """The seal is written last, so that there is none beside half a copy."""
        source = publish(tmp_path, VARIANTS["real"])
        full = Injection("link", errno.ENOSPC, about=lambda path: SEAL in path)
        with pytest.raises(FileError):
            seal_pair(source, KEY, open_out(tmp_path, FaultFs(RealFs(), full), "sealed"))
        assert set(content(tmp_path / "sealed")) == {EVIDENCE, RESULT}
        seal_pair(source, KEY, open_out(tmp_path, name="sealed"))
        assert verify(tmp_path / "sealed").passed

    @pytest.mark.parametrize("names", [(), (EVIDENCE,), (RESULT,)])
    def test_half_a_pair_is_not_sealed(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        """R19: and nothing is written."""
        source = publish(tmp_path, VARIANTS["real"])
        for name in {EVIDENCE, RESULT} - set(names):
            source.remove(name)
        with pytest.raises(PairError) as caught:
            seal_pair(source, KEY, open_out(tmp_path, name="sealed"))
        assert caught.value.code is PairCode.PAIR_INCOMPLETE
        assert content(tmp_path / "sealed") == {}

    def test_a_tampered_pair_is_not_sealed(self, tmp_path: Path) -> None:
        source = publish(tmp_path, VARIANTS["failed"])
        source.replace(RESULT, VARIANTS["failed"].result.replace(b'"fail"', b'"pass"'))
        with pytest.raises(PairRefused):
            seal_pair(source, KEY, open_out(tmp_path, name="sealed"))
        assert content(tmp_path / "sealed") == {}

    def test_a_folder_that_holds_something_is_refused(self, tmp_path: Path) -> None:
        target = open_out(tmp_path, name="sealed")
        target.publish("notes.txt", b"x")
        with pytest.raises(ExaminationRefused) as caught:
            seal_pair(publish(tmp_path, VARIANTS["real"]), KEY, target)
        assert caught.value.code is RefusalCode.TARGET_OCCUPIED
        assert set(content(tmp_path / "sealed")) == {"notes.txt"}

    def test_no_key_byte_is_written(self, sealed: Path) -> None:
        """E51: raw, hex or base64."""
        secret = bytes(range(32))
        for data in content(sealed).values():
            assert secret not in data
            assert secret.hex().encode() not in data
            assert base64.b64encode(secret) not in data


class TestVerifying:
    @pytest.mark.parametrize("name", [EVIDENCE, RESULT])
    def test_every_changed_byte_of_a_document_is_found(self, sealed: Path, name: str) -> None:
        """R45: check 8, at the beginning, in the middle and at the end."""
        whole = (sealed / name).read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            changed = bytearray(whole)
            changed[place] ^= 1
            (sealed / name).write_bytes(bytes(changed))
            assert failed(sealed) == [8]

    def test_every_changed_byte_of_the_seal_is_found(self, sealed: Path) -> None:
        """R45: by one of the checks 1 to 7, and never passed."""
        whole = (sealed / SEAL).read_bytes()
        for place in range(0, len(whole), 7):
            changed = bytearray(whole)
            changed[place] ^= 1
            (sealed / SEAL).write_bytes(bytes(changed))
            assert set(failed(sealed)) <= set(range(1, 8)), place

    @pytest.mark.parametrize(
        "make", [lambda path: path.write_bytes(b""), Path.mkdir, lambda path: path.symlink_to(SEAL)]
    )
    def test_a_third_file_is_found(self, sealed: Path, make: Callable[[Path], object]) -> None:
        """R45: check 9, whatever it is."""
        make(sealed / "third")
        assert failed(sealed) == [9]

    @pytest.mark.parametrize("name", [EVIDENCE, RESULT])
    def test_a_missing_file_is_found(self, sealed: Path, name: str) -> None:
        """R19 R45: half a pair."""
        (sealed / name).unlink()
        assert failed(sealed) == [8]

    def test_another_key_is_found(self, sealed: Path) -> None:
        """R45: check 4, and nothing after it is run."""
        found = verify(sealed, STRANGER)
        assert [check.passed for check in found.checks] == [True, True, True, False, *6 * [None]]
        assert found.checks[-1] == NumberedCheck(
            10, "pair", None, "Step 10 (pair): not run, because an earlier step failed."
        )

    @pytest.mark.parametrize(
        "predicate_type", [each for each in PredicateType if each is not PredicateType.CALIBRATION]
    )
    def test_another_predicate_type_is_found(self, sealed: Path, predicate_type: PredicateType) -> None:
        """R45: check 6, though the signature is good."""
        reseal(sealed, predicate_type=predicate_type)
        assert failed(sealed) == [6]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("calibration_status", "fail"),
            ("provider", "simulated"),
            ("model", "model-2"),
            ("reviewer_family", "family-2"),
            ("provider_executable_hash", "sha256:" + 64 * "0"),
            ("runner_hash", "sha256:" + 64 * "0"),
            ("synthetic", True),
        ],
    )
    def test_a_predicate_that_says_otherwise_is_found(
        self, sealed: Path, field: str, value: Anything
    ) -> None:
        """R43 R45: check 10, even from the right key."""
        reseal(sealed, **{field: value})
        assert failed(sealed) == [10]

    @pytest.mark.parametrize(
        "change", [{"schema_version": 2}, {"synthetic": 1}, {"extra": 1}, {"model": None}]
    )
    def test_a_predicate_of_another_form_is_found(self, sealed: Path, change: dict[str, Anything]) -> None:
        """R45: check 7."""
        reseal(sealed, **change)
        assert failed(sealed) == [7]

    def test_a_sealed_pair_that_does_not_load_is_found(self, sealed: Path) -> None:
        """R19: check 10; a signature makes nothing true."""
        forged = (sealed / RESULT).read_bytes().replace(b'"pass"', b'"fail"')
        (sealed / RESULT).write_bytes(forged)
        reseal(sealed, calibration_status="fail")
        assert failed(sealed) == [10]

    def test_a_seal_over_other_files_is_found(self, sealed: Path) -> None:
        """Exactly the two files of one pair."""
        (sealed / EVIDENCE).rename(sealed / "other.json")
        reseal(sealed)
        assert failed(sealed) == [10]

    def test_a_seal_over_three_files_is_found(self, sealed: Path) -> None:
        (sealed / "third.json").write_bytes(b"{}\n")
        reseal(sealed)
        assert failed(sealed) == [10]

    def test_a_document_larger_than_any_pair_is_found(
        self, sealed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("skill_effectiveness.calibration.sealing.READ_LIMIT", 100)
        assert failed(sealed) == [10]

    def test_a_broken_installation_is_found(self, sealed: Path, tmp_path: Path) -> None:
        """The frozen inputs of the reader are part of the check."""
        fs = CopiedFs(tmp_path)
        fs.path("fixtures/pilot-gates.json").write_bytes(b"{}")
        found = verify_folder(sealed, PUBLIC, fs=fs)
        assert [check.number for check in found.checks if check.passed is False] == [10]

    def test_a_converted_file_is_told_as_such(self, sealed: Path) -> None:
        """E50: line endings."""
        (sealed / RESULT).write_bytes((sealed / RESULT).read_bytes().replace(b"\n", b"\r\n"))
        told = [check.sentence for check in verify(sealed).checks if check.passed is False]
        assert "line endings differ" in told[0]

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda path: path.write_bytes(b""),
            lambda path: path.write_bytes(os.urandom(4096)),
            lambda path: path.write_bytes(b"[" * 100_000),
            lambda path: path.write_bytes(b" " * 2_000_000),
            lambda path: (path.unlink(), path.mkdir()),
            lambda path: (path.unlink(), os.mkfifo(path)),
            lambda path: (path.unlink(), path.symlink_to(RESULT)),
        ],
        ids=["empty", "random", "deep", "large", "folder", "fifo", "link"],
    )
    def test_garbage_in_the_place_of_the_seal_is_a_failed_check(self, sealed: Path, spoil: Anything) -> None:
        """F45: never an error, and never a wait."""
        spoil(sealed / SEAL)
        assert failed(sealed) == [1]
        assert verify(sealed).checks[0].sentence.startswith("Step 1 (envelope shape): ")

    def test_without_folder_or_seal_there_is_nothing_to_judge(self, sealed: Path, tmp_path: Path) -> None:
        (sealed / SEAL).unlink()
        for folder in (sealed, tmp_path / "nowhere"):
            with pytest.raises(FileError) as caught:
                verify(folder)
            assert caught.value.code is FileCode.MISSING

    def test_a_public_copy_verifies(self, sealed: Path, tmp_path: Path) -> None:
        """A stranger's copy is not private, and need not be."""
        copy = tmp_path / "copy"
        copy.mkdir(mode=0o755)
        for name, data in content(sealed).items():
            (copy / name).write_bytes(data)
            (copy / name).chmod(0o644)
        assert verify(copy).passed

    def test_what_is_handed_out_is_what_was_checked(self, sealed: Path) -> None:
        """A file exchanged after its digest was taken is not read again."""
        real = (sealed / RESULT).read_bytes()
        opened: list[str] = []

        def exchange() -> None:
            opened.append(RESULT)
            if len(opened) > 1:
                (sealed / RESULT).write_bytes(real.replace(b"model-1", b"model-9"))

        watching = Injection("open_read", nth=0, about=lambda path: path.endswith(RESULT), before=exchange)
        found = verify_folder(sealed, PUBLIC, fs=FaultFs(RealFs(), watching))
        assert found.calibration is not None
        assert found.calibration.result.model == "model-1"
        assert len(opened) == 1


def reseal(folder: Path, *, predicate_type: PredicateType | None = None, **changes: Anything) -> None:
    """Seal what lies in a folder anew, by the same key, with something changed in the statement."""
    envelope = json.loads((folder / SEAL).read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    predicate = {**statement["predicate"], **changes}
    subjects = tuple(
        Subject.of(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.name != SEAL
    )
    kind = predicate_type or PredicateType.CALIBRATION
    (folder / SEAL).write_bytes(sign(Statement(subjects, kind, predicate), KEY))


def test_a_seal_of_ours_has_one_byte_form(sealed: Path) -> None:
    """R45: another layout of the same envelope is not ours."""
    envelope = json.loads((sealed / SEAL).read_bytes())
    payload = base64.b64decode(envelope["payload"])
    assert seal_payload(payload, KEY) == (sealed / SEAL).read_bytes() == dump_line(envelope)
    (sealed / SEAL).write_bytes(json.dumps(envelope, indent=1).encode())
    assert failed(sealed) == [1]
