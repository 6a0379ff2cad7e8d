"""The verifying importer: after it is installed, every module comes from where the manifest says.

Source: bridge.md section 3 (verifying importer); calibration.md section 3.

It is all of `sys.meta_path`, so no other finder is asked for anything:

1. Modules of the package come from the door's own tree alone, whatever else is installed under that name.
   Each source is read once through a descriptor; those very bytes are hashed and compared with the
   manifest, and only code made from them runs. `__pycache__` is neither read nor written. An extension module
   or bytecode in the tree is refused.
2. The standard library comes from the interpreter's own folders.
3. Everything else has to be a file of a bound distribution (`distributions.py`); what else is installed is
   not found, as if it were not there.
4. A name that could come from two places is refused.

A refusal is remembered: no further module loads, and `require` raises it again, whoever swallowed the first.

Code is compiled in memory, or taken from the authenticated cache of the door that has one
(`code_cache.py`). The door of calibration has none: with the modules of its rooms (0.8 MB of source) compiled
in memory, it starts in 0.6 s on a machine where a bare interpreter takes 0.015 s.
"""

from __future__ import annotations

import errno
import hashlib
import sys
from contextlib import contextmanager
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.launch.faults import DriftError, LaunchError, UnloadableError
from skill_effectiveness.launch.library import Library, Places, site_folders
from skill_effectiveness.launch.manifest import PACKAGE, entry_digests, record_digests
from skill_effectiveness.launch.trusted import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.metadata import Distribution, DistributionFinder
    from types import CodeType, ModuleType

    from skill_effectiveness.launch.code_cache import CodeCache
    from skill_effectiveness.launch.distributions import Distributions
    from skill_effectiveness.launch.start import FirstFinder

SOURCE_SUFFIX: Final = ".py"


class Importer:
    """Finds and loads everything, or refuses; made only when what has run already is in the manifest.

    It is a loader without the abstract class of one, which brings a sixth of the standard library along.
    """

    def __init__(
        self, manifest: Mapping[str, object], first: FirstFinder, cache: CodeCache | None = None
    ) -> None:
        """Compare what ran before with the manifest.

        Args:
            manifest: what is bound.
            first: what loaded the modules of `launch` that run already, from the tree of the door.
            cache: of code that was compiled from sources with the same bytes; none if absent. With one, the
                RECORDs are read when the first distribution is needed, and may be refused then.

        Raises:
            DriftError: one of those is not bound or could come from two places, or the distributions are not
                as bound.
            ManifestError: a RECORD cannot be trusted.
        """
        self._folder = Path(first.folder)
        self._cache = cache
        self._bound = entry_digests(manifest)
        self._sources: dict[str, bytes] = {}
        self._loaded: dict[str, ModuleType] = dict(first.modules)
        self._refusal: LaunchError | None = None
        self._places = Places()
        self._library = Library()
        self._records = record_digests(manifest)
        self._site = site_folders()
        self._reading_records = False
        if cache is None:
            _ = self._distributions
        for relative, source in first.sources.items():
            self._adopt(f"{PACKAGE}/{relative}", source)
        for name in first.modules:
            self._own(name)

    @cached_property
    def _distributions(self) -> Distributions:
        """Read when the first module of one is asked for, by a door that has no time to do it before."""
        self._reading_records = True
        from skill_effectiveness.launch.distributions import Distributions  # noqa: PLC0415 - likewise

        self._reading_records = False
        return Distributions(self._site, self._records, self._places, self._remembering)

    def install(self) -> None:
        """Answer for every import from now on.

        What came from elsewhere than the standard library (start-up hooks of the environment) is forgotten,
        so that whoever asks for it gets it verified, or not at all.
        """
        for name in list(sys.modules):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top != "__main__" and not self._runs_already(name):
                del sys.modules[name]
        sys.meta_path[:] = [self]

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module comes from; None when nothing bound has that name.

        Raises:
            LaunchError: this name or an earlier one was refused.
        """
        with self._remembering():
            return self._own(fullname) if _of_package(fullname) else self._foreign(fullname)

    def create_module(self, _spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a module of the package.

        Raises:
            LaunchError: its bytes are not the bound ones, or cannot be trusted.
            UnloadableError: they are, and do not compile.
        """
        spec = vars(module)["__spec__"]
        with self._remembering():
            code = self._code(spec.loader_state, spec.origin)
        self._loaded[spec.name] = module
        exec(code, vars(module))  # noqa: S102 - what an importer does

    def get_data(self, path: str) -> bytes:
        """One of our own sources as it is bound, for `pkgutil.get_data`: it may run in another process.

        Raises:
            OSError: it is none of the bound ones.
            LaunchError: its bytes are not the bound ones, or cannot be trusted.
        """
        place = Path(path)
        inside = place.is_relative_to(self._folder.parent)
        entry = place.relative_to(self._folder.parent).as_posix() if inside else ""
        if not entry.startswith(f"{PACKAGE}/") or entry not in self._bound:
            raise FileNotFoundError(errno.ENOENT, "not a source that is bound", place.name)
        with self._remembering():
            return self._source(entry)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """The bound distributions, for `importlib.metadata`."""
        return self._distributions.metadata(None if context is None else context.name)

    def loaded_checkout_modules(self) -> tuple[str, ...]:
        """The entries whose code was loaded or handed out, sorted, without the door's own file."""
        return tuple(sorted(self._sources))

    def require(self) -> None:
        """Demand that everything so far came from here and was not refused.

        Raises:
            LaunchError: the first refusal.
            DriftError: another finder was put beside this one, or a module of the package came another way.
        """
        with self._remembering():
            self._demand_none_refused()
            if len(sys.meta_path) != 1 or sys.meta_path[0] is not self:
                raise DriftError("Another module finder was put beside the verifying importer; remove it.")
            for name in list(sys.modules):
                if _of_package(name) and not self._runs_already(name):
                    raise DriftError(f"{name} was not loaded by the verifying importer; start again.")

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Keep the first refusal."""
        try:
            yield
        except LaunchError as refusal:
            self._refusal = self._refusal or refusal
            raise

    def _demand_none_refused(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _runs_already(self, name: str) -> bool:
        """Whether the module of that name is the one that was loaded here."""
        return name in self._loaded and sys.modules.get(name) is self._loaded[name]

    def _foreign(self, fullname: str) -> ModuleSpec | None:
        """A module of the standard library or of a bound distribution."""
        library = self._library.find(fullname)
        if library is not None and (self._refusal is not None or self._reading_records):
            return library  # whoever reports the refusal, or reads the RECORDs, may need it
        if library is not None and not self._is_installed(fullname.partition(".")[0]):
            return library
        self._demand_none_refused()
        third = self._distributions.find(fullname)
        if library is not None and third is not None:
            raise DriftError(f"The module {fullname} is in the standard library and in a distribution.")
        return library or third

    def _is_installed(self, top: str) -> bool:
        """Whether a site folder has anything of a name."""
        return any(
            name == top or name.startswith(f"{top}.")
            for folder in self._site
            for name in self._places.inside(folder)
        )

    def _own(self, fullname: str) -> ModuleSpec | None:
        """A module of the package, from the door's tree."""
        self._demand_none_refused()
        found = self._places.of(self._folder.parent, fullname)
        if not found:
            return None
        if len(found) > 1:
            raise DriftError(f"{fullname} could come from {len(found)} files; remove all but the source.")
        if not found[0].endswith(SOURCE_SUFFIX):
            raise DriftError(f"{found[0]} is compiled code among our sources; remove it.")
        if found[0] not in self._bound:
            return None
        is_package = found[0].endswith("/__init__.py")
        place = self._folder.parent / found[0]
        spec = ModuleSpec(fullname, None, origin=str(place), is_package=is_package)
        spec.loader = self  # type: ignore[assignment] # see above
        if is_package:
            spec.submodule_search_locations = [str(place.parent)]
        spec.loader_state = found[0]
        spec.has_location = True
        return spec

    def _code(self, entry: str, origin: str) -> CodeType:
        """Code from the bytes of an entry."""
        source = self._source(entry)
        known = None if self._cache is None else self._cache.get(origin, self._bound[entry])
        if known is not None:
            return known
        try:
            code: CodeType = compile(source, origin, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise UnloadableError(f"{entry} does not compile; restore it.") from error
        if self._cache is not None:
            self._cache.put(origin, self._bound[entry], code)
        return code

    def _source(self, entry: str) -> bytes:
        """The bytes of an entry, read now unless they were before."""
        self._demand_none_refused()
        if entry not in self._sources:
            self._adopt(entry, read_file(self._folder, entry.removeprefix(f"{PACKAGE}/")))
        return self._sources[entry]

    def _adopt(self, entry: str, source: bytes) -> None:
        """Keep bytes that are the bound ones."""
        if self._bound.get(entry) != f"sha256:{hashlib.sha256(source).hexdigest()}":
            raise DriftError(f"{entry} changed after it was bound; start again.")
        self._sources[entry] = source


def _of_package(name: str) -> bool:
    """Whether a dotted name is the package or in it."""
    return name.partition(".")[0] == PACKAGE
