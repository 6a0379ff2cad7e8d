"""Every draw of a study, from the plan's one seed (studies.md, head).

A draw has a `use`, a text such as `flip/full-off`. The words of one use never depend on those of another,
so an analysis can be repeated in any order and in parts. Where draws are made over tasks, draw `b` takes
the words `b * m` and the `m - 1` after it, one for each task, with the tasks sorted by their ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from skill_effectiveness.evidence.canonical import draw_bytes, mac

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED_BYTES: Final = 32
_WORDS: Final = 2.0**32
_BLOCK: Final = 1_000_000


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

    def words(self, use: str, count: int) -> NDArray[np.uint32]:
        """The first `count` words of a use, shape (count,)."""
        return np.frombuffer(draw_bytes(self.seed, use, count), dtype="<u4").astype(np.uint32, copy=False)

    def indexes(self, use: str, draws: int, m: int) -> NDArray[np.int32]:
        """Positions from 0 to m - 1, shape (draws, m): a word w gives floor(w * m / 2**32)."""
        words = self.words(use, draws * m)
        found = np.empty(len(words), dtype=np.int32)
        # A block at a time: the products need eight bytes each, all at once would be many times the result.
        for start in range(0, len(words), _BLOCK):
            block = words[start : start + _BLOCK].astype(np.uint64)
            block *= np.uint64(m)
            found[start : start + _BLOCK] = block >> np.uint64(32)
        return found.reshape(draws, m)

    def signs(self, use: str, draws: int, m: int) -> NDArray[np.int8]:
        """Signs, shape (draws, m): -1 where the lowest bit of the word is set, as in a sign bit, else 1."""
        lowest = np.frombuffer(draw_bytes(self.seed, use, draws * m), dtype=np.uint8)[::4] & np.uint8(1)
        return (np.int8(1) - np.int8(2) * lowest.astype(np.int8)).reshape(draws, m)

    def uniforms(self, use: str, count: int) -> NDArray[np.float64]:
        """Numbers strictly between 0 and 1, shape (count,): (w + 1/2) / 2**32."""
        return (self.words(use, count).astype(np.float64) + 0.5) / _WORDS

    def normals(self, use: str, count: int) -> NDArray[np.float64]:
        """Standard normal numbers, shape (count,): the normal quantile of `uniforms`."""
        return np.asarray(ndtri(self.uniforms(use, count)), dtype=np.float64)
