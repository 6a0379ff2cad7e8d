"""Whose session folders these are, and whether that process is still there.

Source: field-failures.md F10.

A session removes its folders itself; only one that was killed cannot. So each parent folder holds a mark from
the moment it is made until everything else in it is gone, and `session_sweep` removes what a process that has
certainly ended left behind. A mark of another host, or one that cannot be compared, proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.strict import LARGEST_INTEGER, Profile

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings

MARK: Final = "session-owner.json"
MARK_BYTES: Final = 4096


class SessionOwner(BaseModel):
    """The process that made the folders of a session.

    Attributes:
        pid: its process id.
        process_start: start mark of that process, see `FileSystem.process_start`.
        boot_id: of the kernel it ran under.
        host: host name.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    artifact_contract: Literal["skill-effectiveness-session-owner-v1"] = (
        "skill-effectiveness-session-owner-v1"
    )
    pid: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
    process_start: str
    boot_id: str
    host: str

    @classmethod
    def here(cls, around: Surroundings) -> Self:
        """The process of these surroundings."""
        return cls(
            pid=around.pid,
            process_start=around.fs.process_start(around.pid),
            boot_id=around.boot_id,
            host=around.host,
        )

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The owner that a mark names.

        Raises:
            StrictError, DocumentError: the bytes are not what `line` gives.
        """
        return parse(cls, data, Profile.WIRE, canonical=Canonical.LINE)

    def line(self) -> bytes:
        """The content of the mark."""
        return dump_line(self.model_dump(mode="json"))

    def gone(self, around: Surroundings) -> bool:
        """Whether the process has certainly ended; False as soon as anything cannot be compared."""
        comparable = self.process_start and self.boot_id and around.boot_id and self.host == around.host
        if not comparable:
            return False
        if self.boot_id != around.boot_id:
            return True
        return around.fs.process_start(self.pid) != self.process_start
