"""Only bound bytes run: real processes on a tree in which one thing is wrong."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.support.doors import PACKAGE, ROOMS, SWITCHES, House

# Loads `evidence.part` on first use, after `DO` was done to it.
FIRST_USE = "from pathlib import Path\npart = Path(__file__).parents[1] / 'evidence' / 'part.py'\nDO\n"
USE = "import skill_effectiveness.evidence.part as used\nfound['value'] = used.VALUE"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.write("evidence/part.py", "VALUE = 1\n")
    house.door(USE)
    return house


class TestOwnModules:
    def test_run_from_the_bytes_that_the_manifest_has(self, house: House) -> None:
        found = house.run().found
        assert found["value"] == 1
        pinned = {row["path"] for row in found["manifest"]["entries"]}
        assert set(found["loaded"]) < pinned
        assert {
            "skill_effectiveness/__init__.py",
            "skill_effectiveness/launch/start.py",
            "skill_effectiveness/launch/importer.py",
            "skill_effectiveness/evidence/__init__.py",
            "skill_effectiveness/evidence/part.py",
            "skill_effectiveness/calibration/door.py",
        } <= set(found["loaded"])

    def test_one_changed_byte_changes_the_manifest_and_what_runs(self, house: House) -> None:
        before = house.run().found
        house.write("evidence/part.py", "VALUE = 2\n")
        after = house.run().found
        assert (before["value"], after["value"]) == (1, 2)
        assert before["manifest"]["manifest_hash"] != after["manifest"]["manifest_hash"]

    @pytest.mark.parametrize(
        ("do", "code"),
        [
            ("part.write_text('VALUE = 2\\n')", "runtime_drift"),
            ("os.replace(part.with_name('other.py'), part)", "runtime_drift"),
            ("part.unlink()", "runtime_manifest_unavailable"),
            ("part.unlink(); part.symlink_to('other.py')", "runtime_manifest_unavailable"),
            ("part.unlink(); part.mkdir()", "runtime_manifest_unavailable"),
            ("part.unlink(); os.mkfifo(part)", "runtime_manifest_unavailable"),
            ("part.chmod(0o666)", "runtime_manifest_unavailable"),
            ("part.parent.chmod(0o777)", "runtime_manifest_unavailable"),
        ],
    )
    def test_swapped_between_hash_and_import_do_not_run(self, house: House, do: str, code: str) -> None:
        """The door's own code does it here, after the manifest and before the import."""
        house.write("evidence/other.py", house.planted() + "VALUE = 3\n")
        # Listed before it is changed, as it would be by an import of a neighbour.
        house.write("evidence/neighbour.py", "")
        before = "import skill_effectiveness.evidence.neighbour\n"
        house.door(before + FIRST_USE.replace("DO", do) + USE)
        house.run().refused(code)
        assert house.marks() == []

    @pytest.mark.parametrize("name", ["launch/wire.py", "launch/start.py", "launch/importer.py"])
    def test_of_launch_that_changed_after_they_ran_are_noticed(self, house: House, name: str) -> None:
        """They run before the manifest exists; a file that changed in between is not what ran."""
        text = (house.package / name).read_text()
        changing = (
            "\nimport builtins\nif not hasattr(builtins, 'once'):\n    builtins.once = True\n"
            f"    with open({str(house.package / name)!r}, 'a') as f: f.write('# more\\n')\n"
        )
        house.write(name, text + changing)
        assert f"{name} changed after it was bound" in house.run().refused("runtime_drift")

    @pytest.mark.parametrize("name", ["evidence/part.py", "launch/wire.py", "calibration/__main__.py"])
    @pytest.mark.parametrize("wrong", ["link", "open to others"])
    def test_that_cannot_be_trusted_are_refused(self, house: House, name: str, wrong: str) -> None:
        path = house.package / name
        if wrong == "link":
            path.rename(house.root / "moved.py")
            path.symlink_to(house.root / "moved.py")
        else:
            path.chmod(0o664)
        told = house.run().refused("runtime_manifest_unavailable")
        assert name in told

    def test_outside_the_manifest_are_not_there(self, house: House) -> None:
        house.write("cli/__init__.py", house.planted())
        house.write("beside.py", house.planted())
        house.door(
            "for tail in ('cli', 'beside', 'none'):\n"
            "    name = f'skill_effectiveness.{tail}'\n"
            "    try:\n        __import__(name)\n"
            "    except ModuleNotFoundError as error:\n        found[name] = error.name"
        )
        found = house.run().found
        for name in ("skill_effectiveness.cli", "skill_effectiveness.beside", "skill_effectiveness.none"):
            assert found[name] == name
        assert house.marks() == []

    def test_see_their_own_place(self, house: House) -> None:
        """What a room needs to find its data and its scripts."""
        house.write("evidence/part.py", "VALUE = [__file__, __name__, __package__, __spec__.origin]\n")
        place = str(house.package / "evidence" / "part.py")
        assert house.run().found["value"] == [
            place,
            "skill_effectiveness.evidence.part",
            "skill_effectiveness.evidence",
            place,
        ]

    def test_loaded_again_run_the_same_bytes(self, house: House) -> None:
        """There is no second read."""
        change = "import importlib; part.write_text('VALUE = 2\\n'); importlib.reload(used)"
        house.door(USE + "\n" + FIRST_USE.replace("DO", change) + "found['value'] = used.VALUE")
        assert house.run().found["value"] == 1


SOURCE_OF = (
    "import pkgutil\n"
    "def source_of(name, package='skill_effectiveness.evidence'):\n"
    "    try:\n        return pkgutil.get_data(package, name).decode()\n"
    "    except OSError as error:\n        return error.errno\n"
)


class TestSourcesThatRunElsewhere:
    """A room may hand one of its files to another process: the bound bytes, or none."""

    def test_are_those_of_the_manifest(self, house: House) -> None:
        text = "raise SystemExit('only elsewhere')\n"
        house.write("evidence/script.py", text)
        house.door(f"{SOURCE_OF}import skill_effectiveness.evidence\nfound['value'] = source_of('script.py')")
        found = house.run().found
        assert found["value"] == text
        assert "skill_effectiveness/evidence/script.py" in found["loaded"]

    @pytest.mark.parametrize(
        "name",
        ["none.py", "data.txt", "../cli/main.py", "../../../fixtures/pilot-gates.json", "/etc/hostname", ""],
    )
    def test_nothing_else_is_handed_out(self, house: House, name: str) -> None:
        house.write("evidence/data.txt", "text")
        house.write("cli/main.py", "")
        house.door(f"{SOURCE_OF}import skill_effectiveness.evidence\nfound['value'] = source_of({name!r})")
        assert house.run().found["value"] == 2

    @pytest.mark.parametrize(
        ("do", "code"),
        [
            ("part.write_text('VALUE = 2\\n')", "runtime_drift"),
            ("part.unlink(); part.symlink_to('other.py')", "runtime_manifest_unavailable"),
            ("part.chmod(0o666)", "runtime_manifest_unavailable"),
        ],
    )
    def test_swapped_after_they_were_bound_are_refused(self, house: House, do: str, code: str) -> None:
        house.write("evidence/other.py", "VALUE = 3\n")
        swap = FIRST_USE.replace("DO", do)
        house.door(f"{SOURCE_OF}import skill_effectiveness.evidence\n{swap}source_of('part.py')")
        house.run().refused(code)


class TestBytecode:
    @pytest.mark.parametrize(
        ("name", "switches"),
        [
            ("evidence/part.py", ()),
            ("evidence/part.py", SWITCHES),
            ("launch/start.py", ()),
            ("launch/start.py", ("-I", "-B")),
            ("launch/wire.py", SWITCHES),
            ("__init__.py", SWITCHES),
        ],
    )
    def test_planted_beside_a_source_does_not_run(
        self, house: House, name: str, switches: tuple[str, ...]
    ) -> None:
        """With the time and size of the source, so that an ordinary import would take it."""
        path = house.package / name
        good = path.read_text()
        bad = house.planted() + "VALUE = 3\n"
        size = max(len(good.encode()), len(bad.encode()))
        path.write_text(bad.ljust(size))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        cached = py_compile.compile(str(path), doraise=True)
        path.write_text(good.ljust(size))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert cached == importlib.util.cache_from_source(str(path))
        before = Path(cached).read_bytes()
        found = house.run(switches=switches).found
        assert found["value"] == 1
        assert house.marks() == []
        assert Path(cached).read_bytes() == before

    def test_planted_where_python_runs_it_before_us_is_the_stated_limit(self, house: House) -> None:
        """By module, the caller's interpreter runs the packages on its way; the isolated one does not."""
        path = house.write("__init__.py", house.planted("first"))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        py_compile.compile(str(path), doraise=True)
        path.write_text("".ljust(path.stat().st_size))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        answer = house.run(module=True, switches=(), cwd=house.package.parent)
        assert answer.found["value"] == 1
        assert house.marks() == ["first"]

    def test_without_a_source_is_refused(self, house: House) -> None:
        """Also where there never was a source."""
        made = py_compile.compile(str(house.package / "evidence" / "part.py"), doraise=True)
        shutil.copy(made, house.package / "evidence" / "compiled.pyc")
        house.door("import skill_effectiveness.evidence.compiled")
        assert "compiled code" in house.run().refused("runtime_drift")


class TestOtherPlaces:
    @pytest.mark.parametrize(
        "place",
        [
            f"evidence/part{EXTENSION_SUFFIXES[0]}",
            "evidence/part.abi3.so",
            "evidence/part.so",
            "evidence/part.pyc",
            "evidence/part/__init__.py",
            "evidence.py",
            f"evidence{EXTENSION_SUFFIXES[0]}",
            "launch/wire.so",
            "launch/start/__init__.py",
            "launch.py",
            "../skill_effectiveness.py",
        ],
    )
    def test_from_which_a_module_could_come_are_refused(self, house: House, place: str) -> None:
        house.write(place, house.planted())
        assert "could come from 2 files" in house.run().refused("runtime_drift")
        assert house.marks() == []

    def test_an_extension_module_alone_is_refused(self, house: House) -> None:
        house.write("evidence/fast.so", "")
        house.door("import skill_effectiveness.evidence.fast")
        assert "compiled code" in house.run().refused("runtime_drift")

    def test_a_folder_without_code_is_no_second_place(self, house: House) -> None:
        house.write("evidence/part/data.txt", "")
        assert house.run().found["value"] == 1

    def test_another_package_of_that_name_is_not_looked_at(self, house: House) -> None:
        """Installed beside, put on the path by a hook, or offered by another finder."""
        other = House(house.root / "other", installed=True)
        for name in ("__init__.py", "evidence/__init__.py", "evidence/part.py", "calibration/door.py"):
            other.write(name, house.planted())
        shutil.copytree(other.package, house.site / "skill_effectiveness")
        (house.site / "first.pth").write_text(
            f"import sys; sys.path.insert(0, {str(other.site)!r})\n{other.site}\n"
        )
        found = house.run().found
        assert (found["value"], found["package"]) == (1, str(house.package / "__init__.py"))
        assert house.marks() == []

    def test_modules_that_start_up_hooks_loaded_are_forgotten(self, house: House) -> None:
        """They run, because the environment is its owner's; what we ask for comes verified."""
        house.write(
            "evidence/part.py", "import rfc8785, sys\nVALUE = [rfc8785.NAME, 'hook' in sys.modules]\n"
        )
        (house.site / "hook.py").write_text(
            "import sys, types\n"
            "for name in ('rfc8785', 'skill_effectiveness', 'skill_effectiveness.evidence',\n"
            "             'skill_effectiveness.evidence.part', 'skill_effectiveness.calibration.door'):\n"
            "    sys.modules[name] = types.ModuleType(name)\n"
            "    sys.modules[name].NAME = sys.modules[name].VALUE = 'planted'\n"
        )
        (house.site / "hook.pth").write_text("import hook\n")
        assert house.run().found["value"] == ["rfc8785", False]


FOREIGN = """
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader

class Foreign(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("skill_effectiveness.evidence", "skill_effectiveness.calibration", "rfc8785")):
            return spec_from_loader(name, self, is_package=name.count(".") == 1)
    def exec_module(self, module):
        module.VALUE = "foreign"
        with open(MARKER, "a") as f: f.write("foreign\\n")

sys.meta_path.insert(0, Foreign())
"""


class TestAForeignFinder:
    def test_that_was_there_first_is_not_asked(self, house: House) -> None:
        """Start-up hooks of an environment put finders there; some of them do no harm."""
        (house.site / "sitecustomize.py").write_text(FOREIGN.replace("MARKER", repr(str(house.marker))))
        assert house.run().found["value"] == 1
        assert house.marks() == []

    @pytest.mark.parametrize("where", ["insert(0, ", "append("])
    def test_that_comes_later_is_noticed(self, house: House, where: str) -> None:
        """A library of ours puts it there: it could answer before us, so nothing may be claimed."""
        source = FOREIGN.replace("insert(0, ", where).replace("MARKER", repr(str(house.marker)))
        house.distribution("rfc8785", {"rfc8785.py": source.encode()})
        house.door(before="import rfc8785\n", body=USE)
        assert "finder" in house.run().refused("runtime_drift")

    def test_that_came_and_went_is_noticed_by_what_it_loaded(self, house: House) -> None:
        source = FOREIGN.replace("MARKER", repr(str(house.marker)))
        house.distribution("rfc8785", {"rfc8785.py": source.encode()})
        house.door(f"import rfc8785\n{USE}\ndel sys.meta_path[0]")
        assert "was not loaded by the verifying importer" in house.run().refused("runtime_drift")

    def test_a_replaced_module_is_noticed(self, house: House) -> None:
        house.door(USE + "\nsys.modules[used.__name__] = type(sys)(used.__name__)")
        house.run().refused("runtime_drift")


class TestTheWholeHouse:
    def test_loads_through_the_importer(self, tmp_path: Path) -> None:
        """Every module of every room, and all they load lazily, in this environment."""
        house = House(tmp_path)
        for room in ROOMS:
            shutil.copytree(
                PACKAGE / room,
                house.package / room,
                ignore=shutil.ignore_patterns("__pycache__"),
                dirs_exist_ok=True,
            )
        names = [
            ".".join(path.relative_to(house.package.parent).with_suffix("").parts)
            for room in ROOMS
            for path in sorted((house.package / room).rglob("*.py"))
            if path.stem not in {"__main__", "__init__", "door"}
        ]
        lazily = ("rfc8785", "filelock", "numpy", "psutil", "securesystemslib.dsse")
        assert len(names) > 60
        house.door(
            f"import importlib\nfor name in {[*names, *lazily]!r}: importlib.import_module(name)\n"
            "from skill_effectiveness.launch.manifest import calibration_manifest\n"
            "found['again'] = calibration_manifest()\n"
            "from importlib import metadata\n"
            "found['seen'] = sorted(one.metadata['Name'].lower() for one in metadata.distributions())\n"
            "try:\n    metadata.version('pytest')\n"
            "except metadata.PackageNotFoundError:\n    found['pytest'] = 'not seen'"
        )
        house.python = Path(sys.executable)
        for path in house.package.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        found = house.run().found
        assert found["package"] == str(house.package / "__init__.py")
        assert found["again"] == found["manifest"]
        assert found["pytest"] == "not seen"
        assert len(found["seen"]) == len(found["manifest"]["dependencies"])
        loaded = {name.removesuffix(".py").replace("/", ".") for name in found["loaded"]}
        assert set(names) <= loaded
