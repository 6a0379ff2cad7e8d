"""Closed codes of the evidence room and the errors that carry them.

Every error raised by this room is an `EvidenceError` whose faults each hold a closed `code` (an enum member,
the only thing machine output may print), a `where` (JSON pointer, row number or root-relative name) and a
sentence for people. (evidence.md, section 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StrictCode(StrEnum):
    """Why foreign bytes are not strict I-JSON (RFC 7493)."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TOO_MANY_NODES = "too_many_nodes"
    BOM = "bom"
    NOT_UTF8 = "not_utf8"
    SYNTAX = "syntax"
    TRAILING_DATA = "trailing_data"
    DUPLICATE_KEY = "duplicate_key"
    NON_FINITE = "non_finite"
    NUMBER_RANGE = "number_range"
    LONE_SURROGATE = "lone_surrogate"
    NONCHARACTER = "noncharacter"
    NOT_AN_OBJECT = "not_an_object"
    TORN_ROW = "torn_row"
    BLANK_ROW = "blank_row"
    NOT_CANONICAL = "not_canonical"


class DocumentCode(StrEnum):
    """Why strict JSON is not the document its reader asked for."""

    UNKNOWN_FIELD = "unknown_field"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    WRONG_VALUE = "wrong_value"


class CanonicalCode(StrEnum):
    """Why a value has no canonical form, or a digest over it is refused."""

    UNSUPPORTED_TYPE = "unsupported_type"
    NUMBER_RANGE = "number_range"
    NON_FINITE = "non_finite"
    LONE_SURROGATE = "lone_surrogate"
    TOO_DEEP = "too_deep"
    NUMBER_FORM = "number_form"
    DIGEST_MISMATCH = "digest_mismatch"


class TreeCode(StrEnum):
    """Why a folder has no tree digest."""

    NAME_NOT_UTF8 = "name_not_utf8"
    NAME_COLLISION = "name_collision"
    NOT_REGULAR = "not_regular"
    TOO_DEEP = "too_deep"


class FileCode(StrEnum):
    """Why a file operation on one name was refused or failed."""

    NO_SPACE = "no_space"
    IO_ERROR = "io_error"
    NOT_WRITABLE = "not_writable"
    NOT_READABLE = "not_readable"
    MISSING = "missing"
    NOT_REGULAR = "not_regular"
    FILE_SYMLINK = "file_symlink"
    FILE_MODE = "file_mode"
    FILE_OWNER = "file_owner"
    FILE_LINKS = "file_links"
    FILE_SIZE = "file_size"
    EXISTS_DIFFERENT = "exists_different"
    NAME_FORM = "name_form"
    NAME_COLLISION = "name_collision"


class RootCode(StrEnum):
    """Why a folder is not a private root."""

    ROOT_FORM = "root_form"
    ROOT_SYMLINK = "root_symlink"
    ROOT_ANCESTOR = "root_ancestor"
    ROOT_OWNER = "root_owner"
    ROOT_MODE = "root_mode"
    ROOT_IN_CHECKOUT = "root_in_checkout"
    ROOT_HOLDS_CHECKOUT = "root_holds_checkout"
    ROOT_MISSING = "root_missing"


class LockCode(StrEnum):
    """Why a lock was not obtained."""

    LOCK_BUSY = "lock_busy"
    LOCK_UNAVAILABLE = "lock_unavailable"
    LOCK_UNSUPPORTED = "lock_unsupported"
    LOCK_UNSAFE = "lock_unsafe"


class JournalCode(StrEnum):
    """Why a journal was not opened, or a row not appended."""

    JOURNAL_MISSING = "journal_missing"
    NOT_A_JOURNAL = "not_a_journal"
    JOURNAL_DAMAGED = "journal_damaged"
    JOURNAL_CHANGED = "journal_changed"
    JOURNAL_DEAD = "journal_dead"
    PURPOSE_DIFFERS = "purpose_differs"
    ROW_REFUSED = "row_refused"
    GROUP_SIZE = "group_size"
    PIN_FULL = "pin_full"
    REASON_NEEDED = "reason_needed"
    REPIN_REFUSED = "repin_refused"


class PairCode(StrEnum):
    """Why two documents that count only together do not count."""

    PAIR_INCOMPLETE = "pair_incomplete"
    PAIR_UNSAFE = "pair_unsafe"
    PAIR_INVALID = "pair_invalid"


class SealCode(StrEnum):
    """Which numbered step of seal verification failed."""

    ENVELOPE_SHAPE = "envelope_shape"
    PAYLOAD_TYPE = "payload_type"
    PAYLOAD_BASE64 = "payload_base64"
    SIGNATURE = "signature"
    PAYLOAD_JSON = "payload_json"
    STATEMENT_TYPE = "statement_type"
    PREDICATE = "predicate"
    SUBJECT_DIGEST = "subject_digest"
    UNNAMED_FILE = "unnamed_file"
    SUBJECT_NAMES = "subject_names"


class MerkleCode(StrEnum):
    """Why a Merkle proof is refused; the first two are found without hashing."""

    PROOF_RANGE = "proof_range"
    PROOF_LENGTH = "proof_length"
    PROOF_ROOT = "proof_root"


class KeyCode(StrEnum):
    """Why a key file is refused."""

    KEY_SIZE = "key_size"
    KEY_TYPE = "key_type"
    KEY_PASSPHRASE = "key_passphrase"  # noqa: S105 - a code, not a secret


Code = (
    StrictCode
    | DocumentCode
    | CanonicalCode
    | TreeCode
    | FileCode
    | RootCode
    | LockCode
    | JournalCode
    | PairCode
    | SealCode
    | MerkleCode
    | KeyCode
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, where, and a sentence a person can act on."""

    code: Code
    where: str
    sentence: str


class EvidenceError(Exception):
    """Base of every error of the evidence room; holds all faults found, at least one."""

    def __init__(self, first: Fault, *others: Fault) -> None:
        self.faults: tuple[Fault, ...] = (first, *others)
        super().__init__("; ".join(fault.sentence for fault in self.faults))

    @property
    def code(self) -> Code:
        """The code of the first fault."""
        return self.faults[0].code


class StrictError(EvidenceError):
    """Bytes are not strict I-JSON."""


class DocumentError(EvidenceError):
    """Strict JSON does not fit the model its reader asked for."""


class CanonicalError(EvidenceError):
    """A value has no canonical form, or a caller's digest over it is refused."""


class TreeError(EvidenceError):
    """A folder has no tree digest."""


class FileError(EvidenceError):
    """A file operation was refused or failed."""


class RootError(EvidenceError):
    """A folder is not a private root."""


class LockError(EvidenceError):
    """A lock was not obtained."""


class PairError(EvidenceError):
    """Two documents that count only together do not count."""


class SealError(EvidenceError):
    """A seal cannot be made."""


class KeyFileError(EvidenceError):
    """A key file is refused."""
