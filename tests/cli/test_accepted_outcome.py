"""The command line of accepted-outcome: words, exit codes, both streams."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.cli import accepted_outcome, door
from skill_effectiveness.cli.main import main as whole
from tests.support.commands import Said, no_traceback
from tests.support.crash_images import fast_folder
from tests.support.outcomes import BODY, CLAIM, COMMIT, CRITERION, PUBLISHER, REPO, Bench, claim
from tests.support.private import REPOSITORY, content
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Command = Callable[..., Said]

AT = ("--repository", REPO, "--number", "7")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench whose forge, home and store are those of commands run in this process."""
    with fast_folder() as base:
        made = Bench(base)
        for name, value in made.around.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("LC_ALL", "C.UTF-8")
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        monkeypatch.chdir(base)
        door.surroundings.cache_clear()
        yield made
        door.surroundings.cache_clear()


@pytest.fixture
def command(bench: Bench, capsys: pytest.CaptureFixture[str]) -> Command:
    del bench

    def carry_out(*words: object) -> Said:
        capsys.readouterr()
        code = accepted_outcome.main([str(word) for word in words])
        said = Said(int(code), *capsys.readouterr())
        assert no_traceback(said)
        return said

    return carry_out


def graded(bench: Bench, command: Command, value: object, *words: str) -> Said:
    return command("grade", bench.file("claim.json", value), *words)


def evidence(bench: Bench, *ids: str, **members: object) -> str:
    cited = [{"criterion": CRITERION, "evidence_id": each} for each in ids]
    return str(bench.file("evidence.json", {"evidence": cited} | members))


def stored(bench: Bench) -> tuple[str, ...]:
    return ("--store", str(bench.store))


class TestGrade:
    @pytest.mark.parametrize(
        ("changes", "code", "lines"),
        [
            ({}, 0, ["state=accepted", "evidenced=public thing", "evidenced=private thing"]),
            ({"evidence": []}, 1, ["state=incomplete", "reason=unevidenced_criterion:public thing",
                                   "reason=unevidenced_criterion:private thing"]),
            ({"attempt__repository": "x/y"}, 1, ["state=unauthorized", "reason=attempt_not_bound_to_issue"]),
            ({"verification__terminal_result": "failed"}, 1, ["state=failed", "reason=verifier_failed"]),
            ({"actor": "human"}, 4, ["state=not_applicable", "reason=human_only_work"]),
            ({"agents_enabled": False}, 4, ["state=not_applicable", "reason=agents_disabled_repository"]),
        ],
    )  # fmt: skip
    def test_exit_codes(
        self, bench: Bench, command: Command, changes: dict[str, Any], code: int, lines: list[str]
    ) -> None:
        """O81: accepted, not accepted, not applicable."""
        said = graded(bench, command, claim(**changes))
        assert (said.code, said.out.splitlines(), said.err) == (code, lines, "")
        assert not bench.store.exists()
        assert not (bench.base / ".local").exists()

    def test_an_exemption_may_be_allowed(self, bench: Bench, command: Command) -> None:
        """O81: 0 only with the option, which helps nothing else."""
        assert graded(bench, command, claim(actor="human"), "--allow-not-applicable").code == 0
        assert graded(bench, command, claim(evidence=[]), "--allow-not-applicable").code == 1

    def test_for_machines(self, bench: Bench, command: Command) -> None:
        """O1: one object."""
        said = graded(bench, command, CLAIM, "--json").document
        assert (said["state"], said["reasons"], said["accepted"]["revision"]) == ("accepted", [], COMMIT)
        said = graded(bench, command, CLAIM, "--public").document
        assert said["criteria"][1] == {"criterion": "private thing", "evidence": "private"}

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ({}, "claim_invalid: /actor missing_field"),
            (claim(actor="agnt"), "claim_invalid: /actor wrong_value"),
            (claim() | {"x": 1}, "claim_invalid: /x unknown_field"),
            ([], "claim_invalid: / not_an_object"),
        ],
    )
    def test_bad_input(self, bench: Bench, command: Command, value: object, told: str) -> None:
        """O72 O81: exit 2, with the pointer."""
        said = graded(bench, command, value)
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith(f"accepted-outcome: {told}: ")
        said = graded(bench, command, value, "--json")
        assert (said.code, said.document) == (2, {"error": "claim_invalid", "message": told})

    def test_no_file(self, command: Command) -> None:
        """O81: usage, and a file that is not there."""
        assert command("grade").code == 2
        said = command("grade", "none.json")
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith("accepted-outcome: claim_invalid: missing: ")


class TestContract:
    def test_print_and_check(self, bench: Bench, command: Command) -> None:
        """O63 O81: what it prints passes its own check; an altered one is exit 3."""
        said = command("contract")
        assert said.code == 0
        schema = json.loads((REPOSITORY / "schemas" / "accepted-outcome-contract.schema.json").read_bytes())
        Draft202012Validator(schema).validate(said.document)
        assert command("contract", "--check", bench.file("c.json", said.document)).out.splitlines() == [
            "contract=accepted-outcome.v1", "version=1",
        ]  # fmt: skip
        altered = said.document | {"false_green_classes": said.document["false_green_classes"][::-1]}
        said = command("contract", "--check", bench.file("c.json", altered), "--json")
        assert (said.code, said.document["error"]) == (3, "contract_divergence")
        said = command("contract", "--check", bench.file("c.json", {}), "--json")
        assert (said.code, said.document["error"]) == (3, "invalid_contract")

    def test_nothing_is_graded_under_another(
        self, bench: Bench, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """O63: neither purely nor from records."""
        edge = bench.good()
        monkeypatch.setattr("skill_effectiveness.acceptance.outcome.contract.FILE", "none.json")
        assert graded(bench, command, CLAIM).code == 3
        words = ("--attempt", "attempt-1", "--evidence", evidence(bench, edge.edge_id), *stored(bench))
        said = command("submit", "--issue", f"{REPO}#7", *words)
        assert said.code == 3
        assert bench.rows("claim_graded") == 0


class TestWhole:
    def test_from_attempt_to_close(self, bench: Bench, command: Command) -> None:
        """O30 O76 O81: every command once, on the default store."""
        bench.commit()
        store = bench.base / ".local" / "state" / "skill-effectiveness"
        head = bench.commit()
        told = ("--id", "a-1", "--actor", "agent", "--principal", "user:alice", "--budget", '{"ms":5}')
        said = command("attempt", "add", *AT, *told, "--state", "finished", "--commit", head.upper())
        assert said.out.splitlines() == ["attempt_id=a-1", "state=finished", f"commit={head}"]
        (bench.base / "issue.md").write_text(BODY)
        issue = ("--issue", "issue.md", *AT)
        other = Bench(bench.base, elsewhere=store)
        decision = other.journalled(other.decision())
        other.policy()
        receipt = ("--family", "qualification", "--decision", decision, "--checkout", bench.repository)
        edge = command("edge", "add", *AT, *receipt, "--json").document
        schema = json.loads((REPOSITORY / "schemas" / "accepted-outcome-edge.schema.json").read_bytes())
        Draft202012Validator(schema).validate(edge)
        claimed = ("--attempt", "a-1")
        cited = ("--evidence", evidence(bench, edge["edge_id"]))
        said = command("submit", *issue, *claimed, *cited)
        assert (said.code, said.out.splitlines()) == (0, ["state=accepted", "may_close=true"])
        before = content(store)
        said = command("close", *issue, *claimed)
        assert (said.code, said.out.splitlines()) == (
            0, ["state=accepted", "may_close=true", "closed=false"],
        )  # fmt: skip
        assert content(store) == before
        said = command("close", *issue, *claimed, "--execute", "--json")
        assert (said.code, said.document["closed"]) == (0, True)
        shown = command("show", *AT, *claimed, "--json").document
        schema = json.loads((REPOSITORY / "schemas" / "accepted-outcome-claim-row.schema.json").read_bytes())
        Draft202012Validator(schema).validate(shown["claim"])
        assert shown["claim"]["closed_by_actor"] == "system:accepted-outcome"
        assert [each["state"] for each in shown["gradings"]] == ["accepted"]
        assert "verifier=closeout/beforePR" in command("show", *AT, *claimed).out.splitlines()
        assert command("show", *AT, *claimed, "--public").document == {
            "state": "accepted",
            "criteria": [{"criterion": CRITERION, "evidence": edge["receipt"]}],
        }
        said = command(
            "edge", "add", *AT, "--family", "build", "--result", "failed", "--receipt", "b", "--commit", head
        )
        assert said.code == 0
        assert "contradiction_reason=build:failed" in command("show", *AT, *claimed).out.splitlines()

    def test_at_the_forge(self, bench: Bench, command: Command) -> None:
        """O30: by reference, or by repository and number."""
        edge = bench.good()
        words = ("--attempt", "attempt-1", *stored(bench))
        said = command("submit", "--issue", f"{REPO}#7", *words, "--evidence", evidence(bench, edge.edge_id))
        assert said.code == 0
        assert command("close", *AT, *words, "--execute").code == 0
        assert bench.forge.state() == "CLOSED"

    def test_a_reference_claims_a_commit(self, bench: Bench, command: Command) -> None:
        """O78: 2 before, 0 afterwards."""
        words = ("--family", "push", "--receipt", "p-1", "--commit", COMMIT, *stored(bench))
        said = command("edge", "add", *AT, *words, "--json")
        assert (said.code, said.document["error"]) == (2, "evidence_commit_not_claimed")
        assert command("reference", "add", *AT, "--commit", COMMIT, *stored(bench)).code == 0
        assert command("edge", "add", *AT, *words).code == 0

    def test_bound(self, bench: Bench, command: Command) -> None:
        """O70: of a file, of the forge, and narrowed."""
        said = command("bound", "--issue", "issue-7.md", *AT, "--json")
        assert (said.code, said.document["milliseconds"], said.document["branch"]) == (
            0,
            3_600_000,
            "agent/issue-7",
        )
        assert command("bound", "--issue", f"{REPO}#7", "--milliseconds", "5").values["milliseconds"] == "5"
        bench.forge.behave("offline")
        assert command("bound", "--issue", f"{REPO}#7").code == 3


class TestExitCodes:
    def test_not_accepted(self, bench: Bench, command: Command) -> None:
        """O43 O81: cited evidence that is unknown is a stored refusal, exit 1."""
        bench.good()
        words = ("--attempt", "attempt-1", *stored(bench))
        said = command("submit", "--issue", "issue-7.md", *AT, *words, "--evidence", evidence(bench, "none"))
        assert (said.code, said.out.splitlines()[0]) == (1, "state=incomplete")
        assert command("close", "--issue", "issue-7.md", *AT, *words, "--execute").code == 1
        assert bench.row().state.value == "incomplete"

    def test_withheld(self, bench: Bench, command: Command) -> None:
        """O81: the grade is the answer of submit, and withheld that of close."""
        edge = bench.good()
        bench.policy(verified_closing_enabled=False)
        words = ("--issue", "issue-7.md", *AT, "--attempt", "attempt-1", *stored(bench))
        said = command("submit", *words, "--evidence", evidence(bench, edge.edge_id))
        reason = "reason=closure_withheld:repository_has_not_opted_in"
        assert (said.code, said.out.splitlines()) == (0, ["state=accepted", reason, "may_close=false"])
        for more in ((), ("--execute",)):
            said = command("close", *words, *more)
            expected = ["state=accepted", reason, "may_close=false", "closed=false"]
            assert (said.code, said.out.splitlines()) == (1, expected)

    def test_not_applicable(self, bench: Bench, command: Command) -> None:
        """O31 O81: 4, and 0 only with the option."""
        bench.attempt()
        words = ("--issue", "issue-7.md", *AT, "--attempt", "attempt-1", *stored(bench))
        cited = ("--evidence", evidence(bench))
        assert command("submit", *words, *cited).code == 4
        assert command("submit", *words, *cited, "--allow-not-applicable").code == 0
        assert command("close", *words).code == 4
        assert command("close", *words, "--execute", "--allow-not-applicable").code == 0

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"state": "running"}, "claim_attempt_not_terminal"),
            ({"commit": None}, "claim_attempt_has_no_revision"),
            ({"attempt_id": "other"}, "claim_attempt_not_found"),
        ],
    )
    def test_attempts(self, bench: Bench, command: Command, change: dict[str, Any], code: str) -> None:
        """O50 O51 O81: exit 2, nothing graded."""
        bench.policy()
        bench.attempt(**change)
        words = ("--issue", "issue-7.md", *AT, "--attempt", "attempt-1", *stored(bench))
        before = content(bench.store / "outcome" / "journal")
        said = command("submit", *words, "--evidence", evidence(bench), "--json")
        assert (said.code, said.document["error"]) == (2, code)
        assert content(bench.store / "outcome" / "journal") == before

    def test_undecidable(self, bench: Bench, command: Command) -> None:
        """O81: policy, journal, store; nothing is changed."""
        edge = bench.good()
        words = ("--issue", "issue-7.md", *AT, "--attempt", "attempt-1", *stored(bench))
        cited = ("--evidence", evidence(bench, edge.edge_id))
        command("submit", *words, *cited)
        rows = content(bench.store / "outcome" / "journal")
        bench.policy_file(b"{")
        for verb in (("submit", *words, *cited), ("close", *words), ("close", *words, "--execute")):
            said = command(*verb, "--json")
            assert (said.code, said.document["error"]) == (3, "policy_unreadable")
        bench.policy()
        assert content(bench.store / "outcome" / "journal") == rows
        journal = bench.store / "outcome" / "journal" / "000001.jsonl"
        journal.write_bytes(journal.read_bytes().replace(b"accepted", b"rejected", 1))
        said = command("show", *AT, "--attempt", "attempt-1", *stored(bench), "--json")
        assert (said.code, said.document["error"]) == (3, "journal_broken")
        assert said.document["message"].startswith("journal_broken at row ")
        bench.store.chmod(0o755)
        said = command("close", *words, "--execute", "--json")
        assert (said.code, said.document["error"]) == (3, "store_unsafe")

    def test_unconfirmed(self, bench: Bench, command: Command) -> None:
        """O80 O81: exit 3, the intent kept."""
        edge = bench.good()
        words = ("--issue", f"{REPO}#7", "--attempt", "attempt-1", *stored(bench))
        command("submit", *words, "--evidence", evidence(bench, edge.edge_id))
        bench.forge.behave("close")
        said = command("close", *words, "--execute", "--json")
        assert (said.code, said.document) == (
            3, {"error": "close_unconfirmed", "message": "close_unconfirmed observed open"},
        )  # fmt: skip
        assert bench.rows("close_intended") == 1

    def test_the_unforeseen(self, bench: Bench, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        """O81: exit 3 without a traceback."""

        def broken(*_args: object) -> None:
            raise RuntimeError("secret")

        monkeypatch.setattr(accepted_outcome, "evaluate", broken)
        said = graded(bench, command, CLAIM)
        assert (said.code, said.out) == (3, "")
        assert "secret" not in said.err

    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("unknown",),
            ("grade", "--unknown"),
            ("submit",),
            ("submit", "--issue", "issue-7.md", "--attempt", "a", "--evidence", "e"),
            ("submit", "--issue", f"{REPO}#7", "--evidence", "e"),
            ("submit", "--issue", f"{REPO}#7", "--attempt", "a"),
            ("submit", "--issue", f"{REPO}#7", "--number", "7", "--attempt", "a", "--evidence", "e"),
            ("close", "--attempt", "a"),
            ("show", "--number", "7", "--attempt", "a"),
            ("attempt", "add", *AT, "--actor", "agent"),
            ("attempt", "add", *AT, "--id", "a", "--actor", "agent"),
            (
                "attempt",
                "add",
                *AT,
                "--id",
                "a",
                "--actor",
                "agent",
                "--from-closedloop",
                "x",
                "--state",
                "failed",
            ),
            ("edge", "add", *AT),
            ("reference", "add", *AT),
            ("bound",),
            ("close", *AT, "--attempt", "a", "--number", "x"),
        ],
    )
    def test_usage(self, command: Command, words: tuple[str, ...]) -> None:
        """O81: exit 2, with how it is meant."""
        said = command(*words)
        assert (said.code, said.out) == (2, "")
        assert "Usage: accepted-outcome" in said.err

    @pytest.mark.parametrize(
        ("words", "missing"),
        [
            (("show",), "--issue, --attempt"),
            (("show", "--number", "7"), "--issue, --attempt"),
            (("show", *AT), "--attempt"),
            (("submit",), "--issue, --attempt, --evidence"),
            (("attempt", "add"), "--issue, --id, --actor, --state"),
            (("attempt", "add", "--from-closedloop", "x"), "--issue, --id, --actor"),
            (("reference", "add"), "--issue, --commit"),
            (("edge", "add"), "--issue, --family"),
            (("bound",), "--issue"),
        ],
    )
    def test_all_that_is_missing_at_once(
        self, command: Command, words: tuple[str, ...], missing: str
    ) -> None:
        """O81: nobody is asked for one option after the other, and help marks them."""
        assert command(*words).err.splitlines()[0] == f"accepted-outcome: missing {missing}"
        assert "Needed: " in command(*words, "--help").out

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--actor", "robot", "--state", "failed"), "record_invalid at /actor"),
            (("--actor", "agent", "--state", "over"), "record_invalid at /state"),
            (("--actor", "agent", "--state", "failed", "--budget", "{"), "record_invalid at /budget"),
            (("--actor", "agent", "--state", "failed", "--budget", "[]"), "record_invalid at /budget"),
            (("--actor", "agent", "--state", "failed", "--commit", "HEAD"), "record_invalid at /commit"),
            (("--actor", "agent", "--from-closedloop", "none"), "run_unreadable"),
        ],
    )
    def test_records(self, bench: Bench, command: Command, words: tuple[str, ...], told: str) -> None:
        """O74 O81: exit 2, and not even a store is made."""
        said = command("attempt", "add", *AT, "--id", "a", *words, *stored(bench), "--json")
        assert (said.code, said.document["message"]) == (2, told)
        assert not bench.store.exists()

    def test_what_was_never_graded(self, bench: Bench, command: Command) -> None:
        bench.good()
        for verb in ("show", "close"):
            said = command(verb, *AT, "--attempt", "attempt-1", *stored(bench), "--json")
            assert (said.code, said.document["error"]) == (2, "claim_not_graded")


def test_texts_from_outside_are_harmless(bench: Bench, command: Command) -> None:
    """O7: a criterion with escape sequences does not reach a terminal."""
    said = graded(bench, command, claim(issue__sections__acceptance_criteria="\x1b[31mred"))
    assert "\x1b" not in said.out
    assert "\\x1b[31mred" in said.out


def test_through_run_py(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """O81: the same exit codes as a command of the whole program."""
    file = bench.file("claim.json", claim(actor="human"))
    assert whole(["accepted-outcome", "grade", str(file)]) == 4
    assert capsys.readouterr().out.startswith("state=not_applicable")
    assert whole(["accepted-outcome"]) == 2
    assert "Usage: skill-effectiveness accepted-outcome" in capsys.readouterr().err


@pytest.mark.slow
def test_a_close_that_is_interrupted(bench: Bench) -> None:
    """O80 O81: ended by the signal while the forge is asked; the next one claims nothing."""
    edge = bench.good()
    bench.at_forge = True
    bench.submit(edge)
    bench.forge.behave("hang")
    words = ["close", *AT, "--attempt", "attempt-1", "--execute", *stored(bench)]
    script = "import sys; from skill_effectiveness.cli.entry import run_accepted_outcome as r; sys.exit(r())"
    process = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", script, *words],
        env=dict(bench.around.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert wait_until(lambda: bench.forge.closes == 1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + signal.SIGTERM, b""), err
    assert (bench.rows("close_intended"), bench.rows("issue_closed")) == (1, 0)
    bench.forge.behave("")
    with pytest.raises(OutcomeError, match="close_unconfirmed observed open"):
        bench.close()
    assert bench.close().closed


@pytest.mark.slow
def test_nobody_reads_the_result(bench: Bench) -> None:
    """O81: a closed stdout decides nothing, a reader that leaves ends it."""
    file = bench.file("claim.json", CLAIM)
    script = "import sys; from skill_effectiveness.cli.entry import run_accepted_outcome as r; sys.exit(r())"
    for shell, code in (('exec "$@" >&-', 3), ('exec "$@" >/dev/full', 3)):
        done = subprocess.run(  # noqa: S603 - ours
            ["/bin/sh", "-c", shell, "sh", sys.executable, "-c", script, "grade", str(file)],
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done
        assert done.stderr.startswith(b"accepted-outcome: "), done


def test_as_a_process(bench: Bench) -> None:
    """O81: from the first line of the script that an installer writes."""
    script = "import sys; from skill_effectiveness.cli.entry import run_accepted_outcome as r; sys.exit(r())"
    file = bench.file("claim.json", claim(evidence=[]))
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", script, "grade", str(file)], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert PUBLISHER.encode() not in done.stdout
