"""`verification-record/1`: what was observed of one required command at one commit.

Source: milestone.md, section 5. How many test packages ran is read from a file that a configuration names, as
a JSON member or as JUnit suites; where there is none it is unknown, never zero.
"""

from __future__ import annotations

from typing import Any, Final, Literal
from xml.parsers import expat

from pydantic import BaseModel, Field

from skill_effectiveness.acceptance.milestone.identity import Identity
from skill_effectiveness.acceptance.milestone.words import CLOSED
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json

RECORD: Final = "verification-record/1"
NO_TESTS_RUN: Final = "no_tests_run"
_COUNT: Final = "testPackagesRun"


class VerificationRecord(BaseModel):
    """One record; `testPackagesRun` is absent where nobody told it."""

    model_config = CLOSED

    record: Literal["verification-record/1"]
    argv: tuple[str, ...]
    exit: int | None
    signal: int | None
    timedOut: bool  # noqa: N815 - the document's own spelling
    before: Identity
    after: Identity
    testPackagesRun: int | None = Field(default=None, ge=0)  # noqa: N815 - likewise
    log: str
    digest: str

    @property
    def passed(self) -> bool:
        """Whether the command ended by itself and well."""
        return self.exit == 0 and not self.timedOut

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know and what changes no state."""
        return (NO_TESTS_RUN,) if self.testPackagesRun == 0 else ()

    def plain(self) -> dict[str, Any]:
        """The record as it stands in a row."""
        return self.model_dump(mode="json", exclude_unset=True)


def make_record(**members: Any) -> VerificationRecord:  # noqa: ANN401 - the members of the record
    """A record with its digest, which is over all its other members."""
    plain = {"record": RECORD} | members
    return validate(VerificationRecord, plain | {"digest": digest_object(plain)})


def packages_run(data: bytes) -> int | None:
    """How many test packages a report says ran; `None` when it does not say.

    Args:
        data: JSON with a whole number `testPackagesRun`, or JUnit XML, where a suite with a test that was
            not skipped is a package that ran.
    """
    try:
        value = read_json(data, Profile.DOCUMENT)
    except StrictError:
        return _junit_packages(data)
    count = value.get(_COUNT) if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


class _NoReportError(Exception):
    """The text is no JUnit report that may be read."""


def _junit_packages(data: bytes) -> int | None:
    suites: list[dict[str, str]] = []
    names: list[str] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        names.append(name)
        if name == "testsuite":
            suites.append(attributes)

    def refuse(*_: object) -> None:
        # Entities could make a small file large, and a report needs none.
        raise _NoReportError

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003 - expat's own interface
        if names[0] not in {"testsuite", "testsuites"}:
            return None
        return sum(_ran(suite) for suite in suites)
    except (expat.ExpatError, _NoReportError, ValueError, IndexError):
        return None


def _ran(suite: dict[str, str]) -> bool:
    tests, skipped = int(suite.get("tests", "0")), int(suite.get("skipped", "0"))
    return tests - skipped > 0
