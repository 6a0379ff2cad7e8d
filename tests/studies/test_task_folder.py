"""Task folders: the shape of Harbor, and each refused name alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.task_folder import TaskRefusedError, read_task_folder
from tests.support.studies import write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FS = RealFs()
TOML = """\
schema_version = "1.3"
[task]
name = "org/hello"
authors = [{name = "Somebody"}]
[metadata]
task_family = "diagnosis"
difficulty = "easy"
[agent]
timeout_sec = 90
[verifier]
timeout_sec = 30.5
env = {MODE = "strict"}
[environment]
workdir = "/work/here"
network_mode = "no-network"
allow_internet = false
cpus = 2
memory_mb = 512
storage_mb = 1024
build_timeout_sec = 60.0
environment_mode = "shared"
os = "linux"
gpus = 0
docker_image = ""
skills_dir = ""
mcp_servers = []
env = {LANG = "C"}
[solution]
env = {}
"""
FILES: Mapping[str, bytes] = {
    "task.toml": TOML.encode(),
    "instruction.md": b"Say hello.\r\n",
    "environment/data/in.txt": b"in\n",
    "tests/test.sh": b"echo 1\n",
    "tests/hidden.py": b"secret = 1\n",
    "solution/solve.sh": b"echo hello\n",
    "README.md": b"About.\n",
    ".gitignore": b"*.pyc\n",
}


def folder(top: Path, **others: bytes | None) -> Path:
    """A task folder with some files replaced, added or, where None, left out."""
    files = {**FILES, **others}
    return write(top / "hello", {path: data for path, data in files.items() if data is not None})


def refusals(path: Path) -> list[tuple[str, int | None]]:
    with pytest.raises(TaskRefusedError) as caught:
        read_task_folder(FS, path)
    assert caught.value.code is StudyCode.TASK_REFUSED
    return [(refusal.name, refusal.line) for refusal in caught.value.refusals]


class TestReading:
    def test_everything_there_is(self, tmp_path: Path) -> None:
        """S11: what a folder of this shape says is read."""
        task = read_task_folder(FS, folder(tmp_path))
        assert (task.task_id, task.instruction, task.workdir) == ("hello", b"Say hello.\r\n", "/work/here")
        assert (task.limits.agent_seconds, task.limits.verifier_seconds) == (90.0, 30.5)
        assert (task.environment_env, task.verifier_env, task.solution_env) == (
            {"LANG": "C"},
            {"MODE": "strict"},
            {},
        )
        assert task.metadata == {"task_family": "diagnosis", "difficulty": "easy"}
        assert task.recorded["network_mode"] == "no-network"
        assert task.recorded["memory_mb"] == 512
        assert task.tree.digest == digest_tree(FS, tmp_path / "hello")
        assert task.has_oracle

    def test_the_sets_of_files_never_meet(self, tmp_path: Path) -> None:
        """S13: what the agent works on holds neither tests nor solution."""
        task = read_task_folder(FS, folder(tmp_path))
        assert [entry.path for entry in task.environment.entries] == ["data", "data/in.txt"]
        assert [entry.path for entry in task.tests.entries] == ["hidden.py", "test.sh"]
        assert [entry.path for entry in task.solution.entries] == ["solve.sh"]
        assert task.tests.digest == digest_tree(FS, tmp_path / "hello" / "tests")

    def test_defaults(self, tmp_path: Path) -> None:
        """S11: little is needed."""
        least = dict.fromkeys(FILES) | {
            "task.toml": b'version = "1.0"\n',
            "instruction.md": b"Go.",
            "tests/test.sh": b"",
        }
        task = read_task_folder(FS, folder(tmp_path, **least))
        assert (task.workdir, task.limits.agent_seconds, task.has_oracle) == ("/app", 600.0, False)
        assert task.environment.entries == ()

    def test_a_link_inside_stays_a_link(self, tmp_path: Path) -> None:
        """S11: a link is refused only where it leaves the folder."""
        path = folder(tmp_path)
        (path / "environment" / "data" / "again").symlink_to("../data/in.txt")
        (entry,) = [e for e in read_task_folder(FS, path).environment.entries if e.target]
        assert (entry.path, entry.target) == ("data/again", "../data/in.txt")


class TestRefusedKeys:
    @pytest.mark.parametrize(
        ("table", "text", "name"),
        [
            ("", 'steps = [{name = "a"}]', "steps"),
            ("", 'multi_step_reward_strategy = "mean"', "multi_step_reward_strategy"),
            ("", 'artifacts = ["/logs"]', "artifacts"),
            ("", 'source = "hub"', "source"),
            ("", "surprise = 1", "surprise"),
            ("agent", 'user = "agent"', "agent.user"),
            ("verifier", 'user = "root"', "verifier.user"),
            ("verifier", 'environment = {docker_image = "x"}', "verifier.environment"),
            ("verifier", 'collect = ["a"]', "verifier.collect"),
            ("environment", 'docker_image = "ubuntu"', "environment.docker_image"),
            ("environment", 'os = "windows"', "environment.os"),
            ("environment", "gpus = 1", "environment.gpus"),
            ("environment", 'gpu_types = ["H100"]', "environment.gpu_types"),
            ("environment", 'tpu = {type = "v5"}', "environment.tpu"),
            ("environment", 'mcp_servers = [{name = "a"}]', "environment.mcp_servers"),
            ("environment", 'skills_dir = "/skills"', "environment.skills_dir"),
            ("environment", 'healthcheck = {command = "true"}', "environment.healthcheck"),
            ("environment", 'network_mode = "allowlist"', "environment.network_mode"),
            ("environment", 'workdir = "app"', "environment.workdir"),
            ("environment", 'workdir = "/tests/in"', "environment.workdir"),
            ("environment", 'env = {KEY = "${HOST_KEY}"}', "environment.env"),
            ("verifier", 'env = {KEY = "a${X:-1}"}', "verifier.env"),
            ("solution", 'env = {KEY = "${X}"}', "solution.env"),
            ("solution", "env = {KEY = 1}", "solution.env.KEY"),
            ("agent", "timeout_sec = 0.0", "agent.timeout_sec"),
            ("verifier", "timeout_sec = nan", "verifier.timeout_sec"),
            ("agent", 'timeout_sec = "long"', "agent.timeout_sec"),
        ],
    )
    def test_each_alone(self, tmp_path: Path, table: str, text: str, name: str) -> None:
        """S11: a key that would change how a task runs is named with its line."""
        header = f"[{table}]\n" if table else ""
        toml = f'version = "1.0"\n# A remark.\n{header}\n{text}\n[metadata]\nx = """\na\n"""\n'
        path = folder(tmp_path, **{"task.toml": toml.encode()})
        assert refusals(path) == [(name, 5 if table else 4)]

    @pytest.mark.parametrize(
        "text",
        [
            "steps = []",
            'source = ""',
            "artifacts = []",
            "[environment]\ngpus = 0\ntpu = {}",
            "[agent]\nuser=''",
        ],
    )
    def test_what_is_empty_counts_as_absent(self, tmp_path: Path, text: str) -> None:
        """S11: a refused key that says nothing is no key."""
        read_task_folder(FS, folder(tmp_path, **{"task.toml": f'version = "1.0"\n{text}\n'.encode()}))

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", [("schema_version", 1)]),
            ('schema_version = "2.0"', [("schema_version", 1)]),
            ("version = 1.0", [("version", 1)]),
            ('version = "1.0"\nagent = 3', [("agent", 2)]),
            ('version = "1.0"\nx = = 1', [("task.toml", 2)]),
        ],
    )
    def test_form(self, tmp_path: Path, text: str, found: list[tuple[str, int]]) -> None:
        """S11: another version, and what is no TOML."""
        assert refusals(folder(tmp_path, **{"task.toml": text.encode()})) == found

    def test_the_line_of_a_table_of_tables(self, tmp_path: Path) -> None:
        """S11: the first place that names a key."""
        toml = b'version = "1.0"\n\n[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n'
        assert refusals(folder(tmp_path, **{"task.toml": toml})) == [("steps", 3)]

    def test_all_reasons_at_once(self, tmp_path: Path) -> None:
        """S11: nobody has to repair a folder twice."""
        toml = b'version = "1.0"\nsource = "x"\n[environment]\ngpus = 1\n'
        path = folder(tmp_path, **{"task.toml": toml, "environment/Dockerfile": b"FROM x\n"})
        assert {name for name, _ in refusals(path)} == {"source", "environment.gpus", "needs_image"}


class TestRefusedFiles:
    @pytest.mark.parametrize(
        ("path", "name"),
        [
            ("environment/Dockerfile", "needs_image"),
            ("environment/docker-compose.yaml", "needs_image"),
            ("environment/compose.yml", "needs_image"),
            ("tests/Dockerfile", "tests/Dockerfile"),
            ("tests/run.BAT", "tests/run.BAT"),
            ("solution/solve.bat", "solution/solve.bat"),
            ("steps/one.md", "steps/"),
            ("trajectory.json", "trajectory.json"),
            (".harborignore", ".harborignore"),
            ("notes.txt", "notes.txt"),
        ],
    )
    def test_each_alone(self, tmp_path: Path, path: str, name: str) -> None:
        """S11: a file that means something elsewhere is named."""
        assert refusals(folder(tmp_path, **{path: b"x\n"})) == [(name, None)]

    @pytest.mark.parametrize("missing", ["task.toml", "instruction.md", "tests/test.sh"])
    def test_what_is_needed(self, tmp_path: Path, missing: str) -> None:
        """S11: a task without one of these is none."""
        path = folder(tmp_path, **{missing: None})
        assert (missing, None) in refusals(path)

    @pytest.mark.parametrize("text", [b"", b" \n\t\n"])
    def test_empty_instruction(self, tmp_path: Path, text: bytes) -> None:
        """S11: an empty prompt asks for nothing."""
        assert refusals(folder(tmp_path, **{"instruction.md": text})) == [("instruction.md", 1)]

    @pytest.mark.parametrize(
        "make",
        [
            os.mkfifo,
            lambda path: path.symlink_to("/etc/passwd"),
            lambda path: path.symlink_to("../../elsewhere"),
            lambda path: path.symlink_to("sub/../../../x"),
        ],
        ids=["fifo", "absolute", "outside", "through"],
    )
    def test_links_and_devices(self, tmp_path: Path, make: Callable[[Path], None]) -> None:
        """S11: nothing that leaves the folder, and nothing that could hang a reader."""
        path = folder(tmp_path)
        make(path / "environment" / "odd")
        assert refusals(path) == [("environment/odd", None)]

    def test_a_link_in_the_place_of_a_file(self, tmp_path: Path) -> None:
        """S11: the instruction is a file, not a way to one."""
        path = folder(tmp_path, **{"instruction.md": None, "environment/i.md": b"Go.\n"})
        (path / "instruction.md").symlink_to("environment/i.md")
        assert ("instruction.md", None) in refusals(path)

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StudyError) as caught:
            read_task_folder(FS, tmp_path / "none")
        assert caught.value.code is StudyCode.INPUT_MISSING
