"""Values of an evaluation that are given as files below the artifact root (bridge.md, section 4).

The digest is part of the request, so the receipt binds the content. It is checked before anything is made of
the bytes, and for rows, which are streamed, once more when the last one was read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.payloads import DIGEST, PATH, relative
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.row_files import row_file
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.row_files import RowFile
    from skill_effectiveness.evidence.strict import JsonValue

MOST_ROWS: Final = 1_000_000


def value_of(root: PrivateRoot, payload: Mapping[str, Any], name: str) -> JsonValue:
    """One of the values, inline or from its file.

    Raises:
        BridgeError: `evidence_invalid`, `artifact_missing`, `artifact_mismatch`.
        EvidenceError: the file is no private one, or no strict JSON.
    """
    if name in payload:
        value: JsonValue = payload[name]
        return value
    with _folder_of(root, payload[f"{name}{PATH}"]) as (folder, last):
        data = folder.read(last)
    if digest_bytes(data) != payload[f"{name}{DIGEST}"]:
        raise _mismatch(name)
    return read_json(data, Profile.DOCUMENT)


def rows_of(root: PrivateRoot, payload: Mapping[str, Any], name: str) -> Iterable[JsonValue]:
    """Plan rows, inline or from a JSONL file, one by one.

    Raises:
        BridgeError, EvidenceError: as `value_of`, also while rows are read.
    """
    if name in payload:
        inline: list[JsonValue] = payload[name]
        return inline
    with _rows(root, payload[f"{name}{PATH}"]) as file:
        for _ in file.lines():
            pass
        if file.digest != payload[f"{name}{DIGEST}"]:
            raise _mismatch(name)
    return _streamed(root, payload, name)


def _streamed(root: PrivateRoot, payload: Mapping[str, Any], name: str) -> Iterator[JsonValue]:
    with _rows(root, payload[f"{name}{PATH}"]) as file:
        for number, line in enumerate(file.lines(), start=1):
            if number > MOST_ROWS:
                raise BridgeError(ReasonCode.EVIDENCE_INVALID, f"more than {MOST_ROWS} rows")
            yield read_json(line, Profile.ROW)
        if file.torn:
            raise BridgeError(ReasonCode.EVIDENCE_INVALID, "the last row has no line feed")
        if file.digest != payload[f"{name}{DIGEST}"]:
            raise _mismatch(name)


@contextmanager
def _rows(root: PrivateRoot, path: str) -> Iterator[RowFile]:
    with _folder_of(root, path) as (folder, last), row_file(folder, last) as file:
        yield file


@contextmanager
def _folder_of(root: PrivateRoot, path: str) -> Iterator[tuple[PrivateRoot, str]]:
    """The folder of a file, and its name there; what is absent is `artifact_missing`."""
    *above, last = relative(path)
    try:
        if not above:
            yield root, last
            return
        with root.child(*above) as folder:
            yield folder, last
    except RootError as error:
        if error.code is RootCode.ROOT_MISSING:
            raise _missing() from error
        raise
    except FileError as error:
        if error.code is FileCode.MISSING:
            raise _missing() from error
        raise


def _missing() -> BridgeError:
    return BridgeError(ReasonCode.ARTIFACT_MISSING, "a file that is named")


def _mismatch(name: str) -> BridgeError:
    return BridgeError(ReasonCode.ARTIFACT_MISMATCH, f"{name}{DIGEST}")
