"""Engine calls in two phases: a durable row before the engine is asked, another when it has answered.

Source: milestone.md, section 3. Everything about a call lies in `calls/<call>/`: its packet, its answer, its
event stream. A prepared row without a completed one says that a call may have been made and never that it was
completed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar

from skill_effectiveness.acceptance.milestone.answers import ANSWER_BYTES, answer_bytes
from skill_effectiveness.acceptance.milestone.words import NOT_OBSERVED, Purpose, Role, RowType
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, digest_text
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.providers import (
    CallKind,
    CallOutcome,
    Ending,
    ProviderError,
    ReadCall,
    ReplyError,
    WorkCall,
    one_json_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from skill_effectiveness.acceptance.milestone.configuration import EngineProfile
    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.providers import Provider

ModelT = TypeVar("ModelT", bound="BaseModel")

CALLS: Final = "calls"
PACKET: Final = "packet.md"
ANSWER: Final = "answer.txt"
STREAM: Final = "stream.bin"


def nothing_more(_outcome: CallOutcome) -> dict[str, Any]:
    """Nothing beside what every completed row says."""
    return {}


@dataclass(frozen=True, slots=True)
class CallOrder:
    """One call that is to be made.

    Attributes:
        role: what the engine is asked to be; an executor works, everybody else reads.
        purpose: what for.
        profile: of the engine.
        provider: its adapter.
        prompt: what it is asked.
        folder: the checkout or working copy, absolute.
        schema: of the answer.
        about: further members of both rows.
        resume_of: the call that it continues.
        qa: whether it is a QA call; part of the input digest.
        reads: an executor that only has to look, and sees more than its own folder then.
        after: looks at what the call left before its completed row is written; further members of that row.
    """

    role: Role
    purpose: Purpose
    profile: EngineProfile
    provider: Provider = field(repr=False)
    prompt: str = field(repr=False)
    folder: Path
    schema: Mapping[str, object] = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)
    resume_of: str | None = None
    qa: bool = False
    reads: bool = False
    after: Callable[[CallOutcome], dict[str, Any]] = nothing_more

    @property
    def kind(self) -> CallKind:
        """The kind of call."""
        works = self.role is Role.EXECUTOR and not self.reads
        return CallKind.WORK if works else CallKind.READ

    def input_digest(self) -> str:
        """What makes it the call it is."""
        return digest_object(
            {
                "model": self.profile.model,
                "profile": self.profile.name,
                "prompt": digest_text(self.prompt),
                "purpose": self.purpose.value,
                "qa": self.qa,
                "resume_of": self.resume_of,
                "role": self.role.value,
            }
        )


@dataclass(frozen=True, slots=True)
class CallDone:
    """A completed call.

    Attributes:
        call: its id.
        order: what was asked.
        outcome: what came back.
        body: of its completed row.
    """

    call: str
    order: CallOrder
    outcome: CallOutcome
    body: dict[str, Any]

    def answer(self, model: type[ModelT]) -> ModelT | None:
        """The answer, if it is one of the form."""
        if self.outcome.answer is None:
            return None
        return read_form(self.outcome.answer, model, json_fence=self.order.provider.json_fence)


def read_form(text: str, model: type[ModelT], *, json_fence: bool = False) -> ModelT | None:
    """The one object in an answer's text, if it is of a form and not too large."""
    if len(answer_bytes(text)) > ANSWER_BYTES:
        return None
    try:
        return validate(model, one_json_object(text, allow_json_fence=json_fence))
    except (ReplyError, EvidenceError):
        return None


class CallDesk:
    """Makes the calls of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def ask(self, orders: Sequence[CallOrder]) -> list[CallDone]:
        """Make calls at the same time and wait for all of them.

        Raises:
            MilestoneError: `row_not_written`: nothing was asked, or what came back does not count.
            BaseException: what stopped this process; every engine is stopped first, and rows that were only
                prepared stay so.
        """
        prepared = [(self._prepare(order), order) for order in orders]
        stopped = Event()

        def cancelled() -> bool:
            return stopped.is_set() or self._run.site.cancelled()

        with ThreadPoolExecutor(max_workers=max(1, len(prepared)), thread_name_prefix="engine") as pool:
            try:
                futures = [pool.submit(self._call, order, cancelled) for _, order in prepared]
                outcomes = [future.result() for future in futures]
            except BaseException:
                stopped.set()
                raise
        return [
            self._complete(call, order, outcome)
            for (call, order), outcome in zip(prepared, outcomes, strict=True)
        ]

    def _prepare(self, order: CallOrder) -> str:
        """The durable record that comes before the call."""
        run = self._run
        call = f"{order.purpose.value}-{len(run.rows.all(RowType.PREPARED)) + 1}"
        run.folder.keep(order.prompt.encode(), CALLS, call, PACKET)
        body: dict[str, Any] = {
            **order.about,
            "call": call,
            "input_digest": order.input_digest(),
            "profile": order.profile.name,
            "purpose": order.purpose.value,
            "qa": order.qa,
            "requested": {"model": order.profile.model, "role": order.role.value},
            "role": order.role.value,
        }
        if order.resume_of is not None:
            body["resume_of"] = order.resume_of
        # A call that was prepared and never completed may have been made: it is made again, and told so.
        cut_off = [row for row in run.rows.open_calls() if row.body["input_digest"] == body["input_digest"]]
        if cut_off:
            body["repeats"] = cut_off[-1].body["call"]
        run.note(RowType.PREPARED, **body)
        return call

    def _call(self, order: CallOrder, cancelled: Callable[[], bool]) -> CallOutcome:
        seconds, model = float(order.profile.limit_seconds), order.profile.model
        around = self._run.site.around
        try:
            if order.kind is CallKind.WORK:
                work = WorkCall(order.prompt, order.folder, model, seconds, order.schema)
                return order.provider.work(work, around=around, cancelled=cancelled)
            read = ReadCall(order.prompt, order.folder, model, seconds, order.schema)
            return order.provider.read(read, around=around, cancelled=cancelled)
        except ProviderError:
            # What cannot be asked of this adapter at all is no engine for this call.
            return CallOutcome(Ending.UNSTARTABLE)

    def _complete(self, call: str, order: CallOrder, outcome: CallOutcome) -> CallDone:
        run = self._run
        answer = None if outcome.answer is None else answer_bytes(outcome.answer)
        if answer is not None:
            run.folder.keep(answer, CALLS, call, ANSWER)
        if outcome.recording is not None:
            run.folder.keep(outcome.recording.stdout, CALLS, call, STREAM)
        body: dict[str, Any] = {
            **order.about,
            **order.after(outcome),
            "answer_digest": None if answer is None else digest_bytes(answer),
            "call": call,
            "ending": outcome.ending.value,
            "milliseconds": outcome.latency_ms,
            "observed": {
                "model": outcome.observed_model or NOT_OBSERVED,
                "role": NOT_OBSERVED,
                "sandbox": NOT_OBSERVED if outcome.sandbox is None else outcome.sandbox.value,
                "session": outcome.session_id or NOT_OBSERVED,
            },
            "purpose": order.purpose.value,
            "role": order.role.value,
            "warnings": sorted({warning.code.value for warning in outcome.warnings}),
        }
        if order.resume_of is not None:
            body["resume_of"] = order.resume_of
        run.note(RowType.COMPLETED, **body)
        return CallDone(call, order, outcome, body)

    def files_of(self, call: str) -> tuple[Path, Path]:
        """Where the packet and the answer of an earlier call lie."""
        folder = self._run.folder.path / CALLS / call
        return folder / PACKET, folder / ANSWER

    def answer_of(self, call: str) -> str | None:
        """The text that a completed call answered."""
        data = self._run.folder.read(CALLS, call, ANSWER)
        return None if data is None else data.decode(errors="replace")
