"""`keys`: what is made, what is shown, where a passphrase comes from."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import signal
import stat
import termios
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tests.support.commands import PREFIX, Said, ended, no_traceback, start, steers
from tests.support.private import wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSPHRASE = b"correct horse battery staple"


def state(home: Path) -> Path:
    return home / ".local/state/skill-effectiveness"


def private(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    key = load_pem_private_key(path.read_bytes(), passphrase)
    assert isinstance(key, Ed25519PrivateKey)
    return key


def spellings(secret: bytes) -> dict[str, bytes]:
    """Every usual way to write some bytes down; base64 at each of the three ways it can begin."""
    found = {
        "raw": secret,
        "hex": secret.hex().encode(),
        "HEX": secret.hex().upper().encode(),
        "hex with colons": secret.hex(":").encode(),
        "hex with blanks": secret.hex(" ").encode(),
        "base32": base64.b32encode(secret).rstrip(b"="),
        "base85": base64.b85encode(secret),
        "ascii85": base64.a85encode(secret),
        "decimal": str(int.from_bytes(secret, "big")).encode(),
        "numbers": ", ".join(map(str, secret)).encode(),
        "escapes": "".join(f"\\x{byte:02x}" for byte in secret).encode(),
        "backwards": secret[::-1].hex().encode(),
    }
    for shift in range(3):
        # The first and last letters also depend on the neighbours of the secret.
        begin = -(-shift * 4 // 3) if shift else 0
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            found[f"{name} {shift}"] = encode(bytes(shift) + secret)[begin + 1 : -4]
    return found


def leaks(key: Ed25519PrivateKey, *texts: str | bytes) -> list[str]:
    """In which spellings the private part of a key stands in any of the texts."""
    seed = key.private_bytes_raw()
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).splitlines()[1]
    given = b"\n".join(text.encode() if isinstance(text, str) else text for text in texts)
    forms = {f"seed {name}": form for name, form in spellings(seed).items()}
    forms |= {f"DER {name}": form for name, form in spellings(der).items()} | {"PEM": pem}
    return [name for name, form in forms.items() if form in given]


def test_the_search_finds_what_it_looks_for() -> None:
    """E52: the check itself, on every spelling and in the key's own file."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(100, 132)))
    seed = key.private_bytes_raw()
    for form in spellings(seed).values():
        assert leaks(key, b"before " + form + b" after")
    for shift in range(3):
        assert leaks(key, base64.b64encode(bytes(shift) + seed + b"tail")), shift
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert leaks(key, pem)
    assert leaks(key, key.public_key().public_bytes_raw().hex()) == []


class TestNewShowExport:
    @pytest.mark.parametrize("option", [[], ["--json"]])
    def test_no_private_part_is_printed_or_written_elsewhere(
        self, command: Callable[..., Said], home: Path, option: list[str]
    ) -> None:
        """E51 E52: new, show, export, a second new, and all that lies outside the key file in the end."""
        said = [
            command("keys", "new", "lab", *option),
            command("keys", "show", "lab", *option),
            command("keys", "export", "lab", "--out", "lab.pub", *option),
            command("keys", "new", "lab", *option),
        ]
        assert [one.code for one in said] == [0, 0, 0, 2]
        file = state(home) / "keys" / "lab.key"
        key = private(file)
        written = [path.read_bytes() for path in home.rglob("*") if path.is_file() and path != file]
        assert leaks(key, *[text for one in said for text in (one.out, one.err)], *written) == []
        assert "PRIVATE" not in "".join(one.out + one.err for one in said)

    def test_the_lines(self, command: Callable[..., Said], home: Path) -> None:
        made = command("keys", "new", "lab").values
        public = private(state(home) / "keys/lab.key").public_key()
        assert list(made) == ["key", "key_id", "encrypted"]
        assert (made["key"], made["encrypted"]) == ("lab", "false")
        assert command("keys", "show", "lab").values == {
            "key": "lab",
            "key_id": made["key_id"],
            "algorithm": "ed25519",
            "public_key": public.public_bytes_raw().hex(),
        }
        exported = command("keys", "export", "lab", "--out", home / "deep.pub")
        assert exported.values == {"key": "lab", "key_id": made["key_id"], "result": "deep.pub"}
        read = load_pem_public_key((home / "deep.pub").read_bytes())
        assert read.public_bytes(Encoding.Raw, PublicFormat.Raw) == public.public_bytes_raw()

    def test_json_says_the_same_as_the_lines(self, command: Callable[..., Said]) -> None:
        command("keys", "new", "lab")
        lines, document = command("keys", "show", "lab"), command("keys", "show", "lab", "--json")
        assert document.document == lines.values

    def test_files_are_private(self, command: Callable[..., Said], home: Path) -> None:
        """E16: under the umask that lets everybody write."""
        former = os.umask(0)
        try:
            command("keys", "new", "lab")
        finally:
            os.umask(former)
        assert wrong_modes(home / ".local") == []
        assert stat.S_IMODE((state(home) / "keys/lab.key").stat().st_mode) == 0o600

    def test_a_second_one_of_the_name_is_refused(self, command: Callable[..., Said], home: Path) -> None:
        key_id = command("keys", "new", "lab").values["key_id"]
        before = (state(home) / "keys/lab.key").read_bytes()
        assert key_id in command("keys", "new", "lab").refusal
        assert (state(home) / "keys/lab.key").read_bytes() == before
        assert command("keys", "new", "lab", "--json").document == {"status": "refused", "code": "key_exists"}

    def test_a_root_of_the_person_s_own(self, command: Callable[..., Said], home: Path) -> None:
        command("keys", "new", "lab", "--root", "vault")
        assert (home / "vault/keys/lab.key").is_file()
        assert not state(home).exists()
        assert command("keys", "show", "lab", "--root", home / "vault").code == 0
        assert command("keys", "show", "lab").code == 2

    def test_show_does_not_even_read_the_private_part(self, command: Callable[..., Said], home: Path) -> None:
        """E52: it works without the key file."""
        command("keys", "new", "lab")
        (state(home) / "keys/lab.key").unlink()
        assert command("keys", "show", "lab").code == 0
        assert command("keys", "export", "lab", "--out", "lab.pub").code == 0

    @pytest.mark.parametrize("words", [["show", "lab"], ["export", "lab", "--out", "lab.pub"]])
    @pytest.mark.parametrize("root", [[], ["--root", "typo"]])
    def test_asking_makes_nothing(
        self, command: Callable[..., Said], home: Path, words: list[str], root: list[str]
    ) -> None:
        assert command("keys", *words, *root).refusal
        assert [path.name for path in home.iterdir()] == ["tmp"]

    def test_an_export_overwrites_nothing(self, command: Callable[..., Said], home: Path) -> None:
        command("keys", "new", "lab")
        (home / "lab.pub").write_text("mine")
        assert "lab.pub exists already" in command("keys", "export", "lab", "--out", "lab.pub").refusal
        assert (home / "lab.pub").read_text() == "mine"
        assert command("keys", "export", "lab", "--out", "nowhere/lab.pub").refusal

    def test_an_export_that_lies_there_already(self, command: Callable[..., Said], home: Path) -> None:
        """The same bytes are no fault, and the file stays the very one; a folder there is one."""
        command("keys", "new", "lab")
        first = command("keys", "export", "lab", "--out", "lab.pub")
        held = (home / "lab.pub").stat()
        again = command("keys", "export", "lab", "--out", "lab.pub")
        assert (again.code, again.out) == (0, first.out)
        after = (home / "lab.pub").stat()
        assert (after.st_ino, after.st_mtime_ns) == (held.st_ino, held.st_mtime_ns)
        (home / "folder.pub").mkdir()
        assert "exists already" in command("keys", "export", "lab", "--out", "folder.pub").refusal

    @pytest.mark.parametrize("name", ["../lab", "a/b", ".", "..", "", "x" * 300, "a\x1b[31mb", "a b", "ä"])
    @pytest.mark.parametrize("action", ["new", "show"])
    def test_a_name_that_is_none(self, command: Callable[..., Said], name: str, action: str) -> None:
        """F21: it is refused in one harmless line."""
        said = command("keys", action, name)
        assert said.refusal
        assert steers(said.err) == []

    def test_a_folder_that_others_can_read(self, command: Callable[..., Said], home: Path) -> None:
        """E17: refused, and its mode stays."""
        command("keys", "new", "lab")
        (state(home) / "keys").chmod(0o755)
        assert command("keys", "show", "lab", "--json").document["code"] == "root_mode"
        assert stat.S_IMODE((state(home) / "keys").stat().st_mode) == 0o755

    def test_the_working_folder_is_gone(self, command: Callable[..., Said], home: Path) -> None:
        (home / "gone").mkdir()
        os.chdir(home / "gone")
        (home / "gone").rmdir()
        said = command("keys", "new", "lab", "--root", "vault", "--json")
        assert said.document == {"status": "refused", "code": "working_folder_missing"}
        assert command("keys", "new", "lab", "--root", home / "vault").code == 0


@contextmanager
def descriptor(data: bytes) -> Iterator[str]:
    """A descriptor that gives these bytes and ends."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    try:
        yield str(reader)
    finally:
        os.close(reader)


class TestPassphraseByDescriptor:
    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            (PASSPHRASE, PASSPHRASE),
            (PASSPHRASE + b"\n", PASSPHRASE),
            (PASSPHRASE + b"\r\n", PASSPHRASE),
            (b"two\nlines\n\n", b"two\nlines\n"),
            (b" blanks ", b" blanks "),
            (b"\xff\x00", b"\xff\x00"),
        ],
    )
    def test_it_encrypts_the_key(
        self, command: Callable[..., Said], home: Path, given: bytes, meant: bytes
    ) -> None:
        with descriptor(given) as number:
            said = command("keys", "new", "lab", "--passphrase-fd", number)
        assert said.values["encrypted"] == "true"
        file = state(home) / "keys/lab.key"
        assert file.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
        assert leaks(private(file, meant), said.out, said.err, file.read_bytes()) == []

    def test_it_stands_nowhere(self, command: Callable[..., Said], home: Path) -> None:
        """E51: neither the passphrase nor its hex is printed or kept."""
        with descriptor(PASSPHRASE) as number:
            said = command("keys", "new", "lab", "--passphrase-fd", number, "--json")
        kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
        everything = (said.out + said.err).encode() + kept
        assert [name for name, form in spellings(PASSPHRASE).items() if form in everything] == []

    def test_an_empty_one_is_none(self, command: Callable[..., Said], home: Path) -> None:
        with descriptor(b"\n") as number:
            assert command("keys", "new", "lab", "--passphrase-fd", number, "--json").document["code"] == (
                "key_passphrase"
            )
        assert not (state(home) / "keys/lab.key").exists()

    def test_more_than_a_passphrase(self, command: Callable[..., Said]) -> None:
        with descriptor(b"x" * 4097) as number:
            assert (
                "larger than 4096 bytes" in command("keys", "new", "lab", "--passphrase-fd", number).refusal
            )

    @pytest.mark.parametrize("number", ["987", "-1", "1e3", "99999999999999999999"])
    def test_a_descriptor_that_is_none(self, command: Callable[..., Said], number: str) -> None:
        assert command("keys", "new", "lab", "--passphrase-fd", number).refusal

    @pytest.mark.parametrize(
        ("flags", "name"),
        [(os.O_RDONLY, "."), (os.O_WRONLY | os.O_CREAT, "file")],
        ids=["folder", "write-only"],
    )
    def test_a_descriptor_that_cannot_be_read(
        self, command: Callable[..., Said], home: Path, flags: int, name: str
    ) -> None:
        """Not the disk is at fault, but what was redirected."""
        opened = os.open(home / name, flags)
        try:
            said = command("keys", "new", "lab", "--passphrase-fd", str(opened), "--json")
        finally:
            os.close(opened)
        assert (said.code, said.document["code"]) == (2, "passphrase_source")
        told = f"file descriptor {opened} gives nothing to read ({'EISDIR' if name == '.' else 'EBADF'})"
        assert said.err == f"{PREFIX}{told}; redirect the passphrase to it, open for reading.\n"

    def test_a_pipe_with_nothing_in_it_yet(self, command: Callable[..., Said]) -> None:
        """F45: it answers at once, where its reader does not wait."""
        reader, writer = os.pipe2(os.O_NONBLOCK)
        try:
            said = command("keys", "new", "lab", "--passphrase-fd", str(reader))
        finally:
            os.close(reader)
            os.close(writer)
        assert "(EAGAIN)" in said.refusal

    def test_not_by_two_ways(self, command: Callable[..., Said]) -> None:
        said = command("keys", "new", "lab", "--passphrase", "--passphrase-fd", "0", "--json")
        assert said.document == {"status": "refused", "code": "passphrase_source"}


class Asked:
    """A command line on a terminal of its own, and whoever types there."""

    def __init__(self, home: Path, *words: str) -> None:
        self.master, slave = pty.openpty()
        self.process = start(
            home,
            *words,
            stdin=slave,
            start_new_session=True,
            # What asks for a passphrase opens the controlling terminal, not stdin.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.set_blocking(self.master, False)
        self.slave = slave
        self.shown = b""

    def type(self, text: bytes) -> None:
        """Type once the terminal has stopped showing what is typed; earlier input would be thrown away."""
        until = time.monotonic() + 20
        while termios.tcgetattr(self.slave)[3] & termios.ECHO:
            assert time.monotonic() < until, "it never asked"
            time.sleep(0.01)
        self.read()
        lines = self.shown.count(b"\n")
        os.write(self.master, text)
        # The asker ends its line itself when it has the answer.
        while self.shown.count(b"\n") == lines and self.process.poll() is None:
            assert time.monotonic() < until, "it never took the answer"
            time.sleep(0.01)
            self.read()

    def read(self) -> None:
        with suppress(BlockingIOError):
            self.shown += os.read(self.master, 65536)

    def end(self) -> Said:
        """What came of it; the terminal must show what is typed again."""
        said = ended(self.process)
        assert termios.tcgetattr(self.slave)[3] & termios.ECHO
        self.read()
        os.close(self.master)
        os.close(self.slave)
        return said


class TestPassphraseByQuestion:
    def test_asked_twice_and_never_shown(self, home: Path) -> None:
        """E51 E52: on a terminal."""
        asked = Asked(home, "keys", "new", "lab", "--passphrase")
        asked.type(PASSPHRASE + b"\n")
        asked.type(PASSPHRASE + b"\n")
        said = asked.end()
        assert said.code == 0, said
        assert said.values["encrypted"] == "true"
        private(state(home) / "keys/lab.key", PASSPHRASE)
        assert PASSPHRASE not in asked.shown + said.out.encode() + said.err.encode()

    @pytest.mark.parametrize("bad", [b"caf\xe9", b"\xff\xfe", b"ok\xc3"])
    def test_what_is_no_text(self, home: Path, bad: bytes) -> None:
        """E51: a sentence instead of a crash file, and nothing of what was typed in either."""
        asked = Asked(home, "keys", "new", "lab", "--passphrase", "--json")
        asked.type(bad + b"\n")
        said = asked.end()
        assert said.code == 2, said
        assert said.document == {"status": "refused", "code": "passphrase_source"}
        assert "no text in the encoding of this terminal" in said.err
        assert bad[:2].decode("latin-1") not in said.out + said.err
        assert not state(home).exists()

    def test_left_without_an_answer(self, home: Path) -> None:
        asked = Asked(home, "keys", "new", "lab", "--passphrase", "--json")
        asked.type(b"\x04")
        said = asked.end()
        assert said.code == 2
        assert said.document == {"status": "refused", "code": "nothing_entered"}
        assert no_traceback(said)
        assert not state(home).exists()

    def test_ctrl_c(self, home: Path) -> None:
        asked = Asked(home, "keys", "new", "lab", "--passphrase")
        asked.type(b"\x03")
        said = asked.end()
        assert (said.code, said.out) == (128 + signal.SIGINT, "")
        assert no_traceback(said)

    def test_nobody_to_ask(self, home: Path, command: Callable[..., Said]) -> None:
        del home
        said = command("keys", "new", "lab", "--passphrase", "--json")
        assert said.document == {"status": "refused", "code": "passphrase_source"}
