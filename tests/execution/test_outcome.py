"""Words for how a child ended."""

from __future__ import annotations

import errno

import pytest

from skill_effectiveness.execution import Ended, StartFault
from skill_effectiveness.execution.outcome import start_fault


class TestWords:
    def test_the_endings(self) -> None:
        """P10: an end that nobody watched, and one that left something alive, have words of their own."""
        assert {str(ended) for ended in Ended} == {
            "exited",
            "lingered",
            "wall_timeout",
            "idle_timeout",
            "limit",
            "cancelled",
            "unstartable",
            "supervisor_lost",
            "unkilled",
        }

    @pytest.mark.parametrize(
        ("stage", "number", "fault"),
        [
            ("folder", errno.ENOENT, StartFault.FOLDER_UNUSABLE),
            ("folder", errno.EACCES, StartFault.FOLDER_UNUSABLE),
            ("exec", errno.ENOENT, StartFault.MISSING),
            ("exec", errno.ENOTDIR, StartFault.MISSING),
            ("exec", errno.EACCES, StartFault.NOT_EXECUTABLE),
            ("exec", errno.EPERM, StartFault.NOT_EXECUTABLE),
            ("exec", errno.ENOEXEC, StartFault.NOT_A_PROGRAM),
            ("exec", errno.E2BIG, StartFault.TOO_LONG),
            ("exec", errno.EAGAIN, StartFault.NO_RESOURCES),
            ("exec", errno.ENOMEM, StartFault.NO_RESOURCES),
            ("exec", errno.EMFILE, StartFault.NO_RESOURCES),
            ("exec", errno.ENFILE, StartFault.NO_RESOURCES),
            ("exec", errno.ETXTBSY, StartFault.OTHER),
            ("exec", 0, StartFault.OTHER),
        ],
    )
    def test_the_faults_of_starting(self, stage: str, number: int, fault: StartFault) -> None:
        assert start_fault(stage, number) is fault
