"""Plain values as TOML 1.0: the standard library reads it and does not write it."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(value: Mapping[str, object]) -> str:
    """The text of a document; what `tomllib` reads of it is the value again.

    Args:
        value: as `tomllib` gives it.

    Raises:
        ValueError: a value of a kind that TOML has not.
    """
    return "".join(f"{line}\n" for line in _table(value, ())).lstrip("\n")


def _table(value: Mapping[str, object], path: Sequence[str]) -> Iterator[str]:
    """Plain members before tables, since a member belongs to the table that was begun last."""
    for name, member in value.items():
        if not isinstance(member, dict):
            yield f"{_key(name)} = {_inline(member)}"
    for name, member in value.items():
        if isinstance(member, dict):
            deeper = (*path, name)
            yield ""
            yield f"[{'.'.join(map(_key, deeper))}]"
            yield from _table(member, deeper)


def _inline(value: object) -> str:
    if isinstance(value, dict):
        members = ", ".join(f"{_key(name)} = {_inline(member)}" for name, member in value.items())
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{', '.join(_inline(member) for member in value)}]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    raise ValueError("no value of TOML")


def _text(value: str) -> str:
    # JSON escapes everything that a basic string of TOML has to, but for this one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)
