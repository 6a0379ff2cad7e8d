"""Limits exist in a valid state only."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from skill_effectiveness.execution import LimitName, Limits


class TestLimits:
    def test_what_is_not_said(self) -> None:
        """F11: no idle limit unless asked for; F17: a line may have 70,000 bytes."""
        limits = Limits(220)
        assert limits.idle_seconds is None
        assert limits.line_bytes == 16 * 1024 * 1024
        assert limits.stdout_bytes == 256 * 1024 * 1024
        assert limits.stderr_bytes == 1024 * 1024

    def test_the_grace_leaves_a_call_within_two_seconds_of_its_limit(self) -> None:
        """R26: also where TERM is ignored."""
        assert Limits(1).grace_seconds < 2

    @pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
    @pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True])
    def test_a_value_that_limits_nothing(self, name: str, value: float) -> None:
        values: dict[str, Any] = {"wall_seconds": 1, name: value}
        with pytest.raises(ValueError, match=name):
            Limits(**values)

    def test_a_wall_limit_is_not_optional(self) -> None:
        values: dict[str, Any] = {"wall_seconds": None}
        with pytest.raises(ValueError, match="wall_seconds"):
            Limits(**values)

    def test_each_limit_of_output_has_its_name(self) -> None:
        """P5: limits have names, and the names are those of the fields; one is watched by the caller."""
        names = {field.name for field in dataclasses.fields(Limits)}
        assert {str(name) for name in LimitName} - {LimitName.TRACE_BYTES} == {
            name for name in names if name.endswith("_bytes")
        }
