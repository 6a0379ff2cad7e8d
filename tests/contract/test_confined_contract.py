"""Work calls of the four real programs in a sandbox, with every access recorded.

The model orders one command, which writes into the working copy and tries to read three things that are none
of its business. What was written is collected and recorded; what was tried got nothing and is recorded too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.execution import Sandbox, Tracer
from skill_effectiveness.providers import ADAPTERS, Ending, SandboxKind, WorkCall
from skill_effectiveness.providers.confinement import Confinement, Touch
from tests.support.provider_calls import surroundings
from tests.support.real_studies import MAKERS, Worker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.model_server import ModelServer
    from tests.support.model_wire import Asked, Reply, Wire

pytestmark = pytest.mark.realcli

SECRET = "home-secret-77a1"
PRY = """
import sys
for place in sys.argv[1:]:
    try: open("seen.txt", "a").write(open(place).read())
    except OSError: pass
open("out.txt", "w").write("hi")
open("/tmp/t", "w").close()
"""


@dataclass(frozen=True, slots=True)
class Prying(Worker):
    """A model that orders one command and then says what it saw."""

    command: str = ""

    def answer(self, wire: Wire, asked: Asked) -> Reply:
        if asked.tool_results:
            return wire.text(asked.model, "done")
        if "Bash" in asked.tools:
            return wire.named_call(asked.model, "Bash", {"command": self.command})
        return wire.tool_call(asked.model, self.command)


@pytest.fixture(params=sorted(MAKERS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def real(provider: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The real program, as it is installed."""
    around = surroundings(tmp_path)
    if Sandbox.found(around) is None or Tracer.found(around) is None:
        pytest.skip("bubblewrap and strace are needed, and leave to use them")
    if provider != "kimi":
        return request.getfixturevalue(f"{provider}_program")  # type: ignore[no-any-return]
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "kimi").symlink_to(request.getfixturevalue("kimi_script"))
    (folder / "node").symlink_to(request.getfixturevalue("node_program"))
    return folder / "kimi"


def test_confined_and_recorded(provider: str, real: Path, model_server: ModelServer, tmp_path: Path) -> None:
    """S13 F31 F32: the write is recorded, the home is not there, and what was tried is told."""
    home, copy, temporary = (tmp_path / name for name in ("home", "copy", "temporary"))
    for folder in (home, copy, temporary):
        folder.mkdir(mode=0o700, exist_ok=True)
    (home / "secret.txt").write_text(SECRET)
    hidden = tmp_path / "R"
    hidden.mkdir()
    (hidden / "tests").write_text("hidden-tests")
    # In a language that no program looks into for folders that are not the task's.
    command = f"python3 -c '{PRY}' {home}/secret.txt {hidden}/tests"
    name = f"confined-{provider}"
    program = MAKERS[provider](tmp_path, real, model_server.play(name, Prying(command=command)))
    around = surroundings(tmp_path)
    environ = {
        "HOME": str(home), "TMPDIR": str(temporary), "PATH": f"{program.path.parent}:/usr/bin:/bin",
        **program.environ,
    }  # fmt: skip
    around = replace(around, environ=environ)
    adapter = ADAPTERS[provider].at(program.path, around=around).for_model(program.model, around)
    confinement = Confinement("/app", readable=program.shown, traced=True, hidden=(hidden,))
    call = WorkCall(
        "Mend it.", copy, program.model, 120, confinement=confinement, environment={"TASK_WORD": "w"}
    )
    outcome = adapter.work(call, around=around)

    assert outcome.ending is Ending.SUCCESS, (outcome, outcome.recording)
    assert outcome.sandbox is SandboxKind.BUBBLEWRAP
    assert (copy / "out.txt").read_text() == "hi"
    assert not (copy / "seen.txt").exists() or not (copy / "seen.txt").read_text()
    seen = outcome.observation
    assert seen is not None
    assert seen.faults == ()
    assert seen.complete
    assert seen.enforced
    assert Touch("open", "write", str(copy / "out.txt")) in seen.touched
    refused = {touch.path for touch in seen.refused}
    assert str(hidden / "tests") in refused
    roots = (seen.read_roots, seen.write_roots)
    for touch in seen.touched:
        writes = touch.operation == "write" or touch.mode == "write"
        path = str(tmp_path.__class__(touch.path).resolve())
        assert any(path == root or path.startswith(f"{root}/") for root in roots[writes]), touch
    assert SECRET not in str(model_server.requests(name))
    assert list(temporary.iterdir()) == []
    assert outcome.began_empty
    assert outcome.session_id
