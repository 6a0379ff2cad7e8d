"""`run` and `decision` over real repositories."""

from __future__ import annotations

import json
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.decision import to_json
from skill_effectiveness.acceptance.closeout.evidence_root import EvidenceRoot
from skill_effectiveness.acceptance.closeout.words import PolicyFrom, Trust
from skill_effectiveness.evidence.canonical import dump_line
from tests.support.closeout import (
    CANDIDATE,
    ENTRY,
    SKILL,
    VERSION,
    Repository,
    command_item,
    command_record,
    import_entry,
    policy,
    review_item,
    review_record,
    states,
)
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.closeout.decision import DecisionDocument

pytestmark = pytest.mark.slow


SH = '["sh", "-c", "{}"]'


def said(document: DecisionDocument) -> tuple[str, str]:
    return document.decision.value, document.message


def decisions(repository: Repository) -> list[Path]:
    return sorted((repository.root / ".closeout" / "decisions").rglob("*.json"))


class TestWholeDecisions:
    def test_no_policy(self, repository: Repository) -> None:
        """C1: accepted, and nothing has to run."""
        repository.commit(a="1")
        assert said(repository.decide()) == said(repository.run()) == ("accepted", "no closeout policy")

    def test_a_policy_without_items(self, repository: Repository) -> None:
        """C1: a real policy, accepted without the message."""
        repository.with_policy(policy())
        document = repository.decide()
        assert said(document) == ("accepted", "")
        assert not document.policy.absent

    def test_an_invalid_policy_blocks_and_nothing_runs(self, repository: Repository) -> None:
        """C2: no evidence directory, no store, no command."""
        repository.with_policy(policy(command_item(argv=SH.format("touch ran"))) + "setup: x\n")
        document = repository.run()
        assert document.decision == "blocked"
        assert document.message.startswith(f"{ENTRY}: /setup ")
        assert (document.base, document.head, document.items) == ("", "", ())
        assert not (repository.root / ".closeout").exists()
        assert not repository.store.exists()

    @pytest.mark.parametrize(
        ("base", "head"),
        [
            ("nope", "HEAD"),
            ("HEAD", "nope"),
            ("", "HEAD"),
            ("HEAD", "--all"),
            ("HEAD", "HEAD\n"),
            ("HEAD^{tree}", "HEAD"),
        ],
    )
    def test_commits_that_do_not_resolve(self, repository: Repository, base: str, head: str) -> None:
        """C54 C2: blocked, nothing runs, nothing is written."""
        repository.with_policy(policy(command_item(argv=SH.format("touch ran"))))
        document = repository.run(base, head)
        assert said(document) == ("blocked", "base or head does not resolve to a commit")
        assert document.policy.digest
        assert not (repository.root / ".closeout").exists()

    def test_unresolved_commits_block_also_without_a_policy(self, repository: Repository) -> None:
        """C1: absent comes after unresolved."""
        assert said(repository.decide())[0] == "blocked"

    def test_a_root_that_is_not_the_top(self, repository: Repository) -> None:
        """C1: a folder inside a repository is not one without requirements."""
        repository.with_policy(policy(command_item()))
        (repository.root / "inner").mkdir()
        document = repository.decide(root=repository.root / "inner")
        assert said(document) == ("blocked", "policy root is not the top of its repository")

    def test_revisions_are_resolved_to_full_ids(self, repository: Repository) -> None:
        """C19: branches, tags and short ids name the same candidate."""
        first = repository.with_policy(policy())
        repository.git("tag", "-a", "-m", "t", "v1")
        second = repository.commit(b="2")
        document = repository.decide("v1", second[:10])
        assert (document.base, document.head) == (first, second)

    def test_an_option_like_branch_name_is_a_name(self, repository: Repository) -> None:
        """C19: what follows a revision is never an option of git."""
        commit = repository.with_policy(policy())
        repository.git("update-ref", "refs/heads/--output=x", commit)
        assert repository.decide("refs/heads/--output=x").base == commit

    def test_replacement_objects_change_nothing(self, repository: Repository) -> None:
        """C58: the commit's own objects count, not what the checkout was told to show for them."""
        honest = repository.with_policy(policy(command_item()))
        weak = repository.with_policy(policy())
        repository.git("replace", honest, weak)
        document = repository.decide(honest, honest, policy_from=PolicyFrom.BASE)
        assert [item.id for item in document.items] == ["check"]


class TestRuns:
    def test_commands_and_their_states(self, repository: Repository) -> None:
        """C24 C25 C26 C27 C28 C29 C53: what is recorded is what was observed."""
        head = repository.with_policy(
            policy(
                command_item("good"),
                command_item("bad", '["sh", "-c", "exit 3"]'),
                command_item("slow", '["sleep", "30"]', 1),
                command_item("none", '["no-such-program-anywhere"]'),
                command_item("killed", SH.format("kill -SEGV $$")),
                command_item("dirty", SH.format("echo x > new")),
                command_item("moved", SH.format("git commit -q --allow-empty -m y")),
            )
        )
        document = repository.run()
        assert states(document) == [
            ("good", "passed", "exited 0"),
            ("bad", "failed", "command exited 3"),
            ("slow", "failed", "command timed out"),
            ("none", "failed", "command could not start"),
            ("killed", "failed", "command was killed by SIGSEGV"),
            ("dirty", "failed", "command left the worktree dirty"),
            ("moved", "failed", "command moved HEAD"),
        ]
        assert document.decision == "rejected"
        by_item = {record["itemId"]: record for record in repository.records()}
        assert by_item["killed"]["exec"]["signal"] == "SIGSEGV"
        assert "signal" not in by_item["slow"]["exec"]
        assert by_item["none"]["exec"]["exitCode"] is None
        good = by_item["good"]
        assert good["producer"] == good["evaluator"] == {"name": "closeout-reference", "version": VERSION}
        assert (good["head"], good["policyDigest"], good["attempt"]) == (head, document.policy.digest, 1)
        assert good["exec"]["argv"] == ["true"]

    def test_the_checkout_is_as_it_was(self, repository: Repository) -> None:
        """C41 C42 C66: HEAD, status, worktrees and temporary folders, after pass, failure and timeout."""
        repository.with_policy(
            policy(
                command_item("ok", SH.format("rm -rf * .agents; git checkout -q --orphan gone")),
                command_item("bad", SH.format("rm .git; exit 1")),
                command_item("slow", SH.format("mkdir deep; chmod 000 deep; sleep 30"), 1),
            )
        )
        repository.write("untracked", "x")
        before = (
            repository.git("status", "--porcelain"),
            repository.git("rev-parse", "HEAD", "--abbrev-ref", "HEAD"),
        )
        document = repository.run()
        assert [item.state.value for item in document.items] == ["failed"] * 3
        after = (
            repository.git("status", "--porcelain"),
            repository.git("rev-parse", "HEAD", "--abbrev-ref", "HEAD"),
        )
        assert after == before
        assert len(repository.git("worktree", "list").splitlines()) == 1
        assert list(repository.temporary.iterdir()) == []

    def test_each_item_has_a_worktree_of_its_own_at_the_candidate(self, repository: Repository) -> None:
        """C64: neither a file of the item before nor an edit of the working tree is there."""
        text = SH.format("test ! -e left && test $(cat value) = committed && touch left")
        base = repository.commit(value="committed")
        repository.with_policy(policy(command_item("one", text), command_item("two", text)))
        repository.write("value", "edited")
        document = repository.run(base, "HEAD")
        assert [item.message for item in document.items] == ["command left the worktree dirty"] * 2

    def test_ignored_files_are_no_dirt(self, repository: Repository) -> None:
        """C28: what git status shows is what counts."""
        repository.write(".gitignore", "build/\n")
        repository.with_policy(policy(command_item(argv=SH.format("mkdir build; touch build/x"))))
        assert repository.run().decision == "accepted"

    def test_the_answers_about_a_worktree_are_not_the_commands_to_give(self, repository: Repository) -> None:
        """C27 C28: a command that puts another repository in the place of its own is found out."""
        text = SH.format("echo x > new; rm .git; git init -q .; git add -A; git commit -q -m clean")
        repository.with_policy(policy(command_item(argv=text)))
        assert states(repository.run()) == [("check", "failed", "command left the worktree dirty")]

    def test_every_run_runs_everything_again(self, repository: Repository) -> None:
        """C35 C47: attempts count up, the latest decides, logs and records stay."""
        marker = repository.base / "marker"
        repository.with_policy(policy(command_item(argv=SH.format(f"test -e {marker}"))))
        assert repository.run().decision == "rejected"
        marker.touch()
        document = repository.run()
        assert (document.decision, document.items[0].attempt) == ("accepted", 2)
        assert [(record["attempt"], record["exec"]["exitCode"]) for record in repository.records()] == [
            (1, 1),
            (2, 0),
        ]

    def test_a_run_never_reviews(self, repository: Repository) -> None:
        """C18: a review item is missing until somebody hands one in."""
        repository.with_policy(policy(command_item(), review_item()), skill=True)
        assert states(repository.run())[1] == (
            "careful",
            "missing",
            "no evidence for this candidate and policy",
        )

    def test_environment_without_the_routing_of_git(self, repository: Repository) -> None:
        """C42: inherited, but for what would lead git to another repository."""
        repository.environ = {
            "GIT_DIR": "/nowhere",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "a.b",
            "GIT_CONFIG_VALUE_0": "c",
            "KEPT": "yes",
        }
        site = repository.site()
        repository.environ = {}
        commit = repository.with_policy(
            policy(
                command_item(
                    argv=SH.format("test -z $GIT_DIR$GIT_CONFIG_COUNT$GIT_CONFIG_KEY_0 && test $KEPT = yes")
                )
            )
        )
        from skill_effectiveness.acceptance.closeout.runner import run  # noqa: PLC0415 - with this site
        from skill_effectiveness.acceptance.closeout.site import Request  # noqa: PLC0415 - with this site

        assert run(site, Request(commit, commit)).decision == "accepted"

    def test_hooks_of_the_checkout_do_not_run(self, repository: Repository) -> None:
        """C42: making a worktree is no checkout of a person's."""
        repository.with_policy(policy(command_item()))
        hook = repository.root / ".git" / "hooks" / "post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {repository.base}/hooked\n")
        hook.chmod(0o755)
        assert repository.run().decision == "accepted"
        assert not (repository.base / "hooked").exists()

    def test_logs_are_artifacts(self, repository: Repository) -> None:
        """C51: a changed, shortened or deleted log makes its item invalid."""
        repository.with_policy(policy(command_item(argv=SH.format("echo out; echo err >&2"))))
        assert repository.run().decision == "accepted"
        (record,) = repository.records()
        (artifact,) = record["artifacts"]
        log = repository.root / ".closeout" / artifact["path"]
        assert log.read_bytes() == b"STDOUT\nout\n\nSTDERR\nerr\n"
        log.write_bytes(b"STDOUT\nout\n\nSTDERR\n")
        expected = [("check", "invalid", f"artifact {artifact['path']} does not match its hash")]
        assert states(repository.decide()) == expected
        log.unlink()
        assert states(repository.decide()) == expected

    def test_everything_private_is_private(self, repository: Repository) -> None:
        """C66: modes of the evidence directory and the store, and a .gitignore that hides it all."""
        repository.with_policy(policy(command_item()))
        repository.run()
        assert wrong_modes(repository.root / ".closeout") == []
        assert stat.S_IMODE((repository.root / ".closeout").stat().st_mode) == 0o700
        assert wrong_modes(repository.store) == []
        assert repository.git("status", "--porcelain") == ""


class TestDecisions:
    def test_the_same_inputs_give_the_same_bytes(self, repository: Repository) -> None:
        """C48: also from another process's reading order and at another time; nothing is written twice."""
        repository.with_policy(policy(command_item(), review_item()), skill=True)
        repository.run()
        first = dump_line(to_json(repository.decide()))
        journal = content(repository.store)
        (kept,) = decisions(repository)
        assert kept.read_bytes() == first
        assert dump_line(to_json(repository.decide())) == first
        assert content(repository.store) == journal

    def test_the_latest_decision_is_kept(self, repository: Repository) -> None:
        """C54: one file for each gate, policy and candidate; none without a head."""
        head = repository.with_policy(policy(command_item()))
        repository.decide()
        (kept,) = decisions(repository)
        assert kept.name == f"{head}.json"
        assert json.loads(kept.read_bytes())["decision"] == "blocked"
        repository.run()
        assert json.loads(kept.read_bytes())["decision"] == "accepted"
        repository.decide(head="nope")
        assert decisions(repository) == [kept]

    def test_evidence_of_the_commit_before_is_stale(self, repository: Repository) -> None:
        """C37: a changed candidate, base or policy."""
        first = repository.with_policy(policy(command_item()))
        repository.run()
        second = repository.commit(a="1")
        stale = [("check", "stale", "evidence is for a different candidate or policy")]
        assert states(repository.decide(first, second)) == stale
        assert states(repository.decide(second, first)) == stale
        assert repository.decide(first, first).decision == "accepted"
        repository.write(ENTRY, policy(command_item()) + "\n")
        assert states(repository.decide(first, first)) == stale

    def test_trust_in_the_journal(self, repository: Repository) -> None:
        """C52: the runner's own record counts; one written by hand only by default."""
        head = repository.with_policy(policy(command_item()))
        document = repository.run(trust=Trust.JOURNAL)
        assert document.decision == "accepted"
        made = command_record(attempt=2, base=head, head=head, policyDigest=document.policy.digest)
        repository.put_record("made/2.json", made)
        assert repository.decide().decision == "accepted"
        assert states(repository.decide(trust=Trust.JOURNAL)) == [
            ("check", "untrusted", "command evidence is not in the runner journal")
        ]

    def test_a_record_moved_to_another_name_is_the_same_record(self, repository: Repository) -> None:
        """C52: what it says decides, not where it lies; a copy is a duplicate."""
        repository.with_policy(policy(command_item()))
        repository.run()
        (place,) = repository.evidence.rglob("*.json")
        moved = place.rename(repository.evidence / "moved.json")
        assert repository.decide(trust=Trust.JOURNAL).decision == "accepted"
        (repository.evidence / "copy.json").write_bytes(moved.read_bytes())
        assert states(repository.decide()) == [("check", "invalid", "duplicate evidence attempt")]

    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            ("x.json", b"{", "not strict JSON (syntax)"),
            ("deep/x.json", b"", "not strict JSON (empty)"),
            ("x.json", b"{}", "/recordType is neither command nor review"),
            ("x.txt", b"{}", "not a .json file"),
            ("x.json.tmp", b"{}", "not a .json file"),
            (".x.json.0123456789abcdef.tmp", b"{}", "not a .json file"),
            ("README", b"", "not a .json file"),
            ("x.JSON", b"{}", "not a .json file"),
            (
                "x.json",
                json.dumps(review_record(outcome="pass")).encode(),
                "/outcome This field is not known here; remove it or correct its name",
            ),
        ],
    )
    def test_a_broken_or_foreign_file_blocks(
        self, repository: Repository, name: str, data: bytes, reason: str
    ) -> None:
        """C36 C38 C59: anywhere below evidence/, and it stays as it is."""
        repository.with_policy(policy(command_item()))
        repository.run()
        place = repository.put_record(name, data)
        assert said(repository.decide()) == ("blocked", f"evidence file {name} is invalid: {reason}")
        assert place.read_bytes() == data

    def test_links_and_special_files_block(self, repository: Repository) -> None:
        """C59: to a good record, to a folder, and what is no file; nothing hangs."""
        import os  # noqa: PLC0415 - for the FIFO alone

        repository.with_policy(policy(command_item()))
        repository.run()
        (record,) = repository.evidence.rglob("*.json")
        for name, make in (
            ("link.json", lambda place: place.symlink_to(record)),
            ("folder.json", lambda place: place.symlink_to(record.parent)),
            ("pipe.json", os.mkfifo),
        ):
            make(repository.evidence / name)
            decision, message = said(repository.decide())
            assert decision == "blocked"
            assert message.startswith(f"evidence file {name} is invalid: ")
            (repository.evidence / name).unlink()
        (repository.evidence / "a folder named x.json").mkdir()
        assert repository.decide().decision == "accepted"

    def test_an_evidence_folder_that_is_a_link_or_a_file(self, repository: Repository) -> None:
        """C59: it is not followed."""
        repository.with_policy(policy(command_item()))
        repository.run()
        repository.evidence.rename(repository.base / "elsewhere")
        repository.evidence.symlink_to(repository.base / "elsewhere")
        assert said(repository.decide()) == ("blocked", "could not read the evidence directory")

    def test_an_evidence_directory_that_is_open_to_others(self, repository: Repository) -> None:
        """C36: its mode is a refusal, never repaired."""
        repository.with_policy(policy(command_item()))
        repository.run()
        (repository.root / ".closeout").chmod(0o777)
        assert said(repository.decide()) == ("blocked", "could not read the evidence directory")
        assert stat.S_IMODE((repository.root / ".closeout").stat().st_mode) == 0o777


class TestBasePolicy:
    def test_a_policy_that_differs_from_the_bases_is_told(self, repository: Repository) -> None:
        """C57: changed, added, deleted, unloadable there; not for an equal one."""
        empty = repository.commit(a="1")
        one = repository.with_policy(policy(command_item()))
        broken = repository.with_policy("nonsense")
        other = repository.with_policy(policy(command_item("renamed")))

        def warned(base: str) -> list[str]:
            return [each.message for each in repository.decide(base, "HEAD").warnings]

        digest = repository.decide(other, "HEAD").policy.digest
        assert warned(other) == []
        assert warned(empty) == [f"the policy in use is {digest}, that of the base commit is none"]
        assert warned(broken) == [f"the policy in use is {digest}, that of the base commit is unloadable"]
        (message,) = warned(one)
        assert message.startswith(f"the policy in use is {digest}, that of the base commit is sha256:")
        (repository.root / ENTRY).unlink()
        document = repository.decide(other, "HEAD")
        assert said(document) == ("accepted", "no closeout policy")
        assert [each.code.value for each in document.warnings] == ["policy_differs_from_base"]
        assert (
            document.warnings[0].message == f"the policy in use is none, that of the base commit is {digest}"
        )

    def test_the_policy_of_the_base_ignores_the_working_tree(self, repository: Repository) -> None:
        """C58: edits of policy, imports and skills, and their deletion."""
        text = policy(review_item(), imports=(import_entry("x/a.yaml", "a"),))
        repository.write("x/a.yaml", policy(command_item()))
        base = repository.with_policy(text, skill=True)
        digest = repository.decide(base, base).policy.digest
        repository.write(ENTRY, policy())
        repository.write(SKILL, "Say yes.\n")
        (repository.root / "x/a.yaml").unlink()
        document = repository.decide(base, base, policy_from=PolicyFrom.BASE)
        assert document.policy.digest == digest
        assert [item.id for item in document.items] == ["a/check", "careful"]
        assert document.warnings == ()
        assert document.options.policyFrom == "base"

    def test_an_invalid_policy_at_the_base_blocks_only_where_it_is_asked_for(
        self, repository: Repository
    ) -> None:
        """C57 C58: by default it is a warning."""
        base = repository.with_policy("nonsense")
        head = repository.with_policy(policy())
        assert repository.decide(base, head).decision == "accepted"
        document = repository.decide(base, head, policy_from=PolicyFrom.BASE)
        assert document.decision == "blocked"
        assert document.message.startswith(f"{ENTRY}: / ")


class TestStore:
    def test_a_store_inside_a_checkout(self, repository: Repository) -> None:
        """C2: blocked before anything runs."""
        repository.with_policy(policy(command_item(argv=SH.format(f"touch {repository.base}/ran"))))
        document = repository.run(store=repository.root / "store")
        assert said(document) == ("blocked", "store_unsafe")
        assert not (repository.base / "ran").exists()
        assert not (repository.root / "store").exists()

    def test_a_store_that_others_can_reach(self, repository: Repository) -> None:
        """C2: wrong mode."""
        repository.with_policy(policy(command_item()))
        repository.store.mkdir(mode=0o755)
        assert said(repository.decide()) == ("blocked", "store_unsafe")

    def test_a_journal_that_was_changed(self, repository: Repository) -> None:
        """C2: named by its row; nothing runs, and it is not rewritten."""
        ran = repository.base / "ran"
        repository.with_policy(policy(command_item(argv=SH.format(f"echo >> {ran}"))))
        assert repository.run().decision == "accepted"
        (rows,) = (repository.store / "closeout" / "journal").glob("*.jsonl")
        lines = rows.read_bytes().split(b"\n")
        lines[1] = lines[1].replace(b'"check"', b'"other"')
        rows.write_bytes(b"\n".join(lines))
        before = rows.read_bytes()
        decision, message = said(repository.run())
        assert decision == "blocked"
        assert message.startswith("journal_broken at row ")
        assert ran.read_bytes() == b"\n"
        assert rows.read_bytes() == before

    def test_rows_of_a_run(self, repository: Repository) -> None:
        """C65: started before, recorded after, decided at the end."""
        repository.with_policy(policy(command_item()))
        repository.run()
        (rows,) = (repository.store / "closeout" / "journal").glob("*.jsonl")
        kinds = [json.loads(line)["type"] for line in rows.read_bytes().splitlines()]
        assert kinds == ["journal_open", "command_started", "command_recorded", "decision_recorded"]


class TestSeveralAtOnce:
    def test_concurrent_runs_never_share_an_attempt(self, repository: Repository) -> None:
        """C50: each stores its own, and both decisions come."""
        repository.with_policy(policy(command_item("one"), command_item("two")))
        found: list[DecisionDocument] = []
        threads = [threading.Thread(target=lambda: found.append(repository.run())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [document.decision for document in found] == ["accepted"] * 4
        attempts = sorted((record["itemId"], record["attempt"]) for record in repository.records())
        assert attempts == [(item, attempt) for item in ("one", "two") for attempt in (1, 2, 3, 4)]

    def test_a_held_lock(self, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        """C50: evidence_locked; no attempt is numbered."""
        from skill_effectiveness.acceptance.closeout import evidence_root  # noqa: PLC0415 - to shorten the wait
        from skill_effectiveness.evidence.lock import Lock  # noqa: PLC0415 - the other holder

        repository.with_policy(policy(command_item()))
        repository.decide()
        monkeypatch.setattr(evidence_root, "LOCK_SECONDS", 0.1)
        done: list[DecisionDocument] = []
        with (
            EvidenceRoot.open(repository.root / ".closeout", repository.around) as held,
            Lock(held._root, "lock").hold(),
        ):
            thread = threading.Thread(target=lambda: done.append(repository.run()))
            thread.start()
            thread.join()
        assert said(done[0]) == ("blocked", "evidence_locked")
        assert not repository.evidence.exists()


def test_the_candidate_is_told_as_it_was_given(repository: Repository) -> None:
    """C39: the identities that were compared stand in the decision."""
    repository.with_policy(policy())
    document = repository.decide()
    assert document.candidate.model_dump() == {
        "session": CANDIDATE.session,
        "model": CANDIDATE.model,
        "provider": CANDIDATE.provider,
    }


def test_a_blocked_decision_takes_the_place_of_an_accepted_one(repository: Repository) -> None:
    """C36: the kept decision is the latest, also when nothing could be evaluated."""
    repository.with_policy(policy(command_item()))
    assert repository.run().decision == "accepted"
    repository.put_record("x.txt", b"")
    assert repository.decide().decision == "blocked"
    (kept,) = decisions(repository)
    assert json.loads(kept.read_bytes())["decision"] == "blocked"


def test_a_file_of_the_repository_is_never_taken_for_git(repository: Repository) -> None:
    """C42: not even where PATH has relative entries."""
    commit = repository.with_policy(policy(command_item()))
    repository.write("git", f"#!/bin/sh\ntouch {repository.base}/taken\n")
    (repository.root / "git").chmod(0o755)
    repository.environ = {"PATH": ":.:" + repository.variables()["PATH"]}
    assert repository.run(commit, commit).decision == "accepted"
    assert not (repository.base / "taken").exists()


def test_a_change_that_keeps_size_and_time_is_dirt(repository: Repository) -> None:
    """C28: also where the checkout is configured not to look closely."""
    repository.git("config", "core.trustctime", "false")
    repository.git("config", "core.checkStat", "minimal")
    text = SH.format("touch -r value stamp.tmp; printf w > value; touch -r stamp.tmp value; rm stamp.tmp")
    repository.write("value", "v")
    repository.with_policy(policy(command_item(argv=text)))
    assert states(repository.run()) == [("check", "failed", "command left the worktree dirty")]


class TestTheNewestWord:
    def test_it_stands_in_the_journal_of_every_store(self, repository: Repository) -> None:
        """C47: also where the evidence directory had the same decision already; and once."""
        repository.with_policy(policy(command_item()))
        repository.run()
        other = repository.base / "other"
        for _ in range(2):
            repository.decide(store=other)
            repository.decide()
        assert _decided(repository.store) == ["accepted"]
        assert _decided(other) == ["accepted"]

    def test_a_word_that_comes_back_is_told_again(self, repository: Repository) -> None:
        """C47: accepted, rejected and accepted are three decisions."""
        repository.with_policy(
            policy(command_item(argv=json.dumps(["test", "-e", str(repository.base / "good")])))
        )
        for good in (True, False, True):
            (repository.base / "good").touch() if good else (repository.base / "good").unlink()
            repository.run()
        assert _decided(repository.store) == ["accepted", "rejected", "accepted"]


def _decided(store: Path) -> list[str]:
    (rows,) = (store / "closeout" / "journal").glob("*.jsonl")
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    return [row["body"]["decision"] for row in found if row["type"] == "decision_recorded"]
