"""What a worker keeps of one study, in its own state folder (studies.md section 3, table "Dask").

```
<state>/workers/<root_id>/  inputs/<64 hex>  started/<64 hex>  done/<64 hex>
```

| folder | holds | until |
|---|---|---|
| `inputs` | what attempts are given, by digest; never a hidden test | the study is no longer run |
| `started` | who began an order, made durable before the agent is called | likewise |
| `done` | the parcel of an order | the coordinator has acknowledged it |

All worker processes of one host share the folder. A name is given its content once and for all, and what
begins an order names its process, so exactly one of them ever does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, find_checkout, state_path
from skill_effectiveness.studies.inputs import INPUTS, Inputs
from skill_effectiveness.studies.parcels import LARGEST_PARCEL

if TYPE_CHECKING:
    from types import TracebackType

    from skill_effectiveness.evidence.surroundings import Surroundings

WORKERS: Final = "workers"
STARTED: Final = "started"
DONE: Final = "done"
_PREFIX: Final = "sha256:"
_TOKEN_BYTES: Final = 16


class WorkerStore:
    """The folder of one study on a worker: `with WorkerStore.open(root_id, around) as store`.

    Everything raises `RootError` and `FileError` where the folder is not private or the disk fails.
    """

    def __init__(self, root: PrivateRoot) -> None:
        self._root = root
        self._inputs = Inputs(root)

    @classmethod
    def open(cls, root_id: str, around: Surroundings) -> Self:
        """The folder of a study, made if missing.

        Args:
            root_id: of the study's folder; checked to be a name where it is read.
            around: the worker's own surroundings.

        Raises:
            RootError, FileError: the state folder is not private, or cannot be made.
        """
        checkout = find_checkout(around.fs, Path(__file__))
        with PrivateRoot.create(
            state_path(around), RootKind.STATE, around=around, checkout=checkout
        ) as state:
            return cls(state.child(WORKERS, root_id, create=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._root.close()

    def keep(self, data: bytes) -> str:
        """Keep an input; answers its digest."""
        return self._inputs.keep(data)

    def has(self, digest: str) -> bool:
        """Whether an input is there as it should be; one that was damaged is taken away, to be sent again."""
        name = digest.removeprefix(_PREFIX)
        with self._root.child(INPUTS, create=True) as folder:
            if not folder.exists(name):
                return False
            if digest_bytes(folder.read(name)) == digest:
                return True
            folder.remove(name)
        return False

    def read(self, digest: str) -> bytes:
        """An input; raises `StudyError` as well where it is missing or damaged."""
        return self._inputs.read(digest)

    def begin(self, order_digest: str) -> bool:
        """Begin an order, durably; False when any process of this host began it before."""
        around = self._root.around
        line = dump_line(
            {
                "order_digest": order_digest,
                "host": around.host,
                "pid": around.pid,
                "token": around.entropy(_TOKEN_BYTES).hex(),
            }
        )
        with self._root.child(STARTED, create=True) as folder:
            try:
                folder.publish(order_digest.removeprefix(_PREFIX), line)
            except FileError as error:
                if error.code is not FileCode.EXISTS_DIFFERENT:
                    raise
                return False
        return True

    def has_begun(self, order_digest: str) -> bool:
        """Whether an order was begun on this host, however it ended."""
        with self._root.child(STARTED, create=True) as folder:
            return folder.exists(order_digest.removeprefix(_PREFIX))

    def finish(self, order_digest: str, parcel: bytes) -> None:
        """Keep what an order came to until it is acknowledged."""
        with self._root.child(DONE, create=True) as folder:
            folder.publish(order_digest.removeprefix(_PREFIX), parcel)

    def done(self, order_digest: str) -> bytes | None:
        """What an order came to; None when it never came to its end, or was acknowledged."""
        with self._root.child(DONE, create=True) as folder:
            try:
                return folder.read(order_digest.removeprefix(_PREFIX), LARGEST_PARCEL)
            except FileError as error:
                if error.code is not FileCode.MISSING:
                    raise
                return None

    def acknowledge(self, order_digest: str) -> None:
        """The coordinator has an order's parcel; forgetting it again does nothing."""
        with self._root.child(DONE, create=True) as folder:
            folder.remove(order_digest.removeprefix(_PREFIX))
