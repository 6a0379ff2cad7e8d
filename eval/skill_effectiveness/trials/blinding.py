"""Two outcomes made into what a judge may see, and the private key to it.

Source: trials.md section 7. The normal way is `blind_pair`: it refuses what does not belong to the plan,
looks for signs of the arms, and writes below the controller's root, in this order,

    blinding.key                       32 random bytes, on first use
    blinding/mappings/<pair_id>.json   which outcome is A and which is B
    blinding/judge/<pair_id>.json      what the judge gets: four members
    blinding/leaks/<64 hex>.json       instead of the judge file: where a payload gives its arm away

so that no judge file exists without its mapping, whatever happens in between. All names and contents follow
from the key and the pair: carrying it out again, or with the two outcomes given the other way round, writes
the same files. `read_mapping` opens one once the votes are in.

| code | refused because |
|---|---|
| `not_two_arms` | both outcomes come from one arm |
| `not_two_outcomes` | both outcomes have one id |
| `other_plan` | an outcome was made under another registry plan |
| `outside_plan` | the plan has no such arm, or the arm has another manifest in it |
| `payload_form` | a payload is not plain JSON values, nested less than 64 deep |
| `leak` | a payload gives its arm away; the leak file says where |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, JsonValue

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, dump, dump_line, mac
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import DocumentCode, DocumentError, EvidenceError, Fault
from skill_effectiveness.evidence.keys import mac_key
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.trials.leaks import LeakKind, scan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.trials.leaks import LeakRules

KEY_NAME: Final = "blinding.key"
FOLDER: Final = "blinding"
JUDGE, MAPPINGS, LEAKS = "judge", "mappings", "leaks"
MOST_HITS: Final = 1_000
"""So many signs of one outcome are listed."""

PairId = Annotated[str, Field(pattern=r"^pair-[0-9a-f]{64}$")]
OutcomeId = Annotated[str, Field(min_length=1, max_length=512)]


class Position(IntEnum):
    """Which of its two showings a pair has; the second is the first with its seats changed."""

    FIRST = 0
    SECOND = 1


class BlindingCode(StrEnum):
    """Why a pair is refused; see the table above."""

    NOT_TWO_ARMS = "not_two_arms"
    NOT_TWO_OUTCOMES = "not_two_outcomes"
    OTHER_PLAN = "other_plan"
    OUTSIDE_PLAN = "outside_plan"
    PAYLOAD_FORM = "payload_form"
    LEAK = "leak"


class BlindingRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """Two outcomes are not shown to a judge.

    Attributes:
        code: the closed word.
        leak_file: name below `blinding/leaks`, for a leak.
    """

    def __init__(self, code: BlindingCode, sentence: str, leak_file: str | None = None) -> None:
        self.code = code
        self.leak_file = leak_file
        super().__init__(sentence)


class BlindOutcome(FrozenModel):
    """One side of a pair as the controller hands it over."""

    outcome_id: OutcomeId
    arm_id: Annotated[str, Field(min_length=1)]
    manifest_hash: DigestText
    arm_registry_plan_hash: DigestText
    judge_payload: JsonValue


class JudgeInput(FrozenModel):
    """All that a judge gets."""

    schema_version: One
    pair_id: PairId
    A: JsonValue
    B: JsonValue


class Seats(FrozenModel):
    """Outcome ids by seat."""

    A: OutcomeId
    B: OutcomeId


class PairMapping(FrozenModel):
    """What turns a judge's verdict into one about arms; for the controller alone."""

    schema_version: One
    pair_id: PairId
    arm_registry_hash: DigestText
    arm_registry_plan_hash: DigestText
    mapping: Seats


class RecordedLeak(FrozenModel):
    """One sign of an arm: where it stands, not what it says (the pointer names the keys on the way)."""

    outcome_id: OutcomeId
    pointer: str
    kind: LeakKind
    offset: Annotated[int, Field(ge=0)]
    length: Annotated[int, Field(ge=0)]


class LeakDocument(FrozenModel):
    """Why a pair was refused, for the controller: at most `MOST_HITS` signs of each outcome."""

    schema_version: One
    pair_id: PairId
    leaks: Annotated[tuple[RecordedLeak, ...], Field(min_length=1)]


def blind_pair(
    root: PrivateRoot,
    plan: ArmRegistryPlan,
    first: BlindOutcome,
    second: BlindOutcome,
    *,
    rules: LeakRules,
    position: Position = Position.FIRST,
) -> JudgeInput:
    """Write mapping and judge file of a pair and answer what the judge gets, or refuse the pair.

    Args:
        root: the controller's, out of reach of every agent and judge.
        plan: both arms belong to it; all its arm ids and hashes are looked for.
        first: one side.
        second: the other; which is which does not matter.
        rules: what else to look for: owners, treatment texts.
        position: which showing.

    Raises:
        BlindingRefused: after a leak the leak file is there, and no judge file of either showing is any more.
        EvidenceError: the key is unusable, or a file cannot be written; or exists with other content.
    """
    sides = tuple(sorted((first, second), key=lambda side: side.outcome_id))
    _demand_pair(plan, sides)
    payloads = {side.outcome_id: _detached(side) for side in sides}
    pair = _Pair.of(mac_key(root, KEY_NAME), plan, sides)
    _refuse_leaks(root, pair, payloads, rules.with_registry(plan.manifest_hashes, _digests(plan)))
    pair_id, seats = pair.ids[position], pair.seats(position)
    mapping = PairMapping(
        schema_version=1,
        pair_id=pair_id,
        arm_registry_hash=plan.arm_registry_hash,
        arm_registry_plan_hash=plan.plan_hash,
        mapping=seats,
    )
    shown = JudgeInput(schema_version=1, pair_id=pair_id, A=payloads[seats.A], B=payloads[seats.B])
    # A judge file without a mapping could never be opened again; the other way round nothing is lost.
    _publish(root, MAPPINGS, f"{pair_id}.json", dump_line(to_json(mapping)))
    _publish(root, JUDGE, f"{pair_id}.json", dump_line(to_json(shown)))
    return shown


def read_mapping(root: PrivateRoot, pair_id: str) -> PairMapping:
    """Open the mapping of a pair.

    Raises:
        EvidenceError: it is missing, not private, not as it was written, or that of another pair.
    """
    with root.child(FOLDER, MAPPINGS) as folder:
        mapping = parse(
            PairMapping, folder.read(f"{pair_id}.json"), Profile.DOCUMENT, canonical=Canonical.LINE
        )
    if mapping.pair_id != pair_id:
        sentence = "This mapping belongs to another pair than its name says; it was moved."
        raise DocumentError(Fault(DocumentCode.WRONG_VALUE, "/pair_id", sentence))
    return mapping


@dataclass(frozen=True, slots=True)
class _Pair:
    """Ids of both showings, and who sits where in the first.

    Attributes:
        ids: of the first and of the second showing; without the key nobody can tell that they belong
            together.
        order: outcome ids in seats A and B of the first showing.
    """

    ids: tuple[str, str]
    order: tuple[str, str]

    @classmethod
    def of(cls, key: bytes, plan: ArmRegistryPlan, sides: Sequence[BlindOutcome]) -> _Pair:
        """Judge the pair by the key.

        Args:
            key: the controller's.
            plan: of both arms.
            sides: both, by outcome id.
        """
        named: dict[str, object] = {
            "arm_registry_hash": plan.arm_registry_hash,
            "arm_registry_plan_hash": plan.plan_hash,
            "members": [
                {
                    "outcome_id": side.outcome_id,
                    "arm_id": side.arm_id,
                    "manifest_hash": side.manifest_hash,
                    "judge_payload_hash": digest_object(side.judge_payload),
                }
                for side in sides
            ],
        }
        first = f"pair-{mac(key, named).hex()}"
        second = f"pair-{mac(key, named | {'position': int(Position.SECOND)}).hex()}"
        seat_a, seat_b = sorted(
            (side.outcome_id for side in sides),
            key=lambda outcome_id: mac(key, {"pair_id": first, "outcome_id": outcome_id}),
        )
        return cls((first, second), (seat_a, seat_b))

    def seats(self, position: Position) -> Seats:
        """Who sits where in a showing."""
        seat_a, seat_b = self.order if position is Position.FIRST else reversed(self.order)
        return Seats(A=seat_a, B=seat_b)


def _demand_pair(plan: ArmRegistryPlan, sides: Sequence[BlindOutcome]) -> None:
    one, other = sides
    if one.outcome_id == other.outcome_id:
        sentence = "A pair has two outcomes; both have the same outcome id."
        raise BlindingRefused(BlindingCode.NOT_TWO_OUTCOMES, sentence)
    if one.arm_id == other.arm_id:
        sentence = "A pair compares two arms; both outcomes come from the same one."
        raise BlindingRefused(BlindingCode.NOT_TWO_ARMS, sentence)
    for side in sides:
        if side.arm_registry_plan_hash != plan.plan_hash:
            sentence = "An outcome was made under another registry plan; give the plan it was made under."
            raise BlindingRefused(BlindingCode.OTHER_PLAN, sentence)
        if not plan.contains(side.arm_id, side.manifest_hash):
            sentence = (
                "The registry plan has no such arm with this manifest; blind outcomes of the plan only."
            )
            raise BlindingRefused(BlindingCode.OUTSIDE_PLAN, sentence)


def _detached(side: BlindOutcome) -> JsonValue:
    """A copy of the payload that shares nothing with it, its members in canonical order.

    The order in which a program happened to make the members could tell who made them.
    """
    try:
        # One level deeper, as in the judge's file.
        copied = read_json(dump({"payload": side.judge_payload}), Profile.DOCUMENT)
    except EvidenceError as error:
        raise BlindingRefused(
            BlindingCode.PAYLOAD_FORM,
            f"A judge payload cannot be shown: {error.faults[0].sentence} Correct what made it.",
        ) from error
    return copied["payload"] if isinstance(copied, dict) else None


def _digests(plan: ArmRegistryPlan) -> tuple[str, ...]:
    return (plan.plan_hash, plan.arm_registry_hash, *plan.manifest_hashes.values())


def _refuse_leaks(root: PrivateRoot, pair: _Pair, payloads: dict[str, JsonValue], rules: LeakRules) -> None:
    """Refuse the pair when a payload gives its arm away; the same file for both showings."""
    leaks = tuple(
        RecordedLeak(
            outcome_id=outcome_id,
            pointer=hit.pointer,
            kind=hit.kind,
            offset=hit.offset,
            length=hit.length,
        )
        for outcome_id, payload in payloads.items()
        for hit in scan(payload, rules)[:MOST_HITS]
    )
    if not leaks:
        return
    data = dump_line(to_json(LeakDocument(schema_version=1, pair_id=pair.ids[0], leaks=leaks)))
    name = f"{digest_bytes(data).removeprefix('sha256:')}.json"
    # First, so that nothing that stops the leak file leaves a judge file.
    _withdraw(root, pair)
    _publish(root, LEAKS, name, data)
    raise BlindingRefused(
        BlindingCode.LEAK,
        f"A judge payload gives its arm away, so the pair is not shown; {FOLDER}/{LEAKS}/{name} says where.",
        name,
    )


def _withdraw(root: PrivateRoot, pair: _Pair) -> None:
    """Take away judge files that were written when less was looked for."""
    if not root.exists(FOLDER):
        return
    with root.child(FOLDER) as folder:
        if not folder.exists(JUDGE):
            return
        with folder.child(JUDGE) as judge:
            for pair_id in pair.ids:
                judge.remove(f"{pair_id}.json")


def _publish(root: PrivateRoot, below: str, name: str, data: bytes) -> None:
    with root.child(FOLDER, below, create=True) as folder:
        folder.publish(name, data)
