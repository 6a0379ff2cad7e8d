"""A reviewer made of chance: in this process, without a child and without a network.

Source: calibration.md section 7.

It exists so that an examination can be tried out, taught and tested at no cost, and so that the examination
itself can be examined: its accuracy, position bias, flakiness and refusals are known, because they are given.
It is the only reviewer that is handed the truth.

Every choice is drawn from the seed alone, keyed by what it decides, so that equal settings and seed give
equal answers in whatever order calls are made. One call is decided so:

1. it is refused at the refusal rate, drawn per repeat;
2. each case has a first draw, keyed by its id alone: the verdict for the first seat at the position bias,
   else the truth at the accuracy, else one of the two other verdicts;
3. at the flakiness a repeat draws a case anew, keyed by the repeat too; else it repeats the first draw.

The truth and the other verdicts are meant in bank orientation and are turned to how the case is shown; the
first seat is the first text shown, whichever it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.evidence.canonical import digest_file, draws
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.execution import Executable, ExecutableCode, ExecutableError, never
from skill_effectiveness.protocol.words import Verdict
from skill_effectiveness.providers.base import Provider
from skill_effectiveness.providers.calls import CallKind, CallOutcome, Ending
from skill_effectiveness.providers.errors import ProviderCode, ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers.calls import Cancelled, JudgeCall

VERSION: Final = "simulated-1"
LARGEST_SEED: Final = LARGEST_INTEGER
_SEED_BYTES: Final = 32
_WORDS: Final = 2**32

UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SimulatedSettings(BaseModel):
    """What a simulated reviewer is like.

    Attributes:
        accuracy: how often a case that is judged on its merits is judged rightly.
        position_bias: how often a case goes to the first text shown, unread.
        flakiness: how often a repeat judges a case anew.
        refusal_rate: how often a whole call is refused.
        seed: what everything is drawn from.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    accuracy: UnitInterval
    position_bias: UnitInterval = 0.0
    flakiness: UnitInterval = 0.0
    refusal_rate: UnitInterval = 0.0
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] = 0


@dataclass(frozen=True, slots=True)
class ShownTruth:
    """The truth about one case as it is shown.

    Attributes:
        shown_label: what the case is called in the prompt.
        case_id: its id in the bank.
        verdict: the right verdict in bank orientation.
        swapped: whether the bank's second text is shown first.
    """

    shown_label: str
    case_id: str
    verdict: Verdict
    swapped: bool


class SimulatedReviewer(Provider):
    """The simulated reviewer of one presentation.

    Args:
        settings: what it is like.
        truth: one entry per shown case, in shown order; empty for a reviewer that only says who it is.
        repeat: label of the repeat, unique within an examination.

    Raises:
        ProviderError: `invalid_truth` when a label or a case occurs twice.
    """

    name: ClassVar[str] = "simulated"
    family: ClassVar[str | None] = "simulated"
    session_label: ClassVar[str] = "simulated"
    tool_label: ClassVar[str] = "none"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.JUDGE})

    def __init__(
        self, settings: SimulatedSettings, truth: Sequence[ShownTruth] = (), *, repeat: str = ""
    ) -> None:
        self.settings: Final = settings
        self._truth: Final = tuple(truth)
        self._repeat: Final = repeat
        self._seed: Final = settings.seed.to_bytes(_SEED_BYTES, "big")
        labels = {shown.shown_label for shown in self._truth}
        ids = {shown.case_id for shown in self._truth}
        if not len(labels) == len(ids) == len(self._truth):
            raise ProviderError(
                ProviderCode.INVALID_TRUTH,
                "A case or a label occurs twice in the truth; hand over each shown case once.",
            )

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        """Refused: it is made of settings, and no program is one.

        Raises:
            ProviderError: `no_program`.
        """
        del path, around
        raise ProviderError(
            ProviderCode.NO_PROGRAM, "A simulated reviewer has no program; make one of its settings."
        )

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """None: nothing is started."""
        del environ
        return ()

    def identify(self, around: Surroundings) -> Executable:
        """See `Provider`: this module's own source stands for the program."""
        try:
            with reported("simulated.py", reading=True):
                source = Path(around.fs.resolve(__file__))
                digest = digest_file(around.fs, source)
        except FileError as error:
            sentence = "The source of the simulated reviewer cannot be read; install the package again."
            raise ExecutableError(ExecutableCode.UNREADABLE, sentence) from error
        return Executable(path=source, resolved=source, sha256=digest, version=VERSION)

    def judge(self, call: JudgeCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """See `Provider`. What it cost is unknown, because nothing was counted.

        Raises:
            ProviderError: `invalid_call` when the answer schema is not one list of labelled verdicts.
        """
        form = _AnswerForm.of(call.answer_schema)
        if cancelled():
            return CallOutcome(Ending.CANCELLED)
        began = around.monotonic()
        if next(self._draw("refusal", self._repeat)) < self.settings.refusal_rate:
            return CallOutcome(Ending.REFUSED)
        answer = form.text((shown.shown_label, self._verdict(shown)) for shown in self._truth)
        latency_ms = round((around.monotonic() - began) * 1000)
        return CallOutcome(Ending.SUCCESS, answer=answer, latency_ms=latency_ms)

    def _verdict(self, shown: ShownTruth) -> Verdict:
        """What this repeat says about a case, as shown."""
        again = self._draw("again", shown.case_id, self._repeat)
        if next(again) < self.settings.flakiness:
            return self._choose(again, shown)
        return self._choose(self._draw("first", shown.case_id), shown)

    def _choose(self, draw: Iterator[float], shown: ShownTruth) -> Verdict:
        if next(draw) < self.settings.position_bias:
            return Verdict.A_WIN
        if next(draw) < self.settings.accuracy:
            verdict = shown.verdict
        else:
            others = [verdict for verdict in Verdict if verdict is not shown.verdict]
            verdict = others[int(next(draw) * len(others))]
        return verdict.turned() if shown.swapped else verdict

    def _draw(self, *use: str) -> Iterator[float]:
        """Numbers in [0, 1), keyed by what they decide; none of them is below 0 and all are below 1."""
        return (word / _WORDS for word in draws(self._seed, "/".join(("simulated", *use))))


@dataclass(frozen=True, slots=True)
class _AnswerForm:
    """The names in the asked answer: one list whose entries have a label and a verdict.

    They are read from the schema like any reviewer does, so that they are named in one place only.
    """

    judgments: str
    label: str
    verdict: str

    @classmethod
    def of(cls, schema: Mapping[str, object]) -> Self:
        """Read the names; ProviderError `invalid_call` when the schema is of another form."""
        lists = _properties(schema)
        entry = _properties(_items(next(iter(lists.values()), None)))
        verdicts = [name for name, asked in entry.items() if _asks_for_verdict(asked)]
        labels = [name for name in entry if name not in verdicts]
        if not len(lists) == len(labels) == len(verdicts) == 1:
            raise ProviderError(
                ProviderCode.INVALID_CALL,
                "A simulated reviewer answers one list of labelled verdicts only; ask for that form.",
            )
        return cls(*lists, *labels, *verdicts)

    def text(self, judged: Iterable[tuple[str, Verdict]]) -> str:
        """The answer as a real reviewer gives it: the text of one JSON object."""
        entries = [{self.label: label, self.verdict: verdict.value} for label, verdict in judged]
        return json.dumps({self.judgments: entries}, ensure_ascii=False)


def _properties(schema: object) -> Mapping[str, object]:
    match schema:
        case {"type": "object", "properties": dict(names)}:
            return names
        case _:
            return {}


def _items(schema: object) -> object:
    match schema:
        case {"type": "array", "items": items}:
            return items
        case _:
            return None


def _asks_for_verdict(schema: object) -> bool:
    match schema:
        case {"enum": list(words)}:
            return words == [verdict.value for verdict in Verdict]
        case _:
            return False
