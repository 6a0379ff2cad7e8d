"""The closed words of the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from skill_effectiveness.cli import refusals
from skill_effectiveness.cli.refusals import CommandCode

ROOM = Path(refusals.__file__).parent


def test_the_table_on_the_page_is_the_set_of_codes() -> None:
    assert refusals.__doc__ is not None
    rows = re.findall(r"^\| `([a-z_]+)` \|", refusals.__doc__, re.MULTILINE)
    assert rows == [code.value for code in CommandCode]


def test_each_code_is_raised_somewhere() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in ROOM.glob("*.py"))
    assert [code.name for code in CommandCode if f"CommandCode.{code.name}" not in source] == []


def test_one_list_names_every_refusal() -> None:
    loaded = [
        getattr(import_module(f"skill_effectiveness.{module}"), name) for module, name in refusals.RAISED_BY
    ]
    assert sorted(str(refusals.Refused).replace(" ", "").split("|")) == sorted(one.__name__ for one in loaded)
    assert set(refusals.refusals()) == set(loaded)


def test_a_room_that_is_not_loaded_refuses_nothing() -> None:
    """Looking for what was raised loads no room."""
    source = (
        "import sys\nfrom skill_effectiveness.cli.refusals import refusals\n"
        "print([one.__name__ for one in refusals()], 'skill_effectiveness.trials.faults' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['Refusal', 'Withheld'] False\n"
