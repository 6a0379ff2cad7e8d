"""`run.py trials`: which trials a store holds, what one says, whether completed ones still hold.

Source: trials.md, sections 2, 6 and 11. Nothing here prepares, moves on or repairs a trial, or writes into
the folder it looks at: that may be a sealed bundle. So a crash file goes to the state folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import PREFIX
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.evidence.root import RootKind
from skill_effectiveness.trials.budget import remaining
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.models import DIMENSIONS, TrialKey, TrialStatus
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import BREACH, TrialStore, check_identity, read_document
from skill_effectiveness.trials.tiers import derived_tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.trials.models import TrialDocument

app = typer.Typer(
    add_completion=False, help="See the trials of a store, and check completed ones.", rich_markup_mode=None
)

UNREADABLE: Final = "unreadable"

Store = Annotated[Path, typer.Argument(help="Private root that holds trials/.", metavar="STORE")]


def store_at(path: Path) -> TrialStore:
    """The store in a private root that holds one already, to be looked at only; the caller closes it.

    Raises:
        TrialError: `trial_missing`: nothing was ever prepared there.
        EvidenceError: it is no private root, or its identity cannot be read.
    """
    # A store is made by preparing; looking into a folder must not turn it into one.
    return TrialStore.look(absolute(path), around=surroundings(), checkout=checkout(), kind=RootKind.STORE)


@app.command("list")
def list_trials(store: Store, *, as_json: AsJson = False) -> None:
    """Name every trial and where it stands. Exit 0; 2 when there is no store to read."""
    with store_at(store) as opened:
        found = {f"trial.{key.path}": _standing(opened, key) for key in tuple(opened.keys())}
    screen.results({"trials": len(found), **found}, as_json=as_json)


def _standing(store: TrialStore, key: TrialKey) -> str:
    try:
        with store.demand_trial(key) as trial:
            return str(read_document(trial).status)
    except TrialError:
        return UNREADABLE


@app.command()
def show(
    store: Store,
    trial: Annotated[str, typer.Argument(help="<task>/<arm>/sample-NNN", metavar="TRIAL")],
    *,
    as_json: AsJson = False,
) -> None:
    """Print what one trial says of itself. Exit 0; 2 when there is none, or it cannot be believed."""
    key = TrialKey.parse(trial)
    with store_at(store) as opened, opened.demand_trial(key) as folder:
        document = read_document(folder)
        check_identity(opened, key, document)
        marked = folder.exists(BREACH)
    screen.results(_values(key, document, marked=marked, as_json=as_json), as_json=as_json)


def _values(key: TrialKey, document: TrialDocument, *, marked: bool, as_json: bool) -> dict[str, object]:
    tier = derived_tier(document.registry_schema)
    cursor, isolation = document.resume_cursor, document.completion_isolation
    left = remaining(document.budget, None if cursor is None else cursor.consumed_budget)
    limitations = None if isolation is None else [str(item) for item in isolation.coverage_limitations]
    values: dict[str, object] = {
        "trial": key.path,
        "status": str(document.status),
        "state_version": document.state_version,
        "registry_schema": document.registry_schema,
        "evidence_tier": None if tier is None else str(tier),
        "provider": document.runtime.provider,
        "model": document.runtime.model,
        "stop_reason": document.stop_reason,
        "breach": marked,
        "next_run_order": None if cursor is None else cursor.next_run_order,
        "coverage_limitations": limitations if as_json or limitations is None else _joined(limitations),
        "trial_fingerprint": document.trial_fingerprint,
        "completion_binding_hash": document.completion_binding_hash,
    }
    for name in DIMENSIONS:
        amount = getattr(left, name)
        values[f"remaining.{name}"] = "unlimited" if amount is None and not as_json else amount
    return values


def _joined(words: Sequence[str]) -> str:
    return ",".join(words) or "none"


@app.command()
def verify(
    store: Store,
    trials: Annotated[
        list[str] | None, typer.Argument(help="Only these; all completed ones otherwise.", metavar="TRIAL...")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check that completed trials are still what their completion bound.

    Exit 0: all of them are. 2: one is not, or a named one has not completed; each is named on stderr.
    """
    named = [TrialKey.parse(path) for path in trials or ()]
    with store_at(store) as opened:
        keys = named or [key for key in tuple(opened.keys()) if _may_have_completed(opened, key)]
        faults = [fault for key in keys if (fault := _fault(opened, key)) is not None]
    if faults:
        raise TrialError(faults[0].code, faults[0].where, _told(faults, len(keys)), field=faults[0].field)
    screen.results({"verify_status": "pass", "verified": len(keys)}, as_json=as_json)


def _may_have_completed(store: TrialStore, key: TrialKey) -> bool:
    """Whether a trial has completed; of one that cannot be read nobody knows."""
    return _standing(store, key) in {TrialStatus.COMPLETED, UNREADABLE}


def _fault(store: TrialStore, key: TrialKey) -> TrialError | None:
    """Why a trial does not hold; said on stderr."""
    try:
        replay(store, key)
    except TrialError as error:
        screen.complain(f"{PREFIX}: {key.path}: {error.code}: {error.sentence}")
        return error
    return None


def _told(faults: Sequence[TrialError], count: int) -> str:
    of = f"{len(faults)} of {count} trials do" if count > 1 else "The trial does"
    return f"{of} not hold, each named above; keep the store as it is and prepare new samples."
