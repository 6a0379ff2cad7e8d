"""Talking to whoever answers: one file per provider, nothing of a vendor anywhere else.

Source: providers.md.
"""

from __future__ import annotations

from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.calls import (
    MODEL_ID,
    RETRYABLE,
    CallKind,
    CallOutcome,
    CallWarning,
    Ending,
    JudgeCall,
    ProviderErrorKind,
    ReadCall,
    StreamLimit,
    WarningCode,
    WorkCall,
)
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.errors import ProviderCode, ProviderError, ReplyError
from skill_effectiveness.providers.events import Notice, NoticeKind, TurnFailed
from skill_effectiveness.providers.replies import one_json_object
from skill_effectiveness.providers.simulated import ShownTruth, SimulatedReviewer, SimulatedSettings
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage

__all__ = [
    "MODEL_ID",
    "RETRYABLE",
    "UNKNOWN_USAGE",
    "CallKind",
    "CallOutcome",
    "CallWarning",
    "CodexProvider",
    "Ending",
    "JudgeCall",
    "Notice",
    "NoticeKind",
    "Provider",
    "ProviderCode",
    "ProviderError",
    "ProviderErrorKind",
    "ReadCall",
    "ReplyError",
    "ShownTruth",
    "SimulatedReviewer",
    "SimulatedSettings",
    "StreamLimit",
    "TurnFailed",
    "Usage",
    "WarningCode",
    "WorkCall",
    "one_json_object",
]
