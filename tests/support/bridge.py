"""The bridge as a controller meets it: the real interpreter on the real door, in a copy of the checkout.

The copy is made once for a test session, so that nothing that happens beside the tests changes what was
bound; a test that changes code makes one of its own.
"""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from jsonschema import Draft202012Validator

from skill_effectiveness.protocol.document import to_json
from tests.support import trials
from tests.support.private import REPOSITORY
from tests.support.trials import PROFILE, RUNTIME, SAFE, UNLIMITED, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.trials.models import TrialKey

Json: TypeAlias = Any
"""Any JSON value, and options that a test passes on."""

SCHEMA = "skill-effectiveness.bridge.request.v1"
RESPONSE = "skill-effectiveness.bridge.response.v1"
UNREAD = "redacted-invalid-request-id"
ISOLATED = ("-I", "-B", "-X", "utf8")
PATIENCE = 120
EXITS = {"ok": {0}, "blocked": {3}, "error": {2, 4}}
PARTS = ("bridge.py", "run.py", "pyproject.toml", "arms", "fixtures", "schemas", "eval")


def copy_checkout(target: Path) -> Path:
    """A copy of everything that the bridge runs on, changed by nobody else."""
    target.mkdir(mode=0o755, parents=True)
    for name in PARTS:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(
                source, target / name, ignore=shutil.ignore_patterns("__pycache__", "studies", "cli")
            )
        else:
            shutil.copy2(source, target / name)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


@cache
def shared_checkout() -> Path:
    """The copy of this process's tests."""
    folder = Path(tempfile.mkdtemp(prefix="skill-effectiveness-bridge-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return copy_checkout(folder / "checkout")


@cache
def response_schema() -> Draft202012Validator:
    """The published schema of every answer."""
    path = REPOSITORY / "schemas" / "bridge-response.schema.json"
    return Draft202012Validator(json.loads(path.read_bytes()))


@dataclass(frozen=True)
class Reply:
    """One answer, taken apart and held to its form."""

    exit_code: int
    document: Mapping[str, Any]
    told: str = field(default="", compare=False)

    @classmethod
    def of(cls, line: bytes, exit_code: int | None, told: str = "") -> Reply:
        """Read a line; it must be one, canonical, and say what its exit code says."""
        assert line.endswith(b"\n"), (line, told)
        assert line.count(b"\n") == 1
        document = json.loads(line)
        response_schema().validate(document)
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert line == canonical.encode() + b"\n"
        assert document.keys() == {
            "schema",
            "request_id",
            "status",
            "reason_code",
            "runtime_binding",
            "result",
        }
        assert document["schema"] == RESPONSE
        status, code = document["status"], document["reason_code"]
        assert (code is None) == (status == "ok")
        if status == "ok":
            assert document["runtime_binding"]["interpreter"]["user_site_disabled"] is True
        else:
            assert document["runtime_binding"] == document["result"] == {}
        if exit_code is not None:
            assert exit_code in EXITS[status], (document, told)
        assert "Traceback" not in told, told
        return cls(-1 if exit_code is None else exit_code, document, told)

    @property
    def word(self) -> str:
        """`ok`, or the reason."""
        return str(self.document["reason_code"] or "ok")

    @property
    def result(self) -> Mapping[str, Any]:
        """What was asked for."""
        assert self.word == "ok", (self.word, self.told)
        result: Mapping[str, Any] = self.document["result"]
        return result

    @property
    def answered(self) -> dict[str, Any]:
        """The result without the flag of a replay."""
        return {name: value for name, value in self.result.items() if name != "replayed_receipt"}

    @property
    def replayed(self) -> bool:
        """Whether it came from a receipt."""
        flag = self.result["replayed_receipt"]
        assert isinstance(flag, bool)
        return flag


class Bridge:
    """One place with an artifact root `root` and a state folder, and doors to start."""

    def __init__(self, folder: Path, checkout: Path | None = None) -> None:
        self.folder = folder
        self.checkout = checkout or shared_checkout()
        self.place = Place(folder)
        self.root = folder / "root"
        self.root.mkdir(mode=0o700, exist_ok=True)
        # One cache for all tests of a process, unless a test looks at the state folder.
        self.state = self.checkout.parent / "state"

    @property
    def environment(self) -> dict[str, str]:
        """What a door is started with."""
        return {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.state)}

    def command(self, *arguments: str, switches: Sequence[str] = ISOLATED) -> list[str]:
        """How a door is started."""
        return [sys.executable, *switches, str(self.checkout / "bridge.py"), *arguments]

    def start(self, *arguments: str, prefix: Sequence[str] = (), **options: Json) -> subprocess.Popen[bytes]:
        """A door that waits for its request."""
        given: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.environment,
            "cwd": self.folder,
        }
        switches = options.pop("switches", ISOLATED)
        return subprocess.Popen(  # noqa: S603 - our own interpreter
            [*prefix, *self.command(*arguments, switches=switches)], **(given | options)
        )

    def raw(self, data: bytes, *arguments: str, **options: Json) -> subprocess.CompletedProcess[bytes]:
        """Bytes on stdin, and what comes back."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(data, timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def send(self, data: bytes, *arguments: str, **options: Json) -> Reply:
        """One request in bytes, and its answer."""
        done = self.raw(data, *arguments, **options)
        return Reply.of(done.stdout, done.returncode, done.stderr.decode())

    def ask(self, request: Mapping[str, Any], **options: Json) -> Reply:
        """One request and its answer."""
        return self.send(json.dumps(request).encode(), **options)

    def stream(self) -> Stream:
        """A door that serves many requests."""
        return Stream(self)

    # Requests.

    def request(self, action: str, payload: Json, request_id: str = "r-1", **changes: Json) -> dict[str, Any]:
        """A request at the root."""
        root = None if action == "probe" else str(self.root)
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "request_id": request_id,
            "action": action,
            "artifact_root": root,
            "payload": payload,
        }
        return {name: value for name, value in (document | changes).items() if value is not ...}

    def prepare(self, request_id: str = "r-1", **payload: Json) -> dict[str, Any]:
        """One sample; further arguments replace fields of the payload, `...` takes one away."""
        return self.request("prepare", changed(prepare_payload(), payload), request_id)

    def checkpoint(
        self, key: TrialKey, status: str, request_id: str = "r-2", **payload: Json
    ) -> dict[str, Any]:
        """One step."""
        return self.request(
            "checkpoint", changed({"trial_path": key.path, "status": status}, payload), request_id
        )

    def completion(self, key: TrialKey, request_id: str = "r-3", **payload: Json) -> dict[str, Any]:
        """A completion with every proof; its evidence files have to be there."""
        fields = {
            "access_audit_complete": True,
            "access_roots_enforced": True,
            "isolation_evidence": SAFE,
            **self.place.roots(key),
        }
        return self.checkpoint(key, "completed", request_id, **(fields | payload))

    def manifest(self) -> dict[str, Any]:
        """The manifest that the first probe gives."""
        reply = self.ask(self.request("probe", {"phase": "manifest"}))
        manifest: dict[str, Any] = reply.result["runtime_manifest"]
        return manifest


class Stream:
    """A door that serves a stream; `with` ends it."""

    def __init__(self, bridge: Bridge, **options: Json) -> None:
        self.bridge = bridge
        # A file: a pipe that nobody reads would fill up and stall the door.
        self._told = bridge.folder / "stderr"
        with self._told.open("wb") as told:
            self.process = bridge.start("--stream", stderr=told, **options)

    @property
    def told(self) -> str:
        """What people were told so far."""
        return self._told.read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        assert "Traceback" not in self.told

    def send(self, data: bytes) -> Reply:
        """One line, and its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()
        return Reply.of(self.process.stdout.readline(), None)

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """One request, and its answer."""
        return self.send(json.dumps(request).encode())


def prepare_payload(registry: RegistrySchema = PROFILE, arm: str = "") -> dict[str, Any]:
    """The payload of a preparation without a plan."""
    manifest = trials.manifests(registry)[arm or trials.ARM[registry]]
    return {
        "registry_schema": registry.value,
        "task": to_json(trials.task()),
        "manifest": to_json(manifest),
        "runtime": dict(RUNTIME),
        "budget": dict(UNLIMITED),
        "sample_index": 1,
    }


def changed(payload: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A payload with other members; `...` takes one away."""
    return {name: value for name, value in {**payload, **changes}.items() if value is not ...}


def spots(value: Json, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a JSON value, the value itself first."""
    yield place
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, member in members:
        yield from spots(member, (*place, name))


def put_at(value: Json, place: tuple[str | int, ...], new: Json) -> Json:
    """A copy of a JSON value with another one at a place."""
    if not place:
        return new
    copy = json.loads(json.dumps(value))
    at = copy
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = new
    return copy
