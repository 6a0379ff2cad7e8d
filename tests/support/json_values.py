"""Plain JSON values for property tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from hypothesis.strategies import SearchStrategy

LARGEST = 2**53 - 1

# Reserved code points are read by nobody, half surrogate pairs are written by nobody.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: not any(ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF for char in text)
)
whole = st.integers(-LARGEST, LARGEST)
broken = st.floats(-LARGEST, LARGEST, allow_nan=False).map(lambda number: number + 0.0)
scalars = st.none() | st.booleans() | whole | broken | texts
json_values: SearchStrategy[object] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)

_ALPHABETS = (
    "abcXYZ 0189",
    '\x00\x08\t\n\x0b\x0c\r\x1f"\\/',
    "\x7f\x80\x85\xa0éß",
    "\u2028\u2029\ud7ff\ue000\ufb33",
    "\U0001f600\U00010000\U0010fffd",
)


def some_text(random: Random) -> str:
    """A text over one or several alphabets that encoders treat differently."""
    alphabet = "".join(random.sample(_ALPHABETS, random.randint(1, 2)))
    return "".join(random.choices(alphabet, k=random.randint(0, 8)))


def some_value(random: Random, depth: int = 4) -> object:
    """A plain JSON value; cheaper than a strategy where thousands are needed."""
    scalar_makers: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: random.random() < 0.5,
        lambda: random.randint(-LARGEST, LARGEST),
        lambda: random.randint(-9, 9),
        lambda: random.uniform(-1, 1) * 10.0 ** random.randint(-320, 300),
        lambda: float(random.randint(-99, 99)),
        lambda: some_text(random),
        lambda: some_text(random),
    )
    kind = random.random()
    if depth == 0 or kind < 0.5:
        return random.choice(scalar_makers)()
    size = random.randint(0, 4)
    if kind < 0.75:
        return [some_value(random, depth - 1) for _ in range(size)]
    return {some_text(random): some_value(random, depth - 1) for _ in range(size)}
