"""Key files: Ed25519 keys that sign, and random keys that order and blind.

Source: evidence.md, section 9, the table of keys. Every file is 0600 in a private root and published
exclusively, so concurrent creators end with the one key that was published. No text of any error is made from
the bytes of a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError, KeyCode, KeyFileError
from skill_effectiveness.evidence.names import check_outside_id

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot

FOLDER: Final = "keys"
KEY_BYTES: Final = 32
FILE_LIMIT: Final = 65_536
# What OpenSSL takes to encrypt a PKCS#8 file.
PASSPHRASE_BYTES: Final = 1_023

# RFC 7468, sections 10 and 11: the two labels of PKCS#8.
_PLAIN: Final = b"-----BEGIN PRIVATE KEY-----"
_ENCRYPTED: Final = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A signing key after `new_signing_key`.

    Attributes:
        key_id: id of its public part.
        public_pem: its public part, as in `<name>.pub`.
        created: `False` when the name had a key already.
    """

    key_id: str
    public_pem: bytes
    created: bool


def new_signing_key(root: PrivateRoot, name: str, passphrase: bytes | None = None) -> NewKey:
    """Make a signing key, `keys/<name>.key` (PKCS#8) and `keys/<name>.pub`, or find the one that is there.

    Args:
        root: a private root out of reach of every tested agent or reviewer; its surroundings give the
            randomness.
        name: of the key.
        passphrase: encrypts the file; `None` leaves it in the clear.

    Raises:
        KeyFileError: `key_passphrase` (empty, or over 1,023 bytes), or the key that is there is refused, see
            `load_signing_key`.
        FileError: `name_form`, or the key cannot be written.
        RootError: the folder `keys` is not private.
    """
    check_outside_id(name)
    if passphrase is not None and not passphrase:
        raise _passphrase_fault(name, "An empty passphrase protects nothing; give one or leave it out.")
    if passphrase is not None and len(passphrase) > PASSPHRASE_BYTES:
        raise _passphrase_fault(name, "A passphrase has at most 1,023 bytes; give a shorter one.")
    fresh = Ed25519PrivateKey.from_private_bytes(root.around.entropy(KEY_BYTES))
    with root.child(FOLDER, create=True) as folder:
        created = _publish_once(folder, f"{name}.key", _private_pem(fresh, passphrase))
        # What counts is the key that was published, by us or by somebody faster.
        public = _read_signing_key(folder, name, passphrase).public_key()
        pem = public_pem(public)
        folder.publish(f"{name}.pub", pem)
    return NewKey(public_key_id(public), pem, created)


def load_signing_key(root: PrivateRoot, name: str, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """The signing key `keys/<name>.key`.

    Raises:
        KeyFileError: `key_type` (not PKCS#8, not Ed25519), `key_passphrase` (needed, wrong, or given for a
            key that has none).
        FileError: `name_form`, `missing`, or the file is not private.
        RootError: the folder `keys` is missing or not private.
    """
    check_outside_id(name)
    with root.child(FOLDER) as folder:
        return _read_signing_key(folder, name, passphrase)


def load_public_key(data: bytes) -> Ed25519PublicKey:
    """A public key out of its PEM file.

    Raises:
        KeyFileError: `key_type`.
    """
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        sentence = "This is not an Ed25519 public key in PEM form; use the .pub file of the signer."
        raise KeyFileError(Fault(KeyCode.KEY_TYPE, "", sentence))
    return key


def public_pem(key: Ed25519PublicKey) -> bytes:
    """The PEM form (SubjectPublicKeyInfo) of a public key, as in `<name>.pub`."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_key_id(key: Ed25519PublicKey) -> str:
    """The id of a key: 64 hex digits of the SHA-256 of its DER form (SubjectPublicKeyInfo)."""
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return digest_bytes(der).removeprefix("sha256:")


def mac_key(root: PrivateRoot, name: str) -> bytes:
    """The random key of this name (orientation, blinding), made on first use and read back.

    Args:
        root: its private folder; its surroundings give the randomness.
        name: file name, one purpose each.

    Raises:
        KeyFileError: `key_size`: the file holds fewer than 32 bytes.
        FileError: the file is not private, or cannot be written.
    """
    if not root.exists(name):
        _publish_once(root, name, root.around.entropy(KEY_BYTES))
    key = root.read(name, FILE_LIMIT)
    if len(key) < KEY_BYTES:
        where = root.folder.where(name)
        sentence = (
            f"{where} holds {len(key)} bytes, but a key has at least {KEY_BYTES}; start in a new folder."
        )
        raise KeyFileError(Fault(KeyCode.KEY_SIZE, where, sentence))
    return key


def _publish_once(folder: PrivateRoot, name: str, data: bytes) -> bool:
    """Publish a key; `False` when the name has one already."""
    if folder.exists(name):
        return False
    try:
        folder.publish(name, data)
    except FileError as error:
        if error.code is FileCode.EXISTS_DIFFERENT:
            # Somebody was faster.
            return False
        raise
    return True


def _private_pem(key: Ed25519PrivateKey, passphrase: bytes | None) -> bytes:
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        encryption = BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _read_signing_key(folder: PrivateRoot, name: str, passphrase: bytes | None) -> Ed25519PrivateKey:
    """The signing key in an open folder of keys."""
    file = f"{name}.key"
    data = folder.read(file, FILE_LIMIT)
    where = folder.folder.where(file)
    encrypted = data.startswith(_ENCRYPTED)
    if encrypted and not passphrase:
        raise _passphrase_fault(where, f"{where} is encrypted; give its passphrase.")
    if not encrypted and passphrase is not None:
        raise _passphrase_fault(where, f"{where} has no passphrase; leave it out.")
    try:
        key = load_pem_private_key(data, passphrase) if encrypted or data.startswith(_PLAIN) else None
    except (ValueError, UnsupportedAlgorithm):
        # Judged below, outside of this block, so that no error drags along what the parser said about the
        # bytes.
        key = None
    if key is None and encrypted:
        raise _passphrase_fault(where, f"The passphrase does not open {where}; try again.")
    if not isinstance(key, Ed25519PrivateKey):
        sentence = f"{where} is not an Ed25519 key in PKCS#8 form; make one with the keys command."
        raise KeyFileError(Fault(KeyCode.KEY_TYPE, where, sentence))
    return key


def _passphrase_fault(where: str, sentence: str) -> KeyFileError:
    return KeyFileError(Fault(KeyCode.KEY_PASSPHRASE, where, sentence))
