"""The JSON types of a payload at every depth, by the published request schema (bridge.md, section 6).

Only types are judged here: which values a field may have is the business of whoever reads it. Where a value
may be one of several objects, a member has to fit one of those that know it; a member that none knows is of
no type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skill_effectiveness.evidence.strict import JsonValue

_REFERENCE: Final = "#/$defs/"
_UNIONS: Final = ("anyOf", "oneOf")


class Shapes:
    """The definitions of one JSON Schema.

    Args:
        schema: as it is published.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema["$defs"]

    def misfit(self, definition: str, value: JsonValue, *, besides: Iterable[str] = ()) -> str | None:
        """Where a value has another type than it needs; None when nowhere.

        Args:
            definition: name in `$defs`.
            value: the whole of it.
            besides: members of the outermost object that are not judged.

        Returns:
            A JSON pointer of names that the schema knows.
        """
        skipped = frozenset(besides)
        if isinstance(value, dict) and skipped:
            value = {name: member for name, member in value.items() if name not in skipped}
        return self._misfit([self._definitions[definition]], value, "")

    def _misfit(self, schemas: Iterable[Any], value: JsonValue, place: str) -> str | None:
        fitting = [schema for schema in self._flat(schemas) if _is_of(schema, value)]
        if not fitting:
            return place or "/"
        if isinstance(value, dict):
            return self._first(self._members(fitting, value, place))
        if isinstance(value, list):
            items = [schema["items"] for schema in fitting if "items" in schema]
            return self._first((items, item, f"{place}/{at}") for at, item in enumerate(value) if items)
        return None

    def _first(self, parts: Iterable[tuple[list[Any], JsonValue, str]]) -> str | None:
        for schemas, value, place in parts:
            found = self._misfit(schemas, value, place)
            if found is not None:
                return found
        return None

    def _members(
        self, schemas: list[Any], value: Mapping[str, JsonValue], place: str
    ) -> Iterator[tuple[list[Any], JsonValue, str]]:
        for name, member in value.items():
            known = [schema["properties"][name] for schema in schemas if name in schema.get("properties", {})]
            others = [
                schema["additionalProperties"]
                for schema in schemas
                if isinstance(schema.get("additionalProperties"), dict)
            ]
            if known:
                yield known, member, f"{place}/{name}"
            elif others:
                yield others, member, f"{place}/*"

    def _flat(self, schemas: Iterable[Any]) -> Iterator[Any]:
        """The schemas that have no alternatives."""
        for schema in schemas:
            if "$ref" in schema:
                yield from self._flat([self._definitions[schema["$ref"].removeprefix(_REFERENCE)]])
            elif any(union in schema for union in _UNIONS):
                for union in _UNIONS:
                    yield from self._flat(schema.get(union, ()))
            else:
                yield schema


def _is_of(schema: Mapping[str, Any], value: JsonValue) -> bool:
    """Whether a value has the type of a schema, on the outside."""
    if "type" in schema:
        # By the very type: a boolean is no number.
        return type(value) in _TYPES[schema["type"]]
    if "const" in schema:
        return type(value) is type(schema["const"])
    if "enum" in schema:
        return any(type(value) is type(one) for one in schema["enum"])
    return True


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
