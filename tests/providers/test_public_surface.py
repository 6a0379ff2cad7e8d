"""What other rooms may import."""

from __future__ import annotations

from skill_effectiveness import providers


def test_the_public_names_are_these() -> None:
    """P13: a change of this list is a change of what other rooms can rely on."""
    assert providers.__all__ == [
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
    assert all(hasattr(providers, name) for name in providers.__all__)
