"""Which pairs of candidates were prepared where, across folders (controls.md section 4).

Preparing the same two candidates in a second folder would be a second draw, and one could keep the better
one. Without a registry that cannot be noticed, and no artifact claims that it was. The registry is a
journal: a row is written before what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.evidence.canonical import digest_object, digest_text
from skill_effectiveness.evidence.journal import Entry, Journal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.controls.chain import Preparation
    from skill_effectiveness.controls.documents import Selection
    from skill_effectiveness.evidence.root import PrivateRoot

PURPOSE: Final = "active-control-registry"
PREPARATION_ROW: Final = "preparation"
MEASUREMENT_ROW: Final = "measurement"
_ROWS: Final = frozenset({PREPARATION_ROW, MEASUREMENT_ROW})


@dataclass(frozen=True, slots=True)
class PairRegistry:
    """The registry of one folder, opened for each row.

    Args:
        root: the folder of the registry.
        state: where the copies of its pin go; None for none.
    """

    root: PrivateRoot
    state: PrivateRoot | None

    def record_preparation(self, root: PrivateRoot, preparation: Preparation) -> None:
        """Write down that a pair is about to be prepared in a folder.

        Raises:
            ControlError: `pair_reused`: it was in another one.
            JournalError: the registry is damaged.
            LockError: another process has it open.
        """
        packages = [candidate.package_hash for candidate in preparation.state.candidate_packages]
        self._record(PREPARATION_ROW, root, packages)

    def record_measurement(self, root: PrivateRoot, selection: Selection) -> None:
        """Write down that the choice of a pair is about to be measured in a folder.

        Raises:
            ControlError: `pair_reused`: it was in another one.
            JournalError: the registry is damaged.
            LockError: another process has it open.
        """
        self._record(MEASUREMENT_ROW, root, selection.candidate_package_hashes)

    def _record(self, kind: str, place: PrivateRoot, packages: Sequence[str]) -> None:
        pair, where = digest_object(sorted(packages)), digest_text(str(place.path))
        with Journal.open(self.root, purpose=PURPOSE, state=self.state) as journal:
            known = [row for row in journal.rows() if row.type in _ROWS and row.body.get("pair_hash") == pair]
            if any(row.body.get("root_hash") != where for row in known):
                raise ControlError(
                    ControlCode.PAIR_REUSED,
                    "registry",
                    "these two candidates were prepared in another folder; a pair gets one draw only.",
                )
            if all(row.type != kind for row in known):
                journal.append([Entry(kind, {"pair_hash": pair, "root_hash": where})])
