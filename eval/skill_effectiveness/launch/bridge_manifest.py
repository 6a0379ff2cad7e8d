"""The runtime manifest of the bridge: every file of the evaluator, read once and hashed.

Source: bridge.md section 3. `{schema_version, entries [{path, sha256, size}], manifest_hash}`; code is named
`skill_effectiveness/…`, everything else by its place in the checkout.

The manifest probe has no more than this module, so nothing is imported here that a bare interpreter would
load for nothing: each folder is opened once, each file once, by descriptor.
"""

import json
import os
import stat
import sys
from hashlib import sha256

from skill_effectiveness.launch.faults import DriftError, ManifestError
from skill_effectiveness.launch.ownership import demand_trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

REVISION = "skill-effectiveness.bridge.v1"
PACKAGE = "skill_effectiveness"
ROOMS = ("bridge", "calibration", "evidence", "execution", "launch", "protocol", "providers", "trials")
DOOR = "bridge.py"
DOORS = (DOOR, "run.py")
DATA = ("arms", "arms/profile", "fixtures", "schemas")
WIRES = ("bridge-", "reviewer-calibration-")
"""Of the published schemas, those of these documents."""
DEPENDENCIES = (
    "annotated-types",
    "filelock",
    "psutil",
    "pydantic",
    "pydantic-core",
    "rfc8785",
    "typing-extensions",
    "typing-inspection",
)
"""The distributions whose modules an action can load, with what these require in turn.

`evidence.yaml12` is in the manifest with its room, and no action comes to it: so `ruamel-yaml` is none of
these, and is neither demanded nor found.
"""
READ_SIZE = 1 << 20


class Reading:
    """One look at all entries.

    Attributes:
        manifest: see the text of this module.
        marks: of every folder and file, by path: what a change of it would change.
    """

    def __init__(self, checkout: str) -> None:
        """Read and hash.

        Args:
            checkout: the folder of `bridge.py`, absolute.

        Raises:
            ManifestError: an entry is missing, a link, no regular file, another user's, or can be written by
                others; so are the folders on the way from the checkout.
        """
        self._checkout = checkout
        self.marks: dict[str, tuple[int, ...]] = {}
        rows = [
            {"path": path, "sha256": f"sha256:{digest}", "size": size}
            for path, digest, size in sorted(self._everything())
        ]
        head = {"schema_version": 1, "entries": rows}
        self.manifest: dict[str, object] = {**head, "manifest_hash": object_hash(head)}

    def demand_of(self, sources: "Mapping[str, bytes]") -> None:
        """Demand that code that runs already is what was read here.

        Args:
            sources: what was executed, by name below the package (`start.FirstFinder`).

        Raises:
            DriftError: a file was another one when it was loaded.
        """
        entries = self.manifest["entries"]
        assert isinstance(entries, list)  # noqa: S101 - for the type checker; this class made it
        bound = {entry["path"]: entry["sha256"] for entry in entries}
        for name, source in sources.items():
            if bound.get(f"{PACKAGE}/{name}") != f"sha256:{sha256(source).hexdigest()}":
                raise DriftError(f"{name} changed after it was loaded; start again.")

    def unchanged(self) -> bool:
        """Whether every folder and file still looks as it did."""
        try:
            return all(_mark(os.lstat(path)) == mark for path, mark in self.marks.items())
        except OSError:
            return False

    def _everything(self) -> "Iterator[tuple[str, str, int]]":
        with _Folder(self._checkout, None, "the checkout") as top:
            demand_trust(os.fstat(top.number), "the folder of bridge.py")
            for name in DOORS:
                yield self._hashed(top, name, name)
            for name in DATA:
                yield from self._folder(top, name, name, ".json")
            with top.below("eval") as above, above.below(PACKAGE) as package:
                yield self._hashed(package, "__init__.py", f"{PACKAGE}/__init__.py")
                for room in ROOMS:
                    yield from self._folder(package, room, f"{PACKAGE}/{room}", ".py", deep=True)

    def _folder(
        self, above: "_Folder", inside: str, named: str, suffix: str, *, deep: bool = False
    ) -> "Iterator[tuple[str, str, int]]":
        """Every file of a kind in a folder, and in those below it if asked."""
        first, _, rest = inside.partition("/")
        with above.below(first) as folder:
            self.marks[folder.path] = _mark(os.fstat(folder.number))
            if rest:
                yield from self._folder(folder, rest, named, suffix, deep=deep)
                return
            with os.scandir(folder.number) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
            for name, is_folder in entries:
                if name.endswith(suffix):
                    if named != "schemas" or name.startswith(WIRES):
                        yield self._hashed(folder, name, f"{named}/{name}")
                elif deep and is_folder and name != "__pycache__":
                    yield from self._folder(folder, name, f"{named}/{name}", suffix, deep=True)

    def _hashed(self, folder: "_Folder", name: str, named: str) -> tuple[str, str, int]:
        if not (named.isascii() and named.isprintable()):
            raise ManifestError(f"{named!a} has a name that a manifest cannot hold; use printable ASCII.")
        try:
            # A FIFO must not keep us waiting for a writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            number = os.open(name, flags, dir_fd=folder.number)
        except OSError as error:
            raise _unreadable(named, error) from error
        try:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise ManifestError(f"{named} is not a regular file; restore it.")
            demand_trust(status, named)
            self.marks[f"{folder.path}/{name}"] = _mark(status)
            digest, size = sha256(), 0
            while part := os.read(number, READ_SIZE):
                digest.update(part)
                size += len(part)
        except OSError as error:
            raise _unreadable(named, error) from error
        finally:
            os.close(number)
        return named, digest.hexdigest(), size


class _Folder:
    """An open folder that nobody else can change; links are not followed."""

    def __init__(self, name: str, above: "_Folder | None", path: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if above is None else os.O_NOFOLLOW)
        self.path: str = name if above is None else f"{above.path}/{name}"
        try:
            self.number: int = os.open(name, flags, dir_fd=None if above is None else above.number)
        except OSError as error:
            raise _unreadable(path, error) from error

    def below(self, name: str) -> "_Folder":
        """A folder below, trusted."""
        folder = _Folder(name, self, name)
        try:
            demand_trust(os.fstat(folder.number), name)
        except BaseException:
            os.close(folder.number)
            raise
        return folder

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.number)


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
        status.st_uid,
    )


def _unreadable(named: str, error: OSError) -> ManifestError:
    return ManifestError(f"{named} cannot be read as a trusted file ({error.strerror}); restore it.")


def object_hash(value: object) -> str:
    """The object digest of evidence.md section 3, for ASCII member names and whole numbers alone.

    With these the standard library's form, sorted and without blanks, is RFC 8785.
    """
    return f"sha256:{sha256(plain_bytes(value)).hexdigest()}"


def plain_bytes(value: object) -> bytes:
    """The canonical bytes of such a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def interpreter() -> dict[str, object]:
    """Which interpreter runs, as a response tells it.

    Raises:
        ManifestError: its executable cannot be found, or others could have changed it.
    """
    configured = sys.executable
    try:
        resolved = os.path.realpath(configured, strict=True)
        demand_trust(os.stat(resolved), "the interpreter")  # noqa: PTH116 - pathlib is not loaded
        for path in (configured, resolved):
            path.encode()
    except (OSError, UnicodeEncodeError) as error:
        raise ManifestError("The interpreter's own executable cannot be found by its path.") from error
    return {
        "configured_executable": configured,
        "resolved_executable": resolved,
        "version": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "user_site_disabled": bool(sys.flags.no_user_site),
    }


def runtime_binding(
    manifest: "Mapping[str, object]", running: "Mapping[str, object]", configuration_hash: str | None = None
) -> dict[str, object]:
    """What an answer says about what gave it.

    Args:
        manifest: of the code that runs.
        running: see `interpreter`.
        configuration_hash: for phase `full`; without it the phase is `manifest`.
    """
    entries = manifest["entries"]
    assert isinstance(entries, list)  # noqa: S101 - for the type checker; this room made it
    binding: dict[str, object] = {
        "protocol_revision": REVISION,
        "phase": "manifest" if configuration_hash is None else "full",
        "bridge_hash": next(entry["sha256"] for entry in entries if entry["path"] == DOOR),
        "manifest_hash": manifest["manifest_hash"],
        "interpreter": dict(running),
    }
    if configuration_hash is not None:
        binding["configuration_hash"] = configuration_hash
    return binding
