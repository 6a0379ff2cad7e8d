"""A signal at the moments that no step marks: one line at most, its exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.bridge import ISOLATED, copy_checkout
from tests.support.controller import UNREAD, Reply, probe_request, sample_request
from tests.support.fake_program import write_codex
from tests.support.provider_calls import DONE, THREAD, TURN

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow

KILL = "os.kill(os.getpid(), 15)"
ROOM = "eval/skill_effectiveness"


@dataclass(frozen=True)
class Door:
    """A door in a copy of the checkout, which a test may change."""

    folder: Path

    @property
    def checkout(self) -> Path:
        """The copy."""
        return self.folder / "copy" / "checkout"

    @property
    def root(self) -> Path:
        """The artifact root."""
        return self.folder / "root"

    def put(self, module: str, before: str, code: str) -> None:
        """Put code into a module of the package, in front of a line of it."""
        place = self.checkout / ROOM / f"{module}.py"
        text = place.read_text()
        assert text.count(before) == 1
        place.write_text(text.replace(before, code + before))

    def start(
        self, *, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """A door that waits for its request."""
        return subprocess.Popen(  # noqa: S603 - our own door
            [sys.executable, *ISOLATED, str(self.checkout / ROOM / "calibration" / "__main__.py")],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"], "CODEX_API_KEY": "k"},
        )

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """One request, and its answer."""
        door = self.start()
        out, err = door.communicate(json.dumps(request).encode(), timeout=60)
        told = err.decode()
        assert "Traceback" not in told
        assert "ignored" not in told
        return Reply.of(out, door.returncode, told)

    def sample(self) -> dict[str, Any]:
        """A request for the one sample."""
        program = write_codex(
            self.folder, "open(folder + '/called', 'w').close()", thread=THREAD, turn=TURN, done=DONE
        )
        manifest = self.ask(probe_request()).result["runtime_manifest_hash"]
        return sample_request(self.root, executable=str(program), runtime_manifest_hash=manifest)

    @property
    def called(self) -> bool:
        """Whether a model was asked."""
        return (self.folder / "called").exists()


@pytest.fixture
def door(tmp_path: Path) -> Door:
    copy_checkout(tmp_path / "copy" / "checkout")
    return Door(tmp_path)


HIT = f"class _Hit:\n    def __set_name__(self, *_given):\n        import os; {KILL}\n        len('')\n"


def test_while_the_room_is_loaded(door: Door) -> None:
    """R39: nothing is answered and nothing told; the process ends by the signal."""
    door.put("calibration/wire", "REQUEST_LIMIT: Final", f"{HIT}class _Made:\n    hit = _Hit()\n\n")
    process = door.start()
    out, err = process.communicate(json.dumps(probe_request()).encode(), timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGTERM, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_before_the_request_is_whole(door: Door, number: signal.Signals) -> None:
    """R39: a line once the door hears signals, else none; never a traceback."""
    process = door.start()
    fds = Path(f"/proc/{process.pid}/fd")
    while (fds / "1").readlink() != (fds / "2").readlink():
        time.sleep(0.002)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    if process.returncode == -number:
        assert (out, err) == (b"", b"")
    else:
        assert Reply.of(out, process.returncode).word == "internal_error"


def test_while_the_request_is_waited_for(door: Door) -> None:
    """R6 R39: nothing began."""
    process = door.start()
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    reply = Reply.of(out, process.returncode, err.decode())
    assert (reply.word, reply.exit_code, reply.document["request_id"]) == ("internal_error", 4, UNREAD)
    assert reply.told.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "before"),
    [
        # When the door hears signals and nothing was begun.
        ("calibration/door", "        around = replace(Surroundings.real()"),
        # While a refusal is put into words.
        ("calibration/door", "    return Answer(refusal_line(heading, code), code.status"),
        # Between the answer and its sending.
        ("calibration/door", "        before = cutoff.times\n"),
    ],
    ids=["first", "refusing", "sending"],
)
def test_at_the_seams_of_the_door(door: Door, module: str, before: str) -> None:
    """R39 R6: there is a line, and its exit code."""
    indent = before[: len(before) - len(before.lstrip())]
    door.put(module, before, f"{indent}{KILL}\n{indent}len('')\n")
    reply = door.ask({"request_id": "r-1"})
    assert reply.exit_code in {2, 4}
    assert reply.word in {"invalid_request", "internal_error"}
    assert reply.told.count("\n") == 1


def swallowed() -> str:
    return f"    try:\n        {KILL}; len('')\n    except BaseException:\n        pass\n"


def finalizer() -> str:
    return f"    class _Gone:\n        def __del__(self):\n            {KILL}; len('')\n    _Gone()\n"


@pytest.mark.parametrize("code", [swallowed(), finalizer()], ids=["swallowed", "finalizer"])
def test_that_nobody_raises_is_heard_again_before_the_call(door: Door, code: str) -> None:
    """R9: nothing is spent, and the same request may be repeated."""
    door.put(
        "calibration/sample", "    listing = receipts.read_listing(root)\n    judge", f"    import os\n{code}"
    )
    request = door.sample()
    reply = door.ask(request)
    assert (reply.word, reply.exit_code) == ("internal_error", 4)
    assert not door.called
    # The reservation alone stands, which the same id takes up again.
    assert [path.name for path in (door.root / "samples").iterdir()] == []


def test_behind_the_answer(door: Door) -> None:
    """R39: as often as it comes, the exit code is that of what was answered."""
    process = door.start()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(json.dumps(probe_request()).encode())
    process.stdin.close()
    line = process.stdout.readline()
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.0005)
    assert Reply.of(line, process.returncode).word == "ok"
    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    process.stdout.close()
    process.stderr.close()


def test_to_a_door_whose_reader_stopped_reading(door: Door) -> None:
    """R39 F54: the answer that nobody takes keeps no process alive that was told to end."""
    door.put(
        "calibration/door",
        "        before = cutoff.times\n",
        "        answer = replace(answer, line=b'x' * 200_000)\n",
    )
    process = door.start()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(json.dumps(probe_request()).encode())
    process.stdin.close()
    process.stdout.read(1)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 4
    assert process.stderr.read() == (
        b"internal_error: The answer was not read, and a signal ended the waiting.\n"
    )
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("request_line", [b"{", json.dumps(probe_request()).encode()], ids=["refused", "ok"])
def test_without_a_stderr_the_answer_is_the_same(door: Door, request_line: bytes) -> None:
    """R39: people are not told, machines are."""
    file = door.checkout / ROOM / "calibration" / "__main__.py"
    done = subprocess.run(  # noqa: S603 - our own door
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, *ISOLATED, str(file)],
        input=request_line,
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert Reply.of(done.stdout, done.returncode).word == ("invalid_json" if request_line == b"{" else "ok")


@pytest.mark.parametrize("damage", ["absent", "no code", "raises"])
def test_first_code_that_is_damaged_gets_a_line_too(door: Door, damage: str) -> None:
    """R39: one line and no traceback."""
    place = door.checkout / ROOM / "launch" / "start.py"
    if damage == "absent":
        place.unlink()
    else:
        place.write_text("x = (" if damage == "no code" else "raise KeyError('secret-4711')\n")
    reply = door.ask(probe_request())
    assert (reply.word, reply.exit_code) == ("internal_error", 4)
    assert reply.told == "internal_error: The first code of this door cannot be loaded; restore it.\n"
