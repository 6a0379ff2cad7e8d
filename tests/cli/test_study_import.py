"""`run.py study import harbor`: exits and result lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.commands import PREFIX, no_traceback
from tests.support.studies import example, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]


def test_all_imported(command: Command, home: Path) -> None:
    """S1 S11: exit 0, a line for each task; the same again; what was imported is used by a study."""
    study = example(home, tasks=2)
    said = command("study", "import", "harbor", "first/tasks", "--out", "D")
    assert (said.code, said.values) == (0, {"task.note-amber": "imported", "task.note-basil": "imported"})
    again = command("study", "import", "harbor", "first/tasks", "--out", "D", "--json")
    assert (again.code, again.document) == (0, said.values)
    path = study / "study.yaml"
    path.write_text(path.read_text().replace("tasks: tasks", "tasks: ../D"))
    assert command("study", "check", "first").code == 0


def test_one_refused(command: Command, home: Path) -> None:
    """S1 S11 S12: exit 1, the reason with its line on stderr, the others are there."""
    study = example(home, tasks=2)
    docker = b"FROM x\nWORKDIR /app\nRUN make\n"
    write(study, {"tasks/note-amber/environment/Dockerfile": docker})
    said = command("study", "import", "harbor", "first/tasks", "--host", "--out", "D")
    assert (said.code, said.values) == (1, {"task.note-amber": "needs_image", "task.note-basil": "imported"})
    assert f"{PREFIX}task note-amber: needs_image (line 3): environment/Dockerfile has RUN;" in said.err
    assert [path.name for path in (home / "D").iterdir()] == ["note-basil"]
    write(study, {"tasks/note-amber/environment/Dockerfile": docker.replace(b"RUN make", b"COPY . .")})
    said = command("study", "import", "harbor", "first/tasks", "--host", "--out", "E", "--json")
    assert (said.code, said.document["task.note-amber"]) == (0, "imported")
    assert (home / "E/note-amber/environment/readme.txt").is_file()


def test_exit_2(command: Command, home: Path) -> None:
    """S1 S65: no task, or something else at the place."""
    (home / "empty").mkdir()
    said = command("study", "import", "harbor", "empty", "--out", "D", "--json")
    assert (said.code, said.document["code"]) == (2, "no_task")
    example(home, tasks=1)
    said = command("study", "import", "harbor", "first/tasks", "--out", "empty", "--json")
    assert (said.code, said.document["code"]) == (2, "import_occupied")
    assert no_traceback(said)
    assert command("study", "import", "harbor", "first/tasks").code == 2
