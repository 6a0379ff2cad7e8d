"""Permuted blocks, run orders and the commitments to them (studies.md, section 2)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.trials.allocation import (
    AllocationOrder,
    Commitment,
    Slot,
    allocate,
    commitment,
    commitments,
    commitments_hash,
    salt,
    seed_commitment,
)

ZERO = bytes(32)
FIXED, ANYTIME = AllocationOrder.FIXED, AllocationOrder.ANYTIME

seeds = st.binary(min_size=32, max_size=32)
names = st.lists(st.text("abcdefgh-0123", min_size=1, max_size=6), min_size=1, max_size=5, unique=True)
orders = st.sampled_from(AllocationOrder)


def by_hand(seed: bytes, named: dict[str, object]) -> bytes:
    """`K(o)` by the standard library; the names are ASCII, so sorted JSON is canonical."""
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return hmac.new(seed, text.encode("ascii"), hashlib.sha256).digest()


def drawn(seed: bytes, use: str, sample: int, task: str, arm: str | None = None) -> bytes:
    named: dict[str, object] = {"use": use, "sample": sample, "task_id": task}
    return by_hand(seed, named if arm is None else named | {"arm": arm})


class TestKnownAnswer:
    def test_run_order_of_the_zero_seed(self) -> None:
        """S17: t1 full off, t2 off full, t2 off full, t1 full off."""
        slots = allocate(ZERO, ["t1", "t2"], ["off", "full"], 2, FIXED)
        assert [(slot.task_id, slot.arm, slot.sample) for slot in slots] == [
            ("t1", "full", 1),
            ("t1", "off", 1),
            ("t2", "off", 1),
            ("t2", "full", 1),
            ("t2", "off", 2),
            ("t2", "full", 2),
            ("t1", "full", 2),
            ("t1", "off", 2),
        ]
        assert [slot.slot for slot in slots] == [1, 2, 3, 4, 5, 6, 7, 8]

    def test_first_commitment_of_the_zero_seed(self) -> None:
        """S17: the commitment that the specification prints."""
        slots = allocate(ZERO, ["t1", "t2"], ["off", "full"], 2, FIXED)
        assert commitments(ZERO, slots)[0] == Commitment(
            1, "sha256:b4978b5122924032edcdb5766cb87e7590abf6700f10de4b8916f88527bb71c2"
        )

    def test_seed_commitment_is_the_digest_of_the_bytes(self) -> None:
        """S17: SHA-256 of 32 zero bytes."""
        assert (
            seed_commitment(ZERO) == "sha256:66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
        )


class TestOrders:
    def test_fixed_follows_the_rule(self) -> None:
        """S17: per sample tasks by K, in each block arms by K."""
        seed = bytes(range(32))
        tasks, arms = [f"task-{n}" for n in range(5)], ["off", "full", "oracle"]
        expected = []
        for sample in (1, 2, 3):
            for task in sorted(tasks, key=partial(drawn, seed, "task", sample)):
                in_order = sorted(arms, key=partial(drawn, seed, "arm", sample, task))
                expected += [(task, arm, sample) for arm in in_order]
        slots = allocate(seed, tasks, arms, 3, FIXED)
        assert [(slot.task_id, slot.arm, slot.sample) for slot in slots] == expected

    def test_anytime_finishes_tasks_one_by_one(self) -> None:
        """S17: tasks by K with sample 0, then samples, then arms."""
        seed = bytes(range(32))
        tasks = [f"task-{n}" for n in range(6)]
        slots = allocate(seed, tasks, ["off", "full"], 3, ANYTIME)
        in_order = sorted(tasks, key=partial(drawn, seed, "task", 0))
        assert [slots[n].task_id for n in range(0, len(slots), 6)] == in_order
        for start in range(0, len(slots), 6):
            assert [slot.sample for slot in slots[start : start + 6]] == [1, 1, 2, 2, 3, 3]
            assert len({slot.task_id for slot in slots[start : start + 6]}) == 1

    @given(seeds, names, names, st.integers(1, 4), orders)
    def test_every_block_holds_every_arm_once(
        self, seed: bytes, tasks: list[str], arms: list[str], samples: int, order: AllocationOrder
    ) -> None:
        """S17: a block is all arms of one task and sample, so arms stay balanced at every block's end."""
        slots = allocate(seed, tasks, arms, samples, order)
        assert len(slots) == len(tasks) * len(arms) * samples
        for start in range(0, len(slots), len(arms)):
            block = slots[start : start + len(arms)]
            assert len({(slot.task_id, slot.sample) for slot in block}) == 1
            assert sorted(slot.arm for slot in block) == sorted(arms)
        cells = Counter((slot.task_id, slot.arm, slot.sample) for slot in slots)
        assert set(cells.values()) == {1}

    @given(seeds, names, names, orders)
    def test_order_of_the_arguments_plays_no_part(
        self, seed: bytes, tasks: list[str], arms: list[str], order: AllocationOrder
    ) -> None:
        """S17: names decide, not how they were listed."""
        slots = allocate(seed, tasks, arms, 2, order)
        assert allocate(seed, tasks[::-1], arms[::-1], 2, order) == slots
        assert allocate(seed, sorted(tasks), sorted(arms), 2, order) == slots

    def test_each_arm_comes_first_about_as_often(self) -> None:
        """S17: over 2,000 blocks within four standard errors of one half."""
        slots = allocate(bytes(range(32)), [f"t{n}" for n in range(1000)], ["off", "full"], 2, FIXED)
        first = Counter(slots[n].arm for n in range(0, len(slots), 2))
        assert abs(first["off"] - 1000) < 4 * (2000 * 0.25) ** 0.5

    def test_another_seed_gives_another_order(self) -> None:
        tasks = [f"t{n}" for n in range(20)]
        one, other = (allocate(bytes([number]) * 32, tasks, ["a", "b"], 1, FIXED) for number in (1, 2))
        assert one != other


class TestRefused:
    @pytest.mark.parametrize(
        ("seed", "tasks", "arms", "samples"),
        [
            (bytes(31), ["t"], ["a"], 1),
            (bytes(33), ["t"], ["a"], 1),
            (ZERO, [], ["a"], 1),
            (ZERO, ["t"], [], 1),
            (ZERO, ["t", "t"], ["a"], 1),
            (ZERO, ["t"], ["a", "a"], 1),
            (ZERO, ["t"], ["a"], 0),
        ],
    )
    def test_what_is_no_allocation(
        self, seed: bytes, tasks: list[str], arms: list[str], samples: int
    ) -> None:
        with pytest.raises(ValueError, match=r"seed|at least one|once"):
            allocate(seed, tasks, arms, samples, FIXED)


class TestCommitments:
    def test_follows_the_rule(self) -> None:
        """S17: the digest of slot, task, arm, sample and salt."""
        slot = Slot(3, "t1", "off", 2)
        opened = by_hand(ZERO, {"use": "salt", "slot": 3}).hex()
        assert salt(ZERO, 3) == opened
        text = f'{{"arm":"off","salt":"{opened}","sample":2,"slot":3,"task_id":"t1"}}'
        assert commitment(slot, opened) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @pytest.mark.parametrize(
        "other",
        [Slot(4, "t1", "off", 2), Slot(3, "t2", "off", 2), Slot(3, "t1", "full", 2), Slot(3, "t1", "off", 1)],
    )
    def test_every_part_is_committed_to(self, other: Slot) -> None:
        """S17: no part can be changed afterwards."""
        opened = salt(ZERO, 3)
        assert commitment(other, opened) != commitment(Slot(3, "t1", "off", 2), opened)
        assert commitment(Slot(3, "t1", "off", 2), salt(ZERO, 4)) != commitment(
            Slot(3, "t1", "off", 2), opened
        )

    def test_hash_is_over_the_rows(self) -> None:
        rows = [Commitment(1, "sha256:" + "0" * 64)]
        text = '[{"commitment":"sha256:' + "0" * 64 + '","slot":1}]'
        assert commitments_hash(rows) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
