from __future__ import annotations

import errno
import json
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.attempts import attempt_name
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.calibration.models import Sample, SampleIntent, to_json
from skill_effectiveness.calibration.repeats import derive_again
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.protocol.words import BankName
from tests.support.examinations import (
    OTHER,
    PLAN,
    Anything,
    Scripted,
    UnsyncedFs,
    always,
    line,
    open_out,
    receipts,
    run_examination,
    simulated,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

Asked = list[str]
METRICS = "reviewer-calibration-metrics.json"


@pytest.fixture
def asked() -> Asked:
    """Ids of the samples that were called for."""
    return []


@pytest.fixture
def out(tmp_path: Path, asked: Asked) -> PrivateRoot:
    """A complete examination of two repeats."""
    out = open_out(tmp_path)
    run_examination(out, simulated(before=asked.append))
    asked.clear()
    return out


def resume(out: PrivateRoot, asked: Asked) -> tuple[RefusalCode, str | None]:
    with pytest.raises(ExaminationRefused) as caught:
        run_examination(out, simulated(before=asked.append), resume=True)
    return caught.value.code, caught.value.field


def terminate() -> None:
    raise Terminated(signal.SIGTERM)


def put(path: Path, kind: str) -> None:
    """Something of this kind at a path."""
    if kind == "folder":
        path.mkdir(mode=0o700)
    elif kind == "link":
        path.symlink_to(path.with_name("r01-a1"))
    else:
        path.write_bytes(b"" if kind == "empty file" else b"text")
        path.chmod(0o600)


def rewrite(folder: Path, change: Anything) -> None:
    """Change the sample of an attempt and everything that vouches for it, as its owner could."""
    name = folder.name
    path = folder / "samples" / f"{name}.json"
    intent_path = folder / "samples" / f".{name}.intent.json"
    sample, intent = json.loads(path.read_bytes()), json.loads(intent_path.read_bytes())
    change(sample, intent)
    intent["sample_hash"] = digest_object(to_json(validate(Sample, sample)))
    path.write_bytes(dump_line(sample))
    intent_path.write_bytes(line(validate(SampleIntent, intent)))


class TestNames:
    def test_of_an_attempt(self) -> None:
        assert attempt_name(2, 3) == "r02-a3"

    @pytest.mark.parametrize("name", ["r03-a1", "r00-a1", "r01-a3", "r01-a4", "r1-a1", "note", "r01-a2.bak"])
    def test_what_is_no_next_attempt_stops_everything(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, name: str
    ) -> None:
        """A gap is an attempt that somebody took away."""
        (tmp_path / "out/attempts" / name).mkdir(mode=0o700)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, name)
        assert asked == []

    def test_a_removed_attempt_is_a_gap(self, tmp_path: Path) -> None:
        """Nobody gets a better record by deleting the failed attempt."""
        out, reviewer = open_out(tmp_path), Reviewer.real(Scripted(always("nonsense")))
        plan = type(PLAN)(model="m", reviewer_family="f")
        for turn in range(2):
            with pytest.raises(ExaminationRefused):
                run_examination(out, reviewer, plan, resume=turn > 0)
        shutil.rmtree(tmp_path / "out/attempts/r01-a1")
        with pytest.raises(ExaminationRefused) as caught:
            run_examination(out, reviewer, plan, resume=True)
        assert (caught.value.code, caught.value.field) == (RefusalCode.SAMPLES_INVALID, "r01-a2")

    def test_an_ending_of_no_attempt_stops_everything(self, out: PrivateRoot, asked: Asked) -> None:
        with out.child("endings", create=True) as endings:
            endings.publish("r02-a2.json", b"{}\n")
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r02-a2.json")

    def test_a_file_in_the_place_of_an_attempt(self, out: PrivateRoot, asked: Asked, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "out/attempts/r02-a1")
        (tmp_path / "out/attempts/r02-a1").write_bytes(b"")
        assert resume(out, asked)[0] is RefusalCode.FOLDER_UNUSABLE
        assert asked == []

    @pytest.mark.parametrize("kind", ["empty file", "text", "folder", "link"])
    @pytest.mark.parametrize("beside", ["r01-a1", "r02-a1"])
    def test_nothing_lies_behind_an_attempt_with_its_sample(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, beside: str, kind: str
    ) -> None:
        """No attempt of ours begins there, so it is named, and not passed over because nobody looks."""
        path = tmp_path / "out/attempts" / beside.replace("a1", "a2")
        put(path, kind)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, path.name)
        with pytest.raises(ExaminationRefused) as caught:
            derive_again(out, BankName.JUDGED)
        assert caught.value.field == path.name
        assert asked == []

    @pytest.mark.parametrize("kind", ["empty file", "text", "folder"])
    def test_nothing_lies_behind_an_attempt_that_is_not_spent(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, kind: str
    ) -> None:
        """An attempt that made no call is taken up again first."""
        attempt = tmp_path / "out/attempts/r02-a1"
        shutil.rmtree(attempt)
        attempt.mkdir(mode=0o700)
        put(attempt.with_name("r02-a2"), kind)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r02-a2")
        assert asked == []

    @pytest.mark.parametrize("name", ["r01-a1", "r01-a1.txt", "note.json", ".json"])
    def test_nothing_lies_beside_the_endings(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, name: str
    ) -> None:
        (tmp_path / "out/endings").mkdir(mode=0o700)
        (tmp_path / "out/endings" / name).touch(mode=0o600)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, name)


class TestSignals:
    """A signal during an attempt ends it like everything else that spends it: with a record."""

    def ended_at(self, tmp_path: Path, concerned: Callable[[str], bool], operation: str) -> Asked:
        """The calls of an examination that a signal ends at the first such write, and that is resumed."""
        asked: Asked = []
        stop = Injection(operation, before=terminate, about=concerned)
        with pytest.raises(Terminated):
            run_examination(open_out(tmp_path, FaultFs(UnsyncedFs(), stop)), simulated(before=asked.append))
        run_examination(open_out(tmp_path), simulated(before=asked.append), resume=True)
        return asked

    def endings(self, tmp_path: Path) -> dict[str, tuple[str, str]]:
        found = (json.loads(path.read_bytes()) for path in (tmp_path / "out/endings").glob("*.json"))
        return {each["attempt"]: (each["ending"], each["detail"]) for each in found}

    def test_during_the_call(self, tmp_path: Path) -> None:
        """R28: its cost is unknown, and it counts among the three."""
        asked: Asked = []
        calls = iter([terminate])

        def before(sample_id: str) -> None:
            asked.append(sample_id)
            next(calls, lambda: None)()

        with pytest.raises(Terminated):
            run_examination(open_out(tmp_path), simulated(before=before))
        record = json.loads((tmp_path / "out/endings/r01-a1.json").read_bytes())
        assert (record["ending"], record["detail"], record["synthetic"]) == ("cancelled", "signal", True)
        assert set(record["usage"].values()) == {None}
        run_examination(open_out(tmp_path), simulated(before=before), resume=True)
        assert asked == ["r01-a1", "r01-a2", "r02-a1"]

    def test_while_its_ending_is_written(self, tmp_path: Path) -> None:
        """R28: whatever it was about to say; there is a record all the same."""
        stop = Injection("link", before=terminate, about=lambda path: "endings" in path)
        plan = type(PLAN)(model="m", reviewer_family="f")
        with pytest.raises(Terminated):
            run_examination(
                open_out(tmp_path, FaultFs(UnsyncedFs(), stop)),
                Reviewer.real(Scripted(always("nonsense"))),
                plan,
            )
        assert stop.hits == 1
        assert self.endings(tmp_path) == {"r01-a1": ("cancelled", "signal")}

    def test_before_anything_is_spent(self, tmp_path: Path) -> None:
        """R28: the same attempt is taken up again, and there is nothing to record."""
        asked = self.ended_at(tmp_path, lambda path: "sample-ledger" in path, "create_exclusive")
        assert asked == ["r01-a1", "r02-a1"]
        assert not (tmp_path / "out/endings").exists()

    def test_between_intent_and_ledger(self, tmp_path: Path) -> None:
        """R28: spent without a call."""
        intent = tmp_path / "out/attempts/r01-a1/samples/.r01-a1.intent.json"
        asked = self.ended_at(
            tmp_path, lambda path: intent.exists() and "sample-ledger" in path, "create_exclusive"
        )
        assert asked == ["r01-a2", "r02-a1"]
        assert self.endings(tmp_path) == {"r01-a1": ("never_called", "signal")}

    def test_between_sample_and_completion(self, tmp_path: Path) -> None:
        """R9: an answer that no intent confirms."""
        sample = tmp_path / "out/attempts/r01-a1/samples/r01-a1.json"
        asked = self.ended_at(
            tmp_path, lambda path: sample.exists() and "intent.json" in path, "create_exclusive"
        )
        assert asked == ["r01-a1", "r01-a2", "r02-a1"]
        assert self.endings(tmp_path) == {"r01-a1": ("cancelled", "signal")}

    def test_after_the_completion(self, tmp_path: Path) -> None:
        """R28: what is complete counts, whenever the signal comes."""
        attempt = tmp_path / "out/attempts/r02-a1"
        asked = self.ended_at(tmp_path, lambda path: str(attempt) in path, "mkdir")
        assert asked == ["r01-a1", "r02-a1"]
        assert not (tmp_path / "out/endings").exists()

    def test_that_cannot_be_recorded(self, tmp_path: Path) -> None:
        """F10: the signal is what is heard of; the attempt counts as one that nobody lived to end."""
        full = Injection("mkdir", errno.ENOSPC, nth=0, about=lambda path: "endings" in path)
        with pytest.raises(Terminated):
            run_examination(
                open_out(tmp_path, FaultFs(UnsyncedFs(), full)), simulated(before=lambda _id: terminate())
            )
        found = run_examination(open_out(tmp_path), resume=True)
        assert found.calls == 2


class TestOrientation:
    @pytest.mark.parametrize("name", ["observations/r02-a1.json", ".orientation.key"])
    def test_what_the_key_does_not_draw_does_not_count(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, name: str
    ) -> None:
        """R4 R16: an observation turned over as a whole, or another key, at a resume and wherever a licence
        would read the examination again.
        """
        path = tmp_path / "out/attempts/r02-a1" / name
        if name.endswith("key"):
            path.write_bytes(bytes(32))
        else:
            observation = json.loads(path.read_bytes())
            for shown in observation["shown"]:
                shown["orientation"] = 1 - shown["orientation"]
                shown["verdict"] = {"A win": "B win", "B win": "A win"}.get(shown["verdict"], "tie")
            path.write_bytes(dump_line(observation))
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r02-a1")
        with pytest.raises(ExaminationRefused, match="orientation key") as caught:
            derive_again(out, BankName.JUDGED)
        assert (caught.value.code, caught.value.field) == (RefusalCode.SAMPLES_INVALID, "r02-a1")
        assert asked == []

    def test_a_published_commitment_to_another_key(self, out: PrivateRoot, asked: Asked) -> None:
        """R4: whoever replaced keys and observations together has a sheet that says so."""
        sheet = json.loads(out.read(METRICS))
        sheet["reviewers"][0]["orientation_key_hashes"][0] = OTHER
        out.replace(METRICS, dump_line(sheet))
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, METRICS)
        with pytest.raises(ExaminationRefused) as caught:
            derive_again(out, BankName.JUDGED)
        assert caught.value.code is RefusalCode.SAMPLES_INVALID
        # A sheet that commits to nothing is rebuilt.
        out.remove(METRICS)
        run_examination(out, simulated(before=asked.append), resume=True)
        assert derive_again(out, BankName.JUDGED).sheet.reviewers
        assert asked == []


class TestAskingAgain:
    @pytest.mark.parametrize("damage", ["unlink", "mode", "stray"])
    def test_a_completed_attempt_that_cannot_be_read_is_never_asked_again(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, damage: str
    ) -> None:
        """R9 R28: its answer was paid for, and a bad one must not be drawn anew by spoiling it."""
        for name in ("reviewer-calibration.json", "reviewer-calibration-result.json"):
            (tmp_path / "out" / name).unlink()
        sample = tmp_path / "out/attempts/r02-a1/samples/r02-a1.json"
        if damage == "unlink":
            sample.unlink()
        elif damage == "mode":
            sample.chmod(0o644)
        else:
            stray = sample.with_name("r02-a1.json~")
            stray.write_bytes(b"{}")
            stray.chmod(0o600)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r02-a1")
        assert asked == []

    def test_figures_alone_say_as_well_that_everything_was_there(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path
    ) -> None:
        """R28: a repeat is not drawn anew because the pair and its attempt were taken away together."""
        for name in ("reviewer-calibration.json", "reviewer-calibration-result.json"):
            (tmp_path / "out" / name).unlink()
        shutil.rmtree(tmp_path / "out/attempts/r02-a1")
        assert resume(out, asked) == (RefusalCode.PUBLICATION_DIFFERS, METRICS)
        assert asked == []

    @pytest.mark.parametrize("name", ["reviewer-calibration.json", "reviewer-calibration-result.json"])
    def test_what_is_published_is_never_paid_for_again(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, name: str
    ) -> None:
        """F4: not even when its samples were damaged afterwards, and not for half of it."""
        (tmp_path / "out" / name).unlink()
        (tmp_path / "out/attempts/r02-a1/samples/r02-a1.json").unlink()
        assert resume(out, asked)[0] is RefusalCode.SAMPLES_INVALID
        assert asked == []

    def test_a_moved_folder_is_not_paid_for_again(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path
    ) -> None:
        """Its samples are good where they were taken."""
        del out
        (tmp_path / "out").rename(tmp_path / "moved")
        moved = open_out(tmp_path, name="moved")
        code, _ = resume(moved, asked)
        assert (code, asked) == (RefusalCode.SAMPLES_INVALID, [])
        moved.close()
        (tmp_path / "moved").rename(tmp_path / "out")
        assert run_examination(open_out(tmp_path), resume=True).calls == 0

    def test_an_unsafe_lock_is_not_paid_for(self, out: PrivateRoot, asked: Asked, tmp_path: Path) -> None:
        (tmp_path / "out/attempts/r01-a1/.sample.lock").chmod(0o644)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")
        assert asked == []


class TestForeignSamples:
    def test_of_another_id(self, out: PrivateRoot, asked: Asked, tmp_path: Path) -> None:
        """An attempt holds one sample, its own."""
        folder = tmp_path / "out/attempts/r01-a1"
        root_hash = json.loads((folder / "samples/r01-a1.json").read_bytes())["artifact_root_hash"]
        found = receipts("other", root_hash)
        for place, record in (
            ("sample-ledger/other.json", found.ledger),
            ("samples/.other.intent.json", found.intent),
            ("samples/other.json", found.sample),
        ):
            (folder / place).write_bytes(line(record))
            (folder / place).chmod(0o600)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")

    def test_a_reservation_of_another_id(self, tmp_path: Path, asked: Asked) -> None:
        out = open_out(tmp_path)
        run_examination(out)
        folder = tmp_path / "out/attempts/r02-a1"
        root_hash = json.loads((folder / "samples/r02-a1.json").read_bytes())["artifact_root_hash"]
        for path in folder.rglob("*r02-a1*.json"):
            path.unlink()
        entry = {**to_json(receipts("other", root_hash).ledger), "state": "reserved"}
        (folder / "sample-ledger/other.json").write_bytes(dump_line(entry))
        (folder / "sample-ledger/other.json").chmod(0o600)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r02-a1")
        assert asked == []

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("provider", "codex"),
            ("provider_cli_version", "other"),
            ("provider_executable_hash", OTHER),
            ("model", "other"),
            ("reviewer_family", "other"),
            ("timeout_seconds", 7),
            ("runtime_manifest_hash", OTHER),
            ("known_answer_fixture_hash", OTHER),
            ("runner_hash", OTHER),
        ],
    )
    def test_under_another_binding(
        self, out: PrivateRoot, asked: Asked, tmp_path: Path, field: str, value: object
    ) -> None:
        """R29: a sample that says otherwise than the examination is not counted, and not asked for again."""

        def change(sample: dict[str, Any], intent: dict[str, Any]) -> None:
            sample[field] = intent[field] = value

        rewrite(tmp_path / "out/attempts/r01-a1", change)
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")
        assert asked == []

    @pytest.mark.parametrize("field", ["runner_contract", "requested_session_mode", "tool_access"])
    def test_taken_in_another_way(self, out: PrivateRoot, asked: Asked, tmp_path: Path, field: str) -> None:
        """R32: the labels are those of the provider."""
        rewrite(tmp_path / "out/attempts/r01-a1", lambda sample, _intent: sample.update({field: "other"}))
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")

    def test_in_another_order(self, out: PrivateRoot, asked: Asked, tmp_path: Path) -> None:
        """Judgements stand in the order of the bank."""
        rewrite(tmp_path / "out/attempts/r01-a1", lambda sample, _intent: sample["judgments"].reverse())
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")

    def test_without_its_observation(self, out: PrivateRoot, asked: Asked, tmp_path: Path) -> None:
        """Every attempt was shown in a drawn order; that record is part of it."""
        (tmp_path / "out/attempts/r01-a1/observations/r01-a1.json").unlink()
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")
        assert asked == []


class TestEndings:
    @pytest.fixture
    def failed(self, tmp_path: Path) -> PrivateRoot:
        """An examination whose first attempt gave no answer."""
        out = open_out(tmp_path)
        with pytest.raises(ExaminationRefused):
            run_examination(out, Reviewer.real(Scripted(always("nonsense"))), type(PLAN)("m", "f"))
        return out

    def again(self, out: PrivateRoot) -> tuple[RefusalCode, str | None]:
        with pytest.raises(ExaminationRefused) as caught:
            run_examination(out, Reviewer.real(Scripted(always("tie"))), type(PLAN)("m", "f"), resume=True)
        return caught.value.code, caught.value.field

    def test_is_a_record_of_words(self, failed: PrivateRoot) -> None:
        with failed.child("endings") as endings:
            assert json.loads(endings.read("r01-a1.json")) == {
                "schema_version": 1,
                "artifact_contract": "skill-effectiveness-reviewer-calibration-attempt-ending-v1",
                "attempt": "r01-a1",
                "ending": "answer_invalid",
                "detail": "verdict_unknown",
                "usage": {"input_tokens": None, "output_tokens": None, "cost_units": None, "latency_ms": 0},
            }

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"null"])
    def test_one_that_cannot_be_read_stops_everything(self, failed: PrivateRoot, data: bytes) -> None:
        with failed.child("endings") as endings:
            endings.replace("r01-a1.json", data)
        assert self.again(failed) == (RefusalCode.SAMPLES_INVALID, "r01-a1")

    def test_one_about_another_attempt_stops_everything(self, failed: PrivateRoot) -> None:
        with failed.child("endings") as endings:
            document = json.loads(endings.read("r01-a1.json"))
            endings.replace("r01-a1.json", dump_line({**document, "attempt": "r02-a1"}))
        assert self.again(failed) == (RefusalCode.SAMPLES_INVALID, "r01-a1")

    def test_one_beside_a_sample_is_a_contradiction(self, out: PrivateRoot, asked: Asked) -> None:
        with out.child("endings", create=True) as endings:
            endings.publish("r01-a1.json", b"{}\n")
        assert resume(out, asked) == (RefusalCode.SAMPLES_INVALID, "r01-a1")
