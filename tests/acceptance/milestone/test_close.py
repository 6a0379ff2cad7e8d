"""Whole closes through the real commands: gate, crosscheck, close, report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone import auditing, closing
from tests.support.milestones import CHECK, finding, needs, node, verified

if TYPE_CHECKING:
    from tests.support.milestones import Asked, Case, Hall

pytestmark = pytest.mark.slow

DELIVERY = [
    {
        "id": "c1",
        "checks": [{"kind": "remote_push"}, {"kind": "milestone_closed", "ref": "acme/app#6"}],
    }
]


def test_a_verified_milestone_closes(case: Case, hall: Hall) -> None:
    """M71 M72 M31: gate, crosscheck, close, in that order; the close row names the tip."""
    said = case.started().close()
    assert said.code == 0, said
    close = case.rows("crw.milestoneClose")[0]
    assert close["head"] == case.head
    assert "delivery" not in close
    assert sorted(hall.purposes()) == ["A", "B"]
    order = [kind for kind in case.types() if kind.startswith("crw.")]
    assert order == [
        "crw.finalGate", "crw.verify", "crw.finalGate", "crw.engineProbe", "crw.crosscheck", "crw.audit",
        "crw.milestoneClose",
    ]  # fmt: skip
    assert case.types()[-1] == "finished"
    assert said.document["crosscheck"] == case.verdict()
    assert list((case.folder() / "crosscheck-wt").iterdir()) == []
    assert len(case.git("worktree", "list").splitlines()) == 1


def test_a_target_that_moves_during_the_audit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """M70 M71: it is looked at last, so that the close row names the tip; the new head is judged."""
    audited = auditing.audit_rows
    left = ["once"]

    def slow(*given: Any) -> Any:  # noqa: ANN401 - whatever the audit is given
        if left:
            case.repository.commit(**{left.pop(): "1"})
        return audited(*given)

    monkeypatch.setattr(closing, "audit_rows", slow)
    assert case.started().close().code == 0
    (close,) = case.rows("crw.milestoneClose")
    assert close["head"] == case.head == case.verdict()["head"]
    assert len(case.rows("crw.crosscheck")) == 2


class TestGate:
    def test_no_evidence(self, case: Case) -> None:
        """M6: the gate alone makes none, and says what it needs."""
        said = case.started()("gate")
        assert (said.code, said.document["state"], said.document["need_tests"]) == (1, "pending", [CHECK])
        assert "gate_pending" in said.err

    def test_evidence_of_another_head(self, case: Case, hall: Hall) -> None:
        """M7: what was verified before the target moved is stale."""
        case.started()
        assert case("gate", "--make").document["state"] == "pass"
        case.repository.commit(more="1")
        said = case("gate")
        assert (said.code, said.document["pieces"][0]["state"]) == (1, "stale")
        assert said.document["need_tests"] == [CHECK]
        assert hall.asked == []

    def test_a_failing_verification(self, case: Case, hall: Hall) -> None:
        """M9: an escalation, and nobody is asked."""
        case.repository.commit(broken="1")
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "final_gate_test_failed")
        assert hall.asked == []
        (escalation,) = case.rows("escalation")
        assert escalation["gate"]["state"] == "failed"
        assert case.rows("finished")[0]["escalation"] == escalation["id"]
        assert case.close().document["code"] == "run_ended"

    def test_zero_tests(self, case: Case) -> None:
        """M10: told on the row, by the gate and on its evidence; the milestone closes."""
        case.configuration["test_report"] = "report.json"
        case.repository.commit(**{".gitignore": "report.json\n"})
        write = ["sh", "-c", "printf '{\"testPackagesRun\": 0}' > report.json"]
        assert case.started(required=[write]).close().code == 0
        assert case.rows("crw.verify")[0]["warnings"] == ["no_tests_run"]
        gate = case.rows("crw.finalGate")[-1]
        assert gate["warnings"] == [{"argv": write, "code": "no_tests_run"}]
        assert (gate["pieces"][0]["warnings"], gate["state"]) == (["no_tests_run"], "pass")

    def test_no_report(self, case: Case) -> None:
        """M11: no count, no warning."""
        case.configuration["test_report"] = "report.json"
        assert case.started().close().code == 0
        assert case.rows("crw.verify")[0]["warnings"] == []
        assert "testPackagesRun" not in case.rows("crw.verify")[0]["record"]

    def moving(self, case: Case, times: int) -> list[str]:
        """A command that moves the target as often as is left in a file."""
        left = case.repository.base / "left"
        left.write_text(str(times))
        step = f"n=$(cat {left}); [ $n = 0 ] || {{ echo $((n-1)) > {left}; "
        return ["sh", "-c", f"{step} git -C {case.repository.root} commit -q --allow-empty -m moved; }}"]

    def test_a_head_that_moves_once(self, case: Case) -> None:
        """M12: judged on the new head."""
        before = case.head
        assert case.started(required=[self.moving(case, 1)]).close().code == 0
        assert case.rows("crw.milestoneClose")[0]["head"] == case.head != before
        assert {row["head"] for row in case.rows("crw.finalGate")} == {before, case.head}

    def test_a_head_that_never_rests(self, case: Case, hall: Hall) -> None:
        """M12: three rounds, then it is unsettled."""
        said = case.started(required=[self.moving(case, 9)]).close()
        assert (said.code, said.document["code"]) == (1, "final_gate_unsettled")
        assert len(case.rows("crw.verify")) == 3
        assert hall.asked == []

    def test_a_command_that_cannot_start(self, case: Case) -> None:
        """M13: a hold; once it is there, resume continues."""
        tool = case.repository.base / "tool"
        said = case.started(required=[[str(tool)]]).close()
        assert (said.code, said.document["code"]) == (3, "verify_unavailable")
        assert case.types()[-2:] == ["crw.hold", "run/paused"]
        assert case.close().document["code"] == "run_ended"
        tool.write_text("#!/bin/sh\nexit 0\n")
        tool.chmod(0o755)
        said = case("resume")
        assert said.code == 0, said
        assert [row.get("resumed") for row in case.rows("started")] == [False, True]

    def test_a_command_that_leaves_files(self, case: Case) -> None:
        """M15: its evidence is never fresh, and the gate says so."""
        said = case.started(required=[["sh", "-c", "echo x > left-behind"]]).close()
        assert (said.code, said.document["code"]) == (1, "final_gate_unsettled")
        assert "git does not ignore" in said.err

    def test_no_required_command(self, case: Case) -> None:
        """M6: the configured local CI command is verified."""
        case.configuration["local_ci"] = ["true"]
        assert case.started(required=[]).close().code == 0
        assert case.rows("crw.verify")[0]["record"]["argv"] == ["true"]


class TestClose:
    def test_only_delivery_criteria(self, case: Case, hall: Hall) -> None:
        """M4 M72: both passes review the range; the close waits for delivery."""
        entries = [*DELIVERY, {"id": "c2", "checks": [{"kind": "issues_closed"}]}]
        said = case.started(delivery_criteria=entries).close()
        assert said.code == 0, said
        assert sorted(hall.purposes()) == ["A", "B"]
        assert all("CRITERIA\nnone" in each.prompt for each in hall.asked if each.purpose in "AB")
        assert said.document["delivery"]["state"] == "pending"
        assert [each["id"] for each in said.document["delivery"]["criteria"]] == ["c1", "c2"]
        assert case("report").document["delivery"]["head"] == case.head

    def test_deferred_ids_and_warnings(self, case: Case) -> None:
        """M1 M2: start records both, and refuses nothing."""
        said = case.start(delivery_criteria=[*DELIVERY, {"id": "c9", "checks": []}])
        assert (said.code, said.document["deferred"]) == (0, ["c1"])
        assert said.document["warnings"] == [{"code": "unknown_id", "id": "c9"}]
        assert str(case.repository.base) not in said.out
        assert "warning unknown_id: c9" in said.err

    def test_a_target_that_moves_before_the_close(self, case: Case, hall: Hall) -> None:
        """M70: gate and crosscheck are repeated at the new head."""

        def move(asked: Asked) -> object:
            if len(hall.of("B")) == 1:
                case.repository.commit(more="1")
            return verified()(asked)

        hall.script["B"] = [move]
        assert case.started().close().code == 0
        assert len(case.rows("crw.crosscheck")) == 2
        assert case.rows("crw.milestoneClose")[0]["head"] == case.head

    def test_a_target_that_never_rests(self, case: Case, hall: Hall) -> None:
        """M70: three times, then nothing is closed."""

        def move(asked: Asked) -> object:
            case.repository.commit(more=str(len(hall.asked)))
            return verified()(asked)

        hall.script["B"] = [move]
        said = case.started().close()
        assert (said.code, said.document["code"]) == (1, "close_unverified")
        assert len(case.rows("crw.crosscheck")) == 3
        assert case.rows("crw.milestoneClose") == []

    def test_no_verdict(self, case: Case, hall: Hall) -> None:
        """M69: a passed gate alone closes nothing."""
        case.started()
        assert case("gate", "--make").code == 0
        said = case("close", "--recorded")
        assert (said.code, said.document["code"]) == (1, "close_unverified")
        assert (said.document["why"], said.document["outcome"]) == ("no crosscheck", "refused")
        assert case.rows("crw.milestoneClose") == []
        assert hall.asked == []
        assert case.close().code == 0

    def test_a_verdict_of_the_head(self, case: Case) -> None:
        """M71: the verbs one by one close as the close does."""
        case.started()
        assert case("gate", "--make").code == 0
        said = case("crosscheck")
        assert (said.code, said.document["outcome"]) == (0, "verified")
        assert case("close", "--recorded").code == 0
        assert case.rows("crw.milestoneClose")[0]["crosscheck"] == case.rows("crw.crosscheck")[0]["digest"]

    def test_a_verdict_of_another_head(self, case: Case) -> None:
        """M67: a verified V, and a target that went on with a gate of its own: no close row."""
        case.started()
        case("gate", "--make")
        assert case("crosscheck").code == 0
        case.repository.commit(more="1")
        assert case("gate", "--make").code == 0
        said = case("close", "--recorded")
        assert (said.code, said.document["code"]) == (1, "close_unverified")
        assert said.document["why"] == "the crosscheck is of another head"
        assert case.rows("crw.milestoneClose") == []

    def test_alignment(self, case: Case) -> None:
        """M117: equal once every node has landed; the range's other commits are told."""
        case.document["nodes"] = [node()]
        case.started()
        assert case.accept("n1", "--batch", "main").code == 0
        assert case.close().code == 0
        assert case.rows("crw.milestoneClose")[0]["alignment"].startswith("equal")
        case.document["nodes"] = [node(), node("n2")]
        case.started("r2", plan="plan-2")
        assert case.close("r2").code == 0
        told = case("report", run="r2").document["alignment"]
        assert told.startswith("not equal: not landed: n1, n2; of no planned node: ")
        case.document["nodes"] = []
        assert case.started("r3", plan="plan-3").close("r3").code == 0
        assert case("report", run="r3").document["alignment"] == "not judged"

    def test_reporting_up(self, case: Case) -> None:
        """M96 M118: after the audit, once per close, and nothing else changes."""
        case.started().close()
        before = case.types()
        assert case.plain("report", "--run", "r1", "--store", case.store).code == 0
        assert case.types() == before
        first, second = case("report"), case("report")
        assert (first.code, first.document) == (0, second.document)
        assert case.types() == [*before, "crw.reportUp"]
        types = case.types()
        assert types.index("crw.audit") < types.index("crw.reportUp")
        assert "independence is recorded only" in first.err


class TestOrder:
    """Verbs before the rows they need."""

    def test_no_crosscheck_without_a_passed_gate(self, case: Case, hall: Hall) -> None:
        """M69: row_required, and nothing runs."""
        case.started()
        said = case("crosscheck")
        assert (said.code, said.document["code"], said.document["detail"]) == (
            2,
            "row_required",
            "crw.finalGate",
        )
        assert hall.asked == []
        assert case.types() == ["started"]

    def test_nothing_to_resume(self, case: Case) -> None:
        """M13: row_required."""
        said = case.started()("resume")
        assert (said.code, said.document["detail"]) == (2, "crw.hold")

    def test_unknown_runs(self, case: Case) -> None:
        """M93: run_unknown, for every verb."""
        case.started()
        for verb in ("gate", "crosscheck", "close", "resume", "status", "report", "audit", "deliver"):
            said = case(verb, run="other")
            assert (said.code, said.document["code"]) == (2, "run_unknown"), verb

    def test_status(self, case: Case, hall: Hall) -> None:
        """M83: where runs stand."""
        hall.script["B"] = [needs(finding())]
        case.started().close()
        case.started("r2", plan="other")
        runs = case("status", run=None).document["runs"]
        assert [(each["run"], each["state"], each["code"]) for each in runs] == [
            ("r1", "escalated", "crosscheck_pending"),
            ("r2", "open", None),
        ]
        json.dumps(runs)
