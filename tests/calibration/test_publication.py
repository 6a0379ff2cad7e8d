from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.evidence.faults import EvidenceError, PairCode
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.pair import load_pair
from tests.support.examinations import UnsyncedFs, open_out, run_examination
from tests.support.private import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"
STAGED = (".reviewer-calibration.pending.json", ".reviewer-calibration-result.pending.json")
SHEET = "reviewer-calibration-metrics.json"
PUBLISHED = (EVIDENCE, RESULT, *STAGED, SHEET)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An examination that was cut off after its last repeat."""
    run_examination(open_out(tmp_path))
    for name in (EVIDENCE, RESULT, SHEET):
        shutil.move(tmp_path / "out" / name, tmp_path / name)
    return tmp_path


def resume(folder: Path, *injections: Injection) -> int:
    """Resume and give the calls; nobody may be asked anything here."""
    out = open_out(folder, FaultFs(UnsyncedFs(), *injections))
    return run_examination(out, resume=True).calls


def refusal(folder: Path) -> tuple[RefusalCode, str | None]:
    with pytest.raises(ExaminationRefused) as caught:
        resume(folder)
    return caught.value.code, caught.value.field


def present(folder: Path) -> set[str]:
    return {name for name in PUBLISHED if (folder / "out" / name).exists()}


def put(folder: Path, name: str, data: bytes, mode: int = 0o600) -> None:
    path = folder / "out" / name
    path.write_bytes(data)
    path.chmod(mode)


def put_as_published(folder: Path, *names: str) -> None:
    """Lay files of the complete publication under these names, canonical or staged."""
    for name in names:
        origin = {STAGED[0]: EVIDENCE, STAGED[1]: RESULT}.get(name, name)
        put(folder, name, (folder / origin).read_bytes())


class TestResumedPublication:
    @pytest.mark.parametrize(
        "left",
        [
            (),
            (STAGED[0],),
            STAGED,
            (EVIDENCE,),
            (EVIDENCE, STAGED[1]),
            (RESULT,),
            (EVIDENCE, RESULT),
            (EVIDENCE, RESULT, *STAGED),
            (EVIDENCE, RESULT, STAGED[1]),
        ],
        ids=lambda left: "+".join(left) or "nothing",
    )
    def test_ends_with_the_same_bytes_and_without_a_call(self, folder: Path, left: tuple[str, ...]) -> None:
        """R19 R28 E43: from every half that a kill can leave."""
        put_as_published(folder, *left)
        assert resume(folder) == 0
        assert present(folder) == {EVIDENCE, RESULT, SHEET}
        for name in (EVIDENCE, RESULT, SHEET):
            assert (folder / "out" / name).read_bytes() == (folder / name).read_bytes()

    def test_a_staged_leftover_of_something_else_is_overwritten_while_nothing_stands(
        self, folder: Path
    ) -> None:
        put(folder, STAGED[0], b"{}\n")
        assert resume(folder) == 0
        assert present(folder) == {EVIDENCE, RESULT, SHEET}

    def test_a_complete_pair_is_not_written_again(self, folder: Path) -> None:
        """F4: it stays byte for byte, in the very same files."""
        put_as_published(folder, EVIDENCE, RESULT, SHEET)
        before = [(folder / "out" / name).stat().st_ino for name in (EVIDENCE, RESULT, SHEET)]
        assert resume(folder) == 0
        assert [(folder / "out" / name).stat().st_ino for name in (EVIDENCE, RESULT, SHEET)] == before

    def test_a_stale_sheet_is_made_anew(self, folder: Path) -> None:
        put_as_published(folder, EVIDENCE, RESULT)
        put(folder, SHEET, b'{"stale":true}\n')
        resume(folder)
        assert (folder / "out" / SHEET).read_bytes() == (folder / SHEET).read_bytes()


class TestBlocked:
    @pytest.mark.parametrize("name", PUBLISHED)
    @pytest.mark.parametrize("kind", ["link", "folder", "readable", "fifo", "no JSON", "hard link"])
    def test_what_is_not_ours_is_named_and_left(self, folder: Path, name: str, kind: str) -> None:
        """E44 R19: the publication stops before it writes anything."""
        path = folder / "out" / name
        make: dict[str, Callable[[], object]] = {
            "link": lambda: path.symlink_to(folder / EVIDENCE),
            "folder": lambda: path.mkdir(mode=0o700),
            "readable": lambda: put(folder, name, b"{}\n", 0o644),
            "fifo": lambda: os.mkfifo(path, 0o600),
            "no JSON": lambda: put(folder, name, b"{"),
            "hard link": lambda: path.hardlink_to(folder / EVIDENCE),
        }
        make[kind]()

        def standing() -> tuple[int, ...]:
            found = path.lstat()  # not its time of access: reading may change that, and is allowed
            return found.st_ino, found.st_mode, found.st_nlink, found.st_size, found.st_mtime_ns

        before = standing()
        assert refusal(folder) == (RefusalCode.PUBLICATION_BLOCKED, name)
        assert standing() == before
        assert present(folder) | {name} == {name}

    @pytest.mark.parametrize("staged", STAGED)
    def test_a_leftover_that_contradicts_a_complete_pair(self, folder: Path, staged: str) -> None:
        put_as_published(folder, EVIDENCE, RESULT)
        put(folder, staged, b"{}\n")
        assert refusal(folder) == (RefusalCode.PUBLICATION_BLOCKED, staged)
        assert (folder / "out" / staged).read_bytes() == b"{}\n"

    @pytest.mark.parametrize("name", [EVIDENCE, RESULT])
    def test_a_complete_pair_that_the_samples_do_not_give(self, folder: Path, name: str) -> None:
        """F1: what is complete is never replaced by what lies beside it; the resume is refused."""
        put_as_published(folder, EVIDENCE, RESULT)
        document = json.loads((folder / name).read_bytes())
        put(folder, name, json.dumps(document).encode())
        before = content(folder / "out")
        assert refusal(folder) == (RefusalCode.PUBLICATION_DIFFERS, name)
        assert content(folder / "out") == before

    @pytest.mark.parametrize("name", [EVIDENCE, RESULT])
    def test_half_a_pair_that_the_samples_do_not_give(self, folder: Path, name: str) -> None:
        """R19: nothing of ours left it, so nothing of ours replaces or removes it."""
        put(folder, name, b"{}\n")
        before = content(folder / "out")
        assert refusal(folder) == (RefusalCode.PUBLICATION_DIFFERS, name)
        assert content(folder / "out") == before


def steps_of_publication(folder: Path) -> int:
    """How many operations a resumed publication makes that change anything under the publication's names."""
    recorded = RecordingFs(UnsyncedFs())
    run_examination(open_out(folder, recorded), resume=True)
    touched = [step for step in recorded.steps if concerns(step.path) or concerns(step.target)]
    for name in (EVIDENCE, RESULT, SHEET):
        (folder / "out" / name).unlink()
    return len(touched)


def concerns(path: str) -> bool:
    last = path.rpartition("/")[2]
    return last.endswith("/out") or any(
        name in last or name in last.replace(".pending", "") for name in PUBLISHED
    )


class TestInterrupted:
    def test_a_failure_at_each_step_leaves_no_canonical_file_or_all(self, folder: Path) -> None:
        """R17 E40: and the next resume completes the publication."""
        count = steps_of_publication(folder)
        assert count > 8
        for step in range(1, count + 1):
            failing = Injection("*", errno.EIO, nth=step, about=concerns)
            try:
                resume(folder, failing)
            except (EvidenceError, ExaminationRefused):
                assert present(folder) & {EVIDENCE, RESULT} in (set(), {EVIDENCE, RESULT})
            assert failing.hits == 1
            assert resume(folder) == 0
            for name in (EVIDENCE, RESULT, SHEET):
                assert (folder / "out" / name).read_bytes() == (folder / name).read_bytes()
                (folder / "out" / name).unlink()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
    def test_a_signal_between_the_renames_leaves_neither(self, folder: Path, number: int) -> None:
        """R18 E41: the process ends by that signal, and a resume publishes."""
        pid = os.fork()
        if pid == 0:
            signal.signal(number, signal.SIG_DFL)
            second = Injection(
                "rename",
                about=lambda path: path.endswith("/" + STAGED[1]),
                before=lambda: os.kill(os.getpid(), number),
            )
            resume(folder, second)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == number
        assert present(folder) == set()
        assert resume(folder) == 0

    def test_a_kill_between_the_renames_leaves_what_no_reader_accepts(self, folder: Path) -> None:
        """R19 E43: half a pair does not load, and a resume completes it."""
        pid = os.fork()
        if pid == 0:
            second = Injection(
                "rename",
                about=lambda path: path.endswith("/" + STAGED[1]),
                before=lambda: os.kill(os.getpid(), signal.SIGKILL),
            )
            resume(folder, second)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        assert present(folder) == {EVIDENCE, STAGED[1]}
        with pytest.raises(EvidenceError) as caught:
            load_pair(open_out(folder), EVIDENCE, RESULT, lambda *_: None)
        assert caught.value.code is PairCode.PAIR_INCOMPLETE
        assert resume(folder) == 0
        assert present(folder) == {EVIDENCE, RESULT, SHEET}
