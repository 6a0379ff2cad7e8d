"""Real reviewers, through their adapters: a fake program that answers as codex does."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from skill_effectiveness.calibration.licensing import seal_licence
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.providers import CodexProvider, Ending
from skill_effectiveness.studies.benches import Bench, seat_reviewers
from skill_effectiveness.studies.canaries import as_pair, drawn_canaries
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import PlanReviewer
from skill_effectiveness.studies.state import StudyState
from skill_effectiveness.studies.voting import Asked, judged
from tests.support.commands import codex_that_answers
from tests.support.examinations import INPUTS
from tests.support.judged_studies import simulated_licence
from tests.support.licences import NOW, licence_of
from tests.support.provider_calls import surroundings
from tests.support.published import REAL
from tests.support.seals import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.studies.root import StudyRoot

CHANCE = Chance(bytes(32))


def seated(around: Any, licence: LicencePredicate, program: str | None, *, synthetic: bool = False) -> Bench:  # noqa: ANN401 - surroundings of a call
    """The one reviewer of a study that has this licence."""
    data = seal_licence(licence, KEY)
    named = PlanReviewer(family="family-1", licence_id=licence.licence_id, licence_hash=digest_bytes(data))
    study = SimpleNamespace(
        plan=SimpleNamespace(reviewers=(named,), synthetic=synthetic),
        around=around,
        study=lambda: SimpleNamespace(reviewers=[SimpleNamespace(executable=program)]),
        licence=lambda *_: data,
    )
    (bench,) = seat_reviewers(cast("StudyRoot", study), StudyState(), CHANCE, {}, lambda: False)
    return bench


@pytest.fixture
def real(tmp_path: Path) -> Bench:
    """A reviewer with a live licence for the program that answers."""
    around = surroundings(tmp_path)
    program = codex_that_answers(tmp_path / "codex", INPUTS.bank)
    bound = CodexProvider.at(program, around=around).identify(around)
    declared = replace(REAL, provider_executable_hash=bound.sha256, provider_cli_version=bound.version)
    return seated(around, licence_of(declared), str(program))


def test_a_vote_of_a_real_reviewer(real: Bench) -> None:
    """S39: one call with one case in the words of the examination; a canary is answered by its text alone."""
    assert real.fault(NOW, StudyState()) is None
    assert real.answering is not None
    canary = next(
        iter(drawn_canaries(INPUTS.bank, INPUTS.policy.canary_rule, CHANCE, real.licence_id, 20).values())
    )
    shown = as_pair(canary, None)
    presentation = shown.presentation()
    outcome = real.answering.vote(Asked(shown), presentation, "vote-1")
    assert outcome.ending is Ending.SUCCESS
    assert judged(outcome, presentation, json_fence=real.answering.json_fence) == ("valid", canary.truth)


def test_a_guess_of_a_real_reviewer(real: Bench) -> None:
    """S39: what is no guess is none."""
    canary = next(
        iter(drawn_canaries(INPUTS.bank, INPUTS.policy.canary_rule, CHANCE, real.licence_id, 20).values())
    )
    assert real.answering is not None
    assert real.answering.guess(as_pair(canary, None)) is None


def test_standings(real: Bench) -> None:
    """S39: time, program and canaries, the first failing part by its word."""
    state = StudyState()
    assert real.fault(NOW.replace(year=2025), state) == "not_yet"
    assert real.fault(NOW.replace(year=2027), state) == "expired"
    other = replace(real, present=replace(real.present, model="model-2"))
    assert other.fault(NOW, state) == "drift:model"
    assert real.fault(NOW, StudyState(revoked={real.licence_id})) == "revoked"


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """S39 S65: the reviewer is not asked, and the word says why."""
    bench = seated(surroundings(tmp_path), licence_of(REAL), str(tmp_path / "none"))
    assert (bench.answering, bench.fault(NOW, StudyState())) == (None, "unbound:missing")


@pytest.mark.parametrize(
    ("licence", "program", "synthetic"),
    [
        (licence_of(REAL), None, False),
        (licence_of(REAL), "/none", True),
        (simulated_licence(), None, False),
    ],
    ids=["no program", "real beside simulated", "simulated beside real"],
)
def test_what_cannot_be_seated(
    tmp_path: Path, licence: LicencePredicate, program: str | None, *, synthetic: bool
) -> None:
    """S39 S40: refused before anything is asked."""
    with pytest.raises(StudyError) as caught:
        seated(surroundings(tmp_path), licence, program, synthetic=synthetic)
    assert caught.value.code is StudyCode.LICENCE_REFUSED
