"""One line on standard output, whatever else writes there; requests and answers over broken pipes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.launch import wire as wires
from skill_effectiveness.launch.faults import UndeliverableError
from skill_effectiveness.launch.wire import Wire
from tests.support.doors import PATIENCE, SWITCHES, House

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


class TestAChattyLibrary:
    def test_cannot_break_the_wire(self, house: House) -> None:
        """F53: prints at import and later, raw writes, children and what is left in a buffer."""
        house.distribution(
            "rfc8785", {"rfc8785.py": b"import os\nprint('third')\nos.write(1, b'raw third\\n')\n"}
        )
        house.write("evidence/loud.py", "print('own')\n")
        house.door(
            before="print('top')\nimport rfc8785\nimport skill_effectiveness.evidence.loud\n",
            body="import subprocess, warnings\n"
            "warnings.warn('careful')\n"
            "os.write(1, b'raw\\n')\n"
            "os.system('echo shell')\n"
            "subprocess.run(['echo', 'child'], check=True)\n"
            "sys.stdout.write('left in the buffer')\n"
            "sys.stdout.buffer.write(b'bytes')\n"
            "sys.__stdout__.flush()\n"
            "print('last', end='')",
        )
        answer = house.run(stdin=b"?", environment={"PATH": os.environ["PATH"]}, switches=())
        assert answer.found["request"] == "?"
        for word in (
            "top",
            "third",
            "raw third",
            "own",
            "careful",
            "raw",
            "shell",
            "child",
            "buffer",
            "last",
        ):
            assert word in answer.stderr

    def test_cannot_reach_the_wire_through_a_child(self, house: House) -> None:
        """F53: no descriptor of it is inherited, also where the child is given every one there is."""
        house.door(
            "import subprocess\n"
            "listed = subprocess.run(['ls', '-l', '/proc/self/fd'], close_fds=False, check=True,\n"
            "                        stdout=subprocess.PIPE, env=dict(started.environ)).stdout.decode()\n"
            "found['child'] = listed\n"
            "found['wire'] = os.readlink(f'/proc/self/fd/{started.wire._answers}')"
        )
        found = house.run(environment={"PATH": os.environ["PATH"]}).found
        assert found["wire"].startswith("pipe:")
        assert found["wire"] not in found["child"]

    def test_a_refusal_is_one_line_too(self, house: House) -> None:
        house.door(before="print('top'); import os; os.write(1, b'raw\\n')\nraise KeyError('secret')\n")
        answer = house.run()
        assert "top" in answer.stderr
        assert "secret" not in answer.stderr
        answer.refused("internal_error")


class TestDescriptors:
    def test_without_standard_input_the_request_is_empty(self, house: House) -> None:
        assert house.shell("exec $python $door <&-").found["request"] == ""

    @pytest.mark.parametrize("switches", ["", "-I -B -X utf8"])
    def test_without_standard_output_the_answer_is_known_to_be_lost(
        self, house: House, switches: str
    ) -> None:
        answer = house.shell(f"exec $python {switches} $door >&-")
        assert (answer.exit_code, answer.stdout) == (4, b"")
        assert "internal_error: The answer cannot be written" in answer.stderr

    def test_without_standard_error_nothing_is_missing(self, house: House) -> None:
        house.door("print('chatty'); found['two'] = os.readlink('/proc/self/fd/2')")
        assert house.shell("exec $python $door 2>&-").found["two"] == "/dev/null"

    def test_without_any_the_tree_is_not_touched(self, house: House) -> None:
        """No file of ours gets their numbers."""
        before = house.run().found["manifest"]
        assert house.shell("exec $python $door <&- >&- 2>&-").exit_code == 4
        assert house.run().found["manifest"] == before

    def test_a_standard_input_that_cannot_be_read_is_a_refusal(self, house: House) -> None:
        told = house.shell("exec $python $door 0>/dev/null").refused("internal_error")
        assert "The request cannot be read" in told

    def test_a_full_device_as_standard_output_is_a_refusal(self, house: House) -> None:
        answer = house.shell("exec $python $door >/dev/full")
        assert answer.exit_code == 4
        assert "The answer cannot be written" in answer.stderr

    def test_nobody_who_listens_to_stderr_changes_nothing(self, house: House) -> None:
        """The interpreter would end with 120 when it cannot empty its streams."""
        house.door("sys.stdout.write('x' * 100)")
        nobody, theirs = os.pipe()
        os.close(nobody)
        done = subprocess.run(  # noqa: S603 - our own command
            [str(house.python), *SWITCHES, str(house.door_file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            check=False,
            timeout=PATIENCE,
        )
        os.close(theirs)
        assert json.loads(done.stdout)["flags"] == [1, 1, 1]
        assert done.returncode == 0

    def test_a_reader_that_takes_its_time_gets_all_of_it(self, house: House) -> None:
        """Through a pipe that does not block, of far less than the answer."""
        house.door("found['long'] = 'x' * 1_000_000")
        mine, theirs = os.pipe()
        os.set_blocking(theirs, False)
        with subprocess.Popen(  # noqa: S603 - our own command
            [str(house.python), *SWITCHES, str(house.door_file)], stdin=subprocess.DEVNULL, stdout=theirs
        ) as process:
            os.close(theirs)
            time.sleep(0.3)
            with os.fdopen(mine, "rb") as file:
                answer = file.read()
            assert process.wait(PATIENCE) == 0
        assert len(json.loads(answer)["long"]) == 1_000_000

    def test_a_reader_that_left_is_told_about(self, house: House) -> None:
        house.door("found['long'] = 'x' * 1_000_000")
        with subprocess.Popen(  # noqa: S603 - our own command
            [str(house.python), *SWITCHES, str(house.door_file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            told = process.stderr.read()
            assert process.wait(PATIENCE) == 4
        assert told == b"internal_error: The answer cannot be written (Broken pipe).\n"


class TestARequest:
    @pytest.mark.parametrize(
        ("given", "read"), [(0, 0), (1, 1), (999, 999), (1000, 1000), (1001, 1001), (200_000, 1001)]
    )
    def test_is_read_up_to_one_byte_too_many(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: int, read: int
    ) -> None:
        (tmp_path / "request").write_bytes(b"x" * given)
        number = os.open(tmp_path / "request", os.O_RDONLY)
        monkeypatch.setattr(wires, "STDIN", number)
        assert len(Wire(answers=-1).request(1000)) == read
        os.close(number)

    def test_in_parts_is_waited_for(self, monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> None:
        """Also on a pipe that does not block."""
        mine, theirs = pipe
        os.set_blocking(mine, False)
        monkeypatch.setattr(wires, "STDIN", mine)

        def write() -> None:
            for part in (b"one ", b"two ", b"three"):
                time.sleep(0.02)
                os.write(theirs, part)
            os.close(theirs)

        writer = threading.Thread(target=write)
        writer.start()
        assert Wire(answers=-1).request(1000) == b"one two three"
        writer.join()


class TestAnAnswer:
    def test_that_cannot_leave_counts_as_spoken(self, pipe: tuple[int, int]) -> None:
        """Half of a line may be out, so no second one may follow."""
        os.close(pipe[0])
        wire = Wire(answers=pipe[1])
        assert not wire.spoken
        with pytest.raises(UndeliverableError, match="cannot be written"):
            wire.send(b"x\n")
        assert wire.spoken

    def test_leaves_in_pieces(self, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        mine, theirs = pipe
        real = os.write
        monkeypatch.setattr(os, "write", lambda number, data: real(number, bytes(data[:3])))
        Wire(answers=theirs).send(b"0123456789\n")
        assert os.read(mine, 100) == b"0123456789\n"

    def test_that_nobody_reads_is_given_up_when_asked_to(self, pipe: tuple[int, int]) -> None:
        """What fits into the pipe is out by then, and nothing more."""
        asked: list[int] = []

        def given_up() -> bool:
            asked.append(1)
            return len(asked) == 2

        with pytest.raises(UndeliverableError, match="a signal ended the waiting"):
            Wire(answers=pipe[1]).send(b"x" * 200_000, given_up)
        assert 0 < len(os.read(pipe[0], 200_000)) < 200_000

    def test_that_is_read_slowly_is_not_given_up(self, pipe: tuple[int, int]) -> None:
        """A reader that takes its time is no reader that left."""
        mine, theirs = pipe
        read: list[bytes] = []

        def slowly() -> None:
            time.sleep(0.15)
            while sum(map(len, read)) < 200_000:
                read.append(os.read(mine, 65_536))

        reader = threading.Thread(target=slowly)
        reader.start()
        Wire(answers=theirs).send(b"x" * 200_000)
        reader.join()
        assert b"".join(read) == b"x" * 200_000

    def test_when_no_descriptor_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none_left(_number: int) -> int:
            raise OSError(24, "Too many open files")

        monkeypatch.setattr(os, "dup", none_left)
        with pytest.raises(UndeliverableError, match="cannot be set apart"):
            Wire.open()
