"""Lines of keys in TOML."""

from __future__ import annotations

import pytest

from skill_effectiveness.studies.task_toml import line_of

TEXT = '''\
# A remark
version = "1.0"

text = """
steps = 1
[fake]
"""
[environment]  # here
cpus = 1
env = { A = "x",
        }
list = [
  1,
  2,
]
a.b = 3
[[steps]]
name = "one"
[[steps]]
late = 1
[agent.deep]
x = 1
'''.replace('env = { A = "x",\n        }', 'env = { A = "x" }\n')


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("version",), 2),
        (("text",), 4),
        (("fake",), None),
        (("environment",), 8),
        (("environment", "cpus"), 9),
        (("environment", "env", "A"), 10),
        (("environment", "list"), 12),
        (("environment", "a", "b"), 16),
        (("steps",), 17),
        (("steps", "late"), 20),
        (("agent",), 21),
        (("agent", "deep", "x"), 22),
        (("x",), None),
    ],
)
def test_lines(path: tuple[str, ...], line: int | None) -> None:
    assert line_of(TEXT, path) == line
