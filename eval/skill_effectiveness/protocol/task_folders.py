"""A task folder as a task record: the table of trials.md section 1.

A folder in the shape of Harbor or Terminal-Bench says little of what a record needs, so most fields have a
default. What its author wants otherwise is a key of `[metadata]` in its `task.toml`; keys that mean nothing
here are left to whoever reads them.

| field | value |
|---|---|
| `task_id` | the folder's name |
| `task_family`, `cohort` | `implementation`, `known-regression`, unless declared |
| `prompt_ref` | `task://` and the folder's tree digest |
| `expected_owners` | each skill of the full arm, or `profile`, in the study's namespace; none if negative |
| `frozen_at_sha` | `root` |
| `corpus_version` | `folders-` and the digest of the set of folders |
| `execution_mode` | `workspace`, unless declared |

A folder that declares itself held out declares every field of a held-out record itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.tasks import Cohort, ExecutionMode, Task, TaskCode, TaskError, parse_task
from skill_effectiveness.protocol.words import TaskFamily

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DIGEST_PREFIX: Final = "sha256:"
_PROFILE: Final = "profile"
_ALWAYS: Final = ("task_family", "cohort", "execution_mode", "negative_control", "should_invoke")
_HELD_OUT: Final = (
    "prompt_ref",
    "frozen_at_sha",
    "skill_content_cutoff",
    "curator_independent",
    "repo_snapshot",
    "should_invoke",
    "risk_tags",
    "graders",
    "negative_control",
    "execution_mode",
)


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """What is known of a task folder once it has been read.

    Attributes:
        name: of the folder.
        tree_digest: of everything in it, as `evidence.tree` makes it.
        metadata: the table `[metadata]` of its `task.toml`, as plain values.
    """

    name: str
    tree_digest: str
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


def corpus_version(folders: Iterable[FolderFacts]) -> str:
    """The version of a set of task folders: the digest of their names and contents.

    Raises:
        TaskError: `task_repeated`.
    """
    digests: dict[str, str] = {}
    for folder in folders:
        if folder.name in digests:
            sentence = "two task folders have one name; rename one of them."
            raise TaskError(TaskCode.TASK_REPEATED, "/task_id", sentence)
        digests[folder.name] = folder.tree_digest
    rows: list[dict[str, str]] = [{"task_id": name, "digest": digests[name]} for name in sorted(digests)]
    return f"folders-{digest_object(rows).removeprefix(_DIGEST_PREFIX)}"


def task_of_folder(folder: FolderFacts, *, study: str, skills: Sequence[str], corpus_version: str) -> Task:
    """The record of one task folder.

    Args:
        folder: what is known of it.
        study: the study's name, which is the namespace of its owners.
        skills: names of the skills of the study's full arm.
        corpus_version: of the set of folders that this one belongs to.

    Raises:
        TaskError: `held_out_undeclared`; `bad_record` when what is declared makes no record.
    """
    declared = folder.metadata
    record: dict[str, object] = {
        "task_id": folder.name,
        "task_family": str(TaskFamily.IMPLEMENTATION),
        "cohort": str(Cohort.KNOWN_REGRESSION),
        "prompt_ref": f"task://{folder.tree_digest.removeprefix(_DIGEST_PREFIX)}",
        "frozen_at_sha": "root",
        "corpus_version": corpus_version,
        "execution_mode": str(ExecutionMode.WORKSPACE),
    }
    if declared.get("negative_control") is True:
        record["should_invoke"] = False
    record |= {name: declared[name] for name in _taken(declared) if name in declared}
    negative = record.get("negative_control") is True and record.get("should_invoke") is False
    record["expected_owners"] = [] if negative else [f"{study}:{skill}" for skill in skills or [_PROFILE]]
    return parse_task(record)


def _taken(declared: Mapping[str, object]) -> Sequence[str]:
    """The keys of the metadata that this record takes over.

    Raises:
        TaskError: `held_out_undeclared`.
    """
    if declared.get("cohort") != Cohort.HELD_OUT_GENERALIZATION:
        return _ALWAYS
    for name in _HELD_OUT:
        if name not in declared:
            sentence = f"a held-out task folder declares {name} itself; add it to [metadata] in task.toml."
            raise TaskError(TaskCode.HELD_OUT_UNDECLARED, f"/metadata/{name}", sentence)
    return (*_ALWAYS, *_HELD_OUT)
