"""The user's login file, looked at before anything is spent on a call."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import Executable
from skill_effectiveness.providers import CodexProvider, SimulatedReviewer, SimulatedSettings
from tests.support.logins import BAD, CODES, spoil
from tests.support.provider_calls import surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings


def provider(tmp_path: Path) -> CodexProvider:
    return CodexProvider(Executable(tmp_path, tmp_path, "sha256:" + 64 * "0", "codex-cli 1"))


def refused(tmp_path: Path, around: Surroundings) -> FileError:
    with pytest.raises(FileError) as caught:
        provider(tmp_path).check_login(around)
    assert str(tmp_path) not in str(caught.value)
    return caught.value


class TestLogin:
    @pytest.mark.parametrize("kind", BAD)
    def test_what_is_no_login_file_is_named_by_its_kind(self, tmp_path: Path, kind: str) -> None:
        """P3: a folder, a FIFO, a loop of links, a file nobody may read, one of two gigabytes."""
        folder = tmp_path / "home" / ".codex"
        folder.mkdir(parents=True)
        fs = spoil(folder / "auth.json", kind)
        found = refused(tmp_path, replace(surroundings(tmp_path, HOME=str(tmp_path / "home")), fs=fs))
        assert found.code is CODES[kind]
        assert str(found).startswith("The login file auth.json of .codex in HOME ")

    def test_codex_home_is_named_where_it_leads(self, tmp_path: Path) -> None:
        """P3: people have several; the sentence says which one is meant."""
        (tmp_path / "auth.json").mkdir()
        around = surroundings(tmp_path, CODEX_HOME=str(tmp_path))
        assert str(refused(tmp_path, around)).startswith("The login file auth.json of CODEX_HOME is not a ")

    def test_a_folder_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "text").touch()
        around = surroundings(tmp_path, CODEX_HOME=str(tmp_path / "text"))
        assert refused(tmp_path, around).code is FileCode.NOT_REGULAR

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EIO])
    def test_what_may_pass_is_told_as_that(self, tmp_path: Path, number: int) -> None:
        (tmp_path / "auth.json").touch()
        around = surroundings(tmp_path, CODEX_HOME=str(tmp_path))
        stuck = Injection("open_read", number, nth=0, about=lambda path: path.endswith("auth.json"))
        assert str(refused(tmp_path, replace(around, fs=FaultFs(around.fs, stuck)))).endswith("try again.")

    def test_good_ones(self, tmp_path: Path) -> None:
        """P3: a file, a link to one, none at all, a link to nothing, and no place where one could be."""
        (tmp_path / "file").write_text("{}")
        (tmp_path / "file").chmod(0o600)
        for name, target in (("linked", "file"), ("dangling", "nowhere")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "auth.json").symlink_to(tmp_path / target)
        for home in (tmp_path / "linked", tmp_path / "dangling", tmp_path / "none"):
            provider(tmp_path).check_login(surroundings(tmp_path, CODEX_HOME=str(home)))
        provider(tmp_path).check_login(surroundings(tmp_path, CODEX_HOME="relative"))

    def test_nothing_of_it_is_read(self, tmp_path: Path) -> None:
        """E51: whoever only looks holds no credential."""
        (tmp_path / "auth.json").write_text("{}")
        around = surroundings(tmp_path, CODEX_HOME=str(tmp_path))
        reads = Injection("read", errno.EIO, nth=0, about=lambda path: path.endswith("auth.json"))
        provider(tmp_path).check_login(replace(around, fs=FaultFs(around.fs, reads)))

    def test_a_reviewer_without_a_login_file_has_nothing_to_refuse(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "auth.json")
        around = surroundings(tmp_path, CODEX_HOME=str(tmp_path))
        SimulatedReviewer(SimulatedSettings(accuracy=1)).check_login(around)
