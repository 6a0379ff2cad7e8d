"""Where compiled code is kept, and what of it is taken."""

from __future__ import annotations

import marshal
import os
import pwd
import sys
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.bridge.quiet_fs import QuietFs
from skill_effectiveness.evidence.root import state_path
from skill_effectiveness.launch import code_cache
from skill_effectiveness.launch.code_cache import CodeCache, entry_name, seal, state_folder
from tests.support.private import surroundings

if TYPE_CHECKING:
    from pathlib import Path

CODE = compile("value = 1", "origin", "exec")
DIGEST = "sha256:" + "a" * 64


class TestTheStateFolder:
    @pytest.mark.parametrize(
        "environ",
        [
            {"HOME": "/home/me", "XDG_STATE_HOME": "/var/states"},
            {"HOME": "/home/me", "XDG_STATE_HOME": "relative"},
            {"HOME": "/home/me"},
            {"HOME": ""},
            {},
        ],
        ids=str,
    )
    def test_is_that_of_evidence(self, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
        for name in ("HOME", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        around = surroundings(QuietFs(), environ=environ)
        assert state_folder() == str(state_path(around))

    def test_without_a_home_is_found_without_asking_anybody(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """B16: the password database may be another process behind a socket."""
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.setattr(pwd, "getpwuid", None)
        accounts = tmp_path / "passwd"
        monkeypatch.setattr(code_cache, "ACCOUNTS", str(accounts))
        user = os.geteuid()
        accounts.write_text(
            f"short:x\nother:x:{user + 1}:1::/no:/bin/sh\nme:x:{user}:1:M\u00e9:/home/me:/bin/sh\n"
        )
        assert state_folder() == "/home/me/.local/state/skill-effectiveness"
        accounts.write_text("nobody:x:65533:1::/no:/bin/sh\n")
        assert state_folder() is None
        accounts.unlink()
        assert state_folder() is None


class TestEntries:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A cache with one entry."""
        folder = tmp_path / "code"
        folder.mkdir(mode=0o700)
        name = entry_name("origin", DIGEST)
        data = marshal.dumps(CODE)
        for file, content in (("key", b"k" * 32), (name, seal(b"k" * 32, name, data) + data)):
            (folder / file).touch(mode=0o600)
            (folder / file).write_bytes(content)
        return folder

    def test_is_taken_whole(self, folder: Path) -> None:
        assert CodeCache(str(folder.parent)).get("origin", DIGEST) == CODE

    def test_of_another_source_or_place_is_not_there(self, folder: Path) -> None:
        cache = CodeCache(str(folder.parent))
        assert cache.get("origin", DIGEST.replace("a", "b")) is None
        assert cache.get("elsewhere", DIGEST) is None

    @pytest.mark.parametrize(
        "what", ["byte", "short", "empty", "mode", "link", "fifo", "folder", "renamed", "key"]
    )
    def test_that_is_not_ours_is_not_taken(self, folder: Path, what: str) -> None:
        """B10: changed, cut, readable by others, no file, under another name, under another key."""
        place = folder / entry_name("origin", DIGEST)
        data = place.read_bytes()
        match what:
            case "byte":
                place.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            case "short":
                place.write_bytes(data[:40])
            case "empty":
                place.write_bytes(b"")
            case "mode":
                place.chmod(0o640)
            case "link":
                place.rename(folder / "aside")
                place.symlink_to("aside")
            case "fifo":
                place.unlink()
                os.mkfifo(place, 0o600)
            case "folder":
                folder.chmod(0o750)
            case "renamed":
                place.rename(folder / entry_name("origin", DIGEST.replace("a", "c")))
            case _:
                (folder / "key").write_bytes(b"K" * 32)
        cache = CodeCache(str(folder.parent))
        assert cache.get("origin", DIGEST) is None
        assert cache.get("origin", DIGEST.replace("a", "c")) is None

    def test_of_another_interpreter_has_another_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        name = entry_name("origin", DIGEST)
        monkeypatch.setattr(sys, "version", "3.11.99")
        assert entry_name("origin", DIGEST) != name
