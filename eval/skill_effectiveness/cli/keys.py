"""`run.py keys`: make, show and export signing keys (evidence.md, section 9).

Keys live in a private root outside every folder a tested agent or reviewer can reach: the product's state
folder, or `--root`. A passphrase comes from a prompt or a file descriptor, never from an argument or the
environment.
"""

from __future__ import annotations

import errno
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import read_all, read_public, write_new_public
from skill_effectiveness.evidence.keys import (
    load_public_key,
    load_signing_key,
    new_signing_key,
    public_key_id,
    public_pem,
)
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, state_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.surroundings import Surroundings

app = typer.Typer(add_completion=False, help="Make, show and export signing keys.", rich_markup_mode=None)

PASSPHRASE_LIMIT: Final = 4_096
PUBLIC_LIMIT: Final = 65_536
LARGEST_DESCRIPTOR: Final = 2**31 - 1

Name = Annotated[str, typer.Argument(help="The key's name.", show_default=False)]
Root = Annotated[
    Path | None, typer.Option("--root", help="Private folder that holds keys/ (default: the state folder).")
]
PassphraseFd = Annotated[
    int | None,
    typer.Option(
        "--passphrase-fd",
        min=0,
        max=LARGEST_DESCRIPTOR,
        help="Read the passphrase from this file descriptor.",
        show_default=False,
    ),
]
Ask = Annotated[bool, typer.Option("--passphrase", help="Ask for the passphrase.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")]


@contextmanager
def key_root(root: Path | None, around: Surroundings, *, create: bool = False) -> Iterator[PrivateRoot]:
    """The private root that holds `keys/`; only a new key makes it."""
    kind, path = (RootKind.STATE, state_path(around)) if root is None else (RootKind.OUT, absolute(root))
    reach = PrivateRoot.create if create else PrivateRoot.open
    with reach(path, kind, around=around, checkout=checkout()) as opened:
        yield opened


def passphrase_of(around: Surroundings, *, ask: bool, descriptor: int | None, confirm: bool) -> bytes | None:
    """The passphrase the person chose to give, without its line end; `None` when none was.

    Raises:
        Refusal: `passphrase_source`.
        FileError: the descriptor cannot be read, or gives more than `PASSPHRASE_LIMIT` bytes.
        typer.Abort: the question was left without an answer.
    """
    if ask and descriptor is not None:
        raise Refusal(
            CommandCode.PASSPHRASE_SOURCE,
            "Give the passphrase by --passphrase or by --passphrase-fd, not by both.",
        )
    if descriptor is not None:
        return _read_passphrase(descriptor, around)
    if ask:
        if sys.stdin is None or not sys.stdin.isatty():
            raise Refusal(
                CommandCode.PASSPHRASE_SOURCE,
                "There is no terminal to ask at; give the passphrase by --passphrase-fd.",
            )
        return _asked_passphrase(confirm=confirm)
    return None


def _asked_passphrase(*, confirm: bool) -> bytes:
    """The passphrase that was typed, twice if it is new.

    Raises:
        Refusal: `passphrase_source`: what was typed is no text.
    """
    typed: str | None
    try:
        typed = typer.prompt("passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    except UnicodeDecodeError:
        # Refused below, outside of this block: the error holds what was typed.
        typed = None
    if typed is None:
        raise Refusal(
            CommandCode.PASSPHRASE_SOURCE,
            "What was typed is no text in the encoding of this terminal; give such a passphrase by "
            "--passphrase-fd.",
        )
    return typed.encode("utf-8", "surrogateescape")


def _read_passphrase(descriptor: int, around: Surroundings) -> bytes:
    where = f"file descriptor {descriptor}"
    try:
        around.fs.fstat(descriptor)
    except OSError:
        raise Refusal(
            CommandCode.PASSPHRASE_SOURCE, f"{where} is not open; redirect the passphrase to it."
        ) from None
    try:
        given = read_all(around.fs, descriptor, PASSPHRASE_LIMIT, where)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown error")
        raise Refusal(
            CommandCode.PASSPHRASE_SOURCE,
            f"{where} gives nothing to read ({name}); redirect the passphrase to it, open for reading.",
        ) from error
    return given.removesuffix(b"\n").removesuffix(b"\r")


def signing_key(
    name: str, root: Path | None, passphrase: bytes | None, around: Surroundings
) -> Ed25519PrivateKey:
    """The signing key of this name."""
    with key_root(root, around) as opened:
        return load_signing_key(opened, name, passphrase)


def public_key(path: Path, around: Surroundings) -> Ed25519PublicKey:
    """The public key in a `.pub` file."""
    return load_public_key(read_public(around.fs, absolute(path), PUBLIC_LIMIT))


@app.command()
def new(
    name: Name,
    root: Root = None,
    *,
    ask: Ask = False,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> None:
    """Make a signing key (Ed25519); refused when the name has one."""
    around = surroundings()
    passphrase = passphrase_of(around, ask=ask, descriptor=passphrase_fd, confirm=True)
    with key_root(root, around, create=True) as opened:
        made = new_signing_key(opened, name, passphrase)
    if not made.created:
        raise Refusal(
            CommandCode.KEY_EXISTS,
            f"The key {name} exists already (key id {made.key_id}); choose another name, or show it.",
        )
    screen.results({"key": name, "key_id": made.key_id, "encrypted": passphrase is not None}, as_json=as_json)


@app.command()
def show(name: Name, root: Root = None, *, as_json: AsJson = False) -> None:
    """Print the public part of a key and its id; the private part is not even read."""
    public = _public_part(name, root, surroundings())
    values = {
        "key": name,
        "key_id": public_key_id(public),
        "algorithm": "ed25519",
        "public_key": public.public_bytes_raw().hex(),
    }
    screen.results(values, as_json=as_json)


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option("--out", help="File to write, new.", show_default=False)],
    root: Root = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write the public part of a key to a file for whoever verifies; once it lies there, nothing is done."""
    around = surroundings()
    public = _public_part(name, root, around)
    place, data = absolute(out), public_pem(public)
    try:
        write_new_public(around.fs, place, data)
    except FileError as error:
        if error.code is not FileCode.EXISTS_DIFFERENT or not _holds(place, data, around):
            raise
    screen.results({"key": name, "key_id": public_key_id(public), "result": out.name}, as_json=as_json)


def _holds(path: Path, data: bytes, around: Surroundings) -> bool:
    """Whether a file has exactly these bytes; what cannot be read has others."""
    try:
        return read_public(around.fs, path, PUBLIC_LIMIT) == data
    except FileError:
        return False


def _public_part(name: str, root: Path | None, around: Surroundings) -> Ed25519PublicKey:
    with key_root(root, around) as opened, opened.child("keys") as folder:
        return load_public_key(folder.read(f"{name}.pub", PUBLIC_LIMIT))


def key_place(key: str) -> tuple[str, Path | None]:
    """Name and root of a key that was given by name or as `<root>/keys/<name>.key`.

    Raises:
        Refusal: `key_form`.
    """
    if "/" not in key:
        return key, None
    path = absolute(key)
    if path.suffix != ".key" or path.parent.name != "keys":
        raise Refusal(
            CommandCode.KEY_FORM, "A key is given by its name, or by its path <folder>/keys/<name>.key."
        )
    return path.stem, path.parent.parent
