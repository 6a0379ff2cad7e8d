"""`reviewer-calibration`: what is refused, what is printed, how it is ended and taken up again."""

from __future__ import annotations

import errno
import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
import rfc8785

from skill_effectiveness.calibration.reviewer import ADAPTERS
from skill_effectiveness.cli import door, examination
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.commands import (
    PREFIX,
    RUN,
    Said,
    codex_that_answers,
    codex_that_waits,
    ended,
    environment,
    no_traceback,
    run,
    start,
    steers,
)
from tests.support.examinations import BANK, MANIFEST
from tests.support.fake_program import write_fake
from tests.support.private import REPOSITORY, content, wrong_modes
from tests.support.processes import alive, wait_until
from tests.support.provider_calls import THREAD, TURN

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SIMULATED = [
    "reviewer-calibration",
    "--provider",
    "simulated",
    "--model",
    "sim-1",
    "--reviewer-family",
    "simulated",
]
PERFECT = [*SIMULATED, "--accuracy", "1"]
CODEX = ["reviewer-calibration", "--provider", "codex", "--model", "model-1", "--reviewer-family", "family-1"]
PAIR = {"reviewer-calibration.json", "reviewer-calibration-result.json"}
CANARY = "canary-4711"


def published(folder: Path) -> set[str]:
    """Which of the two canonical files are there."""
    return PAIR & {path.name for path in folder.iterdir()} if folder.exists() else set()


class TestLines:
    def test_a_simulated_reviewer_that_passes(self, command: Callable[..., Said], home: Path) -> None:
        """R39 R43: the lines of section 7 and no other; synthetic is said."""
        said = command(*PERFECT, "--out", "out")
        assert said.code == 0
        assert said.out == (
            "execution_status=evaluated\n"
            "calibration_status=pass\n"
            "reviewer_family=simulated\n"
            "repeat_count=2\n"
            "result=reviewer-calibration-result.json\n"
            "synthetic=true\n"
        )
        assert published(home / "out") == PAIR
        assert wrong_modes(home / "out") == []

    def test_one_that_fails_exits_1_with_its_pair(self, command: Callable[..., Said], home: Path) -> None:
        """R41 R44: completed and did not pass."""
        said = command(*SIMULATED, "--accuracy", "0.5", "--seed", "7", "--out", "out")
        assert said.code == 1
        assert said.values["calibration_status"] == "fail"
        assert published(home / "out") == PAIR

    def test_bias_probes_have_no_verdict(self, command: Callable[..., Said], home: Path) -> None:
        """R41: a result of another name, and exit 0."""
        said = command(*PERFECT, "--bank", "bias-probe", "--out", "out")
        assert said.code == 0
        assert said.values["calibration_status"] == "not_applicable"
        assert said.values["result"] == "bias-probe-result.json"
        assert (home / "out/bias-probe-result.json").exists()

    @pytest.mark.parametrize("accuracy", ["1", "0.5"])
    def test_json_says_the_same_as_the_lines(self, command: Callable[..., Said], accuracy: str) -> None:
        """R39: one canonical object."""
        words = [*SIMULATED, "--accuracy", accuracy, "--seed", "7", "--out"]
        lines, said = command(*words, "lines"), command(*words, "json", "--json")
        assert (said.code, said.out.encode()) == (lines.code, rfc8785.dumps(said.document) + b"\n")
        assert said.document == {**lines.values, "repeat_count": 2, "synthetic": True}

    def test_figures_and_progress_are_for_people(self, command: Callable[..., Said]) -> None:
        """R39: on stderr, where nothing of stdout stands."""
        err = command(*PERFECT, "--repeats", "3", "--out", "out").err
        assert "simulated sim-1: repeat 3 of 3\n" in err
        assert "simulated sim-1: published: pass\n" in err
        assert "reviewers on 24 cases" in err
        assert "execution_status" not in err

    def test_a_real_program_and_planted_words(self, home: Path) -> None:
        """R39: no path, prompt, judgement, model output or credential on stdout, whatever carries them."""
        place = home / CANARY
        place.mkdir(mode=0o700)
        program = codex_that_answers(place / "codex", BANK, noise=f"{CANARY} \x1b[32mA win\x1b[0m\n")
        surroundings = environment(home, CODEX_API_KEY=CANARY)
        words = [*CODEX, "--codex-path", program, "--repeats", "2", "--out", place / "out"]
        said = run(home, *words, env=surroundings)
        assert said.code == 0, said
        assert said.out == (
            "execution_status=evaluated\n"
            "calibration_status=pass\n"
            "reviewer_family=family-1\n"
            "repeat_count=2\n"
            "result=reviewer-calibration-result.json\n"
        )
        assert steers(said.err) == []
        assert CANARY not in said.err
        again = run(home, *words, "--resume", "--json", env=surroundings)
        assert CANARY not in again.out
        assert "synthetic" not in again.document
        assert again.document["calibration_status"] == "pass"

    def test_a_program_that_fails_with_planted_words(self, command: Callable[..., Said], home: Path) -> None:
        """F21 R39: what it says about its failure reaches neither stream; the closed words do."""
        said_by_it = f"{CANARY} \x1b[2K\rcalibration_status=pass quota exceeded"
        program = write_fake(home / "codex", FAILING, thread=THREAD, turn=TURN, said=said_by_it)
        said = command(*CODEX, "--codex-path", program, "--out", "out", "--json")
        assert said.code == 2
        assert set(said.document) == {"status", "code", "field"}
        assert said.document["code"] == "repeat_failed"
        assert said.document["field"].startswith("provider_error")
        assert CANARY not in said.out + said.err
        assert steers(said.out + said.err) == []

    def test_a_real_program_that_decides_nothing(self, home: Path) -> None:
        """R41: exit 1 beside a published failed pair."""
        program = codex_that_answers(home / "codex", None)
        said = run(home, *CODEX, "--codex-path", program, "--out", "out")
        assert said.code == 1, said
        assert said.values["calibration_status"] == "fail"
        assert published(home / "out") == PAIR


FAILING = """
sys.stdin.buffer.read()
sys.stderr.write(said)
say(thread, turn, {"type": "error", "message": said}, {"type": "turn.failed", "error": {"message": said}})
sys.exit(1)
"""


class Case:
    """Words that are refused, the code machines get, and a word of the sentence."""

    def __init__(self, words: Sequence[str], code: str, sentence: str) -> None:
        self.words = [*words]
        self.code = code
        self.sentence = sentence


REAL = [*CODEX, "--codex-path", "{program}"]
REFUSED = {
    "six repeats": Case([*PERFECT, "--repeats", "6"], "usage", "--repeats"),
    "one repeat": Case([*REAL, "--repeats", "1"], "usage", "--repeats"),
    "no number": Case([*PERFECT, "--repeats", "two"], "usage", "--repeats"),
    "601 seconds": Case([*REAL, "--timeout-seconds", "601"], "usage", "--timeout-seconds"),
    "0 seconds": Case([*REAL, "--timeout-seconds", "0"], "usage", "--timeout-seconds"),
    "model with a blank": Case([*REAL, "--model", "a b"], "usage", "--model"),
    "model that paints": Case([*REAL, "--model", "a\x1b[32mpass"], "usage", "--model"),
    "model with a line end": Case([*REAL, "--model", "a\n"], "usage", "--model"),
    "empty model": Case([*REAL, "--model", ""], "usage", "--model"),
    "model of 129 letters": Case([*REAL, "--model", "a" * 129], "usage", "--model"),
    "family with a blank": Case([*REAL, "--reviewer-family", "a b"], "usage", "--reviewer-family"),
    "family of 65 letters": Case([*REAL, "--reviewer-family", "a" * 65], "usage", "--reviewer-family"),
    "family of another provider": Case(
        [*PERFECT, "--reviewer-family", "openai"], "family_mismatch", "simulated"
    ),
    "no path": Case(CODEX, "program_mismatch", "--codex-path"),
    "path of another provider": Case(
        [*CODEX, "--kimi-path", "{program}"], "program_mismatch", "--codex-path"
    ),
    "two paths": Case([*REAL, "--kimi-path", "{program}"], "program_mismatch", "--codex-path"),
    "relative path": Case([*CODEX, "--codex-path", "none"], "missing", "no program"),
    "path for a simulated one": Case(
        [*PERFECT, "--codex-path", "{program}"], "program_mismatch", "--codex-path"
    ),
    "a program whose name paints": Case(
        [*CODEX, "--codex-path", "{home}/\x1b[2K\nx"], "missing", "\\x1b[2K\\x0ax"
    ),
    "a program that is not there": Case([*CODEX, "--codex-path", "{home}/none"], "missing", "no program"),
    "a program that is a folder": Case([*CODEX, "--codex-path", "{home}"], "not_regular", "not a file"),
    "a program without a version": Case([*CODEX, "--codex-path", "/bin/false"], "no_version", "--version"),
    "a program that may not run": Case(
        [*CODEX, "--codex-path", "{home}/text"], "not_executable", "permission"
    ),
    "settings for a real one": Case([*REAL, "--accuracy", "1"], "settings_mismatch", "--accuracy"),
    "a seed for a real one": Case([*REAL, "--seed", "0"], "settings_mismatch", "--seed"),
    "no settings": Case(SIMULATED, "settings_mismatch", "--accuracy"),
    "accuracy above 1": Case([*SIMULATED, "--accuracy", "1.5"], "usage", "--accuracy"),
    "accuracy that is no number": Case([*SIMULATED, "--accuracy", "nan"], "usage", "--accuracy"),
    "a seed no JSON can hold": Case([*PERFECT, "--seed", str(2**53)], "usage", "--seed"),
    "settings for another provider": Case(
        [*PERFECT, "--provider", "claude", "--claude-path", "{program}"], "settings_mismatch", "--accuracy"
    ),
    "a family that is not claude's": Case(
        [*CODEX, "--provider", "claude", "--claude-path", "{program}"], "family_mismatch", "claude"
    ),
    "a family that is not kimi's": Case(
        [*CODEX, "--provider", "kimi", "--kimi-path", "{program}"], "family_mismatch", "moonshot"
    ),
    "a family that is not the provider's id": Case(
        [*CODEX, "--provider", "opencode", "--opencode-path", "{program}", "--model", "fake/model-1"],
        "family_mismatch",
        "fake",
    ),
    "an opencode model without its provider": Case(
        [*CODEX, "--provider", "opencode", "--opencode-path", "{program}"], "invalid_call", "PROVIDER/MODEL"
    ),
    "a kimi model that is not configured": Case(
        [*CODEX, "--provider", "kimi", "--kimi-path", "{program}", "--reviewer-family", "moonshot"],
        "missing",
        "config.toml",
    ),
    "a provider nobody knows": Case([*PERFECT, "--provider", "\x1b[1mx"], "usage", "--provider"),
    "a bank nobody knows": Case([*PERFECT, "--bank", "mine"], "usage", "--bank"),
    "no such option": Case([*PERFECT, "--fast"], "usage", "--fast"),
    "one word too many": Case([*PERFECT, "more"], "usage", "more"),
    "no model": Case(
        ["reviewer-calibration", "--provider", "codex", "--codex-path", "/bin/true"], "usage", "--model"
    ),
}


@pytest.fixture
def program(home: Path) -> Path:
    """A program that would answer, and leaves a mark when it is asked anything but its version."""
    (home / "text").write_text("no program")
    return codex_that_answers(home / "codex", BANK, before=f"open({str(home / 'asked')!r}, 'w').close()\n")


def filled(words: Sequence[str], home: Path, program: Path) -> list[str]:
    return [word.format(home=home, program=program) if "{" in word else word for word in words]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch, home: Path) -> list[str]:
    """Parts of names for which there is no space."""
    del home
    names: list[str] = []
    lacking = Injection(
        "create_exclusive", errno.ENOSPC, nth=0, about=lambda path: any(name in path for name in names)
    )
    around = replace(door.surroundings(), fs=FaultFs(RealFs(), lacking))
    monkeypatch.setattr(examination, "surroundings", lambda: around)
    return names


class TestFullDisk:
    def test_one_advice_that_works(self, command: Callable[..., Said], home: Path, full: list[str]) -> None:
        """R28: free some, then --resume; the same command without it would be refused."""
        full.append("orientation.key")
        said = command(*PERFECT, "--out", "out")
        assert (said.code, said.out) == (2, "")
        told = "There is no space left for attempts/r01-a1/.orientation.key; "
        assert said.err.splitlines()[-1] == f"{PREFIX}{told}free some, then go on with --resume."
        full.clear()
        assert command(*PERFECT, "--out", "out", "--resume").code == 0
        assert published(home / "out") == PAIR


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
    def test_one_sentence_and_nothing_written(
        self, command: Callable[..., Said], home: Path, program: Path, case: Case
    ) -> None:
        """R39 R41: exit 2; no call, no file, no folder; the closed code for machines."""
        before = content(home), sorted(home.iterdir())
        words = [*filled(case.words, home, program), "--out", "out"]
        said = command(*words)
        assert case.sentence in said.refusal
        assert steers(said.err) == []
        machine = command(*words, "--json")
        assert (machine.code, machine.document) == (2, {"status": "refused", "code": case.code})
        assert (content(home), sorted(home.iterdir())) == before

    def test_a_real_reviewer_has_no_default_model(self, command: Callable[..., Said]) -> None:
        words = ("reviewer-calibration", "--provider", "codex", "--codex-path", "/bin/true", "--out", "e")
        assert "--model" in command(*words).refusal
        assert "--reviewer-family" in command(*words, "--model", "m").refusal

    def test_a_simulated_one_is_called_what_it_is(self, command: Callable[..., Said]) -> None:
        words = ("--provider", "simulated", "--accuracy", "1", "--seed", "7", "--out", "e")
        assert command("reviewer-calibration", *words).values["reviewer_family"] == "simulated"

    def test_no_folder(self, command: Callable[..., Said]) -> None:
        assert "--out" in command(*PERFECT).refusal

    @pytest.mark.parametrize(
        ("where", "code"),
        [
            (str(REPOSITORY / "evidence-of-a-test"), "root_in_checkout"),
            (str(REPOSITORY), "root_in_checkout"),
            (str(REPOSITORY.parent), "root_holds_checkout"),
            ("{home}", "root_form"),
            ("/", "root_form"),
            ("a/../b", "root_form"),
            ("open", "root_mode"),
            ("link", "root_symlink"),
            ("link/below", "root_symlink"),
            ("text", "root_form"),
        ],
    )
    def test_a_folder_that_will_not_do(
        self, command: Callable[..., Said], home: Path, program: Path, where: str, code: str
    ) -> None:
        """E13 E17: the rule, exit 2, nothing written there."""
        del program
        (home / "open").mkdir()
        (home / "open").chmod(0o755)
        (home / "real").mkdir(mode=0o700)
        (home / "link").symlink_to(home / "real")
        # Links of root in folders of root are followed on the way, so this one belongs to somebody else.
        os.lchown(home / "link", 65534, 65534)
        before = content(home)
        said = command(*PERFECT, "--out", where.format(home=home), "--json")
        assert (said.code, said.document) == (2, {"status": "refused", "code": code})
        assert len(said.err.splitlines()) == 1
        assert content(home) == before
        assert (home / "open").stat().st_mode & 0o777 == 0o755
        assert not (REPOSITORY / "evidence-of-a-test").exists()

    def test_a_folder_name_that_is_not_utf_8(self, home: Path) -> None:
        """F21: the name is spelled out, and nothing is made."""
        said = run(home, *PERFECT, "--out", os.fsdecode(b"\xff\x1b[31m"))
        assert said.refusal
        assert steers(said.err) == []
        assert [path.name for path in home.iterdir()] == ["tmp"]

    def test_a_second_time_without_resume(self, command: Callable[..., Said], home: Path) -> None:
        """R30: a second time without --resume."""
        command(*PERFECT, "--out", "out")
        before = content(home / "out")
        said = command(*PERFECT, "--out", "out", "--json")
        assert (said.code, said.document) == (2, {"status": "refused", "code": "already_claimed"})
        assert content(home / "out") == before

    def test_resume_under_another_model_is_refused_by_field(self, command: Callable[..., Said]) -> None:
        """R29: and machines get the field."""
        command(*PERFECT, "--out", "out")
        said = command(*PERFECT, "--model", "sim-2", "--resume", "--out", "out", "--json")
        assert said.document == {"status": "refused", "code": "binding_differs", "field": "model"}
        assert "another model" in said.err

    def test_every_provider_that_can_be_named_has_its_path_or_none(self) -> None:
        assert [name.value for name in examination.ProviderName] == [
            "codex", "claude", "opencode", "kimi", "simulated",
        ]  # fmt: skip
        assert set(examination.ProviderName) == set(ADAPTERS)


class TestResume:
    def test_a_complete_one_is_a_no_op(self, command: Callable[..., Said], home: Path) -> None:
        """F4 R30: exit 0, the same lines, the same bytes, no call."""
        first = command(*PERFECT, "--out", "out")
        before = content(home / "out")
        again = command(*PERFECT, "--out", "out", "--resume")
        assert (again.code, again.out) == (first.code, first.out)
        assert "waiting for the reviewer" not in again.err
        assert "repeat 2 of 2 kept" in again.err
        assert content(home / "out") == before

    def test_a_failed_one_fails_again(self, command: Callable[..., Said]) -> None:
        """F4 R41: the exit code is what is published."""
        words = [*SIMULATED, "--accuracy", "0.5", "--seed", "7", "--out", "out"]
        assert [command(*words).code, command(*words, "--resume").code] == [1, 1]

    def test_a_failed_repeat_is_made_again(self, home: Path) -> None:
        """R28 R41: exit 2 without a pair and with the state; then the missing calls alone."""
        counter = home / "calls"
        once = (
            f"calls = open({str(counter)!r}, 'a'); calls.write('x'); calls.close()\n"
            f"if os.path.getsize({str(counter)!r}) == 2:\n    sys.exit(1)\n"
        )
        program = codex_that_answers(home / "codex", BANK, before=once)
        words = [*CODEX, "--codex-path", program, "--repeats", "3", "--out", "out"]
        said = run(home, *words, "--json")
        assert (said.code, published(home / "out")) == (2, set())
        assert (said.document["code"], said.document["status"]) == ("repeat_failed", "refused")
        assert said.err.splitlines()[-1].startswith(f"{PREFIX}Repeat 2 of 3 failed")
        again = run(home, *words, "--resume")
        assert (again.code, published(home / "out")) == (0, PAIR)
        assert counter.read_text() == "xxxx"

    def test_a_refusing_reviewer_leaves_no_pair(self, command: Callable[..., Said], home: Path) -> None:
        """R41: not exit 1."""
        said = command(*PERFECT, "--refusal-rate", "1", "--out", "out", "--json")
        assert said.code == 2
        assert said.document == {"status": "refused", "code": "repeat_failed", "field": "refused"}
        assert published(home / "out") == set()


class Running:
    """An examination whose program waits for ever, up to its call."""

    def __init__(self, home: Path, name: str, **others: object) -> None:
        self.pids = home / name
        self.out = home / f"out-{name}"
        self.words = [
            *CODEX,
            "--codex-path",
            codex_that_waits(home / f"codex-{name}", self.pids),
            "--out",
            self.out,
        ]
        self.process: subprocess.Popen[bytes] = start(home, *self.words, **others)

    def wait(self) -> list[psutil.Process]:
        """Everything that runs for it, once its program and the grandchild do."""
        for name in ("program", "grandchild"):
            # Several of them start at once, on a machine that may be busy with other things.
            assert wait_until((self.pids / name).exists, seconds=60), name
        found = psutil.Process(self.process.pid).children(recursive=True)
        noted = {int((self.pids / name).read_text()) for name in ("program", "grandchild")}
        return found + [psutil.Process(pid) for pid in noted - {child.pid for child in found}]


@pytest.fixture
def running(home: Path) -> Iterator[Callable[..., Running]]:
    """Starts examinations; what a failed test leaves of them is ended."""
    started: list[Running] = []

    def begin(name: str, **others: object) -> Running:
        started.append(Running(home, name, **others))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.terminate()
            ended(one.process)


def gone(processes: list[psutil.Process]) -> bool:
    return wait_until(lambda: not any(alive(process.pid) for process in processes))


class TestSignals:
    def test_each_of_the_four_leaves_nothing_running(
        self, home: Path, running: Callable[..., Running]
    ) -> None:
        """P10: exit 128 and n, nothing on stdout, no process, no session folder, no pair."""
        examinations = {signum: running(signum.name) for signum in FOUR}
        children = {signum: one.wait() for signum, one in examinations.items()}
        for signum, one in examinations.items():
            one.process.send_signal(signum)
        for signum, one in examinations.items():
            said = ended(one.process)
            assert (said.code, said.out) == (128 + signum, ""), said
            assert no_traceback(said)
            assert said.err.splitlines()[-1] == f"Stopped by {signum.name}; {GO_ON}"
            (ending,) = (one.out / "endings").iterdir()
            record = json.loads(ending.read_bytes())
            assert (ending.name, record["ending"], record["detail"]) == (
                "r01-a1.json",
                "cancelled",
                "signal",
            )
            assert gone(children[signum])
            assert published(one.out) == set()
        assert list((home / "tmp").iterdir()) == []

    def test_under_nohup_a_hangup_changes_nothing(self, home: Path, running: Callable[..., Running]) -> None:
        """P10: what was ignored stays ignored; a termination still ends it, also when sent twice."""
        examination = running("nohup", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        children = examination.wait()
        examination.process.send_signal(signal.SIGHUP)
        assert not wait_until(lambda: examination.process.poll() is not None, seconds=0.5)
        for _ in range(2):
            examination.process.send_signal(signal.SIGTERM)
        assert ended(examination.process).code == 128 + signal.SIGTERM
        assert gone(children)
        assert list((home / "tmp").iterdir()) == []

    def test_what_was_interrupted_can_be_taken_up(
        self, command: Callable[..., Said], running: Callable[..., Running]
    ) -> None:
        """R28: the interrupted attempt stays as it is; its repeat gets a new one."""
        examination = running("first")
        examination.wait()
        examination.process.send_signal(signal.SIGTERM)
        ended(examination.process)
        (attempt,) = (examination.out / "attempts").iterdir()
        before = content(attempt)
        said = command(*examination.words, "--timeout-seconds", "1", "--resume", "--json")
        assert said.document == {"status": "refused", "code": "binding_differs", "field": "timeout_seconds"}
        assert content(attempt) == before

    def test_at_the_renames_neither_file_is_left(self, command: Callable[..., Said], home: Path) -> None:
        """R18 E41 E63: each signal, before the first rename and between the two; resuming makes no call."""
        scenes = [[f"out-{name}-{signum}", name, int(signum)] for name in STAGED for signum in FOUR]
        said = run(home, json.dumps(scenes), *PERFECT, code=["-c", AT_A_RENAME])
        assert said.code == 0, said
        assert said.document == [[128 + signum, 1] for _out, _name, signum in scenes]
        assert no_traceback(said)
        for out, _name, _signum in scenes:
            left = {path.name for path in (home / str(out)).iterdir()}
            assert left & PAIR == set()
            assert not any(name.endswith(".pending.json") for name in left)
            again = command(*PERFECT, "--out", out, "--resume")
            assert (again.code, published(home / str(out))) == (0, PAIR)
            assert "waiting for the reviewer" not in again.err

    def test_after_the_renames_the_pair_is_whole(self, home: Path) -> None:
        """E42 E63: a signal after the publication leaves both."""
        scenes = [[f"out-{signum}", ".reviewer-calibration-metrics.json", int(signum)] for signum in FOUR]
        said = run(home, json.dumps(scenes), *PERFECT, code=["-c", AT_A_RENAME])
        assert said.document == [[128 + signum, 1] for _out, _name, signum in scenes], said
        assert all(published(home / str(out)) == PAIR for out, _name, _signum in scenes)

    def test_the_process_itself_exits_143(self, home: Path) -> None:
        """R18: SIGTERM between the renames."""
        scene = json.dumps([["out", STAGED[1], int(signal.SIGTERM)]])
        said = run(home, scene, *PERFECT, code=["-c", AT_A_RENAME + "\nsys.exit(ends[0][0])"])
        assert said.code == 143
        assert published(home / "out") == set()


GO_ON = "completed repeats are kept, so give the same command with --resume to go on."
FOUR = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
STAGED = [".reviewer-calibration.pending.json", ".reviewer-calibration-result.pending.json"]
# Runs the command once per scene (folder, what is renamed when the signal comes, signal); prints the exit
# codes and how often the signal was sent.
AT_A_RENAME = f"""
import json, os, sys
sys.path[:0] = [{str(RUN.parent / "eval")!r}]
from dataclasses import replace
from skill_effectiveness.calibration.repeats import examine
from skill_effectiveness.cli import door
from skill_effectiveness.cli.main import main
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.surroundings import Surroundings

# As the commands in the process of the tests have it.
examine.__kwdefaults__["manifest"] = lambda: {MANIFEST!r}
real, ends = Surroundings.real, []
for out, source, signum in json.loads(sys.argv[1]):
    sent = Injection(
        "rename",
        about=lambda path: os.path.basename(path).lstrip(".").startswith(source.lstrip(".")),
        before=lambda: os.kill(os.getpid(), signum),
    )
    Surroundings.real = classmethod(lambda _class: replace(real(), fs=FaultFs(RealFs(), sent)))
    door.surroundings.cache_clear()
    screen = sys.stdout
    sys.stdout = sys.stderr
    ends.append([main([*sys.argv[2:], "--out", out]), sent.hits])
    sys.stdout = screen
print(json.dumps(ends))
"""


class TestUnforeseen:
    def test_a_crash_file_in_the_folder_of_the_examination(
        self, command: Callable[..., Said], home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """R41: exit 70, never 1; resuming goes on beside the crash file."""

        def broken(*_given: object, **_named: object) -> None:
            raise KeyError(CANARY)

        with monkeypatch.context() as patch:
            patch.setattr(examination, "examine", broken)
            said = command(*PERFECT, "--out", "out")
        assert (said.code, said.out) == (70, "")
        (file,) = (home / "out/crash").iterdir()
        assert str(file) in said.err
        assert CANARY not in said.err + file.read_text()
        assert json.loads(file.read_bytes())["errors"][0]["error"] == "KeyError"
        assert wrong_modes(home / "out") == []
        assert command(*PERFECT, "--out", "out").code == 0
