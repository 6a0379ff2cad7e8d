"""What whoever asks a worker may demand around it, and what was observed there.

Source: studies.md section 1 (`isolation`); trials.md section 5; providers.md P13; field-failures.md F31, F32.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from skill_effectiveness.providers.errors import ProviderCode, ProviderError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Confinement:
    """What has to be around a work call; where it cannot be had, nothing is started.

    Attributes:
        place: where the working copy lies in the sandbox of `execution`, absolute; `None` demands none.
        readable: what can be read there beside the system, the program, its login and its session, absolute.
        traced: whether every access to a file is recorded.
        hidden: what must not be shown, and neither must anything in it or around it be.

    Raises:
        ProviderError: `invalid_call`.
    """

    place: str | None = None
    readable: tuple[Path, ...] = ()
    traced: bool = False
    hidden: tuple[Path, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.place is not None:
            # What is recorded of it is compared with this spelling, so there is one.
            first, *parts = self.place.split("/")
            if first or not parts or not {"", ".", ".."}.isdisjoint(parts):
                raise _invalid("the place of the working copy is no absolute path of its own.")
        if not all(path.is_absolute() for path in (*self.readable, *self.hidden)):
            raise _invalid("a place that can be read, or must be hidden, is not named by an absolute path.")


class Touch(NamedTuple):
    r"""One access, by the name that the place has on the machine.

    Attributes:
        operation: what was done.
        mode: for `open` only.
        path: absolute; bytes that are no UTF-8 are spelt `\xff`.
    """

    operation: Literal["read", "open", "enumerate", "write"]
    mode: Literal["read", "write"] | None
    path: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call's program could reach and did reach.

    Attributes:
        read_roots: all that it may read, absolute.
        write_roots: all that it may write; each of them is a read root as well.
        touched: distinct accesses; empty where nothing was recorded.
        refused: distinct paths outside the roots that it asked for and did not get, by the name it used.
        complete: whether `touched` is every access.
        enforced: whether something kept it inside its roots.
        faults: why the record may not be complete.
    """

    read_roots: tuple[str, ...]
    write_roots: tuple[str, ...]
    touched: tuple[Touch, ...] = field(default=(), repr=False)
    refused: tuple[Touch, ...] = field(default=(), repr=False)
    complete: bool = False
    enforced: bool = False
    faults: tuple[str, ...] = ()


def _invalid(sentence: str) -> ProviderError:
    return ProviderError(ProviderCode.INVALID_CALL, f"This call cannot be made: {sentence}")
