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

    def test_a_working_folder_that_is_gone(self, home: Path) -> None:
        gone = home / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        with pytest.raises(Refusal) as caught:
            door.absolute("a")
        assert caught.value.code is CommandCode.WORKING_FOLDER_MISSING
        assert door.absolute("/a") == Path("/a")
