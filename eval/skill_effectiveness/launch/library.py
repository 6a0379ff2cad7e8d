"""Where the isolated interpreter's modules lie: its standard library, its site folders, names in a folder.

Source: bridge.md section 3 (verifying importer).

A module's place follows from its dotted name alone. What search paths, path hooks or a package's `__path__`
say does not count, so nobody can lead a name elsewhere.
"""

from __future__ import annotations

import os
import site
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FileFinder,
    FrozenImporter,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.launch.faults import DriftError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

MODULE_SUFFIXES = (*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES, *BYTECODE_SUFFIXES)


def site_folders() -> tuple[Path, ...]:
    """The interpreter's own site folders: never the user's, nor those of a virtual environment's base."""
    own = site.getsitepackages([sys.prefix, sys.exec_prefix])
    return tuple(Path(folder) for folder in own if folder in sys.path)


class Library:
    """The standard library of the running interpreter.

    Its bytes, bytecode caches included, belong to whoever owns the interpreter; they are outside what a
    manifest proves.
    """

    def __init__(self) -> None:
        folder = os.path.dirname(os.__file__)  # noqa: PTH120 - the interpreter's own text
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        loaded = Path(sys.base_exec_prefix, sys.platlibdir, version, "lib-dynload")
        # On some platforms these two are one.
        self._tops = tuple(dict.fromkeys((folder, str(Path(folder, "lib-dynload")), str(loaded))))
        self._finders: dict[str, FileFinder] = {}

    def find(self, fullname: str) -> ModuleSpec | None:
        """The spec of a module of the standard library."""
        known = BuiltinImporter.find_spec(fullname) or FrozenImporter.find_spec(fullname)
        if known is not None:
            return known
        inside = fullname.split(".")[:-1]
        for top in self._tops:
            spec = self._finder(str(Path(top, *inside))).find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None

    def _finder(self, folder: str) -> FileFinder:
        if folder not in self._finders:
            self._finders[folder] = FileFinder(
                folder,
                (ExtensionFileLoader, EXTENSION_SUFFIXES),
                (SourceFileLoader, SOURCE_SUFFIXES),
                (SourcelessFileLoader, BYTECODE_SUFFIXES),
            )
        return self._finders[folder]


class Places:
    """Which files could answer for a module name; each folder is listed once."""

    def __init__(self) -> None:
        self._listed: dict[Path, frozenset[str]] = {}

    def of(self, top: Path, fullname: str) -> list[str]:
        """The forward-slashed names below `top` that an ordinary import could take for a module.

        Raises:
            DriftError: a folder cannot be listed.
        """
        *inside, tail = fullname.split(".")
        names = self.inside(top.joinpath(*inside))
        found = [tail + suffix for suffix in MODULE_SUFFIXES if tail + suffix in names]
        if tail in names:
            below = self.inside(top.joinpath(*inside, tail))
            found += [f"{tail}/__init__{end}" for end in MODULE_SUFFIXES if f"__init__{end}" in below]
        return ["/".join([*inside, name]) for name in found]

    def inside(self, folder: Path) -> frozenset[str]:
        """The names in a folder, none when it is no folder; errors as `of`."""
        if folder not in self._listed:
            try:
                names = os.listdir(folder)  # noqa: PTH208 - names, not paths
            except (FileNotFoundError, NotADirectoryError):
                names = []
            except OSError as error:
                raise DriftError(f"The folder {folder.name} cannot be listed ({error.strerror}).") from error
            self._listed[folder] = frozenset(names)
        return self._listed[folder]
