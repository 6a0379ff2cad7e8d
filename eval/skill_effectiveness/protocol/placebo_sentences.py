"""The frozen bank of sentences that a generated placebo is made of (studies.md, head).

What they tell of a village by the water gives nobody anything to do and bears on no task. Letters, blanks and
full stops alone stand in them, so that how many tokens one has (controls.md section 5) is plain: its words,
and one more for the full stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import FrozenModel, One, read_document

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

PLACEBO_SENTENCES: Final = "fixtures/placebo-sentences.json"

_MOST: Final = 1_000
_FRAGMENT_TOKENS: Final = frozenset({1, 2})
_SENTENCE_TOKENS: Final = frozenset({3, 4, 5})

Fragment = Annotated[str, Field(pattern=r"^[a-z]+( [a-z]+)*$", max_length=200)]
Heading = Annotated[str, Field(pattern=r"^[A-Z][a-z]*( [a-z]+)*$", max_length=200)]
Sentence = Annotated[str, Field(pattern=r"^[A-Z][a-z]*( [a-z]+)+\.$", max_length=400)]


class PlaceboSentences(FrozenModel):
    """The whole bank.

    Attributes:
        fragments: where there is room for one or two tokens only.
        headings: text of headings.
        sentences: everything else.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-placebo-sentences-v1"]
    fragments: Annotated[tuple[Fragment, ...], Field(min_length=1, max_length=_MOST)]
    headings: Annotated[tuple[Heading, ...], Field(min_length=1, max_length=_MOST)]
    sentences: Annotated[tuple[Sentence, ...], Field(min_length=1, max_length=_MOST)]

    @model_validator(mode="after")
    def _every_length_can_be_made(self) -> Self:
        """Of sentences of 3, 4 and 5 tokens any number from 3 can be put together."""
        if {words_in(each) for each in self.fragments} != _FRAGMENT_TOKENS:
            raise RuleBroken("Fragments have one word or two, and there are some of each.")
        if 1 not in {words_in(each) for each in self.headings}:
            raise RuleBroken("There is a heading of one word.")
        if not {words_in(each) + 1 for each in self.sentences} >= _SENTENCE_TOKENS:
            raise RuleBroken("There are sentences of two, three and four words.")
        return self


def words_in(text: str) -> int:
    """How many words an entry of the bank has."""
    return text.count(" ") + 1


def load_placebo_sentences(fs: FileSystem) -> PlaceboSentences:
    """The frozen bank of this installation.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return read_document(fs, PLACEBO_SENTENCES, PlaceboSentences)
