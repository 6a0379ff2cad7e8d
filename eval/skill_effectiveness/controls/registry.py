"""Which pairs of candidates were prepared where, across folders (controls.md section 4).

Preparing the same two candidates again would be a second draw, and one could keep the better one. Without a
registry that cannot be noticed, and no artifact claims that it was. The registry is a journal: a row is
written before what it is about.

| row | body | one pair has |
|---|---|---|
| `preparation` | `pair_hash, root_hash, request_hash` | one draw, in one folder |
| `measurement` | the same and `selection_artifact_hash` | one choice that is measured |

`root_hash` is the digest of the folder's path: a folder that was moved counts as another one, since nothing
tells it from a copy. `request_hash` tells a draw from one made in the same place after the first was deleted.
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
        """Write down that a pair is about to be prepared in a folder; again for the same draw is a no-op.

        Raises:
            ControlError: `pair_reused`: there was another draw, or another folder.
            JournalError: the registry is damaged.
            LockError: another process has it open.
        """
        packages = [candidate.package_hash for candidate in preparation.state.candidate_packages]
        self._record(PREPARATION_ROW, packages, _body(root, packages, preparation.state.request_hash))

    def record_measurement(self, root: PrivateRoot, selection: Selection) -> None:
        """Write down that the choice of a pair is about to be measured in a folder; again is a no-op.

        Raises:
            ControlError: `pair_reused`: there was another draw, folder or choice.
            JournalError: the registry is damaged.
            LockError: another process has it open.
        """
        packages = selection.candidate_package_hashes
        body = _body(root, packages, selection.request_hash)
        self._record(MEASUREMENT_ROW, packages, body | {"selection_artifact_hash": selection.artifact_hash})

    def _record(self, kind: str, packages: Sequence[str], body: dict[str, str]) -> None:
        pair = pair_hash(packages)
        with Journal.open(self.root, purpose=PURPOSE, state=self.state) as journal:
            known = [row for row in journal.rows() if row.type in _ROWS and row.body.get("pair_hash") == pair]
            for row in known:
                if any(row.body.get(name) != value for name, value in body.items() if name in row.body):
                    raise ControlError(
                        ControlCode.PAIR_REUSED,
                        "registry",
                        "these two candidates were prepared or measured before, in another folder or with "
                        "another draw; a pair gets one. Go on in the first folder, or have new candidates "
                        "written.",
                    )
            if all(row.type != kind for row in known):
                journal.append([Entry(kind, dict(body))])


def pair_hash(packages: Sequence[str]) -> str:
    """Two candidates, whichever was named first."""
    return digest_object(sorted(packages))


def _body(root: PrivateRoot, packages: Sequence[str], request_hash: str) -> dict[str, str]:
    return {
        "pair_hash": pair_hash(packages),
        "root_hash": digest_text(str(root.path)),
        "request_hash": request_hash,
    }
