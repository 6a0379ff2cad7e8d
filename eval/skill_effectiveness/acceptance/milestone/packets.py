"""What engines are asked: the packets of the two passes, and the prompts of every other call.

Source: milestone.md, section 7, Packets, and sections 6 and 9. A packet names refs and never holds a diff; it
is sent whole or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.words import PassName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.milestone.criteria import Criterion
    from skill_effectiveness.acceptance.milestone.findings import Finding
    from skill_effectiveness.acceptance.milestone.input import Decision
    from skill_effectiveness.acceptance.milestone.verdict import NodeReceipt, Verdict

PROMPT_BYTES: Final = 120 * 1024
"""Largest prompt that is sent: some engines take it as one word of a command line."""

BLOCKING_RULE: Final = """\
WHAT BLOCKS
Give each finding a severity from P0 (worst) to P3, and one impact out of core_function, safety_or_data,
permission_boundary, criterion_unmet, regression_introduced and minor_separable, or null for none of them.
P0, P1 and P2 block under any impact. Of the impacts, minor_separable is the only one that does not block.
This milestone closes on a verified crosscheck and on nothing else. Verified means that no finding blocks and
that both passes answer verified. A finding that does not block is carried on as a follow-up.
"""

_LENSES: Final = {
    PassName.A: """\
YOUR LENS: COVERAGE
Decide for every criterion and every decision below whether the range meets it, and name the evidence:
files, tests, lines of the receipts. Put each id exactly once into `coverage`. Whatever is unmet needs a
finding whose text names that id.
""",
    PassName.B: """\
YOUR LENS: BUGS
Hunt for what is wrong in the range: wrong results, lost errors, races, broken boundaries, regressions. Leave
`coverage` empty; the criteria and decisions below tell you what was intended.
""",
}

_OPENING: Final = """\
You review an integrated range of a git repository; your working folder is a checkout of its head.
This is pass {name} of two.
"""

_FORM: Final = """\
YOUR ANSWER
One JSON object with `verdict` (verified or needs_changes), `coverage` (objects with ref, met, evidence) and
`findings` (objects with id, kind, severity, impact, file, line, text). `kind` is defect, test_gap or
evidence_missing. The id of a new finding begins with `{name}-`; one that was there before keeps its id.
Answer verified only if none of your findings blocks. Change nothing in the checkout.
"""


@dataclass(frozen=True, slots=True)
class ReceiptsFile:
    """Where the executor receipts lie, and what they are.

    Attributes:
        path: absolute, outside every checkout.
        sha256: digest of the file.
        nodes: state and digest of each node.
    """

    path: Path
    sha256: str
    nodes: tuple[NodeReceipt, ...]


@dataclass(frozen=True, slots=True)
class PacketFacts:
    """What both packets of a round are made of.

    Attributes:
        base: of the range.
        head: likewise.
        criteria: the build criteria, with their original ids.
        decisions: of the approved design.
        receipts: the executor receipts.
        prior: the verdict that the round continues.
        answers: what an explorer found out about findings that lacked evidence.
    """

    base: str
    head: str
    criteria: Sequence[Criterion]
    decisions: Sequence[Decision]
    receipts: ReceiptsFile
    prior: Verdict | None = None
    answers: str = ""

    @property
    def refs(self) -> tuple[str, ...]:
        """What pass A has to cover."""
        return (*(each.id for each in self.criteria), *(each.id for each in self.decisions))


def pass_packet(name: PassName, facts: PacketFacts) -> str:
    """The prompt of one pass."""
    sections = [
        _OPENING.format(name=name),
        f"RANGE\n{facts.base}..{facts.head}\nSee `git diff {facts.base}..{facts.head}` and `git log`.\n",
        _LENSES[name],
        _listed("CRITERIA", [(each.id, each.text) for each in facts.criteria]),
        _listed("DECISIONS OF THE APPROVED DESIGN", [(each.id, each.text) for each in facts.decisions]),
        _receipts_section(facts.receipts),
    ]
    if facts.prior is not None:
        sections.append(_prior_section(facts.prior))
    if facts.answers:
        sections.append(f"WHAT WAS FOUND OUT ABOUT MISSING EVIDENCE\n{facts.answers}\n")
    sections += [BLOCKING_RULE, _FORM.format(name=name)]
    return "\n".join(sections)


def _listed(title: str, entries: Sequence[tuple[str, str]]) -> str:
    if not entries:
        return f"{title}\nnone\n"
    return "\n".join([title, *(f"{name}: {text}" for name, text in entries)]) + "\n"


def _receipts_section(receipts: ReceiptsFile) -> str:
    lines = [
        "EXECUTOR RECEIPTS",
        f"file: {receipts.path}",
        f"sha256: {receipts.sha256}",
        *(f"node {node.node}: {node.state} {node.sha256 or '-'}" for node in receipts.nodes),
        "For each criterion, check its red-first lines (the test that failed before the work and passed",
        "after it) against these receipts. A criterion whose tests were never seen failing lacks evidence.",
    ]
    return "\n".join(lines) + "\n"


def _prior_section(prior: Verdict) -> str:
    lines = [
        "FINDINGS THAT BLOCKED BEFORE",
        f"The range {prior.base}..{prior.head} was judged {prior.word}. Judge each of these again at the",
        "present head; report one that still holds under its id.",
        *(_finding_line(finding) for finding in prior.blocking),
    ]
    return "\n".join(lines) + "\n"


def _finding_line(finding: Finding) -> str:
    return f"{finding.follow_up} ({finding.kind})"


# Other calls.

EXPLORER_SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
FIX_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "enum": ["ready", "needs_research"]},
        "question": {"type": "string"},
        "summary": {"type": "string"},
    },
    "required": ["state", "question", "summary"],
    "additionalProperties": False,
}


def evidence_prompt(findings: Sequence[Finding], base: str, head: str) -> str:
    """What an explorer is asked about findings that lack evidence."""
    lines = [
        f"Your working folder is a checkout of {head}. A review of {base}..{head} lacks evidence:",
        *(_finding_line(finding) for finding in findings),
        "For each id, say what evidence there is in the repository: files, tests, lines. Invent nothing;",
        "where there is none, say so. Answer one JSON object with the member `answer`. Change nothing.",
    ]
    return "\n".join(lines) + "\n"


def research_prompt(question: str) -> str:
    """What an explorer is asked for an executor."""
    return (
        "Your working folder is a checkout. Somebody who corrects this code asks:\n"
        f"{question}\n"
        "Answer from what is there, with files and lines, as one JSON object with the member `answer`.\n"
        "Change nothing.\n"
    )


def fix_prompt(findings: Sequence[Finding], base: str, head: str, criteria: Sequence[Criterion]) -> str:
    """What the close-fix executor is asked."""
    lines = [
        f"Your working folder is a checkout of {head}. A review of {base}..{head} found:",
        *(_finding_line(finding) for finding in findings),
        *(("The reviewers named no finding and did not verify the range; look for what is unmet.",)
          if not findings else ()),
        _listed("CRITERIA", [(each.id, each.text) for each in criteria]),
        "Correct it in the working folder, with tests. Do not commit. Answer one JSON object: `state` is",
        "ready, or needs_research with one `question`; `summary` says what you changed.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def continued(prompt: str, packet: Path, answer: Path, told: str = "") -> str:
    """A prompt that continues an earlier call, whose packet and answer it gets as files."""
    return (
        f"This continues an earlier call. Its packet: {packet}\nIts answer: {answer}\n"
        f"{told and f'What was found out since:{chr(10)}{told}{chr(10)}'}{prompt}"
    )
