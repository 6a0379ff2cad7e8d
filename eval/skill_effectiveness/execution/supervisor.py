"""The small parent of every child: it starts one program, watches us, and leaves nothing of the tree alive.

`execution.supervision` hands this source to a bare interpreter on CONTROL and then runs it with `CONTROL
STDIN STDOUT STDERR`, four inherited descriptor numbers. So nothing that others can read about this process
names a folder of ours, and the bytes that run are those that were loaded with the package. It uses the
standard library only and copies no data: the program gets the last three descriptors as its own.

Order, on CONTROL (a stream socket): one decimal length, LF, then that many bytes, NUL between the fields:
seconds of grace, seconds of the wall limit, `1` for a subreaper, the proof, working folder, number of
arguments, the arguments, the environment as `NAME=value`. After it single letters: `t` asks the program's
process group to end (TERM) and kills the tree after the grace, `k` kills the tree now. End of file, or the
signal the kernel sends when the thread that started us dies, means that nobody is left to ask: the tree is
killed. So it is when wall limit, grace and a margin are over and the asker, which may have been stopped, says
nothing.

Reports, one line each, the proof in front: `started PID REAPER`, then `ended WAITSTATUS SURVIVORS UNKILLED
LATE`; or `unstartable STAGE ERRNO` alone. A survivor is a descendant that was still alive once the program
had ended or had to be killed; an unkilled one is alive in spite of KILL; LATE is `1` when the wall limit was
over before that. The proof is drawn for the call and never given to the program: a line without it is not
ours. Our memory, descriptors, folder and environment are closed to other processes of the user (prctl(2),
PR_SET_DUMPABLE), root's apart.

Every process of the tree becomes our own child when its parent dies (prctl(2), PR_SET_CHILD_SUBREAPER), to
whatever session or group it moved. So `waitpid` answering ECHILD proves that no descendant is left; the
process table under /proc only tells whom to signal.

Source: providers.md P10; calibration.md R27; field-failures.md F8, F9, F10.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from io import FileIO
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

# How long KILL is repeated before what is left is reported as unkilled, in seconds.
KILL_SECONDS = 5.0
# How much later than wall limit and grace the tree is killed although nobody says so, in seconds.
MARGIN_SECONDS = 2.0
# Longest wait without a look around, in seconds: poll(2) counts milliseconds in an int.
LONGEST_WAIT = 86_400.0
# Looks at the own children in one go.
STRIKES = 64
# Looks at the whole table while it is being frozen, before it is killed as far as it is known.
FREEZE_ROUNDS = 16


class ReceivedOrder(NamedTuple):
    """What to start."""

    grace_seconds: float
    wall_seconds: float
    reaper: bool
    proof: bytes
    folder: bytes
    arguments: list[bytes]
    environment: dict[bytes, bytes]


class Entry(NamedTuple):
    """One row of the kernel's process table.

    `started` is in clock ticks since boot and tells a number that was used again from the one that was seen.
    """

    pid: int
    parent: int
    started: int
    alive: bool


def prctl(option: int, value: int) -> bool:
    """Set one attribute of this process; False where the platform does not know it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    unused = ctypes.c_ulong(0)
    return bool(call(option, ctypes.c_ulong(value), unused, unused, unused) == 0)


# The order.


def read_order(control: int) -> ReceivedOrder:
    """Read the order; EOFError when the asker is gone before it is whole."""
    head = b""
    while not head.endswith(b"\n"):
        head += read_some(control, 1)
    wanted, body = int(head), bytearray()
    while len(body) < wanted:
        body += read_some(control, wanted - len(body))
    grace, wall, reaper, proof, folder, count, *rest = bytes(body).split(b"\0")
    cut = int(count)
    pairs = (item.partition(b"=") for item in rest[cut:])
    environment = {name: value for name, _, value in pairs}
    seconds = float(grace), float(wall)
    return ReceivedOrder(*seconds, reaper == b"1", proof, folder, rest[:cut], environment)


def read_some(control: int, size: int) -> bytes:
    """At least one byte, EOFError at the end."""
    data = os.read(control, size)
    if not data:
        raise EOFError
    return data


# The process table.


def read_entry(pid: int) -> Entry | None:
    """The row of a process (proc(5), `stat`), None when there is no such process any more."""
    try:
        # One unbuffered read is one snapshot by the kernel; this is its process table and nobody's file.
        with FileIO(f"/proc/{pid}/stat") as row:
            data = row.read()
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses and blanks included.
    fields = data.rpartition(b")")[2].split()
    # A leader that ended before its threads shows as a zombie although the process still runs.
    alive = fields[0] not in (b"Z", b"X") or int(fields[17]) > 1
    return Entry(pid, int(fields[1]), int(fields[19]), alive)


def children() -> set[int]:
    """Our own children, ended ones included (proc(5), `children`); none where the kernel has no list."""
    try:
        with FileIO(f"/proc/self/task/{os.getpid()}/children") as row:
            return {int(pid) for pid in row.read().split()}
    except OSError:
        return set()


def descendants() -> list[Entry]:
    """Every process below this one, newest number first: the newest are the likeliest to be gone soon."""
    me = os.getpid()
    table: dict[int, Entry] = {}
    for name in reversed(os.listdir("/proc")):  # noqa: PTH208 - names alone, the least work before the signal
        entry = read_entry(int(name)) if name.isdigit() else None
        if entry is not None:
            table[entry.pid] = entry
    below = {0: False, me: True}
    for pid in table:
        climb(pid, table, below)
    return [entry for entry in table.values() if entry.pid != me and below[entry.pid]]


def climb(pid: int, table: dict[int, Entry], below: dict[int, bool]) -> None:
    """Find out whether a row and its ancestors are below this process."""
    path = []
    while pid not in below:
        # Also ends a circle, which numbers that are used again between two reads could make.
        below[pid] = False
        path.append(pid)
        pid = table[pid].parent if pid in table else 0
    below.update(dict.fromkeys(path, below[pid]))


def send(entry: Entry, number: signal.Signals) -> None:
    """Signal exactly the process that was seen, never another one that got its number meanwhile."""
    try:
        handle = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):
        handle = -1  # an old kernel, or no descriptor left: the comparison below remains
    try:
        seen = read_entry(entry.pid)
        if seen is None or seen.started != entry.started:
            return
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(entry.pid, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or another user's: the second stays in the count of the unkilled
    finally:
        if handle >= 0:
            os.close(handle)


# Waiting and killing.


class Alarm:
    """Signals as bytes on a pipe, so that one wait covers them and the asker; `stopped` once TERM came."""

    def __init__(self) -> None:
        self.stopped = False
        self.pipe, bell = os.pipe()
        os.set_blocking(self.pipe, False)
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def drain(self) -> None:
        """Forget the signals heard so far."""
        try:
            while os.read(self.pipe, 512):
                pass
        except BlockingIOError:
            return

    def wait(self, seconds: float) -> None:
        """Return at the next signal, or after the time."""
        select.select([self.pipe], [], [], seconds)
        self.drain()


class Tree:
    """The program and everything below it, until nothing of it is left.

    The program itself stays an unreaped zombie until its process group was killed: as long as it is there,
    the kernel gives its number to no other process or group.
    """

    def __init__(self, program: int, alarm: Alarm) -> None:
        self.program = program
        self.status: int | None = None
        self._alarm = alarm

    def program_ended(self) -> bool:
        """Reap orphans that ended; True once the program itself has ended."""
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return False
            if found.si_pid == self.program:
                return True
            os.waitpid(found.si_pid, 0)

    def ask(self) -> None:
        """TERM for the program's process group; a stopped one is continued, or it would never hear it."""
        self._signal_group(signal.SIGTERM)
        self._signal_group(signal.SIGCONT)

    def kill(self) -> tuple[int, int]:
        """Freeze and kill until nothing is left.

        Returns:
            How many had survived the program, and how many are alive still.
        """
        self._signal_group(signal.SIGSTOP)
        survivors = {entry.pid for entry in self._look()}
        self._signal_group(signal.SIGKILL)
        until = time.monotonic() + KILL_SECONDS
        while True:
            survivors |= self._strike_children()
            if not self._children_left():
                return len(survivors - {self.program}), 0
            if time.monotonic() > until:
                return len(survivors - {self.program}), max(1, len(self._look()))
            for entry in self._freeze():
                survivors.add(entry.pid)
                send(entry, signal.SIGKILL)
            self._alarm.wait(0.002)

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.program, number)
        except (ProcessLookupError, PermissionError):
            return  # an empty group, or only members of another user

    def _strike_children(self) -> set[int]:
        """Kill our own children a few times over: between two looks at the table some fork and end at once.

        A child keeps its number until it is reaped here, so this cannot hit anybody else.
        """
        struck: set[int] = set()
        for _ in range(STRIKES):
            fresh = children() - struck if self._children_left() else set()
            if not fresh:
                break
            struck |= fresh
            for pid in fresh:
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    continue  # another user's: it stays in the count of the unkilled
        return struck

    def _look(self) -> list[Entry]:
        """Living descendants apart from the program; none where the process table cannot be read."""
        try:
            return [entry for entry in descendants() if entry.alive and entry.pid != self.program]
        except OSError:
            return []

    def _freeze(self) -> list[Entry]:
        """Stop whatever can be found, until a look finds nobody new: what is stopped starts nothing."""
        frozen: dict[tuple[int, int], Entry] = {}
        for _ in range(FREEZE_ROUNDS):
            fresh = [entry for entry in self._look() if (entry.pid, entry.started) not in frozen]
            for entry in fresh:
                send(entry, signal.SIGSTOP)
                frozen[entry.pid, entry.started] = entry
            # Zombies that nobody takes away would make every further look slower.
            if not fresh or not self._children_left():
                break
        return list(frozen.values())

    def _children_left(self) -> bool:
        """Reap; False when this process has no child, and so nothing below it, any more."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.program:
                self.status = status


# Starting.


def become_program(order: ReceivedOrder, streams: list[int], errors: int, supervisor: int) -> None:
    """In the forked child: turn into the program, or write `STAGE ERRNO` and end. Never returns."""
    stage = "exec"
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(127)  # it died before the kernel knew of our wish
        # Numbers of their own first, so that no stream overwrites one that is still to be placed.
        for target, stream in enumerate([os.dup(stream) for stream in streams]):
            os.dup2(stream, target)
        restore_signals()
        stage = "folder"
        os.chdir(order.folder)
        stage = "exec"
        os.execve(order.arguments[0], order.arguments, order.environment)  # noqa: S606 - a vector, never a shell
    except OSError as fault:
        os.write(errors, f"{stage} {fault.errno}".encode())
    except BaseException:  # noqa: BLE001 - a forked copy of the supervisor ends here, whatever happened
        os.write(errors, f"{stage} 0".encode())
    finally:
        os._exit(127)


def restore_signals() -> None:
    """Default dispositions and an empty mask, whatever this process inherited."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # KILL, STOP and what the C library keeps for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def start(order: ReceivedOrder, streams: list[int]) -> tuple[int, bytes]:
    """Fork and become the program; its pid (0: there is none) and what kept it from starting, if anything."""
    supervisor = os.getpid()
    try:
        errors, errors_in = os.pipe()
        pid = os.fork()
    except OSError as lack:
        return 0, f"process {lack.errno}".encode()
    if pid == 0:
        become_program(order, streams, errors_in, supervisor)
    os.close(errors_in)
    for stream in streams:
        # Left open here, they would keep the reader's end of file away.
        os.close(stream)
    fault = b""
    while part := os.read(errors, 64):
        fault += part
    os.close(errors)
    return pid, fault


# Serving one order.


class Reports:
    """Lines to the asker, the proof in front; one that is gone is no reason to leave the tree alone."""

    def __init__(self, control: int, proof: bytes) -> None:
        self._control = control
        self._proof = proof

    def send(self, line: str) -> bool:
        """Send one line; whether it went out."""
        data = self._proof + b" " + line.encode("ascii") + b"\n"
        try:
            return os.write(self._control, data) == len(data)
        except OSError:
            return False


class Clock:
    """What is left of the time, in seconds of a clock that goes on while the asker is stopped."""

    def __init__(self, order: ReceivedOrder) -> None:
        self._grace_seconds = order.grace_seconds
        self._wall_at = time.monotonic() + order.wall_seconds
        self._kill_at = self._wall_at + order.grace_seconds + MARGIN_SECONDS
        self.asked = False

    def left(self) -> float:
        """Until the tree is killed without a further word."""
        return self._kill_at - time.monotonic()

    def late(self) -> bool:
        """Whether the wall limit is over."""
        return time.monotonic() >= self._wall_at

    def begin_grace(self) -> None:
        """The program was asked to end."""
        self.asked = True
        self._kill_at = min(self._kill_at, time.monotonic() + self._grace_seconds)


def watch(tree: Tree, control: int, alarm: Alarm, clock: Clock) -> None:
    """Return when the tree has to be killed.

    That is when the program ended, when we are told to, when nobody is left to tell us, and when the time in
    which somebody had to is over.
    """
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(alarm.pipe, select.POLLIN)
    while not tree.program_ended() and not alarm.stopped:
        left = clock.left()
        if left <= 0:
            return
        ready = [number for number, _ in poll.poll(min(left, LONGEST_WAIT) * 1000 + 1)]
        alarm.drain()
        if control in ready:
            if receive(control) != b"t":
                return
            if not clock.asked:
                tree.ask()
                clock.begin_grace()


def receive(control: int) -> bytes:
    """One letter of an order; empty when the asker is gone."""
    try:
        return os.read(control, 1)
    except OSError:
        return b""


def supervise(control: int, streams: list[int]) -> bool:
    """One order from start to final report; whether that went out."""
    order = read_order(control)
    clock, reports = Clock(order), Reports(control, order.proof)
    reaper = order.reaper and prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        alarm = Alarm()
    except OSError as lack:
        return reports.send(f"unstartable process {lack.errno}")
    pid, fault = start(order, streams)
    if fault:
        if pid:
            os.waitpid(pid, 0)
        return reports.send(f"unstartable {fault.decode('ascii')}")
    tree, late = Tree(pid, alarm), False
    try:
        reports.send(f"started {pid} {int(reaper)}")
        watch(tree, control, alarm, clock)
        late = clock.late()
    finally:
        survivors, unkilled = tree.kill()
    status = -1 if tree.status is None else tree.status
    return reports.send(f"ended {status} {survivors} {unkilled} {int(late)}")


def main(numbers: list[str]) -> int:
    """Take over the inherited descriptors and serve the one order they bring.

    Returns:
        The exit code; 0 means that the last word was spoken, and by us.
    """
    prctl(PR_SET_DUMPABLE, 0)
    control, *streams = (int(number) for number in numbers)
    for number in (control, *streams):
        os.set_inheritable(number, False)  # noqa: FBT003 - the standard library's own signature
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return 0 if supervise(control, streams) else 1
    except EOFError:
        return 0  # the asker died before it had asked for anything


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:5]))
