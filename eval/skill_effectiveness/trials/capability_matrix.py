"""Which task families a provider may be causally tried on (trials.md section 8).

Only a row read back from the bytes of its probe file counts (`read_probe_file`); a row that somebody hands
over in memory is listed and never makes a matrix ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.capability import MatrixStatus, eligible, parse_probe
from skill_effectiveness.protocol.document import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import JsonValue

    from skill_effectiveness.protocol.capability import CapabilityRow
    from skill_effectiveness.protocol.words import TaskFamily


@dataclass(frozen=True, slots=True)
class ProbeFile:
    """One row as its file holds it; made by `read_probe_file` alone.

    Attributes:
        row: the row.
        entry_hash: its object digest.
    """

    row: CapabilityRow
    entry_hash: str


@dataclass(frozen=True, slots=True)
class CapabilityMatrix:
    """The rows of one provider over the families of a plan.

    Attributes:
        status: `ready` or `causal_core_unavailable`.
        covered: families with an eligible row read back from a file.
        lacking: families without one, sorted.
        rows: every row, those handed over in memory included.
    """

    status: MatrixStatus
    covered: tuple[TaskFamily, ...]
    lacking: tuple[TaskFamily, ...]
    rows: tuple[CapabilityRow, ...]

    @property
    def is_ready(self) -> bool:
        """Whether a causal verdict has the capability it needs."""
        return self.status is MatrixStatus.READY


def read_probe_file(data: bytes) -> ProbeFile:
    """The row in the bytes of a probe file, with both of its hashes recomputed.

    Raises:
        EvidenceError: not strict JSON.
        CapabilityError: not a probe artifact.
    """
    probe = parse_probe(read_json(data, Profile.DOCUMENT, want_object=True))
    return ProbeFile(probe.entry, digest_object(to_json(probe.entry)))


def matrix(
    families: Iterable[TaskFamily],
    provider: str,
    probes: Sequence[ProbeFile],
    in_memory: Sequence[CapabilityRow] = (),
) -> CapabilityMatrix:
    """Judge the rows that were measured for one provider.

    Args:
        families: of the tasks; a matrix over none is not ready.
        provider: of the trials; rows of another one say nothing of it.
        probes: rows read back from files.
        in_memory: rows that nothing on disk stands behind.
    """
    needed = sorted(set(families))
    able = {
        probe.row.task_family for probe in probes if probe.row.provider == provider and eligible(probe.row)
    }
    lacking = tuple(family for family in needed if family not in able)
    ready = bool(needed) and not lacking
    return CapabilityMatrix(
        status=MatrixStatus.READY if ready else MatrixStatus.CAUSAL_CORE_UNAVAILABLE,
        covered=tuple(family for family in needed if family in able),
        lacking=lacking,
        rows=(*(probe.row for probe in probes), *in_memory),
    )


def matrix_json(found: CapabilityMatrix) -> dict[str, JsonValue]:
    """The matrix as plain JSON values."""
    return {
        "status": found.status.value,
        "covered": [family.value for family in found.covered],
        "lacking": [family.value for family in found.lacking],
        "rows": [to_json(row) for row in found.rows],
    }
