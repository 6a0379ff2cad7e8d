"""Repositories, policies and commands that mean no good."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout import policy as loading
from skill_effectiveness.acceptance.closeout.errors import UsageRefused
from skill_effectiveness.acceptance.closeout.evaluation import Candidate
from skill_effectiveness.acceptance.closeout.intake import Intake, add_evidence
from skill_effectiveness.acceptance.closeout.site import Request
from tests.support.closeout import (
    ENTRY,
    Repository,
    command_item,
    import_entry,
    policy,
    review_item,
    states,
)

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument

PASSED = [("check", "passed", "exited 0")]
DIRTY = [("check", "failed", "command left the worktree dirty")]
NOT_TEXT = "\udcff"


def shell(line: str, name: str = "check") -> str:
    """A command item that a shell carries out."""
    return command_item(name, json.dumps(["sh", "-c", line]))


def ran(repository: Repository, line: str) -> list[tuple[str, str, str]]:
    """What a run says about one shell line."""
    repository.with_policy(policy(shell(line)))
    return states(repository.run())


def blocked(document: DecisionDocument) -> str:
    assert document.decision == "blocked"
    return document.message


class TestTheWorktree:
    def test_a_sparse_checkout_is_judged_whole(self, repository: Repository) -> None:
        """C42: what the person does not have on disk is part of the candidate all the same."""
        repository.write("kept/file", "1")
        repository.write("left/out", "forbidden")
        repository.with_policy(policy(shell("! grep -rq forbidden .", "clean"), shell("test -f left/out")))
        repository.git("sparse-checkout", "set", ".agents", "kept")
        assert not (repository.root / "left").exists()
        assert states(repository.run()) == [
            ("clean", "failed", "command exited 1"),
            ("check", "passed", "exited 0"),
        ]
        assert not (repository.root / "left").exists()

    @pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
    def test_a_file_that_git_is_told_not_to_look_at(self, repository: Repository, flag: str) -> None:
        """C28: unseen is not clean."""
        repository.write("file", "1")
        assert ran(repository, f"git update-index {flag} file && echo 2 > file") == DIRTY

    def test_a_submodule_that_the_candidate_says_to_ignore(self, repository: Repository) -> None:
        """C28: the candidate's own settings do not say what is clean."""
        commit = repository.commit(file="1")
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module")
        repository.write(
            ".gitmodules", '[submodule "module"]\n\tpath = module\n\turl = ./x\n\tignore = all\n'
        )
        repository.write(ENTRY, policy(shell("cd module && git init -q && git commit -q --allow-empty -m x")))
        repository.git("add", ".gitmodules", ENTRY)
        repository.git("commit", "-q", "-m", "x")
        assert states(repository.run()) == DIRTY

    def test_the_working_folder_by_its_variable(self, repository: Repository) -> None:
        """C42: a tool that believes PWD must not look at the checkout."""
        repository.environ = {"PWD": str(repository.root)}
        python = "import os; assert os.environ['PWD'] == os.getcwd()"
        repository.with_policy(policy(command_item(argv=json.dumps(["python3", "-c", python]))))
        assert states(repository.run()) == PASSED


class TestTheRepository:
    def test_a_folder_that_only_looks_like_a_checkout(self, repository: Repository) -> None:
        """C1: git would answer from the one around it, whose policy is not asked."""
        repository.write("part/file", "1")
        repository.with_policy(policy(shell("false")))
        (repository.root / "part" / ".git").mkdir()
        message = blocked(repository.decide(root=repository.root / "part"))
        assert message == "policy root is not the top of its repository"

    def test_a_linked_worktree_is_a_top(self, repository: Repository) -> None:
        """C1: it has a policy of its own."""
        repository.with_policy(policy())
        place = repository.base / "linked"
        repository.git("worktree", "add", "-q", "--detach", str(place))
        place.chmod(0o700)
        assert repository.decide(root=place).decision == "accepted"

    @pytest.mark.parametrize("name", ["GIT_TRACE", "GIT_TRACE2", "GIT_TRACE_SETUP"])
    def test_traces_among_the_answers(self, repository: Repository, name: str) -> None:
        """C42: a person's variable is not taken for an answer of git."""
        repository.environ = {name: "/dev/stdout"}
        site = repository.site()
        repository.environ = {}
        repository.with_policy(policy())
        assert repository.decide(around=site.around).decision == "accepted"


class TestThePolicy:
    def test_a_long_id_has_evidence(self, repository: Repository) -> None:
        """C51: what the runner stored itself is never taken for something else."""
        part = "a" * 80
        repository.write("a.yaml", policy(shell("true")))
        repository.write("b.yaml", policy(imports=(import_entry("a.yaml", part),)))
        repository.with_policy(policy(imports=(import_entry("b.yaml", part),)))
        assert states(repository.run()) == [(f"{part}/{part}/check", "passed", "exited 0")]

    @pytest.mark.parametrize("segments", [("a" * 256,), ("a" * 128, "a" * 128)])
    def test_an_id_that_no_evidence_could_have(
        self, repository: Repository, segments: tuple[str, ...]
    ) -> None:
        """C2: refused before anything runs, not after."""
        *names, item = segments
        marker = repository.base / "ran"
        text = policy(shell(f"touch {marker}", item))
        for number, name in enumerate(names):
            repository.write(f"{number}.yaml", text)
            text = policy(imports=(import_entry(f"{number}.yaml", name),))
        repository.with_policy(text)
        assert blocked(repository.run()).startswith("requirement id is too long: aaa")
        assert not marker.exists()

    @pytest.mark.parametrize(
        ("limit", "most", "message"),
        [
            ("POLICY_BYTES_MOST", 250, "a.yaml: the policy files are larger than 250 bytes together"),
            ("ITEMS_MOST", 2, "there are more than 2 requirements"),
            ("EXEC_CHARACTERS_MOST", 8, "commands are longer than 8 characters together"),
        ],
    )
    def test_a_few_files_that_stand_for_very_much(
        self, repository: Repository, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, message: str
    ) -> None:
        """C2: at the limit it loads, one file further it blocks."""
        monkeypatch.setattr(loading, limit, most)
        repository.write("a.yaml", policy(command_item("one"), command_item("two")))
        repository.with_policy(policy(imports=(import_entry("a.yaml", "x"),)))
        if limit != "POLICY_BYTES_MOST":
            assert len(repository.decide().items) == 2
        repository.with_policy(policy(command_item(), imports=(import_entry("a.yaml", "x"),)))
        assert blocked(repository.decide()) == message

    def test_a_skill_folder_that_is_too_large(
        self, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """C2: a commit of a few bytes can hold files of many; `SKILL.md` has 16."""
        monkeypatch.setattr(loading, "SKILL_BYTES_MOST", 20)
        repository.write(".agents/skills/careful/more", "1234")
        repository.with_policy(policy(review_item()), skill=True)
        assert [state for _, state, _ in states(repository.decide())] == ["missing"]
        repository.write(".agents/skills/careful/more", "12345")
        repository.commit()
        message = ".agents/skills/careful/more: the skills are larger than 20 bytes together"
        assert blocked(repository.decide()) == message

    def test_skills_inside_skills(self, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        """C2: each would have what is below it looked at once more; here four names and one."""
        inner = ".agents/skills/careful/a/b/SKILL.md"
        repository.write(inner, "x")
        repository.with_policy(policy(review_item(), review_item("inner", inner)), skill=True)
        monkeypatch.setattr(loading, "SKILL_NAMES_MOST", 5)
        assert [state for _, state, _ in states(repository.decide())] == ["missing", "missing"]
        monkeypatch.setattr(loading, "SKILL_NAMES_MOST", 4)
        assert blocked(repository.decide()) == f"{inner}: the skills hold more than 4 names together"


class TestIdentities:
    @pytest.mark.parametrize(
        ("candidate", "name"),
        [
            (Candidate(NOT_TEXT, "m", "p"), "session"),
            (Candidate("s", NOT_TEXT, "p"), "model"),
            (Candidate("s", "m", NOT_TEXT), "provider"),
        ],
    )
    def test_a_candidate_that_is_no_text(
        self, repository: Repository, candidate: Candidate, name: str
    ) -> None:
        """C45: an invalid invocation, not a defect."""
        repository.with_policy(policy())
        with pytest.raises(UsageRefused, match=f"--candidate-{name} is not UTF-8 text"):
            repository.decide(candidate=candidate)
        assert not (repository.root / ".closeout").exists()

    @pytest.mark.parametrize("name", ["session", "model", "provider"])
    def test_a_reviewer_that_is_no_text(self, repository: Repository, name: str) -> None:
        """C45 C47: nothing is stored."""
        repository.with_policy(policy(review_item()), skill=True)
        identity = {"session": "s", "model": "m", "provider": "p", name: NOT_TEXT}
        intake = Intake("careful", findings=[], **identity)
        with pytest.raises(UsageRefused, match=f"--{name} is not UTF-8 text"):
            add_evidence(repository.site(), Request("HEAD", "HEAD"), intake)
        assert not (repository.root / ".closeout").exists()
