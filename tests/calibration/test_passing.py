"""What may pass by itself: too many open files, a storage that does not answer just now.

Nobody has seen the file then, so nothing is concluded from it: no root is given up, no repeat is asked again,
and people are told to try again.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import (
    CalibrationError,
    ExaminationRefused,
    demand_seen,
    passing,
)
from skill_effectiveness.calibration.finalization import derive_again as derive_finalized
from skill_effectiveness.calibration.repeats import derive_again
from skill_effectiveness.calibration.sealing import seal_pair, verify_folder
from skill_effectiveness.evidence.errnos import file_error
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.protocol.words import BankName
from tests.support.controller import INTENT, Controller
from tests.support.examinations import UnsyncedFs, open_out, read_inputs_once, run_examination, simulated
from tests.support.private import content
from tests.support.seals import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

READS = ("open_read", "open_dir", "read", "fstat", "lstat")
GIVING_UP = ("new folder", "new root", "new one", "Repair", "repair", "remove")


@pytest.fixture(autouse=True)
def _frozen_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    read_inputs_once(monkeypatch)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM])
def test_which_errors_may_pass(number: int) -> None:
    error = file_error(OSError(number, "x"), "attempts/x", reading=True)
    assert passing(error)
    with pytest.raises(FileError) as caught:
        demand_seen(error)
    name = errno.errorcode[number]
    assert str(caught.value) == f"attempts/x could not be read just now ({name}); try again."


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ELOOP, errno.EACCES, errno.EISDIR])
def test_which_errors_tell_something(number: int) -> None:
    error = file_error(OSError(number, "x"), "attempts/x", reading=True)
    assert not passing(error)
    demand_seen(error)


def steps(act: Callable[[FaultFs], object], number: int, below: Path) -> Iterator[str]:
    """What people are told when each read in turn fails once; ends with the read that did not happen."""
    for operation in READS:
        for nth in range(1, 5000):
            failing = Injection(operation, number, nth=nth, about=lambda path: str(below) in path)
            try:
                act(FaultFs(UnsyncedFs(), failing))
            except (EvidenceError, ExaminationRefused, CalibrationError) as error:
                yield str(error)
            if not failing.hits:
                break
        else:
            raise AssertionError(operation)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
class TestRepeats:
    def test_a_resume_gives_nothing_up(self, tmp_path: Path, number: int) -> None:
        """R28: a claim, a binding or a receipt that cannot be read just now is not one that is wrong."""
        asked: list[str] = []
        reviewer = simulated(before=asked.append)
        run_examination(open_out(tmp_path), reviewer)
        told = list(
            steps(
                lambda fs: run_examination(open_out(tmp_path, fs), reviewer, resume=True),
                number,
                tmp_path / "out",
            )
        )
        assert [each for each in told if any(word in each for word in GIVING_UP)] == []
        assert any("reviewer-calibration-binding.json could not be read" in each for each in told)
        assert any(".reviewer-calibration.lock could not be read" in each for each in told)
        assert any("observations/r02-a1.json could not be read" in each for each in told)
        assert asked == ["r01-a1", "r02-a1"]
        assert run_examination(open_out(tmp_path), reviewer, resume=True).calls == 0

    def test_a_licence_is_not_refused_for_good(self, tmp_path: Path, number: int) -> None:
        """R35: reading an examination again."""
        run_examination(open_out(tmp_path))
        told = steps(
            lambda fs: derive_again(open_out(tmp_path, fs), BankName.JUDGED), number, tmp_path / "out"
        )
        assert [each for each in told if any(word in each for word in GIVING_UP)] == []


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
class TestController:
    def test_no_root_is_quarantined(self, tmp_path: Path, number: int) -> None:
        """R11: the next request finds it as it was."""
        before = content(Controller(tmp_path).sampled().root)
        for name in ("sample-ledger/s-1.json", "samples/.s-1.intent.json", "observations/s-1.json", ".key"):
            failing = Injection("open_read", number, about=lambda path, name=name: path.endswith(name))
            reply = Controller(tmp_path, fs=FaultFs(UnsyncedFs(), failing)).sample("s-3")
            assert failing.hits == 1, name
            assert reply.word == "internal_error"
            assert "nothing was spent, so try again with the same request" in reply.told
            after = content(tmp_path / "root")
            assert {key: after[key] for key in before if "holder" not in key} == {
                key: data for key, data in before.items() if "holder" not in key
            }
        assert Controller(tmp_path).sample("s-3").word == "ok"

    def test_a_finalization_can_be_repeated(self, tmp_path: Path, number: int) -> None:
        """R16: an intent that cannot be read just now is not somebody else's."""
        Controller(tmp_path).sampled()
        failing = Injection("fsync_dir", errno.EIO, about=lambda path: path.endswith("calibration"))
        cut_off = Controller(tmp_path, fs=FaultFs(UnsyncedFs(), failing))
        assert cut_off.finalize().word == "finalization_recovery_required"
        for name in (INTENT, ".reviewer-calibration.lock"):
            failing = Injection("open_read", number, about=lambda path, name=name: path.endswith(name))
            reply = Controller(tmp_path, fs=FaultFs(UnsyncedFs(), failing)).finalize()
            assert reply.word == "finalization_recovery_required"
            assert reply.told.endswith("try again. Send the same request again.")
        assert Controller(tmp_path).finalize().word == "ok"
        told = steps(lambda fs: derive_finalized(open_out(tmp_path, fs, "root")), number, tmp_path / "root")
        assert [each for each in told if any(word in each for word in GIVING_UP)] == []

    def test_a_seal_that_cannot_be_read_just_now_is_no_failed_check(
        self, tmp_path: Path, number: int
    ) -> None:
        run_examination(open_out(tmp_path))
        seal_pair(open_out(tmp_path), KEY, open_out(tmp_path, name="sealed"))
        failing = Injection("open_read", number, about=lambda path: path.endswith("seal.dsse.json"))
        fs = FaultFs(UnsyncedFs(), failing)
        with pytest.raises(FileError, match="try again"):
            verify_folder(tmp_path / "sealed", KEY.public_key(), fs=fs)
        assert verify_folder(tmp_path / "sealed", KEY.public_key(), fs=fs).passed
