from __future__ import annotations

from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError, fixture_invalid


def test_the_codes_are_closed() -> None:
    assert list(ProtocolCode) == ["fixture_invalid", "gates_changed", "capability_invalid"]


def test_an_error_tells_where_and_what() -> None:
    error = fixture_invalid("fixtures/pilot-gates.json#/budgets", "it is malformed.")
    assert isinstance(error, ProtocolError)
    assert error.code is ProtocolCode.FIXTURE_INVALID
    assert error.where == "fixtures/pilot-gates.json#/budgets"
    assert error.sentence == "it is malformed."
    assert str(error) == "fixtures/pilot-gates.json#/budgets: it is malformed."
