"""Crash files say where, and nothing of what was at hand."""

from __future__ import annotations

import errno
import json
import stat
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from skill_effectiveness.cli import crash
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import out_root, surroundings, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

PAYLOAD = "payload-4711"


def fail(text: str) -> NoReturn:
    local = f"{text} in a local variable"
    raise KeyError(local)


def failed(text: str = PAYLOAD) -> BaseException:
    try:
        try:
            fail(text)
        except KeyError as first:
            raise ValueError(text) from first
    except ValueError as error:
        return error


def around(home: Path, fs: RealFs | FaultFs | None = None) -> Surroundings:
    return surroundings(fs, environ={"HOME": str(home)}, entropy=lambda count: bytes(range(count)))


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

    def test_frames_of_the_whole_chain_and_versions(self, tmp_path: Path) -> None:
        crash.record(failed(), around(tmp_path))
        (file,) = (state(tmp_path) / "crash").iterdir()
        document: dict[str, Any] = json.loads(file.read_bytes())
        assert document["schema_version"] == 1
        assert [each["error"] for each in document["errors"]] == ["ValueError", "KeyError"]
        assert [frame["function"] for frame in document["errors"][1]["frames"]] == ["failed", "fail"]
        assert {frame["file"] for frame in document["errors"][1]["frames"]} == {"test_crash.py"}
        assert document["versions"]["python"] == sys.version.split()[0]
        assert set(document["versions"]) == {"python", "platform", "skill-effectiveness"}

    def test_no_payload(self, tmp_path: Path) -> None:
        """Neither the text of an error nor a variable, nor where the code lies."""
        crash.record(failed(), around(tmp_path))
        (file,) = (state(tmp_path) / "crash").iterdir()
        text = file.read_text()
        assert PAYLOAD not in text
        assert "/" not in text

    def test_a_ring_of_errors_ends(self, tmp_path: Path) -> None:
        first, second = ValueError("a"), KeyError("b")
        first.__cause__, second.__cause__ = second, first
        crash.record(first, around(tmp_path))
        (file,) = (state(tmp_path) / "crash").iterdir()
        assert [each["error"] for each in json.loads(file.read_bytes())["errors"]] == [
            "ValueError",
            "KeyError",
        ]

    def test_two_do_not_overwrite_each_other(self, tmp_path: Path) -> None:
        given = replace(around(tmp_path), entropy=RandomLooking())
        crash.record(failed(), given)
        crash.record(failed(), given)
        assert len(list((state(tmp_path) / "crash").iterdir())) == 2

    @pytest.mark.parametrize(
        ("number", "code"),
        [(errno.ENOSPC, "no_space"), (errno.EROFS, "not_writable"), (errno.EIO, "io_error")],
    )
    def test_what_cannot_be_written_is_said(self, tmp_path: Path, number: int, code: str) -> None:
        fs = FaultFs(RealFs(), Injection("create_exclusive", errno=number, nth=0))
        told = crash.record(failed(), around(tmp_path, fs))
        assert told == f"no crash file could be written ({code})"

    def test_it_never_raises(self, tmp_path: Path) -> None:
        def broken() -> NoReturn:
            raise OSError("no clock")

        told = crash.record(failed(), replace(around(tmp_path), now=broken))
        assert told == "no crash file could be written (OSError)"


class RandomLooking:
    """Other bytes at every call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, count: int) -> bytes:
        self.calls += 1
        return self.calls.to_bytes(count, "big")


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
