"""`run.py provider-probe`: whether one session of a provider names what another was told (providers.md 6).

Both outcomes are exit 0 and neither is a pass: the matrix stays `causal_core_unavailable`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.calibration.reviewer import ADAPTERS
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.examination import (
    ClaudePath,
    CodexPath,
    KimiPath,
    OpencodePath,
    ProviderName,
    matching_program,
)
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.provider_capability import IsolationOutcome
from skill_effectiveness.protocol.words import TaskFamily  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.providers.canary import ProbeCode, ProbeRefused
from skill_effectiveness.providers.probe import CLAIM, RESULT, SESSIONS, TIMEOUT_SECONDS, ProbeOrder, probe

if TYPE_CHECKING:
    from skill_effectiveness.protocol.provider_capability import ProviderCapabilityResult
    from skill_effectiveness.providers import Provider

_TOLD: Final = {
    IsolationOutcome.CONTAMINATED: "The second session named a canary it was never told: sessions of this "
    "provider are not isolated.",
    IsolationOutcome.UNRESOLVED_ISOLATION_THREAT: "The second session named no canary. That proves no "
    "isolation; the threat stays unresolved.",
}


def provider_probe(  # one parameter per option is what a command line is
    *,
    provider: Annotated[ProviderName, typer.Option(help="Whose command line; simulated has none.")],
    model: Annotated[str, typer.Option(help="The exact model, as the program names it.")],
    task_family: Annotated[
        TaskFamily, typer.Option(help="The task family whose row of the matrix is written.")
    ],
    out: Annotated[Path, typer.Option(help="New private folder, outside any checkout; one probe each.")],
    codex_path: CodexPath = None,
    claude_path: ClaudePath = None,
    opencode_path: OpencodePath = None,
    kimi_path: KimiPath = None,
    timeout_seconds: Annotated[
        int,
        typer.Option(min=TIMEOUT_SECONDS[0], max=TIMEOUT_SECONDS[-1], help="Longest time for each session."),
    ] = 220,
    as_json: AsJson = False,
) -> None:
    """Tell one session a canary and ask another for it; two model calls, nothing else is sent.

    Exit 0: probed, whatever was seen; neither outcome is a proof of isolation. 2: refused, or no report. 130:
    stopped by Ctrl-C. Once a session was asked, the folder takes no other probe.
    """
    around = surroundings()
    if provider is ProviderName.SIMULATED:
        sentence = "A simulated reviewer has no sessions, so it cannot be probed; name a real provider."
        raise ProbeRefused(ProbeCode.PROVIDER_NOT_PROBED, sentence)
    programs = {"codex": codex_path, "claude": claude_path, "opencode": opencode_path, "kimi": kimi_path}
    program = matching_program(provider, programs, {})
    # Before the folder is made: whoever names a program that is not there finds nothing to clean up.
    adapter: Provider = ADAPTERS[provider].at(absolute(program or provider), around=around)
    bound = adapter.for_model(model, around)
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
        told_how_to_go_on(screen.complain, partial(_going_on, root)),
    ):
        found = probe(ProbeOrder(model, task_family, timeout_seconds), bound, root, told=_tell)
    screen.complain(_TOLD[found.isolation_outcome])
    screen.results(_values(found), as_json=as_json)


def _going_on(root: PrivateRoot) -> str:
    """What to do after a signal."""
    try:
        claimed = root.exists(CLAIM)
    except EvidenceError:
        claimed = True  # a new folder is right in either case
    return "the folder is spent, so probe again in a new one." if claimed else "give the same command again."


def _tell(number: int) -> None:
    screen.complain(f"Session {number} of {SESSIONS} is asked.")


def _values(found: ProviderCapabilityResult) -> dict[str, object]:
    """The five result lines."""
    return {
        "execution_status": found.execution_status,
        "capability_matrix_status": str(found.capability_matrix.status),
        "isolation_outcome": str(found.isolation_outcome),
        "cross_session_recall_detected": found.cross_trial_canary.cross_session_recall_detected,
        "result": RESULT,
    }
