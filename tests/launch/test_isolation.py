"""Whatever the caller's environment says to an interpreter stays outside; what a provider needs comes in.

Every test but the last few starts the real interpreter on a real door.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from skill_effectiveness.launch import isolation
from skill_effectiveness.launch.faults import ManifestError
from tests.support.doors import PACKAGE, SWITCHES, House, python_path

HARMLESS = {"LANG": "C.UTF-8", "TZ": "UTC"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


class TestTheWayIn:
    def test_by_module_from_a_checkout_on_the_path(self, house: House) -> None:
        """The door is started again by path, isolated, and every argument is kept."""
        found = house.run(
            "--one", "t w o", "", module=True, switches=(), environment=python_path(house.package.parent)
        ).found
        door = str(house.package / "calibration" / "__main__.py")
        assert found["command"] == [str(house.python), *SWITCHES, door, "--one", "t w o", ""]
        assert found["arguments"] == ["--one", "t w o", ""]
        assert found["flags"] == [1, 1, 1]
        assert found["package"] == str(house.package / "__init__.py")

    def test_by_module_from_the_working_folder(self, house: House) -> None:
        assert house.run(module=True, switches=(), cwd=house.package.parent).found["flags"] == [1, 1, 1]

    def test_by_module_from_an_editable_install(self, house: House) -> None:
        (house.site / "editable.pth").write_text(f"{house.package.parent}\n")
        found = house.run(module=True, switches=()).found
        assert found["package"] == str(house.package / "__init__.py")

    def test_by_module_from_a_wheel(self, tmp_path: Path) -> None:
        """The entries have the names that they have in a checkout."""
        house = House(tmp_path / "wheel", installed=True)
        found = house.run(module=True, switches=()).found
        assert found["package"] == str(house.site / "skill_effectiveness" / "__init__.py")
        names = [row["path"] for row in found["manifest"]["entries"]]
        assert "fixtures/pilot-gates.json" in names
        assert "skill_effectiveness/calibration/door.py" in names

    @pytest.mark.parametrize(
        "switches",
        [(), ("-I", "-B"), ("-I", "-X", "utf8"), ("-B", "-X", "utf8"), ("-W", "error", "-O")],
    )
    def test_by_path(self, house: House, switches: tuple[str, ...]) -> None:
        """Unless all three switches are there, all three are put there."""
        # In the C locale the interpreter would turn UTF-8 mode on by itself.
        found = house.run(switches=switches, environment={"LC_ALL": "C.UTF-8"}).found
        assert found["command"][1:-1] == list(SWITCHES)
        assert found["flags"] == [1, 1, 1]

    def test_by_a_relative_path(self, house: House) -> None:
        relative = house.door_file.relative_to(house.root)
        found = house.shell(f"exec $python '{relative}'").found
        assert found["command"][-1] == str(house.door_file)
        assert found["manifest"] == house.run().found["manifest"]

    def test_by_a_host_that_isolates_it(self, house: House) -> None:
        """Then nothing is replaced, and the environment is reduced all the same."""
        house.door("found['parent'] = os.getppid()")
        given = {"PATH": "/bin", "HOME": "/h", "PYTHONHASHSEED": "3", "LD_DEBUG": "", "KEY": "k"}
        found = house.run(environment=given).found
        assert found["environment"] == {"HOME": "/h"} | HARMLESS
        # The interpreter may put LC_CTYPE into an environment that has no locale.
        assert {k: v for k, v in found["given"].items() if k != "LC_CTYPE"} == {
            "PATH": "/bin",
            "HOME": "/h",
            "KEY": "k",
        }

    def test_by_a_host_that_isolates_it_by_module(self, house: House) -> None:
        """The first modules take the ordinary way there, and are loaded again, verified."""
        (house.site / "editable.pth").write_text(f"{house.package.parent}\n")
        found = house.run(module=True).found
        assert "skill_effectiveness/calibration/__init__.py" in found["loaded"]


class TestCodeWithoutItsAssertions:
    """`-O` leaves statements out, so the bound bytes would not be what runs."""

    @pytest.mark.parametrize("switch", ["-O", "-OO"])
    @pytest.mark.parametrize("isolated", [(), SWITCHES])
    def test_is_never_what_runs(self, house: House, switch: str, isolated: tuple[str, ...]) -> None:
        """B6: the process is replaced by one without the switch."""
        house.door("found['optimize'] = [sys.flags.optimize, __debug__]")
        assert house.run(switches=(*isolated, switch)).found["optimize"] == [0, True]

    def test_nor_when_a_variable_asks_for_it(self, house: House) -> None:
        house.door("found['optimize'] = [sys.flags.optimize, __debug__]")
        answer = house.run(switches=(), environment={"PYTHONOPTIMIZE": "2"})
        assert answer.found["optimize"] == [0, True]

    def test_a_python_that_insists_is_given_up(self, house: House) -> None:
        """Replaced once and no more."""
        (house.root / "handed").write_bytes(isolation.MARK + b"KEY=k\0")
        answer = house.shell("exec $python -I -B -X utf8 -O $door 3<handed")
        assert "no wrapper" in answer.refused("runtime_manifest_unavailable")


class TestTheCallersPython:
    def test_search_path_and_start_up_hooks_do_not_reach_the_evaluator(self, house: House) -> None:
        """What the caller's interpreter runs before us it runs; the isolated one runs none of it."""
        shadow = house.root / "shadow"
        for name in (
            "sitecustomize",
            "usercustomize",
            "hmac",
            "json/__init__",
            "pydantic",
            "skill_effectiveness/__init__",
            "skill_effectiveness/calibration/door",
        ):
            path = shadow / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(house.planted(name))
        house.door("import hmac, pydantic; found['hmac'] = hmac.__file__; found['name'] = pydantic.NAME")
        environment = python_path(shadow) | {
            "PYTHONSTARTUP": str(shadow / "hmac.py"),
            "PYTHONINSPECT": "",
            "PYTHONWARNINGS": "error",
            "PYTHONHASHSEED": "7",
            "PYTHONOPTIMIZE": "2",
            "LC_ALL": "C.UTF-8",
        }
        found = house.run(switches=(), environment=environment).found
        assert found["environment"] == HARMLESS
        assert found["given"] == {"LC_ALL": "C.UTF-8"}
        assert not found["hmac"].startswith(str(house.root))
        assert found["name"] == "pydantic"
        # The caller's interpreter ran its hook: that cannot be excluded from inside.
        assert house.marks() == ["sitecustomize"]

    def test_before_it_runs_isolated_nothing_is_loaded_that_could_be_shadowed(self, house: House) -> None:
        """Not even the standard library, beyond what every interpreter loads at its start."""
        shadow = house.root / "shadow"
        shadow.mkdir()
        at_start = set(house.shell("$python -c 'import sys; print(*sys.modules)'").stdout.decode().split())
        for name in set(sys.stdlib_module_names) - at_start:
            (shadow / f"{name}.py").write_text(house.planted(name))
        assert (shadow / "typing.py").exists()
        assert (shadow / "__future__.py").exists()
        assert house.run(switches=(), environment=python_path(shadow)).found["flags"] == [1, 1, 1]
        assert house.marks() == []

    def test_home_of_another_python_is_not_passed_on(self, house: House) -> None:
        found = house.run(switches=(), environment={"PYTHONHOME": sys.base_prefix}).found
        assert found["environment"] == HARMLESS

    def test_the_user_site_is_not_used(self, house: House) -> None:
        """Also where the environment lets the caller's interpreter use it."""
        (house.root / "venv" / "pyvenv.cfg").write_text(
            f"home = {Path(sys._base_executable).resolve().parent}\ninclude-system-site-packages = true\n"
        )
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        own = house.root / "home" / ".local" / "lib" / version / "site-packages"
        own.mkdir(parents=True)
        (own / "usercustomize.py").write_text(house.planted("first"))
        (own / "zz.pth").write_text(
            f"import sys; open({str(house.marker)!r}, 'a').write(f'pth {{sys.flags.isolated}}\\n')\n"
        )
        (own / "rfc8785.py").write_text(house.planted("shadow"))
        house.door("import rfc8785; found['name'] = rfc8785.NAME")
        answer = house.run(switches=(), environment={"HOME": str(house.root / "home")})
        assert answer.found["name"] == "rfc8785"
        assert house.marks() == ["pth 0", "first"]


class TestWhatIsHandedOn:
    def test_the_five_variables_and_no_other_are_environment(self, house: House) -> None:
        house.door("found['initial'] = open('/proc/self/environ').read()")
        kept = {"HOME": "/a home", "XDG_STATE_HOME": "/state", "TMPDIR": str(house.root)}
        given = kept | {"PATH": "/bin", "LANG": "de_DE", "TZ": "Asia/Tokyo", "LC_ALL": "C", "KEY": "k"}
        found = house.run(switches=(), environment=given).found
        assert found["environment"] == kept | HARMLESS
        entries = found["initial"].rstrip("\0").split("\0")
        assert dict(entry.split("=", 1) for entry in entries) == kept | HARMLESS
        assert found["given"] == given

    def test_values_are_kept_to_the_byte(self, house: House) -> None:
        given = {
            b"EMPTY": b"",
            b"EQUALS": b"a=b=c",
            b"LINES": b"one\ntwo\n",
            b"BYTES": b"\xff\xfe \xc3\xa4",
            b"ACCENT\xc3\xa9": b"1",
            b"LONG": b"x" * 100_000,
            b"LONGER": b"y" * 100_000,
            b"LC_ALL": b"C",
        }
        found = house.run(switches=(), environment=given).found
        assert {os.fsencode(k): os.fsencode(v) for k, v in found["given"].items()} == given

    def test_a_childs_environment_has_path_and_its_key(self, house: House) -> None:
        """The allowlist of the providers decides; what steers interpreters and loaders is not offered."""
        shutil.copy(PACKAGE / "providers" / "environment.py", house.package / "providers" / "environment.py")
        (house.package / "providers" / "environment.py").chmod(0o644)
        house.door(
            "import subprocess\n"
            "from skill_effectiveness.providers.environment import child_environment\n"
            "child = child_environment(started.environ, session={'HOME': '/private'}, own_keys=['OWN_KEY'])\n"
            "printed = subprocess.run(['env', '-0'], env=child, stdout=subprocess.PIPE, check=True).stdout\n"
            "found['child'] = printed.decode()"
        )
        given = {
            "PATH": os.environ["PATH"],
            "HTTPS_PROXY": "http://proxy.invalid:1",
            "OWN_KEY": "own",
            "OTHER_KEY": "other",
            "LANG": "de_DE.UTF-8",
            "HOME": "/mine",
            "PYTHONPATH": "/nowhere",
            "LD_LIBRARY_PATH": "/nowhere",
        }
        found = house.run(switches=(), environment=given).found
        child = dict(entry.split("=", 1) for entry in found["child"].rstrip("\0").split("\0"))
        assert child == {
            "PATH": os.environ["PATH"],
            "HTTPS_PROXY": "http://proxy.invalid:1",
            "OWN_KEY": "own",
            "LANG": "de_DE.UTF-8",
            "HOME": "/private",
        }
        assert "PYTHONPATH" not in found["given"]
        assert "LD_LIBRARY_PATH" not in found["given"]

    def test_no_descriptor_of_it_stays_open(self, house: House) -> None:
        house.door(
            "places = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
            "found['open'] = [os.readlink(place) for place in places if os.path.lexists(place)]"
        )
        found = house.run(switches=(), environment={"KEY": "k"}).found
        # Input, error twice, the way out.
        assert len(found["open"]) == 4
        assert all(name.startswith("pipe:") for name in found["open"])

    @pytest.mark.parametrize("kind", ["file", "pipe"])
    def test_a_descriptor_3_of_the_callers_is_left_alone(self, house: House, kind: str) -> None:
        """Its content is not ours to read."""
        house.door("found['rest'] = os.read(3, 100).decode()")
        (house.root / "own").write_text("mine")
        inherited = "3<own" if kind == "file" else "3<&0 </dev/null"
        answer = house.shell(f"exec $python -I -B -X utf8 $door {inherited}", stdin=b"mine")
        assert answer.found["rest"] == "mine"


class TestAnInterpreter:
    @pytest.mark.parametrize("mode", [0o775, 0o757])
    def test_that_others_may_write_is_not_started(self, house: House, mode: int) -> None:
        base = Path(sys._base_executable).resolve()
        house.python.unlink()
        shutil.copy(base, house.python)
        house.python.chmod(mode)
        told = house.run(switches=()).refused("runtime_manifest_unavailable")
        assert "the interpreter can be written by others" in told
        house.run().refused("runtime_manifest_unavailable")

    def test_that_does_not_run_isolated_when_told_to_is_given_up(self, house: House) -> None:
        """The mark of a process that was replaced already: it is not replaced again."""
        (house.root / "handed").write_bytes(isolation.MARK + b"KEY=k\0")
        answer = house.shell("exec $python $door 3<handed")
        assert "no wrapper" in answer.refused("runtime_manifest_unavailable")


class TestInThisProcess:
    """Judgements that a whole process would show only in part."""

    def test_a_python_that_does_not_know_itself_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "")
        with pytest.raises(ManifestError, match="cannot start itself again"):
            isolation._replace_process("door")

    def test_a_missing_one_is_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
        monkeypatch.setattr(isolation, "_hand_on", lambda _entries: None)
        with pytest.raises(ManifestError, match="cannot be started again"):
            isolation._replace_process("door")

    def test_one_that_is_no_file_is_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(sys, "executable", str(tmp_path))
        monkeypatch.setattr(isolation, "_hand_on", lambda _entries: None)
        with pytest.raises(ManifestError, match="not a regular file"):
            isolation._replace_process("door")
