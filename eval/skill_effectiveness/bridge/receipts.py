"""What requests came to, and what they were about to change (bridge.md, section 5).

```
<artifact_root>/bridge-receipts/    <request_id>.json   .lock   .lock.holder
<artifact_root>/bridge-receipts/intents/    <request_id>.json   unsettled/<request_id>.json
```

Everything here is read and written under the one lock of the artifact root. Only this product writes these
files, so what is no canonical document of its model is foreign, and nothing is written through it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from skill_effectiveness.bridge.codes import STORAGE
from skill_effectiveness.bridge.messages import Intent, Receipt
from skill_effectiveness.bridge.words import INTENTS, RECEIPT_CONTRACT, RECEIPTS, BridgeError, ReasonCode
from skill_effectiveness.evidence.canonical import dump
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, LockCode, LockError
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel, JsonValue

    from skill_effectiveness.evidence.root import PrivateRoot

LOCK: Final = ".lock"
UNSETTLED: Final = "unsettled"
SUFFIX: Final = ".json"
UNREADABLE: Final = "unreadable"
"""In the place of a digest: something has the name of the target and cannot be read."""

ModelT = TypeVar("ModelT", bound="BaseModel")


class Ledger:
    """The receipts of one artifact root; opened with its folders made.

    Args:
        root: the artifact root; stays open while this is used.

    Raises:
        BridgeError: `artifact_mismatch`, internal: a folder is a link or not a private one of ours.
        EvidenceError: the disk failed.
    """

    def __init__(self, root: PrivateRoot) -> None:
        with _foreign():
            self._receipts = root.child(RECEIPTS, create=True)
            try:
                self._intents = self._receipts.child(INTENTS, create=True)
            except BaseException:
                self._receipts.close()
                raise

    def close(self) -> None:
        """Close the folders."""
        self._intents.close()
        self._receipts.close()

    @contextmanager
    def locked(self, wait: float, action: str) -> Iterator[None]:
        """Hold the lock of the artifact root.

        Raises:
            BridgeError: `timeout`; `artifact_mismatch`, internal: the lock file cannot be trusted.
            LockError: it could not be taken for another reason.
        """
        held = Lock(self._receipts, LOCK).hold(wait, action)
        try:
            held.__enter__()
        except LockError as error:
            if error.code is LockCode.LOCK_UNSAFE:
                raise _mismatch(error.code.value) from error
            raise
        try:
            yield
        finally:
            held.__exit__(None, None, None)

    def settle(self, look: Callable[[str], str | None]) -> None:
        """Bring every intent that was left to its end.

        Args:
            look: the digest of a target as it is now; None where there is none; `UNREADABLE`.

        Raises:
            BridgeError: `artifact_mismatch`, internal: an intent or receipt is foreign.
            EvidenceError: the disk failed.
        """
        with _foreign():
            left = [name for name in self._intents.names() if name != UNSETTLED]
            if not left:
                return
            self._receipts.sweep()
            swept = self._intents.sweep()
            for name in left:
                if name in swept:
                    continue
                if not name.endswith(SUFFIX):
                    raise _mismatch("a foreign file among the intents")
                self._settle_one(name, look)

    def _settle_one(self, name: str, look: Callable[[str], str | None]) -> None:
        data = self._intents.read(name)
        intent = _parsed(Intent, data)
        request_id = name.removesuffix(SUFFIX)
        found = look(intent.target)
        receipt = self.stored(request_id)
        if receipt is None and found == intent.after:
            self.conclude(request_id, intent.request_hash, _plain(intent.runtime_binding), intent.result)
            return
        if receipt is None and found != intent.before:
            # Somebody changed it outside the bridge, so nobody can tell what this request came to.
            with self._intents.child(UNSETTLED, create=True) as unsettled:
                unsettled.publish(name, data)
        self._intents.remove(name)

    def stored(self, request_id: str) -> Receipt | None:
        """The receipt of a request; None when there is none.

        Raises:
            BridgeError: `artifact_mismatch`, internal; `stale_state`: one of an id that differs in case.
        """
        name = f"{request_id}{SUFFIX}"
        with _foreign():
            if not self._receipts.exists(name):
                return None
            receipt = _parsed(Receipt, self._receipts.read(name))
        if receipt.request_id.casefold() != request_id.casefold():
            raise _mismatch("a receipt under another name")
        if receipt.request_id != request_id:
            raise BridgeError(ReasonCode.STALE_STATE, "request id in another case")
        return receipt

    def is_unsettled(self, request_id: str) -> bool:
        """Whether nobody can tell what a request came to."""
        with _foreign():
            if not self._intents.exists(UNSETTLED):
                return False
            with self._intents.child(UNSETTLED) as unsettled:
                return unsettled.exists(f"{request_id}{SUFFIX}")

    def has_twin(self, request_id: str) -> bool:
        """Whether another id differs from this one in case alone."""
        name = f"{request_id}{SUFFIX}"
        folded = name.casefold()
        alike = (other for other in self._receipts.names() if len(other) == len(name) and other != name)
        return any(other.casefold() == folded for other in alike)

    def intend(self, request_id: str, intent: Mapping[str, JsonValue]) -> None:
        """Record what is about to change."""
        with _foreign():
            self._intents.publish(f"{request_id}{SUFFIX}", dump(dict(intent)))

    def conclude(
        self,
        request_id: str,
        request_hash: str,
        binding: Mapping[str, JsonValue],
        result: Mapping[str, JsonValue],
    ) -> None:
        """Publish the receipt of what has changed, then drop the intent."""
        receipt = {
            "schema_version": 1,
            "artifact_contract": RECEIPT_CONTRACT,
            "request_id": request_id,
            "request_hash": request_hash,
            "runtime_binding": dict(binding),
            "result": dict(result),
        }
        with _foreign():
            self._receipts.publish(f"{request_id}{SUFFIX}", dump(receipt))
        self.abandon(request_id)

    def abandon(self, request_id: str) -> None:
        """Drop the intent of a request."""
        with _foreign():
            self._intents.remove(f"{request_id}{SUFFIX}")


def _parsed(model: type[ModelT], data: bytes) -> ModelT:
    return parse(model, data, Profile.DOCUMENT, canonical=Canonical.BARE)


def _plain(document: BaseModel) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = document.model_dump(mode="json", exclude_unset=True)
    return plain


def _mismatch(detail: str) -> BridgeError:
    return BridgeError(ReasonCode.ARTIFACT_MISMATCH, detail, internal=True)


@contextmanager
def _foreign() -> Iterator[None]:
    """Turn what cannot be trusted here into its code; what the disk refuses passes."""
    try:
        yield
    except FileError as error:
        if error.code in STORAGE:
            raise
        if error.code is FileCode.NAME_COLLISION:
            raise BridgeError(ReasonCode.STALE_STATE, "request id in another case") from error
        raise _mismatch(error.code.value) from error
    except EvidenceError as error:
        raise _mismatch(error.code.value) from error
