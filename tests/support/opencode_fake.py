"""What opencode prints and exports, by hand, and a program that does so in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.fake_program import write_fake
from tests.support.provider_calls import ANSWER, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

SESSION = "ses_dd391f0fcffes7WaF21TlkmRD1"
MODEL = "fake/fake-model"
REVIEWER = "reviewer-calibration"

Document = dict[str, Any]

TOKENS: Document = {
    "total": 1234,
    "input": 1000,
    "output": 29,
    "reasoning": 5,
    "cache": {"write": 0, "read": 200},
}


def part(name: str, kind: str, *, message: str = "msg_2", **members: object) -> Document:
    """One part of a message."""
    return {"id": f"prt_{name}", "messageID": message, "sessionID": SESSION, "type": kind, **members}


def line(kind: str, about: Document, *, session: str = SESSION) -> Document:
    """A part as the stream prints it."""
    return {"type": kind, "timestamp": 1796041742666, "sessionID": session, "part": about}


def failed(name: str = "APIError", **data: object) -> Document:
    """An `error` event."""
    error = {"name": name, "data": data}
    return {"type": "error", "timestamp": 1796041742666, "sessionID": SESSION, "error": error}


def step_start(name: str = "1") -> Document:
    return part(name, "step-start")


def text(words: str = ANSWER, name: str = "2") -> Document:
    return part(name, "text", text=words, time={"start": 1, "end": 2})


def tool(kind: str = "bash", status: str = "completed", identity: str = "3", /, **given: object) -> Document:
    state = {"status": status, "input": given, "output": "", "metadata": {}}
    return part(identity, "tool", tool=kind, callID=f"call_{identity}", state=state)


def step_finish(
    reason: str = "stop", name: str = "4", tokens: Document | None = None, cost: float = 0
) -> Document:
    return part(name, "step-finish", reason=reason, tokens=TOKENS if tokens is None else tokens, cost=cost)


_KINDS = {"step-start": "step_start", "step-finish": "step_finish", "tool": "tool_use"}


def stream(*parts: Document) -> list[Document]:
    """Parts as the lines of a stream."""
    return [line(_KINDS.get(str(about["type"]), str(about["type"])), about) for about in parts]


GOOD_PARTS = (step_start(), text(), step_finish())


def exported(*parts: Document, agent: str = REVIEWER, model: str = MODEL) -> Document:
    """The export of a session with one question and one answer."""
    provider, _, name = model.partition("/")
    asked = {"role": "user", "agent": agent, "model": {"providerID": provider, "modelID": name}}
    answered = {"role": "assistant", "agent": agent, "providerID": provider, "modelID": name}
    return {
        "info": {"id": SESSION, "agent": agent, "model": {"id": name, "providerID": provider}},
        "messages": [
            {
                "info": {**asked, "id": "msg_1", "sessionID": SESSION},
                "parts": [part("0", "text", message="msg_1", text="Which is better?")],
            },
            {"info": {**answered, "id": "msg_2", "sessionID": SESSION}, "parts": list(parts)},
        ],
    }


_START = """\
with open(folder + "/starts.jsonl", "a") as starts:
    start = {"argv": sys.argv[1:], "cwd": os.getcwd(), "environ": dict(os.environ)}
    start["into_a_file"] = os.path.isfile("/dev/stdout")
    starts.write(json.dumps(start) + "\\n")
if sys.argv[1] == "export":
    time.sleep(hang)
    raw((export if isinstance(export, str) else json.dumps(export)).encode())
    sys.exit(0)
if sys.argv[1] == "models":
    raw(b"fake/fake-model\\n")
    sys.exit(0)
prompt = sys.stdin.buffer.read().decode()
"""


def write_opencode(
    tmp_path: Path,
    body: str = "say(*good)",
    *,
    export: Document | str | None = None,
    hang: float = 0,
    **constants: object,
) -> Path:
    """A fake of opencode that runs a body for `run` and prints an export for `export`.

    The body finds the lines of a good answer as `good`, what came on stdin as `prompt` and the test's folder
    as `folder`. The arguments of every start are kept in `starts.jsonl` there.
    Exporting takes `hang` seconds.
    """
    kept = exported(*GOOD_PARTS) if export is None else export
    return write_fake(
        tmp_path / "opencode",
        f"{_START}{body}",
        good=stream(*GOOD_PARTS),
        folder=str(tmp_path),
        export=kept,
        hang=hang,
        **constants,
    )


def starts(tmp_path: Path) -> list[Document]:
    """How the fake was started, in order."""
    lines = (tmp_path / "starts.jsonl").read_text().splitlines()
    return [json.loads(start) for start in lines]


def with_ripgrep(tmp_path: Path, **environ: str) -> Surroundings:
    """Surroundings in which the program finds what it needs, and no sandbox is found around it."""
    place = tmp_path / "bin"
    place.mkdir(exist_ok=True)
    (place / "rg").write_text("#!/bin/sh\n")
    (place / "rg").chmod(0o755)
    return surroundings(tmp_path, **({"PATH": str(place)} | environ))
