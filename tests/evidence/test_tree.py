from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import FileCode, FileError, TreeCode, TreeError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import DEEPEST_FOLDER, digest_tree, walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable

FS = RealFs()
EMPTY = "sha256:" + hashlib.sha256(b"").hexdigest()


def digest_of(preimage: str) -> str:
    return "sha256:" + hashlib.sha256(preimage.encode()).hexdigest()


def faults_of(folder: Path, fs: FaultFs | RealFs = FS) -> list[tuple[str, str]]:
    with pytest.raises(TreeError) as caught:
        digest_tree(fs, folder)
    return [(fault.code, fault.where) for fault in caught.value.faults]


def plant(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# The preimage, spelled out.


def test_an_empty_folder(tmp_path: Path) -> None:
    assert digest_tree(FS, tmp_path) == digest_of("[]")


def test_the_preimage_of_a_tree(tmp_path: Path) -> None:
    """E11 F47: files, folders and links as canonical JSON, sorted by path."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "run").write_bytes(b"abc")
    (tmp_path / "b" / "run").chmod(0o755)
    (tmp_path / "b-link").symlink_to("../x y")
    (tmp_path / "B.txt").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest_tree(FS, tmp_path) == digest_of(
        f'[{{"exec":false,"kind":"file","path":"B.txt","sha256":"{EMPTY}","size":0}},'
        '{"exec":false,"kind":"dir","path":"b","sha256":null,"size":0},'
        '{"exec":false,"kind":"link","path":"b-link","target":"../x y"},'
        f'{{"exec":true,"kind":"file","path":"b/run","sha256":"{abc}","size":3}},'
        '{"exec":false,"kind":"dir","path":"empty","sha256":null,"size":0}]'
    )


def test_the_place_and_the_times_of_a_tree_do_not_matter(tmp_path: Path) -> None:
    one = plant(tmp_path / "one", {"a": "x", "d/b": "y"})
    two = plant(tmp_path / "two", {"d/b": "y", "a": "x"})
    os.utime(two / "a", (0, 0))
    (two / "a").chmod(0o600)
    assert digest_tree(FS, one) == digest_tree(FS, two)


# What changes the digest.


def test_trees_that_run_together_without_lengths_differ(tmp_path: Path) -> None:
    """E11 F47: `{"ab":"c"}` and `{"a":"bc"}`, and names with line feeds."""
    trees: list[dict[str, str]] = [
        {"ab": "c"},
        {"a": "bc"},
        {"a": "b", "c": ""},
        {"a\nb": "c"},
        {"a": "\nbc"},
        {"a/b": "c"},
        {"a": "", "b": "c"},
    ]
    digests = {digest_tree(FS, plant(tmp_path / str(n), tree)) for n, tree in enumerate(trees)}
    assert len(digests) == len(trees)


def test_normal_forms_are_two_names(tmp_path: Path) -> None:
    """E10: NFC and NFD spellings differ, and may stand side by side."""
    composed = plant(tmp_path / "c", {"\u00e9": ""})
    decomposed = plant(tmp_path / "d", {"e\u0301": ""})
    assert digest_tree(FS, composed) != digest_tree(FS, decomposed)
    both = plant(tmp_path / "b", {"\u00e9": "", "e\u0301": ""})
    digest_tree(FS, both)


def relink(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


def turn_into_file(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        path.rmdir()
    path.write_text("x")


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda top: (top / "a").write_text("y"),
    "size": lambda top: (top / "a").write_text("xx"),
    "owner may execute": lambda top: (top / "a").chmod(0o744),
    "others may execute": lambda top: (top / "a").chmod(0o645),
    "empty folder": lambda top: (top / "more").mkdir(),
    "folder becomes file": lambda top: turn_into_file(top / "empty"),
    "rename": lambda top: (top / "a").rename(top / "b"),
    "link target": lambda top: relink(top / "link", "b"),
    "absolute link target": lambda top: relink(top / "link", "/a"),
    "link becomes its target": lambda top: turn_into_file(top / "link"),
    "hidden file": lambda top: (top / ".hidden").touch(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_seen(tmp_path: Path, change: str) -> None:
    """E11 F47: content, exec bit, empty folder, links and their targets all count."""
    top = plant(tmp_path / "top", {"a": "x"})
    (top / "empty").mkdir()
    (top / "link").symlink_to("a")
    before = digest_tree(FS, top)
    CHANGES[change](top)
    assert digest_tree(FS, top) != before


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "a/b", "a/c", "b/a/a", "\n", "é"]), st.text(max_size=3), max_size=4
    )
)
def test_a_tree_is_what_was_planted(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> None:
    kept = {name: text for name, text in files.items() if not any(n.startswith(f"{name}/") for n in files)}
    top = plant(tmp_path_factory.mktemp("t") / "top", kept)
    found = {entry.path: stat.S_ISDIR(entry.status.st_mode) for entry in walk_tree(FS, top)}
    assert {path for path, is_folder in found.items() if not is_folder} == set(kept)


# What is never followed or opened.


def test_links_are_recorded_and_never_followed(tmp_path: Path) -> None:
    """E11 F48: links to /etc/passwd, to a folder, to nothing and to themselves are their targets only."""
    targets = {"passwd": "/etc/passwd", "loop": "loop", "up": "..", "nowhere": "/none/at/all"}
    for name, target in targets.items():
        (tmp_path / name).symlink_to(target)
    opened = Injection("open_read", nth=0)
    entries = ",".join(
        f'{{"exec":false,"kind":"link","path":"{name}","target":"{targets[name]}"}}'
        for name in sorted(targets)
    )
    assert digest_tree(FaultFs(FS, opened), tmp_path) == digest_of(f"[{entries}]")
    assert opened.hits == 0


def as_device(status: os.stat_result) -> os.stat_result:
    return os.stat_result((stat.S_IFCHR | 0o644, *status[1:]))


def test_fifo_socket_and_device_are_refused_without_opening(tmp_path: Path) -> None:
    """E11 F48: nothing hangs; all are named at once."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "device").touch()
    folder = os.open(tmp_path, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/socket")
    os.close(folder)
    opened = Injection("open_read", nth=0)
    device = Injection("lstat", nth=0, about=lambda path: path.endswith("device"), change=as_device)
    assert faults_of(tmp_path, FaultFs(FS, opened, device)) == [
        (TreeCode.NOT_REGULAR, "device"),
        (TreeCode.NOT_REGULAR, "fifo"),
        (TreeCode.NOT_REGULAR, "socket"),
    ]
    assert opened.hits == 0


def test_hard_links_are_files(tmp_path: Path) -> None:
    """F48: recorded as what they are."""
    one = plant(tmp_path / "one", {"a": "x", "b": "x"})
    two = plant(tmp_path / "two", {"a": "x"})
    (two / "b").hardlink_to(two / "a")
    assert digest_tree(FS, one) == digest_tree(FS, two)


def test_a_file_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    """E11 F48: the swap between look and opening is found."""
    path = tmp_path / "a"
    path.touch()

    def swap() -> None:
        path.unlink()
        path.symlink_to("/etc/passwd")

    with pytest.raises(FileError) as caught:
        digest_tree(FaultFs(FS, Injection("open_read", before=swap)), tmp_path)
    assert caught.value.code is FileCode.FILE_SYMLINK


def test_a_folder_swapped_for_a_link_is_not_entered(tmp_path: Path) -> None:
    """E11 F48: likewise for folders."""
    top = plant(tmp_path / "top", {"d/a": "x"})
    elsewhere = plant(tmp_path / "elsewhere", {"secret": "x"})

    def swap() -> None:
        (top / "d" / "a").unlink()
        (top / "d").rmdir()
        (top / "d").symlink_to(elsewhere)

    with pytest.raises(FileError) as caught:
        digest_tree(FaultFs(FS, Injection("open_dir", nth=2, before=swap)), top)
    assert caught.value.code in {FileCode.NOT_REGULAR, FileCode.FILE_SYMLINK}


# What is refused by name.


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """E11 E65: refused by name, shown without raw bytes."""
    (tmp_path / "ok").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")).touch()
    assert faults_of(tmp_path) == [(TreeCode.NAME_NOT_UTF8, "bad\\udcff")]


def test_a_link_target_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.fsdecode(b"\xff"))
    assert faults_of(tmp_path) == [(TreeCode.NAME_NOT_UTF8, "link")]


@pytest.mark.parametrize(("one", "other"), [("a", "A"), ("ß", "ss"), ("\u017f", "S"), ("d/É", "d/é")])
def test_names_equal_after_case_folding(tmp_path: Path, one: str, other: str) -> None:
    """E11 E65: two names of one folder that some file systems cannot tell apart."""
    top = plant(tmp_path / "top", {one: "", other: ""})
    [(code, where)] = faults_of(top)
    assert code is TreeCode.NAME_COLLISION
    assert where in {one, other}


def test_folders_equal_after_case_folding(tmp_path: Path) -> None:
    top = plant(tmp_path / "top", {"d/a": "", "D/b": ""})
    assert faults_of(top) == [(TreeCode.NAME_COLLISION, "d")]


def test_nesting_has_a_limit(tmp_path: Path) -> None:
    """E65: 128 folders are walked, one more is refused, whatever the limit of descriptors."""
    path = tmp_path
    for _ in range(DEEPEST_FOLDER - 1):
        path /= "d"
        path.mkdir()
    (path / "f").touch()
    digest_tree(FS, tmp_path)
    (path / "d").mkdir()
    assert faults_of(tmp_path) == [(TreeCode.TOO_DEEP, "d/" * DEEPEST_FOLDER)]


def test_all_faults_of_a_tree_are_told_at_once(tmp_path: Path) -> None:
    top = plant(tmp_path / "top", {"x": "", "X": "", "d/y": "", "d/Y": ""})
    os.mkfifo(top / "a")
    assert faults_of(top) == [
        (TreeCode.NOT_REGULAR, "a"),
        (TreeCode.NAME_COLLISION, "d/y"),
        (TreeCode.NAME_COLLISION, "x"),
    ]


def test_every_tree_code_is_seen() -> None:
    """E65: the tests of this file raise exactly the members of the enum."""
    assert set(TreeCode) == {
        TreeCode.NAME_NOT_UTF8,
        TreeCode.NAME_COLLISION,
        TreeCode.NOT_REGULAR,
        TreeCode.TOO_DEEP,
    }


# Roots of trees and kernel errors.


def test_only_a_folder_has_a_tree(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name, code in {
        "file": FileCode.NOT_REGULAR,
        "link": FileCode.NOT_REGULAR,
        "none": FileCode.MISSING,
    }.items():
        with pytest.raises(FileError) as caught:
            digest_tree(FS, tmp_path / name)
        assert (caught.value.code, caught.value.faults[0].where) == (code, name)


@pytest.mark.parametrize(
    ("operation", "nth", "where"),
    [
        ("open_dir", 1, "top"),
        ("listdir", 1, "the folder"),
        ("open_dir", 2, "d"),
        ("listdir", 2, "d/"),
        ("open_read", 1, "d/a"),
        ("read", 1, "d/a"),
        ("readlink", 1, "l"),
    ],
)
def test_an_unreadable_part_is_named(tmp_path: Path, operation: str, nth: int, where: str) -> None:
    top = plant(tmp_path / "top", {"d/a": "x"})
    (top / "l").symlink_to("d")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting only
    with pytest.raises(FileError) as caught:
        digest_tree(FaultFs(FS, Injection(operation, errno.EACCES, nth)), top)
    assert (caught.value.code, caught.value.faults[0].where) == (FileCode.NOT_READABLE, where)
    del caught
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - counting only
