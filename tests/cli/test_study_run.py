"""`study run` and `watch`: exits, keys of stdout, signals, progress."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.cli.study_progress import StudyProgress
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.studies.status import first_status
from tests.support.crash_images import fast_folder
from tests.support.private import REPOSITORY
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


RUN_KEYS = ["run_status", "slots", "ended", "attempts", "tokens", "cost_units"]
WATCH_KEYS = ["state", "slots", "ended", "classes", "tokens", "cost_units", "eta"]


@pytest.fixture(scope="module")
def plans() -> Iterator[Path]:
    """Where studies that were planned once are kept, to be copied."""
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def place(plans: Path) -> Iterator[Path]:
    """A folder for one test, beside those plans."""
    with tempfile.TemporaryDirectory(dir=plans) as folder:
        yield Path(folder)


def planned(place: Path, **edits: str) -> None:
    """Have a planned study of four slots in `R`, with a home of its own; a copy where there is one."""
    texts = {"samples: 3": "samples: 1"} | {key.replace("__", ": "): value for key, value in edits.items()}
    kept = place.parent / f"plan-{digest_object(texts)[-16:]}"
    if not kept.exists():
        (kept / "home").mkdir(mode=0o700, parents=True)
        done = study(kept, "plan", str(example(kept, edits=texts)), "--out", str(kept / "R"))
        assert done.returncode == 0, done.stderr
    shutil.copytree(kept, place, dirs_exist_ok=True)


def rows(place: Path) -> list[dict[str, Any]]:
    """The journal as it lies there, as far as its lines are whole."""
    data = (place / "R/journal/000001.jsonl").read_bytes()
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def command(place: Path, *words: str) -> list[str]:
    del place
    return [sys.executable, str(REPOSITORY / "run.py"), "study", *words]


def environ(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place / "home"),
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": str(place / "home" / "state"),
    }


def study(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own program
        command(place, *words), env=environ(place), capture_output=True, text=True, check=False, timeout=60
    )


def values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_run_prints_its_counts_and_ends_with_0(place: Path) -> None:
    """S1 S28: keys in order, `--json` with the same, a second run a no-op."""
    planned(place)
    done = study(place, "run", str(place / "R"), "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert list(values(done.stdout)) == RUN_KEYS
    assert done.stderr.splitlines()[-1] == f"Now: {REPOSITORY / 'run.py'} study report {place / 'R'}"
    assert values(done.stdout) | {"tokens": "", "cost_units": ""} == {
        "run_status": "complete",
        "slots": "4",
        "ended": "4",
        "attempts": "4",
        "tokens": "",
        "cost_units": "",
    }
    again = study(place, "run", str(place / "R"), "--json")
    assert again.returncode == 0
    told = json.loads(again.stdout)
    assert sorted(told) == sorted(RUN_KEYS)
    assert str(told["tokens"]) == values(done.stdout)["tokens"]


def test_nothing_is_told_by_arm(place: Path) -> None:
    """S18: neither stdout nor stderr names an arm or a task."""
    planned(place)
    done = study(place, "run", str(place / "R"))
    assert not {
        word for word in ("off", "full", "amber", "basil", "profile") if word in done.stdout + done.stderr
    }


def test_watching_a_complete_study(place: Path) -> None:
    """S1: the keys of status; nothing is changed."""
    planned(place)
    before = study(place, "watch", str(place / "R"), "--once")
    assert values(before.stdout)["state"] == "planned"
    study(place, "run", str(place / "R"))
    done = study(place, "watch", str(place / "R"))
    assert done.returncode == 0
    assert list(values(done.stdout)) == WATCH_KEYS
    assert values(done.stdout)["state"] == "complete"
    assert values(done.stdout)["classes"] == "completed:4"
    told = json.loads(study(place, "watch", str(place / "R"), "--json").stdout)
    assert told["classes"] == {"completed": 4}


def test_a_spent_budget_ends_with_1(place: Path) -> None:
    """S1: blocked, and why on stderr."""
    planned(place, **{"study__{tokens: null": "study: {tokens: 1"})
    done = study(place, "run", str(place / "R"))
    assert (done.returncode, values(done.stdout)["run_status"]) == (1, "blocked")
    assert "study_budget.tokens" in done.stderr


def test_changed_input_and_missing_plan_end_with_2(place: Path) -> None:
    """S1: refused, nothing started."""
    missing = study(place, "run", str(place / "R"))
    assert missing.returncode == 2
    planned(place)
    for path in (place / "R" / "inputs").iterdir():
        path.write_bytes(b"other")
    done = study(place, "run", str(place / "R"), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"code": "plan_changed", "status": "refused"}
    assert not (place / "R" / "trials").exists()


@pytest.mark.parametrize("jobs", ["0", "257", "many"])
def test_a_number_of_jobs_that_is_none(place: Path, jobs: str) -> None:
    """Usage, before anything is opened."""
    assert study(place, "run", str(place / "R"), "--jobs", jobs).returncode == 2


def begun(place: Path) -> subprocess.Popen[str]:
    """A run whose first attempt has started and takes its time."""
    running = subprocess.Popen(  # noqa: S603 - our own program
        command(place, "run", str(place / "R")),
        env=environ(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 30
    while not any(row["type"] == "slot_started" for row in rows(place)):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return running


def test_ctrl_c_once_drains(place: Path) -> None:
    """S25 F5: what runs finishes, the counts are printed, 130; the same line goes on."""
    planned(place, **{"effect__0.4": "effect: 0.4\n    sleep_seconds: 1"})
    running = begun(place)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert values(out) | {"tokens": "", "cost_units": ""} == {
        "run_status": "drained",
        "slots": "4",
        "ended": "1",
        "attempts": "1",
        "tokens": "",
        "cost_units": "",
    }
    done = study(place, "run", str(place / "R"), "--jobs", "4")
    assert (done.returncode, values(done.stdout)["attempts"]) == (0, "4")


def test_ctrl_c_twice_stops(place: Path) -> None:
    """S25 F5: the attempt of an hour is interrupted at once, recorded, and made anew."""
    planned(place, **{"effect__0.4": "effect: 0.4\n    sleep_seconds: 3600"})
    running = begun(place)
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    while "Draining" not in running.stderr.readline():
        pass
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert (values(out)["run_status"], values(out)["ended"]) == ("drained", "0")
    ended = [row["body"] for row in rows(place) if row["type"] == "attempt_ended"]
    assert [(row["class"], row["detail"]) for row in ended] == [("interrupted", "stopped")]


def test_sigterm_ends_the_run_as_a_kill_would_and_loses_nothing(place: Path) -> None:
    """128 + 15, soon; what was acknowledged stays."""
    planned(place, **{"effect__0.4": "effect: 0.4\n    sleep_seconds: 3600"})
    running = begun(place)
    running.terminate()
    _, err = running.communicate(timeout=30)
    assert running.returncode == 128 + signal.SIGTERM, err
    assert "goes on" in err


def test_plain_lines_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal, a study of a thousand slots does not print a thousand lines."""
    with fast_folder() as folder, bench(folder) as held:
        status = first_status(held.plan(example(folder)))
    with StudyProgress("first", 1_000) as progress:
        for ended in range(1_001):
            progress.progressed(status.model_copy(update={"ended": ended, "slots": 1_000}))
        progress.resumed(2, 1, 3)
        progress.resting(4.0)
    lines = capsys.readouterr().err.splitlines()
    assert 20 <= len(lines) <= 24
    assert lines[-3].startswith("first: 1000 of 1000 slots")
    assert "3 processes" in lines[-2]
    assert lines[-1].endswith("waiting 4 s before the next attempt")
