"""An open run: its folder and journal, what it is about, and the repository it works on.

Source: milestone.md, section 3.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.acceptance.milestone.configuration import Configuration, read_configuration
from skill_effectiveness.acceptance.milestone.criteria import Criteria, sort_criteria
from skill_effectiveness.acceptance.milestone.engines import Binder, bind_registered
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.input import MilestoneInput, PinnedInput, read_input
from skill_effectiveness.acceptance.milestone.repository import Repository
from skill_effectiveness.acceptance.milestone.store import MilestoneStore, RunFolder, RunJournal
from skill_effectiveness.acceptance.milestone.words import RowType
from skill_effectiveness.execution import never
from skill_effectiveness.execution.worktree import sweep_worktrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.acceptance.milestone.rows import JournalRow, RunRows
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers.calls import Cancelled

INPUT: Final = "milestone.json"
CONFIGURATION: Final = "configuration.json"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a verb works.

    Attributes:
        store: the private store, absolute.
        around: the surroundings.
        binder: how a profile becomes an adapter.
        cancelled: whether engines are to stop.
    """

    store: Path
    around: Surroundings
    binder: Binder = bind_registered
    cancelled: Cancelled = never


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run was started with.

    Attributes:
        run: its name.
        pinned: the input.
        configuration: likewise.
        started: the first row.
    """

    run: str
    pinned: PinnedInput
    configuration: Configuration
    started: JournalRow

    @property
    def given(self) -> MilestoneInput:
        """What the input says."""
        return self.pinned.value

    @property
    def criteria(self) -> Criteria:
        """The criteria, sorted."""
        return sort_criteria(self.given)

    @property
    def base(self) -> str:
        """The base of the range that gate, crosscheck and close use."""
        return str(self.started.body["range_base"])

    @property
    def required(self) -> tuple[tuple[str, ...], ...]:
        """The commands that are verified."""
        return self.given.required or (self.configuration.local_ci,)


class Run:
    """A run whose lock this process holds."""

    def __init__(self, site: Site, folder: RunFolder, journal: RunJournal, facts: RunFacts) -> None:
        self.site: Final = site
        self.folder: Final = folder
        self.journal: Final = journal
        self.facts: Final = facts
        self.repository: Final = Repository(Path(facts.given.repository), site.around)

    @property
    def rows(self) -> RunRows:
        """Its rows."""
        return self.journal.rows

    @property
    def milestone(self) -> str:
        """The milestone's id."""
        return self.facts.given.id

    def note(self, kind: RowType, **body: Any) -> JournalRow:  # noqa: ANN401 - plain JSON values
        """Append one row."""
        return self.journal.note(kind, **body)


def facts_of(folder: RunFolder, rows: RunRows) -> RunFacts:
    """What a run was started with, as its folder and its first row say.

    Raises:
        MilestoneError: `row_required`: it has no first row; `pinned_input_changed`.
    """
    started = next((row for row in rows if row.type == RowType.STARTED), None)
    if started is None:
        raise required(RowType.STARTED)
    data, settings = folder.read(INPUT), folder.read(CONFIGURATION)
    if data is None or settings is None:
        raise _changed()
    pinned, configuration = read_input(data), read_configuration(settings)
    if pinned.digest != started.body.get("input_digest"):
        raise _changed()
    if configuration.model_dump(mode="json") != started.body.get("configuration"):
        raise _changed()
    return RunFacts(folder.run, pinned, configuration, started)


def required(kind: RowType) -> MilestoneError:
    """The refusal of a verb that comes before the row it needs."""
    return MilestoneError(MilestoneCode.ROW_REQUIRED, kind.value, "Nothing ran; see `milestone status`.")


def _changed() -> MilestoneError:
    told = "What the run keeps of its input is not what it was started with; start a new run."
    return MilestoneError(MilestoneCode.PINNED_INPUT_CHANGED, "", told)


@contextmanager
def open_run(site: Site, name: str, action: str) -> Iterator[Run]:
    """A run, its lock held until the end of the block.

    Raises:
        MilestoneError: `store_unsafe`, `run_unknown`, `run_locked`, `journal_broken`, and those of
            `facts_of`.
    """
    with MilestoneStore.open(site.store, site.around) as store, store.run(name) as folder:
        # Looked at first: what is broken stays as it is, and no lock is needed to say so.
        folder.rows()
        with folder.locked(action), folder.journal() as journal:
            run = Run(site, folder, journal, facts_of(folder, journal.rows))
            # What a killed verb left of scratch worktrees.
            sweep_worktrees(run.repository.git, site.around)
            yield run


@contextmanager
def look_at(site: Site, name: str) -> Iterator[tuple[RunFolder, RunRows]]:
    """A run as it lies there; no lock is taken and nothing is written.

    Raises:
        MilestoneError: as `open_run`, without `run_locked`.
    """
    with MilestoneStore.open(site.store, site.around) as store, store.run(name) as folder:
        yield folder, folder.rows()
