# A program of its own, to be copied.
# ruff: noqa: INP001
"""A coder and a critic, repeated until the critic's verdict file says pass; the task is the argument.

    python examples/review_loop.py "Reject expired tokens."

Run it at the top of a clean git work tree, with `codex` and `claude` installed and logged in. The working
tree is edited in place; nothing is committed.
"""

import sys
from pathlib import Path

from skill_effectiveness.acceptance.loop import (
    LoopRefusedError,
    RunContext,
    agent,
    execute,
    loop,
    run,
    seq,
    verdict_passed,
)

coder = agent("coder", command="codex", args=["exec", "{{prompt}}"])
critic = agent("critic", command="claude", args=["-p", "{{prompt}}"])


def review(ctx: RunContext) -> str:
    """What the critic is asked; the form of the verdict is added to it."""
    return f"Review the working tree. Is this done, completely and correctly?\n\n{ctx.task}"


improve = loop(body=seq([run(coder), run(critic, prompt=review)]), until=verdict_passed(), max=4)


def main() -> int:
    """Carry it out; 0 when the measured state passed."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and its argument
        sys.stderr.write("usage: review_loop.py TASK\n")
        return 2
    try:
        result = execute(improve, task=sys.argv[1], worktree=Path.cwd())
    except LoopRefusedError as refused:
        sys.stderr.write(f"{refused}\n")
        return 2
    sys.stderr.write(f"{result.outcome} after {result.attempts} attempts {result.reason}\n")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
