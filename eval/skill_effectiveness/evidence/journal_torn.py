"""Torn tails that were set aside, and whether each is acknowledged.

Source: evidence.md, section 7. The bytes of a torn tail lie in `<seq>-<64 hex of their SHA-256>.bin`; a row
of type `tear` (single-file form: an entry of the pin) says so. A file without that is owed it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks
from skill_effectiveness.evidence.chunks import chunks_of, regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.files import Folder
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.journal_faults import Finding
from skill_effectiveness.evidence.journal_rows import Tear
from skill_effectiveness.evidence.names import temporary_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.journal_findings import Findings
    from skill_effectiveness.evidence.journal_layout import Layout

_NAME: Final = re.compile(r"(?P<seq>0|[1-9][0-9]{0,14})-(?P<hex>[0-9a-f]{64})\.bin", re.ASCII)


class TornTails:
    """The files of torn tails, held against whatever acknowledges them, as it comes along.

    Nothing is kept of an acknowledgement but the name of a file that is there, so a journal may be full of
    them.

    Args:
        folder: the folder of the journal.
        layout: its names.
        names: in the folder of torn tails.
        findings: where to put what does not match.

    Raises:
        FileError: the folder could not be opened.
    """

    def __init__(self, folder: Folder, layout: Layout, names: Sequence[str], findings: Findings) -> None:
        self._where = folder.where(layout.torn)
        self._kept = _kept_tears(folder, layout, names) if names else {}
        self._findings = findings
        self._told: set[str] = set()
        self.acknowledged = 0
        """How often `acknowledge` was called."""

    def acknowledge(self, tear: Tear) -> None:
        """Hold what a row or the pin says against the file.

        Raises:
            EnoughError: there are too many findings.
        """
        self.acknowledged += 1
        name = tear.file_name
        if name in self._kept:
            self._told.add(name)
        if self._kept.get(name) != tear:
            sentence = f"The bytes of this torn tail are not in {self._where}/{name}."
            self._findings.add(Finding.TEAR_EVIDENCE_MISSING, sentence, seq=tear.seq)

    def owed(self) -> tuple[Tear, ...]:
        """The tears of files that nothing acknowledged, by name.

        Raises:
            EnoughError: there are too many findings.
        """
        rest = {name: tear for name, tear in sorted(self._kept.items()) if name not in self._told}
        for name, tear in rest.items():
            if tear is None and temporary_of(name) is None:
                sentence = f"{self._where}/{name!a} is no torn tail of this journal."
                self._findings.add(Finding.FOREIGN_FILE, sentence)
        return tuple(tear for tear in rest.values() if tear is not None)


def _kept_tears(folder: Folder, layout: Layout, names: Sequence[str]) -> dict[str, Tear | None]:
    """Each file as the tear it holds; `None` when it does not hold what its name says."""
    prefix = f"{folder.where(layout.torn)}/"
    with (
        reported(prefix, reading=True),
        closing(folder.fs, folder.fs.open_dir(folder.fd, layout.torn)) as fd,
    ):
        inner = Folder(folder.fs, fd, prefix, folder.entropy)
        return {name: _kept_tear(inner, name) for name in names}


def _kept_tear(folder: Folder, name: str) -> Tear | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        with regular_file(folder.fs, folder.fd, name, folder.where(name)) as fd:
            size = folder.fs.fstat(fd).st_size
            digest = digest_chunks(chunks_of(folder.fs, fd))
    except FileError:
        # Whatever cannot be read is no evidence.
        return None
    if size == 0 or digest != f"sha256:{match['hex']}":
        return None
    return Tear(bytes=size, digest=digest, seq=int(match["seq"]))
