"""Publishing by way of a folder beside: no temporary where readers look, nothing overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.staging import publish_staged
from tests.support.private import content, out_root, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem


def publish(tmp_path: Path, data: bytes, fs: FileSystem | None = None) -> None:
    with (
        out_root(tmp_path, fs) as root,
        root.child("staging", create=True) as staging,
        root.child("target", create=True) as target,
    ):
        publish_staged(staging, target, "1.json", data)


def test_the_name_gets_its_content(tmp_path: Path) -> None:
    """E20: once; 0600, and nothing stays in the staging folder."""
    publish(tmp_path, b"one")
    assert content(tmp_path / "root") == {"target/1.json": b"one"}
    assert wrong_modes(tmp_path / "root") == []


@pytest.mark.parametrize("data", [b"one", b"other"])
def test_a_taken_name_is_never_overwritten(tmp_path: Path, data: bytes) -> None:
    """E20: not even with the same bytes, because a number belongs to one writer."""
    publish(tmp_path, b"one")
    with pytest.raises(FileError) as caught:
        publish(tmp_path, data)
    assert caught.value.code is FileCode.EXISTS_DIFFERENT
    assert content(tmp_path / "root") == {"target/1.json": b"one"}


@pytest.mark.parametrize("operation", ["create_exclusive", "write", "fsync", "link", "fsync_dir"])
def test_a_fault_leaves_nothing(tmp_path: Path, operation: str) -> None:
    """E22: the name is free, and the same call succeeds afterwards."""
    fs = FaultFs(
        RealFs(), Injection(operation, 28, about=lambda path: "1.json" in path or path.endswith("/target"))
    )
    with pytest.raises(FileError):
        publish(tmp_path, b"one", fs)
    assert content(tmp_path / "root") == {}
    publish(tmp_path, b"one")
    assert content(tmp_path / "root") == {"target/1.json": b"one"}


def test_no_temporary_is_ever_seen_in_the_target(tmp_path: Path) -> None:
    """E24: at any step, whatever lies there has its whole content."""
    seen: set[tuple[str, bytes]] = set()

    def look(_step: object) -> None:
        folder = tmp_path / "root" / "target"
        if folder.is_dir():
            seen.update(content(folder).items())

    publish(tmp_path, b"one", RecordingFs(RealFs(), look))
    assert seen == {("1.json", b"one")}
