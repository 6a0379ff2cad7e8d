"""The closed codes of the providers room and the errors that carry them.

What a provider's program does wrong is never an exception: it is an `Ending` of the call. An exception means
that the caller asked for something that cannot be asked.
"""

from __future__ import annotations

from enum import StrEnum


class ProviderCode(StrEnum):
    """Why a provider cannot be asked, or a reply cannot be read."""

    CALL_KIND_UNSUPPORTED = "call_kind_unsupported"
    INVALID_CALL = "invalid_call"
    INVALID_COMMAND = "invalid_command"
    INVALID_TRUTH = "invalid_truth"
    NO_PROGRAM = "no_program"
    REPLY_INVALID = "reply_invalid"
    REPLY_NO_OBJECT = "reply_no_object"


class ProviderError(Exception):
    """A request that no provider can hold.

    Attributes:
        code: what machine output may print.
        sentence: what is wrong and what to do, for people; holds no prompt and no model output.
    """

    def __init__(self, code: ProviderCode, sentence: str) -> None:
        self.code = code
        self.sentence = sentence
        super().__init__(sentence)


class ReplyError(ProviderError):
    """The text of an answer is not one strict JSON object (providers.md P12).

    Its code is `reply_no_object` for a strict JSON value of another kind, `reply_invalid` for everything
    else.
    """
