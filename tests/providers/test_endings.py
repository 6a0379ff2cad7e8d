"""The table of endings: one row, one word, in every kind of call that the row is about.

Rows whose signal only one vendor has are held beside that vendor's adapter; here is what the shared shell
owes to all of them, shown by whole calls of codex and, where a stream is of no matter, of `command`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.providers import (
    CallKind,
    CodexProvider,
    Ending,
    ReadCall,
    SimulatedReviewer,
    SimulatedSettings,
    WorkCall,
)
from tests.support.fake_program import READ_PROMPT, write_codex
from tests.support.provider_calls import ANSWER, left_behind, question, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.providers import CallOutcome

ALL = tuple(CallKind)
JUDGE, READ, WORK = ALL

TOOL = "{'type': 'item.completed', 'item': {'id': 'i', 'type': 'command_execution', 'command': 'ls'}}"
MOVED = (
    "{'type': 'item.completed', 'item':"
    " {'id': 'i', 'type': 'error', 'message': 'model rerouted: fake-model -> other (x)'}}"
)
FAILED = "{{'type': 'turn.failed', 'error': {{'message': {!r}}}}}"


@dataclass(frozen=True)
class Row:
    """What a program does, and the word for it; `kinds` where the kind of call is what the row is about."""

    signal: str
    body: str
    ending: Ending
    kinds: tuple[CallKind, ...] = ()
    kind: str | None = None
    seconds: float = 20


def failed(signal: str, message: str, kind: str) -> Row:
    return Row(
        signal, f"say(*good[:2], {FAILED.format(message)}); sys.exit(1)", Ending.PROVIDER_ERROR, (), kind
    )


ROWS = [
    Row("exit 0, marker, answer", "say(*good)", Ending.SUCCESS),
    Row("last message empty", "good[2]['item']['text'] = ''; say(*good)", Ending.NO_ANSWER),
    Row("no message", "say(*good[:2], good[3])", Ending.NO_ANSWER),
    Row("exit 0 and not a byte", "", Ending.NO_ANSWER),
    Row("cut before the marker", "say(*good[:3])", Ending.STREAM_INVALID),
    Row("killed by a signal", "say(*good[:3]); os.kill(os.getpid(), 9)", Ending.STREAM_INVALID),
    Row("killed after the marker", "say(*good); os.kill(os.getpid(), 9)", Ending.STREAM_INVALID),
    Row("exit not 0, nothing told", "say(*good); sys.exit(3)", Ending.STREAM_INVALID),
    Row("half a line", "say(*good); raw(b'{')", Ending.STREAM_INVALID),
    Row("no JSON event", "raw(b'Please upgrade.\\n')", Ending.STREAM_INVALID),
    Row("two session ids", "say({**good[0], 'thread_id': 'other'}, *good)", Ending.STREAM_INVALID),
    failed("quota", "Quota exceeded. Check your plan.", "quota_unavailable"),
    failed("429", "exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
    failed("500", "We're currently experiencing high demand, which", "server_error"),
    failed("connection", "stream disconnected before completion: eof", "connection_lost"),
    failed("401", "unexpected status 401 Unauthorized: x", "auth_unavailable"),
    failed("403", "unexpected status 403 Forbidden: x", "permission_denied"),
    failed(
        "unknown model", "The model `x` does not exist or you do not have access to it.", "model_unavailable"
    ),
    failed("schema refused", '{"error":{"code":"invalid_json_schema"}}', "invalid_schema"),
    failed("something else", "The moon is full.", "other"),
    Row(
        "flag refused",
        "sys.stderr.write(\"error: unexpected argument '--x' found\\n\"); sys.exit(2)",
        Ending.PROVIDER_ERROR,
        (),
        "unsupported_flag",
    ),
    Row("a tool in a judge call", f"say(*good[:2], {TOOL}, *good[2:])", Ending.TOOL_ACTIVITY, (JUDGE,)),
    Row("a tool elsewhere", f"say(*good[:2], {TOOL}, *good[2:])", Ending.SUCCESS, (READ, WORK)),
    Row("another model", f"say(*good[:2], {MOVED}, *good[2:])", Ending.MODEL_MISMATCH, (JUDGE, WORK)),
    Row("another model for a reader", f"say(*good[:2], {MOVED}, *good[2:])", Ending.SUCCESS, (READ,)),
    Row("too much on stderr", "while True: sys.stderr.write('x' * 65536)", Ending.LIMIT),
    Row("the wall limit", "say(*good[:3]); time.sleep(60)", Ending.TIMEOUT, seconds=0.4),
]


def asked(tmp_path: Path, row: Row, kind: CallKind) -> CallOutcome:
    around = surroundings(tmp_path)
    provider = CodexProvider.at(write_codex(tmp_path, READ_PROMPT + row.body), around=around)
    folder = tmp_path / "folder"
    folder.mkdir()
    match kind:
        case CallKind.JUDGE:
            outcome = provider.judge(question(seconds=row.seconds), around=around)
        case CallKind.READ:
            outcome = provider.read(ReadCall("Look.", folder, "fake-model", row.seconds), around=around)
        case CallKind.WORK:
            outcome = provider.work(WorkCall("Mend.", folder, "fake-model", row.seconds), around=around)
    assert left_behind(around) == []
    return outcome


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        pytest.param(row, kind, id=f"{row.signal}-{kind}")
        for number, row in enumerate(ROWS)
        for kind in row.kinds or (ALL[number % 3],)
    ],
)
def test_a_row(tmp_path: Path, row: Row, kind: CallKind) -> None:
    """P6 P7 P10 P13: one signal has one word, whatever the kind of call."""
    outcome = asked(tmp_path, row, kind)

    assert outcome.ending is row.ending
    assert outcome.error_kind == row.kind
    assert outcome.answer == (ANSWER if row.ending is Ending.SUCCESS else None)
    assert outcome.recording is not None


def test_the_rows_name_every_kind_of_trouble() -> None:
    """P7: none is left out."""
    assert {row.kind for row in ROWS if row.kind} == {
        "auth_unavailable",
        "quota_unavailable",
        "rate_limited",
        "server_error",
        "connection_lost",
        "model_unavailable",
        "unsupported_flag",
        "invalid_schema",
        "permission_denied",
        "other",
    }


@pytest.mark.parametrize("kind", ALL)
def test_our_own_stop(tmp_path: Path, kind: CallKind) -> None:
    """P6: cancelled, in every kind of call."""
    around = surroundings(tmp_path)
    provider = CodexProvider.at(write_codex(tmp_path, "say(*good); time.sleep(60)"), around=around)
    call: Any = {
        CallKind.JUDGE: question(),
        CallKind.READ: ReadCall("Look.", tmp_path, "fake-model", 20),
        CallKind.WORK: WorkCall("Mend.", tmp_path, "fake-model", 20),
    }[kind]

    assert (
        getattr(provider, kind.value)(call, around=around, cancelled=lambda: True).ending is Ending.CANCELLED
    )


def test_a_vendors_own_refusal(tmp_path: Path) -> None:
    """P6: by its own marker only, which of these the simulated reviewer has."""
    reviewer = SimulatedReviewer(SimulatedSettings(accuracy=1.0, refusal_rate=1.0))

    assert reviewer.judge(question(), around=surroundings(tmp_path)).ending is Ending.REFUSED


@pytest.mark.parametrize("spoilt", ["missing", "not executable", "another", "two lines"])
@pytest.mark.parametrize("kind", [READ, WORK])
def test_a_program_that_cannot_be_started(tmp_path: Path, spoilt: str, kind: CallKind) -> None:
    """P6 P2: unstartable; nothing ran, so there is nothing to record."""
    around = surroundings(tmp_path)
    path = write_codex(tmp_path, "open(folder + '/ran', 'w')")
    provider = CodexProvider.at(path, around=around)
    match spoilt:
        case "missing":
            path.unlink()
        case "not executable":
            path.chmod(0o644)
        case "another":
            write_codex(tmp_path, "open(folder + '/ran', 'w'); say(*good)")
        case "two lines":
            path.write_text(path.read_text().replace("    sys.exit(0)", "    print('more')\n    sys.exit(0)"))
    call: Any = (
        ReadCall("Look.", tmp_path, "fake-model", 20)
        if kind is READ
        else WorkCall("Mend.", tmp_path, "fake-model", 20)
    )
    outcome = getattr(provider, kind.value)(call, around=around)

    assert (outcome.ending, outcome.recording, outcome.sandbox) == (Ending.UNSTARTABLE, None, None)
    assert not (tmp_path / "ran").exists()
