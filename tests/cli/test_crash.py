"""Where the command line leaves its crash files; what they hold is tested with `evidence.crash`."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, NoReturn

import pytest

from skill_effectiveness.cli import crash
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from tests.support.private import out_root, surroundings, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

PAYLOAD = "payload-4711"


def fail(text: str) -> NoReturn:
    local = f"{text} in a local variable"
    raise KeyError(local)


def failed() -> BaseException:
    with pytest.raises(KeyError) as caught:
        fail(PAYLOAD)
    return caught.value


def around(home: Path) -> Surroundings:
    return surroundings(None, environ={"HOME": str(home)}, entropy=lambda count: bytes(range(count)))


def state(home: Path) -> Path:
    return home / ".local/state/skill-effectiveness"


class TestRecord:
    def test_time_and_eight_hex_digits_name_it_under_the_state_folder(self, tmp_path: Path) -> None:
        """E24: private from the first instant."""
        told = crash.record(failed(), around(tmp_path))
        file = state(tmp_path) / "crash" / "20260304T050607Z-00010203.json"
        assert told == f"the crash file {file} says where"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert wrong_modes(state(tmp_path)) == []


class TestKeptIn:
    def test_the_command_s_own_folder_comes_first(self, tmp_path: Path) -> None:
        with out_root(tmp_path) as root, pytest.raises(crash.RecordedError) as caught, crash.kept_in(root):
            fail(PAYLOAD)
        (file,) = (tmp_path / "root" / "crash").iterdir()
        assert caught.value.told == f"the crash file {file} says where"
        assert wrong_modes(tmp_path / "root") == []

    def test_the_state_folder_when_that_cannot_take_it(self, tmp_path: Path) -> None:
        with out_root(tmp_path) as root:
            blocked = tmp_path / "root" / "crash"
            blocked.write_text("in the way")
            crash.record(failed(), around(tmp_path), root)
        assert len(list((state(tmp_path) / "crash").iterdir())) == 1
        assert blocked.read_text() == "in the way"

    def test_refusals_and_terminations_pass(self, tmp_path: Path) -> None:
        refusal = Refusal(CommandCode.USAGE, "no")
        with out_root(tmp_path) as root:
            for error in (refusal, KeyboardInterrupt()):
                with pytest.raises(type(error)), crash.kept_in(root):
                    raise error
        assert not (tmp_path / "root" / "crash").exists()
