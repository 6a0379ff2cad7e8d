"""Where the parts of a journal lie in their folder.

Source: evidence.md, section 7. Segmented: a folder with `000001.jsonl`, `000002.jsonl` …, `head.json` and
`torn/`. Single-file: one named file, with `<name>.head.json` and `<name>.torn/` beside it in a folder that
holds other things too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skill_effectiveness.evidence.journal_rows import RowForm
from skill_effectiveness.evidence.names import temporary_of

SEGMENT_LIMIT: Final = 67_108_864
"""Bytes; a segment that is larger is closed."""

_SEGMENT: Final = re.compile(r"(?:[0-9]{6}|[1-9][0-9]{6,8})\.jsonl", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of one journal.

    Attributes:
        form: who decides what a row holds.
        pin: name of the pin.
        torn: name of the folder of torn tails.
        file: name of the only file with rows; `None` in the segmented form.
    """

    form: RowForm
    pin: str
    torn: str
    file: str | None = None

    @classmethod
    def single(cls, name: str) -> Layout:
        """The single-file form."""
        return cls(RowForm.OWN, f"{name}.head.json", f"{name}.torn", name)

    def segment_name(self, number: int) -> str:
        """The name of a file with rows, counted from 1."""
        return self.file or f"{number:06d}.jsonl"

    def segment_number(self, name: str) -> int | None:
        """The number of a file with rows; `None` for every other name."""
        if self.file is not None:
            return 1 if name == self.file else None
        # The pattern keeps one number from having two spellings.
        return int(name[:-6]) or None if _SEGMENT.fullmatch(name) else None

    def is_temporary(self, name: str) -> bool:
        """Whether a name is what a crash in the middle of our own writing leaves."""
        target = temporary_of(name)
        return target is not None and (target == self.pin or self.segment_number(target) is not None)

    def is_foreign(self, name: str) -> bool:
        """Whether nothing of ours can have this name; in a shared folder nothing is foreign."""
        if self.file is not None or name in {self.pin, self.torn}:
            return False
        return self.segment_number(name) is None and not self.is_temporary(name)


SEGMENTED: Final = Layout(RowForm.KERNEL, "head.json", "torn")


def is_part(name: str) -> bool:
    """Whether a name is that of a file of the segmented form, which is no journal by itself."""
    return SEGMENTED.segment_number(name) is not None
