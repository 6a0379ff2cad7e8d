"""The keys of study commands: what signs, and whose signatures on licences count."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli.door import checkout
from skill_effectiveness.cli.keys import key_place, passphrase_of, signing_key
from skill_effectiveness.evidence.faults import KeyFileError, RootCode, RootError
from skill_effectiveness.evidence.keys import FOLDER, load_public_key, load_signing_key, new_signing_key
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.surroundings import Surroundings

DEFAULT_KEY: Final = "study"

Key = Annotated[
    str | None,
    typer.Option(
        help="Name of a signing key, or the path of its .key file (default: one in the state folder).",
        show_default=False,
    ),
]


@contextmanager
def state_root(around: Surroundings) -> Iterator[PrivateRoot]:
    """The product's own state folder, made if missing; it holds the copies of journal pins."""
    with PrivateRoot.create(state_path(around), RootKind.STATE, around=around, checkout=checkout()) as opened:
        yield opened


def signer(
    key: str | None, state: PrivateRoot, *, ask: bool = False, descriptor: int | None = None
) -> Ed25519PrivateKey:
    """The key that signs: the named one, else one of the state folder that is made on first use.

    Args:
        key: as given on the command line.
        state: the state folder.
        ask: whether to ask for the passphrase.
        descriptor: to read it from.

    Raises:
        Refusal: `key_form`, `passphrase_source`.
        KeyFileError, FileError, RootError: the key cannot be used.
    """
    around = state.around
    if key is None:
        new_signing_key(state, DEFAULT_KEY)
        return load_signing_key(state, DEFAULT_KEY)
    name, root = key_place(key)
    passphrase = passphrase_of(around, ask=ask, descriptor=descriptor, confirm=False)
    return signing_key(name, root, passphrase, around)


def trusted_keys(state: PrivateRoot, *others: Ed25519PrivateKey) -> list[Ed25519PublicKey]:
    """Keys whose licences count: the public ones in the state folder, and those that sign here.

    Raises:
        RootError, FileError: the folder of keys is not private.
    """
    found = [key.public_key() for key in others]
    try:
        with state.child(FOLDER) as folder:
            for name in folder.names():
                if name.endswith(".pub"):
                    found += _readable(folder, name)
    except RootError as error:
        if error.code is not RootCode.ROOT_MISSING:
            raise
    return found


def _readable(folder: PrivateRoot, name: str) -> list[Ed25519PublicKey]:
    """The key of a file; none where the file holds another kind of key."""
    try:
        return [load_public_key(folder.read(name))]
    except KeyFileError:
        return []
