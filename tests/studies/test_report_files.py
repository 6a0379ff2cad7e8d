"""The folder `report/`: everything that results name, and what a new report replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.report_files import PAGE, RESULTS, publish_report, report_files
from skill_effectiveness.studies.results import read_results
from skill_effectiveness.studies.tables import Tables
from tests.support.private import out_root, wrong_modes
from tests.support.study_results import Study, full_study, study
from tests.support.study_tables import from_thirds

if TYPE_CHECKING:
    from pathlib import Path

FULL = full_study()


def files_of(held: Study) -> dict[str, bytes]:
    return report_files(held.results, held.plan, held.tables, held.texts, held.seal)


def test_everything_that_results_name_is_there(tmp_path: Path) -> None:
    """S57 S58: digests of the files as they lie there, private, and tables that read back."""
    with out_root(tmp_path) as root:
        publish_report(root, files_of(FULL))
        folder = tmp_path / "root" / "report"
        results = read_results((folder / RESULTS).read_bytes())
        assert results == FULL.results
        assert {name: digest_bytes((folder / name).read_bytes()) for name in results.tables} == results.tables
        for form in ("csv", "parquet"):
            held = {
                name: (folder / f"{name}.{form}").read_bytes() for name in ("trials", "pairs", "judgements")
            }
            assert Tables.of(**held, form=form) == FULL.tables
        assert (folder / PAGE).read_bytes() == FULL.page()
        assert wrong_modes(tmp_path / "root") == []


def test_the_same_report_changes_nothing(tmp_path: Path) -> None:
    """S57: no file is written again and no history begins."""
    with out_root(tmp_path) as root:
        publish_report(root, files_of(FULL))
        folder = tmp_path / "root" / "report"
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        publish_report(root, files_of(FULL))
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_another_report_keeps_what_it_replaces(tmp_path: Path) -> None:
    """S57: nothing is lost."""
    with out_root(tmp_path) as root:
        publish_report(root, files_of(study(from_thirds((1, 0, 2)))))
        folder = tmp_path / "root" / "report"
        old = {path.read_bytes() for path in folder.iterdir()}
        publish_report(root, files_of(FULL))
        now = {path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert old <= now | {path.read_bytes() for path in (folder / "history").iterdir()}
        assert read_results((folder / RESULTS).read_bytes()) == FULL.results


def test_a_full_disk_leaves_no_results_without_their_files(tmp_path: Path) -> None:
    """S65: whoever finds results.json finds all of it; the next attempt completes."""
    with out_root(tmp_path) as root:
        publish_report(root, files_of(study(from_thirds((1, 0, 2)))))
    full = FaultFs(RealFs(), Injection("write", 28, nth=3))
    with out_root(tmp_path, full) as root, pytest.raises(FileError):
        publish_report(root, files_of(FULL))
    assert not (tmp_path / "root" / "report" / RESULTS).exists()
    with out_root(tmp_path) as root:
        publish_report(root, files_of(FULL))
    assert read_results((tmp_path / "root" / "report" / RESULTS).read_bytes()) == FULL.results
