"""`milestone audit` and `milestone deliver` through the real commands."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone.run import Site, open_run
from skill_effectiveness.acceptance.milestone.words import RowType
from skill_effectiveness.evidence.canonical import digest_text
from tests.support.milestones import node
from tests.support.private import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.milestones import Case, Hall

pytestmark = pytest.mark.slow

CHECKS = [
    {"kind": "remote_push"},
    {"kind": "issues_closed"},
    {"kind": "milestone_closed", "ref": "acme/app#6"},
]


def accepted(case: Case) -> Case:
    case.document["nodes"] = [node(issue="acme/app#1")]
    case.started()
    assert case.accept("n1", "--batch", "main").code == 0
    return case


def note(case: Case, hall: Hall, kind: RowType, **body: Any) -> None:  # noqa: ANN401 - plain values
    """A row as another maker may have written it."""
    with open_run(Site(case.store, case.repository.around, hall.bind), "r1", "test") as run:
        run.note(kind, **body)


def held(case: Case) -> Callable[[], None]:
    """Another process that holds the run; call it to let go."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with open_run(Site(case.store, case.repository.around), "r1", "another"):
            taken.set()
            over.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)

    def let_go() -> None:
        over.set()
        holder.join()

    return let_go


class TestAudit:
    def test_all_ok(self, case: Case) -> None:
        """M89 M93: exit 0, and a row of its own once the run has ended."""
        accepted(case).close()
        before = len(case.rows("crw.audit"))
        said = case("audit")
        assert (said.code, said.document["recorded"]) == (0, True)
        assert [each["result"] for each in said.document["results"]] == ["ok"]
        rows = case.rows("crw.audit")
        assert len(rows) == before + 1
        assert rows[-1]["call"].startswith("audit_")

    def test_by_acceptance(self, case: Case) -> None:
        """M93: looked up in the whole store; by --state as well."""
        accepted(case)
        call = case.rows("acceptance")[0]["call"]
        said = case.plain("audit", "--acceptance", call, "--state", case.store, "--json")
        assert (said.code, said.document["run"]) == (0, "r1")
        assert case("audit", "--acceptance", "acc_0", run=None).document["code"] == "acceptance_unknown"

    def test_a_mismatch(self, case: Case, hall: Hall) -> None:
        """M90 M93: exit 1; the close escalates audit_mismatch and records nothing."""
        accepted(case)
        body = case.rows("crw.unitCheck")[0]
        note(case, hall, RowType.UNIT_CHECK, **body | {"head": "0" * 40})
        said = case("audit")
        assert (said.code, said.document["results"][0]["result"]) == (1, "mismatch")
        assert "audit_mismatch" in said.err
        said = case.close()
        assert (said.code, said.document["code"]) == (1, "audit_mismatch")
        assert case.rows("crw.milestoneClose") == []

    def test_a_row_that_is_missing(self, case: Case, hall: Hall) -> None:
        """M91: mismatch."""
        accepted(case)
        body = case.rows("acceptance")[0]
        note(case, hall, RowType.ACCEPTANCE, **body | {"unit_check": "unit-check-9", "call": "acc_9"})
        assert [each["result"] for each in case("audit").document["results"]] == ["ok", "mismatch"]

    def review(self, case: Case, hall: Hall) -> Path:
        """An acceptance of an imported journal, and where its transcript lies."""
        accepted(case)
        digest, head = case.rows("acceptance")[0]["criteria_digest"], case.head
        note(
            case, hall, RowType.ACCEPTANCE, basis="review", call="acc_r", node="n1", head=head,
            criteria_digest=digest, thread="t1", turn="u1", result_digest=digest_text("OK"), review="rev-1",
        )  # fmt: skip
        folder = case.folder() / "calls"
        (folder / "rev-1").mkdir(mode=0o700)
        turn = {
            "id": "u1", "status": "completed", "last_message": "OK",
            "packet": f"HEAD: {head}\nCRITERIA DIGEST: {digest}\n",
        }  # fmt: skip
        place = folder / "rev-1" / "transcript.json"
        place.write_text(json.dumps({"thread": "t1", "turns": [turn], "pairs": []}))
        place.chmod(0o600)
        return place

    def test_a_review(self, case: Case, hall: Hall) -> None:
        """M89 M92: read from the stored transcript, else unobserved, which is exit 1 and no pass."""
        place = self.review(case, hall)
        assert case("audit", "--acceptance", "acc_r", run=None).code == 0
        place.unlink()
        said = case("audit", "--acceptance", "acc_r", run=None)
        assert (said.code, said.document["results"][0]["result"]) == (1, "unobserved")
        assert "audit_unobserved" in said.err

    def test_command_lines(self, case: Case) -> None:
        """M93: 2 for what cannot be used."""
        accepted(case)
        assert case.plain("audit", "--store", case.store).code == 2
        assert case("audit", "--acceptance", "x").code == 2
        assert case("audit", "--milestone", "other").code == 2
        assert case("audit", "--milestone", "m1").code == 0
        assert case("audit", "--delivery", "--milestone", "m1").code == 2
        assert case("audit", store=case.repository.root / "store").document["code"] == "store_unsafe"

    def test_a_run_that_has_not_ended(self, case: Case) -> None:
        """M94: nothing is appended."""
        accepted(case)
        before = case.types()
        said = case("audit")
        assert (said.code, said.document["recorded"]) == (0, False)
        assert case.types() == before

    def test_without_a_record(self, case: Case) -> None:
        """M94: asked for."""
        accepted(case).close()
        before = case.types()
        assert case("audit", "--no-record").document["recorded"] is False
        assert case.types() == before

    def test_a_held_lock(self, case: Case) -> None:
        """M95: nothing is appended; the result is printed, and its exit code stands."""
        accepted(case).close()
        before = case.types()
        let_go = held(case)
        try:
            said = case("audit")
            assert (said.code, said.document["recorded"]) == (0, False)
            assert case.types() == before
            assert case("close").document["code"] == "run_locked"
            assert case("close").code == 2
        finally:
            let_go()


@pytest.fixture
def published(case: Case) -> Case:
    """A milestone whose delivery can be observed: an origin, and a tracker that refuses every write."""
    tracker = case.repository.base / "tracker.json"
    tracker.write_text(
        json.dumps(
            {
                "issues": {"acme/app#1": {"state": "closed", "reason": "completed"}},
                "milestones": {"acme/app#6": {"state": "closed"}},
            }
        )
    )
    origin = case.repository.base / "origin.git"
    case.git("init", "-q", "--bare", str(origin))
    case.git("remote", "add", "origin", str(origin))
    case.configuration["tracker"] = {"kind": "file", "path": str(tracker)}
    case.document["delivery_criteria"] = [{"id": "c1", "checks": CHECKS}]
    accepted(case)
    return case


def push(case: Case, *words: str) -> None:
    case.git("push", "-q", "origin", *(words or ("main",)))


def observed(case: Case) -> list[str]:
    return [each["state"] for each in case("deliver").document["observations"]]


class TestDelivery:
    def test_before_the_close(self, published: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        """M97: exit 2, and no target is looked at."""
        monkeypatch.setattr(
            "skill_effectiveness.acceptance.milestone.repository.Repository.remote_branch", None
        )
        for verb in (("deliver",), ("audit", "--delivery")):
            said = published(*verb)
            assert (said.code, said.document["code"], said.document["detail"]) == (
                2,
                "row_required",
                "crw.milestoneClose",
            )

    @pytest.mark.parametrize("kind", [RowType.FINAL_GATE, RowType.CLOSE])
    def test_evidence_of_two_heads(
        self, published: Case, hall: Hall, monkeypatch: pytest.MonkeyPatch, kind: RowType
    ) -> None:
        """M97: a later gate, or a close, of another head: exit 2, and no target is looked at."""
        published.close()
        body = next(row["body"] for row in reversed(published.rows()) if row["type"] == kind)
        note(published, hall, kind, **body | {"head": "0" * 40})
        monkeypatch.setattr(
            "skill_effectiveness.acceptance.milestone.repository.Repository.remote_branch", None
        )
        assert (published("deliver").code, published("deliver").document["code"]) == (2, "row_required")

    def test_a_verdict_that_is_not_there(self, published: Case, hall: Hall) -> None:
        """M97: the close names a V that the journal does not hold."""
        published.close()
        body = published.rows("crw.milestoneClose")[0]
        note(published, hall, RowType.CLOSE, **body | {"crosscheck": "sha256:0"})
        assert published("deliver").document["detail"] == "crw.crosscheck"

    def test_delivered(self, published: Case) -> None:
        """M98 M102 M105: everything passes; the close's pending value stays as history."""
        published.close()
        push(published)
        said = published("deliver")
        assert (said.code, said.document["state"]) == (0, "passed")
        assert [each["state"] for each in said.document["observations"]] == ["passed"] * 3
        (row,) = published.rows("delivery_checked")
        assert (row["head"], row["criteria"]) == (published.head, ["c1"])
        assert published.rows("crw.milestoneClose")[0]["delivery"]["state"] == "pending"
        assert published("report").document["delivery_checked"]["state"] == "passed"

    def test_a_tip_further_on(self, published: Case) -> None:
        """M99: contains the closed head."""
        published.close()
        published.repository.commit(more="1")
        push(published)
        assert observed(published)[0] == "passed"

    def test_a_tip_behind(self, published: Case) -> None:
        """M100: lacks it: pending, exit 1; an absent branch is pending too."""
        published.close()
        assert observed(published)[0] == "pending"
        push(published, "base:refs/heads/main")
        said = published("deliver")
        assert (said.code, said.document["state"]) == (1, "pending")
        assert "delivery_pending" in said.err

    def test_a_tip_that_is_not_here(self, published: Case) -> None:
        """M101: unobserved; so is a remote that cannot be read."""
        published.close()
        other = published.repository.base / "other"
        published.git("clone", "-q", str(published.repository.root), str(other))
        published.git("-C", str(other), "commit", "-q", "--allow-empty", "-m", "theirs")
        published.git("-C", str(other), "push", "-q", str(published.repository.base / "origin.git"), "main")
        assert observed(published)[0] == "unobserved"
        published.git("remote", "set-url", "origin", str(published.repository.base / "nowhere"))
        said = published("deliver")
        assert (said.code, said.document["state"]) == (1, "unobserved")

    @pytest.mark.parametrize(
        ("issue", "state"),
        [
            ({"state": "closed", "reason": "not_planned"}, "pending"),
            ({"state": "closed"}, "unobserved"),
            ({"state": "open"}, "pending"),
            ({}, "unobserved"),
        ],
    )
    def test_issues(self, published: Case, issue: dict[str, str], state: str) -> None:
        """M103 M104: not_planned passes nothing, and a missing reason is not observed."""
        published.close()
        push(published)
        tracker = published.repository.base / "tracker.json"
        tracker.write_text(
            json.dumps({"issues": {"acme/app#1": issue}, "milestones": {"acme/app#6": {"state": "open"}}})
        )
        assert observed(published) == ["passed", state, "pending"]

    def test_without_a_record(self, published: Case) -> None:
        """M106: printed alone."""
        published.close()
        before = published.types()
        assert published("deliver", "--no-record").code == 1
        assert published.types() == before

    def test_the_lock(self, published: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        """M107: held while the target is looked at, and refused when somebody else has it."""
        published.close()
        seen: list[Any] = []
        from skill_effectiveness.acceptance.milestone import repository  # noqa: PLC0415 - this test alone

        inner = repository.Repository.remote_branch

        def look(self: repository.Repository, branch: str, head: str) -> object:
            done: list[Any] = []
            other = threading.Thread(
                target=lambda: done.append(
                    self._around.fs.lstat(None, str(published.folder() / "lock.holder"))
                )
            )
            other.start()
            other.join()
            seen.append(bool(done))
            return inner(self, branch, head)

        monkeypatch.setattr(repository.Repository, "remote_branch", look)
        assert published("deliver").code == 1
        assert seen == [True]
        let_go = held(published)
        try:
            assert published("deliver").document["code"] == "run_locked"
        finally:
            let_go()

    def test_nothing_is_written(self, published: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        """M108: a remote and a tracker that refuse writes see reads alone, readback included."""
        base = published.repository.base
        origin = base / "origin.git"
        push(published)
        hook = origin / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho pushed >> {base}/written\nexit 1\n")
        hook.chmod(0o755)
        tools = base / "tools"
        tools.mkdir()
        gh = tools / "gh"
        gh.write_text(
            f'#!/bin/sh\necho "$@" >> {base}/asked\n'
            '[ "$1 $2 $3" = "api --method GET" ] || { echo "$@" >> ' + f"{base}/written; exit 1; }}\n"
            'echo \'{"state": "closed", "state_reason": "completed"}\'\n'
        )
        gh.chmod(0o755)
        from skill_effectiveness.cli import door  # noqa: PLC0415 - the environment changes within the test

        monkeypatch.setenv("PATH", f"{tools}:{published.repository.variables()['PATH']}")
        door.surroundings.cache_clear()
        published.configuration["tracker"] = {"kind": "gh"}
        published.started("r2", plan="p2")
        assert published.accept("n1", "--batch", "main", run="r2").code == 0
        assert published.close("r2").code == 0
        before, refs = content(origin), published.git("for-each-ref")
        said = published("deliver", run="r2")
        assert said.code == 0, said
        assert not (base / "written").exists()
        assert (base / "asked").read_text().splitlines() == [
            "api --method GET repos/acme/app/issues/1",
            "api --method GET repos/acme/app/milestones/6",
        ]
        assert content(origin) == before
        assert published.git("for-each-ref") == refs

    def test_a_tracker_that_is_not_there(self, published: Case) -> None:
        """M104: nothing was observed."""
        published.close()
        push(published)
        (published.repository.base / "tracker.json").unlink()
        assert observed(published) == ["passed", "unobserved", "unobserved"]
