"""Talking to whoever answers: one file per provider, nothing of a vendor anywhere else.

Source: providers.md.
"""

from __future__ import annotations

from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.binding import ProviderBinding
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
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.codex import CodexProvider
from skill_effectiveness.providers.command import CommandProvider, CommandSettings
from skill_effectiveness.providers.errors import ProviderCode, ProviderError, ReplyError
from skill_effectiveness.providers.events import Notice, NoticeKind, TurnFailed
from skill_effectiveness.providers.launch import Launch, LaunchShape, Treatment
from skill_effectiveness.providers.mount import Mount
from skill_effectiveness.providers.recording import Recording
from skill_effectiveness.providers.registry import ADAPTERS, family_of, holding
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
    "ClaudeProvider",
    "CodexProvider",
    "CommandProvider",
    "CommandSettings",
    "Ending",
    "JudgeCall",
    "Launch",
    "LaunchShape",
    "Mount",
    "Notice",
    "NoticeKind",
    "Provider",
    "ProviderBinding",
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
    "Treatment",
    "TurnFailed",
    "Usage",
    "WarningCode",
    "WorkCall",
    "family_of",
    "holding",
    "one_json_object",
]
