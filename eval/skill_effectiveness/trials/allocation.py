"""Which trial runs when: permuted blocks drawn from a seed, and commitments that hide the arms until then.

Source: studies.md section 2, "Allocation". A block holds every arm of one task and sample once. All chance is
`K(o)` = HMAC-SHA256(seed, canonical bytes of `o`), so whoever has the seed gets the same order again, and
whoever has a slot's commitment alone learns nothing before its salt is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, mac

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED_BYTES: Final = 32
# `anytime` draws the order of tasks once, as if for a sample before the first.
_ONCE: Final = 0


class AllocationOrder(StrEnum):
    """In which order blocks follow each other."""

    FIXED = "fixed"
    """Every task once, in an order drawn for each sample; then the next sample."""
    ANYTIME = "anytime"
    """All samples of one task, then the next task, so that whole tasks finish one by one."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in the run order.

    Attributes:
        slot: 1 and on, without a gap.
        task_id: of the task.
        arm: as the caller named it.
        sample: 1 and on.
    """

    slot: int
    task_id: str
    arm: str
    sample: int


@dataclass(frozen=True, slots=True)
class Commitment:
    """What is published of a slot beforehand."""

    slot: int
    commitment: str


def allocate(
    seed: bytes, tasks: Sequence[str], arms: Sequence[str], samples: int, order: AllocationOrder
) -> tuple[Slot, ...]:
    """The run order; the order in which tasks and arms are given does not matter.

    Args:
        seed: exactly `SEED_BYTES` bytes: random, or out of a fixture where the order is public.
        tasks: ids, each once.
        arms: names, each once.
        samples: repeats of every task and arm, at least 1.
        order: of the blocks.

    Returns:
        `len(tasks) * len(arms) * samples` slots, block after block.

    Raises:
        ValueError: a seed of another length, no task, arm or sample, or one named twice.
    """
    _demand_arguments(seed, tasks, arms, samples)
    blocks = _blocks(seed, tasks, samples, order)
    trials = [
        (task_id, arm, sample) for task_id, sample in blocks for arm in _arms(seed, task_id, sample, arms)
    ]
    return tuple(
        Slot(number, task_id, arm, sample) for number, (task_id, arm, sample) in enumerate(trials, start=1)
    )


def salt(seed: bytes, slot: int) -> str:
    """The 64 hex digits that open the commitment of a slot: `K({use: "salt", slot})`."""
    return mac(seed, {"use": "salt", "slot": slot}).hex()


def commitment(slot: Slot, opened: str) -> str:
    """`H({slot, task_id, arm, sample, salt})`.

    Args:
        slot: what is committed to.
        opened: its salt, 64 hex digits.
    """
    held = {
        "slot": slot.slot,
        "task_id": slot.task_id,
        "arm": slot.arm,
        "sample": slot.sample,
        "salt": opened,
    }
    return digest_object(held)


def commitments(seed: bytes, slots: Sequence[Slot]) -> tuple[Commitment, ...]:
    """What is published of a run order before it begins, in its order."""
    return tuple(Commitment(slot.slot, commitment(slot, salt(seed, slot.slot))) for slot in slots)


def commitments_hash(published: Sequence[Commitment]) -> str:
    """`H` of the rows `{slot, commitment}` as a list."""
    return digest_object([{"slot": row.slot, "commitment": row.commitment} for row in published])


def seed_commitment(seed: bytes) -> str:
    """The digest of the seed's bytes, published beforehand so that the seed can be checked when it is."""
    return digest_bytes(seed)


def _blocks(seed: bytes, tasks: Sequence[str], samples: int, order: AllocationOrder) -> list[tuple[str, int]]:
    """Task and sample of every block in order."""
    numbers = range(1, samples + 1)
    if order is AllocationOrder.FIXED:
        return [(task_id, sample) for sample in numbers for task_id in _tasks(seed, sample, tasks)]
    return [(task_id, sample) for task_id in _tasks(seed, _ONCE, tasks) for sample in numbers]


def _tasks(seed: bytes, sample: int, tasks: Sequence[str]) -> list[str]:
    return sorted(tasks, key=lambda task_id: mac(seed, {"use": "task", "sample": sample, "task_id": task_id}))


def _arms(seed: bytes, task_id: str, sample: int, arms: Sequence[str]) -> list[str]:
    def drawn(arm: str) -> bytes:
        return mac(seed, {"use": "arm", "sample": sample, "task_id": task_id, "arm": arm})

    return sorted(arms, key=drawn)


def _demand_arguments(seed: bytes, tasks: Sequence[str], arms: Sequence[str], samples: int) -> None:
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has exactly {SEED_BYTES} bytes")
    if samples < 1:
        raise ValueError("an allocation has at least one sample")
    for what, names in (("task", tasks), ("arm", arms)):
        if not names:
            raise ValueError(f"an allocation has at least one {what}")
        if len(set(names)) != len(names):
            raise ValueError(f"an allocation names every {what} once")
