from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import skill_effectiveness.evidence.strict as anchor

SOURCE = Path(anchor.__file__).parents[2]

# Isolated and without site, so that nothing but the standard library and our own source can be found; what is
# found nevertheless is checked by name.
SCRIPT = """
import sys
sys.path.insert(0, {source!r})
import {module}
foreign = {{name.partition(".")[0] for name in sys.modules}} - sys.stdlib_module_names
assert foreign <= {{"skill_effectiveness", "__main__"}}, foreign
{use}
"""

MODULES = {
    "skill_effectiveness.evidence.strict": "",
    "skill_effectiveness.evidence.canonical": "",
    "skill_effectiveness.evidence.root": "",
    "skill_effectiveness.evidence.tree": "",
    "skill_effectiveness.evidence.strict as strict": (
        "assert strict.read_json(b'{\"a\":[1,2.5]}', strict.Profile.WIRE) == {'a': [1, 2.5]}"
    ),
    "skill_effectiveness.evidence.canonical as canonical": (
        "assert canonical.dump({'b': 'é', 'a': 1}) == '{\"a\":1,\"b\":\"é\"}'.encode()"
    ),
}


@pytest.mark.parametrize("module", MODULES)
def test_bytes_and_roots_need_the_standard_library_only(module: str) -> None:
    """E59: `rfc8785`, `filelock`, `pydantic` and `cryptography` are not there, and not missed."""
    script = SCRIPT.format(source=str(SOURCE), module=module, use=MODULES[module])
    command = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    assert (done.returncode, done.stderr) == (0, "")
