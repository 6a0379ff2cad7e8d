"""Third-party modules: bound, in the interpreter's own site folder, and as their RECORD says."""

from __future__ import annotations

import base64
import hashlib
import os
import py_compile
import shutil
import sys
from contextlib import nullcontext
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import pytest

from skill_effectiveness.launch.distributions import Distributions
from skill_effectiveness.launch.faults import DriftError, LaunchError, ManifestError
from skill_effectiveness.launch.library import Places
from tests.support.doors import SWITCHES, House, record_digest
from tests.support.private import NOBODY

USE = "import rfc8785\nfound['name'] = rfc8785.NAME"
SOURCE = b"NAME = 'good'\n"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.door(USE)
    return house


def extension() -> Path:
    """An extension module of this environment that needs nothing but the interpreter."""
    spec = find_spec("_cffi_backend")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


class TestASource:
    def test_runs_when_it_is_as_recorded(self, house: House) -> None:
        assert house.run().found["name"] == "rfc8785"

    def test_that_changed_does_not_run(self, house: House) -> None:
        (house.site / "rfc8785.py").write_text(house.planted() + "NAME = 'bad'\n")
        assert "rfc8785.py is not what" in house.run().refused("runtime_drift")
        assert house.marks() == []

    def test_that_changed_does_not_run_for_a_library_that_would_do_without(self, house: House) -> None:
        """Libraries ask for helpers and swallow errors; the answer is a refusal all the same."""
        (house.site / "rfc8785.py").write_text(house.planted())
        house.door("try:\n    import rfc8785\nexcept Exception:\n    pass")
        house.run().refused("runtime_drift")
        assert house.marks() == []

    def test_that_changed_is_named_whatever_the_door_makes_of_it(self, house: House) -> None:
        """Also while the door is being loaded."""
        (house.site / "rfc8785.py").write_text(house.planted())
        house.door(before="try:\n    import rfc8785\nexcept Exception:\n    raise KeyError from None\n")
        assert "rfc8785.py is not what" in house.run().refused("runtime_drift")

    def test_that_changed_does_not_run_from_its_cache(self, house: House) -> None:
        """The source is verified also where the interpreter takes the bytecode beside it."""
        path = house.site / "rfc8785.py"
        py_compile.compile(str(path), doraise=True)
        assert house.run().found["name"] == "rfc8785"
        status = path.stat()
        path.write_bytes(path.read_bytes().replace(b"rfc", b"RFC"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        house.run().refused("runtime_drift")

    def forged(self, house: House, folder: Path | None = None) -> Path:
        """A cache of other code with the time and size of the source, so that an ordinary import takes it."""
        path = house.site / "rfc8785.py"
        bad = house.planted() + "NAME = 'planted'\n"
        good = path.read_text().ljust(len(bad))
        house.distribution("rfc8785", {"rfc8785.py": good.encode()})
        path.write_text(bad)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        place = cache_from_source(str(path))
        cached = Path(f"{folder}{path}").with_name(Path(place).name) if folder else Path(place)
        py_compile.compile(str(path), cfile=str(cached), doraise=True)
        path.write_text(good)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        cached.chmod(0o644)
        return cached

    def test_run_from_a_cache_that_the_owner_of_the_environment_made(self, house: House) -> None:
        """The stated limit; and the proof that the forgeries below would run if they were trusted."""
        self.forged(house)
        assert house.run().found["name"] == "planted"
        assert house.marks() == ["planted"]

    @pytest.mark.parametrize("wrong", ["open to the group", "open to all", "another user's", "a link"])
    def test_do_not_run_from_a_cache_that_somebody_else_can_have_made(self, house: House, wrong: str) -> None:
        cached = self.forged(house)
        match wrong:
            case "open to the group":
                cached.chmod(0o664)
            case "open to all":
                cached.chmod(0o666)
            case "another user's":
                os.chown(cached, NOBODY, NOBODY)
            case _:
                cached.rename(house.root / "moved.pyc")
                cached.symlink_to(house.root / "moved.pyc")
        assert house.run().found["name"] == "rfc8785"
        assert house.marks() == []

    def test_do_not_run_from_a_cache_to_which_a_switch_leads(self, house: House) -> None:
        """Isolated all the same, so the process is not replaced."""
        folder = house.root / "caches"
        self.forged(house, folder)
        assert house.run(switches=(*SWITCHES, "-X", f"pycache_prefix={folder}")).found["name"] == "rfc8785"
        assert house.marks() == []

    def test_writes_no_cache(self, house: House) -> None:
        assert house.run(switches=()).exit_code == 0
        assert list(house.site.rglob("__pycache__")) == []

    def test_without_a_digest_does_not_run(self, house: House) -> None:
        house.distribution("rfc8785", {"rfc8785.py": SOURCE}, hashed=False)
        assert "no digest of rfc8785.py" in house.run().refused("runtime_manifest_unavailable")

    def test_that_others_may_write_or_a_link_does_not_run(self, house: House) -> None:
        path = house.site / "rfc8785.py"
        path.chmod(0o664)
        house.run().refused("runtime_manifest_unavailable")
        path.chmod(0o644)
        path.rename(house.root / "moved.py")
        path.symlink_to(house.root / "moved.py")
        house.run().refused("runtime_manifest_unavailable")

    def test_swapped_after_the_record_was_read_does_not_run(self, house: House) -> None:
        house.door(f"open({str(house.site / 'rfc8785.py')!r}, 'a').write('x = 1')\n{USE}")
        house.run().refused("runtime_drift")


class TestADistribution:
    def test_that_is_not_bound_is_as_if_it_were_not_there(self, house: House) -> None:
        house.distribution("made-up", {"made_up.py": house.planted().encode()})
        (house.site / "loose.py").write_text(house.planted())
        house.door(
            "from importlib import metadata, util\n"
            "for name in ('made_up', 'loose'):\n"
            "    found[name] = util.find_spec(name)\n"
            "found['names'] = sorted(one.metadata['Name'] for one in metadata.distributions())\n"
            "try:\n    metadata.version('made-up')\n"
            "except metadata.PackageNotFoundError:\n    found['version'] = None\n"
            "found['spelled'] = metadata.version('Typing.Extensions')"
        )
        found = house.run().found
        assert (found["made_up"], found["loose"], found["version"]) == (None, None, None)
        assert found["names"] == [row["name"] for row in found["manifest"]["dependencies"]]
        assert found["spelled"] == "1.0"
        assert house.marks() == []

    def test_with_a_file_beside_those_recorded_does_not_load_that(self, house: House) -> None:
        house.distribution("rfc8785", {"rfc8785/__init__.py": SOURCE, "rfc8785/deep/real.py": SOURCE})
        (house.site / "rfc8785.py").unlink()
        (house.site / "rfc8785" / "planted.py").write_text(house.planted())
        (house.site / "rfc8785" / "deep" / "__init__.py").write_text(house.planted())
        house.door(
            USE + "\nimport rfc8785.deep.real as real\nfound['real'] = real.NAME\n"
            "try:\n    import rfc8785.planted\n"
            "except ModuleNotFoundError:\n    found['planted'] = None"
        )
        found = house.run().found
        assert (found["name"], found["real"], found["planted"]) == ("good", "good", None)
        assert house.marks() == []

    def test_with_another_record_after_the_manifest_is_refused(self, house: House) -> None:
        """The RECORD is read once for the digest that is bound and once for its rows."""
        (house.package / "launch" / "distributions.py").write_text(
            (house.package / "launch" / "distributions.py")
            .read_text()
            .replace(
                "        homes = self._homes()\n",
                "        homes = self._homes()\n"
                "        for one, info in homes['rfc8785']:\n"
                "            with (one / info / 'RECORD').open('a') as file: file.write('x,,\\n')\n",
            )
        )
        assert "RECORD of rfc8785 is not the bound one" in house.run().refused("runtime_drift")

    def test_installed_twice_is_refused(self, house: House) -> None:
        """Whatever the spelling of its name."""
        shutil.copytree(
            house.site / "pydantic_core-1.0.dist-info", house.site / "Pydantic.Core-0.9.dist-info"
        )
        assert "installed 2 times" in house.run().refused("runtime_manifest_unavailable")

    def test_outside_the_interpreters_own_site_folder_is_refused(self, house: House) -> None:
        """Reached by a path of the environment's, and not where pip would put it."""
        elsewhere = house.root / "elsewhere"
        elsewhere.mkdir()
        for name in ("rfc8785.py", "rfc8785-1.0.dist-info"):
            shutil.move(house.site / name, elsewhere / name)
        (house.site / "elsewhere.pth").write_text(f"{elsewhere}\n")
        assert "installed 0 times" in house.run().refused("runtime_manifest_unavailable")

    @pytest.mark.parametrize("place", ["rfc8785/__init__.py", "rfc8785.abi3.so", "rfc8785.pyc"])
    def test_with_a_second_place_for_a_module_is_refused(self, house: House, place: str) -> None:
        (house.site / place).parent.mkdir(exist_ok=True)
        (house.site / place).write_text(house.planted())
        assert "could come from 2 files" in house.run().refused("runtime_drift")
        assert house.marks() == []

    def test_that_shadows_the_standard_library_is_refused(self, house: House) -> None:
        house.distribution("rfc8785", {"hmac.py": house.planted().encode()})
        house.door("import hmac")
        assert "hmac is in the standard library and in a distribution" in house.run().refused("runtime_drift")
        assert house.marks() == []


class TestAnExtensionModule:
    def test_runs_when_it_is_as_recorded(self, house: House) -> None:
        source = extension()
        house.distribution("cffi", {source.name: source.read_bytes(), "cffi.libs/libx.so.1": b"library"})
        house.door("import _cffi_backend\nfound['file'] = _cffi_backend.__file__")
        assert house.run().found["file"] == str(house.site / source.name)

    @pytest.mark.parametrize("what", ["module", "companion"])
    def test_that_changed_is_not_loaded(self, house: House, what: str) -> None:
        """Nor is one beside which a library that came with it changed."""
        source = extension()
        house.distribution("cffi", {source.name: source.read_bytes(), "cffi.libs/libx.so.1": b"library"})
        changed = house.site / (source.name if what == "module" else "cffi.libs/libx.so.1")
        with changed.open("ab") as file:
            file.write(b"\0")
        house.door("import _cffi_backend")
        assert changed.name in house.run().refused("runtime_drift")

    def test_without_a_digest_is_not_loaded(self, house: House) -> None:
        source = extension()
        house.distribution("cffi", {source.name: source.read_bytes()}, hashed=False)
        house.door("import _cffi_backend")
        assert "no digest" in house.run().refused("runtime_manifest_unavailable")


def made(site: Path, record: bytes, *, digest: str | None = None, name: str = "made-up") -> Distributions:
    """The distributions of a site folder with one in it."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "RECORD").write_bytes(record)
    (info / "RECORD").chmod(0o644)
    bound = digest or f"sha256:{hashlib.sha256(record).hexdigest()}"
    return Distributions([site], {name: bound}, Places(), nullcontext)


class TestARecord:
    @pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
    def test_may_use_any_algorithm_that_holds(self, tmp_path: Path, algorithm: str) -> None:
        digest = base64.urlsafe_b64encode(hashlib.new(algorithm, SOURCE).digest()).rstrip(b"=").decode()
        (tmp_path / "mod.py").write_bytes(SOURCE)
        (tmp_path / "mod.py").chmod(0o644)
        spec = made(tmp_path, f"mod.py,{algorithm}={digest},1\n".encode()).find("mod")
        assert spec is not None
        assert spec.loader is not None
        assert spec.loader.get_code("mod") is not None

    @pytest.mark.parametrize(
        ("digest", "error"),
        [
            ("", ManifestError),
            ("sha256=", ManifestError),
            ("md5=1B2M2Y8AsgTpgAmY7PhCfg", ManifestError),
            ("sha1=x", ManifestError),
            ("shake_128=x", ManifestError),
            ("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", ManifestError),
            ("sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", DriftError),
            ("sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", DriftError),
            ("SHA256=x", ManifestError),
        ],
    )
    def test_without_a_digest_that_fits_refuses(
        self, tmp_path: Path, digest: str, error: type[LaunchError]
    ) -> None:
        """The digest is that of nothing; the file holds something."""
        (tmp_path / "mod.py").write_bytes(SOURCE)
        (tmp_path / "mod.py").chmod(0o644)
        spec = made(tmp_path, f"mod.py,{digest},1\n".encode()).find("mod")
        assert spec is not None
        assert spec.loader is not None
        with pytest.raises(error):
            spec.loader.get_code("mod")

    @pytest.mark.parametrize(
        "record", [b"mod.py\n", b"mod.py,a\n", b"mod.py,a,1,2\n", b"\xff,,\n", b'"mod.py,,\n']
    )
    def test_that_cannot_be_read_refuses(self, tmp_path: Path, record: bytes) -> None:
        with pytest.raises(ManifestError, match="RECORD of made-up cannot be read"):
            made(tmp_path, record)

    def test_may_hold_empty_lines(self, tmp_path: Path) -> None:
        (tmp_path / "mod.py").touch()
        assert made(tmp_path, b"\nmod.py,sha256=x,1\r\n\r\n").find("mod") is not None

    def test_is_split_at_line_ends_alone(self, tmp_path: Path) -> None:
        """A name may hold what other readers take for one."""
        record = "a\u2028b.py,,\nmod.py,sha256=x,1\n".encode()
        (tmp_path / "mod.py").touch()
        assert made(tmp_path, record).find("mod") is not None

    def test_that_is_not_the_bound_one_refuses(self, tmp_path: Path) -> None:
        with pytest.raises(DriftError, match="not the bound one"):
            made(tmp_path, b"mod.py,,\n", digest="sha256:" + "0" * 64)

    @pytest.mark.parametrize("wrong", ["missing", "link", "open to others"])
    def test_that_cannot_be_trusted_refuses(self, tmp_path: Path, wrong: str) -> None:
        made(tmp_path, b"")
        path = tmp_path / "made_up-1.0.dist-info" / "RECORD"
        match wrong:
            case "missing":
                path.unlink()
            case "link":
                path.rename(tmp_path / "moved")
                path.symlink_to(tmp_path / "moved")
            case _:
                path.chmod(0o666)
        with pytest.raises(ManifestError):
            Distributions([tmp_path], {"made-up": "sha256:" + "0" * 64}, Places(), nullcontext)

    def test_that_claims_the_file_of_another_refuses(self, tmp_path: Path) -> None:
        record = f"mod.py,{record_digest(b'')},0\n".encode()
        made(tmp_path, record)
        made(tmp_path, record, name="other")
        digest = f"sha256:{hashlib.sha256(record).hexdigest()}"
        with pytest.raises(DriftError, match=r"mod.py is in the RECORD of other and of made-up"):
            Distributions([tmp_path], {"made-up": digest, "other": digest}, Places(), nullcontext)


class TestTwoSiteFolders:
    def test_with_one_module_in_both_refuse_it(self, tmp_path: Path) -> None:
        record = f"mod.py,{record_digest(b'')},0\ninner/part.py,,\n".encode()
        for site, name in (("one", "made-up"), ("two", "other")):
            made(tmp_path / site, record, name=name)
            (tmp_path / site / "mod.py").touch()
            (tmp_path / site / "inner").mkdir()
        digest = f"sha256:{hashlib.sha256(record).hexdigest()}"
        folders = [tmp_path / "one", tmp_path / "two"]
        both = Distributions(folders, {"made-up": digest, "other": digest}, Places(), nullcontext)
        with pytest.raises(DriftError, match="could come from 2 files"):
            both.find("mod")
        with pytest.raises(DriftError, match="two site folders"):
            both.find("inner")

    def test_with_an_unrecorded_twin_refuse_it(self, tmp_path: Path) -> None:
        record = f"mod.py,{record_digest(b'')},0\n".encode()
        made(tmp_path / "one", record)
        (tmp_path / "two").mkdir()
        for site in ("one", "two"):
            (tmp_path / site / "mod.py").touch()
        digest = f"sha256:{hashlib.sha256(record).hexdigest()}"
        folders = [tmp_path / "two", tmp_path / "one"]
        with pytest.raises(DriftError, match="could come from 2 files"):
            Distributions(folders, {"made-up": digest}, Places(), nullcontext).find("mod")


def test_a_module_runs_from_the_bytes_that_were_verified(tmp_path: Path) -> None:
    """Verified bytes are what is compiled, also when the file changes before it is."""
    (tmp_path / "mod.py").write_bytes(SOURCE)
    (tmp_path / "mod.py").chmod(0o644)
    spec = made(tmp_path, f"mod.py,{record_digest(SOURCE)},1\n".encode()).find("mod")
    assert spec is not None
    loader = spec.loader
    assert loader is not None
    assert loader.get_data(str(tmp_path / "mod.py")) == SOURCE
    (tmp_path / "mod.py").write_bytes(b"raise SystemExit\n")
    module = type(sys)("mod")
    exec(loader.get_code("mod"), vars(module))  # noqa: S102 - what is tested
    assert module.NAME == "good"
