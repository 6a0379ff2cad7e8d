"""Whether the process that made a session is still there."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.execution.session_owner import SessionOwner
from tests.support.private import surroundings

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings


class Table(RealFs):
    """A process table with one process, 41, that began at mark 7."""

    def process_start(self, pid: int) -> str:
        return "7" if pid == 41 else ""


HERE: Surroundings = surroundings(Table(), pid=41)
LINE = (
    b'{"artifact_contract":"skill-effectiveness-session-owner-v1","boot_id":"boot","host":"host",'
    b'"pid":41,"process_start":"7"}\n'
)


class TestTheMark:
    def test_names_pid_start_boot_and_host(self) -> None:
        """F10: enough to tell this process from every later one."""
        assert SessionOwner.here(HERE).line() == LINE
        assert SessionOwner.read(LINE) == SessionOwner.here(HERE)

    def test_of_this_process_is_alive(self) -> None:
        real = replace(HERE, fs=RealFs(), pid=os.getpid())
        assert not SessionOwner.here(real).gone(real)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            LINE[:-1],
            LINE.replace(b"41", b"41.0"),
            LINE.replace(b"41", b"true"),
            LINE.replace(b"41", b"0"),
            LINE.replace(b'"host":"host",', b""),
            LINE.replace(b'"host"', b'"user":"me","host"', 1),
        ],
    )
    def test_of_another_form_is_none(self, data: bytes) -> None:
        with pytest.raises(EvidenceError):
            SessionOwner.read(data)


class TestAnOwner:
    @pytest.mark.parametrize(
        ("changed", "gone"),
        [
            ({}, False),
            ({"pid": 42}, True),  # nobody has the number
            ({"process_start": "6"}, True),  # somebody else got it
            ({"boot_id": "earlier"}, True),
            ({"boot_id": "earlier", "pid": 42}, True),
            ({"host": "other", "pid": 42}, False),
            ({"host": "other", "boot_id": "earlier"}, False),
            ({"process_start": ""}, False),
            ({"process_start": "", "boot_id": "earlier"}, False),
            ({"boot_id": "", "pid": 42}, False),
        ],
    )
    def test_is_gone_only_when_that_is_certain(self, changed: dict[str, object], gone: bool) -> None:  # noqa: FBT001 - a table
        """F10: what cannot be compared may be alive."""
        assert SessionOwner.here(HERE).model_copy(update=changed).gone(HERE) is gone

    def test_is_not_judged_without_a_boot_id(self) -> None:
        """F10: where the kernel names no boot, a number proves nothing."""
        owner = SessionOwner.here(HERE).model_copy(update={"pid": 42})
        assert not owner.gone(replace(HERE, boot_id=""))
