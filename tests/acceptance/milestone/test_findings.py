"""Findings, answers and V."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.milestone.answers import (
    ANSWER_SCHEMA,
    Answer,
    AnswerInvalidError,
    Asked,
    read_answer,
)
from skill_effectiveness.acceptance.milestone.findings import Finding, merge
from skill_effectiveness.acceptance.milestone.verdict import (
    AttemptRecord,
    RoundIdentity,
    Verdict,
    make_verdict,
)
from skill_effectiveness.acceptance.milestone.words import Impact, PassName, PassState, Severity, Word
from tests.support.milestones import finding

IMPACTS = [None, *(impact.value for impact in Impact)]


def made(**members: Any) -> Finding:  # noqa: ANN401 - members of a finding
    return Finding.model_validate_json(json.dumps(finding(**members)))


def attempt(name: str, word: str) -> AttemptRecord:
    return AttemptRecord(
        name=PassName(name), attempt=1, asked=1, call=f"call-{name}", profile="one", state=PassState.VALID,
        verdict=Word(word), reason="", voided=False, model="m", family="f", observed_model="m", commands=1,
        tokens=1, milliseconds=1, unobserved_floors=(), warnings=(),
    )  # fmt: skip


def verdict(a: list[Finding], b: list[Finding], words: tuple[str, str] = ("verified", "verified")) -> Verdict:
    about = RoundIdentity(
        round=1, milestone="m1", plan="p", head="a" * 40, base="b" * 40, run="r1", authors=(), receipts=()
    )
    answers = {
        PassName.A: Answer(verdict=Word(words[0]), findings=tuple(a)),
        PassName.B: Answer(verdict=Word(words[1]), findings=tuple(b)),
    }
    return make_verdict(about, answers, [attempt("A", words[0]), attempt("B", words[1])])


class TestBlocking:
    @pytest.mark.parametrize("severity", ["P0", "P1", "P2"])
    @pytest.mark.parametrize("impact", IMPACTS)
    def test_severities_that_block(self, severity: str, impact: str | None) -> None:
        """M55: under any impact, P2 with minor_separable included."""
        assert made(severity=severity, impact=impact).blocks

    @pytest.mark.parametrize("impact", IMPACTS)
    def test_the_least_severity(self, impact: str | None) -> None:
        """M56 M57 M58: P3 blocks by every impact but minor_separable and none."""
        assert made(severity="P3", impact=impact).blocks is (impact not in {None, "minor_separable"})

    def test_an_empty_impact_is_no_impact(self) -> None:
        """M56: the empty text is invalid, not taken for null."""
        with pytest.raises(ValueError, match="impact"):
            made(impact="")


class TestMerge:
    def test_two_copies(self) -> None:
        """M59: the higher severity, the blocking impact, the first text, file and line."""
        first = made(name="x", severity="P3", impact=None, text="first", file="one", line=1)
        second = made(name="x", severity="P2", impact="core_function", text="second", file="two", line=2)
        (merged,) = merge([first], [second])
        assert (merged.severity, merged.impact) == (Severity.P2, Impact.CORE_FUNCTION)
        assert (merged.text, merged.file, merged.line) == ("first", "one", 1)

    def test_a_blocking_impact_stays(self) -> None:
        """M59: the first of two that block; one that does not block displaces nothing."""
        first, second = made(name="x", impact="safety_or_data"), made(name="x", impact="core_function")
        assert merge([first], [second])[0].impact is Impact.SAFETY_OR_DATA
        minor = made(name="x", impact="minor_separable")
        assert merge([minor], [second])[0].impact is Impact.CORE_FUNCTION
        assert merge([first], [minor])[0].impact is Impact.SAFETY_OR_DATA
        assert merge([made(name="x", impact=None)], [minor])[0].impact is None

    @given(
        st.lists(
            st.tuples(st.sampled_from("xyz"), st.sampled_from(list(Severity)), st.sampled_from(IMPACTS))
        ),
        st.lists(
            st.tuples(st.sampled_from("xyz"), st.sampled_from(list(Severity)), st.sampled_from(IMPACTS))
        ),
    )
    def test_merging_never_makes_a_finding_lighter(
        self, a: list[tuple[str, Severity, str | None]], b: list[tuple[str, Severity, str | None]]
    ) -> None:
        """M59 M60: an id blocks after merging exactly if a copy of it blocked before."""
        one = [made(name=i, severity=s.value, impact=p) for i, s, p in {e[0]: e for e in a}.values()]
        two = [made(name=i, severity=s.value, impact=p) for i, s, p in {e[0]: e for e in b}.values()]
        blocking = {each.id for each in (*one, *two) if each.blocks}
        merged = merge(one, two)
        assert {each.id for each in merged if each.blocks} == blocking
        assert {each.id for each in merged} == {each.id for each in (*one, *two)}


class TestVerdict:
    def test_both_words_and_no_blocking_finding(self) -> None:
        """M57 M58: what does not block is carried, by id and as a line."""
        minor = made(name="B-1", severity="P3", impact="minor_separable", file="a.py", line=3, text="Rename.")
        bare = made(name="B-2", severity="P3", impact=None, text="Typo.")
        found = verdict([], [minor, bare])
        assert (found.word, found.carried) == (Word.VERIFIED, ("B-1", "B-2"))
        assert found.follow_ups == (
            "B-1 [P3/minor_separable] a.py:3 Rename.",
            "B-2 [P3/none] a.py:1 Typo.",
        )

    def test_a_word_without_findings(self) -> None:
        """M54: needs_changes of one pass makes V needs_changes."""
        assert verdict([], [], ("verified", "needs_changes")).word is Word.NEEDS_CHANGES
        assert verdict([], [], ("needs_changes", "verified")).word is Word.NEEDS_CHANGES

    @pytest.mark.parametrize(("severity", "impact"), [("P2", "minor_separable"), ("P3", "criterion_unmet")])
    def test_a_finding_that_blocks(self, severity: str, impact: str) -> None:
        """M55 M56: V needs changes, and nothing is carried."""
        found = verdict([], [made(severity=severity, impact=impact)], ("verified", "needs_changes"))
        assert (found.word, found.carried) == (Word.NEEDS_CHANGES, ())
        assert [each.id for each in found.blocking] == ["B-1"]

    def test_the_digest_is_of_all_of_it(self) -> None:
        """M80: another V has another digest."""
        assert verdict([], []).digest == verdict([], []).digest
        assert verdict([], []).digest != verdict([], [made(severity="P3", impact=None)]).digest


class TestAnswers:
    REFS = ("c1", "c2", "d1")

    def read(self, value: object, name: str = "B", prior: tuple[str, ...] = ()) -> Answer:
        text = value if isinstance(value, str) else json.dumps(value)
        return read_answer(text, Asked(PassName(name), self.REFS, prior))

    def refused(self, value: object, name: str = "B", prior: tuple[str, ...] = ()) -> str:
        with pytest.raises(AnswerInvalidError) as caught:
            self.read(value, name, prior)
        return str(caught.value)

    def answer(self, word: str = "verified", *findings: object, coverage: object = ()) -> dict[str, object]:
        return {"verdict": word, "coverage": list(coverage), "findings": list(findings)}  # type: ignore[call-overload]

    def covered(self, **unmet: bool) -> list[dict[str, object]]:
        return [{"ref": ref, "met": unmet.get(ref, True), "evidence": "e"} for ref in self.REFS]

    @pytest.mark.parametrize(
        "text",
        ["", "Looks good.", "[]", "{}", '{"verdict":"verified","findings":[],"extra":1}', '{"verdict":1}'],
    )
    def test_texts_that_are_no_answer(self, text: str) -> None:
        """M52: they are invalid, whatever they say."""
        assert "not the asked JSON object" in self.refused(text)

    @pytest.mark.parametrize("text", ['{"verdict": "\ud800"}', "\udfff"])
    def test_half_characters(self, text: str) -> None:
        """M52 F18: are no answer, and no end of the run either."""
        assert "not the asked JSON object" in self.refused(text)

    def test_a_nul(self) -> None:
        """M52: cannot be part of a prompt that is an argument."""
        assert "/findings/0/text" in self.refused(self.answer("verified", finding(text="a\0b")))

    def test_an_answer_that_is_too_large(self) -> None:
        """M52: is none; a row could not hold it."""
        minor = [finding(f"B-{n}", severity="P3", impact=None, text="x" * 2000) for n in range(40)]
        assert "larger than 64 KiB" in self.refused(self.answer("verified", *minor))
        assert self.read(self.answer("verified", *minor[:20])).findings

    def test_verified_over_a_blocking_finding(self) -> None:
        """M53: invalid; code corrects no word."""
        assert "verified over" in self.refused(self.answer("verified", finding()))
        minor = finding(severity="P3", impact="minor_separable")
        assert self.read(self.answer("verified", minor)).verdict is Word.VERIFIED

    def test_coverage_is_of_pass_a(self) -> None:
        """M53: every ref exactly once, in pass A alone."""
        assert self.read(self.answer(coverage=self.covered()), "A").verdict is Word.VERIFIED
        assert "exactly once" in self.refused(self.answer(coverage=self.covered()[:-1]), "A")
        assert "exactly once" in self.refused(self.answer(coverage=self.covered() * 2), "A")
        assert "belongs to pass A" in self.refused(self.answer(coverage=self.covered()), "B")

    def test_an_unmet_ref_needs_a_finding(self) -> None:
        """M53: that names it; another id that begins alike does not."""
        unmet = self.covered(c1=False)
        assert "c1 is unmet" in self.refused(self.answer("needs_changes", coverage=unmet), "A")
        other = finding("A-1", text="c12 is not met.")
        assert "c1 is unmet" in self.refused(self.answer("needs_changes", other, coverage=unmet), "A")
        naming = finding("A-1", text="c1 is not met.")
        assert self.read(self.answer("needs_changes", naming, coverage=unmet), "A").findings

    def test_ids(self) -> None:
        """M112: a new id begins with its pass; a prior one is accepted from both."""
        assert "begin with its pass" in self.refused(self.answer("needs_changes", finding("A-1")))
        assert "begin with its pass" in self.refused(self.answer("needs_changes", finding("x")))
        assert "one id" in self.refused(self.answer("needs_changes", finding("B-1"), finding("B-1")))
        assert self.read(self.answer("needs_changes", finding("A-1")), "B", ("A-1",)).findings
        covering = self.answer("needs_changes", finding("B-9"), coverage=self.covered())
        assert self.read(covering, "A", ("B-9",)).findings

    def test_the_schema_is_strict(self) -> None:
        """M52: every object demands all its members and takes no others."""

        def objects(schema: object) -> list[dict[str, Any]]:
            if isinstance(schema, dict):
                here = [schema] if schema.get("type") == "object" else []
                return here + [each for value in schema.values() for each in objects(value)]
            return [each for value in schema for each in objects(value)] if isinstance(schema, list) else []

        found = objects(ANSWER_SCHEMA)
        assert len(found) == 3
        for each in found:
            assert each["additionalProperties"] is False
            assert sorted(each["required"]) == sorted(each["properties"])
