"""Loading policies: every rule with its message, and what changes the identity."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.commit_tree import CommitTree
from skill_effectiveness.acceptance.closeout.errors import PolicyError
from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy, load_policy
from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand
from skill_effectiveness.acceptance.closeout.working_tree import WorkingTree
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.execution.git import Git
from tests.support.closeout import (
    ENTRY,
    HEAD,
    SKILL,
    Repository,
    command_item,
    import_entry,
    policy,
    review_item,
)

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C = (f".agents/closeout/{name}.yaml" for name in "abc")


def load(repository: Repository) -> EffectivePolicy:
    """The policy of the working tree, which must be that of the commit it is committed as."""
    found = load_policy(WorkingTree(RealFs(), repository.root))
    commit = repository.commit()
    stored = load_policy(CommitTree(Git(repository.root, repository.around), commit))
    assert (stored.digest, stored.items, stored.files) == (found.digest, found.items, found.files)
    return found


def refusal(repository: Repository) -> str:
    """Why the working tree's policy is refused."""
    with pytest.raises(PolicyError) as caught:
        load_policy(WorkingTree(RealFs(), repository.root))
    return caught.value.message


def refusal_of_both(repository: Repository) -> str:
    """Why the working tree's policy is refused; its commit must be refused for the same reason."""
    message = refusal(repository)
    commit = repository.commit()
    with pytest.raises(PolicyError) as stored:
        load_policy(CommitTree(Git(repository.root, repository.around), commit))
    assert stored.value.message == message
    return message


class TestEntry:
    def test_no_entry_file_is_no_requirement(self, repository: Repository) -> None:
        """C1: absent, not invalid."""
        found = load(repository)
        assert found.absent
        assert (found.path, found.digest, found.items) == (None, None, ())

    def test_an_entry_without_items_is_a_policy(self, repository: Repository) -> None:
        """C1: it has an identity, and is not absent."""
        repository.write(ENTRY, HEAD)
        found = load(repository)
        assert not found.absent
        assert found.digest
        assert found.items == ()

    def test_a_folder_is_not_a_policy(self, repository: Repository) -> None:
        """C2: something of the name is there, so it is not absent."""
        repository.write(f"{ENTRY}/x", "")
        assert refusal_of_both(repository) == f"{ENTRY}: the policy is not a regular file"

    def test_a_link_is_not_a_policy(self, repository: Repository) -> None:
        """C2: not even one to nowhere."""
        (repository.root / ".agents").mkdir()
        (repository.root / ENTRY).symlink_to("nowhere")
        assert refusal_of_both(repository) == f"policy file is a symlink: {ENTRY}"

    @pytest.mark.parametrize("target", ["nowhere", "..", "/"])
    def test_a_linked_folder_that_leads_to_no_policy(self, repository: Repository, target: str) -> None:
        """C2: whoever linked it meant a policy; it is never taken for none."""
        (repository.root / ".agents").symlink_to(target)
        assert refusal_of_both(repository) == f"policy file is a symlink: {ENTRY}"

    def test_a_linked_folder_inside_the_repository(self, repository: Repository) -> None:
        """C5: the resolved path stays inside."""
        repository.write("shared/closeout.yaml", policy(command_item()))
        (repository.root / ".agents").symlink_to("shared")
        assert [item.id for item in load(repository).items] == ["check"]

    def test_a_fifo_does_not_hang(self, repository: Repository) -> None:
        """C2: refused without opening it."""
        (repository.root / ".agents").mkdir()
        os.mkfifo(repository.root / ENTRY)
        with pytest.raises(PolicyError, match="not a regular file"):
            load_policy(WorkingTree(RealFs(), repository.root))

    @pytest.mark.parametrize("operation", ["lstat", "open_read", "read"])
    def test_a_file_that_cannot_be_read(self, repository: Repository, operation: str) -> None:
        """C2: unreadable is not absent."""
        repository.write(ENTRY, policy(command_item()))
        fs = FaultFs(
            RealFs(), Injection(operation, errno.EACCES, about=lambda path: path.endswith("closeout.yaml"))
        )
        with pytest.raises(PolicyError, match="cannot be read"):
            load_policy(WorkingTree(fs, repository.root))

    def test_a_root_that_is_no_directory(self, repository: Repository) -> None:
        """C2: nor one that does not exist."""
        for name in ("file", "nothing"):
            (repository.root / "file").write_text("")
            with pytest.raises(PolicyError) as caught:
                WorkingTree(RealFs(), repository.root / name)
            assert caught.value.message == "policy root is not a directory"

    def test_the_home_folder_is_no_source(self, repository: Repository) -> None:
        """C49: whatever lies under ~/.agents."""
        (repository.home / ".agents").mkdir()
        (repository.home / ENTRY).write_text(policy(command_item()))
        assert load(repository).absent


class TestDocument:
    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("[]", "/"),
            ("{}", "/specVersion"),
            ("specVersion: 0.1", "/specVersion"),
            ('specVersion: "0.10"', "/specVersion"),
            (HEAD + "gates: []", "/gates"),
            (HEAD + "description: ''", "/description"),
            (HEAD + "description: " + "x" * 501, "/description"),
            (HEAD + "description: null", "/description"),
            (HEAD + "items: null", "/items"),
            (HEAD + "imports: {}", "/imports"),
            (HEAD + "imports: [{path: a, name: b}]", "/imports/0/as"),
            (HEAD + "imports: [{path: a, as: b, optional: true}]", "/imports/0/optional"),
            (HEAD + "items: [{id: a, kind: command, gate: beforePR}]", "/items/0/exec"),
            (policy(command_item(argv="[]")), "/items/0/exec"),
            (policy(command_item(argv='[""]')), "/items/0/exec/0"),
            (policy(command_item(argv="[1]")), "/items/0/exec/0"),
            (policy(command_item(argv="true")), "/items/0/exec"),
            (policy(command_item(argv=str(["x"] * 33))), "/items/0/exec"),
            (policy(command_item(argv=f"[{'x' * 4097}]")), "/items/0/exec/0"),
            (policy(command_item(seconds=0)), "/items/0/timeoutSeconds"),
            (policy(command_item(seconds=86_401)), "/items/0/timeoutSeconds"),
            (policy(command_item()).replace("20", "20.0"), "/items/0/timeoutSeconds"),
            (policy(command_item()).replace("20", "true"), "/items/0/timeoutSeconds"),
            (policy(command_item()).replace("beforePR", "beforeMerge"), "/items/0/gate"),
            (policy(review_item(fail_on="P4")), "/items/0/failOn"),
            (policy(review_item(fail_on="p1")), "/items/0/failOn"),
            (
                policy(review_item()).replace("differentModel: true", "differentModel: yes"),
                "/items/0/independence/differentModel",
            ),
            (
                policy(review_item()).replace("true}", "true, differentProvider: true}"),
                "/items/0/independence/differentProvider",
            ),
        ],
    )
    def test_a_misfit_names_file_and_place(self, repository: Repository, text: str, where: str) -> None:
        """C3: unknown, missing and wrong members at every level."""
        repository.write(ENTRY, text)
        assert refusal(repository).startswith(f"{ENTRY}: {where} ")

    @pytest.mark.parametrize(
        "field", ["setup: [a]", "paths: ['src']", "retry: 2", "optional: true", "env: {}", "override: true"]
    )
    def test_fields_that_other_editions_may_have(self, repository: Repository, field: str) -> None:
        """C13 C16 C49: paths, retry and setup are errors, on an item and on the document."""
        name = field.split(":", 1)[0]
        repository.write(ENTRY, policy(command_item().replace("}", f", {field}}}")))
        assert refusal(repository).startswith(f"{ENTRY}: /items/0/{name} ")
        repository.write(ENTRY, policy(command_item()) + field)
        assert refusal(repository).startswith(f"{ENTRY}: /{name} ")

    @pytest.mark.parametrize("kind", ["manual", "Command", "''", "null"])
    def test_another_kind_is_an_error(self, repository: Repository, kind: str) -> None:
        """C3: it is not skipped."""
        repository.write(ENTRY, policy(command_item()).replace("kind: command", f"kind: {kind}"))
        assert refusal(repository).startswith(f"{ENTRY}: /items/0")

    @pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "a--b", "1a", "a.b", "ä", '"a\\n"', '""'])
    def test_ids_and_import_names_are_slugs(self, repository: Repository, name: str) -> None:
        """C3: the message names the id alone."""
        shown = {'"a\\n"': "a\\x0a", '""': ""}.get(name, name)
        repository.write(ENTRY, policy(command_item(name)))
        assert refusal(repository) == f"invalid id {shown}"
        repository.write(ENTRY, policy(imports=(import_entry(A, name),)))
        assert refusal(repository) == f"invalid id {shown}"

    @pytest.mark.parametrize("name", ["a", "a1", "type-check", "a-1-b2"])
    def test_legal_slugs(self, repository: Repository, name: str) -> None:
        repository.write(ENTRY, policy(command_item(name)))
        assert [item.id for item in load(repository).items] == [name]

    def test_a_yaml_fault_names_the_file(self, repository: Repository) -> None:
        """C4: also in an imported file."""
        repository.write(ENTRY, policy(imports=(import_entry(A, "a"),)))
        repository.write(A, HEAD + HEAD)
        assert refusal_of_both(repository) == f"{A}: duplicated mapping key specVersion (line 2, column 1)"


class TestImports:
    def test_order_and_prefixes_over_three_levels(self, repository: Repository) -> None:
        """C6: depth first, a child's imports before its items, entry items last."""
        repository.write(
            ENTRY, policy(command_item("own"), imports=(import_entry(A, "a"), import_entry(C, "c")))
        )
        repository.write(A, policy(command_item("one"), command_item("two"), imports=(import_entry(B, "b"),)))
        repository.write(B, policy(command_item("deep"), imports=(import_entry(C, "c"),)))
        repository.write(C, policy(command_item("leaf")))
        found = [item.id for item in load(repository).items]
        assert found == ["a/b/c/leaf", "a/b/deep", "a/one", "a/two", "c/leaf", "own"]

    def test_one_file_under_two_names_is_read_once(self, repository: Repository) -> None:
        """C7: both prefixes, one entry in the identity."""
        repository.write(ENTRY, policy(imports=(import_entry(A, "x"), import_entry(A, "y"))))
        repository.write(A, policy(command_item()))
        found = load(repository)
        assert [item.id for item in found.items] == ["x/check", "y/check"]
        assert sorted(found.files) == [ENTRY, A]

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({ENTRY: policy(imports=(import_entry(ENTRY, "e"),))}, f"import cycle: {ENTRY} -> {ENTRY}"),
            (
                {
                    ENTRY: policy(imports=(import_entry(A, "a"),)),
                    A: policy(imports=(import_entry(B, "b"),)),
                    B: policy(imports=(import_entry(A, "a"),)),
                },
                f"import cycle: {ENTRY} -> {A} -> {B} -> {A}",
            ),
            ({ENTRY: policy(imports=(import_entry(A, "a"),))}, f"import is missing: {A}"),
            (
                {ENTRY: policy(imports=(import_entry(A, "q"), import_entry(B, "q"))), A: HEAD, B: HEAD},
                f"duplicate import name q in {ENTRY}",
            ),
            (
                {ENTRY: policy(imports=(import_entry(A, "q"),)), A: policy(command_item(), command_item())},
                "duplicate requirement id q/check",
            ),
        ],
        ids=["self", "cycle", "missing", "name", "id"],
    )
    def test_errors_and_their_messages(
        self, repository: Repository, files: dict[str, str], message: str
    ) -> None:
        """C8: to the letter."""
        for path, text in files.items():
            repository.write(path, text)
        assert refusal_of_both(repository) == message

    def test_the_same_file_on_two_branches_is_no_cycle(self, repository: Repository) -> None:
        """C8: the chain of open files is what counts."""
        repository.write(ENTRY, policy(imports=(import_entry(A, "a"), import_entry(B, "b"))))
        repository.write(A, policy(imports=(import_entry(B, "b"),)))
        repository.write(B, policy(command_item()))
        assert [item.id for item in load(repository).items] == ["a/b/check", "b/check"]

    @pytest.mark.parametrize(
        "path", ["../a.yaml", "/etc/a.yaml", "~/a.yaml", "a\\b", "a//b", "./a", "a/", "", "x" * 257]
    )
    def test_an_illegal_path(self, repository: Repository, path: str) -> None:
        """C5: before anything is looked up."""
        repository.write(ENTRY, policy(imports=(import_entry(path, "a"),)))
        assert refusal(repository) == f"import path is not repository-relative: {path}"

    def test_paths_of_nested_imports_start_at_the_root(self, repository: Repository) -> None:
        """C6: not at the file that holds them."""
        repository.write(ENTRY, policy(imports=(import_entry(A, "a"),)))
        repository.write(A, policy(imports=(import_entry("b.yaml", "b"),)))
        repository.write(".agents/closeout/b.yaml", HEAD)
        assert refusal_of_both(repository) == "import is missing: b.yaml"

    def test_a_linked_file_and_a_link_out(self, repository: Repository) -> None:
        """C5: a file that is a link, and a folder that leads outside."""
        repository.write(ENTRY, policy(imports=(import_entry("x/a.yaml", "a"),)))
        (repository.root / "x").mkdir()
        (repository.root / "x" / "a.yaml").symlink_to("../.agents/closeout.yaml")
        assert refusal_of_both(repository) == "policy file is a symlink: x/a.yaml"
        (repository.root / "x" / "a.yaml").unlink()
        (repository.root / "x").rmdir()
        (repository.base / "outside").mkdir()
        (repository.base / "outside" / "a.yaml").write_text(HEAD)
        (repository.root / "x").symlink_to("../outside")
        assert refusal_of_both(repository) == "import path is not repository-relative: x/a.yaml"

    def test_files_that_import_each_other_many_times_over_end(self, repository: Repository) -> None:
        """A few kilobytes cannot ask for more work than there is time."""
        names = [f".agents/closeout/n{number}.yaml" for number in range(16)]
        repository.write(ENTRY, policy(imports=tuple(import_entry(names[0], f"x{n}") for n in range(4))))
        for path, following in zip(names, [*names[1:], None], strict=True):
            imports = tuple(import_entry(following, f"x{n}") for n in range(4)) if following else ()
            repository.write(path, policy(imports=imports))
        assert "nested too deeply or repeated too often" in refusal(repository)


class TestSkills:
    def test_the_skill_folder_is_part_of_the_policy(self, repository: Repository) -> None:
        """C10: every regular file below it, at any depth, once."""
        repository.write(ENTRY, policy(review_item("one"), review_item("two")))
        repository.write(SKILL, "x")
        repository.write(".agents/skills/careful/references/deep/criteria.md", "y")
        repository.write(".agents/skills/other/SKILL.md", "z")
        assert sorted(load(repository).files) == [
            ENTRY,
            SKILL,
            ".agents/skills/careful/references/deep/criteria.md",
        ]

    @pytest.mark.parametrize(
        "path", ["careful/README.md", "SKILL.md", "../careful/SKILL.md", "/x/SKILL.md", "careful/SKILL.MD"]
    )
    def test_a_path_that_is_no_skill(self, repository: Repository, path: str) -> None:
        """C9: it ends in /SKILL.md and is repository-relative."""
        repository.write(ENTRY, policy(review_item(skill=path)))
        assert refusal(repository) == f"skill path is not a repository SKILL.md: {path}"

    def test_a_skill_that_is_not_there(self, repository: Repository) -> None:
        """C9: missing, or a folder of that name."""
        repository.write(ENTRY, policy(review_item()))
        assert refusal_of_both(repository) == f"skill is missing: {SKILL}"
        repository.write(f"{SKILL}/x", "")
        assert refusal_of_both(repository) == f"skill is missing: {SKILL}"

    @pytest.mark.parametrize("name", ["SKILL.md", "references", "references/linked.md"])
    def test_a_link_in_the_skill_folder(self, repository: Repository, name: str) -> None:
        """C9: at any depth, to anything."""
        repository.write(ENTRY, policy(review_item()))
        if name != "SKILL.md":
            repository.write(SKILL, "x")
        place = repository.root / ".agents/skills/careful" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to("/etc")
        assert refusal_of_both(repository) == f"skill file is a symlink: .agents/skills/careful/{name}"

    def test_a_special_file_in_the_skill_folder(self, repository: Repository) -> None:
        """C9: it is not opened."""
        repository.write(ENTRY, policy(review_item()))
        repository.write(SKILL, "x")
        os.mkfifo(repository.root / ".agents/skills/careful/pipe")
        with pytest.raises(PolicyError, match=r"skill file is not a regular file: .*/pipe"):
            load_policy(WorkingTree(RealFs(), repository.root))

    def test_a_submodule_in_the_skill_folder_of_a_commit(self, repository: Repository) -> None:
        """C9 C58: an entry that is no file blocks."""
        commit = repository.with_policy(policy(review_item()), skill=True)
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},.agents/skills/careful/sub")
        repository.git("commit", "-q", "-m", "sub")
        tree = CommitTree(Git(repository.root, repository.around), repository.git("rev-parse", "HEAD"))
        with pytest.raises(PolicyError, match=r"skill file is not a regular file: .*/sub"):
            load_policy(tree)

    def test_a_name_that_is_not_utf8(self, repository: Repository) -> None:
        """C9: it would have no place in the identity."""
        repository.write(ENTRY, policy(review_item()))
        repository.write(SKILL, "x")
        (repository.root / os.fsdecode(b".agents/skills/careful/\xff.md")).write_text("")
        assert "name is not UTF-8" in refusal_of_both(repository)


EDITS: dict[str, Callable[[Repository], object]] = {
    "policy": lambda r: r.write(ENTRY, (r.root / ENTRY).read_text() + "\n"),
    "import": lambda r: r.write(A, policy() + "\n"),
    "skill": lambda r: r.write(SKILL, "Look carefully.\n\n"),
    "new skill file": lambda r: r.write(".agents/skills/careful/new.md", ""),
    "skill renamed": lambda r: (r.root / ".agents/skills/careful/z.md").rename(
        r.root / ".agents/skills/careful/y.md"
    ),
}


class TestDigest:
    @pytest.fixture
    def whole(self, repository: Repository) -> Repository:
        repository.write(ENTRY, policy(review_item(), imports=(import_entry(A, "a"),)))
        repository.write(A, policy())
        repository.write(SKILL, "Look carefully.\n")
        repository.write(".agents/skills/careful/z.md", "")
        return repository

    @pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
    def test_every_byte_counts(self, whole: Repository, edit: Callable[[Repository], object]) -> None:
        """C10: in the policy, an import, a skill file, and for a file that is added or renamed."""
        before = load(whole).digest
        edit(whole)
        assert load(whole).digest != before

    def test_an_unrelated_file_does_not(self, whole: Repository) -> None:
        """C10: nor a policy file that nothing imports, nor a mode."""
        before = load(whole).digest
        whole.write("README.md", "x")
        whole.write(C, policy(command_item()))
        (whole.root / SKILL).chmod(0o755)
        assert load(whole).digest == before

    def test_the_exec_of_an_item_is_kept_as_it_was_written(self, repository: Repository) -> None:
        """C43: words with blanks and shell characters are words."""
        repository.write(ENTRY, policy(command_item(argv='["a b", "$(c)", "*", "é"]')))
        (item,) = load(repository).items
        assert isinstance(item, ResolvedCommand)
        assert item.exec == ("a b", "$(c)", "*", "é")
