"""Third-party code that is not what its RECORD says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from skill_effectiveness.launch.bridge_manifest import DEPENDENCIES
from tests.support.bridge import ISOLATED, Bridge, Reply

pytestmark = pytest.mark.slow


class Environment:
    """A virtual environment with copies of the distributions that the bridge needs, and of no others."""

    def __init__(self, folder: Path) -> None:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "lib" / version / "site-packages"
        self.python = folder / "bin" / "python"
        self.python.parent.mkdir(parents=True)
        base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined] # of the interpreter
        self.python.symlink_to(base)
        settings = f"home = {base.parent}\ninclude-system-site-packages = false\n"
        (folder / "pyvenv.cfg").write_text(settings)
        for name in DEPENDENCIES:
            for file in metadata.files(name) or ():
                if ".." in file.parts or file.suffix == ".pyc":
                    continue
                target = self.site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), target)
                target.chmod(0o644)

    def ask(self, bridge: Bridge, request_id: str) -> Reply:
        """One preparation in this environment."""
        done = subprocess.run(  # noqa: S603 - our own door
            [str(self.python), *ISOLATED, str(bridge.checkout / "bridge.py")],
            input=json.dumps(bridge.prepare(request_id)).encode(),
            capture_output=True,
            check=False,
            env=bridge.environment,
        )
        return Reply.of(done.stdout, done.returncode, done.stderr.decode())

    def record(self, name: str) -> Path:
        """The RECORD of a distribution."""
        (place,) = self.site.glob(f"{name}-*.dist-info/RECORD")
        return place


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("venv"))


@pytest.mark.parametrize("what", ["file", "extension", "line", "version", "no digest", "no record", "twice"])
def test_a_distribution_that_changed(environment: Environment, bridge: Bridge, what: str) -> None:
    """B13: refused before any artifact is read, and fine again once it is put back."""
    assert environment.ask(bridge, "before").word == "ok"
    record = environment.record("pydantic")
    module = environment.site / "pydantic" / "main.py"
    (extension,) = (environment.site / "pydantic_core").glob("_pydantic_core*.so")
    kept = {place: place.read_bytes() for place in (record, module, extension)}
    second = record.parent.with_name("pydantic-0.0.dist-info")
    match what:
        case "file":
            module.write_bytes(kept[module] + b"\n")
        case "extension":
            extension.write_bytes(kept[extension] + b"\n")
        case "version":
            record.parent.rename(second)
        case "line":
            record.write_bytes(re.sub(rb"(pydantic/main.py,sha256=)....", rb"\1AAAA", kept[record]))
        case "no digest":
            record.write_bytes(re.sub(rb"(pydantic/main.py,)[^,]*", rb"\1", kept[record]))
        case "no record":
            record.unlink()
        case _:
            shutil.copytree(record.parent, second)
    shutil.rmtree(bridge.root)
    bridge.root.mkdir(mode=0o700)
    reply = environment.ask(bridge, "changed")
    assert (reply.word, reply.exit_code) == ("unsupported_evaluator", 3)
    assert list(bridge.root.iterdir()) == []
    if what == "version":
        second.rename(record.parent)
    shutil.rmtree(second, ignore_errors=True)
    for place, data in kept.items():
        place.write_bytes(data)
        place.chmod(0o644)
    assert environment.ask(bridge, "after").word == "ok"


def test_another_version_is_another_configuration(environment: Environment, bridge: Bridge) -> None:
    """B13 B32: what was answered under one is stale under the other."""
    assert environment.ask(bridge, "same").word == "ok"
    record = environment.record("rfc8785")
    kept = record.read_bytes()
    record.write_bytes(kept + b"rfc8785/nothing.txt,,\n")
    try:
        assert environment.ask(bridge, "same").word == "stale_state"
    finally:
        record.write_bytes(kept)
