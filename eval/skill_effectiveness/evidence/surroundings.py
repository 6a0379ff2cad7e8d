"""What a program may not take from the air: files, time, randomness, environment, identity of the process.

Only a door calls `Surroundings.real()`; every other function receives one, so that a run can be repeated and
every fault injected.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.evidence.fsops import FileSystem


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything an effect needs besides its arguments.

    Attributes:
        fs: the file operations.
        now: wall clock, aware, UTC.
        monotonic: seconds of a clock that never goes back.
        sleep: waits that many seconds of it.
        entropy: n random bytes.
        environ: the environment of the process at start.
        pid: process id.
        boot_id: the kernel's boot id, empty where the platform has none.
        host: host name.
    """

    fs: FileSystem
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    entropy: Callable[[int], bytes]
    environ: Mapping[str, str]
    pid: int
    boot_id: str
    host: str

    @classmethod
    def real(cls) -> Surroundings:
        """The process's own surroundings; called by doors only."""
        from skill_effectiveness.evidence.fsops import RealFs  # noqa: PLC0415 - keeps this module free of cycles

        fs = RealFs()
        return cls(
            fs=fs,
            now=lambda: datetime.now(UTC),
            monotonic=time.monotonic,
            sleep=time.sleep,
            entropy=os.urandom,
            environ=dict(os.environ),
            pid=os.getpid(),
            boot_id=fs.boot_id(),
            host=socket.gethostname(),
        )
