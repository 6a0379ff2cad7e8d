"""Third-party modules: only of bound distributions, only from the site folder, each file as its RECORD says.

Source: bridge.md section 3; RECORD: PEP 376, PEP 427 ("Recording installed projects", packaging.python.org).

Verified are the sources and extension modules that are loaded, and the shared libraries that a distribution
with a loaded extension module brings along (folders `….libs`, `….dylibs`). Bytecode caches of these sources
belong to whoever owns the environment and are outside what a manifest proves; one is taken only beside a
source of the recorded bytes, and only when nobody else can have written it. An extension module is loaded by
its path after its bytes were verified, so the environment's owner could still swap it in between.
"""

from __future__ import annotations

import base64
import csv
import errno
import hashlib
import io
import re
from functools import partial
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.launch.faults import DriftError, ManifestError
from skill_effectiveness.launch.trusted import read_lone_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from importlib.metadata import Distribution
    from types import CodeType, ModuleType

    from skill_effectiveness.launch.library import Places

ALGORITHMS: Final = frozenset({"sha256", "sha384", "sha512"})
SOURCE_SUFFIX: Final = ".py"
RECORD_COLUMNS: Final = 3
INFO: Final = ".dist-info"
COMPANIONS: Final = (".libs/", ".dylibs/")


class Listed(NamedTuple):
    """One file of a bound distribution: whose it is, and `<algorithm>=<digest>` of its bytes, or nothing."""

    owner: str
    digest: str


class Distributions:
    """The bound distributions as they are installed in the site folders; made only when every RECORD fits."""

    def __init__(
        self,
        folders: Sequence[Path],
        bound: Mapping[str, str],
        places: Places,
        remembering: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Read each RECORD once.

        Args:
            folders: site folders; a module that lies in two of them is refused.
            bound: digest text of the RECORD of every distribution, by normalised name.
            places: which files could answer for a name.
            remembering: entered around every read of what is going to be executed; keeps refusals.

        Raises:
            ManifestError: a distribution is not there, or there twice, or its RECORD is no trusted file of
                the form that RECORDs have.
            DriftError: a RECORD is not the bound one; a module is in two of them.
        """
        self._folders = tuple(folders)
        self._places = places
        self._remembering = remembering
        self._files: dict[Path, dict[str, Listed]] = {folder: {} for folder in folders}
        self._inner_folders: set[tuple[Path, str]] = set()
        self._with_extension: set[str] = set()
        self._names = frozenset(bound)
        homes = self._homes()
        for name, digest in bound.items():
            self._enter(name, digest, homes.get(name, []))

    def find(self, fullname: str) -> ModuleSpec | None:
        """The spec of a module of a bound distribution; None for any other name, installed or not.

        Raises:
            DriftError: the name could come from two places.
        """
        found = [(top, place) for top in self._folders for place in self._places.of(top, fullname)]
        listed = [(top, place) for top, place in found if place in self._files[top]]
        if not listed:
            return self._plain_folder(fullname)
        if len(found) > 1:
            raise DriftError(
                f"The module {fullname} could come from {len(found)} files; remove all but the installed one."
            )
        top, place = listed[0]
        read = partial(self._read, top, place)
        loader: SourceFileLoader | ExtensionFileLoader = (
            RecordedSource(fullname, str(top / place), read)
            if place.endswith(SOURCE_SUFFIX)
            else RecordedExtension(fullname, str(top / place), read)
        )
        return spec_from_file_location(fullname, top / place, loader=loader)

    def metadata(self, wanted: str | None) -> Iterator[Distribution]:
        """What `importlib.metadata` may know: the bound distributions in the site folders."""
        from importlib.metadata import DistributionFinder, MetadataPathFinder  # noqa: PLC0415 - whoever asks has it

        asked = None if wanted is None else _normalised(wanted)
        for name in sorted(self._names if asked is None else self._names & {asked}):
            context = DistributionFinder.Context(name=name, path=[str(folder) for folder in self._folders])
            yield from MetadataPathFinder.find_distributions(context)

    def _homes(self) -> dict[str, list[tuple[Path, str]]]:
        """Folder and name of every installed `.dist-info`, by the distribution's name."""
        homes: dict[str, list[tuple[Path, str]]] = {}
        for folder in self._folders:
            for entry in sorted(self._places.inside(folder)):
                if entry.endswith(INFO):
                    homes.setdefault(_normalised(entry.partition("-")[0]), []).append((folder, entry))
        return homes

    def _enter(self, name: str, digest: str, homes: Sequence[tuple[Path, str]]) -> None:
        """Read the RECORD of one distribution."""
        if len(homes) != 1:
            raise ManifestError(
                f"The distribution {name} is installed {len(homes)} times in the interpreter's own site "
                "folder; install it once, with pip, in this environment."
            )
        ((folder, info),) = homes
        record = read_lone_file(folder / info / "RECORD")
        if f"sha256:{hashlib.sha256(record).hexdigest()}" != digest:
            raise DriftError(f"The RECORD of {name} is not the bound one; start again.")
        files = self._files[folder]
        for place, promised in _code_of(record, name):
            if place in files:
                raise DriftError(f"{place} is in the RECORD of {name} and of {files[place].owner}.")
            files[place] = Listed(name, promised)
            inner = place.rpartition("/")[0]
            while inner and (folder, inner) not in self._inner_folders:
                self._inner_folders.add((folder, inner))
                inner = inner.rpartition("/")[0]

    def _plain_folder(self, fullname: str) -> ModuleSpec | None:
        """A folder of a bound distribution that has no `__init__`, as a namespace of this one place."""
        inside = "/".join(fullname.split("."))
        tops = [top for top in self._folders if (top, inside) in self._inner_folders]
        if not tops:
            return None
        if len(tops) > 1:
            raise DriftError(f"The folder {inside} lies in two site folders; remove one.")
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(tops[0] / inside)]
        return spec

    def _read(self, top: Path, place: str) -> bytes:
        """The bytes of a module about to run; what an extension module is linked against is verified once."""
        with self._remembering():
            owner = self._files[top][place].owner
            if not place.endswith(SOURCE_SUFFIX) and owner not in self._with_extension:
                self._with_extension.add(owner)
                for other, listed in self._files[top].items():
                    if listed.owner == owner and _is_companion(other):
                        self._verified(top, other)
            return self._verified(top, place)

    def _verified(self, top: Path, place: str) -> bytes:
        """The bytes of a file, which are those that its RECORD promises."""
        algorithm, _, promised = self._files[top][place].digest.partition("=")
        if algorithm not in ALGORITHMS or not promised:
            raise ManifestError(
                f"The RECORD gives no digest of {place}; install its distribution from a wheel with pip."
            )
        data = read_lone_file(top / place)
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
        if digest != promised:
            raise DriftError(f"{place} is not what its distribution's RECORD says; install that again.")
        return data


class RecordedSource(SourceFileLoader):
    """Loads a source that is verified first; the one read of it is the one that counts."""

    def __init__(self, fullname: str, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(fullname, path)
        self._read = read
        self._source: bytes | None = None

    def get_data(self, path: str) -> bytes:
        """The verified source, its bytecode cache if nobody else can have written that, or a file beside it.

        Raises:
            OSError: a cache that cannot be trusted; whoever asked makes code from the source then.
        """
        if path.endswith(tuple(BYTECODE_SUFFIXES)):
            try:
                return read_lone_file(Path(path))
            except ManifestError as untrusted:
                raise PermissionError(errno.EACCES, str(untrusted), path) from untrusted
        if path != self.path:
            return super().get_data(path)
        if self._source is None:
            self._source = self._read()
        return self._source

    def get_code(self, fullname: str) -> CodeType | None:
        """Verify, also where a bytecode cache is going to be taken."""
        self.get_data(self.path)
        return super().get_code(fullname)


class RecordedExtension(ExtensionFileLoader):
    """Loads an extension module that is verified first."""

    def __init__(self, fullname: str, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(fullname, path)
        self._read = read

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Verify, then let the interpreter load it."""
        self._read()
        return super().create_module(spec)


def _code_of(record: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Path and digest of every module and companion library in a RECORD."""
    try:
        rows = list(csv.reader(io.StringIO(record.decode("utf-8"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"The RECORD of {name} cannot be read; install that again.") from error
    for row in filter(None, rows):
        if len(row) != RECORD_COLUMNS:
            raise ManifestError(f"The RECORD of {name} cannot be read; install that again.")
        if row[0].endswith((SOURCE_SUFFIX, *EXTENSION_SUFFIXES)) or _is_companion(row[0]):
            yield row[0], row[1]


def _is_companion(place: str) -> bool:
    """Whether it lies in a folder for the shared libraries that a wheel brings along."""
    return any(folder in place for folder in COMPANIONS)


def _normalised(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
