"""Task folders of Harbor and Terminal-Bench taken over into a folder of tasks (studies.md section 1).

What can be used as it lies there is copied; with `host`, a Dockerfile that only puts files somewhere becomes
those files, and `task.toml` says the working folder, the variables and the base that is not there. Every
other task is refused by name and line, and the rest is imported all the same. The new folder appears whole or
not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.fsops import remove_tree
from skill_effectiveness.evidence.laying import is_there, lay_folder, name_laid
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.studies.dockerfiles import DOCKERFILE, HostImage, NotHostableError, host_image
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import EntryKind, FileTree, HeldTree, TreeEntry, leaves, scan
from skill_effectiveness.studies.loading import task_names
from skill_effectiveness.studies.task_folder import (
    ENVIRONMENT,
    NEEDS_IMAGE,
    TASK_FILE,
    TOML_LIMIT,
    WORKDIR,
    TaskRefusal,
    TaskRefusedError,
    TaskToml,
    is_workdir,
    odd_refusal,
    task_of_tree,
)
from skill_effectiveness.studies.toml_text import toml_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

BASE_KEY: Final = "host_base_image"
"""Key of `[metadata]` with the name of the image that a task was made for."""

_DOCKERFILE_LIMIT: Final = 1_048_576
_SOURCE: Final = "DIR"


class ImportWord(StrEnum):
    """What became of a task folder."""

    IMPORTED = "imported"
    NEEDS_IMAGE = "needs_image"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """One task folder; `refusals` is empty for one that was imported."""

    task_id: str
    word: ImportWord
    refusals: tuple[TaskRefusal, ...] = ()


def import_harbor(
    source: Path, target: Path, *, host: bool, around: Surroundings
) -> tuple[ImportedTask, ...]:
    """Take over a folder of task folders, or one task folder.

    The same call again changes nothing. Where nothing can be imported, nothing is made.

    Args:
        source: absolute.
        target: the new folder of tasks, absolute.
        host: whether a Dockerfile that only puts files somewhere is turned into files.
        around: files and randomness.

    Raises:
        StudyError: `no_task`; `input_missing`; `import_occupied`: something else lies at the target.
        FileError, TreeError: something cannot be written, or not be read while it is copied.
    """
    fs = around.fs
    alone = is_there(fs, source / TASK_FILE)
    folders = [source] if alone else [source / name for name in task_names(fs, source, _SOURCE)]
    told: list[ImportedTask] = []
    held: dict[str, HeldTree] = {}
    for folder in folders:
        try:
            held[folder.name] = _taken_over(folder, host=host, around=around)
            told.append(ImportedTask(folder.name, ImportWord.IMPORTED))
        except TaskRefusedError as error:
            told.append(ImportedTask(error.task_id, _word(error.refusals), error.refusals))
    if held:
        _lay_down(held, target, around)
    return tuple(told)


def _word(refusals: Sequence[TaskRefusal]) -> ImportWord:
    only = {refusal.name for refusal in refusals} == {NEEDS_IMAGE}
    return ImportWord.NEEDS_IMAGE if only else ImportWord.REFUSED


def _taken_over(folder: Path, *, host: bool, around: Surroundings) -> HeldTree:
    """The files of a task as they will lie in the new folder.

    Raises:
        TaskRefusedError: with every reason.
        StudyError: `input_missing`.
    """
    try:
        scanned = scan(around.fs, folder)
        odd = [odd_refusal(oddity) for oddity in scanned.oddities]
        held = HeldTree.on_disk(around.fs, folder, scanned.tree)
        found = scanned.tree.find(f"{ENVIRONMENT}/{DOCKERFILE}") if host else None
        if found is not None:
            held = _hosted(folder.name, held, found, odd)
        task_of_tree(folder.name, held, odd)
    except EvidenceError as error:
        told = error.faults[0].sentence
        raise StudyError(StudyCode.INPUT_MISSING, printable(folder.name), told) from error
    return held


def _hosted(name: str, held: HeldTree, found: TreeEntry, odd: Sequence[TaskRefusal]) -> HeldTree:
    """A task whose Dockerfile has become files.

    Raises:
        TaskRefusedError: it needs a container, or something else is refused; lines are those of its author.
    """
    bare = HeldTree(FileTree(tuple(entry for entry in held.tree.entries if entry != found)), held.blob)
    toml = _toml(held)
    made, needing = None, list(odd)
    try:
        made = _with_image(bare, _image(held, found, toml), toml)
    except NotHostableError as error:
        needing.append(TaskRefusal(NEEDS_IMAGE, error.line, f"{ENVIRONMENT}/{error.sentence}"))
    task_of_tree(name, bare, needing)
    return made or bare


def _image(held: HeldTree, found: TreeEntry, toml: TaskToml) -> HostImage:
    """What the Dockerfile comes to.

    Raises:
        NotHostableError: it needs a container.
    """
    if found.kind is not EntryKind.FILE or found.size > _DOCKERFILE_LIMIT:
        raise NotHostableError(None, "is no file of instructions")
    try:
        text = held.blob(found).decode("utf-8")
    except UnicodeDecodeError:
        raise NotHostableError(None, "is not UTF-8") from None
    said = toml.table(ENVIRONMENT).get("workdir")
    workdir = said if isinstance(said, str) and said else None
    image = host_image(text, held.tree.below(ENVIRONMENT), workdir=workdir, default=WORKDIR)
    if workdir is None and image.workdir is not None and not is_workdir(image.workdir):
        raise NotHostableError(None, "has a WORKDIR that no working folder here can have")
    return image


def _toml(held: HeldTree) -> TaskToml:
    found = held.tree.find(TASK_FILE)
    if found is None or found.kind is not EntryKind.FILE or found.size > TOML_LIMIT:
        return TaskToml({}, "", ())
    return TaskToml.of(held.blob(found))


def _with_image(bare: HeldTree, image: HostImage, toml: TaskToml) -> HeldTree:
    """A task whose environment is what the image would hold in the working folder.

    Raises:
        NotHostableError: a link would lead elsewhere than it did.
    """
    sources: dict[str, str] = {}
    placed: list[TreeEntry] = [TreeEntry(ENVIRONMENT, EntryKind.FOLDER)]
    for entry, source in image.placed:
        if entry.kind is EntryKind.LINK and leaves(entry.path, str(entry.target)):
            raise NotHostableError(None, "copies a link that leads out of the working folder")
        path = f"{ENVIRONMENT}/{entry.path}"
        placed.append(entry._replace(path=path))
        sources[path] = f"{ENVIRONMENT}/{source}"
    others = [entry for entry in bare.tree.entries if not _in_environment(entry.path)]
    written = toml_text(_said(toml, image)).encode() if toml.said else b""
    if toml.said:
        said = TreeEntry(TASK_FILE, EntryKind.FILE, size=len(written), sha256=digest_bytes(written))
        others = [said if entry.path == TASK_FILE else entry for entry in others]

    def blob(entry: TreeEntry) -> bytes:
        if entry.path == TASK_FILE and toml.said:
            return written
        return bare.blob(entry._replace(path=sources.get(entry.path, entry.path)))

    return HeldTree(FileTree.of([*others, *placed]), blob)


def _in_environment(path: str) -> bool:
    return path == ENVIRONMENT or path.startswith(f"{ENVIRONMENT}/")


def _said(toml: TaskToml, image: HostImage) -> Mapping[str, object]:
    """`task.toml` with what the image says; where both say something, `task.toml` does."""
    environment = dict(toml.table(ENVIRONMENT))
    if image.workdir is not None:
        environment["workdir"] = image.workdir
    own = environment.get("env", {})
    if image.env and isinstance(own, dict):
        environment["env"] = {**image.env, **own}
    metadata = {**toml.table("metadata"), BASE_KEY: image.base}
    return {**toml.said, "metadata": metadata, ENVIRONMENT: environment}


def _lay_down(held: Mapping[str, HeldTree], target: Path, around: Surroundings) -> None:
    """The new folder, under another name until all of it is there."""
    fs = around.fs
    if is_there(fs, target):
        _demand_same(held, target, around)
        return
    building = target.with_name(f".{target.name}.{around.entropy(8).hex()}.new")
    lay_folder(fs, building)
    try:
        for name, tree in held.items():
            lay_folder(fs, building / name)
            tree.lay_down(fs, building / name)
        name_laid(fs, building, target)
    except BaseException:
        remove_tree(fs, building)
        raise


def _demand_same(held: Mapping[str, HeldTree], target: Path, around: Surroundings) -> None:
    wanted = FileTree.of(entry for name, each in held.items() for entry in each.tree.under(name))
    try:
        found = scan(around.fs, target)
    except FileError:
        found = None
    if found is None or found.oddities or found.tree != wanted:
        sentence = "something else than these tasks lies here; give a new folder."
        raise StudyError(StudyCode.IMPORT_OCCUPIED, printable(target.name), sentence)
