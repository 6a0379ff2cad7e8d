"""Every code of the file half of the room is raised by the situation it names."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence import faults
from skill_effectiveness.evidence.faults import (
    EvidenceError,
    FileCode,
    FileError,
    KeyCode,
    KeyFileError,
    LockCode,
    LockError,
    PairCode,
    PairError,
    RootCode,
    RootError,
)
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import load_public_key, load_signing_key, mac_key, new_signing_key
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.pair import load_pair, publish_pair
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from tests.support.pairs import EVIDENCE, PENDING, RESULT, load, members
from tests.support.private import out_root, surroundings

if TYPE_CHECKING:
    from skill_effectiveness.evidence.faults import Code

Situation = Callable[[Path, pytest.MonkeyPatch], object]


def failing(place: Path, operation: str, number: int, call: Callable[[PrivateRoot], object]) -> None:
    out_root(place).close()
    with out_root(place, FaultFs(RealFs(), Injection(operation, number))) as root:
        call(root)


def with_root(call: Callable[[PrivateRoot], object]) -> Situation:
    def run(place: Path, _patch: pytest.MonkeyPatch) -> None:
        with out_root(place) as root:
            root.publish("f", b"content")
            call(root)

    return run


def opening(
    path: str,
    *,
    kind: RootKind = RootKind.OUT,
    make: Callable[[Path], object] = lambda _place: None,
    checkout: str = "",
) -> Situation:
    def run(place: Path, _patch: pytest.MonkeyPatch) -> None:
        make(place)
        fence = place / checkout if checkout else None
        target = path if path.startswith(".") else place / path
        PrivateRoot.create(target, kind, around=surroundings(), checkout=fence)

    return run


def foreign(name: str, call: Callable[[FaultFs], object]) -> None:
    def about(path: str) -> bool:
        return path.endswith(f"/{name}")

    def change(status: os.stat_result) -> os.stat_result:
        return os.stat_result((*status[:4], os.geteuid() + 1, *status[5:]))

    injections = [Injection(operation, nth=0, about=about, change=change) for operation in ("lstat", "fstat")]
    call(FaultFs(RealFs(), *injections))


def no_locks(place: Path, patch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_arguments: int) -> None:
        raise OSError(number, "")

    patch.setattr(fcntl, "flock", fail)
    with out_root(place) as root, Lock(root, "l").hold(0):
        pass


def busy(place: Path, _patch: pytest.MonkeyPatch) -> None:
    with out_root(place) as root:
        root.publish("l", b"")
        with (root.path / "l").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with Lock(root, "l").hold(0):
                pass


def publish(root: PrivateRoot) -> None:
    root.publish("f", b"x")


def waiting(root: PrivateRoot) -> None:
    os.mkfifo(root.path / "p", 0o600)
    root.read("p")


def open_mode(root: PrivateRoot) -> None:
    (root.path / "f").chmod(0o644)
    root.read("f")


def linked(root: PrivateRoot) -> None:
    os.link(root.path / "f", root.path / "g")
    root.read("f")


def symlinked(root: PrivateRoot, name: str, call: Callable[[], object]) -> None:
    (root.path / name).symlink_to("f")
    call()


def rotten(place: Path, _patch: pytest.MonkeyPatch) -> None:
    fs = FaultFs(
        RealFs(), Injection("read", about=lambda path: path.endswith(PENDING[0]), change=lambda _data: b"")
    )
    with out_root(place, fs) as root:
        publish_pair(root, *members(), load=load)


def root_of_another(place: Path, _patch: pytest.MonkeyPatch) -> None:
    out_root(place).close()
    foreign("root", lambda fs: out_root(place, fs))


def file_of_another(place: Path, _patch: pytest.MonkeyPatch) -> None:
    with out_root(place) as root:
        root.publish("f", b"")
    foreign("f", lambda fs: out_root(place, fs).read("f"))


def ancestor_for_all(place: Path) -> None:
    (place / "above").mkdir()
    (place / "above").chmod(0o777)


def checkout_inside(place: Path) -> None:
    (place / "c" / "d").mkdir(parents=True)
    (place / "c").chmod(0o700)


def loose(place: Path) -> None:
    (place / "root").mkdir()
    (place / "root").chmod(0o755)


SITUATIONS: dict[Code, Situation] = {
    FileCode.NO_SPACE: lambda place, _: failing(place, "write", errno.ENOSPC, publish),
    FileCode.IO_ERROR: lambda place, _: failing(place, "fsync", errno.EIO, publish),
    FileCode.NOT_WRITABLE: lambda place, _: failing(place, "create_exclusive", errno.EROFS, publish),
    FileCode.NOT_READABLE: lambda place, _: failing(
        place, "lstat", errno.EACCES, lambda root: root.read("f")
    ),
    FileCode.MISSING: with_root(lambda root: root.read("none")),
    FileCode.NOT_REGULAR: with_root(waiting),
    FileCode.FILE_SYMLINK: with_root(lambda root: symlinked(root, "s", lambda: root.read("s"))),
    FileCode.FILE_MODE: with_root(open_mode),
    FileCode.FILE_OWNER: file_of_another,
    FileCode.FILE_LINKS: with_root(linked),
    FileCode.FILE_SIZE: with_root(lambda root: root.read("f", 1)),
    FileCode.EXISTS_DIFFERENT: with_root(lambda root: root.publish("f", b"other")),
    FileCode.NAME_FORM: with_root(lambda root: root.publish("a/b", b"")),
    FileCode.NAME_COLLISION: with_root(lambda root: root.publish("F", b"")),
    RootCode.ROOT_FORM: opening("./relative"),
    RootCode.ROOT_SYMLINK: opening("s", make=lambda place: (place / "s").symlink_to(place)),
    RootCode.ROOT_ANCESTOR: opening("above/root", make=ancestor_for_all),
    RootCode.ROOT_OWNER: root_of_another,
    RootCode.ROOT_MODE: opening("root", make=loose),
    RootCode.ROOT_IN_CHECKOUT: opening("c/root", make=checkout_inside, checkout="c"),
    RootCode.ROOT_HOLDS_CHECKOUT: opening("c", make=checkout_inside, checkout="c/d"),
    RootCode.ROOT_MISSING: opening("none", kind=RootKind.STORE),
    LockCode.LOCK_BUSY: busy,
    LockCode.LOCK_UNAVAILABLE: lambda place, patch: no_locks(place, patch, errno.ENOLCK),
    LockCode.LOCK_UNSUPPORTED: lambda place, patch: no_locks(place, patch, errno.ENOSYS),
    LockCode.LOCK_UNSAFE: with_root(
        lambda root: symlinked(root, "l", lambda: Lock(root, "l").hold(0).__enter__())
    ),
    PairCode.PAIR_INCOMPLETE: with_root(lambda root: load_pair(root, EVIDENCE, RESULT, load)),
    PairCode.PAIR_UNSAFE: with_root(
        lambda root: symlinked(root, PENDING[0], lambda: publish_pair(root, *members(), load=load))
    ),
    PairCode.PAIR_INVALID: rotten,
    KeyCode.KEY_SIZE: with_root(lambda root: mac_key(root, "f")),
    KeyCode.KEY_TYPE: lambda _place, _: load_public_key(b""),
    KeyCode.KEY_PASSPHRASE: with_root(
        lambda root: (new_signing_key(root, "k", b"right"), load_signing_key(root, "k", b"wrong"))
    ),
}

ERRORS: dict[type[StrEnum], type[EvidenceError]] = {
    FileCode: FileError,
    RootCode: RootError,
    LockCode: LockError,
    PairCode: PairError,
    KeyCode: KeyFileError,
}


def test_one_union_names_every_enum() -> None:
    """A fault of this room holds one of these codes; a caller that matches them all misses none."""
    classes = [each for each in vars(faults).values() if isinstance(each, type)]
    enums = {each for each in classes if issubclass(each, StrEnum) and each is not StrEnum}
    assert set(faults.Code.__args__) == enums


def test_no_code_is_left_out() -> None:
    """E65: the table below has every member of the five enums."""
    assert set(SITUATIONS) == {code for codes in ERRORS for code in codes}


@pytest.mark.parametrize("code", SITUATIONS)
def test_each_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: Code) -> None:
    """E58 E65: the error class of the enum, the code, a relative `where`, and a printable sentence that
    ends.
    """
    with pytest.raises(ERRORS[type(code)]) as caught:
        SITUATIONS[code](tmp_path.resolve(), monkeypatch)
    fault = caught.value.faults[0]
    assert fault.code is code
    assert not Path(fault.where).is_absolute()
    assert str(tmp_path) not in fault.code + fault.where
    assert fault.sentence.isprintable()
    assert fault.sentence.endswith((".", "!"))
