"""The effect behind a report: when arms become known, what is refused before, and that it can be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.derivation import study_verdict
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import read_plan
from skill_effectiveness.studies.reporting import report_study
from skill_effectiveness.studies.results import read_results
from tests.support.bundles import judged, report
from tests.support.judged_studies import planned, ready
from tests.support.private import surroundings
from tests.support.study_runs import rows_of, types_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.judged_studies import JudgedStudy


def files(study: JudgedStudy) -> dict[str, bytes]:
    folder = study.place.folder / study.out / "report"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


class TestReport:
    def test_a_judged_study(self, tmp_path: Path) -> None:
        """S1 S19 S40: arms become known, the analysis is journalled, and a synthetic study has no tier."""
        with judged(tmp_path) as study:
            results = report(study)
            assert types_of(study.place)[-2:] == ["unblinded", "analysed"]
            assert rows_of(study.place)[-1]["body"] == {"results_digest": results.results_digest}
        assert set(files(study)) == {
            "results.json", "report.html", "trials.csv", "trials.parquet", "pairs.csv", "pairs.parquet",
            "judgements.csv", "judgements.parquet",
        }  # fmt: skip
        assert read_results(files(study)["results.json"]) == results
        assert results.verdict.gate_status == "not_evaluated_synthetic"
        assert results.verdict.verdict_tier == "synthetic_not_a_tier"
        assert results.deviations == ()
        assert results.preference is not None

    def test_again(self, tmp_path: Path) -> None:
        """S57: the same bytes, no further row, no history."""
        with judged(tmp_path) as study:
            report(study)
            before, rows = files(study), types_of(study.place)
            report(study)
            assert files(study) == before
            assert types_of(study.place) == rows
            assert not (study.place.folder / study.out / "report" / "history").exists()

    def test_an_edited_report_is_made_again(self, tmp_path: Path) -> None:
        """S57: what it replaces is kept."""
        with judged(tmp_path) as study:
            report(study)
            before = files(study)
            page = study.place.folder / study.out / "report" / "report.html"
            page.write_bytes(b"edited")
            report(study)
            assert files(study) == before
            kept = list((page.parent / "history").iterdir())
            assert b"edited" in {path.read_bytes() for path in kept}

    def test_a_full_disk(self, tmp_path: Path) -> None:
        """S65: nothing is lost, and the same call completes."""
        with judged(tmp_path) as study:
            full = surroundings(FaultFs(RealFs(), Injection("write", 28, nth=4)))
            with pytest.raises(FileError), study.opened(full) as (root, journal):
                report_study(root, journal)
            results = report(study)
            assert read_results(files(study)["results.json"]) == results
            assert types_of(study.place).count("unblinded") == 1


class TestOpen:
    def test_slots(self, tmp_path: Path) -> None:
        """S65: refused, nothing becomes known."""
        with planned(tmp_path) as study:
            with pytest.raises(StudyError) as refused:
                report(study)
            assert refused.value.code is StudyCode.SLOTS_OPEN
            assert "unblinded" not in types_of(study.place)

    def test_votes(self, tmp_path: Path) -> None:
        """S65: a reviewer that was planned and never asked could not be asked afterwards."""
        with ready(tmp_path) as study:
            with pytest.raises(StudyError) as refused:
                report(study)
            assert refused.value.code is StudyCode.VOTES_OPEN
            assert "unblinded" not in types_of(study.place)

    def test_given_up(self, tmp_path: Path) -> None:
        """S1: open slots are missing, and the report says why."""
        with planned(tmp_path) as study:
            results = report(study, abandon="the provider is gone")
            assert types_of(study.place)[-3:] == ["slots_closed", "unblinded", "analysed"]
            assert [one.code for one in results.deviations] == [
                "slots_abandoned", "given_up", "no_vote_counts",
            ]  # fmt: skip
            assert results.deviations[1].sentence == "The study was given up: the provider is gone"
            assert results.primary.tasks == 0
            assert results.missing.by_class == {"not_started": 4}
            assert report(study) == results

    def test_votes_given_up(self, tmp_path: Path) -> None:
        with ready(tmp_path) as study:
            results = report(study, abandon="no time")
            assert [one.code for one in results.deviations] == ["given_up", "no_vote_counts"]
            assert results.primary.tasks == 2


def test_the_gate_never_passes_without_its_evidence(tmp_path: Path) -> None:
    """S2 S40: synthetic, without a reviewer, and with reviewers whose examinations are not there."""
    with planned(tmp_path) as study:
        plan = read_plan((study.place.folder / study.out / "plan.json").read_bytes())
    assert study_verdict(plan, plan.reviewers).gate_status == "not_evaluated_synthetic"
    real = plan.model_copy(update={"synthetic": False})
    assert study_verdict(real, ()).gate_status == "not_evaluated"
    failed = study_verdict(real, plan.reviewers)
    assert (failed.gate_status, failed.verdict_tier) == ("fail", None)
    assert failed.failures == ("local_evidence_bundle_required",)
