"""Verification of anything at all: it answers, in bounded memory, and writes nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skill_effectiveness.evidence.fsdoubles import MUTATIONS, FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalReport,
    JournalStatus,
    Unreadable,
)
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
from tests.support.journals import (
    FORMS,
    Desk,
    add,
    copied,
    damage_verified,
    numbers,
    templates_in,
)
from tests.support.private import child_output

ROWS = 9
"""Rows of the filled journal, the kernel's row 0 included where there is one."""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    return templates_in(tmp_path_factory.mktemp("templates").resolve(), ROWS)


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], tmp_path: Path) -> Desk:
    return copied(templates[request.param], tmp_path.resolve())


def answer(path: Path) -> tuple[JournalReport, JournalReport]:
    """What both verifiers say."""
    return verify_segments(RealFs(), path), verify_file(RealFs(), path)


class TestAnything:
    def test_random_bytes(self, tmp_path: Path) -> None:
        """E37 F45: in the place of a segment, of a single file, and of the folder."""
        folder = tmp_path / "journal"
        folder.mkdir()
        (folder / "000001.jsonl").write_bytes(os.urandom(2_000_000))
        assert verify_segments(RealFs(), folder).why is Unreadable.NO_FIRST_ROW
        assert verify_file(RealFs(), folder / "000001.jsonl").why is Unreadable.NO_FIRST_ROW
        assert verify_segments(RealFs(), folder / "000001.jsonl").why is Unreadable.WRONG_KIND

    def test_the_device_of_random_bytes(self, tmp_path: Path) -> None:
        """E37 F45: it has no end, and is not opened."""
        (tmp_path / "000001.jsonl").symlink_to("/dev/urandom")
        segments, file = verify_segments(RealFs(), tmp_path), verify_file(RealFs(), tmp_path / "000001.jsonl")
        assert (segments.why, file.why) == (Unreadable.NOT_BEGUN, Unreadable.WRONG_KIND)
        assert [report.why for report in answer(Path("/dev/urandom"))] == [Unreadable.WRONG_KIND] * 2

    def test_random_bytes_beside_a_pin(self, desk: Desk) -> None:
        """E37 F45: a journal whose rows are gone is damaged."""
        desk.rows().write_bytes(os.urandom(100_000))
        assert damage_verified(desk)[0] == (Finding.BAD_ROW, 0)

    def test_an_empty_file(self, tmp_path: Path) -> None:
        """E37 F45: nothing was begun."""
        (tmp_path / "000001.jsonl").write_bytes(b"")
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NOT_BEGUN
        assert verify_file(RealFs(), tmp_path / "000001.jsonl").why is Unreadable.NOT_BEGUN

    def test_a_folder(self, tmp_path: Path) -> None:
        """E37 F45: an empty one, and one with other things."""
        assert [report.why for report in answer(tmp_path)] == [Unreadable.NOT_BEGUN, Unreadable.WRONG_KIND]
        (tmp_path / "x").write_bytes(b"x")
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NOT_BEGUN

    def test_a_fifo(self, tmp_path: Path) -> None:
        """E37 F45: nobody waits for its other end."""
        for name in ("000001.jsonl", "head.json", "torn", "single"):
            os.mkfifo(tmp_path / name)
        assert verify_segments(RealFs(), tmp_path).status is JournalStatus.UNREADABLE
        assert [report.why for report in answer(tmp_path / "single")] == [Unreadable.WRONG_KIND] * 2

    def test_nothing(self, tmp_path: Path) -> None:
        """E37: a missing path, also below one that is missing, and a name that cannot be."""
        for path in (tmp_path / "x", tmp_path / "x" / "y", tmp_path / "a\0b"):
            assert [report.why for report in answer(path)] == [Unreadable.MISSING] * 2
        for report in answer(tmp_path / ("n" * 300)):
            assert report.status is JournalStatus.UNREADABLE

    def test_a_link_to_a_journal(self, desk: Desk) -> None:
        """E37: the last step is not followed."""
        link = desk.base / "link"
        link.symlink_to(desk.folder if desk.form == "segmented" else desk.rows())
        report = answer(link)[FORMS.index(desk.form)]
        assert report.why is Unreadable.WRONG_KIND

    @pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
    @pytest.mark.parametrize("operation", ["open_dir", "open_read", "read", "lstat", "fstat", "listdir"])
    def test_errors_of_the_kernel(self, desk: Desk, operation: str, number: int) -> None:
        """E37: on any part, each gives an answer, and never a good one."""
        verify = verify_segments if desk.form == "segmented" else verify_file
        path = desk.folder if desk.form == "segmented" else desk.rows()
        for part in (desk.folder, desk.rows(), desk.pin):
            injection = Injection(operation, number, nth=0, about=lambda name, part=part: name == str(part))
            fs = FaultFs(RealFs(), injection)
            report = verify(fs, path)
            assert (report.status is JournalStatus.INTACT) is (injection.hits == 0)
            assert report.sound is (injection.hits == 0)
            assert fs.open_paths == []
            # An error that does not come again may go unnoticed; it must not become anything else.
            passing = FaultFs(RealFs(), Injection(operation, number))
            assert verify(passing, path).status is not JournalStatus.RECOVERABLE
            assert passing.open_paths == []

    def test_a_hostile_pin(self, desk: Desk) -> None:
        """E37 E38: a pin that is as large and as full of values as one is read at all."""
        data = b'{"a":[' + b"[]," * 87_000 + b"1]}\n"
        assert 261_000 < len(data) < 262_144
        desk.pin.write_bytes(data)
        assert damage_verified(desk) == [(Finding.PIN_DAMAGED, None)]
        assert peak_megabytes(desk) < 200
        desk.pin.write_bytes(data + b" " * 10_000_000)
        assert damage_verified(desk) == [(Finding.PIN_DAMAGED, None)]

    def test_a_sparse_file(self, tmp_path: Path) -> None:
        """E37 F45: 2 GiB of zeros in the place of the rows; answered without reading them all."""
        (tmp_path / "000001.jsonl").write_bytes(b"")
        os.truncate(tmp_path / "000001.jsonl", 2 << 30)
        assert verify_segments(RealFs(), tmp_path).why is Unreadable.NO_FIRST_ROW
        assert verify_file(RealFs(), tmp_path / "000001.jsonl").why is Unreadable.NO_FIRST_ROW

    def test_a_sparse_end_and_a_long_line(self, desk: Desk) -> None:
        """E37 E38 F45: 2 GiB of zeros behind the rows, or a row of 300 MB, need less than 200 MB."""
        os.truncate(desk.rows(), 2 << 30)
        assert [finding.finding for finding in desk.verify().findings] == [Finding.BAD_ROW]
        assert peak_megabytes(desk) < 200
        with desk.rows().open("wb") as file:
            for _ in range(30):
                file.write(b"x" * 10_000_000)
            file.write(b"\n")
        assert desk.verify().findings[0].finding is Finding.BAD_ROW
        assert peak_megabytes(desk) < 200


def peak_megabytes(desk: Desk) -> float:
    """The most memory a child needed that verifies and nothing else."""
    code = """
import sys
from pathlib import Path
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_verify import verify_file, verify_segments
path = Path(sys.argv[1])
(verify_segments if path.is_dir() else verify_file)(RealFs(), path)
# Not ru_maxrss, which begins with what the parent had when it forked.
lines = Path("/proc/self/status").read_text().splitlines()
(peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM")]
print(peak)
"""
    path = desk.folder if desk.form == "segmented" else desk.rows()
    return int(child_output(code, path)) * 1024 / 1_000_000


def test_a_hundred_thousand_rows_in_one_pass(tmp_path: Path) -> None:
    """E38: every byte is read once, and memory stays under 200 MB."""
    desk = Desk(tmp_path.resolve(), group_max=1_000, segment_limit=8_000_000)
    with desk.open() as journal:
        for start in range(0, 100_000, 1_000):
            add(journal, *range(start, start + 1_000))
    size = sum(path.stat().st_size for path in desk.folder.glob("0*.jsonl"))

    class CountingFs(RealFs):
        taken = 0

        def read(self, fd: int, size: int) -> bytes:
            data = super().read(fd, size)
            self.taken += len(data)
            return data

    fs = CountingFs()
    report = verify_segments(fs, desk.folder)
    assert report.status is JournalStatus.INTACT
    assert report.count == 100_000 + report.segments
    assert size <= fs.taken < size + 10_000
    assert peak_megabytes(desk) < 200


def test_verifying_writes_nothing(desk: Desk) -> None:
    """E37: no mutating operation at all, with a torn tail and without."""
    for tail in (b"", b"torn"):
        with desk.rows().open("ab") as file:
            file.write(tail)
        fs = RecordingFs(RealFs())
        verify = verify_segments if desk.form == "segmented" else verify_file
        verify(fs, desk.folder if desk.form == "segmented" else desk.rows())
        assert [step for step in fs.steps if step.operation in MUTATIONS] == []
        assert fs.open_paths == []
    with desk.open() as journal:
        assert numbers(journal)
