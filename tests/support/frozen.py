"""A copy of the frozen protocol that a test may damage, and small banks made for a test."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.cases import AnswersFile, Bank, Case, CasesFile, KnownAnswer, pins_of
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.words import BankName, Verdict

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

NO_DIGEST = "sha256:" + 64 * "0"


class CopiedFs(RealFs):
    """Files of the frozen folder are read from a copy; everything else is the kernel's.

    The copy lies in `folder`; `edit` changes one JSON document of it, `path` gives the place of a file.
    """

    def __init__(self, folder: Path) -> None:
        self._origin = str(frozen_folder())
        self._folder = folder
        for part in ("arms", "fixtures"):
            shutil.copytree(frozen_folder() / part, folder / part)

    def path(self, relative: str) -> Path:
        """Where the copy of a frozen file lies."""
        return self._folder / relative

    def edit(self, relative: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change one document in place and write it again."""
        document = json.loads(self.path(relative).read_text(encoding="utf-8"))
        change(document)
        self.path(relative).write_text(json.dumps(document, indent=2, ensure_ascii=False), encoding="utf-8")

    def lstat(self, parent: int | None, name: str) -> os.stat_result:
        """See `FileSystem`."""
        return super().lstat(parent, self._moved(name))

    def open_read(self, parent: int | None, name: str) -> int:
        """See `FileSystem`."""
        return super().open_read(parent, self._moved(name))

    def _moved(self, name: str) -> str:
        if name.startswith(self._origin + "/"):
            return str(self._folder) + name.removeprefix(self._origin)
        return name


def bank_of(
    rows: Sequence[tuple[str, Verdict, str, str]],
    *,
    name: BankName = BankName.JUDGED,
    task: str = "Say something.",
    rubric: str = "Say it well.",
) -> Bank:
    """A bank of rows `(case id, expected verdict, text A, text B)` under its own digests."""
    cases = CasesFile(
        schema_version=1,
        known_answer_fixture_hash=NO_DIGEST,
        cases=tuple(
            Case(case_id=case_id, task=task, rubric=rubric, candidate_a=first, candidate_b=second)
            for case_id, _, first, second in rows
        ),
    )
    answers = AnswersFile(
        schema_version=1,
        known_answers=tuple(
            KnownAnswer(case_id=case_id, expected_verdict=verdict) for case_id, verdict, _, _ in rows
        ),
    )
    pins = pins_of(cases, answers)
    stated = cases.model_copy(update={"known_answer_fixture_hash": pins.known_answer_fixture_hash})
    return Bank.verified(name, stated, answers, pins)
