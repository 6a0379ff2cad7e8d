"""`run.py study export inspect`: exits and result lines."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from tests.support.commands import no_traceback
from tests.support.studies import example

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]


def test_a_reported_study(command: Command, home: Path) -> None:
    """S1 S59: exit 0 and where the logs are, as a line and as JSON; before the report exit 2."""
    example(home, tasks=1, edits={"samples: 3": "samples: 1"})
    assert command("study", "plan", "first", "--out", "R").code == 0
    early = command("study", "export", "inspect", "R", "--out", "D", "--json")
    assert (early.code, early.document["code"]) == (2, "report_missing")
    assert no_traceback(early)
    assert command("study", "run", "R").code == 0
    assert command("study", "report", "R").code == 3
    said = command("study", "export", "inspect", "R", "--out", "D")
    assert (said.code, list(said.values)) == (0, ["log"])
    names = said.values["log"].split(",")
    assert [name.rpartition("_")[2] for name in names] == ["off.eval", "full.eval"]
    assert all(zipfile.is_zipfile(home / name) for name in names)
    again = command("study", "export", "inspect", "R", "--out", "D", "--json")
    assert (again.code, again.document) == (0, {"log": names})
    (home / names[0]).write_bytes(b"")
    assert command("study", "export", "inspect", "R", "--out", "D").code == 2


def test_no_study(command: Command, home: Path) -> None:
    """S1 S65: exit 2."""
    said = command("study", "export", "inspect", "none", "--out", "D", "--json")
    assert said.code == 2
    assert not (home / "D").exists()
    assert command("study", "export", "inspect", "none").code == 2
