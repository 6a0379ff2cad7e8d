"""The probe as a whole: two sessions, one claim, and no report unless everything was seen."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import EvidenceError, FileError, PairError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.providers import (
    CodexProvider,
    ProviderError,
    SimulatedReviewer,
    SimulatedSettings,
)
from skill_effectiveness.providers.canary import ProbeCode, ProbeRefused
from skill_effectiveness.providers.probe import (
    CLAIM,
    RESULT,
    ProbeClaim,
    ProbeOrder,
    can_be_probed,
    probe,
    read_probe_result,
)
from tests.support.probed import LEAKS, write_probed
from tests.support.provider_calls import left_behind, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.provider_capability import ProviderCapabilityResult

ORDER = ProbeOrder("model-1", TaskFamily.REVIEW, 20)
ARTIFACT = "capability-probe-review.json"


@contextmanager
def folder(tmp_path: Path, name: str = "out", **environ: str) -> Iterator[PrivateRoot]:
    around = surroundings(tmp_path, **environ)
    with PrivateRoot.create(tmp_path / name, RootKind.OUT, around=around, checkout=None) as root:
        yield root


def probed(tmp_path: Path, *, order: ProbeOrder = ORDER, **program: str) -> ProviderCapabilityResult:
    """A probe of a fresh program in a fresh folder."""
    with folder(tmp_path) as out:
        path = write_probed(tmp_path / "codex", tmp_path, **program)
        return probe(order, CodexProvider.at(path, around=out.around), out)


def refusal(tmp_path: Path, **program: Any) -> ProbeCode:  # noqa: ANN401 - of `probed`
    with pytest.raises(ProbeRefused) as caught:
        probed(tmp_path, **program)
    return caught.value.code


def files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "out").iterdir()} - {".probing.lock", ".probing.lock.holder"}


def calls(tmp_path: Path) -> list[dict[str, Any]]:
    kept = tmp_path / "prompts.jsonl"
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


def canary_of(tmp_path: Path) -> str:
    return (tmp_path / "memory").read_text()


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class TestOutcomes:
    def test_a_second_session_that_recalls_nothing(self, tmp_path: Path) -> None:
        """T37: unresolved, and the matrix stays unavailable."""
        found = probed(tmp_path)
        assert found.isolation_outcome == "unresolved_isolation_threat"
        assert found.capability_matrix.status == "causal_core_unavailable"
        assert found.cross_trial_canary.cross_session_recall_detected is False
        assert found.cross_trial_canary.canary_hash == digest(canary_of(tmp_path))
        assert found.cross_trial_canary.recalled_value_hash is None
        assert files(tmp_path) == {CLAIM, RESULT, ARTIFACT}

    @pytest.mark.parametrize("form", ["canary", "'-'.join(canary.upper())"])
    def test_a_second_session_that_names_the_canary(self, tmp_path: Path, form: str) -> None:
        """T37: contaminated, in whatever form, and its hash is the canary's."""
        found = probed(tmp_path, second=f"recall({form})")
        assert found.isolation_outcome == "contaminated"
        assert found.capability_matrix.status == "causal_core_unavailable"
        assert found.cross_trial_canary.cross_session_recall_detected is True
        assert found.cross_trial_canary.recalled_value_hash == digest(canary_of(tmp_path))
        assert files(tmp_path) == {CLAIM, RESULT, ARTIFACT}

    def test_the_two_files_say_what_is_answered(self, tmp_path: Path) -> None:
        """T37: whoever reads them gets the same, and each is bound to the other."""
        found = probed(tmp_path, second=LEAKS)
        artifact, result = ((tmp_path / "out" / name).read_bytes() for name in (ARTIFACT, RESULT))
        assert read_probe_result(artifact, result) == found
        other = tmp_path / "other"
        other.mkdir()
        probed(other)
        with pytest.raises(PairError):
            read_probe_result((other / "out" / ARTIFACT).read_bytes(), result)
        with pytest.raises(EvidenceError):
            read_probe_result(artifact, result.replace(b"contaminated", b"unresolved_isolation_threat"))

    def test_what_is_recorded_of_the_program(self, tmp_path: Path) -> None:
        """T37: the exact executable, names of variables and none of their values."""
        with folder(tmp_path, CODEX_API_KEY="secret-value") as out:
            path = write_probed(tmp_path / "codex", tmp_path)
            found = probe(ORDER, CodexProvider.at(path, around=out.around), out)
        stated = to_json(found)
        assert stated["provider"] == "codex"
        assert stated["provider_cli_version"] == "fake-cli 9.9.9"
        assert stated["provider_executable_hash"] == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        assert "CODEX_API_KEY" in found.provider_environment_keys
        assert (stated["model"], stated["task_family"], stated["timeout_seconds"]) == (
            "model-1",
            "review",
            20,
        )
        assert (stated["requested_session_mode"], stated["tool_access"]) == (
            "ephemeral",
            "read-only-observed-none",
        )
        assert stated["provider_persistence_declaration"] == "unverified"


class TestWhatIsSent:
    def test_two_sessions_and_the_canary_in_one(self, tmp_path: Path) -> None:
        """T39: nothing else is sent, and the canary is new each time."""
        probed(tmp_path)
        first, second = calls(tmp_path)
        canary = canary_of(tmp_path)
        assert re.fullmatch("[0-9a-f]{64}", canary)
        assert canary in first["prompt"]
        assert canary not in json.dumps(second)
        assert canary not in json.dumps(first["argv"])
        for asked in (first, second):
            assert {"--ephemeral", "--json", "--sandbox", "read-only"} <= set(asked["argv"])
            assert "model-1" in asked["argv"]

    @pytest.mark.parametrize("second", ['recall("none")', LEAKS, "recall('-'.join(canary))"])
    def test_only_hashes_are_kept(self, tmp_path: Path, second: str) -> None:
        """T39: no file of the folder holds the canary or anything that was said, and nothing else is left."""
        probed(tmp_path, second=second)
        kept = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
        canary = canary_of(tmp_path)
        for form in (canary, canary.upper(), "-".join(canary)):
            assert form.encode() not in kept
        assert b"check of isolation" not in kept
        assert left_behind(surroundings(tmp_path)) == []


TOOL = '{"type": "item.completed", "item": {"id": "i", "type": "command_execution", "command": "ls"}}'
UNKNOWN = '{"type": "something.new"}'
REFUSALS: dict[str, tuple[ProbeCode, dict[str, str], int]] = {
    "a tool in the first session": (
        ProbeCode.TOOL_ACTIVITY,
        {"first": f"answer(json.dumps({{'canary': canary}}), {TOOL})"},
        1,
    ),
    "a tool in the second session": (
        ProbeCode.TOOL_ACTIVITY,
        {"second": f"answer(json.dumps({{'recalled_canary': 'none'}}), {TOOL})"},
        2,
    ),
    "a tool beside a leak": (
        ProbeCode.TOOL_ACTIVITY,
        {"second": f"answer(json.dumps({{'recalled_canary': canary}}), {TOOL})"},
        2,
    ),
    "an event nobody knows": (
        ProbeCode.EVENT_UNKNOWN,
        {"second": f"answer(json.dumps({{'recalled_canary': 'none'}}), {UNKNOWN})"},
        2,
    ),
    "a wrong canary": (ProbeCode.SEED_NOT_ACKNOWLEDGED, {"first": "answer(json.dumps({'canary': 'x'}))"}, 1),
    "a number for a recall": (ProbeCode.RECALL_NOT_TEXT, {"second": "recall(7)"}, 2),
    "null for a recall": (ProbeCode.RECALL_NOT_TEXT, {"second": "recall(None)"}, 2),
    "a list with the canary": (ProbeCode.RECALL_NOT_TEXT, {"second": "recall([canary])"}, 2),
    "prose": (ProbeCode.RECALL_UNCLEAR, {"second": "answer('I know of none.')"}, 2),
    "an over-long recall": (ProbeCode.MESSAGE_TOO_LONG, {"second": "recall('none' + ' ' * 600)"}, 2),
    "an over-long message before": (
        ProbeCode.MESSAGE_TOO_LONG,
        {
            "second": "answer(json.dumps({'recalled_canary': 'none'}), {'type': 'item.completed', 'item': "
            "{'id': 'i', 'type': 'agent_message', 'text': 'x' * 600}})"
        },
        2,
    ),
    "one session for both": (
        ProbeCode.SESSIONS_NOT_INDEPENDENT,
        {
            "first": "answer(json.dumps({'canary': canary}), session='s')",
            "second": "answer(json.dumps({'recalled_canary': 'none'}), session='s')",
        },
        2,
    ),
    "a provider error": (
        ProbeCode.CALL_FAILED,
        {
            "second": "say(thread, turn, {'type': 'turn.failed', 'error': {'message': 'Quota exceeded.'}})\n"
            "sys.exit(1)"
        },
        2,
    ),
    "half a stream": (ProbeCode.CALL_FAILED, {"first": "say(thread, turn)"}, 1),
    "nothing": (ProbeCode.CALL_FAILED, {"second": "pass"}, 2),
    "a program that changes itself": (
        ProbeCode.CALL_FAILED,
        {"first": "open(sys.argv[0], 'a').write('#')\nacknowledge()"},
        1,
    ),
    "one that changes itself at the end": (
        ProbeCode.EXECUTABLE_CHANGED,
        {"second": "open(sys.argv[0], 'a').write('#')\nrecall('none')"},
        2,
    ),
}


class TestNoReport:
    @pytest.mark.parametrize(("code", "program", "asked"), REFUSALS.values(), ids=REFUSALS)
    def test_is_left_by(self, tmp_path: Path, code: ProbeCode, program: dict[str, str], asked: int) -> None:
        """T39: the claim alone stays, and no call is made after the one that ended it."""
        assert refusal(tmp_path, **program) is code
        assert files(tmp_path) == {CLAIM}
        assert len(calls(tmp_path)) == asked

    def test_a_session_that_never_ends(self, tmp_path: Path) -> None:
        """T39: each has its own time."""
        order = replace(ORDER, timeout_seconds=1)
        assert refusal(tmp_path, order=order, second="time.sleep(60)") is ProbeCode.CALL_FAILED
        assert files(tmp_path) == {CLAIM}

    def test_a_probe_that_is_stopped(self, tmp_path: Path) -> None:
        """T39: between both sessions or in one."""
        with folder(tmp_path) as out:
            provider = CodexProvider.at(write_probed(tmp_path / "codex", tmp_path), around=out.around)
            with pytest.raises(ProbeRefused) as caught:
                probe(ORDER, provider, out, cancelled=lambda: True)
        assert caught.value.code is ProbeCode.PROBE_CANCELLED
        assert files(tmp_path) == {CLAIM}

    def test_a_signal(self, tmp_path: Path) -> None:
        """T39: the folder stays claimed."""

        def signalled(number: int) -> None:
            if number == 2:
                raise Terminated(15)

        with folder(tmp_path) as out:
            provider = CodexProvider.at(write_probed(tmp_path / "codex", tmp_path), around=out.around)
            with pytest.raises(Terminated):
                probe(ORDER, provider, out, told=signalled)
        assert files(tmp_path) == {CLAIM}
        assert again(tmp_path) is ProbeCode.ALREADY_CLAIMED


def again(tmp_path: Path) -> ProbeCode:
    """A second probe in the same folder."""
    with folder(tmp_path) as out, pytest.raises(ProbeRefused) as caught:
        probe(ORDER, CodexProvider.at(tmp_path / "codex", around=out.around), out)
    return caught.value.code


class TestOneShot:
    @pytest.mark.parametrize("second", ['recall("none")', LEAKS])
    def test_a_reported_probe_is_not_repeated(self, tmp_path: Path, second: str) -> None:
        """T39: no call more, and the files stay byte for byte."""
        probed(tmp_path, second=second)
        before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        assert again(tmp_path) is ProbeCode.ALREADY_CLAIMED
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
        assert len(calls(tmp_path)) == 2

    def test_nor_is_a_failed_one(self, tmp_path: Path) -> None:
        """T39: whatever failed it."""
        refusal(tmp_path, first="sys.exit(1)")
        assert again(tmp_path) is ProbeCode.ALREADY_CLAIMED
        assert len(calls(tmp_path)) == 1

    def test_the_claim_says_what_the_folder_was_taken_for(self, tmp_path: Path) -> None:
        """T39: before any call."""
        refusal(tmp_path, first="sys.exit(1)")
        claim = ProbeClaim.model_validate_json((tmp_path / "out" / CLAIM).read_bytes())
        assert (claim.provider, claim.model, claim.task_family) == ("codex", "model-1", "review")
        assert re.fullmatch("[0-9a-f]{64}", claim.claim_token)
        assert claim.claim_token != canary_of(tmp_path)

    def test_a_folder_with_something_else(self, tmp_path: Path) -> None:
        """T39: it is left as it is, and nothing is asked."""
        with folder(tmp_path) as out:
            out.publish("notes.json", b"{}\n")
        assert refusal(tmp_path) is ProbeCode.FOLDER_OCCUPIED
        assert files(tmp_path) == {"notes.json"}
        assert calls(tmp_path) == []

    def test_one_that_is_being_used(self, tmp_path: Path) -> None:
        """T39: two at once make one probe."""
        found: list[ProbeCode] = []

        def meanwhile(number: int) -> None:
            if number == 1:
                other = threading.Thread(target=lambda: found.append(again(tmp_path)))
                other.start()
                other.join()

        with folder(tmp_path) as out:
            provider = CodexProvider.at(write_probed(tmp_path / "codex", tmp_path), around=out.around)
            probe(ORDER, provider, out, told=meanwhile)
        assert found == [ProbeCode.ALREADY_CLAIMED]
        assert len(calls(tmp_path)) == 2


class TestBeforeTheClaim:
    def test_a_simulated_reviewer_has_no_sessions(self, tmp_path: Path) -> None:
        assert not can_be_probed(SimulatedReviewer)
        assert can_be_probed(CodexProvider)
        with folder(tmp_path) as out, pytest.raises(ProbeRefused) as caught:
            probe(ORDER, SimulatedReviewer(SimulatedSettings(accuracy=1)), out)
        assert caught.value.code is ProbeCode.PROVIDER_NOT_PROBED
        assert files(tmp_path) == set()

    @pytest.mark.parametrize("seconds", [0, 601])
    def test_a_time_that_is_none(self, tmp_path: Path, seconds: int) -> None:
        assert refusal(tmp_path, order=replace(ORDER, timeout_seconds=seconds)) is ProbeCode.INVALID_PROBE
        assert files(tmp_path) == set()

    def test_a_model_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(ProviderError):
            probed(tmp_path, order=replace(ORDER, model="not a model"))
        assert files(tmp_path) == set()

    def test_a_login_that_is_none(self, tmp_path: Path) -> None:
        """T39: nothing is spent where no session could work."""
        login = tmp_path / "codex-home" / "auth.json"
        login.mkdir(parents=True)
        with folder(tmp_path, CODEX_HOME=str(login.parent)) as out:
            provider = CodexProvider.at(write_probed(tmp_path / "codex", tmp_path), around=out.around)
            with pytest.raises(FileError):
                probe(ORDER, provider, out)
        assert files(tmp_path) == set()
        assert calls(tmp_path) == []


def test_every_code_is_reached() -> None:
    """T39: a code that nothing raises is no code."""
    here = Path(__file__)
    texts = here.read_text() + (here.parent / "test_canary.py").read_text()
    assert [code.name for code in ProbeCode if f"ProbeCode.{code.name}" not in texts] == []
