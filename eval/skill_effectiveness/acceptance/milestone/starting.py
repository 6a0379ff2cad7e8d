"""`milestone start`: a new run, with what earlier runs of the same plan prove and left open.

Source: milestone.md, sections 2 to 4. Nothing is written before everything that could refuse has been looked
at; the journals of earlier runs are only read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.auditing import audit_one
from skill_effectiveness.acceptance.milestone.configuration import SHIPPED, read_configuration
from skill_effectiveness.acceptance.milestone.criteria import sort_criteria
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError, StopCode
from skill_effectiveness.acceptance.milestone.input import PinnedInput, read_input
from skill_effectiveness.acceptance.milestone.repository import Repository
from skill_effectiveness.acceptance.milestone.reuse import (
    Landing,
    NotProvenError,
    Reused,
    Source,
    judge_reuse,
)
from skill_effectiveness.acceptance.milestone.run import CONFIGURATION, INPUT, RunFacts, facts_of
from skill_effectiveness.acceptance.milestone.store import JOURNAL, MilestoneStore
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.words import RowType, Word
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.configuration import Configuration
    from skill_effectiveness.acceptance.milestone.input import PlannedNode
    from skill_effectiveness.acceptance.milestone.rows import JournalRow, RunRows
    from skill_effectiveness.acceptance.milestone.run import Site
    from skill_effectiveness.acceptance.milestone.store import RunFolder

_NAME_BYTES = 6


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What is to be started.

    Attributes:
        data: bytes of `milestone.json`.
        configuration: bytes of a configuration; `None`: the shipped one.
        run: the run's name; `None`: one is drawn.
    """

    data: bytes
    configuration: bytes | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started.

    Attributes:
        run: its name.
        body: of its first row.
        reused: the nodes that were taken over.
    """

    run: str
    body: dict[str, Any]
    reused: tuple[Reused, ...]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """An earlier run of the same plan in the same repository."""

    facts: RunFacts
    rows: RunRows

    @property
    def number(self) -> int:
        return int(self.facts.started.body.get("number", 0))


def start(site: Site, order: StartOrder) -> Started:
    """Begin a run.

    Raises:
        MilestoneError: `input_invalid`, `configuration_invalid`, `store_unsafe`, `run_exists`,
            `reuse_refused`, `prior_evidence_unreadable`: no run was created; `row_not_written`.
    """
    pinned = read_input(order.data)
    settings = SHIPPED if order.configuration is None else read_configuration(order.configuration)
    repository = Repository(Path(pinned.value.repository), site.around)
    base = _resolve(pinned, repository)
    with (
        MilestoneStore.create(site.store, site.around, Path(pinned.value.repository)) as store,
        store.locked("start a run"),
    ):
        identity = str(repository.identity)
        earlier, highest = _earlier_runs(store, pinned, identity)
        reused = _reused(pinned, earlier, repository)
        body = {
            "base": base,
            "configuration": settings.model_dump(mode="json"),
            "deferred": list(sort_criteria(pinned.value).deferred_ids),
            "imported": False,
            "input_digest": pinned.digest,
            "milestone": pinned.value.id,
            "number": highest + 1,
            "plan": pinned.value.plan,
            "prior": _prior(earlier, pinned.value.id),
            "range_base": _range_base(base, reused, repository),
            "repository": identity,
            "resumed": False,
            "warnings": [asdict(warning) for warning in sort_criteria(pinned.value).warnings],
        }
        name = order.run or f"run-{site.around.entropy(_NAME_BYTES).hex()}"
        _write(store, name, pinned, settings, body=body, reused=reused)
    return Started(name, body, reused)


def _write(
    store: MilestoneStore,
    name: str,
    pinned: PinnedInput,
    settings: Configuration,
    *,
    body: dict[str, Any],
    reused: Sequence[Reused],
) -> None:
    with store.begin(name) as folder, folder.locked("start the run"):
        folder.keep(pinned.line, INPUT)
        folder.keep(settings.line(), CONFIGURATION)
        with folder.journal(create=True) as journal:
            journal.note(RowType.STARTED, run=name, **body)
            for each in reused:
                journal.note(RowType.REUSE, **each.plain())


def _resolve(pinned: PinnedInput, repository: Repository) -> str:
    """The base commit, once branch and bases are there."""
    given = pinned.value
    if repository.identity is None:
        raise _invalid("/repository", "is no git repository")
    tip, base = repository.tip(given.target), repository.git.commit(given.base)
    if tip is None:
        raise _invalid("/target", "is no local branch of the repository")
    if base is None or not repository.contains(tip, base):
        raise _invalid("/base", "is no commit that the target contains")
    for number, node in enumerate(given.nodes):
        if repository.git.commit(node.base) is None:
            raise _invalid(f"/nodes/{number}/base", "is no commit of the repository")
    return base


def _invalid(pointer: str, reason: str) -> MilestoneError:
    return MilestoneError(MilestoneCode.INPUT_INVALID, f"{pointer} {reason}")


# Earlier runs.


def _earlier_runs(store: MilestoneStore, pinned: PinnedInput, identity: str) -> tuple[list[_Earlier], int]:
    """The earlier runs of this plan and repository, oldest first, and the highest number of any run."""
    found: list[_Earlier] = []
    highest = 0
    for name in store.names():
        with store.run(name) as folder:
            if not folder.root.exists(JOURNAL):
                continue  # a start that was cut off before it was one
            try:
                rows = folder.rows()
                facts = facts_of(folder, rows)
            except MilestoneError as error:
                if error.code is MilestoneCode.ROW_REQUIRED or _is_another(folder, pinned):
                    continue
                raise _unreadable(name) from error
        highest = max(highest, int(facts.started.body.get("number", 0)))
        same = (facts.given.plan, facts.started.body.get("repository")) == (pinned.value.plan, identity)
        if same:
            found.append(_Earlier(facts, rows))
    return sorted(found, key=lambda each: each.number), highest


def _is_another(folder: RunFolder, pinned: PinnedInput) -> bool:
    """Whether a run that cannot be read is certainly about another plan or repository."""
    data = folder.read(INPUT)
    try:
        given = None if data is None else read_input(data).value
    except MilestoneError:
        return False
    ours = (pinned.value.plan, pinned.value.repository)
    return given is not None and (given.plan, given.repository) != ours


def _unreadable(run: str) -> MilestoneError:
    told = "An earlier run cannot be read, so what it left open is unknown; look at it before you start."
    return MilestoneError(MilestoneCode.PRIOR_UNREADABLE, run, told)


def _prior(earlier: Sequence[_Earlier], milestone: str) -> dict[str, Any] | None:
    """The verdict that the latest earlier run left pending for this milestone.

    A run that judged nothing itself passes on what it was started with.
    """
    for each in reversed(earlier):
        if each.facts.given.id != milestone:
            return None
        if each.rows.newest(RowType.CROSSCHECK) is None:
            if each.facts.started.body.get("prior") is not None:
                return _checked(each, each.facts.started.body["prior"])
            continue
        return _pending(each)
    return None


def _pending(earlier: _Earlier) -> dict[str, Any] | None:
    finished = earlier.rows.finished
    if finished is None or finished.body.get("code") != StopCode.CROSSCHECK_PENDING:
        return None
    escalation = earlier.rows.newest(RowType.ESCALATION, id=finished.body.get("escalation"))
    verdict = None if escalation is None else escalation.body.get("verdict")
    return _checked(earlier, {"run": earlier.facts.run, "verdict": verdict})


def _checked(earlier: _Earlier, prior: dict[str, Any]) -> dict[str, Any]:
    """A pending verdict, once it is one, of this milestone, and the one that was recorded as V."""
    try:
        verdict = validate(Verdict, prior.get("verdict"))
    except EvidenceError as error:
        raise _unreadable(earlier.facts.run) from error
    own = prior.get("run") == earlier.facts.run
    recorded = not own or earlier.rows.newest(RowType.CROSSCHECK, digest=verdict.digest) is not None
    fits = (verdict.milestone, verdict.plan) == (earlier.facts.given.id, earlier.facts.given.plan)
    if not recorded or not fits or verdict.word is not Word.NEEDS_CHANGES:
        raise _unreadable(earlier.facts.run)
    return {"run": prior.get("run"), "verdict": verdict.plain()}


# Reuse.


def _reused(pinned: PinnedInput, earlier: Sequence[_Earlier], repository: Repository) -> tuple[Reused, ...]:
    reused = []
    tip = repository.tip(pinned.value.target)
    for node in pinned.value.nodes:
        found = _integration(node, earlier)
        if found is None:
            continue
        source, integration = found
        try:
            landing = _landing(integration, repository, tip)
            proof = _source(source, node, integration, landing)
            reused.append(judge_reuse(node, pinned.value, pinned.digest, proof))
        except NotProvenError as error:
            told = f"The node is integrated and not proven: {error}. Look at the run {source.facts.run}."
            raise MilestoneError(MilestoneCode.REUSE_REFUSED, node.id, told) from None
    return tuple(reused)


def _integration(node: PlannedNode, earlier: Sequence[_Earlier]) -> tuple[_Earlier, JournalRow] | None:
    """The newest run that integrated a node itself, and its integration row."""
    for each in reversed(earlier):
        row = each.rows.newest(RowType.INTEGRATION, node=node.id)
        if row is not None:
            return each, row
    return None


def _landing(integration: JournalRow, repository: Repository, tip: str | None) -> Landing:
    """What the repository says about an integration now."""
    head, batch = str(integration.body.get("head")), str(integration.body.get("batch"))
    return Landing(
        head_tree=repository.tree(head),
        head_in_batch=bool(repository.contains(batch, head)),
        batch_in_target=tip is not None and bool(repository.contains(tip, batch)),
    )


def _source(earlier: _Earlier, node: PlannedNode, integration: JournalRow, landing: Landing) -> Source:
    named = integration.body.get("acceptance")
    acceptance = earlier.rows.newest(RowType.ACCEPTANCE, node=node.id, call=named)
    given = earlier.facts.given
    body = None if acceptance is None else acceptance.body
    return Source(
        run=earlier.facts.run,
        given=given,
        input_digest=earlier.facts.pinned.digest,
        acceptance=body,
        integration=integration.body,
        audit=audit_one(body or {}, earlier.rows, given, None).word,
        landing=landing,
    )


def _range_base(base: str, reused: Sequence[Reused], repository: Repository) -> str:
    """The base of gate, crosscheck and close: the first one that the milestone was judged under."""
    inherited = [repository.git.commit(each.base) or each.base for each in reused]
    found = repository.merge_base(base, *inherited)
    if found is None:
        raise _invalid("/base", "has no commit in common with the base of a reused node")
    return found
