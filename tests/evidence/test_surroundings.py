"""What is given to everything that must not take it from the air."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings


class TestTheRealOnes:
    def test_are_those_of_this_process(self) -> None:
        real = Surroundings.real()
        assert (real.pid, real.host, real.boot_id) == (os.getpid(), socket.gethostname(), real.fs.boot_id())
        assert real.fs.process_start(real.pid) == real.fs.process_start(os.getpid()) != ""

    def test_the_wall_clock_is_aware_and_in_utc(self) -> None:
        now = Surroundings.real().now()
        assert now.utcoffset() == timedelta(0)
        assert abs(datetime.now(UTC) - now) < timedelta(seconds=5)

    def test_sleep_is_measured_by_the_same_clock(self) -> None:
        real = Surroundings.real()
        began = real.monotonic()
        real.sleep(0.02)
        assert 0.02 <= real.monotonic() - began < 5
        assert abs(time.monotonic() - real.monotonic()) < 5

    def test_random_bytes_are_as_many_as_asked_for_and_new(self) -> None:
        entropy = Surroundings.real().entropy
        assert [len(entropy(size)) for size in (0, 1, 32)] == [0, 1, 32]
        assert entropy(32) != entropy(32)

    def test_the_environment_is_that_of_the_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What changes it later changes nothing here."""
        monkeypatch.setenv("SURROUNDINGS_TEST", "before")
        real = Surroundings.real()
        monkeypatch.setenv("SURROUNDINGS_TEST", "after")
        assert real.environ["SURROUNDINGS_TEST"] == "before"


def test_nothing_of_them_can_be_exchanged_in_place() -> None:
    real = Surroundings.real()
    with pytest.raises(FrozenInstanceError):
        real.pid = 1  # type: ignore[misc]
