"""Code that was compiled from verified sources before, kept in the state root: reading it.

Source: bridge.md section 3 (verifying importer). An entry is authenticated with the cache's own key over
interpreter, origin, digest of the source and code, so a forged or stale one is compiled anew and never run.
`bridge.code_store` writes: this room changes no file.

```
<state>/code/key            32 random bytes
<state>/code/<64 hex>       32 bytes of authentication (BLAKE2b, keyed), then the code (marshal)
```
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

FOLDER = "code"
KEY = "key"
KEY_SIZE = 32
STATE = "skill-effectiveness"
LARGEST = 4_194_304
"""Bytes of an entry at most."""
ACCOUNTS = "/etc/passwd"
ACCOUNT_FIELDS = 7


def state_folder() -> str | None:
    """Where the product keeps its own state; None where nobody can tell.

    The same place as that of `evidence.root.state_path`, as the bridge asks for it.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if base.startswith("/"):
        return f"{base.rstrip('/')}/{STATE}"
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        home = _home_of_account()
    return f"{home.rstrip('/')}/.local/state/{STATE}" if home.startswith("/") else None


def _home_of_account() -> str:
    """The user's home folder as `/etc/passwd` has it; empty without one.

    Not asked of the password database, which may be another process behind a socket (nscd, sssd).
    """
    user = str(os.geteuid())
    try:
        with open(ACCOUNTS, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib yet
            for line in file:
                row = line.rstrip("\n").split(":")
                if len(row) == ACCOUNT_FIELDS and row[2] == user:
                    return row[5]
    except OSError:
        return ""
    return ""


class CodeCache:
    """Entries of one state root.

    Attributes:
        folder: the state root; None when there is none, and then nothing is found.
        fresh: what was compiled because it was not there: name and code, to be kept by whoever writes.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.fresh: dict[str, bytes] = {}
        self._number: int | None = None
        self._key: bytes | None = None
        if folder is not None:
            self._open(f"{folder}/{FOLDER}")

    def get(self, origin: str, digest: str) -> CodeType | None:
        """The code that was compiled from a source of this digest.

        Args:
            origin: its file, which the code names in tracebacks.
            digest: of its bytes, just computed.
        """
        if self._key is None:
            return None
        name = entry_name(origin, digest)
        data = self._read(name)
        if data is None or len(data) <= KEY_SIZE or data[:KEY_SIZE] != seal(self._key, name, data[KEY_SIZE:]):
            return None
        code: CodeType = marshal.loads(data[KEY_SIZE:])  # noqa: S302 - authenticated
        return code

    def put(self, origin: str, digest: str, code: CodeType) -> None:
        """Remember code that was not there."""
        self.fresh[entry_name(origin, digest)] = marshal.dumps(code)

    def _open(self, path: str) -> None:
        try:
            number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        status = os.fstat(number)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
            os.close(number)
            return
        self._number = number
        key = self._read(KEY)
        self._key = key if key is not None and len(key) == KEY_SIZE else None

    def _read(self, name: str) -> bytes | None:
        """A private file of ours; None for anything else."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            number = os.open(name, flags, dir_fd=self._number)
        except OSError:
            return None
        try:
            status = os.fstat(number)
            private = stat.S_IFREG | stat.S_IRUSR | stat.S_IWUSR
            if status.st_mode != private or status.st_uid != os.geteuid() or status.st_size > LARGEST:
                return None
            return os.read(number, status.st_size + 1)
        except OSError:
            return None
        finally:
            os.close(number)


def entry_name(origin: str, digest: str) -> str:
    """The name of an entry: which source, where, for which interpreter."""
    said = "\0".join((sys.version, sys.implementation.cache_tag or "", origin, digest))
    return blake2b(said.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()


def seal(key: bytes, name: str, code: bytes) -> bytes:
    """What authenticates an entry."""
    return blake2b(name.encode("ascii") + b"\0" + code, key=key, digest_size=KEY_SIZE).digest()
