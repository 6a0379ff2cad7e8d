"""The case banks a reviewer is examined with (calibration.md section 1).

The normal way in is `load_bank(fs, BankName.JUDGED)`: it reads the two files of the bank and the frozen file
that holds their hashes, and gives a `Bank` only if all three agree. A bank that is valid in itself but is not
the frozen one is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, read_document
from skill_effectiveness.protocol.errors import ProtocolError, fixture_invalid
from skill_effectiveness.protocol.gates import load_gates
from skill_effectiveness.protocol.policy import load_policy
from skill_effectiveness.protocol.resources import RESTORE
from skill_effectiveness.protocol.words import BankName, ProbeKind, TaskFamily, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.fsops import FileSystem

__all__ = [
    "BANK_FILES",
    "AnswersFile",
    "Bank",
    "BankFiles",
    "BankName",
    "BankPins",
    "Case",
    "CasesFile",
    "KnownAnswer",
    "ProbeKind",
    "TaskFamily",
    "Verdict",
    "family_of",
    "load_bank",
    "pins_of",
    "probe_kind_of",
    "probe_view_of",
]

_JUDGED_ID: Final = re.compile(rf"({'|'.join(TaskFamily)})-[0-9]{{2}}")
_PROBE_ID: Final = re.compile(rf"({'|'.join(ProbeKind)})-[0-9]{{2}}(-[ab])?")

CaseId = Annotated[str, Field(pattern=r"^[a-z][a-z_-]{0,31}-[0-9]{2}(-[ab])?$")]


class Case(FrozenModel):
    """A task, the rubric to judge by, and two texts in bank orientation; a candidate may be empty."""

    case_id: CaseId
    task: Annotated[str, Field(min_length=1)]
    rubric: Annotated[str, Field(min_length=1)]
    candidate_a: str
    candidate_b: str


class CasesFile(FrozenModel):
    """The document a reviewer's cases come from; it holds no answer, only the digest of the answers."""

    schema_version: One
    known_answer_fixture_hash: DigestText
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]


class KnownAnswer(FrozenModel):
    """What the task and the rubric of one case alone lead to."""

    case_id: CaseId
    expected_verdict: Verdict


class AnswersFile(FrozenModel):
    """The document no examined party ever sees."""

    schema_version: One
    known_answers: Annotated[tuple[KnownAnswer, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class BankPins:
    """The two digests that name a bank."""

    known_answer_fixture_hash: str
    case_fixture_hash: str


@dataclass(frozen=True, slots=True)
class BankFiles:
    """Frozen names of the two files of a bank."""

    cases: str
    answers: str


BANK_FILES: Final = {
    BankName.JUDGED: BankFiles(
        cases="fixtures/reviewer-calibration-cases.json",
        answers="fixtures/reviewer-calibration-known-answers.json",
    ),
    BankName.BIAS_PROBE: BankFiles(
        cases="fixtures/reviewer-bias-probes.json",
        answers="fixtures/reviewer-bias-probe-answers.json",
    ),
}


@dataclass(frozen=True, slots=True, repr=False)
class Bank:
    """A verified bank: unique ids of the right form, answers in the same order, both digests recomputed.

    An object of this class that does not hold these promises cannot be made; `verified` also compares the
    digests with the frozen ones. The text form names the bank and holds neither case nor answer, so that no
    trace can leak one.
    """

    name: BankName
    cases: tuple[Case, ...]
    known_answers: tuple[KnownAnswer, ...]
    known_answer_fixture_hash: str
    case_fixture_hash: str

    def __post_init__(self) -> None:
        """Refuse anything that is not a whole bank under its own digests."""
        _check_ids(self.name, self.cases, self.known_answers)
        digest = _digest_of_answers(self.known_answers)
        if digest != self.known_answer_fixture_hash:
            raise _other(BANK_FILES[self.name].answers)
        if _digest_of_cases(digest, self.cases) != self.case_fixture_hash:
            raise _other(BANK_FILES[self.name].cases)

    def __repr__(self) -> str:
        """Name and size only."""
        return f"<Bank {self.name.value}: {len(self.cases)} cases>"

    @classmethod
    def verified(cls, name: BankName, cases: CasesFile, answers: AnswersFile, pins: BankPins) -> Self:
        """The bank that two files make, if it is the one `pins` name.

        Raises:
            ProtocolError: `fixture_invalid`; the file that differs is named.
        """
        if cases.known_answer_fixture_hash != pins.known_answer_fixture_hash:
            raise _other(f"{BANK_FILES[name].cases}#/known_answer_fixture_hash")
        return cls(
            name=name,
            cases=cases.cases,
            known_answers=answers.known_answers,
            known_answer_fixture_hash=pins.known_answer_fixture_hash,
            case_fixture_hash=pins.case_fixture_hash,
        )

    @property
    def pins(self) -> BankPins:
        """The two digests this bank was verified against."""
        return BankPins(self.known_answer_fixture_hash, self.case_fixture_hash)

    @property
    def case_ids(self) -> tuple[str, ...]:
        """Ids in bank order."""
        return tuple(case.case_id for case in self.cases)

    @property
    def truth(self) -> tuple[Verdict, ...]:
        """Expected verdicts in bank order and bank orientation."""
        return tuple(answer.expected_verdict for answer in self.known_answers)


def load_bank(fs: FileSystem, name: BankName) -> Bank:
    """The frozen bank of this installation.

    Raises:
        ProtocolError: `fixture_invalid` when one of the three files is missing or malformed, or the bank is
            another one.
    """
    files = BANK_FILES[name]
    return Bank.verified(
        name,
        read_document(fs, files.cases, CasesFile),
        read_document(fs, files.answers, AnswersFile),
        _frozen_pins(fs, name),
    )


def pins_of(cases: CasesFile, answers: AnswersFile) -> BankPins:
    """The digests two files would be frozen under, whatever digest the cases file states."""
    digest = _digest_of_answers(answers.known_answers)
    return BankPins(digest, _digest_of_cases(digest, cases.cases))


def family_of(case_id: str) -> TaskFamily:
    """The task family that an id of the judged bank names.

    Raises:
        ProtocolError: `fixture_invalid` when the id is not `<family>-<two digits>`.
    """
    match = _JUDGED_ID.fullmatch(case_id)
    if match is None:
        raise _bad_id(BankName.JUDGED)
    return TaskFamily(match[1])


def probe_kind_of(case_id: str) -> ProbeKind:
    """The kind of bias that a probe id names.

    Raises:
        ProtocolError: `fixture_invalid` when the id is not `<kind>-<two digits>`, with `-a` or `-b` after it
            for the two views of a swapped pair and for no other kind.
    """
    return _probe_parts(case_id)[0]


def probe_view_of(case_id: str) -> Literal["a", "b"] | None:
    """Which of the two views of a swapped pair a probe id names, if any; errors as `probe_kind_of`."""
    return _probe_parts(case_id)[1]


def _probe_parts(case_id: str) -> tuple[ProbeKind, Literal["a", "b"] | None]:
    match = _PROBE_ID.fullmatch(case_id)
    if match is None:
        raise _bad_id(BankName.BIAS_PROBE)
    kind, view = ProbeKind(match[1]), match[2]
    if (kind is ProbeKind.SWAPPED) is not (view is not None):
        raise _bad_id(BankName.BIAS_PROBE)
    if view is None:
        return kind, None
    return kind, "a" if view == "-a" else "b"


def _frozen_pins(fs: FileSystem, name: BankName) -> BankPins:
    if name is BankName.JUDGED:
        gates = load_gates(fs)
        return BankPins(gates.reviewer_calibration_fixture_hash, gates.reviewer_calibration_case_fixture_hash)
    policy = load_policy(fs)
    return BankPins(policy.bias_probe_fixture_hash, policy.bias_probe_case_fixture_hash)


def _digest_of_answers(answers: Sequence[KnownAnswer]) -> str:
    return digest_object([answer.model_dump(mode="json") for answer in answers])


def _digest_of_cases(known_answer_fixture_hash: str, cases: Sequence[Case]) -> str:
    return digest_object(
        {
            "schema_version": 1,
            "known_answer_fixture_hash": known_answer_fixture_hash,
            "cases": [case.model_dump(mode="json") for case in cases],
        }
    )


def _check_ids(name: BankName, cases: Sequence[Case], answers: Sequence[KnownAnswer]) -> None:
    ids = [case.case_id for case in cases]
    for case_id in ids:
        family_of(case_id) if name is BankName.JUDGED else probe_kind_of(case_id)
    if repeated := [case_id for case_id, times in Counter(ids).items() if times > 1]:
        raise fixture_invalid(BANK_FILES[name].cases, f"case ids occur twice: {', '.join(repeated)}.")
    if ids != [answer.case_id for answer in answers]:
        raise fixture_invalid(
            BANK_FILES[name].answers,
            "the answers must name the cases of the bank, each once, in the same order.",
        )


def _bad_id(name: BankName) -> ProtocolError:
    form = "<family>-<nn>" if name is BankName.JUDGED else "<kind>-<nn>, with -a or -b for swapped pairs only"
    return fixture_invalid(BANK_FILES[name].cases, f"a case id is not of the form {form}.")


def _other(where: str) -> ProtocolError:
    return fixture_invalid(
        where, f"this is not the bank that was frozen, its digest is another one; {RESTORE}"
    )
