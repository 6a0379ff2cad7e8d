"""Reading a bundle wherever it lies: what was hashed is what is read afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies import bundle_files
from skill_effectiveness.studies.bundle_files import BundleFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "B"
    (place / "votes" / "deep").mkdir(parents=True)
    (place / "votes" / "b.json").write_bytes(b"bb")
    (place / "votes" / "a.json").write_bytes(b"a")
    (place / "votes" / ".hidden").write_bytes(b"")
    (place / "votes" / "deep" / "c").write_bytes(b"c")
    (place / "bundle.dsse.json").write_bytes(b"{}")
    return place


def test_names(folder: Path) -> None:
    """S60: hidden names count as present, and belong to no table."""
    files = BundleFiles(RealFs(), folder)
    assert files.names() == ("votes/.hidden", "votes/a.json", "votes/b.json", "votes/deep/c")
    assert files.names("votes") == ("a.json", "b.json", "deep")
    assert files.names("absent") == ()


def test_reading(folder: Path) -> None:
    """S60: what is missing is None, or refused where it must be there."""
    files = BundleFiles(RealFs(), folder)
    assert files.measured("votes/b.json") == (2, digest_bytes(b"bb"))
    assert (files.read("votes/b.json"), files.read("votes/a.json"), files.read("votes/x")) == (
        b"bb",
        b"a",
        None,
    )
    with pytest.raises(FileError) as refused:
        files.demand("votes/x")
    assert refused.value.code is FileCode.MISSING
    assert files.envelope() == b"{}"


@pytest.mark.parametrize("kept", [True, False])
def test_a_file_that_changes_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> None:
    """S60: either the bytes that were hashed, or a refusal; never others."""
    if not kept:
        monkeypatch.setattr(bundle_files, "LARGEST_KEPT", 1)
    files = BundleFiles(RealFs(), folder)
    files.measured("votes/b.json")
    (folder / "votes" / "b.json").write_bytes(b"xx")
    if kept:
        assert files.read("votes/b.json") == b"bb"
        return
    with pytest.raises(FileError, match="changed while"):
        files.read("votes/b.json")


def test_links_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    """S60: neither a file nor a folder behind a link is read."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(b"x")
    (folder / "linked").symlink_to(tmp_path / "outside")
    (folder / "file").symlink_to(tmp_path / "outside" / "x")
    files = BundleFiles(RealFs(), folder)
    for name in ("linked/x", "file"):
        with pytest.raises(FileError):
            files.demand(name)
        assert name.split("/")[0] in files.names()


def test_a_file_beyond_all_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S65: refused before it fills the memory."""
    monkeypatch.setattr(bundle_files, "FILE_LIMIT", 1)
    with pytest.raises(FileError) as refused:
        BundleFiles(RealFs(), folder).read("votes/b.json")
    assert refused.value.code is FileCode.FILE_SIZE
