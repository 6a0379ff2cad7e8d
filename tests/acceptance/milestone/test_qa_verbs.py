"""QA evidence through the real commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.milestones import CAPTURE_PATH, SILENT, USUAL, Asked, answered

if TYPE_CHECKING:
    from tests.support.milestones import Case, Hall

pytestmark = pytest.mark.slow

WEB: dict[str, Any] = {"surfaces": {"c1": "web"}}


def receipt(case: Case) -> tuple[str, str]:
    row = case.rows("crw.qaReceipt")[-1]
    return row["word"], row["reason"]


def spoiled(case: Case, hall: Hall, **script: Any) -> tuple[str, str]:  # noqa: ANN401 - replies
    hall.script |= {name.replace("_", "-"): [reply] for name, reply in script.items()}
    said = case.started(**WEB).close()
    assert said.code == 1, said
    assert said.document["code"] == "qa_inconclusive"
    assert hall.of("A") == []
    return receipt(case)


@pytest.mark.parametrize("surface", ["web", "tui", "desktop"])
def test_surfaces_that_need_it(case: Case, surface: str) -> None:
    """M14: web, tui and desktop."""
    assert case.started(surfaces={"c2": surface})("gate").document["need_qa"] is True


def test_surfaces_that_do_not(case: Case) -> None:
    """M14: no other one."""
    assert case.started(surfaces={"c2": "api"})("gate").document["need_qa"] is False


class TestPasses:
    def test_a_whole_one(self, case: Case, hall: Hall) -> None:
        """M28 M29 M30: an unknown grade has two passes, at the same time, in checkouts of their own."""
        case.document.pop("grade")
        before = case.head
        assert case.started(**WEB).close().code == 0
        assert receipt(case) == ("PASS", "")
        one, two = hall.of("qa-A") + hall.of("qa-B")
        (capture,) = hall.of("capture")
        assert len({one.folder, two.folder, capture.folder, hall.of("receipt")[0].folder}) == 4
        assert (one.kind, two.kind, capture.kind) == ("read", "read", "work")
        assert hall.of("receipt")[0].kind == "read"
        place = str(capture.folder / CAPTURE_PATH)
        assert all(place in each.prompt for each in (one, two, *hall.of("receipt")))
        assert capture.folder.exists()
        assert case.head == before
        codes = [row["code"] for row in case.rows("flow_spawn_decisions")]
        assert codes == ["SP-QA-1", "SP-QA-2", "SP-QA-2"]
        rows = {row["purpose"]: row for row in case.rows("completed")}
        assert rows["qa_capture"]["qa_source"]["dirty"] is False
        prepared = {row["purpose"]: row for row in case.rows("prepared")}
        assert prepared["qa_receipt"]["resume_of"] == prepared["qa_capture"]["call"]
        assert all(prepared[name]["qa"] for name in ("qa_capture", "qa_pass", "qa_receipt"))
        assert case.rows("crw.qaCapture")[0]["artifacts"] == [place]

    def test_at_the_same_time(self, case: Case, hall: Hall) -> None:
        """M29: each waits for the other."""
        import threading  # noqa: PLC0415 - this test alone

        both = threading.Barrier(2, timeout=20)

        def meet(asked: Asked) -> object:
            both.wait()
            return USUAL[asked.purpose]

        hall.script |= {"qa-A": [meet], "qa-B": [meet]}
        assert case.started(**WEB).close().code == 0

    def test_grade_c2(self, case: Case, hall: Hall) -> None:
        """M28: one more turn of the capture is the receipt."""
        assert case.started(**WEB, grade="C2").close().code == 0
        assert [each for each in hall.purposes() if each not in "AB"] == ["capture", "receipt"]
        assert "QA PASS" not in hall.of("receipt")[0].prompt

    def test_a_lower_grade(self, case: Case, hall: Hall) -> None:
        """M28: any other grade has two passes."""
        assert case.started(**WEB, grade="C1").close().code == 0
        assert len(hall.of("qa-A")) == 1

    def test_a_command_that_comes_first(self, case: Case, hall: Hall) -> None:
        """M17: it runs in the capture's worktree; when it fails, the capture concludes nothing."""
        case.repository.commit(**{".gitignore": "ready\n"})
        assert case.started(**WEB, qa={"argv": ["touch", "ready"]}).close().code == 0
        assert (hall.of("capture")[0].folder / "ready").exists()
        said = case.started("r2", **WEB, plan="p2", qa={"argv": ["false"]}).close("r2")
        assert said.document["code"] == "qa_inconclusive"

    @pytest.mark.parametrize(("word", "code"), [("REVISE", "qa_failed"), ("FAIL", "qa_failed")])
    def test_a_receipt_that_does_not_pass(self, case: Case, hall: Hall, word: str, code: str) -> None:
        """M9 M27: an escalation, and no crosscheck."""
        hall.script["qa-B"] = [{"pass": "B", "verdict": word, "findings": []}]
        said = case.started(**WEB).close()
        assert (said.code, said.document["code"]) == (1, code)
        assert receipt(case) == (word, "")
        assert hall.of("A") == []


class TestInconclusive:
    def test_no_answer(self, case: Case, hall: Hall) -> None:
        """M17: the capture did not complete."""
        assert spoiled(case, hall, capture=SILENT) == ("INCONCLUSIVE", "capture_incomplete")
        assert hall.of("qa-A") == []

    def test_no_captures(self, case: Case, hall: Hall) -> None:
        """M18: nothing is listed."""
        empty = {"captures": [], "scenarios": [], "teardown": ""}
        assert spoiled(case, hall, capture=empty) == ("INCONCLUSIVE", "capture_empty")

    def test_a_modified_source(self, case: Case, hall: Hall) -> None:
        """M19 M30: an edit outside .crw/; the target head is unchanged."""

        def edit(asked: Asked) -> object:
            (asked.folder / "a.py").write_text("x = 9\n")
            return USUAL["capture"](asked)

        before = case.head
        assert spoiled(case, hall, capture=edit) == ("INCONCLUSIVE", "capture_source_modified")
        assert case.head == before

    def test_a_source_that_cannot_be_read(
        self, case: Case, hall: Hall, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """M20: git does not say."""
        from skill_effectiveness.acceptance.milestone import qa_evidence  # noqa: PLC0415 - this test alone

        monkeypatch.setattr(
            qa_evidence._QaDesk, "_source", lambda *_: {"qa_source_error": "git does not say"}
        )
        assert spoiled(case, hall) == ("INCONCLUSIVE", "capture_source_unknown")
        (row,) = [row for row in case.rows("completed") if row["purpose"] == "qa_capture"]
        assert row["qa_source_error"] == "git does not say"

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            (".crw/evidence/nothing.txt", "capture_root_unknown"),
            ("../../outside.txt", "capture_path_outside"),
            ("/etc/hostname", "capture_path_outside"),
            (".crw/link", "capture_path_outside"),
        ],
    )
    def test_artifact_paths(self, case: Case, hall: Hall, path: str, reason: str) -> None:
        """M21 M22: nowhere, or outside, by their text or by a link."""

        def show(asked: Asked) -> object:
            given = USUAL["capture"](asked)
            (asked.folder / ".crw" / "link").symlink_to("/etc/passwd")
            given["captures"][0]["path"] = path
            return given

        assert spoiled(case, hall, capture=show) == ("INCONCLUSIVE", reason)

    def test_an_unfinished_pass(self, case: Case, hall: Hall) -> None:
        """M23: no synthesis is asked for."""
        assert spoiled(case, hall, qa_B=SILENT) == ("INCONCLUSIVE", "pass_incomplete")
        assert hall.of("receipt") == []

    def test_a_pass_that_changed_its_checkout(self, case: Case, hall: Hall) -> None:
        """M23: its answer is void."""

        def change(asked: Asked) -> object:
            (asked.folder / "new").write_text("x")
            return USUAL["qa-A"]

        assert spoiled(case, hall, qa_A=change) == ("INCONCLUSIVE", "pass_incomplete")

    def test_a_pass_that_answers_for_the_other(self, case: Case, hall: Hall) -> None:
        """M24: it does not count."""
        other = {"pass": "A", "verdict": "PASS", "findings": []}
        assert spoiled(case, hall, qa_B=other) == ("INCONCLUSIVE", "pass_foreign")
        assert hall.of("receipt") == []

    @pytest.mark.parametrize("reply", [SILENT, "PASS", answered({"verdict": "PASS"})])
    def test_a_receipt_of_another_form(self, case: Case, hall: Hall, reply: object) -> None:
        """M25: unfinished, or not what was asked."""
        assert spoiled(case, hall, receipt=reply) == ("INCONCLUSIVE", "receipt_invalid")

    def test_pass_over_a_grave_finding(self, case: Case, hall: Hall) -> None:
        """M26: is not PASS."""
        grave = {"verdict": "PASS", "findings": [{"severity": "P1", "text": "Broken."}]}
        assert spoiled(case, hall, receipt=grave) == ("INCONCLUSIVE", "receipt_invalid")


def test_nobody_to_ask(case: Case, hall: Hall) -> None:
    """M17: no engine at all is a hold, and resume goes on."""
    hall.missing.add("one")
    said = case.started(**WEB).close()
    assert (said.code, said.document["code"]) == (3, "executor_unavailable")
    hall.missing.clear()
    assert case("resume").code == 0
