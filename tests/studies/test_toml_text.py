"""TOML that the standard library reads back."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.toml_text import toml_text

SCALARS = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.dates()
    | st.times()
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_it_reads_back(value: dict[str, object]) -> None:
    """S12: what was said of a task is said again."""
    assert tomllib.loads(toml_text(value)) == value


def test_the_form() -> None:
    value = {
        "version": "1.0",
        "task": {"name": "a/b"},
        "environment": {"cpus": 1.5, "env": {"A": 'x"\n\x7f'}, "list": [{"a": True}, 2]},
        "when": [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), time(3, 4)],
    }
    assert toml_text(value) == (
        'version = "1.0"\n'
        "when = [2026-01-02T03:04:05+00:00, 2026-01-02, 03:04:00]\n"
        '\n[task]\nname = "a/b"\n'
        "\n[environment]\ncpus = 1.5\nlist = [{a = true}, 2]\n"
        '\n[environment.env]\nA = "x\\"\\n\\u007f"\n'
    )


def test_what_toml_has_not() -> None:
    with pytest.raises(ValueError, match="no value of TOML"):
        toml_text({"a": None})
