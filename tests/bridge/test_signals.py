"""A signal at any other moment than behind a step: one line at most, the exit code that belongs to it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.bridge import Bridge, Reply, copy_checkout

pytestmark = pytest.mark.slow


@pytest.fixture
def own(tmp_path: Path) -> Bridge:
    """A bridge in a copy of the checkout that a test may change."""
    (tmp_path / "place").mkdir()
    return Bridge(tmp_path / "place", copy_checkout(tmp_path / "copy" / "checkout"))


def put_into(bridge: Bridge, module: str, before: str, code: str) -> None:
    """Put code into a module of the room."""
    place = bridge.checkout / "eval" / "skill_effectiveness" / "bridge" / f"{module}.py"
    text = place.read_text()
    assert text.count(before) == 1
    place.write_text(text.replace(before, code + before))


KILL = "os.kill(os.getpid(), 15)"


def test_while_a_module_is_loaded(own: Bridge) -> None:
    """B39: the making of a class turns what is raised in it into another error, and the answer does not."""
    hit = f"class _Hit:\n    def __set_name__(self, *_given):\n        import os; {KILL}\n        len('')\n"
    put_into(own, "trial_requests", "PLAN: Final", f"{hit}class _Made:\n    hit = _Hit()\n\n")
    reply = own.ask(own.prepare())
    assert (reply.word, reply.exit_code) == ("cancelled", 3)
    assert list(own.root.iterdir()) == []


def test_that_somebody_swallows(own: Bridge) -> None:
    """B39: it is heard again before the change."""
    code = f"    import os\n    try:\n        {KILL}; len('')\n    except BaseException:\n        pass\n"
    put_into(own, "trial_requests", "    order = read_order(", code)
    reply = own.ask(own.prepare())
    assert (reply.word, reply.exit_code) == ("cancelled", 3)
    assert not (own.root / "trials" / "task-a").exists()


def test_in_a_finalizer(own: Bridge) -> None:
    """B39 B2: where nothing can be raised; it is heard again before the change, and there is no traceback."""
    made = f"    import os\n    class _Gone:\n        def __del__(self):\n            {KILL}; len('')\n"
    put_into(own, "trial_requests", "    order = read_order(", f"{made}    _Gone()\n")
    reply = own.ask(own.prepare())
    assert (reply.word, reply.exit_code, reply.told.count("\n")) == ("cancelled", 3, 1)
    assert not (own.root / "trials" / "task-a").exists()


@pytest.mark.parametrize("data", [b"{", b""])
def test_while_a_refusal_is_made(own: Bridge, data: bytes) -> None:
    """B39 B2: it is the answer then, and no traceback."""
    code = f"    import os\n    if 'protocol' in refusal.code.value: {KILL}\n"
    put_into(
        own,
        "answers",
        '    return dump_line(\n        {\n            "schema": RESPONSE_SCHEMA,\n'
        '            "request_id": request_id,\n            "status": refusal',
        code,
    )
    reply = own.send(data)
    assert (reply.word, reply.exit_code) == ("cancelled", 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_before_the_request_is_whole(bridge: Bridge, number: signal.Signals) -> None:
    """B39: nothing is answered and nothing told; the process ends by the signal."""
    door = bridge.start()
    fds = Path(f"/proc/{door.pid}/fd")
    # From the moment on at which standard output is set apart.
    while (fds / "1").readlink() != (fds / "2").readlink():
        time.sleep(0.005)
    door.send_signal(number)
    out, err = door.communicate(timeout=60)
    assert (door.returncode, out, err) == (-number, b"", b"")


@pytest.mark.parametrize("arguments", [(), ("--stream",)], ids=["single", "stream"])
def test_behind_the_answer(bridge: Bridge, arguments: tuple[str, ...]) -> None:
    """B39 B2: as often as it comes, the exit code is that of what was answered."""
    door = bridge.start(*arguments)
    assert door.stdin is not None
    assert door.stdout is not None
    door.stdin.write(json.dumps(bridge.prepare()).encode() + b"\n")
    door.stdin.flush()
    if not arguments:
        door.stdin.close()
    assert Reply.of(door.stdout.readline(), None).word == "ok"
    while door.poll() is None:
        door.send_signal(signal.SIGTERM)
        time.sleep(0.0005)
    if arguments:
        door.stdin.close()
    out = door.stdout.read()
    assert door.stderr is not None
    err = door.stderr.read()
    door.stdout.close()
    door.stderr.close()
    assert (door.returncode, out) == (128 + signal.SIGTERM if arguments else 0, b"")
    assert b"Traceback" not in err
