"""`main`: what `launch` hands a request to, with both ends of the wire in memory."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn

import pytest

from skill_effectiveness.calibration import door
from skill_effectiveness.calibration.door import main
from skill_effectiveness.evidence.signals import TERMINATIONS
from skill_effectiveness.launch import faults
from tests.support.controller import RUNTIME, Reply, probe_request
from tests.support.examinations import MANIFEST, OTHER, Anything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROBE = probe_request()
SECRET = "sk-canary-4712"


class Wire:
    """Both ends of a conversation, in memory."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.sent: list[bytes] = []

    def request(self, limit: int) -> bytes:
        return self._request[: limit + 1]


def started(request: bytes, folder: Path, *arguments: str, **others: Anything) -> Anything:
    """What `launch` hands over."""
    wire = Wire(request)
    given = {
        "arguments": arguments,
        "environ": {"HOME": str(folder), "CODEX_API_KEY": SECRET},
        "manifest": RUNTIME,
        "importer": SimpleNamespace(require=lambda: None),
        "wire": wire,
        "answer": lambda line, _given_up: wire.sent.append(line),
    }
    return SimpleNamespace(**{**given, **others})


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A door ends with its signals blocked, and so does its process soon."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class TestMain:
    @pytest.fixture(autouse=True)
    def _runtime(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(door, "runtime_manifest", lambda: RUNTIME)

    def test_answers_one_request(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """R39: the line leaves by the wire; stdout itself stays empty."""
        begun = started(json.dumps(PROBE).encode(), tmp_path)
        assert main(begun) == 0
        (line,) = begun.wire.sent
        assert Reply.of(line, 0).result["runtime_manifest_hash"] == MANIFEST
        assert capfd.readouterr() == ("", "")

    def test_tells_people_on_stderr(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        begun = started(b"{", tmp_path)
        assert main(begun) == 2
        captured = capfd.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("invalid_json: ")
        assert captured.err.count("\n") == 1

    def test_a_stderr_that_nobody_reads_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody, theirs = os.pipe()
        os.close(nobody)
        monkeypatch.setattr(door, "STDERR", theirs)
        begun = started(b"{", tmp_path)
        assert main(begun) == 2
        os.close(theirs)
        assert len(begun.wire.sent) == 1

    def test_a_request_that_cannot_be_read_is_left_to_launch(self, tmp_path: Path) -> None:
        def unreadable(_limit: int) -> NoReturn:
            raise faults.UndeliverableError("It cannot be read.")

        begun = started(b"", tmp_path, wire=SimpleNamespace(request=unreadable, sent=[]))
        with pytest.raises(faults.UndeliverableError):
            main(begun)

    @pytest.mark.parametrize(
        ("refusal", "word", "exit_code"),
        [
            (faults.DriftError("Code changed."), "runtime_drift", 3),
            (faults.ManifestError("It cannot be trusted."), "runtime_manifest_unavailable", 4),
        ],
    )
    def test_code_that_was_not_verified(
        self, tmp_path: Path, refusal: faults.LaunchError, word: str, exit_code: int
    ) -> None:
        """R2: asked before anything is done, not only when the answer is sent."""

        def require() -> NoReturn:
            raise refusal

        begun = started(json.dumps(PROBE).encode(), tmp_path, importer=SimpleNamespace(require=require))
        assert main(begun) == exit_code
        assert Reply.of(begun.wire.sent[0], exit_code).word == word

    def test_an_installation_that_changed_since_it_was_verified(self, tmp_path: Path) -> None:
        """R2: another manifest now than the one that the running code was checked against."""
        begun = started(json.dumps(PROBE).encode(), tmp_path, manifest={**RUNTIME, "manifest_hash": OTHER})
        assert main(begun) == 3
        assert Reply.of(begun.wire.sent[0], 3).word == "runtime_drift"

    def test_the_former_handlers_are_back(self, tmp_path: Path) -> None:
        former = [signal.getsignal(number) for number in TERMINATIONS]
        main(started(b"{", tmp_path))
        assert [signal.getsignal(number) for number in TERMINATIONS] == former


def test_a_signal_after_the_answer_is_settled_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done is told."""
    monkeypatch.setattr(door, "runtime_manifest", lambda: RUNTIME)
    begun = started(json.dumps(PROBE).encode(), tmp_path)

    def answer(line: bytes, given_up: Callable[[], bool]) -> None:
        assert not given_up()
        signal.raise_signal(signal.SIGTERM)
        assert given_up()
        begun.wire.sent.append(line)

    begun.answer = answer
    assert main(begun) == 0
    assert len(begun.wire.sent) == 1
