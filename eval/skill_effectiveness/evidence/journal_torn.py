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
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.evidence.journal_findings import Findings
    from skill_effectiveness.evidence.journal_layout import Layout

_NAME: Final = re.compile(r"(?P<seq>0|[1-9][0-9]{0,14})-(?P<hex>[0-9a-f]{64})\.bin", re.ASCII)


def owed_tears(
    folder: Folder,
    layout: Layout,
    names: Sequence[str],
    acknowledged: Iterable[Tear],
    findings: Findings,
) -> tuple[Tear, ...]:
    """Hold the files of torn tails against what was acknowledged.

    Args:
        folder: the folder of the journal.
        layout: its names.
        names: in the folder of torn tails.
        acknowledged: by rows, or by the pin.
        findings: where to put what does not match.

    Returns:
        The tears of files that are not acknowledged yet, by name.

    Raises:
        FileError: the folder could not be opened.
        EnoughError: there are too many findings.
    """
    kept = _kept_tears(folder, layout, names) if names else {}
    told = {tear.file_name: tear for tear in acknowledged}
    for name, tear in told.items():
        if kept.get(name) != tear:
            sentence = f"The bytes of this torn tail are not in {folder.where(layout.torn)}/{name}."
            findings.add(Finding.TEAR_EVIDENCE_MISSING, sentence, seq=tear.seq)
    for name, kept_tear in kept.items():
        if kept_tear is None and name not in told and temporary_of(name) is None:
            sentence = f"{folder.where(layout.torn)}/{name!a} is no torn tail of this journal."
            findings.add(Finding.FOREIGN_FILE, sentence)
    return tuple(tear for name, tear in sorted(kept.items()) if tear is not None and name not in told)


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
