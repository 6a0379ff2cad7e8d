from __future__ import annotations

import errno
import json
import shutil
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from skill_effectiveness.calibration.door import respond
from skill_effectiveness.calibration.errors import CalibrationCode, CalibrationError, Status
from skill_effectiveness.calibration.wire import REQUEST_LIMIT
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import ExecutableCode, ExecutableError
from skill_effectiveness.providers import CallOutcome, Ending
from tests.support.controller import (
    RUNTIME,
    UNREAD,
    Controller,
    Reply,
    changed,
    finalize_request,
    probe_request,
    sample_request,
)
from tests.support.examinations import (
    BANK,
    MANIFEST,
    OTHER,
    Anything,
    Scripted,
    UnsyncedFs,
)
from tests.support.frozen import CopiedFs
from tests.support.private import wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import JudgeCall

CANARY = "canary-4711"
SECRET = "sk-canary-4712"


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    """A controller whose every path carries a canary."""
    folder = tmp_path / CANARY
    folder.mkdir()
    return Controller(folder)


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(dump_line(document))
    return document


def rebind(controller: Controller, **values: str) -> None:
    """The second sample with other bindings, and its intent in agreement."""
    sample = edit(controller.root / "samples/s-2.json", lambda held: held.update(values))
    edit(
        controller.root / "samples/.s-2.intent.json",
        lambda held: held.update({**values, "sample_hash": digest_object(sample)}),
    )


def failing(operation: str, number: int, name: str) -> FaultFs:
    return FaultFs(UnsyncedFs(), Injection(operation, errno=number, nth=0, about=lambda path: name in path))


def nobody(_path: Path, _around: Surroundings) -> NoReturn:
    raise ExecutableError(ExecutableCode.NO_VERSION, f"/{CANARY} states no version.")


def broken(_path: Path, _around: Surroundings) -> NoReturn:
    raise RuntimeError(CANARY)


def unavailable() -> NoReturn:
    raise CalibrationError(CalibrationCode.RUNTIME_MANIFEST_UNAVAILABLE, "A file of it cannot be trusted.")


# What raises each code, by way of the whole door. Exit codes are those of the table in section 3.


def blocked_lock(c: Controller) -> Reply:
    c.fs = failing("open_update", errno.EMFILE, ".sample.lock")
    return c.sample()


def quarantined(c: Controller) -> Reply:
    (c.root / ".sample.lock").mkdir(parents=True)
    c.root.chmod(0o700)
    return c.sample()


def closed(c: Controller) -> Reply:
    c.sampled().finalize()
    return c.sample("s-3")


def twice(c: Controller) -> Reply:
    return c.sampled("s-1").sample("s-1")


def unnamed(c: Controller) -> Reply:
    c.settings = {"binders": {"codex": nobody}}
    return c.sample()


def no_answer(c: Controller) -> Reply:
    c.reviewer = Scripted(lambda _number, _call: CallOutcome(Ending.SUCCESS, answer=CANARY))
    return c.sample()


def unstored(c: Controller) -> Reply:
    c.fs = failing("link", errno.ENOSPC, "samples/.s-1.json")
    return c.sample()


def unreadable_sample(c: Controller) -> Reply:
    (c.sampled().root / "samples/s-2.json").write_bytes(b"{}\n")
    return c.finalize()


def edited_sample(c: Controller) -> Reply:
    edit(c.sampled().root / "samples/s-2.json", lambda held: held["judgments"][0].update(verdict="A win"))
    return c.finalize()


def edited_intent(c: Controller) -> Reply:
    edit(c.sampled().root / "samples/.s-2.intent.json", lambda held: held.update(model="model-2"))
    return c.finalize()


def two_models(c: Controller) -> Reply:
    assert c.sampled("s-1").sample("s-2", model="model-2").word == "ok"
    return c.finalize()


def moved(c: Controller) -> Reply:
    c.sampled().root.rename(c.folder / "elsewhere")
    return c.ask(finalize_request(c.folder / "elsewhere"))


def other_bank(c: Controller) -> Reply:
    rebind(c.sampled(), case_fixture_hash=OTHER)
    return c.finalize()


def half_published(c: Controller) -> Reply:
    (c.sampled().root / "calibration").mkdir(0o755)
    return c.finalize()


def no_manifest(c: Controller) -> Reply:
    c.settings = {"manifest": unavailable}
    return c.sample()


def broken_bank(c: Controller) -> Reply:
    c.fs = fs = CopiedFs(c.folder)
    fs.path("fixtures/reviewer-calibration-cases.json").write_text("{")
    return c.sample()


def unforeseen(c: Controller) -> Reply:
    c.settings = {"binders": {"codex": broken}}
    return c.sample()


PROBE = probe_request()
CODES: dict[str, tuple[int, Callable[[Controller], Reply]]] = {
    "invalid_json": (2, lambda c: c.ask(b"{")),
    "request_too_large": (2, lambda c: c.ask(b" " * (REQUEST_LIMIT + 1))),
    "invalid_request": (2, lambda c: c.ask({**PROBE, "artifact_root": str(c.root)})),
    "protocol_mismatch": (2, lambda c: c.ask({**PROBE, "schema": CANARY})),
    "invalid_request_id": (2, lambda c: c.ask({**PROBE, "request_id": f"{CANARY} "})),
    "unsupported_action": (2, lambda c: c.ask({**PROBE, "action": CANARY})),
    "invalid_payload": (2, lambda c: c.ask({**PROBE, "payload": {CANARY: 1}})),
    "unsupported_provider": (2, lambda c: c.sample(provider=CANARY)),
    "invalid_executable": (2, lambda c: c.sample(executable=CANARY)),
    "invalid_provider_configuration": (2, lambda c: c.sample(executable=f"/{CANARY}")),
    "invalid_field": (2, lambda c: c.sample(f"{CANARY}/..")),
    "invalid_timeout": (2, lambda c: c.sample(timeout_seconds=CANARY)),
    "invalid_cost_policy": (2, lambda c: c.sample(max_model_calls=True)),
    "invalid_artifact_root": (2, lambda c: c.ask(sample_request(CANARY))),
    "invalid_sample_set": (2, lambda c: c.finalize(CANARY)),
    "runtime_drift": (3, lambda c: c.sample(runtime_manifest_hash=OTHER)),
    "sample_lock_unavailable": (3, blocked_lock),
    "artifact_root_quarantined": (3, quarantined),
    "finalize_already_started": (3, closed),
    "sample_already_exists": (3, twice),
    "sample_set_mismatch": (3, lambda c: c.finalize()),
    "provider_identity_unavailable": (3, unnamed),
    "model_call_unresolved": (3, no_answer),
    "sample_publication_failed": (3, unstored),
    "sample_invalid": (3, unreadable_sample),
    "sample_finality_unknown": (3, edited_sample),
    "sample_intent_mismatch": (3, edited_intent),
    "sample_binding_mismatch": (3, two_models),
    "artifact_root_mismatch": (3, moved),
    "fixture_drift": (3, other_bank),
    "finalization_recovery_required": (3, half_published),
    "runtime_manifest_unavailable": (4, no_manifest),
    "fixture_invalid": (4, broken_bank),
    "internal_error": (4, unforeseen),
}


class TestCodes:
    def test_are_these_34_and_no_other(self, controller: Controller) -> None:
        """R6: a probe names each of them, and so do the enum and this page."""
        told = controller.ask(PROBE).result["reason_codes"]
        assert len(told) == len(set(told)) == 34
        assert set(told) == set(CODES) == {code.value for code in CalibrationCode}

    @pytest.mark.parametrize("word", CODES)
    def test_each_has_its_exit(self, controller: Controller, word: str) -> None:
        """R6: raised through the door, with its status and exit code."""
        exit_code, raises = CODES[word]
        reply = raises(controller)
        assert (reply.word, reply.exit_code) == (word, exit_code)
        assert CalibrationCode(word).status.exit_code == exit_code
        assert wrong_modes(controller.root / "samples") == []

    @pytest.mark.parametrize("word", CODES)
    def test_none_says_what_it_is_about(self, controller: Controller, word: str) -> None:
        """R39 E58: no path, argument, answer or text of an error on stdout, nor in a typed error."""
        reply = CODES[word][1](controller)
        line = json.dumps(reply.document)
        assert CANARY not in line
        assert str(controller.folder) not in line
        if word != "internal_error":
            assert CANARY not in reply.told
        assert reply.told.startswith(f"{word}: ")

    def test_statuses_have_their_exits(self) -> None:
        assert {status.value: status.exit_code for status in Status} == {
            "ok": 0,
            "invalid": 2,
            "blocked": 3,
            "error": 4,
        }


class TestAnswers:
    def test_a_probe(self, controller: Controller) -> None:
        reply = controller.ask(PROBE)
        assert reply.document["request_id"] == "r-1"
        assert reply.document["action"] == "probe"
        assert reply.result["runtime_manifest"] == RUNTIME
        assert not controller.root.exists()

    def test_a_sample(self, controller: Controller) -> None:
        """R39: its hash is that of the stored sample, and nothing of what was said is in the line."""
        reply = controller.sample()
        stored = json.loads((controller.root / "samples/s-1.json").read_bytes())
        assert reply.result == {
            "sample_id": "s-1",
            "sample_artifact": "s-1.json",
            "sample_hash": digest_object(stored),
            "runtime_manifest_hash": MANIFEST,
            "model_call_count": 1,
        }
        assert stored["model"] == "model-1"
        assert stored["timeout_seconds"] == 220
        line = json.dumps(reply.document)
        (call,) = controller.reviewer.calls
        for secret in (*BANK.case_ids, "tie", "A win", CANARY, call.prompt[:40]):
            assert secret not in line

    def test_a_request_that_cannot_be_read_gets_a_fixed_id(self, controller: Controller) -> None:
        assert controller.ask(b"{").document["request_id"] == UNREAD
        reply = controller.ask({**PROBE, "request_id": "a b"})
        assert (reply.document["request_id"], reply.document["action"]) == (UNREAD, "probe")

    def test_arguments_are_refused_unread(self, controller: Controller) -> None:
        """R6: nothing is read from stdin then."""

        def never() -> NoReturn:
            raise AssertionError

        answer = respond(never, ("--stream",), controller.way())
        reply = Reply.of(answer.line, answer.exit_code)
        assert (reply.word, reply.exit_code) == ("protocol_mismatch", 2)

    def test_an_id_in_other_letters_is_taken(self, controller: Controller) -> None:
        """R12: told before any call, not as something unforeseen."""
        controller.sampled("s-1")
        assert controller.sample("S-1").word == "sample_already_exists"
        assert controller.sample("s-2").word == "ok"
        assert controller.finalize().word == "ok"

    def test_a_log_folder_that_is_not_ours_costs_no_answer(self, controller: Controller) -> None:
        """R11: a call whose log could not be written would be lost."""
        controller.sampled("s-1")
        (controller.root / "provider-log").chmod(0o755)
        assert controller.sample("s-2").word == "artifact_root_quarantined"
        assert controller.calls == 1

    def test_the_same_request_twice_makes_one_call(self, controller: Controller) -> None:
        """R9: whatever the request id says."""
        request = sample_request(controller.root)
        assert controller.ask(request).word == "ok"
        assert controller.ask(request).word == "sample_already_exists"
        assert controller.ask(changed(request, "request_id", "r-2")).word == "sample_already_exists"
        assert controller.calls == 1


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((0, 2, 0), ["Killed runs left session folders: 2 removed, 0 not removable."]),
        ((0, None, None), ["Session folders of killed runs could not be looked for."]),
        (
            (3, 1, 1),
            [
                "Killed runs left session folders: 1 removed, 1 not removable.",
                "Killed runs left 3 processes, which go on running.",
            ],
        ),
    ],
)
def test_what_killed_runs_left_is_told_to_people_alone(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, found: tuple[Anything, ...], told: list[str]
) -> None:
    """F10 R39: a sample goes on, and its line says nothing of it."""
    monkeypatch.setattr(
        "skill_effectiveness.calibration.actions.look_for_leftovers",
        lambda _around, observer: observer.leftovers_found(*found),
    )
    reply = controller.sample()
    assert controller.told == told
    assert "Killed" not in json.dumps(reply.document)


ROOTS: dict[str, Callable[[Path], object]] = {
    "relative": lambda _folder: "root",
    "no text": lambda _folder: 7,
    "link": lambda folder: ((folder / "l").symlink_to(folder), folder / "l")[1],
    "readable": lambda folder: ((folder / "r").mkdir(0o755), folder / "r")[1],
    "in the checkout": lambda folder: folder / "checkout" / "root",
    "holds the checkout": lambda folder: folder,
    "home": lambda folder: folder / "home",
    "file": lambda folder: ((folder / "f").touch(), folder / "f")[1],
    "dots": lambda folder: f"{folder}/a/../b",
    "NUL": lambda folder: f"{folder}/a\0b",
    "long": lambda folder: f"{folder}/{'a' * 300}",
}


@pytest.mark.parametrize("kind", ROOTS)
@pytest.mark.parametrize("action", ["sample", "finalize"])
def test_an_artifact_root_that_breaks_a_rule(controller: Controller, kind: str, action: str) -> None:
    """R6 E13: whichever it is, one word; no call and no file."""
    controller.way()
    given = ROOTS[kind](controller.folder)
    before = sorted(controller.folder.rglob("*"))
    made = {"sample": sample_request, "finalize": finalize_request}[action](controller.root)
    request = changed(made, "artifact_root", given if isinstance(given, int) else str(given))
    assert controller.ask(request).word == "invalid_artifact_root"
    assert controller.calls == 0
    assert sorted(controller.folder.rglob("*")) == before


class TestNoFile:
    """What the wire or the manifest refuses leaves nothing behind."""

    @pytest.mark.parametrize(
        "payload",
        [
            {"executable": "codex"},
            {"model": "a b"},
            {"timeout_seconds": 601},
            {"max_model_calls": 2},
            {"runtime_manifest_hash": OTHER},
        ],
        ids=str,
    )
    def test_of_a_sample(self, controller: Controller, payload: dict[str, Any]) -> None:
        """R2 R7: no call, no folder, no lock."""
        assert controller.sample(**payload).word != "ok"
        assert controller.calls == 0
        assert not controller.root.exists()

    def test_of_a_finalization_without_a_root(self, controller: Controller) -> None:
        """A root that is not there holds no samples, and is not made."""
        assert controller.finalize().word == "sample_set_mismatch"
        assert not controller.root.exists()

    @pytest.mark.parametrize("kind", ["folder", "not executable", "missing", "loop", "file as a folder"])
    def test_of_a_program_that_is_none(self, controller: Controller, kind: str) -> None:
        path = controller.folder / "program"
        make: dict[str, Callable[[], object]] = {
            "folder": path.mkdir,
            "not executable": path.touch,
            "missing": lambda: None,
            "loop": lambda: path.symlink_to(path),
            "file as a folder": path.touch,
        }
        make[kind]()
        named = f"{path}/codex" if kind == "file as a folder" else str(path)
        assert controller.sample(executable=named).word == "invalid_provider_configuration"
        assert controller.sample(executable=f"{path}\0").word == "invalid_provider_configuration"
        assert not controller.root.exists()


def test_the_earlier_of_two_faults_answers_under_the_lock(controller: Controller) -> None:
    """R8: from the artifact root to the program, each check before the next, with both wrong."""
    controller.way()
    request = sample_request("relative", "a/b", runtime_manifest_hash=OTHER)
    assert controller.ask(request).word == "runtime_drift"
    assert controller.ask(changed(request, "payload.runtime_manifest_hash", MANIFEST)).word == (
        "invalid_artifact_root"
    )
    # A lock that is unsafe, and an id of no form.
    quarantined(controller)
    assert controller.sample("a/b").word == "artifact_root_quarantined"
    shutil.rmtree(controller.root)
    # An id of no form, and an intent to finalize.
    controller.sampled().finalize()
    assert controller.sample("a/b").word == "invalid_field"
    assert controller.sample(None).word == "invalid_field"
    # An intent to finalize, and receipts that do not fit.
    (controller.root / "sample-ledger/s-9.json").write_bytes(b"{}")
    assert controller.sample("s-3").word == "finalize_already_started"
    shutil.rmtree(controller.root)
    # Receipts that do not fit, and a sixth sample.
    controller.sampled(*(f"s-{number}" for number in range(1, 6)))
    (controller.root / "sample-ledger/s-9.json").write_bytes(b"{}")
    assert controller.sample("s-6").word == "artifact_root_quarantined"
    (controller.root / "sample-ledger/s-9.json").unlink()
    # A sixth sample, and fixtures that are broken.
    controller.fs = CopiedFs(controller.folder)
    controller.fs.path("fixtures/pilot-gates.json").write_text("{")
    assert controller.sample("s-6").word == "sample_set_mismatch"
    shutil.rmtree(controller.root)
    # Fixtures that are broken, and a program that states no version.
    controller.settings = {"binders": {"codex": nobody}}
    assert controller.sample().word == "fixture_invalid"
    controller.fs = UnsyncedFs()
    assert controller.sample().word == "provider_identity_unavailable"


def test_finalize_checks_the_manifest_then_the_ids_then_the_root(controller: Controller) -> None:
    """R8: the order of section 6."""
    controller.way()
    request = finalize_request("relative", "none", runtime_manifest_hash=OTHER)
    assert controller.ask(request).word == "runtime_drift"
    request = changed(request, "payload.runtime_manifest_hash", MANIFEST)
    assert controller.ask(request).word == "invalid_sample_set"
    request = changed(request, "payload.sample_ids", ["s-1", "s-2"])
    assert controller.ask(request).word == "invalid_artifact_root"


class TestUnforeseen:
    def test_a_crash_file_in_the_artifact_root(self, controller: Controller) -> None:
        """R39: it says where, and nothing of what was at hand; stderr names it."""
        reply = unforeseen(controller)
        (file,) = (controller.root / "crash").iterdir()
        assert str(file) in reply.told
        assert CANARY not in file.read_text()
        assert wrong_modes(controller.root / "crash") == []
        assert controller.calls == 0
        controller.settings = {}
        assert controller.sample().word == "ok"

    def test_a_crash_file_in_the_state_folder_before_there_is_a_root(self, controller: Controller) -> None:
        def breaks() -> NoReturn:
            raise RuntimeError(CANARY)

        controller.settings = {"manifest": breaks}
        assert controller.sample().word == "internal_error"
        (file,) = (controller.folder / "home/.local/state/skill-effectiveness/crash").iterdir()
        assert CANARY not in file.read_text()

    def test_a_root_that_cannot_be_made_for_want_of_space(self, controller: Controller) -> None:
        """Nobody's fault, and recoverable: the same request goes on once there is room."""
        controller.fs = failing("mkdir", errno.ENOSPC, "/root")
        assert controller.sample().word == "internal_error"
        controller.fs = UnsyncedFs()
        assert controller.sample().word == "ok"

    def test_a_root_that_may_not_be_entered(self, controller: Controller) -> None:
        controller.fs = failing("open_dir", errno.EACCES, CANARY)
        assert controller.sample().word == "invalid_artifact_root"

    def test_during_the_call_it_is_an_unresolved_one_with_a_crash_file(self, controller: Controller) -> None:
        """R9: the call may have been paid for, so nobody is told to ask again."""

        def breaks(_number: int, _call: JudgeCall) -> NoReturn:
            raise RuntimeError(CANARY)

        controller.reviewer = Scripted(breaks)
        reply = controller.sample()
        assert (reply.word, reply.exit_code) == ("model_call_unresolved", 3)
        (file,) = (controller.root / "crash").iterdir()
        assert CANARY not in file.read_text()
        assert controller.sample().word == "artifact_root_quarantined"
        assert controller.calls == 1
