from __future__ import annotations

import base64
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from skill_effectiveness.calibration.errors import (
    CalibrationCode,
    CalibrationError,
    ExaminationRefused,
    PairRefused,
    RefusalCode,
)
from skill_effectiveness.calibration.licence import LicenceCode, LicenceRefused
from skill_effectiveness.calibration.licensing import (
    SUBJECT,
    NamedReviewer,
    check_licence,
    claimed_licence,
    issue_licence,
    read_calibration,
    read_licence,
    seal_licence,
    verified_licence,
)
from skill_effectiveness.calibration.models import to_json, to_line
from skill_effectiveness.calibration.repeats import ExaminationPlan, derive_again
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.faults import FileCode, FileError, PairCode, PairError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import public_key_id
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import CallOutcome, Ending, SimulatedSettings
from tests.support.controller import INTENT, RESULT, Controller
from tests.support.examinations import (
    INPUTS,
    PLAN,
    PROBES,
    Anything,
    Scripted,
    open_out,
    run_examination,
    simulated,
)
from tests.support.licences import NOW, granted, licence_of
from tests.support.private import content
from tests.support.published import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.providers import JudgeCall

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
THREE = replace(PLAN, repeats=3)
LICENCE = "licence.json"
UNFINISHED = CalibrationCode.FINALIZATION_RECOVERY_REQUIRED


@pytest.fixture(scope="module")
def examinations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated reviewer without a fault, examined with both banks."""
    folder = tmp_path_factory.mktemp("examinations")
    with open_out(folder, name="judged") as judged, open_out(folder, name="probes") as probes:
        run_examination(judged, plan=THREE)
        plan = replace(THREE, bank=BankName.BIAS_PROBE)
        run_examination(probes, simulated(bank=BankName.BIAS_PROBE), plan)
    return folder


def issue(
    folder: Path, out: Path, *, judged: str = "judged", probes: str = "probes", **others: Anything
) -> Anything:
    with open_out(folder, name=judged) as first, open_out(folder, name=probes) as second:
        return issue_licence(first, second, KEY, out, **others)


@pytest.fixture
def moved(examinations: Path) -> Iterator[Path]:
    """The judged folder, which may be spoiled; receipts are bound to its place, so it is put back."""
    kept = examinations / "kept"
    shutil.copytree(examinations / "judged", kept, symlinks=True)
    yield examinations / "judged"
    shutil.rmtree(examinations / "judged")
    kept.rename(examinations / "judged")


class TestIssuing:
    def test_end_to_end(self, examinations: Path, tmp_path: Path) -> None:
        """R35 R37 R43: a simulated reviewer's licence is synthetic, and live here."""
        licence = issue(examinations, tmp_path / LICENCE)
        data = read_licence(tmp_path / LICENCE, RealFs())
        assert verified_licence(data, PUBLIC) == claimed_licence(data) == licence
        assert (licence.synthetic, licence.reviewer.provider) == (True, "simulated")
        assert licence.metrics.attempts.attempts == 3
        assert (licence.metrics.decided.hits, licence.metrics.decided.n1) == (48, 16)
        found = check_licence(licence, NamedReviewer(model="sim-1"), NOW, fs=RealFs())
        assert found.word == "live"

    def test_a_foreign_client_verifies_it(self, examinations: Path, tmp_path: Path) -> None:
        """R36: securesystemslib, as anybody uses it."""
        issue(examinations, tmp_path / LICENCE)
        envelope = Envelope.from_dict(json.loads((tmp_path / LICENCE).read_bytes()))
        keyid = public_key_id(PUBLIC)
        key = SSlibKey(keyid, "ed25519", "ed25519", {"public": PUBLIC.public_bytes_raw().hex()})
        assert envelope.verify([key], 1).keys() == {keyid}
        statement = json.loads(envelope.payload)
        assert statement["predicateType"] == "urn:skill-effectiveness:reviewer-licence:v1"
        assert [subject["name"] for subject in statement["subject"]] == ["reviewer-licence.json"]

    def test_a_taken_name_is_left_as_it_is(self, examinations: Path, tmp_path: Path) -> None:
        (tmp_path / LICENCE).write_bytes(b"mine")
        with pytest.raises(FileError) as caught:
            issue(examinations, tmp_path / LICENCE)
        assert caught.value.code is FileCode.EXISTS_DIFFERENT
        assert content(tmp_path) == {LICENCE: b"mine"}

    def test_a_line_of_the_policy(self, examinations: Path, tmp_path: Path) -> None:
        """R35: nothing is written."""
        with pytest.raises(LicenceRefused) as caught:
            issue(examinations, tmp_path / LICENCE, days=91)
        assert caught.value.code is LicenceCode.DAYS_OUT_OF_RANGE
        assert content(tmp_path) == {}

    def test_a_failed_calibration(self, examinations: Path, tmp_path: Path) -> None:
        """R35: a careless reviewer."""
        careless = SimulatedSettings(accuracy=0.5, seed=7)
        with open_out(tmp_path, name="judged") as judged, open_out(examinations, name="probes") as probes:
            run_examination(judged, simulated(careless), plan=THREE)
            with pytest.raises(LicenceRefused) as caught:
                issue_licence(judged, probes, KEY, tmp_path / LICENCE)
        assert caught.value.code is LicenceCode.CALIBRATION_FAILED
        assert not (tmp_path / LICENCE).exists()

    def test_refused_calls_count_against_it(self, examinations: Path, tmp_path: Path) -> None:
        """R35: unusable answers are counted from the attempts, not from the published figures."""
        calls = []

        def fail_once(sample_id: str) -> None:
            calls.append(sample_id)
            if len(calls) == 1:
                raise KeyboardInterrupt

        with open_out(tmp_path, name="judged") as judged, open_out(examinations, name="probes") as probes:
            reviewer = simulated(before=fail_once)
            with pytest.raises(KeyboardInterrupt):
                run_examination(judged, reviewer, THREE)
            run_examination(judged, reviewer, THREE, resume=True)
            sheet = json.loads(judged.read("reviewer-calibration-metrics.json"))
            sheet["reviewers"][0]["attempts"] = {"attempts": 3, "flagged": False, "unusable_answers": 0}
            judged.replace("reviewer-calibration-metrics.json", json.dumps(sheet).encode())
            with pytest.raises(LicenceRefused) as caught:
                issue_licence(judged, probes, KEY, tmp_path / LICENCE)
        assert [(fault.code, fault.field) for fault in caught.value.faults] == [
            (LicenceCode.USABLE_ANSWERS_TOO_FEW, "judged")
        ]

    @pytest.mark.parametrize("name", ["reviewer-calibration.json", "reviewer-calibration-result.json"])
    def test_half_a_pair(self, examinations: Path, tmp_path: Path, moved: Path, name: str) -> None:
        """R19: it is refused here too."""
        (moved / name).unlink()
        with pytest.raises(PairError) as caught:
            issue(examinations, tmp_path / LICENCE)
        assert caught.value.code is PairCode.PAIR_INCOMPLETE

    def test_an_edited_pair(self, examinations: Path, tmp_path: Path, moved: Path) -> None:
        path = moved / "reviewer-calibration-result.json"
        path.write_bytes(path.read_bytes().replace(b'"model":"sim-1"', b'"model":"sim-2"'))
        with pytest.raises(ExaminationRefused) as caught:
            issue(examinations, tmp_path / LICENCE)
        assert caught.value.code is RefusalCode.PUBLICATION_DIFFERS
        path.write_bytes(path.read_bytes().replace(b'"pass"', b'"fail"'))
        with pytest.raises(PairRefused):
            issue(examinations, tmp_path / LICENCE)

    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("reviewer-calibration-binding.json", RefusalCode.BINDING_INVALID),
            (".reviewer-calibration.lock", RefusalCode.CLAIM_INVALID),
            ("attempts/r01-a1/samples/r01-a1.json", RefusalCode.SAMPLES_INVALID),
            ("attempts/r02-a1/observations/r02-a1.json", RefusalCode.SAMPLES_INVALID),
        ],
    )
    def test_a_pair_without_its_samples(
        self, examinations: Path, tmp_path: Path, moved: Path, name: str, code: RefusalCode
    ) -> None:
        """R35: a pair alone shows neither how cases were seen nor how often nobody answered."""
        (moved / name).unlink()
        with pytest.raises(ExaminationRefused) as caught:
            issue(examinations, tmp_path / LICENCE)
        assert caught.value.code is code
        assert content(tmp_path) == {}

    def test_a_folder_of_the_other_bank(self, examinations: Path) -> None:
        with open_out(examinations, name="judged") as judged, pytest.raises(PairError):
            derive_again(judged, BankName.BIAS_PROBE)

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with open_out(tmp_path) as empty, pytest.raises(PairError):
            read_calibration(empty)


def right(bank: Bank) -> Callable[[int, JudgeCall], CallOutcome]:
    """A script that knows the answers of a bank, whichever way round a case is shown."""
    known = {}
    for case, truth in zip(bank.cases, bank.truth, strict=True):
        known[case.candidate_a, case.candidate_b] = truth.value
        known[case.candidate_b, case.candidate_a] = truth.turned().value

    def answer(_number: int, call: JudgeCall) -> CallOutcome:
        cases = json.loads(call.prompt.rstrip().rsplit("\n", 1)[1])["cases"]
        judged = [{"case": case["case"], "verdict": known[case["A"], case["B"]]} for case in cases]
        return CallOutcome(Ending.SUCCESS, answer=json.dumps({"judgments": judged}))

    return answer


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that a controller has finalized after three samples, and probes of the same reviewer."""
    folder = tmp_path_factory.mktemp("controlled")
    controller = Controller(folder, reviewer=Scripted(right(INPUTS.bank)))
    controller.sampled("s-1", "s-2", "s-3")
    assert controller.finalize("s-1", "s-2", "s-3").result["calibration_status"] == "pass"
    plan = ExaminationPlan("model-1", "family-1", repeats=3, bank=BankName.BIAS_PROBE)
    with open_out(folder, name="probes") as probes:
        run_examination(probes, Reviewer.real(Scripted(right(PROBES.bank))), plan)
    return folder


class TestSingleSamples:
    def test_a_finalized_calibration_earns_a_real_licence(self, controlled: Path, tmp_path: Path) -> None:
        """R35 R43: a calibration by the door of single samples is one; its reviewer is real."""
        licence = issue(controlled, tmp_path / LICENCE, judged="root")
        assert (licence.reviewer.provider, licence.synthetic) == ("codex", False)
        assert licence.metrics.repeat_count == 3
        assert verified_licence((tmp_path / LICENCE).read_bytes(), PUBLIC) == licence

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda root: spoil(root / INTENT, b'"completed"', b'"output_claimed"'), UNFINISHED),
            (lambda root: spoil(root / INTENT, b"{", b"["), UNFINISHED),
            (lambda root: spoil(root / "calibration" / RESULT, b'"pass"', b'"fail"'), UNFINISHED),
            (
                lambda root: (root / "samples/s-1.json").unlink(),
                CalibrationCode.ARTIFACT_ROOT_QUARANTINED,
            ),
        ],
        ids=["cut off", "garbage", "edited", "a sample gone"],
    )
    def test_what_was_not_finalized_does_not(
        self, controlled: Path, tmp_path: Path, change: Callable[[Path], object], code: CalibrationCode
    ) -> None:
        root, kept = controlled / "root", controlled / "kept"
        shutil.copytree(root, kept, symlinks=True)
        try:
            change(root)
            with pytest.raises(CalibrationError) as caught:
                issue(controlled, tmp_path / LICENCE, judged="root")
        finally:
            shutil.rmtree(root)
            kept.rename(root)
        assert caught.value.code is code
        assert content(tmp_path) == {}


def spoil(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))


class TestReading:
    DATA = seal_licence(granted(), KEY)

    def test_every_changed_byte_is_found(self) -> None:
        """R37: a bad signature, or no licence at all; never the licence."""
        for place in range(0, len(self.DATA), 41):
            changed = bytearray(self.DATA)
            changed[place] ^= 1
            assert answer(bytes(changed)) in (None, LicenceCode.LICENCE_UNREADABLE), place

    def test_another_key(self) -> None:
        """R37: nothing of what it says is handed out."""
        assert verified_licence(self.DATA, STRANGER) is None
        assert claimed_licence(self.DATA) == granted()

    def test_a_changed_payload(self) -> None:
        """R37: the signature, even when what it says is no licence any more."""
        envelope = json.loads(self.DATA)
        envelope["payload"] = base64.b64encode(b"{}").decode()
        changed = json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        assert verified_licence(changed, PUBLIC) is None
        with pytest.raises(LicenceRefused):
            claimed_licence(changed)

    @pytest.mark.parametrize(
        "change",
        [{"more": 1}, {"synthetic": True}, {"licence_id": 32 * "0"}, {"expires_at": "2026-01-01T00:00:00Z"}],
    )
    def test_signed_and_no_licence(self, change: dict[str, Anything]) -> None:
        """R43: even the right key makes no synthetic licence of a real reviewer."""
        said = to_json(granted()) | change
        unreadable(self.sealed(said, SUBJECT, to_line(granted())))

    @pytest.mark.parametrize("name", [SUBJECT, "other.json"])
    def test_a_subject_that_is_not_the_licence(self, name: str) -> None:
        other = to_line(licence_of(SIMULATED)) if name == SUBJECT else to_line(granted())
        unreadable(self.sealed(to_json(granted()), name, other))

    def test_a_seal_about_something_else(self) -> None:
        unreadable(self.sealed(to_json(granted()), SUBJECT, to_line(granted()), PredicateType.CALIBRATION))

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"[" * 100_000, b"\xff", b"null\n"])
    def test_garbage(self, data: bytes) -> None:
        """F45: a refusal, never a crash."""
        unreadable(data)

    def test_a_file_larger_than_any_licence(self, tmp_path: Path) -> None:
        (tmp_path / LICENCE).write_bytes(b" " * 1_048_577)
        with pytest.raises(FileError):
            read_licence(tmp_path / LICENCE, RealFs())

    @staticmethod
    def sealed(
        said: Anything, name: str, held: bytes, kind: PredicateType = PredicateType.REVIEWER_LICENCE
    ) -> bytes:
        return sign(Statement((Subject.of(name, held),), kind, said), KEY)


def answer(data: bytes) -> Anything:
    """The licence, None for a signature that is not ours, or the code of the refusal."""
    try:
        return verified_licence(data, PUBLIC)
    except LicenceRefused as refused:
        return refused.code


def unreadable(data: bytes) -> None:
    for read in (claimed_licence, lambda given: verified_licence(given, PUBLIC)):
        with pytest.raises(LicenceRefused) as caught:
            read(data)
        assert caught.value.code is LicenceCode.LICENCE_UNREADABLE
