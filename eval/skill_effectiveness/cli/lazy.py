"""Commands that are loaded when they are asked for: most of a short command's time would go to the others.

A group names where each of its commands is and what a list of commands says of it:

    class _Commands(LazyGroup):
        cards = {"smoke": Card("smoke", "smoke", "Try out the trial machinery.")}

    app = typer.Typer(cls=_Commands)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

_CLI = "skill_effectiveness.cli"


@dataclass(frozen=True, slots=True)
class Card:
    """One command.

    Attributes:
        module: of `cli`, without its package.
        name: of the function, or of the `typer.Typer` that is a group, in it.
        short_help: its line in a list of commands.
    """

    module: str
    name: str
    short_help: str


class LazyGroup(TyperGroup):
    """A group that loads a command when it is asked for.

    Attributes:
        cards: its commands by the word on the command line, in the order of their list.
    """

    cards: ClassVar[Mapping[str, Card]]

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - what the framework takes
        super().__init__(**settings)
        self.commands = _Loading(self.cards)  # type: ignore[assignment] # nothing is ever added to it

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override] # noqa: ANN401 - likewise
        """The list of commands, without loading any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(word, card.short_help) for word, card in self.cards.items()])


class _Loading(Mapping[str, Any]):
    """Commands by their words, each made when it is looked up."""

    def __init__(self, cards: Mapping[str, Card]) -> None:
        self._cards = cards

    def __getitem__(self, word: str) -> Any:  # noqa: ANN401 - a command of the framework
        return _loaded(self._cards[word], word)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)


def _loaded(card: Card, word: str) -> object:
    found = getattr(import_module(f"{_CLI}.{card.module}"), card.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(word, short_help=card.short_help)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name, command.short_help = word, card.short_help
    return command


def preload(group: type[LazyGroup], words: Sequence[str]) -> None:
    """Load what the words will ask for, while a signal still ends the process without a word.

    An exception of ours in the middle of an import could be swallowed by whoever is being imported. What
    cannot be loaded is told by whoever asks for it then.
    """
    with suppress(Exception):
        for word in words:
            card = group.cards[word]
            found = getattr(import_module(f"{_CLI}.{card.module}"), card.name)
            deeper = found.info.cls if isinstance(found, typer.Typer) else None
            if not (isinstance(deeper, type) and issubclass(deeper, LazyGroup)):
                break
            group = deeper
