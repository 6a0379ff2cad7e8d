"""The doubles do what tests believe of them."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import MUTATIONS, FaultFs, Injection, RecordingFs, Step
from skill_effectiveness.evidence.fsops import FileSystem, RealFs

if TYPE_CHECKING:
    from pathlib import Path


def _a_little_of_everything(fs: FileSystem, folder: Path) -> None:
    top = fs.open_dir(None, str(folder))
    fs.mkdir(top, "d")
    fs.chmod_dir(top, "d", 0o700)
    fd = fs.create_exclusive(top, "f")
    fs.fchmod(fd, 0o600)
    fs.write(fd, b"abc")
    fs.write(fd, b"def")
    fs.seek(fd, 1)
    assert fs.read(fd, 2) == b"bc"
    fs.write(fd, b"X")
    fs.truncate(fd, 5)
    fs.fsync(fd)
    fs.close(fd)
    fs.link(top, "f", top, "g")
    fs.rename(top, "g", top, "h")
    fs.unlink(top, "f")
    fs.rmdir(top, "d")
    fs.fsync_dir(top)
    fs.close(top)


class TestRecordingFs:
    def test_logs_every_mutation_with_what_it_did(self, tmp_path: Path) -> None:
        fs = RecordingFs(RealFs())
        _a_little_of_everything(fs, tmp_path)
        at = str(tmp_path)
        assert fs.steps == [
            Step("mkdir", f"{at}/d"),
            Step("chmod_dir", f"{at}/d", number=0o700),
            Step("create_exclusive", f"{at}/f"),
            Step("fchmod", f"{at}/f", number=0o600),
            Step("write", f"{at}/f", offset=0, data=b"abc"),
            Step("write", f"{at}/f", offset=3, data=b"def"),
            Step("write", f"{at}/f", offset=3, data=b"X"),
            Step("truncate", f"{at}/f", number=5),
            Step("fsync", f"{at}/f"),
            Step("link", f"{at}/f", target=f"{at}/g"),
            Step("rename", f"{at}/g", target=f"{at}/h"),
            Step("unlink", f"{at}/f"),
            Step("rmdir", f"{at}/d"),
            Step("fsync_dir", at),
        ]
        assert {step.operation for step in fs.steps} == MUTATIONS
        assert (tmp_path / "h").read_bytes() == b"abcXe"
        assert fs.open_paths == []

    def test_logs_only_what_was_written_and_what_succeeded(self, tmp_path: Path) -> None:
        class HalfFs(RealFs):
            def write(self, fd: int, data: bytes | memoryview) -> int:
                return super().write(fd, bytes(data[: len(data) // 2]))

        fs = RecordingFs(FaultFs(HalfFs(), Injection("fsync", errno.EIO)))
        fd = fs.create_exclusive(None, str(tmp_path / "f"))
        fs.write(fd, b"abcd")
        with pytest.raises(OSError, match="Input/output"):
            fs.fsync(fd)
        fs.close(fd)
        assert [(step.operation, step.data) for step in fs.steps] == [
            ("create_exclusive", b""),
            ("write", b"ab"),
        ]

    def test_shows_the_disk_between_two_steps(self, tmp_path: Path) -> None:
        seen: list[list[str]] = []
        fs = RecordingFs(
            RealFs(), after=lambda _step: seen.append(sorted(p.name for p in tmp_path.iterdir()))
        )
        _a_little_of_everything(fs, tmp_path)
        assert seen[0] == ["d"]
        assert seen[-5:] == [["d", "f", "g"], ["d", "f", "h"], ["d", "h"], ["h"], ["h"]]


class TestFaultFs:
    def test_fails_the_chosen_call_only(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs(), Injection("mkdir", errno.ENOSPC, nth=2))
        fs.mkdir(None, str(tmp_path / "a"))
        with pytest.raises(OSError, match="No space") as caught:
            fs.mkdir(None, str(tmp_path / "b"))
        fs.mkdir(None, str(tmp_path / "c"))
        assert caught.value.errno == errno.ENOSPC
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]

    def test_counts_only_what_it_is_about(self, tmp_path: Path) -> None:
        injection = Injection("*", errno.EIO, about=lambda path: path.endswith("/b"))
        fs = FaultFs(RealFs(), injection)
        fs.mkdir(None, str(tmp_path / "a"))
        assert injection.hits == 0
        with pytest.raises(OSError, match="Input/output"):
            fs.mkdir(None, str(tmp_path / "b"))
        assert injection.hits == 1

    def test_every_call_and_every_kind_of_call(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs(), Injection("any", errno.EIO, nth=0))
        for call in (lambda: fs.lstat(None, str(tmp_path)), lambda: fs.unlink(None, str(tmp_path / "x"))):
            with pytest.raises(OSError, match="Input/output"):
                call()

    def test_changes_a_result(self, tmp_path: Path) -> None:
        fs = FaultFs(RealFs(), Injection("listdir", change=lambda names: [*names, "ghost"]))
        fd = fs.open_dir(None, str(tmp_path))
        assert fs.listdir(fd) == ["ghost"]
        fs.close(fd)
