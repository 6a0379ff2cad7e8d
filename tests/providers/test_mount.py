"""What an arm gives: named well, and laid as it is."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.providers import Mount, ProviderCode, ProviderError
from skill_effectiveness.providers.mount import lay_skills

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem


class TestMounts:
    def test_an_arm_may_give_nothing(self) -> None:
        """P13: the off arm is a mount too."""
        assert Mount().skills == ()
        assert Mount().instructions is None

    @pytest.mark.parametrize("name", ["SKILL", "sk-wd.agents_2", "a" * 64])
    def test_the_last_part_of_a_folder_is_the_name_of_its_skill(self, name: str) -> None:
        assert Mount((Path("/arms") / name,)).skill_names == (name,)

    @pytest.mark.parametrize(
        "folder",
        [
            "relative/skill",
            "/",
            "/a/--skill",
            "/a/.hidden",
            "/a/two words",
            "/a/é",
            "/a/a\nb",
            "/a/" + "a" * 65,
        ],
    )
    def test_a_name_that_could_be_anything_else_is_refused(self, folder: str) -> None:
        """P13: no option, no hidden folder, nothing that a program may read in two ways."""
        self.refused(skills=(Path(folder),))

    @pytest.mark.parametrize("second", ["skill", "SKILL"])
    def test_a_name_is_used_once(self, second: str) -> None:
        """F47: also where names are folded."""
        self.refused(skills=(Path("/a/skill"), Path("/b") / second))

    @pytest.mark.parametrize("text", ["", " \n", "a\ud800"])
    def test_instructions_are_text(self, text: str) -> None:
        """F18 P13: no instructions are `None`, never a blank file that one arm has alone."""
        self.refused(instructions=text)

    def test_instructions_do_not_show_in_a_trace(self) -> None:
        """P7: what an arm says is for the agent."""
        assert "canary" not in repr(Mount(instructions="canary"))

    def refused(self, **given: Any) -> None:  # noqa: ANN401 - every field once
        with pytest.raises(ProviderError) as caught:
            Mount(**given)
        assert caught.value.code is ProviderCode.INVALID_CALL
        assert caught.value.sentence.startswith("This call cannot be made: ")


class Arm:
    """A skill with everything that skills have, and a folder to lay it in."""

    def __init__(self, tmp_path: Path) -> None:
        self.skill = tmp_path / "arm" / "given"
        (self.skill / "scripts" / "empty").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("---\nname: given\n---\nUse it.\r\n")
        (self.skill / "scripts" / "run.sh").write_text("#!/bin/sh\n")
        (self.skill / "scripts" / "run.sh").chmod(0o755)
        (self.skill / "data.bin").write_bytes(bytes(range(256)) * 300)
        self.target = tmp_path / "target"
        self.target.mkdir()

    def lay(self, fs: FileSystem | None = None) -> None:
        lay_skills(fs or RealFs(), Mount((self.skill,)), self.target)

    def refused(self, fs: FileSystem | None = None) -> FileCode:
        with pytest.raises(FileError) as caught:
            self.lay(fs)
        assert str(self.skill) not in str(caught.value)
        assert isinstance(caught.value.code, FileCode)
        return caught.value.code


@pytest.fixture
def arm(tmp_path: Path) -> Arm:
    return Arm(tmp_path)


class TestLaying:
    def test_a_skill_is_laid_as_it_is(self, arm: Arm) -> None:
        """P13 F33: same names, same bytes, what may be executed still may, empty folders are there."""
        arm.lay()

        assert digest_tree(RealFs(), arm.target / "given") == digest_tree(RealFs(), arm.skill)

    def test_it_is_a_copy_for_its_owner_alone(self, arm: Arm) -> None:
        """P3: whoever works with it changes nothing of the arm's, and others see nothing."""
        arm.lay()
        laid = arm.target / "given"
        (laid / "SKILL.md").write_text("changed")

        assert (arm.skill / "SKILL.md").read_text() != "changed"
        modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in [laid, *laid.rglob("*")]}
        assert modes == {
            "given": 0o700,
            "SKILL.md": 0o600,
            "data.bin": 0o600,
            "scripts": 0o700,
            "run.sh": 0o700,
            "empty": 0o700,
        }

    @pytest.mark.parametrize("missing", ["folder", "SKILL.md"])
    def test_a_skill_that_is_none_is_refused(self, arm: Arm, missing: str) -> None:
        """P13: an arm without its skill is no arm."""
        if missing == "folder":
            arm.skill.rename(arm.skill.parent / "elsewhere")
        else:
            (arm.skill / missing).unlink()

        assert arm.refused() is FileCode.MISSING

    def test_a_skill_whose_file_is_a_folder_is_refused(self, arm: Arm) -> None:
        """P13: no program would see it, and the arm would be as one without a skill."""
        (arm.skill / "SKILL.md").unlink()
        (arm.skill / "SKILL.md").mkdir()

        assert arm.refused() is FileCode.NOT_REGULAR

    @pytest.mark.parametrize("kind", ["link", "link out", "pipe"])
    def test_what_is_no_file_is_refused(self, arm: Arm, kind: str) -> None:
        """F48: a link is never followed, so what it shows could not be laid as it is."""
        place = arm.skill / "scripts" / "odd"
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to("run.sh" if kind == "link" else "/etc/passwd")

        assert arm.refused() is FileCode.NOT_REGULAR

    def test_a_name_that_is_taken_is_not_replaced(self, arm: Arm) -> None:
        (arm.target / "given").mkdir()

        assert arm.refused() is FileCode.EXISTS_DIFFERENT

    def test_a_full_disk_is_told(self, arm: Arm) -> None:
        full = Injection("write", errno.ENOSPC, about=lambda path: path.endswith("data.bin"))

        assert arm.refused(FaultFs(RealFs(), full)) is FileCode.NO_SPACE
