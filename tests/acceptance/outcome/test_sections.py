"""The four sections of an issue and the work they buy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.outcome.assembly import _sections
from skill_effectiveness.acceptance.outcome.bound import work_bound
from skill_effectiveness.acceptance.outcome.claim import is_present
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.acceptance.outcome.sections import Sections, read_sections
from tests.support.outcomes import BODY, CRITERION

FOUR = "# Problem\np\n# Scope\ns\n# Acceptance criteria\n{}\n# Success metrics\nm\n"


def criteria(text: str) -> tuple[str, ...]:
    return read_sections(FOUR.format(text)).acceptance_criteria


def test_a_usual_body() -> None:
    assert read_sections(BODY) == Sections(
        problem=("Expired tokens work.",),
        scope=("The login.",),
        acceptance_criteria=(CRITERION,),
        success_metrics=("No expired token passes.",),
    )


class TestHeadings:
    @pytest.mark.parametrize(
        "heading",
        [
            "# Problem", "###### problem", "   ## PROBLEM ##", "##\tProblem", "## *Problem*:",
            "## Problem ###  ",
        ],
    )  # fmt: skip
    def test_spellings(self, heading: str) -> None:
        """O70: up to three blanks, one to six marks, closing marks, any case, any punctuation."""
        assert read_sections(f"{heading}\ntext").problem == ("text",)

    @pytest.mark.parametrize(
        "heading",
        ["    # Problem", "####### Problem", "#Problem", "Problem\n=======", "\\# Problem", "> # Problem",
         "# The problem", "# Problems", "# Pro blem"],
    )  # fmt: skip
    def test_what_is_none(self, heading: str) -> None:
        """O70: another form, or another name."""
        assert read_sections(f"{heading}\ntext").problem == ()

    def test_the_first_of_two_counts(self) -> None:
        assert read_sections("# Problem\none\n# Problem\ntwo").problem == ("one",)
        assert read_sections("# Problem\n# Problem\ntwo").problem == ()

    @pytest.mark.parametrize("inner", ["### Detail", "# Detail", "###### x", "##", "#"])
    def test_any_level_ends_a_section(self, inner: str) -> None:
        """O75: a sub-heading too."""
        assert criteria(f"- one\n{inner}\n- two") == ("one",)

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_ends(self, end: str) -> None:
        assert read_sections(BODY.replace("\n", end)) == read_sections(BODY)

    def test_other_separators_are_text(self) -> None:
        assert read_sections("# Problem\na\u2028# Scope\x0bb").problem == ("a\u2028# Scope\x0bb",)


class TestEntries:
    @pytest.mark.parametrize(
        "line",
        ["- one", "* one", "+ one", "1. one", "12. one", "- [ ] one", "- [x] one", "* [X]  one",
         "  -   one  ", "one", "[ ] one"],
    )  # fmt: skip
    def test_markers_go(self, line: str) -> None:
        assert criteria(line) == ("one",)

    @pytest.mark.parametrize(
        ("line", "kept"),
        [("- - one", "- one"), ("- [ ] [ ] one", "[ ] one"), ("-one", "-one"), ("1) one", "1) one"),
         ("- [y] one", "[y] one"), ("*one*", "*one*")],
    )  # fmt: skip
    def test_one_of_each_at_most(self, line: str, kept: str) -> None:
        assert criteria(line) == (kept,)

    @pytest.mark.parametrize("text", ["", "   ", "\t\n\n", "-", "- [ ]", "*\n\n+   "])
    def test_nothing_left(self, text: str) -> None:
        """O70: the section is absent."""
        assert criteria(text) == ()
        assert not read_sections(FOUR.format(text)).scoped

    def test_a_wrapped_item_is_one(self) -> None:
        """O75: joined by one blank; after an empty line a new entry begins."""
        assert criteria("- one\n  goes on\nand on\n- two\n\nthree\nfour") == (
            "one goes on and on", "two", "three", "four",
        )  # fmt: skip

    def test_a_wrapped_line_is_none(self) -> None:
        assert criteria("one\ntwo") == ("one", "two")

    def test_many_lines_take_little_time(self) -> None:
        """O70: a body as long as the forge takes, in lines of one letter."""
        assert criteria("- x\n" + "y\n" * 30_000) == ("x" + " y" * 30_000,)


class TestComments:
    @pytest.mark.parametrize("comment", ["<!--\n{}\n-->", "<!-- x\n\n{}\n\ny -->", "<!--\n-- >\n{}\n   -->"])
    def test_hidden_criteria_take_no_place(self, comment: str) -> None:
        """O70 O75: whoever reads the issue does not see them; what they see counts."""
        body = comment.format("# Acceptance criteria\n- easy\n```") + "\n" + FOUR.format("- hard")
        assert read_sections(body) == read_sections(FOUR.format("- hard"))

    @pytest.mark.parametrize(
        "text",
        ["<!-- one a line -->", "<!--\none\n\na line\n-->", "  <!-- x -->", "     <!-- x -->", "- <!-- x -->",
         "- [ ] <!-- x --> <!---->", "<!-->", "<!--->", "<!-- never closed\n- one"],
    )  # fmt: skip
    def test_a_template_says_nothing(self, text: str) -> None:
        """O4 O70: as it came it is no scope; nor does a section follow that nobody sees."""
        assert criteria(text) == ()
        assert not read_sections(FOUR.format(text)).scoped

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("<!-- a --> one", ("one",)),
            ("<!-- a\nb --> one\n- two", ("one", "two")),
            ("<!--> one -->", ("one -->",)),
            ("- one\n<!-- a -->\n- two", ("one", "two")),
            ("- one <!-- a\n- two -->", ("one <!-- a", "two -->")),
            ("- `<!-- a -->`", ("`<!-- a -->`",)),
            ("- <!-- a --> one <!-- b -->", ("<!-- a --> one <!-- b -->",)),
            ("> <!--\n- two", ("> <!--", "two")),
            ("```\n<!--\n```\n- two", ("``` <!-- ```", "two")),
        ],
    )
    def test_what_people_see_stays(self, text: str, kept: tuple[str, ...]) -> None:
        """O7 O75: a criterion that somebody could see is never left out."""
        assert criteria(text) == kept

    @pytest.mark.parametrize(
        "begin", ["  <!--", "   <!-- x", "\t<!--", "     <!--", "- <!--", "1. <!--", "- one\n  <!--"]
    )
    def test_one_that_a_list_item_may_end(self, begin: str) -> None:
        """O75: what stands in it is content, and no heading in it begins a section, now or later."""
        found = read_sections(
            f"# Scope\n{begin}\n- two\n# Acceptance criteria\n- three\n-->\n{FOUR.format('- x')}"
        )
        assert found.acceptance_criteria == ()
        assert found.problem == ("p",)
        text = " ".join(found.scope)
        assert "two" in text
        assert "three" in text


class TestFences:
    @pytest.mark.parametrize("fence", ["```", "~~~", "````", "```python"])
    def test_no_heading_inside(self, fence: str) -> None:
        """O75: a `#` line in a fence is no heading, and a `-` line no item."""
        mark = fence.rstrip("python")
        text = f"- one\n{fence}\n# Scope\n- two\n{mark}\n- three"
        assert criteria(text) == (f"one {fence} # Scope - two {mark}", "three")

    def test_alone_it_is_one_entry(self) -> None:
        assert criteria("```\na\n\nb\n```") == ("``` a b ```",)

    def test_it_joins_the_entry_above(self) -> None:
        assert criteria("one\n\n```\na\n```\ntwo") == ("one ``` a ```", "two")

    def test_only_its_own_kind_ends_it(self) -> None:
        text = "- one\n````\n~~~\n```\n```` x\n# Scope\n`````"
        assert criteria(text) == ("one ```` ~~~ ``` ```` x # Scope `````",)

    def test_without_an_end_nothing_follows(self) -> None:
        """O75: so the issue is not scoped, which is the safe side."""
        found = read_sections("# Problem\n```\n# Scope\ns")
        assert found == Sections(problem=("``` # Scope s",))

    def test_behind_a_marker(self) -> None:
        assert criteria("- ```\n  # Scope\n  ```\n- two") == ("``` # Scope ```", "two")

    def test_backticks_in_a_line_are_no_fence(self) -> None:
        assert criteria("```a``` b\n- two") == ("```a``` b", "two")


class TestBound:
    def test_scoped(self) -> None:
        """O70: an hour; fifteen minutes for any other."""
        bound = work_bound("acme/app", 7, BODY)
        assert (bound.milliseconds, bound.scoped, bound.missing) == (3_600_000, True, ())
        assert bound.branch == "agent/issue-7"
        other = work_bound("acme/app", 7, "# Problem\nx")
        assert (other.milliseconds, other.scoped) == (900_000, False)
        assert other.missing == ("scope", "acceptance_criteria", "success_metrics")

    @pytest.mark.parametrize(
        ("body", "asked", "granted"),
        [(BODY, 1, 1), (BODY, 3_600_001, 3_600_000), ("", 900_000, 900_000), ("", 3_600_000, 900_000)],
    )
    def test_narrowed_never_widened(self, body: str, asked: int, granted: int) -> None:
        assert work_bound("acme/app", 7, body, asked).milliseconds == granted

    def test_no_time_at_all(self) -> None:
        with pytest.raises(OutcomeError, match="record_invalid"):
            work_bound("acme/app", 7, BODY, 0)

    def test_the_objective_is_cut_between_characters(self) -> None:
        body = "ä" * 4_000
        objective = work_bound("acme/app", 7, body).objective
        assert objective.count("ä") == 3_000
        assert objective.endswith("[the issue goes on]")
        assert work_bound("acme/app", 7, "ä" * 3_000).objective.endswith("ä")


PIECES = st.lists(
    st.sampled_from(
        ["# Problem", "## Scope", "# Acceptance Criteria", "# Success metrics", "# Other", "- [ ] a", "b", "",
         "```", "~~~", "   text", "* ", "#", "\t- c", "####### Scope", "    # Scope"]
    ),
    max_size=14,
)  # fmt: skip


@given(PIECES.map("\n".join) | st.text(max_size=60))
def test_parser_and_bound_agree(body: str) -> None:
    """O70: scoped if and only if all four sections are present, as the claim sees them."""
    bound, claimed = work_bound("acme/app", 7, body), _sections(body)
    present = {name: is_present(value) for name, value in claimed.model_dump().items()}
    assert bound.scoped is all(present.values())
    assert bound.missing == tuple(name for name, there in present.items() if not there)
    assert read_sections(body) == read_sections(body)
    for entries in (read_sections(body).acceptance_criteria, read_sections(body).problem):
        assert all(entry == entry.strip() and entry for entry in entries)
