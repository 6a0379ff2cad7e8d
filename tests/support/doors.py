"""A tiny house with a door of its own, beside an environment of its own, for tests that start real processes.

The tree holds the real `launch` and the real `calibration/__main__.py`; the rooms hold what a test puts
there. The environment is a virtual one without pip, in which every bound distribution is made up: one module
each, and a RECORD that fits.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skill_effectiveness
from skill_effectiveness.launch.manifest import calibration_dependencies, calibration_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE = Path(skill_effectiveness.__file__).parent
ROOMS = ("calibration", "evidence", "execution", "protocol", "providers")
SWITCHES = ("-I", "-B", "-X", "utf8")
PATIENCE = 60

# Runs `BODY` and answers with what it found; a test replaces the body.
DOOR = """
import json, os, resource, sys

def main(started):
    request = started.wire.request(1000)
    found = {
        "request": request.decode(),
        "arguments": started.arguments,
        "given": dict(started.environ),
        "environment": dict(os.environ),
        "flags": [sys.flags.isolated, sys.flags.dont_write_bytecode, sys.flags.utf8_mode],
        "command": sys.orig_argv,
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "manifest": started.manifest,
        "package": sys.modules["skill_effectiveness"].__file__,
    }
    BODY
    found["loaded"] = started.importer.loaded_checkout_modules()
    started.answer(json.dumps(found).encode() + b"\\n")
    return 0
"""


@dataclass(frozen=True)
class Answer:
    """What a door gave back."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def line(self) -> Any:  # noqa: ANN401 - JSON
        """The one line of stdout."""
        assert self.stdout.count(b"\n") == 1, (self.stdout, self.stderr)
        assert self.stdout.endswith(b"\n")
        return json.loads(self.stdout)

    @property
    def found(self) -> Any:  # noqa: ANN401 - JSON
        """What the stand-in door reported."""
        assert self.exit_code == 0, (self.exit_code, self.stdout, self.stderr)
        return self.line

    def refused(self, code: str) -> str:
        """Demand a refusal by the launching part; what it told people."""
        status, exit_code = {
            "runtime_drift": ("blocked", 3),
            "runtime_manifest_unavailable": ("error", 4),
            "internal_error": ("error", 4),
        }[code]
        assert self.line == {
            "schema": "skill-effectiveness.reviewer-calibration.response.v1",
            "request_id": "redacted-invalid-request-id",
            "status": status,
            "reason_code": code,
        }, self.stderr
        assert self.exit_code == exit_code
        told = [line for line in self.stderr.splitlines() if line.startswith(f"{code}: ")]
        assert len(told) == 1, self.stderr
        assert "Traceback" not in self.stderr
        return told[0]


class House:
    """A tree and an environment below one folder.

    Attributes:
        root: the folder.
        package: where the package lies: in a checkout, or in the environment.
        site: the environment's site folder.
        python: its interpreter.
        door_file: the door's own file.
        marker: a file that planted code writes to; nothing of ours ever does.
    """

    def __init__(self, root: Path, *, installed: bool = False) -> None:
        self.root = root
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = root / "venv" / "lib" / version / "site-packages"
        self.python = root / "venv" / "bin" / "python"
        self.marker = root / "marker"
        top = self.site if installed else root / "checkout" / "eval"
        self.package = top / "skill_effectiveness"
        self.door_file = self.package / "calibration" / "__main__.py"
        self._frozen = self.package / "frozen" if installed else root / "checkout"
        self._environment()
        self._tree()
        self.door()

    def _environment(self) -> None:
        self.site.mkdir(parents=True)
        self.python.parent.mkdir()
        base = Path(sys._base_executable).resolve()
        self.python.symlink_to(base)
        (self.root / "venv" / "pyvenv.cfg").write_text(
            f"home = {base.parent}\ninclude-system-site-packages = false\n"
        )
        for name in calibration_dependencies():
            module = name.replace("-", "_") + ".py"
            self.distribution(name, {module: f"NAME = {name!r}\n".encode()})

    def _tree(self) -> None:
        launch = shutil.copytree(
            PACKAGE / "launch", self.package / "launch", ignore=shutil.ignore_patterns("__pycache__")
        )
        assert (launch / "start.py").is_file()
        self.write("__init__.py", "")
        for room in ROOMS:
            self.write(f"{room}/__init__.py", "")
        self.write("calibration/__main__.py", (PACKAGE / "calibration" / "__main__.py").read_text())
        (self._frozen / "schemas").mkdir(parents=True)
        (self._frozen / "fixtures").mkdir()
        for name in calibration_entries():
            if name.startswith("fixtures/"):
                (self._frozen / name).write_text("{}\n")
        for path in (self.root, *self.root.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)

    def write(self, name: str, text: str) -> Path:
        """Write a source of the package; folders come into being."""
        path = self.package / name
        for folder in reversed([one for one in path.parents if one.is_relative_to(self.package)]):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def door(self, body: str = "pass", before: str = "") -> None:
        """Put the stand-in door there, with lines of its own in `main`, and others at the top."""
        lines = body.replace("\n", "\n    ")
        self.write("calibration/door.py", before + DOOR.replace("BODY", lines))

    def planted(self, what: str = "planted") -> str:
        """Code that leaves a mark when it runs."""
        return f"import sys\nwith open({str(self.marker)!r}, 'a') as f: f.write({what + chr(10)!r})\n"

    def marks(self) -> list[str]:
        """What planted code left."""
        return self.marker.read_text().splitlines() if self.marker.exists() else []

    def distribution(self, name: str, files: Mapping[str, bytes], *, hashed: bool = True) -> Path:
        """Install a made-up distribution, or another one of that name; answers its RECORD."""
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()
        rows = []
        for place, data in {**files, f"{info}/METADATA": meta}.items():
            path = self.site / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o644)
            rows.append(f"{place},{record_digest(data) if hashed else ''},{len(data)}")
        record = self.site / info / "RECORD"
        record.write_text("\n".join([*rows, f"{info}/RECORD,,", ""]))
        record.chmod(0o644)
        return record

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
        module: bool = False,
        switches: Sequence[str] = SWITCHES,
        **more: Any,  # noqa: ANN401 - handed on
    ) -> Answer:
        """Start the door and wait for it, in an empty environment unless one is given.

        It is started isolated, which saves a start of the interpreter; `switches=()` and `module=True` take
        the ways of a caller.
        """
        start = ["-m", "skill_effectiveness.calibration"] if module else [str(self.door_file)]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [str(self.python), *switches, *start, *arguments],
            input=stdin,
            env=environment or {},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            **{"cwd": self.root, **more},
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def shell(self, command: str, stdin: bytes = b"") -> Answer:
        """Run a line of shell in an empty environment; `$python` and `$door` stand for ours."""
        done = subprocess.run(  # noqa: S603 - our own command
            ["/bin/sh", "-c", f"python='{self.python}' door='{self.door_file}'; {command}"],
            input=stdin,
            env={},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.root,
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def record_digest(data: bytes) -> str:
    """The digest column of a RECORD."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def python_path(*folders: Path) -> dict[str, str]:
    """An environment that puts folders on the module path."""
    return {"PYTHONPATH": os.pathsep.join(map(str, folders))}
