"""A task folder in the shape of Harbor and Terminal-Bench, and every reason to refuse one (studies.md, 1).

`read_task_folder(fs, path)` looks at the folder without starting anything and answers a `TaskFolder`, whose
three sets of files never meet: what the agent works on, what the grader alone has and what the oracle alone
has. Whatever would change how a task runs and is not done here is refused by name, never passed over.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.task_folders import FolderFacts
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import EntryKind, FileTree, HeldTree, OddityKind, scan
from skill_effectiveness.studies.plan import TaskLimits
from skill_effectiveness.studies.task_toml import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.studies.file_trees import Oddity

TASK_FILE: Final = "task.toml"
INSTRUCTION: Final = "instruction.md"
ENVIRONMENT: Final = "environment"
TESTS: Final = "tests"
SOLUTION: Final = "solution"
TEST_SCRIPT: Final = "test.sh"
SOLVE_SCRIPT: Final = "solve.sh"
WORKDIR: Final = "/app"
NEEDS_IMAGE: Final = "needs_image"

SECONDS: Final = 600.0
"""What agent and grader have where the task says nothing."""

TOML_LIMIT: Final = 1_048_576
INSTRUCTION_LIMIT: Final = 1_048_576
_MOST_SECONDS: Final = 604_800
_VERSIONS: Final = frozenset({"1.0", "1.1", "1.2", "1.3", "1.4"})
_TASK_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_COMPOSE: Final = re.compile(r"(docker-)?compose([._-].*)?\.ya?ml", re.IGNORECASE)
_DOCKERFILE: Final = re.compile(r"dockerfile(\..*)?|.*\.dockerfile|containerfile", re.IGNORECASE)
_RECORDED: Final = (
    "network_mode",
    "allow_internet",
    "cpus",
    "memory_mb",
    "storage_mb",
    "build_timeout_sec",
    "environment_mode",
)
_KNOWN_TOP: Final = frozenset({"schema_version", "version", "task", "metadata"})
_TABLES: Final[dict[str, frozenset[str]]] = {
    "agent": frozenset({"timeout_sec"}),
    "verifier": frozenset({"timeout_sec", "env", "environment_mode"}),
    "environment": frozenset({"env", "workdir", *_RECORDED}),
    "solution": frozenset({"env"}),
}
_ROOT_PARTS: Final = frozenset({TASK_FILE, INSTRUCTION, ENVIRONMENT, TESTS, SOLUTION})
_IGNORED: Final = frozenset({"README.md", ".gitignore"})


class TaskRefusal(NamedTuple):
    """One reason why a task folder is refused.

    Attributes:
        name: of the key or file that is refused, or `needs_image`.
        line: of `task.toml` or `instruction.md`; None for a file as such.
        sentence: for people.
    """

    name: str
    line: int | None
    sentence: str

    def __str__(self) -> str:
        """Name, line and reason."""
        place = "" if self.line is None else f" (line {self.line})"
        return f"{self.name}{place}: {self.sentence}"


class TaskRefusedError(StudyError):
    """A task folder cannot be used.

    Attributes:
        task_id: the folder's name, fit to be printed.
        refusals: every reason.
    """

    def __init__(self, task_id: str, refusals: Sequence[TaskRefusal]) -> None:
        self.task_id = task_id
        self.refusals = tuple(refusals)
        told = " ".join(str(refusal) for refusal in refusals)
        super().__init__(StudyCode.TASK_REFUSED, task_id, told)


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """One task.

    Attributes:
        task_id: the folder's name.
        instruction: the prompt, byte for byte.
        tree: the whole folder.
        environment: what is copied for the agent to work on.
        tests: what the grader alone has.
        solution: what the oracle alone has; empty without one.
        workdir: where the working copy lies in a sandbox.
        limits: of agent and grader.
        environment_env, verifier_env, solution_env: variables of agent and all, of grader, of oracle.
        metadata: the table of that name, as plain values.
        recorded: what is known of the task and not enforced here.
    """

    task_id: str
    instruction: bytes
    tree: FileTree
    environment: FileTree
    tests: FileTree
    solution: FileTree
    workdir: str
    limits: TaskLimits
    environment_env: Mapping[str, str]
    verifier_env: Mapping[str, str]
    solution_env: Mapping[str, str]
    metadata: Mapping[str, object]
    recorded: Mapping[str, object]

    @property
    def has_oracle(self) -> bool:
        """Whether it holds a way to pass it."""
        return self.solution.find(SOLVE_SCRIPT) is not None

    @property
    def facts(self) -> FolderFacts:
        """What `protocol.task_folders` makes a record of."""
        return FolderFacts(self.task_id, self.tree.digest, self.metadata)


def read_task_folder(fs: FileSystem, path: Path) -> TaskFolder:
    """One task folder.

    Args:
        fs: file operations.
        path: absolute.

    Raises:
        TaskRefusedError: `task_refused`, with every reason.
        StudyError: `input_missing`: it is no folder or cannot be read.
    """
    try:
        scanned = scan(fs, path)
        odd = [odd_refusal(oddity) for oddity in scanned.oddities]
        return task_of_tree(path.name, HeldTree.on_disk(fs, path, scanned.tree), odd)
    except EvidenceError as error:
        told = error.faults[0].sentence
        raise StudyError(StudyCode.INPUT_MISSING, printable(path.name), told) from error


def task_of_tree(name: str, held: HeldTree, refused: Sequence[TaskRefusal] = ()) -> TaskFolder:
    """A task whose files are held somewhere, as those of a plan are.

    Args:
        name: of its folder.
        held: everything in it.
        refused: reasons that are known already.

    Raises:
        TaskRefusedError: `task_refused`, with every reason.
        StudyError, EvidenceError: a file cannot be had.
    """
    refusals = [*refused, *_refused_files(name, held.tree)]
    instruction, text = _read(held, INSTRUCTION, INSTRUCTION_LIMIT), _read(held, TASK_FILE, TOML_LIMIT)
    if instruction is not None:
        refusals += _refused_instruction(instruction)
    toml = TaskToml.of(text) if text is not None else TaskToml({}, "", ())
    refusals += [*toml.broken, *toml.refused()]
    if refusals or instruction is None:
        raise TaskRefusedError(printable(name), refusals)
    return _folder(name, instruction, held.tree, toml)


def _folder(name: str, instruction: bytes, tree: FileTree, toml: TaskToml) -> TaskFolder:
    return TaskFolder(
        task_id=name,
        instruction=instruction,
        tree=tree,
        environment=tree.below(ENVIRONMENT),
        tests=tree.below(TESTS),
        solution=tree.below(SOLUTION),
        workdir=str(toml.table("environment").get("workdir") or WORKDIR),
        limits=TaskLimits(agent_seconds=toml.seconds("agent"), verifier_seconds=toml.seconds("verifier")),
        environment_env=toml.env("environment"),
        verifier_env=toml.env("verifier"),
        solution_env=toml.env("solution"),
        metadata=toml.table("metadata"),
        recorded={
            **{name: value for name, value in toml.table("environment").items() if name in _RECORDED},
            "task": toml.table("task"),
        },
    )


# Files.


def _read(held: HeldTree, name: str, limit: int) -> bytes | None:
    """The bytes of a file at the top; None where there is no regular file, which is refused elsewhere."""
    found = held.tree.find(name)
    if found is None or found.kind is not EntryKind.FILE:
        return None
    return held.blob(found) if found.size <= limit else b""


def odd_refusal(oddity: Oddity) -> TaskRefusal:
    """Why a task with such a name in its folder is refused."""
    sentences = {
        OddityKind.LINK_LEAVES: "this link leads out of the folder; put the file itself there.",
        OddityKind.NOT_REGULAR: "this is a FIFO, a socket or a device; take it out.",
        OddityKind.NAME_NOT_UTF8: "this name or target is not UTF-8; rename it.",
        OddityKind.NAME_COLLISION: "this name differs from another in case alone; rename it.",
        OddityKind.TOO_LARGE: "this file is larger than an input may be; take it out.",
    }
    return TaskRefusal(oddity.path, None, sentences[oddity.kind])


def _refused_files(name: str, tree: FileTree) -> Iterator[TaskRefusal]:
    if _TASK_ID.fullmatch(name) is None:
        yield TaskRefusal("name", None, "a task's folder has a name of letters, digits, '.', '_' and '-'.")
    for top, limit in ((TASK_FILE, TOML_LIMIT), (INSTRUCTION, INSTRUCTION_LIMIT)):
        found = tree.find(top)
        if found is not None and found.size > limit:
            yield TaskRefusal(top, None, f"this file is larger than {limit} bytes; make it shorter.")
    for needed in (TASK_FILE, INSTRUCTION, f"{TESTS}/{TEST_SCRIPT}"):
        found = tree.find(needed)
        if found is None or found.kind is not EntryKind.FILE:
            yield TaskRefusal(needed, None, "a task needs this file; add it.")
    for entry in tree.entries:
        yield from _refused_entry(entry.path, is_file=entry.kind is not EntryKind.FOLDER)


def _refused_entry(path: str, *, is_file: bool) -> Iterator[TaskRefusal]:
    shown, (top, _, rest) = printable(path), path.partition("/")
    last = path.rpartition("/")[2]
    if not rest and top in _IGNORED:
        return
    if top not in _ROOT_PARTS:
        if not rest:
            yield TaskRefusal(shown if is_file else f"{shown}/", None, "this is no part of a task here.")
        return
    if not rest and is_file is not (top in {TASK_FILE, INSTRUCTION}):
        yield TaskRefusal(
            shown, None, "this is a file where a folder belongs, or a folder where a file does."
        )
    if not is_file:
        return
    if top == ENVIRONMENT and (_DOCKERFILE.fullmatch(last) or _COMPOSE.fullmatch(last)):
        told = f"{shown} builds a container, and none is driven here; import the task with --host."
        yield TaskRefusal(NEEDS_IMAGE, None, told)
    if top == TESTS and (_DOCKERFILE.fullmatch(last) or _COMPOSE.fullmatch(last)):
        yield TaskRefusal(
            shown, None, "tests run beside the working copy and never in an image of their own."
        )
    if last.casefold().endswith(".bat"):
        yield TaskRefusal(shown, None, "tests and solution are scripts of bash; take this one out.")


def _refused_instruction(data: bytes) -> Iterator[TaskRefusal]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        yield TaskRefusal(INSTRUCTION, None, "the instruction is not UTF-8; write it as that.")
        return
    if not text.strip():
        yield TaskRefusal(INSTRUCTION, 1, "the instruction is empty; write what the agent is to do.")


# task.toml.


@dataclass(frozen=True, slots=True)
class TaskToml:
    """`task.toml`, read and not yet judged.

    Attributes:
        said: its values.
        text: for lines.
        broken: why it cannot be read at all.
    """

    said: Mapping[str, object]
    text: str
    broken: tuple[TaskRefusal, ...]

    @classmethod
    def of(cls, data: bytes) -> TaskToml:
        """The values of a file's bytes."""
        try:
            text = data.decode("utf-8").replace("\r\n", "\n")
            return cls(tomllib.loads(text), text, ())
        except UnicodeDecodeError:
            return cls({}, "", (TaskRefusal(TASK_FILE, None, "this is not UTF-8; write it as that."),))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line = re.search(r"at line ([0-9]+)", str(error))
            told = "this is not TOML; correct it."
            return cls({}, "", (TaskRefusal(TASK_FILE, int(line[1]) if line else None, told),))

    def table(self, name: str) -> Mapping[str, object]:
        """A table at the top; empty when there is none."""
        found = self.said.get(name)
        return found if isinstance(found, dict) else {}

    def seconds(self, table: str) -> float:
        """The time limit of a table."""
        found = self.table(table).get("timeout_sec")
        return SECONDS if found is None or not _is_seconds(found) else float(found)

    def env(self, table: str) -> Mapping[str, str]:
        """The literal variables of a table."""
        found = self.table(table).get("env")
        return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}

    def refused(self) -> Iterator[TaskRefusal]:
        """Every reason in this file, in no order."""
        if self.broken:
            return
        yield from self._refused_version()
        for name, value in self.said.items():
            if name in _TABLES or name in {"task", "metadata"}:
                if not isinstance(value, dict):
                    yield self._refusal((name,), "this is a table; write it as one.")
            elif name not in _KNOWN_TOP and not _absent(value):
                yield self._unknown((name,))
        for table, known in _TABLES.items():
            for name, value in self.table(table).items():
                if name not in known and not (_absent(value) or _harmless(table, name, value)):
                    yield self._unknown((table, name))
            yield from self._refused_env(table)
            yield from self._refused_seconds(table)
        yield from self._refused_environment()

    def _refused_version(self) -> Iterator[TaskRefusal]:
        given = [name for name in ("schema_version", "version") if name in self.said]
        if not given:
            yield TaskRefusal("schema_version", 1, "say which form this is: schema_version from 1.0 to 1.4.")
        for name in given:
            if self.said[name] not in _VERSIONS:
                yield self._refusal((name,), 'only "1.0" to "1.4" are read here.')

    def _refused_env(self, table: str) -> Iterator[TaskRefusal]:
        found = self.table(table).get("env")
        if found is None:
            return
        if not isinstance(found, dict):
            yield self._refusal((table, "env"), "this is a table of texts; write it as one.")
            return
        for name, value in found.items():
            if not isinstance(value, str) or "\0" in value or _ENV_NAME.fullmatch(name) is None:
                yield self._refusal((table, "env", name), "a variable has a plain name and a text.")
            elif "${" in value:
                told = "a value from elsewhere would not be the same everywhere; write it out."
                yield self._refusal((table, "env", name), told, name=f"{table}.env")

    def _refused_seconds(self, table: str) -> Iterator[TaskRefusal]:
        found = self.table(table).get("timeout_sec")
        if found is not None and not _is_seconds(found):
            yield self._refusal((table, "timeout_sec"), "a time limit is a number of seconds above 0.")

    def _refused_environment(self) -> Iterator[TaskRefusal]:
        table = self.table("environment")
        mode = table.get("network_mode")
        if not _absent(mode) and mode not in {"public", "no-network"}:
            yield self._refusal(("environment", "network_mode"), "only public and no-network are read here.")
        workdir = table.get("workdir")
        if not _absent(workdir) and not is_workdir(workdir):
            yield self._refusal(
                ("environment", "workdir"), "this is an absolute path of its own, without '..'."
            )

    def _unknown(self, path: tuple[str, ...]) -> TaskRefusal:
        return self._refusal(path, "this would change how the task runs and is not done here; take it out.")

    def _refusal(self, path: tuple[str, ...], sentence: str, *, name: str | None = None) -> TaskRefusal:
        shown = printable(".".join(path)[:128])
        return TaskRefusal(name or shown, line_of(self.text, path), sentence)


def _absent(value: object) -> bool:
    """Whether a key counts as if it were not there: empty, 0 or false."""
    return value is None or (isinstance(value, str | list | dict) and not value) or value in (0, False)


def _harmless(table: str, name: str, value: object) -> bool:
    return table == "environment" and name == "os" and value == "linux"


def _is_seconds(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 < value <= _MOST_SECONDS
    )


_TAKEN: Final = ("/", "/tests", "/logs", "/solution", "/proc", "/dev", "/sys", "/usr", "/etc", "/bin", "/lib")


def is_workdir(value: object) -> bool:
    """Whether a working copy may lie at this path in a sandbox."""
    if not isinstance(value, str) or re.fullmatch(r"(/[A-Za-z0-9._-]{1,64}){1,16}", value) is None:
        return False
    segments = value.split("/")[1:]
    return ".." not in segments and "." not in segments and f"/{segments[0]}" not in _TAKEN
