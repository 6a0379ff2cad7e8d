"""A git repository for tests, with a home and a temporary folder of its own beside it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class PlainRepository:
    """A repository of a test."""

    base: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        for folder in (self.home, self.temporary):
            folder.mkdir(mode=0o700)
        self.git("init", "-q", "-b", "main")

    @property
    def root(self) -> Path:
        return self.base / "repository"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def temporary(self) -> Path:
        return self.base / "temporary"

    def variables(self) -> dict[str, str]:
        """The environment of everything that runs here."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "n",
            "GIT_AUTHOR_EMAIL": "n@example.invalid",
            "GIT_COMMITTER_NAME": "n",
            "GIT_COMMITTER_EMAIL": "n@example.invalid",
            "LC_ALL": "C.UTF-8",
            **self.environ,
        }

    @property
    def around(self) -> Surroundings:
        return replace(Surroundings.real(), environ=self.variables())

    def git(self, *words: str) -> str:
        """Run git here; what it printed."""
        done = subprocess.run(  # noqa: S603 - words of the test
            ["git", "-C", str(self.root), *words],  # noqa: S607 - the git on PATH
            check=True, capture_output=True, text=True, env=self.variables(),
        )  # fmt: skip
        return done.stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file of the working tree."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, **files: str) -> str:
        """Commit everything, files given by name first; the commit's id."""
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")
