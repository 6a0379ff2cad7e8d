"""A login file that cannot be one, at both doors: nothing is reserved, nothing spent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.actions import BINDERS
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import Reviewer
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.providers import CodexProvider
from tests.support.commands import codex_that_answers
from tests.support.controller import Controller
from tests.support.examinations import BANK, manifest
from tests.support.logins import BAD, spoil
from tests.support.private import content
from tests.support.provider_calls import surroundings

if TYPE_CHECKING:
    from pathlib import Path

PLAN = ExaminationPlan(model="model-1", reviewer_family="family-1")
PUBLISHED = (
    "reviewer-calibration.json",
    "reviewer-calibration-result.json",
    "reviewer-calibration-metrics.json",
)
NAMED = "The login file auth.json of .codex in HOME"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that would answer, and counts how often it is asked."""
    count = f"open({str(tmp_path / 'calls')!r}, 'a').write('x')\n"
    return codex_that_answers(tmp_path / "codex", BANK, before=count)


def login(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "auth.json"


class TestController:
    @pytest.mark.parametrize("kind", BAD)
    def test_nothing_is_reserved(self, tmp_path: Path, program: Path, kind: str) -> None:
        """R39: the id stays free; people are told which file, and no path."""
        fs = spoil(login(tmp_path), kind)
        controller = Controller(tmp_path, fs=fs, settings={"binders": BINDERS})
        reply = controller.sample(executable=str(program))
        assert (reply.exit_code, reply.word) == (3, "provider_identity_unavailable")
        assert NAMED in reply.told
        assert str(tmp_path) not in reply.told
        assert [name for name in content(controller.root) if "s-1" in name] == []
        assert not (tmp_path / "calls").exists()

    def test_mended_the_same_id_is_taken(self, tmp_path: Path, program: Path) -> None:
        login(tmp_path).mkdir()
        controller = Controller(tmp_path, settings={"binders": BINDERS})
        assert controller.sample(executable=str(program)).word == "provider_identity_unavailable"
        login(tmp_path).rmdir()
        assert controller.sample(executable=str(program)).word == "ok"
        assert (tmp_path / "calls").read_text() == "x"


class TestRepeats:
    def asked(self, tmp_path: Path, program: Path, kind: str | None, *, resume: bool = False) -> int:
        around = surroundings(tmp_path, HOME=str(tmp_path / "home"))
        if kind is not None:
            around = replace(around, fs=spoil(login(tmp_path), kind))
        reviewer = Reviewer.real(CodexProvider.at(program, around=around))
        with PrivateRoot.create(tmp_path / "out", RootKind.OUT, around=around, checkout=None) as out:
            return examine(PLAN, reviewer, out=out, resume=resume, manifest=manifest).calls

    @pytest.mark.parametrize("kind", BAD)
    def test_the_folder_is_not_even_claimed(self, tmp_path: Path, program: Path, kind: str) -> None:
        """R39: so that the same command may be given again once the file is mended."""
        with pytest.raises(ExaminationRefused, match=NAMED) as caught:
            self.asked(tmp_path, program, kind)
        assert caught.value.code is RefusalCode.PROVIDER_IDENTITY_UNAVAILABLE
        assert str(tmp_path) not in str(caught.value)
        assert set(content(tmp_path / "out")) <= {".examination.lock", ".examination.lock.holder"}
        assert not (tmp_path / "calls").exists()

    def test_begun_it_spends_no_attempt(self, tmp_path: Path, program: Path) -> None:
        """R28: the repeat that comes next has not used one; a complete examination needs no login."""
        assert self.asked(tmp_path, program, None) == 2
        for name in ("attempts/r02-a1", *PUBLISHED):
            taken = tmp_path / "out" / name
            taken.rename(tmp_path / taken.name)
        with pytest.raises(ExaminationRefused, match=NAMED) as caught:
            self.asked(tmp_path, program, "folder", resume=True)
        assert caught.value.field == "provider_identity_unavailable"
        login(tmp_path).rmdir()
        assert self.asked(tmp_path, program, None, resume=True) == 1
        assert not (tmp_path / "out/endings").exists()
        assert not (tmp_path / "out/attempts/r02-a2").exists()
        assert self.asked(tmp_path, program, "folder", resume=True) == 0
        assert (tmp_path / "calls").read_text() == "xxx"
