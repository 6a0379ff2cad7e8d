"""What a stranger finds wrong with the votes of a study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.trial_rows import StudyEvidence
from skill_effectiveness.studies.vote_checks import pooled_accuracy, vote_faults
from skill_effectiveness.studies.voting import read_vote, vote_hash
from tests.support.examinations import INPUTS
from tests.support.judged_studies import simulated_licence, taken
from tests.support.licences import licence_of
from tests.support.published import REAL
from tests.support.studies import SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.studies.evidence_reading import StudyReader

LICENCE = simulated_licence()
CHANCE = Chance(SEED)


class HeldReader:
    """Files in memory over those of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, bytes] = {}

    def read(self, path: str) -> bytes | None:
        """See `StudyReader`."""
        file = self.folder / path
        return self.held.get(path) or (file.read_bytes() if file.is_file() else None)

    def names(self, folder: str) -> tuple[str, ...]:
        """See `StudyReader`."""
        place = self.folder / folder
        return tuple(sorted(path.name for path in place.iterdir())) if place.is_dir() else ()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyEvidence]:
    """A study with 24 votes on pairs and one canary at least, whole and right."""
    shelf, folder = tmp_path_factory.mktemp("shelf"), tmp_path_factory.mktemp("judged")
    with (
        taken(shelf, folder, judged=True, tasks=3, samples=4) as study,
        study.opened() as (opened, journal),
    ):
        reader: StudyReader = HeldReader(study.place.folder / "R")
        yield StudyEvidence(opened.plan, opened.frozen().tasks, opened.slots(), journal.state, reader)


@pytest.fixture
def evidence(judged: StudyEvidence) -> StudyEvidence:
    """The same, for one test to change."""
    assert isinstance(judged.reader, HeldReader)
    state = judged.state
    copied = replace(
        state,
        votes=dict(state.votes),
        canaries={name: list(found) for name, found in state.canaries.items()},
        revoked=set(state.revoked),
    )
    return replace(judged, state=copied, reader=HeldReader(judged.reader.folder))


def faults(evidence: StudyEvidence, *licences: Any, chance: Chance = CHANCE) -> list[str]:  # noqa: ANN401
    """What is wrong, without ids."""
    found = vote_faults(evidence, licences or (LICENCE,), INPUTS.bank, chance)
    return [" ".join(word for word in fault.split() if not word.startswith("vote-")) for fault in found]


def canary_of(evidence: StudyEvidence) -> str:
    """The id of the first canary's vote."""
    for vote_id in evidence.state.votes:
        data = evidence.reader.read(f"votes/{vote_id}.json")
        assert data is not None
        if read_vote(data, vote_id).canary is not None:
            return vote_id
    raise AssertionError("no canary was asked")


def rewrite(evidence: StudyEvidence, vote_id: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a vote's file, and the journal with it, as somebody who can write both would."""
    data = evidence.reader.read(f"votes/{vote_id}.json")
    assert data is not None
    value = read_json(data, Profile.DOCUMENT, want_object=True)
    assert isinstance(value, dict)
    change(value)
    assert isinstance(evidence.reader, HeldReader)
    line = dump_line(value)
    evidence.reader.held[f"votes/{vote_id}.json"] = line
    held = evidence.state.votes[vote_id]
    evidence.state.votes[vote_id] = replace(held, vote_hash=vote_hash(read_vote(line, vote_id)))


def test_a_whole_study_has_no_fault(evidence: StudyEvidence) -> None:
    """S39 S60: and there was a canary to judge by."""
    assert faults(evidence) == []
    assert canary_of(evidence)


def test_a_vote_outside_its_licence(evidence: StudyEvidence) -> None:
    """S39 S60: before and after."""
    first, second = list(evidence.state.votes)[:2]
    for name, time in ((first, "2026-03-04T05:06:06Z"), (second, LICENCE.expires_at)):
        evidence.state.votes[name] = replace(evidence.state.votes[name], started_at=time)
    assert faults(evidence) == 2 * ["was started while its licence was not live"]


def test_a_licence_that_the_plan_does_not_have(evidence: StudyEvidence) -> None:
    """S39 S60: every vote of it is told."""
    other = simulated_licence("sim-9")
    assert set(faults(evidence, other)) == {"is a vote of no licence of the plan"}


def test_another_program(evidence: StudyEvidence) -> None:
    """S39 S60: model, version and digest are those of the licence."""
    rewrite(evidence, next(iter(evidence.state.votes)), lambda vote: vote.update(model="other"))
    assert faults(evidence) == ["was answered by another program or model than the licensed one"]


def test_a_canary_that_is_made_a_vote(evidence: StudyEvidence) -> None:
    """S39 S60: the opened seed says which votes are canaries."""
    rewrite(evidence, canary_of(evidence), lambda vote: vote.update(canary=None))
    found = faults(evidence)
    assert "is a canary where none was drawn, or none where one was" in found
    assert any("are not those of its votes" in fault for fault in found)


def test_another_truth(evidence: StudyEvidence) -> None:
    """S39 S60: what a canary shows and its answer are the bank's."""

    def change(vote: dict[str, Any]) -> None:
        vote["canary"]["case_id"] = "other"

    rewrite(evidence, canary_of(evidence), change)
    assert faults(evidence) == ["is not the canary that was drawn"]


def test_another_seed(evidence: StudyEvidence) -> None:
    """S39 S60: with another seed no canary is one."""
    assert "is a canary where none was drawn, or none where one was" in faults(
        evidence, chance=Chance(bytes([1]) * 32)
    )


@pytest.mark.parametrize("change", ["e", "right", "less"])
def test_another_evidence(evidence: StudyEvidence, change: str) -> None:
    """S39 S60: e is computed again, every answer counts."""
    held = evidence.state.canaries[LICENCE.licence_id]
    first = held[0]
    held[0] = {
        "e": rows.Canary(licence_id=first.licence_id, right=first.right, e=0.5),
        "right": rows.Canary(licence_id=first.licence_id, right=not first.right, e=first.e),
        "less": first,
    }[change]
    if change == "less":
        held.pop()
    (found,) = faults(evidence)
    assert ("has another e than follows" in found) is (change == "e")


def test_void_and_revoked_without_cause(evidence: StudyEvidence) -> None:
    """S39 S60: neither is believed by itself."""
    name = next(iter(evidence.state.votes))
    evidence.state.votes[name] = replace(evidence.state.votes[name], void=True)
    evidence.state.revoked.add(LICENCE.licence_id)
    assert len(faults(evidence)) == 2


def test_worlds_are_not_mixed(evidence: StudyEvidence) -> None:
    """S40: a real licence beside a simulated driver, and a synthetic one beside a real driver."""
    assert "a real reviewer stands beside a simulated driver" in faults(evidence, LICENCE, licence_of(REAL))
    real = replace(evidence, plan=evidence.plan.model_copy(update={"synthetic": False}))
    assert faults(real) == ["a synthetic licence stands beside what is real"]


def test_pooled_accuracy() -> None:
    """S48: judgements are pooled, cases are not: a second reviewer narrows nothing."""
    one, two = pooled_accuracy([LICENCE]), pooled_accuracy([LICENCE, simulated_licence("sim-2")])
    assert one == two
    assert one is not None
    assert (one.sensitivity, one.sensitivity_cases) == (1.0, 16)
    assert (one.specificity, one.specificity_cases) == (1.0, 32)
    assert pooled_accuracy([]) is None
