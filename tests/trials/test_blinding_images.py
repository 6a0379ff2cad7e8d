"""Every image of the disk that a crash may leave while a pair is blinded, shown or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.trials.blinding import BlindingRefused, JudgeInput, blind_pair, read_mapping
from skill_effectiveness.trials.leaks import LeakRules
from tests.support.blinding import PLANS, TREATMENT, sides
from tests.support.crash_images import Recording, fast_folder
from tests.support.private import out_root, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.trials.blinding import BlindOutcome

RULES = LeakRules(profile_texts=[TREATMENT])
PAIR = sides("paired-profile")
LEAKING = sides("paired-profile", off=[TREATMENT])


@pytest.fixture
def fast() -> Iterator[Path]:
    with fast_folder() as path:
        yield path


def blind(
    root: PrivateRoot, pair: tuple[BlindOutcome, BlindOutcome] = PAIR, rules: LeakRules = RULES
) -> JudgeInput:
    return blind_pair(root, PLANS["paired-profile"], *pair, rules=rules)


def names(root: PrivateRoot, below: str) -> list[str]:
    """Published names; temporaries are none."""
    if not root.exists("blinding"):
        return []
    with root.child("blinding") as blinding:
        if not blinding.exists(below):
            return []
        with blinding.child(below) as folder:
            return [name for name in folder.names() if not name.startswith(".")]


def every_image(fast: Path, recording: Recording) -> Iterator[tuple[PrivateRoot, list[Any]]]:
    assert recording.wrong_modes == []
    for number, (image, promised) in enumerate(recording.images()):
        place = fast / f"image-{number}"
        image.materialise(place)
        with out_root(place) as root:
            yield root, promised
        assert wrong_modes(place) == []


def begun(fast: Path) -> Path:
    base = fast / "base"
    base.mkdir(mode=0o700)
    out_root(base).close()
    return base


def recorded(base: Path, pair: tuple[BlindOutcome, BlindOutcome]) -> Recording:
    recording = Recording(base)
    with out_root(base, recording.fs) as root:
        try:
            recording.acknowledge(blind(root, pair))
        except BlindingRefused:
            recording.acknowledge(None)
    return recording


def test_a_judge_file_never_stands_alone(fast: Path) -> None:
    """T34: in every image a judge file has its mapping, whole, and the repeat finishes the pair."""
    images = 0
    for root, promised in every_image(fast, recorded(begun(fast), PAIR)):
        images += 1
        for name in names(root, "judge"):
            mapping = read_mapping(root, name.removesuffix(".json"))
            assert {mapping.mapping.A, mapping.mapping.B} == {"slot-2", "slot-7"}
            with root.child("blinding", "judge") as folder:
                assert json.loads(folder.read(name))["pair_id"] == mapping.pair_id
        before = names(root, "judge")
        shown = blind(root)
        assert before in ([], [f"{shown.pair_id}.json"])
        for acknowledged in promised:
            assert before
            assert acknowledged == shown
        assert names(root, "judge") == names(root, "mappings") == [f"{shown.pair_id}.json"]
    assert images >= 20


def test_a_leak_never_leaves_a_judge_file(fast: Path) -> None:
    """T33: in every image, and the repeat refuses again."""
    images = 0
    for root, promised in every_image(fast, recorded(begun(fast), LEAKING)):
        images += 1
        assert names(root, "judge") == names(root, "mappings") == []
        assert names(root, "leaks") or not promised
        with pytest.raises(BlindingRefused):
            blind(root, LEAKING)
        assert len(names(root, "leaks")) == 1
    assert images >= 12


def test_a_withdrawal_is_final(fast: Path) -> None:
    """T33: a judge file that is taken away is there until the refusal is answered, never after."""
    base = begun(fast)
    with out_root(base) as root:
        blind(root, LEAKING, LeakRules())
    for root, promised in every_image(fast, recorded(base, LEAKING)):
        assert names(root, "judge") == [] or not promised
        with pytest.raises(BlindingRefused):
            blind(root, LEAKING)
        assert names(root, "judge") == []
        assert len(names(root, "mappings")) == 1


def test_a_key_outlives_its_pairs(fast: Path) -> None:
    """T31: no image has a pair whose key is not there in full."""
    for root, _ in every_image(fast, recorded(begun(fast), PAIR)):
        if names(root, "mappings"):
            assert len(root.read("blinding.key")) == 32
