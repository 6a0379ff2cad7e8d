"""Where a key of a TOML file stands: the parser of the standard library tells no lines.

A text is taken apart into statements: as few lines as make a whole table header or key. What a statement sets
says which keys it holds.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple[str, ...]


class Statement(NamedTuple):
    """One statement: the line it begins on, the table it stands in, and the keys it sets."""

    line: int
    keys: tuple[KeyPath, ...]


def line_of(text: str, path: KeyPath) -> int | None:
    """The line on which a key, or a table, is first named; None when it is not.

    Args:
        text: a whole TOML document.
        path: names from the top; elements of arrays are passed over.
    """
    for statement in statements(text):
        if any(key[: len(path)] == path for key in statement.keys):
            return statement.line
    return None


def statements(text: str) -> Iterator[Statement]:
    """Every statement of a TOML document, in order."""
    table: KeyPath = ()
    pending: list[str] = []
    began = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not pending:
            began = number
        pending.append(line)
        try:
            said = tomllib.loads("\n".join(pending))
        except tomllib.TOMLDecodeError:
            continue
        header = pending[0].lstrip().startswith("[")
        pending = []
        keys = tuple(_keys(said, () if header else table))
        if header and keys:
            table = keys[0]
        if keys:
            yield Statement(began, keys)


def _keys(value: object, path: KeyPath) -> Iterator[KeyPath]:
    """Paths of all keys without members, elements of arrays passed over."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for each in value:
            yield from _keys(each, path)
    elif isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _keys(each, (*path, name))
    elif path:
        yield path
