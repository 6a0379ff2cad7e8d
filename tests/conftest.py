"""What every test may rely on, whatever started the run."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# A run started in the background or under nohup inherits ignored signals, and so would every child of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(_ignored, signal.SIG_DFL)

# Folders that tests make above private ones must not be open to a group, whatever the caller's mask.
os.umask(0o022)

# How fast a loaded machine draws examples says nothing about the code. `EXAMPLES` asks for more of them than
# an ordinary run has time for.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "50")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

OPEN = Path("/proc/self/fd")


@pytest.fixture(autouse=True)
def nothing_of_the_dead_stays_open(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A simulated death closes no folder, as the kernel does for a real one; thousands would add up."""
    before = _descriptors()
    yield
    if request.node.get_closest_marker("realcli") is not None:
        # Calls of real programs go on behind the test that began them; nobody dies there.
        return
    ours = str(tmp_path_factory.getbasetemp())
    if not any(_leads_to(fd).startswith(ours) for fd in _descriptors() - before):
        return
    # What is still to be closed when it is collected must be closed first: the number may be another's later.
    gc.collect()
    for fd in _descriptors() - before:
        with suppress(OSError):
            if _leads_to(fd).startswith(ours):
                os.close(fd)


def _leads_to(fd: int) -> str:
    try:
        return str((OPEN / str(fd)).readlink())
    except OSError:
        return ""


def _descriptors() -> set[int]:
    """What is open in this process; nothing where the system does not say."""
    try:
        return {int(one.name) for one in OPEN.iterdir()}
    except OSError:
        return set()
