"""A real agent under what its study says of isolation: seen, kept in, and marked where it was not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Sandbox, Tracer
from skill_effectiveness.providers.confinement import Observation, Touch
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.models import Operation
from tests.support.working_studies import working

if TYPE_CHECKING:
    from skill_effectiveness.providers import CallOutcome

pytestmark = pytest.mark.slow

REAL = Surroundings.real()
BOTH = Sandbox.found(REAL) is not None and Tracer.found(REAL) is not None
needed = pytest.mark.skipif(not BOTH, reason="bubblewrap and strace are needed, and leave to use them")

AS_IT_IS = "isolation: {sandbox: none, audit: none, network: provider}"
HELD = "isolation: {sandbox: bubblewrap, audit: strace, network: provider}"
AUDITED = "isolation: {sandbox: none, audit: strace, network: provider}"
WORKS = """
open("answer.sh", "w").write(os.getcwd() + "\\n" + "\\n".join(sys.argv))
for place in (home + "/secret", "/var/lib/secret"):
    try: open(place)
    except OSError: pass
answer()
"""


@needed
def test_an_attempt_that_is_kept_in_and_seen() -> None:
    """S13 S21: everything proved that can be, and the refused read is there to be read."""
    with working(WORKS, edits={AS_IT_IS: HELD}) as held:
        (held.folder / "home" / "secret").write_text("s")
        done = held.attempt("full")
        assert held.left == []
    assert done.ended is EndClass.COMPLETED
    observed = done.observed
    assert (observed.audit_complete, observed.roots_enforced) == (True, True)
    assert observed.evidence is not None
    assert observed.evidence.fresh_session is True
    assert done.files is not None
    entry = done.files.tree.find("answer.sh")
    assert entry is not None
    where, *words = done.files.blob(entry).decode().splitlines()
    assert where == "/app"
    assert "danger-full-access" in words
    assert "workspace-write" not in words
    assert any(
        row.operation is Operation.OPEN and row.path.endswith("/app/answer.sh") for row in observed.audit
    )
    # A home that lies where the session's own temporary folder is shown is not there either.
    assert "/var/lib/secret" in {one.path for one in observed.refused}
    assert not any("secret" in row.path for row in observed.audit)


def test_an_attempt_of_which_nothing_is_demanded() -> None:
    """S21: claims nothing of accesses, and of its session only what was seen."""
    with working(WORKS) as held:
        first, second = held.attempt("full"), held.attempt("full")
    assert (first.observed.audit, first.observed.audit_complete) == ((), False)
    assert not first.observed.roots_enforced
    assert first.observed.evidence is not None
    assert second.observed.evidence is not None
    # The fake names every session alike, so the second one cannot be known to be new.
    assert first.observed.evidence.fresh_session is True
    assert second.observed.evidence.given() == {"provider_persistence": "unverified"}


@pytest.mark.parametrize(
    ("body", "ended"),
    [("answer()", EndClass.COMPLETED), ("say(thread)", EndClass.CONTAMINATED)],
    ids=["completed", "crashed"],
)
def test_an_access_outside_marks_the_attempt_whatever_it_came_to(
    body: str, ended: EndClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S21: one that completed is marked by its trial, which has the audit to show for it."""
    seen = Observation(("/read",), ("/write",), (Touch("open", "read", "/etc/shadow"),))
    with working(body) as held:
        provider = type(held.agent._provider)  # the adapter, whose outcomes are changed
        whole = provider.work

        def work(*given: object, **named: object) -> CallOutcome:
            return replace(whole(*given, **named), observation=seen)  # type: ignore[arg-type]

        monkeypatch.setattr(provider, "work", work)
        done = held.attempt("full")
    assert done.ended is ended
    assert done.observed.read_roots == ("/read",)
