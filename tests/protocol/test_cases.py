from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.cases import (
    BANK_FILES,
    AnswersFile,
    Bank,
    BankPins,
    CasesFile,
    family_of,
    load_bank,
    pins_of,
    probe_kind_of,
    probe_view_of,
)
from skill_effectiveness.protocol.document import parse_document
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.words import BankName, ProbeKind, TaskFamily, Verdict
from tests.support.frozen import CopiedFs, bank_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Document = dict[str, Any]

JUDGED_FIRST = "implementation-01"
PROBES = BANK_FILES[BankName.BIAS_PROBE]
PROBE_CASES = (frozen_folder() / PROBES.cases).read_bytes()
PROBE_ANSWERS = (frozen_folder() / PROBES.answers).read_bytes()


def refused(fs: CopiedFs, name: BankName) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        load_bank(fs, name)
    assert caught.value.code is ProtocolCode.FIXTURE_INVALID
    return caught.value


def bank_from(cases: bytes, pins: BankPins) -> Bank | ProtocolCode:
    answers = parse_document(AnswersFile, PROBE_ANSWERS, PROBES.answers)
    try:
        read = parse_document(CasesFile, cases, PROBES.cases)
        return Bank.verified(BankName.BIAS_PROBE, read, answers, pins)
    except ProtocolError as error:
        return error.code


def digest(value: object) -> str:
    """By the standard library alone: for texts and small integers, sorted compact JSON is RFC 8785."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class TestCommittedBanks:
    @pytest.mark.parametrize("name", list(BankName))
    def test_they_load_under_the_frozen_digests(self, name: BankName) -> None:
        """R1: the digests of both banks, computed here without the product, are those the protocol pins."""
        bank = load_bank(RealFs(), name)
        folder = frozen_folder()
        cases = json.loads((folder / BANK_FILES[name].cases).read_bytes())
        answers = json.loads((folder / BANK_FILES[name].answers).read_bytes())
        assert bank.known_answer_fixture_hash == digest(answers["known_answers"])
        assert bank.case_fixture_hash == digest(cases)
        gates = json.loads((folder / "fixtures/pilot-gates.json").read_bytes())
        policy = json.loads((folder / "fixtures/licence-policy.json").read_bytes())
        pinned = {
            BankName.JUDGED: (
                gates["reviewer_calibration_fixture_hash"],
                gates["reviewer_calibration_case_fixture_hash"],
            ),
            BankName.BIAS_PROBE: (policy["bias_probe_fixture_hash"], policy["bias_probe_case_fixture_hash"]),
        }[name]
        assert (bank.known_answer_fixture_hash, bank.case_fixture_hash) == pinned
        assert bank.pins == BankPins(*pinned)

    @pytest.mark.parametrize("name", list(BankName))
    def test_they_are_laid_out_for_reading(self, name: BankName) -> None:
        for file in (BANK_FILES[name].cases, BANK_FILES[name].answers):
            text = (frozen_folder() / file).read_text(encoding="utf-8")
            assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"

    def test_truth_and_ids_run_side_by_side(self) -> None:
        bank = load_bank(RealFs(), BankName.BIAS_PROBE)
        told = dict(zip(bank.case_ids, bank.truth, strict=True))
        assert told["identical-01"] is Verdict.TIE
        assert (told["swapped-01-a"], told["swapped-01-b"]) == (Verdict.A_WIN, Verdict.B_WIN)
        assert told["empty-vs-real-02"] is Verdict.B_WIN

    def test_the_text_form_of_a_bank_leaks_neither_case_nor_answer(self) -> None:
        bank = load_bank(RealFs(), BankName.BIAS_PROBE)
        assert repr(bank) == f"<Bank bias-probe: {len(bank.cases)} cases>"
        assert str(bank) == repr(bank)


class TestChangedBank:
    @pytest.mark.parametrize("name", list(BankName))
    @pytest.mark.parametrize("field", ["task", "rubric", "candidate_a", "candidate_b"])
    def test_one_changed_character_of_a_case(self, tmp_path: Path, name: BankName, field: str) -> None:
        """R2: whichever text of whichever bank changes by one character, the bank is refused."""
        fs = CopiedFs(tmp_path)

        def change(document: Document) -> None:
            document["cases"][-1][field] += "."

        fs.edit(BANK_FILES[name].cases, change)
        error = refused(fs, name)
        assert error.where == BANK_FILES[name].cases
        assert "not the bank that was frozen" in error.sentence

    @pytest.mark.parametrize("name", list(BankName))
    def test_a_changed_answer(self, tmp_path: Path, name: BankName) -> None:
        """R2: a changed answer is refused."""
        fs = CopiedFs(tmp_path)

        def change(document: Document) -> None:
            answer = document["known_answers"][0]
            answer["expected_verdict"] = "B win" if answer["expected_verdict"] != "B win" else "A win"

        fs.edit(BANK_FILES[name].answers, change)
        assert refused(fs, name).where == BANK_FILES[name].answers

    @pytest.mark.parametrize("name", list(BankName))
    def test_another_bank_that_is_valid_in_itself(self, tmp_path: Path, name: BankName) -> None:
        """R2: cases and answers reversed together, with fitting digests, are still not the frozen bank."""
        fs = CopiedFs(tmp_path)
        fs.edit(BANK_FILES[name].answers, lambda document: document["known_answers"].reverse())
        answers = json.loads(fs.path(BANK_FILES[name].answers).read_bytes())

        def change(document: Document) -> None:
            document["cases"].reverse()
            document["known_answer_fixture_hash"] = digest(answers["known_answers"])

        fs.edit(BANK_FILES[name].cases, change)
        assert refused(fs, name).where == f"{BANK_FILES[name].cases}#/known_answer_fixture_hash"

    def test_the_two_banks_exchanged(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        judged, probes = BANK_FILES[BankName.JUDGED], BANK_FILES[BankName.BIAS_PROBE]
        for here, there in ((judged.cases, probes.cases), (judged.answers, probes.answers)):
            one, other = fs.path(here).read_bytes(), fs.path(there).read_bytes()
            fs.path(here).write_bytes(other)
            fs.path(there).write_bytes(one)
        for name in BankName:
            assert "not the bank that was frozen" in refused(fs, name).sentence

    def test_another_layout_of_the_same_bank_is_the_same_bank(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        for file in (PROBES.cases, PROBES.answers):
            document = json.loads(fs.path(file).read_bytes())
            fs.path(file).write_text(json.dumps(document, sort_keys=True, indent=7))
        assert load_bank(fs, BankName.BIAS_PROBE) == load_bank(RealFs(), BankName.BIAS_PROBE)

    @given(st.integers(min_value=0, max_value=len(PROBE_CASES) - 1), st.integers(min_value=1, max_value=255))
    def test_any_changed_byte_is_refused_or_changes_nothing(self, place: int, change: int) -> None:
        """R2: one changed byte anywhere gives the typed error or, as a byte of layout, the same cases."""
        data = bytearray(PROBE_CASES)
        data[place] ^= change
        frozen = load_bank(RealFs(), BankName.BIAS_PROBE)
        assert bank_from(bytes(data), frozen.pins) in (frozen, ProtocolCode.FIXTURE_INVALID)


def _set(member: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document[member] = value

    return change


def _drop(member: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        del document[member]

    return change


def _in_first(rows: str, change: Callable[[Document], None]) -> Callable[[Document], None]:
    return lambda document: change(document[rows][0])


class TestMalformedFiles:
    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (_set("schema_version", 2), "#/schema_version"),
            (_set("schema_version", value=True), "#/schema_version"),
            (_set("schema_version", "1"), "#/schema_version"),
            (_drop("known_answer_fixture_hash"), "known_answer_fixture_hash"),
            (_set("known_answer_fixture_hash", "0" * 64), "#/known_answer_fixture_hash"),
            (_set("cases", []), "#/cases"),
            (_set("cases", {}), "#/cases"),
            (_set("notes", "none"), "#/notes"),
            (_in_first("cases", _drop("rubric")), "rubric"),
            (_in_first("cases", _set("rubric", "")), "#/cases/0/rubric"),
            (_in_first("cases", _set("task", "")), "#/cases/0/task"),
            (_in_first("cases", _set("candidate_a", None)), "#/cases/0/candidate_a"),
            (_in_first("cases", _set("expected_verdict", "tie")), "#/cases/0/expected_verdict"),
            (_in_first("cases", _set("case_id", "Identical-01")), "#/cases/0/case_id"),
            (_in_first("cases", _set("case_id", 1)), "#/cases/0/case_id"),
        ],
    )
    def test_cases(self, tmp_path: Path, change: Callable[[Document], None], told: str) -> None:
        fs = CopiedFs(tmp_path)
        fs.edit(PROBES.cases, change)
        error = refused(fs, BankName.BIAS_PROBE)
        assert error.where.startswith(PROBES.cases)
        assert told in str(error)

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (_set("schema_version", 0), "#/schema_version"),
            (_set("known_answers", []), "#/known_answers"),
            (_set("author", "nobody"), "#/author"),
            (_in_first("known_answers", _set("expected_verdict", "A")), "#/known_answers/0/expected_verdict"),
            (
                _in_first("known_answers", _set("expected_verdict", "TIE")),
                "#/known_answers/0/expected_verdict",
            ),
            (
                _in_first("known_answers", _set("expected_verdict", None)),
                "#/known_answers/0/expected_verdict",
            ),
            (_in_first("known_answers", _drop("expected_verdict")), "expected_verdict"),
            (_in_first("known_answers", _set("why", "")), "#/known_answers/0/why"),
        ],
    )
    def test_answers(self, tmp_path: Path, change: Callable[[Document], None], told: str) -> None:
        fs = CopiedFs(tmp_path)
        fs.edit(PROBES.answers, change)
        error = refused(fs, BankName.BIAS_PROBE)
        assert error.where.startswith(PROBES.answers)
        assert told in str(error)

    @pytest.mark.parametrize("name", list(BankName))
    def test_a_missing_file(self, tmp_path: Path, name: BankName) -> None:
        for file in (BANK_FILES[name].cases, BANK_FILES[name].answers):
            fs = CopiedFs(tmp_path / file.replace("/", "-"))
            fs.path(file).unlink()
            assert refused(fs, name).where == file


class TestIdsOfABank:
    def test_a_repeated_id(self) -> None:
        with pytest.raises(ProtocolError, match="case ids occur twice: plan-01"):
            bank_of([("plan-01", Verdict.TIE, "a", "b"), ("plan-01", Verdict.TIE, "c", "d")])

    @pytest.mark.parametrize("wrong", ["missing", "extra", "order", "other"])
    def test_answers_that_do_not_name_the_cases_in_order(self, wrong: str) -> None:
        bank = bank_of([("plan-01", Verdict.TIE, "a", "b"), ("plan-02", Verdict.A_WIN, "c", "d")])
        first, second = bank.known_answers
        answers = {
            "missing": (first,),
            "extra": (first, second, second),
            "order": (second, first),
            "other": (first, second.model_copy(update={"case_id": "plan-03"})),
        }[wrong]
        with pytest.raises(ProtocolError, match="each once, in the same order") as caught:
            dataclasses.replace(bank, known_answers=answers)
        assert caught.value.where == "fixtures/reviewer-calibration-known-answers.json"

    @pytest.mark.parametrize("case_id", ["padded-01", "plan-01-a", "plans-01", "shared-gate-01"])
    def test_an_id_of_no_task_family_in_the_judged_bank(self, case_id: str) -> None:
        with pytest.raises(ProtocolError, match="<family>-<nn>"):
            bank_of([(case_id, Verdict.TIE, "a", "b")])

    @pytest.mark.parametrize("case_id", ["plan-01", "swapped-01", "padded-01-a", "crlf_only-01"])
    def test_an_id_of_no_kind_among_the_probes(self, case_id: str) -> None:
        with pytest.raises(ProtocolError, match="<kind>-<nn>"):
            bank_of([(case_id, Verdict.TIE, "a", "b")], name=BankName.BIAS_PROBE)


class TestABankIsAlwaysVerified:
    def test_neither_digest_can_be_claimed(self) -> None:
        bank = bank_of([("plan-01", Verdict.TIE, "a", "b")])
        with pytest.raises(ProtocolError, match="not the bank that was frozen") as caught:
            dataclasses.replace(bank, known_answer_fixture_hash="sha256:" + 64 * "0")
        assert caught.value.where == "fixtures/reviewer-calibration-known-answers.json"
        with pytest.raises(ProtocolError, match="not the bank that was frozen") as caught:
            dataclasses.replace(bank, case_fixture_hash="sha256:" + 64 * "0")
        assert caught.value.where == "fixtures/reviewer-calibration-cases.json"

    def test_it_cannot_be_changed_afterwards(self) -> None:
        bank = bank_of([("plan-01", Verdict.TIE, "a", "b")])
        with pytest.raises(dataclasses.FrozenInstanceError):
            bank.cases = ()  # type: ignore[misc] # the point of the test
        with pytest.raises(ValueError, match="frozen"):
            bank.cases[0].candidate_a = "c"  # type: ignore[misc] # the point of the test

    def test_a_cases_file_that_states_another_digest_than_the_pins_is_refused(self) -> None:
        bank = bank_of([("plan-01", Verdict.TIE, "a", "b")])
        cases = CasesFile(schema_version=1, known_answer_fixture_hash="sha256:" + 64 * "0", cases=bank.cases)
        answers = AnswersFile(schema_version=1, known_answers=bank.known_answers)
        with pytest.raises(ProtocolError, match="not the bank that was frozen"):
            Bank.verified(BankName.JUDGED, cases, answers, bank.pins)


class TestDigests:
    def test_known_answer(self) -> None:
        """R1: the two digests of a bank of one case, preimages written out by hand."""
        bank = bank_of([("plan-01", Verdict.A_WIN, "é", "\r\n")], task="t", rubric="r")
        answers = b'[{"case_id":"plan-01","expected_verdict":"A win"}]'
        known = "sha256:" + hashlib.sha256(answers).hexdigest()
        case = '{"candidate_a":"é","candidate_b":"\\r\\n","case_id":"plan-01","rubric":"r","task":"t"}'
        whole = f'{{"cases":[{case}],"known_answer_fixture_hash":"{known}","schema_version":1}}'
        assert bank.pins == BankPins(known, "sha256:" + hashlib.sha256(whole.encode()).hexdigest())

    def test_what_a_cases_file_states_does_not_enter_its_pins(self) -> None:
        bank = bank_of([("plan-01", Verdict.A_WIN, "a", "b")])
        cases = CasesFile(schema_version=1, known_answer_fixture_hash="sha256:" + 64 * "f", cases=bank.cases)
        assert pins_of(cases, AnswersFile(schema_version=1, known_answers=bank.known_answers)) == bank.pins


class TestNames:
    @pytest.mark.parametrize("family", list(TaskFamily))
    def test_family(self, family: TaskFamily) -> None:
        assert family_of(f"{family.value}-07") is family

    @pytest.mark.parametrize("kind", [kind for kind in ProbeKind if kind is not ProbeKind.SWAPPED])
    def test_kind(self, kind: ProbeKind) -> None:
        assert probe_kind_of(f"{kind.value}-12") is kind
        assert probe_view_of(f"{kind.value}-12") is None

    def test_views_of_a_swapped_pair(self) -> None:
        assert probe_kind_of("swapped-01-a") is ProbeKind.SWAPPED
        assert [probe_view_of("swapped-01-a"), probe_view_of("swapped-01-b")] == ["a", "b"]

    @pytest.mark.parametrize(
        "bad", ["", "plan", "plan-1", "plan-001", "plan-01\n", "plan-\u0660\u0661", "Plan-01", "x plan-01"]
    )
    def test_bad_ids_are_typed_errors(self, bad: str) -> None:
        for read in (family_of, probe_kind_of, probe_view_of):
            with pytest.raises(ProtocolError) as caught:
                read(bad)
            assert caught.value.code is ProtocolCode.FIXTURE_INVALID
