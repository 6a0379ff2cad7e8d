"""`run.py study init`, `check`, `plan`, `status` and `amend`: exits and result lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.commands import PREFIX, no_traceback
from tests.support.studies import example

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]

CHECKS = [
    "schema",
    "driver",
    "model",
    "licences",
    "price",
    "treatment_diff",
    "prompt_leak",
    "oracle",
    "nothing",
    "forged",
]
PLANNED = ["plan_digest", "trials", "power", "detectable", "plan"]
STATUS = ["state", "slots", "ended", "classes", "tokens", "cost_units", "eta"]


class TestInit:
    def test_an_example(self, command: Command, home: Path) -> None:
        """S1: `init` writes an example and names it."""
        said = command("study", "init", "mine")
        assert (said.code, said.values) == (0, {"study": "mine/study.yaml"})
        assert (home / "mine" / "study.yaml").read_bytes().startswith(b"schema: ")
        assert said.err == "Now: run.py study check mine\n"
        assert command("study", "init", "other", "--json").document == {"study": "other/study.yaml"}

    def test_the_folder_exists(self, command: Command, home: Path) -> None:
        """S1: exit 2, and nothing is written."""
        (home / "mine").mkdir()
        said = command("study", "init", "mine")
        assert "choose another" in said.refusal
        assert list((home / "mine").iterdir()) == []

    @pytest.mark.parametrize("name", ["Mine", "a/b", "", "a" * 41, "..", "a b"])
    def test_no_name(self, command: Command, home: Path, name: str) -> None:
        said = command("study", "init", name, "--json")
        assert (said.code, said.document["code"]) == (2, "study_name")
        assert not [path for path in home.iterdir() if path.name not in {"tmp", ".local"}]


class TestCheck:
    def test_pass(self, command: Command, home: Path) -> None:
        """S1: every check has its line."""
        example(home, tasks=1)
        said = command("study", "check", "first")
        assert said.code == 0
        assert list(said.values) == ["check_status", *(f"check.{name}" for name in CHECKS)]
        assert said.values["check_status"] == "pass"
        assert said.values["check.licences"] == "absent"
        assert said.err.splitlines()[-1] == "Now: run.py study plan first --out R"
        document = command("study", "check", "first/study.yaml", "--json").document
        assert document == said.values

    def test_fail(self, command: Command, home: Path) -> None:
        """S1 S65: a check that failed is exit 1, with reason and line."""
        study = example(home, tasks=1)
        (study / "tasks" / "note-amber" / "instruction.md").write_bytes(b"Go.\nUse file-notes.\n")
        said = command("study", "check", "first")
        assert (said.code, said.values["check.prompt_leak"]) == (1, "fail")
        assert f"{PREFIX}prompt_leak: task note-amber: instruction.md (line 2) names the skill" in said.err
        assert (
            said.err.splitlines()[-1] == "Now: put right what is named above, then run.py study check first"
        )

    def test_a_task_with_an_image(self, command: Command, home: Path) -> None:
        """S1 S65: refused by name and line, exit 1."""
        study = example(home, tasks=1)
        toml = study / "tasks" / "note-amber" / "task.toml"
        toml.write_text('version = "1.0"\n[environment]\ndocker_image = "x"\nenv = {A = "${B}"}\n')
        said = command("study", "check", "first")
        assert (said.code, said.values["check.schema"]) == (1, "fail")
        assert "environment.docker_image (line 3)" in said.err
        assert "environment.env (line 4)" in said.err

    def test_a_bad_file(self, command: Command, home: Path) -> None:
        """S1 S65: line, column and key, exit 2."""
        example(home, tasks=1, edits={"alpha: 0.05": "alpha: 0\n  beta: 1"})
        said = command("study", "check", "first")
        assert "line 34, column 3, /analysis/alpha: " in said.refusal
        assert "line 35, column 3, /analysis/beta: " in said.refusal

    @pytest.mark.parametrize("name", ["none", "first/tasks"])
    def test_no_study(self, command: Command, home: Path, name: str) -> None:
        example(home, tasks=1)
        said = command("study", "check", name, "--json")
        assert (said.code, said.document["code"]) == (2, "study_missing")

    def test_no_task(self, command: Command, home: Path) -> None:
        """S65: a folder without a task is a typed fault."""
        study = example(home, tasks=1)
        (study / "empty").mkdir()
        path = study / "study.yaml"
        path.write_text(path.read_text().replace("tasks: tasks", "tasks: empty"))
        assert command("study", "check", "first", "--json").document["code"] == "no_task"


class TestPlan:
    def test_the_folder_is_judged_before_scripts_are_tried_out(self, command: Command, home: Path) -> None:
        """S1: a folder that will not do costs no time, and nothing is made."""
        example(home, tasks=1)
        (home / "open").mkdir(mode=0o755)
        said = command("study", "plan", "first", "--out", "open")
        assert said.code == 2
        assert "Trying out" not in said.err
        assert "open has mode 0755" in said.err

    def test_no_script_is_tried_out_where_another_check_failed(self, command: Command, home: Path) -> None:
        """S1: exit 1, the scripts' checks are absent, nothing is written."""
        study = example(home, tasks=1)
        (study / "tasks" / "note-amber" / "instruction.md").write_text("Use the skill file-notes.\n")
        said = command("study", "plan", "first", "--out", "R")
        assert "Trying out" not in said.err
        assert not (home / "R").exists()
        assert (said.code, said.values["check.prompt_leak"]) == (1, "fail")
        assert said.values["check.oracle"] == "absent"

    def test_quick_refuses_what_this_version_cannot_do(self, command: Command, home: Path) -> None:
        """S1: exit 2 before the folder is made."""
        words = ("--skill", "s", "--tasks", "t", "--model", "m", "--out", "R", "--driver", "cursor")
        assert "cannot let cursor work on tasks" in command("study", "quick", *words).refusal
        assert not (home / "R").exists()

    def test_a_placebo(self, command: Command, home: Path) -> None:
        """S7 S1: what it leaves out is listed by `check` and `plan`; nothing else differs."""
        study = example(home, tasks=1, edits={"  full:\n": "  reference: {placebo: true}\n  full:\n"})
        (study / "skills" / "file-notes" / "write.sh").write_text("#!/bin/sh\n")
        told = "The placebo leaves out skills/file-notes/write.sh: only texts are imitated.\n"
        said = command("study", "check", "first")
        assert (said.code, said.err.count(told)) == (0, 1)
        said = command("study", "plan", "first", "--out", "R")
        assert (said.code, said.values["trials"], said.err.count(told)) == (0, "9", 1)
        assert command("study", "plan", "first", "--out", "R", "--json").document["plan"] == "R/plan.json"

    def test_no_placebo_can_be_made(self, command: Command, home: Path) -> None:
        """S7 S65: exit 2, by its place and with what to do."""
        study = example(home, tasks=1, edits={"  full:\n": "  reference: {placebo: true}\n  full:\n"})
        (study / "skills" / "file-notes" / "SKILL.md").write_text("---\nname: x\n---\n")
        said = command("study", "check", "first", "--json")
        assert (said.code, said.document["code"]) == (2, "input_refused")
        assert "/arms/reference/placebo: skills/x/SKILL.md has too little text" in said.err

    def test_verify_of_a_study_that_is_not_sealed(self, command: Command, home: Path) -> None:
        """S1: one sentence says what to do, exit 2."""
        example(home, tasks=1)
        assert command("study", "plan", "first", "--out", "R").code == 0
        assert command("keys", "export", "study", "--out", "study.pub").code == 0
        assert "seal it first" in command("verify", "R", "--pub", "study.pub").refusal

    def test_planned_and_looked_at(self, command: Command, home: Path) -> None:
        """S1: `plan`, the same again, `status` and `amend`, as lines and as JSON."""
        example(home, tasks=2)
        said = command("study", "plan", "first", "--out", "R")
        assert (said.code, list(said.values)) == (0, PLANNED)
        assert (said.values["trials"], said.values["plan"]) == ("12", "R/plan.json")
        again = command("study", "plan", "first", "--out", "R", "--json")
        assert (again.code, again.document["plan_digest"]) == (0, said.values["plan_digest"])
        assert set(again.document) == set(PLANNED)
        status = command("study", "status", "R")
        assert (status.code, list(status.values)) == (0, STATUS)
        assert status.values["state"] == "planned"
        assert status.values["eta"] == "unknown"
        assert set(command("study", "status", "R", "--json").document) == set(STATUS)
        amended = command("study", "amend", "R", "--set", "/budgets/study/tokens=5", "--reason", "more")
        assert (amended.code, amended.values) == (0, {"amendment": "1"})
        late = command("study", "amend", "R", "--set", "/samples=5", "--reason", "more", "--json")
        assert (late.code, late.document["code"]) == (2, "amendment_refused")
        assert no_traceback(late)

    def test_another_plan(self, command: Command, home: Path) -> None:
        """S1: a folder that holds another plan is exit 2, and the field is named."""
        example(home / "a", tasks=1)
        example(home / "b", tasks=1, edits={"samples: 3": "samples: 2"})
        assert command("study", "plan", "a/first", "--out", "R").code == 0
        said = command("study", "plan", "b/first", "--out", "R", "--json")
        assert (said.code, said.document["code"]) == (2, "plan_exists")
        assert "/samples" in said.err

    def test_a_failed_check(self, command: Command, home: Path) -> None:
        """S1: exit 1, the checks are printed, and nothing is made."""
        study = example(home, tasks=1)
        (study / "tasks" / "note-amber" / "solution" / "solve.sh").unlink()
        said = command("study", "plan", "first", "--out", "R")
        assert (said.code, said.values["check.oracle"]) == (1, "absent")
        assert not (home / "R").exists()
        assert command("study", "plan", "first", "--out", "R", "--allow-missing-oracle").code == 0

    def test_a_named_key(self, command: Command, home: Path) -> None:
        example(home, tasks=1)
        assert command("study", "plan", "first", "--out", "R", "--key", "none").code == 2
        assert command("keys", "new", "mine").code == 0
        assert command("study", "plan", "first", "--out", "R", "--key", "mine").code == 0

    @pytest.mark.parametrize(
        ("folder", "code", "told"),
        [
            ("first", "plan_missing", "plan it first: run.py study plan first --out R, then name R."),
            ("none", "study_missing", "plan a study into it: run.py study plan S --out none."),
            ("open", "plan_missing", "no study was planned in this folder; name the one"),
        ],
    )
    def test_what_is_no_planned_study(
        self, command: Command, home: Path, folder: str, code: str, told: str
    ) -> None:
        """S1 S65: every command says what comes first, whatever the folder's mode."""
        (home / "open").mkdir(mode=0o755)
        for mode in (0o700, 0o755):
            if mode == 0o700:
                example(home, tasks=1)
            (home / "first").chmod(mode)
            for words in (
                ("status", folder),
                ("run", folder),
                ("judge", folder),
                ("report", folder),
                ("seal", folder, "--out", "B"),
                ("export", "inspect", folder, "--out", "D"),
                ("watch", folder, "--once"),
            ):
                said = command("study", *words, "--json")
                assert (said.code, said.document["code"]) == (2, code)
                assert told in said.err
        assert not (home / "B").exists()

    def test_a_planned_folder_with_a_wrong_mode_is_told_so(self, command: Command, home: Path) -> None:
        """S1 E18: a plan lies there, so planning is not the cure."""
        example(home, tasks=1)
        assert command("study", "plan", "first", "--out", "R").code == 0
        (home / "R").chmod(0o755)
        assert "has mode 0755" in command("study", "status", "R").refusal

    def test_no_plan_there(self, command: Command, home: Path) -> None:
        (home / "R").mkdir(mode=0o700)
        for words in (("status", "R"), ("amend", "R", "--set", "/a=1", "--reason", "x")):
            said = command("study", *words, "--json")
            assert (said.code, said.document["code"]) == (2, "plan_missing")
