"""Running folders of cases; and our own folder."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.conformance import CaseResult, Outcome, case_names, run_case
from skill_effectiveness.evidence.surroundings import Surroundings
from tests.support.closeout import ENTRY, VERSION, Repository, command_item, policy
from tests.support.private import REPOSITORY, content

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


OURS = REPOSITORY / "conformance"
CATEGORIES = {
    "malformed policy": "malformed-",
    "duplicate ids": "duplicate-",
    "import cycle": "import-cycle",
    "import conflict": "import-name-twice",
    "path escape": "path-escape-",
    "stale evidence": "stale-",
    "missing reviewer": "reviewer-missing",
    "independence": "independence-same-",
    "findings that meet failOn": "findings-meet-fail-on",
    "a criteria file changes the digest": "digest-criteria",
}
SEED = REPOSITORY / "tests" / "data" / "closeout-from-seed"
SEED_CATEGORIES = {
    "malformed policy": "malformed-",
    "duplicate ids": "duplicate-ids-",
    "import cycles": "cycle-",
    "import conflicts": "conflict-",
    "path escape": "escape-",
    "stale evidence": "stale-",
    "a missing reviewer": "missing-review",
    "independence": "independence-",
    "findings that meet failOn": "finding-",
    "a referenced criteria file changing the digest": "digest-criteria-file",
}
"""Other cases for the same text, written without a look at ours or at the program (tests/data/README.md)."""


def case(folder: Path, name: str, expect: object, text: str | None = None) -> Path:
    """Write one case with a policy of the text."""
    repo = folder / name / "repo"
    (repo / ".agents").mkdir(parents=True)
    if text is not None:
        (repo / ENTRY).write_text(text)
    data = expect if isinstance(expect, bytes) else json.dumps(expect).encode()
    (folder / name / "expect.json").write_bytes(data)
    return folder


def result(repository: Repository, expect: object, text: str | None = None) -> CaseResult:
    folder = case(repository.base / "cases", "one", expect, text)
    before = content(folder)
    found = run_case(folder, "one", repository.around, VERSION)
    assert content(folder) == before
    assert list(repository.temporary.iterdir()) == []
    return found


class TestCases:
    @pytest.mark.parametrize(
        ("expect", "text", "line"),
        [
            ({"check": "validate", "ok": True, "message": "no closeout policy"}, None, "one ok"),
            ({"check": "validate", "ok": True}, policy(), "one ok"),
            ({"check": "validate", "ok": False, "messageContains": "/x"}, policy() + "x: 1", "one ok"),
            ({"check": "validate", "ok": True}, "x", "one FAIL ok=True ok=False"),
            ({"check": "validate", "ok": False}, None, "one FAIL ok=False ok=True"),
            (
                {"check": "validate", "ok": True, "warningCodes": ["x"]},
                None,
                'one FAIL warningCodes=["x"] warningCodes=[]',
            ),
            ({"check": "decision", "git": True, "decision": "accepted", "items": []}, None, "one ok"),
            ({"check": "decision", "decision": "blocked"}, None, "one ok"),
            (
                {"check": "decision", "git": True, "decision": "accepted"},
                policy(command_item()),
                "one FAIL decision=accepted decision=blocked",
            ),
            (
                {"check": "decision", "git": True, "decision": "blocked", "items": []},
                policy(command_item()),
                'one FAIL items=[] items=["check"]',
            ),
            (
                {
                    "check": "decision",
                    "git": True,
                    "decision": "blocked",
                    "items": [{"id": "check", "state": "stale"}],
                },
                policy(command_item()),
                "one FAIL check state=stale check state=missing",
            ),
            ({"check": "digest", "touch": ENTRY}, policy(), "one ok"),
            ({"check": "digest", "touch": ENTRY, "description": "for people"}, policy(), "one ok"),
        ],
    )
    def test_lines(self, repository: Repository, expect: object, text: str | None, line: str) -> None:
        """C62: agreement, and the first thing that differs."""
        assert result(repository, expect, text).line() == line

    def test_a_file_that_is_no_part_of_the_policy(self, repository: Repository) -> None:
        """C62: touching it must change the digest, and does not."""
        folder = case(repository.base / "cases", "one", {"check": "digest", "touch": "README.md"}, policy())
        (folder / "one" / "repo" / "README.md").write_text("x")
        assert run_case(folder, "one", repository.around, VERSION).outcome is Outcome.FAIL

    @pytest.mark.parametrize(
        "expect",
        [
            b"",
            b"[]",
            b"{",
            {},
            {"check": "other"},
            {"check": "validate"},
            {"check": "decision"},
            {"check": "digest"},
            {"check": "validate", "ok": True, "unknown": 1},
            {"check": "validate", "ok": True, "touch": "a"},
            {"check": "digest", "touch": "../x"},
            {"check": "digest", "touch": "nothing"},
            {"check": "validate", "ok": "yes"},
            {"check": "decision", "decision": "passed"},
        ],
    )
    def test_a_malformed_case(self, repository: Repository, expect: object) -> None:
        """C62: it is neither right nor wrong."""
        assert result(repository, expect, policy()).line().startswith("one malformed: ")

    def test_a_case_without_a_repository(self, repository: Repository) -> None:
        """C62: nothing to run."""
        (repository.base / "cases" / "one").mkdir(parents=True)
        (repository.base / "cases" / "one" / "expect.json").write_text('{"check": "validate", "ok": true}')
        found = run_case(repository.base / "cases", "one", repository.around, VERSION)
        assert found.outcome is Outcome.MALFORMED

    def test_special_files_of_a_case(self, repository: Repository) -> None:
        """C62: they are not opened."""
        folder = case(repository.base / "cases", "one", {"check": "validate", "ok": True}, policy())
        os.mkfifo(folder / "one" / "repo" / "pipe")
        found = run_case(folder, "one", repository.around, VERSION)
        assert found.line() == "one malformed: repo cannot be copied (not_regular)"

    @pytest.mark.parametrize("place", [".git", "below/.git", ".GIT"])
    def test_a_sample_that_brings_a_repository_along(self, repository: Repository, place: str) -> None:
        """C62: git would write where the file leads to, and run what the settings name."""
        before = repository.commit()
        folder = case(
            repository.base / "cases", "one", {"check": "decision", "git": True, "decision": "accepted"}
        )
        mark = folder / "one" / "repo" / place
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"gitdir: {repository.root}/.git\n")
        assert (
            run_case(folder, "one", repository.around, VERSION).line() == "one malformed: repo holds a .git"
        )
        assert repository.git("rev-parse", "HEAD") == before

    @pytest.mark.parametrize("place", ["linked/theirs", "file"])
    def test_touching_through_a_link(self, repository: Repository, place: str) -> None:
        """C62: behind it is a file that is no part of the copy."""
        folder = case(repository.base / "cases", "one", {"check": "digest", "touch": place}, policy())
        (repository.base / "theirs").write_text("kept")
        (folder / "one" / "repo" / "linked").symlink_to(repository.base)
        (folder / "one" / "repo" / "file").symlink_to(repository.base / "theirs")
        assert run_case(folder, "one", repository.around, VERSION).outcome is Outcome.MALFORMED
        assert (repository.base / "theirs").read_text() == "kept"

    def test_names_are_those_of_folders(self, tmp_path: Path) -> None:
        """C62: in their order; a file beside them is no case."""
        for name in ("b", "a"):
            (tmp_path / name).mkdir()
        (tmp_path / "README.md").write_text("")
        assert case_names(tmp_path, Surroundings.real()) == ("a", "b")


class TestOurFolder:
    def test_it_covers_the_ten_categories(self) -> None:
        """C63: by the names of its cases."""
        names = case_names(OURS, Surroundings.real())
        for category, start in CATEGORIES.items():
            assert any(name.startswith(start) for name in names), category
        assert {"independence-same-session", "independence-same-model"} <= set(names)

    @pytest.mark.parametrize("name", case_names(OURS, Surroundings.real()))
    def test_it_passes(self, repository: Repository, name: str) -> None:
        """C63: every case, on a copy."""
        before = content(OURS / name)
        assert run_case(OURS, name, repository.around, VERSION).line() == f"{name} ok"
        assert content(OURS / name) == before


class TestCasesFromTheSeedAlone:
    def test_they_cover_the_ten_categories(self) -> None:
        """C63: by the names of the cases."""
        names = case_names(SEED, Surroundings.real())
        assert len(names) >= 25
        for category, start in SEED_CATEGORIES.items():
            assert any(name.startswith(start) for name in names), category

    @pytest.mark.parametrize("name", case_names(SEED, Surroundings.real()))
    def test_they_pass(self, repository: Repository, name: str) -> None:
        """C63: what was written from the text alone holds too."""
        before = content(SEED / name)
        assert run_case(SEED, name, repository.around, VERSION).line() == f"{name} ok"
        assert content(SEED / name) == before
