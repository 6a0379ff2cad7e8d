"""What `codex exec` is given so that a step can write its artifacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_effectiveness.providers.codex_loop import loop_arguments

OUT = Path("/private/out")
ADDED = ("--add-dir", "/private/out")
CHOSEN = ("--sandbox", "workspace-write")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("exec", "{{prompt}}"), ("exec", *ADDED, *CHOSEN, "{{prompt}}")),
        (("e", "{{prompt}}"), ("e", *ADDED, *CHOSEN, "{{prompt}}")),
        (("-m", "exec", "exec", "{{prompt}}"), ("-m", "exec", "exec", *ADDED, *CHOSEN, "{{prompt}}")),
        (("exec", "-s", "read-only", "{{prompt}}"), ("exec", *ADDED, "-s", "read-only", "{{prompt}}")),
        (
            ("exec", "--sandbox=read-only", "{{prompt}}"),
            ("exec", *ADDED, "--sandbox=read-only", "{{prompt}}"),
        ),
        (("exec", "--full-auto", "{{prompt}}"), ("exec", *ADDED, "--full-auto", "{{prompt}}")),
        (
            ("-c", "sandbox_mode='x'", "exec", "{{prompt}}"),
            ("-c", "sandbox_mode='x'", "exec", *ADDED, "{{prompt}}"),
        ),
        (("exec", "-csandbox_mode=x", "{{prompt}}"), ("exec", *ADDED, "-csandbox_mode=x", "{{prompt}}")),
        (("exec", "-c", "model=x", "{{prompt}}"), ("exec", *ADDED, *CHOSEN, "-c", "model=x", "{{prompt}}")),
        (("review", "{{prompt}}"), ("review", "{{prompt}}")),
        (("{{prompt}}",), ("{{prompt}}",)),
        ((), ()),
    ],
)
def test_arguments(args: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """L39: the folder is added; a sandbox is chosen unless one was."""
    assert loop_arguments("codex", args, OUT) == expected
    assert loop_arguments("/opt/bin/codex", args, OUT) == expected


def test_other_programs_are_left_alone() -> None:
    """L39: their arguments are theirs."""
    assert loop_arguments("claude", ("exec", "{{prompt}}"), OUT) == ("exec", "{{prompt}}")
