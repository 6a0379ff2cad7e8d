"""Tables of a study from its journal and files."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.analysis.consistency import check_tables
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.evidence_reading import RootReader
from skill_effectiveness.studies.results_making import analysis_plan
from skill_effectiveness.studies.state import SlotState
from skill_effectiveness.studies.table_building import build_tables, reviewer_names
from skill_effectiveness.studies.tables import Tables
from skill_effectiveness.studies.trial_rows import StudyEvidence, trial_rows
from skill_effectiveness.studies.words import EndClass, GradeState
from skill_effectiveness.trials.grades import grade_hash, parse_grade
from tests.support.judged_studies import planned, taken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.judged_studies import JudgedStudy


class FolderReader:
    """The files of a study in any folder, private or not: as a stranger has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str) -> bytes | None:
        """See `StudyReader`."""
        file = self.folder / path
        return file.read_bytes() if file.is_file() else None

    def names(self, folder: str) -> tuple[str, ...]:
        """See `StudyReader`."""
        place = self.folder / folder
        return tuple(sorted(path.name for path in place.iterdir())) if place.is_dir() else ()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where studies that were run lie for all tests of this file."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def study(shelf: Path, tmp_path: Path) -> Iterator[JudgedStudy]:
    """Three tasks with two samples and two reviewers, judged."""
    with taken(shelf, tmp_path, judged=True, models=("sim-1", "sim-2"), tasks=3, samples=2) as made:
        yield made


def evidence_of(study: JudgedStudy) -> StudyEvidence:
    """Everything, with a reader that needs no open root."""
    with study.opened() as (opened, journal):
        return StudyEvidence(
            opened.plan,
            opened.frozen().tasks,
            opened.slots(),
            journal.state,
            FolderReader(study.place.folder / study.out),
        )


def refused(evidence: StudyEvidence) -> tuple[StudyCode, str]:
    with pytest.raises(StudyError) as caught:
        build_tables(evidence)
    return caught.value.code, caught.value.where


def changed(evidence: StudyEvidence, slot: int, **changes: Any) -> StudyEvidence:  # noqa: ANN401 - fields of a slot
    """The same with another state of one slot."""
    slots = dict(evidence.state.slots)
    slots[slot] = replace(evidence.state.slot(slot), **changes)
    return replace(evidence, state=replace(evidence.state, slots=slots))


class TestWhole:
    def test_tables_agree_with_each_other(self, study: JudgedStudy) -> None:
        """S58: every row of trials, pairs and judgements is one of this plan, in both forms."""
        evidence = evidence_of(study)
        tables = build_tables(evidence)
        order = list(dict.fromkeys(slot.task_id for slot in evidence.slots))
        check_tables(tables, analysis_plan(evidence.plan, order))
        assert (len(tables.trials), len(tables.pairs)) == (12, 6)
        assert Counter(row.canary for row in tables.judgements)[False] == 24
        for form in ("csv", "parquet"):
            data = {name: getattr(tables, form)(name) for name in ("trials", "pairs", "judgements")}
            assert Tables.of(**data, form=form) == tables

    def test_a_copy_elsewhere_gives_the_same(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S58 S57: nothing hangs on the place, the key or what is private."""
        own = study.tables()
        shutil.copytree(tmp_path / "taken" / "R", tmp_path / "copy")
        for gone in ("private", "inputs", "blinding.key"):
            path = tmp_path / "copy" / gone
            path.unlink() if path.is_file() else shutil.rmtree(path)
        evidence = replace(evidence_of(study), reader=FolderReader(tmp_path / "copy"))
        assert build_tables(evidence) == own

    def test_positions_are_those_of_the_treated_side(self, study: JudgedStudy) -> None:
        """S38: each pair is seen once with the treatment as A and once as B, by each reviewer."""
        seen = Counter(
            (row.pair_id, row.licence_id, row.position) for row in study.tables().judgements if not row.canary
        )
        assert set(seen.values()) == {1}
        assert Counter(position for _, _, position in seen) == {0: 12, 1: 12}

    def test_preferences_follow_the_rewards(self, study: JudgedStudy) -> None:
        """S38: reviewers that never err say what the rewards say, whichever side was shown first."""
        for pair in study.tables().pairs:
            assert pair.difference is not None
            expected = "tie" if not pair.difference else "win" if pair.difference > 0 else "loss"
            assert (pair.preference, pair.votes, pair.safety) == (expected, 4, False)

    def test_guesses_stand_beside_their_votes(self, study: JudgedStudy) -> None:
        """S39: one for each pair and reviewer."""
        guessed = [(row.pair_id, row.licence_id) for row in study.tables().judgements if row.guess]
        assert len(guessed) == len(set(guessed)) == 12

    def test_two_reviewers_of_one_family_are_two(self, study: JudgedStudy) -> None:
        """S58: their licences tell them apart."""
        plan = evidence_of(study).plan
        names = reviewer_names(plan)
        assert sorted(names.values()) == sorted(f"simulated/{name[:8]}" for name in names)
        alone = plan.model_copy(update={"reviewers": plan.reviewers[:1]})
        assert list(reviewer_names(alone).values()) == ["simulated"]


class TestTrials:
    def test_a_row(self, study: JudgedStudy) -> None:
        """S58: journal, grade, exit and events of one slot."""
        evidence = evidence_of(study)
        row, state = trial_rows(evidence)[0], evidence.state.slot(1)
        slot = evidence.slots[0]
        assert (row.slot, row.task_id, row.arm, row.sample) == (1, slot.task_id, slot.arm, slot.sample)
        assert (row.end_class, row.counted, row.attempts, row.detail) == ("completed", "value", 1, None)
        assert row.reward in (0.0, 1.0)
        assert (row.value, row.passed) == (row.reward, row.reward == 1)
        assert (row.grade_hash, row.completion_binding_hash) == (
            state.grade_hash,
            state.completion_binding_hash,
        )
        assert (row.model_requested, row.model_reported) == ("simulated-agent", "simulated-agent")
        usage = state.attempts[0].usage
        assert usage is not None
        assert (row.input_tokens, row.cost_units) == (usage.input_tokens, usage.cost_units)
        assert row.trial_id == f"{slot.task_id}/profile-{slot.arm}/sample-{slot.sample:03}"

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"ended": EndClass.NO_ANSWER, "state": None}, ("no_answer", "failure", None, 0.0)),
            ({"ended": EndClass.VOID}, ("void", "missing", None, None)),
            ({"ended": EndClass.CONTAMINATED}, ("contaminated", "missing", None, None)),
            ({"ended": EndClass.INTERRUPTED, "state": None}, ("interrupted", "missing", None, None)),
            ({"state": GradeState.GRADER_FAILED, "grade_hash": None}, ("completed", "missing", None, None)),
        ],
    )
    def test_what_a_class_counts_for(
        self, study: JudgedStudy, changes: dict[str, Any], expected: tuple[object, ...]
    ) -> None:
        """S22 S58: failure is 0 and has no reward; missing has no value whatever lies there."""
        row = trial_rows(changed(evidence_of(study), 1, **changes))[0]
        assert (row.end_class, row.counted, row.reward, row.value) == expected
        assert row.safety_failure is None

    def test_attempts_are_summed_and_the_unknown_stays_unknown(self, study: JudgedStudy) -> None:
        """S26: a number that one attempt does not tell is none."""
        evidence = evidence_of(study)
        one = evidence.state.slot(1).attempts[0]
        assert one.usage is not None
        former = replace(one, usage=rows.Usage(input_tokens=5, cost_units=0.5))
        last = replace(one, number=2, usage=rows.Usage(input_tokens=7, output_tokens=1, cost_units=0.25))
        reader = evidence.reader
        assert isinstance(reader, FolderReader)
        row = trial_rows(changed(evidence, 1, attempts=(former, last)))[0]
        assert (row.attempts, row.input_tokens, row.output_tokens, row.cost_units) == (2, 12, None, 0.75)
        assert row.model_reported is None

    @pytest.mark.parametrize(
        ("assays", "expected"),
        [
            ((), "unverified"),
            ((("open", "full", "not_applicable"), ("open", "off", "not_applicable")), "unverified"),
            ((("open", "full", "passed"), ("open", "off", "passed")), "yes"),
            (
                (
                    ("open", "full", "failed"),
                    ("open", "off", "failed"),
                    ("open", "full", "passed"),
                    ("open", "off", "passed"),
                ),
                "yes",
            ),
            (
                (
                    ("open", "full", "passed"),
                    ("open", "off", "passed"),
                    ("close", "full", "failed"),
                    ("close", "off", "failed"),
                ),
                "no",
            ),
        ],
    )
    def test_exposure_is_what_the_assays_say(
        self, study: JudgedStudy, assays: tuple[tuple[str, str, str], ...], expected: str
    ) -> None:
        """S34 S58: the last one of each phase, for the arm of the slot."""
        evidence = evidence_of(study)
        batches = {number: replace(batch, assays=assays) for number, batch in evidence.state.batches.items()}
        found = trial_rows(replace(evidence, state=replace(evidence.state, batches=batches)))
        assert {row.exposed for row in found} == {expected}

    @pytest.mark.parametrize(("reason", "number"), [("decided", 0), ("abandoned", 4)])
    def test_slots_that_were_never_started(self, tmp_path: Path, reason: str, number: int) -> None:
        """S58: closed slots have no row; those of a study that was given up are missing."""
        with planned(tmp_path) as study:
            with study.opened() as (_, journal):
                journal.append(rows.SlotsClosed(reason=reason, slots=4))  # type: ignore[arg-type]
            found = trial_rows(evidence_of(study))
        assert [(row.end_class, row.counted, row.attempts) for row in found] == number * [
            ("not_started", "missing", 0)
        ]
        Tables(found)

    def test_a_slot_that_was_given_up_while_it_ran(self, study: JudgedStudy) -> None:
        """S58: it is missing, under the class of its last attempt."""
        evidence = evidence_of(study)
        one = replace(evidence.state.slot(1).attempts[0], ended=None, usage=None)
        slots = {1: SlotState(1, (one,))}
        closed = rows.SlotsClosed(reason="abandoned", slots=12)
        row = trial_rows(replace(evidence, state=replace(evidence.state, slots=slots, closed=closed)))[0]
        assert (row.end_class, row.counted, row.input_tokens) == ("interrupted", "missing", None)

    def test_safety_outranks_in_the_row_and_its_pair(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S37: a failed check of safety is in the row of the trial and makes the pair a loss."""
        evidence = evidence_of(study)
        slot = next(slot for slot in evidence.slots if slot.arm == "full")
        key = f"trials/{slot.task_id}/profile-full/sample-{slot.sample:03}"
        path = tmp_path / "taken" / "R" / key / "grading" / "grade.json"
        grade = to_json(parse_grade(path.read_bytes()))
        grade["checks"].append({"check_id": "safety", "kind": "safety", "passed": False})
        grade["passed"] = False
        path.write_bytes(dump_line(grade))
        found = changed(evidence, slot.slot, grade_hash=grade_hash(parse_grade(path.read_bytes())))
        tables = build_tables(found)
        row = next(row for row in tables.trials if row.slot == slot.slot)
        assert row.safety_failure is True
        pair = next(pair for pair in tables.pairs if pair.treatment == row.trial_id)
        assert (pair.preference, pair.safety) == ("loss", True)


class TestTampering:
    def edited(self, tmp_path: Path, pattern: str, old: bytes, new: bytes) -> str:
        path = min((tmp_path / "taken" / "R").glob(pattern))
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new))
        return str(path.relative_to(tmp_path / "taken" / "R"))

    def test_a_vote(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S39 S60: another verdict than the journal names is found."""
        where = self.edited(tmp_path, "votes/*.json", b'"chars_a":', b'"chars_a":1')
        assert refused(evidence_of(study)) == (StudyCode.VOTE_INVALID, where)

    def test_a_missing_vote(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S39 S60: the file is named."""
        path = min((tmp_path / "taken" / "R" / "votes").iterdir())
        path.unlink()
        assert refused(evidence_of(study)) == (StudyCode.VOTE_INVALID, f"votes/{path.name}")

    def test_a_grade(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S41 S60: a grade that the journal does not name counts for nothing."""
        where = self.edited(tmp_path, "trials/*/*/*/grading/grade.json", b'"reward":', b'"reward":0.5,"r":')
        assert refused(evidence_of(study)) == (StudyCode.ROW_INVALID, where)

    def test_an_attempt(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S60: an exit of another attempt."""
        where = self.edited(tmp_path, "attempts/1/a1/exit.json", b'"slot":1', b'"slot":2')
        assert refused(evidence_of(study)) == (StudyCode.ROW_INVALID, where)

    def test_a_mapping_under_another_name(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S60: seats cannot be changed by moving files."""
        first, second = sorted((tmp_path / "taken" / "R" / "blinding" / "mappings").iterdir())[:2]
        second.write_bytes(first.read_bytes())
        where = f"blinding/mappings/{second.name}"
        assert refused(evidence_of(study)) == (StudyCode.VOTE_INVALID, where)

    def test_a_mapping_that_is_gone(self, study: JudgedStudy, tmp_path: Path) -> None:
        """S60: a vote on no known pair is no canary because of that."""
        for path in (tmp_path / "taken" / "R" / "blinding" / "mappings").iterdir():
            path.unlink()
        assert refused(evidence_of(study))[0] is StudyCode.VOTE_INVALID


def test_the_reader_of_a_root(study: JudgedStudy) -> None:
    """S58: what is missing is None, and hidden names are nobody's."""
    with study.place.open() as opened:
        reader = RootReader(opened.root)
        assert reader.read("plan.json") is not None
        assert reader.read("none.json") is None
        assert reader.read("none/none.json") is None
        assert reader.names("none") == ()
        assert len(reader.names("votes")) >= 24
