"""The evaluator: statements O1 to O29, and what holds over all claims."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.outcome.claim import read_claim
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.evaluate import Outcome, evaluate
from skill_effectiveness.acceptance.outcome.project import project
from skill_effectiveness.acceptance.outcome.words import Result
from tests.support.outcomes import CLAIM, COMMIT, claim


def graded(**changes: object) -> Outcome:
    return evaluate(read_claim(json.dumps(claim(**changes)).encode()))


def said(**changes: object) -> tuple[str, list[str]]:
    outcome = graded(**changes)
    assert (outcome.accepted is not None) is (outcome.result is Result.ACCEPTED)
    return outcome.result.value, [reason.text for reason in outcome.reasons]


ACCEPTED: tuple[str, list[str]] = ("accepted", [])


class TestComplete:
    def test_it_is_accepted(self) -> None:
        """O1: no reasons, the receipt of each criterion, and a projection that hides the private one."""
        outcome = graded()
        assert said() == ACCEPTED
        assert outcome.accepted is not None
        assert outcome.accepted.to_json() == {
            "issue_number": 7,
            "repository": "acme/app",
            "revision": COMMIT,
            "verifier": "ci",
            "falsifier": "ci reports failed",
            "criteria": [
                {"criterion": "public thing", "receipt": "receipt-1", "visibility": "public"},
                {"criterion": "private thing", "receipt": "receipt-2", "visibility": "private"},
            ],
        }
        assert project(outcome) == {
            "state": "accepted",
            "criteria": [
                {"criterion": "public thing", "evidence": "receipt-1"},
                {"criterion": "private thing", "evidence": "private"},
            ],
        }

    def test_separation_may_be_waived(self) -> None:
        """O11: a dependent verifier where separation is not required."""
        waived = {"verification__separation_required": False}
        assert said(verification__verifier__independent_of_producer=False, **waived) == ACCEPTED

    def test_unknown_visibility(self) -> None:
        """O26: accepted, and shown as private."""
        evidence = [each | {"visibility": None} for each in CLAIM["evidence"]]
        outcome = graded(evidence=evidence)
        assert outcome.result is Result.ACCEPTED
        shown: Any = project(outcome)["criteria"]
        assert [each["evidence"] for each in shown] == ["private", "private"]

    @pytest.mark.parametrize("word", ["Public", "public ", True, ["public"]])
    def test_any_other_visibility(self, word: object) -> None:
        """O26: only exactly that word."""
        evidence = [each | {"visibility": word} for each in CLAIM["evidence"]]
        shown: Any = project(graded(evidence=evidence))["criteria"]
        assert {each["evidence"] for each in shown} == {"private"}

    def test_one_text_of_criteria(self) -> None:
        """O27: one criterion."""
        evidence = [{"criterion": "all", "receipt": "r", "visibility": "public"}]
        outcome = graded(issue__sections__acceptance_criteria="all", evidence=evidence)
        assert outcome.accepted is not None
        assert [each.criterion for each in outcome.accepted.criteria] == ["all"]

    def test_the_first_present_receipt_is_reported(self) -> None:
        """O28: a blank one before it does not count."""
        blank = {"criterion": "public thing", "receipt": " ", "visibility": "public"}
        third = {"criterion": "public thing", "receipt": "receipt-3", "visibility": "public"}
        outcome = graded(evidence=[blank, *CLAIM["evidence"], third])
        assert outcome.accepted is not None
        assert [each.receipt for each in outcome.accepted.criteria] == ["receipt-1", "receipt-2"]


class TestNotApplicable:
    def test_human(self) -> None:
        """O12: nothing else is looked at."""
        assert said(actor="human", evidence=[]) == ("not_applicable", ["human_only_work"])

    @pytest.mark.parametrize("flag", [False, None, 1, "true"])
    def test_agents_not_enabled(self, flag: object) -> None:
        """O13: only a plain true enables."""
        assert said(agents_enabled=flag) == ("not_applicable", ["agents_disabled_repository"])

    def test_both(self) -> None:
        """O14: the person's alone."""
        assert said(actor="human", agents_enabled=False) == ("not_applicable", ["human_only_work"])


class TestIncomplete:
    @pytest.mark.parametrize("name", ["problem", "scope", "success_metrics"])
    @pytest.mark.parametrize("value", ["", "  ", None, []])
    def test_an_empty_section(self, name: str, value: object) -> None:
        """O4: by its name."""
        assert said(**{f"issue__sections__{name}": value}) == (
            "incomplete",
            [f"missing_issue_section:{name}"],
        )

    @pytest.mark.parametrize("value", ["", [], None, ["public thing", ""], ["public thing", 5], 5])
    def test_no_criteria(self, value: object) -> None:
        """O4 O73: a blank or foreign entry leaves no criteria at all."""
        expected = ("incomplete", ["missing_issue_section:acceptance_criteria"])
        assert said(issue__sections__acceptance_criteria=value) == expected

    @pytest.mark.parametrize("name", ["authority", "budget", "revision"])
    def test_a_missing_field(self, name: str) -> None:
        """O5: by its name."""
        assert said(**{f"attempt__{name}": None}) == ("incomplete", [f"missing_attempt_field:{name}"])

    def test_an_empty_budget(self) -> None:
        """O23: an object without members is none."""
        assert said(attempt__budget={}) == ("incomplete", ["missing_attempt_field:budget"])

    def test_a_falsifier_of_blanks(self) -> None:
        """O6: none."""
        assert said(verification__falsifier=" \t") == ("incomplete", ["missing_falsifier"])

    @pytest.mark.parametrize(
        "verifier", [{}, {"admitted": True, "independent_of_producer": True}, "ci", None]
    )
    def test_a_verifier_without_a_name(self, verifier: object) -> None:
        """O66: flags alone verify nothing."""
        assert said(verification__verifier=verifier) == ("incomplete", ["missing_verifier"])

    @pytest.mark.parametrize("word", ["ok", "Passed", "passed ", True, None, ["passed"]])
    def test_another_terminal_result(self, word: object) -> None:
        """O21: neither of the two words."""
        assert said(verification__terminal_result=word) == ("incomplete", ["missing_terminal_result"])

    def test_a_criterion_without_evidence(self) -> None:
        """O7: by its text."""
        assert said(evidence=CLAIM["evidence"][1:]) == ("incomplete", ["unevidenced_criterion:public thing"])

    def test_a_receipt_of_blanks(self) -> None:
        """O24: is none."""
        evidence = [CLAIM["evidence"][0] | {"receipt": "  "}, CLAIM["evidence"][1]]
        assert said(evidence=evidence) == ("incomplete", ["unevidenced_criterion:public thing"])

    def test_another_case(self) -> None:
        """O25: exactly the criterion's text."""
        evidence = [CLAIM["evidence"][0] | {"criterion": "Public thing"}, CLAIM["evidence"][1]]
        assert said(evidence=evidence) == ("incomplete", ["unevidenced_criterion:public thing"])

    @pytest.mark.parametrize(
        "value",
        [
            {"actor": "agent", "agents_enabled": True},
            {
                "actor": "agent", "agents_enabled": True, "issue": {"sections": {}}, "attempt": {},
                "verification": {"verifier": {}}, "evidence": [],
            },
            {"actor": "agent", "agents_enabled": True, "issue": "", "attempt": 0, "verification": []},
        ],
    )  # fmt: skip
    def test_everything_empty(self, value: object) -> None:
        """O16: twelve reasons in their order."""
        outcome = evaluate(read_claim(json.dumps(value).encode()))
        assert outcome.result is Result.INCOMPLETE
        assert [reason.text for reason in outcome.reasons] == [
            "missing_issue_section:problem",
            "missing_issue_section:scope",
            "missing_issue_section:acceptance_criteria",
            "missing_issue_section:success_metrics",
            "missing_attempt_field:issue_number",
            "missing_attempt_field:repository",
            "missing_attempt_field:authority",
            "missing_attempt_field:budget",
            "missing_attempt_field:revision",
            "missing_verifier",
            "missing_falsifier",
            "missing_terminal_result",
        ]

    def test_it_hides_what_comes_after(self) -> None:
        """O17: incomplete and unauthorized at once."""
        both = {"attempt__issue_number": 8, "attempt__revision": ""}
        assert said(**both) == ("incomplete", ["missing_attempt_field:revision"])


class TestUnauthorized:
    @pytest.mark.parametrize("number", [8, "7", True, 7.5])
    def test_another_issue(self, number: object) -> None:
        """O8: the same number, as a number."""
        assert said(attempt__issue_number=number) == ("unauthorized", ["attempt_not_bound_to_issue"])

    def test_true_is_not_one(self) -> None:
        """O8: equal in the language, not in JSON."""
        changes = {"issue__number": 1, "attempt__issue_number": True}
        assert said(**changes) == ("unauthorized", ["attempt_not_bound_to_issue"])

    @pytest.mark.parametrize("repository", ["acme/App", "acme/app ", "other/app"])
    def test_another_repository(self, repository: str) -> None:
        """O15: exactly the same."""
        assert said(attempt__repository=repository) == ("unauthorized", ["attempt_not_bound_to_issue"])

    @pytest.mark.parametrize("flag", [False, None])
    def test_not_admitted(self, flag: object) -> None:
        """O9: admitted false."""
        assert said(verification__verifier__admitted=flag) == ("unauthorized", ["verifier_not_admitted"])

    @pytest.mark.parametrize("flag", ["true", "yes", 1, [True]])
    def test_truthy_is_not_true(self, flag: object) -> None:
        """O22: only a plain true admits, or is independent."""
        assert said(verification__verifier__admitted=flag) == ("unauthorized", ["verifier_not_admitted"])
        name = "verification__verifier__independent_of_producer"
        assert said(**{name: flag}) == ("unauthorized", ["verifier_not_independent"])

    @pytest.mark.parametrize("required", [True, None, "false", 0])
    def test_dependent(self, required: object) -> None:
        """O10: only a plain false waives separation."""
        changes = {
            "verification__separation_required": required,
            "verification__verifier__independent_of_producer": False,
        }
        assert said(**changes) == ("unauthorized", ["verifier_not_independent"])

    def test_all_three(self) -> None:
        """O19: in order."""
        changes = {
            "attempt__repository": "other/app",
            "verification__verifier__admitted": False,
            "verification__verifier__independent_of_producer": False,
        }
        expected = ["attempt_not_bound_to_issue", "verifier_not_admitted", "verifier_not_independent"]
        assert said(**changes) == ("unauthorized", expected)

    def test_it_hides_what_comes_after(self) -> None:
        """O18: unauthorized and failed at once."""
        changes = {"attempt__issue_number": 8, "verification__terminal_result": "failed"}
        assert said(**changes) == ("unauthorized", ["attempt_not_bound_to_issue"])


class TestFailed:
    def test_the_verifier_failed(self) -> None:
        """O2: terminal result failed."""
        assert said(verification__terminal_result="failed") == ("failed", ["verifier_failed"])

    @pytest.mark.parametrize(
        "name",
        [
            "false_green_fixture_assert",
            "false_green_api_mirror",
            "false_green_mocked_seam",
            "false_green_coverage_theater",
            "false_green_round_up",
        ],
    )
    def test_a_false_green(self, name: str) -> None:
        """O3: over a green verifier."""
        assert said(verification__false_green_classes=[name]) == ("failed", [f"false_green:{name}"])

    def test_both(self) -> None:
        """O20: the verifier first, then both names in the order given."""
        names = ["false_green_round_up", "false_green_api_mirror"]
        changes = {
            "verification__terminal_result": "failed",
            "verification__false_green_classes": names,
        }
        expected = ["verifier_failed", "false_green:false_green_round_up,false_green_api_mirror"]
        assert said(**changes) == ("failed", expected)

    @pytest.mark.parametrize(
        ("named", "told"),
        [
            (["false_gren_round_up"], "false_gren_round_up"),
            ("false_green_round_up", "false_green_round_up"),
            ([7], "7"),
            ([False], "false"),
            ({"a": 1}, '{"a":1}'),
        ],
    )
    def test_an_unknown_name(self, named: object, told: str) -> None:
        """O29: fails under that name, of whatever type."""
        assert said(verification__false_green_classes=named) == ("failed", [f"false_green:{told}"])

    @pytest.mark.parametrize("named", [None, [], "", [""], [None, " "]])
    def test_no_name(self, named: object) -> None:
        assert said(verification__false_green_classes=named) == ACCEPTED


PARTS = {
    "a scoped issue": [f"issue__sections__{name}" for name in CLAIM["issue"]["sections"]],
    "a bound attempt": [f"attempt__{name}" for name in CLAIM["attempt"]],
    "independent verification": [
        "verification__verifier",
        "verification__verifier__id",
        "verification__verifier__admitted",
        "verification__verifier__independent_of_producer",
    ],
    "a falsifier with a terminal result": ["verification__falsifier", "verification__terminal_result"],
    "inspectable evidence": ["evidence"],
}
NOTHING: st.SearchStrategy[Any] = st.sampled_from([None, "", "   ", [], {}])
SCALARS = st.none() | st.booleans() | st.integers(-5, 9) | st.sampled_from(["", "passed", "true", "agent"])
JUNK = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2), max_leaves=4)
EVERY_PATH = [path for paths in PARTS.values() for path in paths] + [
    "agents_enabled",
    "verification__separation_required",
    "verification__false_green_classes",
    "issue__number",
    "issue__repository",
]
ORDER = [Result.ACCEPTED, Result.FAILED, Result.UNAUTHORIZED, Result.INCOMPLETE]


@given(st.sampled_from(sorted(PARTS)), st.data())
def test_no_part_can_be_missing(part: str, data: st.DataObject) -> None:
    """O66: removing any one of the five parts, in any way, never leaves the claim accepted."""
    path = data.draw(st.sampled_from(PARTS[part]))
    assert graded(**{path: data.draw(NOTHING)}).result is not Result.ACCEPTED


@given(
    st.dictionaries(st.sampled_from(EVERY_PATH), JUNK, max_size=3),
    st.lists(st.text(min_size=1, max_size=8), max_size=2),
    st.text(min_size=1, max_size=8).filter(str.strip),
)
def test_a_false_green_never_helps(changes: dict[str, Any], named: list[str], more: str) -> None:
    """O65: adding a class leaves the result or makes it worse, and never accepted."""
    changes = {path: value for path, value in changes.items() if path != "verification__verifier__id"}
    if "verification__verifier" in changes:
        changes = {"verification__verifier": changes["verification__verifier"]}
    before = graded(**(changes | {"verification__false_green_classes": named}))
    after = graded(**(changes | {"verification__false_green_classes": [*named, more]}))
    assert after.result is not Result.ACCEPTED
    if before.result is Result.NOT_APPLICABLE:
        assert after == before
    else:
        assert ORDER.index(after.result) >= min(1, ORDER.index(before.result))
        assert ORDER.index(after.result) >= ORDER.index(before.result)


LEAK = st.text(alphabet="abcdef0123456789", min_size=12, max_size=12).map(lambda text: f"canary-{text}")


@given(st.dictionaries(st.sampled_from(EVERY_PATH), JUNK, max_size=2), st.data())
def test_projections_hold_no_secret(changes: dict[str, Any], data: st.DataObject) -> None:
    """O64: repository, verifier, falsifier, authority, budget, revision and private receipts stay inside."""
    names = ("repository", "id", "falsifier", "authority", "budget", "revision", "private", "problem")
    canary = {name: data.draw(LEAK) for name in names}
    public = data.draw(st.sampled_from(["open-receipt", " "]))
    value = claim(
        issue__repository=canary["repository"],
        attempt__repository=canary["repository"],
        attempt__authority=canary["authority"],
        attempt__budget={canary["budget"]: canary["budget"]},
        attempt__revision=canary["revision"],
        verification__verifier__id=canary["id"],
        verification__falsifier=canary["falsifier"],
        issue__sections__problem=canary["problem"],
        evidence=[
            {"criterion": "public thing", "receipt": public, "visibility": "public"},
            {"criterion": "private thing", "receipt": canary["private"], "visibility": data.draw(JUNK)},
        ],
    )
    for path, junk in changes.items():
        *above, last = path.split("__")
        place: Any = value
        for name in above:
            place = place[name] if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[last] = junk
    shown = json.dumps(project(evaluate(read_claim(json.dumps(value).encode()))))
    assert "canary-" not in shown


ANY = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "criterion", "x"]), inner)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from([*EVERY_PATH, "actor", "issue", "attempt", "verification"]), ANY, max_size=4
    )
)
def test_any_value_is_graded_or_refused(changes: dict[str, Any]) -> None:
    """O66 O72: nothing that JSON can say leads out of the evaluator by another way."""
    value = claim()
    for path, junk in changes.items():
        *above, last = path.split("__")
        place: Any = value
        for name in above:
            place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = junk
    if value["actor"] not in ["agent", "human"]:
        with pytest.raises(OutcomeError, match="claim_invalid"):
            read_claim(json.dumps(value).encode())
        return
    try:
        read = read_claim(json.dumps(value).encode())
    except OutcomeError:
        return  # a member that is not known
    outcome = evaluate(read)
    assert (outcome.accepted is not None) is (outcome.result is Result.ACCEPTED)
    assert bool(outcome.reasons) is (outcome.result is not Result.ACCEPTED)
    json.dumps(project(outcome))
