"""A small pair: a result that holds the digest of its evidence, and the loader that checks it."""

from __future__ import annotations

import hashlib
import json

from skill_effectiveness.evidence.pair import Member

EVIDENCE, RESULT = "evidence.json", "result.json"
PENDING = (".evidence.pending.json", ".result.pending.json")
ALL = (EVIDENCE, RESULT, *PENDING)


class BadPairError(Exception):
    """The two documents do not belong together."""


def members(text: str = "observed") -> tuple[Member, Member]:
    """Evidence and result of one examination."""
    evidence = json.dumps({"evidence": text}).encode()
    result = json.dumps({"of": hashlib.sha256(evidence).hexdigest()}).encode()
    return Member(EVIDENCE, evidence), Member(RESULT, result)


def load(evidence: bytes, result: bytes) -> str:
    """What the evidence says, if the result is the one of it."""
    if json.loads(result) != {"of": hashlib.sha256(evidence).hexdigest()}:
        raise BadPairError
    said = json.loads(evidence)["evidence"]
    assert isinstance(said, str)
    return said
