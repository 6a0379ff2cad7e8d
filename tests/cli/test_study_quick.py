"""`study quick`: what it refuses, in the words of the line, and what it leaves behind then."""

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


def line(home: Path, **others: str) -> list[str]:
    """The line for the example, with other values of options; `_` stands for `-`."""
    words = {
        "skill": f"{home}/first/skills/file-notes",
        "tasks": f"{home}/first/tasks",
        "driver": "simulated",
        "model": "m-1",
        "samples": "1",
        "out": "R",
    }
    given = words | {name.replace("_", "-"): value for name, value in others.items()}
    return ["study", "quick", *(word for name, value in given.items() for word in (f"--{name}", value))]


WRONG = {
    "no skill": ({"skill": "none"}, "--skill: none does not exist."),
    "no SKILL.md": ({"skill": "tmp"}, "--skill: this folder has no SKILL.md; name a skill's folder."),
    "no folder of tasks": ({"tasks": "none"}, "--tasks: none does not exist."),
    "no task": ({"tasks": "tmp"}, "--tasks: this folder holds no task; put one folder for each task there."),
    "no licence": ({"reviewer": "none"}, "--reviewer: none does not exist."),
    "a program too many": (
        {"executable": "/bin/sh"},
        "A simulated agent has no program; leave --executable out.",
    ),
    "a program too few": ({"driver": "codex"}, "Name the program of codex with --executable."),
    "a limit below nothing": (
        {"max_cost_units": "-1"},
        "A limit of cost is a number above 0; correct --max-cost-units.",
    ),
    "a price of a simulated agent": (
        {"price": "input=1"},
        "A simulated agent costs nothing; leave --price out.",
    ),
    "a price of no kind": (
        {"driver": "codex", "executable": "/bin/sh", "price": "image=1"},
        "A price is given as KIND=N, with a kind of input, output, cached_input, reasoning.",
    ),
    "a price without a number": (
        {"driver": "codex", "executable": "/bin/sh", "price": "input"},
        "A price is given as KIND=N, with a kind of input, output, cached_input, reasoning.",
    ),
    "a limit that is none": (
        {"max_cost_units": "nan"},
        "A limit of cost is a number above 0; correct --max-cost-units.",
    ),
}


@pytest.mark.parametrize(("others", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_can_be_corrected(
    command: Command, home: Path, others: dict[str, str], sentence: str
) -> None:
    """S1 S65: exit 2 by the name of the option, and no study file is left to refuse the right line."""
    example(home, tasks=1)
    assert command(*line(home, **others)).refusal == sentence
    assert not (home / "R").exists() or list((home / "R").iterdir()) == []


def test_a_model_that_is_no_name(command: Command, home: Path) -> None:
    """S65: told at the option, not in a study file that nobody wrote."""
    example(home, tasks=1)
    assert command(*line(home, model="")).refusal.startswith("--model: This field")


def test_a_failed_check_can_be_put_right_in_the_line(command: Command, home: Path) -> None:
    """S1 S65: exit 1; nothing is left that would refuse the next line."""
    example(home, tasks=1)
    said = command(*line(home, driver="codex", executable="none"))
    assert (said.code, said.values["check.driver"]) == (1, "fail")
    assert f"{PREFIX}driver: /driver/executable: There is no program at {home}/none" in said.err
    assert said.err.splitlines()[-1] == (
        "Now: put right what is named above, in the line itself too, then type it again."
    )
    assert no_traceback(said)
    assert command(*line(home), "--dry-run").code == 0


def test_a_study_file_of_somebody_else_stays(command: Command, home: Path) -> None:
    """S1: refused, and nothing is taken away or written over."""
    example(home, tasks=1)
    (home / "R").mkdir(mode=0o700)
    held = home / "R" / "study.yaml"
    held.write_bytes(b"name: mine\n")
    held.chmod(0o600)
    assert "give another folder" in command(*line(home), "--dry-run").refusal
    assert held.read_bytes() == b"name: mine\n"


@pytest.mark.slow
def test_a_spent_budget(command: Command, home: Path) -> None:
    """S1 S28: exit 1, how far it came, and what to do; the same line goes on after the amendment."""
    example(home, tasks=1)
    said = command(*line(home, max_tokens="1"))
    assert (said.code, list(said.values)) == (1, ["run_status", "slots", "ended"])
    assert (said.values["run_status"], said.values["slots"]) == ("blocked", "2")
    told = said.err.splitlines()[-1]
    assert told.startswith("Blocked by study_budget.tokens: raise it with study amend R --set ")
    run = command("study", "run", "R")
    assert (run.code, run.err.splitlines()[-1]) == (1, told)
    raised = ("--set", "/budgets/study/tokens=10000000", "--reason", "more")
    assert command("study", "amend", "R", *raised).code == 0
    ended = command(*line(home, max_tokens="1"))
    assert ended.code == 3
    for name in ("cost_units", "wall_seconds"):
        assert len(ended.values[name].partition(".")[2]) <= 6


def test_a_plan_that_could_find_little(command: Command, home: Path) -> None:
    """S1: told before anything is paid, as `plan` tells it."""
    example(home, tasks=1)
    assert "With 1 tasks the least effect worth acting on" in command(*line(home), "--dry-run").err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("input=1", "The price of input is given twice; give it once."),
        ("output=0", "--price: A price of 0 is none: a limit would never be reached; state the real one."),
    ],
)
def test_prices_that_are_none(command: Command, home: Path, more: str, sentence: str) -> None:
    """S1 S65: twice is a contradiction; nothing is free; both by the name of the option."""
    example(home, tasks=1)
    words = line(home, driver="codex", executable="/bin/sh", price="input=1")
    assert command(*words, "--price", more).refusal == sentence


def test_a_driver_that_nobody_has(command: Command, home: Path) -> None:
    """S1 S65: the ones that there are stand in the sentence."""
    example(home, tasks=1)
    assert command(*line(home, driver="gemini")).refusal == (
        "--driver: this version cannot let gemini work on tasks; use codex, claude, opencode, kimi or "
        "simulated."
    )


def test_a_task_without_an_oracle(command: Command, home: Path) -> None:
    """S1: told what to do, and the option that it names is there."""
    study = example(home, tasks=1)
    (study / "tasks" / "note-amber" / "solution" / "solve.sh").unlink()
    said = command(*line(home), "--dry-run")
    assert said.code == 1
    assert "there is no solution/solve.sh; write one, or give --allow-missing-oracle." in said.err
    assert command(*line(home), "--dry-run", "--allow-missing-oracle").code == 0


def test_a_plan_that_is_there_is_not_checked_again(command: Command, home: Path) -> None:
    """S1: it says why no script is tried out; another task is another plan, and refused."""
    study = example(home, tasks=1)
    first = command(*line(home), "--dry-run")
    assert "Trying out the scripts" in first.err
    again = command(*line(home), "--dry-run")
    assert (again.code, again.out) == (0, first.out)
    assert "Trying out the scripts" not in again.err
    assert "its checks were made before it" in again.err
    (study / "tasks" / "note-amber" / "instruction.md").write_text("Something else.\n")
    changed = command(*line(home), "--dry-run", "--json")
    assert (changed.code, changed.document["code"]) == (2, "plan_exists")
