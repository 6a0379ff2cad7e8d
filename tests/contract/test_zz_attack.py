"""Scratch."""
from __future__ import annotations
import json, re
import pytest
from tests.contract.test_codex_contract import Codex
from tests.contract import test_codex_contract as C
from tests.contract.test_codex_read_contract import *  # noqa
from skill_effectiveness.providers import ReadCall
pytestmark = pytest.mark.realcli
MARKER="marker-token"
SKILL = f"---\nname: {{name}}\ndescription: {MARKER}\n---\n{MARKER} body\n"

@pytest.mark.parametrize("extra", [[], ["-c","skills.bundled.enabled=false"],["--disable","skills"],["-c",'skills.config=[{name="planted",enabled=false}]']])
def test_q(codex_program, model_server, tmp_path, extra):
    from tests.support.codex_shim import custom_provider, write_shim
    from tests.support.provider_calls import surroundings
    from skill_effectiveness.providers import CodexProvider
    around = surroundings(tmp_path, CODEX_API_KEY="k")
    c = tmp_path/"checkout"
    (c/".agents/skills/planted").mkdir(parents=True); (c/".agents/skills/planted/SKILL.md").write_text(SKILL.format(name="planted"))
    (c/".codex/skills/planted2").mkdir(parents=True); (c/".codex/skills/planted2/SKILL.md").write_text(SKILL.format(name="planted2"))
    name = f"q-{extra}".replace("/", "").replace(" ", "")
    name = "q%d" % (abs(hash(name)) % 100000)
    base = model_server.play(name, C.ANSWERING)
    shim = write_shim(tmp_path/"shim", codex_program, custom_provider(base)+extra)
    p = CodexProvider.at(shim, around=around)
    out = p.read(ReadCall("Look at $planted and $planted2 and $skill-creator and [$planted](skill:x).", c, "gpt-5.5", 40), around=around)
    body = json.dumps([r.body for r in model_server.requests(name)])
    print(extra, out.ending, re.findall(MARKER+r".{0,20}", body), "skill-creator" in body.replace("$skill-creator",""), [w.text[:200] for w in out.warnings])
    assert 0
