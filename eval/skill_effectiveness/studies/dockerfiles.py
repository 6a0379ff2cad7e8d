"""A Dockerfile that does no more than put files somewhere, as files (studies.md section 1, `import harbor`).

No container is driven. Five things can be had without one: the base, which is recorded and not there; the
working folder; variables with written-out values; files of the folder beside; comments. Anything else, and
any form of these whose meaning hangs on the base image or on a variable, is refused with its line.

Source: the Dockerfile reference (docs.docker.com/reference/dockerfile), sections FROM, WORKDIR, ENV, COPY.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.studies.file_trees import EntryKind, TreeEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.studies.file_trees import FileTree

DOCKERFILE: Final = "Dockerfile"
_IGNORE_FILES: Final = (".dockerignore", f"{DOCKERFILE}.dockerignore")

_DIRECTIVE: Final = re.compile(r"#\s*escape\s*=\s*(.*?)\s*", re.IGNORECASE)
_ANY_DIRECTIVE: Final = re.compile(r"#\s*[A-Za-z]+\s*=")
_CONTINUED: Final = re.compile(r"\\[ \t]*$")
_INSTRUCTION: Final = re.compile(r"\s*([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)
_FROM: Final = re.compile(r"([^\s-]\S*)(?:\s+as\s+\S+)?", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WILD: Final = re.compile(r"[*?\[]")


class NotHostableError(Exception):
    """A Dockerfile does more than put files somewhere.

    Attributes:
        line: where its instruction begins; None where the file as a whole is meant.
        sentence: what it does, and what to do.
    """

    def __init__(self, line: int | None, told: str) -> None:
        self.line = line
        self.sentence = f"{DOCKERFILE} {told}; no container is driven here, so take the task out."
        super().__init__(self.sentence)


class Placed(NamedTuple):
    """Something that lies in the working folder.

    Attributes:
        entry: with its path below the working folder.
        source: path of the file beside the Dockerfile; empty for a folder.
    """

    entry: TreeEntry
    source: str


@dataclass(frozen=True, slots=True)
class HostImage:
    """What a Dockerfile comes to without a container.

    Attributes:
        base: name of the image that is not there.
        workdir: the working folder; None where nothing says it.
        env: variables.
        placed: what lies in the working folder, sorted by path.
    """

    base: str
    workdir: str | None
    env: Mapping[str, str]
    placed: tuple[Placed, ...]


class _Instruction(NamedTuple):
    line: int
    word: str
    rest: str


def host_image(text: str, context: FileTree, *, workdir: str | None, default: str) -> HostImage:
    """What a Dockerfile says.

    Args:
        text: of the file.
        context: the folder it lies in, itself included.
        workdir: the working folder by another word, which outweighs the Dockerfile's; None without.
        default: the working folder where nobody says one.

    Raises:
        NotHostableError: it needs a container.
    """
    if any(context.find(name) is not None for name in _IGNORE_FILES):
        raise NotHostableError(None, "comes with a .dockerignore, whose patterns are not read")
    building = _Building(context)
    for instruction in _instructions(text):
        building.follow(instruction)
    return building.image(workdir, default)


def _instructions(text: str) -> Iterator[_Instruction]:
    pending: list[str] = []
    began, directives = 1, True
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.lstrip().startswith("#"):
            escape = _DIRECTIVE.fullmatch(line.strip()) if directives else None
            if escape is not None and escape[1] != "\\":
                raise NotHostableError(number, "has another escape character")
            directives = directives and _ANY_DIRECTIVE.match(line.strip()) is not None
            continue
        directives = False
        if not line.strip():
            continue
        began = began if pending else number
        pending.append(_CONTINUED.sub("", line))
        if _CONTINUED.search(line) is None:
            yield _instruction(began, "".join(pending))
            pending = []
    if pending:
        yield _instruction(began, "".join(pending))


def _instruction(line: int, text: str) -> _Instruction:
    found = _INSTRUCTION.fullmatch(text)
    if found is None:
        raise NotHostableError(line, "has a line that is no instruction")
    return _Instruction(line, found[1].upper(), (found[2] or "").strip())


@dataclass(slots=True)
class _Building:
    """What has been said so far, by absolute paths."""

    context: FileTree
    base: str | None = None
    at: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, TreeEntry] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def follow(self, said: _Instruction) -> None:
        """Take in one instruction."""
        known = {"FROM": self._from, "WORKDIR": self._workdir, "ENV": self._env, "COPY": self._copy}
        if said.word not in known:
            raise NotHostableError(said.line, f"has {printable(said.word[:20])}")
        if (self.base is None) is not (said.word == "FROM"):
            told = "has more than one stage" if said.word == "FROM" else f"has {said.word} before FROM"
            raise NotHostableError(said.line, told)
        if not said.rest or "$" in said.rest or "\0" in said.rest:
            told = "without its words" if not said.rest else "with a variable"
            raise NotHostableError(said.line, f"has {said.word} {told}")
        known[said.word](said)

    def _from(self, said: _Instruction) -> None:
        found = _FROM.fullmatch(said.rest)
        if found is None:
            raise NotHostableError(said.line, "has FROM with options")
        self.base = found[1]

    def _workdir(self, said: _Instruction) -> None:
        if re.search(r"[\"'\\]", said.rest):
            raise NotHostableError(said.line, "has WORKDIR with quotes")
        self.at = self._absolute(said.rest, said)
        self._folder(self.at, said.line)

    def _env(self, said: _Instruction) -> None:
        first = said.rest.split(None, 1)
        if "=" not in first[0]:
            if len(first) == 1 or re.search(r"[\"'\\]", said.rest):
                raise NotHostableError(said.line, "has ENV in a form that is not read; write NAME=value")
            pairs = [(first[0], first[1])]
        else:
            try:
                words = shlex.split(said.rest)
            except ValueError:
                raise NotHostableError(said.line, "has ENV with quotes that do not end") from None
            pairs = [(word.partition("=")[0], word.partition("=")[2]) for word in words if "=" in word]
            if len(pairs) < len(words):
                raise NotHostableError(said.line, "has ENV with a word that is no NAME=value")
        for name, value in pairs:
            if _NAME.fullmatch(name) is None:
                raise NotHostableError(said.line, "has ENV with a name that is none")
            self.env[name] = value

    def _copy(self, said: _Instruction) -> None:
        *sources, goal = _copied(said)
        target = self._absolute(goal, said)
        folder = goal.endswith(("/", "/.")) or goal in {".", ".."} or target in {self.at, *self.folders}
        if len(sources) > 1 and not folder:
            raise NotHostableError(said.line, "has COPY of several files to what is no folder")
        for source in sources:
            self._place(_source(source, said), target, said.line, folder=folder)

    def _place(self, source: str, target: str, line: int, *, folder: bool) -> None:
        entry = self.context.find(source) if source else None
        if source and entry is None:
            raise NotHostableError(line, "has COPY of a file that is not beside it")
        if entry is not None and entry.kind is EntryKind.LINK:
            raise NotHostableError(line, "has COPY of a link")
        if entry is not None and entry.kind is EntryKind.FILE:
            name = posixpath.basename(source)
            self._file(posixpath.join(target, name) if folder else target, entry, line)
            return
        self._folder(target, line)
        for below in self.context.below(source).entries if source else self.context.entries:
            if not source and below.path == DOCKERFILE:
                continue
            path = posixpath.join(target, below.path)
            if below.kind is EntryKind.FOLDER:
                self._folder(path, line)
            else:
                self._file(path, below._replace(path=posixpath.join(source, below.path)), line)

    def _file(self, path: str, entry: TreeEntry, line: int) -> None:
        if path in self.folders or path == "/":
            raise NotHostableError(line, "has COPY of a file over a folder")
        self._folder(posixpath.dirname(path), line)
        self.files[path], self.lines[path] = entry, line

    def _folder(self, path: str, line: int) -> None:
        while path != "/":
            if path in self.files:
                raise NotHostableError(line, "puts a folder where a file lies")
            self.folders.setdefault(path, line)
            path = posixpath.dirname(path)

    def _absolute(self, path: str, said: _Instruction) -> str:
        if self.at is None and not path.startswith("/"):
            raise NotHostableError(said.line, f"has {said.word} to a place that only its base image knows")
        joined = posixpath.normpath(posixpath.join(self.at or "/", path))
        return f"/{joined.lstrip('/')}"

    def image(self, workdir: str | None, default: str) -> HostImage:
        """What it all comes to."""
        if self.base is None:
            raise NotHostableError(None, "has no FROM")
        at = workdir or self.at
        inside = (at or default).rstrip("/") + "/"
        placed = []
        for path, entry in self.files.items():
            if not path.startswith(inside):
                raise NotHostableError(self.lines[path], "puts a file outside the working folder")
            placed.append(Placed(entry._replace(path=path.removeprefix(inside)), entry.path))
        placed += [
            Placed(TreeEntry(path.removeprefix(inside), EntryKind.FOLDER), "")
            for path in self.folders
            if path.startswith(inside)
        ]
        return HostImage(self.base, at, dict(self.env), tuple(sorted(placed)))


def _copied(said: _Instruction) -> Sequence[str]:
    """Sources and goal of a COPY."""
    words: object = said.rest.split()
    if said.rest.startswith("["):
        try:
            words = json.loads(said.rest)
        except ValueError:
            words = None
    elif re.search(r"[\"'\\]|<<", said.rest):
        raise NotHostableError(said.line, "has COPY with quotes or text of its own")
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        raise NotHostableError(said.line, "has COPY with a list that cannot be read")
    if any(word.startswith("--") for word in words):
        raise NotHostableError(said.line, "has COPY with options")
    if len(words) == 1:
        raise NotHostableError(said.line, "has COPY without its words")
    return words


def _source(path: str, said: _Instruction) -> str:
    """A source below the folder of the Dockerfile; empty for all of it."""
    if _WILD.search(path):
        raise NotHostableError(said.line, "has COPY with a pattern")
    if ".." in path.split("/") or ":" in path:
        raise NotHostableError(said.line, "has COPY from elsewhere")
    plain = posixpath.normpath(path.lstrip("/") or ".")
    return "" if plain == "." else plain
