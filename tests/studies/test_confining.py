"""From a study's isolation to what is demanded of a call, and from what was seen to what a trial is told."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from skill_effectiveness.execution import trace_log, tracing
from skill_effectiveness.providers import walls
from skill_effectiveness.providers.confinement import Confinement, Observation, Touch
from skill_effectiveness.studies.agent import Observed
from skill_effectiveness.studies.attempt_records import MOST_AUDIT_FAULTS, ExitIsolation, Refusal
from skill_effectiveness.studies.confining import (
    confinement_of,
    is_breach,
    observed_of,
    session_evidence,
)
from skill_effectiveness.studies.study_file import Isolation
from skill_effectiveness.studies.words import Audit, Network, Sandbox
from skill_effectiveness.trials.models import AccessMode, IsolationEvidence, Operation
from tests.support.private import surroundings

FS = surroundings().fs
SILENT = IsolationEvidence(provider_persistence="unverified")


def isolation(
    sandbox: Sandbox = Sandbox.NONE, audit: Audit = Audit.NONE, read_only: tuple[str, ...] = ()
) -> Isolation:
    return Isolation(sandbox=sandbox, audit=audit, network=Network.PROVIDER, read_only=read_only)


class TestDemanded:
    def test_nothing_where_the_study_asks_for_nothing(self) -> None:
        """S8: none is none."""
        assert confinement_of(isolation(), "/app") is None

    def test_a_sandbox_has_the_working_copy_where_the_task_says(self) -> None:
        """S8 S13: and shows nothing that must be hidden."""
        demanded = confinement_of(
            isolation(Sandbox.BUBBLEWRAP, read_only=("/data",)), "/work/here", [Path("/R")]
        )
        assert demanded == Confinement("/work/here", (Path("/data"),), traced=False, hidden=(Path("/R"),))

    def test_an_audit_is_for_what_is_audited(self) -> None:
        """S8: an assay is no part of it, and without a sandbox nothing is left of it then."""
        assert confinement_of(isolation(audit=Audit.STRACE), "/app") == Confinement(traced=True)
        assert confinement_of(isolation(audit=Audit.STRACE), "/app", traced=False) is None


class TestObserved:
    def test_nothing_seen_claims_nothing(self) -> None:
        """S21: an absent proof is absent."""
        assert observed_of(None, SILENT) == Observed(evidence=SILENT)

    def test_rows_are_those_of_a_trial(self) -> None:
        """S21: what was refused is kept apart, and comes back from a file as it was."""
        seen = Observation(
            ("/c",), ("/c",), (Touch("open", "write", "/c/a"), Touch("enumerate", None, "/c")),
            (Touch("write", None, "/x"), Touch("open", "read", "/y")), complete=True, enforced=True,
        )  # fmt: skip
        observed = observed_of(seen, SILENT)
        rows = [row.model_dump(mode="json", exclude_unset=True) for row in observed.audit]
        assert rows == [
            {"actor": "tested-agent", "operation": "open", "access_mode": "write", "path": "/c/a"},
            {"actor": "tested-agent", "operation": "enumerate", "path": "/c"},
        ]
        assert (observed.audit_complete, observed.roots_enforced) == (True, True)
        assert observed.refused == (
            Refusal(operation=Operation.WRITE, mode=None, path="/x"),
            Refusal(operation=Operation.OPEN, mode=AccessMode.READ, path="/y"),
        )
        kept = ExitIsolation(
            evidence=None, audit_complete=True, roots_enforced=True, refused=observed.refused
        )
        assert ExitIsolation.model_validate_json(kept.model_dump_json()) == kept

    def test_why_an_audit_is_not_whole(self) -> None:
        """S21: what the record says of itself stands in the attempt's exit."""
        faults = ("a line of an unknown form", "without a sandbox the log is within reach of what is watched")
        observed = observed_of(Observation(("/c",), ("/c",), faults=faults), SILENT)
        assert (observed.audit_complete, observed.audit_faults) == (False, faults)
        kept = ExitIsolation(
            evidence=None, audit_complete=False, roots_enforced=False, audit_faults=observed.audit_faults
        )
        assert ExitIsolation.model_validate_json(kept.model_dump_json()) == kept
        older = {"evidence": None, "audit_complete": False, "roots_enforced": False}
        assert ExitIsolation.model_validate(older).audit_faults == ()

    def test_every_reason_that_a_record_gives_can_be_kept(self) -> None:
        """S21: an exit that refused one would lose its attempt."""
        source = "".join(map(inspect.getsource, (trace_log, tracing, walls)))
        reasons = re.findall(r'(?:_fault|broken)\(f?"([^"]*)"', source)
        reasons += re.findall(r'\(\*faults, "([^"]*)"\)', source)
        assert len(reasons) > 12
        told = tuple(reason.replace("{name}", "io_uring_setup") for reason in reasons)
        kept = ExitIsolation(
            evidence=None, audit_complete=False, roots_enforced=False, audit_faults=told[:MOST_AUDIT_FAULTS]
        )
        assert len(kept.audit_faults) == min(len(told), MOST_AUDIT_FAULTS)
        for reason in told:
            assert re.fullmatch(r"[a-z][a-z0-9_, -]{0,159}", reason)


class TestBreaches:
    @pytest.mark.parametrize(
        ("touch", "breach"),
        [
            (Touch("open", "read", "/read/a"), False),
            (Touch("open", "write", "/read/a"), True),
            (Touch("write", None, "/write/a"), False),
            (Touch("open", "read", "/write/a"), True),
            (Touch("read", None, "/reader"), True),
            (Touch("enumerate", None, "/read"), False),
        ],
    )
    def test_each_operation_has_its_roots(self, touch: Touch, breach: bool) -> None:  # noqa: FBT001 - expected
        """S21: as trials.md section 5 has it."""
        assert is_breach(Observation(("/read",), ("/write",), (touch,)), FS) is breach

    def test_links_count_as_they_lie(self, tmp_path: Path) -> None:
        """S21 F31: a way out of the working copy is one."""
        copy, other = tmp_path / "copy", tmp_path / "other"
        copy.mkdir()
        other.mkdir()
        (copy / "out").symlink_to(other)
        seen = Observation((str(copy),), (str(copy),), (Touch("write", None, str(copy / "out" / "x")),))
        assert is_breach(seen, FS)

    def test_nothing_seen_is_no_breach(self) -> None:
        """S21: and no proof either."""
        assert not is_breach(None, FS)


class TestSessions:
    NEW = IsolationEvidence(fresh_session=True, forked_from_existing=False, provider_persistence="unverified")

    def test_a_new_name_in_empty_folders_is_a_new_session(self) -> None:
        """S21: seen, and therefore said."""
        assert session_evidence("s-1", began_empty=True, known=set()) == self.NEW

    @pytest.mark.parametrize(
        ("name", "before"),
        [
            (None, {"began_empty": True, "known": set()}),
            ("s-1", {"began_empty": False, "known": set()}),
            ("s-1", {"began_empty": None, "known": set()}),
            ("s-1", {"began_empty": True, "known": {"s-1"}}),
        ],
        ids=["no name", "something lay there", "nobody looked", "seen before"],
    )
    def test_what_was_not_seen_is_not_said(self, name: str | None, before: dict[str, Any]) -> None:
        """S21: missing proof, and its tier waives it."""
        given = session_evidence(name, **before)
        assert given == SILENT
        assert given.given() == {"provider_persistence": "unverified"}

    def test_a_name_is_remembered(self) -> None:
        """S21: whatever became of its attempt."""
        known: set[str] = set()
        session_evidence("s-1", began_empty=False, known=known)
        assert known == {"s-1"}
