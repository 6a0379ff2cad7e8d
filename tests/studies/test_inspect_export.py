"""Writing the logs of a reported study, and reading them with Inspect itself where it is there.

`tools/inspect_logs` installs Inspect beside this environment and runs the test that needs it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.inspect_export import export_inspect
from skill_effectiveness.studies.inspect_log import inspect_log
from skill_effectiveness.studies.tables import Tables
from tests.support.bundles import judged, report
from tests.support.judged_studies import planned
from tests.support.logged_studies import STUDY, ended
from tests.support.private import REPOSITORY, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.studies.tables import TrialRow
    from tests.support.judged_studies import JudgedStudy

READER = REPOSITORY / "tests" / "support" / "inspect_reader.py"
INTERPRETER = "INSPECT_PYTHON"


def exported(study: JudgedStudy, out: str = "D") -> list[Path]:
    folder = study.place.folder / out
    target = PrivateRoot.create(folder, RootKind.OUT, around=study.place.around, checkout=None)
    with target, study.opened() as (root, journal):
        return [folder / name for name in export_inspect(root, journal, target)]


def rows(study: JudgedStudy, arm: str) -> list[TrialRow]:
    """The rows of an arm as the report has them."""
    folder = study.place.folder / study.out / "report"
    held = {name: (folder / f"{name}.csv").read_bytes() for name in ("trials", "pairs", "judgements")}
    return [row for row in Tables.of(**held, form="csv").trials if row.arm == arm]


def inspect() -> str:
    """An interpreter that has Inspect, or a reason to skip."""
    given = os.environ.get(INTERPRETER)
    if given:
        return given
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip(
            "inspect_ai is not installed here; tools/inspect_logs installs it apart and runs this test"
        )
    return sys.executable


def read(paths: Sequence[Path], home: Path) -> list[dict[str, Any]]:
    """What Inspect makes of logs."""
    variables = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
    ran = subprocess.run(  # noqa: S603 - our own script, by an interpreter that whoever tests has chosen
        [inspect(), READER, *paths], cwd=home, env=variables, capture_output=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr.decode()
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


class TestWriting:
    def test_a_log_for_each_arm(self, tmp_path: Path) -> None:
        """S59: private, by its name, with a sample for each trial of the arm."""
        with judged(tmp_path) as study:
            report(study)
            paths = exported(study)
            assert [path.name.rpartition("_")[2] for path in paths] == ["off.eval", "full.eval"]
            assert wrong_modes(tmp_path / "D") == []
            for path in paths:
                arm = path.stem.rpartition("_")[2]
                with zipfile.ZipFile(path) as archive:
                    samples = [
                        json.loads(archive.read(name)) for name in archive.namelist() if "epoch" in name
                    ]
                found = {
                    (one["id"], one["epoch"]): one["scores"].get("reward", {}).get("value") for one in samples
                }
                assert found == {(row.task_id, row.sample): row.reward for row in rows(study, arm)}
                for one in samples:
                    passed = one["scores"]["reward"]["value"] == 1
                    assert ('"solved":true' in one["output"]["completion"]) is passed
                assert {one["input"].split()[0] for one in samples} == {"Write"}

    def test_again(self, tmp_path: Path) -> None:
        """S59 S57: the same bytes; a file that is something else is not replaced."""
        with judged(tmp_path) as study:
            report(study)
            paths = exported(study)
            before = [path.read_bytes() for path in paths]
            assert [path.read_bytes() for path in exported(study)] == before
            paths[0].write_bytes(b"other")
            with pytest.raises(FileError):
                exported(study)
            assert paths[0].read_bytes() == b"other"

    def test_no_report(self, tmp_path: Path) -> None:
        """S59 S18: arms are not told before they are known."""
        with planned(tmp_path) as study:
            with pytest.raises(StudyError) as caught:
                exported(study)
            assert caught.value.code is StudyCode.REPORT_MISSING
            assert list((tmp_path / "D").iterdir()) == []

    def test_an_edited_table(self, tmp_path: Path) -> None:
        """S59 S65: what is not the report's is not exported."""
        with judged(tmp_path) as study:
            report(study)
            table = study.place.folder / study.out / "report" / "trials.csv"
            table.write_bytes(table.read_bytes().replace(b"completed", b"crashed", 1))
            with pytest.raises(StudyError) as caught:
                exported(study)
            assert caught.value.code is StudyCode.REPORT_CHANGED

    def test_a_study_that_was_given_up(self, tmp_path: Path) -> None:
        """S59: no sample, and cancelled."""
        with planned(tmp_path) as study:
            report(study, abandon="no time")
            for path in exported(study):
                with zipfile.ZipFile(path) as archive:
                    assert archive.namelist() == ["summaries.json", "header.json"]
                    assert json.loads(archive.read("header.json"))["status"] == "cancelled"


@pytest.mark.slow
class TestInspect:
    def test_the_same_samples_and_scores(self, tmp_path: Path) -> None:
        """S59: Inspect finds in each log what the table of trials says."""
        inspect()
        with judged(tmp_path) as study:
            report(study)
            paths = exported(study)
            for arm, log in zip(("off", "full"), read(paths, tmp_path), strict=True):
                table = rows(study, arm)
                assert (log["version"], log["status"], log["task_args"]) == (2, "success", {"arm": arm})
                assert (log["total"], log["completed"]) == (len(table), len(table))
                assert log["sample_ids"] == sorted({row.task_id for row in table})
                wanted = {
                    (row.task_id, row.sample): {
                        name: score
                        for name, score in (("value", row.value), ("reward", row.reward))
                        if score is not None
                    }
                    for row in table
                }
                assert {(one["id"], one["epoch"]): one["scores"] for one in log["samples"]} == wanted
                assert {(one[0], one[1]): one[2] for one in log["summaries"]} == wanted
                assert log["alone"] == log["samples"][0]
                scored = [row.value for row in table if row.value is not None]
                assert log["means"]["value"]["mean"] == pytest.approx(sum(scored) / len(scored))
                assert log["metadata"]["synthetic"] is True

    def test_endings(self, tmp_path: Path) -> None:
        """S59: errors, limits and a study that was given up are read as such."""
        inspect()

        studies = [
            ended("crashed"),
            ended("timeout"),
            ended("limit", detail="tokens"),
            ended("void", "missing"),
            replace(STUDY, rows=[], abandoned=True),
        ]
        paths = [tmp_path / f"{number}.eval" for number in range(len(studies))]
        for path, study in zip(paths, studies, strict=True):
            path.write_bytes(inspect_log(study, "full"))
        crashed, timed, limited, void, nothing = read(paths, tmp_path)
        first = [log["samples"][0] for log in (crashed, timed, limited, void)]
        assert [one["error"] for one in first] == ["crashed", None, None, None]
        assert [one["limit"] and one["limit"][0] for one in first] == [None, "time", "token", None]
        assert [one["scores"] for one in first] == [{"value": 0}, {"value": 0}, {"value": 0}, {}]
        assert (nothing["status"], nothing["samples"], nothing["total"]) == ("cancelled", [], 4)
