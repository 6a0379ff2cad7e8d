"""A study file with everything that it names, read once and held together.

What is loaded is what gets checked and then frozen: nothing is looked for twice under one name.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.licence import LicenceRefused
from skill_effectiveness.calibration.licensing import claimed_licence, read_licence
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.tree import walk_tree
from skill_effectiveness.protocol.placebo_sentences import load_placebo_sentences
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import read_file
from skill_effectiveness.studies.payloads import read_payload
from skill_effectiveness.studies.placebo import placebo_of
from skill_effectiveness.studies.study_file import STUDY_FILE, STUDY_FILE_LIMIT, read_study
from skill_effectiveness.studies.task_folder import TaskRefusal, TaskRefusedError, read_task_folder
from skill_effectiveness.studies.words import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.studies.file_trees import TreeEntry
    from skill_effectiveness.studies.payloads import Payload
    from skill_effectiveness.studies.study_file import StudyFile
    from skill_effectiveness.studies.task_folder import TaskFolder

MOST_TASKS: Final = 100_000


@dataclass(frozen=True, slots=True)
class HeldLicence:
    """A licence file; what it claims is not yet verified."""

    data: bytes
    claimed: LicencePredicate

    @property
    def digest(self) -> str:
        """Of the file's bytes."""
        return digest_bytes(self.data)


@dataclass(frozen=True, slots=True)
class LoadedStudy:
    """Everything of a study as its author has it.

    Attributes:
        fs: file operations.
        data: the bytes of the study file.
        study: what it says.
        base: the folder that its paths are meant from.
        payloads: by arm.
        tasks: those that can be used, by id.
        refused: the others.
        licences: in the order of the reviewers.
        left_out: files of the arm full that a generated placebo has no counterpart of.
    """

    fs: FileSystem
    data: bytes
    study: StudyFile
    base: Path
    payloads: Mapping[Arm, Payload]
    tasks: tuple[TaskFolder, ...]
    refused: tuple[TaskRefusedError, ...]
    licences: tuple[HeldLicence, ...]
    left_out: tuple[str, ...] = ()

    def task_path(self, task_id: str) -> Path:
        """The folder of a task."""
        return self.base / self.study.tasks / task_id

    def script_text(self, folder: Path, entry: TreeEntry) -> str:
        """The text of one of a task's scripts; whatever is no UTF-8 in it is replaced.

        Raises:
            StudyError: `plan_changed`: it changed since it was read.
            FileError: it cannot be read.
        """
        return read_file(self.fs, folder, entry).decode("utf-8", "replace")


def study_file_at(fs: FileSystem, path: Path) -> Path:
    """The study file that a path means: itself, or `study.yaml` in the folder of that path."""
    try:
        folder = stat.S_ISDIR(fs.lstat(None, str(path)).st_mode)
    except OSError:
        # Whatever is wrong with it is told when it is read.
        folder = False
    return path / STUDY_FILE if folder else path


def load_study(fs: FileSystem, path: Path) -> LoadedStudy:
    """A study with all that it names.

    Args:
        fs: file operations.
        path: of the study file, absolute.

    Raises:
        StudyFileError: `study_invalid`.
        StudyError: `study_missing`, `input_missing`, `input_refused`, `no_task`, `licence_refused`.
        ProtocolError: the frozen bank of a placebo's sentences cannot be read.
    """
    try:
        data = read_public(fs, path, STUDY_FILE_LIMIT)
    except EvidenceError as error:
        raise StudyError(StudyCode.STUDY_MISSING, path.name, error.faults[0].sentence) from error
    study = read_study(data)
    base = path.parent
    payloads = {
        arm: read_payload(fs, content, base, f"/arms/{arm}") for arm, content in study.arms.by_name().items()
    }
    left_out: tuple[str, ...] = ()
    if study.arms.reference is not None and study.arms.reference.placebo:
        placebo = placebo_of(payloads[Arm.FULL], load_placebo_sentences(fs))
        payloads[Arm.REFERENCE], left_out = placebo.payload, placebo.left_out
    tasks, refused = _tasks(fs, base / study.tasks)
    licences = tuple(
        _licence(fs, base / reviewer.licence, f"/reviewers/{index}/licence")
        for index, reviewer in enumerate(study.reviewers)
    )
    return LoadedStudy(fs, data, study, base, payloads, tasks, refused, licences, left_out)


def _tasks(fs: FileSystem, folder: Path) -> tuple[tuple[TaskFolder, ...], tuple[TaskRefusedError, ...]]:
    """Every folder below the folder of tasks, by name; hidden names and files are no tasks."""
    names = task_names(fs, folder, "/tasks")
    tasks, refused = [], list(_alike(names))
    for name in names:
        try:
            tasks.append(read_task_folder(fs, folder / name))
        except TaskRefusedError as error:
            refused.append(error)
    return tuple(tasks), tuple(refused)


def _alike(names: Sequence[str]) -> Iterator[TaskRefusedError]:
    """Tasks whose names differ in case alone: what they leave could not lie side by side everywhere."""
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.casefold(), name)
        if other != name:
            sentence = f"the task {printable(other)} has the same name but for case; rename one."
            yield TaskRefusedError(printable(name), [TaskRefusal("name", None, sentence)])


def task_names(fs: FileSystem, folder: Path, where: str) -> list[str]:
    """The names of the task folders in a folder, sorted; hidden names and files are no tasks.

    Args:
        fs: file operations.
        folder: absolute.
        where: how errors call it.

    Raises:
        StudyError: `no_task`, `input_missing`, `input_refused`.
    """
    try:
        names = [
            found.name
            for found in walk_tree(fs, folder)
            if "/" not in found.path and stat.S_ISDIR(found.status.st_mode) and found.name[0] != "."
        ]
    except EvidenceError as error:
        raise StudyError(StudyCode.INPUT_MISSING, where, error.faults[0].sentence) from error
    if len(names) > MOST_TASKS:
        sentence = f"a study has {MOST_TASKS} tasks at most; split it."
        raise StudyError(StudyCode.INPUT_REFUSED, where, sentence)
    if not names:
        sentence = "this folder holds no task; put one folder for each task there."
        raise StudyError(StudyCode.NO_TASK, where, sentence)
    return sorted(names)


def _licence(fs: FileSystem, path: Path, where: str) -> HeldLicence:
    try:
        data = read_licence(path, fs)
        return HeldLicence(data, claimed_licence(data))
    except EvidenceError as error:
        raise StudyError(StudyCode.INPUT_MISSING, where, error.faults[0].sentence) from error
    except LicenceRefused as error:
        raise StudyError(StudyCode.LICENCE_REFUSED, where, error.sentence) from error
