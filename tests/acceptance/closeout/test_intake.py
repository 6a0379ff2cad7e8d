"""`evidence add`: facts in, nothing decided."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, UsageRefused
from skill_effectiveness.acceptance.closeout.intake import Intake, add_evidence, findings_array
from skill_effectiveness.acceptance.closeout.site import Request
from tests.support.closeout import CANDIDATE, Repository, command_item, finding, policy, review_item

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.records import ReviewRecord


@pytest.fixture
def reviewed(repository: Repository) -> Repository:
    repository.with_policy(policy(review_item(), command_item()), skill=True)
    return repository


def add(
    repository: Repository, findings: list[Any], *, item: str = "careful", base: str = "HEAD"
) -> ReviewRecord:
    intake = Intake(item, "reviewer-session", "reviewer-model", "p", findings)
    return add_evidence(repository.site(), Request(base, "HEAD"), intake)


def test_attempts_count_up_and_stay(reviewed: Repository) -> None:
    """C47: 1, 2, 3; each record stays byte for byte."""
    kept: dict[str, bytes] = {}
    for number in (1, 2, 3):
        assert add(reviewed, [dict(finding("P3"))]).attempt == number
        found = {path.name: path.read_bytes() for path in reviewed.evidence.rglob("*.json")}
        assert kept.items() <= found.items()
        kept = found
    assert sorted(kept) == ["1.json", "2.json", "3.json"]


def test_it_decides_nothing_and_the_evaluator_judges(reviewed: Repository) -> None:
    """C30 C33: the same findings, judged anew each time."""
    add(reviewed, [dict(finding("P0"))])
    assert not (reviewed.root / ".closeout" / "decisions").exists()
    assert reviewed.decide().items[0].state == "failed"
    add(reviewed, [])
    assert reviewed.decide(candidate=CANDIDATE).items[0].state == "passed"


@pytest.mark.parametrize("item", ["check", "nothing", "q/careful"])
def test_only_review_requirements_take_findings(reviewed: Repository, item: str) -> None:
    """C45: an invalid invocation; no directory is made."""
    with pytest.raises(UsageRefused, match=rf"^no review requirement {item} at beforePR$"):
        add(reviewed, [], item=item)
    assert not (reviewed.root / ".closeout").exists()


def test_findings_that_break_the_schema_use_no_attempt(reviewed: Repository) -> None:
    """C47: the next good ones are the first."""
    with pytest.raises(CloseoutError) as caught:
        add(reviewed, [finding() | {"outcome": "pass"}])
    assert caught.value.code is CloseoutCode.FINDINGS_INVALID
    assert caught.value.message == "findings are invalid: /0/outcome is not a member of a finding"
    assert add(reviewed, []).attempt == 1


def test_what_blocks_a_decision_blocks_intake(reviewed: Repository) -> None:
    """C45: commits, evidence, policy."""
    with pytest.raises(CloseoutError, match="does not resolve"):
        add(reviewed, [], base="nope")
    reviewed.put_record("x.txt", b"")
    with pytest.raises(CloseoutError, match=r"evidence file x\.txt is invalid"):
        add(reviewed, [])


@pytest.mark.parametrize("data", [b"", b"[", b"\xff", b"[] []", b'[{"a":1,"a":2}]', b"[NaN]", b"[-0]"])
def test_a_file_that_is_not_json(data: bytes) -> None:
    """C45: refused as usage."""
    with pytest.raises(UsageRefused, match=r"^findings file is not JSON$"):
        findings_array(data)


@pytest.mark.parametrize("data", [b"{}", b"null", b'"[]"', b"1"])
def test_a_file_that_is_not_an_array(data: bytes) -> None:
    """C45: refused as usage."""
    with pytest.raises(UsageRefused, match=r"^findings file must be a JSON array$"):
        findings_array(data)


def test_an_array_is_read() -> None:
    assert findings_array(json.dumps([finding()]).encode()) == [finding()]


@pytest.mark.parametrize("name", ["session", "model", "provider"])
def test_an_identity_that_is_too_long(reviewed: Repository, name: str) -> None:
    """C45: refused as usage, before anything is looked up."""
    members = {"session": "s", "model": "m", "provider": "p"} | {name: "x" * 257}
    with pytest.raises(UsageRefused, match=f"^--{name} is longer than 256 characters$"):
        add_evidence(reviewed.site(), Request("HEAD", "HEAD"), Intake("careful", findings=[], **members))
