"""What an arm gives its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.tree import digest_tree
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.payloads import read_payload
from skill_effectiveness.studies.study_file import ArmContent
from tests.support.studies import write

if TYPE_CHECKING:
    from pathlib import Path

FS = RealFs()
FILES = {
    "one/SKILL.md": b"---\nname: first-skill\ndescription: x\n---\n# One\n",
    "one/scripts/run.py": b"x = 1\n",
    "two/SKILL.md": b"# Two\n",
    "boot.md": b"Begin.\n",
    "sub/boot.md": b"Other.\n",
    "hooks.json": b"{}\n",
}


class TestReading:
    def test_all_of_it(self, tmp_path: Path) -> None:
        base = write(tmp_path, FILES)
        content = ArmContent(skills=("one", "two"), instructions=("boot.md",), hooks=("hooks.json",))
        payload = read_payload(FS, content, base, "/arms/full")
        assert [skill.name for skill in payload.skills] == ["first-skill", "two"]
        assert payload.skills[0].tree == digest_tree(FS, base / "one")
        assert {entry.path: payload.held.blob(entry) for entry in payload.tree.files} == {
            "skills/first-skill/SKILL.md": FILES["one/SKILL.md"],
            "skills/first-skill/scripts/run.py": FILES["one/scripts/run.py"],
            "skills/two/SKILL.md": FILES["two/SKILL.md"],
            "instructions/boot.md": FILES["boot.md"],
            "hooks/hooks.json": FILES["hooks.json"],
        }
        assert len(list(payload.texts())) == 5

    def test_nothing(self, tmp_path: Path) -> None:
        assert read_payload(FS, ArmContent(), tmp_path, "/arms/off").tree.entries == ()


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "code", "where"),
        [
            (ArmContent(skills=("none",)), StudyCode.INPUT_MISSING, "/arms/full/skills/0"),
            (ArmContent(skills=("sub",)), StudyCode.INPUT_REFUSED, "/arms/full/skills/0"),
            (ArmContent(skills=("one", "one")), StudyCode.INPUT_REFUSED, "/arms/full/skills/1"),
            (
                ArmContent(instructions=("boot.md", "sub/boot.md")),
                StudyCode.INPUT_REFUSED,
                "/arms/full/instructions/1",
            ),
            (ArmContent(hooks=("none.json",)), StudyCode.INPUT_MISSING, "/arms/full/hooks/0"),
            (ArmContent(hooks=("one",)), StudyCode.INPUT_MISSING, "/arms/full/hooks/0"),
        ],
    )
    def test_by_its_place(self, tmp_path: Path, content: ArmContent, code: StudyCode, where: str) -> None:
        """S65: an input that cannot be used is named by its place in the study file."""
        with pytest.raises(StudyError) as caught:
            read_payload(FS, content, write(tmp_path, FILES), "/arms/full")
        assert (caught.value.code, caught.value.where) == (code, where)

    @pytest.mark.parametrize("name", [b"Loud Name", b"../up", b"[a]", b"''", b"a/b"])
    def test_names_of_skills(self, tmp_path: Path, name: bytes) -> None:
        base = write(tmp_path, {"one/SKILL.md": b"---\nname: " + name + b"\n---\n"})
        with pytest.raises(StudyError, match="a skill's name"):
            read_payload(FS, ArmContent(skills=("one",)), base, "/arms/full")

    def test_front_matter_that_is_no_yaml(self, tmp_path: Path) -> None:
        base = write(tmp_path, {"one/SKILL.md": b"---\nname: [\n---\n"})
        with pytest.raises(StudyError, match="front matter"):
            read_payload(FS, ArmContent(skills=("one",)), base, "/arms/full")
