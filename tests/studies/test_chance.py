"""Draws of a study, implemented twice."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from skill_effectiveness.evidence.canonical import draw_bytes, draws
from skill_effectiveness.studies.chance import Chance

SEED = bytes(range(32))
CHANCE = Chance(SEED)


def words(use: str, count: int) -> list[int]:
    """From the rule alone; the text of the uses below needs no escape."""
    text = '{"seed":"' + SEED.hex() + '","use":"' + use + '"}'
    stream = hashlib.shake_256(text.encode()).digest(4 * count)
    return [int.from_bytes(stream[k : k + 4], "little") for k in range(0, 4 * count, 4)]


def test_words() -> None:
    """S54: SHAKE-256 over the canonical form, little-endian words."""
    assert CHANCE.words("flip/full-off", 50).tolist() == words("flip/full-off", 50)


@given(st.sampled_from(["power", "bca/full-off", "base/t1"]), st.integers(0, 3000))
def test_both_ways_of_drawing_give_one_stream(use: str, count: int) -> None:
    """S54: word by word and all at once."""
    stream = draws(SEED, use)
    assert [next(stream) for _ in range(count)] == np.frombuffer(draw_bytes(SEED, use, count), "<u4").tolist()


def test_what_words_become() -> None:
    """S54: index, sign, u and z by their formulas."""
    drawn = words("use", 24)
    assert CHANCE.indexes("use", 4, 6).tolist() == [
        [w * 6 // 2**32 for w in drawn[6 * b : 6 * b + 6]] for b in range(4)
    ]
    assert CHANCE.signs("use", 6, 4).ravel().tolist() == [-1 if w & 1 else 1 for w in drawn]
    uniforms = [(w + 0.5) / 2**32 for w in drawn]
    assert CHANCE.uniforms("use", 24).tolist() == uniforms
    assert [CHANCE.uniform("use", place) for place in range(24)] == uniforms


@given(st.integers(0, 10**6))
def test_a_normal_number(n: int) -> None:
    """S54: the quantile, as another library computes it."""
    (word,) = words(f"base/{n}", 1)
    assert CHANCE.normal(f"base/{n}") == pytest.approx(float(ndtri((word + 0.5) / 2**32)), abs=1e-12)


def test_key() -> None:
    """K is an HMAC of the canonical form."""
    expected = hmac.digest(SEED, b'{"sample":1,"task_id":"t1","use":"task"}', "sha256")
    assert CHANCE.key({"use": "task", "sample": 1, "task_id": "t1"}) == expected


def test_a_seed_has_32_bytes_and_is_not_printed() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Chance(b"short")
    assert SEED.hex() not in repr(CHANCE)
    assert "x01" not in repr(CHANCE)
