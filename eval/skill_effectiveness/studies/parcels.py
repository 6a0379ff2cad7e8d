"""What comes back from another machine: one attempt as a sorted tar (studies.md section 3, table "Dask").

```
audit.jsonl  collected/<64 hex>…  oddities.jsonl  parcel.json  stderr.bin  stream.jsonl  tree.json
```

The files of a tree lie under the digests of their bytes; `tree.json` says which names they have. So no name
of an agent's making is ever a name in a parcel, and reading one writes nothing anywhere: it ends with a
result in memory or with a `ParcelError`.

There is exactly one form of a parcel: regular files of one owner and time, sorted, each name once, sizes and
padding as ustar has them, nothing behind the end. Every header is compared with the one that this program
would have written, so links, devices, absolute names and all the rest have no way in.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution.trace_log import MOST_REFUSED
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow
from skill_effectiveness.providers.usage import MOST_COST, MOST_TOKENS
from skill_effectiveness.studies.agent import AttemptResult, Observed
from skill_effectiveness.studies.attempt_records import MOST_AUDIT_FAULTS, AuditFault, Refusal
from skill_effectiveness.studies.attempts import (
    COLLECTED,
    LARGEST_RESULT,
    ODDITIES,
    RESULT_SIZE,
    STDERR,
    STREAM,
    TREE,
)
from skill_effectiveness.studies.cluster_orders import WorkerFacts
from skill_effectiveness.studies.errors import StudyError
from skill_effectiveness.studies.file_trees import HeldTree, Oddity, OddityKind, read_listing
from skill_effectiveness.studies.rows import Usage, Word
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.models import AuditRow, IsolationEvidence, RootPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HEAD: Final = "parcel.json"
AUDIT: Final = "audit.jsonl"
PARCEL_CONTRACT: Final = "skill-effectiveness-study-parcel-v1"
LARGEST_PARCEL: Final = LARGEST_RESULT
"""Bytes of a whole parcel."""

WORKER_PLACE: Final = "/attempt"
"""What an attempt's folder is called where it runs; the coordinator puts the real one in its place."""

_BLOCK: Final = 512
_END: Final = bytes(2 * _BLOCK)
_SIZE: Final = slice(124, 135)
_FILE_NAME: Final = re.compile(rf"{COLLECTED}/([0-9a-f]{{64}})")
_NAMES: Final = frozenset({AUDIT, ODDITIES, HEAD, STDERR, STREAM, TREE})


class ParcelCode(StrEnum):
    """Why a parcel is refused."""

    PARCEL_SIZE = "parcel_size"
    PARCEL_FORM = "parcel_form"
    PARCEL_NAMES = "parcel_names"
    PARCEL_DOCUMENT = "parcel_document"
    PARCEL_ORDER = "parcel_order"
    PARCEL_WORKER = "parcel_worker"
    PARCEL_TREE = "parcel_tree"


class ParcelError(Exception):
    """A parcel is refused; nothing of it was kept.

    Attributes:
        code: the closed word.
        sentence: for people.
    """

    def __init__(self, code: ParcelCode, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)


class ParcelHead(FrozenModel):
    """`parcel.json`.

    Attributes:
        order_digest: of the order that was carried out.
        tree: digest of `tree.json`; null when nothing was collected.
        worker: who carried it out.
        ended: the class, as the agent's driver sees it.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-parcel-v1"]
    order_digest: DigestText
    tree: DigestText | None
    worker: WorkerFacts
    ended: EndClass
    detail: Word | None
    model_reported: Annotated[str, Field(min_length=1, max_length=256)] | None
    usage: Usage
    residual: HostResidualRow
    events: SkillEventsRow
    evidence: IsolationEvidence | None
    audit_complete: bool
    roots_enforced: bool
    read_roots: Annotated[tuple[RootPath, ...], Field(max_length=1_024)]
    write_roots: Annotated[tuple[RootPath, ...], Field(max_length=1_024)]
    refused: Annotated[tuple[Refusal, ...], Field(max_length=MOST_REFUSED)]
    audit_faults: Annotated[tuple[AuditFault, ...], Field(max_length=MOST_AUDIT_FAULTS)]


class _OddityLine(FrozenModel):
    path: Annotated[str, Field(min_length=1, max_length=65_536)]
    kind: OddityKind


# Packing.


def pack(result: AttemptResult, order_digest: str, worker: WorkerFacts) -> bytes:
    """A parcel of what an attempt came to; of one that is too large only what it came to, as `limit`.

    Raises:
        StudyError: a file of the tree is no longer what was collected.
    """
    if _size(result) <= LARGEST_PARCEL:
        parcel = _packed(result, order_digest, worker)
        if len(parcel) <= LARGEST_PARCEL:
            return parcel
    beyond: dict[str, Any] = {"files": None, "oddities": (), "stream": None, "stderr": None}
    unsent = ("more was left than is sent",) if result.observed.audit else ()
    faults = (*unsent, *result.observed.audit_faults)
    observed = replace(result.observed, audit=(), audit_complete=False, audit_faults=faults)
    if result.ended is not EndClass.CONTAMINATED:
        beyond |= {"ended": EndClass.LIMIT, "detail": RESULT_SIZE}
    return _packed(replace(result, observed=observed, **beyond), order_digest, worker)


def _size(result: AttemptResult) -> int:
    files = () if result.files is None else result.files.tree.files
    return sum(entry.size for entry in files) + len(result.stream or b"") + len(result.stderr or b"")


def _packed(result: AttemptResult, order_digest: str, worker: WorkerFacts) -> bytes:
    files = result.files
    head = ParcelHead(
        schema_version=1,
        artifact_contract=PARCEL_CONTRACT,
        order_digest=order_digest,
        tree=None if files is None else files.tree.digest,
        worker=worker,
        ended=result.ended,
        detail=result.detail,
        model_reported=result.model_reported,
        usage=result.usage,
        residual=result.residual,
        events=result.events,
        evidence=result.observed.evidence,
        audit_complete=result.observed.audit_complete,
        roots_enforced=result.observed.roots_enforced,
        read_roots=result.observed.read_roots,
        write_roots=result.observed.write_roots,
        refused=result.observed.refused,
        audit_faults=result.observed.audit_faults[:MOST_AUDIT_FAULTS],
    )
    held: dict[str, bytes] = {HEAD: dump_line(to_json(head))}
    if result.observed.audit:
        rows = (row.model_dump(mode="json", exclude_unset=True) for row in result.observed.audit)
        held[AUDIT] = b"".join(map(dump_line, rows))
    if result.oddities:
        lines = ({"path": found.path, "kind": str(found.kind)} for found in result.oddities)
        held[ODDITIES] = b"".join(map(dump_line, lines))
    recorded = {STREAM: result.stream, STDERR: result.stderr}
    held |= {name: data for name, data in recorded.items() if data is not None}
    if files is not None:
        held[TREE] = files.tree.listing
        for entry in files.tree.files:
            held[f"{COLLECTED}/{str(entry.sha256).removeprefix('sha256:')}"] = files.blob(entry)
    return tar(held)


def tar(files: Mapping[str, bytes]) -> bytes:
    """Files as one sorted tar; the same files give the same bytes."""
    parts = []
    for name in sorted(files):
        data = files[name]
        parts += [_header(name, len(data)), data, bytes(-len(data) % _BLOCK)]
    return b"".join([*parts, _END])


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


# Reading.


def untar(data: bytes) -> dict[str, bytes]:
    """The files of a tar that is exactly as `tar` writes it.

    Raises:
        ParcelError: `parcel_size`, `parcel_form`, `parcel_names`.
    """
    if len(data) > LARGEST_PARCEL:
        raise ParcelError(ParcelCode.PARCEL_SIZE, f"a parcel is larger than {LARGEST_PARCEL} bytes.")
    files: dict[str, bytes] = {}
    last = ""
    for name, held in _members(memoryview(data)):
        if name <= last:
            raise ParcelError(ParcelCode.PARCEL_NAMES, "the names in a parcel are not sorted, each once.")
        files[name] = held
        last = name
    return files


def _members(data: memoryview) -> Iterator[tuple[str, bytes]]:
    at = 0
    while data[at:] != _END:
        header = bytes(data[at : at + _BLOCK])
        name, size = _stated(header)
        start = at + _BLOCK
        at = start + size + -size % _BLOCK
        padding = data[start + size : at]
        if header != _header(name, size) or len(data) < at or any(padding):
            raise _malformed()
        yield name, bytes(data[start : start + size])


def _stated(header: bytes) -> tuple[str, int]:
    """The name and the size that a header states; whether it is one is found by making it anew."""
    try:
        name = header[:100].rstrip(b"\0").decode("ascii")
        size = int(header[_SIZE], 8)
    except ValueError:
        raise _malformed() from None
    if not (name in _NAMES or _FILE_NAME.fullmatch(name)) or size < 0:
        raise ParcelError(ParcelCode.PARCEL_NAMES, "a parcel holds a name that none has.")
    return name, size


def _malformed() -> ParcelError:
    return ParcelError(ParcelCode.PARCEL_FORM, "a parcel is cut off, or is no tar as this program writes it.")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a parcel has to be of.

    Attributes:
        order_digest: of the order that was sent.
        runtime_manifest_hash: of the program that every worker runs.
        worker: it was sent to; None takes any.
    """

    order_digest: str
    runtime_manifest_hash: str
    worker: WorkerFacts | None = None


def unpack(data: bytes, expected: Expected) -> AttemptResult:
    """The result in a parcel, every part of it checked.

    Raises:
        ParcelError: see `ParcelCode`.
    """
    files = untar(data)
    head = _head(files)
    if head.order_digest != expected.order_digest:
        raise ParcelError(ParcelCode.PARCEL_ORDER, "a parcel is of another order than the one it answers.")
    strange = head.worker.runtime_manifest_hash != expected.runtime_manifest_hash
    if strange or (expected.worker is not None and head.worker != expected.worker):
        sentence = "a parcel is of another worker than the one that was asked."
        raise ParcelError(ParcelCode.PARCEL_WORKER, sentence)
    audit = _audit(files.get(AUDIT, b""))
    _demand_usable(head, audit)
    return AttemptResult(
        ended=head.ended,
        detail=head.detail,
        model_reported=head.model_reported,
        usage=head.usage,
        files=_tree(files, head.tree),
        oddities=_oddities(files.get(ODDITIES, b"")),
        residual=head.residual,
        events=head.events,
        observed=Observed(
            evidence=head.evidence,
            audit=audit,
            audit_complete=head.audit_complete,
            roots_enforced=head.roots_enforced,
            read_roots=head.read_roots,
            write_roots=head.write_roots,
            refused=head.refused,
            audit_faults=head.audit_faults,
        ),
        stream=files.get(STREAM),
        stderr=files.get(STDERR),
    )


def _head(files: Mapping[str, bytes]) -> ParcelHead:
    """The head, which is exactly as `pack` writes it: written again, it is the same bytes."""
    data = files.get(HEAD, b"")
    try:
        head = ParcelHead.model_validate_json(data, strict=True)
        same = dump_line(to_json(head)) == data
    except (ValidationError, EvidenceError) as error:
        raise _no_document(HEAD) from error
    if not same:
        raise _no_document(HEAD)
    return head


def _demand_usable(head: ParcelHead, audit: tuple[AuditRow, ...]) -> None:
    """What no agent comes to, and what no trial could be completed with, however well it is written."""
    used = head.usage
    counters = (used.input_tokens, used.cached_tokens, used.output_tokens, used.reasoning_tokens)
    counted = all(each is None or each <= MOST_TOKENS for each in (*counters, used.tool_calls))
    bounded = all(each is None or each <= MOST_COST for each in (used.cost_units, used.wall_seconds))
    left = head.tree is not None or head.ended is not EndClass.COMPLETED
    seen = bool(audit) or not head.audit_complete
    roots = all(
        "/" not in each and len(set(each)) == len(each) for each in (head.read_roots, head.write_roots)
    )
    if not (counted and bounded and left and seen and roots):
        raise _no_document(HEAD)


def _tree(files: Mapping[str, bytes], digest: str | None) -> HeldTree | None:
    """The tree whose digest the head names; its files are all there, and nothing else is."""
    sentence = "the files in a parcel are not those of its list."
    listing = files.get(TREE)
    blobs = {f"sha256:{found[1]}": name for name in files if (found := _FILE_NAME.fullmatch(name))}
    if listing is None or digest is None:
        if listing is not None or digest is not None or blobs:
            raise ParcelError(ParcelCode.PARCEL_TREE, sentence)
        return None
    try:
        tree = read_listing(listing)
    except StudyError as error:
        raise ParcelError(ParcelCode.PARCEL_TREE, sentence) from error
    sizes = {(str(entry.sha256), entry.size) for entry in tree.files}
    held = {(each, len(files[name])) for each, name in blobs.items()}
    whole = digest_bytes(listing) == digest and sizes == held
    if not whole or any(digest_bytes(files[name]) != each for each, name in blobs.items()):
        raise ParcelError(ParcelCode.PARCEL_TREE, sentence)
    return HeldTree(tree, lambda entry: files[blobs[str(entry.sha256)]])


def _oddities(data: bytes) -> tuple[Oddity, ...]:
    try:
        lines = [validate(_OddityLine, read_json(line, Profile.ROW)) for line in _lines(data, ODDITIES)]
    except EvidenceError as error:
        raise _no_document(ODDITIES) from error
    return tuple(Oddity(line.path, line.kind) for line in lines)


def _audit(data: bytes) -> tuple[AuditRow, ...]:
    rows = []
    for line in _lines(data, AUDIT):
        try:
            read_json(line, Profile.ROW)
            rows.append(AuditRow.model_validate_json(line, strict=True))
        except (EvidenceError, ValidationError) as error:
            raise _no_document(AUDIT) from error
    return tuple(rows)


def _lines(data: bytes, name: str) -> list[bytes]:
    if not data:
        return []
    if not data.endswith(b"\n"):
        raise _no_document(name)
    return data.removesuffix(b"\n").split(b"\n")


def _no_document(name: str) -> ParcelError:
    return ParcelError(ParcelCode.PARCEL_DOCUMENT, f"{name} in a parcel is not of its form.")


def put_in_place(result: AttemptResult, place: str) -> AttemptResult:
    """The result as if the attempt had run here: what was observed names this machine's folder.

    Args:
        result: of a worker.
        place: absolute path of the attempt's folder here.
    """
    observed = result.observed
    rows = tuple(row.model_copy(update={"path": _placed(row.path, place)}) for row in observed.audit)
    refused = tuple(each.model_copy(update={"path": _placed(each.path, place)}) for each in observed.refused)
    placed = replace(
        observed,
        audit=rows,
        refused=refused,
        read_roots=tuple(_placed(root, place) for root in observed.read_roots),
        write_roots=tuple(_placed(root, place) for root in observed.write_roots),
    )
    return replace(result, observed=placed)


def _placed(path: str, place: str) -> str:
    within = path == WORKER_PLACE or path.startswith(f"{WORKER_PLACE}/")
    return f"{place}{path.removeprefix(WORKER_PLACE)}" if within else path
