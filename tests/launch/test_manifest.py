"""The runtime manifest: complete, exact, equal wherever the package lies."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from packaging.requirements import Requirement

import skill_effectiveness
from skill_effectiveness.launch import manifest
from skill_effectiveness.launch.manifest import (
    ManifestError,
    build_manifest,
    calibration_dependencies,
    calibration_entries,
    calibration_manifest,
)

PACKAGE = Path(skill_effectiveness.__file__).parent
CHECKOUT = PACKAGE.parents[1]

# FIPS 180-2, appendix B.1, and the digest of nothing.
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A package and its frozen data; the file `abc` holds these letters, every other one nothing."""
    files = {
        "package/__init__.py": b"",
        "package/room/abc.py": b"abc",
        "package/room/__init__.py": b"",
        "package/room/deep/below.py": b"",
        "package/room/note.txt": b"note",
        "package/other/left-out.py": b"",
        "frozen/fixtures/cases.json": b"abc",
        "frozen/schemas/wire-one.json": b"",
        "frozen/schemas/wire-two.json": b"",
        "frozen/schemas/else.json": b"",
        "frozen/schemas/wire-below/wire-three.json": b"",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
    for path in (tmp_path, *tmp_path.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return tmp_path


ENTRIES = (
    "skill_effectiveness/room/**/*.py",
    "skill_effectiveness/__init__.py",
    "schemas/wire-*.json",
    "fixtures/cases.json",
)


def built(
    house: Path, entries: tuple[str, ...] = ENTRIES, dependencies: tuple[str, ...] = ()
) -> dict[str, Any]:
    return build_manifest(
        package_folder=house / "package",
        frozen_folder=house / "frozen",
        entries=entries,
        dependencies=dependencies,
        protocol_revision="test.v1",
        interpreter=Path(sys.executable),
    )


class TestEntries:
    def test_are_sorted_and_exact(self, house: Path) -> None:
        """Forward slashes, digest and size of each; neighbours and deeper schemas left out."""
        assert built(house)["entries"] == [
            {"path": "fixtures/cases.json", "sha256": ABC, "size": 3},
            {"path": "schemas/wire-one.json", "sha256": EMPTY, "size": 0},
            {"path": "schemas/wire-two.json", "sha256": EMPTY, "size": 0},
            {"path": "skill_effectiveness/__init__.py", "sha256": EMPTY, "size": 0},
            {"path": "skill_effectiveness/room/__init__.py", "sha256": EMPTY, "size": 0},
            {"path": "skill_effectiveness/room/abc.py", "sha256": ABC, "size": 3},
            {"path": "skill_effectiveness/room/deep/below.py", "sha256": EMPTY, "size": 0},
        ]

    def test_named_twice_count_once(self, house: Path) -> None:
        again = (*ENTRIES, "skill_effectiveness/room/abc.py", "skill_effectiveness/room/*.py")
        assert built(house, again) == built(house)

    def test_a_pattern_may_fit_nothing_but_a_name_must_exist(self, house: Path) -> None:
        assert built(house, ("schemas/none-*.json",))["entries"] == []
        for name in ("fixtures/none.json", "skill_effectiveness/none.py", "none/*.json"):
            with pytest.raises(ManifestError, match="none"):
                built(house, (name,))

    @pytest.mark.parametrize("change", ["link", "group", "world", "folder", "fifo"])
    @pytest.mark.parametrize("name", ["package/room/abc.py", "frozen/fixtures/cases.json"])
    def test_an_untrusted_one_refuses_the_whole(self, house: Path, name: str, change: str) -> None:
        """B15: no manifest, and the sentence names the entry."""
        path = house / name
        match change:
            case "link":
                path.rename(path.with_suffix(".moved"))
                path.symlink_to(path.with_suffix(".moved"))
            case "group":
                path.chmod(0o664)
            case "world":
                path.chmod(0o646)
            case "folder":
                path.unlink()
                path.mkdir()
            case _:
                path.unlink()
                os.mkfifo(path, 0o600)
        with pytest.raises(ManifestError, match=path.name) as caught:
            built(house)
        assert caught.value.code == "runtime_manifest_unavailable"

    @pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
    def test_a_package_that_others_may_replace_as_a_whole(self, house: Path, mode: int) -> None:
        """B15: the folder above it is as much on the way as those below."""
        house.chmod(mode)
        told = f"{house.name}, the folder above skill_effectiveness, can be written by others"
        with pytest.raises(ManifestError, match=told):
            built(house)

    @pytest.mark.parametrize("name", ["ä.py", "line\nbreak.py", "esc\033.py"])
    def test_a_name_beyond_printable_ascii_is_refused(self, house: Path, name: str) -> None:
        """The canonical form of a manifest is ASCII."""
        (house / "package" / "room" / name).touch(0o644)
        with pytest.raises(ManifestError, match="printable ASCII"):
            built(house)


class TestTheHash:
    def test_covers_the_rest_in_canonical_form(self, house: Path) -> None:
        """Equal to what another library makes of it."""
        found = built(house, dependencies=("pydantic",))
        rest = {name: value for name, value in found.items() if name != "manifest_hash"}
        assert found["manifest_hash"] == f"sha256:{hashlib.sha256(rfc8785.dumps(rest)).hexdigest()}"
        assert list(found) == [
            "schema_version",
            "protocol_revision",
            "interpreter",
            "entries",
            "dependencies",
            "manifest_hash",
        ]
        assert (found["schema_version"], found["protocol_revision"]) == (1, "test.v1")

    @pytest.mark.parametrize(
        "name", ["package/__init__.py", "package/room/deep/below.py", "frozen/schemas/wire-two.json"]
    )
    def test_changes_with_one_byte_of_any_entry(self, house: Path, name: str) -> None:
        """B8 R2: and with nothing else."""
        before = built(house)["manifest_hash"]
        assert built(house)["manifest_hash"] == before
        (house / "package" / "other" / "left-out.py").write_bytes(b"x")
        assert built(house)["manifest_hash"] == before
        (house / name).write_bytes(b"\n")
        assert built(house)["manifest_hash"] != before

    def test_changes_with_a_new_file_in_a_room(self, house: Path) -> None:
        before = built(house)["manifest_hash"]
        (house / "package" / "room" / "new.py").touch(0o644)
        assert built(house)["manifest_hash"] != before


class TestTheInterpreter:
    def test_is_named_by_kind_version_and_bytes(self, house: Path) -> None:
        executable = Path(sys.executable).resolve()
        assert built(house)["interpreter"] == {
            "implementation": "cpython",
            "version": platform.python_version(),
            "executable_hash": f"sha256:{hashlib.sha256(executable.read_bytes()).hexdigest()}",
        }

    def test_that_others_may_write_is_refused(self, house: Path) -> None:
        """B15: bridge.md section 2, modes."""
        fake = house / "python"
        fake.write_bytes(b"")
        fake.chmod(0o775)
        with pytest.raises(ManifestError, match="python"):
            build_manifest(
                package_folder=house / "package",
                frozen_folder=house / "frozen",
                entries=(),
                dependencies=(),
                protocol_revision="test.v1",
                interpreter=fake,
            )

    def test_that_is_missing_is_refused(self, house: Path) -> None:
        with pytest.raises(ManifestError, match="interpreter"):
            build_manifest(
                package_folder=house / "package",
                frozen_folder=house / "frozen",
                entries=(),
                dependencies=(),
                protocol_revision="test.v1",
                interpreter=house / "none",
            )


def distribution(site: Path, record: bytes | None) -> None:
    """A distribution `made-up` in a site folder."""
    info = site / "made_up-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.2\n")
    if record is not None:
        (info / "RECORD").write_bytes(record)
        (info / "RECORD").chmod(0o644)


class TestDependencies:
    def test_are_named_by_version_and_record(self, house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        record = b"made_up-1.2.dist-info/METADATA,sha256=x,1\nmade_up-1.2.dist-info/RECORD,,\n"
        distribution(house / "site", record)
        monkeypatch.syspath_prepend(house / "site")
        assert built(house, dependencies=("made-up",))["dependencies"] == [
            {
                "name": "made-up",
                "version": "1.2",
                "record_sha256": f"sha256:{hashlib.sha256(record).hexdigest()}",
            }
        ]

    def test_are_sorted_and_listed_once(self, house: Path) -> None:
        found = built(house, dependencies=("rfc8785", "pydantic", "filelock", "pydantic"))["dependencies"]
        assert [row["name"] for row in found] == ["filelock", "pydantic", "rfc8785"]
        assert [row["version"] for row in found] == [metadata.version(row["name"]) for row in found]

    def test_that_are_missing_are_refused(self, house: Path) -> None:
        with pytest.raises(ManifestError, match="made-up is not installed"):
            built(house, dependencies=("made-up",))

    @pytest.mark.parametrize("record", [None, b"", b"made_up.py,,\n"])
    def test_without_a_record_are_refused(
        self, house: Path, monkeypatch: pytest.MonkeyPatch, record: bytes | None
    ) -> None:
        """B13: there would be nothing to hold their files against."""
        distribution(house / "site", record)
        monkeypatch.syspath_prepend(house / "site")
        with pytest.raises(ManifestError, match="made-up has no RECORD"):
            built(house, dependencies=("made-up",))

    def test_with_a_record_that_others_may_write_are_refused(
        self, house: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        distribution(house / "site", b"made_up-1.2.dist-info/RECORD,,\n")
        (house / "site" / "made_up-1.2.dist-info" / "RECORD").chmod(0o666)
        monkeypatch.syspath_prepend(house / "site")
        with pytest.raises(ManifestError, match="the RECORD of the distribution made-up can be written"):
            built(house, dependencies=("made-up",))


def normal(name: str) -> str:
    """The name of a distribution as the manifest spells it: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(names: set[str]) -> set[str]:
    """These distributions and whatever they require here, without extras."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        required = map(Requirement, metadata.requires(name) or [])
        needed = (each for each in required if each.marker is None or each.marker.evaluate({"extra": ""}))
        waiting |= {normal(each.name) for each in needed} - found
    return found


def imported(tree: ast.AST) -> set[str]:
    """Top names of what a source imports when it runs, in functions too; not what only type checkers read."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                found |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
            case _:
                found |= imported(node)
    return found


class TestCalibration:
    def test_binds_every_module_and_the_frozen_files(self) -> None:
        """Its code, what that loads, the adapters, the judged bank, the gates, the wire schemas."""
        rooms = ("calibration", "evidence", "execution", "launch", "protocol", "providers")
        code = {
            path.relative_to(PACKAGE).as_posix() for room in rooms for path in (PACKAGE / room).rglob("*.py")
        }
        expected = {f"skill_effectiveness/{name}" for name in code | {"__init__.py"}}
        expected |= {
            "fixtures/licence-policy.json",
            "fixtures/pilot-gates.json",
            "fixtures/reviewer-bias-probe-answers.json",
            "fixtures/reviewer-bias-probes.json",
            "fixtures/reviewer-calibration-cases.json",
            "fixtures/reviewer-calibration-known-answers.json",
        }
        expected |= {
            f"schemas/{path.name}" for path in (CHECKOUT / "schemas").glob("reviewer-calibration-*.json")
        }
        rows: Any = calibration_manifest()["entries"]
        assert {row["path"] for row in rows} == expected
        assert "skill_effectiveness/execution/supervisor.py" in expected

    def test_each_entry_hashes_to_its_value_from_outside(self) -> None:
        """B7: by whoever wants to."""
        found: Any = calibration_manifest()
        for row in found["entries"]:
            place = PACKAGE.parent if row["path"].startswith("skill_effectiveness/") else CHECKOUT
            data = (place / row["path"]).read_bytes()
            assert (row["sha256"], row["size"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        assert found["protocol_revision"] == "skill-effectiveness.reviewer-calibration.v1"

    def test_an_installed_package_has_the_entries_of_its_checkout(self, tmp_path: Path) -> None:
        """Frozen data lie inside the package there; names do not show it."""
        installed = tmp_path / "skill_effectiveness"
        shutil.copytree(PACKAGE, installed, ignore=shutil.ignore_patterns("__pycache__"))
        for folder in ("fixtures", "schemas"):
            shutil.copytree(CHECKOUT / folder, installed / "frozen" / folder)
        for path in (tmp_path, *tmp_path.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        source = (
            "import json, sys; sys.path.insert(0, sys.argv[1])\n"
            "from skill_effectiveness.launch import manifest\n"
            "assert manifest.__file__.startswith(sys.argv[1])\n"
            "print(json.dumps(manifest.calibration_manifest()))"
        )
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-B", "-c", source, str(tmp_path)], capture_output=True, check=True
        )
        assert json.loads(done.stdout) == calibration_manifest()

    def test_without_frozen_data_there_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = tmp_path / "x" / "skill_effectiveness" / "launch"
        place.mkdir(parents=True)
        monkeypatch.setattr(manifest, "__file__", str(place / "manifest.py"))
        with pytest.raises(ManifestError, match="fixtures"):
            calibration_manifest()

    def test_the_dependencies_are_what_the_rooms_can_load_and_no_more(self) -> None:
        """B13: what their sources import anywhere, and what that requires here."""
        rooms = ("calibration", "evidence", "execution", "launch", "protocol", "providers")
        sources = [path for room in rooms for path in sorted((PACKAGE / room).rglob("*.py"))]
        owners = metadata.packages_distributions()
        tops = {top for path in sources for top in imported(ast.parse(path.read_bytes()))}
        named = {normal(owner) for top in tops for owner in owners.get(top, [])} - {"skill-effectiveness"}
        assert {"numpy", "psutil", "pydantic"} <= named
        assert calibration_dependencies() == tuple(sorted(closure(named)))

    def test_an_installation_without_extras_has_every_dependency(self) -> None:
        """B13: whoever installs the wheel alone can examine."""
        assert set(calibration_dependencies()) <= closure({"skill-effectiveness"})

    def test_the_dependencies_hold_whatever_loading_the_rooms_loads(self) -> None:
        """B13: found by loading every module of every room."""
        rooms = ("calibration", "evidence", "execution", "launch", "protocol", "providers")
        modules = [
            ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for room in rooms
            for path in sorted((PACKAGE / room).rglob("*.py"))
            if path.stem != "__main__"
        ]
        source = (
            "import importlib, json, sys; before = set(sys.modules)\n"
            "for name in sys.argv[1:]: importlib.import_module(name)\n"
            "print(json.dumps(sorted({n.partition('.')[0] for n in set(sys.modules) - before})))"
        )
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-c", source, *modules], capture_output=True, check=True
        )
        owners = metadata.packages_distributions()
        loaded = {normal(owner) for name in json.loads(done.stdout) for owner in owners.get(name, [])}
        assert loaded - {"skill-effectiveness"} <= set(calibration_dependencies())

    def test_the_patterns_are_relative_names(self) -> None:
        assert all(not name.startswith(("/", ".")) and "\\" not in name for name in calibration_entries())
