"""An example to begin with: a study of a simulated agent on tasks that really are graded.

The tasks ask for one file with one line; what a sandbox would change is not needed, so the example runs on
every machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import write_new_public
from skill_effectiveness.evidence.laying import lay_folder
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.study_file import STUDY_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

TASKS: Final = 12
_FOLDER_MODE: Final = 0o755
_NAME: Final = re.compile(r"[a-z0-9-]{1,40}")

_WORDS: Final = (
    "amber",
    "basil",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "indigo",
    "juniper",
    "kelp",
    "linden",
)

_STUDY: Final = """\
schema: skill-effectiveness.study.v1
name: {name}
question: Does the skill file-notes make the agent write more of the notes it is asked for?
registry: paired-profile
tier: advisory-paired
scope: main
driver:
  # Nothing is called and nothing is paid: the outcome of every trial is drawn from the plan's seed.
  provider: simulated
  executable: null
  model: simulated-agent
  settings:
    base_rate: 0.4
    task_sd: 0.1
    effect: 0.4
arms:
  off: {{}}
  full:
    skills: [skills/file-notes]
tasks: tasks
samples: 3
budgets:
  trial: {{tokens: null, wall_time_seconds: 600, tool_calls: null, cost_units: null}}
  study: {{tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}}
isolation:
  sandbox: none
  audit: none
  network: none
reviewers: []
outcome:
  primary: reward
  minimum_effect: 0.3
analysis:
  alpha: 0.05
  sides: two
  stopping: fixed
"""

_SKILL: Final = """\
---
name: file-notes
description: How to leave a note in a file so that others find it.
---

# Notes in files

1. Look which file is asked for, and whether it is there already.
2. Put exactly the asked words into it, one line, with a line end.
3. Read the file once more before you say that you are done.
"""

_TASK: Final = """\
schema_version = "1.3"

[task]
name = "examples/{word}"

[metadata]
task_family = "implementation"

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 60.0
"""

_INSTRUCTION: Final = """\
Write the word {word} into a new file that is called note.txt, beside the file that is there.
"""

_TEST: Final = """\
#!/bin/bash
if [ "$(cat "$TASK_DIR/note.txt" 2>/dev/null)" = "{word}" ]; then
  echo 1 > "$TASK_LOGS/reward.txt"
else
  echo 0 > "$TASK_LOGS/reward.txt"
fi
"""

_SOLUTION: Final = """\
#!/bin/bash
echo {word} > "$TASK_DIR/note.txt"
"""


def example_files(name: str, *, tasks: int = TASKS) -> Mapping[str, bytes]:
    """The files of an example by their paths.

    Args:
        name: of the study, and so of its folder.
        tasks: how many, 1 to 12.

    Raises:
        StudyError: `study_name`.
        ValueError: another number of tasks.
    """
    if _NAME.fullmatch(name) is None:
        sentence = "a study's name has 1 to 40 small letters, digits and '-'; choose another."
        raise StudyError(StudyCode.STUDY_NAME, "", sentence)
    if not 1 <= tasks <= len(_WORDS):
        raise ValueError(f"an example has 1 to {len(_WORDS)} tasks")
    files = {STUDY_FILE: _STUDY.format(name=name), "skills/file-notes/SKILL.md": _SKILL}
    for word in _WORDS[:tasks]:
        folder = f"tasks/note-{word}"
        files |= {
            f"{folder}/task.toml": _TASK.format(word=word),
            f"{folder}/instruction.md": _INSTRUCTION.format(word=word),
            f"{folder}/environment/readme.txt": "Notes go beside this file.\n",
            f"{folder}/tests/test.sh": _TEST.format(word=word),
            f"{folder}/solution/solve.sh": _SOLUTION.format(word=word),
        }
    return {path: text.encode() for path, text in files.items()}


def write_example(fs: FileSystem, folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a new folder.

    Args:
        fs: file operations.
        folder: absolute; must not exist, and the folder above it must.
        files: content by path.

    Raises:
        StudyError: `study_exists`.
        FileError: it cannot be written.
    """
    try:
        lay_folder(fs, folder, _FOLDER_MODE)
    except FileError as error:
        if error.code is not FileCode.EXISTS_DIFFERENT:
            raise
        sentence = "there is something of this name already; choose another, or move it away."
        raise StudyError(StudyCode.STUDY_EXISTS, folder.name, sentence) from error
    made = {folder, *folder.parents}
    for path in files:
        for parent in reversed((folder / path).parents):
            if parent not in made:
                lay_folder(fs, parent, _FOLDER_MODE)
                made.add(parent)
    for path, data in files.items():
        write_new_public(fs, folder / path, data)
