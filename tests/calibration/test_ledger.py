from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.ledger import RootState, Standing, judge_receipts, judge_sample
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.receipts import Listing
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from tests.support.examinations import ORIENTATION, Anything, Receipts, line, receipts

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = "sha256:" + 64 * "9"
ELSEWHERE = "sha256:" + 64 * "8"

PARTS = ("ledgers", "intents", "samples", "observations")
RECORDS = {"ledgers": "ledger", "intents": "intent", "samples": "sample", "observations": "observation"}
LEGACY = "skill-effectiveness-reviewer-calibration-sample-ledger-entry-v1"


def listing(*ids: str) -> Listing:
    """A root that holds these samples, completed."""
    found = {sample_id: receipts(sample_id, ROOT) for sample_id in ids}
    parts: list[Anything] = [
        {sample_id: line(getattr(each, RECORDS[part])) for sample_id, each in found.items()} for part in PARTS
    ]
    return Listing(ROOT, *parts, orientation_key=ORIENTATION)


def without(root: Listing, sample_id: str, *parts: str) -> Listing:
    """The same root without these files of one sample."""
    left: dict[str, Anything] = {
        part: {key: data for key, data in getattr(root, part).items() if key != sample_id} for part in parts
    }
    return replace(root, **left)


def with_file(root: Listing, part: str, sample_id: str, found: Anything) -> Listing:
    """The same root with another file in one place."""
    changed_part: dict[str, Anything] = {part: {**getattr(root, part), sample_id: found}}
    return replace(root, **changed_part)


def changed(record: Anything, **fields: Anything) -> bytes:
    """A record's file with some fields changed."""
    return dump_line({**to_json(record), **fields})


def reserved(sample_id: str, root_hash: str = ROOT) -> bytes:
    return changed(receipts(sample_id, root_hash).ledger, state="reserved")


def started(root: Listing, sample_id: str) -> Listing:
    """The same root with an intent that was not completed."""
    intent = to_json(receipts(sample_id, ROOT).intent)
    del intent["sample_hash"]
    return with_file(root, "intents", sample_id, dump_line({**intent, "state": "model_call_started"}))


def answer(state: RootState, sample_id: str) -> str:
    """What a request for this id is answered: `allowed` or the code."""
    try:
        state.admit(sample_id)
    except CalibrationError as error:
        return error.code.value
    return "allowed"


AFTER_1 = replace(without(listing("a"), "a", *PARTS[1:]), ledgers={"a": reserved("a")})
AFTER_2 = with_file(
    without(started(listing("a"), "a"), "a", "samples", "observations"), "ledgers", "a", reserved("a")
)
AFTER_3 = without(started(listing("a"), "a"), "a", "samples", "observations")
AFTER_7 = without(started(listing("a"), "a"), "a", "samples")
AFTER_8 = started(listing("a"), "a")


class TestTheTable:
    @pytest.mark.parametrize(
        ("stopped", "found", "same", "other"),
        [
            ("before 1", listing(), "allowed", "allowed"),
            ("after 1", AFTER_1, "allowed", "artifact_root_quarantined"),
            ("after 2", AFTER_2, "artifact_root_quarantined", "artifact_root_quarantined"),
            ("after 3", AFTER_3, "artifact_root_quarantined", "artifact_root_quarantined"),
            ("after 7", AFTER_7, "artifact_root_quarantined", "artifact_root_quarantined"),
            ("after 8", AFTER_8, "artifact_root_quarantined", "artifact_root_quarantined"),
            ("after 9", listing("a"), "sample_already_exists", "allowed"),
        ],
    )
    def test_each_row(self, stopped: str, found: Listing, same: str, other: str) -> None:
        """R9 R10: what the same and another id are answered after a stop."""
        state = judge_receipts(found)
        assert (stopped, answer(state, "a"), answer(state, "b")) == (stopped, same, other)

    def test_the_row_after_8_has_a_code_of_its_own_for_a_reader(self) -> None:
        with pytest.raises(CalibrationError) as caught:
            judge_sample(AFTER_8, "a")
        assert caught.value.code is CalibrationCode.SAMPLE_FINALITY_UNKNOWN

    def test_a_reservation_beside_completed_samples_resumes_too(self) -> None:
        """R10: the exception is about one id, not about an empty root."""
        state = judge_receipts(with_file(listing("b", "c"), "ledgers", "a", reserved("a")))
        assert (state.standing, state.reserved, set(state.complete)) == (Standing.RESERVED, "a", {"b", "c"})
        assert answer(state, "a") == "allowed"
        assert answer(state, "d") == "artifact_root_quarantined"


class TestSets:
    @pytest.mark.parametrize("part", ["ledgers", "intents", "samples"])
    def test_unequal_id_sets_allow_no_call(self, part: str) -> None:
        """R11: each of the three receipts is needed."""
        state = judge_receipts(without(listing("a", "b"), "a", part))
        assert state.standing is Standing.QUARANTINED
        assert answer(state, "c") == "artifact_root_quarantined"

    @pytest.mark.parametrize(
        "entry",
        [
            line(receipts("a", ROOT).ledger),
            reserved("a", ELSEWHERE),
            changed(receipts("b", ROOT).ledger, state="reserved"),
            reserved("a")[:-1],
            reserved("a")[: len(reserved("a")) // 2],
            b"",
            dump_line(
                {
                    "artifact_contract": LEGACY,
                    "artifact_root_hash": ROOT,
                    "sample_id": "a",
                    "schema_version": 1,
                }
            ),
        ],
        ids=[
            "started",
            "of another root",
            "of another id",
            "no LF",
            "half a file",
            "empty",
            "older contract",
        ],
    )
    def test_an_orphan_entry_that_is_no_reservation_of_ours_resumes_nothing(self, entry: bytes) -> None:
        """R11 R13: only a valid entry of this id, this root and the current contract resumes."""
        state = judge_receipts(Listing(ROOT, {"a": entry}, {}, {}, {}))
        assert answer(state, "a") == "artifact_root_quarantined"

    def test_two_reservations_resume_nothing(self) -> None:
        """R11: nobody reserves a second id before the first is done."""
        state = judge_receipts(Listing(ROOT, {"a": reserved("a"), "b": reserved("b")}, {}, {}, {}))
        assert {answer(state, "a"), answer(state, "b")} == {"artifact_root_quarantined"}

    def test_a_reservation_beside_an_observation_resumes_nothing(self) -> None:
        state = judge_receipts(with_file(AFTER_1, "observations", "a", line(receipts("a", ROOT).observation)))
        assert answer(state, "a") == "artifact_root_quarantined"

    def test_an_observation_without_a_sample_allows_no_call(self) -> None:
        state = judge_receipts(
            with_file(listing(), "observations", "a", line(receipts("a", ROOT).observation))
        )
        assert answer(state, "b") == "artifact_root_quarantined"

    def test_a_reservation_beside_the_log_of_its_call_resumes_nothing(self) -> None:
        """R11: the log says that the one call was made, whatever became of the other records."""
        state = judge_receipts(replace(AFTER_1, logs=frozenset({"a"})))
        assert answer(state, "a") == "artifact_root_quarantined"
        assert state.uncalled == frozenset()

    def test_a_log_without_any_receipt_allows_no_call(self) -> None:
        """R11: neither of the id that was called nor of another one."""
        state = judge_receipts(replace(listing("b"), logs=frozenset({"a", "b"})))
        assert {answer(state, "a"), answer(state, "c")} == {"artifact_root_quarantined"}

    def test_samples_may_have_logs_or_none(self) -> None:
        """R13: an older installation wrote none."""
        assert answer(judge_receipts(replace(listing("a", "b"), logs=frozenset({"a"}))), "c") == "allowed"

    def test_an_id_that_differs_in_case_alone_is_taken(self) -> None:
        """R12: the two would be one file on some systems, so that no system has both."""
        state = judge_receipts(listing("a"))
        assert answer(state, "A") == "sample_already_exists"
        assert answer(state, "b") == "allowed"

    def test_a_name_that_is_no_receipt_allows_no_call(self) -> None:
        """R11: what cannot be explained is not ignored."""
        assert (
            answer(judge_receipts(replace(listing("a"), strays=("samples/x",))), "b")
            == "artifact_root_quarantined"
        )

    def test_a_sixth_sample_is_refused_and_the_five_stay_readable(self) -> None:
        """R12: the root is full, not broken."""
        state = judge_receipts(listing("a", "b", "c", "d", "e"))
        assert state.standing is Standing.FULL
        assert len(state.complete) == 5
        assert answer(state, "f") == "sample_set_mismatch"
        assert answer(state, "a") == "sample_already_exists"

    def test_four_samples_leave_room_for_one(self) -> None:
        """R12: five is the last."""
        state = judge_receipts(listing("a", "b", "c", "d"))
        assert (state.standing, answer(state, "e")) == (Standing.OPEN, "allowed")


def tampered(part: str, **fields: Anything) -> Callable[[Receipts], tuple[str, bytes]]:
    return lambda found: (part, changed(getattr(found, RECORDS[part]), **fields))


def caught_code(found: Listing) -> str:
    with pytest.raises(CalibrationError) as caught:
        judge_sample(found, "a")
    return caught.value.code.value


class TestOneSample:
    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (tampered("samples", sample_id="b"), "sample_invalid"),
            (tampered("samples", artifact_contract="other"), "sample_invalid"),
            (tampered("samples", extra=1), "sample_invalid"),
            (tampered("ledgers", state="reserved"), "sample_invalid"),
            (tampered("ledgers", sample_id="b"), "sample_invalid"),
            (tampered("ledgers", artifact_contract="other"), "sample_invalid"),
            (tampered("intents", state="done"), "sample_finality_unknown"),
            (tampered("intents", sample_hash=ELSEWHERE), "sample_finality_unknown"),
            (tampered("ledgers", artifact_root_hash=ELSEWHERE), "artifact_root_mismatch"),
            (tampered("intents", artifact_root_hash=ELSEWHERE), "artifact_root_mismatch"),
            (tampered("samples", artifact_root_hash=ELSEWHERE), "artifact_root_mismatch"),
            (tampered("samples", tool_access="none"), "sample_finality_unknown"),
            (tampered("samples", judgments=[]), "sample_finality_unknown"),
            (tampered("observations", sample_id="b"), "sample_invalid"),
            (tampered("observations", case_fixture_hash=ELSEWHERE), "sample_invalid"),
            (tampered("observations", synthetic=True), "sample_invalid"),
            (tampered("observations", shown=[]), "sample_invalid"),
            (
                tampered("observations", shown=[{"case_id": "c-1", "orientation": 0, "verdict": "A win"}]),
                "sample_invalid",
            ),
            (
                tampered(
                    "observations", shown=2 * [{"case_id": "c-1", "orientation": 1, "verdict": "A win"}]
                ),
                "sample_invalid",
            ),
        ],
    )
    def test_whatever_differs_is_named_by_its_code(
        self, change: Callable[[Receipts], tuple[str, bytes]], code: str
    ) -> None:
        part, data = change(receipts("a", ROOT))
        found = with_file(listing("a"), part, "a", data)
        with pytest.raises(CalibrationError) as caught:
            judge_sample(found, "a")
        assert caught.value.code.value == code
        assert answer(judge_receipts(found), "b") == "artifact_root_quarantined"

    @pytest.mark.parametrize(
        "field",
        [
            "provider",
            "provider_cli_version",
            "model",
            "reviewer_family",
            "timeout_seconds",
            "provider_executable_hash",
            "runtime_manifest_hash",
            "known_answer_fixture_hash",
            "case_fixture_hash",
            "runner_hash",
        ],
    )
    def test_intent_and_sample_are_bound_alike(self, field: str) -> None:
        """The binding that differs is named, whichever it is."""
        other = {"timeout_seconds": 9}.get(field, ELSEWHERE if field.endswith("_hash") else "other")
        intent = changed(receipts("a", ROOT).intent, **{field: other})
        with pytest.raises(CalibrationError, match=f"in {field};") as caught:
            judge_sample(with_file(listing("a"), "intents", "a", intent), "a")
        assert caught.value.code is CalibrationCode.SAMPLE_INTENT_MISMATCH

    @pytest.mark.parametrize(
        ("part", "code"),
        [
            ("samples", "sample_invalid"),
            ("ledgers", "sample_invalid"),
            ("intents", "sample_finality_unknown"),
            ("observations", "sample_invalid"),
        ],
    )
    def test_an_unreadable_receipt_is_never_skipped(self, part: str, code: str) -> None:
        """R11: malformed, cut off, in another layout or not readable at all."""
        whole = getattr(listing("a"), part)["a"]
        pretty = json.dumps(json.loads(whole), indent=1).encode()
        error = FileError(Fault(FileCode.FILE_MODE, "x", "x has mode 0644."))
        for found in (b"{", whole[:-1], whole + b"\n", pretty, error):
            with pytest.raises(CalibrationError) as caught:
                judge_sample(with_file(listing("a"), part, "a", found), "a")
            assert caught.value.code.value == code

    def test_without_an_observation_it_was_shown_in_bank_orientation(self) -> None:
        found = judge_sample(without(listing("a"), "a", "observations"), "a")
        assert found.observation is None

    def test_turned_over_with_its_verdict_it_is_not_what_the_key_draws(self) -> None:
        """R4 R16: bits and verdicts edited together still give the stored judgements."""
        over = [{"case_id": "c-1", "orientation": 0, "verdict": "B win"}]
        found = with_file(
            listing("a"), "observations", "a", changed(receipts("a", ROOT).observation, shown=over)
        )
        assert caught_code(found) == "sample_invalid"
        assert answer(judge_receipts(found), "b") == "artifact_root_quarantined"

    @pytest.mark.parametrize(
        ("key", "code"),
        [
            (bytes(32), "sample_invalid"),
            (ORIENTATION + b"\0", "sample_invalid"),
            (None, "sample_invalid"),
            (ORIENTATION[:31], "artifact_root_quarantined"),
            (b"", "artifact_root_quarantined"),
            (FileError(Fault(FileCode.FILE_MODE, "x", "x has mode 0644.")), "artifact_root_quarantined"),
        ],
    )
    def test_another_key_beside_it_is_told(self, key: Anything, code: str) -> None:
        """R4: replaced, gone, cut off or open to others; also under a commitment that follows it."""
        found = replace(listing("a"), orientation_key=key)
        assert caught_code(found) == code
        assert answer(judge_receipts(found), "b") == "artifact_root_quarantined"

    def test_a_commitment_to_another_key_is_told(self) -> None:
        """R4: the key draws just what was shown, and the observation was made with another."""
        spoiled = changed(receipts("a", ROOT).observation, orientation_key_hash=ELSEWHERE)
        assert caught_code(with_file(listing("a"), "observations", "a", spoiled)) == "sample_invalid"

    def test_without_an_observation_no_key_is_needed(self) -> None:
        """R13: identity orientation, as of a sample that an older writer left."""
        older = replace(without(listing("a"), "a", "observations"), orientation_key=None)
        assert judge_sample(older, "a").observation is None

    def test_no_text_shows_the_key(self) -> None:
        """E51: not where a listing is printed."""
        assert repr(ORIENTATION) not in repr(listing("a"))

    def test_judgements_follow_from_the_observation(self) -> None:
        """`A win` for a swapped case is a win for the bank's B."""
        found = judge_sample(listing("a"), "a")
        assert [judgment.verdict.value for judgment in found.sample.judgments] == ["B win"]


class TestOlderContract:
    OLD: bytes = json.dumps(
        {"schema_version": 1, "artifact_contract": LEGACY, "sample_id": "a", "artifact_root_hash": ROOT},
        indent=2,
    ).encode()

    def test_is_read_beside_a_completed_intent_and_sample(self) -> None:
        """R13: also in the layout of another writer."""
        found = with_file(listing("a"), "ledgers", "a", self.OLD)
        for part in ("intents", "samples"):
            found = with_file(found, part, "a", json.dumps(json.loads(getattr(found, part)["a"])).encode())
        assert judge_sample(found, "a").ledger.artifact_contract == LEGACY
        assert answer(judge_receipts(found), "b") == "allowed"

    @pytest.mark.parametrize("part", ["intents", "samples"])
    def test_without_either_it_is_refused(self, part: str) -> None:
        """R13: an entry without a state proves nothing by itself."""
        found = without(with_file(listing("a"), "ledgers", "a", self.OLD), "a", part)
        assert answer(judge_receipts(found), "a") == "artifact_root_quarantined"

    def test_beside_an_intent_that_is_not_completed_it_is_refused(self) -> None:
        """R13: nor does it complete anything."""
        found = started(with_file(listing("a"), "ledgers", "a", self.OLD), "a")
        assert answer(judge_receipts(found), "a") == "artifact_root_quarantined"

    def test_a_state_is_no_field_of_it(self) -> None:
        entry = dump_line({**json.loads(self.OLD), "state": "model_call_started"})
        found = with_file(listing("a"), "ledgers", "a", entry)
        assert answer(judge_receipts(found), "b") == "artifact_root_quarantined"
