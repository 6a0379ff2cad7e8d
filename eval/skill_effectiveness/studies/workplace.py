"""Where one attempt of a real agent works: laid down from frozen inputs, collected when it is over.

Both lie beside each other in the session's own folder:

| folder | what |
|---|---|
| `app` | the working copy: the task's environment and nothing else |
| `arm` | what the arm gives, for the adapter to lay where its program looks for it |

The task's solution and tests never come here, and no history of a repository does: a workspace whose `.git`
could hold the solution is refused when the study is checked (field-failures.md F35).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.laying import lay_folder
from skill_effectiveness.providers import Mount
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import EntryKind, FileTree, HeldTree, scan

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.execution import SessionFolders
    from skill_effectiveness.studies.file_trees import Oddity, TreeEntry

SKILLS: Final = "skills"
INSTRUCTIONS: Final = "instructions"
HOOKS: Final = "hooks"
REPOSITORY: Final = ".git"
_BETWEEN: Final = "\n\n"


class Workplace(NamedTuple):
    """Where an attempt works.

    Attributes:
        app: the working copy.
        mount: what the arm gives.
    """

    app: Path
    mount: Mount | None


class Collected(NamedTuple):
    """What lies in a working copy afterwards.

    Attributes:
        files: everything that can be kept.
        oddities: what cannot; nothing of it was opened or followed.
    """

    files: HeldTree
    oddities: tuple[Oddity, ...]


def lay_workplace(
    session: SessionFolders, fs: FileSystem, environment: HeldTree, payload: HeldTree
) -> Workplace:
    """Lay down what an attempt works on.

    Args:
        session: private folders of the attempt.
        fs: file operations.
        environment: of the task.
        payload: of the arm.

    Raises:
        StudyError: a frozen input is missing or changed; or, of the arm, `driver_unsupported`.
        FileError: something cannot be written.
    """
    app, arm = session.work / "app", session.work / "arm"
    for folder in (app, arm):
        lay_folder(fs, folder)
    environment.lay_down(fs, app)
    payload.lay_down(fs, arm)
    return Workplace(app, mount_of(payload, arm))


def mount_of(payload: HeldTree, folder: Path) -> Mount | None:
    """What an adapter is to give its program; `None` for an arm that adds nothing.

    Args:
        payload: of the arm.
        folder: where it was laid down, absolute.

    Raises:
        StudyError: `driver_unsupported`: the arm has hooks.
    """
    if payload.tree.find(HOOKS) is not None:
        sentence = "hooks are run by one program only and cannot be given to agents yet; take them out."
        raise StudyError(StudyCode.DRIVER_UNSUPPORTED, "/arms", sentence)
    skills = tuple(
        folder / SKILLS / entry.path
        for entry in payload.tree.below(SKILLS).entries
        if entry.kind is EntryKind.FOLDER and "/" not in entry.path
    )
    texts = [
        payload.blob(entry).decode("utf-8")
        for entry in payload.tree.files
        if entry.path.startswith(f"{INSTRUCTIONS}/")
    ]
    if not skills and not texts:
        return None
    return Mount(skills, _BETWEEN.join(texts) if texts else None)


def collect(fs: FileSystem, place: Workplace, environment: HeldTree) -> Collected:
    """Everything in the working copy, in memory, so that the place can be removed.

    Left out is what the adapter laid there for its program and what the program keeps for itself: folders
    at the top whose name begins with a dot and which the task did not have, and the arm's instructions as
    they were given. They would tell a reviewer the arm.

    Args:
        fs: file operations.
        place: where the attempt worked; its processes are dead.
        environment: of the task.

    Raises:
        EvidenceError, StudyError: it cannot be read.
    """
    scanned = scan(fs, place.app)
    given = place.mount.instructions if place.mount is not None else None
    tree = FileTree(
        tuple(
            entry
            for entry in scanned.tree.entries
            if not _is_of_the_program(entry, environment.tree)
            and not (given is not None and _is_given(fs, place.app, entry, given))
        )
    )
    return Collected(HeldTree.on_disk(fs, place.app, tree).in_memory(), scanned.oddities)


def _is_of_the_program(entry: TreeEntry, before: FileTree) -> bool:
    top = entry.path.split("/")[0]
    folder = entry.path != top or entry.kind is EntryKind.FOLDER
    return folder and top.startswith(".") and before.find(top) is None


def _is_given(fs: FileSystem, app: Path, entry: TreeEntry, instructions: str) -> bool:
    data = instructions.encode()
    if entry.kind is not EntryKind.FILE or "/" in entry.path or entry.size != len(data):
        return False
    return HeldTree.on_disk(fs, app, FileTree((entry,))).blob(entry) == data


def holds_a_repository(environment: FileTree) -> bool:
    """Whether a task's environment brings the history of a repository, wherever in it."""
    return any(REPOSITORY in entry.path.split("/") for entry in environment.entries)
