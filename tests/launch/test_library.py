"""Names to places: the standard library as the interpreter has it, and files that could answer for a name."""

from __future__ import annotations

import json
import site
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    BuiltinImporter,
    FrozenImporter,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path

import pytest

from skill_effectiveness.launch.faults import DriftError
from skill_effectiveness.launch.library import Library, Places, site_folders

BARE = [name for name in sys.path if name and "site-packages" not in name and "dist-packages" not in name]


class TestTheStandardLibrary:
    def test_is_found_whole(self) -> None:
        """Name for name, with what the interpreter's own finders say."""
        library = Library()
        for top in sorted(sys.stdlib_module_names):
            theirs = (
                BuiltinImporter.find_spec(top)
                or FrozenImporter.find_spec(top)
                or PathFinder.find_spec(top, [entry for entry in BARE if entry.startswith(sys.base_prefix)])
            )
            assert origin(library.find(top)) == origin(theirs), top

    @pytest.mark.parametrize("name", ["json.decoder", "xml.etree.ElementTree", "email.mime.text"])
    def test_is_found_below_its_packages(self, name: str) -> None:
        spec = Library().find(name)
        assert spec is not None
        assert isinstance(spec.loader, SourceFileLoader)
        assert spec.origin == str(Path(json.__file__).parents[1].joinpath(*name.split("."))) + ".py"

    @pytest.mark.parametrize(
        "name", ["pytest", "decoder", "json.none", "none.decoder", "json.decoder.x", "../os"]
    )
    def test_holds_nothing_else(self, name: str) -> None:
        assert Library().find(name) is None

    def test_has_no_module_in_a_mere_folder(self, tmp_path: Path) -> None:
        (tmp_path / "plain").mkdir()
        library = Library()
        library._tops = (str(tmp_path),)
        assert library.find("plain") is None

    def test_does_not_follow_a_search_path(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "hmac.py").touch()
        (tmp_path / "made_up.py").touch()
        monkeypatch.syspath_prepend(tmp_path)
        library = Library()
        assert origin(library.find("hmac")) != str(tmp_path / "hmac.py")
        assert library.find("made_up") is None


def origin(spec: ModuleSpec | None) -> str | None:
    return None if spec is None or spec.loader is None else spec.origin


class TestSiteFolders:
    def test_are_the_interpreters_own(self) -> None:
        folders = site_folders()
        assert folders
        assert all(folder.is_relative_to(sys.prefix) for folder in folders)
        assert Path(site.getusersitepackages()) not in folders

    def test_that_are_not_used_do_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As where the interpreter was started without `site`."""
        monkeypatch.setattr(sys, "path", BARE)
        assert site_folders() == ()


class TestPlaces:
    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ((), []),
            (("a/b.py",), ["a/b.py"]),
            (("a/b/__init__.py",), ["a/b/__init__.py"]),
            (("a/b/data.txt", "a/b.txt", "a/b.pyi", "a/bb.py"), []),
            (("a/b.py", "a/b/data.txt"), ["a/b.py"]),
            (("a/b.py", "a/b/__init__.py"), ["a/b.py", "a/b/__init__.py"]),
            (("a/b.py", "a/b.pyc"), ["a/b.py", "a/b.pyc"]),
            (("a/b.py", "a/__pycache__/b.cpython-311.pyc"), ["a/b.py"]),
            (("a/b.abi3.so", "a/b.py"), ["a/b.abi3.so", "a/b.py"]),
            (("a/b/__init__.abi3.so",), ["a/b/__init__.abi3.so"]),
            (("a/b.other-interpreter.so",), []),
        ],
    )
    def test_are_what_an_import_could_take(
        self, tmp_path: Path, files: tuple[str, ...], expected: list[str]
    ) -> None:
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        assert Places().of(tmp_path, "a.b") == expected

    def test_know_every_suffix_of_this_interpreter(self, tmp_path: Path) -> None:
        for suffix in (*EXTENSION_SUFFIXES, ".py", ".pyc"):
            (tmp_path / f"a{suffix}").touch()
        assert len(Places().of(tmp_path, "a")) == len(EXTENSION_SUFFIXES) + 2

    def test_are_looked_up_once(self, tmp_path: Path) -> None:
        places = Places()
        assert places.of(tmp_path, "a") == []
        (tmp_path / "a.py").touch()
        assert places.of(tmp_path, "a") == []

    def test_in_a_folder_that_cannot_be_listed_are_unknown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Unknown is not none."""

        def refuse(_folder: Path) -> list[str]:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("os.listdir", refuse)
        with pytest.raises(DriftError, match="cannot be listed"):
            Places().of(tmp_path, "a")
