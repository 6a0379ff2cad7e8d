"""The end of a file: whole groups or nothing, and nothing of anybody else's is touched."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.appender import Appender
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import out_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        opened.publish("f", b"one\n")
        yield opened


def test_it_adds_durably_behind_what_is_there(tmp_path: Path) -> None:
    fs = RecordingFs(RealFs())
    with out_root(tmp_path, fs) as root:
        root.publish("f", b"one\n")
        appender = Appender.open(root.folder, "f", 4)
        fs.steps.clear()
        appender.append(b"two\n")
        assert [(step.operation, step.offset, step.data) for step in fs.steps] == [
            ("write", 4, b"two\n"),
            ("fsync", 0, b""),
        ]
        appender.append(b"three\n")
        appender.close()
        appender.close()
        assert root.read("f") == b"one\ntwo\nthree\n"


def test_it_knows_its_file_again(root: PrivateRoot) -> None:
    appender = Appender.open(root.folder, "f", 4)
    path = root.path / "f"
    assert appender.is_as_remembered()
    path.write_bytes(b"one\n\n")
    assert not appender.is_as_remembered()
    path.write_bytes(b"oneX")
    assert not appender.is_as_remembered()
    path.write_bytes(b"one\n")
    assert appender.is_as_remembered()
    path.rename(root.path / "g")
    assert not appender.is_as_remembered()
    root.publish("f", b"one\n")
    assert not appender.is_as_remembered()
    appender.close()


def test_an_empty_file_ends_nowhere(root: PrivateRoot) -> None:
    root.publish("empty", b"")
    appender = Appender.open(root.folder, "empty", 0)
    assert appender.is_as_remembered()
    appender.close()


def test_a_failed_fsync_is_final_for_its_descriptor(tmp_path: Path) -> None:
    """The second one, which makes the cut durable, is on another descriptor."""
    opened: list[str] = []
    failing = Injection("fsync", errno.EIO, about=lambda path: path.endswith("/f"), nth=2)
    noting = Injection("open_update", nth=0, before=lambda: opened.append("f"))
    with out_root(tmp_path, FaultFs(RealFs(), failing, noting)) as root:
        root.publish("f", b"one\n")
        failing.nth, failing._calls = 1, 0
        appender = Appender.open(root.folder, "f", 4)
        with pytest.raises(FileError) as caught:
            appender.append(b"two\n")
        assert caught.value.code is FileCode.IO_ERROR
        assert opened == ["f", "f"]
        assert (appender.alive, root.read("f")) == (True, b"one\n")
        appender.append(b"three\n")
        assert root.read("f") == b"one\nthree\n"
        appender.close()


def test_a_file_that_took_the_name_is_not_cut(root: PrivateRoot) -> None:
    appender = Appender.open(root.folder, "f", 4)
    (root.path / "f").rename(root.path / "g")
    root.publish("f", b"somebody else's\n")
    appender.undo()
    assert not appender.alive
    assert root.read("f") == b"somebody else's\n"
    appender.close()


def test_a_name_that_is_gone_is_told(root: PrivateRoot) -> None:
    appender = Appender.open(root.folder, "f", 4)
    root.remove("f")
    with pytest.raises(FileError) as caught:
        appender.cut()
    assert caught.value.code is FileCode.MISSING
    assert not appender.alive
    with pytest.raises(ValueError, match="closed"):
        appender.append(b"x\n")


def test_an_interrupt_takes_the_group_back_too(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    step = Injection("fsync", nth=1_000, before=interrupt)
    with out_root(tmp_path, FaultFs(RealFs(), step)) as root:
        root.publish("f", b"one\n")
        appender = Appender.open(root.folder, "f", 4)
        step.nth, step._calls = 1, 0
        with pytest.raises(KeyboardInterrupt):
            appender.append(b"two\n")
        assert root.read("f") == b"one\n"
        assert appender.alive
        appender.close()
