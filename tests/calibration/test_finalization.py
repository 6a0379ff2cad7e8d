from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skill_effectiveness.calibration.errors import PairRefused
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.sealing import seal_pair, verify_folder
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.pair import load_pair
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.controller import CLAIM, EVIDENCE, INTENT, METRICS, RESULT, STAGED, Controller
from tests.support.examinations import (
    INPUTS,
    MANIFEST,
    OTHER,
    Scripted,
    UnsyncedFs,
    always,
    answer_text,
    open_out,
)
from tests.support.frozen import CopiedFs
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.providers import JudgeCall
    from tests.support.controller import Reply

PAIR = (EVIDENCE, RESULT)
PUBLISHED = (*PAIR, METRICS)
ORIGIN = {STAGED[0]: EVIDENCE, STAGED[1]: RESULT}
TOKEN = 64 * "7"


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path).sampled()


class Left:
    """A root that was finalized, and then put back into a state that a crash or somebody else leaves."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        assert controller.finalize().word == "ok"
        self.good = content(controller.root / "calibration")
        self.intent = json.loads((controller.root / INTENT).read_bytes())

    def put(self, name: str, data: bytes, mode: int = 0o600) -> None:
        path = self.controller.file(name)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    def at(self, state: str, *names: str) -> Left:
        """With the intent in this state, and of the publication these files alone, as they were published."""
        begin_again(self.controller)
        (self.controller.root / "calibration").mkdir(0o700)
        self.write_intent(line(self.intent | {"state": state}))
        for name in names:
            self.put(name, self.good[ORIGIN.get(name, name)])
        return self

    def write_intent(self, data: bytes) -> None:
        (self.controller.root / INTENT).write_bytes(data)
        (self.controller.root / INTENT).chmod(0o600)

    def ask(self) -> Reply:
        return self.controller.finalize()

    def refused(self, word: str) -> Reply:
        """The request is refused with this word, and nothing at all changes."""
        before = content(self.controller.root)
        reply = self.ask()
        assert reply.word == word
        assert content(self.controller.root) == before
        return reply

    def completes(self) -> None:
        """The request ends with the same bytes, nothing besides, and the intent completed."""
        calls = self.controller.calls
        reply = self.ask()
        assert reply.word == "ok", reply.told
        assert content(self.controller.root / "calibration") == self.good
        assert json.loads((self.controller.root / INTENT).read_bytes()) == self.intent
        assert self.ask().word == "finalize_already_started"
        assert self.controller.calls == calls


def begin_again(controller: Controller) -> None:
    """A root with the same samples and nothing of a finalization."""
    for path in (controller.root / "calibration", controller.root / INTENT):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@pytest.fixture(scope="module")
def finalized(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Receipts name the path of their root, so one root serves all tests that put it back."""
    return Left(Controller(tmp_path_factory.mktemp("left")).sampled())


@pytest.fixture
def left(finalized: Left) -> Left:
    return finalized.at("completed", *finalized.good)


class TestPair:
    def test_is_published_with_its_records(self, controller: Controller) -> None:
        """R16: five files, private all of them, and no call."""
        reply = controller.finalize()
        assert reply.result == {
            "calibration_status": "fail",
            "calibration_evidence": EVIDENCE,
            "calibration_result": RESULT,
            "runtime_manifest_hash": MANIFEST,
            "model_call_count": 0,
        }
        assert controller.calls == 2
        assert set(content(controller.root / "calibration")) == {*PUBLISHED, CLAIM}
        assert wrong_modes(controller.root) == []

    def test_its_result_is_that_of_the_single_sample_protocol(self, controller: Controller) -> None:
        """R32: contract, ids in the order of the request, runtime and labels."""
        controller.finalize("s-2", "s-1")
        result = json.loads(controller.file(RESULT).read_bytes())
        assert result["runner_contract"] == "codex-cli-reviewer-calibration-single-sample-v1"
        assert result["sample_ids"] == ["s-2", "s-1"]
        assert result["runtime_manifest_hash"] == MANIFEST
        assert result["requested_session_mode"] == "ephemeral"
        assert result["tool_access"] == "read-only-observed-none"
        assert result["provider_environment_keys"] == ["HOME", "PATH"]
        assert result["repeat_count"] == 2
        assert "synthetic" not in result
        evidence = json.loads(controller.file(EVIDENCE).read_bytes())
        assert result["calibration_evidence_hash"] == digest_object(evidence)
        taken = [
            json.loads((controller.root / f"samples/{each}.json").read_bytes()) for each in ("s-2", "s-1")
        ]
        assert evidence["reviewers"][0]["runs"] == [sample["judgments"] for sample in taken]

    def test_its_intent_binds_samples_pair_and_token(self, controller: Controller) -> None:
        controller.finalize()
        intent = json.loads((controller.root / INTENT).read_bytes())
        documents = {name: json.loads(controller.file(name).read_bytes()) for name in PAIR}
        taken = [
            json.loads((controller.root / f"samples/{each}.json").read_bytes()) for each in ("s-1", "s-2")
        ]
        token = json.loads(controller.file(CLAIM).read_bytes())["claim_token"]
        assert len(bytes.fromhex(token)) == 32
        assert intent == {
            "schema_version": 1,
            "artifact_contract": "skill-effectiveness-reviewer-calibration-finalization-intent-v1",
            "artifact_root_hash": digest_object({"artifact_root": str(controller.root)}),
            "runtime_manifest_hash": MANIFEST,
            "sample_ids": ["s-1", "s-2"],
            "sample_hashes": [digest_object(sample) for sample in taken],
            "state": "completed",
            "published_pair_hash": digest_object(
                {
                    "result": digest_object(documents[RESULT]),
                    "evidence": digest_object(documents[EVIDENCE]),
                }
            ),
            "claim_token": token,
        }

    def test_loads_through_the_one_loader_and_can_be_sealed(
        self, controller: Controller, tmp_path: Path
    ) -> None:
        """R45: the same reader, seal and ten checks as every other pair."""
        controller.finalize()
        with open_out(tmp_path, name="root") as root, root.child("calibration") as source:
            loaded = load_pair(source, *PAIR, lambda one, two: load_calibration(one, two, inputs=INPUTS))
            assert loaded.result.sample_ids == ("s-1", "s-2")
            key = Ed25519PrivateKey.generate()
            with open_out(tmp_path, name="sealed") as sealed:
                seal_pair(source, key, sealed)
        verified = verify_folder(tmp_path / "sealed", key.public_key(), fs=RealFs())
        assert verified.passed
        assert len(verified.checks) == 10

    def test_sample_ids_that_are_not_its_own_do_not_load(self, controller: Controller) -> None:
        """R19: the loader derives how many there are."""
        controller.finalize()
        result = json.loads(controller.file(RESULT).read_bytes()) | {"sample_ids": ["s-1", "s-1"]}
        with pytest.raises(PairRefused):
            load_calibration(controller.file(EVIDENCE).read_bytes(), line(result), inputs=INPUTS)

    def test_its_sheet_counts_calls_and_positions(self, tmp_path: Path) -> None:
        """R5 R25: a reviewer that favours the first seat, whose cost nobody knows."""
        Controller(tmp_path, Scripted(always("A win"))).sampled().finalize()
        sheet = json.loads((tmp_path / "root/calibration" / METRICS).read_bytes())
        (reviewer,) = sheet["reviewers"]
        assert sheet["synthetic"] is False
        assert reviewer["position"]["first_seat"]["value"] == 1
        assert reviewer["cost"]["call_count"] == 2
        assert reviewer["cost"]["input_tokens"] == "unknown"

    def test_five_samples_and_no_sixth(self, tmp_path: Path) -> None:
        """R12: the sixth makes no call and leaves the root finalizable."""
        ids = [f"s-{number}" for number in range(1, 6)]
        controller = Controller(tmp_path).sampled(*ids)
        assert controller.sample("s-6").word == "sample_set_mismatch"
        assert controller.calls == 5
        assert controller.finalize(*ids).word == "ok"
        assert json.loads(controller.file(RESULT).read_bytes())["repeat_count"] == 5

    def test_samples_of_an_older_contract(self, controller: Controller) -> None:
        """R13: an entry without a state, and no observations; the presentation counts as the bank's own."""
        for path in (controller.root / "sample-ledger").iterdir():
            entry = json.loads(path.read_bytes())
            entry["artifact_contract"] = entry["artifact_contract"].replace("v2", "v1")
            del entry["state"]
            path.write_bytes(line(entry))
        shutil.rmtree(controller.root / "observations")
        assert controller.finalize().word == "ok"
        (reviewer,) = json.loads(controller.file(METRICS).read_bytes())["reviewers"]
        assert reviewer["orientation_key_hashes"] == []


class TestRefusals:
    """Before the claim: nothing is written, and the root stays open."""

    @pytest.fixture(autouse=True)
    def _nothing_was_written(self, controller: Controller) -> Iterator[None]:
        before = content(controller.root)
        yield
        after = content(controller.root)
        assert {name for name in after if INTENT in name or name.startswith("calibration/")} == set()
        assert set(after) <= set(before)

    def test_another_set(self, controller: Controller) -> None:
        assert controller.finalize("s-1", "s-3").word == "sample_set_mismatch"

    def test_a_reviewer_s_folder_that_is_gone(self, controller: Controller) -> None:
        shutil.rmtree(controller.root / "samples")
        assert controller.finalize().word == "sample_set_mismatch"

    def test_a_folder_that_is_a_link(self, controller: Controller, tmp_path: Path) -> None:
        """R11: whatever it leads to."""
        (controller.root / "samples").rename(tmp_path / "elsewhere")
        (controller.root / "samples").symlink_to(tmp_path / "elsewhere")
        assert controller.finalize().word == "artifact_root_quarantined"

    def test_a_bank_that_is_not_the_frozen_one(self, controller: Controller, tmp_path: Path) -> None:
        """R2: the committed file is broken, which is nobody's drift."""
        (tmp_path / "copy").mkdir()
        fs = CopiedFs(tmp_path / "copy")
        fs.path("fixtures/pilot-gates.json").write_text("{")
        controller.fs = fs
        assert controller.finalize().word == "fixture_invalid"

    def test_a_log_that_cannot_be_believed(self, controller: Controller) -> None:
        (controller.root / "provider-log/s-2.json").write_bytes(b"{}\n")
        assert controller.finalize().word == "sample_invalid"

    def test_a_lock_that_is_a_folder(self, controller: Controller) -> None:
        """R15: quarantine, for a finalization too."""
        (controller.root / ".sample.lock").unlink()
        (controller.root / ".sample.lock").mkdir()
        assert controller.finalize().word == "artifact_root_quarantined"


class TestSessions:
    """R31: what one call was told must not be known in another."""

    def controller(self, folder: Path, *sessions: str | None) -> Controller:
        def answers(number: int, call: JudgeCall) -> CallOutcome:
            return CallOutcome(
                Ending.SUCCESS, answer=answer_text(call, "tie"), session_id=sessions[number - 1]
            )

        return Controller(folder, Scripted(answers)).sampled()

    def test_of_two_samples_that_are_one(self, tmp_path: Path) -> None:
        """R31: nothing is published, and the root stays open to its owner's eyes alone."""
        controller = self.controller(tmp_path, "thread-1", "thread-1")
        reply = controller.finalize()
        assert reply.word == "sample_invalid"
        assert "session of s-1" in reply.told
        assert not (controller.root / INTENT).exists()

    @pytest.mark.parametrize("sessions", [("thread-1", "thread-2"), (None, None), ("thread-1", None)])
    def test_that_differ_or_are_not_named(self, tmp_path: Path, sessions: tuple[str | None, ...]) -> None:
        assert self.controller(tmp_path, *sessions).finalize().word == "ok"

    def test_of_samples_without_a_log(self, controller: Controller) -> None:
        """R13: older roots have none."""
        shutil.rmtree(controller.root / "provider-log")
        assert controller.finalize().word == "ok"


class TestNoIntent:
    @pytest.mark.parametrize("kind", ["link", "mode", "file"])
    def test_a_folder_of_somebody_else(self, controller: Controller, tmp_path: Path, kind: str) -> None:
        """R16: no intent is written, so the root is not closed by it."""
        place = controller.root / "calibration"
        make: dict[str, Callable[[], object]] = {
            "link": lambda: (tmp_path / "elsewhere").mkdir(0o700) or place.symlink_to(tmp_path / "elsewhere"),
            "mode": lambda: place.mkdir(0o755),
            "file": lambda: place.write_bytes(b""),
        }
        make[kind]()
        assert controller.finalize().word == "finalization_recovery_required"
        assert not (controller.root / INTENT).exists()
        assert controller.sample("s-3").word == "ok"

    def test_a_race_that_is_lost(self, controller: Controller) -> None:
        """R16: an intent that appears while ours is published belongs to somebody else."""
        other = controller.root / INTENT

        def appears() -> None:
            other.write_bytes(b"{}\n")
            other.chmod(0o600)

        racing = Injection("link", about=lambda path: INTENT in path, before=appears)
        controller.fs = FaultFs(UnsyncedFs(), racing)
        assert controller.finalize().word == "finalize_already_started"
        assert racing.hits == 1
        assert other.read_bytes() == b"{}\n"

    def test_an_empty_folder_of_ours_is_used(self, controller: Controller) -> None:
        (controller.root / "calibration").mkdir(0o700)
        assert controller.finalize().word == "ok"

    @pytest.mark.parametrize("name", [*PUBLISHED, *STAGED])
    def test_a_file_of_somebody_else_stops_after_the_intent(self, controller: Controller, name: str) -> None:
        """R16: and once exactly it is gone, the same request goes on."""
        (controller.root / "calibration").mkdir(0o700)
        path = controller.file(name)
        path.write_bytes(b"{}\n")
        path.chmod(0o600)
        reply = controller.finalize()
        assert reply.word == "finalization_recovery_required"
        assert f"calibration/{name}" in reply.told
        assert path.read_bytes() == b"{}\n"
        assert controller.sample("s-3").word == "finalize_already_started"
        path.unlink()
        assert controller.finalize().word == "ok"


class TestIntents:
    def test_a_link(self, left: Left, tmp_path: Path) -> None:
        left.at("output_claimed", CLAIM)
        intent = left.controller.root / INTENT
        intent.rename(tmp_path / "intent.json")
        intent.symlink_to(tmp_path / "intent.json")
        left.refused("artifact_root_quarantined")

    @pytest.mark.parametrize(
        "change",
        [
            {"claim_token": ""},
            {"claim_token": TOKEN[1:]},
            {"sample_ids": ["s-2", "s-1"]},
            {"sample_ids": ["s-1", "s-3"]},
            {"sample_hashes": [OTHER, OTHER]},
            {"runtime_manifest_hash": OTHER},
            {"artifact_root_hash": OTHER},
            {"published_pair_hash": OTHER},
            {"state": "begun"},
            {"surplus": 1},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("state", ["publication_started", "output_claimed"])
    def test_of_something_else(self, left: Left, state: str, change: dict[str, Any]) -> None:
        """R16: other ids or hashes, no valid token, unknown fields: there is no way on from there."""
        left.at(state, CLAIM)
        left.write_intent(line(left.intent | {"state": state} | change))
        left.refused("finalize_already_started")

    def test_without_a_token(self, left: Left) -> None:
        """R16: what an older version left is not migrated."""
        left.at("output_claimed", CLAIM)
        document = {name: value for name, value in left.intent.items() if name != "claim_token"}
        left.write_intent(line(document | {"state": "output_claimed"}))
        left.refused("finalize_already_started")

    @pytest.mark.parametrize("kind", ["mode", "torn", "layout", "folder", "fifo"])
    def test_that_cannot_be_believed(self, left: Left, kind: str) -> None:
        left.at("output_claimed", CLAIM)
        path = left.controller.root / INTENT
        data = path.read_bytes()
        spoil: dict[str, Callable[[], object]] = {
            "mode": lambda: path.chmod(0o644),
            "torn": lambda: path.write_bytes(data[:40]),
            "layout": lambda: path.write_bytes(json.dumps(json.loads(data)).encode()),
            "folder": lambda: (path.unlink(), path.mkdir(0o700)),
            "fifo": lambda: (path.unlink(), os.mkfifo(path, 0o600)),
        }
        spoil[kind]()
        left.refused("finalize_already_started")

    def test_another_request_than_the_one_that_was_begun(self, left: Left) -> None:
        """R16: the same ids in another order are another calibration."""
        left.at("publication_started")
        assert left.controller.finalize("s-2", "s-1").word == "finalize_already_started"
        left.completes()

    def test_completed(self, left: Left) -> None:
        """R16: whatever became of its files."""
        left.refused("finalize_already_started")
        left.at("completed", EVIDENCE).refused("finalize_already_started")


class TestStarted:
    @pytest.mark.parametrize("names", [(), (CLAIM,)], ids=["no lock", "our lock"])
    def test_is_taken_up(self, left: Left, names: tuple[str, ...]) -> None:
        """R16: an exact retry before the claim resumes the same intent, token included."""
        left.at("publication_started", *names).completes()

    def test_is_taken_up_when_the_folder_is_gone(self, left: Left) -> None:
        left.at("publication_started")
        (left.controller.root / "calibration").rmdir()
        left.completes()

    @pytest.mark.parametrize("name", [*PUBLISHED, *STAGED])
    def test_is_stopped_by_a_file_of_the_publication(self, left: Left, name: str) -> None:
        reply = left.at("publication_started", CLAIM, name).refused("finalization_recovery_required")
        assert f"remove exactly calibration/{name}," in reply.told


LOCKS: dict[str, Callable[[Left], object]] = {
    "another token": lambda left: left.put(CLAIM, line({"claim_token": TOKEN})),
    "not private": lambda left: left.controller.file(CLAIM).chmod(0o644),
    "unreadable": lambda left: left.put(CLAIM, b"{"),
    "folder": lambda left: (left.controller.file(CLAIM).unlink(), left.controller.file(CLAIM).mkdir(0o700)),
    "link": lambda left: (
        left.controller.file(CLAIM).rename(left.controller.folder / "lock"),
        left.controller.file(CLAIM).symlink_to(left.controller.folder / "lock"),
    ),
}


@pytest.mark.parametrize("state", ["publication_started", "output_claimed"])
@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_of_somebody_else(left: Left, state: str, kind: str) -> None:
    """R16: present, and not the one of this finalization."""
    left.at(state, CLAIM)
    LOCKS[kind](left)
    left.refused("finalization_recovery_required")


UNSAFE: dict[str, Callable[[Left, Path], object]] = {
    "link": lambda left, path: path.symlink_to(left.controller.folder / "elsewhere"),
    "folder": lambda _left, path: path.mkdir(0o700),
    "readable": lambda left, path: left.put(path.name, b"{}\n", 0o644),
    "fifo": lambda _left, path: os.mkfifo(path, 0o600),
    "no JSON": lambda left, path: left.put(path.name, b"{"),
    "hard link": lambda left, path: (
        left.put("other", b"{}\n"),
        left.controller.file("other").rename(left.controller.folder / "other"),
        path.hardlink_to(left.controller.folder / "other"),
    ),
}


class TestClaimed:
    @pytest.mark.parametrize(
        "names",
        [
            (),
            (STAGED[0],),
            STAGED,
            (EVIDENCE,),
            (EVIDENCE, STAGED[1]),
            (RESULT,),
            PAIR,
            (*PAIR, *STAGED),
            (*PAIR, STAGED[1], METRICS),
            PUBLISHED,
        ],
        ids=lambda names: "+".join(names) or "nothing",
    )
    @pytest.mark.parametrize("lock", [True, False], ids=["lock", "no lock"])
    def test_is_finished_from_every_half(self, left: Left, names: tuple[str, ...], *, lock: bool) -> None:
        """R16 R19 E43: with the same bytes, the token put back where it is missing, and no call."""
        left.at("output_claimed", *names, *((CLAIM,) if lock else ())).completes()

    def test_is_finished_when_the_folder_is_gone(self, left: Left) -> None:
        left.at("output_claimed")
        (left.controller.root / "calibration").rmdir()
        left.completes()

    def test_own_partials_are_overwritten(self, left: Left) -> None:
        """R16: valid and private, and of no complete pair."""
        left.at("output_claimed", CLAIM)
        left.put(STAGED[0], b"{}\n")
        left.put(EVIDENCE, b"{}\n")
        left.completes()

    def test_a_complete_pair_stays_in_its_very_files(self, left: Left) -> None:
        """R16: compared byte for byte and not written again."""
        left.at("output_claimed", *PAIR, *STAGED, CLAIM)
        files = [left.controller.file(name) for name in PAIR]
        before = [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in files]
        left.completes()
        assert [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in files] == before

    @pytest.mark.parametrize("name", PAIR)
    def test_a_complete_pair_that_the_samples_do_not_give(self, left: Left, name: str) -> None:
        """R16: one byte of layout is enough."""
        left.at("output_claimed", *PAIR, CLAIM)
        left.put(name, json.dumps(json.loads(left.good[name])).encode())
        left.refused("finalize_already_started")

    @pytest.mark.parametrize("name", STAGED)
    def test_a_leftover_that_a_complete_pair_contradicts(self, left: Left, name: str) -> None:
        left.at("output_claimed", *PAIR, CLAIM)
        left.put(name, b"{}\n")
        left.refused("finalization_recovery_required")
        left.controller.file(name).unlink()
        left.completes()

    def test_a_stale_sheet_is_made_anew(self, left: Left) -> None:
        left.at("output_claimed", *PAIR, CLAIM)
        left.put(METRICS, b"{}\n")
        left.completes()

    @pytest.mark.parametrize("name", [*PUBLISHED, *STAGED])
    @pytest.mark.parametrize("kind", UNSAFE)
    def test_what_cannot_be_ours_is_named_and_untouched(self, left: Left, name: str, kind: str) -> None:
        """R16 E44: repaired or removed, the same request goes on."""
        left.at("output_claimed", CLAIM, *(PAIR if name in STAGED else ()))
        path = left.controller.file(name)
        UNSAFE[kind](left, path)
        before = path.lstat()
        reply = left.ask()
        assert reply.word == "finalization_recovery_required"
        assert f"remove exactly calibration/{name}," in reply.told
        after = path.lstat()
        assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (
            before.st_ino,
            before.st_mode,
            before.st_mtime_ns,
        )
        (path.rmdir if kind == "folder" else path.unlink)()
        left.completes()

    def test_a_folder_that_is_a_link(self, left: Left, tmp_path: Path) -> None:
        left.at("output_claimed", *PAIR, CLAIM)
        (left.controller.root / "calibration").rename(tmp_path / "elsewhere")
        (left.controller.root / "calibration").symlink_to(tmp_path / "elsewhere")
        left.refused("finalization_recovery_required")
