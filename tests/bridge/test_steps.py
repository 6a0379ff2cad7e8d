"""The eight steps of a request: killed or signalled behind each of them, at the real door.

The copy of the checkout that is started here looks into a file behind every step, and does what stands there.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge, Reply, copy_checkout
from tests.support.trials import cursor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


KEY = TrialKey("task-a", "profile-full", 1)
STEPS = range(1, 9)
# Behind each of these texts a step has been made; of two the second follows the step.
MARKS = {
    1: ("transaction", "    ledger.settle(steps.look)\n", ""),
    2: ("transaction", "    if known is not None:\n        return known\n", ""),
    3: ("transaction", "        answer_line(envelope.request_id, binding, result)\n", ""),
    4: ("transaction", "        ledger.intend(envelope.request_id, intent)\n", ""),
    5: ("transaction", "", "        ledger.conclude(envelope.request_id, request_hash, binding, result)\n"),
    6: ("receipts", "", "        self.abandon(request_id)\n\n    def abandon("),
    7: ("transaction", "", "        return result\n    raise "),
    8: ("door", "            started.answer(answer.line)\n", ""),
}


def stopping(checkout: Path, script: Path) -> None:
    """Have a checkout run a script behind every step; `step` is its number."""
    for step, (module, behind, before) in MARKS.items():
        place = checkout / "eval" / "skill_effectiveness" / "bridge" / f"{module}.py"
        code = place.read_text()
        text = behind or before
        assert code.count(text) == 1, step
        indent = text[: len(text) - len(text.lstrip(" "))]
        hook = f"{indent}exec(open({str(script)!r}).read(), {{'step': {step}}})\n"
        place.write_text(code.replace(text, behind + hook + before))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Such a checkout, and the script."""
    folder = tmp_path_factory.mktemp("steps")
    script = folder / "script"
    script.write_text("")
    checkout = copy_checkout(folder / "copy" / "checkout")
    stopping(checkout, script)
    return checkout, script


class Steps(Bridge):
    """A place with a prepared trial."""

    def __init__(self, folder: Path, stopped: tuple[Path, Path]) -> None:
        super().__init__(folder, stopped[0])
        self.script = stopped[1]
        self.script.write_text("")
        assert self.ask(self.prepare("p")).word == "ok"

    def hit(self, request: dict[str, Any], step: int, number: int) -> tuple[int, bytes, bytes]:
        """Exit code, answer and stderr of a request that gets a signal behind a step."""
        self.script.write_text(f"import os\nif step == {step}: os.kill(os.getpid(), {int(number)})\n")
        try:
            done = self.raw(json.dumps(request).encode())
        finally:
            self.script.write_text("")
        return done.returncode, done.stdout, done.stderr

    @property
    def intents(self) -> list[str]:
        """What is left among the intents."""
        return [path.name for path in (self.root / "bridge-receipts" / "intents").iterdir()]

    @property
    def receipt(self) -> bool:
        """Whether the request has its receipt."""
        return (self.root / "bridge-receipts" / "k.json").is_file()

    @property
    def version(self) -> object:
        """The stored version of the trial."""
        return self.place.document(KEY)["state_version"]


def a_request(bridge: Bridge) -> dict[str, Any]:
    return bridge.checkpoint(KEY, "running", "k", resume_cursor=cursor(7, tokens=3), expected_state_version=0)


@pytest.mark.parametrize("other_first", [False, True], ids=["same", "other"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_behind_each_step(
    tmp_path: Path,
    stopped: tuple[Path, Path],
    step: int,
    other_first: bool,  # noqa: FBT001 - both
) -> None:
    """B34: what is left is what the step leaves; the same request next, or another one and then the same."""
    place = Steps(tmp_path, stopped)
    request = a_request(place)
    exit_code, out, err = place.hit(request, step, signal.SIGKILL)
    assert (exit_code, err) == (-signal.SIGKILL, b"")
    assert bool(out) == (step == 8)
    assert place.version == (1 if step >= 5 else 0)
    assert place.receipt == (step >= 6)
    assert place.intents == (["k.json"] if step in {4, 5, 6} else [])
    with place.stream() as stream:
        if other_first:
            assert stream.ask(place.prepare("other", sample_index=2)).word == "ok"
            assert place.intents == []
            assert place.receipt == (step >= 5)
        reply = stream.ask(request)
        assert reply.replayed == (step >= 5)
        assert reply.answered == {
            "state_version": 1,
            "evidence_tier": "advisory-paired",
            "coverage_limitations": None,
        }
        if step == 8:
            assert Reply.of(out, None).answered == reply.answered
        assert stream.ask(request).replayed
    assert place.version == 1
    assert place.intents == []


@pytest.mark.parametrize(
    ("step", "number"),
    [
        *((step, signal.SIGTERM) for step in STEPS),
        *((step, number) for step in (4, 5) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)),
    ],
)
def test_a_signal_behind_each_step(
    tmp_path: Path, stopped: tuple[Path, Path], step: int, number: signal.Signals
) -> None:
    """B39: before the state changes the request is cancelled without a trace, afterwards it is answered."""
    place = Steps(tmp_path, stopped)
    exit_code, out, err = place.hit(a_request(place), step, number)
    reply = Reply.of(out, exit_code, err.decode())
    if step < 5:
        assert (reply.word, reply.exit_code) == ("cancelled", 3)
        assert (place.version, place.receipt) == (0, False)
    else:
        assert (reply.word, reply.exit_code, reply.replayed) == ("ok", 0, False)
        assert (place.version, place.receipt) == (1, True)
    assert place.intents == []
    assert place.ask(a_request(place)).replayed == (step >= 5)
