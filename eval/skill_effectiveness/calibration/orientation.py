"""In which order and orientation a sample shows the cases of a bank (calibration.md, section 2).

Both are drawn anew for every sample from a key that never leaves the controller, so neither seat nor sequence
can be learned. Answers come back in shown order and are turned into bank order and orientation before
anything else happens to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object, mac

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.protocol.cases import Bank, Case
    from skill_effectiveness.protocol.words import Verdict

KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class ShownCase:
    """One case as a reviewer sees it.

    Attributes:
        label: `case-01` and on, by place in the shown order; the only name a reviewer learns.
        case_id: its id in the bank, never shown.
        swapped: True when `candidate_a` is shown as B; never shown.
        task: the task.
        rubric: what to judge by.
        shown_a: the text in seat A.
        shown_b: the text in seat B.
    """

    label: str
    case_id: str
    swapped: bool
    task: str
    rubric: str
    shown_a: str
    shown_b: str

    def __repr__(self) -> str:
        """The label only: no trace may tell orientation or text."""
        return f"<ShownCase {self.label}>"


@dataclass(frozen=True, slots=True, repr=False)
class Presentation:
    """The cases of a bank as one sample shows them.

    Attributes:
        shown: cases in shown order, each case of the bank exactly once.
        case_ids: ids in bank order.

    Raises:
        ValueError: `shown` is no arrangement of `case_ids`.
    """

    shown: tuple[ShownCase, ...]
    case_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        if sorted(case.case_id for case in self.shown) != sorted(set(self.case_ids)):
            raise ValueError("a presentation shows every case of the bank exactly once")

    def __repr__(self) -> str:
        """The size only, for the reason given at ShownCase."""
        return f"<Presentation of {len(self.shown)} cases>"

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels in shown order."""
        return tuple(case.label for case in self.shown)

    def turn_back(self, given: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """Verdicts in bank order and orientation, from verdicts as given in shown order.

        Raises:
            ValueError: not one verdict per shown case.
        """
        turned = {
            case.case_id: verdict.turned() if case.swapped else verdict
            for case, verdict in zip(self.shown, given, strict=True)
        }
        return tuple(turned[case_id] for case_id in self.case_ids)

    def as_shown(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """The other way: verdicts as they would be given, from verdicts in bank order and orientation.

        Raises:
            ValueError: not one verdict per case of the bank.
        """
        by_case = dict(zip(self.case_ids, verdicts, strict=True))
        return tuple(
            by_case[case.case_id].turned() if case.swapped else by_case[case.case_id] for case in self.shown
        )


def draw(bank: Bank, sample_id: str, key: bytes) -> Presentation:
    """The presentation of one sample: always the same for one bank, sample id and key.

    Raises:
        ValueError: the key is shorter than `KEY_BYTES`.
    """
    return arrange(bank, draw_seats(bank.case_fixture_hash, bank.case_ids, sample_id, key))


def draw_seats(
    case_fixture_hash: str, case_ids: Iterable[str], sample_id: str, key: bytes
) -> tuple[tuple[str, bool], ...]:
    """What `draw` draws, for whoever has no texts: case ids in shown order, each with its swap.

    Raises:
        ValueError: the key is shorter than `KEY_BYTES`.
    """
    if len(key) < KEY_BYTES:
        raise ValueError(f"an orientation key has at least {KEY_BYTES} bytes")

    def drawn(use: str, case_id: str) -> bytes:
        return mac(key, {"use": use, "bank": case_fixture_hash, "sample_id": sample_id, "case_id": case_id})

    in_order = sorted(case_ids, key=lambda case_id: drawn("order", case_id))
    return tuple((case_id, bool(drawn("orientation", case_id)[-1] & 1)) for case_id in in_order)


def identity(bank: Bank) -> Presentation:
    """Bank order, nothing swapped: what a sample without an observation file was shown."""
    return arrange(bank, [(case.case_id, False) for case in bank.cases])


def arrange(bank: Bank, seats: Iterable[tuple[str, bool]]) -> Presentation:
    """The presentation that an observation records: case ids in shown order, each with its swap.

    Raises:
        ValueError: the ids are not those of the bank, each exactly once.
    """
    cases = {case.case_id: case for case in bank.cases}
    named = list(seats)
    if any(case_id not in cases for case_id, _ in named):
        raise ValueError("a presentation shows cases of the bank only")
    shown = tuple(
        _seated(f"case-{place:02d}", cases[case_id], swapped=swapped)
        for place, (case_id, swapped) in enumerate(named, start=1)
    )
    return Presentation(shown, bank.case_ids)


def key_commitment(key: bytes) -> str:
    """What is published of a key so that it can be checked once opened: `H` of it as lowercase hex text."""
    return digest_object(key.hex())


def _seated(label: str, case: Case, *, swapped: bool) -> ShownCase:
    first, second = case.candidate_a, case.candidate_b
    if swapped:
        first, second = second, first
    return ShownCase(label, case.case_id, swapped, case.task, case.rubric, first, second)
