"""Task folders of another harness, taken over."""

from __future__ import annotations

import errno
import tomllib
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.harbor_import import ImportWord, import_harbor
from skill_effectiveness.studies.task_folder import read_task_folder
from tests.support.private import surroundings
from tests.support.studies import write

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.studies.harbor_import import ImportedTask

FS = RealFs()
TASK = {
    "task.toml": (
        b'version = "1.0"\n\n[metadata]\ndifficulty = "easy"\n\n[environment]\ncpus = 1\n'
        b'[environment.env]\nMODE = "task"\n'
    ),
    "instruction.md": b"Say hello.\r\n",
    "tests/test.sh": b"#!/bin/bash\n",
    "solution/solve.sh": b"#!/bin/bash\n",
    "environment/data.txt": b"in\n",
}
DOCKERFILE = b"FROM python:3.13\nWORKDIR /srv/app\nENV MODE=image LANG=C\nCOPY data.txt input/\n"
IMPORTED, NEEDS_IMAGE, REFUSED = ImportWord.IMPORTED, ImportWord.NEEDS_IMAGE, ImportWord.REFUSED


def task(folder: Path, name: str, **others: bytes | None) -> Path:
    files = {**TASK, **others}
    return write(folder / name, {path: data for path, data in files.items() if data is not None})


def taken(folder: Path, *, host: bool = False, out: str = "out") -> tuple[ImportedTask, ...]:
    return import_harbor(folder / "in", folder / out, host=host, around=surroundings())


def words(told: tuple[ImportedTask, ...]) -> dict[str, ImportWord]:
    return {each.task_id: each.word for each in told}


class TestAsItIs:
    def test_every_byte(self, tmp_path: Path) -> None:
        """S11: a task that can be used is the same task afterwards, execute bits and links included."""
        one = task(tmp_path / "in", "one")
        (one / "tests" / "test.sh").chmod(0o755)
        (one / "environment" / "again").symlink_to("data.txt")
        task(tmp_path / "in", "two", **{"README.md": b"x"})
        (tmp_path / "in" / ".git").mkdir()
        write(tmp_path / "in", {"dataset.json": b"{}"})
        assert words(taken(tmp_path)) == {"one": IMPORTED, "two": IMPORTED}
        assert digest_tree(FS, tmp_path / "out" / "one") == digest_tree(FS, one)
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["one", "two"]

    def test_one_folder_alone(self, tmp_path: Path) -> None:
        """S11: a task folder itself may be named."""
        task(tmp_path, "in")
        assert words(taken(tmp_path)) == {"in": IMPORTED}
        read_task_folder(FS, tmp_path / "out" / "in")

    def test_a_refused_one_among_others(self, tmp_path: Path) -> None:
        """S11: each reason by name and line; the others are imported."""
        task(tmp_path / "in", "good")
        task(tmp_path / "in", "image", **{"environment/Dockerfile": DOCKERFILE})
        task(
            tmp_path / "in", "odd", **{"task.toml": b'version = "1.0"\nsteps = [1]\n', "instruction.md": None}
        )
        told = taken(tmp_path)
        assert words(told) == {"good": IMPORTED, "image": NEEDS_IMAGE, "odd": REFUSED}
        assert {(each.name, each.line) for each in told[2].refusals} == {
            ("steps", 2),
            ("instruction.md", None),
        }
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]

    def test_nothing_but_refused_ones(self, tmp_path: Path) -> None:
        """S11: then nothing is made."""
        task(tmp_path / "in", "image", **{"environment/Dockerfile": DOCKERFILE})
        assert words(taken(tmp_path)) == {"image": NEEDS_IMAGE}
        assert [path.name for path in tmp_path.iterdir()] == ["in"]


class TestHost:
    def test_what_a_dockerfile_says(self, tmp_path: Path) -> None:
        """S12: files, working folder and variables, the base recorded; the task's own word outweighs."""
        task(tmp_path / "in", "one", **{"environment/Dockerfile": DOCKERFILE, "environment/other": b"x"})
        assert words(taken(tmp_path, host=True)) == {"one": IMPORTED}
        made = read_task_folder(FS, tmp_path / "out" / "one")
        assert [entry.path for entry in made.environment.entries] == ["input", "input/data.txt"]
        assert (tmp_path / "out/one/environment/input/data.txt").read_bytes() == b"in\n"
        assert (made.workdir, made.environment_env) == ("/srv/app", {"MODE": "task", "LANG": "C"})
        assert made.metadata == {"difficulty": "easy", "host_base_image": "python:3.13"}
        assert made.instruction == b"Say hello.\r\n"
        said = tomllib.loads((tmp_path / "out/one/task.toml").read_text())
        assert said["environment"]["cpus"] == 1

    def test_a_task_without_a_dockerfile_stays_as_it_is(self, tmp_path: Path) -> None:
        """S12: every byte."""
        one = task(tmp_path / "in", "one")
        taken(tmp_path, host=True)
        assert digest_tree(FS, tmp_path / "out" / "one") == digest_tree(FS, one)

    def test_any_other_instruction(self, tmp_path: Path) -> None:
        """S12: stays needs_image, with its line and word."""
        task(tmp_path / "in", "one", **{"environment/Dockerfile": DOCKERFILE + b"RUN true\n"})
        (told,) = taken(tmp_path, host=True)
        assert told.word is NEEDS_IMAGE
        (refusal,) = told.refusals
        assert (refusal.name, refusal.line) == ("needs_image", 5)
        assert refusal.sentence.startswith("environment/Dockerfile has RUN;")

    @pytest.mark.parametrize(
        ("files", "found"),
        [
            ({"environment/docker-compose.yaml": b"x"}, {("needs_image", None)}),
            ({"environment/Dockerfile": b"\xff"}, {("needs_image", None)}),
            ({"environment/.dockerignore": b"*\n"}, {("needs_image", None)}),
            ({"task.toml": b'version = "1.0"\n\n\n[environment]\ngpus = 1\n'}, {("environment.gpus", 5)}),
            ({"task.toml": b'version = "1.0"\nenvironment = 3\n'}, {("environment", 2)}),
            ({"task.toml": b'version = "1.0"\nmetadata = 3\n'}, {("metadata", 2)}),
            ({"task.toml": b'version = "1.0"\n[environment]\nenv = 3\n'}, {("environment.env", 3)}),
            ({"task.toml": b"x = = 1\n"}, {("task.toml", 1)}),
            ({"task.toml": b""}, {("schema_version", 1)}),
            ({"task.toml": None}, {("task.toml", None), ("schema_version", 1)}),
            ({"environment/Dockerfile": b"FROM x\nWORKDIR /tests\n"}, {("needs_image", None)}),
            (
                {"environment/Dockerfile": b"FROM x\nCOPY Dockerfile /app/Dockerfile\n"},
                {("needs_image", None)},
            ),
        ],
    )
    def test_whatever_else_is_wrong(
        self, tmp_path: Path, files: dict[str, bytes | None], found: set[tuple[str, int | None]]
    ) -> None:
        """S11 S12: a Dockerfile hides no other reason, and lines are those that the author wrote."""
        task(tmp_path / "in", "good")
        task(tmp_path / "in", "one", **{"environment/Dockerfile": DOCKERFILE, **files})
        told = taken(tmp_path, host=True)
        assert {(each.name, each.line) for each in told[1].refusals} == found

    def test_a_link_that_would_lead_elsewhere(self, tmp_path: Path) -> None:
        """S12: what would be another file than in the image is not copied."""
        one = task(
            tmp_path / "in",
            "one",
            **{"environment/Dockerfile": b"FROM x\nCOPY sub /app\n", "environment/sub/a": b""},
        )
        (one / "environment" / "sub" / "up").symlink_to("../data.txt")
        (told,) = taken(tmp_path, host=True)
        assert "link that leads out" in told.refusals[0].sentence


class TestTheNewFolder:
    def test_again(self, tmp_path: Path) -> None:
        """S11: the same call changes nothing; what else lies there stays."""
        task(tmp_path / "in", "one", **{"environment/Dockerfile": DOCKERFILE})
        taken(tmp_path, host=True)
        before = digest_tree(FS, tmp_path / "out")
        taken(tmp_path, host=True)
        assert digest_tree(FS, tmp_path / "out") == before
        write(tmp_path, {"out/one/more": b""})
        with pytest.raises(StudyError) as caught:
            taken(tmp_path, host=True)
        assert (caught.value.code, caught.value.where) == (StudyCode.IMPORT_OCCUPIED, "out")

    @pytest.mark.parametrize("kind", ["file", "link", "folder"])
    def test_occupied(self, tmp_path: Path, kind: str) -> None:
        """S65: nothing is replaced."""
        task(tmp_path / "in", "one")
        out = tmp_path / "out"
        if kind == "file":
            out.write_bytes(b"")
        elif kind == "link":
            out.symlink_to("nowhere")
        else:
            out.mkdir()
        with pytest.raises(StudyError) as caught:
            taken(tmp_path)
        assert caught.value.code is StudyCode.IMPORT_OCCUPIED

    @pytest.mark.parametrize("operation", ["write", "mkdir", "rename"])
    def test_a_full_disk(self, tmp_path: Path, operation: str) -> None:
        """S65: the folder appears whole or not at all, and nothing is left beside it."""
        task(tmp_path / "in", "one")
        fs = FaultFs(RealFs(), Injection(operation, errno.ENOSPC, nth=1))
        with pytest.raises(FileError):
            import_harbor(tmp_path / "in", tmp_path / "out", host=False, around=surroundings(fs))
        assert [path.name for path in tmp_path.iterdir()] == ["in"]

    @pytest.mark.parametrize(
        ("name", "code"),
        [("empty", StudyCode.NO_TASK), ("none", StudyCode.INPUT_MISSING), ("file", StudyCode.INPUT_MISSING)],
    )
    def test_no_tasks(self, tmp_path: Path, name: str, code: StudyCode) -> None:
        """S65: a typed fault."""
        (tmp_path / "empty").mkdir()
        write(tmp_path, {"file": b""})
        with pytest.raises(StudyError) as caught:
            import_harbor(tmp_path / name, tmp_path / "out", host=False, around=surroundings())
        assert caught.value.code is code
