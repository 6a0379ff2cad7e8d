"""Small executables that misbehave on purpose, in place of a provider's program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.support.provider_calls import GOOD_STREAM

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "fake-cli 9.9.9"
READ_PROMPT = "prompt = sys.stdin.buffer.read()\n"

_HEAD = [
    f"#!{sys.executable} -IS",
    "import json, os, sys, time",
    "if sys.argv[1:] == ['--version']:",
    f"    print({VERSION!r})",
    "    sys.exit(0)",
    "def raw(data):",
    "    sys.stdout.buffer.write(data)",
    "    sys.stdout.buffer.flush()",
    "def say(*documents):",
    "    raw(b''.join(json.dumps(document).encode() + b'\\n' for document in documents))",
]


def write_fake(path: Path, body: str, **constants: object) -> Path:
    """Write an executable that prints `VERSION` when asked for it and otherwise runs `body`.

    The body may call `say(document, ...)` for JSON lines and `raw(bytes)`, and finds the constants, which are
    JSON values, under their names.
    """
    given = [f"{name} = json.loads({json.dumps(value)!r})" for name, value in constants.items()]
    path.write_text("\n".join([*_HEAD, *given, body, ""]))
    path.chmod(0o755)
    return path


def write_codex(tmp_path: Path, body: str, **constants: object) -> Path:
    """A fake of codex, which also finds a good stream as `good` and the test's folder as `folder`."""
    return write_fake(tmp_path / "codex", body, good=GOOD_STREAM, folder=str(tmp_path), **constants)
