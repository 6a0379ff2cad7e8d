"""Which paths a policy may name, and where they lead."""

from __future__ import annotations

import pytest

from skill_effectiveness.acceptance.closeout.policy_paths import is_policy_path, is_skill_path, resolve
from skill_effectiveness.acceptance.closeout.tree import EntryKind


@pytest.mark.parametrize(
    "path",
    [
        "a",
        ".agents/closeout/a.yaml",
        "a/b/c",
        "...",
        "a b/c",
        "ä/ö",
        "a~",
        "a/~",
        "x" * 256,
        "a/.hidden",
        "a\nb",
    ],
)
def test_legal_paths(path: str) -> None:
    assert is_policy_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/a", "//a", "~", "~/a", "a//b", "a/", "/", "a/./b", "./a", "a/../b", "../a", "a/..",
        "a\\b", "\\", "a\0b", "x" * 257, "ä" * 129, "\ud800",
    ],
)  # fmt: skip
def test_each_rule_refuses_on_its_own(path: str) -> None:
    """C5: empty, dot and dot-dot segments, a leading slash or tilde, backslash, NUL, more than 256 bytes."""
    assert not is_policy_path(path)


@pytest.mark.parametrize(
    ("path", "legal"),
    [
        ("a/SKILL.md", True), (".agents/skills/x/SKILL.md", True), ("SKILL.md", False), ("a/skill.md", False),
        ("a/SKILL.md/b", False), ("a/xSKILL.md", False), ("../SKILL.md", False), ("/a/SKILL.md", False),
    ],
)  # fmt: skip
def test_a_skill_path_names_a_skill_file_in_a_folder(path: str, *, legal: bool) -> None:
    """C9: it ends in /SKILL.md."""
    assert is_skill_path(path) is legal


class Tree:
    """Names to kinds; a link is given by its target."""

    def __init__(self, **entries: str) -> None:
        self.entries = {name.replace("__", "/"): text for name, text in entries.items()}

    def kind(self, path: str) -> EntryKind:
        text = self.entries.get(path)
        if text is None:
            return EntryKind.MISSING
        return EntryKind(text) if text in set(EntryKind) else EntryKind.LINK

    def target(self, path: str) -> str:
        return self.entries[path]

    def read(self, path: str) -> bytes:
        raise AssertionError(path)

    def below(self, folder: str) -> list[tuple[str, EntryKind]]:
        raise AssertionError(folder)


@pytest.mark.parametrize(
    ("tree", "place", "kind"),
    [
        (Tree(a="folder", a__b="file"), "a/b", "file"),
        (Tree(a="folder"), "a/b", "missing"),
        (Tree(), "a", "missing"),
        (Tree(a="file"), "a", "missing"),
        (Tree(a="c", c="folder", c__b="file"), "c/b", "file"),
        (Tree(a="x/../c", x="folder", c="folder", c__b="file"), "c/b", "file"),
        (Tree(a="./c/", c="folder", c__b="folder"), "c/b", "folder"),
        (Tree(a="folder", a__b="elsewhere"), "a/b", "link"),
        (Tree(a="gone"), "gone", "missing"),
    ],
)
def test_links_among_the_folders_are_followed_inside_the_root(tree: Tree, place: str, kind: str) -> None:
    """C5: the resolved path is what counts; a link as the last segment is not followed."""
    found = resolve(tree, "a/b")  # type: ignore[arg-type] # a tree of this test
    assert (found.place, found.kind) == (place, kind) or (kind == "missing" and found.kind == "missing")


@pytest.mark.parametrize(
    "tree",
    [Tree(a=".."), Tree(a="../c"), Tree(a="/etc"), Tree(a="c", c="../.."), Tree(a="a"), Tree(a="c", c="a")],
)
def test_links_that_leave_the_root_or_never_end(tree: Tree) -> None:
    """C5: up, absolute, by way of another link, and in circles."""
    assert resolve(tree, "a/b").place is None  # type: ignore[arg-type] # a tree of this test
