"""Talking to whoever answers: one file per provider, nothing of a vendor anywhere else.

Source: providers.md.
"""

from __future__ import annotations

from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.calls import (
    RETRYABLE,
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    JudgeCall,
    ProviderErrorKind,
    StreamLimit,
    WarningCode,
)
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.errors import ProviderCode, ProviderError, ReplyError
from skill_effectiveness.providers.replies import one_json_object
from skill_effectiveness.providers.simulated import ShownTruth, SimulatedReviewer, SimulatedSettings
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage

__all__ = [
    "RETRYABLE",
    "UNKNOWN_USAGE",
    "CallKind",
    "CallOutcome",
    "CallWarning",
    "CodexProvider",
    "Ending",
    "JudgeCall",
    "Provider",
    "ProviderCode",
    "ProviderError",
    "ProviderErrorKind",
    "ReplyError",
    "ShownTruth",
    "SimulatedReviewer",
    "SimulatedSettings",
    "StreamLimit",
    "Usage",
    "WarningCode",
    "one_json_object",
]
