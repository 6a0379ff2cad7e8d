"""Reading an answer: one strict JSON object and nothing around it.

Source: providers.md P12; field-failures.md F22, F25, F28.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from skill_effectiveness.evidence.faults import StrictCode, StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.errors import ProviderCode, ReplyError

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue

_FENCE: Final = re.compile(r"```json[ \t]*\r?\n(?P<inside>.*)\n[ \t]*```", re.DOTALL)
_SPACE: Final = " \t\r\n"


def one_json_object(text: str, *, allow_json_fence: bool = False) -> dict[str, JsonValue]:
    """The object that the text is.

    Nothing is searched for and nothing is repaired: prose before or after it, a second value, a repeated
    member name or a number that is not finite refuses the whole text. White space around it is allowed.

    Args:
        text: the answer as it came.
        allow_json_fence: also take exactly one fence that begins with three backticks and `json`; only for a
            provider whose contract says so.

    Raises:
        ReplyError: `reply_no_object`, `reply_invalid`: the text is anything else; the sentence says why and
            quotes nothing of it.
    """
    if allow_json_fence and (match := _FENCE.fullmatch(text.strip(_SPACE))):
        text = match["inside"]
    try:
        return cast("dict[str, JsonValue]", read_json(text.encode(), Profile.WIRE, want_object=True))
    except UnicodeEncodeError:
        sentence = "The answer has no UTF-8 form; it does not count."
        raise ReplyError(ProviderCode.REPLY_INVALID, sentence) from None
    except StrictError as error:
        sentence = f"The answer is not one strict JSON object ({error.code}); it does not count."
        value = all(fault.code is StrictCode.NOT_AN_OBJECT for fault in error.faults)
        code = ProviderCode.REPLY_NO_OBJECT if value else ProviderCode.REPLY_INVALID
        raise ReplyError(code, sentence) from None
