"""Configuration: engine profiles, who does which call, the local CI command, the tracker.

Source: milestone.md, sections 5, 7 and 11. A configuration is copied into the run at its start, so that every
verb of the run uses the same one. What is shipped is the value of `SHIPPED`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.input import Argv, Identifier, misfit
from skill_effectiveness.acceptance.milestone.words import CLOSED, PassName
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import RuleBroken, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.providers import MODEL_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

PASS_SECONDS: Final = 2400
"""Forty minutes a pass."""

_MOST_SECONDS: Final = 86_400
_ABSOLUTE: Final = r"^/[^\u0000]*$"
Seconds = Annotated[int, Field(ge=1, le=_MOST_SECONDS)]


class Floors(BaseModel):
    """The least that a pass has to have done; null states that the adapter cannot observe it."""

    model_config = CLOSED

    commands: Annotated[int, Field(ge=0)] | None = 1
    tokens: Annotated[int, Field(ge=0)] | None = 1000
    seconds: Annotated[float, Field(ge=0)] | None = 10

    @property
    def unobserved(self) -> tuple[str, ...]:
        """The floors that are stated as null."""
        return tuple(name for name in ("commands", "tokens", "seconds") if getattr(self, name) is None)


class EngineProfile(BaseModel):
    """One way to ask an engine: an adapter, a model, a limit, floors."""

    model_config = CLOSED

    name: Identifier
    adapter: Identifier
    model: Annotated[str, Field(pattern=rf"^{MODEL_ID}$")]
    family: Identifier
    limit_seconds: Seconds = PASS_SECONDS
    program: Annotated[str, Field(pattern=_ABSOLUTE)] | None = None
    argv: Argv | None = None
    floors: Floors = Floors()


class PassEngines(BaseModel):
    """Which profile runs which pass, where they differ."""

    model_config = CLOSED

    A: Identifier
    B: Identifier


class TrackerSettings(BaseModel):
    """Where issues and tracking milestones are read: `gh`, or a file of their states."""

    model_config = CLOSED

    kind: Literal["gh", "file"] = "gh"
    path: Annotated[str, Field(pattern=_ABSOLUTE)] | None = None

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.kind == "file" and self.path is None:
            raise RuleBroken("A tracker of kind file needs the path of the file.")
        return self


_UNOBSERVABLE: Final = Floors(commands=None, tokens=None)
_ASTRA: Final = EngineProfile(name="astra", adapter="codex", model="gpt-6-astra", family="gpt")
_GROK: Final = EngineProfile(
    name="grok",
    adapter="command",
    model="grok-4.7",
    family="grok",
    argv=("grok", "-m", "grok-4.7", "{{prompt}}"),
    floors=_UNOBSERVABLE,
)
LOCAL_CI: Final = ("make", "test")
"""What is verified where an input names no required command and a configuration no other one."""


class Configuration(BaseModel):
    """The whole configuration; every member may be left out."""

    model_config = CLOSED

    profiles: tuple[EngineProfile, ...] = (_ASTRA, _GROK)
    pass_engines: PassEngines | None = None
    explorer: Identifier | None = None
    executor: Identifier | None = None
    local_ci: Argv = LOCAL_CI
    verify_seconds: Seconds = 3600
    test_report: Annotated[str, Field(pattern=r"^[^/\u0000][^\u0000]*$")] | None = None
    tracker: TrackerSettings = TrackerSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [profile.name for profile in self.profiles]
        if len(set(names)) != len(names):
            raise RuleBroken("Two engine profiles have one name.")
        named = [self.explorer, self.executor]
        if self.pass_engines is not None:
            named += [self.pass_engines.A, self.pass_engines.B]
        if not {each for each in named if each is not None} <= set(names):
            raise RuleBroken("A profile is named that is not among the profiles.")
        if self.test_report is not None and ".." in self.test_report.split("/"):
            raise RuleBroken("The test report lies outside the worktree.")
        return self

    def profile(self, name: str) -> EngineProfile:
        """The profile of a name that the configuration itself gives."""
        return next(profile for profile in self.profiles if profile.name == name)

    def serving(self, name: str | None) -> Sequence[EngineProfile]:
        """The profiles that may serve a role, in their order: the one that is named, else all."""
        return self.profiles if name is None else (self.profile(name),)

    def sets_of_engines(self) -> list[dict[PassName, EngineProfile]]:
        """The choices for a round, in their order: one profile for both passes, or the pair that is named."""
        if self.pass_engines is None:
            return [dict.fromkeys(PassName, profile) for profile in self.profiles]
        named = self.pass_engines
        return [{PassName.A: self.profile(named.A), PassName.B: self.profile(named.B)}]

    def line(self) -> bytes:
        """The bytes that a run keeps."""
        plain: dict[str, Any] = self.model_dump(mode="json")
        return dump_line(plain)


SHIPPED: Final = Configuration()


def read_configuration(data: bytes) -> Configuration:
    """Read a configuration.

    Raises:
        MilestoneError: `configuration_invalid`, with the first misfit's JSON pointer and reason.
    """
    try:
        return parse(Configuration, data, Profile.DOCUMENT)
    except EvidenceError as error:
        raise MilestoneError(MilestoneCode.CONFIGURATION_INVALID, misfit(error)) from None
