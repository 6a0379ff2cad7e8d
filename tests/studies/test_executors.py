"""Where attempts run, and how a run is told to end."""

from __future__ import annotations

from concurrent.futures import Executor

import pytest

from skill_effectiveness.studies.executors import MOST_JOBS, thread_executor
from skill_effectiveness.studies.halting import Halt


def test_threads_are_an_executor() -> None:
    """Anything with `submit` could take their place."""
    with thread_executor(2) as executor:
        assert isinstance(executor, Executor)
        assert executor.submit(lambda: 41 + 1).result() == 42


@pytest.mark.parametrize("jobs", [0, -1, MOST_JOBS + 1])
def test_a_number_of_jobs_that_is_none(jobs: int) -> None:
    """One at least, and no more than a machine can hold."""
    with pytest.raises(ValueError, match="jobs"):
        thread_executor(jobs)


def test_once_drains_and_twice_stops() -> None:
    """S25: further requests change nothing."""
    halt = Halt()
    seen = [(halt.draining(), halt.stopping())]
    for _ in range(3):
        halt.request()
        seen.append((halt.draining(), halt.stopping()))
    assert seen == [(False, False), (True, False), (True, True), (True, True)]


def test_stopping_at_once() -> None:
    """For whoever cannot ask twice."""
    halt = Halt()
    halt.stop()
    assert (halt.draining(), halt.stopping()) == (True, True)
