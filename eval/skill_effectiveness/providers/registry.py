"""Every adapter there is, by the name that stands in every record.

Source: providers.md P13. The only list: examinations, reviews, studies and the command line choose from it by
the kind of call they need.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.command import CommandProvider
from skill_effectiveness.providers.kimi import KimiProvider
from skill_effectiveness.providers.opencode import OpenCodeProvider
from skill_effectiveness.providers.simulated import SimulatedReviewer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.providers.base import Provider
    from skill_effectiveness.providers.calls import CallKind

_ALL: Final[tuple[type[Provider], ...]] = (
    CodexProvider,
    ClaudeProvider,
    OpenCodeProvider,
    KimiProvider,
    CommandProvider,
    SimulatedReviewer,
)

ADAPTERS: Final[Mapping[str, type[Provider]]] = MappingProxyType({adapter.name: adapter for adapter in _ALL})
"""Adapter class by provider name."""


_FAMILY_IN_MODEL: Final = frozenset({OpenCodeProvider.name})
"""Providers whose model ids begin with whom they ask: that is the family."""


def family_of(provider: str, model: str) -> str | None:
    """The family of reviewers that a provider asks with this model; `None` when the caller may name any.

    Raises:
        KeyError: there is no such provider.
    """
    whom, named, _ = model.partition("/")
    return whom if named and provider in _FAMILY_IN_MODEL else ADAPTERS[provider].family


def holding(kind: CallKind) -> Mapping[str, type[Provider]]:
    """The adapters that hold one kind of call, by name."""
    return MappingProxyType({name: each for name, each in ADAPTERS.items() if kind in each.call_kinds})
