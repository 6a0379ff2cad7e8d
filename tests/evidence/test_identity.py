"""The identity of a trial store survives a move."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import EvidenceError, LockCode, LockError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.identity import LOCK
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from tests.support.private import surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

ID = "root-000102030405060708090a0b0c0d0e0f"


def store(path: Path, fs: FileSystem | None = None) -> PrivateRoot:
    around = surroundings(fs, entropy=lambda size: bytes(range(size)))
    return PrivateRoot.open(path, RootKind.STORE, around=around, checkout=None)


def document(located_at: str, root_id: str, version: str) -> str:
    contract = '"artifact_contract":"skill-effectiveness-root-v1"'
    return f'{{{contract},"located_at":{located_at},"root_id":"{root_id}","schema_version":{version}}}'


@pytest.fixture
def first(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "first"
    path.mkdir(mode=0o755)
    return path


def test_is_made_on_first_use(first: Path) -> None:
    """E19: `root.json` has the fixed form, canonical with a line feed, and is private."""
    with store(first) as root:
        assert root.identity().root_id == ID
    assert (first / "root.json").read_text() == document(f'["{first}"]', ID, "1") + "\n"
    assert (first / "root.json").stat().st_mode & 0o7777 == 0o600


def test_stays_the_same_at_the_same_place(first: Path) -> None:
    with store(first) as root:
        root.identity()
        before = (first / "root.json").stat().st_ino
        root.identity()
    assert (first / "root.json").stat().st_ino == before


def test_survives_a_move(first: Path) -> None:
    """E19: at a new path the id is the same and the path is added; back at the old one nothing is added."""
    with store(first) as root:
        root.identity()
    second = first.rename(first.parent / "second")
    with PrivateRoot.open(second, RootKind.STORE, around=surroundings(), checkout=None) as root:
        assert root.identity().root_id == ID
        assert root.identity().located_at == [str(first), str(second)]
    second.rename(first)
    with store(first) as root:
        assert root.identity().located_at == [str(first), str(second)]


def test_records_that_folders_cannot_be_made_durable(first: Path) -> None:
    fs = FaultFs(RealFs(), Injection("fsync_dir", errno.EINVAL, nth=0))
    with store(first, fs) as root:
        assert root.identity().durability == "no_folder_fsync"
    assert b'"durability":"no_folder_fsync",' in (first / "root.json").read_bytes()
    # Once recorded it stays: what was written then is not durable now.
    with store(first) as root:
        assert root.identity().durability == "no_folder_fsync"


def test_is_noted_under_the_lock_of_the_caller_or_its_own(first: Path) -> None:
    with store(first) as root:
        with Lock(root, LOCK).hold(action="test") as held:
            assert root.identity(held).root_id == ID
            with pytest.raises(AssertionError):
                root.identity()
        with pytest.raises(ValueError, match="not held any more"):
            root.identity(held)
        assert root.identity().root_id == ID


def test_is_not_noted_without_the_lock(first: Path) -> None:
    fs = FaultFs(RealFs(), Injection("open_update", errno.EMFILE))
    with store(first, fs) as root, pytest.raises(LockError) as caught:
        root.identity()
    assert caught.value.code is LockCode.LOCK_UNAVAILABLE
    assert not (first / "root.json").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}\n", "missing_field"),
        ("{", "syntax"),
        (document('["/x"]', "root-1", "1") + "\n", "wrong_value"),
        (document("[]", ID, "1") + "\n", "wrong_value"),
        (document('["/x"]', ID, "2") + "\n", "wrong_value"),
        (document('["/x"]', ID, "true") + "\n", "wrong_type"),
        (document('["/x"]', ID, "1"), "not_canonical"),
    ],
)
def test_is_never_guessed_or_repaired(first: Path, text: str, code: str) -> None:
    """E19: a damaged `root.json` is refused and stays as it is."""
    (first / "root.json").write_text(text)
    (first / "root.json").chmod(0o600)
    with store(first) as root, pytest.raises(EvidenceError) as caught:
        root.identity()
    assert caught.value.code == code
    assert (first / "root.json").read_text() == text
