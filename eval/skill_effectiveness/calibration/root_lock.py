"""The one lock of an artifact root: a whole `sample` or `finalize` happens under it (section 4).

So receipts are judged at rest only. Whoever finds it taken waits while the recorded holder lives; the kernel
frees the lock of a dead one.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration import receipts
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.evidence.faults import LockCode, LockError
from skill_effectiveness.evidence.lock import Holder, Lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings

SAMPLE_LOCK: Final = ".sample.lock"
LOCK_WAIT_SECONDS: Final = 3600.0
"""A running sample may hold the lock for as long as its call takes (calibration.md, section 4)."""
LOOK_SECONDS: Final = 5.0
"""How often somebody who waits looks whether the recorded holder still lives."""

_CODES: Final = {
    LockCode.LOCK_UNSAFE: CalibrationCode.ARTIFACT_ROOT_QUARANTINED,
    # Nothing to wait for: this file system cannot hold evidence, so the root has to lie on another one.
    LockCode.LOCK_UNSUPPORTED: CalibrationCode.INVALID_ARTIFACT_ROOT,
}
_PASSING: Final = CalibrationCode.SAMPLE_LOCK_UNAVAILABLE


@contextmanager
def locked(root: PrivateRoot, wait: float, action: str, *, look: float = LOOK_SECONDS) -> Iterator[None]:
    """Hold the lock of a root, with what interrupted writes of ours left there dropped.

    Args:
        root: the artifact root.
        wait: seconds to wait for another holder at most.
        action: shown to whoever waits.
        look: seconds between two looks at the recorded holder.

    Raises:
        CalibrationError: `sample_lock_unavailable`; `artifact_root_quarantined` for an unsafe lock artifact;
            `invalid_artifact_root` where the file system has no locks.
    """
    with ExitStack() as held:
        try:
            _take(held, root, wait, action, look)
        except LockError as error:
            code = next((code for lock, code in _CODES.items() if error.code is lock), _PASSING)
            raise CalibrationError(code, str(error)) from error
        receipts.sweep(root)
        yield


def _take(held: ExitStack, root: PrivateRoot, wait: float, action: str, look: float) -> None:
    """Take the lock; give up early when the same record names somebody who is gone at two looks in a row.

    One look is not enough: whoever has just taken the lock from a killed holder has not yet said so.
    """
    lock = Lock(root, SAMPLE_LOCK)
    deadline = root.around.monotonic() + wait
    suspects: list[Holder | None] = []
    while True:
        left = deadline - root.around.monotonic()
        try:
            held.enter_context(lock.hold(max(0.0, min(left, look)), action))
        except LockError as error:
            holder = lock.holder()
            if error.code is not LockCode.LOCK_BUSY or left <= look or holder in suspects:
                raise
            suspects = [] if holder is not None and lives(holder, root.around) else [holder]
        else:
            return


def lives(holder: Holder, around: Surroundings) -> bool:
    """Whether the process of a record may still be there; one of another host always may."""
    if holder.host != around.host:
        return True
    if holder.boot_id != around.boot_id:
        return False
    return not holder.process_start or around.fs.process_start(holder.pid) == holder.process_start
