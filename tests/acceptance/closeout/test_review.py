"""`closeout review` with programs in the place of codex."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, UsageRefused
from skill_effectiveness.acceptance.closeout.records import RecordError
from skill_effectiveness.acceptance.closeout.review import Reviewed, ReviewOrder, failure_of, review
from skill_effectiveness.acceptance.closeout.review_prompt import ANSWER_SCHEMA, findings_of, render
from skill_effectiveness.acceptance.closeout.site import Request
from skill_effectiveness.execution import LimitName
from skill_effectiveness.providers import CallOutcome, Ending, ProviderErrorKind, ReadCall
from tests.support.closeout import SKILL, Repository, command_item, finding, policy, review_item
from tests.support.fake_program import write_fake
from tests.support.private import content
from tests.support.provider_calls import DONE, THREAD, TURN, message

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "01a22c67-4f17-7e10-9157-503a84adda3b"
AS_SOMEBODY = "-c user.name=n -c user.email=n@example.invalid"
FAILING = (
    "failed = {{'type': 'turn.failed', 'error': {{'message': '{}'}}}}\nsay(thread, turn, failed)\nsys.exit(1)"
)
ANSWERING = "prompt = sys.stdin.buffer.read().decode()\nsay(thread, turn, text, done)\n"
REROUTED = {
    "type": "item.completed",
    "item": {
        "id": "i",
        "type": "error",
        "message": "model rerouted: asked -> other-model (HighRiskCyberActivity)",
    },
}


@pytest.fixture
def reviewed(repository: Repository) -> Repository:
    """A repository with one review item and a change under review."""
    repository.write(".agents/skills/careful/references/criteria.md", "Every error is kept.\n")
    repository.with_policy(policy(review_item(), command_item()), skill=True)
    repository.commit(change="1")
    return repository


def program(repository: Repository, body: str, answer: object = None, **constants: object) -> Path:
    text = answer if isinstance(answer, str) else json.dumps({"findings": [] if answer is None else answer})
    return write_fake(
        repository.base / "codex",
        body,
        thread=THREAD,
        turn=TURN,
        done=DONE,
        text=message(text),
        base=str(repository.base),
        **constants,
    )


def ask(
    repository: Repository, path: Path, *, item: str = "careful", seconds: int = 20, model: str = "asked"
) -> Reviewed:
    order = ReviewOrder(item, "codex", model, seconds, path)
    return review(repository.site(), Request("HEAD~1", "HEAD"), order)


def refused(repository: Repository, path: Path, *, seconds: int = 20) -> str:
    with pytest.raises(CloseoutError) as caught:
        ask(repository, path, seconds=seconds)
    assert repository.records() == []
    assert list(repository.temporary.iterdir()) == []
    assert len(repository.git("worktree", "list").splitlines()) == 1
    return caught.value.code.value


class TestStored:
    def test_a_record_of_what_was_observed(self, reviewed: Repository) -> None:
        """C60: session from the stream; a model that is not told is empty, with a warning."""
        found = ask(reviewed, program(reviewed, ANSWERING, [finding("P2")]))
        (record,) = reviewed.records()
        assert record["producer"] == {"session": SESSION, "model": "", "provider": "codex"}
        assert record["findings"] == [finding("P2")]
        assert (record["itemId"], record["attempt"]) == ("careful", 1)
        assert record["base"] == reviewed.git("rev-parse", "HEAD~1")
        assert [each.code.value for each in found.warnings] == ["reviewer_identity_unobserved"]
        (artifact,) = record["artifacts"]
        raw = (reviewed.root / ".closeout" / artifact["path"]).read_text()
        assert raw == json.dumps({"findings": [finding("P2")]})
        assert list(reviewed.temporary.iterdir()) == []

    def test_another_model_than_the_one_asked_for(self, reviewed: Repository) -> None:
        """C60: the one that answered is recorded, with a warning."""
        body = "sys.stdin.buffer.read()\nsay(thread, turn, rerouted, text, done)"
        found = ask(reviewed, program(reviewed, body, rerouted=REROUTED))
        assert reviewed.records()[0]["producer"]["model"] == "other-model"
        assert [each.code.value for each in found.warnings] == ["reviewer_model_differs"]

    def test_the_next_attempt_and_the_decision(self, reviewed: Repository) -> None:
        """C60 C47: it counts up, decides nothing itself, and the evaluator takes it as any other record."""
        path = program(reviewed, ANSWERING, [finding("P0")])
        ask(reviewed, path)
        ask(reviewed, path)
        assert [record["attempt"] for record in reviewed.records()] == [1, 2]
        document = reviewed.decide("HEAD~1", "HEAD")
        assert (document.items[0].state, document.items[0].attempt) == ("failed", 2)

    def test_what_the_reviewer_is_shown(self, reviewed: Repository) -> None:
        """C60: a copy of the hashed skill, the range, the schema; neither what fails nor by whom."""
        body = (
            "prompt = sys.stdin.buffer.read().decode()\n"
            "skill = [word for word in prompt.split() if word.endswith('SKILL.md')][0]\n"
            "names = sorted(os.listdir(os.path.dirname(skill)))\n"
            "seen = {'prompt': prompt, 'argv': sys.argv[1:], 'cwd': os.listdir('.'), 'names': names,\n"
            "        'skill': open(skill).read(), 'mode': oct(os.stat(skill).st_mode)[-3:],\n"
            "        'schema': json.load(open(sys.argv[sys.argv.index('--output-schema') + 1]))}\n"
            "json.dump(seen, open(base + '/seen', 'w'))\n"
            "say(thread, turn, text, done)\n"
        )
        path = program(reviewed, body)
        # The working tree changes after the commit that is reviewed: the copy is of what was hashed.
        ask(reviewed, path)
        seen = json.loads((reviewed.base / "seen").read_text())
        base, head = reviewed.git("rev-parse", "HEAD~1"), reviewed.git("rev-parse", "HEAD")
        assert f"git diff {base}..{head}" in seen["prompt"]
        assert seen["skill"] == "Look carefully.\n"
        assert seen["names"] == ["SKILL.md", "references"]
        assert seen["mode"] == "600"
        assert "change" in seen["cwd"]
        assert seen["schema"] == ANSWER_SCHEMA
        assert seen["argv"][seen["argv"].index("--sandbox") + 1] == "read-only"
        assert not any(word in seen["prompt"] for word in ("failOn", "candidate-session", "candidate-model"))

    def test_the_journal_knows_before_and_after(self, reviewed: Repository) -> None:
        """C60: what costs something is written down first."""
        ask(reviewed, program(reviewed, ANSWERING))
        (rows,) = (reviewed.store / "closeout" / "journal").glob("*.jsonl")
        kinds = [json.loads(line)["type"] for line in rows.read_bytes().splitlines()]
        assert kinds == ["journal_open", "review_started", "review_recorded"]


class TestRefused:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ("sys.exit(1)", "review_failed"),
            ("sys.stdin.buffer.read()\nsay(thread, turn, text)", "review_failed"),
            ("sys.stdin.buffer.read()", "review_answer_invalid"),
            (
                FAILING.format("Quota exceeded. Check"),
                "review_provider_unavailable",
            ),
            (
                FAILING.format("stream disconnected before completion"),
                "review_failed",
            ),
            ("open('new', 'w')\n" + ANSWERING, "review_worktree_changed"),
            (
                f"os.system('git {AS_SOMEBODY} commit -q --allow-empty -m x')\n" + ANSWERING,
                "review_worktree_changed",
            ),
        ],
    )
    def test_no_record_and_one_code(self, reviewed: Repository, body: str, code: str) -> None:
        """C61: how it ended, in one word."""
        assert refused(reviewed, program(reviewed, body)) == code

    def test_an_answer_that_is_not_the_array(self, reviewed: Repository) -> None:
        """C61: it is no empty review."""
        assert refused(reviewed, program(reviewed, ANSWERING, "Looks good.")) == "review_answer_invalid"

    def test_a_session_that_takes_too_long(self, reviewed: Repository) -> None:
        """C61: nothing of it is left."""
        assert refused(reviewed, program(reviewed, "time.sleep(60)"), seconds=1) == "review_timed_out"

    def test_a_program_that_is_not_there(self, reviewed: Repository) -> None:
        """C61: found neither by its path nor on PATH; no such adapter."""
        assert refused(reviewed, reviewed.base / "nothing") == "review_provider_unavailable"
        for provider in ("codex", "kimi"):
            with pytest.raises(CloseoutError) as caught:
                review(reviewed.site(), Request("HEAD~1", "HEAD"), ReviewOrder("careful", provider, "m"))
            assert caught.value.code is CloseoutCode.REVIEW_PROVIDER_UNAVAILABLE
        assert not (reviewed.root / ".closeout").exists()

    @pytest.mark.parametrize("item", ["check", "nothing", "q/careful", ""])
    def test_an_item_that_is_no_review(self, reviewed: Repository, item: str) -> None:
        """C61: an invalid invocation; nobody is asked."""
        with pytest.raises(UsageRefused, match=f"^no review requirement {item} at beforePR$"):
            ask(reviewed, reviewed.base / "nothing", item=item)

    def test_a_model_id_of_another_form(self, reviewed: Repository) -> None:
        """C61: refused before the call."""
        with pytest.raises(UsageRefused, match="model id"):
            ask(reviewed, program(reviewed, ANSWERING), model="two words")
        assert content(reviewed.evidence) == {}

    def test_broken_evidence_is_found_before_anything_is_spent(self, reviewed: Repository) -> None:
        """C61: what cannot be read could not be stored either."""
        reviewed.put_record("x.txt", b"")
        path = program(reviewed, "open(base + '/asked', 'w')\n" + ANSWERING)
        with pytest.raises(CloseoutError, match=r"evidence file x\.txt is invalid"):
            ask(reviewed, path)
        assert not (reviewed.base / "asked").exists()


class TestJudgements:
    @pytest.mark.parametrize(
        ("outcome", "code"),
        [
            (CallOutcome(Ending.SUCCESS, answer="x"), None),
            (CallOutcome(Ending.NO_ANSWER), "review_answer_invalid"),
            (CallOutcome(Ending.ANSWER_INVALID), "review_answer_invalid"),
            (CallOutcome(Ending.REFUSED), "review_answer_invalid"),
            (CallOutcome(Ending.STREAM_INVALID), "review_failed"),
            (CallOutcome(Ending.LIMIT, limit=LimitName.LINE_BYTES), "review_failed"),
            (CallOutcome(Ending.TIMEOUT), "review_timed_out"),
            (CallOutcome(Ending.UNSTARTABLE), "review_provider_unavailable"),
            *(
                (
                    CallOutcome(Ending.PROVIDER_ERROR, error_kind=kind),
                    "review_failed"
                    if kind in {"server_error", "connection_lost"}
                    else "review_provider_unavailable",
                )
                for kind in ProviderErrorKind
            ),
        ],
    )
    def test_which_ending_gives_which_code(self, outcome: CallOutcome, code: str | None) -> None:
        """C61: the column of providers.md, section 1."""
        assert failure_of(outcome) == code

    def test_an_answer_is_the_object_or_its_array(self) -> None:
        """C61: and may stand in a fence only where the provider's contract says so."""
        text = json.dumps([finding()])
        assert len(findings_of(text, json_fence=False)) == 1
        assert len(findings_of(f'{{"findings": {text}}}', json_fence=False)) == 1
        assert len(findings_of(f'```json\n{{"findings": {text}}}\n```', json_fence=True)) == 1

    @pytest.mark.parametrize(
        "answer",
        [
            "",
            "1",
            "Looks good.",
            "{}",
            '{"findings": {}}',
            '{"findings": [], "outcome": "pass"}',
            '```json\n{"findings": []}\n```',
            '{"findings": [{"severity": "P9"}]}',
            '{"findings": []} done',
            '{"findings": [], "findings": []}',
            "[1]",
            "[] []",
            '{"findings": ' + json.dumps([finding()] * 201) + "}",
        ],
    )
    def test_anything_else_is_no_answer(self, answer: str) -> None:
        """C61: nothing is searched for in it and nothing repaired."""
        with pytest.raises(RecordError):
            findings_of(answer, json_fence=False)

    def test_the_prompt_is_small_and_never_a_format_string_of_others(self, tmp_path: Path) -> None:
        """C60: paths are data."""
        text = render(tmp_path / "{0.__class__}" / "SKILL.md", "b" * 40, "a" * 40)
        assert "{0.__class__}" in text
        assert len(text.encode()) < 4096
        assert ReadCall(text, tmp_path, "m", 1, ANSWER_SCHEMA).schema_bytes()


def test_the_skill_of_the_policy_is_not_the_one_in_the_candidate(reviewed: Repository) -> None:
    """C58 C60: criteria are copied from the bytes of the digest, not from the worktree under review."""
    reviewed.write(SKILL, "Look twice.\n")
    body = (
        "prompt = sys.stdin.buffer.read().decode()\n"
        "skill = [word for word in prompt.split() if word.endswith('SKILL.md')][0]\n"
        "open(base + '/seen', 'w').write(open(skill).read())\n"
        "say(thread, turn, text, done)\n"
    )
    ask(reviewed, program(reviewed, body))
    assert (reviewed.base / "seen").read_text() == "Look twice.\n"
