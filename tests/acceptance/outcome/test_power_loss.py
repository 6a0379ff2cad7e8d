"""Every image that a power loss can leave of grading, of an edge and of a close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.outcome.words import Result
from tests.support.crash_images import Recording, fast_folder
from tests.support.outcomes import ISSUE, Bench
from tests.support.private import child_output, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.acceptance.outcome.claims import ClaimRow


def closed(bench: Bench) -> None:
    bench.close()


def failed(bench: Bench) -> None:
    bench.edge("build", "failed", receipt="b-1")


def graded(bench: Bench) -> None:
    bench.submit(*bench.ledger().edges.values(), false_greens=("false_green_round_up",))


def is_closed(row: ClaimRow) -> bool:
    return row.closed


def is_stamped(row: ClaimRow) -> bool:
    return row.contradiction_reason == "build:failed"


def is_worse(row: ClaimRow) -> bool:
    return row.state is Result.FAILED


@pytest.mark.parametrize(("work", "done"), [(closed, is_closed), (failed, is_stamped), (graded, is_worse)])
def test_every_image(
    capsys: pytest.CaptureFixture[str],
    work: Callable[[Bench], None],
    done: Callable[[ClaimRow], bool],
) -> None:
    """O68 O69: before or after, an acknowledged row always; and the same command goes through once."""
    with fast_folder() as base:
        bench = Bench(base)
        bench.submit(bench.good())
        recording = Recording(bench.store)
        work(Bench(base, recording.fs))
        recording.acknowledge("done")
        assert recording.wrong_modes == []
        images = 0
        for image, promised in recording.images():
            images += 1
            place = base / f"image-{images}"
            image.materialise(place)
            judge(Bench(base, elsewhere=place), work, done, promised=bool(promised))
        with capsys.disabled():
            print(f"\n{work.__name__}: {images} crash images ", end="")  # noqa: T201 - the count is to be seen
        assert images >= 11


def judge(
    bench: Bench, work: Callable[[Bench], None], done: Callable[[ClaimRow], bool], *, promised: bool
) -> None:
    """An image as a reader, as the same command and as a close find it."""
    assert not promised or done(bench.row())
    work(bench)
    row = bench.row()
    assert done(row)
    assert bench.rows("issue_closed") == (1 if work is closed else 0)
    assert row.closed is bench.ledger().closed_here(ISSUE)
    assert bench.close(execute=False).closed is row.closed
    assert wrong_modes(bench.store) == []


KILL = """
import itertools, json, os, pathlib, signal, sys
from skill_effectiveness.acceptance.outcome import issues
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.killing_fs import MortalFs, by_signal
from tests.support.outcomes import BODY, Bench
from tests.support.private import wrong_modes
base = pathlib.Path(sys.argv[1])

def forge(place):
    # In the place of a program for each question: closed once the file says so.
    def ask(words, around):
        file = place / "forge-closed"
        if words[1] == "close":
            file.touch()
            return b""
        state, reason = ("CLOSED", "COMPLETED") if file.exists() else ("OPEN", "")
        return json.dumps({"number": 7, "state": state, "stateReason": reason, "body": BODY}).encode()
    return ask

unconfirmed = 0
for nth in itertools.count(1):
    place = base / str(nth)
    place.mkdir(mode=0o700)
    issues._ask = forge(place)
    bench = Bench(place, at_forge=True)
    bench.submit(bench.good())
    pid = os.fork()
    if pid == 0:
        Bench(place, MortalFs(RealFs(), nth, by_signal), at_forge=True).close()
        (place / "promised").touch()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done, there = (place / "promised").exists(), (place / "forge-closed").exists()
    claimed = bench.row().closed
    assert claimed or not done, nth
    assert there or not claimed, nth
    try:
        bench.close()
    except OutcomeError as error:
        unconfirmed += 1
        assert error.code == "close_unconfirmed" and not claimed, (nth, error)
        found = bench.close()
        assert found.closed is not there, (nth, found)
        assert not there or found.reasons == ("closure_withheld:issue_already_closed",), nth
    rows = bench.rows("issue_closed")
    assert rows == (1 if bench.row().closed else 0), nth
    assert not claimed or rows == 1, nth
    assert wrong_modes(bench.store) == []
    if code == 0: break
    assert code == -signal.SIGKILL, code
print(nth - 1, unconfirmed)
"""


@pytest.mark.slow
def test_killed_at_every_step() -> None:
    """O68 O80: after the intent never a close row; closed at most once; the program goes on."""
    with fast_folder() as base:
        steps, unconfirmed = map(int, child_output(KILL, base).split())
    assert steps >= 20
    assert unconfirmed >= 5
