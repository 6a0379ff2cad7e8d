"""What bad input gets: every row of milestone.md, section 14, through the real commands."""

from __future__ import annotations

import errno
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone import closing
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode
from skill_effectiveness.cli import door, milestone
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.signals import Terminated
from tests.support.milestones import Asked, finding, needs, node, verified
from tests.support.private import content

if TYPE_CHECKING:
    from tests.support.milestones import Case, Hall

pytestmark = pytest.mark.slow


class TestInput:
    @pytest.mark.parametrize(
        ("members", "pointer"),
        [
            ({"unknown": 1}, "/unknown "),
            ({"target": "nothing"}, "/target "),
            ({"target": "main~0"}, "/target "),
            ({"target": "main@{0}"}, "/target "),
            ({"target": "ma\0in"}, "/target "),
            ({"base": "nothing"}, "/base "),
            ({"nodes": [node(base="nothing")]}, "/nodes/0/base "),
            ({"repository": "/nothing"}, "/repository "),
        ],
    )
    def test_inputs(self, case: Case, members: dict[str, Any], pointer: str) -> None:
        """M5: input_invalid with pointer and reason, and no run is created."""
        said = case.start(**members)
        assert (said.code, said.document["code"]) == (2, "input_invalid")
        assert said.document["detail"].startswith(pointer)
        assert not case.folder().exists()

    def test_what_is_no_document(self, case: Case) -> None:
        """M5: not JSON, or not there."""
        place = case.repository.base / "x.json"
        place.write_text("{")
        for each in (place, case.repository.base / "nothing"):
            said = case("start", each)
            assert (said.code, said.document["code"]) == (2, "input_invalid")
        assert not case.store.exists()

    def test_a_base_that_the_target_lacks(self, case: Case) -> None:
        """M88: the range would be none."""
        case.git("checkout", "-q", "--orphan", "other")
        case.repository.commit(x="1")
        case.git("checkout", "-q", "main")
        assert case.start(base="other").document["detail"].startswith("/base ")

    def test_configurations(self, case: Case) -> None:
        """M46: configuration_invalid."""
        case.configuration["explorer"] = "nobody"
        assert case.start().document["code"] == "configuration_invalid"


class TestStore:
    def test_a_relative_store(self, case: Case) -> None:
        """M37: store_unsafe, and nothing is written, wherever one stands."""
        document = case.repository.base / "milestone.json"
        case.start()
        said = case("start", document, store="relative")
        assert (said.code, said.document["code"]) == (2, "store_unsafe")
        assert case("status", run=None, store="relative").code == 2
        assert not (case.repository.root / "relative").exists()

    def test_inside_a_checkout(self, case: Case) -> None:
        """M37: whoever's."""
        case.start()
        document = case.repository.base / "milestone.json"
        other = case.repository.base / "other"
        case.git("init", "-q", str(other))
        for place in (case.repository.root / "store", other / "deep" / "store"):
            said = case("start", document, store=place)
            assert (said.code, said.document["code"]) == (2, "store_unsafe")
            assert not place.exists()

    def test_others_may_look(self, case: Case) -> None:
        """M37: a mode is never repaired."""
        case.store.mkdir(mode=0o755)
        assert case.start().document["code"] == "store_unsafe"
        assert case.store.stat().st_mode & 0o777 == 0o755

    def test_looking_makes_nothing(self, case: Case) -> None:
        """M37: a store that is not there stays so."""
        assert case("status", run=None).document == {"runs": []}
        for verb in ("status", "report", "audit", "close"):
            assert case(verb).document["code"] == "run_unknown"
        assert not case.store.exists()

    def test_the_usual_store(self, case: Case) -> None:
        """M37: the user's state folder."""
        case.start()
        said = case.plain("start", case.repository.base / "milestone.json", "--run", "r9")
        assert said.code == 0
        assert (case.repository.home / ".local/state/skill-effectiveness/milestone/runs/r9").is_dir()


class TestAccept:
    def refused(self, case: Case, *words: object, **others: Any) -> str:  # noqa: ANN401 - as `accept`
        before = case.types()
        said = case.accept("n1", *words, **others)
        assert said.code == 2, said
        assert case.types() == before
        return str(said.document["code"])

    def test_what_is_refused(self, case: Case) -> None:
        """M90: another digest, node, head, batch or receipt: nothing runs."""
        case.document["nodes"] = [node()]
        case.started()
        assert self.refused(case, "--criteria-digest", "sha256:0") == "criteria_digest_differs"
        assert self.refused(case, "--node", "other") == "node_unknown"
        assert self.refused(case, head="nothing") == "commit_unresolved"
        assert self.refused(case, "--batch", "base") == "not_integrated"
        assert self.refused(case, "--receipt", case.repository.base / "x") == "receipt_unreadable"

    def test_a_command_that_cannot_start(self, case: Case) -> None:
        """M13: a hold; the node is accepted once it can."""
        case.document |= {"nodes": [node()], "required": [[str(case.repository.base / "tool")]]}
        case.started()
        said = case.accept("n1")
        assert (said.code, said.document["code"]) == (3, "verify_unavailable")
        assert case.rows("acceptance") == []
        (case.repository.base / "tool").symlink_to("/bin/true")
        assert case.accept("n1").code == 0

    def test_a_node_that_does_not_pass(self, case: Case) -> None:
        """M41: no acceptance; the unit check stays."""
        case.document["nodes"] = [node()]
        case.started()
        case.repository.commit(broken="1")
        said = case.accept("n1")
        assert (said.code, said.document["code"]) == (1, "unit_check_failed")
        assert case.rows("crw.unitCheck")[0]["verdict"] == "needs_changes"
        assert case.rows("acceptance") == []


class TestJournal:
    VERBS = ("gate", "crosscheck", "close", "resume", "report", "status")

    def broken(self, case: Case) -> bytes:
        case.started().close()
        journal = case.folder() / "journal.jsonl"
        data = journal.read_bytes().replace(b'"state":"pass"', b'"state":"fail"')
        journal.write_bytes(data)
        return data

    def test_an_edited_row(self, case: Case) -> None:
        """M114: journal_broken at its row: exit 4, 2 for audit and deliver; never rewritten."""
        data = self.broken(case)
        for verb in (*self.VERBS, "audit", "deliver"):
            said = case(verb)
            assert said.document["code"] == "journal_broken", (verb, said)
            assert said.document["detail"].startswith("at row ")
            assert "journal_broken at row " in said.err
            assert said.code == (2 if verb in {"audit", "deliver"} else 4)
        assert (case.folder() / "journal.jsonl").read_bytes() == data

    def test_a_removed_row(self, case: Case) -> None:
        """M114: so is a row that is gone."""
        case.started().close()
        journal = case.folder() / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:2] + lines[3:]))
        assert case("report").document == {
            "code": "journal_broken",
            "detail": "at row 2",
            "status": "refused",
        }

    def test_a_torn_last_line(self, case: Case) -> None:
        """M114: no error: readers ignore it, and the next writer sets it aside."""
        case.started()
        journal = case.folder() / "journal.jsonl"
        with journal.open("ab") as file:
            file.write(b'{"body":{')
        before = content(case.folder())
        assert case("status").code == 0
        assert content(case.folder()) == before
        assert case.close().code == 0
        assert len(list((case.folder() / "journal.jsonl.torn").iterdir())) == 1

    def test_an_input_that_was_changed(self, case: Case) -> None:
        """M5: what the run keeps of it is bound to its first row."""
        case.started()
        place = case.folder() / "milestone.json"
        place.write_bytes(place.read_bytes().replace(b"It works.", b"It sings."))
        said = case.close()
        assert (said.code, said.document["code"]) == (4, "pinned_input_changed")

    def test_a_configuration_that_was_changed(self, case: Case, hall: Hall) -> None:
        """M115: likewise, so that nobody lowers floors or swaps the local CI command of a run."""
        case.started()
        place = case.folder() / "configuration.json"
        place.write_bytes(place.read_bytes().replace(b'"commands":1', b'"commands":0'))
        said = case.close()
        assert (said.code, said.document["code"]) == (4, "pinned_input_changed")
        assert hall.asked == []
        assert case("audit").code == 2


class TestDisk:
    @pytest.mark.parametrize("nth", [1, 2, 5, 9, 14])
    def test_a_full_disk(self, case: Case, hall: Hall, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
        """M109: row_not_written; the step counts as not done, and the close goes on when there is room."""
        case.started()
        before = case.git("for-each-ref")
        full = Injection(
            "write", errno.ENOSPC, nth=nth, about=lambda path: path.endswith(("journal.jsonl", ".tmp"))
        )
        around = replace(case.repository.around, fs=FaultFs(RealFs(), full))
        monkeypatch.setattr(milestone, "surroundings", lambda: around)
        said = case.close()
        assert (said.code, said.document["code"]) == (4, "row_not_written"), said
        monkeypatch.setattr(milestone, "surroundings", door.surroundings)
        assert case.git("for-each-ref") == before
        assert case.rows("crw.milestoneClose") == []
        assert case.close().code == 0
        verdicts = case.rows("crw.crosscheck")
        assert len(verdicts) == 1
        assert hall.purposes().count("A") <= 2


class TestInterruption:
    def test_a_signal_during_a_pass(self, case: Case, hall: Hall) -> None:
        """M109: 128+n; the row stays prepared, and resume makes the call again and says so."""

        def interrupt(asked: Asked) -> object:
            if len(hall.of("B")) == 1:
                raise Terminated(signal.SIGTERM)
            return verified()(asked)

        hall.script["B"] = [interrupt]
        assert case.started().close().code == 128 + signal.SIGTERM
        calls = {row["call"] for row in case.rows("prepared")} - {r["call"] for r in case.rows("completed")}
        assert len(calls) == 2
        assert set(case("status").document["runs"][0]["open_calls"]) == calls
        assert case("resume").code == 0
        assert {row["repeats"] for row in case.rows("prepared") if "repeats" in row} == calls
        assert case("status").document["runs"][0]["open_calls"] == []

    def test_killed_between_gate_and_crosscheck(self, case: Case, hall: Hall) -> None:
        """M110: the gate is judged again; its evidence is not made twice."""

        def interrupt(_asked: Asked) -> object:
            raise Terminated(signal.SIGTERM)

        hall.script["probe"] = [interrupt]
        assert case.started().close().code == 128 + signal.SIGTERM
        hall.script.clear()
        gates, checks = len(case.rows("crw.finalGate")), len(case.rows("crw.verify"))
        assert case("resume").code == 0
        assert len(case.rows("crw.finalGate")) == gates + 1
        assert len(case.rows("crw.verify")) == checks

    @pytest.mark.parametrize("purpose", ["fix", "research", "evidence"])
    def test_killed_during_the_correction(self, case: Case, hall: Hall, purpose: str) -> None:
        """M109: nothing is taken for done; the correction goes on where it was."""
        kind = "evidence_missing" if purpose == "evidence" else "defect"
        hall.script["B"] = [needs(finding(kind=kind)), verified()]
        ask = {"state": "needs_research", "question": "Where?", "summary": ""}
        done = {"state": "ready", "question": "", "summary": ""}
        if purpose == "research":
            hall.script["fix"] = [ask, done]

        def interrupt(_asked: Asked) -> object:
            raise Terminated(signal.SIGTERM)

        usual = hall.script.get(purpose)
        hall.script[purpose] = [interrupt]
        assert case.started().close().code == 128 + signal.SIGTERM
        hall.script.pop(purpose)
        if usual:
            hall.script[purpose] = usual
        assert case("resume").code == 0
        repeated = [row for row in case.rows("prepared") if "repeats" in row]
        assert [row["purpose"] for row in repeated] == [{"fix": "close_fix"}.get(purpose, purpose)]
        assert len(hall.of("B")) == 2

    def test_killed_once_the_repair_is_published(
        self, case: Case, hall: Hall, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M109: the close is recorded over what stands; nobody is asked again."""
        hall.script["B"] = [needs(finding()), verified()]
        inner = closing.Closing._audit

        def interrupt(_self: closing.Closing) -> None:
            monkeypatch.setattr(closing.Closing, "_audit", inner)
            raise Terminated(signal.SIGTERM)

        monkeypatch.setattr(closing.Closing, "_audit", interrupt)
        assert case.started().close().code == 128 + signal.SIGTERM
        asked, head = len(hall.asked), case.head
        assert case.rows("crw.milestoneClose") == []
        assert case("resume").code == 0
        assert len(hall.asked) == asked
        assert case.rows("crw.milestoneClose")[0]["head"] == head


def test_exit_codes_are_closed() -> None:
    """M93: refusals end with 2 or 4 and nothing else."""
    assert {code.exit for code in MilestoneCode} == {2, 4}
