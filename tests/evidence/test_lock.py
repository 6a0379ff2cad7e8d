"""A kernel lock that is never unlinked, never soft, never stolen."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import filelock
import pytest

from skill_effectiveness.evidence import lock
from skill_effectiveness.evidence.faults import LockCode, LockError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.lock import Holder, Lock, LockLevel, LockOrderError, held_locks
from tests.support.private import child_output, out_root, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

    from _typeshed import TraceFunction

    from skill_effectiveness.evidence.root import PrivateRoot

NAME = ".sample.lock"

HOLD_AND_WAIT = """
import pathlib, sys, time
from skill_effectiveness.evidence.lock import Lock
from tests.support.private import out_root
with out_root(pathlib.Path(sys.argv[1])) as root, Lock(root, ".sample.lock").hold(30, "count the stars"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path.resolve()) as opened:
        yield opened
    assert held_locks() == ()


@pytest.fixture
def holder(root: PrivateRoot) -> Iterator[subprocess.Popen[str]]:
    """A living process that holds the lock."""
    with subprocess.Popen(  # noqa: S603 - this interpreter with code of ours
        [sys.executable, "-c", HOLD_AND_WAIT, str(root.path.parent)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refusal(root: PrivateRoot, wait: float = 0) -> LockError:
    with pytest.raises(LockError) as caught, Lock(root, NAME).hold(wait, "test"):
        pass
    return caught.value


def is_free(root: PrivateRoot) -> bool:
    """Whether the kernel lets somebody else lock the file now."""
    with (root.path / NAME).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class TestHolding:
    def test_excludes_everybody_else_and_ends(self, root: PrivateRoot) -> None:
        with Lock(root, NAME).hold(0, "test") as held:
            assert not is_free(root)
            assert held_locks() == (held,)
            assert (held.where, held.level) == (NAME, LockLevel.ROOT)
        assert is_free(root)

    def test_ends_after_an_error_in_the_block(self, root: PrivateRoot) -> None:
        with pytest.raises(RuntimeError), Lock(root, NAME).hold(0, "test"):
            raise RuntimeError
        assert is_free(root)

    def test_contends_with_filelock(self, root: PrivateRoot) -> None:
        """E25: it is the same kernel lock that `filelock` takes, so either one keeps the other out."""
        with Lock(root, NAME).hold(0, "test"), pytest.raises(filelock.Timeout):
            filelock.UnixFileLock(str(root.path / NAME)).acquire(timeout=0)
        with filelock.UnixFileLock(str(root.path / NAME), mode=0o600):
            assert refusal(root).code is LockCode.LOCK_BUSY

    def test_the_file_is_private_and_never_unlinked(self, tmp_path: Path) -> None:
        """E24 E25: one inode over the whole life, mode 0600 at every step, and no step unlinks it."""
        wrong: list[str] = []
        fs = RecordingFs(RealFs(), after=lambda _step: wrong.extend(wrong_modes(tmp_path / "root")))
        with out_root(tmp_path.resolve(), fs) as root:
            inodes = set()
            for _ in range(3):
                with Lock(root, NAME).hold(0, "test"):
                    inodes.add((root.path / NAME).stat().st_ino)
            inodes.add((root.path / NAME).stat().st_ino)
            assert len(inodes) == 1
            touched = {(step.operation, step.path.rpartition("/")[2]) for step in fs.steps}
            touched |= {(step.operation, step.target.rpartition("/")[2]) for step in fs.steps if step.target}
            assert {operation for operation, name in touched if name == NAME} == {"link"}
            assert fs.open_paths == [str(root.path)]
        assert wrong == []
        assert temporaries(tmp_path) == []

    def test_the_umask_changes_nothing(self, root: PrivateRoot) -> None:
        """E16: the lock file and the record beside it are 0600 under any umask."""
        for mask in (0o000, 0o777):
            former = os.umask(mask)
            try:
                with Lock(root, f"{mask}.lock").hold(0, "test"):
                    assert wrong_modes(root.path) == []
            finally:
                os.umask(former)

    def test_is_released_in_every_thread_of_its_own(self, root: PrivateRoot) -> None:
        seen: list[object] = []
        with Lock(root, NAME).hold(0, "test"):
            thread = threading.Thread(target=lambda: seen.extend([held_locks(), refusal(root).code]))
            thread.start()
            thread.join()
        assert seen == [(), LockCode.LOCK_BUSY]


class TestWaiting:
    def test_ends_at_the_limit_and_names_the_holder(
        self, root: PrivateRoot, holder: subprocess.Popen[str]
    ) -> None:
        """E27: a held lock times out; the sentence names the holder's pid and action."""
        begun = time.monotonic()
        error = refusal(root, 0.2)
        assert 0.2 <= time.monotonic() - begun < 5
        assert error.code is LockCode.LOCK_BUSY
        assert f"process {holder.pid} on host" in str(error)
        assert "count the stars" in str(error)

    def test_a_dead_holder_is_followed_at_once(
        self, root: PrivateRoot, holder: subprocess.Popen[str]
    ) -> None:
        """E27: the kernel releases the lock of a killed holder; its record does not matter."""
        holder.kill()
        holder.wait()
        assert (root.path / f"{NAME}.holder").exists()
        with Lock(root, NAME).hold(0, "test"):
            recorded = Lock(root, NAME).holder()
            assert recorded is not None
            assert recorded.pid == os.getpid()

    def test_is_rewarded_when_the_holder_ends(self, root: PrivateRoot) -> None:
        order: list[str] = []

        def wait() -> None:
            with Lock(root, NAME).hold(30, "second"):
                order.append("second")

        thread = threading.Thread(target=wait)
        with Lock(root, NAME).hold(0, "first"):
            thread.start()
            time.sleep(0.05)
            order.append("first")
        thread.join()
        assert order == ["first", "second"]

    @pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b'{"pid":"x"}', b"\xff", b"x" * 5000])
    def test_a_record_that_cannot_be_read_decides_nothing(self, root: PrivateRoot, record: bytes) -> None:
        with Lock(root, NAME).hold(0, "test"):
            (root.path / f"{NAME}.holder").write_bytes(record)
            assert Lock(root, NAME).holder() is None
            sentences: list[str] = []
            thread = threading.Thread(target=lambda: sentences.append(str(refusal(root))))
            thread.start()
            thread.join()
        assert "has not said who" in sentences[0]


class TestHolder:
    def test_says_what_each_holder_is_doing(self, root: PrivateRoot) -> None:
        """The same lock held again, for the same and for something else, by what was said before."""
        lock = Lock(root, NAME)
        for action in ("count", "count", 'say "%d" and 100 %', ""):
            with lock.hold(0, action):
                found = lock.holder()
                assert found is not None
                assert found.action == action

    def test_is_recorded_beside_the_lock(self, root: PrivateRoot) -> None:
        with Lock(root, NAME).hold(0, "take sample s-1"):
            data = root.read(f"{NAME}.holder")
            recorded = json.loads(data)
            assert data == json.dumps(recorded, sort_keys=True, separators=(",", ":")).encode() + b"\n"
            expected = {
                "pid": os.getpid(),
                "process_start": RealFs().process_start(os.getpid()),
                "boot_id": "boot",
                "host": "host",
                "action": "take sample s-1",
                "time": "2026-03-04T05:06:07.000+00:00",
            }
            assert recorded == expected
            assert Lock(root, NAME).holder() == Holder(
                os.getpid(), recorded["process_start"], "boot", "host", "take sample s-1", recorded["time"]
            )
        assert Lock(root, NAME).holder() is None
        assert root.names() == (NAME,)


class TestChildren:
    def test_a_surviving_grandchild_holds_no_lock(self, root: PrivateRoot) -> None:
        """E28: a grandchild that outlives the holder does not keep the lock."""
        code = (
            "import pathlib, subprocess, sys\n"
            "from skill_effectiveness.evidence.lock import Lock\n"
            "from tests.support.private import out_root\n"
            "with out_root(pathlib.Path(sys.argv[1])) as root, Lock(root, '.sample.lock').hold(0, 'x'):\n"
            "    shell = 'sleep 30 >/dev/null 2>&1 & echo $!'\n"
            "    run = {'stdout': subprocess.PIPE, 'close_fds': False, 'text': True}\n"
            "    child = subprocess.run(['sh', '-c', shell], **run)\n"
            "    print(child.stdout)\n"
        )
        grandchild = int(child_output(code, root.path.parent))
        try:
            os.kill(grandchild, 0)
            with Lock(root, NAME).hold(0, "test"):
                pass
        finally:
            os.kill(grandchild, signal.SIGKILL)

    def test_a_forked_worker_neither_keeps_nor_releases_it(self, root: PrivateRoot) -> None:
        """E28: a worker forked while the lock is held lets go of its copy without unlocking the parent's."""
        code = (
            "import os, pathlib, sys, time\n"
            "from skill_effectiveness.evidence.lock import Lock, held_locks\n"
            "from skill_effectiveness.evidence.faults import LockError\n"
            "from tests.support.private import out_root\n"
            "root = out_root(pathlib.Path(sys.argv[1]))\n"
            "def busy():\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        try:\n"
            "            with Lock(root, '.sample.lock').hold(0, 'x'): os._exit(1)\n"
            "        except LockError: os._exit(2)\n"
            "    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2\n"
            "with Lock(root, '.sample.lock').hold(0, 'x'):\n"
            "    worker = os.fork()\n"
            "    if worker == 0:\n"
            "        os.close(1)\n"
            "        if held_locks(): os._exit(1)\n"
            "        time.sleep(30)\n"
            "    print(busy())\n"
            "print(busy(), os.waitpid(worker, os.WNOHANG) == (0, 0))\n"
            "os.kill(worker, 9)\n"
            "worker = None\n"
            "with Lock(root, '.sample.lock').hold(0, 'x') as held:\n"
            "    pid = os.fork()\n"
            "    if pid: os.waitpid(pid, 0); print(busy())\n"
            "    else: os.closerange(0, 3)\n"
        )
        assert child_output(code, root.path.parent).split() == ["True", "False", "True", "True"]


class TestUnsafeLockFiles:
    def test_are_refused_and_left_alone(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E25: a link, a folder, a wrong mode, a second hard link or a FIFO in its place is `lock_unsafe`."""
        outside = tmp_path / "outside"
        outside.write_bytes(b"")
        lock = root.path / NAME

        def linked() -> None:
            outside.chmod(0o600)
            os.link(outside, lock)

        def open_to_others() -> None:
            lock.write_bytes(b"")
            lock.chmod(0o644)

        cases: dict[str, Callable[[], object]] = {
            "link": lambda: lock.symlink_to(outside),
            "folder": lock.mkdir,
            "mode": open_to_others,
            "hard link": linked,
            "fifo": lambda: os.mkfifo(lock, 0o600),
        }
        for make in cases.values():
            make()
            before = lock.lstat()
            assert refusal(root).code is LockCode.LOCK_UNSAFE
            after = lock.lstat()
            assert (before.st_ino, before.st_mode, before.st_nlink) == (
                after.st_ino,
                after.st_mode,
                after.st_nlink,
            )
            if lock.is_dir() and not lock.is_symlink():
                lock.rmdir()
            else:
                lock.unlink()
        assert root.names() == ()

    def test_of_another_owner(self, root: PrivateRoot, tmp_path: Path) -> None:
        root.publish(NAME, b"")

        def foreign(status: os.stat_result) -> os.stat_result:
            return os.stat_result((*status[:4], root.folder.fs.user() + 1, *status[5:]))

        fs = FaultFs(RealFs(), Injection("fstat", about=lambda path: path.endswith(NAME), change=foreign))
        with out_root(tmp_path.resolve(), fs) as watched:
            assert refusal(watched).code is LockCode.LOCK_UNSAFE
            assert fs.open_paths == [str(watched.path)]

    def test_exchanged_while_being_locked(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E25: two processes that lock two files of one name would both hold it, so an exchanged file is
        refused.
        """
        root.publish(NAME, b"")

        def exchange() -> None:
            (root.path / NAME).unlink()
            root.publish(NAME, b"")

        for before in (exchange, (root.path / NAME).unlink):
            # The second look at the name is the one after locking.
            watching = Injection("lstat", nth=2, about=lambda path: path.endswith(NAME), before=before)
            with out_root(tmp_path.resolve(), FaultFs(RealFs(), watching)) as watched:
                assert refusal(watched).code is LockCode.LOCK_UNSAFE
            assert watching.hits == 1

    def test_a_record_in_whose_place_is_a_link(self, root: PrivateRoot, tmp_path: Path) -> None:
        (tmp_path / "outside").write_bytes(b"theirs")
        (root.path / f"{NAME}.holder").symlink_to(tmp_path / "outside")
        assert refusal(root).code is LockCode.LOCK_UNSAFE
        assert (tmp_path / "outside").read_bytes() == b"theirs"
        assert is_free(root)

    def test_what_a_crash_left_in_the_middle_of_making_it(self, root: PrivateRoot) -> None:
        root.publish(NAME, b"")
        os.link(root.path / NAME, root.path / f".{NAME}.0123456789abcdef.tmp")
        with Lock(root, NAME).hold(0, "test"):
            pass

    def test_our_temporary_swept_by_the_first_holder(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E27: of two that make the lock file at once, the slower one waits its turn; nothing is unsafe."""

        def first_holder() -> None:
            with Lock(root, NAME).hold(0, "first"):
                assert len(root.sweep()) == 1

        slower = Injection("link", before=first_holder)
        with (
            out_root(tmp_path.resolve(), FaultFs(RealFs(), slower)) as late,
            Lock(late, NAME).hold(0, "second"),
        ):
            assert slower.hits == 1
            assert temporaries(root.path) == []


class TestFailures:
    @pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
    def test_a_file_system_without_locks(
        self, root: PrivateRoot, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        """E25 E26: `lock_unsupported`, and no soft lock takes its place."""
        self._flock_fails(monkeypatch, number)
        assert refusal(root).code is LockCode.LOCK_UNSUPPORTED
        assert root.names() == (NAME,)
        assert (root.path / NAME).read_bytes() == b""

    @pytest.mark.parametrize("number", [errno.ENOLCK, errno.EMFILE, errno.EIO])
    def test_a_lock_that_fails_for_a_passing_reason(
        self, root: PrivateRoot, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        self._flock_fails(monkeypatch, number)
        assert refusal(root).code is LockCode.LOCK_UNAVAILABLE
        monkeypatch.undo()
        with Lock(root, NAME).hold(0, "test"):
            pass

    @staticmethod
    def _flock_fails(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        def fail(_fd: int, _operation: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.ENOSPC, errno.EROFS])
    def test_every_step_that_fails(self, tmp_path: Path, number: int) -> None:
        """E25: whatever step fails, the code is `lock_unavailable`, nothing stays locked or open, and a
        repeat succeeds.
        """
        recording = RecordingFs(RealFs())
        (tmp_path / "counted").mkdir()
        with out_root(tmp_path.resolve() / "counted", recording) as root:
            recording.steps.clear()
            with Lock(root, NAME).hold(0, "test"):
                taken = len(recording.steps)
        assert taken > 6
        for nth in range(1, taken + 1):
            folder = tmp_path.resolve() / f"{nth}"
            folder.mkdir()
            out_root(folder).close()
            fs = FaultFs(RealFs(), Injection("*", number, nth=nth))
            with out_root(folder, fs) as root:
                assert refusal(root).code is LockCode.LOCK_UNAVAILABLE
                assert fs.open_paths == [str(root.path)]
                assert temporaries(folder) == []
                with Lock(root, NAME).hold(0, "test"):
                    pass

    def test_a_record_that_cannot_be_taken_away_does_not_matter(
        self, root: PrivateRoot, tmp_path: Path
    ) -> None:
        fs = FaultFs(RealFs(), Injection("unlink", errno.EIO, about=lambda path: path.endswith(".holder")))
        with out_root(tmp_path.resolve(), fs) as watched, Lock(watched, NAME).hold(0, "test"):
            pass
        assert root.names() == (NAME, f"{NAME}.holder")
        assert is_free(root)


class HandlerError(Exception):
    """What a signal handler raises."""


class TestSignals:
    def test_a_handler_that_raises_anywhere_leaves_no_lock(self, root: PrivateRoot) -> None:
        """E25 E29: between any two steps of taking and letting go; the next hold needs no new process."""
        root.publish(NAME, b"")
        cut = 0
        while self.cut_short(root, cut + 1):
            cut += 1
            assert held_locks() == ()
            assert is_free(root)
            with Lock(root, NAME).hold(0, "again"):
                pass
        assert cut > 100

    @staticmethod
    def cut_short(root: PrivateRoot, nth: int) -> bool:
        """Hold the lock, cut short before the nth instruction of our own code; False when there is none."""
        steps = 0

        def tracer(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
            nonlocal steps
            if frame.f_code.co_filename != lock.__file__:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                steps += 1
                if steps == nth:
                    raise HandlerError
            return tracer

        former = sys.gettrace()
        try:
            with suppress(HandlerError):
                holding = Lock(root, NAME).hold(0, "cut short")
                sys.settrace(tracer)
                with holding:
                    pass
        finally:
            sys.settrace(former)
        return steps >= nth

    def test_an_interrupted_wait_is_no_hold(self, root: PrivateRoot, holder: subprocess.Popen[str]) -> None:
        def raising(_number: int, _frame: FrameType | None) -> None:
            raise HandlerError

        former = signal.signal(signal.SIGALRM, raising)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(HandlerError), Lock(root, NAME).hold(30, "test"):
                pass
        finally:
            signal.signal(signal.SIGALRM, former)
        found = Lock(root, NAME).holder()
        assert found is not None
        assert found.pid == holder.pid
        assert held_locks() == ()


class TestOrder:
    def test_is_root_then_trial_then_journal(self, root: PrivateRoot) -> None:
        with (
            Lock(root, "a", LockLevel.ROOT).hold(0),
            Lock(root, "b", LockLevel.TRIAL).hold(0),
            Lock(root, "c", LockLevel.JOURNAL).hold(0),
        ):
            assert [held.where for held in held_locks()] == ["a", "b", "c"]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (LockLevel.TRIAL, LockLevel.ROOT),
            (LockLevel.JOURNAL, LockLevel.TRIAL),
            (LockLevel.JOURNAL, LockLevel.ROOT),
            (LockLevel.ROOT, LockLevel.ROOT),
        ],
    )
    def test_the_other_way_round_is_a_defect(
        self, root: PrivateRoot, first: LockLevel, second: LockLevel
    ) -> None:
        """E29: opposite lock order fails an assertion, before anything is waited for."""
        with Lock(root, "a", first).hold(0), pytest.raises(LockOrderError), Lock(root, "b", second).hold(30):
            pass
        assert root.names() == ("a",)

    def test_the_same_lock_twice_is_a_defect(self, root: PrivateRoot) -> None:
        """E29: a thread that waits for itself is told so."""
        with Lock(root, NAME).hold(0), pytest.raises(LockOrderError), Lock(root, NAME).hold(30):
            pass

    def test_a_root_inside_a_root_comes_second(self, root: PrivateRoot) -> None:
        with root.child("attempts", "r01", create=True) as inner:
            with Lock(root, NAME).hold(0), Lock(inner, NAME).hold(0):
                assert [held.where for held in held_locks()] == [NAME, f"attempts/r01/{NAME}"]
            with Lock(inner, NAME).hold(0), pytest.raises(LockOrderError), Lock(root, NAME).hold(0):
                pass

    def test_is_kept_for_each_thread_alone(self, root: PrivateRoot) -> None:
        seen: list[str] = []

        def other() -> None:
            with Lock(root, "a", LockLevel.ROOT).hold(0):
                seen.append("held")

        with Lock(root, "b", LockLevel.JOURNAL).hold(0):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert seen == ["held"]


MANY = """
import mmap, os, pathlib, random, signal, sys, time
from skill_effectiveness.evidence.lock import Lock
from tests.support.private import out_root

WORKERS, EACH = 16, 50
# Shared: who is inside (number + 1), violations, for each worker whether it was killed, acquisitions.
shared = mmap.mmap(-1, 4096)
INSIDE, VIOLATIONS, ENOUGH, KILLED, DONE = 0, 4, 8, 16, 2048

def number(at): return int.from_bytes(shared[at:at + 4], "little")
def put(at, value): shared[at:at + 4] = value.to_bytes(4, "little")

def work(worker, root):
    lock = Lock(root, ".sample.lock")
    while number(DONE + 4 * (worker % WORKERS)) < EACH or not shared[ENOUGH]:
        with lock.hold(60, f"worker {worker}"):
            before = number(INSIDE)
            if before and not shared[KILLED + before - 1]:
                put(VIOLATIONS, number(VIOLATIONS) + 1)
            put(INSIDE, worker + 1)
            if random.random() < 0.1:
                time.sleep(0.001)
            at = DONE + 4 * (worker % WORKERS)
            put(at, number(at) + 1)
            put(INSIDE, 0)

def start(worker):
    pid = os.fork()
    if pid == 0:
        try:
            random.seed(worker)
            with out_root(pathlib.Path(sys.argv[1])) as root:
                work(worker, root)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

with out_root(pathlib.Path(sys.argv[1])) as root:
    with Lock(root, ".sample.lock").hold(0, "make it"):
        inode = (root.path / ".sample.lock").stat().st_ino
running = {start(worker): worker for worker in range(WORKERS)}
random.seed(7)
killed = failed = 0
next_worker = WORKERS
while running:
    inside = number(INSIDE)
    victims = [pid for pid, worker in running.items() if worker + 1 == inside]
    if victims and killed < 20 and random.random() < 0.5:
        shared[KILLED + running[victims[0]]] = 1
        os.kill(victims[0], signal.SIGKILL)
        killed += 1
        shared[ENOUGH] = killed == 20
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid:
        worker = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            fresh = next_worker + (worker - next_worker) % WORKERS
            next_worker = fresh + 1
            running[start(fresh)] = fresh
        elif code:
            failed += 1
    time.sleep(0.002)
with out_root(pathlib.Path(sys.argv[1])) as root:
    same = (root.path / ".sample.lock").stat().st_ino == inode
    root.sweep()
    names = root.names()
done = [number(DONE + 4 * worker) for worker in range(WORKERS)]
print(number(VIOLATIONS), failed, killed, same, min(done) >= EACH, names)
"""


def test_sixteen_processes_with_holders_killed_at_random(root: PrivateRoot) -> None:
    """E25 E27: never two holders, never a new lock file, and no waiter is stuck behind a killed one."""
    printed = child_output(MANY, root.path.parent)
    assert printed in {
        "0 0 20 True True ('.sample.lock',)",
        "0 0 20 True True ('.sample.lock', '.sample.lock.holder')",
    }
