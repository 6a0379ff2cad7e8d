"""Every draw of a study, from the plan's one seed (studies.md, head).

A draw has a `use`, a text such as `flip/full-off`. The words of one use never depend on those of another,
so an analysis can be repeated in any order and in parts. Where draws are made over tasks, draw `b` takes
the words `b * m` and the `m - 1` after it, one for each task, with the tasks sorted by their ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import draw_bytes, draws, mac

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

SEED_BYTES: Final = 32
_WORDS: Final = 2.0**32
_BLOCK: Final = 1_000_000
_STANDARD_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Chance:
    """The seed of one plan and what may be drawn from it.

    Args:
        seed: exactly 32 bytes; it appears in no text of this object.

    Raises:
        ValueError: a seed of another length.
    """

    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.seed) != SEED_BYTES:
            raise ValueError("the seed of a plan has 32 bytes")

    def key(self, value: object) -> bytes:
        """K(value), 32 bytes: HMAC-SHA256 of the value's canonical form under the seed.

        Raises:
            CanonicalError: the value has no canonical form.
        """
        return mac(self.seed, value)

    def uniform(self, use: str, place: int = 0) -> float:
        """The number strictly between 0 and 1 of one word of a use, counted from 0: (w + 1/2) / 2**32."""
        return (next(islice(draws(self.seed, use), place, None)) + 0.5) / _WORDS

    def normal(self, use: str) -> float:
        """The standard normal number of the first word of a use: the normal quantile of `uniform`."""
        return _STANDARD_NORMAL.inv_cdf(self.uniform(use))

    def words(self, use: str, count: int) -> NDArray[np.uint32]:
        """The first `count` words of a use, shape (count,)."""
        arrays = _arrays()
        data = draw_bytes(self.seed, use, count)
        words: NDArray[np.uint32] = arrays.frombuffer(data, dtype="<u4").astype(arrays.uint32, copy=False)
        return words

    def indexes(self, use: str, draws: int, m: int) -> NDArray[np.int32]:
        """Positions from 0 to m - 1, shape (draws, m): a word w gives floor(w * m / 2**32)."""
        arrays = _arrays()
        words = self.words(use, draws * m)
        found: NDArray[np.int32] = arrays.empty(len(words), dtype=arrays.int32)
        # A block at a time: the products need eight bytes each, all at once would be many times the result.
        for start in range(0, len(words), _BLOCK):
            block = words[start : start + _BLOCK].astype(arrays.uint64)
            block *= arrays.uint64(m)
            found[start : start + _BLOCK] = block >> arrays.uint64(32)
        return found.reshape(draws, m)

    def signs(self, use: str, draws: int, m: int) -> NDArray[np.int8]:
        """Signs, shape (draws, m): -1 where the lowest bit of the word is set, as in a sign bit, else 1."""
        arrays = _arrays()
        data = arrays.frombuffer(draw_bytes(self.seed, use, draws * m), dtype=arrays.uint8)
        lowest = (data[::4] & arrays.uint8(1)).astype(arrays.int8)
        signs: NDArray[np.int8] = arrays.int8(1) - arrays.int8(2) * lowest
        return signs.reshape(draws, m)

    def uniforms(self, use: str, count: int) -> NDArray[np.float64]:
        """Numbers strictly between 0 and 1, shape (count,): (w + 1/2) / 2**32."""
        return (self.words(use, count).astype(_arrays().float64) + 0.5) / _WORDS


def _arrays() -> ModuleType:
    """The library for arrays: loading it would be most of the time of a run that draws single numbers."""
    import numpy  # noqa: ICN001, PLC0415 - see above

    return numpy
