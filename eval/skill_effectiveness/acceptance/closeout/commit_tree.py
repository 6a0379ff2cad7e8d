"""The policy files of a commit, from its stored objects and nothing that lies in a working tree.

Source: closeout.md, section 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.tree import Below, EntryKind, TreeUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.execution.git import Git, TreeEntry

USUAL: Final = ".agents"
PREFETCH_BYTES: Final = 16_777_216
BLOB_BYTES: Final = 67_108_864
_KINDS: Final = {
    "100644": EntryKind.FILE,
    "100755": EntryKind.FILE,
    "040000": EntryKind.FOLDER,
    "120000": EntryKind.LINK,
}
# 100664 is what very old versions of git stored for a file that its group may write.
_OLD_FILE: Final = "100664"


class CommitTree:
    """A `PolicyTree` over the objects of one commit.

    What lies below `.agents` is listed and fetched at once, because nearly every policy is there; the whole
    commit is listed only for a path elsewhere.

    Args:
        git: of the checkout.
        commit: full id.
    """

    def __init__(self, git: Git, commit: str) -> None:
        self._git = git
        self._commit = commit
        self._entries: dict[str, TreeEntry] = {}
        self._whole = False
        self._held: dict[str, bytes] = {}
        self._list(USUAL)
        usual = {entry.object_id: entry.size for entry in self._entries.values() if _is_blob(entry)}
        if sum(usual.values()) <= PREFETCH_BYTES:
            self._fetch(list(usual))

    def _list(self, *below: str) -> None:
        entries = self._git.listing(self._commit, *below)
        if entries is None:
            raise TreeUnreadableError("the commit cannot be listed")
        self._whole = not below
        self._entries = {entry.path.decode(errors="surrogateescape"): entry for entry in entries}

    def _entry(self, path: str) -> TreeEntry | None:
        if not self._whole and path.split("/", 1)[0] != USUAL:
            self._list()
        return self._entries.get(path)

    def kind(self, path: str) -> EntryKind:
        """See `PolicyTree`; a submodule is `other`."""
        entry = self._entry(path)
        return EntryKind.MISSING if entry is None else _kind(entry)

    def target(self, path: str) -> str:
        """See `PolicyTree`."""
        return self.read(path).decode(errors="surrogateescape")

    def read(self, path: str) -> bytes:
        """See `PolicyTree`."""
        entry = self._entry(path)
        if entry is None:
            raise TreeUnreadableError("cannot be read (missing)")
        if entry.size > BLOB_BYTES:
            raise TreeUnreadableError("cannot be read (file_size)")
        if entry.object_id not in self._held:
            self._fetch([entry.object_id])
        return self._held[entry.object_id]

    def below(self, folder: str) -> Iterable[Below]:
        """See `PolicyTree`."""
        self._entry(folder)
        start = f"{folder}/"
        return [
            Below(path.removeprefix(start), _kind(entry))
            for path, entry in self._entries.items()
            if path.startswith(start)
        ]

    def _fetch(self, object_ids: list[str]) -> None:
        blobs = self._git.blobs(object_ids) if object_ids else ()
        if blobs is None:
            raise TreeUnreadableError("an object of the commit is missing")
        self._held.update(zip(object_ids, blobs, strict=True))


def _kind(entry: TreeEntry) -> EntryKind:
    return EntryKind.FILE if entry.mode == _OLD_FILE else _KINDS.get(entry.mode, EntryKind.OTHER)


def _is_blob(entry: TreeEntry) -> bool:
    return _kind(entry) in {EntryKind.FILE, EntryKind.LINK}
