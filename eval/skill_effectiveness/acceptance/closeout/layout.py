"""Where records, logs and decisions lie below the evidence directory.

Source: closeout.md, section 7, "Layout".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.policy_models import SLUG
from skill_effectiveness.acceptance.closeout.records import COMMIT, DIGEST

EVIDENCE: Final = "evidence"
LOGS: Final = "logs"
DECISIONS: Final = "decisions"
STAGING: Final = "staging"
LOCK: Final = "lock"
IGNORE: Final = ".gitignore"
RECORD_SUFFIX: Final = ".json"
LOG_SUFFIX: Final = ".log"
ABSENT: Final = "none"
"""Stands for the digest where there is no policy."""

_ATTEMPT: Final = re.compile(r"([1-9][0-9]{0,8})\.(?:json|log)")
_SLUG: Final = re.compile(SLUG.removeprefix("^").removesuffix("$"))


@dataclass(frozen=True, slots=True)
class Place:
    """The attempts of one item at one candidate under one policy.

    Raises:
        CloseoutError: `evidence_path_invalid`: digest, head or a segment of the id has another form.
    """

    digest: str
    head: str
    item_id: str

    def __post_init__(self) -> None:
        legal = re.match(DIGEST, self.digest) and re.match(COMMIT, self.head) and "\n" not in self.head
        if not legal or not all(_SLUG.fullmatch(segment) for segment in self.item_id.split("/")):
            raise CloseoutError(
                CloseoutCode.EVIDENCE_PATH_INVALID,
                "evidence path is invalid",
                "Only ids of the policy and full commit ids have a place for evidence.",
            )

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders between `evidence` or `logs` and the files."""
        return (self.digest.removeprefix("sha256:"), self.head, *self.item_id.split("/"))

    def log_path(self, attempt: int) -> str:
        """The path of a log as a record names it, relative to the evidence directory."""
        return "/".join([LOGS, *self.folders, f"{attempt}{LOG_SUFFIX}"])


def attempt_of(name: str) -> int:
    """The attempt that a file name tells; 0 for any other name."""
    match = _ATTEMPT.fullmatch(name)
    return int(match[1]) if match else 0


def decision_folders(gate: str, digest: str | None) -> tuple[str, ...]:
    """The folders of a decision."""
    return (DECISIONS, gate, ABSENT if digest is None else digest.removeprefix("sha256:"))
