"""Git: which commits there are, which files a commit holds, and whatever else a room asks of it.

Source: closeout.md, section 10; loop.md, section 11. Every call goes through the house's one way to start a
child, with its own time limit. A call of ours never runs a hook, never asks a person, and sees the objects
that were committed: replacement objects are off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.execution.limits import Limits
from skill_effectiveness.execution.outcome import Ended
from skill_effectiveness.execution.process import run_process
from skill_effectiveness.execution.programs import find_tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings

SECONDS: Final = 30.0
_COMMIT_LINE: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_ENTRY: Final = re.compile(
    rb"(?P<mode>[0-7]{6}) (?P<type>[a-z]+) (?P<id>[0-9a-f]+) +(?P<size>[0-9]+|-)\t(?P<path>.*)", re.DOTALL
)
_BLOB_HEAD: Final = re.compile(rb"[0-9a-f]+ blob (?P<size>[0-9]+)")

_CAREFUL: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # A changed file must not look unchanged because the checkout was told not to look closely.
    "core.checkStat=default",
    "core.ignoreStat=false",
    "core.trustctime=true",
)

ROUTING: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ATTR_SOURCE",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DEFAULT_REF_FORMAT",
        "GIT_DIR",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_TEMPLATE_DIR",
        "GIT_WORK_TREE",
    }
)
"""Variables that lead git to another repository, index, object store or configuration than those it finds."""

_NUMBERED: Final = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")


def without_routing(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables by which a caller's git would reroute another one."""
    return {
        name: value
        for name, value in environ.items()
        if name not in ROUTING and not _NUMBERED.fullmatch(name)
    }


@dataclass(frozen=True, slots=True)
class Answered:
    """What one git command came to; `code` is None when it did not end by itself in its time."""

    code: int | None
    out: bytes

    @property
    def good(self) -> bool:
        """Whether it exited with 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a commit's tree; `path` is its bytes."""

    mode: str
    object_id: str
    size: int
    path: bytes


class Git:
    """Git in one folder.

    Args:
        folder: where it runs, absolute.
        around: the surroundings.
    """

    def __init__(self, folder: Path, around: Surroundings) -> None:
        self._folder = folder
        self._around = around
        # A trace may be told to go where the answers go.
        quiet = {name: value for name, value in around.environ.items() if not name.startswith("GIT_TRACE")}
        self._environment = {
            **without_routing(quiet),
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }

    def ask(
        self,
        *words: str,
        stdin: bytes = b"",
        seconds: float = SECONDS,
        environ: Mapping[str, str] | None = None,
    ) -> Answered:
        """Run one git command."""
        program = find_tool("git", self._around)
        if program is None:
            return Answered(None, b"")
        said: list[bytes] = []

        def keep(line: bytes) -> bool:
            said.append(line + b"\n")
            return False

        careful = [word for setting in _CAREFUL for word in ("-c", setting)]
        result = run_process(
            [str(program), *careful, *words],
            cwd=self._folder,
            env={**self._environment, **(environ or {})},
            stdin=stdin,
            limits=Limits(seconds, line_bytes=_LINE_BYTES, stdout_bytes=_LINE_BYTES),
            on_line=keep,
            around=self._around,
        )
        code = result.exit_code if result.ended is Ended.EXITED else None
        return Answered(code, b"".join(said) + result.unterminated)

    def commit(self, revision: str) -> str | None:
        """The full id of the commit that a revision names; `None` when it names none."""
        if not revision or "\0" in revision or "\n" in revision:
            return None
        answered = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        line = answered.out.strip()
        return line.decode() if answered.good and _COMMIT_LINE.fullmatch(line) else None

    def is_top(self) -> bool:
        """Whether the folder is the top of a checkout, linked worktree or submodule, as git itself sees it.

        A `.git` that is no repository does not make it one: git would answer from a repository around it.
        """
        answered = self.ask("rev-parse", "--is-inside-work-tree", "--show-prefix")
        return answered.good and answered.out == b"true\n\n"

    def common(self) -> Path | None:
        """The folder that all worktrees of the checkout share; `None` outside one."""
        answered = self.ask("rev-parse", "--path-format=absolute", "--git-common-dir")
        line = answered.out.removesuffix(b"\n")
        return Path(line.decode(errors="surrogateescape")) if answered.good and line else None

    def listing(self, commit: str, *below: str) -> tuple[TreeEntry, ...] | None:
        """Every entry of a commit's tree, folders included; `None` when git does not say.

        Args:
            commit: full id.
            below: only what lies at or below these folders.
        """
        answered = self.ask("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit, "--", *below)
        if not answered.good:
            return None
        entries = []
        for line in answered.out.split(b"\0")[:-1]:
            match = _ENTRY.fullmatch(line)
            if match is None:
                return None
            size = int(match["size"]) if match["size"] != b"-" else 0
            entries.append(TreeEntry(match["mode"].decode(), match["id"].decode(), size, match["path"]))
        return tuple(entries)

    def blobs(self, object_ids: Sequence[str]) -> tuple[bytes, ...] | None:
        """The bytes of blobs, in order; `None` when one is missing."""
        asked = "".join(f"{object_id}\n" for object_id in object_ids).encode()
        answered = self.ask("cat-file", "--batch", stdin=asked)
        if not answered.good:
            return None
        return _split_batch(answered.out, len(object_ids))


_LINE_BYTES: Final = 268_435_456


def _split_batch(out: bytes, count: int) -> tuple[bytes, ...] | None:
    blobs: list[bytes] = []
    start = 0
    for _ in range(count):
        end = out.find(b"\n", start)
        match = _BLOB_HEAD.fullmatch(out[start:end]) if end >= 0 else None
        if match is None:
            return None
        stop = end + 1 + int(match["size"])
        blobs.append(out[end + 1 : stop])
        start = stop + 1
    return tuple(blobs) if start == len(out) else None
