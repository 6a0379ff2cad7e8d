"""Private JSONL files of any size, a line at a time, with the digest of what was read.

The lines are handed out as they lie there, so that a reader who has to hear of every row, bad ones included,
can go on behind one; `strict.read_json` reads a line.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.evidence import files
from skill_effectiveness.evidence.canonical import RunningDigest
from skill_effectiveness.evidence.chunks import chunks_of
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skill_effectiveness.evidence.root import PrivateRoot

_MOST: int = Profile.ROW.max_bytes + 1


class RowFile:
    """The lines of an open file.

    Attributes:
        torn: whether the last line does not end with LF; known once all lines were handed out.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._running = RunningDigest()
        self.torn = False

    @property
    def digest(self) -> str:
        """The digest of the bytes that were read so far, of the whole file once all lines were."""
        return self._running.digest

    def lines(self) -> Iterator[bytes]:
        """Each line without its LF, cut one byte behind what a row may have; once."""
        held = b""
        for chunk in self._chunks:
            self._running.add(chunk)
            first, *others = chunk.split(b"\n")
            held = (held + first)[:_MOST]
            if others:
                yield held
                held = others.pop()[:_MOST]
                for line in others:
                    yield line[:_MOST]
        if held:
            self.torn = True
            yield held


@contextmanager
def row_file(root: PrivateRoot, name: str) -> Iterator[RowFile]:
    """A private JSONL file, read by the rules of `files.open_private`.

    Raises:
        FileError: as `files.open_private`; a read that failed.
    """
    folder = root.folder
    where = folder.where(name)
    with closing(folder.fs, files.open_private(folder, name)) as fd, reported(where, reading=True):
        yield RowFile(chunks_of(folder.fs, fd))
