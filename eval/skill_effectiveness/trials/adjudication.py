"""What a person decided about a pair: counted in reports, and never an input of a gate or verdict.

Source: trials.md section 9, "Human adjudication". One file for each pair and person,
`adjudication/<pair_id>/<grader_id>.json` below the controller's root, 0600 like everything there.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from skill_effectiveness.evidence.documents import RuleBroken, parse
from skill_effectiveness.evidence.faults import DocumentCode, DocumentError, Fault
from skill_effectiveness.evidence.names import temporary_of
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot

FOLDER: Final = "adjudication"
_SUFFIX: Final = ".json"
_PAIR: Final = re.compile(r"pair-[0-9a-f]{64}")


class Confidence(StrEnum):
    """How sure the person is."""

    HIGH = "high"
    LOW = "low"


def _said_something(text: str) -> str:
    if not text.strip():
        raise RuleBroken("This text is empty; say something.")
    return text


SomeText = Annotated[str, AfterValidator(_said_something)]


class Adjudication(FrozenModel):
    """One person's decision about one pair, in the seats the pair was shown in."""

    pair_id: Annotated[str, Field(pattern=r"^pair-[0-9a-f]{64}$")]
    grader_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    verdict: Verdict
    reason: SomeText
    rubric_version: SomeText
    confidence: Confidence
    needs_adjudication: bool


def read_adjudications(root: PrivateRoot) -> tuple[Adjudication, ...]:
    """Every adjudication below a controller's root, by pair and person; none when there is no such folder.

    Leftovers of interrupted writes are left out.

    Raises:
        EvidenceError: a file or folder is not private, is no adjudication, or has another place than what it
            says belongs to; a reader never counts part of them.
    """
    if not root.exists(FOLDER):
        return ()
    found: list[Adjudication] = []
    with root.child(FOLDER) as folder:
        for pair_id in _published(folder):
            if not _PAIR.fullmatch(pair_id):
                raise _misplaced(f"{FOLDER}/{pair_id}")
            with folder.child(pair_id) as pair:
                found += [_read(pair, pair_id, name) for name in _published(pair)]
    return tuple(found)


def _published(folder: PrivateRoot) -> list[str]:
    return [name for name in folder.names() if temporary_of(name) is None]


def _read(pair: PrivateRoot, pair_id: str, name: str) -> Adjudication:
    adjudication = parse(Adjudication, pair.read(name), Profile.WIRE)
    if (pair_id, name) != (adjudication.pair_id, adjudication.grader_id + _SUFFIX):
        raise _misplaced(f"{FOLDER}/{pair_id}/{name}")
    return adjudication


def _misplaced(where: str) -> DocumentError:
    sentence = (
        "An adjudication lies at adjudication/<pair_id>/<grader_id>.json by what it says; this one does not. "
        "Move it."
    )
    return DocumentError(Fault(DocumentCode.WRONG_VALUE, where, sentence))
