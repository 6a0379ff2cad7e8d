"""Taking surroundings from the air, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skill_effectiveness.cli import door
from skill_effectiveness.cli.refusals import CommandCode, Refusal


def test_surroundings_are_taken_once(home: Path) -> None:
    assert door.surroundings() is door.surroundings()
    assert door.surroundings().environ["HOME"] == str(home)


class TestAbsolute:
    def test_relative_to_the_working_folder(self, home: Path) -> None:
        assert door.absolute("a/b") == home / "a/b"
        assert door.absolute(Path("a")) == home / "a"

    def test_absolute_as_given(self) -> None:
        assert door.absolute("/a/../b") == Path("/a/../b")

    def test_a_step_up_is_taken_out_where_no_link_stands_before_it(self, home: Path) -> None:
        """Behind a link it would mean another folder than the one that was typed."""
        (home / "in" / "deep").mkdir(parents=True)
        (home / "link").symlink_to(home / "in" / "deep")
        os.chdir(home / "in")
        assert door.absolute("../R") == home / "R"
        assert door.absolute("deep/../../R/s") == home / "R" / "s"
        for kept in ("link/../R", "missing/../R"):
            assert door.absolute(home / kept) == home / kept

    def test_a_working_folder_that_is_gone(self, home: Path) -> None:
        gone = home / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        with pytest.raises(Refusal) as caught:
            door.absolute("a")
        assert caught.value.code is CommandCode.WORKING_FOLDER_MISSING
        assert door.absolute("/a") == Path("/a")

    def test_longer_than_the_system_takes(self, home: Path) -> None:
        """The whole path counts, not the part that was typed."""
        whole = "/" + "a" * 4094
        assert door.absolute(whole) == Path(whole)
        for path in (whole + "a", "é" * 2048, "a" * (4095 - len(os.fsencode(home)))):
            with pytest.raises(Refusal) as caught:
                door.absolute(path)
            assert caught.value.code is CommandCode.PATH_TOO_LONG
            assert len(str(caught.value)) < 200


class TestMachineId:
    def test_is_read_from_the_first_place_that_has_one(self, home: Path) -> None:
        """T61: a line of 32 hex digits, as machine-id(5) has it."""
        for name, text in {
            "empty": "",
            "fresh": "uninitialized\n",
            "good": "0123456789abcdef" * 2 + "\n",
        }.items():
            (home / name).write_text(text)
        (home / "link").symlink_to("good")
        places = [home / name for name in ("missing", "link", "empty", "fresh", "good")]
        assert door.machine_id(places) == "0123456789abcdef" * 2
        assert door.machine_id(places[:-1]) is None

    @pytest.mark.parametrize(
        "text", [b"0" * 32, b"0123456789ABCDEF" * 2, b"a" * 31, b"a" * 33, b"\xff" * 32, b"a" * 32 + b"\n b"]
    )
    def test_what_is_no_id(self, home: Path, text: bytes) -> None:
        """T61: such a machine has none, so nothing is established with it."""
        (home / "id").write_bytes(text)
        assert door.machine_id([home / "id"]) is None
