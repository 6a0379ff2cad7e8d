"""The closed codes of the protocol room and the one error that carries them."""

from __future__ import annotations

from enum import StrEnum


class ProtocolCode(StrEnum):
    """Why a frozen input is not the one that was frozen.

    `fixture_invalid`: a frozen file is missing, malformed or another one (calibration.md section 3, table of
    codes). `gates_changed`: gates that a caller brought differ where they may not (trials.md section 1).
    `capability_invalid`: what a capability probe left is not what one leaves (trials.md section 8).
    """

    FIXTURE_INVALID = "fixture_invalid"
    GATES_CHANGED = "gates_changed"
    CAPABILITY_INVALID = "capability_invalid"


class ProtocolError(Exception):
    """A frozen input cannot be used.

    Attributes:
        code: what machine output may print.
        where: name of the frozen file, with a JSON pointer after `#` where one applies; never a machine path.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: ProtocolCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}")


def fixture_invalid(where: str, sentence: str) -> ProtocolError:
    """The error of every malformed, missing or foreign frozen input."""
    return ProtocolError(ProtocolCode.FIXTURE_INVALID, where, sentence)
