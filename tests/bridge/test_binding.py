"""What is bound, and what happens to code that is not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem, gates_hash, load_gates
from skill_effectiveness.protocol.registries import RULES, RegistrySchema
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import ISOLATED, Bridge, Json, Reply, Stream, copy_checkout
from tests.support.bridge_pilots import Evaluation
from tests.support.trials import RUNTIME, cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


ROOTED = ("probe", "prepare")


@pytest.fixture
def own(tmp_path: Path) -> Bridge:
    """A bridge in a copy of the checkout that a test may change."""
    checkout = copy_checkout(tmp_path / "copy" / "checkout")
    place = tmp_path / "place"
    place.mkdir()
    return Bridge(place, checkout)


def full(bridge: Bridge, manifest: Json) -> Reply:
    return bridge.ask(bridge.request("probe", {"phase": "full", "pinned_manifest": manifest}, "full"))


def planted(place: Path) -> str:
    """Code that leaves a mark when it runs."""
    return f"import os\nos.close(os.open({str(place)!r}, os.O_CREAT | os.O_WRONLY))\n"


# The two probes.


def test_every_entry_hashes_to_its_value(bridge: Bridge) -> None:
    """B7: from outside, and so does the whole."""
    manifest = bridge.manifest()
    assert set(manifest) == {"schema_version", "entries", "manifest_hash"}
    entries = manifest["entries"]
    assert [entry["path"] for entry in entries] == sorted(entry["path"] for entry in entries)
    for entry in entries:
        package = entry["path"].startswith("skill_effectiveness/")
        data = (bridge.checkout / ("eval" if package else ".") / entry["path"]).read_bytes()
        assert entry["sha256"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert entry["size"] == len(data)
    assert manifest["manifest_hash"] == digest_object({"schema_version": 1, "entries": entries})
    assert {
        "bridge.py",
        "run.py",
        "arms/S0.json",
        "arms/profile/profile-off.json",
        "fixtures/pilot-gates.json",
        "fixtures/licence-policy.json",
        "fixtures/reviewer-calibration-cases.json",
        "schemas/bridge-request.schema.json",
        "schemas/reviewer-calibration-response.schema.json",
        "skill_effectiveness/__init__.py",
        "skill_effectiveness/calibration/__main__.py",
        "skill_effectiveness/launch/bridge_manifest.py",
    } <= {entry["path"] for entry in entries}


def test_the_first_probe_imports_nothing(bridge: Bridge) -> None:
    """B6: of the package `launch` alone, of other people's code nothing."""
    code = (
        "import json, runpy, sys\n"
        "try:\n    runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "import os; os.write(2, json.dumps(sorted(sys.modules)).encode())\n"
    )
    data = json.dumps(bridge.request("probe", {"phase": "manifest"})).encode()
    done = subprocess.run(  # noqa: S603 - our own door
        [sys.executable, *ISOLATED, "-c", code, str(bridge.checkout / "bridge.py")],
        input=data,
        capture_output=True,
        check=True,
        env=bridge.environment,
    )
    modules = json.loads(done.stderr)
    ours = [name for name in modules if name.startswith("skill_effectiveness")]
    assert ours
    assert all(
        name == "skill_effectiveness" or name.startswith("skill_effectiveness.launch") for name in ours
    )
    started = {"_distutils_hack", "__main__"}
    tops = {name.partition(".")[0] for name in modules} - started
    others = tops - sys.stdlib_module_names - {"skill_effectiveness"}
    assert {
        name for name in others if not name.startswith(("_editable", "__editable", "_sysconfigdata"))
    } == set()
    assert Reply.of(done.stdout, 0).result["phase"] == "manifest"


def test_the_second_probe(bridge: Bridge) -> None:
    """B14 B17: configuration and actions, under the pin; what ran is a part of it."""
    manifest = bridge.manifest()
    reply = full(bridge, manifest)
    result = reply.result
    assert set(result) == {
        "phase",
        "supported_actions",
        "reason_codes",
        "configuration",
        "loaded_checkout_modules",
    }
    assert result["supported_actions"] == ["probe", "prepare", "checkpoint", "evaluate"]
    assert len(result["reason_codes"]) == 18
    pinned = {entry["path"] for entry in manifest["entries"]}
    assert set(result["loaded_checkout_modules"]) <= pinned
    binding = reply.document["runtime_binding"]
    assert binding["manifest_hash"] == manifest["manifest_hash"]
    assert binding["configuration_hash"] == digest_object(result["configuration"])
    assert binding["phase"] == "full"


def test_the_configuration_is_that_of_the_models(bridge: Bridge) -> None:
    """B3: the probe loads no model and says what they say."""
    configuration = full(bridge, bridge.manifest()).result["configuration"]
    assert configuration["pilot_gates_hash"] == gates_hash(load_gates(RealFs()))
    assert configuration["registry_schemas"] == sorted(RegistrySchema)
    assert configuration["evidence_tiers"] == sorted(EvidenceTierName)
    assert configuration["advisory_waivable_items"] == sorted(WaivableItem)
    assert configuration["checkpoint_evidence_tiers"] == {
        schema.value: rules.tier.value for schema, rules in RULES.items()
    }
    contract = RULES[RegistrySchema.PAIRED_PROFILE].plan_contract
    assert configuration["profile_arm_registry_plan_contract"] == contract
    assert configuration["profile_arm_templates"] == {
        arm: digest_object(json.loads((bridge.checkout / f"arms/profile/{arm}.json").read_bytes()))
        for arm in ("profile-off", "profile-full", "profile-reference")
    }
    names = [row["name"] for row in configuration["dependencies"]]
    assert names == sorted(names)
    assert {"pydantic", "filelock", "rfc8785"} <= set(names)


@pytest.mark.parametrize(
    "change",
    [
        lambda pin: pin["entries"].append(pin["entries"][0] | {"path": "zzz.py"}),
        lambda pin: pin["entries"].pop(),
        lambda pin: pin["entries"].reverse(),
        lambda pin: pin["entries"][0].update(size=1),
        lambda pin: pin["entries"][0].update(sha256="sha256:" + "0" * 64),
        lambda pin: pin.update(schema_version=2),
        lambda pin: pin.update(manifest_hash="sha256:" + "0" * 64),
        lambda pin: pin.update(extra=1),
    ],
)
@pytest.mark.parametrize("rehashed", [False, True])
def test_a_pin_of_something_else(
    stream: Stream,
    change: Callable[[Json], object],
    rehashed: bool,  # noqa: FBT001 - both
) -> None:
    """B9: with one entry or member changed, also when its own hash fits."""
    asked = stream.ask(stream.bridge.request("probe", {"phase": "manifest"}))
    pin = json.loads(json.dumps(asked.result["runtime_manifest"]))
    change(pin)
    if rehashed:
        pin["manifest_hash"] = digest_object({k: v for k, v in pin.items() if k != "manifest_hash"})
        if pin == asked.result["runtime_manifest"]:
            return
    reply = stream.ask(stream.bridge.request("probe", {"phase": "full", "pinned_manifest": pin}))
    assert reply.word == "unsupported_evaluator"
    assert reply.document["status"] == "blocked"


def test_the_manifest_does_not_depend_on_how_the_door_was_started(bridge: Bridge) -> None:
    """B43: by absolute path, by relative path, from another folder, isolated or not."""
    data = json.dumps(bridge.request("probe", {"phase": "manifest"})).encode()
    replies = []
    for command, folder in (
        ([sys.executable, *ISOLATED, str(bridge.checkout / "bridge.py")], bridge.folder),
        ([sys.executable, *ISOLATED, "bridge.py"], bridge.checkout),
        ([sys.executable, "../bridge.py"], bridge.checkout / "eval"),
        ([sys.executable, str(bridge.checkout / "bridge.py")], bridge.folder),
    ):
        done = subprocess.run(  # noqa: S603 - our own door
            command, input=data, capture_output=True, check=True, cwd=folder, env=bridge.environment
        )
        replies.append(Reply.of(done.stdout, done.returncode, done.stderr.decode()).document)
    assert replies[1:] == replies[:1] * 3


# Changed code and data.


def place_of(bridge: Bridge, path: str) -> Path:
    return bridge.checkout / ("eval" if path.startswith("skill_effectiveness/") else ".") / path


def test_one_byte_more_in_an_entry(own: Bridge) -> None:
    """B8: in each of them in turn, a process of its own under the pin; and fine again at the end."""
    manifest = own.manifest()
    assert len(manifest["entries"]) > 200
    assert full(own, manifest).word == "ok"
    for entry in manifest["entries"]:
        place = place_of(own, entry["path"])
        kept = place.read_bytes()
        place.write_bytes(kept + b"\n")
        assert full(own, manifest).word == "unsupported_evaluator", entry["path"]
        place.write_bytes(kept)
    assert full(own, manifest).word == "ok"


def test_every_entry_in_turn(own: Bridge) -> None:
    """B8: what a stream looks at before each request, with the time of the file put back."""
    from skill_effectiveness.launch.bridge_manifest import Reading  # noqa: PLC0415 - in this process

    reading = Reading(str(own.checkout))
    entries: Any = reading.manifest["entries"]
    for entry in entries:
        place = place_of(own, entry["path"])
        kept, status = place.read_bytes(), place.stat()
        place.write_bytes(kept + b"\n")
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert not reading.unchanged(), entry["path"]
        assert Reading(str(own.checkout)).manifest["manifest_hash"] != reading.manifest["manifest_hash"]
        place.write_bytes(kept)
        reading = Reading(str(own.checkout))


@pytest.mark.parametrize(
    "path", ["launch/importer.py", "launch/start.py", "launch/wire.py", "bridge/door.py"]
)
def test_code_that_cannot_be_loaded(own: Bridge, path: str) -> None:
    """B8 B23: exit 4, one line, no traceback."""
    place_of(own, f"skill_effectiveness/{path}").write_text("def broken(:\n")
    reply = own.ask(own.prepare())
    assert (reply.word, reply.exit_code) == ("unsupported_evaluator", 4)


@pytest.mark.parametrize("what", ["mode", "link", "folder mode", "missing", "fifo"])
def test_an_entry_that_cannot_be_trusted(own: Bridge, what: str) -> None:
    """B15: group-writable, linked, absent, no file; before any artifact is read."""
    place = own.checkout / "fixtures" / "pilot-gates.json"
    match what:
        case "mode":
            place.chmod(0o664)
        case "folder mode":
            place.parent.chmod(0o775)
        case "missing":
            place.unlink()
            (own.checkout / "arms" / "S0.json").unlink()
            shutil.rmtree(own.checkout / "arms")
        case "link":
            place.rename(place.parent / "aside")
            place.symlink_to(place.parent / "aside")
        case _:
            place.unlink()
            os.mkfifo(place)
    reply = own.ask(own.prepare())
    assert (reply.word, reply.exit_code) == ("unsupported_evaluator", 3)
    assert list(own.root.iterdir()) == []


def test_an_entry_of_somebody_else(own: Bridge) -> None:
    """B15: owned by neither the user nor root."""
    os.chown(own.checkout / "fixtures" / "pilot-gates.json", 65534, -1)
    assert own.ask(own.prepare()).word == "unsupported_evaluator"


# Code that was never bound.


def test_forged_bytecode_is_not_run(own: Bridge, tmp_path: Path) -> None:
    """B10: beside a module of `launch` and of a room, with the source's time and size, isolated or not."""
    mark = tmp_path / "mark"
    for name in ("launch/bridge_entrance", "launch/guard", "bridge/door", "trials/prepare", "__init__"):
        source = own.checkout / "eval" / "skill_effectiveness" / f"{name}.py"
        cached = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        cached.parent.mkdir(exist_ok=True)
        status = source.stat()
        import importlib.util  # noqa: PLC0415 - to forge with
        import marshal  # noqa: PLC0415 - likewise

        code = compile(planted(mark), str(source), "exec")
        head = importlib.util.MAGIC_NUMBER + (0).to_bytes(4, "little")
        stamp = int(status.st_mtime).to_bytes(4, "little") + status.st_size.to_bytes(4, "little")
        cached.write_bytes(head + stamp + marshal.dumps(code))
    assert own.ask(own.prepare()).word == "ok"
    assert own.ask(own.prepare(), switches=()).word == "ok"
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["whole", "code", "key"])
def test_a_forged_cache_entry_is_not_run(own: Bridge, tmp_path: Path, kind: str) -> None:
    """B10: an entry without our seal is compiled anew."""
    import marshal  # noqa: PLC0415 - to forge with

    mark = tmp_path / "mark"
    assert own.ask(own.prepare("one")).word == "ok"
    folder = own.state / "skill-effectiveness" / "code"
    entries = [path for path in folder.iterdir() if path.name != "key"]
    assert len(entries) > 20
    forged = marshal.dumps(compile(planted(mark), "forged", "exec"))
    for path in entries:
        data = path.read_bytes()
        path.write_bytes({"whole": b"\0" * 32, "code": data[:32], "key": data[:32]}[kind] + forged)
    if kind == "key":
        (folder / "key").write_bytes(b"k" * 32)
    assert own.ask(own.prepare("two")).word == "ok"
    assert not mark.exists()


def test_the_cache_is_taken(own: Bridge) -> None:
    """B10: a second start compiles nothing of the rooms, so it leaves nothing new."""
    own.ask(own.prepare("one"))
    folder = own.state / "skill-effectiveness" / "code"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    own.ask(own.prepare("two"))
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_stream_keeps_what_it_compiles(own: Bridge) -> None:
    """B10: whichever request it was for; here a probe came first."""
    with own.stream() as stream:
        for request in (own.request("probe", {"phase": "manifest"}), own.prepare("one"), own.prepare("one")):
            assert stream.ask(request).word == "ok"
        kept = {path.name for path in (own.state / "skill-effectiveness" / "code").iterdir()}
    assert len(kept) > 60
    own.ask(own.prepare("two"))
    assert {path.name for path in (own.state / "skill-effectiveness" / "code").iterdir()} == kept


def test_shadows_on_the_way_of_the_caller(bridge: Bridge, tmp_path: Path) -> None:
    """B11: PYTHONPATH, user site, PYTHONSTARTUP and the working folder lead nowhere after the process was
    replaced.
    """
    mark = tmp_path / "mark"
    shadows = tmp_path / "shadows"
    shadows.mkdir()
    for name in ("hmac", "filelock", "rfc8785", "pydantic", "csv", "skill_effectiveness"):
        (shadows / f"{name}.py").write_text(planted(mark))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    user = tmp_path / "home" / ".local" / "lib" / version / "site-packages"
    user.mkdir(parents=True)
    (user / "pydantic.py").write_text(planted(mark))
    environment = bridge.environment | {
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(shadows),
        "PYTHONSTARTUP": str(shadows / "csv.py"),
        "PYTHONUSERBASE": str(tmp_path / "home" / ".local"),
    }
    assert bridge.ask(bridge.prepare(), switches=(), env=environment, cwd=shadows).word == "ok"
    assert not mark.exists()


def test_a_file_that_is_swapped_between_hash_and_import(own: Bridge) -> None:
    """B12: what is imported is what was hashed: here the swap is a stream's, before its rooms are loaded."""
    with own.stream() as stream:
        assert stream.ask(own.request("probe", {"phase": "manifest"})).word == "ok"
        place = place_of(own, "skill_effectiveness/trials/prepare.py")
        status = place.stat()
        place.write_bytes(b"#" + place.read_bytes()[1:])
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert stream.ask(own.prepare()).word == "unsupported_evaluator"
    assert list(own.root.iterdir()) == []


SWAPS = {
    "room": (
        "bridge_distributions",
        "    folders = site_folders()\n",
        "skill_effectiveness/trials/prepare.py",
    ),
    "gates": ("bridge_distributions", "    folders = site_folders()\n", "fixtures/pilot-gates.json"),
    "shapes": (
        "bridge_distributions",
        "    folders = site_folders()\n",
        "schemas/bridge-request.schema.json",
    ),
    "launch": ("guard", "        sys.addaudithook(self._hear)\n", "skill_effectiveness/launch/wire.py"),
}


@pytest.mark.parametrize(
    ("what", "action"),
    # A manifest probe uses nothing but launch.
    [("launch", "probe"), *((what, "prepare") for what in SWAPS)],
)
def test_a_file_that_is_swapped_in_the_middle_of_a_start(
    own: Bridge, tmp_path: Path, what: str, action: str
) -> None:
    """B12: between its hash and its use; of `launch`, which runs first, between its use and its hash."""
    module, before, swapped = SWAPS[what]
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    os.mkfifo(gate)
    hooked = place_of(own, f"skill_effectiveness/launch/{module}.py")
    code = hooked.read_text()
    assert code.count(before) == 1
    indent = before[: len(before) - len(before.lstrip(" "))]
    hooked.write_text(code.replace(before, f"{indent}open({str(gate)!r}).read()\n{before}"))
    request = own.prepare() if action == "prepare" else own.request("probe", {"phase": "manifest"})
    door = own.start()
    assert door.stdin is not None
    door.stdin.write(json.dumps(request).encode())
    door.stdin.close()
    door.stdin = None
    # Opened for writing as soon as the door waits there.
    with gate.open("w"):
        place = place_of(own, swapped)
        other = place.with_name("swapped")
        code = place.read_text()
        other.write_text(code.replace("from __future__", planted(mark) + "from __future__", 1) + "\n")
        other.rename(place)
    out, err = door.communicate(timeout=60)
    reply = Reply.of(out, door.returncode, err.decode())
    assert (reply.word, reply.exit_code) == ("unsupported_evaluator", 3)
    assert not mark.exists()
    assert list(own.root.iterdir()) == []


# What the process may not do.

TRIED = {
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "system": "os.system('true')",
    "popen": "import subprocess; subprocess.Popen(['true'])",
    "socket": "import socket; socket.socket()",
    "ctypes": "import ctypes; ctypes.CDLL(None)",
    "write": "open(OUTSIDE, 'w')",
    "append": "os.open(OUTSIDE, os.O_WRONLY | os.O_CREAT)",
    "mkdir": "os.mkdir(OUTSIDE)",
    "rename": "os.rename(OUTSIDE + '-there', OUTSIDE)",
    "remove": "os.remove(OUTSIDE + '-there')",
    "link": "os.link(OUTSIDE + '-there', OUTSIDE)",
    "symlink": "os.symlink('/', OUTSIDE)",
    "chmod": "os.chmod(OUTSIDE + '-there', 0o777)",
    "relative": "open('outside', 'w')",
    "database": "import sqlite3; sqlite3.connect(OUTSIDE)",
}


@pytest.fixture(scope="module")
def tempted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A bridge whose room tries whatever a request says, in the middle of a preparation."""
    folder = tmp_path_factory.mktemp("tempted")
    own = Bridge(folder, copy_checkout(folder / "copy" / "checkout"))
    room = place_of(own, "skill_effectiveness/bridge/trial_requests.py")
    code = room.read_text()
    start = code.index("    order = read_order(")
    tried = "    import os\n    exec(fields['runtime']['tried'], {'os': os})\n"
    room.write_text(code[:start] + tried + code[start:])
    (folder / "outside-there").write_text("")
    with own.stream() as served:
        yield served


@pytest.mark.parametrize("name", TRIED)
def test_the_hook_stops(tempted: Stream, name: str) -> None:
    """B16: tried by the room itself, in the middle of a request."""
    own = tempted.bridge
    outside = own.folder / "outside"
    crashes = own.state / "skill-effectiveness" / "crash"
    before = set(crashes.iterdir()) if crashes.exists() else set()
    runtime = RUNTIME | {"tried": f"OUTSIDE = {str(outside)!r}\n{TRIED[name]}"}
    assert tempted.ask(own.prepare(f"t-{name}", runtime=runtime)).word == "unknown_finality"
    assert not outside.exists()
    assert (own.folder / "outside-there").exists()
    (crash,) = set(crashes.iterdir()) - before
    assert "GuardedError" in crash.read_text()


def test_a_library_that_prints(own: Bridge) -> None:
    """B4 F53: on stdout, at import and later, as a warning and on descriptor 1; the answer is alone."""
    room = place_of(own, "skill_effectiveness/bridge/trial_requests.py")
    chatty = "import os, sys, warnings\nprint('chat')\nos.write(1, b'chat')\nwarnings.warn('chat')\n"
    code = room.read_text()
    at = code.index("PLAN: Final")
    room.write_text(code[:at] + chatty + "sys.stdout.flush()\n" + code[at:])
    done = own.raw(json.dumps(own.prepare()).encode())
    assert Reply.of(done.stdout, done.returncode).word == "ok"
    assert b"chat" in done.stderr


QUIET = {"execve", "exit_group", "+++ exited with 0 +++", "wait4"}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_child_and_no_socket_in_a_trace(tmp_path: Path) -> None:
    """B16: of every action in a process of its own and of a stream, by the kernel's own account."""
    evaluation = Evaluation(tmp_path)
    bridge, key = evaluation.bridge, TrialKey("task-a", "profile-full", 9)
    pin = {"phase": "full", "pinned_manifest": bridge.manifest()}
    probe = bridge.request("probe", {"phase": "manifest"})

    def trace_of(data: bytes, *arguments: str, **options: Json) -> tuple[bytes, list[str]]:
        trace = tmp_path / "trace"
        prefix = ("strace", "-f", "-o", str(trace), "-e", "trace=process,network")
        done = bridge.raw(data, *arguments, prefix=prefix, **options)
        rows = trace.read_text().splitlines()
        return done.stdout, [row.split(" ", 1)[1].strip().split("(")[0] for row in rows]

    requests = [
        probe,
        bridge.request("probe", pin),
        bridge.prepare("t-1", sample_index=9),
        bridge.checkpoint(key, "running", "t-2", resume_cursor=cursor()),
        bridge.completion(key, "t-3"),
        evaluation.request("t-4"),
        evaluation.referenced("t-5"),
    ]
    for request in requests:
        if request["request_id"] == "t-3":
            bridge.place.fill(key)
        out, calls = trace_of(json.dumps(request).encode())
        assert Reply.of(out, 0).word == "ok", request["request_id"]
        assert set(calls) <= QUIET, request["request_id"]
        assert calls.count("execve") == 1
    again = [
        bridge.prepare("u-1", sample_index=10),
        bridge.checkpoint(TrialKey("task-a", "profile-full", 10), "failed", "u-2"),
        *requests,
    ]
    out, calls = trace_of(b"".join(json.dumps(one).encode() + b"\n" for one in again), "--stream")
    assert [json.loads(line)["status"] for line in out.splitlines()] == ["ok"] * len(again)
    assert set(calls) <= QUIET
