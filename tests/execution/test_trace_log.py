"""Reading a log of strace: lines as that program writes them, and every way in which a log is not whole."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.execution.trace_log import LINE_BYTES, MOST_REFUSED, Access, Trace, TraceReader


def spelt(path: bytes) -> bytes:
    """A path as `--strings-in-hex=all` spells it."""
    return b"".join(b"\\x%02x" % byte for byte in path)


def line(text: str, *paths: bytes, pid: int = 7) -> bytes:
    """A line; each `%` in it is a path."""
    parts = text.encode().split(b"%")
    filled = b"".join(part + spelt(path) for part, path in zip(parts, [*paths, b""], strict=True))
    return b"%d %s" % (pid, filled)


START = line('execve("%", [...], 0x7ffd /* 3 vars */) = 0', b"/bin/agent")
END = line("+++ exited with 0 +++")


def read(*lines: bytes, prelude: int = 0, folder: bytes | None = b"/app", most: int = 100) -> Trace:
    reader = TraceReader(prelude=prelude, folder=folder, most=most)
    for one in lines:
        reader.take(one)
    return reader.finish()


def seen(*lines: bytes, folder: bytes | None = b"/app") -> list[Access]:
    """The accesses of a program that does these things, without its start; the record is whole."""
    trace = read(START, *lines, END, folder=folder)
    assert trace.faults == ()
    return list(trace.accesses[1:])


class TestAccesses:
    @pytest.mark.parametrize(
        ("text", "paths", "expected"),
        [
            ('openat(AT_FDCWD<%>, "%", O_RDONLY|O_CLOEXEC) = 3<%>', (b"/app", b"a", b"/app/a"),
             [("open", "read", b"/app/a")]),
            ('open("%", O_RDONLY) = 3<%>', (b"a", b"/app/real"), [("open", "read", b"/app/real")]),
            ('openat(AT_FDCWD<%>, "%", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<%>', (b"/app", b"a", b"/app/a"),
             [("open", "write", b"/app/a")]),
            ('openat(5<%>, "%", O_RDWR) = 3<%>', (b"/app/d", b"a", b"/app/d/a"),
             [("open", "write", b"/app/d/a"), ("open", "read", b"/app/d/a")]),
            ('openat2(5<%>, "%", {flags=O_WRONLY, resolve=0}, 24) = 3<%>', (b"/d", b"a", b"/d/a"),
             [("open", "write", b"/d/a")]),
            ('creat("%", 0644) = 3<%>(deleted)', (b"a", b"/app/a"), [("open", "write", b"/app/a")]),
            ('openat(AT_FDCWD<%>, "%", O_RDONLY|O_CREAT, 0600) = 3<%>', (b"/app", b"a", b"/app/a"),
             [("open", "write", b"/app/a"), ("open", "read", b"/app/a")]),
            ('openat(AT_FDCWD<%>, "%", O_RDONLY|O_PATH) = 3<%>', (b"/app", b"/", b"/"), []),
            ('openat(AT_FDCWD<%>, "%", O_RDONLY) = 3<pipe:[77]>', (b"/app", b"/proc/self/fd/0"),
             [("open", "read", b"/proc/self/fd/0")]),
            ('openat(AT_FDCWD<%>, "%", O_RDWR) = 3<%>(deleted)', (b"/app", b"/proc/self/fd/9", b"/memfd:x"),
             []),
            ('rename("%", "%")                       = 0', (b"a", b"/x/b"),
             [("write", None, b"/app/a"), ("write", None, b"/x/b")]),
            ('renameat2(AT_FDCWD<%>, "%", 4<%>, "%", RENAME_NOREPLACE) = 0', (b"/app", b"a", b"/d", b"b"),
             [("write", None, b"/app/a"), ("write", None, b"/d/b")]),
            ('unlinkat(4<%>, "%", AT_REMOVEDIR) = 0', (b"/d", b"b"), [("write", None, b"/d/b")]),
            ('symlink("%", "%") = 0', (b"/etc", b"s"), [("write", None, b"/app/s")]),
            ('symlinkat("%", AT_FDCWD<%>, "%") = 0', (b"/etc", b"/app", b"s"), [("write", None, b"/app/s")]),
            ('linkat(AT_FDCWD<%>, "%", AT_FDCWD<%>, "%", 0) = 0', (b"/app", b"/secret", b"/app", b"l"),
             [("read", None, b"/secret"), ("write", None, b"/app/l")]),
            ("utimensat(3<%>, NULL, [UTIME_NOW, UTIME_NOW], 0) = 0", (b"/app/a",),
             [("write", None, b"/app/a")]),
            ("fchmod(3<%>, 0644) = 0", (b"/app/a",), [("write", None, b"/app/a")]),
            ("getdents64(3<%>, 0x55 /* 4 entries */, 32768) = 112", (b"/app",),
             [("enumerate", None, b"/app")]),
            ('inotify_add_watch(8<anon_inode:inotify>, "%", IN_CREATE) = 1', (b"/app",),
             [("enumerate", None, b"/app")]),
            ('execve("%", [...], 0x7ff /* 3 vars */) = 0', (b"./t",), [("read", None, b"/app/./t")]),
            ('bind(4<socket:[9]>, {sa_family=AF_UNIX, sun_path="%"}, 12) = 0', (b"s.sock",),
             [("write", None, b"/app/s.sock")]),
            ('bind(4<socket:[9]>, {sa_family=AF_UNIX, sun_path=@"%"}, 12) = 0', (b"abstract",), []),
            ('mknodat(AT_FDCWD<%>, "%", S_IFIFO|0600) = 0', (b"/app", b"p"), [("write", None, b"/app/p")]),
        ],
    )  # fmt: skip
    def test_each_kind_of_call(
        self, text: str, paths: tuple[bytes, ...], expected: list[tuple[str, str | None, bytes]]
    ) -> None:
        """Trials.md section 5: operation, mode and absolute path, the kernel's own where there is one."""
        assert [(one.operation, one.mode, one.path) for one in seen(line(text, *paths))] == expected

    def test_each_access_once(self) -> None:
        opened = line('open("%", O_RDONLY) = 3<%>', b"a", b"/a")
        assert len(seen(opened, opened, opened)) == 1

    def test_a_call_that_failed_is_refused_and_no_access(self) -> None:
        denied = line(
            'openat(AT_FDCWD<%>, "%", O_RDONLY) = -1 EACCES (Permission denied)', b"/app", b"/secret"
        )
        missing = line('unlink("%") = -1 ENOENT (No such file or directory)', b"x")
        trace = read(START, denied, missing, END)
        assert trace.whole
        assert trace.accesses[1:] == ()
        assert trace.refused == (Access("open", "read", b"/secret"), Access("write", None, b"/app/x"))

    def test_what_is_asked_again_counts_once_it_is_done(self) -> None:
        again = line('open("%", O_RDONLY) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)', b"/a")
        assert seen(again) == []

    def test_the_sandbox_before_the_program_does_not_count(self) -> None:
        """The words of bubblewrap, its mounts above all, are not the agent's."""
        trace = read(
            line('execve("%", [...], 0x7 /* 3 vars */) = 0', b"/usr/bin/bwrap"),
            line('mount("%", "%", NULL, MS_SILENT|MS_REC|MS_SLAVE, NULL) = 0', b"none", b"/"),
            line('open("%", O_RDONLY) = 3<%>', b"/root/x", b"/root/x"),
            line('pivot_root("%", "%") = 0', b".", b"."),
            line('chdir("%") = 0', b"/app"),
            START,
            line('unlink("%") = 0', b"x"),
            END,
            prelude=1,
            folder=b"/elsewhere",
        )
        assert trace.whole
        assert trace.accesses == (Access("read", None, b"/bin/agent"), Access("write", None, b"/app/x"))


class TestFolders:
    """Calls without a descriptor start from the working folder, which is followed."""

    UNLINK = 'unlink("%") = 0'

    def test_by_chdir_and_fchdir(self) -> None:
        assert [one.path for one in seen(
            line('chdir("%") = 0', b"d"), line(self.UNLINK, b"x"),
            line("fchdir(3<%>) = 0", b"/e"), line(self.UNLINK, b"y"),
            line('chdir("%") = -1 ENOENT (No such file or directory)', b"/f"), line(self.UNLINK, b"z"),
        )] == [b"/app/d/x", b"/e/y", b"/e/z"]  # fmt: skip

    def test_by_any_descriptor_that_tells_it(self) -> None:
        told = line('openat(AT_FDCWD<%>, "%", O_RDONLY) = 3<%>', b"/told", b"a", b"/told/a")
        assert seen(told, line(self.UNLINK, b"x"), folder=None)[-1].path == b"/told/x"

    def test_a_path_from_a_folder_that_nobody_knows(self) -> None:
        trace = read(START, line(self.UNLINK, b"x"), END, folder=None)
        assert trace.faults == ("a path that is not told",)

    @pytest.mark.parametrize(
        ("flags", "expected"), [("CLONE_VM|CLONE_FS|CLONE_THREAD", b"/moved/x"), ("SIGCHLD", b"/app/x")]
    )
    def test_threads_share_it_and_processes_do_not(self, flags: str, expected: bytes) -> None:
        trace = read(
            START,
            line(f"clone(child_stack=NULL, flags={flags}) = 2 /* 8 in strace's PID NS */"),
            line('chdir("%") = 0', b"/moved", pid=8),
            line(self.UNLINK, b"x"),
            line("+++ exited with 0 +++", pid=8),
            END,
        )
        assert trace.whole
        assert trace.accesses[-1].path == expected

    def test_a_child_that_is_seen_before_its_call_returns(self) -> None:
        trace = read(
            START,
            line("clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>"),
            line(self.UNLINK, b"x", pid=8),
            line("<... clone resumed>, child_tidptr=0x7f) = 8"),
            line('chdir("%") = 0', b"/moved", pid=8),
            line(self.UNLINK, b"y"),
            line("+++ killed by SIGKILL +++", pid=8),
            END,
        )
        assert trace.whole
        assert [one.path for one in trace.accesses[1:]] == [b"/app/x", b"/app/y"]

    def test_a_thread_that_starts_a_program_takes_its_group_along(self) -> None:
        trace = read(
            START,
            line("clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD}, 88) = 8"),
            line('execve("%", [...], 0x7 /* 3 vars */ <unfinished ...>', b"/bin/next", pid=8),
            line("+++ superseded by execve in pid 8 +++"),
            line("<... execve resumed>) = 0"),
            END,
        )
        assert trace.whole
        assert trace.accesses[-1].path == b"/bin/next"


class TestInterleaving:
    def test_a_call_in_two_pieces(self) -> None:
        assert [one.path for one in seen(
            line('openat(AT_FDCWD<%>, "%", O_RDONLY <unfinished ...>', b"/app", b"a"),
            line("<... openat resumed>) = 3<%>", b"/app/a"),
        )] == [b"/app/a"]  # fmt: skip

    def test_a_piece_of_another_call_is_no_piece(self) -> None:
        trace = read(
            START, line('open("%", O_RDONLY <unfinished ...>', b"a"), line("<... creat resumed>) = 3"), END
        )
        assert trace.faults == ("a line of an unknown form",)

    def test_a_process_that_is_killed_within_a_call(self) -> None:
        trace = read(
            START,
            line("clone(child_stack=NULL, flags=SIGCHLD) = 8"),
            line('open("%", O_RDONLY <unfinished ...>', b"a", pid=8),
            line("+++ killed by SIGKILL +++", pid=8),
            END,
        )
        assert trace.whole

    @pytest.mark.parametrize("end", ["killed by SIGKILL", "exited with 0"])
    def test_a_thread_that_is_killed_before_its_call(self, end: str) -> None:
        """The kernel does not carry out a call at whose beginning its thread was killed."""
        trace = read(
            START,
            line("clone(child_stack=NULL, flags=SIGCHLD) = 8"),
            line("???( <unfinished ...>", pid=8),
            line(f"+++ {end} +++", pid=8),
            END,
        )
        assert trace.whole

    def test_a_process_goes_on_after_a_call_of_which_nothing_is_told(self) -> None:
        """That is one that may have been carried out."""
        unknown = line("???( <unfinished ...>")
        assert not read(START, unknown, line('unlink("%") = 0', b"/a"), END).whole
        assert not read(START, unknown, line("<... ??? resumed>) = 0"), END).whole

    def test_signals_are_of_no_consequence(self) -> None:
        assert seen(line("--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1} ---")) == []


class TestNotWhole:
    @pytest.mark.parametrize(
        ("lines", "fault"),
        [
            ((START,), "a process whose end is not there"),
            ((), "the program was never started"),
            ((START, line("clone(flags=SIGCHLD) = 8"), END), "a process whose end is not there"),
            ((START, b"openat(3) = 4", END), "a line that is none of strace"),
            ((START, line("open(what"), END), "a line of an unknown form"),
            ((START, line("strace: out of memory"), END), "a line of an unknown form"),
            ((START, line('open("%"..., O_RDONLY) = 3', b"/a"), END), "a path that is not told"),
            ((START, line("unlink(0x7fff) = 0"), END), "a path that is not told"),
            ((START, line('unlinkat(5, "%", 0) = 0', b"a"), END), "a path that is not told"),
            ((START, line("io_uring_setup(256, {flags=0}) = 4"), END),
             "io_uring_setup gives access that is not seen"),
            ((START, line("open_by_handle_at(3<%>, {handle_bytes=8}, O_RDONLY) = 4<%>", b"/", b"/x"), END),
             "open_by_handle_at gives access that is not seen"),
            ((START, line('chroot("%") = 0', b"/x"), END), "chroot gave a process another file system"),
            ((START, line("unshare(CLONE_NEWNS|CLONE_NEWUSER) = 0"), END),
             "unshare gave a process another file system"),
            ((START, line("clone(flags=CLONE_NEWNS|SIGCHLD) = 8"), line("+++ exited with 0 +++", pid=8), END),
             "clone gave a process another file system"),
            ((START, line("clone(flags=CLONE_UNTRACED) = 8"), line("+++ exited with 0 +++", pid=8), END),
             "a process was started so that it is not seen"),
        ],
    )  # fmt: skip
    def test_what_could_have_been_missed(self, lines: tuple[bytes, ...], fault: str) -> None:
        """Trials.md section 5: silence never means proven."""
        assert fault in read(*lines).faults

    def test_what_was_refused_changes_nothing(self) -> None:
        refused = "= -1 ENOSYS (Function not implemented) (INJECTED)"
        trace = read(
            START,
            line(f"io_uring_setup(256, {{flags=0}}) {refused}"),
            line("unshare(CLONE_NEWNS) = -1 EPERM (Operation not permitted)"),
            END,
        )
        assert trace.whole

    def test_more_than_is_kept(self) -> None:
        lines = [line('open("%", O_RDONLY) = 3<%>', b"a", b"/%d" % number) for number in range(5)]
        trace = read(START, *lines, END, most=3)
        assert trace.faults == ("more accesses than are kept",)

    def test_longer_names_than_are_kept(self) -> None:
        """F17: whoever makes a flood of names of full length fills no memory with them."""
        reader = TraceReader(folder=b"/app", most_bytes=1_000)
        long = [b"/" + b"%d" % number + b"x" * 400 for number in range(5)]
        for text in (
            START,
            *(line('open("%", O_RDONLY) = 3<%>', b"a", path) for path in (*long, long[0])),
            END,
        ):
            reader.take(text)
        trace = reader.finish()
        assert trace.faults == ("more accesses than are kept",)
        assert [access.path for access in trace.accesses] == [b"/bin/agent", *long[:2]]
        assert len(trace.accesses) == 3

    def test_of_what_was_refused_some_is_enough(self) -> None:
        text = 'open("%", O_RDONLY) = -1 ENOENT (No such file or directory)'
        lines = [line(text, b"/%d" % number) for number in range(MOST_REFUSED + 5)]
        trace = read(START, *lines, END)
        assert trace.whole
        assert len(trace.refused) == MOST_REFUSED


PATHS = st.binary(min_size=1, max_size=40).filter(lambda path: b"\0" not in path)


class TestAnything:
    @given(PATHS)
    def test_no_name_can_look_like_a_part_of_a_line(self, name: bytes) -> None:
        """Names with quotes, brackets, LF, whole lines of strace and bytes that are no UTF-8."""
        path = b"/" + name
        text = 'openat(AT_FDCWD<%>, "%", O_RDONLY) = 3<%>'
        assert seen(line(text, path, path, path)) == [Access("open", "read", path)]
        assert seen(line('rename("%", "%") = 0', path, path)) == [Access("write", None, path)]

    @given(st.lists(st.binary(max_size=60), max_size=8))
    def test_garbage_is_a_fault_and_no_error(self, lines: list[bytes]) -> None:
        trace = read(START, *lines, END)
        assert trace.whole is (not lines)

    @given(st.data())
    def test_a_line_that_is_cut_makes_the_record_incomplete(self, data: st.DataObject) -> None:
        whole = line('openat(AT_FDCWD<%>, "%", O_RDONLY) = 3<%>', b"/app", b"/app/a", b"/app/a")
        cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
        trace = read(START, cut, END)
        # A cut within the descriptor of the result alone leaves the call as it was.
        assert not trace.whole or Access("open", "read", b"/app/a") in trace.accesses

    @given(st.permutations(range(6)))
    def test_calls_of_several_processes_in_any_order(self, order: list[int]) -> None:
        """Every interleaving of halves gives the same accesses."""
        pids = [8, 9, 10]
        begun = [line(f"clone(flags=SIGCHLD) = {pid}") for pid in pids]
        left = {pid: [
            line('open("%", O_RDONLY <unfinished ...>', b"a", pid=pid),
            line("<... open resumed>) = 3<%>", b"/%d" % pid, pid=pid),
        ] for pid in pids}  # fmt: skip
        halves = [left[pids[step % 3]].pop(0) for step in order]
        ends = [line("+++ exited with 0 +++", pid=pid) for pid in pids]
        trace = read(START, *begun, *halves, *ends, END)
        assert trace.whole
        assert {one.path for one in trace.accesses[1:]} == {b"/8", b"/9", b"/10"}


def test_the_longest_line_that_there_can_be_is_read() -> None:
    """Two paths of 4,096 bytes and a descriptor's, each byte spelt in four."""
    assert LINE_BYTES > 4 * 4_096 * 4


@pytest.mark.slow
def test_a_long_log_in_little_memory() -> None:
    """Distinct accesses are all that is kept."""
    opened = line(
        'openat(AT_FDCWD<%>, "%", O_RDONLY|O_CLOEXEC) = 3<%>', b"/app", b"a" * 40, b"/app/" + b"a" * 40
    )
    reader = TraceReader(folder=b"/app")
    tracemalloc.start()
    try:
        reader.take(START)
        for _ in range(20_000_000 // len(opened)):
            reader.take(opened)
        reader.take(END)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.finish().whole
    assert peak < 1_000_000
