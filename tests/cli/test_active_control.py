"""`active-control-…`: the nine commands from two authors to a declared contract."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.controller_paths import hidden
from tests.support.commands import RUN, Said, ended, no_traceback, start, steers
from tests.support.control_place import Place
from tests.support.controls import BRIEF, TEXTS, plain, rehashed
from tests.support.controls import candidate as frozen_candidate
from tests.support.private import REPOSITORY, content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., Said]

GATED = ["active-control-matched-call", "active-control-matched-call-verify"]
UNSATISFIED = "matched_call_gate=NOT_SATISFIED\n"


@pytest.fixture
def place(home: Path, command: Command) -> Place:
    return Place(home, command)


def named(said: Said, *names: str) -> dict[str, str]:
    """The result lines, which must be exactly these in this order."""
    assert said.err == "", said
    assert list(said.values) == list(names), said
    return said.values


def test_active_control_cli_prepares_finalizes_and_verifies_private_artifact(place: Place) -> None:
    """A31 A22: stdout lines and exit codes of every command, from the authors to the declared contract."""
    made = {}
    for who in ("one", "two"):
        values = named(place.candidate(who), "execution_status", "package_hash", "candidate")
        assert values["execution_status"] == "candidate-frozen"
        assert values["package_hash"] == frozen_candidate(who).package_hash
        made[who] = place.home / f"{who}-out" / "active-control-candidate.json"
        assert values["candidate"] == str(made[who])
    values = named(place.owner(), "execution_status", "reference_hash", "owner_reference")
    assert (values["execution_status"], values["owner_reference"]) == (
        "owner-reference-frozen",
        str(place.reference),
    )
    said = place.prepare()
    values = named(said, "execution_status", "selector_input_hash", "selector_input")
    shown = json.loads((place.out / "selector-input.json").read_bytes())
    assert (said.code, values) == (
        0,
        {
            "execution_status": "prepared",
            "selector_input_hash": shown["selector_input_hash"],
            "selector_input": str(place.out / "selector-input.json"),
        },
    )
    said = place.finalize()
    selection = place.out / "active-control-selection.json"
    sealed = json.loads(selection.read_bytes())
    assert (said.code, named(said, "execution_status", "artifact_hash", "selection")) == (
        0,
        {
            "execution_status": "finalized",
            "artifact_hash": sealed["artifact_hash"],
            "selection": str(selection),
        },
    )
    said = place.command("active-control-verify", "--selection", selection)
    assert (said.code, said.out) == (
        0,
        (
            f"verification_status=valid\nartifact_hash={sealed['artifact_hash']}\n"
            f"selected_package_hash={sealed['selected_package_hash']}\n"
        ),
    )
    said = place.measure()
    measured = json.loads((place.out / "owner-relative-measurement.json").read_bytes())
    assert (said.code, said.out) == (
        0,
        (
            f"execution_status=measured-pass\nmeasurement_hash={measured['measurement_hash']}\n"
            f"measurement={place.out / 'owner-relative-measurement.json'}\n"
        ),
    )
    said = place.command("active-control-measure-verify", *place.artifacts())
    assert (said.code, said.out) == (
        0,
        f"verification_status=valid\nmeasurement_hash={measured['measurement_hash']}\n",
    )
    for scope in ("subagent", "main"):
        said = place.matched(scope)
        name = f"matched-call-evidence-{scope}.json"
        evidence = json.loads((place.out / name).read_bytes())
        assert (said.code, said.err, said.out) == (
            3,
            "",
            (
                "execution_status=matched-call-contract-declared-no-observation\n"
                "artifact_write_status=created\n"
                "matched_call_gate=NOT_SATISFIED\n"
                "observation_status=none-fixtures-only\n"
                f"artifact_hash={evidence['artifact_hash']}\n"
                f"evidence={name}\n"
            ),
        )
        said = place.matched_verify(place.out / name)
        assert (said.code, said.err, said.out) == (
            4,
            "",
            (
                "verification_status=fixture-contract-valid-no-observation\n"
                "artifact_write_status=not-applicable-read-only\n"
                "matched_call_gate=NOT_SATISFIED\n"
                "observation_status=none-fixtures-only\n"
                f"artifact_hash={evidence['artifact_hash']}\n"
            ),
        )
    assert wrong_modes(place.out) == []


class TestCandidates:
    @pytest.mark.parametrize("candidates", [("one",), ("one", "two", "one"), ("one", "one")])
    def test_two_of_them(self, place: Place, candidates: tuple[str, ...]) -> None:
        """A2: one, three, or one twice; no claim is written, and no folder made."""
        place.ready()
        place.out = place.home / "other"
        assert place.prepare(candidates=candidates).refusal.startswith("candidates: ")
        assert not place.out.exists()

    def test_of_two_authors(self, place: Place) -> None:
        """A2: one commitment for both."""
        place.candidate("one", commitment="same")
        place.candidate("two", commitment="same")
        place.owner()
        assert "two authors are needed" in place.prepare().refusal
        assert not place.out.exists()

    def test_for_this_brief(self, place: Place) -> None:
        """A2: another brief than the candidates'."""
        place.ready()
        place.out = place.home / "other"
        other = BRIEF | {"instruction": "Write something else."}
        (place.home / "brief.json").write_text(json.dumps(other), encoding="utf-8")
        assert "written for this brief" in place.prepare().refusal

    def test_a_key_too_many_in_the_brief(self, place: Place) -> None:
        """A3: refused with its pointer, before anything is made."""
        for who in ("one", "two"):
            place.candidate(who)
        place.owner()
        (place.home / "brief.json").write_text(json.dumps(BRIEF | {"provenance": "me"}), encoding="utf-8")
        assert "brief#/provenance" in place.prepare().refusal
        assert not place.out.exists()

    def test_a_reserved_word_in_a_text(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A3: refused with line and column; no candidate is frozen."""
        monkeypatch.setitem(TEXTS, "one", "First.\n- See AGENTS.md first.\n")
        told = place.candidate("one").refusal
        assert "line 2, column 7 holds the reserved word 'agents.md'" in told
        assert not (place.home / "one-out").exists()

    def test_a_frozen_one_is_never_rewritten(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A7: the same again is a no-op, another is refused."""
        first = place.candidate("one")
        assert place.candidate("one") == first
        before = content(place.home / "one-out")
        monkeypatch.setitem(TEXTS, "one", "Something else altogether.")
        assert place.candidate("one").code == 2
        assert content(place.home / "one-out") == before


class TestPrivate:
    def test_a_file_others_may_read_is_refused(self, place: Place) -> None:
        """A6: a candidate and a decision with 0644."""
        place.ready()
        decided = place.decision()
        decided.chmod(0o644)
        words = ("--out", place.out, "--decision", decided)
        assert "0644" in place.command("active-control-finalize", *words).refusal
        (place.home / "one-out" / "active-control-candidate.json").chmod(0o644)
        place.out = place.home / "other"
        assert "0644" in place.prepare().refusal
        assert not place.out.exists()

    def test_a_link_is_refused(self, place: Place) -> None:
        """A6: a candidate and a decision that are links."""
        place.ready()
        linked = place.home / "selector" / "linked.json"
        place.decision()
        linked.symlink_to("decision.json")
        words = ("--out", place.out, "--decision", linked)
        assert "symbolic link" in place.command("active-control-finalize", *words).refusal
        real = place.home / "one-out" / "active-control-candidate.json"
        real.rename(real.with_name("real.json"))
        real.symlink_to("real.json")
        place.out = place.home / "other"
        assert "symbolic link" in place.prepare().refusal

    def test_a_file_in_the_checkout_is_refused(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A6: of candidates and decisions, and of every text."""
        place.ready()
        before = content(place.out)
        (place.home / "selector").mkdir(mode=0o700)
        decided = place.decision()
        of_code = "skill_effectiveness.cli.active_control.checkout"
        monkeypatch.setattr(of_code, lambda: place.home / "selector")
        words = ("--out", place.out, "--decision", decided)
        assert "checkout" in place.command("active-control-finalize", *words).refusal
        monkeypatch.setattr(of_code, lambda: place.home / "one-out")
        other, place.out = place.out, place.home / "other"
        assert "checkout" in place.prepare().refusal
        assert not place.out.exists()
        monkeypatch.setattr(of_code, lambda: place.home / "one")
        assert "checkout" in place.candidate("one").refusal
        assert content(other) == before

    def test_results_do_not_lie_in_the_checkout(self, place: Place) -> None:
        """A6: the real one."""
        place.ready()
        place.out = REPOSITORY / "build" / "selection"
        assert "checkout" in place.prepare().refusal

    def test_a_folder_with_something_in_it_is_refused_untouched(self, place: Place) -> None:
        """A6: the file is named, and no lock is made."""
        place.ready()
        place.out = place.home / "other"
        place.private("other/notes.txt", "mine")
        assert "notes.txt" in place.prepare().refusal
        assert list(content(place.out)) == ["notes.txt"]


class TestOnce:
    def test_nothing_of_where_and_whose_a_text_is_reaches_the_selector(self, place: Place) -> None:
        """A4: folders, names of files, declarations and every digest of them."""
        assert place.ready().code == 0
        shown = (place.out / "selector-input.json").read_bytes().decode()
        hidden_from_it = [str(place.home), "-out", ".md", ".txt", "I, one", "I, two", "saw nothing else"]
        for who in ("one", "two"):
            found = plain(frozen_candidate(who))
            declared = found["generation_evidence"]
            hidden_from_it += [found["package_hash"], declared["author_commitment_hash"]]
            hidden_from_it += [declared["independence_attestation_hash"], declared["output_hash"]]
        assert not [part for part in hidden_from_it if part.removeprefix("sha256:") in shown]

    def test_a_deleted_choice_is_not_made_anew(self, place: Place) -> None:
        """A7: before a measurement as well; the same decision brings back the same bytes."""
        assert place.ready().code == 0
        assert place.finalize().code == 0
        selection = place.out / "active-control-selection.json"
        sealed = selection.read_bytes()
        selection.unlink()
        other = json.loads((place.out / "selector-input.json").read_bytes())["opaque_order"][1]
        assert "another choice was sealed here" in place.finalize(selected_opaque_id=other).refusal
        assert not selection.exists()
        assert place.finalize().code == 0
        assert selection.read_bytes() == sealed

    def test_no_step_twice(self, place: Place) -> None:
        """A7: refused, and the first stays byte for byte."""
        place.measured()
        place.matched()
        before = content(place.out)
        other = json.loads((place.out / "selector-input.json").read_bytes())["opaque_order"][1]
        for said in (
            place.prepare(),
            place.finalize(),
            place.finalize(selected_opaque_id=other),
            place.measure(),
        ):
            assert "taken here already" in said.refusal
        again = place.matched()
        assert (again.code, again.out) == (2, UNSATISFIED)
        assert content(place.out) == before

    def test_a_measured_failure_is_a_result(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A11 A31: exit 1, written, and never again."""
        monkeypatch.setitem(TEXTS, "owner", "- One.\n- Two.\n- Three.\n- Four.\n")
        place.ready()
        place.finalize()
        said = place.measure()
        values = named(said, "execution_status", "measurement_hash", "measurement")
        assert (said.code, values["execution_status"]) == (1, "measured-fail")
        assert "taken here already" in place.measure().refusal
        assert place.command("active-control-measure-verify", *place.artifacts()).code == 0
        refused = place.matched()
        assert (refused.code, refused.out) == (2, UNSATISFIED)
        (place.out / "owner-relative-measurement.json").unlink()
        assert "start in a new one" in place.measure().refusal

    def test_another_owner_reference(self, place: Place) -> None:
        """A11: than the committed one; nothing is measured."""
        place.ready()
        place.finalize()
        place.owner("two", "other-owner")
        other = place.home / "other-owner" / "owner-reference.json"
        words = ("--out", place.out, "--owner-reference", other)
        assert "committed" in place.command("active-control-measure", *words).refusal
        assert place.measure().code == 0

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_registry_refuses_a_second_folder(self, place: Place, turned: bool) -> None:  # noqa: FBT001 - both orders
        """A9: for the pair in either order; another registry, or none, cannot know."""
        place.ready()
        for number, code in ((1, 0), (2, 2)):
            place.out = place.home / f"selection-{number}"
            pair = ("two", "one") if turned and number == 2 else ("one", "two")
            assert place.prepare("--registry", "registry", candidates=pair).code == code
        assert not (place.out / "active-control-claim.json").exists()
        place.out = place.home / "selection-3"
        assert place.prepare().code == 0
        place.out = place.home / "selection-1"
        place.finalize()
        assert place.measure("--registry", "registry").code == 0

    @pytest.mark.parametrize("where", [".", "inside"])
    def test_a_registry_is_no_part_of_a_selection(self, place: Place, where: str) -> None:
        place.ready()
        place.out = place.home / "other"
        assert "of its own" in place.prepare("--registry", place.out / where).refusal
        assert content(place.out) == {}


class TestEdited:
    @pytest.mark.parametrize("name", ["selection", "measurement"])
    def test_an_edited_artifact_is_told_by_its_hash(self, place: Place, name: str) -> None:
        """A8: also when its own hash was made to fit."""
        place.measured()
        files = {
            "selection": ("active-control-selection.json", "artifact_hash", "request_hash"),
            "measurement": ("owner-relative-measurement.json", "measurement_hash", "selected_package_hash"),
        }
        file, own, field = files[name]
        path = place.out / file
        edited = json.loads(path.read_bytes()) | {field: "sha256:" + 64 * "7"}
        for document in (edited, rehashed(edited, own)):
            text = json.dumps(document, sort_keys=True, separators=(",", ":"))
            path.write_text(f"{text}\n", encoding="utf-8")
            commands = [("active-control-measure-verify", *place.artifacts())]
            if name == "selection":
                commands.append(("active-control-verify", "--selection", path))
            for words in commands:
                told = place.command(*words).refusal
                assert own in told or "request hash" in told
            said = place.matched()
            assert (said.code, said.out) == (2, UNSATISFIED)

    def test_edited_evidence_is_told_by_its_hash(self, place: Place) -> None:
        """A8 A22: the line of the gate stands at every failure."""
        place.measured()
        place.matched()
        path = place.out / "matched-call-evidence-main.json"
        edited = json.loads(path.read_bytes()) | {"selection_artifact_hash": "sha256:" + 64 * "7"}
        for document in (edited, rehashed(edited, "artifact_hash")):
            text = json.dumps(document, sort_keys=True, separators=(",", ":"))
            path.write_text(f"{text}\n", encoding="utf-8")
            said = place.matched_verify(path)
            assert (said.code, said.out) == (2, UNSATISFIED)
            assert "artifact_hash" in said.err

    def test_evidence_under_the_other_scopes_name(self, place: Place) -> None:
        """A23: refused without a look at anything else."""
        place.measured()
        place.matched()
        renamed = place.out / "matched-call-evidence-subagent.json"
        (place.out / "matched-call-evidence-main.json").rename(renamed)
        said = place.matched_verify(renamed)
        assert (said.code, said.out) == (2, UNSATISFIED)
        assert "scope" in said.err

    @pytest.mark.parametrize(
        "changed",
        [{"active-bundle-id": "my-control"}, {"oracle-bundle-id": "oracle"}, {"oracle-bundle-id": ""}],
    )
    def test_a_free_label_is_refused(self, place: Place, changed: dict[str, str]) -> None:
        """A22: nothing is written."""
        place.measured()
        said = place.matched(**changed)
        assert (said.code, said.out) == (2, UNSATISFIED)
        assert "must be" in said.err
        assert not (place.out / "matched-call-evidence-main.json").exists()


class TestWhatFailuresShow:
    @pytest.mark.parametrize("gated", GATED)
    @pytest.mark.parametrize("joined", [False, True])
    def test_no_controller_path(self, place: Place, gated: str, joined: bool) -> None:  # noqa: FBT001 - two spellings
        """A22: missing files, open folders, links, folders, usage errors: never a path."""
        deep = place.home / "planted" / "deep"
        deep.mkdir(mode=0o700, parents=True)
        names = ["selection", "measurement", "owner-reference"]
        names.append("evidence" if gated.endswith("verify") else "out")
        words: list[str | Path] = []
        for name in names:
            path = deep / "secret" / f"{name}.json"
            words += [f"--{name}={path}"] if joined else [f"--{name}", path]
        if not gated.endswith("verify"):
            words += ["--active-bundle-id", "a", "--oracle-bundle-id", "b", "--scope", "main"]
        file = deep / "secret" / "owner-reference.json"

        def demand_nothing_told(*more: str | Path) -> None:
            said = place.command(gated, *words, *more)
            assert (said.code, said.out) == (2, UNSATISFIED), said
            assert not [part for part in ("planted", "secret", str(place.home)) if part in said.err], said

        demand_nothing_told()
        file.parent.mkdir(mode=0o700)
        demand_nothing_told()
        file.symlink_to("nowhere")
        demand_nothing_told()
        file.unlink()
        file.mkdir()
        demand_nothing_told()
        file.parent.chmod(0o777)
        demand_nothing_told()
        file.parent.chmod(0o700)
        deep.chmod(0o777)
        demand_nothing_told()
        demand_nothing_told("--scope", deep / "secret", "--selection", deep / "secret")

    @pytest.mark.parametrize("gated", GATED)
    def test_usage_errors_show_the_gate(self, place: Place, gated: str) -> None:
        """A22: a missing or unknown option."""
        for words in ([], ["--nothing"], ["extra"]):
            said = place.command(gated, *words)
            assert (said.code, said.out) == (2, UNSATISFIED)

    @pytest.mark.parametrize("gated", GATED)
    @pytest.mark.parametrize(
        "words",
        [
            ["/planted/secret/x.json"],
            ["--scope", "/planted/secret"],
            ["--scope=/planted/secret/x"],
            ["--evidnce=/planted/secret/x", "/planted/secret"],
            ["--active-bundle-id", "/planted/secret", "--", "/planted/secret/y"],
        ],
    )
    def test_no_absolute_path_wherever_it_stands(self, place: Place, gated: str, words: list[str]) -> None:
        """A22: without its option, behind a misspelt one, or behind one that takes no path."""
        folder = place.home / "gone"
        options = ("selection", "measurement", "owner-reference", "evidence" if "verify" in gated else "out")
        given = [f"--{name}={folder / name}" for name in options]
        said = place.command(gated, *given, *words)
        assert (said.code, said.out) == (2, UNSATISFIED), said
        assert not [part for part in ("planted", "secret", "gone", str(place.home)) if part in said.err], said

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_shows_the_gate(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
    ) -> None:
        """A22: 128 and the signal's number, and nothing is declared."""
        place.measured()

        def struck(*_: object, **__: object) -> None:
            signal.raise_signal(number)
            # Handlers run between two steps of the interpreter, at the latest while it waits.
            time.sleep(10)

        monkeypatch.setattr("skill_effectiveness.controls.steps.declare_root", struck)
        said = place.matched()
        assert (said.code, said.out) == (128 + number, UNSATISFIED)
        assert str(place.home) not in said.err
        assert not (place.out / "matched-call-evidence-main.json").exists()

    def test_the_unforeseen_shows_the_gate(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """A22: exit 70, a crash file, no path of the controller."""
        place.measured()

        def broken(*_: object) -> None:
            raise RuntimeError(str(place.out))

        monkeypatch.setattr("skill_effectiveness.controls.steps.declare_root", broken)
        said = place.matched()
        assert (said.code, said.out) == (70, UNSATISFIED)
        assert str(place.out) not in said.err
        assert not (place.out / "crash").exists()

    def test_text_is_cleared_of_every_form(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A22: as given, parent, resolved, longest first; absolute ones only, never `/`."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "real").mkdir()
        (tmp_path / "linked").symlink_to("real")
        words = ["--out", "linked/x", "--selection=/a/b/../c/s.json", "--evidence", "/"]
        sign = "<controller-private-path>"
        for text, expected in (
            (f"{tmp_path}/linked/x is", f"{sign} is"),
            (f"{tmp_path}/real/x is", f"{sign} is"),
            (f"in {tmp_path}/real: no", f"in {sign}: no"),
            ("/a/b/../c/s.json, /a/c/s.json, /a/c", f"{sign}, {sign}, {sign}"),
            ("linked/x / and /b/a stay", "linked/x / and /b/a stay"),
        ):
            assert hidden(text, words) == expected

    def test_odd_names_are_hidden_as_they_are_spelled(self) -> None:
        """A22: names that texts escape."""
        odd = "/home/k\u202eey\n/it's"
        said = hidden(f"{odd!r} {odd!a} {odd}", ["--out", odd])
        assert not [part for part in ("home", "ey", "it") if part in said.replace("private", "")]


class TestOthers:
    def test_help_names_the_nine(self, place: Place) -> None:
        """A31: every command has a help text."""
        listed = place.command("--help").out
        names = [word for word in listed.split() if word.startswith("active-control-")]
        assert sorted(names) == sorted(
            [
                "active-control-finalize",
                "active-control-freeze-candidate",
                "active-control-freeze-owner-reference",
                "active-control-matched-call",
                "active-control-matched-call-verify",
                "active-control-measure",
                "active-control-measure-verify",
                "active-control-prepare",
                "active-control-verify",
            ]
        )
        for name in names:
            assert place.command(name, "--help").code == 0

    def test_nothing_that_is_said_steers_a_terminal(self, place: Place) -> None:
        said = place.command("active-control-verify", "--selection", "x/\x1b[2J")
        assert said.code == 2
        assert steers(said.err) == []

    def test_missing_folders_are_not_made(self, place: Place) -> None:
        """A7: a later step does not begin a selection."""
        place.ready()
        place.decision()
        place.out = place.home / "typing-mistake"
        words = ("--out", place.out, "--decision", place.home / "selector" / "decision.json")
        assert place.command("active-control-finalize", *words).code == 2
        assert place.measure().code == 2
        assert not place.out.exists()


WATCHED = """
import contextlib, io, json, sys
seen = []
def hook(event, arguments):
    if event in {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn",
                 "os.system", "pty.spawn", "socket.__new__", "socket.connect", "socket.bind",
                 "socket.getaddrinfo", "socket.sendto"}:
        seen.append(event)
sys.addaudithook(hook)
from skill_effectiveness.cli.main import main
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([int(code), out.getvalue(), err.getvalue(), seen]), flush=True)
if sys.argv[1:] == ["prove"]:
    import socket, subprocess
    socket.socket().close()
    subprocess.run(["true"])
    print(json.dumps(seen))
"""


def test_no_command_starts_a_process_or_opens_a_socket(home: Path) -> None:
    """A30: every command of a whole selection, in one process, as its interpreter sees it."""
    codes: dict[str, int] = {}
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(REPOSITORY / "eval")}
    child = start(home, "prove", code=("-c", WATCHED), env=variables, stdin=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    pipe_in, pipe_out = child.stdin, child.stdout

    def watched(*words: str | Path) -> Said:
        pipe_in.write(json.dumps([str(word) for word in words]).encode() + b"\n")
        pipe_in.flush()
        code, out, err, seen = json.loads(pipe_out.readline())
        assert seen == []
        codes[str(words[0])] = code
        return Said(code, out, err)

    place = Place(home, watched)
    place.measured()
    place.command("active-control-verify", "--selection", place.out / "active-control-selection.json")
    place.command("active-control-measure-verify", *place.artifacts())
    place.matched()
    place.matched_verify(place.out / "matched-call-evidence-main.json")
    said = ended(child)
    # The same watch sees both when there is something to see.
    assert "socket.__new__" in said.out
    assert "subprocess.Popen" in said.out
    assert no_traceback(said)
    assert codes == {
        "active-control-freeze-candidate": 0,
        "active-control-freeze-owner-reference": 0,
        "active-control-prepare": 0,
        "active-control-finalize": 0,
        "active-control-verify": 0,
        "active-control-measure": 0,
        "active-control-measure-verify": 0,
        "active-control-matched-call": 3,
        "active-control-matched-call-verify": 4,
    }


def test_the_door_gives_the_same_codes(home: Path) -> None:
    """A22: `run.py` as a process."""
    said = ended(start(home, "active-control-matched-call", code=(str(RUN),)))
    assert (said.code, said.out) == (2, UNSATISFIED)


def test_a_frozen_candidate_is_what_the_room_makes(place: Place) -> None:
    """A31: the file that is written, byte for byte the canonical document."""
    place.candidate("one")
    written = (place.home / "one-out" / "active-control-candidate.json").read_bytes()
    text = json.dumps(plain(frozen_candidate("one")), sort_keys=True, separators=(",", ":"))
    assert written == f"{text}\n".encode()
