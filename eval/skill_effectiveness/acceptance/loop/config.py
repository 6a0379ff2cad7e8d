"""The JSON configuration: what a file may say, and the jobs that it resolves to.

Source: loop.md, section 3; L6 to L19. Defaults are merged first and shallowly, validation follows, and a
job's own keys win. Nothing here runs anything; `read_config` is pure apart from the context files, which
`load_jobs` reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from skill_effectiveness.acceptance.loop.command_words import demand_prompt_word, split_words
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.limits import CONTEXT_BYTES
from skill_effectiveness.acceptance.loop.tree_files import (
    PathRefusedError,
    TreeFiles,
    context_text,
    segments,
)
from skill_effectiveness.acceptance.loop.words import LimitCycle
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError, StrictError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import Profile, read_json

if TYPE_CHECKING:
    from pydantic.config import JsonDict

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.strict import JsonValue

DEFAULT_ATTEMPTS: Final = 3
DEFAULT_SECONDS: Final = 900
LONGEST_SECONDS: Final = 31_536_000
LONE_JOB: Final = "default"

Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$", max_length=100)]
Text = Annotated[str, Field(pattern=r"\S")]
Word = Annotated[str, Field(pattern=r"^[^\x00]*$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Seconds = Annotated[int, Field(ge=1, le=LONGEST_SECONDS)]
Check = Text | Annotated[tuple[Word, ...], Field(min_length=1)]

_Model = ConfigDict(
    extra="forbid", strict=True, frozen=True, alias_generator=to_camel, serialize_by_alias=True
)


def _without_default(schema: JsonDict) -> None:
    """An absent member has no value that could stand for it."""
    schema.pop("default", None)


class AgentKeys(BaseModel):
    """A command line agent.

    Attributes:
        command: what is started; looked up as a shell would, without one.
        args: its arguments, one of which is `{{prompt}}`.
        pass_env: variables it gets besides those on the list of this product.
    """

    model_config = _Model

    command: Text
    args: tuple[Word, ...]
    pass_env: tuple[VariableName, ...] = ()


_NOBODY: Final = AgentKeys(command="-", args=())


class JobKeys(BaseModel):
    """The keys of a job, each of which defaults may give; see loop.md, section 3."""

    model_config = _Model

    name: Slug = Field(default="", json_schema_extra=_without_default)
    task: Text = Field(default="", json_schema_extra=_without_default)
    worker: AgentKeys = Field(default=_NOBODY, json_schema_extra=_without_default)
    reviewer: AgentKeys = Field(default=_NOBODY, json_schema_extra=_without_default)
    checks: tuple[Check, ...] = ()
    max_attempts: Annotated[int, Field(ge=1)] = DEFAULT_ATTEMPTS
    timeout_seconds: Seconds = DEFAULT_SECONDS
    isolate: bool = True
    verbose: bool = False
    context: tuple[Text, ...] = ()
    constraints: tuple[Text, ...] = ()
    protected_paths: tuple[Text, ...] = ()
    clean_checks: bool = True
    bind_verdict: bool = False
    limit_cycle: LimitCycle = LimitCycle.ON


class JobList(BaseModel):
    """A configuration with jobs.

    Attributes:
        repo: absolute path of the top of a git work tree.
        defaults: keys of every job that does not have them.
        jobs: in order.
    """

    model_config = _Model

    repo: Text
    jobs: Annotated[tuple[JobKeys, ...], Field(min_length=1)]
    defaults: JobKeys = Field(default=JobKeys(), json_schema_extra=_without_default)


class FlatJob(JobKeys):
    """A configuration of one job, named `default` unless it says otherwise."""

    repo: Text
    defaults: JobKeys = Field(default=JobKeys(), json_schema_extra=_without_default)


class ConfigDocument(RootModel[JobList | FlatJob]):
    """The configuration file, for its published schema."""


class _Resolved(JobKeys):
    """A job once defaults are merged."""

    name: Slug
    task: Text
    worker: AgentKeys


@dataclass(frozen=True, slots=True)
class Job:
    """One job, ready to be started.

    Attributes:
        keys: as configured, defaults merged.
        reviewer: who judges, if anybody does.
        checks: argument vectors.
        context: path and text of each context file.
    """

    keys: JobKeys
    reviewer: AgentKeys | None
    checks: tuple[tuple[str, ...], ...]
    context: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Its slug."""
        return self.keys.name


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that may be run.

    Attributes:
        repo: absolute path.
        jobs: in order.
        digest: of the bytes of the file.
        path: of the file, absolute; `None` when there is none.
    """

    repo: Path
    jobs: tuple[Job, ...]
    digest: str
    path: Path | None = None


def read_config(data: bytes, path: Path | None = None) -> Configuration:
    """Read a configuration, without its context files.

    Raises:
        LoopRefusedError: `config: <json pointer> <reason>` or `job <name>: <reason>`.
    """
    try:
        value = read_json(data, Profile.WIRE, want_object=True)
        document = value if isinstance(value, dict) else {}
        listed = "jobs" in document
        read = validate(JobList, document) if listed else validate(FlatJob, document)
    except (StrictError, DocumentError) as error:
        first = error.faults[0]
        raise LoopRefusedError(f"config: {first.where or '/'} {_lower(first.sentence)}") from None
    if not read.repo.startswith("/") or "\0" in read.repo:
        raise LoopRefusedError("config: /repo has to be an absolute path")
    defaults = _given(document.get("defaults", {}))
    if listed:
        own = [(f"/jobs/{index}", _given(each)) for index, each in enumerate(_array(document["jobs"]))]
    else:
        own = [("", _flat(document, named="name" in defaults))]
    jobs = tuple(_job(where, defaults, keys) for where, keys in own)
    _demand_unique(jobs)
    return Configuration(Path(read.repo), jobs, digest_bytes(data), path)


def _flat(document: dict[str, JsonValue], *, named: bool) -> dict[str, object]:
    keys: dict[str, object] = {} if named else {"name": LONE_JOB}
    return keys | {key: each for key, each in document.items() if key not in {"repo", "defaults"}}


def _given(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _array(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _job(where: str, defaults: dict[str, object], own: dict[str, object]) -> Job:
    try:
        keys = validate(_Resolved, defaults | own)
    except DocumentError as error:
        first = error.faults[0]
        raise LoopRefusedError(f"config: {where}{first.where} {_lower(first.sentence)}") from None
    reviewer = keys.reviewer if "reviewer" in keys.model_fields_set else None
    try:
        return Job(keys, reviewer, _demand_runnable(keys, reviewer))
    except LoopRefusedError as error:
        raise LoopRefusedError(f"job {keys.name}: {error}") from None


def _demand_runnable(keys: JobKeys, reviewer: AgentKeys | None) -> tuple[tuple[str, ...], ...]:
    """The checks of a job that has a decider, prompts with a place, and paths that stay inside.

    Raises:
        LoopRefusedError: one of these is not so; the reason.
    """
    if reviewer is None and not keys.checks:
        raise LoopRefusedError("nothing decides; give it a reviewer or a check")
    texts = (keys.task, *keys.constraints, *(each for each in keys.checks if isinstance(each, str)))
    if any("\0" in each for each in texts):
        raise LoopRefusedError("a text holds a NUL character")
    for agent in (keys.worker,) if reviewer is None else (keys.worker, reviewer):
        demand_prompt_word(agent.command, agent.args)
    for path in keys.protected_paths:
        try:
            segments(path.removesuffix("/"))
        except PathRefusedError as error:
            raise LoopRefusedError(f"protected path {printable(path)}: {error}") from None
    return tuple(split_words(check) if isinstance(check, str) else check for check in keys.checks)


def _demand_unique(jobs: tuple[Job, ...]) -> None:
    names = [job.name for job in jobs]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise LoopRefusedError(f"config: /jobs/{index}/name is the name of another job: {name}")


def with_context(configuration: Configuration, fs: FileSystem, top: Path) -> Configuration:
    """The configuration with the text of every context file.

    Args:
        configuration: as read.
        fs: file operations.
        top: the repository.

    Raises:
        LoopRefusedError: `context <path>: <reason>`.
    """
    files = TreeFiles(fs, top)
    jobs = tuple(
        Job(job.keys, job.reviewer, job.checks, tuple(_context(files, path) for path in job.keys.context))
        for job in configuration.jobs
    )
    return Configuration(configuration.repo, jobs, configuration.digest, configuration.path)


def _context(files: TreeFiles, path: str) -> tuple[str, str]:
    try:
        return path, context_text(files, path, CONTEXT_BYTES)
    except PathRefusedError as error:
        raise LoopRefusedError(f"context {printable(path)}: {error}") from None
