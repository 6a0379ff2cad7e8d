"""Text of the frozen bank in any wanted number of tokens, drawn from a seed (studies.md, head).

Where a place cannot have the number of tokens that it should, what is missing is owed to the next one, so the
sum comes right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.controls.structure import counts
from skill_effectiveness.evidence.canonical import draws
from skill_effectiveness.protocol.placebo_sentences import words_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skill_effectiveness.protocol.placebo_sentences import PlaceboSentences

_WORDS: Final = 32
_SHORTEST_SENTENCE: Final = 3


class Prose:
    """A stream of text; the same bank, seed and calls give the same."""

    def __init__(self, bank: PlaceboSentences, seed: bytes, use: str) -> None:
        """Begin a stream.

        Args:
            bank: every piece of it.
            seed: any bytes.
            use: tells the streams of one seed apart.
        """
        self._words = draws(seed, use)
        self._fragments = _Pieces(bank.fragments, words_in, 1)
        self._headings = _Pieces(bank.headings, words_in, 1)
        self._sentences = _Pieces(bank.sentences, lambda text: words_in(text) + 1, _SHORTEST_SENTENCE)
        self._owed = 0

    def owe(self, tokens: int) -> None:
        """Let the next text be longer, or shorter where the number is below 0."""
        self._owed += tokens

    def sentences(self, tokens: int) -> str:
        """Whole sentences; a fragment where there is no room for one."""
        wanted = self._wanted(tokens)
        pieces = self._sentences if wanted >= _SHORTEST_SENTENCE else self._fragments
        return self._drawn(pieces, wanted)

    def heading(self, tokens: int) -> str:
        """Text of a heading."""
        return self._drawn(self._headings, self._wanted(tokens))

    def _wanted(self, tokens: int) -> int:
        wanted = max(1, tokens + self._owed)
        self._owed += tokens - wanted
        return wanted

    def _drawn(self, pieces: _Pieces, tokens: int) -> str:
        drawn = []
        while tokens:
            fitting = pieces.fitting(tokens)
            size, text = fitting[next(self._words) * len(fitting) >> _WORDS]
            drawn.append(text)
            tokens -= size
        return " ".join(drawn)


class _Pieces:
    """Texts with their tokens; `shortest` is the least number that some of them come to."""

    def __init__(self, texts: Iterable[str], tokens: Callable[[str], int], shortest: int) -> None:
        self._sized = [(tokens(text), text) for text in texts]
        self._shortest = shortest
        self._longest = max(size for size, _ in self._sized)
        self._known: dict[int, list[tuple[int, str]]] = {}

    def fitting(self, left: int) -> list[tuple[int, str]]:
        """Those that may come next: what they leave is nothing, or can be made of others."""
        left = min(left, self._longest + self._shortest)
        if left not in self._known:
            self._known[left] = [
                (size, text) for size, text in self._sized if size == left or left - size >= self._shortest
            ]
        return self._known[left]


def tokens_in(text: str) -> int:
    """The tokens of a text, as controls.md section 5 counts them."""
    return counts(text).token_count
