"""What everybody may see of an evaluation.

Source: outcome.md, section 5. A projection is built from the parts that may be seen, never by taking others
out: result, typed reasons, criterion names, public receipts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.words import PRIVATE, PUBLIC, ReasonKey, Result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from skill_effectiveness.acceptance.outcome.evaluate import Outcome

NOT_ACCEPTED: Final = "not_accepted"
UNNAMED: Final = "unnamed"
"""What a projection has in the place of a false-green class that is no name."""

_CLASS: Final = re.compile(r"false_green_[a-z_]{1,40}")


def project(outcome: Outcome) -> dict[str, JsonValue]:
    """The public form of an outcome."""
    criteria = outcome.accepted.criteria if outcome.accepted else ()
    shown = [(each.criterion, each.receipt if each.visibility == PUBLIC else None) for each in criteria]
    return projection(outcome.result, [reason.text for reason in outcome.reasons], shown)


def projection(
    result: Result, reasons: Iterable[str], criteria: Iterable[tuple[str, JsonValue]]
) -> dict[str, JsonValue]:
    """The public form of a result.

    Args:
        result: of the evaluation.
        reasons: rendered.
        criteria: each with its public receipt; `None` is satisfied by private evidence.
    """
    if result is Result.ACCEPTED:
        shown: list[JsonValue] = [
            {"criterion": criterion, "evidence": PRIVATE if receipt is None else receipt}
            for criterion, receipt in criteria
        ]
        return {"state": result.value, "criteria": shown}
    told = [_typed(reason) for reason in reasons]
    if result is Result.NOT_APPLICABLE:
        return {"state": result.value, "exemption": told[0]}
    return {"state": NOT_ACCEPTED, "type": result.value, "reasons": [*told]}


def _typed(reason: str) -> str:
    """A reason whose detail is of a closed set, or a criterion.

    What is no name of a false-green class is whatever its caller wrote there: it may be a log or a prompt.
    """
    key, _, detail = reason.partition(":")
    if key != ReasonKey.FALSE_GREEN:
        return reason
    named = (name if _CLASS.fullmatch(name) else UNNAMED for name in detail.split(","))
    return f"{key}:{','.join(dict.fromkeys(named))}"
