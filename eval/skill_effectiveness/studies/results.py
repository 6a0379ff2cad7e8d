"""`results.json`: what a study says, with the digests of what it says it from (studies.md section 7).

A document of this form cannot say more than its study may: a synthetic one has no tier, only a pass has one,
limitations are sorted and of the closed list, and the digest is over all the rest, so an edited list does not
load. `results_making.build_results` makes one from an analysis.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from skill_effectiveness.calibration.agreement import PairAgreement
from skill_effectiveness.calibration.figures import Estimate, Interval, Share
from skill_effectiveness.calibration.position import PositionSheet
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import Canonical, RuleBroken, parse
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Rate
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.studies.accounts import ArmFlow, Usage
from skill_effectiveness.studies.analysis.blinding_index import Blinding
from skill_effectiveness.studies.analysis.conclusions import Reason, Word
from skill_effectiveness.studies.analysis.records import Method, Uncorrected
from skill_effectiveness.studies.words import TIERS, Outcome
from skill_effectiveness.trials.gate_words import NotEvaluated

RESULTS_CONTRACT: Final = "skill-effectiveness-study-results-v1"
RESULTS_DIGEST: Final = "results_digest"
SYNTHETIC_TIER: Final = "synthetic_not_a_tier"
TABLE_FILES: Final = tuple(
    f"{name}.{form}" for name in ("trials", "pairs", "judgements") for form in ("csv", "parquet")
)

Effect = Annotated[float, Field(ge=-1, le=1)]
Number = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Text = Annotated[str, Field(min_length=1, max_length=4_096)]
ShortText = Annotated[str, Field(min_length=1, max_length=256)]
TimeText = Annotated[
    str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$")
]


class StudyVerdict(FrozenModel):
    """What the pilot gate says of the study, and how far its word reaches.

    Attributes:
        gate_status: `not_evaluated` where no reviewer was planned, which the gate needs.
        verdict_tier: of a pass; `synthetic_not_a_tier` for a synthetic study; null otherwise.
        coverage_limitations: verbatim, sorted.
        failures: of the gate, as it names them.
        not_evaluated_checks: checks that could not be made.
    """

    gate_status: Literal["pass", "fail", "not_evaluated", "not_evaluated_synthetic"]
    verdict_tier: EvidenceTierName | Literal["synthetic_not_a_tier"] | None
    coverage_limitations: Annotated[tuple[WaivableItem, ...], Field(max_length=len(WaivableItem))]
    failures: tuple[ShortText, ...]
    not_evaluated_checks: tuple[NotEvaluated, ...]

    @model_validator(mode="after")
    def _limitations_as_they_stood(self) -> Self:
        items = [str(item) for item in self.coverage_limitations]
        if items != sorted(set(items)):
            raise RuleBroken("Limitations are sorted and named once; take the verdict's own list.")
        if self.verdict_tier is EvidenceTierName.CAUSAL and items:
            raise RuleBroken("A causal verdict has no limitation.")
        if (self.gate_status == "pass") is not isinstance(self.verdict_tier, EvidenceTierName):
            raise RuleBroken("Exactly a pass has a verdict tier.")
        if self.gate_status == "pass" and self.failures:
            raise RuleBroken("A gate with failures does not pass.")
        return self


class ToDecide(FrozenModel):
    """What would decide an open question, at the effect, spread and price seen; null is unknown."""

    tasks: Number
    trials: Number
    tokens: Number | None
    cost_units: Amount | None


class ComparisonRecord(FrozenModel):
    """One comparison; figures are null where there is no task.

    Attributes:
        comparison: treatment and comparator.
        conclusion: the word.
        reasons: why it is not a stronger one.
        effect: D, positive where the treatment is better.
        interval: the one the word rests on.
        level: its coverage.
        to_decide: null where the question is decided.
    """

    comparison: ShortText
    outcome: Outcome
    conclusion: Word
    reasons: tuple[Reason, ...]
    effect: Effect | None
    interval: Interval | None
    level: Rate
    method: Method
    p: Rate | None
    tasks: Number
    informative_tasks: Number
    to_decide: ToDecide | None


class SecondaryRecord(ComparisonRecord):
    """A secondary comparison, its p adjusted over all of them; the word rests on that."""

    p_holm: Rate | None


class EvidenceRecord(FrozenModel):
    """The evidence after one task, in the order of allocation; ends are null where nothing is left."""

    task_id: ShortText
    e: Amount
    low: Effect | None
    high: Effect | None


class RawPreference(FrozenModel):
    """Over single showings, means over tasks."""

    win: Rate
    loss: Rate
    net: Effect
    tasks: Number


class CorrectedFigure(FrozenModel):
    """A share corrected for the reviewers' errors; it may lie beyond its range."""

    value: float
    standard_error: Amount
    interval: Interval


class CorrectedPreferences(FrozenModel):
    """Wins, losses and their difference."""

    win: CorrectedFigure
    loss: CorrectedFigure
    net: CorrectedFigure


class PreferenceRecord(FrozenModel):
    """What was preferred; exactly one of `corrected` and `reason` is null."""

    raw: RawPreference
    corrected: CorrectedPreferences | None
    reason: Uncorrected | None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.corrected is None) is (self.reason is None):
            raise RuleBroken("A preference is corrected, or there is a reason why not.")
        return self


class ReviewerRecord(FrozenModel):
    """One reviewer's sheet, over pairs and over cases with known answers.

    Attributes:
        votes: on pairs, by state.
        confusion: of known cases by truth (outer) and verdict (inner): A win, B win, tie.
    """

    reviewer: ShortText
    votes: dict[str, Number]
    pairs: Number
    inconsistent: Share
    position: PositionSheet
    longer: Share
    canaries: Share
    confusion: tuple[tuple[Number, Number, Number], ...]


class AgreementRecord(FrozenModel):
    """Two reviewers over the pairs that both judged."""

    first: ShortText
    second: ShortText
    pairs: Number
    figures: PairAgreement


class ReviewersRecord(FrozenModel):
    """All reviewers; `bootstrap_seed` is that of the intervals of agreement."""

    sheets: tuple[ReviewerRecord, ...]
    agreement: tuple[AgreementRecord, ...]
    alpha: Estimate | None
    bootstrap_seed: Number


class BlindingFigure(FrozenModel):
    """Bang's index of one shown side."""

    value: Effect
    interval: Interval
    tasks: Number


class BlindingRecord(FrozenModel):
    """What the reviewers' guesses show; a side is null without a guess."""

    word: Blinding
    treated_first: BlindingFigure | None
    treated_second: BlindingFigure | None


class MissingRecord(FrozenModel):
    """What missing values could change.

    Attributes:
        by_class: slots of all arms without a value, by how they ended.
        bounds: of the primary effect, whatever the missing values are; null without a task.
        tipping: how many at their worst change the word.
    """

    by_class: dict[str, Number]
    bounds: Interval | None
    tipping: Annotated[int, Field(ge=1)] | Literal["none"]


class AmendmentRecord(FrozenModel):
    """A change of the plan after it was sealed, as it was journalled."""

    pointer: Text
    value: JsonValue
    former: JsonValue
    reason: Text
    at: TimeText


class DeviationRecord(FrozenModel):
    """Something that did not go as planned.

    Attributes:
        code: for example `report_without_all_slots`.
        sentence: for people.
        at: None where no moment can be named.
    """

    code: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    sentence: Text
    at: TimeText | None


class Results(FrozenModel):
    """`results.json`; `results_digest` is `H` of the rest."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-results-v1"]
    plan_digest: DigestText
    registry: RegistrySchema
    synthetic: bool
    verdict: StudyVerdict
    primary: ComparisonRecord
    secondary: tuple[SecondaryRecord, ...]
    anytime: tuple[EvidenceRecord, ...] | None
    rates: dict[str, Estimate | None]
    preference: PreferenceRecord | None
    reviewers: ReviewersRecord
    blinding: BlindingRecord
    missing: MissingRecord
    flow: dict[str, ArmFlow]
    usage: Usage
    amendments: tuple[AmendmentRecord, ...]
    deviations: tuple[DeviationRecord, ...]
    unblinded_at: TimeText
    seed: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    tables: dict[str, DigestText]
    results_digest: DigestText

    @model_validator(mode="after")
    def _says_no_more_than_it_may(self) -> Self:
        verdict = self.verdict
        if self.synthetic is not (verdict.verdict_tier == SYNTHETIC_TIER):
            raise RuleBroken("Exactly a synthetic study has the tier synthetic_not_a_tier.")
        if self.synthetic is not (verdict.gate_status == "not_evaluated_synthetic"):
            raise RuleBroken("Exactly a synthetic study is not evaluated because it is synthetic.")
        if verdict.gate_status == "pass" and verdict.verdict_tier is not TIERS[self.registry]:
            raise RuleBroken("The tier follows from the registry; this registry has the other one.")
        if set(self.tables) != set(TABLE_FILES):
            raise RuleBroken("Results name the digests of the three tables in both forms.")
        if self.results_digest != results_digest(results_json(self)):
            raise RuleBroken(
                "results_digest is not over these results; they were edited, so take the original."
            )
        return self


def results_json(results: Results) -> dict[str, JsonValue]:
    """Results as plain JSON values, every field written out."""
    plain: dict[str, JsonValue] = results.model_dump(mode="json")
    return plain


def results_line(results: Results) -> bytes:
    """The bytes of `results.json`."""
    return dump_line(results_json(results))


def results_digest(fields: dict[str, Any]) -> str:
    """`H` of results without their own digest."""
    return digest_object({name: value for name, value in fields.items() if name != RESULTS_DIGEST})


def read_results(data: bytes) -> Results:
    """Results out of their file.

    Raises:
        StrictError: not JSON as this program reads it.
        DocumentError: not results, edited, or not the bytes that this program writes.
    """
    return parse(Results, data, Profile.DOCUMENT, canonical=Canonical.LINE)
