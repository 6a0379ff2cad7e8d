"""The identity of a trial store: a file that survives when the folder is moved.

Source: evidence.md, section 4, row "identity", and section 5 (durability).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.lock import Lock, held_locks
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.evidence.writes import sync_folder

if TYPE_CHECKING:
    from skill_effectiveness.evidence.lock import Held
    from skill_effectiveness.evidence.root import PrivateRoot

FILE: Final = "root.json"
LOCK: Final = ".root.lock"
_ID_BYTES: Final = 16


class RootDocument(BaseModel):
    """What `root.json` says.

    Attributes:
        root_id: made once, at random.
        located_at: every absolute path the root was used at, in order of first use.
        durability: present when the file system has no fsync for folders.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # Not a literal: that would take `true` for 1.
    schema_version: Annotated[int, Field(ge=1, le=1)]
    artifact_contract: Literal["skill-effectiveness-root-v1"]
    root_id: Annotated[str, Field(pattern=r"^root-[0-9a-f]{32}$")]
    located_at: Annotated[list[str], Field(min_length=1)]
    durability: Literal["no_folder_fsync"] | None = None


def identify(root: PrivateRoot, held: Held | None) -> RootDocument:
    """The identity of a root, made on first use; a path it was not used at before is added to it.

    Args:
        root: a trial store.
        held: the root's own lock if the caller holds it; otherwise `.root.lock` is taken for a moment.

    Raises:
        LockError: the lock was not obtained.
        FileError: `root.json` is not a private file, or could not be written.
        StrictError, DocumentError: `root.json` is not what this program writes; it stays as it is.
    """
    if held is None:
        with Lock(root, LOCK).hold(action="note where the root is"):
            return _settle(root)
    if held not in held_locks() or held.folder != root.path:
        raise ValueError("not a lock of this root, or not held any more")
    return _settle(root)


def _settle(root: PrivateRoot) -> RootDocument:
    """Read, make or extend `root.json`, under the lock."""
    here = str(root.path)
    with reported("."):
        durable = sync_folder(root.folder.fs, root.folder.fd)
    if root.exists(FILE):
        known = parse(RootDocument, root.read(FILE), Profile.DOCUMENT, canonical=Canonical.LINE)
    else:
        known = RootDocument(
            schema_version=1,
            artifact_contract="skill-effectiveness-root-v1",
            root_id=f"root-{root.around.entropy(_ID_BYTES).hex()}",
            located_at=[here],
        )
        root.publish(FILE, _bytes(known))
    paths = known.located_at if here in known.located_at else [*known.located_at, here]
    settled = known.model_copy(
        update={"located_at": paths, "durability": known.durability if durable else "no_folder_fsync"}
    )
    if settled != known:
        root.replace(FILE, _bytes(settled))
    return settled


def _bytes(document: RootDocument) -> bytes:
    return dump_line(document.model_dump(exclude_none=True))
