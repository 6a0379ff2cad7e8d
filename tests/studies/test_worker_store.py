"""What a worker keeps: begun once on a host, done until acknowledged."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.worker_store import WorkerStore
from tests.support.clusters import host_of
from tests.support.private import wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "root-" + "0" * 32
ORDER = "sha256:" + "a" * 64


def test_an_order_is_begun_once(tmp_path: Path) -> None:
    """S31: by one process of a host, and by one call of it."""
    one, two = host_of(tmp_path, "one", pid=1), host_of(tmp_path, "one", pid=2)
    with WorkerStore.open(ROOT, one) as first, WorkerStore.open(ROOT, two) as second:
        assert not first.has_begun(ORDER)
        assert [first.begin(ORDER), first.begin(ORDER), second.begin(ORDER)] == [True, False, False]
        assert second.has_begun(ORDER)
    with WorkerStore.open(ROOT, one) as again:
        assert not again.begin(ORDER)


def test_one_of_many_begins(tmp_path: Path) -> None:
    """S31: all at the same moment."""
    barrier, begun = threading.Barrier(8), []

    def begin(pid: int) -> None:
        with WorkerStore.open(ROOT, host_of(tmp_path, "one", pid=pid)) as store:
            barrier.wait(10)
            begun.append(store.begin(ORDER))

    threads = [threading.Thread(target=begin, args=(pid,)) for pid in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(begun) == [False] * 7 + [True]


def test_hosts_and_studies_are_apart(tmp_path: Path) -> None:
    """S31: another host, or another study, begins its own."""
    for host, root in (("one", ROOT), ("two", ROOT), ("one", "root-" + "1" * 32)):
        with WorkerStore.open(root, host_of(tmp_path, host)) as store:
            assert store.begin(ORDER)


def test_what_is_done_is_kept_until_it_is_acknowledged(tmp_path: Path) -> None:
    """S31: for whoever asks, as often as they ask; begun stays begun."""
    with WorkerStore.open(ROOT, host_of(tmp_path, "one")) as store:
        assert store.done(ORDER) is None
        store.begin(ORDER)
        store.finish(ORDER, b"parcel")
        assert [store.done(ORDER), store.done(ORDER)] == [b"parcel", b"parcel"]
        store.acknowledge(ORDER)
        store.acknowledge(ORDER)
        assert store.done(ORDER) is None
        assert not store.begin(ORDER)
    assert wrong_modes(tmp_path / "host-one") == []


def test_inputs_are_what_their_names_say(tmp_path: Path) -> None:
    """S30: one that was damaged is asked for again."""
    with WorkerStore.open(ROOT, host_of(tmp_path, "one")) as store:
        digest = store.keep(b"input")
        assert digest == digest_bytes(b"input")
        assert store.has(digest)
        assert store.read(digest) == b"input"
        name = digest.removeprefix("sha256:")
        next((tmp_path / "host-one").rglob(name)).write_bytes(b"other")
        assert not store.has(digest)
        assert not store.has("sha256:" + "0" * 64)
        store.keep(b"input")
        assert store.has(digest)


@pytest.mark.parametrize("operation", ["write", "fsync", "link"])
def test_a_full_disk_begins_nothing(tmp_path: Path, operation: str) -> None:
    """S31: nothing says that an order was begun, so another worker may have it, and this one later."""
    with WorkerStore.open(ROOT, host_of(tmp_path, "one")) as store:
        store.keep(b"makes the folder")
    full = FaultFs(RealFs(), Injection(operation, errno.ENOSPC))
    with (
        pytest.raises(FileError) as caught,
        WorkerStore.open(ROOT, host_of(tmp_path, "one", fs=full)) as store,
    ):
        store.begin(ORDER)
    assert caught.value.code is FileCode.NO_SPACE
    with WorkerStore.open(ROOT, host_of(tmp_path, "one")) as store:
        assert not store.has_begun(ORDER)
        assert store.begin(ORDER)
