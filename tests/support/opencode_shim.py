"""A program that stands in front of the real opencode and gives it a provider on loopback.

The adapter fixes arguments and configuration and knows no provider of the user's own, so the shim names a
further configuration file in the environment and becomes the real program.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def model_of(provider: str) -> str:
    """The one model of a provider, as calls name it."""
    return f"{provider}/fake-model"


def write_shim(path: Path, program: Path, addresses: Mapping[str, str], *, agent: str | None = None) -> Path:
    """Write the shim and its configuration beside it; its path comes back.

    Args:
        path: where the shim will lie.
        program: the real one.
        addresses: base URL of each provider by its id; all speak Chat Completions and have one model.
        agent: what the shim puts in the place of the agent that is asked for.
    """
    providers = {name: _provider(address) for name, address in addresses.items()}
    configuration = path.with_name(f"{path.name}.json")
    configuration.write_text(json.dumps({"provider": providers}))
    lines = ["#!/bin/bash", f"export OPENCODE_CONFIG={shlex.quote(str(configuration))}"]
    if agent is not None:
        lines.append(f'[ "$1" = run ] && set -- "${{@:1:6}}" {shlex.quote(agent)} "${{@:8}}"')
    lines.append(f'exec {shlex.quote(str(program))} "$@"')
    path.write_text("\n".join([*lines, ""]))
    path.chmod(0o755)
    return path


def _provider(address: str) -> dict[str, object]:
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Loopback",
        "options": {"baseURL": address, "apiKey": "key-canary"},
        "models": {"fake-model": {"name": "Fake"}},
    }
