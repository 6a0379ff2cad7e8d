"""The command line of closeout: words, exit codes, both streams."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.cli import closeout, door
from skill_effectiveness.cli.main import main as whole
from tests.support.closeout import ENTRY, SKILL, Repository, command_item, finding, policy, review_item
from tests.support.commands import Said, no_traceback
from tests.support.private import REPOSITORY, content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Command = Callable[..., Said]

AT = ("--gate", "beforePR", "--base", "HEAD", "--head", "HEAD")
ADD = ("evidence", "add", *AT, "--item", "careful", "--session", "s", "--model", "m")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository as the working folder of commands run in this process."""
    made = Repository(tmp_path / "closeout")
    for name, value in made.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(made.root)
    door.surroundings.cache_clear()
    yield made
    door.surroundings.cache_clear()


@pytest.fixture
def command(repository: Repository, capsys: pytest.CaptureFixture[str]) -> Command:
    del repository

    def carry_out(*words: object) -> Said:
        capsys.readouterr()
        code = closeout.main([str(word) for word in words])
        said = Said(int(code), *capsys.readouterr())
        assert no_traceback(said)
        return said

    return carry_out


class TestExitCodes:
    def test_validate(self, repository: Repository, command: Command) -> None:
        """C1 C45: 0 for an absent and a valid policy, 3 for one that blocks."""
        assert command("validate") == Said(0, "no closeout policy\n", "")
        repository.with_policy(policy(command_item("a"), command_item("b")))
        said = command("validate")
        digest = repository.decide().policy.digest
        assert said == Said(0, f"{ENTRY}\n{digest}\na\nb\n", "")
        repository.write(ENTRY, "x: 1\n")
        said = command("validate")
        assert (said.code, said.out) == (3, "")
        assert said.err.startswith(f"closeout: {ENTRY}: /specVersion ")

    def test_validate_for_machines(self, repository: Repository, command: Command) -> None:
        """C45: ok and absent are told, and a message only where there is one."""
        assert command("validate", "--json").document == {
            "specVersion": "0.1",
            "ok": True,
            "absent": True,
            "path": None,
            "digest": None,
            "items": [],
            "warnings": [],
            "message": "no closeout policy",
        }
        base = repository.with_policy(policy(command_item()))
        repository.write(ENTRY, policy())
        document = command("validate", "--json", "--base", base).document
        assert (document["ok"], document["items"]) == (True, [])
        assert [each["code"] for each in document["warnings"]] == ["policy_differs_from_base"]
        document = command("validate", "--json", "--base", base, "--policy-from", "base").document
        assert (document["items"], document["warnings"]) == (["check"], [])
        repository.write(ENTRY, "[")
        said = command("validate", "--json")
        assert (said.code, said.document["ok"], said.document["absent"]) == (3, False, False)
        assert said.document["message"].startswith(f"{ENTRY}: ")

    def test_run_and_decision(self, repository: Repository, command: Command) -> None:
        """C45: 0 accepted, 1 rejected, 3 blocked; the same for both."""
        head = repository.with_policy(policy(command_item()))
        assert command("decision", *AT).code == 3
        said = command("run", *AT)
        digest = repository.decide().policy.digest
        lines = [
            "accepted beforePR",
            f"base {head}",
            f"head {head}",
            f"policy {digest}",
            "",
            "check  passed  exited 0",
            "",
        ]
        assert said == Said(0, "\n".join(lines), "")
        assert command("decision", *AT) == said
        repository.with_policy(policy(command_item(argv='["false"]')))
        assert command("run", *AT).code == 1
        assert command("decision", *AT).code == 1

    def test_json_is_the_document_alone(self, repository: Repository, command: Command) -> None:
        """C46: valid by the published schema, also when blocked as a whole; warnings go to stderr."""
        schema = json.loads((REPOSITORY / "schemas" / "closeout" / "decision.schema.json").read_bytes())
        repository.commit(a="1")
        repository.write(ENTRY, policy(command_item()))
        for words in (
            ("run", *AT),
            ("decision", *AT),
            ("decision", *AT, "--trust", "journal"),
            ("decision", "--gate", "beforePR", "--base", "x", "--head", "y"),
        ):
            said = command(*words, "--json")
            Draft202012Validator(schema).validate(said.document)
        said = command("run", *AT, "--json")
        assert said.code == 0
        assert said.err.startswith("closeout: warning policy_differs_from_base: ")
        repository.write(ENTRY, "[")
        said = command("decision", *AT, "--json")
        assert said.code == 3
        Draft202012Validator(schema).validate(said.document)
        assert said.document["message"].startswith(f"{ENTRY}: ")

    def test_candidate_options_reach_the_decision(self, repository: Repository, command: Command) -> None:
        """C39 C45: default empty, which satisfies nothing."""
        repository.with_policy(policy(review_item()), skill=True)
        (repository.base / "findings.json").write_text(json.dumps([finding("P3")]))
        said = command(*ADD, "--findings", repository.base / "findings.json", "--json")
        assert (said.code, said.document["attempt"], said.document["producer"]["provider"]) == (0, 1, "")
        assert command("decision", *AT).code == 3
        who = ("--candidate-session", "c", "--candidate-model", "d", "--candidate-provider", "e")
        said = command("decision", *AT, *who, "--json")
        assert said.code == 0
        assert said.document["candidate"] == {"session": "c", "model": "d", "provider": "e"}

    def test_findings_that_are_refused(self, repository: Repository, command: Command) -> None:
        """C45: 2 for a file that is no array, 3 for a finding that breaks the schema."""
        repository.with_policy(policy(review_item()), skill=True)
        place = repository.base / "findings.json"
        for text, code, message in (
            ("{", 2, "findings file is not JSON"),
            ("{}", 2, "findings file must be a JSON array"),
            ("[{}]", 3, "findings are invalid: /0/severity is missing"),
        ):
            place.write_text(text)
            said = command(*ADD, "--findings", place)
            assert (said.code, said.out) == (code, "")
            assert said.err.startswith(f"closeout: {message}")
        assert command(*ADD, "--findings", repository.base / "nothing").code == 2
        assert not (repository.root / ".closeout").exists()

    def test_a_review_that_cannot_be_had(self, repository: Repository, command: Command) -> None:
        """C45 C61: exit 3 and one code."""
        repository.with_policy(policy(review_item()), skill=True)
        said = command("review", *AT, "--item", "careful", "--provider", "nobody", "--model", "m")
        assert (said.code, said.out) == (3, "")
        assert said.err.startswith("closeout: review_provider_unavailable. ")

    def test_conformance(self, repository: Repository, command: Command) -> None:
        """C62: 0 all agree, 1 one disagrees, 2 usage, 3 one is malformed, which beats 1."""
        folder = repository.base / "cases"
        folder.mkdir()

        def case(name: str, expect: object) -> None:
            (folder / name / "repo").mkdir(parents=True)
            (folder / name / "expect.json").write_text(json.dumps(expect))

        assert command("conformance", folder).code == 2
        assert command("conformance", folder / "nothing").code == 2
        assert command("conformance").code == 2
        case("a", {"check": "validate", "ok": True})
        assert command("conformance", folder) == Said(0, "a ok\n", "")
        case("b", {"check": "validate", "ok": False})
        assert command("conformance", folder) == Said(1, "a ok\nb FAIL ok=False ok=True\n", "")
        case("c", {"check": "nonsense"})
        before = content(folder)
        said = command("conformance", folder)
        assert (said.code, said.out.splitlines()[:2]) == (3, ["a ok", "b FAIL ok=False ok=True"])
        assert said.out.splitlines()[2].startswith("c malformed: ")
        assert command("conformance", folder, "--only", "a").code == 0
        assert command("conformance", folder, "--only", "nothing").code == 2
        outcomes = [each["outcome"] for each in command("conformance", folder, "--json").document["cases"]]
        assert outcomes == ["ok", "FAIL", "malformed"]
        assert content(folder) == before


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["run"], "missing --gate"),
            (["run", "--gate", "beforeMerge"], "gate must be beforePR"),
            (["decision", "--gate", "beforePR"], "missing --base"),
            (["decision", "--gate", "beforePR", "--base", ""], "missing --base"),
            (["decision", "--gate", "beforePR", "--base", "x"], "missing --head"),
            (["evidence", "add", "--gate", "beforePR"], "missing --item"),
            ([*ADD], "missing --findings"),
            (["review", *AT, "--item", "x"], "missing --provider"),
            (["review", *AT, "--item", "x", "--provider", "codex"], "missing --model"),
            (["validate", "--policy-from", "base"], "missing --base"),
            (["run", *AT, "--task", "x"], "No such option: --task"),
            (["run", *AT, "--policy-from", "head"], "Invalid value for '--policy-from'"),
            (["try"], "No such command 'try'"),
            (["run", *AT, "extra"], "Got unexpected extra argument"),
            ([], "Missing command"),
        ],
    )
    def test_an_invalid_invocation(
        self, command: Command, repository: Repository, words: list[str], message: str
    ) -> None:
        """C45 C49: exit 2, the message and the usage text on stderr, nothing else anywhere."""
        said = command(*words)
        assert (said.code, said.out) == (2, "")
        first, *usage = said.err.splitlines()
        assert first.startswith(f"closeout: {message}")
        assert usage[0].startswith("Usage: closeout")
        assert not (repository.root / ".closeout").exists()

    @pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["evidence", "add", "--help"]])
    def test_help(self, command: Command, words: list[str]) -> None:
        assert command(*words).code == 0


class TestStreams:
    def test_names_that_would_steer_a_terminal(self, repository: Repository, command: Command) -> None:
        """F21: a policy's words are shown, never obeyed."""
        repository.with_policy('specVersion: "0.1"\nimports:\n  - {path: "x\\e[2J/y", as: a}\n')
        said = command("decision", *AT)
        assert "\x1b" not in said.out + said.err
        assert "import is missing: x\\x1b[2J/y" in said.out

    def test_something_unforeseen_blocks(
        self, command: Command, monkeypatch: pytest.MonkeyPatch, repository: Repository
    ) -> None:
        """C45: exit 3 and a crash file without payload; never an accepted decision."""

        def broken(*_: Any) -> None:  # noqa: ANN401 - any JSON, or any member
            raise RuntimeError("secret-canary")

        monkeypatch.setattr(closeout, "decide", broken)
        said = command("decision", *AT)
        assert (said.code, said.out) == (3, "")
        assert "nothing is accepted" in said.err
        files = content(repository.home)
        assert any("/crash/" in name for name in files)
        assert not any(b"secret-canary" in data for data in files.values())


class TestDoors:
    def test_the_same_commands_through_the_whole_command_line(
        self, repository: Repository, command: Command, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """C45: with the exit codes of this contract."""
        repository.with_policy(policy(command_item(argv='["false"]')))
        assert command("run", *AT).code == 1
        assert whole(["closeout", "decision", *AT]) == 1
        assert whole(["closeout", "decision", *AT, "--head", "nope"]) == 3
        capsys.readouterr()

    def test_a_process_of_its_own(self, repository: Repository) -> None:
        """C45: from the checkout's door; stdin closed, stdout the document."""
        repository.with_policy(policy(command_item()))
        done = subprocess.run(  # noqa: S603 - our own door
            [sys.executable, str(REPOSITORY / "run.py"), "closeout", "run", *AT, "--json"],
            check=False,
            capture_output=True,
            cwd=repository.root,
            env=repository.variables(),
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["decision"] == "accepted"

    def test_the_skill_is_where_the_policy_says(self, repository: Repository, command: Command) -> None:
        """C9: a missing skill blocks, by its path in the repository."""
        repository.with_policy(policy(review_item()))
        said = command("validate")
        assert said.code == 3
        assert f"skill is missing: {SKILL}" in said.err

    def test_a_root_that_is_reached_by_a_link(self, repository: Repository, command: Command) -> None:
        """C45: the repository behind it is meant."""
        repository.with_policy(policy(command_item()))
        (repository.base / "link").symlink_to(repository.root)
        assert command("run", *AT, "--root", repository.base / "link").code == 0

    def test_an_interrupted_run(self, repository: Repository) -> None:
        """C41 C65: ended by the signal, with nothing of the command, its worktree or a record left."""
        started = repository.base / "started"
        repository.with_policy(
            policy(command_item(argv=f'["sh", "-c", "touch {started}; sleep 60"]', seconds=60))
        )
        process = subprocess.Popen(  # noqa: S603 - our own door
            [sys.executable, str(REPOSITORY / "run.py"), "closeout", "run", *AT],
            cwd=repository.root,
            env=repository.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 30
        while not started.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (128 + signal.SIGTERM, b""), err
        assert list(repository.temporary.iterdir()) == []
        assert len(repository.git("worktree", "list").splitlines()) == 1
        assert not repository.evidence.exists()
