"""The published document says what the code does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.contract import FILE, load_contract, read_contract
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED = REPOSITORY / "eval" / "skill_effectiveness" / "acceptance" / "outcome" / FILE
LISTS = (
    ("issue_template", "required_sections"),
    ("attempt_binding", "required_fields"),
    ("verification", "required_records"),
    ("verification", "terminal_results"),
    ("false_green_classes",),
    ("result_states", "non_accepted"),
    ("result_states", "not_applicable"),
    ("visibility", "public_projection_excludes"),
)


def document() -> Any:  # noqa: ANN401 - any JSON
    return json.loads(PUBLISHED.read_bytes())


def refused(value: object) -> str:
    with pytest.raises(OutcomeError) as caught:
        read_contract(json.dumps(value).encode())
    assert caught.value.undecidable
    return caught.value.code.value


def changed(path: tuple[str, ...], change: Any) -> Any:  # noqa: ANN401 - any JSON
    """The document with one list replaced by what `change` makes of it."""
    value = document()
    place = value
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = change(place[path[-1]])
    return value


def test_the_published_one_is_good() -> None:
    """O63: the lists are those of the specification, written here by hand."""
    contract = load_contract(RealFs())
    assert contract.contract == "accepted-outcome.v1"
    assert contract.issue_template.required_sections == (
        "problem", "scope", "acceptance_criteria", "success_metrics",
    )  # fmt: skip
    assert contract.attempt_binding.required_fields == (
        "issue_number", "repository", "authority", "budget", "revision",
    )  # fmt: skip
    assert contract.verification.required_records == ("verifier", "falsifier", "terminal_result")
    assert contract.verification.terminal_results == ("passed", "failed")
    assert contract.false_green_classes == (
        "false_green_fixture_assert", "false_green_api_mirror", "false_green_mocked_seam",
        "false_green_coverage_theater", "false_green_round_up",
    )  # fmt: skip
    assert contract.result_states.non_accepted == ("incomplete", "unauthorized", "failed")
    assert contract.result_states.not_applicable == ("human_only_work", "agents_disabled_repository")
    assert contract.visibility.public_projection_excludes == (
        "prompts", "logs", "private_repositories", "private_receipts",
    )  # fmt: skip


@pytest.mark.parametrize("path", LISTS)
class TestDrift:
    def test_another_order(self, path: tuple[str, ...]) -> None:
        """O63: the order of every list counts."""
        assert refused(changed(path, lambda said: said[::-1])) == "contract_divergence"

    def test_one_more(self, path: tuple[str, ...]) -> None:
        """O63: a word that the code does not have."""
        assert refused(changed(path, lambda said: [*said, "more"])) == "contract_divergence"

    def test_one_less(self, path: tuple[str, ...]) -> None:
        """O63: a word that the document does not have."""
        assert refused(changed(path, lambda said: said[1:])) == "contract_divergence"

    def test_empty(self, path: tuple[str, ...]) -> None:
        """O63: nothing at all, which for what a projection excludes would exclude nothing."""
        assert refused(changed(path, lambda _said: [])) == "contract_divergence"


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value | {"contract": "accepted-outcome.v2"},
        lambda value: value | {"version": 2},
        lambda value: value | {"version": True},
        lambda value: value | {"more": 1},
        lambda value: {name: each for name, each in value.items() if name != "visibility"},
        lambda value: value | {"visibility": {}},
        lambda value: value | {"false_green_classes": "all"},
        lambda _value: [],
    ],
)
def test_what_is_no_contract(change: Any) -> None:  # noqa: ANN401 - any function
    """O63: another contract, another version, missing and unknown members."""
    assert refused(change(document())) == "invalid_contract"


def test_bytes_that_are_none(tmp_path: Path) -> None:
    """O63: not JSON, and a file that is not there."""
    with pytest.raises(OutcomeError, match="invalid_contract"):
        read_contract(b"{")
    with pytest.raises(OutcomeError, match="invalid_contract"):
        load_contract(RealFs(), tmp_path / "none")
