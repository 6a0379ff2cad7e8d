"""From an engine profile to a bound adapter, or the reason why it is not available.

Source: milestone.md, section 7, Engines; providers.md P13, P14.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.execution.programs import find_tool
from skill_effectiveness.providers import Provider, ProviderError
from skill_effectiveness.providers.command import PROMPT_WORD, CommandProvider, CommandSettings
from skill_effectiveness.providers.registry import ADAPTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.providers import CallKind

Binder: TypeAlias = Callable[[EngineProfile, Surroundings], Provider]
"""Gives the adapter of a profile, bound to its program."""


class EngineUnavailableError(Exception):
    """A profile cannot be asked now; the text says why, without a path."""


def bind_registered(profile: EngineProfile, around: Surroundings) -> Provider:
    """The registered adapter of a profile, bound to the profile's program or the one on PATH.

    Raises:
        EngineUnavailableError: there is no such adapter, or no such program.
        ExecutableError, ProviderError: as `Provider.at`.
    """
    adapter = ADAPTERS.get(profile.adapter)
    if adapter is None:
        raise EngineUnavailableError(f"{profile.name}: there is no adapter {profile.adapter}")
    word = profile.argv[0] if profile.argv else profile.adapter
    program = Path(profile.program) if profile.program else find_tool(word, around)
    if program is None:
        raise EngineUnavailableError(f"{profile.name}: there is no such program")
    if issubclass(adapter, CommandProvider):
        settings = CommandSettings((profile.argv or (word, PROMPT_WORD))[1:])
        return CommandProvider.configured(program, settings, around=around)
    return adapter.at(program, around=around)


def available(profile: EngineProfile, kind: CallKind, binder: Binder, around: Surroundings) -> Provider:
    """The adapter of a profile, if it can be asked now.

    Raises:
        EngineUnavailableError: it cannot.
    """
    try:
        provider = binder(profile, around)
        provider.require(kind)
        provider.check_login(around)
    except (ExecutableError, ProviderError, EvidenceError) as error:
        raise EngineUnavailableError(f"{profile.name}: {error.code}") from error
    return provider


def first_available(
    profiles: Iterable[EngineProfile], kind: CallKind, binder: Binder, around: Surroundings
) -> tuple[EngineProfile, Provider] | None:
    """The first of these profiles that can be asked now, with its adapter."""
    for profile in profiles:
        try:
            return profile, available(profile, kind, binder, around)
        except EngineUnavailableError:
            continue
    return None
