# A program of its own, beside the page that explains it.
# ruff: noqa: INP001
"""A controller: prepares one sample, has something work on it, and completes it over the bridge.

Usage: bridge_controller.py BRIDGE ROOT PLAN.json

Standard library only. BRIDGE is the path of bridge.py, ROOT a private folder of yours (0700), PLAN.json holds
`task`, `manifest`, `runtime` and `budget` as they were frozen. The work is one line here; an agent's would go
in its place.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
NOTHING = {"tokens": 0, "wall_time_seconds": 0, "tool_calls": 0, "cost_units": 0}


class RefusedError(Exception):
    """The bridge answered with a reason code."""


def ask(bridge: str, action: str, payload: Json, root: str | None = None, request_id: str = "probe") -> Json:
    """One request in a process of its own; the same request may always be sent again."""
    request = {"schema": "skill-effectiveness.bridge.request.v1", "request_id": request_id}
    whole = json.dumps(request | {"action": action, "artifact_root": root, "payload": payload})
    command = [sys.executable, "-I", "-B", "-X", "utf8", bridge]
    done = subprocess.run(command, input=whole, capture_output=True, text=True, check=False)  # noqa: S603 - the bridge
    answer: Json = json.loads(done.stdout)
    if answer["status"] != "ok":
        raise RefusedError(answer["reason_code"])
    return answer


def pin(bridge: str) -> Json:
    """Look at every file of the evaluator, then ask what it can do under exactly these files."""
    manifest: Json = ask(bridge, "probe", {"phase": "manifest"})["result"]["runtime_manifest"]
    for entry in manifest["entries"]:
        code = entry["path"].startswith("skill_effectiveness/")
        path = Path(bridge).resolve().parent / ("eval" if code else ".") / entry["path"]
        if entry["sha256"] != "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest():
            raise RefusedError("an entry is not what the manifest says")
    full: Json = ask(bridge, "probe", {"phase": "full", "pinned_manifest": manifest})
    return full


def run(bridge: str, root: str, plan: Json) -> Json:
    """One sample, from its preparation to its completion."""
    pinned = pin(bridge)["runtime_binding"]
    registry = plan["manifest"].get("registry_schema", "skill-content")
    sample = {"registry_schema": registry, "sample_index": 1, **plan}
    prepared = ask(bridge, "prepare", sample, root, "sample-1")
    if prepared["runtime_binding"] != pinned:
        raise RefusedError("another installation answered")
    place = prepared["result"]["trial_path"]
    trial, work = Path(root) / "trials" / place, Path(root).parent / "work"
    step = {"trial_path": place, "resume_cursor": {"next_run_order": 1, "consumed_budget": NOTHING}}
    ask(bridge, "checkpoint", step | {"status": "running"}, root, "sample-1-running")
    work.mkdir(mode=0o700, exist_ok=True)
    seen = {"actor": "tested-agent", "operation": "enumerate", "path": str(work)}
    for name, row in (("events.jsonl", {"event_contract": "controller-v1"}), ("access-audit.jsonl", seen)):
        (trial / name).write_text(json.dumps(row) + "\n")
    result = trial / "outcome" / "result.json"
    result.touch(mode=0o600)
    result.write_text(json.dumps({"answer": "42"}))
    end = {"access_audit_complete": False, "access_roots_enforced": False, "isolation_evidence": None}
    roots = {"read_allow_roots": [str(work)], "write_allow_roots": [str(trial / "outcome")]}
    done = ask(bridge, "checkpoint", step | {"status": "completed"} | end | roots, root, "sample-1-completed")
    answered: Json = done["result"]
    return answered


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_text()))))  # noqa: T201 - its result
