"""`report.html` as bytes: what it says, and what an agent's text can do in it."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.studies.report import LONGEST_TEXT, PairTexts, shown
from skill_effectiveness.studies.sentences import COUNTS_PAIRS, COUNTS_SHOWINGS, MEASURES
from skill_effectiveness.studies.tables import Tables
from skill_effectiveness.studies.words import Outcome
from tests.support.study_results import (
    ADVISORY,
    HOSTILE,
    UNEVALUATED,
    Study,
    full_study,
    results_of,
    study,
    study_plan,
    unsealed,
)
from tests.support.study_tables import from_thirds

EIGHT = from_thirds((1, 0, 2, 1, -1, 3, 1, 1))
FULL = full_study()
PAGE = FULL.page().decode()


class Reader(HTMLParser):
    """Elements, their attributes, and the text by element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "input"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self) -> str:
        return " ".join("".join(data for tag, data in self.texts if tag not in {"style", "script"}).split())


READER = Reader(PAGE)
TEXT = READER.text()


class TestSays:
    def test_the_sentence_comes_first(self) -> None:
        """S55: estimate, interval, p and word in one sentence, before anything that qualifies it."""
        sentence = (
            "With the treatment the mean reward differs by +0.44 over 12 tasks, 95 % interval +0.17 to "
            "+0.67, p = 0.010: improves."
        )
        assert TEXT.index(sentence) < TEXT.index("What limits this") < TEXT.index("Comparisons")

    def test_what_limits_it(self) -> None:
        """S40 S50 S51: tier, limitations verbatim, bounds and tipping point."""
        assert "verdict tier advisory-paired" in TEXT
        assert (
            "Coverage limitations complete_access_audit Not every file that the agent opened was recorded."
            " mount_evidence What" in TEXT
        )
        assert [data for tag, data in READER.texts if tag == "code"][:3] == [
            "advisory-paired", "complete_access_audit", "mount_evidence",
        ]  # fmt: skip
        assert (
            "2 trials have no value. Whatever the missing values are, the effect lies within +0.42 to +0.47"
            in TEXT
        )
        assert "no filling of the missing values changes the word" in TEXT

    def test_provenance(self) -> None:
        for said in (
            FULL.plan.plan_digest,
            FULL.results.results_digest,
            FULL.results.seed,
            "ed25519:abab",
            FULL.results.tables["pairs.parquet"],
            "Prices rose.",
            "/budgets/study/cost_units",
            "slots_abandoned",
        ):
            assert said in TEXT
        assert "the plan is not sealed" in Reader(unsealed(FULL).page().decode()).text()

    def test_every_comparison_reviewer_and_pair(self) -> None:
        assert [
            attrs["data-preference"] for tag, attrs in READER.elements if attrs.get("class") == "pair"
        ] == [row.preference for row in sorted(FULL.tables.pairs, key=lambda row: (row.task_id, row.sample))]
        assert all(said in TEXT for said in ("full-reference", "reference-off", "Krippendorff", "First seat"))

    def test_a_synthetic_study_says_so_before_its_result(self) -> None:
        """S40: and says no tier."""
        text = Reader(full_study(synthetic=True).page().decode()).text()
        assert text.index("Synthetic. Agent and reviewers were simulated") < text.index("Result")
        assert "synthetic_not_a_tier" in text
        assert "advisory-paired" not in text

    @pytest.mark.parametrize("held", [FULL, full_study(synthetic=True)], ids=["real", "synthetic"])
    def test_no_content_effect_while_the_control_is_pending(self, held: Study) -> None:
        """A16: the unanswerable phrase stands where such an effect would, whatever came out."""
        text = Reader(held.page().decode()).text()
        assert "Content effect ccl_specific_content_unanswerable: whether the content of the skills" in text
        assert "(owner_bundle_only)" in text

    def test_no_reviewers_at_all(self) -> None:
        """S40: none was simulated, and nothing is said of a preference."""
        held = study(EIGHT, synthetic=True)
        results = held.results.model_copy(
            update={
                "secondary": (
                    *held.results.secondary,
                    *(one for one in FULL.results.secondary if one.outcome is Outcome.PREFERENCE),
                )
            }
        )
        text = Reader(replace(held, results=results).page().decode()).text()
        assert "Synthetic. The agent was simulated." in text
        assert MEASURES[Outcome.PREFERENCE] not in text
        assert COUNTS_PAIRS not in text

    def test_both_counts_of_a_preference_are_told_apart(self) -> None:
        assert TEXT.index("Comparisons") < TEXT.index(COUNTS_PAIRS) < TEXT.index("Success of each arm")
        assert TEXT.index("Corrected for known errors") < TEXT.index(COUNTS_SHOWINGS)

    def test_an_effect_that_may_be_too_small(self) -> None:
        """Beside the word, where the interval reaches into the least effect."""
        values = from_thirds((3, 1, 2, 0, 1, -1, 2, 1, 1, 2))
        reaching = Reader(study(values, minimum_effect=0.2).page().decode()).text()
        said = "improves The interval reaches into the ±0.2 declared too small to matter"
        assert said in reaching
        assert "The interval reaches into" not in Reader(study(values).page().decode()).text()

    def test_exposure_that_nothing_could_tell(self) -> None:
        """F40: no bar of length 0 for what was not looked at."""
        held = study(EIGHT)
        blind = Tables(tuple(row._replace(exposed="unverified") for row in held.tables.trials))
        results = results_of(held.plan, blind, UNEVALUATED)
        text = Reader(replace(held, tables=blind, results=results).page().decode()).text()
        assert text.count("exposed not observed") == 2
        assert "not observed" not in TEXT

    def test_anytime_shows_the_evidence(self) -> None:
        """S49: every look, in the order of allocation."""
        held = full_study(anytime=True)
        text = Reader(held.page().decode()).text()
        assert "Evidence after each task" in text
        assert held.results.anytime is not None
        assert len(held.results.anytime) == 12
        assert "Evidence after each task" not in TEXT

    def test_nothing_known(self) -> None:
        """F52: a study without a value is a page too, with unknown and no zero."""
        page = study({f"t{k}": {"off": [1.0], "full": [None]} for k in range(3)}).page().decode()
        text = Reader(page).text()
        assert "No effect on the mean reward can be estimated: underpowered." in text
        assert "No task has a value in both arms." in text
        assert "+0.00" not in text

    def test_no_row_at_all(self) -> None:
        """F51 S65: given up before anything ran: a page, a word, no division by nothing."""
        plan = study_plan(EIGHT)
        made = Study(plan, Tables(()), results_of(plan, Tables(()), UNEVALUATED), {})
        text = Reader(made.page().decode()).text()
        assert "No effect on the mean reward can be estimated: underpowered." in text
        assert "24 closed unstarted" in text

    def test_no_reviewer(self) -> None:
        text = Reader(study(EIGHT).page().decode()).text()
        assert "not evaluated, because no reviewer was planned" in text
        assert "No pairs were made." in text

    def test_preference_as_outcome(self) -> None:
        """The wording fits an outcome that is no difference of means."""
        held = full_study()
        values = {
            row.task_id: {"off": [1.0] * 3, "full": [1.0] * 3, "reference": [1.0] * 3}
            for row in held.tables.trials
        }
        plan = study_plan(values, primary="preference")  # type: ignore[arg-type]
        made = replace(held, plan=plan, results=results_of(plan, held.tables, ADVISORY))
        assert (
            "The net preference of the reviewers for the treatment is +0."
            in Reader(made.page().decode()).text()
        )

    def test_results_of_another_plan(self) -> None:
        with pytest.raises(ValueError, match="its own plan"):
            replace(FULL, plan=study_plan(EIGHT)).page()


class TestBytes:
    def test_same_inputs_same_bytes(self) -> None:
        """S57: twice from scratch."""
        assert full_study().page() == FULL.page()

    def test_one_file_that_loads_nothing(self) -> None:
        """S55: no address is fetched by any element, and the policy allows none."""
        for tag, attrs in READER.elements:
            assert tag not in {
                "link",
                "img",
                "iframe",
                "object",
                "embed",
                "base",
                "audio",
                "video",
                "use",
                "image",
            }
            assert (
                not {"src", "srcset", "xlink:href", "action", "formaction", "background", "style"}
                & attrs.keys()
            )
            assert not any(name.startswith("on") for name in attrs)
            assert attrs.get("href", "#").startswith("#")  # type: ignore[union-attr]
        assert "@import" not in PAGE
        assert "url(" not in PAGE
        policy = next(attrs["content"] for tag, attrs in READER.elements if "http-equiv" in attrs)
        assert policy is not None
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy

    def test_exactly_one_script_and_one_style(self) -> None:
        """S56: both our own."""
        assert [tag for tag, _ in READER.elements if tag in {"script", "style"}] == ["style", "script"]

    def test_the_policy_names_what_is_there(self) -> None:
        """S55: digests of the very bytes between the tags."""
        for tag in ("style", "script"):
            found = re.search(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
            assert found is not None
            digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
            assert f"'sha256-{digest}'" in html.unescape(PAGE)


class TestHostileText:
    def test_it_stays_text(self) -> None:
        """S56 F21: tags, entities, CDATA ends and template marks arrive as written, in one element."""
        written = next(data for tag, data in READER.texts if tag == "pre" and "gnihton" in data)
        assert "</pre></details><script>document.title='owned'</script><img" in written
        assert "]]> <![CDATA[ {{ 7*7 }} {% raw %}" in written
        assert "' &lt;b&gt; ⟨U+D800⟩" in written

    def test_what_does_not_print_is_written_out(self) -> None:
        """S56 F21: escape, bidi, line separators, zero width, BOM, NUL and bell."""
        for raw in "\x1b\u202e\u202c\u2028\u2029\u200b\ufeff\x00\x07":
            assert raw not in PAGE
        for named in ("001B", "202E", "202C", "2028", "2029", "200B", "FEFF", "0000", "0007"):
            assert f"⟨U+{named}⟩" in PAGE

    def test_it_is_in_no_table(self) -> None:
        """S56: neither of the page nor of the study."""
        for tag, data in READER.texts:
            if tag in {"td", "th", "caption", "dd"}:
                assert "owned" not in data
        assert b"owned" not in b"".join(FULL.tables.csv(name) for name in ("trials", "pairs", "judgements"))

    def test_long_text_is_cut_and_counted(self) -> None:
        held = replace(FULL, texts={"pair-1": PairTexts("x" * (LONGEST_TEXT + 1234), None)})
        page = held.page().decode()
        assert "1,234 more characters are not shown" in page
        assert "x" * (LONGEST_TEXT + 1) not in page

    @settings(max_examples=40, deadline=None)
    @given(
        st.text(st.characters(), max_size=60)
        | st.sampled_from([HOSTILE, "<!--", "--!>", "</script>", "&#x3c;"])
    )
    def test_any_text(self, text: str) -> None:
        """S56: the page has the same elements whatever was written."""
        held = replace(SMALL, texts={"pair-1": PairTexts(text, text[::-1])})
        there = Reader(held.page().decode())
        assert [tag for tag, _ in there.elements] == PLAIN_ELEMENTS
        written = [data for tag, data in there.texts if tag == "pre"]
        assert "".join(written).count("⟨U+") >= sum(
            not char.isprintable() and char not in "\n\t" for char in text
        )

    @given(st.text(st.characters()))
    def test_shown(self, text: str) -> None:
        """F21: nothing but line feeds and tabs is left that does not print."""
        assert all(char.isprintable() or char in "\n\t" for char in shown(text))
        assert shown("häuser 漢字 \N{GRINNING FACE}\n\t") == "häuser 漢字 \N{GRINNING FACE}\n\t"

    def test_a_hostile_question_and_task_ids(self) -> None:
        """S56: names are text as well."""
        held = study(EIGHT, question='<b>Is 1 < 2?</b> \u202e" onload="x')
        page = held.page().decode()
        assert "<b>" not in page
        assert "&lt;b&gt;Is 1 &lt; 2?&lt;/b&gt; ⟨U+202E⟩" in page


SMALL = replace(FULL, texts={"pair-1": PairTexts("x", "y")})
PLAIN_ELEMENTS = [tag for tag, _ in Reader(SMALL.page().decode()).elements]


class TestReadable:
    def test_structure(self) -> None:
        """S55: one main heading, a language, a title, labelled fields and figures, scoped headers."""
        tags = [tag for tag, _ in READER.elements]
        assert tags.count("h1") == 1
        assert ("html", {"lang": "en"}) in READER.elements
        for tag, attrs in READER.elements:
            if tag == "svg":
                assert attrs.get("aria-hidden") == "true" or attrs.get("aria-label")
            if tag == "th":
                assert attrs.get("scope") in {"col", "row"}
        assert tags.count("label") == len([tag for tag in tags if tag in {"select", "input"}])

    def test_contrast(self) -> None:
        """S55: text on its ground has at least 4.5 to 1 in both colour schemes (WCAG 2.2, 1.4.3)."""
        style = next(data for tag, data in READER.texts if tag == "style")
        light, dark = (
            dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
            for block in style.split("@media screen and (prefers-color-scheme: dark)")[:2]
        )
        dark = {name: value for name, value in dark.items() if name in light}
        pairs = [("ink", "ground"), ("ink", "card"), ("quiet", "ground"), ("quiet", "card"), ("ink", "code"),
                 ("quiet", "code"), ("accent", "card"), ("good", "good-soft"), ("bad", "bad-soft"),
                 ("even", "even-soft"), ("open", "open-soft")]  # fmt: skip
        for colours in (light, dark):
            for text, ground in pairs:
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
