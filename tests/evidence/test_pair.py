"""Two documents that count only together, whatever happens between their renames."""

from __future__ import annotations

import errno
import os
import signal
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, PairCode, PairError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.pair import Member, load_pair, pending_name, publish_pair
from tests.support.pairs import ALL, EVIDENCE, PENDING, RESULT, BadPairError, load, members
from tests.support.private import out_root, run_child, temporaries, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

ERRNOS = [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM]
# The renames of an undisturbed publication: two of staging, then evidence, then result.
EVIDENCE_RENAME, RESULT_RENAME = 3, 4
FOUR = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path.resolve()) as opened:
        yield opened


def neither_or_a_valid_pair(folder: Path) -> bool:
    """Whether the folder holds no canonical name or a pair that loads; answers which."""
    with out_root(folder) as root:
        present = [name for name in (EVIDENCE, RESULT) if root.exists(name)]
        if not present:
            return False
        assert load_pair(root, EVIDENCE, RESULT, load) == "observed"
        return True


class TestNames:
    def test_of_staged_documents(self) -> None:
        assert pending_name("reviewer-calibration.json") == ".reviewer-calibration.pending.json"
        assert pending_name("reviewer-calibration-result.json") == ".reviewer-calibration-result.pending.json"

    def test_of_a_pair_must_not_meet(self, root: PrivateRoot) -> None:
        for names in (("a.json", "a.json"), ("a.json", "a.txt"), (".a.pending.json", "a.json")):
            with pytest.raises(ValueError, match="stems"):
                publish_pair(root, Member(names[0], b""), Member(names[1], b""), load=load)
        with pytest.raises(FileError) as caught:
            publish_pair(root, Member("a/b.json", b""), Member("c.json", b""), load=load)
        assert caught.value.code is FileCode.NAME_FORM
        assert root.names() == ()


class TestPublishing:
    def test_answers_what_the_loader_made_and_leaves_two_private_files(self, root: PrivateRoot) -> None:
        assert publish_pair(root, *members(), load=load) == "observed"
        assert root.names() == (EVIDENCE, RESULT)
        assert wrong_modes(root.path) == []
        assert load_pair(root, EVIDENCE, RESULT, load) == "observed"

    def test_goes_by_the_steps_of_the_specification(self, tmp_path: Path) -> None:
        """E24 E40: staged and durable, read back, renamed evidence first, each rename durable; 0600 at every
        step.
        """
        wrong: list[str] = []
        fs = RecordingFs(RealFs(), after=lambda _step: wrong.extend(wrong_modes(tmp_path / "root")))
        with out_root(tmp_path.resolve(), fs) as root:
            fs.steps.clear()
            publish_pair(root, *members(), load=load)
            assert fs.open_paths == [str(root.path)]
        stage = ["create_exclusive", "write", "fsync", "rename", "fsync_dir"]
        assert [step.operation for step in fs.steps] == [
            *stage,
            *stage,
            "rename",
            "fsync_dir",
            "rename",
            "fsync_dir",
        ]
        renamed = [step.target.rpartition("/")[2] for step in fs.steps if step.operation == "rename"]
        assert renamed == [*PENDING, EVIDENCE, RESULT]
        assert wrong == []

    def test_again_changes_nothing_and_clears_what_was_staged(self, root: PrivateRoot) -> None:
        publish_pair(root, *members(), load=load)
        before = [(root.path / name).stat().st_ino for name in (EVIDENCE, RESULT)]
        root.publish(PENDING[0], b"left by a crash")
        assert publish_pair(root, *members(), load=load) == "observed"
        assert [(root.path / name).stat().st_ino for name in (EVIDENCE, RESULT)] == before
        assert root.names() == (EVIDENCE, RESULT)

    def test_never_takes_the_place_of_another_pair(self, root: PrivateRoot) -> None:
        publish_pair(root, *members("first"), load=load)
        with pytest.raises(FileError) as caught:
            publish_pair(root, *members("second"), load=load)
        assert caught.value.code is FileCode.EXISTS_DIFFERENT
        assert load_pair(root, EVIDENCE, RESULT, load) == "first"

    @pytest.mark.parametrize("half", members())
    def test_completes_half_a_pair_that_a_kill_left(self, root: PrivateRoot, half: Member) -> None:
        """E43: half a pair is published again as a whole."""
        root.publish(half.name, half.data)
        root.publish(PENDING[1], b"staged before the kill")
        assert publish_pair(root, *members(), load=load) == "observed"
        assert root.names() == (EVIDENCE, RESULT)

    @pytest.mark.parametrize("half", [EVIDENCE, RESULT])
    @pytest.mark.parametrize("data", [b"{}", members("another")[0].data])
    def test_never_takes_the_place_of_half_another_pair(
        self, root: PrivateRoot, half: str, data: bytes
    ) -> None:
        """E40 E43: what this publication did not put there is not its to overwrite."""
        root.publish(half, data)
        with pytest.raises(FileError) as caught:
            publish_pair(root, *members(), load=load)
        assert (caught.value.code, caught.value.faults[0].where) == (FileCode.EXISTS_DIFFERENT, half)
        assert root.names() == (half,)
        assert root.read(half) == data

    @pytest.mark.parametrize("half", [EVIDENCE, RESULT])
    def test_takes_the_place_of_a_half_that_its_caller_claims(self, root: PrivateRoot, half: str) -> None:
        """E43: who holds the folder by a claim says whose the half is; a whole other pair stays even so."""
        root.publish(half, b"{}")
        assert publish_pair(root, *members(), load=load, overwrite_half=True) == "observed"
        with pytest.raises(FileError) as caught:
            publish_pair(root, *members("another"), load=load, overwrite_half=True)
        assert caught.value.code is FileCode.EXISTS_DIFFERENT

    def test_never_takes_the_place_of_what_appears_while_publishing(self, root: PrivateRoot) -> None:
        """E40: the names are read again right before the renames."""

        def loading(evidence: bytes, result: bytes) -> str:
            root.publish(RESULT, b"theirs")
            return load(evidence, result)

        with pytest.raises(FileError) as caught:
            publish_pair(root, *members(), load=loading)
        assert caught.value.code is FileCode.EXISTS_DIFFERENT
        assert root.names() == (RESULT,)
        assert root.read(RESULT) == b"theirs"

    def test_stops_when_the_loader_refuses_what_was_staged(self, root: PrivateRoot) -> None:
        """E40: a pair that its consumers would refuse is not published."""
        evidence, _ = members()
        with pytest.raises(BadPairError):
            publish_pair(root, evidence, members("other")[1], load=load)
        assert root.names() == ()

    def test_stops_when_the_disk_gives_back_something_else(self, tmp_path: Path) -> None:
        """E40: what was staged is read back before it counts."""
        fs = FaultFs(
            RealFs(),
            Injection("read", about=lambda path: path.endswith(PENDING[1]), change=lambda _data: b"rotten"),
        )
        with out_root(tmp_path.resolve(), fs) as root:
            with pytest.raises(PairError) as caught:
                publish_pair(root, *members(), load=load)
            assert (caught.value.code, caught.value.faults[0].where) == (PairCode.PAIR_INVALID, PENDING[1])
            assert root.names() == ()


class TestEveryFaultAtEveryStep:
    @pytest.mark.parametrize("number", ERRNOS)
    def test_an_error_of_the_kernel(self, tmp_path: Path, number: int) -> None:
        """E40: each errno at each mutating step leaves neither name or a valid pair, and a repeat
        succeeds.
        """
        ended = self._at_each_step(tmp_path.resolve(), Injection("*", number), FileError)
        # Only the fsync after the second rename comes too late to take the pair back.
        assert ended == [False] * 13 + [True]

    def test_an_exception_anywhere(self, tmp_path: Path) -> None:
        """E40: an exception at any operation at all, reading ones included, does the same."""

        def fail() -> None:
            raise LookupError

        ended = self._at_each_step(tmp_path.resolve(), Injection("any", before=fail), LookupError)
        assert len(ended) > 40
        assert ended == sorted(ended)

    @staticmethod
    def _at_each_step(tmp_path: Path, injected: Injection, expected: type[Exception]) -> list[bool]:
        """For each call at which the injection can strike: whether a valid pair was left."""
        ended: list[bool] = []
        while True:
            folder = tmp_path / f"{len(ended)}"
            folder.mkdir()
            injection = replace(injected, nth=len(ended) + 1)
            fs = FaultFs(RealFs())
            with out_root(folder, fs) as root:
                fs.injections = (injection,)
                with suppress(expected):
                    publish_pair(root, *members(), load=load)
                if not injection.hits:
                    return ended
                ended.append(neither_or_a_valid_pair(folder))
                assert not set(root.names()) & set(PENDING)
                assert temporaries(folder) == []
                assert fs.open_paths == [str(root.path)]
                assert publish_pair(root, *members(), load=load) == "observed"

    @pytest.mark.parametrize("half", members())
    @pytest.mark.parametrize("nth", [EVIDENCE_RENAME, RESULT_RENAME])
    def test_what_was_there_before_is_never_taken_away(self, tmp_path: Path, half: Member, nth: int) -> None:
        """E40: after a failed rename only what this call renamed is removed; a half that it found, and that
        it did not replace, stays.
        """
        fs = FaultFs(RealFs(), Injection("rename", errno.EIO, nth=nth))
        with out_root(tmp_path.resolve()) as calm:
            calm.publish(half.name, half.data)
        with out_root(tmp_path.resolve(), fs) as root:
            with pytest.raises(FileError):
                publish_pair(root, *members(), load=load)
            replaced = nth == RESULT_RENAME and half.name == EVIDENCE
            assert root.names() == (() if replaced else (half.name,))
            assert publish_pair(root, *members(), load=load) == "observed"

    def test_a_rename_that_happened_and_was_reported_as_failed_is_taken_back(self, tmp_path: Path) -> None:
        """E40: what lies under a name decides, not what the kernel said about it."""

        class Unsure(RealFs):
            def rename(
                self, source_parent: int | None, source: str, target_parent: int | None, target: str
            ) -> None:
                super().rename(source_parent, source, target_parent, target)
                if target == EVIDENCE:
                    raise OSError(errno.EIO, "lost the answer")

        with out_root(tmp_path.resolve(), Unsure()) as root:
            with pytest.raises(FileError):
                publish_pair(root, *members(), load=load)
            assert root.names() == ()


class TestUnsafePaths:
    @pytest.mark.parametrize("name", ALL)
    @pytest.mark.parametrize("kind", ["link", "dangling", "folder", "fifo", "mode", "hard link"])
    def test_are_named_and_untouched(self, root: PrivateRoot, tmp_path: Path, name: str, kind: str) -> None:
        """E44: a staged or canonical path that is not a private file of ours stops the publication
        as it is.
        """
        outside = tmp_path / "outside"
        outside.write_bytes(b"theirs")
        outside.chmod(0o600)
        path = root.path / name
        match kind:
            case "link":
                path.symlink_to(outside)
            case "dangling":
                path.symlink_to(tmp_path / "none")
            case "folder":
                path.mkdir(mode=0o700)
            case "fifo":
                os.mkfifo(path, 0o600)
            case "mode":
                path.write_bytes(b"theirs")
                path.chmod(0o644)
            case _:
                os.link(outside, path)
        before = path.lstat()
        with pytest.raises(PairError) as caught:
            publish_pair(root, *members(), load=load)
        assert (caught.value.code, caught.value.faults[0].where) == (PairCode.PAIR_UNSAFE, name)
        assert name in str(caught.value)
        after = path.lstat()
        assert (before.st_ino, before.st_mode, before.st_nlink) == (
            after.st_ino,
            after.st_mode,
            after.st_nlink,
        )
        assert outside.read_bytes() == b"theirs"
        assert root.names() == (name,)

    def test_of_another_owner(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E44: a foreign file is not taken over."""
        root.publish(PENDING[0], b"theirs")

        def foreign(status: os.stat_result) -> os.stat_result:
            return os.stat_result((*status[:4], root.folder.fs.user() + 1, *status[5:]))

        fs = FaultFs(
            RealFs(), Injection("lstat", about=lambda path: path.endswith(PENDING[0]), change=foreign)
        )
        with out_root(tmp_path.resolve(), fs) as watched, pytest.raises(PairError) as caught:
            publish_pair(watched, *members(), load=load)
        assert (caught.value.code, caught.value.faults[0].where) == (PairCode.PAIR_UNSAFE, PENDING[0])
        assert root.read(PENDING[0]) == b"theirs"

    def test_that_appear_while_publishing(self, root: PrivateRoot, tmp_path: Path) -> None:
        """E44: the names are judged again right before the renames."""

        def appear() -> None:
            (root.path / RESULT).symlink_to(tmp_path / "none")

        def loading(evidence: bytes, result: bytes) -> str:
            appear()
            return load(evidence, result)

        with pytest.raises(PairError) as caught:
            publish_pair(root, *members(), load=loading)
        assert caught.value.faults[0].where == RESULT
        assert root.names() == (RESULT,)
        assert (root.path / RESULT).is_symlink()


class TestLoading:
    @pytest.mark.parametrize("present", [(), (EVIDENCE,), (RESULT,), PENDING, (EVIDENCE, PENDING[1])])
    def test_demands_both(self, root: PrivateRoot, present: tuple[str, ...]) -> None:
        """E43: half a pair, or only staged documents, is `pair_incomplete`."""
        for name in present:
            root.publish(name, b"{}")
        with pytest.raises(PairError) as caught:
            load_pair(root, EVIDENCE, RESULT, load)
        assert caught.value.code is PairCode.PAIR_INCOMPLETE

    def test_demands_private_files(self, root: PrivateRoot) -> None:
        publish_pair(root, *members(), load=load)
        (root.path / RESULT).chmod(0o640)
        with pytest.raises(FileError) as caught:
            load_pair(root, EVIDENCE, RESULT, load)
        assert caught.value.code is FileCode.FILE_MODE
        assert stat.S_IMODE((root.path / RESULT).stat().st_mode) == 0o640

    def test_passes_on_what_the_loader_says(self, root: PrivateRoot) -> None:
        root.publish(EVIDENCE, members()[0].data)
        root.publish(RESULT, members("other")[1].data)
        with pytest.raises(BadPairError):
            load_pair(root, EVIDENCE, RESULT, load)


PUBLISH = """
import os, pathlib, signal, sys, threading
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.pair import publish_pair
from skill_effectiveness.evidence.signals import Terminated
from tests.support.pairs import members, load
from tests.support.private import out_root
folder, number, operation, nth, how = sys.argv[1:]
folder, number, nth = pathlib.Path(folder), int(number), int(nth)
signal.signal(signal.SIGINT, signal.SIG_DFL)
if how == "handled":
    signal.signal(number, lambda *_: print("handled", flush=True))
stop = threading.Event()
other = threading.Thread(target=stop.wait, daemon=True)
if how == "other thread":
    other.start()
    arrived, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
def send():
    if how == "other thread":
        signal.pthread_kill(other.ident, number)
        # Until that thread has run and taken it, nothing has arrived.
        os.read(arrived, 1)
    else:
        os.kill(os.getpid(), number)
inside = f"{folder}/root"
fs = FaultFs(RealFs(), Injection(operation, nth=nth, before=send, about=lambda path: path.startswith(inside)))
root = out_root(folder, fs)
try:
    publish_pair(root, *members(), load=load)
except Terminated as error:
    sys.exit(128 + error.signum)
if operation == "afterwards":
    send()
print("published", flush=True)
"""


@pytest.mark.parametrize("number", FOUR)
class TestTermination:
    @pytest.mark.parametrize("how", ["", "other thread"])
    @pytest.mark.parametrize("nth", [EVIDENCE_RENAME, RESULT_RENAME])
    def test_between_the_renames_removes_both_and_ends_by_the_signal(
        self, tmp_path: Path, number: signal.Signals, nth: int, how: str
    ) -> None:
        """E41 E63: a termination in the window removes canonical and staged files, then has its ordinary
        effect.
        """
        done = run_child(PUBLISH, tmp_path.resolve(), int(number), "rename", nth, how)
        assert (done.returncode, done.stdout) == (-number, ""), done.stderr
        assert list((tmp_path / "root").iterdir()) == []

    def test_whose_handler_returns_ends_with_128_and_its_number(
        self, tmp_path: Path, number: signal.Signals
    ) -> None:
        """E41 E63: a handler that returns does not turn the termination into a success."""
        done = run_child(PUBLISH, tmp_path.resolve(), int(number), "rename", RESULT_RENAME, "handled")
        assert (done.returncode, done.stdout) == (128 + number, "handled\n"), done.stderr
        assert list((tmp_path / "root").iterdir()) == []

    def test_at_the_last_step_of_the_window(self, tmp_path: Path, number: signal.Signals) -> None:
        """E41 E63: also when both are in place already but the window is still open."""
        done = run_child(PUBLISH, tmp_path.resolve(), int(number), "fsync_dir", 4, "")
        assert done.returncode == -number, done.stderr
        assert list((tmp_path / "root").iterdir()) == []

    def test_after_the_publication_leaves_both(self, tmp_path: Path, number: signal.Signals) -> None:
        """E42 E63: a signal after the window ends the process and leaves the valid pair."""
        done = run_child(PUBLISH, tmp_path.resolve(), int(number), "afterwards", 1, "")
        assert (done.returncode, done.stdout) == (-number, ""), done.stderr
        assert neither_or_a_valid_pair(tmp_path.resolve()) is True

    def test_that_is_ignored_changes_nothing(self, tmp_path: Path, number: signal.Signals) -> None:
        """E63: under `nohup` the hangup does not take the pair back."""
        ignoring = PUBLISH.replace(
            'if how == "handled":', "signal.signal(number, signal.SIG_IGN)\nif how == 'x':"
        )
        done = run_child(ignoring, tmp_path.resolve(), int(number), "rename", RESULT_RENAME, "")
        assert (done.returncode, done.stdout) == (0, "published\n"), done.stderr
        assert neither_or_a_valid_pair(tmp_path.resolve()) is True


@pytest.mark.parametrize(
    ("nth", "left"), [(EVIDENCE_RENAME, PENDING), (RESULT_RENAME, (PENDING[1], EVIDENCE))]
)
def test_a_kill_between_the_renames_leaves_half_a_pair_that_no_reader_takes(
    tmp_path: Path, nth: int, left: tuple[str, ...]
) -> None:
    """E43: after SIGKILL the loader refuses, and the same publication completes the pair."""
    done = run_child(PUBLISH, tmp_path.resolve(), int(signal.SIGKILL), "rename", nth, "")
    assert done.returncode == -signal.SIGKILL, done.stderr
    with out_root(tmp_path.resolve()) as root:
        assert set(root.names()) == set(left)
        with pytest.raises(PairError) as caught:
            load_pair(root, EVIDENCE, RESULT, load)
        assert caught.value.code is PairCode.PAIR_INCOMPLETE
        assert publish_pair(root, *members(), load=load) == "observed"
        assert root.names() == (EVIDENCE, RESULT)


def test_outside_the_main_thread_a_pair_is_published_too(root: PrivateRoot) -> None:
    import threading  # noqa: PLC0415 - one test

    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(publish_pair(root, *members(), load=load)))
    thread.start()
    thread.join()
    assert said == ["observed"]
    assert root.names() == (EVIDENCE, RESULT)
