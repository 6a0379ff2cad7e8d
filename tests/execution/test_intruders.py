"""A program against its supervisor: what it can find out about us there, and whose word is believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skill_effectiveness
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, Limits, run_process
from tests.support.crippled import crippled
from tests.support.intruders import STEALING
from tests.support.processes import IMPORTS, PATH, Lines, all_dead, call, family, python

if TYPE_CHECKING:
    import pytest

CHECKOUT = Path(skill_effectiveness.__file__).parents[2]
EVERYTHING = {"cwd", "exe", "environ", "maps", "mem", "fd", "copy"}

# Runs a program that spies, under a supervisor or under the process itself, as no more than a user.
SPIED_ON = """
import subprocess, sys
from tests.support.intruders import SPYING, drop_root_s_sight
from tests.support.processes import *
drop_root_s_sight()
if sys.argv[1] == "supervised":
    lines = Lines()
    call(python(SPYING), on_line=lines)
    print(*(line.decode() for line in lines))
else:
    middle = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"
    subprocess.run([*python(middle), *python(SPYING)], check=True)
"""


def spied(how: str) -> Any:  # noqa: ANN401 - JSON
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", SPIED_ON, how],
        env={**PATH, "PYTHONPATH": IMPORTS},
        check=True,
        capture_output=True,
    )
    return json.loads(done.stdout)


class TestWhatAProgramCanSee:
    def test_of_its_supervisor_is_nothing_but_its_command_line(self) -> None:
        """P9 P10: neither folder nor environment, memory or descriptors."""
        found = spied("supervised")
        assert set(found) == EVERYTHING
        assert set(found.values()) <= {1, 13}  # EPERM, EACCES

    def test_of_any_other_parent_is_everything(self) -> None:
        """Otherwise the test above proves nothing."""
        found = spied("plain")
        assert {name for name, what in found.items() if what is True} >= {
            "cwd",
            "exe",
            "environ",
            "maps",
            "fd",
        }

    def test_the_command_line_names_no_folder_of_ours(self) -> None:
        """P9: the checkout holds the known answers."""
        lines = Lines()
        source = "import os; print(open(f'/proc/{os.getppid()}/cmdline', 'rb').read().hex())"
        result = call(python(source), on_line=lines)
        words = bytes.fromhex(lines[0].decode()).removesuffix(b"\0").decode().split("\0")
        assert words[0] == str(Path(sys.executable).resolve())
        assert words[-1] == f"SKILL_EFFECTIVENESS_SUPERVISOR={result.token}"
        assert not [word for word in words if str(CHECKOUT) in word]


SESSION = "spawn(lambda: (os.setsid(), note('session'), time.sleep(60))); wait_for('session')\n"
FORGED = """
for channel in channels:
    channel.send(b"ended 0 0 0 0\\n" + proof + b" ended 0 0 0 0\\n")
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(60)
"""
# The proof in the program's environment, where the real supervisor never puts it.
LEAKING = """
def leaking(control, read=real["read_order"]):
    order = read(control)
    order.environment[b"PROOF"] = order.proof
    return order
real["read_order"] = leaking
"""


class TestWhoSaysThatTheTreeIsDead:
    def test_not_the_program_on_a_channel_it_stole(self, tmp_path: Path) -> None:
        """P10: as root it can copy the descriptor; the proof it has not."""
        source = SESSION + STEALING + "proof = b'0' * 32\nsay('answer')\n" + FORGED
        result = call(family(source, tmp_path / "pids"))
        assert (result.ended, result.exit_code, result.unkilled) == (Ended.SUPERVISOR_LOST, None, 0)
        assert all_dead(tmp_path / "pids")

    def test_nor_once_it_has_the_proof_as_well(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """P10: the supervisor did not end by itself."""
        crippled(monkeypatch, LEAKING)
        source = SESSION + STEALING + "proof = os.environb[b'PROOF']\n" + FORGED
        result = call(family(source, tmp_path / "pids"))
        assert (result.ended, result.exit_code, result.unkilled) == (Ended.SUPERVISOR_LOST, None, 0)
        assert all_dead(tmp_path / "pids")

    def test_nor_when_it_silences_the_supervisor(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P10: with the proof, and the supervisor's end of the channel shut down."""
        crippled(monkeypatch, LEAKING)
        silenced = "proof = os.environb[b'PROOF']\n" + FORGED.split("os.kill", maxsplit=1)[0]
        silenced += "    channel.shutdown(socket.SHUT_RDWR)\ntime.sleep(60)"
        result = call(family(SESSION + STEALING + silenced, tmp_path / "pids"))
        assert (result.ended, result.exit_code, result.unkilled) == (Ended.SUPERVISOR_LOST, None, 0)
        assert all_dead(tmp_path / "pids")

    def test_nor_a_supervisor_that_was_made_to_lie(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P10: we look ourselves, and what is found dies and takes the report along."""
        crippled(monkeypatch, "real['Tree'].kill = lambda self: (self._children_left(), (0, 0))[1]\n")
        result = call(family(SESSION + "say('answer')", tmp_path / "pids"))
        assert (result.ended, result.unkilled) == (Ended.SUPERVISOR_LOST, 0)
        assert result.survivors == 1
        assert all_dead(tmp_path / "pids")

    def test_nothing_is_found_after_the_truth(self, tmp_path: Path) -> None:
        result = call(family(SESSION + "say('answer')", tmp_path / "pids"))
        assert (result.ended, result.exit_code, result.survivors) == (Ended.EXITED, 0, 1)

    def test_the_proof_is_drawn_for_every_call_and_not_given_to_it(self) -> None:
        drawn: list[bytes] = []

        def draw(count: int) -> bytes:
            drawn.append(os.urandom(count))
            return drawn[-1]

        lines = Lines()
        source = "import os, sys; print(sorted(os.environ), open('/proc/self/cmdline').read())"
        result = run_process(
            python(source),
            cwd=Path("/"),
            env={},
            stdin=b"",
            limits=Limits(9),
            on_line=lines,
            around=replace(Surroundings.real(), entropy=draw),
        )
        assert result.exit_code == 0
        token, proof = drawn
        assert (result.token, len(proof)) == (token.hex(), 16)
        assert proof.hex().encode() not in b"".join(lines)
