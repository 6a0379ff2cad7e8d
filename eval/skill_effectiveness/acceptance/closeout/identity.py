"""The identity of an effective policy: one digest over its files and its items.

Source: closeout.md, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.words import SPEC_VERSION
from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.evidence.strict import LARGEST_INTEGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.acceptance.closeout.policy_models import ResolvedItem


def canonical_bytes(value: object) -> bytes:
    """The canonical JSON of this edition: that of RFC 8785, with safe integers as the only numbers.

    Raises:
        ValueError: a float, or an integer beyond ±(2^53-1).
        CanonicalError: the value is not made of plain JSON values.
    """
    for number in _numbers(value):
        if isinstance(number, float) or abs(number) > LARGEST_INTEGER:
            raise ValueError("canonical JSON only accepts safe integers")
    return dump(value)


def _numbers(value: object) -> Iterator[int | float]:
    match value:
        case bool():
            return
        case int() | float():
            yield value
        case dict():
            for member in value.values():
                yield from _numbers(member)
        case list():
            for member in value:
                yield from _numbers(member)
        case _:
            return


def by_code_units(path: str) -> bytes:
    """The key that sorts paths by UTF-16 code units, as member names of canonical JSON are."""
    return path.encode("utf-16-be", "surrogatepass")


def policy_digest(files: Mapping[str, str], items: Sequence[ResolvedItem]) -> str:
    """The digest text of an effective policy.

    Args:
        files: path to the 64 hex digits of the SHA-256 of its bytes, in any order.
        items: in execution order.
    """
    document = {
        "specVersion": SPEC_VERSION,
        "files": [{"path": path, "sha256": files[path]} for path in sorted(files, key=by_code_units)],
        "items": [item.identity() for item in items],
    }
    return digest_bytes(canonical_bytes(document))
