"""Loading a policy: the entry file, its imports, the skills its items name, and the identity of it all.

Source: closeout.md, sections 3 to 6. Everything is asked of a `PolicyTree`; each file is read once, and the
bytes that are parsed are the bytes that are hashed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from skill_effectiveness.acceptance.closeout.errors import PolicyError
from skill_effectiveness.acceptance.closeout.identity import policy_digest
from skill_effectiveness.acceptance.closeout.policy_models import (
    PolicyDocument,
    ResolvedCommand,
    ResolvedItem,
    ResolvedReview,
    resolved,
)
from skill_effectiveness.acceptance.closeout.policy_paths import (
    SKILL_FILE,
    is_policy_path,
    is_skill_path,
    resolve,
)
from skill_effectiveness.acceptance.closeout.tree import EntryKind, TreeUnreadableError
from skill_effectiveness.acceptance.closeout.words import ENTRY
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import LONE_SURROGATE
from skill_effectiveness.evidence.yaml12 import YamlError, read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.acceptance.closeout.policy_models import ImportEntry
    from skill_effectiveness.acceptance.closeout.tree import PolicyTree
    from skill_effectiveness.evidence.strict import JsonValue

_ID_PLACE: Final = re.compile(r"/items/(?P<item>[0-9]+)/id|/imports/(?P<import>[0-9]+)/as")
_ID_MOST: Final = 256
_DEEPEST: Final = 64
_ENTERED_MOST: Final = 4096
"""A few files that import each other under many names could ask for more work than there is time."""
POLICY_BYTES_MOST: Final = 4_194_304
SKILL_BYTES_MOST: Final = 134_217_728
SKILL_NAMES_MOST: Final = 262_144
EXEC_CHARACTERS_MOST: Final = 16_777_216
ITEMS_MOST: Final = 4096
"""What is read or kept of a policy together: a few small files can stand for more than a machine holds."""
_SEGMENT_MOST: Final = 255
"""An item has a folder for each segment of its id, and no file system takes a longer name."""
_OUTSIDE: Final = "import path is not repository-relative"
_NO_SKILL_PATH: Final = "skill path is not a repository SKILL.md"


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """A policy that loaded, or the fact that there is none.

    Attributes:
        path: of the entry file; `None` when it does not exist.
        digest: the policy identity; `None` when there is no entry file.
        items: in execution order.
        files: path to bytes of every policy file and every file of a skill that an item names.
    """

    path: str | None = None
    digest: str | None = None
    items: tuple[ResolvedItem, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def absent(self) -> bool:
        """Whether there is no entry file, and so no requirement."""
        return self.path is None

    def at(self, gate: str) -> tuple[ResolvedItem, ...]:
        """The items of a gate."""
        return tuple(item for item in self.items if item.gate == gate)

    def review(self, item_id: str, gate: str) -> ResolvedReview | None:
        """The review requirement of an id at a gate, if there is one."""
        found = (item for item in self.at(gate) if isinstance(item, ResolvedReview) and item.id == item_id)
        return next(found, None)


def load_policy(tree: PolicyTree) -> EffectivePolicy:
    """The effective policy of a tree.

    Raises:
        PolicyError: the entry file is there, and it or anything it refers to breaks a rule.
    """
    loading = _Loading(tree)
    try:
        entry = resolve(tree, ENTRY)
        if entry.kind is EntryKind.MISSING and not entry.linked:
            return EffectivePolicy()
        if entry.place is None or entry.kind is EntryKind.MISSING:
            raise PolicyError(f"policy file is a symlink: {ENTRY}")
        loading.enter(ENTRY, "", ())
    except TreeUnreadableError as error:
        raise PolicyError(f"{loading.reading}: {error}") from error
    digests = {path: digest_bytes(data).removeprefix("sha256:") for path, data in loading.files.items()}
    return EffectivePolicy(
        ENTRY, policy_digest(digests, loading.items), tuple(loading.items), dict(loading.files)
    )


@dataclass(slots=True)
class _Loading:
    """One depth-first walk from the entry file."""

    tree: PolicyTree
    files: dict[str, bytes] = field(default_factory=dict)
    documents: dict[str, PolicyDocument] = field(default_factory=dict)
    items: list[ResolvedItem] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    skills: set[str] = field(default_factory=set)
    reading: str = ENTRY
    entered: int = 0
    policy_bytes: int = 0
    skill_bytes: int = 0
    skill_names: int = 0
    exec_characters: int = 0

    def enter(self, path: str, prefix: str, chain: tuple[str, ...]) -> None:
        """Read one policy file, then its imports, then add its items."""
        if not is_policy_path(path):
            raise PolicyError(f"{_OUTSIDE}: {printable(path)}")
        if path in chain:
            raise PolicyError(f"import cycle: {printable(' -> '.join([*chain, path]))}")
        self.entered += 1
        if self.entered > _ENTERED_MOST or len(chain) > _DEEPEST:
            raise PolicyError(f"{printable(path)}: imports are nested too deeply or repeated too often")
        document = self._document(path)
        names: set[str] = set()
        for entry in document.imports:
            self._check_import(entry, names, path)
            self.enter(entry.path, f"{prefix}/{entry.name}" if prefix else entry.name, (*chain, path))
        for written in document.items:
            self._take_item(resolved(written, prefix))

    def _take_item(self, item: ResolvedItem) -> None:
        """Add a requirement that evidence can be stored for."""
        if len(item.id) > _ID_MOST or any(len(part) > _SEGMENT_MOST for part in item.id.split("/")):
            raise PolicyError(f"requirement id is too long: {item.id[:_ID_MOST]}")
        if item.id in self.ids:
            raise PolicyError(f"duplicate requirement id {item.id}")
        self.ids.add(item.id)
        if isinstance(item, ResolvedReview):
            self._take_skill(item.skill)
        if isinstance(item, ResolvedCommand):
            self.exec_characters += sum(map(len, item.exec))
        self.items.append(item)
        if len(self.items) > ITEMS_MOST:
            raise PolicyError(f"there are more than {ITEMS_MOST} requirements")
        if self.exec_characters > EXEC_CHARACTERS_MOST:
            raise PolicyError(f"commands are longer than {EXEC_CHARACTERS_MOST} characters together")

    @staticmethod
    def _check_import(entry: ImportEntry, names: set[str], path: str) -> None:
        if entry.name in names:
            raise PolicyError(f"duplicate import name {entry.name} in {printable(path)}")
        names.add(entry.name)

    def _document(self, path: str) -> PolicyDocument:
        """The file's document, read once however often it is imported."""
        if path in self.documents:
            return self.documents[path]
        self.reading = path
        shown = printable(path)
        data = self._policy_bytes(path)
        self.policy_bytes += len(data)
        if self.policy_bytes > POLICY_BYTES_MOST:
            raise PolicyError(f"{shown}: the policy files are larger than {POLICY_BYTES_MOST} bytes together")
        try:
            value = read_yaml(data)
        except YamlError as error:
            raise PolicyError(f"{shown}: {error}") from None
        document = fitted(value, shown)
        self.files[path] = data
        self.documents[path] = document
        return document

    def _policy_bytes(self, path: str) -> bytes:
        found = resolve(self.tree, path)
        shown = printable(path)
        if found.place is None:
            raise PolicyError(f"{_OUTSIDE}: {shown}")
        if found.kind is EntryKind.LINK:
            raise PolicyError(f"policy file is a symlink: {shown}")
        if found.kind is EntryKind.MISSING:
            raise PolicyError(f"import is missing: {shown}")
        if found.kind is not EntryKind.FILE:
            raise PolicyError(f"{shown}: the policy is not a regular file")
        return self.tree.read(found.place)

    def _take_skill(self, path: str) -> None:
        """Check a skill and hash everything below its folder."""
        shown = printable(path)
        if not is_skill_path(path):
            raise PolicyError(f"{_NO_SKILL_PATH}: {shown}")
        if path in self.skills:
            return
        self.reading = path
        found = resolve(self.tree, path)
        if found.place is None:
            raise PolicyError(f"{_NO_SKILL_PATH}: {shown}")
        if found.kind is EntryKind.LINK:
            raise PolicyError(f"skill file is a symlink: {shown}")
        if found.kind is not EntryKind.FILE:
            raise PolicyError(f"skill is missing: {shown}")
        self.skills.add(path)
        folder, place = path.removesuffix(f"/{SKILL_FILE}"), found.place.rpartition("/")[0]
        for below in self.tree.below(place):
            # Skills inside skills have their files looked at once for each.
            self.skill_names += 1
            if self.skill_names > SKILL_NAMES_MOST:
                raise PolicyError(f"{shown}: the skills hold more than {SKILL_NAMES_MOST} names together")
            self._take_skill_file(f"{folder}/{below.path}", f"{place}/{below.path}", below.kind)

    def _take_skill_file(self, path: str, place: str, kind: EntryKind) -> None:
        shown = printable(path)
        if LONE_SURROGATE.search(path):
            raise PolicyError(f"skill file name is not UTF-8: {shown}")
        if kind is EntryKind.LINK:
            raise PolicyError(f"skill file is a symlink: {shown}")
        if kind is EntryKind.OTHER:
            raise PolicyError(f"skill file is not a regular file: {shown}")
        if kind is EntryKind.FILE and path not in self.files:
            self.reading = path
            self.files[path] = data = self.tree.read(place)
            self.skill_bytes += len(data)
            if self.skill_bytes > SKILL_BYTES_MOST:
                raise PolicyError(f"{shown}: the skills are larger than {SKILL_BYTES_MOST} bytes together")


def fitted(value: JsonValue, shown: str) -> PolicyDocument:
    """The document of a parsed file.

    Raises:
        PolicyError: `invalid id <id>` for an id or import name of another form, else the first misfit with
            its place, in the order of the document.
    """
    try:
        return validate(PolicyDocument, value)
    except EvidenceError as error:
        first = error.faults[0]
        if (wrong := _wrong_id(value, first.where)) is not None:
            raise PolicyError(f"invalid id {printable(wrong)}") from None
        _refuse(shown, first.where, [fault.sentence for fault in error.faults[:1]])


def _refuse(shown: str, where: str, sentences: Sequence[str]) -> NoReturn:
    raise PolicyError(f"{shown}: {where or '/'} {' '.join(sentences).rstrip('.')}")


def _wrong_id(value: JsonValue, where: str) -> str | None:
    """The id that stands at a place, if the place is one of an id."""
    match = _ID_PLACE.fullmatch(where)
    if match is None or not isinstance(value, dict):
        return None
    found: JsonValue = value
    for segment in where.split("/")[1:]:
        if isinstance(found, list):
            found = found[int(segment)]
        elif isinstance(found, dict):
            found = found.get(segment)
    return found[:_ID_MOST] if isinstance(found, str) else None
