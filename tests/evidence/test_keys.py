"""Key files: exclusive, private, and silent about their content."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import threading
import traceback
from functools import partial
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, KeyCode, KeyFileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import (
    load_public_key,
    load_signing_key,
    mac_key,
    new_signing_key,
    public_key_id,
    public_pem,
)
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from tests.support.private import out_root, surroundings, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEED = bytes(range(32))
# RFC 8032 has no such vector; the public part is the known answer of evidence.md, section 9, for this seed.
PUBLIC_OF_SEED = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
# RFC 8410, section 4: the fixed DER prefix of an Ed25519 SubjectPublicKeyInfo.
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with PrivateRoot.create(
        tmp_path.resolve() / "root", RootKind.STATE, around=surroundings(entropy=counting()), checkout=None
    ) as opened:
        yield opened


def counting() -> Callable[[int], bytes]:
    """Key material that is known, and temporary names that are not."""
    return lambda size: SEED if size == 32 else os.urandom(size)


def refusal(call: Callable[[], object]) -> KeyCode:
    with pytest.raises(KeyFileError) as caught:
        call()
    code = caught.value.code
    assert isinstance(code, KeyCode)
    return code


class TestSigningKeys:
    def test_are_pkcs8_and_their_public_part_beside_them(self, root: PrivateRoot) -> None:
        made = new_signing_key(root, "me")
        with root.child("keys") as folder:
            assert folder.names() == ("me.key", "me.pub")
            private, public = folder.read("me.key"), folder.read("me.pub")
        assert private.startswith(b"-----BEGIN PRIVATE KEY-----\n")
        der = base64.b64decode(b"".join(public.splitlines()[1:-1]))
        assert der == DER_PREFIX + bytes.fromhex(PUBLIC_OF_SEED)
        assert made.key_id == hashlib.sha256(der).hexdigest()
        assert (made.public_pem, made.created) == (public, True)

    def test_come_back_as_they_were_made(self, root: PrivateRoot) -> None:
        made = new_signing_key(root, "me")
        key = load_signing_key(root, "me")
        assert key.private_bytes_raw() == SEED
        assert public_key_id(key.public_key()) == made.key_id
        assert load_public_key(made.public_pem).public_bytes_raw().hex() == PUBLIC_OF_SEED
        assert public_pem(key.public_key()) == made.public_pem

    def test_are_private_at_every_step(self, tmp_path: Path) -> None:
        """E24: no key is ever visible with another mode than 0600."""
        wrong: list[str] = []
        fs = RecordingFs(RealFs(), after=lambda _step: wrong.extend(wrong_modes(tmp_path / "root")))
        with out_root(tmp_path.resolve(), fs) as root:
            new_signing_key(root, "me", b"secret")
            mac_key(root, ".orientation.key")
        assert wrong == []

    def test_open_with_openssl(self, root: PrivateRoot) -> None:
        made = new_signing_key(root, "me", b"open sesame")
        path = root.path / "keys" / "me.key"
        openssl = shutil.which("openssl")
        assert openssl is not None
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [openssl, "pkey", "-in", path, "-passin", "stdin", "-pubout"],
            input=b"open sesame\n",
            capture_output=True,
            check=True,
        )
        assert done.stdout == made.public_pem

    def test_with_a_passphrase_open_only_with_it(self, root: PrivateRoot) -> None:
        new_signing_key(root, "me", b"open sesame")
        with root.child("keys") as folder:
            assert folder.read("me.key").startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
        assert load_signing_key(root, "me", b"open sesame").private_bytes_raw() == SEED
        for passphrase in (None, b"wrong", b""):
            assert refusal(partial(load_signing_key, root, "me", passphrase)) is KeyCode.KEY_PASSPHRASE

    def test_without_one_refuse_one(self, root: PrivateRoot) -> None:
        new_signing_key(root, "me")
        assert refusal(lambda: load_signing_key(root, "me", b"x")) is KeyCode.KEY_PASSPHRASE

    @pytest.mark.parametrize("length", [0, 1_024, 4_096])
    def test_are_not_made_with_a_passphrase_of_another_length(self, root: PrivateRoot, length: int) -> None:
        """OpenSSL takes at most 1,023 bytes."""
        assert refusal(lambda: new_signing_key(root, "me", b"x" * length)) is KeyCode.KEY_PASSPHRASE
        assert root.names() == ()

    def test_are_made_with_the_longest_passphrase(self, root: PrivateRoot) -> None:
        made = new_signing_key(root, "me", b"x" * 1_023)
        opened = load_signing_key(root, "me", b"x" * 1_023)
        assert public_key_id(opened.public_key()) == made.key_id

    def test_are_made_once(self, root: PrivateRoot, tmp_path: Path) -> None:
        first = new_signing_key(root, "me")
        with out_root(tmp_path.resolve()) as other:
            again = new_signing_key(other, "me")
        assert (again.key_id, again.created) == (first.key_id, False)

    def test_get_their_public_part_when_a_crash_left_it_out(self, root: PrivateRoot) -> None:
        made = new_signing_key(root, "me")
        (root.path / "keys" / "me.pub").unlink()
        assert new_signing_key(root, "me").created is False
        with root.child("keys") as folder:
            assert folder.read("me.pub") == made.public_pem

    def test_of_concurrent_creators_are_one(self, tmp_path: Path) -> None:
        ids: list[tuple[str, bool]] = []
        start = threading.Barrier(8)

        def create() -> None:
            with out_root(tmp_path.resolve()) as root:
                start.wait()
                made = new_signing_key(root, "me")
                ids.append((made.key_id, made.created))

        threads = [threading.Thread(target=create) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({key_id for key_id, _ in ids}) == 1
        assert [created for _, created in ids].count(True) == 1

    @pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "ä"])
    def test_have_plain_names(self, root: PrivateRoot, name: str) -> None:
        for call in (lambda: new_signing_key(root, name), lambda: load_signing_key(root, name)):
            with pytest.raises(FileError) as caught:
                call()
            assert caught.value.code is FileCode.NAME_FORM

    def test_must_be_private_files(self, root: PrivateRoot) -> None:
        new_signing_key(root, "me")
        (root.path / "keys" / "me.key").chmod(0o640)
        with pytest.raises(FileError) as caught:
            load_signing_key(root, "me")
        assert caught.value.code is FileCode.FILE_MODE

    def test_of_another_type_or_form_are_refused(self, root: PrivateRoot) -> None:
        plain = NoEncryption()
        elliptic = ec.generate_private_key(ec.SECP256R1())
        others = {
            "rsa": rsa.generate_private_key(65537, 2048).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, plain
            ),
            "ec": elliptic.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, plain),
            "ec-old": elliptic.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, plain),
            "x25519": X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, plain),
            "openssh": Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, plain),
            "der": Ed25519PrivateKey.generate().private_bytes(Encoding.DER, PrivateFormat.PKCS8, plain),
            "text": b"not a key",
            "empty": b"",
            "cut": b"-----BEGIN PRIVATE KEY-----\nMC4CAQ",
        }
        with root.child("keys", create=True) as folder:
            for name, data in others.items():
                folder.publish(f"{name}.key", data)
        for name in others:
            assert refusal(partial(load_signing_key, root, name)) is KeyCode.KEY_TYPE


class TestPublicKeys:
    def test_of_another_type_or_form_are_refused(self) -> None:
        info = PublicFormat.SubjectPublicKeyInfo
        for data in (
            b"",
            b"text",
            bytes.fromhex(PUBLIC_OF_SEED),
            rsa.generate_private_key(65537, 2048).public_key().public_bytes(Encoding.PEM, info),
            Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ):
            assert refusal(partial(load_public_key, data)) is KeyCode.KEY_TYPE


class TestMacKeys:
    def test_are_made_once_and_read_back(self, root: PrivateRoot, tmp_path: Path) -> None:
        assert mac_key(root, ".orientation.key") == SEED
        assert (root.path / ".orientation.key").read_bytes() == SEED
        with out_root(tmp_path.resolve()) as other:
            assert mac_key(other, ".orientation.key") == SEED

    def test_of_concurrent_creators_are_one(self, tmp_path: Path, root: PrivateRoot) -> None:
        theirs = bytes(32)
        fs = FaultFs(RealFs(), Injection("link", before=lambda: root.publish("blinding.key", theirs)))
        with out_root(tmp_path.resolve(), fs) as slower:
            assert mac_key(slower, "blinding.key") == theirs

    @pytest.mark.parametrize("size", [0, 1, 31])
    def test_that_are_too_short_are_refused(self, root: PrivateRoot, size: int) -> None:
        root.publish("blinding.key", bytes(size))
        assert refusal(lambda: mac_key(root, "blinding.key")) is KeyCode.KEY_SIZE
        assert root.read("blinding.key") == bytes(size)


def test_no_error_says_a_byte_of_a_key(root: PrivateRoot) -> None:
    """E51: neither texts, nor causes, nor tracebacks of key faults hold key bytes in any spelling."""
    secret = Ed25519PrivateKey.from_private_bytes(SEED)
    pem = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    body = b"".join(pem.splitlines()[1:-1])
    with root.child("keys", create=True) as folder:
        folder.publish("swapped.key", pem.replace(b"PRIVATE", b"EC PRIVATE"))
        folder.publish("cut.key", pem[:-30])
        folder.publish("plain.key", pem)
        folder.publish("encrypted.key", pem.replace(b"PRIVATE", b"ENCRYPTED PRIVATE"))
    root.publish("short.key", SEED[:31])
    root.publish("open.key", SEED)
    (root.path / "open.key").chmod(0o644)
    # Not written at the calls, whose source lines a traceback quotes.
    passphrase = b"open sesame"
    calls: list[Callable[[], object]] = [
        lambda: load_signing_key(root, "swapped"),
        lambda: load_signing_key(root, "cut"),
        lambda: load_signing_key(root, "plain", passphrase),
        lambda: load_signing_key(root, "encrypted", passphrase),
        lambda: load_public_key(pem),
        lambda: mac_key(root, "short.key"),
        lambda: mac_key(root, "open.key"),
    ]
    for call in calls:
        with pytest.raises(EvidenceError) as caught:
            call()
        said = "".join(traceback.format_exception(caught.value))
        said += repr(caught.value.__context__) + repr(caught.value.faults)
        for spelling in (
            SEED.hex(),
            SEED[:31].hex(),
            body.decode(),
            body.decode()[20:50],
            repr(SEED),
            passphrase.decode(),
        ):
            assert spelling not in said
        assert caught.value.__context__ is None or not isinstance(caught.value.__context__, ValueError)
