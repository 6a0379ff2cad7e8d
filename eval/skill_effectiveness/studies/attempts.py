"""One attempt on disk: carried out, published so that it is there whole or not at all, and read again.

```
attempts/<slot>/a<M>/    collected/…  tree.json  oddities.jsonl  stream.jsonl  stderr.bin  exit.json
```

The folder appears at once, with `exit.json` in it; in one that was there before, `exit.json` is written last.
Whoever finds it has the whole attempt and pays nobody a second time; a folder without it, or one with a name
of its making (`.a<M>.<16 hex>.new`), is what a killed run left and stays as evidence.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence import writes
from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.folders import make_durable, publish_tree
from skill_effectiveness.evidence.journal_rows import row_time
from skill_effectiveness.execution.trace_log import MOST_REFUSED
from skill_effectiveness.studies.attempt_records import (
    EXIT_CONTRACT,
    MOST_AUDIT_FAULTS,
    AttemptExit,
    ExitIsolation,
    exit_line,
    is_of,
    read_exit,
)
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree, read_listing
from skill_effectiveness.studies.spending import over_limit
from skill_effectiveness.studies.words import EndClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import Budgets
    from skill_effectiveness.studies.agent import AttemptResult
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.file_trees import Oddity
    from skill_effectiveness.studies.state import AttemptState
    from skill_effectiveness.trials.models import ConsumedBudget

ATTEMPTS: Final = "attempts"
COLLECTED: Final = "collected"
EXIT: Final = "exit.json"
TREE: Final = "tree.json"
ODDITIES: Final = "oddities.jsonl"
STREAM: Final = "stream.jsonl"
STDERR: Final = "stderr.bin"
LARGEST_RESULT: Final = 268_435_456
"""Bytes that an attempt may leave in all."""

RESULT_SIZE: Final = "result_size"


def judged(
    result: AttemptResult, model: str, budget: Budgets, used: ConsumedBudget
) -> tuple[EndClass, str | None]:
    """Class and detail of an attempt once the coordinator has looked at it.

    A model that is not the one asked for makes it void, and more used than the trial may use, or a result
    beyond all size, makes it `limit`; what an isolation showed comes first.

    Args:
        result: what the agent's driver says.
        model: that was asked for.
        budget: of the trial.
        used: by all attempts of the trial, this one included.
    """
    if result.ended is EndClass.CONTAMINATED:
        return result.ended, result.detail
    if result.model_reported not in {None, model}:
        return EndClass.VOID, result.detail if result.ended is EndClass.VOID else "model_differs"
    if _size(result) > LARGEST_RESULT:
        return EndClass.LIMIT, RESULT_SIZE
    over = over_limit(budget, used)
    if over is not None and result.ended in {EndClass.COMPLETED, EndClass.NO_ANSWER, EndClass.REFUSED}:
        return EndClass.LIMIT, over
    return result.ended, result.detail


def _size(result: AttemptResult) -> int:
    files = () if result.files is None else result.files.tree.files
    return sum(entry.size for entry in files) + len(result.stream or b"") + len(result.stderr or b"")


class AttemptFolders:
    """The folders of attempts below one study; safe to be used by several threads, each with its own slots.

    Args:
        root: of the study; stays the caller's.
    """

    def __init__(self, root: PrivateRoot) -> None:
        self._folder = root.child(ATTEMPTS, create=True)

    def close(self) -> None:
        """Close the folder; closing again does nothing."""
        self._folder.close()

    def place(self, slot: int, attempt: int) -> str:
        """The absolute path of an attempt's folder, for audits and roots of agents."""
        return str(self._folder.path / str(slot) / f"a{attempt}")

    def publish(
        self,
        order: AttemptOrder,
        result: AttemptResult,
        judged_as: tuple[EndClass, str | None],
        times: tuple[datetime, datetime],
    ) -> AttemptExit:
        """Write everything of an attempt, so that its exit is there with all of it or not at all.

        Args:
            order: what it was given.
            result: what came of it.
            judged_as: class and detail.
            times: its start and its end.

        Raises:
            RootError, FileError: writing failed; without `exit.json` the attempt is not over.
        """
        ended, detail = judged_as
        files = None if detail == RESULT_SIZE else result.files
        tree = None if files is None else files.tree
        document = AttemptExit(
            schema_version=1,
            artifact_contract=EXIT_CONTRACT,
            slot=order.slot,
            attempt=order.attempt,
            order_digest=order.digest,
            **{"class": ended},
            detail=detail,
            model_requested=str(order.driver["model"]),
            model_reported=result.model_reported,
            tree=None if tree is None else tree.digest,
            usage=result.usage,
            isolation=ExitIsolation(
                evidence=result.observed.evidence,
                audit_complete=result.observed.audit_complete,
                roots_enforced=result.observed.roots_enforced,
                read_roots=result.observed.read_roots,
                write_roots=result.observed.write_roots,
                refused=result.observed.refused[:MOST_REFUSED],
                audit_faults=result.observed.audit_faults[:MOST_AUDIT_FAULTS],
            ),
            started_at=row_time(times[0]),
            ended_at=row_time(times[1]),
        )
        contents = _contents(result, files, exit_line(document), whole=detail != RESULT_SIZE)
        folders = () if files is None else (COLLECTED,)
        with self._slot(order.slot) as slot:
            name = f"a{order.attempt}"
            if slot.exists(name):
                with slot.child(name) as attempt:
                    _complete(attempt, contents, folders)
                make_durable(slot)
            else:
                publish_tree(slot, name, files=contents, folders=folders)
        return document

    def _slot(self, slot: int) -> PrivateRoot:
        """The folder of a slot, made if missing.

        Numbers never differ in case alone, so the look at all other slots that a new name takes is left out:
        it would make each of many slots dearer than the one before.
        """
        made = self._folder.folder
        name = str(slot)
        with reported(made.where(name)):
            if made.status(name) is None:
                writes.make_folder(made.fs, made.fd, name)
            else:
                # Whoever made it may have died before it was durable.
                writes.sync_folder(made.fs, made.fd)
        return self._folder.child(name)

    def found(self, slot: int, attempt: AttemptState) -> AttemptExit | None:
        """The exit of an attempt that the journal started; None when it never came to its end.

        It is durable then: whoever put it there may have died before making it so, and the caller is about to
        answer for it.

        Raises:
            StudyError: `plan_changed`: there is one, of another attempt or of no form that is written here.
            RootError, FileError: it cannot be read, or not made durable.
        """
        document = self.exit_of(slot, attempt)
        if document is not None:
            make_durable(self._folder)
            with self._folder.child(str(slot)) as outer, outer.child(f"a{attempt.number}") as inner:
                make_durable(outer)
                make_durable(inner)
        return document

    def exit_of(self, slot: int, attempt: AttemptState) -> AttemptExit | None:
        """What `found` answers, for a caller that answers for nothing new; errors as there."""
        try:
            with self._folder.child(str(slot), f"a{attempt.number}") as folder:
                data = folder.read(EXIT)
        except (RootError, FileError) as error:
            if error.code in {RootCode.ROOT_MISSING, FileCode.MISSING}:
                return None
            raise
        try:
            document = read_exit(data)
        except EvidenceError as error:
            raise _foreign(slot) from error
        if not is_of(document, slot, attempt):
            raise _foreign(slot)
        return document

    def files(self, slot: int, attempt: AttemptState) -> HeldTree:
        """What an attempt left, held against the digest in the journal.

        Raises:
            StudyError: `plan_changed`: it is not what was collected.
            RootError, FileError: it cannot be read.
        """
        with self._folder.child(str(slot), f"a{attempt.number}") as folder:
            listing = folder.read(TREE)
            if digest_bytes(listing) != attempt.tree:
                raise _foreign(slot)
            tree, held = read_listing(listing), {}
            for parents, entries in groupby(tree.files, key=lambda entry: entry.path.split("/")[:-1]):
                with folder.child(COLLECTED, *parents) as inner:
                    for entry in entries:
                        held[entry.path] = inner.read(entry.path.rpartition("/")[2])
                        if digest_bytes(held[entry.path]) != entry.sha256:
                            raise _foreign(slot)
        return HeldTree(tree, lambda entry: held[entry.path])


def _contents(
    result: AttemptResult, files: HeldTree | None, exit_data: bytes, *, whole: bool
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of everything in an attempt's folder, its exit last.

    Which of the collected files are links, and which may be executed, the list says; all lie here privately.
    """
    if files is not None:
        for entry in files.tree.files:
            yield f"{COLLECTED}/{entry.path}", files.blob(entry)
        yield TREE, files.tree.listing
    if result.oddities:
        yield ODDITIES, _oddity_lines(result.oddities)
    if whole:
        for name, data in ((STREAM, result.stream), (STDERR, result.stderr)):
            if data is not None:
                yield name, data
    yield EXIT, exit_data


def _complete(attempt: PrivateRoot, contents: Iterable[tuple[str, bytes]], folders: Iterable[str]) -> None:
    """Add what is missing in a folder that was there before; what is there has to be the same."""
    for name in folders:
        attempt.child(name, create=True).close()
    for path, data in contents:
        *parents, name = path.split("/")
        if parents:
            with attempt.child(*parents, create=True) as inner:
                inner.publish(name, data)
        else:
            attempt.publish(name, data)


def _oddity_lines(oddities: Sequence[Oddity]) -> bytes:
    return b"".join(dump_line({"path": found.path, "kind": str(found.kind)}) for found in oddities)


def _foreign(slot: int) -> StudyError:
    sentence = "what an attempt left is not what the journal says; restore the study's folder."
    return StudyError(StudyCode.PLAN_CHANGED, f"{ATTEMPTS}/{slot}", sentence)
