"""A Dockerfile that only puts files somewhere, and every other one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.dockerfiles import HostImage, NotHostableError, host_image
from skill_effectiveness.studies.file_trees import EntryKind, FileTree, HeldTree, TreeEntry

CONTEXT = FileTree.of(
    [
        *HeldTree.of_files(
            {
                "Dockerfile": b"x",
                "main.py": b"main",
                "run.sh": b"run",
                "src/a.py": b"a",
                "src/deep/b.py": b"b",
                "data.csv": b"1",
            }
        ).tree.entries,
        TreeEntry("link", EntryKind.LINK, target="main.py"),
        TreeEntry("empty", EntryKind.FOLDER),
    ]
)


LINES = st.sampled_from(
    [
        "FROM x", "WORKDIR /app", "WORKDIR a", "COPY . .", "COPY src /app/a", "ENV A=1", "COPY main.py a",
        "RUN x", "\\", "#", "", "COPY run.sh a/",
    ]
)  # fmt: skip


def image(text: str, workdir: str | None = None) -> HostImage:
    return host_image(text, CONTEXT, workdir=workdir, default="/app")


def files(text: str, workdir: str | None = None) -> dict[str, str]:
    """Where each file lies, and from where it came."""
    return {each.entry.path: each.source for each in image(text, workdir).placed if each.source}


def refused(text: str) -> tuple[int | None, str]:
    with pytest.raises(NotHostableError) as caught:
        image(text)
    return caught.value.line, caught.value.sentence


class TestMapped:
    def test_all_five(self) -> None:
        """S12: base, working folder, variables, files and comments."""
        found = image(
            "# syntax=docker/dockerfile:1\n"
            "from python:3.13-slim AS base\n"
            "# A remark.\n\n"
            "WORKDIR /srv\n"
            "workdir code\n"
            'ENV A=1 B="two words" \\\n'
            "    # inside\n"
            "    C='x y'\n"
            "ENV OLD form of it\n"
            "COPY main.py ./\n"
            "COPY src lib\n"
        )
        assert (found.base, found.workdir) == ("python:3.13-slim", "/srv/code")
        assert found.env == {"A": "1", "B": "two words", "C": "x y", "OLD": "form of it"}
        assert {each.entry.path: each.source for each in found.placed} == {
            "main.py": "main.py",
            "lib": "",
            "lib/a.py": "src/a.py",
            "lib/deep": "",
            "lib/deep/b.py": "src/deep/b.py",
        }

    @pytest.mark.parametrize(
        ("copy", "placed"),
        [
            ("COPY main.py main2.py", {"main2.py": "main.py"}),
            ("COPY main.py .", {"main.py": "main.py"}),
            ("COPY main.py /app", {"main.py": "main.py"}),
            ("COPY main.py sub/", {"sub/main.py": "main.py"}),
            ("COPY main.py run.sh sub/", {"sub/main.py": "main.py", "sub/run.sh": "run.sh"}),
            ("COPY main.py run.sh .", {"main.py": "main.py", "run.sh": "run.sh"}),
            ('COPY ["main.py", "a b/"]', {"a b/main.py": "main.py"}),
            ("COPY ./src/ .", {"a.py": "src/a.py", "deep/b.py": "src/deep/b.py"}),
            ("COPY /src/deep ../app/x", {"x/b.py": "src/deep/b.py"}),
            ("COPY main.py x\nCOPY run.sh x", {"x": "run.sh"}),
            ("COPY src x\nCOPY main.py x", {"x/a.py": "src/a.py", "x/deep/b.py": "src/deep/b.py",
                                            "x/main.py": "main.py"}),
        ],
    )  # fmt: skip
    def test_copies(self, copy: str, placed: dict[str, str]) -> None:
        """S12: files, folders' contents, several at once, lists; the last word counts."""
        assert files(f"FROM x\nWORKDIR /app\n{copy}\n") == placed

    def test_everything_beside_it(self) -> None:
        """S12: all but the Dockerfile; links and empty folders as they are."""
        found = image("FROM x\nWORKDIR /app\nCOPY . .\n").placed
        assert [each.entry.path for each in found] == [
            "data.csv", "empty", "link", "main.py", "run.sh", "src", "src/a.py", "src/deep", "src/deep/b.py",
        ]  # fmt: skip

    def test_where_the_working_folder_is(self) -> None:
        """S12: said by the task, else by the Dockerfile, else as usual."""
        assert image("FROM x\n").workdir is None
        assert files("FROM x\nCOPY main.py /app/\n") == {"main.py": "main.py"}
        assert files("FROM x\nWORKDIR /srv\nCOPY main.py app/\n", "/srv/app") == {"main.py": "main.py"}
        assert image("FROM x\nWORKDIR /srv\n", "/srv/app").workdir == "/srv/app"

    def test_windows_line_ends(self) -> None:
        assert files("FROM x\r\nWORKDIR /app\r\nCOPY main.py \\\r\n .\r\n") == {"main.py": "main.py"}


class TestRefused:
    @pytest.mark.parametrize(
        "word",
        ["RUN", "CMD", "LABEL", "EXPOSE", "ADD", "ENTRYPOINT", "VOLUME", "USER", "ARG", "ONBUILD",
         "STOPSIGNAL", "HEALTHCHECK", "SHELL", "MAINTAINER", "SURPRISE"],
    )  # fmt: skip
    def test_every_other_instruction(self, word: str) -> None:
        """S12: by its word and line."""
        line, told = refused(f"FROM x\n# y\n{word.lower()} \\\n  a \\\n  b\nWORKDIR /app\n")
        assert (line, f"has {word};" in told) == (3, True)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("", None),
            ("# nothing\n", None),
            ("WORKDIR /app\n", 1),
            ("ARG A=1\nFROM x:$A\n", 1),
            ("FROM x\nFROM y\n", 2),
            ("FROM --platform=linux/amd64 x\n", 1),
            ("FROM x:$TAG\n", 1),
            ("FROM\n", 1),
            ("# escape=`\nFROM x\n", 1),
            ("FROM x\nWORKDIR app\n", 2),
            ("FROM x\nWORKDIR $HOME\n", 2),
            ('FROM x\nWORKDIR "/a b"\n', 2),
            ("FROM x\nCOPY main.py .\n", 2),
            ("FROM x\nWORKDIR /app\nCOPY main.py /etc/main.py\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY main.py /application/\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY main.py ../main.py\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY --from=y main.py .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY --chown=1:1 main.py .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY *.py .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY none.py .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY ../up.py .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY https://example.org/x .\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY link here\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY main.py run.sh here\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY main.py\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY [main.py, .]\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY [1, 2]\n", 3),
            ('FROM x\nWORKDIR /app\nCOPY "main.py" .\n', 3),
            ("FROM x\nWORKDIR /app\nCOPY <<END a\nhello\nEND\n", 3),
            ("FROM x\nWORKDIR /app\nCOPY main.py a\nCOPY main.py a/b\n", 4),
            ("FROM x\nWORKDIR /app\nCOPY src a/deep\nCOPY main.py a\nCOPY main.py /\n", 5),
            ("FROM x\nENV PATH=/x:$PATH\n", 2),
            ("FROM x\nENV A\n", 2),
            ('FROM x\nENV A "b"\n', 2),
            ('FROM x\nENV A="b\n', 2),
            ("FROM x\nENV A=1 b\n", 2),
            ("FROM x\nENV 1A=1\n", 2),
            ("FROM x\n!\n", 2),
        ],
    )  # fmt: skip
    def test_forms_that_need_a_container(self, text: str, line: int | None) -> None:
        """S12: what hangs on the base, on a variable or on what is elsewhere, with its line."""
        found, told = refused(text)
        assert found == line, told
        assert told.startswith("Dockerfile ")

    @pytest.mark.parametrize("name", [".dockerignore", "Dockerfile.dockerignore"])
    def test_a_list_of_what_is_left_out(self, name: str) -> None:
        """S12: nothing is copied that would not have been."""
        context = HeldTree.of_files({"Dockerfile": b"", name: b"*"}).tree
        with pytest.raises(NotHostableError, match="dockerignore"):
            host_image("FROM x\n", context, workdir=None, default="/app")

    @given(st.lists(LINES, max_size=8))
    def test_any_file(self, lines: list[str]) -> None:
        """S12: it is mapped into the working folder, or refused."""
        try:
            found = image("\n".join(lines))
        except NotHostableError:
            return
        assert all(not each.entry.path.startswith(("/", "..")) for each in found.placed)
        assert "RUN x" not in lines
