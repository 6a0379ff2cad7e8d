"""Steps: containers, outputs, wiring."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.loop.steps import (
    InputUnavailableError,
    Output,
    StepStore,
    lay_mirror,
    read_output,
)
from skill_effectiveness.acceptance.loop.words import OutputFault
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

FS = RealFs()
MIB = 1024 * 1024


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A mirror of an output folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    """A run directory."""
    with PrivateRoot.create(
        tmp_path / "run", RootKind.REPO, around=Surroundings.real(), checkout=None
    ) as made:
        yield made


class TestOutputs:
    def test_regular_files(self, out: Path) -> None:
        """L37: files in folders, of any mode."""
        (out / "a").mkdir()
        (out / "a" / "b").write_bytes(b"1")
        (out / "c").write_bytes(b"")
        (out / "c").chmod(0o777)
        assert read_output(FS, out) == Output({"a/b": b"1", "c": b""})

    def test_links_and_special_entries(self, out: Path) -> None:
        """L37: none is followed, opened or waited for."""
        (out / "x").symlink_to("/etc/passwd")
        assert read_output(FS, out) == Output({}, OutputFault.LINK)
        (out / "x").unlink()
        (out / "x").symlink_to("y")
        assert read_output(FS, out).fault is OutputFault.LINK
        (out / "x").unlink()
        os.mkfifo(out / "x")
        assert read_output(FS, out).fault is OutputFault.SPECIAL
        (out / "x").unlink()
        with socket.socket(socket.AF_UNIX) as listening:
            here = Path.cwd()
            os.chdir(out)
            try:
                listening.bind("x")
            finally:
                os.chdir(here)
            assert read_output(FS, out).fault is OutputFault.SPECIAL

    def test_sizes(self, out: Path) -> None:
        """L43: 10 MiB a file and 64 MiB a step pass; one byte more does not."""
        for number in range(6):
            with (out / str(number)).open("wb") as file:
                file.truncate(10 * MIB)
        with (out / "6").open("wb") as file:
            file.truncate(4 * MIB)
        assert read_output(FS, out).fault is None
        (out / "7").write_bytes(b"x")
        assert read_output(FS, out).fault is OutputFault.TOTAL_SIZE
        (out / "7").unlink()
        with (out / "0").open("ab") as file:
            file.write(b"x")
        assert read_output(FS, out).fault is OutputFault.FILE_SIZE

    def test_entries(self, out: Path) -> None:
        """L43: 2,000 entries, folders counted."""
        (out / "f").mkdir()
        for number in range(1_999):
            (out / "f" / str(number)).touch()
        assert read_output(FS, out).fault is None
        (out / "g").mkdir()
        assert read_output(FS, out).fault is OutputFault.ENTRIES

    def test_names(self, out: Path) -> None:
        """L37: names that cannot be kept everywhere."""
        for name in (b"\xff", b"a\nb", b"n" * 250):
            place = os.path.join(os.fsencode(out), name)  # noqa: PTH118 - bytes
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
            assert read_output(FS, out).fault is OutputFault.NAME
            os.unlink(place)  # noqa: PTH108 - bytes
        (out / "A").touch()
        (out / "a").touch()
        assert read_output(FS, out).fault is OutputFault.NAME

    def test_a_folder_that_went_away(self, out: Path) -> None:
        """L37: the folder itself replaced or removed."""
        out.rmdir()
        assert read_output(FS, out).fault is OutputFault.UNREADABLE
        out.symlink_to("/etc")
        assert read_output(FS, out).fault is OutputFault.UNREADABLE

    def test_a_deep_tree(self, out: Path) -> None:
        """L43: deeper than anything that is kept."""
        place = out
        for _ in range(40):
            place /= "d"
        place.mkdir(parents=True)
        assert read_output(FS, out).fault is OutputFault.DEPTH


class TestStore:
    def test_containers_and_modes(self, root: PrivateRoot) -> None:
        """L33 L36 L40: `steps/<n>/in` and `out`; 0700 and 0600; numbers go on."""
        store = StepStore(root)
        assert (store.begin(), store.begin()) == (1, 2)
        store.give(1, {"a/b": b"1"})
        store.take(1, Output({"c/d/e": b"2"}))
        for folder in ("steps", "steps/1", "steps/1/in", "steps/1/in/a", "steps/1/out/c/d", "steps/2/out"):
            assert (root.path / folder).stat().st_mode & 0o777 == 0o700
        for file in ("steps/1/in/a/b", "steps/1/out/c/d/e", "steps/1/manifest.json"):
            assert (root.path / file).stat().st_mode & 0o777 == 0o600

    def test_the_manifest(self, root: PrivateRoot) -> None:
        """L44: path, size and digest of every file; its own digest is answered."""
        store = StepStore(root)
        digest = store.take(store.begin(), Output({"b": b"22", "a": b"1"}))
        data = (root.path / "steps" / "1" / "manifest.json").read_bytes()
        assert digest == digest_bytes(data)
        assert json.loads(data) == {
            "files": [
                {"path": "a", "size": 1, "sha256": digest_bytes(b"1")},
                {"path": "b", "size": 2, "sha256": digest_bytes(b"22")},
            ],
            "rejected": None,
        }

    def test_a_rejected_output_stays_beside(self, root: PrivateRoot) -> None:
        """L37: the next step gets nothing of it."""
        store = StepStore(root)
        store.take(store.begin(), Output({"a": b"1"}, OutputFault.LINK))
        assert store.files(1, "out") == {}
        assert (root.path / "steps" / "1" / "rejected" / "a").read_bytes() == b"1"

    def test_wiring(self, root: PrivateRoot) -> None:
        """L35: a file, a folder, a whole output, under other names."""
        store = StepStore(root)
        store.take(store.begin(), Output({"design.md": b"d", "f/x": b"x", "f/y/z": b"z"}))
        assert store.wired({"spec.md": "steps/1/out/design.md"}) == {"spec.md": b"d"}
        assert store.wired({"g": "steps/1/out/f"}) == {"g/x": b"x", "g/y/z": b"z"}
        assert store.wired({"all": "steps/1/out"}) == {
            "all/design.md": b"d",
            "all/f/x": b"x",
            "all/f/y/z": b"z",
        }
        assert store.wired({}) == {}

    @pytest.mark.parametrize(
        "inputs",
        [
            {"a": "steps/1/out/missing"},
            {"a": "steps/2/out/x"},
            {"a": "steps/0/out/x"},
            {"a": "steps/1/out/../../../events.ndjson"},
            {"a": "events.ndjson"},
            {"a": "/etc/passwd"},
            {"a": "steps/1/../1/out/x"},
            {"../a": "steps/1/out/x"},
            {"": "steps/1/out/x"},
            {"a": "steps/1/out/x", "a/b": "steps/1/out/x"},
            {"a": "steps/1/out/x", "A": "steps/1/out/x"},
        ],
    )
    def test_wiring_that_leads_nowhere(self, root: PrivateRoot, inputs: dict[str, str]) -> None:
        """L42: absent, or outside of the run directory."""
        store = StepStore(root)
        store.take(store.begin(), Output({"x": b"x"}))
        with pytest.raises(InputUnavailableError):
            store.wired(inputs)


def test_a_mirror(tmp_path: Path) -> None:
    """L36 L38: 0700 and 0600, whatever the umask."""
    before = os.umask(0)
    try:
        lay_mirror(FS, tmp_path / "in", {"a/b/c": b"1", "a/d": b"2", "e": b"3"})
    finally:
        os.umask(before)
    assert (tmp_path / "in" / "a" / "b" / "c").read_bytes() == b"1"
    for place in (tmp_path / "in").rglob("*"):
        assert place.stat().st_mode & 0o777 == (0o700 if place.is_dir() else 0o600)
