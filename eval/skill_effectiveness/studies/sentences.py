"""What a study says in sentences: estimate, interval and word, then what limits them (studies.md section 6).

Report and command line say the same, so the sentences are made once. A number that is not known is said to be
unknown and never shown as 0.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.gates import COMPARISONS_ALLOWED, CONTENT_UNANSWERABLE, WaivableItem
from skill_effectiveness.studies.analysis.blinding_index import Blinding
from skill_effectiveness.studies.analysis.conclusions import Reason, Word
from skill_effectiveness.studies.analysis.records import Method, Uncorrected
from skill_effectiveness.studies.words import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.calibration.figures import Interval
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.results import BlindingRecord, ComparisonRecord, Results

MEASURES: Final[Mapping[Outcome, str]] = MappingProxyType(
    {
        Outcome.REWARD: "mean reward",
        Outcome.PASSED: "pass rate",
        Outcome.PREFERENCE: "net preference of the reviewers",
    }
)
"""What an outcome is called in a sentence."""

MEANINGS: Final[Mapping[Word, str]] = MappingProxyType(
    {
        Word.EQUIVALENT: "The effect lies within what was declared too small to matter.",
        Word.IMPROVES: "Chance alone is an unlikely reason for this advantage of the treatment.",
        Word.HARMS: "Chance alone is an unlikely reason for this disadvantage of the treatment.",
        Word.UNDERPOWERED: "The study was too small to find the effect it looked for.",
        Word.INCONCLUSIVE: "The study neither shows an effect nor rules one out.",
    }
)
"""What each word means."""

REASONS: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.UNINFORMATIVE_TASKS: "Fewer than six tasks could tell the arms apart at all: in the others "
        "every trial came out alike.",
        Reason.SAFETY: "The treatment had more deterministic safety failures, which outrank an improvement.",
        Reason.TOO_FEW_TASKS: "With so few tasks no result at all could have been significant.",
        Reason.PLANNED_POWER: "Already the plan had less than even odds of finding its least effect.",
        Reason.NO_TASKS: "No task has a value in both arms.",
    }
)
"""Why a word is not a stronger one."""

METHODS: Final[Mapping[Method, str]] = MappingProxyType(
    {
        Method.SIGN_FLIPS: "exact sign-flip test over tasks, interval by its inversion",
        Method.DRAWN_SIGN_FLIPS: "sign-flip test over tasks with drawn flips, interval by its inversion",
        Method.SIGN_FLIPS_BCA: "sign-flip test over tasks with drawn flips, BCa bootstrap interval",
        Method.MCNEMAR: "exact McNemar test, interval by inverting the sign-flip test",
        Method.MCNEMAR_DRAWN: "exact McNemar test, interval by inverting the drawn sign-flip test",
        Method.MCNEMAR_BCA: "exact McNemar test, BCa bootstrap interval over tasks",
        Method.ANYTIME: "evidence that may be looked at after every task, with its confidence sequence",
    }
)
"""Where p and interval come from."""

UNCORRECTED: Final[Mapping[Uncorrected, str]] = MappingProxyType(
    {
        Uncorrected.NO_KNOWN_ACCURACY: "No licence tells how accurate the reviewers are.",
        Uncorrected.TOO_FEW_TASKS: "One task has no spread to reckon with.",
        Uncorrected.NOT_IDENTIFIABLE: "The reviewers are not certainly better than a coin, so nothing can "
        "be reckoned back.",
    }
)
"""Why a preference is not corrected."""

BLINDINGS: Final[Mapping[Blinding, str]] = MappingProxyType(
    {
        Blinding.BLINDED: "The reviewers could not tell which side was treated.",
        Blinding.UNBLINDED: "The reviewers could tell which side was treated; weigh their preference so.",
        Blinding.NOT_SHOWN: "It is not shown that the reviewers could not tell which side was treated.",
    }
)
"""What the guesses of the reviewers show."""

LIMITATIONS: Final[Mapping[WaivableItem, str]] = MappingProxyType(
    {
        WaivableItem.ACCESS_ROOT_ENFORCEMENT: "Nothing kept the agent from reading outside its own folders.",
        WaivableItem.COMPLETE_ACCESS_AUDIT: "Not every file that the agent opened was recorded.",
        WaivableItem.LIVE_MATCHED_CALL_GATE: "Nothing checked live that the arms made matching calls.",
        WaivableItem.MEMORY_ISOLATION_PROOF: "It is not proved that the agent remembered "
        "nothing of former trials.",
        WaivableItem.MOUNT_EVIDENCE: "What the agent could see of the machine is not evidenced.",
        WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF: "It is not proved that the provider kept nothing from "
        "one trial to another.",
    }
)
"""What an advisory verdict does without, beside each word of its list."""

COUNTS_PAIRS: Final = (
    "The preference counts pairs: each has the word most frequent among its reviewers, and a reviewer's word "
    "is what it said in both orders alike, so it differs from the net of single showings under Reviewers."
)
"""Beside a preference among the comparisons."""

COUNTS_SHOWINGS: Final = (
    "These figures count single showings, each verdict in each order by itself, as given and corrected for "
    "known errors of the reviewers; the preference under Comparisons has one word for each pair."
)
"""Beside the net preference of the reviewers."""


CONTENT_EFFECT: Final = (
    f"{CONTENT_UNANSWERABLE}: whether the content of the skills matters, and not merely that guidance of "
    "their size and form was given, is not answered here, because no active control has been selected. Until "
    f"one is, whole bundles are compared and nothing else ({COMPARISONS_ALLOWED})."
)
"""Instead of a content effect (controls.md section 6): the frozen gates know no control but a pending one."""


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, a real minus, and no sign on a zero."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return ("\N{MINUS SIGN}" if value < 0 else "+") + text


def spread(interval: Interval | None, digits: int = 2) -> str:
    """Both ends in words."""
    if interval is None:
        return "unknown"
    return f"{signed(interval.low, digits)} to {signed(interval.high, digits)}"


def percent(level: float) -> str:
    """A coverage, such as `95 %`."""
    return f"{round(100 * level, 4):g} %"


def amount(value: float | None, digits: int = 2) -> str:
    """A number with thousands apart; `unknown` for none."""
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def chance_of(p: float | None) -> str:
    """A p-value as it is written: `p = 0.023`, `p < 0.001`, `p unknown`."""
    if p is None:
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"  # noqa: PLR2004 - the usual way of writing it


def estimate_sentence(results: Results) -> str:
    """Estimate, interval and word."""
    primary = results.primary
    measure = MEASURES[primary.outcome]
    if primary.effect is None:
        return f"No effect on the {measure} can be estimated: {primary.conclusion}."
    tasks = "1 task" if primary.tasks == 1 else f"{primary.tasks} tasks"
    start = f"With the treatment the {measure} differs by {signed(primary.effect)}"
    if primary.outcome is Outcome.PREFERENCE:
        start = f"The {measure} for the treatment is {signed(primary.effect)}"
    return (
        f"{start} over {tasks}, {percent(primary.level)} interval {spread(primary.interval)}, "
        f"{chance_of(primary.p)}: {primary.conclusion}."
    )


def reach_sentence(found: ComparisonRecord, minimum_effect: float) -> str | None:
    """What a word that shows an effect leaves open about its size; None where it leaves nothing open.

    Args:
        found: a comparison.
        minimum_effect: the least effect worth acting on.
    """
    if found.interval is None or found.conclusion not in {Word.IMPROVES, Word.HARMS}:
        return None
    helps = found.conclusion is Word.IMPROVES
    surely = found.interval.low if helps else -found.interval.high
    if surely >= minimum_effect:
        return None
    kind = "advantage" if helps else "disadvantage"
    return (
        f"The interval reaches into the ±{minimum_effect:g} declared too small to matter, so the {kind} may "
        "be that small."
    )


def misled_sentence(found: BlindingRecord) -> str | None:
    """What an index that is surely negative means; None where none is."""
    known = (one for one in (found.treated_first, found.treated_second) if one is not None)
    if not any(one.interval.high < 0 for one in known):
        return None
    return (
        "A negative index means that guesses named the wrong side more often than the right one: the "
        "reviewers took a difference that they saw for the other arm's, or favoured one seat; they did not "
        "guess blindly."
    )


def cost_sentence(results: Results) -> str:
    """What it cost; of a sum that is not known whole, what is known of it and what is not."""
    usage = results.usage
    parts = {**usage.arms, "votes": usage.votes}
    tokens = _known("tokens", usage.total.tokens, {name: one.tokens for name, one in parts.items()})
    cost = _known("cost units", usage.total.cost_units, {name: one.cost_units for name, one in parts.items()})
    trials = sum(one.calls for one in usage.arms.values())
    counted = _many(trials, "trial attempt")
    if usage.votes.calls:
        counted = f"{counted} and {_many(usage.votes.calls, 'vote')}"
    return f"It took {counted}, {tokens} and {cost}; exposure checks and the model check are not counted."


def _many(number: int, what: str) -> str:
    return f"{amount(number)} {what}" if number == 1 else f"{amount(number)} {what}s"


def _known(unit: str, total: float | None, parts: Mapping[str, float | None]) -> str:
    known = sum(value for value in parts.values() if value is not None)
    if total is not None or not known:
        return f"{amount(total)} {unit}"
    unknown = " and ".join(name for name, value in parts.items() if value is None)
    return f"at least {amount(known)} {unit} (those of {unknown} are unknown)"


def decide_sentence(primary: ComparisonRecord) -> str:
    """What would decide."""
    if primary.to_decide is None:
        if primary.effect is None:
            return "What would decide is unknown, because no task has a value in both arms."
        return "The question is decided: nothing more is needed."
    wanted = primary.to_decide
    return (
        f"About {amount(wanted.tasks)} tasks ({amount(wanted.trials)} trials, "
        f"{amount(wanted.tokens)} tokens, {amount(wanted.cost_units)} cost units) would decide it, "
        "if effect and spread stay as seen."
    )


def three_sentences(results: Results) -> tuple[str, str, str]:
    """Estimate, cost, and what would decide."""
    return estimate_sentence(results), cost_sentence(results), decide_sentence(results.primary)


def missing_sentence(results: Results) -> str:
    """How far missing values could move the estimate and the word."""
    missing = results.missing
    lost = sum(missing.by_class.values())
    if not lost and missing.tipping == "none":
        return "No value is missing."
    bounds = "unknown" if missing.bounds is None else spread(missing.bounds)
    tipping = (
        "no filling of the missing values changes the word"
        if missing.tipping == "none"
        else f"{missing.tipping} of them at their worst would change the word"
    )
    slots = "1 trial has" if lost == 1 else f"{lost} trials have"
    return f"{slots} no value. Whatever the missing values are, the effect lies within {bounds}; {tipping}."


def power_sentence(plan: StudyPlan) -> str:
    """What the plan could expect."""
    power = plan.power
    found = "none up to 1" if power.detectable is None else f"{power.detectable:.2f}"
    return (
        f"Planned to find an effect of {plan.outcome.minimum_effect:g} with power "
        f"{power.at_minimum_effect:.2f}; the least effect found with power 0.80 was {found}."
    )
