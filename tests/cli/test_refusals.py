"""The closed words of the command line."""

from __future__ import annotations

import re
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
    assert set(refusals.REFUSED) == set(refusals.Refused.__args__)
