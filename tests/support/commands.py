"""Command lines for tests: as a process of its own, and what one said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.fake_program import write_fake
from tests.support.private import REPOSITORY
from tests.support.provider_calls import DONE, THREAD, TURN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.protocol.cases import Bank

RUN = REPOSITORY / "run.py"
TABLE = REPOSITORY / "tests" / "data" / "judgebench-o1-mini-verdicts.csv"
PREFIX = "skill_effectiveness_trial: "


@dataclass(frozen=True)
class Said:
    """How a command line ended, and what it left on both streams."""

    code: int
    out: str
    err: str

    @property
    def values(self) -> dict[str, str]:
        """The result lines."""
        return dict(line.split("=", 1) for line in self.out.splitlines())

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON
        """The one JSON object on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def refusal(self) -> str:
        """The one sentence of a refusal."""
        assert (self.code, self.out) == (2, ""), self
        (line,) = self.err.splitlines()
        assert line.startswith(PREFIX), line
        return line.removeprefix(PREFIX)


def environment(home: Path, **others: str) -> dict[str, str]:
    """All that a command line of a test may see of this one's environment."""
    temporary = home / "tmp"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return given | others


def start(
    home: Path,
    *words: str | Path,
    code: Sequence[str] = (str(RUN),),
    **others: Any,  # noqa: ANN401 - as Popen takes them
) -> subprocess.Popen[bytes]:
    """Start a command line; `code` is what the interpreter runs instead of `run.py`."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(home), "cwd": home}
    return subprocess.Popen([sys.executable, *code, *map(str, words)], **(settings | others))  # noqa: S603 - ours


def ended(process: subprocess.Popen[bytes]) -> Said:
    """What a command line that was started came to."""
    out, err = process.communicate(timeout=60)
    return Said(process.returncode, (out or b"").decode(), (err or b"").decode())


def run(home: Path, *words: str | Path, **others: Any) -> Said:  # noqa: ANN401 - as Popen takes them
    """Run a command line to its end."""
    return ended(start(home, *words, **others))


def no_traceback(said: Said) -> bool:
    """Whether neither stream shows the inside of the program."""
    return not any(word in said.out + said.err for word in ("Traceback", 'File "', "Exception ignored"))


def steers(text: str) -> list[str]:
    """Characters of a text that a terminal would act on, line ends apart."""
    return [letter for letter in text if letter != "\n" and not letter.isprintable()]


ANSWERING = """
prompt = sys.stdin.buffer.read().decode()
cases = json.loads(prompt.rstrip().rsplit("\\n", 1)[1])["cases"]
judged = [{"case": case["case"], "verdict": right.get(case["A"] + "|" + case["B"], "tie")} for case in cases]
text = json.dumps({"judgments": judged})
sys.stderr.write(noise)
item = {"id": "item_1", "type": "agent_message", "text": text}
thread["thread_id"] = os.urandom(16).hex()  # every session is a new one
say(thread, turn, {"type": "item.completed", "item": item}, done)
"""


def codex_that_answers(path: Path, bank: Bank | None, *, noise: str = "", before: str = "") -> Path:
    """A program in the place of codex that knows the answers of a bank, or always says `tie` when given none.

    Args:
        path: where it is written.
        bank: whose answers it knows.
        noise: what it says on stderr.
        before: code that runs before it answers.
    """
    right: dict[str, str] = {}
    for case, verdict in zip(bank.cases, bank.truth, strict=True) if bank else ():
        right[f"{case.candidate_a}|{case.candidate_b}"] = verdict.value
        right[f"{case.candidate_b}|{case.candidate_a}"] = verdict.turned().value
    return write_fake(path, before + ANSWERING, right=right, noise=noise, thread=THREAD, turn=TURN, done=DONE)


SLOW = """
sys.stdin.buffer.read()
child = os.fork()
if child == 0:
    os.setsid()
    open(folder + "/grandchild.part", "w").write(str(os.getpid()))
    os.rename(folder + "/grandchild.part", folder + "/grandchild")
    time.sleep(300)
open(folder + "/program.part", "w").write(str(os.getpid()))
os.rename(folder + "/program.part", folder + "/program")
time.sleep(300)
"""


def codex_that_waits(path: Path, pids: Path) -> Path:
    """A program in the place of codex that starts a grandchild in another session and never answers.

    Both leave their pid in the folder.
    """
    pids.mkdir(exist_ok=True)
    return write_fake(path, SLOW, folder=str(pids))
