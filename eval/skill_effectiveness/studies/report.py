"""`report.html`: one file that needs no network and no script, made of results, plan and pairs (section 7).

Whatever an agent wrote is text and stays text. Jinja escapes every value; characters that paint, hide,
reorder or break lines are written out by their number before that; the page's policy lets only its own script
run, named by its digest, and nothing be loaded from anywhere. Equal inputs give equal bytes: the page has no
clock, no random id and no version of the machine it was made on.
"""

from __future__ import annotations

import base64
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from skill_effectiveness.evidence.canonical import digest_bytes, dump
from skill_effectiveness.studies import sentences
from skill_effectiveness.studies.analysis.outcomes import compare_arms, compare_preferences
from skill_effectiveness.studies.figures import Axis, evidence_curve, place
from skill_effectiveness.studies.words import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.studies.analysis.comparisons import Comparison, TaskValues
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.results import Results, SecondaryRecord
    from skill_effectiveness.studies.tables import PairRow, Tables

LONGEST_TEXT: Final = 98_304
"""Characters of one text that are shown at most; what follows is counted."""

MOST_TEXT: Final = 16_000_000
"""Characters of all texts together; with more pairs each shows less, so that the page still opens."""

SHORTEST_CUT: Final = 1_000
"""Characters that every text may show, however many there are."""

_TEMPLATE: Final = "report.html.jinja"
_KEPT: Final = frozenset("\n\t")


@dataclass(frozen=True, slots=True)
class PairTexts:
    """What the two arms of a pair handed in, as an agent wrote it; None where nothing was collected."""

    treatment: str | None
    comparator: str | None


@dataclass(frozen=True, slots=True)
class PlanSeal:
    """The seal of the plan.

    Attributes:
        key_id: of the key that signed it.
        sealed_at: RFC 3339, UTC.
    """

    key_id: str
    sealed_at: str


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task of the primary comparison; a mean is None where an arm has no value."""

    task_id: str
    family: str
    treated: float | None
    compared: float | None
    difference: float | None
    values: int
    missing: int
    informative: bool


@dataclass(frozen=True, slots=True)
class PairLine:
    """One pair and what was written, ready to be shown."""

    row: PairRow
    treatment: str | None
    comparator: str | None
    cut: int


def render(
    results: Results,
    plan: StudyPlan,
    tables: Tables,
    texts: Mapping[str, PairTexts],
    seal: PlanSeal | None,
) -> bytes:
    """The report as UTF-8.

    Args:
        results: as they stand in `results.json`.
        plan: of the same study.
        tables: the results' own.
        texts: by pair id; pairs without any are listed without.
        seal: of the plan; None says so.

    Raises:
        ValueError: results of another plan.
    """
    if results.plan_digest != plan.plan_digest:
        raise ValueError("a report is made of the results of its own plan")
    style, script = _shipped("report.css"), _shipped("report.js")
    primary = _primary_of(tables, results.primary.outcome)
    html = (
        _environment()
        .get_template(_TEMPLATE)
        .render(
            results=results,
            plan=plan,
            seal=seal,
            say=sentences,
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            policy=_policy(style, script),
            axis=_axis(results, plan),
            reviewed=_reviewed(results, plan),
            secondary=_secondary(results, plan),
            unobserved=_unobserved(tables),
            curve=evidence_curve(results.anytime, plan.analysis.alpha) if results.anytime else None,
            place=place,
            inset=_inset,
            tasks=_task_lines(primary, tables),
            pairs=_pair_lines(tables, texts),
            paired=primary.paired_values,
        )
    )
    return html.encode("utf-8")


def shown(text: str) -> str:
    """A text with every character that does not simply print written out, such as `⟨U+202E⟩`.

    Line feeds and tabs stay. What is written out paints on terminals, reorders (bidi controls), hides (zero
    width), breaks lines (U+2028) or has no UTF-8 form (half a surrogate pair).
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else f"⟨U+{ord(char):04X}⟩" for char in text)


def _finalized(value: object) -> object:
    """Applied to every value that the template writes."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shown(value)
    return "unknown" if value is None else value


def _inset(value: float) -> str:
    """A place on a strip from 0 to 1 that leaves room for the dots at its ends."""
    return place(0.03 + 0.94 * value)


def _told_mean(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _numbered(names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, number) for number, name in enumerate(names, start=1)]


def _spelt(value: object) -> str:
    """A JSON value as it is written."""
    return dump(value).decode("utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({_TEMPLATE: _shipped(_TEMPLATE)}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"mean": _told_mean, "numbered": _numbered, "tojson_text": _spelt}
    return environment


def _shipped(name: str) -> str:
    data = pkgutil.get_data("skill_effectiveness.studies", f"templates/{name}")
    if data is None:
        raise RuntimeError(f"this installation lacks its file templates/{name}; install it again")
    return data.decode("utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and nothing runs or paints but what this file brought along."""
    return (
        f"default-src 'none'; style-src '{_source(style)}'; script-src '{_source(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    digest = bytes.fromhex(digest_bytes(text.encode()).removeprefix("sha256:"))
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _primary_of(tables: Tables, outcome: Outcome) -> Comparison:
    if outcome is Outcome.PREFERENCE:
        return compare_preferences(tables.pairs, tables.trials)
    return compare_arms(tables.trials, "full", "off", outcome)


def _reviewed(results: Results, plan: StudyPlan) -> bool:
    return bool(plan.reviewers or results.reviewers.sheets)


def _secondary(results: Results, plan: StudyPlan) -> list[SecondaryRecord]:
    """The secondary comparisons; nobody can have preferred anything where no reviewer was planned."""
    reviewed = _reviewed(results, plan)
    return [one for one in results.secondary if reviewed or one.outcome is not Outcome.PREFERENCE]


def _unobserved(tables: Tables) -> frozenset[str]:
    """Arms in whose trials nothing could tell what they were exposed to."""
    known = {row.arm for row in tables.trials if row.exposed != "unverified"}
    return frozenset(row.arm for row in tables.trials) - known


def _axis(results: Results, plan: StudyPlan) -> Axis:
    held = [plan.outcome.minimum_effect]
    for one in (results.primary, *_secondary(results, plan)):
        if one.interval is not None:
            held += [one.interval.low, one.interval.high]
        if one.effect is not None:
            held.append(one.effect)
    return Axis.holding(held)


def _task_lines(primary: Comparison, tables: Tables) -> tuple[TaskLine, ...]:
    families = {row.task_id: row.family for row in tables.trials}
    return tuple(
        TaskLine(
            task_id=task.task_id,
            family=families[task.task_id],
            treated=_mean([held.value for held in task.treatment]),
            compared=_mean([held.value for held in task.comparator]),
            difference=primary.difference(task),
            values=len(task.values),
            missing=_missing(task),
            informative=task.informative,
        )
        for task in primary.tasks
    )


def _missing(task: TaskValues) -> int:
    return len(task.treatment) + len(task.comparator) - len(task.values)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _pair_lines(tables: Tables, texts: Mapping[str, PairTexts]) -> tuple[PairLine, ...]:
    nothing = PairTexts(None, None)
    longest = max(SHORTEST_CUT, min(LONGEST_TEXT, MOST_TEXT // max(1, 2 * len(tables.pairs))))
    lines = []
    for row in sorted(tables.pairs, key=lambda row: (row.task_id, row.sample, row.pair_id)):
        held = texts.get(row.pair_id, nothing)
        both = [text for text in (held.treatment, held.comparator) if text is not None]
        cut = sum(max(0, len(text) - longest) for text in both)
        lines.append(PairLine(row, _start(held.treatment, longest), _start(held.comparator, longest), cut))
    return tuple(lines)


def _start(text: str | None, longest: int) -> str | None:
    return None if text is None else text[:longest]
