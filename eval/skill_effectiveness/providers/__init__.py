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
    SandboxKind,
    StreamLimit,
    WarningCode,
    WorkCall,
)
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.errors import ProviderCode, ProviderError, ReplyError
from skill_effectiveness.providers.events import Notice, NoticeKind, TurnFailed
from skill_effectiveness.providers.mount import Mount
from skill_effectiveness.providers.recording import Recording
from skill_effectiveness.providers.registry import ADAPTERS, holding
from skill_effectiveness.providers.replies import one_json_object
from skill_effectiveness.providers.simulated import ShownTruth, SimulatedReviewer, SimulatedSettings
from skill_effectiveness.providers.usage import UNKNOWN_USAGE, Usage

__all__ = [
    "ADAPTERS",
    "MODEL_ID",
    "RETRYABLE",
    "UNKNOWN_USAGE",
    "CallKind",
    "CallOutcome",
    "CallWarning",
    "CodexProvider",
    "Ending",
    "JudgeCall",
    "Mount",
    "Notice",
    "NoticeKind",
    "Provider",
    "ProviderCode",
    "ProviderError",
    "ProviderErrorKind",
    "ReadCall",
    "Recording",
    "ReplyError",
    "SandboxKind",
    "ShownTruth",
    "SimulatedReviewer",
    "SimulatedSettings",
    "StreamLimit",
    "TurnFailed",
    "Usage",
    "WarningCode",
    "WorkCall",
    "holding",
    "one_json_object",
]
