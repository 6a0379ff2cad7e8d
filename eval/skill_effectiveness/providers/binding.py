"""What a provider takes from the user's own configuration, frozen: every call of a record has the same.

Source: calibration.md sections 6 and 7; providers.md section 5.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProviderBinding:
    """What one alias meant when the configuration was read. It holds no credential and no path.

    Attributes:
        binding_type: the provider's word for this kind of binding.
        model_alias: the model that is asked for, as the user's configuration names it.
        provider_id: whom that configuration asks.
        underlying_model: the model it asks for.
        selected_config_hash: digest text of the configuration that every session gets.
    """

    binding_type: str
    model_alias: str
    provider_id: str
    underlying_model: str
    selected_config_hash: str
