"""What tests of Kimi share: a user's configuration, a fake of the program, the stream of a good answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skill_effectiveness.providers.kimi import KimiProvider
from tests.support.fake_program import write_fake
from tests.support.provider_calls import ANSWER, left_behind, question, surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import CallOutcome

SESSION = "session_0b1c2d3e-4f50-4617-8293-a4b5c6d7e8f9"
VERSION_LINE: dict[str, object] = {"role": "meta", "type": "system.version", "version": "9.9.9"}
HINT: dict[str, object] = {"role": "meta", "type": "session.resume_hint", "session_id": SESSION}
WIRE_PLACE = f"sessions/wd_work_1/{SESSION}/agents/main"
USAGE: dict[str, object] = {
    "type": "usage.record",
    "agentId": "main",
    "model": "fake-model",
    "usage": {"inputOther": 1000, "output": 34, "inputCacheRead": 200, "inputCacheCreation": 0},
    "time": 1,
}


def message(text: str = ANSWER) -> dict[str, object]:
    """A text of the model."""
    return {"role": "assistant", "content": text}


def tool(name: str = "Bash") -> list[dict[str, object]]:
    """A tool that was wanted, and its result."""
    call = {"type": "function", "id": "call_1", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]


GOOD_STREAM: list[dict[str, object]] = [VERSION_LINE, message(), HINT]

CONFIG = """\
default_model = "other"
telemetry = true
default_permission_mode = "yolo"
extra_skill_dirs = ["/canary-skills"]

[providers.loop]
type = "openai"
base_url = "{base_url}"
api_key = "key-canary"
default_model = "other"
source = {{ kind = "canary-registry" }}

[providers.foreign]
type = "anthropic"
api_key = "foreign-canary"

[models.{alias}]
provider = "loop"
model = "underlying-model"
max_context_size = 200000
aliases = ["canary-alias"]

[models.other]
provider = "foreign"
model = "canary-model"
max_context_size = 1

[[hooks]]
event = "PreToolUse"
command = "canary-hook"

[[permission.rules]]
decision = "allow"
pattern = "canary-tool"

[mcp.servers.canary]
command = "canary-server"
"""


def write_configuration(
    home: Path, base_url: str = "http://127.0.0.1:9/v1", alias: str = "fake-model"
) -> Path:
    """A user's configuration with more than a session may see; the folder it lies in comes back."""
    folder = home / ".kimi-code"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(base_url=base_url, alias=alias))
    return folder


def write_kimi(tmp_path: Path, body: str, **constants: object) -> Path:
    """A fake of kimi.

    It finds a good stream as `good`, the test's folder as `folder`, its prompt as `prompt`, the
    arguments as `options`, and `keep(record, ...)`, which writes a wire file.
    """
    head = (
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "prompt = options.get('-p')\n"
        "def keep(*records, place=wire):\n"
        "    there = os.path.join(os.environ['KIMI_CODE_HOME'], place)\n"
        "    os.makedirs(there, exist_ok=True)\n"
        "    with open(there + '/wire.jsonl', 'a') as file:\n"
        "        file.write(''.join(json.dumps(record) + '\\n' for record in records))\n"
        "def fail(words, code=1):\n"
        "    sys.stderr.write('error: failed to run prompt: ' + words + '\\nSee log: /x\\n')\n"
        "    sys.exit(code)\n"
    )
    given: dict[str, object] = {
        "good": GOOD_STREAM,
        "folder": str(tmp_path),
        "wire": WIRE_PLACE,
        "usage": USAGE,
    }
    return write_fake(tmp_path / "kimi", head + body, **given, **constants)


TELL = (
    "def files(place):\n"
    "    return {os.path.relpath(os.path.join(base, name), place): open(os.path.join(base, name)).read()\n"
    "            for base, _, names in os.walk(place) for name in names}\n"
    "given = open('/proc/self/environ').read().rstrip('\\0').split('\\0')\n"
    "env = dict(one.split('=', 1) for one in given)\n"
    "top = os.path.dirname(env['HOME'])\n"
    "json.dump({'env': env, 'argv': sys.argv[1:], 'cwd': os.getcwd(), 'work': sorted(os.listdir('.')),\n"
    "    'config': files(env['KIMI_CODE_HOME']), 'home': os.listdir(env['HOME']),\n"
    "    'skills': files(options['--skills-dir']), 'agent': files(os.path.dirname(options['--agent-file']))\n"
    "        if '--agent-file' in options else None,\n"
    "    'stdin': sys.stdin.buffer.read().decode(),\n"
    "    'links': {n: os.readlink(os.path.join(env['KIMI_CODE_HOME'], n))\n"
    "              for n in os.listdir(env['KIMI_CODE_HOME'])\n"
    "              if os.path.islink(os.path.join(env['KIMI_CODE_HOME'], n))},\n"
    "    'modes': {n: os.lstat(os.path.join(top, n)).st_mode\n"
    "              for n in [*os.listdir(top), 'config/config.toml']}},\n"
    "    open(folder + '/told.json', 'w'))\n"
    "say(*good)"
)
"""A body that writes down what the program was given, then gives a good answer."""


def told(tmp_path: Path) -> dict[str, Any]:
    """What the last program with the body `TELL` was given."""
    found: dict[str, Any] = json.loads((tmp_path / "told.json").read_text())
    return found


def configured(tmp_path: Path) -> Surroundings:
    """Surroundings of a user who configured the program, on a machine without a sandbox."""
    write_configuration(tmp_path / "home")
    return surroundings(tmp_path, HOME=str(tmp_path / "home"), PATH=str(tmp_path / "bin"))


def judged_by(
    tmp_path: Path, body: str, *, prompt: str = "Which is better?", seconds: float = 20, **given: object
) -> CallOutcome:
    """A judge call to a fake with this body, after which nothing of its session is left."""
    around = configured(tmp_path)
    provider = KimiProvider.at(write_kimi(tmp_path, body, **given), around=around)
    outcome = provider.judge(question(prompt, seconds=seconds), around=around)
    assert left_behind(around) == []
    return outcome
