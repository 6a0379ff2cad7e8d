"""The private log of one model call: what a provider said beside its answer (providers.md, P7, P8 and P11).

It lies as `provider-log/<sample id>.json` in the artifact root, 0600, for good and for failed calls, written
before the record that counts. It holds raw text of a provider, as bytes, and so it is never published,
printed or judged; the answer itself stands nowhere. Of the session's id only a digest is kept, which is
enough to see that two calls claim one session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from skill_effectiveness.calibration import receipts
from skill_effectiveness.calibration.models import Count, Record, SampleId, Synthetic, Word, to_line
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.documents import Canonical, parse, text_record
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, One
from skill_effectiveness.providers import Notice, TurnFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.providers import CallOutcome

MESSAGES_MAX: Final = 100
"""Entries kept of each list; a program may print any number."""
TEXT_BYTES_MAX: Final = 4_096
"""Bytes kept of one text."""
TURN_FAILED: Final = "turn_failed"


class LoggedText(Record):
    """Bytes from outside (evidence.md, section 2)."""

    b64: str
    sha256: DigestText
    bytes: Count


class LoggedMessage(Record):
    """Something a provider said.

    Attributes:
        kind: a warning code, or the kind of a notice.
        text: what was said, or its beginning.
        whole: whether that is all of it.
    """

    kind: Word
    text: LoggedText
    whole: bool


class ProviderLog(Record):
    """The private log of one call; null is unknown.

    Attributes:
        ending: the provider room's word for how the call ended, with `error_kind` or `limit` if it has one.
        exit_code: of the program.
        survivors: descendants that outlived the program and were killed.
        observed_model: the model that the provider says it used.
        session_id_hash: digest of the provider's id of the session.
        warnings: what else the adapter found, among it the end of stderr and `lingered`; `warnings_left_out`
            more were not kept.
        notices: trouble the provider told of, retries among it, in order; `notices_left_out` likewise.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-reviewer-calibration-provider-log-v1"]
    sample_id: SampleId
    ending: Word
    error_kind: Word | None
    limit: Word | None
    exit_code: int | None
    survivors: Count
    latency_ms: Count
    observed_model: LoggedText | None
    session_id_hash: DigestText | None
    warnings: tuple[LoggedMessage, ...]
    warnings_left_out: Count
    notices: tuple[LoggedMessage, ...]
    notices_left_out: Count
    synthetic: Synthetic = None


def provider_log(sample_id: str, outcome: CallOutcome, *, synthetic: bool) -> ProviderLog:
    """What is kept of a call."""
    warnings = [(warning.code.value, warning.text) for warning in outcome.warnings]
    notices = list(_told(outcome))
    fields: dict[str, Any] = {
        "schema_version": 1,
        "artifact_contract": "skill-effectiveness-reviewer-calibration-provider-log-v1",
        "sample_id": sample_id,
        "ending": outcome.ending.value,
        "error_kind": outcome.error_kind and outcome.error_kind.value,
        "limit": outcome.limit and outcome.limit.value,
        "exit_code": outcome.exit_code,
        "survivors": outcome.survivors,
        "latency_ms": outcome.latency_ms,
        "observed_model": _text(outcome.observed_model) if outcome.observed_model is not None else None,
        "session_id_hash": _session_hash(outcome.session_id),
        "warnings": _messages(warnings),
        "warnings_left_out": max(0, len(warnings) - MESSAGES_MAX),
        "notices": _messages(notices),
        "notices_left_out": max(0, len(notices) - MESSAGES_MAX),
    }
    if synthetic:
        fields["synthetic"] = True
    return ProviderLog.model_validate(fields)


def write_log(root: PrivateRoot, log: ProviderLog) -> None:
    """Publish the log of a call in its artifact root.

    Raises:
        EvidenceError: it could not be written, or one of that call is there already.
    """
    with root.child(receipts.PROVIDER_LOG, create=True) as folder:
        folder.publish(receipts.sample_name(log.sample_id), to_line(log))


def read_log(root: PrivateRoot, sample_id: str) -> ProviderLog:
    """The log of a call in its artifact root.

    Raises:
        EvidenceError: it is missing, not private, or not a log.
    """
    with root.child(receipts.PROVIDER_LOG) as folder:
        data = folder.read(receipts.sample_name(sample_id))
    return parse(ProviderLog, data, Profile.DOCUMENT, canonical=Canonical.LINE)


def _told(outcome: CallOutcome) -> Iterable[tuple[str, str]]:
    for event in outcome.events:
        match event:
            case Notice(kind=kind, message=message):
                yield kind.value, message
            case TurnFailed(message=message):
                yield TURN_FAILED, message


def _messages(said: Iterable[tuple[str, str]]) -> tuple[LoggedMessage, ...]:
    kept = list(said)[:MESSAGES_MAX]
    return tuple(
        LoggedMessage(kind=kind, text=_text(text), whole=len(_bytes(text)) <= TEXT_BYTES_MAX)
        for kind, text in kept
    )


def _text(text: str) -> LoggedText:
    return LoggedText.model_validate(text_record(_bytes(text)[:TEXT_BYTES_MAX]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # whatever a program printed has a form here


def _session_hash(session_id: str | None) -> str | None:
    return None if session_id is None else digest_bytes(_bytes(session_id))
