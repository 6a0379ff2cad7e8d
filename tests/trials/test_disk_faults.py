"""A disk that fails at any step of preparing, checkpointing and completing; what was there stays."""

from __future__ import annotations

import errno
from itertools import count
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.models import Mode, TrialKey
from skill_effectiveness.trials.prepare import prepare
from skill_effectiveness.trials.replay import replay
from tests.support.crash_images import fast_folder
from tests.support.private import wrong_modes
from tests.support.trials import Place, cursor, order, put_lines, request

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = TrialKey("task-a", "profile-full", 1)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def places() -> Iterator[tuple[int, Place]]:
    for nth in count(1):
        with fast_folder() as folder:
            yield nth, Place(folder)


@pytest.mark.parametrize("number", ERRORS)
def test_preparing(number: int) -> None:
    """T10: refused with a code at every step, and the same call goes through afterwards."""
    steps = 0
    for nth, place in places():
        place.open().close()
        fs = FaultFs(RealFs(), Injection("*", number, nth))
        try:
            with place.open(fs) as store:
                assert prepare(store, order()).mode is Mode.CREATED
        except EvidenceError:
            steps += 1
        assert wrong_modes(place.root) == []
        made = (place.trial(KEY) / "trial.json").exists()
        with place.open() as store:
            assert prepare(store, order()).mode is (Mode.RESUME if made else Mode.CREATED)
        assert not list(place.root.rglob("*.new"))
        if not fs.injections[0].hits:
            break
    assert steps >= 20


@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("status", ["running", "completed"])
def test_moving_on(number: int, status: str) -> None:
    """T10: the old version or the new one, and never a half-completed trial."""
    steps = 0
    for nth, place in places():
        with place.open() as store:
            prepare(store, order())
        place.fill(KEY)
        wanted = place.completion(KEY) if status == "completed" else request(status, resume_cursor=cursor())
        fs = FaultFs(RealFs(), Injection("*", number, nth))
        try:
            with place.open(fs) as store:
                checkpoint(store, KEY, wanted)
        except EvidenceError:
            steps += 1
        moved = place.document(KEY)["state_version"] == 1
        with place.open() as store:
            if not moved:
                checkpoint(store, KEY, wanted)
            if status == "completed":
                replay(store, KEY)
        assert place.document(KEY)["status"] == status
        if not fs.injections[0].hits:
            break
    assert steps >= 6


def test_a_mark_that_cannot_be_written() -> None:
    """T19: a breach is answered only once it is marked; until then the disk is what is told."""
    for nth, place in places():
        with place.open() as store:
            prepare(store, order())
        place.fill(KEY)
        outside = {"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}
        put_lines(place.trial(KEY) / "access-audit.jsonl", [outside])
        fs = FaultFs(RealFs(), Injection("*", errno.ENOSPC, nth))
        with pytest.raises((EvidenceError, TrialError)) as caught, place.open(fs) as store:
            checkpoint(store, KEY, place.completion(KEY))
        if isinstance(caught.value, TrialError):
            assert (place.trial(KEY) / "breach.json").exists()
        if not fs.injections[0].hits:
            break


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_reading(number: int) -> None:
    """A file that cannot be read now is the disk's trouble and no verdict about the trial."""
    with fast_folder() as folder:
        place = Place(folder)
        with place.open() as store:
            prepare(store, order())
            place.fill(KEY)
            checkpoint(store, KEY, place.completion(KEY))
        for name in ("trial.json", "events.jsonl", "access-audit.jsonl", "result.json"):
            failing = Injection("open_read", number, about=lambda path, name=name: path.endswith(name))  # type: ignore[misc]
            with place.open(FaultFs(RealFs(), failing)) as store, pytest.raises(EvidenceError):
                replay(store, KEY)
