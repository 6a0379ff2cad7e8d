"""Metrics sheets as a table row and as a panel of the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli import sheets
from skill_effectiveness.cli.plots import Bar
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import SimulatedSettings
from tests.support.examinations import INPUTS, PLAN, open_out, run_examination, simulated

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.calibration.sheet import MetricsSheet


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> MetricsSheet:
    """Of a reviewer without a fault: 24 of 24, twice."""
    with open_out(tmp_path_factory.mktemp("sheets")) as out:
        return sheets.read_sheet(out, run_examination(out))


def test_a_row_has_every_figure_with_its_interval(sheet: MetricsSheet) -> None:
    """R25: 24 of 24 is 0.862 to 1 whatever the number of runs; what nobody counted is unknown."""
    row = sheets.row(sheet.reviewers[0], "pass", name="perfect")
    assert len(row) == len(sheets.COLUMNS)
    assert row[:5] == ("perfect", "pass", "2", "1.000 (0.86 to 1.00)", "1.000 (0.86 to 1.00)")
    assert row[5].startswith("0 of ")
    assert row[7:9] == ("0 of 2", "unknown")
    assert row[9].endswith(" ms")


def test_a_reviewer_without_a_name_goes_by_its_family(sheet: MetricsSheet) -> None:
    assert sheets.row(sheet.reviewers[0], "pass")[0] == "simulated"


def test_the_panel_shows_the_gates_where_they_decide(sheet: MetricsSheet) -> None:
    panel = sheets.panel(sheet.reviewers[0], "perfect: pass", INPUTS.gates.thresholds)
    assert panel.heading == "perfect: pass"
    accuracy, consistency, flips, first = panel.bars
    assert (accuracy.label, accuracy.value, accuracy.gate) == ("known-answer accuracy", 1.0, 0.8)
    assert accuracy.low == pytest.approx(0.862, abs=5e-4)
    assert (consistency.label, consistency.value, consistency.gate) == ("self-consistency", 1.0, 0.8)
    assert (flips.label, flips.value, flips.gate) == ("order flips", 0.0, None)
    assert (first.label, first.gate) == ("first-seat share", None)


def test_a_reviewer_that_decides_nothing_has_no_first_seat(tmp_path: Path) -> None:
    """A share of no verdicts is left out, never drawn at zero."""
    with open_out(tmp_path) as out:
        found = run_examination(out, simulated(SimulatedSettings(accuracy=0.0, seed=3)))
        one = sheets.read_sheet(out, found).reviewers[0]
    empty = one.position.first_seat.model_copy(update={"part": 0, "whole": 0, "value": None})
    position = one.position.model_copy(update={"first_seat": empty, "flips": empty, "flips_interval": None})
    blank = one.model_copy(update={"position": position})
    assert [bar.label for bar in sheets.panel(blank, "x", INPUTS.gates.thresholds).bars] == [
        "known-answer accuracy",
        "self-consistency",
    ]
    assert sheets.row(blank, "fail")[5:7] == ("unknown", "unknown")


def test_the_table_goes_to_stderr(sheet: MetricsSheet, capsys: pytest.CaptureFixture[str]) -> None:
    sheets.show(sheet, {"simulated": "pass"})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("reviewers on 24 cases")
    assert "1.000 (0.86 to 1.00)" in err


def test_the_sheet_of_bias_probes_is_read_by_its_own_name(tmp_path: Path) -> None:
    from dataclasses import replace  # noqa: PLC0415 - used here alone

    with open_out(tmp_path) as out:
        plan = replace(PLAN, bank=BankName.BIAS_PROBE)
        found = run_examination(out, simulated(bank=BankName.BIAS_PROBE), plan)
        assert sheets.read_sheet(out, found).reviewers[0].repeat_count == 2


def test_a_sheet_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with open_out(tmp_path) as out:
        found = run_examination(out)
        out.remove("reviewer-calibration-metrics.json")
        with pytest.raises(EvidenceError) as caught:
            sheets.read_sheet(out, found)
    assert caught.value.code == "missing"


def test_a_bar_without_interval_is_a_bar() -> None:
    assert Bar("x", 0.5) == Bar("x", 0.5, None, None, None)
