from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.launch import manifest
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.resources import (
    FROZEN_FILE_LIMIT,
    frozen_folder,
    read_frozen,
)
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from pathlib import Path

GATES = "fixtures/pilot-gates.json"


class TestLayout:
    def test_a_checkout_holds_the_fixtures_two_levels_above_the_package(self, tmp_path: Path) -> None:
        package = tmp_path / "eval" / "skill_effectiveness"
        (tmp_path / "fixtures").mkdir()
        assert frozen_folder(package) == tmp_path

    def test_an_installed_package_holds_them_inside(self, tmp_path: Path) -> None:
        package = tmp_path / "site-packages" / "skill_effectiveness"
        (package / "frozen" / "fixtures").mkdir(parents=True)
        assert frozen_folder(package) == package / "frozen"

    def test_fixtures_that_happen_to_lie_above_an_installed_package_are_not_taken(
        self, tmp_path: Path
    ) -> None:
        package = tmp_path / "lib" / "skill_effectiveness"
        (package / "frozen").mkdir(parents=True)
        (tmp_path / "fixtures").mkdir()
        assert frozen_folder(package) == package / "frozen"

    def test_neither_layout_is_a_typed_error_without_a_machine_path(self, tmp_path: Path) -> None:
        with pytest.raises(ProtocolError) as caught:
            frozen_folder(tmp_path / "a" / "b")
        assert caught.value.code is ProtocolCode.FIXTURE_INVALID
        assert str(tmp_path) not in str(caught.value)

    def test_what_is_hashed_lies_where_what_is_read_lies(self, tmp_path: Path) -> None:
        """Both are asked about a package whose frozen data are not where its checkout has them."""
        package = tmp_path / "lib" / "skill_effectiveness"
        (package / "frozen").mkdir(parents=True)
        (tmp_path / "fixtures").mkdir()
        assert manifest.frozen_folder(package) == frozen_folder(package) == package / "frozen"

    def test_this_checkout_is_found(self) -> None:
        assert (frozen_folder() / GATES).is_file()


class TestReading:
    def test_bytes_come_back_unchanged(self) -> None:
        assert read_frozen(RealFs(), GATES) == (frozen_folder() / GATES).read_bytes()

    @pytest.mark.parametrize(
        "name", ["", "/etc/hostname", "..", "fixtures/../../x", "../fixtures/pilot-gates.json"]
    )
    def test_a_name_that_leaves_the_folder_is_a_mistake_of_the_program(self, name: str) -> None:
        with pytest.raises(ValueError, match="not a name below the frozen folder"):
            read_frozen(RealFs(), name)

    def test_a_missing_file_is_named_by_its_frozen_name_only(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES).unlink()
        self._refused(fs, tmp_path, "missing")

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES).rename(tmp_path / "elsewhere.json")
        fs.path(GATES).symlink_to(tmp_path / "elsewhere.json")
        self._refused(fs, tmp_path, "file_symlink")

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES).unlink()
        fs.path(GATES).mkdir()
        self._refused(fs, tmp_path, "not_regular")

    def test_a_pipe_without_a_writer_is_refused_at_once(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES).unlink()
        os.mkfifo(fs.path(GATES))
        self._refused(fs, tmp_path, "not_regular")

    def test_a_file_over_the_limit_is_refused(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.path(GATES).write_bytes(b" " * (FROZEN_FILE_LIMIT + 1))
        self._refused(fs, tmp_path, "file_size")

    def _refused(self, fs: CopiedFs, folder: Path, why: str) -> None:
        with pytest.raises(ProtocolError) as caught:
            read_frozen(fs, GATES)
        assert caught.value.code is ProtocolCode.FIXTURE_INVALID
        assert caught.value.where == GATES
        assert f"({why})" in caught.value.sentence
        assert str(folder) not in str(caught.value)
