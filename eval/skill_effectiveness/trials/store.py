"""Where trials lie and under which locks they change (trials.md, section 2).

```
<root>/root.json    <root>/trials/<task>/<arm>/.sample-NNN.prepare.lock
<root>/trials/<task>/<arm>/sample-NNN/    .trial.lock  trial.json  events.jsonl  access-audit.jsonl
    outcome/result.json  grading/grade.json  grading/grade-replay.json  breach.json
```

The normal way: `with TrialStore.open(path, around=…, checkout=…) as store: prepare(store, order)`.
Whoever only reads takes `TrialStore.look(path, …)`, which writes nothing: what is sealed stays sealed.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import (
    DocumentError,
    EvidenceError,
    FileCode,
    FileError,
    RootCode,
    RootError,
    StrictError,
)
from skill_effectiveness.evidence.identity import FILE, RootDocument
from skill_effectiveness.evidence.lock import DEFAULT_WAIT, Lock, LockLevel
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.gates import load_gates
from skill_effectiveness.protocol.registry_plan import parse_plan
from skill_effectiveness.trials.binding import location_hash
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import Protected
from skill_effectiveness.trials.models import (
    TrialDocument,
    TrialKey,
    document_line,
    misfit,
    sample_index,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from skill_effectiveness.evidence.lock import Held
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan

TRIALS: Final = "trials"
TRIAL: Final = "trial.json"
TRIAL_LOCK: Final = ".trial.lock"
BREACH: Final = "breach.json"
OUTCOME_FOLDER: Final = "outcome"

_KNOWN: Final = 64
"""So many documents of the last steps are kept; the trials that run at once are fewer."""
_NO_STORE: Final = "This folder is no store of trials; name the root under which trials were prepared."
_NO_TRIAL: Final = "There is no trial {path} in this store; prepare it first."


class TrialStore:
    """A private root with trials in it.

    Made by `open` and `create`, or over a root that is open already. Its identity is read, or made, at that
    moment: before any lock of a trial is taken. Made by `look`, it never writes.

    Args:
        root: the open root; closed with the store.
        gates: the gates that say which tiers are in force; the frozen ones of this installation if absent.
        looking: read the identity as it is and write nothing, now or later.
    """

    def __init__(self, root: PrivateRoot, gates: PilotGates | None = None, *, looking: bool = False) -> None:
        self._root = root
        self._given_gates = gates
        self._looking = looking
        self._identity = _seen_identity(root) if looking else _identity(root)
        self._known: OrderedDict[bytes, TrialDocument] = OrderedDict()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        around: Surroundings,
        checkout: Path | None,
        kind: RootKind = RootKind.OUT,
        gates: PilotGates | None = None,
    ) -> Self:
        """Open the store in a root that exists.

        Raises:
            RootError: as `PrivateRoot.open`.
            EvidenceError: `root.json` cannot be read or written.
        """
        return cls._over(PrivateRoot.open(path, kind, around=around, checkout=checkout), gates)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        around: Surroundings,
        checkout: Path | None,
        kind: RootKind = RootKind.OUT,
        gates: PilotGates | None = None,
    ) -> Self:
        """Open the store in a root that is made if missing; errors as `open`."""
        return cls._over(PrivateRoot.create(path, kind, around=around, checkout=checkout), gates)

    @classmethod
    def look(
        cls,
        path: str | Path,
        *,
        around: Surroundings,
        checkout: Path | None,
        kind: RootKind = RootKind.OUT,
        gates: PilotGates | None = None,
    ) -> Self:
        """Look into a store without writing: no lock, and a new place of it is not noted.

        Raises:
            TrialError: `trial_missing`: nothing was ever prepared there.
            RootError: as `PrivateRoot.open`.
            EvidenceError: `root.json` cannot be read.
        """
        return cls._over(PrivateRoot.open(path, kind, around=around, checkout=checkout), gates, looking=True)

    @classmethod
    def _over(cls, root: PrivateRoot, gates: PilotGates | None, *, looking: bool = False) -> Self:
        try:
            return cls(root, gates, looking=looking)
        except BaseException:
            root.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the root."""
        self._root.close()

    @property
    def root(self) -> PrivateRoot:
        """The private root."""
        return self._root

    @property
    def around(self) -> Surroundings:
        """The surroundings of the root."""
        return self._root.around

    @property
    def root_id(self) -> str:
        """The identity of the store, which a move or a copy keeps."""
        return self._identity.root_id

    @property
    def located_at(self) -> tuple[str, ...]:
        """Every absolute path that the store was used at, this one last or among them, noted or not."""
        return tuple(dict.fromkeys((*self._identity.located_at, str(self._root.path))))

    @cached_property
    def gates(self) -> PilotGates:
        """The gates that say which tiers are in force."""
        return self._given_gates or load_gates(self.around.fs)

    def location(self, key: TrialKey) -> str:
        """The location hash of a trial prepared here."""
        return location_hash(self.root_id, key.path)

    def trial_place(self, key: TrialKey) -> Path:
        """The absolute path of a trial's folder, for digests and for roots of agents."""
        return self._root.path / TRIALS / key.path

    def is_location(self, key: TrialKey, location: str) -> bool:
        """Whether a location hash is true of a trial now: by identity, or by its present absolute path."""
        return location == self.location(key) or location == digest_text(str(self.trial_place(key)))

    def protected(self, key: TrialKey) -> Protected:
        """What no root of the trial's agent may reach."""
        return Protected(str(self.trial_place(key)), str(self._root.path), self._homes)

    @cached_property
    def _homes(self) -> tuple[str, ...]:
        """The home folders of the user, each once."""
        homes = (self.around.environ.get("HOME", ""), self.around.fs.user_home())
        known = (home.rstrip("/") for home in homes if home.startswith("/") and home != "/")
        return tuple(dict.fromkeys(known))

    # Finding trials.

    def trial(self, key: TrialKey, arm: PrivateRoot | None = None) -> PrivateRoot | None:
        """The folder of a trial, open; `None` when there is none.

        Args:
            key: which trial.
            arm: the open folder of its arm, where the caller has it.

        Raises:
            RootError: something on the way is no private folder of ours.
            FileError: the code of a kernel error.
        """
        try:
            if arm is not None:
                return arm.child(key.sample_name)
            return self._root.child(TRIALS, key.task_id, key.arm_id, key.sample_name)
        except RootError as error:
            if error.code is RootCode.ROOT_MISSING:
                return None
            raise

    def demand_trial(self, key: TrialKey) -> PrivateRoot:
        """The folder of a trial that must be there.

        Raises:
            TrialError: `trial_missing`.
            RootError, FileError: as `trial`.
        """
        trial = self.trial(key)
        if trial is None:
            raise TrialError(TrialCode.TRIAL_MISSING, key.path, _NO_TRIAL.format(path=key.path))
        return trial

    def keys(self) -> Iterator[TrialKey]:
        """Every trial that is there, in the order of tasks, arms and samples; anything else is passed over.

        Raises:
            RootError, FileError: as `trial`.
        """
        for task_id in self._folders():
            for arm_id in self._folders(task_id):
                with self._root.child(TRIALS, task_id, arm_id) as arm:
                    indices = sorted(index for name in arm.names() if (index := sample_index(name)))
                for index in indices:
                    yield TrialKey(task_id, arm_id, index)

    def _folders(self, *segments: str) -> tuple[str, ...]:
        """The names below `trials` that lead to a folder, sorted."""
        folder = self._below(TRIALS, *segments)
        if folder is None:
            return ()
        with folder:
            return tuple(name for name in folder.names() if _is_folder(folder, name))

    def _below(self, *segments: str) -> PrivateRoot | None:
        try:
            return self._root.child(*segments)
        except RootError as error:
            if error.code is RootCode.ROOT_MISSING:
                return None
            raise

    # Locks.

    @contextmanager
    def preparing(self, key: TrialKey, wait: float = DEFAULT_WAIT) -> Iterator[PrivateRoot]:
        """Hold the prepare lock of a sample; gives the folder of its arm, made if missing.

        Raises:
            TrialError: `bad_record`: the task or arm differs from another only in case.
            LockError: the lock was not obtained.
            RootError, FileError: as `trial`.
        """
        self._demand_writable()
        with ExitStack() as stack:
            try:
                arm = stack.enter_context(self._root.child(TRIALS, key.task_id, key.arm_id, create=True))
            except FileError as error:
                if error.code is FileCode.NAME_COLLISION:
                    raise TrialError(TrialCode.BAD_RECORD, key.path, str(error)) from error
                raise
            lock = Lock(arm, f".{key.sample_name}.prepare.lock", LockLevel.TRIAL)
            stack.enter_context(lock.hold(wait, "prepare a trial"))
            yield arm

    @contextmanager
    def holding(self, key: TrialKey, wait: float = DEFAULT_WAIT) -> Iterator[PrivateRoot]:
        """Hold the lock of a trial; gives its folder.

        Raises:
            TrialError: `trial_missing`.
            LockError: the lock was not obtained.
            RootError, FileError: as `trial`.
        """
        self._demand_writable()
        with self.demand_trial(key) as trial, hold_trial(trial, wait):
            yield trial

    def _demand_writable(self) -> None:
        if self._looking:
            raise ValueError("this store is only looked at")

    # Documents.

    def written(self, document: TrialDocument) -> bytes:
        """The bytes of a document that was judged here; found on the disk, they are not judged again."""
        data = document_line(document)
        self._known[data] = document
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return data

    def read(self, data: bytes) -> TrialDocument:
        """The document in the bytes of a `trial.json`.

        Raises:
            TrialError: `evidence_invalid`.
        """
        return self._known.get(data) or parse_document(data)

    def plan(self, path: str) -> ArmRegistryPlan:
        """A frozen registry plan below the root.

        Args:
            path: relative, forward slashes.

        Raises:
            TrialError: `plan_missing`; `bad_record`: the path is no relative one; `evidence_invalid`: the
                file is no plan.
            RootError, FileError: the file is no private one of ours.
        """
        *folders, name = path.split("/")
        if any(segment in {"", ".", ".."} for segment in (*folders, name)):
            sentence = "The path of a plan is relative to the store and stays below it."
            raise TrialError(TrialCode.BAD_RECORD, "/registry_plan_path", sentence)
        with ExitStack() as stack:
            folder = self._below(*folders) if folders else self._root
            if folder is None:
                raise _plan_missing()
            if folders:
                stack.enter_context(folder)
            if not folder.exists(name):
                raise _plan_missing()
            return _plan_of(folder.read(name))


def _identity(root: PrivateRoot) -> RootDocument:
    """The identity of the root; noted under its lock only if it is new, or the root is at a new place."""
    if root.exists(FILE):
        known = _known_identity(root)
        if str(root.path) in known.located_at:
            return known
    return root.identity()


def _seen_identity(root: PrivateRoot) -> RootDocument:
    """The identity of the root as it is written there.

    Raises:
        TrialError: `trial_missing`: there is none.
        EvidenceError: it cannot be read.
    """
    if not root.exists(FILE):
        raise TrialError(TrialCode.TRIAL_MISSING, FILE, _NO_STORE)
    return _known_identity(root)


def _known_identity(root: PrivateRoot) -> RootDocument:
    return parse(RootDocument, root.read(FILE), Profile.DOCUMENT, canonical=Canonical.LINE)


def hold_trial(trial: PrivateRoot, wait: float = DEFAULT_WAIT) -> AbstractContextManager[Held]:
    """Hold the lock of an open trial during a block."""
    return Lock(trial, TRIAL_LOCK, LockLevel.TRIAL).hold(wait, "change a trial")


def _plan_missing() -> TrialError:
    sentence = "The frozen registry plan is not there; publish it, then prepare."
    return TrialError(TrialCode.PLAN_MISSING, "/registry_plan_path", sentence)


def _plan_of(data: bytes) -> ArmRegistryPlan:
    try:
        return parse_plan(read_json(data, Profile.DOCUMENT))
    except (EvidenceError, ArmError) as error:
        sentence = f"The frozen registry plan is malformed: {error}"
        raise TrialError(TrialCode.EVIDENCE_INVALID, "/registry_plan_path", sentence) from error


def check_identity(
    store: TrialStore, key: TrialKey, document: TrialDocument, code: TrialCode = TrialCode.IDENTITY_MISMATCH
) -> None:
    """Demand that a document belongs where it lies.

    Raises:
        TrialError: with `code`, naming the field.
    """
    said = {
        "task": document.task.task_id == key.task_id,
        "arm_id": document.arm_id == key.arm_id,
        "sample_index": document.sample_index == key.sample_index,
        "trial_location_hash": store.is_location(key, document.trial_location_hash),
    }
    for field, holds in said.items():
        if not holds:
            sentence = (
                f"The document of {key.path} was made for another place ({field}); it does not belong here."
            )
            raise TrialError(code, f"/{field}", sentence, field=field)


def read_document(trial: PrivateRoot) -> TrialDocument:
    """The document of an open trial.

    Raises:
        TrialError: `evidence_invalid`: it is absent, unreadable or malformed.
    """
    return parse_document(read_document_bytes(trial))


def read_document_bytes(trial: PrivateRoot) -> bytes:
    """The bytes of `trial.json`.

    Raises:
        TrialError: `evidence_invalid`: absent, or no private file of ours.
        FileError: the disk failed.
    """
    try:
        return trial.read(TRIAL)
    except FileError as error:
        if error.code is FileCode.IO_ERROR:
            raise
        sentence = f"The trial has no document that can be believed: {error}"
        raise TrialError(TrialCode.EVIDENCE_INVALID, TRIAL, sentence) from error


def parse_document(data: bytes) -> TrialDocument:
    """A `trial.json`, read strictly.

    Raises:
        TrialError: `evidence_invalid`.
    """
    try:
        return parse(TrialDocument, data, Profile.DOCUMENT)
    except StrictError as error:
        sentence = f"trial.json is not strict JSON: {error}"
        raise TrialError(TrialCode.EVIDENCE_INVALID, TRIAL, sentence) from error
    except DocumentError as error:
        raise misfit(error, TrialCode.EVIDENCE_INVALID) from error


def _is_folder(parent: PrivateRoot, name: str) -> bool:
    """Whether a name leads to a private folder; a file in its place is foreign and none of our business."""
    try:
        parent.child(name).close()
    except RootError as error:
        if error.code in {RootCode.ROOT_FORM, RootCode.ROOT_MISSING}:
            return False
        raise
    return True
