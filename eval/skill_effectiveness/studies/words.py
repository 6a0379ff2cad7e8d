"""The closed words of a study that more than one module needs (studies.md sections 1 to 3)."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.gates import EvidenceTierName
from skill_effectiveness.protocol.registries import RegistrySchema

if TYPE_CHECKING:
    from collections.abc import Mapping

SIMULATED: Final = "simulated"
"""The provider that is made of chance, as driver and as reviewer."""


class Arm(StrEnum):
    """What a study calls its arms; each registry has its own third one."""

    OFF = "off"
    FULL = "full"
    REFERENCE = "reference"
    ORACLE = "oracle"


class Outcome(StrEnum):
    """What a study measures its arms by (section 1)."""

    REWARD = "reward"
    PASSED = "passed"
    PREFERENCE = "preference"


class Sides(StrEnum):
    """Which effects the test of a study looks for (section 1)."""

    TWO = "two"
    GREATER = "greater"


class EndClass(StrEnum):
    """How one attempt, and at last one slot, ended (section 3)."""

    COMPLETED = "completed"
    NO_ANSWER = "no_answer"
    CRASHED = "crashed"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    PROVIDER_ERROR = "provider_error"
    INTERRUPTED = "interrupted"
    CONTAMINATED = "contaminated"
    VOID = "void"


class Rule(StrEnum):
    """What a class counts for.

    `value`: what the grade says. `failure`: 0. `graded`: the tree is graded as it stands. `missing`: there is
    no value. `rerun`: a new attempt until all are used, then missing.
    """

    VALUE = "value"
    FAILURE = "failure"
    GRADED = "graded"
    MISSING = "missing"
    RERUN = "rerun"


FIXED_RULES: Final[Mapping[EndClass, Rule]] = MappingProxyType(
    {
        EndClass.COMPLETED: Rule.VALUE,
        EndClass.CONTAMINATED: Rule.MISSING,
        EndClass.VOID: Rule.MISSING,
    }
)
"""Rules that no study file can set."""

DEFAULT_RULES: Final[Mapping[EndClass, Rule]] = MappingProxyType(
    {
        EndClass.NO_ANSWER: Rule.FAILURE,
        EndClass.CRASHED: Rule.FAILURE,
        EndClass.REFUSED: Rule.FAILURE,
        EndClass.TIMEOUT: Rule.FAILURE,
        EndClass.LIMIT: Rule.FAILURE,
        EndClass.PROVIDER_ERROR: Rule.RERUN,
        EndClass.INTERRUPTED: Rule.RERUN,
    }
)
"""Rules that hold unless the study file sets others; for provider errors of the kinds that may pass."""

GRADABLE: Final = frozenset({EndClass.TIMEOUT, EndClass.LIMIT})
"""Classes after which the tree may be graded as it stands."""


class GradeState(StrEnum):
    """What grading one tree came to.

    `valid`: a reward. `grader_invalid`: a number outside 0 to 1. `grader_failed`: none that can be read.
    `replay_differs`: the two gradings of one tree do not agree.
    """

    VALID = "valid"
    GRADER_INVALID = "grader_invalid"
    GRADER_FAILED = "grader_failed"
    REPLAY_DIFFERS = "replay_differs"


class Stopping(StrEnum):
    """When evidence is looked at."""

    FIXED = "fixed"
    ANYTIME = "anytime"


class Sandbox(StrEnum):
    """What holds the tested agent."""

    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class Audit(StrEnum):
    """What watches the paths it opens."""

    STRACE = "strace"
    NONE = "none"


class Network(StrEnum):
    """Whom it can reach."""

    PROVIDER = "provider"
    NONE = "none"


TIERS: Final[Mapping[RegistrySchema, EvidenceTierName]] = MappingProxyType(
    {
        RegistrySchema.PAIRED_PROFILE: EvidenceTierName.ADVISORY_PAIRED,
        RegistrySchema.SKILL_CONTENT: EvidenceTierName.CAUSAL,
    }
)
"""The only tier of each registry."""

THIRD_ARM: Final[Mapping[RegistrySchema, Arm]] = MappingProxyType(
    {RegistrySchema.PAIRED_PROFILE: Arm.REFERENCE, RegistrySchema.SKILL_CONTENT: Arm.ORACLE}
)
"""The arm that a registry has beside off and full."""
