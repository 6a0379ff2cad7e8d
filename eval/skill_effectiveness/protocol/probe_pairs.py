"""The countable rules of the bias probes: each pair has the one difference its kind is about.

The favoured text of a padded, formatting or self-family pair stands in the seat that the licence policy names
for its kind; these rules say which text that is, so that policy and bank cannot drift apart unseen:
`favoured_seat` is compared with the policy by a test.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.cases import probe_kind_of, probe_view_of
from skill_effectiveness.protocol.findings import AuthoringRule, Finding
from skill_effectiveness.protocol.words import ProbeKind, Seat, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skill_effectiveness.protocol.cases import Bank, Case

FILLER_SHARE_MIN: Final = 0.38
FILLER_SHARE_MAX: Final = 0.42

_EVEN_KINDS: Final = frozenset(
    {ProbeKind.IDENTICAL, ProbeKind.CRLF_ONLY, ProbeKind.PADDED, ProbeKind.FORMATTING, ProbeKind.SELF_FAMILY}
)
_WORD: Final = re.compile(r"\w+")
_MARKUP: Final = re.compile(r"(?m)^#|^- |\*\*")
_OWN_FAMILY: Final = "the same model family"
_OTHER_FAMILY: Final = "another model family"


def check_probes(bank: Bank) -> Iterator[Finding]:
    """Every countable rule of the probe bank that it breaks."""
    present = {probe_kind_of(case.case_id) for case in bank.cases}
    for kind in ProbeKind:
        if kind not in present:
            yield Finding(AuthoringRule.PROBE_KINDS, "", f"there is no pair of the kind {kind}.")
    for case, verdict in zip(bank.cases, bank.truth, strict=True):
        kind = probe_kind_of(case.case_id)
        if (verdict is Verdict.TIE) is not (kind in _EVEN_KINDS):
            yield Finding(
                AuthoringRule.PROBE_VERDICT,
                case.case_id,
                f"{verdict} is no answer to a pair of the kind {kind}.",
            )
        elif (wrong := _pair_fault(kind, case, verdict)) is not None:
            yield Finding(AuthoringRule.PROBE_PAIR, case.case_id, wrong)
    yield from _check_views(bank)


def favoured_seat(case: Case) -> Seat | None:
    """The text that a biased reviewer would prefer, or None where the texts do not tell.

    Told are the longer text of a padded pair, the one with Markdown markup of a formatting pair, and the one
    that says it comes from the reviewer's own model family of a self-family pair.
    """
    tell = _FAVOUR.get(probe_kind_of(case.case_id))
    if tell is None:
        return None
    in_a, in_b = tell(case.candidate_a, case.candidate_b), tell(case.candidate_b, case.candidate_a)
    if in_a is in_b:
        return None
    return Seat.CANDIDATE_A if in_a else Seat.CANDIDATE_B


_FAVOUR: Final[dict[ProbeKind, Callable[[str, str], bool]]] = {
    ProbeKind.PADDED: lambda own, other: len(own) > len(other),
    ProbeKind.FORMATTING: lambda own, _: _MARKUP.search(own) is not None,
    ProbeKind.SELF_FAMILY: lambda own, _: _OWN_FAMILY in own,
}


def _pair_fault(kind: ProbeKind, case: Case, verdict: Verdict) -> str | None:
    """What keeps a pair from being one of its kind, or None."""
    first, second = case.candidate_a, case.candidate_b
    if kind is ProbeKind.IDENTICAL:
        return (
            None if first == second else "the two texts differ; an identical pair has the same bytes twice."
        )
    if first == second:
        return f"the two texts are equal; a pair of the kind {kind} needs two."
    rule = _PAIR_RULES.get(kind)
    sound, unsound = (second, first) if verdict is Verdict.B_WIN else (first, second)
    return None if rule is None else rule(sound, unsound)


def _crlf_fault(first: str, second: str) -> str | None:
    if first.replace("\r\n", "\n") != second.replace("\r\n", "\n"):
        return "the two texts differ in more than their line ends."
    return None


def _truncated_fault(sound: str, unsound: str) -> str | None:
    if sound.rstrip()[-1:].isalnum() or not unsound[-1:].isalnum():
        return "the sound text must end with a whole sentence, the other one inside a word or sentence."
    return None


def _empty_fault(sound: str, unsound: str) -> str | None:
    if unsound.strip() or not sound.strip():
        return "the sound text must say something and the other one nothing."
    return None


def _padded_fault(first: str, second: str) -> str | None:
    core, padded = sorted((first, second), key=len)
    if not all(line in padded for line in core.splitlines()):
        return "every line of the shorter text must stand in the longer one."
    if not FILLER_SHARE_MIN <= 1 - len(core) / len(padded) <= FILLER_SHARE_MAX:
        return f"{1 - len(core) / len(padded):.3f} of the longer text is filler; 0.40 is needed."
    return None


def _formatting_fault(first: str, second: str) -> str | None:
    if _WORD.findall(first) != _WORD.findall(second):
        return "the two texts must hold the same words in the same order."
    if bool(_MARKUP.search(first)) is bool(_MARKUP.search(second)):
        return "exactly one of the two texts must be marked up."
    return None


def _family_fault(first: str, second: str) -> str | None:
    opening = {first.partition("\n")[0], second.partition("\n")[0]}
    if not any(_OWN_FAMILY in line for line in opening) or not any(_OTHER_FAMILY in line for line in opening):
        return f"one text must open with a line that says {_OWN_FAMILY!r}, the other with {_OTHER_FAMILY!r}."
    return None


_PAIR_RULES: Final[dict[ProbeKind, Callable[[str, str], str | None]]] = {
    ProbeKind.CRLF_ONLY: _crlf_fault,
    ProbeKind.TRUNCATED: _truncated_fault,
    ProbeKind.EMPTY_VS_REAL: _empty_fault,
    ProbeKind.PADDED: _padded_fault,
    ProbeKind.FORMATTING: _formatting_fault,
    ProbeKind.SELF_FAMILY: _family_fault,
}


def _check_views(bank: Bank) -> Iterator[Finding]:
    """The two views of a swapped pair are one pair, shown both ways, with the answer turned."""
    known = {case.case_id: (case, verdict) for case, verdict in zip(bank.cases, bank.truth, strict=True)}
    for case_id, (case, verdict) in known.items():
        view = probe_view_of(case_id)
        if view is None:
            continue
        other = known.get(case_id[:-1] + ("b" if view == "a" else "a"))
        if other is None:
            yield Finding(AuthoringRule.PROBE_PAIR, case_id, "the other view of this pair is missing.")
        elif view == "a" and not _same_pair(case, other[0], turned=verdict.turned() is other[1]):
            yield Finding(
                AuthoringRule.PROBE_PAIR,
                case_id,
                "the other view must hold the same pair in exchanged seats.",
            )


def _same_pair(case: Case, other: Case, *, turned: bool) -> bool:
    same_question = (case.task, case.rubric) == (other.task, other.rubric)
    return (
        turned
        and same_question
        and (case.candidate_a, case.candidate_b) == (other.candidate_b, other.candidate_a)
    )
