"""A program that stands in front of the real codex and points it at a loopback model server.

The arguments of a call are fixed by the adapter, so the configuration is put in between: the shim inserts its
own `-c` options behind `exec` and becomes the real program. Everything else, `--version` above all, passes
through as it is.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def custom_provider(base_url: str, *, retries: int = 0) -> list[str]:
    """Options for a model provider of our own, retries turned down; it takes the key from CODEX_API_KEY."""
    definition = (
        f'name="loopback", base_url="{base_url}", wire_api="responses", env_key="CODEX_API_KEY", '
        f"request_max_retries={retries}, stream_max_retries={retries}"
    )
    return ["-c", f"model_providers.loopback={{{definition}}}", "-c", 'model_provider="loopback"']


def built_in_provider(base_url: str) -> list[str]:
    """Options that leave the built-in provider as it is, login included, and move only its address."""
    return ["-c", f'openai_base_url="{base_url}"']


def write_shim(path: Path, program: Path, options: list[str]) -> Path:
    """Write the shim; its path comes back."""
    path.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = exec ] || exec {shlex.quote(str(program))} "$@"\n'
        "shift\n"
        f'exec {shlex.quote(str(program))} exec {shlex.join(options)} "$@"\n'
    )
    path.chmod(0o755)
    return path
