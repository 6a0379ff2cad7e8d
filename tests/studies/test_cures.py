"""What to do about what stops a study."""

from __future__ import annotations

import pytest

from skill_effectiveness.providers import Ending
from skill_effectiveness.providers.calls import ProviderErrorKind
from skill_effectiveness.studies.cures import CURES, OTHERWISE, cure_of
from skill_effectiveness.studies.endings import LAUNCH_DIFFERS, UNSTARTABLE


def test_every_word_that_a_call_ends_with_has_one() -> None:
    """S15: a new one without would be found by a reader; `other` says nothing, and a success needs none."""
    words = {str(one) for one in (*Ending, *ProviderErrorKind)} | {LAUNCH_DIFFERS, UNSTARTABLE}
    # A judge uses no tools and a provider error has a kind, so no first question ends so.
    assert words - CURES.keys() == {"success", "other", "provider_error", "tool_activity"}
    assert cure_of("other") == OTHERWISE


@pytest.mark.parametrize("cure", [*CURES.values(), OTHERWISE])
def test_a_cure_stands_between_a_colon_and_a_semicolon(cure: str) -> None:
    assert cure[0].islower()
    assert not cure.endswith((".", ";", ","))


@pytest.mark.parametrize(
    ("reason", "begins"),
    [
        ("study_budget.tokens", "raise it"),
        ("no_like_worker.cli_version", "start workers"),
        ("exposure_assay", "an arm's agent"),
        ("refused", "the model declined"),
        ("something new", "see that"),
    ],
)
def test_by_how_a_reason_begins(reason: str, begins: str) -> None:
    """S28: what stands behind the point changes nothing."""
    assert cure_of(reason).startswith(begins)
