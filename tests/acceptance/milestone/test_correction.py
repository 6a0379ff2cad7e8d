"""The one correction of a close, and how a close stops, through the real commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.milestones import BROKEN, QUOTA, SILENT, answered, finding, needs, profile, verified

if TYPE_CHECKING:
    from tests.support.milestones import Asked, Case, Hall

pytestmark = pytest.mark.slow

MISSING = finding(kind="evidence_missing")
RESEARCH = {"state": "needs_research", "question": "Where is it?", "summary": ""}


class TestExplorer:
    def test_missing_evidence_alone(self, case: Case, hall: Hall) -> None:
        """M73: the explorer is asked, and the same head is checked again with its answers and V as prior."""
        hall.script["B"] = [needs(MISSING), verified()]
        before = case.head
        assert case.started().close().code == 0
        assert case.head == before
        assert hall.purposes().count("evidence") == 1
        assert hall.of("fix") == []
        first, second = hall.of("B")
        assert "See tests/test_a.py line 3." in second.prompt
        assert "B-1 [P1/core_function]" in second.prompt
        assert "See tests/test_a.py" not in first.prompt
        assert [row["round"] for row in case.rows("crw.crosscheck")] == [1, 2]
        assert "-r2-" in second.folder.name

    def test_nobody_answers(self, case: Case, hall: Hall) -> None:
        """M76: a hold; resume asks again and the first verdict stands."""
        hall.script |= {"B": [needs(MISSING), verified()], "evidence": [SILENT]}
        said = case.started().close()
        assert (said.code, said.document["code"]) == (3, "explorer_unavailable")
        del hall.script["evidence"]
        assert case("resume").code == 0
        assert [row["round"] for row in case.rows("crw.crosscheck")] == [1, 2]

    def test_an_explorer_that_changes_something(self, case: Case, hall: Hall) -> None:
        """M76: its answer is void."""

        def change(asked: Asked) -> object:
            (asked.folder / "new").write_text("x")
            return {"answer": "x"}

        hall.script |= {"B": [needs(MISSING), verified()], "evidence": [change]}
        assert case.started().close().document["code"] == "explorer_unavailable"
        (row,) = [row for row in case.rows("completed") if row["purpose"] == "evidence"]
        assert row["worktree_changed"] is True

    def test_no_explorer(self, case: Case, hall: Hall) -> None:
        """M76: nobody configured can be asked."""
        case.configuration |= {"profiles": [profile(), profile("two")], "explorer": "two"}
        hall.script["B"] = [needs(MISSING), verified()]
        hall.missing.add("two")
        assert case.started().close().document["code"] == "explorer_unavailable"


class TestExecutor:
    def test_a_mixed_set(self, case: Case, hall: Hall) -> None:
        """M74: one executor; the tool commits; what passes at the repaired head is published."""
        hall.script["B"] = [needs(MISSING, finding("B-2", kind="test_gap")), verified()]
        before = case.head
        assert case.started().close().code == 0
        assert len(hall.of("fix")) == 1
        assert hall.of("fix")[0].kind == "work"
        assert case.head != before
        assert case.git("rev-parse", "main~1") == before
        assert case.git("show", "--name-only", "--format=%an: %s", "main").splitlines() == [
            "milestone close: Correct the findings of the crosscheck of m1", "", "fixed",
        ]  # fmt: skip
        assert (case.repository.root / "fixed").exists()
        heads = [row["head"] for row in case.rows("crw.crosscheck")]
        assert heads == [before, case.head]
        assert {row["head"] for row in case.rows("crw.verify")} == {before, case.head}
        assert case.rows("crw.milestoneClose")[0]["head"] == case.head
        authors = case.verdict()["authors"]
        assert authors[-1]["source"] == "close_fix"
        assert not any((case.folder() / "fix-wt").iterdir())

    def test_a_target_that_nobody_has_checked_out(self, case: Case, hall: Hall) -> None:
        """M74: is moved as a ref."""
        case.git("checkout", "-q", "--detach")
        hall.script["B"] = [needs(finding()), verified()]
        assert case.started().close().code == 0
        assert case.git("show", "main:fixed") == "1"
        assert not (case.repository.root / "fixed").exists()

    def test_research(self, case: Case, hall: Hall) -> None:
        """M75: the explorer answers, and the same call resumes with its edits."""

        def ask(asked: Asked) -> object:
            (asked.folder / "half").write_text("1\n")
            return RESEARCH

        seen: list[bool] = []

        def finish(asked: Asked) -> object:
            seen.append((asked.folder / "half").exists())
            packet, answer = (Path(line.split(": ", 1)[1]) for line in asked.prompt.splitlines()[:2])
            assert packet.is_relative_to(asked.folder / ".crw")
            handed.append((packet.read_text(), json.loads(answer.read_text())))
            return {"state": "ready", "question": "", "summary": "Done."}

        handed: list[tuple[str, object]] = []
        hall.script |= {"B": [needs(finding()), verified()], "fix": [ask, finish]}
        assert case.started().close().code == 0
        assert seen == [True]
        assert handed == [(hall.of("fix")[0].prompt, RESEARCH)]
        assert "Where is it?" in hall.of("research")[0].prompt
        first, second = hall.of("fix")
        assert second.folder == first.folder
        assert "It is in a.py." in second.prompt
        calls = [row for row in case.rows("prepared") if row["purpose"] == "close_fix"]
        assert calls[1]["resume_of"] == calls[0]["call"]
        assert case.git("ls-tree", "-r", "--name-only", "main").splitlines() == ["a.py", "first", "half"]

    def test_a_worktree_whose_own_folder_is_a_link(self, case: Case, hall: Hall) -> None:
        """M75: nothing is laid behind it; the earlier call is read where it lies."""
        outside = case.repository.base / "outside"
        outside.mkdir()

        def ask(asked: Asked) -> object:
            (asked.folder / ".crw").symlink_to(outside)
            return RESEARCH

        done = {"state": "ready", "question": "", "summary": ""}
        hall.script |= {"B": [needs(finding()), verified()], "fix": [ask, done]}
        assert case.started().close().code == 0
        assert list(outside.iterdir()) == []
        calls = [row for row in case.rows("prepared") if row["purpose"] == "close_fix"]
        assert f"calls/{calls[0]['call']}/packet.md" in hall.of("fix")[1].prompt

    def test_the_research_limit(self, case: Case, hall: Hall) -> None:
        """M77: used up: blocked_scope, and never a code about research."""
        hall.script |= {"B": [needs(finding())], "fix": [RESEARCH]}
        said = case.started(research_limit=1).close()
        assert (said.code, said.document["code"]) == (1, "blocked_scope")
        assert (len(hall.of("research")), len(hall.of("fix"))) == (1, 2)

    def test_a_research_hold_keeps_the_edits(self, case: Case, hall: Hall) -> None:
        """M75 M76: the correction goes on where it was."""

        def ask(asked: Asked) -> object:
            (asked.folder / "half").write_text("1\n")
            return RESEARCH

        done = {"state": "ready", "question": "", "summary": ""}
        hall.script |= {"B": [needs(finding()), verified()], "fix": [ask, done], "research": [QUOTA]}
        assert case.started().close().document["code"] == "explorer_unavailable"
        del hall.script["research"]
        assert case("resume").code == 0
        assert len(hall.of("fix")) == 2
        assert case.git("show", "main:half") == "1"

    def test_a_repaired_head_that_fails_the_gate(self, case: Case, hall: Hall) -> None:
        """M78: is not published; the target stays where it was."""

        def spoil(asked: Asked) -> object:
            (asked.folder / "broken").write_text("1\n")
            return {"state": "ready", "question": "", "summary": ""}

        hall.script |= {"B": [needs(finding())], "fix": [spoil]}
        before = case.head
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "final_gate_test_failed")
        assert case.head == before
        assert len(case.rows("crw.crosscheck")) == 1

    def test_a_repaired_head_that_is_not_verified(self, case: Case, hall: Hall) -> None:
        """M78 M79: crosscheck_pending with the second V; one executor call, and the target stays."""
        hall.script["B"] = [needs(finding())]
        before = case.head
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "crosscheck_pending")
        assert case.head == before
        assert (len(hall.of("fix")), len(hall.of("B"))) == (1, 2)
        assert said.document["crosscheck"] == case.verdict()
        assert case.verdict()["round"] == 2
        assert list(said.document["fix"]["findings"]) == ["B-1"]
        assert said.document["fix"]["range"].endswith(" -- a.py")
        assert case("resume").document["code"] == "run_ended"

    @pytest.mark.parametrize("outcome", [QUOTA, SILENT])
    def test_an_executor_without_an_answer(self, case: Case, hall: Hall, outcome: object) -> None:
        """M76: a hold; resume asks it again."""
        hall.script |= {"B": [needs(finding()), verified()], "fix": [outcome]}
        assert case.started().close().document["code"] == "executor_unavailable"
        del hall.script["fix"]
        assert case("resume").code == 0

    @pytest.mark.parametrize("reply", ["Done.", BROKEN, {"state": "done"}])
    def test_an_executor_whose_answer_is_none(self, case: Case, hall: Hall, reply: object) -> None:
        """M74: an escalation; the target stays."""
        hall.script |= {"B": [needs(finding())], "fix": [reply]}
        before = case.head
        assert case.started().close().document["code"] == "close_fix_failed"
        assert case.head == before

    def test_an_executor_that_commits(self, case: Case, hall: Hall) -> None:
        """M74: the tool commits and nobody else; nothing of it is used."""

        def commit(asked: Asked) -> object:
            case.git("-C", str(asked.folder), "commit", "-q", "--allow-empty", "-m", "mine")
            return {"state": "ready", "question": "", "summary": ""}

        hall.script |= {"B": [needs(finding())], "fix": [commit]}
        before = case.head
        assert case.started().close().document["code"] == "close_fix_failed"
        assert case.head == before

    def test_an_executor_that_lays_a_trap(self, case: Case, hall: Hall) -> None:
        """M74: what it makes of its `.git` file and index reaches nobody: its files are read without them."""
        marker = case.repository.base / "sprung"

        def trap(asked: Asked) -> object:
            other = asked.folder / ".crw" / "git"
            case.git("init", "-q", "--bare", str(other))
            with (other / "config").open("a") as file:
                file.write(f'[filter "x"]\n\tclean = "touch {marker}; cat"\n\trequired = true\n')
            (asked.folder / ".gitattributes").write_text("* filter=x\n")
            (asked.folder / ".git").unlink()
            (asked.folder / ".git").write_text(f"gitdir: {other}\n")
            (asked.folder / "fixed").write_text("1\n")
            return {"state": "ready", "question": "", "summary": ""}

        hall.script |= {"B": [needs(finding()), verified()], "fix": [trap]}
        assert case.started().close().code == 0
        assert not marker.exists()
        assert case.git("ls-tree", "--name-only", "main").splitlines() == [
            ".gitattributes", "a.py", "first", "fixed",
        ]  # fmt: skip

    def test_an_executor_that_changes_nothing(self, case: Case, hall: Hall) -> None:
        """M74: the same head is judged again, and there is nothing to publish."""
        done = {"state": "ready", "question": "", "summary": "It was right."}
        hall.script |= {"B": [needs(finding()), verified()], "fix": [done]}
        before = case.head
        assert case.started().close().code == 0
        assert case.head == before
        assert [row["head"] for row in case.rows("crw.crosscheck")] == [before, before]

    def test_a_target_that_moves_meanwhile(self, case: Case, hall: Hall) -> None:
        """M70 M78: the repair is not published over it; its branch stays."""

        def move(asked: Asked) -> object:
            case.repository.commit(more="1")
            return verified()(asked)

        hall.script["B"] = [needs(finding()), move]
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "close_unverified")
        assert case.git("rev-parse", "milestone-fix/m1-r1") == said.document["commit"]
        assert case.rows("crw.milestoneClose") == []

    def test_one_correction_per_close(self, case: Case, hall: Hall) -> None:
        """M79: a target that moves after a correction gets no second one."""

        def move(asked: Asked) -> object:
            case.repository.commit(more="1")
            return verified()(asked)

        hall.script["B"] = [needs(MISSING), move, needs(finding("B-5"))]
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "crosscheck_pending")
        assert list(said.document["fix"]["findings"]) == ["B-5"]
        assert hall.of("fix") == []


class TestEscalations:
    def test_ids(self, case: Case, hall: Hall) -> None:
        """M80: of the run and V; a run that judges otherwise has another one."""
        hall.script["B"] = [needs(finding())]
        first = case.started().close().document
        second = case.started("r2", plan="p2").close("r2").document
        assert first["id"] != second["id"]
        assert case.rows("escalation")[0]["verdict"] == first["crosscheck"]
        assert case.rows("finished")[0]["escalation"] == first["id"]

    def test_a_finding_of_the_first_round_keeps_its_id(self, case: Case, hall: Hall) -> None:
        """M112: both passes may report it, and V merges the two."""
        again = finding("B-1", severity="P2", impact=None, text="Still.")

        def both(asked: Asked) -> object:
            if len(hall.of(asked.purpose)) == 1:
                return needs(finding("B-1"))(asked) if asked.purpose == "B" else verified()(asked)
            return needs(again)(asked)

        hall.script |= {"A": [both], "B": [both]}
        assert case.started().close().document["code"] == "crosscheck_pending"
        assert [each["id"] for each in case.verdict()["findings"]] == ["B-1"]
        assert len(hall.of("A")) == len(hall.of("B")) == 2

    def test_which_pass_ends_first(self, case: Case, hall: Hall) -> None:
        """M60: says nothing; the first text is pass A's."""
        import threading  # noqa: PLC0415 - this test alone

        b_is_done = threading.Event()

        def late(asked: Asked) -> object:
            b_is_done.wait(20)
            return answered(needs(finding("A-1", text="A's text."))(asked))

        def early(asked: Asked) -> object:
            b_is_done.set()
            return answered(needs(finding("B-1"))(asked))

        hall.script |= {"A": [late, verified()], "B": [early, verified()]}
        assert case.started().close().code == 0
        first = case.rows("crw.crosscheck")[0]["verdict"]
        assert [each["id"] for each in first["findings"]] == ["A-1", "B-1"]
        assert [each["name"] for each in first["passes"]] == ["A", "B"]
