"""What to do about what stops a study: a run that is blocked, or a first question without an answer.

Source: studies.md sections 1 and 3; field-failures.md F12 to F16.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_AGAIN: Final = "it may pass by itself; wait a little"

CURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cluster_lost": "start the scheduler of the cluster again",
        "no_like_worker": "start workers with the same version of this program and of the agent's",
        "auth_unavailable": "log in with the agent's program itself",
        "launch_differs": "the agent would be started with other words, variables or files than were "
        "planned; put back what was changed (as in your configuration of its model), or plan anew",
        "exposure_assay": "an arm's agent was not shown its skill, did not do what it says, or saw more than "
        "its arm gives (assays/BATCH-open.json names the arm, docs/troubleshooting.md what to look at)",
        "model_unavailable": "the provider does not give you this model now; wait, or plan with another",
        "quota_unavailable": "wait for the quota, or buy more",
        "rate_limited": f"the provider was asked too often; {_AGAIN}",
        "server_error": f"the provider's server failed; {_AGAIN}",
        "connection_lost": f"the provider was not reached; see to the network, or {_AGAIN}",
        "unsupported_flag": "the agent's program does not know an option that it was given; install the "
        "version that docs/providers.md names",
        "invalid_schema": "the provider refused the form of the answer; choose a model that can be given one",
        "permission_denied": "the provider refused your account this; ask whoever runs it, or plan with "
        "another model",
        "study_budget": "raise it with study amend R --set /budgets/study/tokens=N --reason TEXT (or "
        "cost_units) or report what there is with study report R --abandon TEXT",
        "unstartable": "the agent's program is gone, another one, or cannot be started; restore it",
        "no_answer": "the model ended without a word; try again, or plan with another model",
        "answer_invalid": "the answer has another form than was asked for; plan with another model",
        "refused": "the model declined to say one word; plan with another model",
        "model_mismatch": "another model answered than was asked for; name it exactly as the program does",
        "stream_invalid": "the program did not speak as its adapter knows it; install the version that "
        "docs/providers.md names, and see that it works by itself",
        "limit": "the program said more than is read, or used more than it may; see that it works by itself",
        "timeout": "there was no answer in time; see to the network and the program's login, then try again",
        "cancelled": "it was stopped; try again",
    }
)
"""What to do, by how the name of the reason begins: endings, kinds of errors, and what a run itself finds."""

OTHERWISE: Final = "see that the agent's program works by itself with this model"


def cure_of(reason: str) -> str:
    """What to do about what stopped a study; the longest beginning that is known counts."""
    known = [start for start in CURES if reason.startswith(start)]
    return CURES[max(known, key=len)] if known else OTHERWISE
