from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError
from skill_effectiveness.calibration.models import Sample
from skill_effectiveness.calibration.receipts import Listing, read_listing
from skill_effectiveness.calibration.sample_set import AnsweredSample, answered_samples, confirmed_samples
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from tests.support.controller import Controller
from tests.support.examinations import BANK, MANIFEST, OTHER, Scripted, always, open_out

if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[dict[str, Any]], object]

IDS = ("s-1", "s-2")
SIDES = ("ledgers", "intents", "samples", "observations")
UNREADABLE = FileError(Fault(FileCode.FILE_MODE, "x", "It is not private."))


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Listing:
    """The receipts of a root with two good samples."""
    folder = tmp_path_factory.mktemp("set")
    Controller(folder, Scripted(always("A win"))).sampled(*IDS)
    return read_listing(open_out(folder, name="root"))


def document(listing: Listing, side: str, sample_id: str) -> dict[str, Any]:
    found = getattr(listing, side)[sample_id]
    assert isinstance(found, bytes)
    value: dict[str, Any] = json.loads(found)
    return value


def put(listing: Listing, side: str, sample_id: str, data: object) -> Listing:
    """With other bytes, or an error, in the place of a receipt; None takes it away."""
    held = dict(getattr(listing, side))
    if data is None:
        del held[sample_id]
    else:
        held[sample_id] = data
    return replace(listing, **{side: held})


def edited(listing: Listing, side: str, change: Change, sample_id: str = "s-2") -> Listing:
    """With one document changed, and nothing else."""
    value = document(listing, side, sample_id)
    change(value)
    return put(listing, side, sample_id, dump_line(value))


def consistent(listing: Listing, change: Change, sample_id: str = "s-2") -> Listing:
    """With a sample changed, and its intent so that it confirms just this sample."""
    listing = edited(listing, "samples", change, sample_id)
    sample = document(listing, "samples", sample_id)

    def follow(intent: dict[str, Any]) -> None:
        intent.update({name: sample[name] for name in intent if name in sample})
        intent["sample_hash"] = digest_object(sample)

    return edited(listing, "intents", follow, sample_id)


def judged(listing: Listing, *ids: str, manifest: str = MANIFEST) -> tuple[AnsweredSample, ...]:
    samples = confirmed_samples(listing, ids or IDS, manifest)
    return answered_samples(listing, samples, BANK)


def code(listing: Listing, *ids: str, manifest: str = MANIFEST) -> str:
    with pytest.raises(CalibrationError) as caught:
        judged(listing, *ids, manifest=manifest)
    return caught.value.code.value


class TestGoodSets:
    def test_keep_the_order_of_the_request(self, listing: Listing) -> None:
        for ids in (IDS, IDS[::-1]):
            assert tuple(each.sample.sample_id for each in judged(listing, *ids)) == ids

    def test_are_seen_as_they_were_shown(self, listing: Listing) -> None:
        """R5: what was said about the first seat stays with the first seat."""
        for each in judged(listing):
            assert {shown.verdict.value for shown in each.seen} == {"A win"}
            assert {shown.orientation for shown in each.seen} == {0, 1}

    def test_without_an_observation_nothing_was_turned(self, listing: Listing) -> None:
        """R13: an older root, whose samples were shown in bank order."""
        older = put(put(listing, "observations", "s-1", None), "observations", "s-2", None)
        (first, _) = judged(older)
        assert [shown.case_id for shown in first.seen] == list(BANK.case_ids)
        assert {shown.orientation for shown in first.seen} == {0}
        assert [shown.verdict for shown in first.seen] == [each.verdict for each in first.sample.judgments]

    def test_an_older_ledger_beside_a_completed_intent_counts(self, listing: Listing) -> None:
        """R13: the entry of the older contract has no state."""

        def older(entry: dict[str, Any]) -> None:
            entry["artifact_contract"] = entry["artifact_contract"].replace("v2", "v1")
            del entry["state"]

        assert len(judged(edited(listing, "ledgers", older))) == 2
        alone = put(edited(listing, "ledgers", older), "samples", "s-2", None)
        assert code(alone) == "artifact_root_quarantined"


class TestSets:
    @pytest.mark.parametrize("side", SIDES[:3])
    def test_that_differ_are_quarantine(self, listing: Listing, side: str) -> None:
        """R11: whichever receipt is missing."""
        assert code(put(listing, side, "s-2", None)) == "artifact_root_quarantined"

    def test_a_reservation_alone_is_quarantine(self, listing: Listing) -> None:
        """R9: what a sample left that was cut off after its first step."""
        entry = document(listing, "ledgers", "s-1") | {"sample_id": "s-3", "state": "reserved"}
        assert code(put(listing, "ledgers", "s-3", dump_line(entry))) == "artifact_root_quarantined"

    def test_an_observation_without_a_sample_is_quarantine(self, listing: Listing) -> None:
        assert code(put(listing, "observations", "s-3", b"{}\n")) == "artifact_root_quarantined"

    def test_what_is_no_receipt_is_quarantine(self, listing: Listing) -> None:
        """R11: a link, a folder of another mode, a foreign name."""
        assert code(replace(listing, strays=("samples",))) == "artifact_root_quarantined"

    @pytest.mark.parametrize("ids", [("s-1", "s-3"), ("s-1", "s-2", "s-3"), ("s-3", "s-4")], ids=str)
    def test_other_than_the_root_s_are_a_mismatch(self, listing: Listing, ids: tuple[str, ...]) -> None:
        assert code(listing, *ids) == "sample_set_mismatch"

    def test_a_sample_may_not_be_left_out(self, listing: Listing) -> None:
        with pytest.raises(CalibrationError) as caught:
            confirmed_samples(listing, ("s-1",), MANIFEST)
        assert caught.value.code is CalibrationCode.SAMPLE_SET_MISMATCH


class TestOneSample:
    @pytest.mark.parametrize(
        ("side", "expected"),
        [
            ("samples", "sample_invalid"),
            ("intents", "sample_finality_unknown"),
            ("ledgers", "sample_invalid"),
            ("observations", "sample_invalid"),
        ],
    )
    @pytest.mark.parametrize(
        "data", [b"", b"{}\n", b"{", UNREADABLE], ids=["empty", "no field", "torn", "mode"]
    )
    def test_that_cannot_be_read(
        self, listing: Listing, side: str, expected: str, data: bytes | FileError
    ) -> None:
        """R11: by which of its receipts is broken."""
        assert code(put(listing, side, "s-2", data)) == expected

    @pytest.mark.parametrize(
        "change",
        [
            lambda sample: sample.update(sample_id="s-1"),
            lambda sample: sample.update(artifact_contract="other"),
            lambda sample: sample.update(surplus=1),
            lambda sample: sample.update(provider="claude"),
            lambda sample: sample.update(runner_contract="codex-cli-reviewer-calibration-v1"),
            lambda sample: sample.update(runner_hash=OTHER),
            lambda sample: sample.update(requested_session_mode="kept"),
            lambda sample: sample.update(tool_access="verified-none"),
            lambda sample: sample.update(synthetic=True),
            lambda sample: sample["judgments"].pop(),
            lambda sample: sample["judgments"].append(sample["judgments"][0]),
            lambda sample: sample["judgments"].reverse(),
            lambda sample: sample["judgments"][0].update(verdict="tie", case_id="another-01"),
            lambda sample: sample["judgments"][0].update(verdict="draw"),
        ],
        ids=range(14),
    )
    def test_that_says_something_else_than_this_protocol(self, listing: Listing, change: Change) -> None:
        """R32 R43: however well its intent confirms it."""
        assert code(consistent(listing, change)) == "sample_invalid"

    def test_that_was_edited(self, listing: Listing) -> None:
        """R16: the intent confirms another one."""
        change: Change = lambda sample: sample["judgments"][0].update(verdict="tie")  # noqa: E731
        assert code(edited(listing, "samples", change)) == "sample_finality_unknown"

    def test_whose_judgements_its_observation_does_not_give(self, listing: Listing) -> None:
        """R16: edited together with its intent, it still has to follow from what was shown and said."""
        change: Change = lambda sample: sample["judgments"][0].update(verdict="tie")  # noqa: E731
        assert code(consistent(listing, change)) == "sample_invalid"

    def test_that_is_not_completed(self, listing: Listing) -> None:
        """R9: cut off after the sample was stored."""

        def back(intent: dict[str, Any]) -> None:
            intent["state"] = "model_call_started"
            del intent["sample_hash"]

        assert code(edited(listing, "intents", back)) == "sample_finality_unknown"

    def test_whose_ledger_entry_is_still_reserved(self, listing: Listing) -> None:
        change: Change = lambda entry: entry.update(state="reserved")  # noqa: E731
        assert code(edited(listing, "ledgers", change)) == "sample_invalid"

    @pytest.mark.parametrize("side", ["ledgers", "intents"])
    def test_that_was_taken_elsewhere(self, listing: Listing, side: str) -> None:
        change: Change = lambda record: record.update(artifact_root_hash=OTHER)  # noqa: E731
        assert code(edited(listing, side, change)) == "artifact_root_mismatch"

    BINDINGS = sorted({*Sample.model_fields} & {"provider_cli_version", "provider_executable_hash", "model",
        "reviewer_family", "timeout_seconds", "runtime_manifest_hash", "known_answer_fixture_hash",
        "case_fixture_hash", "runner_hash", "provider"})  # fmt: skip

    @pytest.mark.parametrize("field", BINDINGS)
    def test_that_its_intent_binds_otherwise(self, listing: Listing, field: str) -> None:
        """R16: each of the shared bindings by itself."""
        held = document(listing, "intents", "s-2")[field]
        other = held + 1 if isinstance(held, int) else OTHER if str(held).startswith("sha256:") else "other"
        assert (
            code(edited(listing, "intents", lambda i: i.update({field: other}))) == "sample_intent_mismatch"
        )


def rebound(listing: Listing, **values: str) -> Listing:
    """The second sample with other bindings, consistent in itself."""

    def change(sample: dict[str, Any]) -> None:
        sample.update(values)
        sample["runner_hash"] = digest_object(
            {
                name: sample[name]
                for name in ("runner_contract", "runtime_manifest_hash", "provider_executable_hash")
            }
        )

    return consistent(listing, change)


class TestAcross:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("provider_cli_version", "tool 1.2.4"),
            ("provider_executable_hash", OTHER),
            ("model", "model-2"),
            ("reviewer_family", "family-2"),
            ("runtime_manifest_hash", OTHER),
        ],
    )
    def test_two_reviewers_or_runtimes_are_no_set(self, listing: Listing, field: str, value: str) -> None:
        assert code(rebound(listing, **{field: value})) == "sample_binding_mismatch"

    def test_samples_of_another_installation_are_no_set(self, listing: Listing) -> None:
        """However equal they are: what runs now would publish what it did not see."""
        assert code(listing, manifest=OTHER) == "sample_binding_mismatch"

    def test_timeouts_may_differ(self, listing: Listing) -> None:
        longer = consistent(listing, lambda sample: sample.update(timeout_seconds=600))
        assert len(judged(longer)) == 2

    @pytest.mark.parametrize("field", ["known_answer_fixture_hash", "case_fixture_hash"])
    def test_another_bank_is_drift(self, listing: Listing, field: str) -> None:
        """R2: in one sample or in both."""
        one = consistent(listing, lambda sample: sample.update({field: OTHER}))
        assert code(one) == "fixture_drift"
        both = consistent(one, lambda sample: sample.update({field: OTHER}), "s-1")
        assert code(both) == "fixture_drift"


def test_the_earlier_of_two_faults_answers(listing: Listing) -> None:
    """R8: in the order of section 6, each fault alone and each two of them together."""
    faults: list[tuple[str, Callable[[Listing], Listing]]] = [
        ("artifact_root_quarantined", lambda held: replace(held, strays=("samples/x",))),
        ("sample_invalid", lambda held: put(held, "samples", "s-1", b"{}\n")),
        (
            "sample_finality_unknown",
            lambda held: edited(held, "intents", lambda intent: intent.update(sample_hash=OTHER)),
        ),
        ("sample_binding_mismatch", lambda held: rebound(held, model="model-2")),
        (
            "fixture_drift",
            lambda held: consistent(held, lambda sample: sample.update(case_fixture_hash=OTHER)),
        ),
        ("sample_invalid", lambda held: put(held, "observations", "s-2", b"{}\n")),
    ]
    for at, (expected, spoil) in enumerate(faults):
        assert code(spoil(listing)) == expected
        for _, also in faults[at + 1 :]:
            # The later fault goes in first, so that what makes it consistent does not hide the earlier one.
            assert code(spoil(also(listing))) == expected
