"""Judging a study: who is asked what, what is kept, and what a killed call leaves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.answers import read_answer
from skill_effectiveness.calibration.licensing import seal_licence
from skill_effectiveness.calibration.prompt import render
from skill_effectiveness.providers import CallOutcome, Ending
from skill_effectiveness.providers.calls import ProviderErrorKind
from skill_effectiveness.studies import benches, judging, roster, rows
from skill_effectiveness.studies.amendments import amendment_of, read_setting
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.judging import JudgeStatus
from skill_effectiveness.studies.pairing import PairStanding
from skill_effectiveness.studies.root import StudyJournal
from tests.support.judged_studies import planned, simulated_licence, taken
from tests.support.licences import licence_of
from tests.support.private import surroundings, wrong_modes
from tests.support.published import REAL
from tests.support.studies import bench, example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.calibration.canary import Canary
    from tests.support.judged_studies import JudgedStudy

VOTE = benches._Simulated.vote


class KilledError(BaseException):
    """The process died here."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where studies that were run lie for all tests of this file."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def study(shelf: Path, tmp_path: Path) -> Iterator[JudgedStudy]:
    """Two tasks with one pair each, one reviewer."""
    with taken(shelf, tmp_path) as made:
        yield made


def asked_by(monkeypatch: pytest.MonkeyPatch, act: Callable[..., CallOutcome]) -> None:
    """Let every simulated reviewer answer so."""
    monkeypatch.setattr(benches._Simulated, "vote", act)


def rows_of(study: JudgedStudy) -> list[tuple[str, Any]]:
    """The journal's rows from the first vote on."""
    with study.opened() as (_, journal):
        found = [(row.type, row.body) for row in journal.journal.rows()]
    first = next(number for number, (kind, _) in enumerate(found) if kind == "vote_started")
    return found[first:]


def code_of(act: Callable[[], object]) -> tuple[StudyCode, str]:
    with pytest.raises(StudyError) as caught:
        act()
    return caught.value.code, caught.value.where


class TestVotes:
    def test_every_showing_goes_to_every_reviewer(self, shelf: Path, tmp_path: Path) -> None:
        """S38 S39: both positions, each once, then the guesses; judging again changes nothing."""
        with taken(shelf, tmp_path, models=("sim-1", "sim-2")) as study:
            found = study.judge()
            assert (found.status, found.votes, found.void, found.missing) == (JudgeStatus.COMPLETE, 8, 0, 0)
            assert (found.revoked, found.idle, found.pairs) == (0, {}, {PairStanding.SHOWN: 2})
            journal = rows_of(study)
            assert study.judge() == found
            assert rows_of(study) == journal
            kinds = [kind for kind, _ in journal]
            assert kinds.count("vote_started") == kinds.count("vote_ended") == 8 + found.canaries
            assert kinds.count("guess") == 4
            asked = {
                (body["licence_id"], body["pair_id"]) for kind, body in journal if kind == "vote_started"
            }
            assert len(asked) == 8 + found.canaries
            assert wrong_modes(study.place.folder / "R") == []

    def test_a_vote_is_durable_before_its_call(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S19 S39: the row stands when the reviewer is asked."""
        running, journal = [], study.place.folder / "R" / "journal"

        def looks(self: object, asked: Any, presentation: Any, vote_id: str) -> CallOutcome:  # noqa: ANN401
            written = b"".join(path.read_bytes() for path in journal.glob("*.jsonl"))
            running.append((written.count(b'"vote_started"'), written.count(b'"vote_ended"')))
            return VOTE(self, asked, presentation, vote_id)  # type: ignore[arg-type]

        asked_by(monkeypatch, looks)
        study.judge()
        assert running == [(1, 0), (2, 1), (3, 2), (4, 3)]

    def test_what_is_sent_names_nothing(self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        """S38 F30: no arm, skill, id, place or time in any byte that a reviewer gets."""
        sent = []

        def keeps(self: object, asked: Any, presentation: Any, vote_id: str) -> CallOutcome:  # noqa: ANN401
            sent.append(render(presentation))
            return VOTE(self, asked, presentation, vote_id)  # type: ignore[arg-type]

        asked_by(monkeypatch, keeps)
        study.judge()
        assert len(sent) == 4
        for word in (
            "profile-",
            "file-notes",
            "slot",
            "sample-00",
            "pair-",
            "vote-",
            "2026",
            str(study.place.folder),
        ):
            assert not any(word in prompt for prompt in sent)

    def test_guesses_come_after_the_last_vote(self, study: JudgedStudy) -> None:
        """S39: one for each pair, and each belongs to a vote."""
        study.judge()
        kinds = [kind for kind, _ in rows_of(study)]
        assert kinds[-2:] == ["guess", "guess"]
        assert "guess" not in kinds[:-2]

    def test_progress_is_told_in_totals(self, study: JudgedStudy) -> None:
        """S39: how many, of how many."""
        told: list[tuple[int, int]] = []
        study.judge(progress=lambda done, of: told.append((done, of)))
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_nobody_votes_once_arms_are_known(self, study: JudgedStudy) -> None:
        """S39 S65: what is missing stays missing, and what was given stays."""
        told: list[int] = []
        study.judge(cancelled=lambda: len(told) == 1, progress=lambda done, _: told.append(done))
        with study.opened() as (_, journal):
            journal.append(rows.Unblinded(reason="given up"))
        found = study.judge()
        assert (found.status, found.votes, found.missing) == (JudgeStatus.VOTES_MISSING, 1, 3)
        assert found.idle == {0: "unblinded"}


class TestKilled:
    @pytest.mark.parametrize("at", [1, 2, 4])
    def test_in_the_middle_of_a_call(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        """S39: that vote ends without an answer, its showing is asked as another vote, the others stand."""
        calls = []

        def dies(self: object, asked: Any, presentation: Any, vote_id: str) -> CallOutcome:  # noqa: ANN401
            calls.append(vote_id)
            if len(calls) == at:
                raise KilledError
            return VOTE(self, asked, presentation, vote_id)  # type: ignore[arg-type]

        asked_by(monkeypatch, dies)
        with pytest.raises(KilledError):
            study.judge()
        found = study.judge()
        assert (found.status, found.votes, found.missing) == (JudgeStatus.COMPLETE, 5, 0)
        assert len(calls) == len(set(calls)) == 5
        states = [body["state"] for kind, body in rows_of(study) if kind == "vote_ended"]
        assert (states.count("valid"), states.count("provider_error")) == (4, 1)

    @pytest.mark.parametrize("at", [1, 3])
    def test_after_the_answer_was_kept(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        """S39: the answer counts and nobody is asked again."""
        append, seen = StudyJournal.append, []

        def dies(self: StudyJournal, *bodies: rows.StudyRow) -> object:
            if isinstance(bodies[0], rows.VoteEnded):
                seen.append(bodies[0])
                if len(seen) == at:
                    raise KilledError
            return append(self, *bodies)

        monkeypatch.setattr(StudyJournal, "append", dies)
        with pytest.raises(KilledError):
            study.judge()
        found = study.judge()
        assert (found.status, found.votes) == (JudgeStatus.COMPLETE, 4)
        assert len({row.vote_id for row in seen}) == 4


class TestTrouble:
    def test_a_provider_that_may_recover(self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        """S1 S39: the others are asked on, votes are missing, and the next call asks for them."""
        calls = []

        def limited(self: object, asked: Any, presentation: Any, vote_id: str) -> CallOutcome:  # noqa: ANN401
            calls.append(vote_id)
            if len(calls) <= 2:
                return CallOutcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.RATE_LIMITED)
            return VOTE(self, asked, presentation, vote_id)  # type: ignore[arg-type]

        asked_by(monkeypatch, limited)
        found = study.judge()
        assert (found.status, found.votes, found.missing) == (JudgeStatus.VOTES_MISSING, 4, 2)
        assert not any(kind == "guess" for kind, _ in rows_of(study))
        assert study.judge().status is JudgeStatus.COMPLETE

    @pytest.mark.parametrize(
        ("outcome", "word"),
        [
            (
                CallOutcome(Ending.PROVIDER_ERROR, error_kind=ProviderErrorKind.AUTH_UNAVAILABLE),
                "auth_unavailable",
            ),
            (CallOutcome(Ending.UNSTARTABLE), "unstartable"),
            (CallOutcome(Ending.CANCELLED), "cancelled"),
        ],
    )
    def test_a_provider_out_of_order_is_asked_no_more(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch, outcome: CallOutcome, word: str
    ) -> None:
        """S39: one call, then no further."""
        asked_by(monkeypatch, lambda *_: outcome)
        found = study.judge()
        assert (found.votes, found.missing, found.idle) == (1, 4, {0: word})

    def test_answers_that_are_none_stand(self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        """S39 F24: a refusal is no vote, is not asked for again, and leaves votes missing."""
        asked_by(monkeypatch, lambda *_: CallOutcome(Ending.REFUSED))
        found = study.judge()
        assert (found.status, found.votes, found.missing) == (JudgeStatus.VOTES_MISSING, 4, 4)
        assert study.judge() == found

    def test_stopping_between_votes(self, study: JudgedStudy) -> None:
        """S39: what was asked stays."""
        told: list[int] = []
        found = study.judge(cancelled=lambda: len(told) == 2, progress=lambda done, _: told.append(done))
        assert (found.votes, found.missing, found.idle) == (2, 2, {0: "cancelled"})
        assert study.judge().status is JudgeStatus.COMPLETE


def errs_on(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[int], bool]) -> None:
    """Put a canary before every two votes and let the reviewer err on some canaries, by their number."""
    draw = judging.drawn_canaries

    def closer(*given: Any) -> dict[int, Canary]:  # noqa: ANN401 - as it is called
        drawn = sorted(draw(*given[:-1], 200).items())
        return {3 * number: replace(canary, position=3 * number) for number, (_, canary) in enumerate(drawn)}

    numbers = count()

    def errs(self: object, asked: Any, presentation: Any, vote_id: str) -> CallOutcome:  # noqa: ANN401
        outcome = VOTE(self, asked, presentation, vote_id)  # type: ignore[arg-type]
        if asked.canary is None or outcome.answer is None or not wrong(next(numbers)):
            return outcome
        given = read_answer(outcome.answer, presentation)[0]
        other = "tie" if given != "tie" else "A win"
        return replace(outcome, answer=outcome.answer.replace(given, other))

    monkeypatch.setattr(judging, "drawn_canaries", closer)
    asked_by(monkeypatch, errs)


class TestCanaries:
    def test_a_reviewer_that_fails_its_canaries(
        self, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S39: the fourth wrong answer revokes, all its votes are void, and nothing more is asked."""
        errs_on(monkeypatch, lambda _number: True)
        with taken(shelf, tmp_path, samples=3) as study:
            found = study.judge()
            assert (found.status, found.canaries, found.revoked) == (JudgeStatus.VOTES_MISSING, 4, 1)
            assert (found.votes, found.void, found.missing, found.idle) == (6, 6, 12, {0: "revoked"})
            journal = rows_of(study)
            assert [body["e"] for kind, body in journal if kind == "canary"] == [2.5, 6.25, 15.625, 39.0625]
            assert [kind for kind, _ in journal[-4:]] == [
                "vote_ended",
                "canary",
                "licence_revoked",
                "votes_void",
            ]
            states = {row.state for row in study.tables().judgements if not row.canary}
            assert states == {"void"}
            assert {row.preference for row in study.tables().pairs} == {"no_vote"}
            assert code_of(study.judge) == (StudyCode.LICENCE_REFUSED, "/reviewers/0")

    def test_votes_up_to_the_last_right_canary_count(
        self, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S39: two right, then wrong ones: the fifth of those revokes, and two votes stand."""
        errs_on(monkeypatch, lambda number: number > 1)
        with taken(shelf, tmp_path, samples=4) as study:
            found = study.judge()
            assert (found.votes, found.void, found.canaries, found.revoked) == (12, 10, 7, 1)
            assert (found.missing, found.status) == (14, JudgeStatus.VOTES_MISSING)
            told = [body["e"] for kind, body in rows_of(study) if kind == "canary"]
            assert told == [
                0.625,
                0.390625,
                0.9765625,
                2.44140625,
                6.103515625,
                15.2587890625,
                38.14697265625,
            ]
            started = [body["vote_id"] for kind, body in rows_of(study) if kind == "vote_started"]
            void = next(body["vote_ids"] for kind, body in rows_of(study) if kind == "votes_void")
            # Places 0 and 3 are the right canaries, 1 and 2 the votes between them.
            assert void == [name for place, name in enumerate(started) if place > 3 and place % 3]

    def test_a_canary_is_a_vote_like_any_other(
        self, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S39: in journal and prompt its form tells nothing."""
        errs_on(monkeypatch, lambda _number: False)
        with taken(shelf, tmp_path) as study:
            study.judge()
            started = [body for kind, body in rows_of(study) if kind == "vote_started"]
            assert {tuple(sorted(body)) for body in started} == {
                ("licence_id", "pair_id", "position", "vote_id")
            }
            assert {len(body["pair_id"]) for body in started} == {69}
            canaries = [row for row in study.tables().judgements if row.canary]
            assert {(row.state, row.truth == row.verdict) for row in canaries} == {("valid", True)}


class TestLicences:
    def test_slots_are_open(self, tmp_path: Path) -> None:
        """S1 S65: nothing is asked before every slot has ended."""
        with planned(tmp_path) as study:
            assert code_of(study.judge) == (StudyCode.SLOTS_OPEN, "/allocation/slots")

    def test_no_reviewer(self, shelf: Path, tmp_path: Path) -> None:
        """S1 S39: there is nobody to ask."""
        with taken(shelf, tmp_path, models=()) as study:
            assert code_of(study.judge) == (StudyCode.LICENCE_REFUSED, "/reviewers")

    @pytest.mark.parametrize("moved", [timedelta(days=31), timedelta(days=-1)])
    def test_a_licence_that_is_not_live(self, study: JudgedStudy, moved: timedelta) -> None:
        """S39 S65: expired or not yet: refused, and no vote is started."""
        late = surroundings(now=study.place.around.now() + moved)
        assert code_of(lambda: study.judge(late)) == (StudyCode.LICENCE_REFUSED, "/reviewers/0")
        with study.opened() as (_, journal):
            assert journal.state.votes == {}

    def test_a_licence_that_expires_between_votes(self, study: JudgedStudy) -> None:
        """S39: votes count by the moment of the vote; what is missing stays missing."""
        start, told = study.place.around.now(), []
        around = replace(
            study.place.around, now=lambda: start + (timedelta(days=31) if len(told) >= 2 else timedelta())
        )
        found = study.judge(around, progress=lambda done, _: told.append(done))
        assert (found.status, found.votes, found.idle) == (JudgeStatus.VOTES_MISSING, 2, {0: "expired"})
        assert code_of(lambda: study.judge(around)) == (StudyCode.LICENCE_REFUSED, "/reviewers/0")

    def test_votes_that_are_all_in_need_no_licence(self, study: JudgedStudy) -> None:
        """S39: judging again is a no-op, whatever the time."""
        found = study.judge()
        late = surroundings(now=study.place.around.now() + timedelta(days=99))
        assert study.judge(late) == found

    def test_another_program(self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch) -> None:
        """S39 S65: the failing part is named."""
        identify = benches._Simulated.identify
        monkeypatch.setattr(
            benches._Simulated,
            "identify",
            lambda self, around: replace(identify(self, around), version="simulated-2"),
        )
        with pytest.raises(StudyError, match=r"drift:provider_cli_version"):
            study.judge()

    def test_a_real_reviewer_beside_a_simulated_driver(self, tmp_path: Path) -> None:
        """S40: refused before anything is asked."""
        with bench(tmp_path) as place:
            study = example(
                tmp_path,
                tasks=1,
                edits={
                    "reviewers: []": "reviewers: [{licence: l.json, executable: null}]",
                    "samples: 3": "samples: 1",
                },
            )
            (study / "l.json").write_bytes(seal_licence(licence_of(REAL), place.key))
            place.plan(study)
            made = _ended(place)
            assert code_of(made.judge) == (StudyCode.LICENCE_REFUSED, "/reviewers")

    def test_a_reviewer_that_was_taken_out(self, shelf: Path, tmp_path: Path) -> None:
        """S20: an amended reviewer is not asked."""
        with taken(shelf, tmp_path, models=("sim-1", "sim-2")) as study:
            with study.opened() as (opened, journal):
                journal.append(
                    amendment_of(opened.plan, journal.state, read_setting("/reviewers/0=null"), "left us")
                )
            found = study.judge()
            assert (found.status, found.votes) == (JudgeStatus.COMPLETE, 4)
            asked = {row.licence_id for row in study.tables().judgements}
            assert asked == {simulated_licence("sim-2").licence_id}


def _ended(place: Any) -> JudgedStudy:  # noqa: ANN401 - a bench of tests.support.studies
    from tests.support.judged_studies import JudgedStudy  # noqa: PLC0415 - used here alone

    made = JudgedStudy(place)
    made.run()
    return made


class TestPairs:
    @pytest.mark.parametrize(
        ("text", "standing"),
        [
            ("I followed file-notes.", PairStanding.LEAK),
            ("I wrote it in profile-full.", PairStanding.LEAK),
            ("done at 05:06:07", PairStanding.LEAK),
            ("Look which file is asked for, and whether it is there already.", PairStanding.LEAK),
            ("x" * 50_000, PairStanding.TOO_LARGE),
            (" \n", PairStanding.UNSHOWABLE),
            (None, PairStanding.ABSENT),
        ],
    )
    def test_what_is_not_shown_is_counted(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch, text: str | None, standing: PairStanding
    ) -> None:
        """S38: not judged, counted; nothing of it is sent to anybody."""
        monkeypatch.setattr(roster, "_payload", lambda _data: text)
        found = study.judge()
        assert (found.pairs, found.votes) == ({standing: 2}, 0)
        tables = study.tables()
        assert {row.preference for row in tables.pairs} <= {"no_vote"}
        assert tables.judgements == ()
        # What was blinded is in the table; a leak that blinding found is there by its leak file.
        assert len(tables.pairs) == (0 if standing is PairStanding.ABSENT else 2)

    def test_a_contaminated_trial_is_never_shown(
        self, study: JudgedStudy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S38: nor one that is void."""
        monkeypatch.setattr(roster, "_NEVER_SHOWN", frozenset({"completed"}))
        assert study.judge().pairs == {PairStanding.ABSENT: 2}
