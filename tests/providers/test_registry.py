"""The one list of adapters."""

from __future__ import annotations

import pytest

from skill_effectiveness.acceptance.closeout.review import REVIEWERS
from skill_effectiveness.calibration import reviewer
from skill_effectiveness.providers import ADAPTERS, CallKind, Provider, family_of, holding


def concrete(kind: type[Provider] = Provider) -> set[type[Provider]]:
    """Every adapter of the package that could be made."""
    found = {each for below in kind.__subclasses__() for each in (below, *concrete(below))}
    return {
        each for each in found if each.__module__.startswith("skill_effectiveness.") and hasattr(each, "name")
    }


def test_names_every_adapter_once_by_its_own_name() -> None:
    """P13: a new adapter that is not in the list can be used by nobody."""
    assert list(ADAPTERS) == ["codex", "claude", "opencode", "kimi", "command", "simulated"]
    assert all(name == adapter.name for name, adapter in ADAPTERS.items())
    assert set(ADAPTERS.values()) == concrete()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (CallKind.JUDGE, ["codex", "claude", "opencode", "kimi", "simulated"]),
        (CallKind.READ, ["codex", "claude", "opencode", "kimi", "command"]),
        (CallKind.WORK, ["codex", "claude", "opencode", "kimi", "command"]),
    ],
)
def test_says_who_holds_a_kind_of_call(kind: CallKind, names: list[str]) -> None:
    """P13 P14: a program without an adapter never judges, and a simulated reviewer does nothing else."""
    assert list(holding(kind)) == names


def test_examinations_and_reviews_take_it_from_there() -> None:
    """P13: neither has a list of its own."""
    assert dict(reviewer.ADAPTERS) == dict(holding(CallKind.JUDGE))
    assert dict(REVIEWERS) == dict(holding(CallKind.READ))


@pytest.mark.parametrize(
    ("provider", "model", "family"),
    [
        ("codex", "model-1", None),
        ("claude", "claude-1", "claude"),
        ("opencode", "anthropic/claude-1", "anthropic"),
        ("opencode", "router/vendor/model", "router"),
        ("opencode", "alone", None),
        ("kimi", "alias", "moonshot"),
        ("simulated", "sim-1", "simulated"),
    ],
)
def test_families(provider: str, model: str, family: str | None) -> None:
    """R32: any id, a word of the provider's, or whom its model asks."""
    assert family_of(provider, model) == family


def test_an_unknown_provider_has_none() -> None:
    with pytest.raises(KeyError):
        family_of("nobody", "model")
