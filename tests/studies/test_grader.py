"""Running graders and oracles on copies."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.file_trees import FileTree, HeldTree
from skill_effectiveness.studies.grader import ScriptOrder, grade_tree, sandbox_available, solve
from skill_effectiveness.studies.words import GradeState, Sandbox
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EMPTY = HeldTree(FileTree(()), lambda _entry: b"")


def tree(**files: str) -> HeldTree:
    return EMPTY.with_files({path.replace("__", "/"): text.encode() for path, text in files.items()})


def order(
    script: str, work: HeldTree = EMPTY, *, sandbox: Sandbox = Sandbox.NONE, seconds: float = 30, **env: str
) -> ScriptOrder:
    scripts = EMPTY.with_files({"test.sh": script.encode(), "solve.sh": script.encode()})
    return ScriptOrder(work, scripts, "/app", seconds, sandbox, env)


def rewards(given: ScriptOrder, tmp_path: Path) -> list[tuple[GradeState, float | None]]:
    around = surroundings(environ={"TMPDIR": str(tmp_path)})
    found = [(run.state, run.reward) for run in grade_tree(given, around=around)]
    assert list(tmp_path.iterdir()) == []
    return found


class TestGrading:
    def test_twice_on_fresh_copies(self, tmp_path: Path) -> None:
        """S41: what one run leaves does not reach the next."""
        script = (
            'test -e "$TASK_DIR/seen"; echo $? > "$TASK_LOGS/reward.txt"\n'
            'touch "$TASK_DIR/seen" "$TASK_TESTS/seen" "$TMPDIR/seen" "$HOME/seen"'
        )
        assert rewards(order(script), tmp_path) == 2 * [(GradeState.VALID, 1.0)]

    def test_it_sees_tree_tests_and_its_variables(self, tmp_path: Path) -> None:
        script = (
            'test "$(cat "$TASK_DIR/a/b") $MODE" = "in strict" && cat "$TASK_TESTS/test.sh" > /dev/null && '
        )
        given = order(script + 'echo 0.5 > "$TASK_LOGS/reward.txt"', tree(a__b="in"), MODE="strict")
        assert rewards(given, tmp_path)[0] == (GradeState.VALID, 0.5)

    @pytest.mark.parametrize(
        "script",
        [
            "exit 0",
            "echo 1",
            "echo reward: 1 >&2; exit 0",
            'echo 1 > "$TASK_DIR/reward.txt"',
            'mkfifo "$TASK_LOGS/reward.txt"',
            'echo 1 > one; ln -s "$PWD/one" "$TASK_LOGS/reward.txt"',
            'mkdir "$TASK_LOGS/reward.json"; echo 1 > "$TASK_LOGS/reward.txt"',
            'echo 1 > "$TASK_LOGS/reward.txt"; sleep 60',
        ],
        ids=["silent", "stdout", "stderr", "elsewhere", "fifo", "link", "folder", "late"],
    )
    def test_what_is_no_reward(self, tmp_path: Path, script: str) -> None:
        """S14 S41: exit status and output never count, and a grader that does not end has no reward."""
        assert rewards(order(script, seconds=1.5), tmp_path)[0] == (GradeState.GRADER_FAILED, None)

    def test_the_exit_status_does_not_count(self, tmp_path: Path) -> None:
        """S14: a grader may fail as a program and still have a reward."""
        assert rewards(order('echo 1 > "$TASK_LOGS/reward.txt"; exit 3'), tmp_path)[0][1] == 1.0


class TestOracle:
    def test_what_it_leaves(self, tmp_path: Path) -> None:
        around = surroundings(environ={"TMPDIR": str(tmp_path)})
        script = (
            'cd "$TASK_DIR"; mkdir new; echo 1 > new/file; chmod +x new/file; ln -s new/file link; rm old'
        )
        solved = solve(order(script, tree(old="x")), around=around)
        assert solved.work is not None
        found = {e.path: (e.executable, e.target) for e in solved.work.tree.entries}
        assert found == {"link": (False, "new/file"), "new": (False, None), "new/file": (True, None)}
        assert [solved.work.blob(entry) for entry in solved.work.tree.files] == [b"1\n"]

    def test_what_cannot_be_kept(self, tmp_path: Path) -> None:
        around = surroundings(environ={"TMPDIR": str(tmp_path)})
        solved = solve(order('mkfifo "$TASK_DIR/pipe"'), around=around)
        assert (solved.work, [oddity.path for oddity in solved.oddities]) == (None, ["pipe"])


def bubblewrap_works() -> bool:
    """Whether this machine lets bubblewrap make its namespaces."""
    program = shutil.which("bwrap")
    if program is None:
        return False
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0  # noqa: S603 - fixed words


@pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap is not installed, or may not be used here")
class TestSandbox:
    def test_the_same_places_inside(self, tmp_path: Path) -> None:
        script = (
            'test "$PWD $TASK_DIR $TASK_TESTS $TASK_LOGS" = "/app /app /tests /logs/verifier" '
            "&& test -e /app/a && test -r /tests/test.sh && echo 1 > /logs/verifier/reward.txt"
        )
        given = order(script, tree(a="x"), sandbox=Sandbox.BUBBLEWRAP)
        assert rewards(given, tmp_path) == 2 * [(GradeState.VALID, 1.0)]
        assert sandbox_available(surroundings())

    def test_nothing_else(self, tmp_path: Path) -> None:
        """S13: no network, no home, and tests that cannot be changed."""
        script = (
            f"echo x > /tests/new && exit; ls /root /home {tmp_path} && exit; "
            "(exec 3<>/dev/tcp/127.0.0.1/22) && exit; grep -q eth /proc/net/dev && exit; "
            "echo 1 > /logs/verifier/reward.txt"
        )
        assert rewards(order(script, sandbox=Sandbox.BUBBLEWRAP), tmp_path)[0][1] == 1.0


def test_files_put_over_a_tree() -> None:
    held = tree(a="1", b__c="2").with_files({"a/x": b"3", "b": b"4", "d/e": b"5"})
    found: Mapping[str, bytes] = {entry.path: held.blob(entry) for entry in held.tree.files}
    assert found == {"a/x": b"3", "b": b"4", "d/e": b"5"}
