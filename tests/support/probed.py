"""Programs in the place of codex that a probe asks, each with its own idea of isolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.fake_program import write_fake
from tests.support.provider_calls import DONE, THREAD, TURN

if TYPE_CHECKING:
    from pathlib import Path

# The prompt is kept for the test; the canary is what a leaking program keeps for itself.
_BEGIN = """
import re
prompt = sys.stdin.buffer.read().decode()
with open(folder + "/prompts.jsonl", "a") as kept:
    kept.write(json.dumps({"argv": sys.argv[1:], "prompt": prompt, "environ": sorted(os.environ)}) + "\\n")
found = re.search("[0-9a-f]{64}", prompt)
memory = folder + "/memory"
if found:
    open(memory, "w").write(found[0])
canary = open(memory).read() if os.path.exists(memory) else ""
session = os.urandom(16).hex()
def answer(text, *before, session=session):
    item = {"id": "item_1", "type": "agent_message", "text": text}
    say({**thread, "thread_id": session}, turn, *before, {"type": "item.completed", "item": item}, done)
def acknowledge():
    answer(json.dumps({"canary": canary}))
def recall(value):
    answer(json.dumps({"recalled_canary": value}))
"""

FORGETS = 'recall("none")'
LEAKS = "recall(canary)"


def write_probed(path: Path, folder: Path, *, second: str = FORGETS, first: str = "acknowledge()") -> Path:
    """Write a program.

    Args:
        path: of the program.
        folder: where it keeps `prompts.jsonl`, a line for each call, and what it remembers.
        second: what its second session does, in terms of `answer`, `recall` and `canary`.
        first: what its first session does.
    """
    indent = "\n    "
    body = (
        f"{_BEGIN}if found:{indent}{indent.join(first.splitlines())}\n"
        f"else:{indent}{indent.join(second.splitlines())}"
    )
    return write_fake(path, body, folder=str(folder), thread=THREAD, turn=TURN, done=DONE)
