"""The generated placebo of an arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.controls.structure import counts, within_tolerance
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.yaml12 import read_yaml
from skill_effectiveness.studies.checks import CheckName, CheckStatus, check_study
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.payloads import Payload, read_payload
from skill_effectiveness.studies.placebo import placebo_of
from skill_effectiveness.studies.study_file import ArmContent
from skill_effectiveness.studies.words import Arm
from tests.support.placebos import BANK, WORDS, letters
from tests.support.private import surroundings
from tests.support.studies import bench, example, loaded, write

if TYPE_CHECKING:
    from pathlib import Path

FS = RealFs()
SKILL = b"""\
---
name: zq-skill
description: Zq when zq is asked for, and zq.
---

# Zq

1. Zq zq, `zq --zq`.
2. Zq.

See references/zq.md.
"""
FILES = {
    "one/SKILL.md": SKILL,
    "one/references/zq/zq.MD": b"# Zq\n\nZq zq zq.\n",
    "one/references/zq.txt": b"zq\n",
    "one/scripts/zq.py": b"zq = 1\n",
    "one/script.md": b"#!/bin/sh\nzq\n",
    "one/data.md": b"\xff\xfe",
    "one/null.txt": b"a\0b",
    "two/SKILL.md": b"# Zq zq\n",
    "zq.md": b"Zq zq.\n",
    "binary": b"\xff",
    "hooks.json": b"{}\n",
}
PLACEBO = {"  full:\n": "  reference: {placebo: true}\n  full:\n"}


def full(folder: Path, content: ArmContent) -> Payload:
    return read_payload(FS, content, write(folder, FILES), "/arms/full")


EVERYTHING = ArmContent(skills=("one", "two"), instructions=("zq.md", "binary"), hooks=("hooks.json",))


class TestMaking:
    def test_files(self, tmp_path: Path) -> None:
        """S7: a text for each text, by names that tell nothing."""
        write(tmp_path, FILES)
        (tmp_path / "one" / "link.md").symlink_to("SKILL.md")
        payload = full(tmp_path, EVERYTHING)
        placebo = placebo_of(payload, BANK)
        first, second = (skill.name for skill in placebo.payload.skills)
        assert first != second
        for name in (first, second):
            guide, _, digits = name.partition("-")
            assert (guide, len(digits), set(digits) <= set("0123456789abcdef")) == ("guide", 8, True)
        assert [entry.path for entry in placebo.payload.tree.files] == sorted(
            [
                "instructions/zq.md",
                f"skills/{first}/SKILL.md",
                f"skills/{first}/part-1/text-1.txt",
                f"skills/{first}/part-1/part-2/text-2.md",
                f"skills/{second}/SKILL.md",
            ]
        )
        assert (placebo.payload.hooks, len(placebo.payload.instructions)) == ((), 1)
        assert placebo.left_out == (
            "hooks/hooks.json",
            "instructions/binary",
            "skills/zq-skill/data.md",
            "skills/zq-skill/link.md",
            "skills/zq-skill/null.txt",
            "skills/zq-skill/script.md",
            "skills/zq-skill/scripts/zq.py",
        )

    def test_text(self, tmp_path: Path) -> None:
        """S7: counts of controls.md section 5 within a tenth, structure, text of the bank."""
        placebo = placebo_of(full(tmp_path, ArmContent(skills=("one",))), BANK).payload
        name = placebo.skills[0].name
        found = placebo.tree.find(f"skills/{name}/SKILL.md")
        assert found is not None
        text = placebo.held.blob(found).decode()
        ours, theirs = counts(text), counts(SKILL.decode())
        assert within_tolerance(theirs.paragraph_count, ours.paragraph_count)
        assert within_tolerance(theirs.instruction_count, ours.instruction_count)
        assert within_tolerance(theirs.token_count, ours.token_count)
        matter, _, body = text.removeprefix("---\n").partition("---\n")
        value = read_yaml(matter.encode())
        assert isinstance(value, dict)
        assert (list(value), value["name"]) == (["name", "description"], name)
        assert letters(body) <= WORDS
        lines = body.split("\n")
        assert [line[:3] for line in lines if line[:1] in "#12" and line] == [
            "# " + lines[1][2],
            "1. ",
            "2. ",
        ]
        assert len(text.split("\n")) == len(SKILL.decode().split("\n"))

    def test_same_bytes(self, tmp_path: Path) -> None:
        """S7: same input, same bytes; another input, others."""
        first = placebo_of(full(tmp_path / "a", EVERYTHING), BANK).payload.tree
        assert placebo_of(full(tmp_path / "b", EVERYTHING), BANK).payload.tree == first
        write(tmp_path / "b", {"one/scripts/zq.py": b"zq = 2\n"})
        other = read_payload(FS, EVERYTHING, tmp_path / "b", "/arms/full")
        assert placebo_of(other, BANK).payload.tree != first

    def test_what_is_frozen_of_it(self, tmp_path: Path) -> None:
        """S7: a skill's digest is that of its folder, as of any other arm."""
        placebo = placebo_of(full(tmp_path, EVERYTHING), BANK).payload
        target = tmp_path / "laid"
        target.mkdir()
        placebo.held.lay_down(FS, target)
        name = placebo.skills[0].name
        read = read_payload(FS, ArmContent(skills=(f"laid/skills/{name}",)), tmp_path, "/x")
        assert read.skills[0] == placebo.skills[0]


class TestRefused:
    @pytest.mark.parametrize(
        ("files", "content", "told"),
        [
            ({}, ArmContent(hooks=("hooks.json",)), "holds no text"),
            ({}, ArmContent(instructions=("binary",)), "holds no text"),
            ({"s/SKILL.md": b"---\nname: zq\n---\n"}, ArmContent(skills=("s",)), "too little text"),
            (
                {"s/SKILL.md": b"---\n{name: zq}\n---\n"},
                ArmContent(skills=("s",)),
                "write each value plainly",
            ),
            ({"s/SKILL.md": b"\xff"}, ArmContent(skills=("s",)), "is no text"),
        ],
    )
    def test_by_a_sentence(
        self, tmp_path: Path, files: dict[str, bytes], content: ArmContent, told: str
    ) -> None:
        """S7 S65: what cannot be imitated is named, with what to do."""
        write(tmp_path, files)
        with pytest.raises(StudyError, match=told) as caught:
            placebo_of(full(tmp_path, content), BANK)
        assert caught.value.code is StudyCode.INPUT_REFUSED
        assert caught.value.where == "/arms/reference/placebo"


class TestInAStudy:
    def test_checked_and_planned(self, tmp_path: Path) -> None:
        """S7: an arm as any other: checked, frozen, and what its agent will be given."""
        study = write(
            example(tmp_path, tasks=1, edits=PLACEBO), {"skills/file-notes/scripts/x.sh": b"echo\n"}
        )
        held = loaded(study)
        assert held.left_out == ("skills/file-notes/scripts/x.sh",)
        report = check_study(held, trusted=[], around=surroundings())
        assert report.passed
        assert report.status(CheckName.TREATMENT_DIFF) is CheckStatus.PASS
        with bench(tmp_path) as place:
            plan = place.plan(study)
            assert {arm.arm for arm in plan.arms} == {Arm.OFF, Arm.FULL, Arm.REFERENCE}
            assert plan.arm(Arm.REFERENCE).arm_id == "profile-reference"
            assert plan.arm(Arm.REFERENCE).tree == held.payloads[Arm.REFERENCE].tree.digest
            with place.open() as root:
                frozen = root.payload_files(Arm.REFERENCE)
                texts = [frozen.blob(entry) for entry in frozen.tree.files]
        assert len(texts) == 1
        assert b"file-notes" not in texts[0]
        assert letters(texts[0].decode().partition("\n---\n")[2]) <= WORDS
