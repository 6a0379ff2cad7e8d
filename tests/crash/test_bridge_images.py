"""Every image that a crash can leave of a checkpoint with receipt recovers.

The image lies where the protocol was recorded, because the request, whose digest its receipt holds, names
that place.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Bridge
from tests.support.bridge_room import Room
from tests.support.crash_images import Recording, fast_folder
from tests.support.private import wrong_modes
from tests.support.trials import cursor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


KEY = TrialKey("task-a", "profile-full", 1)
FLOORS = {"checkpoint": 25, "prepare": 45, "first": 60}


@pytest.fixture
def fast() -> Iterator[Path]:
    with fast_folder() as path:
        yield path


@pytest.mark.parametrize("protocol", FLOORS)
def test_of_a_request_with_receipt(fast: Path, capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    """B35 E53: the same request gives the answer that was promised, and the state moved once."""
    base = fast / "base"
    base.mkdir(mode=0o700)
    (base / "root").mkdir(mode=0o700)
    bridge = Bridge(fast, fast)
    bridge.root = base / "root"
    bridge.place.root = bridge.root
    if protocol != "first":
        assert Room().ask(bridge.prepare("p"))[0] == "ok"
    request = (
        bridge.checkpoint(KEY, "running", "k", resume_cursor=cursor(7, tokens=3), expected_state_version=0)
        if protocol == "checkpoint"
        else bridge.prepare("k", sample_index=2)
    )
    recording = Recording(base)
    word, result = Room(fs=recording.fs).ask(request)
    assert word == "ok"
    recording.acknowledge(result)
    assert recording.wrong_modes == []
    images = 0
    for image, promised in recording.images():
        images += 1
        shutil.rmtree(base)
        image.materialise(base)
        judge(bridge, request, result, promised, images)
    with capsys.disabled():
        print(f"\n{protocol} with receipt: {images} crash images ", end="")  # noqa: T201 - to be seen
    assert images >= FLOORS[protocol]


def judge(
    bridge: Bridge, request: dict[str, Any], result: dict[str, Any], promised: list[Any], number: int
) -> None:
    """Send the same request again, and once more."""
    assert wrong_modes(bridge.root) == []
    word, found = Room().ask(request)
    assert word == "ok", number
    replayed = found.pop("replayed_receipt")
    assert replayed or not promised, number
    wanted = {name: value for name, value in result.items() if name != "replayed_receipt"}
    assert found == wanted, number
    assert Room().ask(request)[1]["replayed_receipt"] is True
    if request["action"] == "checkpoint":
        assert bridge.place.document(KEY)["state_version"] == 1
        assert bridge.place.document(KEY)["resume_cursor"] == cursor(7, tokens=3)
    assert list((bridge.root / "bridge-receipts" / "intents").iterdir()) == []
