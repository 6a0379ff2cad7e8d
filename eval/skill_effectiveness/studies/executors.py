"""Where attempts run: `concurrent.futures.Executor`, by name (studies.md section 3).

Threads suffice for agents that are programs: all a thread does is wait for them. With a cluster they wait for
its workers: `cluster.ClusterAgent` has the work of each carried out there, and the run asks an executor for
nothing but `submit` either way.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST_JOBS: Final = 256
_NAME: Final = "study-attempt"


def thread_executor(jobs: int) -> Executor:
    """An executor of this many threads.

    Args:
        jobs: attempts at a time, 1 to `MOST_JOBS`.

    Raises:
        ValueError: another number.
    """
    if not 1 <= jobs <= MOST_JOBS:
        raise ValueError(f"a run has 1 to {MOST_JOBS} jobs")
    return ThreadPoolExecutor(max_workers=jobs, thread_name_prefix=_NAME)
