"""Each kind of difference between two launches, planted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.providers import ADAPTERS, LaunchShape, Treatment
from skill_effectiveness.providers.launch import file_word
from skill_effectiveness.studies.file_trees import EntryKind, FileTree, HeldTree, TreeEntry
from skill_effectiveness.studies.treatment_diff import (
    Given,
    differences,
    is_as_frozen,
    launch_digest,
    tree_words,
)
from tests.support.launches import MODELS, PROGRAMS, launched, mounted, without

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TREATMENT = Treatment(
    skills="{session}/data/skills",
    instructions="{session}/config/AGENTS.md",
    options={"--tools": ("Read", "Read,Skill"), "--plugin": (None, "{session}/data")},
    environment={"QUIET": ("1", "0")},
    files={"{session}/config/rules": (b"no", b"yes")},
)
PAYLOAD = HeldTree.of_files({"one/SKILL.md": b"one", "one/deep/more": b"more"}).tree
GIVEN = Given(PAYLOAD, b"House rules.")
OFF = LaunchShape(
    argv=("{program}", "--tools", "Read", "--model", "m", "-"),
    folder="{copy}",
    stdin="{prompt}",
    environment={"HOME": "{session}/home", "QUIET": "1", "PATH": "/bin"},
    writable=("{copy}",),
    tree={
        "{session}/config/rules": file_word(b"no"),
        "{session}/config/auth.json": "link /home/auth.json",
        "{copy}/start": file_word(b"start"),
    },
    users=frozenset({"PATH"}),
    logins=frozenset({"{session}/config/auth.json"}),
)
FULL = replace(
    OFF,
    argv=("{program}", "--tools", "Read,Skill", "--model", "m", "--plugin", "{session}/data", "-"),
    environment=dict(OFF.environment) | {"QUIET": "0"},
    tree=dict(OFF.tree)
    | {
        "{session}/config/rules": file_word(b"yes"),
        "{session}/config/AGENTS.md": file_word(b"House rules."),
        "{session}/data/skills": "folder",
        "{session}/data/skills/one": "folder",
        "{session}/data/skills/one/SKILL.md": file_word(b"one"),
        "{session}/data/skills/one/deep": "folder",
        "{session}/data/skills/one/deep/more": file_word(b"more"),
    },
)


def found(off: LaunchShape, full: LaunchShape, treatment: Treatment = TREATMENT) -> tuple[str, ...]:
    return differences(off, full, treatment, GIVEN)


def tree(**paths: str | None) -> LaunchShape:
    """The full launch with other words at some paths, in which `__` is a slash; `None` takes one away."""
    shape = FULL
    for path, word in paths.items():
        name = f"{{session}}/{path.replace('__', '/')}"
        shape = without(shape, name) if word is None else replace(shape, tree=dict(shape.tree) | {name: word})
    return shape


def variables(**given: str | None) -> LaunchShape:
    both = dict(FULL.environment) | {name: value for name, value in given.items() if value is not None}
    gone = {name for name, value in given.items() if value is None}
    return replace(FULL, environment={name: value for name, value in both.items() if name not in gone})


class TestDifferences:
    def test_the_declared_treatment_alone(self) -> None:
        """S35 F33: nothing else, and all of it."""
        assert found(OFF, FULL) == ()

    def test_an_equal_pair(self) -> None:
        """S35 F36: not nothing, also where nothing was declared."""
        assert found(OFF, OFF) == ("nothing",)
        assert differences(OFF, OFF, Treatment("s", "i"), Given(FileTree(()), None)) == ("nothing",)

    @pytest.mark.parametrize(
        ("argv", "places"),
        [
            (("{program}", "--tools", "Read,Skill", "--model", "m", "-f", "--plugin", "{session}/data", "-"),
             ("argv[5]",)),
            (("{program}", "--tools", "Read,Skill", "--model", "n", "--plugin", "{session}/data", "-"),
             ("argv[4]",)),
            (("{program}", "--tools", "Read,Skill", "--plugin", "{session}/data", "-"),
             ("argv[3] of off", "argv[4] of off")),
            (("{program}", "--tools", "Read,Skill,Web", "--model", "m", "--plugin", "{session}/data", "-"),
             ("argv --tools",)),
            (("{program}", "--tools", "Read,Skill", "--tools", "Web", "--model", "m", "--plugin",
              "{session}/data", "-"), ("argv --tools",)),
            (("{program}", "--tools", "Read,Skill", "--model", "m", "-"), ("argv --plugin",)),
            (("{program}", "--model", "m", "--plugin", "{session}/data", "-", "--tools"), ("argv --tools",)),
            (("{program}", "--tools", "Read,Skill", "-", "--model", "m", "--plugin", "{session}/data"),
             ("argv[3]", "argv[5] of off")),
        ],
    )  # fmt: skip
    def test_arguments(self, argv: tuple[str, ...], places: tuple[str, ...]) -> None:
        """S35 F33: one more, another, less, a tool more, an option twice, none, half of one, another way."""
        assert found(OFF, replace(FULL, argv=argv)) == places

    @pytest.mark.parametrize(
        ("shape", "places"),
        [
            (variables(FAST="1"), ("env FAST",)),
            (variables(HOME="{session}/data"), ("env HOME",)),
            (variables(HOME=None), ("env HOME",)),
            (variables(QUIET="1"), ("env QUIET",)),
            (variables(PATH="/other"), ("env PATH",)),
            (replace(FULL, users=frozenset()), ("env PATH",)),
        ],
    )
    def test_variables(self, shape: LaunchShape, places: tuple[str, ...]) -> None:
        """S35 F33: one more, another value, one less, a declared one that stayed, the user's, whose it is."""
        assert found(OFF, shape) == places

    @pytest.mark.parametrize(
        ("shape", "place"),
        [
            (tree(data__extra=file_word(b"x")), "data/extra"),
            (tree(data__skills__one__SKILL=file_word(b"x")), "data/skills/one/SKILL"),
            (tree(config__rules=file_word(b"no")), "config/rules"),
            (tree(config__rules=None), "config/rules"),
            (tree(data__skills__one__deep__more=None), "data/skills/one/deep/more"),
            (tree(data__skills__one__SKILL=file_word(b"", executable=True)), "data/skills/one/SKILL"),
            (tree(data__skills__one__deep__more="link /etc"), "data/skills/one/deep/more"),
            (tree(data__skills__two="folder"), "data/skills/two"),
            (replace(FULL, logins=frozenset()), "config/auth.json"),
        ],
    )  # fmt: skip
    def test_files(self, shape: LaunchShape, place: str) -> None:
        """S35 F33: one more, a declared one as it was or missing, one of a skill, a folder, a login."""
        assert found(OFF, shape) == (f"tree {{session}}/{place}",)

    def test_a_missing_skill_and_missing_instructions(self) -> None:
        """S35 F31: every file of it is named."""
        paths = [path for path in FULL.tree if "/skills/one" in path or path.endswith("AGENTS.md")]
        shape = FULL
        for path in paths:
            shape = without(shape, path)
        assert found(OFF, shape) == tuple(f"tree {path}" for path in sorted(paths))

    def test_a_file_of_the_working_copy(self) -> None:
        """S35 F33: nothing of the treatment lies there."""
        shape = replace(FULL, tree=dict(FULL.tree) | {"{copy}/AGENTS.md": file_word(b"x")})
        assert found(OFF, shape) == ("tree {copy}/AGENTS.md",)

    def test_where_it_runs_and_what_it_is_told(self) -> None:
        """S35 F33: each by its name."""
        shape = replace(FULL, folder="{session}/work", stdin="sha256:0", writable=None)
        assert found(OFF, shape) == ("folder", "stdin", "writable")

    def test_an_off_arm_that_is_not_what_is_declared(self) -> None:
        """S35 F33: a treatment that is there already is none."""
        argv = ("{program}", "--tools", "Read,Skill", "--model", "m", "-")
        off = replace(OFF, argv=argv, environment=dict(OFF.environment) | {"QUIET": "0"})
        off = replace(off, tree=dict(off.tree) | {"{session}/config/rules": file_word(b"yes")})
        assert found(off, FULL) == ("argv --tools of off", "env QUIET", "tree {session}/config/rules")

    def test_no_value_is_ever_told(self) -> None:
        """S35 P3: a value may be a key, or the text of a skill."""
        shape = replace(variables(FAST="secret-canary"), argv=(*FULL.argv, "secret-canary"))
        assert "canary" not in " ".join(found(OFF, shape))


@pytest.mark.parametrize("provider", PROGRAMS)
class TestTheAdapters:
    """What the adapters declare is what they do, for every form of a treatment."""

    @pytest.mark.parametrize(("skills", "rules"), [(True, True), (True, False), (False, True)])
    def test_what_is_declared_is_what_is_laid(
        self, provider: str, tmp_path: Path, *, skills: bool, rules: bool
    ) -> None:
        """S35 F33: skills, instructions, or both."""
        mount = mounted(tmp_path, skills=skills, instructions=rules)
        off, arm = launched(provider, tmp_path), launched(provider, tmp_path, mount)
        assert differences(off, arm, declared(provider, skills, rules), given(skills, rules)) == ()
        other = declared(provider, not skills, rules)
        if provider in {"claude", "opencode"}:
            assert differences(off, arm, other, given(skills, rules)) != ()

    def test_another_skill_is_another_tree(self, provider: str, tmp_path: Path) -> None:
        """S35: one byte of a skill, by its path."""
        off, arm = launched(provider, tmp_path), launched(provider, tmp_path, mounted(tmp_path))
        treatment = declared(provider, skills=True, rules=True)
        other = Given(HeldTree.of_files({"right-words/SKILL.md": b"other"}).tree, b"rules-canary\n")
        places = differences(off, arm, treatment, other)
        assert f"tree {treatment.skills}/right-words/SKILL.md" in places
        assert f"tree {treatment.skills}/right-words/bin/run.sh" in places


def declared(provider: str, skills: bool, rules: bool) -> Treatment:  # noqa: FBT001 - two facts of an arm
    adapter = ADAPTERS[provider]
    blank = adapter.__new__(adapter)
    return blank.treatment(MODELS[provider], skills=skills, instructions=rules)


def given(skills: bool, rules: bool) -> Given:  # noqa: FBT001 - two facts of an arm
    """The mount of `tests.support.launches`, by hand."""
    files = {
        "right-words/SKILL.md": b"---\nname: right-words\n---\nskill-canary\n",
        "right-words/bin/run.sh": b"true\n",
    }
    entries = [
        entry._replace(executable=entry.path.endswith("run.sh"))
        for entry in HeldTree.of_files(files).tree.entries
    ]
    return Given(FileTree.of(entries if skills else []), b"rules-canary\n" if rules else None)


class TestTheDigest:
    @pytest.mark.parametrize(
        "change",
        [
            lambda shape: replace(shape, environment=dict(shape.environment) | {"PATH": "/other"}),
            lambda shape: replace(shape, tree=dict(shape.tree) | {"{copy}/more": file_word(b"x")}),
            lambda shape: replace(shape, tree=dict(shape.tree) | {"{session}/home/empty": "folder"}),
            lambda shape: without(shape, "{session}/config/auth.json"),
        ],
    )
    def test_what_is_not_the_arms_is_no_part_of_it(
        self, change: Callable[[LaunchShape], LaunchShape]
    ) -> None:
        """S35: the user's own values, the task's files, empty folders, a login."""
        assert launch_digest(change(FULL)) == launch_digest(FULL)

    @pytest.mark.parametrize(
        "shape",
        [
            OFF,
            replace(FULL, argv=(*FULL.argv, "--fast")),
            replace(FULL, folder="{session}/work"),
            replace(FULL, stdin="sha256:0"),
            replace(FULL, writable=None),
            variables(FAST="1"),
            variables(HOME="{session}/data"),
            tree(data__extra=file_word(b"x")),
            tree(data__skills__one__SKILL=file_word(b"x")),
            tree(data__link="link /etc"),
        ],
    )
    def test_everything_else_is(self, shape: LaunchShape) -> None:
        """S35 F33: each kind of difference is another digest."""
        assert launch_digest(shape) != launch_digest(FULL)

    def test_a_known_digest(self) -> None:
        """S35: of canonical JSON, so that it is the same everywhere."""
        shape = LaunchShape(("{program}",), "{copy}", "{prompt}", {"A": "1"}, None, {})
        text = (
            '{"argv":["{program}"],"environment":{"A":"1"},"folder":"{copy}","stdin":"{prompt}","tree":{},'
            '"writable":null}'
        )
        assert f"file {launch_digest(shape)}" == file_word(text.encode())

    def test_an_attempt_as_it_was_frozen(self) -> None:
        """S35: on the files of its task, and no others."""
        task = HeldTree.of_files({"start": b"start"}).tree
        frozen = launch_digest(FULL)
        assert is_as_frozen(FULL, frozen, task)
        assert not is_as_frozen(OFF, frozen, task)
        assert not is_as_frozen(FULL, frozen, HeldTree.of_files({"start": b"other"}).tree)
        assert not is_as_frozen(FULL, frozen, HeldTree.of_files({}).tree)
        more = replace(FULL, tree=dict(FULL.tree) | {"{copy}/AGENTS.md": file_word(b"x")})
        assert not is_as_frozen(more, frozen, task)

    def test_the_words_of_a_frozen_tree(self) -> None:
        """S35: files with their bits, folders, links."""
        entries = (
            TreeEntry("a", EntryKind.FOLDER),
            TreeEntry("a/x", EntryKind.FILE, executable=True, size=1, sha256="sha256:1"),
            TreeEntry("b", EntryKind.LINK, target="a/x"),
        )
        words = tree_words(FileTree(entries))
        assert words == {"a": "folder", "a/x": "program sha256:1", "b": "link a/x"}
