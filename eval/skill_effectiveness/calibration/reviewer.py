"""Whoever is examined: an adapter, and the one way a simulated reviewer comes by its truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from skill_effectiveness.calibration.models import Simulation
from skill_effectiveness.providers import (
    CallKind,
    CodexProvider,
    Provider,
    ShownTruth,
    SimulatedReviewer,
    SimulatedSettings,
    holding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.calibration.orientation import Presentation
    from skill_effectiveness.protocol.cases import Bank


ADAPTERS: Final[Mapping[str, type[Provider]]] = holding(CallKind.JUDGE)
"""Every adapter that can be examined, by the name that stands in every record."""

CONTROLLED: Final = (CodexProvider.name,)
"""The providers whose samples an external controller may ask for, one at a time."""


def binds_configuration(adapter: type[Provider]) -> bool:
    """Whether reviewers of a provider are bound to a part of the user's own configuration as well."""
    return adapter.binding is not Provider.binding


class AdapterSource(Protocol):
    """Whoever can say who answers one sample: a `Reviewer`, or one that binds its program only then."""

    @property
    def adapter_for(self) -> Callable[[Presentation, str], Provider]:
        """See `Reviewer`; may raise ExecutableError or EvidenceError."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The party that answers.

    Attributes:
        adapter: knows the reviewer's name, labels, environment and executable.
        adapter_for: gives the adapter that answers one presentation, shown in the sample of the given id. For
            every real provider that is the adapter itself, whatever is shown; only the simulated one is built
            anew, with the truth of what it is shown.
        simulation: the settings of a simulated reviewer, None for every other.
    """

    adapter: Provider
    adapter_for: Callable[[Presentation, str], Provider]
    simulation: Simulation | None = None

    @classmethod
    def real(cls, adapter: Provider) -> Reviewer:
        """A reviewer that has no way to receive anything but the prompt."""
        return cls(adapter=adapter, adapter_for=lambda _presentation, _sample_id: adapter)

    @classmethod
    def simulated(cls, settings: SimulatedSettings, bank: Bank) -> Reviewer:
        """The simulated reviewer, who alone is handed the bank's answers."""
        truth = dict(zip(bank.case_ids, bank.truth, strict=True))

        def adapter_for(presentation: Presentation, sample_id: str) -> Provider:
            shown = [
                ShownTruth(
                    shown_label=case.label,
                    case_id=case.case_id,
                    verdict=truth[case.case_id],
                    swapped=case.swapped,
                )
                for case in presentation.shown
            ]
            return SimulatedReviewer(settings, shown, repeat=sample_id)

        simulation = Simulation.model_validate(settings.model_dump())
        return cls(adapter=SimulatedReviewer(settings), adapter_for=adapter_for, simulation=simulation)
