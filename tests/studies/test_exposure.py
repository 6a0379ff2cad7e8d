"""Exposure assays, with programs in the place of codex that see more or less than they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from skill_effectiveness.studies.words import Arm
from tests.support.working_studies import OBEYING, WorkingStudy, working

pytestmark = pytest.mark.slow

# Looks into the user's own home, as a program would whose redirection does not work.
LEAKING = (
    OBEYING
    + """
import glob
for path in glob.glob(home + "/.*/skills/*/SKILL.md") + glob.glob(home + "/.config/*/skills/*/SKILL.md"):
    say({"type": "item.completed", "item": {"id": "x", "type": "reasoning", "text": open(path).read()}})
"""
)
TOLD = """
item = {"id": "x", "type": "reasoning"}
say(*[{"type": "item.completed", "item": item | {"text": text(one)}} for one in skills])
answer()
"""
UPWARD = (
    OBEYING
    + """
if checked:
    open("exposure.txt", "a").write(open("../AGENTS.md").read())
"""
)


def assays(held: WorkingStudy, phase: str = "open") -> tuple[str, str]:
    """Of the off arm and of the full arm."""
    off, full = (held.agent.assay(1, phase, arm) for arm in (Arm.OFF, Arm.FULL))
    return off, full


def home_of(held: WorkingStudy) -> list[str]:
    home = held.folder / "home"
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_an_agent_that_sees_its_treatment_alone() -> None:
    """S34 F31: both arms pass, and nothing of the marks is left anywhere."""
    with working(OBEYING + "answer()") as held:
        assert assays(held) == ("passed", "passed")
        assert assays(held, "close") == ("passed", "passed")
        assert home_of(held) == []
        assert held.left == []


def test_what_a_user_has_stays() -> None:
    """S34: folders and skills that were there before, byte for byte."""
    with working(OBEYING + "answer()") as held:
        own = held.folder / "home" / ".agents" / "skills" / "mine"
        own.mkdir(parents=True)
        (own / "SKILL.md").write_text("mine")
        assert assays(held) == ("passed", "passed")
        assert home_of(held) == [
            ".agents",
            ".agents/skills",
            ".agents/skills/mine",
            ".agents/skills/mine/SKILL.md",
        ]
        assert (own / "SKILL.md").read_text() == "mine"


def test_what_a_killed_assay_left_is_removed() -> None:
    """S34: its name follows from the study."""
    with working(OBEYING + "answer()") as held:
        name = f"exposure-mark-{held.study.plan.plan_digest.removeprefix('sha256:')[:16]}"
        for other in (name, "exposure-mark-ffffffffffffffff"):
            left = held.folder / "home" / ".agents" / "skills" / other
            left.mkdir(parents=True)
            (left / "SKILL.md").write_text("left")
        assert assays(held) == ("passed", "passed")
        kept = held.folder / "home" / ".agents" / "skills"
        assert [path.name for path in kept.iterdir()] == ["exposure-mark-ffffffffffffffff"]


@pytest.mark.parametrize("body", [LEAKING, UPWARD], ids=["real home", "a folder above"])
def test_a_mark_that_shows_fails_either_arm(body: str) -> None:
    """S34 F32: wherever it turns up."""
    with working(body + "answer()") as held:
        assert assays(held) == ("failed", "failed")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("answer()", ("passed", "failed")),
        ("open('exposure.txt', 'w').write('none'); answer()", ("passed", "failed")),
        ("os.mkfifo('exposure.txt'); answer()", ("passed", "failed")),
        (TOLD, ("passed", "failed")),
        (OBEYING + "sys.exit(1)", ("failed", "failed")),
        (OBEYING + "say(thread, turn, done)", ("failed", "failed")),
        (
            OBEYING + "say(thread, turn, {'type': 'turn.failed', 'error': {'message': 'Quota exceeded. x'}})",
            ("failed", "failed"),
        ),
    ],
    ids=["silent", "none", "a pipe", "told and not done", "crashed", "no answer", "quota"],
)  # fmt: skip
def test_what_was_not_shown(body: str, expected: tuple[str, str]) -> None:
    """S34 F36: without the nonce a treatment may never have arrived; a call that failed shows nothing."""
    with working(body) as held:
        assert assays(held) == expected


def test_a_home_that_cannot_be_marked() -> None:
    """S34: then nobody knows what an agent would have seen."""
    with working(OBEYING + "answer()") as held:
        Path(held.folder / "home" / ".agents").write_text("a file")
        assert assays(held) == ("failed", "failed")


def test_nonces_are_of_one_assay() -> None:
    """S34: what an earlier one showed says nothing."""
    body = (
        "import re\n"
        "words = [word for skill in skills for word in re.findall('nonce-[0-9a-f]{32}', text(skill))][:1]\n"
        "with open(home + '/words', 'a') as file: file.write(''.join(word + '\\n' for word in words))\n"
        + OBEYING + "answer()"
    )  # fmt: skip
    with working(body) as held:
        for phase in ("open", "close"):
            assays(held, phase)
        words = (held.folder / "home" / "words").read_text().splitlines()
    assert len(words) == len(set(words)) == 2
