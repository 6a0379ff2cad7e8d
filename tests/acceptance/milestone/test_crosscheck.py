"""Rounds of the crosscheck through the real commands."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.milestone.crosschecking import Crosscheck, RoundOrder
from skill_effectiveness.acceptance.milestone.errors import Stopped
from skill_effectiveness.acceptance.milestone.gating import newest_gate
from skill_effectiveness.acceptance.milestone.prior import Prior
from skill_effectiveness.acceptance.milestone.run import Site, open_run
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.words import Word
from tests.support.milestones import (
    BROKEN,
    GONE,
    KILLED,
    QUOTA,
    SILENT,
    Asked,
    answered,
    finding,
    needs,
    node,
    profile,
    unread,
    verified,
)

if TYPE_CHECKING:
    from tests.support.commands import Said
    from tests.support.milestones import Case, Hall

pytestmark = pytest.mark.slow


def void(asked: Asked) -> object:
    return unread(verified()(asked))


def stopped(said: Said) -> tuple[int, str, str]:
    return said.code, said.document["code"], said.document["reason"]


def attempts(case: Case) -> list[tuple[str, int, int, str]]:
    return [(a["name"], a["attempt"], a["asked"], a["state"]) for a in case.verdict()["passes"]]


class TestCheckouts:
    def worktree(self, case: Case, letter: str = "A") -> Path:
        return case.folder() / "crosscheck-wt" / f"m1-r1-e1-{letter}1-{case.head[:12]}"

    def prepared(self, case: Case, letter: str = "A") -> Path:
        """A checkout that was made by a round that was cut off."""
        case.started()
        place = self.worktree(case, letter)
        place.parent.mkdir(mode=0o700)
        case.git("worktree", "add", "--detach", "--quiet", str(place), case.head)
        return place

    def test_a_checkout_that_is_found_again(self, case: Case, hall: Hall) -> None:
        """M31 M36: is used, an ignored file in it included."""
        case.repository.commit(**{".gitignore": "ignored\n"})
        (self.prepared(case) / "ignored").write_text("x")
        seen: list[bool] = []

        def look(asked: Asked) -> object:
            seen.append((asked.folder / "ignored").exists())
            return verified()(asked)

        hall.script["A"] = [look]
        assert case.close().code == 0
        assert seen == [True]

    def test_a_checkout_that_moved(self, case: Case, hall: Hall) -> None:
        """M32: the round fails, the folder stays, nobody is asked."""
        place = self.prepared(case)
        case.git("-C", str(place), "checkout", "-q", "base")
        assert stopped(case.close()) == (1, "crosscheck_failed", "crosscheck_worktree_moved")
        assert place.exists()
        assert hall.asked == []

    @pytest.mark.parametrize("letter", ["A", "B"])
    @pytest.mark.parametrize(("name", "text"), [("a.py", "x = 2\n"), ("a.py", None), ("new.py", "y = 1\n")])
    def test_a_checkout_that_is_dirty(
        self, case: Case, hall: Hall, letter: str, name: str, text: str | None
    ) -> None:
        """M33 M34 M35: modified, deleted or untracked, in either checkout, before any engine starts."""
        place = self.prepared(case, letter)
        if text is None:
            (place / name).unlink()
        else:
            (place / name).write_text(text)
        assert stopped(case.close()) == (1, "crosscheck_failed", "crosscheck_worktree_dirty")
        assert place.exists()
        assert hall.asked == []

    def test_something_else_at_its_place(self, case: Case, hall: Hall) -> None:
        """M32: a foreign worktree is an integrity failure, and stays."""
        case.started()
        self.worktree(case).mkdir(mode=0o700, parents=True)
        self.worktree(case).parent.chmod(0o700)
        said = case.close()
        assert (said.code, said.document["code"]) == (4, "worktree_foreign")
        assert self.worktree(case).exists()
        assert hall.asked == []

    def test_a_relative_run_directory(self, case: Case, hall: Hall) -> None:
        """M37: the round fails before anything is written."""
        case.started(required=[["true"]]).close()
        before = sorted(path.name for path in case.folder().rglob("*"))
        asked = len(hall.asked)
        site = Site(case.store, case.repository.around, hall.bind)
        with open_run(site, "r1", "test") as run:
            gate = newest_gate(run)
            assert gate is not None
            with pytest.raises(Stopped, match="crosscheck_no_run_dir"):
                Crosscheck(run, Path("relative")).round(RoundOrder(gate))
        assert sorted(path.name for path in case.folder().rglob("*") if ".holder" not in path.name) == before
        assert len(hall.asked) == asked

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_a_prior_that_is_none(self, case: Case, hall: Hall, number: int) -> None:
        """M65: round 2 without one, round 1 with one of this run, and a third round are refused."""
        case.started(required=[["true"]])
        assert case("gate", "--make").code == 0
        site = Site(case.store, case.repository.around, hall.bind)
        with open_run(site, "r1", "test") as run:
            gate = newest_gate(run)
            assert gate is not None
            own = Verdict(
                word=Word.NEEDS_CHANGES, findings=(), engines={}, round=1, milestone="m1", plan="plan-1",
                head="0" * 40 if number == 3 else gate.head, base=gate.base, run="r1", author_families=(),
                authors=(), receipts=(), passes=(), carried=(), follow_ups=(), author_warnings=(),
            )  # fmt: skip
            prior = None if number == 2 else Prior(own)
            with pytest.raises(Stopped, match="crosscheck_prior_invalid"):
                Crosscheck(run).round(RoundOrder(gate, number, prior, gate.head))
        assert hall.asked == []

    def test_what_is_never_removed(self, case: Case, hall: Hall) -> None:
        """M64: a checkout goes after its pass; a path outside does not, even when a row names it."""
        outside = case.repository.base / "outside"
        case.git("worktree", "add", "--detach", "--quiet", str(outside), case.head)
        hall.script["B"] = [QUOTA, verified()]
        assert case.started().close().code == 3
        assert list((case.folder() / "crosscheck-wt").iterdir()) == []
        site = Site(case.store, case.repository.around, hall.bind)
        from skill_effectiveness.acceptance.milestone.words import RowType  # noqa: PLC0415 - this test alone

        with open_run(site, "r1", "test") as run:
            named = {"purpose": "crosscheck", "head": case.head, "input_digest": "x", "call": "forged-1"}
            run.note(RowType.PREPARED, checkout=str(outside), **named)
            run.note(RowType.PREPARED, checkout=f"{case.folder()}/crosscheck-wt/../../..", **named)
        assert case("resume").code == 0
        assert outside.exists()

    def test_an_engine_that_changes_its_checkout(self, case: Case, hall: Hall) -> None:
        """M61: the round fails, whatever it answered."""

        def change(asked: Asked) -> object:
            (asked.folder / "a.py").write_text("x = 3\n")
            return verified()(asked)

        hall.script["B"] = [change]
        assert stopped(case.started().close()) == (
            1,
            "crosscheck_failed",
            "crosscheck_pass_worktree_changed",
        )
        assert case.rows("crw.crosscheck") == []


class TestPrompts:
    def test_no_diff_bytes(self, case: Case, hall: Hall) -> None:
        """M39 M116: refs alone, and the request about red-first lines."""
        case.repository.commit(**{"a.py": "secret_of_the_diff = 1\n"})
        assert case.started().close().code == 0
        for each in hall.asked:
            assert "secret_of_the_diff" not in each.prompt
            assert "red-first lines" in each.prompt
        assert f"{case.first}..{case.head}" in hall.of("A")[0].prompt

    def test_the_limit(self, case: Case, hall: Hall) -> None:
        """M38: a prompt of 120 KiB is sent; one byte more is not."""
        whole = "x" * 60_000
        assert case.started(criteria=[whole, "x"]).close().code == 0
        length = max(len(hall.of(name)[0].prompt.encode()) for name in "AB")
        # The names of this run are as long as those of the next.
        room = 120 * 1024 - length
        hall.asked.clear()
        said = case.started("r2", plan="p2", criteria=[whole, "x" * (room + 1)]).close("r2")
        assert said.code == 0, said
        assert max(len(hall.of(name)[0].prompt.encode()) for name in "AB") == 120 * 1024
        hall.asked.clear()
        said = case.started("r3", plan="p3", criteria=[whole, "x" * (room + 2)]).close("r3")
        assert stopped(said) == (1, "crosscheck_failed", "crosscheck_prompt_too_large")
        assert hall.asked == []


class TestReceipts:
    def accepted(self, case: Case, **others: Any) -> Case:  # noqa: ANN401 - as `accept`
        case.document["nodes"] = [node()]
        case.started()
        said = case.accept("n1", **others)
        assert said.code == 0, said
        return case

    def hold(self, case: Case, hall: Hall) -> str:
        said = case.close()
        assert said.code == 3, said
        assert said.document["node"] == "n1"
        assert hall.asked == []
        return str(said.document["code"])

    def copy(self, case: Case) -> Path:
        return case.folder() / "receipts" / "unit-check-1.receipt"

    def test_what_is_handed_over(self, case: Case, hall: Hall) -> None:
        """M45: outside both checkouts, of the digest in the prompt; the original is not read again."""
        self.accepted(case, receipt="red: failed before\n")
        (case.repository.base / "n1.receipt").write_text("forged\n")
        assert case.close().code == 0
        prompt = hall.of("A")[0].prompt
        path, digest = re.findall(r"file: (.*)\nsha256: sha256:(.*)\n", prompt)[0]
        data = Path(path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert b"red: failed before\n" in data
        assert b"forged" not in data
        assert not any(Path(path).is_relative_to(each.folder) for each in hall.asked)
        receipt = case.verdict()["receipts"][0]
        assert (receipt["node"], receipt["state"]) == ("n1", "accepted")
        assert f"node n1: accepted {receipt['sha256']}" in prompt

    def test_missing(self, case: Case, hall: Hall) -> None:
        """M40: a hold, and nobody is asked; when it is there again, resume goes on."""
        self.accepted(case)
        data = self.copy(case).read_bytes()
        self.copy(case).unlink()
        assert self.hold(case, hall) == "crosscheck_receipt_missing"
        self.copy(case).write_bytes(data)
        self.copy(case).chmod(0o600)
        assert case("resume").code == 0

    def test_unverified(self, case: Case, hall: Hall) -> None:
        """M41: the newest unit check of the node did not verify it."""
        self.accepted(case)
        case.git("checkout", "-q", "-b", "side")
        broken = case.repository.commit(broken="1")
        case.git("checkout", "-q", "main")
        assert case.accept("n1", head=broken).document["code"] == "unit_check_failed"
        assert self.hold(case, hall) == "crosscheck_receipt_unverified"

    def test_not_copied(self, case: Case, hall: Hall) -> None:
        """M42: the row names no copy."""
        self.accepted(case)
        self.amend(case, hall, copy=None)
        assert self.hold(case, hall) == "crosscheck_receipt_not_copied"

    def amend(self, case: Case, hall: Hall, **receipt: object) -> None:
        """A unit check as an older maker may have written it."""
        from skill_effectiveness.acceptance.milestone.words import RowType  # noqa: PLC0415 - this test alone

        site = Site(case.store, case.repository.around, hall.bind)
        with open_run(site, "r1", "test") as run:
            body = dict(run.rows.all(RowType.UNIT_CHECK)[-1].body)
            run.note(RowType.UNIT_CHECK, **body | {"receipt": body["receipt"] | receipt})

    def test_mismatch(self, case: Case, hall: Hall) -> None:
        """M43: the stored copy is not what was accepted."""
        self.accepted(case)
        self.copy(case).write_bytes(b"other\n")
        assert self.hold(case, hall) == "crosscheck_receipt_mismatch"

    def test_what_does_not_hold(self, case: Case) -> None:
        """M44 M48: nobody assigned, nothing checked; unknown authors are warnings."""
        case.document["nodes"] = [node(), node("n2")]
        case.started()
        assert case.accept("n1", receipt=None).code == 0
        assert case.close().code == 0
        found = case.verdict()
        assert [(each["node"], each["state"]) for each in found["receipts"]] == [
            ("n1", "not_assigned"),
            ("n2", "no_executor"),
        ]
        assert found["author_warnings"] == ["author_model_unknown: n1", "author_model_unknown: n2"]

    def test_known_authors(self, case: Case) -> None:
        """M48: are attributed, and their family chooses no engine."""
        case.document["nodes"] = [node()]
        case.started()
        told = ("--author", "ann", "--author-model", "one-1", "--author-family", "one")
        assert case.accept("n1", *told).code == 0
        assert case.close().code == 0
        found = case.verdict()
        assert found["authors"] == [
            {"source": "unit_check", "name": "ann", "model": "one-1", "family": "one"}
        ]
        assert (found["author_families"], found["author_warnings"]) == (["one"], [])
        assert found["engines"]["A"]["family"] == "one"


class TestEngines:
    def test_no_profile(self, case: Case) -> None:
        """M46: refused, a question about the configuration."""
        case.configuration["profiles"] = []
        said = case.started().close()
        assert stopped(said) == (1, "crosscheck_refused", "crosscheck_no_engine")
        assert said.document["ask"] == "configuration"
        assert not (case.folder() / "crosscheck-wt").exists()

    def test_the_first_is_unavailable(self, case: Case, hall: Hall) -> None:
        """M47: the second judges, and V says so."""
        case.configuration["profiles"] = [profile(), profile("two")]
        hall.missing.add("one")
        assert case.started().close().code == 0
        assert {each.profile for each in hall.asked} == {"two"}
        assert case.verdict()["engines"]["B"]["profile"] == "two"

    def test_one_that_cannot_be_started_after_all(self, case: Case, hall: Hall) -> None:
        """M47 M66: another judges, and the attempts of both stay."""
        case.configuration["profiles"] = [profile(), profile("two")]
        hall.script["one/B"] = [GONE]
        assert case.started().close().code == 0
        found = case.verdict()
        assert [(a["profile"], a["state"]) for a in found["passes"] if a["name"] == "B"] == [
            ("one", "unavailable"),
            ("two", "valid"),
        ]
        assert found["engines"]["A"]["profile"] == "two"

    def test_none_is_available(self, case: Case, hall: Hall) -> None:
        """M46: refused."""
        hall.missing.add("one")
        said = case.started().close()
        assert stopped(said) == (1, "crosscheck_refused", "crosscheck_no_engine")
        assert said.document["unavailable"] == ["one"]

    def test_one_that_misses_the_planted_defect(self, case: Case, hall: Hall) -> None:
        """M111: judges nothing; the next one does; the row says why."""
        case.configuration["profiles"] = [profile(), profile("two")]
        hall.script["one/probe"] = [verified()]
        assert case.started().close().code == 0
        probes = case.rows("crw.engineProbe")
        assert [(each["profile"], each["fit"], each["why"]) for each in probes] == [
            ("one", False, "missed the defect"),
            ("two", True, ""),
        ]
        assert {each.profile for each in hall.asked if each.purpose != "probe"} == {"two"}
        assert not any(each.folder.is_relative_to(case.repository.root) for each in hall.of("probe"))
        assert not any(each.folder.exists() for each in hall.of("probe"))

    def test_a_probe_below_the_floors(self, case: Case, hall: Hall) -> None:
        """M111 M115: finding it without reading is no proof."""

        def guess(asked: Asked) -> object:
            from tests.support.milestones import USUAL  # noqa: PLC0415 - this test alone

            return answered(USUAL["probe"](asked), tokens=10)

        hall.script["probe"] = [guess]
        assert stopped(case.started().close()) == (1, "crosscheck_refused", "crosscheck_no_engine")
        assert case.rows("crw.engineProbe")[0]["why"] == "not_read: tokens"

    def test_a_probe_that_meets_quota(self, case: Case, hall: Hall) -> None:
        """M63: says nothing about the engine; a hold, and resume probes again."""
        hall.script["probe"] = [QUOTA]
        said = case.started().close()
        assert (said.code, said.document["code"]) == (3, "engine_quota")
        hall.script.clear()
        assert case("resume").code == 0
        assert [each["fit"] for each in case.rows("crw.engineProbe")] == [False, True]

    def test_two_engines(self, case: Case, hall: Hall) -> None:
        """M113: each pass runs its own, and V names both."""
        case.configuration |= {
            "profiles": [profile(), profile("two")],
            "pass_engines": {"A": "two", "B": "one"},
        }
        assert case.started().close().code == 0
        engines = case.verdict()["engines"]
        assert (engines["A"]["profile"], engines["B"]["model"]) == ("two", "one-1")
        assert [(each.purpose, each.profile) for each in hall.asked if each.purpose in "AB"] in (
            [("A", "two"), ("B", "one")],
            [("B", "one"), ("A", "two")],
        )

    def test_what_is_observed(self, case: Case, hall: Hall) -> None:
        """M48 M66: another model and a shared session are warnings; the limit is the profile's."""
        case.configuration["profiles"] = [profile(limit_seconds=77)]

        def moved(asked: Asked) -> object:
            outcome = answered(verified()(asked), model="other")
            object.__setattr__(outcome, "session_id", "shared")
            return outcome

        hall.script |= {"A": [moved], "B": [moved]}
        assert case.started().close().code == 0
        warned = [each["warnings"] for each in case.verdict()["passes"]]
        assert all("observed_model_differs" in each for each in warned)
        assert ["observed_model_differs", "same_thread"] in warned
        assert {each.seconds for each in hall.asked} == {77.0}

    def test_a_floor_stated_as_null(self, case: Case) -> None:
        """M115: lets a pass count whose commands nobody saw, and V lists it."""
        case.configuration["profiles"] = [profile(floors={"commands": None})]
        assert case.started().close().code == 0
        assert case.verdict()["engines"]["A"]["unobserved_floors"] == ["commands"]
        assert all(each["unobserved_floors"] == ["commands"] for each in case.verdict()["passes"])


class TestPasses:
    def test_both_void(self, case: Case, hall: Hall) -> None:
        """M49: no verdict at once."""
        hall.script |= {"A": [void], "B": [void]}
        said = case.started().close()
        assert stopped(said) == (1, "crosscheck_no_verdict", "")
        assert sorted(hall.purposes()) == ["A", "B"]
        assert len(said.document["attempts"]) == 2

    def test_one_void(self, case: Case, hall: Hall) -> None:
        """M50 M66: that pass alone again, on a fresh checkout; the first attempt stays in V."""
        hall.script["B"] = [void, verified()]
        assert case.started().close().code == 0
        assert [each.purpose for each in hall.asked if each.purpose in "AB"].count("A") == 1
        first, second = hall.of("B")
        assert "-B1-" in first.folder.name
        assert "-B2-" in second.folder.name
        assert [each for each in attempts(case) if each[0] == "B"] == [
            ("B", 1, 1, "not_read"),
            ("B", 2, 1, "valid"),
        ]
        assert [each["voided"] for each in case.verdict()["passes"] if each["name"] == "B"] == [True, False]

    def test_void_twice(self, case: Case, hall: Hall) -> None:
        """M51: no verdict."""
        hall.script["B"] = [void]
        said = case.started().close()
        assert stopped(said) == (1, "crosscheck_no_verdict", "")
        assert len(hall.of("B")) == 2

    def test_an_invalid_answer(self, case: Case, hall: Hall) -> None:
        """M52 M66: is asked once more, and both stand in V."""
        hall.script["A"] = ["Looks good.", verified()]
        assert case.started().close().code == 0
        assert [each for each in attempts(case) if each[0] == "A"] == [
            ("A", 1, 1, "invalid"),
            ("A", 1, 2, "valid"),
        ]

    def test_half_characters(self, case: Case, hall: Hall) -> None:
        """M52 F18: are kept as they came, and asked about once more."""
        hall.script["A"] = ['{"verdict": "\ud800"}', verified()]
        assert case.started().close().code == 0
        assert b"\xed\xa0\x80" in b"".join(
            path.read_bytes() for path in (case.folder() / "calls").glob("*/answer.txt")
        )

    def test_invalid_twice(self, case: Case, hall: Hall) -> None:
        """M52 M53: the round fails, and both answers are kept."""
        hall.script["B"] = [verified(finding())]
        assert stopped(case.started().close()) == (1, "crosscheck_failed", "crosscheck_pass_invalid")
        assert len(hall.of("B")) == 2
        answers = [
            case.folder() / "calls" / row["call"] / "answer.txt"
            for row in case.rows("completed")
            if row.get("pass") == "B"
        ]
        assert len(answers) == 2
        assert all(path.is_file() for path in answers)

    @pytest.mark.parametrize(
        ("outcome", "code"),
        [(SILENT, "engine_no_answer"), (KILLED, "engine_no_answer"), (QUOTA, "engine_quota")],
    )
    def test_what_holds(self, case: Case, hall: Hall, outcome: object, code: str) -> None:
        """M62 M63: no judgement; resume runs the round again."""
        hall.script["A"] = [outcome]
        said = case.started().close()
        assert (said.code, said.document["code"]) == (3, code)
        assert case.rows("crw.crosscheck") == []
        hall.script.clear()
        assert case("resume").code == 0
        assert len(case.rows("crw.engineProbe")) == 1

    def test_a_tool_that_failed(self, case: Case, hall: Hall) -> None:
        """M61: the round fails, also while the other pass only has no answer."""
        hall.script |= {"A": [BROKEN], "B": [SILENT]}
        assert stopped(case.started().close()) == (1, "crosscheck_failed", "crosscheck_pass_tool_failed")

    def test_needs_changes_without_findings(self, case: Case, hall: Hall) -> None:
        """M54 M74: V is needs_changes, and the executor is asked."""
        hall.script["B"] = [needs(), verified()]
        assert case.started().close().code == 0
        assert case.rows("crw.crosscheck")[0]["word"] == "needs_changes"
        assert len(hall.of("fix")) == 1

    def test_the_verb(self, case: Case, hall: Hall) -> None:
        """M54: the crosscheck alone answers with its V, also while the run is held."""
        hall.script["B"] = [QUOTA, needs(finding())]
        assert case.started().close().code == 3
        said = case("crosscheck")
        assert (said.code, said.document["code"], said.document["outcome"]) == (
            1,
            "needs_changes",
            "needs_changes",
        )
        assert case.types()[-1] == "crw.crosscheck"

    def test_what_a_call_keeps(self, case: Case) -> None:
        """M109: two rows a call, the packet and the answer beside them."""
        assert case.started().close().code == 0
        prepared, completed = case.rows("prepared"), case.rows("completed")
        assert [each["call"] for each in prepared] == [each["call"] for each in completed]
        for each in prepared:
            folder = case.folder() / "calls" / each["call"]
            assert (folder / "packet.md").stat().st_mode & 0o777 == 0o600
            assert (folder / "answer.txt").exists()
            assert each["requested"] == {"model": "one-1", "role": "reviewer"}
        assert completed[0]["observed"]["model"] == "not observed"
