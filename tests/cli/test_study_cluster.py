"""`--cluster`, `--jobs` and `--allow-plain-tcp`: what is refused before anything is opened."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.main import main
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.cli.study_cluster import Crew, read_crew
from skill_effectiveness.studies.cluster_address import ClusterAddress, read_cluster
from skill_effectiveness.studies.cluster_link import dask_link
from skill_effectiveness.studies.errors import StudyCode, StudyError

if TYPE_CHECKING:
    from pathlib import Path


def carry_out(*_arguments: object) -> None:
    """Never called."""


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("tcp://cluster.example:8786", "cluster_plain"),
        ("tcp://[2001:db8::1]:8786", "cluster_plain"),
        ("tcp://10.0.0.1:8786", "cluster_plain"),
        ("local:0", "cluster_address"),
        ("somewhere", "cluster_address"),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, code: str) -> None:
    """S33: exit 2 and one word, by `run`, before the folder is even looked for."""
    assert main(["study", "run", str(tmp_path / "none"), "--cluster", address, "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"code": code, "status": "refused"}
    assert "--cluster" in err


def test_quick_refuses_before_it_makes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S33: nothing is left of a line that cannot be carried out."""
    words = ["--skill", str(tmp_path), "--tasks", str(tmp_path), "--driver", "simulated", "--model", "m"]
    line = ["study", "quick", *words, "--out", str(tmp_path / "R"), "--cluster", "tcp://10.0.0.1:1", "--json"]
    assert main(line) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "cluster_plain"
    assert not (tmp_path / "R").exists()


def test_who_carries_attempts_out() -> None:
    """S33: threads unless a cluster is named; a number of jobs belongs to both."""
    assert read_crew(None, None, plain=False) == Crew(None, None)
    assert read_crew(3, "local:2", plain=False) == Crew(3, ClusterAddress(2, None))
    away = read_crew(None, "tcp://10.0.0.1:8786", plain=True)
    assert away == Crew(None, ClusterAddress(0, "tcp://10.0.0.1:8786"))
    with pytest.raises(Refusal):
        read_crew(None, None, plain=True)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """S33: one clear refusal that says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    here = read_cluster("local:1", plain=False)
    with (
        pytest.raises(StudyError) as caught,
        dask_link(here, scratch="/nowhere", agent=None, carry_out=carry_out),
    ):
        pass
    assert caught.value.code is StudyCode.CLUSTER_MISSING
    assert "pip install 'skill-effectiveness[cluster]'" in caught.value.sentence
