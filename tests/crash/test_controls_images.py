"""Every image that a crash can leave of preparing an active control recovers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.registry import PairRegistry
from skill_effectiveness.controls.steps import prepare_root, read_preparation
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from tests.support.controls import request
from tests.support.crash_images import Image, Recording, fast_folder
from tests.support.private import listing, surroundings, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

FILES = ["active-control-claim.json", "controller-state.json", "selector-input.json"]


def prepare(base: Path, registered: bool, fs: FileSystem | None = None) -> None:  # noqa: FBT001 - two protocols
    around = surroundings(fs)
    with (
        PrivateRoot.create(base / "root", RootKind.OUT, around=around, checkout=None) as root,
        PrivateRoot.create(base / "registry", RootKind.OUT, around=around, checkout=None) as registry,
    ):
        prepare_root(root, request(), PairRegistry(registry, None) if registered else None)


def settled(base: Path, registered: bool, promised: list[Any]) -> str:  # noqa: FBT001 - likewise
    """Repeat the command on what a crash left; what it answered."""
    visible = [name for name in listing(base / "root") if not name.startswith(".")] if _made(base) else []
    # In order: a document is never there without the ones before it.
    assert visible in (FILES[:0], FILES[:1], FILES[:2], FILES)
    assert visible == FILES or not promised
    try:
        prepare(base, registered)
        answer = "prepared"
    except ControlError as error:
        answer = error.code
    with PrivateRoot.open(base / "root", RootKind.OUT, around=surroundings(), checkout=None) as root:
        read_preparation(root)
    return answer


def _made(base: Path) -> bool:
    return (base / "root").is_dir()


@pytest.mark.parametrize(("registered", "floor"), [(False, 40), (True, 60)])
def test_of_preparing(capsys: pytest.CaptureFixture[str], registered: bool, floor: int) -> None:  # noqa: FBT001 - likewise
    """E53 A6: the same command finishes the draw, or everything was there and stays."""
    answers: dict[str, int] = {}
    with fast_folder() as fast:
        base = fast / "base"
        base.mkdir(mode=0o700)
        recording = Recording(base)
        prepare(base, registered, recording.fs)
        recording.acknowledge("prepared")
        assert recording.wrong_modes == []
        seen: set[tuple[Image, int]] = set()
        for image, promised in recording.images(seen):
            # In the same place, since a registry remembers where a pair was prepared.
            shutil.rmtree(base)
            image.materialise(base)
            answer = settled(base, registered, promised)
            assert wrong_modes(base) == []
            answers[answer] = answers.get(answer, 0) + 1
    images = sum(answers.values())
    with capsys.disabled():
        print(f"\nactive-control prepare: {images} crash images {answers} ", end="")  # noqa: T201 - to be seen
    assert images >= floor
    assert set(answers) == {"prepared", ControlCode.ROOT_USED}
