"""Where paths lead, compared with the kernel's own answer."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.resolution import PathResolver, UnresolvedError, holds
from tests.support.crash_images import fast_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with fast_folder() as top:
        (top / "a" / "b" / "c").mkdir(parents=True)
        (top / "file").touch()
        (top / "up").symlink_to("..")
        (top / "a" / "abs").symlink_to(top / "a" / "b")
        (top / "a" / "b" / "rel").symlink_to("../../file")
        (top / "a" / "gone").symlink_to("nowhere/at/all")
        (top / "a" / "chain").symlink_to("abs/rel")
        (top / "a" / "dots").symlink_to("./b/../b//c")
        yield top


names = st.sampled_from(
    ["a", "b", "c", "file", "up", "abs", "rel", "gone", "chain", "dots", "..", ".", "", "new"]
)


@given(st.lists(names, max_size=7))
def test_agrees_with_the_library(tree: Path, parts: list[str]) -> None:
    path = f"{tree}/{'/'.join(parts)}"
    assert PathResolver(RealFs()).resolve(path) == os.path.realpath(path)


@given(st.lists(st.lists(names, max_size=5), max_size=8))
def test_remembers_nothing_wrong(tree: Path, paths: list[list[str]]) -> None:
    resolver = PathResolver(RealFs())
    for parts in paths:
        path = f"{tree}/{'/'.join(parts)}"
        assert resolver.resolve(path) == os.path.realpath(path)
    assert resolver.asked == len(paths)


@pytest.mark.parametrize("path", ["/", "//", "/.", "/..", "/../etc/.."])
def test_of_the_top(path: str) -> None:
    assert PathResolver(RealFs()).resolve(path) == "/"


def test_loops_have_no_answer(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(UnresolvedError):
        PathResolver(RealFs()).resolve(f"{tmp_path}/one/x")


def test_a_chain_as_long_as_the_kernel_takes(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    for number in range(1, 42):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    resolver = PathResolver(RealFs())
    assert resolver.resolve(f"{tmp_path}/40") == f"{tmp_path.resolve()}/0"
    with pytest.raises(UnresolvedError):
        resolver.resolve(f"{tmp_path}/41")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_what_cannot_be_looked_at_has_no_answer(tmp_path: Path, number: int) -> None:
    fs = FaultFs(RealFs(), Injection("lstat", number, about=lambda path: path.endswith("secret")))
    with pytest.raises(UnresolvedError):
        PathResolver(fs).resolve(f"{tmp_path}/secret/x")


def test_very_long_paths_end() -> None:
    path = "/x" * 30_000
    assert PathResolver(RealFs()).resolve(path) == path


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/c", True),
        ("/a/b/", "/a/b/c", True),
        ("/", "/a", True),
        ("/", "/", True),
        ("/a/b", "/a/bc", False),
        ("/a/b", "/a", False),
        ("/a/b", "/A/b/c", False),
    ],
)
def test_what_a_folder_holds(folder: str, path: str, expected: bool) -> None:  # noqa: FBT001 - of the table
    """T18: a name that merely begins with the folder's is beside it."""
    assert holds(folder, path) is expected
