"""The four agent command lines, each played by a program that knows the answers of the judged bank.

What a program says is a list of documents in which `@answer` stands for the text of its answer, `@judged` for
the same as an object, and the session id of the recordings for the id of the session.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support import claude_streams, kimi, opencode_fake, provider_calls
from tests.support.examinations import BANK
from tests.support.fake_program import write_fake

if TYPE_CHECKING:
    from pathlib import Path

Document = dict[str, Any]

MODELS = {
    "codex": "model-1",
    "claude": claude_streams.MODEL,
    "opencode": opencode_fake.MODEL,
    "kimi": "fake-model",
}
FAMILIES = {"codex": "family-1", "claude": "claude", "opencode": "fake", "kimi": "moonshot"}

_BODY = """
import uuid
with open(folder + "/calls.jsonl", "a") as calls:
    config = os.path.join(os.environ.get("KIMI_CODE_HOME", ""), "config.toml")
    kept = open(config).read() if provider == "kimi" and os.path.exists(config) else ""
    calls.write(json.dumps({"argv": sys.argv[1:], "environ": dict(os.environ), "config": kept}) + "\\n")
kept_export = os.path.join(os.environ.get("XDG_DATA_HOME", folder), "kept-export.json")
if sys.argv[1] == "export":
    raw(open(kept_export, "rb").read())
    sys.exit(0)
if sys.argv[1] == "models":
    raw(model.encode() + b"\\n")
    sys.exit(0)
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
prompt = options["-p"] if provider == "kimi" else sys.stdin.buffer.read().decode()
cases = json.loads(prompt.rstrip().rsplit("\\n", 1)[1])["cases"]
judged = [{"case": case["case"], "verdict": right[case["A"] + "|" + case["B"]]} for case in cases]
judged = {"judgments": judged}
fresh = recorded[: -12] + (recorded[-12:] if reused else uuid.uuid4().hex[:12])
def filled(value):
    if isinstance(value, dict):
        return {name: filled(member) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(member) for member in value]
    if value == "@judged":
        return judged
    if isinstance(value, str):
        return value.replace("@answer", json.dumps(judged)).replace(recorded, fresh)
    return value
if export:
    open(kept_export, "w").write(json.dumps(filled(export)))
if wire:
    place = os.path.join(os.environ["KIMI_CODE_HOME"], filled(wire_place))
    os.makedirs(place)
    open(place + "/wire.jsonl", "w").write("".join(json.dumps(filled(one)) + "\\n" for one in wire))
say(*filled(documents))
"""


def write_program(
    path: Path,
    folder: Path,
    provider: str,
    *,
    documents: list[Document] | None = None,
    export: Document | None = None,
    wire: list[Document] | None = None,
    reused: bool = False,
) -> Path:
    """Write a program in the place of a provider's.

    Args:
        path: of the program.
        folder: where it keeps `calls.jsonl`: arguments, environment and configuration of each start.
        provider: which one.
        documents: what it says; all is well by default.
        export: of its session, for opencode.
        wire: records of its session file, for kimi.
        reused: whether all of its sessions have one id.
    """
    right: dict[str, str] = {}
    for case, verdict in zip(BANK.cases, BANK.truth, strict=True):
        right[f"{case.candidate_a}|{case.candidate_b}"] = verdict.value
        right[f"{case.candidate_b}|{case.candidate_a}"] = verdict.turned().value
    exported = opencode_fake.exported(*OPENCODE_PARTS) if provider == "opencode" else None
    return write_fake(
        path,
        _BODY,
        folder=str(folder),
        provider=provider,
        model=MODELS[provider],
        right=right,
        recorded=_SESSIONS[provider],
        documents=GOOD[provider] if documents is None else documents,
        export=exported if export is None else export,
        wire=([kimi.USAGE] if wire is None else wire) if provider == "kimi" else None,
        wire_place=kimi.WIRE_PLACE,
        reused=reused,
    )


def calls(folder: Path) -> list[Document]:
    """Every start of the program but those that ask for its version or its export."""
    kept = folder / "calls.jsonl"
    found = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    return [call for call in found if call["argv"][0] not in {"export", "models"}]


_SESSIONS = {
    "codex": str(provider_calls.THREAD["thread_id"]),
    "claude": claude_streams.SESSION,
    "opencode": opencode_fake.SESSION,
    "kimi": kimi.SESSION,
}

OPENCODE_PARTS = (opencode_fake.step_start(), opencode_fake.text("@answer"), opencode_fake.step_finish())

CLAUDE_ANSWER = claude_streams.said(claude_streams.used("StructuredOutput"))
CLAUDE_RESULT = claude_streams.result(result="@answer", structured_output="@judged")

GOOD: dict[str, list[Document]] = {
    "codex": [
        provider_calls.THREAD,
        provider_calls.TURN,
        provider_calls.message("@answer"),
        provider_calls.DONE,
    ],
    "claude": [claude_streams.init(), CLAUDE_ANSWER, CLAUDE_RESULT],
    "opencode": opencode_fake.stream(*OPENCODE_PARTS),
    "kimi": [kimi.VERSION_LINE, kimi.message("@answer"), kimi.HINT],
}
