"""What is said of a run when it is over: the result object of `--json` and `run-summary.json`.

Source: loop.md, sections 7 and 9; L21b, L28, L85.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.acceptance.loop.words import Outcome
from skill_effectiveness.evidence.canonical import dump_line

SUMMARY: Final = "run-summary.json"

_Model = ConfigDict(extra="forbid", strict=True, frozen=True)


class JobSummary(BaseModel):
    """What became of one job.

    Attributes:
        name: of the job.
        outcome: of the job; `not_run` when it was never reached.
        attempts: how many were made.
        worktree: where its working tree is, if one is left.
        kept: whether something of it is left there.
        ref: where its content is as a commit, if it passed.
        reason: why, for people.
    """

    model_config = _Model

    name: str
    outcome: Outcome
    attempts: Annotated[int, Field(ge=0)] = 0
    worktree: str | None = None
    kept: bool = False
    ref: str | None = None
    reason: str = ""


class RunSummary(BaseModel):
    """What became of a run.

    Attributes:
        outcome: of the run; `invalid` when nothing ran.
        exit: the exit code.
        run: its id.
        attempts: of all jobs.
        seconds: how long it took.
        reason: why, for people.
        jobs: in order.
    """

    model_config = _Model

    artifact_contract: Literal["closedloop-run-summary-v1"] = "closedloop-run-summary-v1"
    outcome: Outcome | Literal["invalid"]
    exit: Annotated[int, Field(ge=0, le=5)]
    run: str | None
    attempts: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    reason: str = ""
    jobs: tuple[JobSummary, ...] = ()

    def line(self) -> bytes:
        """Its canonical line."""
        return dump_line(self.model_dump(mode="json"))
