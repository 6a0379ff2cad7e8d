"""One engine call of a run without a repository, for tests of what a crash leaves of it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.calls import CallDesk, CallDone, CallOrder
from skill_effectiveness.acceptance.milestone.configuration import EngineProfile, read_configuration
from skill_effectiveness.acceptance.milestone.input import read_input
from skill_effectiveness.acceptance.milestone.run import CONFIGURATION, INPUT, Run, Site, facts_of
from skill_effectiveness.acceptance.milestone.store import MilestoneStore
from skill_effectiveness.acceptance.milestone.words import Purpose, Role, RowType
from tests.support.milestones import Hall, Scripted
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

DOCUMENT = {
    "plan": "p", "id": "m1", "repository": "/r", "target": "main", "base": "b", "criteria": ["One."],
}  # fmt: skip
PROFILE = EngineProfile(name="one", adapter="scripted", model="one-1", family="one")


def begin(base: Path) -> None:
    """A store with one run in it."""
    pinned = read_input(json.dumps(DOCUMENT).encode())
    checkout = base / "checkout"
    checkout.mkdir(mode=0o700)
    store = MilestoneStore.create(base / "store", surroundings(), checkout)
    with store, store.begin("r1") as folder:
        folder.keep(pinned.line, INPUT)
        settings = read_configuration(b"{}")
        folder.keep(settings.line(), CONFIGURATION)
        with folder.locked("begin"), folder.journal(create=True) as journal:
            plain = settings.model_dump(mode="json")
            members = {"configuration": plain, "input_digest": pinned.digest, "range_base": "b", "run": "r1"}
            journal.note(RowType.STARTED, **members)


@contextmanager
def opened(base: Path, fs: FileSystem | None = None) -> Iterator[Run]:
    """The run, its lock held."""
    site = Site(base / "store", surroundings(fs))
    with (
        MilestoneStore.open(site.store, site.around) as store,
        store.run("r1") as folder,
        folder.locked("test"),
        folder.journal() as journal,
    ):
        yield Run(site, folder, journal, facts_of(folder, journal.rows))


def ask(run: Run, folder: Path, during: Callable[[], object] = bool) -> CallDone:
    """Make one call; the engine runs `during` and answers."""

    def reply(_asked: object) -> dict[str, Any]:
        during()
        return {"answer": "It is in a.py."}

    order = CallOrder(
        role=Role.EXPLORER, purpose=Purpose.EVIDENCE, profile=PROFILE,
        provider=Scripted(Hall({"evidence": [reply]}), PROFILE), prompt="A review lacks evidence:\nB-1\n",
        folder=folder, schema={"type": "object"},
    )  # fmt: skip
    (done,) = CallDesk(run).ask([order])
    return done


def judge(base: Path, promised: list[object]) -> None:
    """What a crash left: nothing promised is gone, nothing is taken for done, and the call can be made."""
    with opened(base) as run:
        prepared, completed = run.rows.all(RowType.PREPARED), run.rows.all(RowType.COMPLETED)
        assert prepared or "asked" not in promised
        assert completed or "completed" not in promised
        for row in prepared:
            assert run.folder.read("calls", row.body["call"], "packet.md") is not None
        for row in completed:
            assert run.folder.read("calls", row.body["call"], "answer.txt") is not None
        cut_off = [row.body["call"] for row in run.rows.open_calls()]
        assert len(cut_off) == len(prepared) - len(completed)
        done = ask(run, base)
        again = run.rows.all(RowType.PREPARED)[-1].body
        assert [again["repeats"]] == cut_off if cut_off else "repeats" not in again
        assert run.rows.completed(done.call) is not None
        assert run.rows.open_calls() == []
