"""Closing: dry, real, refused, cut off, twice at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.outcome import closure
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.issues import close_at_forge
from tests.support.outcomes import BODY, CRITERION, ISSUE
from tests.support.private import content, imprint

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.outcome.closure import Closing
    from tests.support.outcomes import Bench


def refused(bench: Bench, *, execute: bool = True) -> str:
    with pytest.raises(OutcomeError) as caught:
        bench.close(execute=execute)
    return caught.value.message


@pytest.fixture
def ready(bench: Bench) -> Bench:
    """A bench with an accepted claim about an issue at the forge."""
    bench.at_forge = True
    bench.submit(bench.good())
    return bench


class TestDry:
    def test_it_changes_nothing(self, ready: Bench) -> None:
        """O76: neither at the forge nor in the store, not even a lock or a time."""
        before = imprint(ready.store)
        found = ready.close(execute=False)
        assert (found.may, found.closed, found.row) == (True, False, None)
        assert imprint(ready.store) == before
        assert ready.forge.closes == 0

    def test_it_judges_afresh(self, ready: Bench) -> None:
        """O76: policy, edges and issue as they are now."""
        ready.policy(verified_closing_enabled=False)
        before = content(ready.store)
        found = ready.close(execute=False)
        assert not found.may
        assert found.reasons == ("closure_withheld:repository_has_not_opted_in",)
        assert content(ready.store) == before

    def test_never_graded(self, bench: Bench) -> None:
        bench.good()
        assert refused(bench, execute=False) == "claim_not_graded"
        assert refused(bench) == "claim_not_graded"


class TestAfresh:
    def test_agents_disabled_meanwhile(self, ready: Bench) -> None:
        ready.policy(agents_enabled=False)
        found = ready.close()
        assert (found.state.value, found.may) == ("not_applicable", False)
        assert ready.forge.closes == 0
        assert ready.row().state.value == "not_applicable"

    def test_the_issue_asks_for_more_by_now(self, ready: Bench) -> None:
        ready.forge.put(ISSUE, BODY.replace(CRITERION, f"{CRITERION}\n- [ ] And more"))
        found = ready.close()
        assert found.reasons == ("unevidenced_criterion:And more",)
        assert ready.forge.closes == 0

    def test_contradicted_meanwhile(self, ready: Bench) -> None:
        ready.edge("build", "failed")
        assert ready.close().reasons == ("closure_withheld:contradicting_evidence",)
        assert ready.forge.closes == 0

    def test_nothing_new_is_not_graded_again(self, ready: Bench) -> None:
        ready.close()
        assert ready.rows("claim_graded") == 1


class TestExecuted:
    def test_once(self, ready: Bench) -> None:
        """O68: a second close finds it done."""
        assert ready.close().closed
        row = ready.row()
        again = ready.close()
        assert (again.closed, again.may) == (True, True)
        assert ready.row() == row
        assert (ready.rows("issue_closed"), ready.rows("close_intended"), ready.forge.closes) == (1, 1, 1)
        assert ready.close(execute=False).closed

    def test_it_never_reopens(self, ready: Bench) -> None:
        """O68: a person opened it again; this claim has had its close."""
        ready.close()
        ready.forge.put(ISSUE, BODY)
        assert ready.close().closed
        assert ready.forge.closes == 1

    def test_another_claim_comes_too_late(self, ready: Bench) -> None:
        """O47: the issue is closed, by another claim."""
        ready.close()
        ready.attempt(attempt_id="attempt-2")
        judged = ready.submit(ready.check(), attempt="attempt-2")
        assert judged.grading.reasons == ("closure_withheld:issue_already_closed",)
        assert not ready.close(attempt="attempt-2").may
        assert ready.rows("issue_closed") == 1

    def test_a_file_is_closed_by_the_row(self, bench: Bench) -> None:
        """O30: no forge is asked."""
        bench.submit(bench.good())
        assert bench.close(execute=False).may
        assert bench.close().closed
        assert bench.forge.calls == []
        assert (bench.rows("issue_closed"), bench.rows("close_intended")) == (1, 0)
        bench.attempt(attempt_id="attempt-2")
        judged = bench.submit(bench.check(), attempt="attempt-2")
        assert judged.grading.reasons == ("closure_withheld:issue_already_closed",)

    def test_a_file_that_a_person_closed(self, bench: Bench) -> None:
        """O47: by a commit that names it."""
        edge = bench.good()
        bench.reference()
        assert bench.submit(edge).grading.reasons == ()
        bench.reference(closed_by_user_id="bob")
        judged = bench.submit(edge)
        assert judged.grading.reasons == ("closure_withheld:issue_already_closed",)

    def test_a_file_never_speaks_for_an_issue_at_the_forge(self, ready: Bench) -> None:
        """O68: nor the other way round; a row alone closes nothing that is open elsewhere."""
        ready.at_forge = False
        for execute in (True, False):
            assert refused(ready, execute=execute) == "record_invalid at /issue"
        with pytest.raises(OutcomeError, match="record_invalid"):
            ready.submit(*ready.ledger().edges.values())
        assert ready.rows("issue_closed") == 0


class TestUnconfirmed:
    @pytest.mark.parametrize(
        ("mode", "observed"), [("close", "open"), ("angry", "closed completed"), ("ignore", "open")]
    )
    def test_a_close_that_nobody_can_confirm(self, ready: Bench, mode: str, observed: str) -> None:
        """O80: refused, done but said to have failed, said to be done but not."""
        ready.forge.behave(mode)
        assert refused(ready) == f"close_unconfirmed observed {observed}"
        assert (ready.rows("close_intended"), ready.rows("issue_closed")) == (1, 0)
        assert not ready.row().closed

    def test_for_another_reason(self, ready: Bench) -> None:
        """O80: closed, but not as completed."""
        ready.forge.behave("", reason="NOT_PLANNED")
        assert refused(ready) == "close_unconfirmed observed closed not_planned"
        assert ready.rows("issue_closed") == 0

    def test_the_next_one_reports_and_claims_nothing(self, ready: Bench) -> None:
        """O80: once; from then on the issue as it is decides."""
        ready.forge.behave("close")
        refused(ready)
        ready.forge.behave("")
        before = content(ready.store)
        assert refused(ready, execute=False) == "close_unconfirmed observed open"
        assert content(ready.store) == before
        assert refused(ready) == "close_unconfirmed observed open"
        assert (ready.rows("close_unconfirmed"), ready.forge.closes) == (1, 1)
        assert ready.close().closed
        assert (ready.rows("close_intended"), ready.forge.closes) == (2, 2)

    def test_closed_by_nobody_knows_whom(self, ready: Bench) -> None:
        """O80: it is never claimed afterwards."""
        ready.forge.behave("angry")
        refused(ready)
        ready.forge.put(ISSUE, BODY, "CLOSED", "COMPLETED")
        assert refused(ready) == "close_unconfirmed observed closed completed"
        assert ready.close().reasons == ("closure_withheld:issue_already_closed",)
        assert ready.rows("issue_closed") == 0

    def test_offline_afterwards(self, ready: Bench) -> None:
        """O80: the intent is kept until the issue can be read."""
        ready.forge.behave("close")
        refused(ready)
        ready.forge.behave("offline")
        assert refused(ready) == "close_unconfirmed observed unknown"
        assert ready.rows("close_unconfirmed") == 0
        ready.forge.behave("")
        assert refused(ready) == "close_unconfirmed observed open"

    def test_another_claim_of_the_issue_hears_of_it(self, ready: Bench) -> None:
        """O80: whoever closes next reads the issue first."""
        ready.forge.behave("close")
        refused(ready)
        ready.forge.behave("")
        ready.attempt(attempt_id="attempt-2")
        ready.submit(ready.check(), attempt="attempt-2")
        with pytest.raises(OutcomeError, match="close_unconfirmed"):
            ready.close(attempt="attempt-2")

    @pytest.mark.parametrize("mode", ["offline", "nonsense"])
    def test_unreadable_before(self, ready: Bench, mode: str) -> None:
        """Nothing is begun."""
        ready.forge.behave(mode)
        before = content(ready.store)
        assert refused(ready) == "issue_unreadable"
        assert content(ready.store) == before

    def test_cut_off_after_the_intent(self, ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """O80: whatever ends the program there."""
        with monkeypatch.context() as patched:
            patched.setattr(closure, "close_at_forge", _die)
            with pytest.raises(KeyboardInterrupt):
                ready.close()
        assert refused(ready) == "close_unconfirmed observed open"
        assert ready.rows("issue_closed") == 0

    def test_cut_off_after_the_close(self, ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """O80: the forge has closed it and no row says so."""
        with monkeypatch.context() as patched:
            patched.setattr(closure, "_observed", _die)
            with pytest.raises(KeyboardInterrupt):
                ready.close()
        assert ready.forge.state() == "CLOSED"
        assert refused(ready) == "close_unconfirmed observed closed completed"
        assert ready.close().reasons == ("closure_withheld:issue_already_closed",)
        assert ready.rows("issue_closed") == 0


def _die(*_args: object) -> None:
    raise KeyboardInterrupt


def test_two_at_once(ready: Bench) -> None:
    """O77: one closes, the other finds it closed."""
    found: list[Closing | OutcomeError] = []

    def one() -> None:
        try:
            found.append(ready.close())
        except OutcomeError as error:
            found.append(error)

    others = [threading.Thread(target=one) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert all(not isinstance(each, OutcomeError) and each.closed for each in found), found
    assert (ready.rows("issue_closed"), ready.forge.closes) == (1, 1)


def test_a_full_disk_after_the_forge_closed(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """O80: the close happened and cannot be written: it is not claimed, now or later."""
    real = close_at_forge

    def closes_and_fills(*args: object) -> bool:
        done = real(*args)  # type: ignore[arg-type] # as they came
        monkeypatch.setattr("skill_effectiveness.evidence.journal.Journal.append", _no_space)
        return done

    def _no_space(*_args: object, **_named: object) -> None:
        raise OutcomeError(OutcomeCode.CLAIM_NOT_RECORDED, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(closure, "close_at_forge", closes_and_fills)
        assert refused(ready) == "claim_not_recorded"
    monkeypatch.undo()
    assert refused(ready) == "close_unconfirmed observed closed completed"
