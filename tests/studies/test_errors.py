"""The closed codes of studies."""

from __future__ import annotations

import re

from skill_effectiveness.studies import errors
from skill_effectiveness.studies.errors import StudyCode, StudyError


def test_every_code_stands_in_the_table() -> None:
    """The table that people read and the words that machines get are the same."""
    assert errors.__doc__ is not None
    assert re.findall(r"^\| `([a-z_]+)` \|", errors.__doc__, re.MULTILINE) == [
        str(code) for code in StudyCode
    ]


def test_an_error_names_its_place() -> None:
    assert str(StudyError(StudyCode.NO_TASK, "/tasks", "none.")) == "/tasks: none."
    assert str(StudyError(StudyCode.NO_TASK, "", "none.")) == "none."
