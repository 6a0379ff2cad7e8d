"""What the agents of a study's arms would be started with, asked of the adapter; nothing is ever started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.providers import CodexProvider
from skill_effectiveness.providers.asking import CannotAskError
from skill_effectiveness.providers.calls import WarningCode
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.launches import (
    given_by,
    launch_digests,
    launch_shapes,
    undeclared_differences,
)
from skill_effectiveness.studies.words import Arm
from tests.support.fake_program import write_fake
from tests.support.provider_calls import left_behind, surroundings
from tests.support.studies import loaded, write
from tests.support.working_studies import SKILL, files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.providers import WorkCall
    from skill_effectiveness.providers.asking import Asked, CallSession
    from skill_effectiveness.studies.loading import LoadedStudy

SAID = "a fault of the adapter or of the machine, not of the study"


class Place:
    """A study of a fake program as its author has it, and the adapter of its driver."""

    def __init__(self, folder: Path, edits: Mapping[str, str] | None = None) -> None:
        self.started = folder / "started"
        self.around = surroundings(folder)
        program = write_fake(folder / "codex", f"open({str(self.started)!r}, 'w').close()")
        self.study: LoadedStudy = loaded(write(folder / "study", files(program, edits)))
        self.provider = self.bound(CodexProvider)

    def bound(self, adapter: type[CodexProvider]) -> CodexProvider:
        return adapter.at(self.started.with_name("codex"), around=self.around)

    def faults(self, adapter: type[CodexProvider] = CodexProvider) -> list[str]:
        return list(undeclared_differences(self.study, self.bound(adapter), self.around))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_every_arm_is_launched_as_for_an_attempt(place: Place) -> None:
    """S35: with the task's files and what the arm gives; nothing is started and nothing is left."""
    shapes = launch_shapes(place.study, place.provider, place.around)
    assert list(shapes) == [Arm.OFF, Arm.FULL]
    assert {"{copy}/start.txt"} == {path for path in shapes[Arm.OFF].tree if path.startswith("{copy}")}
    skill = f"{{session}}/config/skills/{SKILL}/SKILL.md"
    assert [skill in shape.tree for shape in shapes.values()] == [False, True]
    assert shapes[Arm.OFF].argv[:2] == ("{program}", "exec")
    assert not place.started.exists()
    assert left_behind(place.around) == []


def test_a_study_whose_arms_differ_in_the_treatment_alone(place: Place) -> None:
    """S35: no sentence is a good sign."""
    assert place.faults() == []


def test_what_is_frozen_is_the_same_every_time(place: Place, tmp_path: Path) -> None:
    """S35: other sessions, another prompt and another login change nothing; another skill does."""
    first = launch_digests(place.study, place.provider, place.around)
    assert launch_digests(place.study, place.provider, place.around) == first
    assert first[Arm.OFF] != first[Arm.FULL]
    (tmp_path / "study/skills" / SKILL / "SKILL.md").write_bytes(b"---\nname: right-words\n---\nOthers.\n")
    other = launch_digests(loaded(tmp_path / "study"), place.provider, place.around)
    assert other[Arm.OFF] == first[Arm.OFF]
    assert other[Arm.FULL] != first[Arm.FULL]


class Leaning(CodexProvider):
    """An adapter that starts whoever has a treatment with more than it declares."""

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        asked = super().to_work(call, session)
        if call.mount is None:
            return asked
        return replace(
            asked,
            argv=[*asked.argv, "effort=secret-value"],
            environment={"TMPDIR": "/secret-value"},
        )


def test_what_no_adapter_declares(place: Place) -> None:
    """S35: each place by name, with the arm, and never a value."""
    faults = place.faults(Leaning)
    assert [fault.split(" than off")[0] for fault in faults] == [
        f"/arms/full: the agent would be started with another argv[{len(argv(place))}]",
        "/arms/full: the agent would be started with another env TMPDIR",
    ]
    assert all(SAID in fault for fault in faults)
    assert "secret-value" not in "".join(faults)


def argv(place: Place) -> tuple[str, ...]:
    return launch_shapes(place.study, place.provider, place.around)[Arm.OFF].argv


class Unable(CodexProvider):
    """An adapter that cannot be asked for an arm with a treatment."""

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        if call.mount is None:
            return super().to_work(call, session)
        raise CannotAskError(WarningCode.MOUNT_UNSUPPORTED, "It can be given nothing.")


class Broken(CodexProvider):
    """An adapter for which nothing can be laid."""

    def to_work(self, call: WorkCall, session: CallSession) -> Asked:
        del call, session
        raise FileError(Fault(FileCode.NO_SPACE, "config", "The disk is full."))


@pytest.mark.parametrize(
    ("adapter", "sentence"), [(Unable, "It can be given nothing."), (Broken, "The disk is full.")]
)
def test_an_arm_that_cannot_be_launched(place: Place, adapter: type[CodexProvider], sentence: str) -> None:
    """S35: the reason, as a sentence of the check; no traceback, and nothing is left."""
    (fault,) = place.faults(adapter)
    assert fault.startswith("/arms: ")
    assert sentence in fault
    assert left_behind(place.around) == []


def test_what_an_arm_gives() -> None:
    """S35: its skills, and the text that its instructions come to; nothing else is a treatment."""
    arm = HeldTree.of_files(
        {"skills/one/SKILL.md": b"words", "instructions/a.md": b"First.", "instructions/b.md": b"Second."}
    )
    given = given_by(arm)
    assert [entry.path for entry in given.skills.files] == ["one/SKILL.md"]
    assert given.instructions == b"First.\n\nSecond."
    nothing = given_by(HeldTree.of_files({}))
    assert (nothing.skills.entries, nothing.instructions) == ((), None)


def test_an_arm_with_hooks_is_not_given() -> None:
    """S35: what no agent can be given has no launch either."""
    with pytest.raises(StudyError) as raised:
        given_by(HeldTree.of_files({"hooks/start.sh": b"true"}))
    assert raised.value.code is StudyCode.DRIVER_UNSUPPORTED
