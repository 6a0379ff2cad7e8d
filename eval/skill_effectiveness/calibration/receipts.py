"""The receipts of one artifact root as they lie there (calibration.md, section 4).

A sample leaves three: a ledger entry, an intent and the sample itself; an observation stands beside them.
Here they are only found and read, every byte and every name; `ledger` judges them. Receipts are read at rest
only, which means under `.sample.lock`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.errors import demand_seen
from skill_effectiveness.calibration.models import SAMPLE_ID
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.keys import FILE_LIMIT as KEY_FILE_LIMIT
from skill_effectiveness.evidence.names import temporary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.root import PrivateRoot

LEDGERS: Final = "sample-ledger"
SAMPLES: Final = "samples"
OBSERVATIONS: Final = "observations"
PROVIDER_LOG: Final = "provider-log"
FINALIZATION_INTENT: Final = ".finalization.intent.json"
ORIENTATION_KEY: Final = ".orientation.key"

_RECEIPT: Final = re.compile(rf"({SAMPLE_ID})\.json")
_INTENT: Final = re.compile(rf"\.({SAMPLE_ID})\.intent\.json")

Found = bytes | EvidenceError
"""The bytes of a file, or why they could not be had."""


def artifact_root_hash(root: PrivateRoot) -> str:
    """What binds a receipt to its root: `H({"artifact_root": resolved path})` (calibration.md, section 4)."""
    return digest_object({"artifact_root": str(root.path)})


def intent_name(sample_id: str) -> str:
    """File name of a sample's intent, in the folder of the samples."""
    return f".{sample_id}.intent.json"


def sample_name(sample_id: str) -> str:
    """File name of a sample, of its ledger entry and of its observation, each in its own folder."""
    return f"{sample_id}.json"


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in an artifact root.

    Attributes:
        artifact_root_hash: of the root.
        ledgers: the bytes of every receipt by id, here and in the next three.
        intents: likewise.
        samples: likewise.
        observations: likewise.
        strays: names that are no receipt.
        logs: ids of calls that left a private log, each of which was made therefore.
        orientation_key: what the samples were drawn with; None when there is none.
    """

    artifact_root_hash: str
    ledgers: Mapping[str, Found]
    intents: Mapping[str, Found]
    samples: Mapping[str, Found]
    observations: Mapping[str, Found]
    strays: tuple[str, ...] = ()
    logs: frozenset[str] = frozenset()
    orientation_key: Found | None = field(default=None, repr=False)


def intent_may_stand(root: PrivateRoot, sample_id: str) -> bool:
    """Whether the record that spends the one call of an id is there; True when nobody can say."""
    try:
        with root.child(SAMPLES) as samples:
            return samples.exists(intent_name(sample_id))
    except EvidenceError:
        return True


def read_listing(root: PrivateRoot) -> Listing:
    """Every receipt of a root, as it lies there; an unreadable file is kept as its error, never skipped.

    Raises:
        FileError: `io_error`: something could not be read for a reason that may pass.
    """
    ledgers, ledger_strays = _read_folder(root, LEDGERS, {"receipt": _RECEIPT})
    both, sample_strays = _read_folder(root, SAMPLES, {"intent": _INTENT, "receipt": _RECEIPT})
    observations, observation_strays = _read_folder(root, OBSERVATIONS, {"receipt": _RECEIPT})
    logs, log_strays = _read_folder(root, PROVIDER_LOG, {"receipt": _RECEIPT})
    return Listing(
        artifact_root_hash=artifact_root_hash(root),
        ledgers=ledgers["receipt"],
        intents=both["intent"],
        samples=both["receipt"],
        observations=observations["receipt"],
        strays=(*ledger_strays, *sample_strays, *observation_strays, *log_strays),
        logs=frozenset(logs["receipt"]),
        orientation_key=_read_key(root),
    )


def sweep(root: PrivateRoot) -> None:
    """Drop what interrupted writes of ours left; the caller holds the lock. Anything unknown stays."""
    root.sweep()
    for folder in (LEDGERS, SAMPLES, OBSERVATIONS, PROVIDER_LOG):
        try:
            place = root.child(folder)
        except EvidenceError:
            continue  # absent, or unsafe and then named by the judgement of the receipts
        with place:
            place.sweep()


def _read_folder(
    root: PrivateRoot, folder: str, kinds: Mapping[str, re.Pattern[str]]
) -> tuple[dict[str, dict[str, Found]], list[str]]:
    """Files of one folder by kind and id, and the names that are neither a receipt nor a leftover of ours."""
    found: dict[str, dict[str, Found]] = {kind: {} for kind in kinds}
    strays: list[str] = []
    if not root.exists(folder):
        return found, strays
    try:
        place = root.child(folder)
    except EvidenceError as error:
        demand_seen(error)
        return found, [folder]  # a link, a foreign owner or another mode: nothing below it may be believed
    with place:
        for name in sorted(place.names()):
            for kind, pattern in kinds.items():
                if match := pattern.fullmatch(name):
                    found[kind][match.group(1)] = _read(place, name)
                    break
            else:
                if temporary_of(name) is None:
                    strays.append(f"{folder}/{name}")
    return found, strays


def _read(place: PrivateRoot, name: str) -> Found:
    try:
        return place.read(name)
    except FileError as error:
        demand_seen(error)
        return error


def _read_key(root: PrivateRoot) -> Found | None:
    try:
        return root.read(ORIENTATION_KEY, KEY_FILE_LIMIT)
    except FileError as error:
        demand_seen(error)
        return None if error.code is FileCode.MISSING else error
