"""The runtime manifest: which code and frozen data run, on which interpreter, with which distributions.

Source: calibration.md section 3 (`runtime_manifest`); bridge.md section 3.

`calibration_manifest()` is the normal way. Two checkouts, and a checkout and a wheel built from it, give
equal entries: code is named `skill_effectiveness/…`, frozen data `fixtures/…` and `schemas/…`, wherever they
lie.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from skill_effectiveness.launch.faults import ManifestError
from skill_effectiveness.launch.trusted import demand_trusted_folder, hash_file, hash_lone_file, list_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "ManifestError",
    "build_manifest",
    "calibration_dependencies",
    "calibration_entries",
    "calibration_manifest",
    "entry_digests",
    "frozen_folder",
    "record_digests",
]

SCHEMA_VERSION: Final = 1
CALIBRATION_REVISION: Final = "skill-effectiveness.reviewer-calibration.v1"
PACKAGE: Final = "skill_effectiveness"
ROOMS: Final = ("calibration", "evidence", "execution", "launch", "protocol", "providers")


def build_manifest(
    *,
    package_folder: Path,
    frozen_folder: Path,
    entries: Iterable[str],
    dependencies: Iterable[str],
    protocol_revision: str,
    interpreter: Path,
) -> dict[str, object]:
    """Read and hash everything that is named.

    Args:
        package_folder: where `skill_effectiveness/…` lies; the folder above it has to be trusted as well.
        frozen_folder: where everything else lies.
        entries: relative names with forward slashes. A `*` in the last segment stands for any part of a name
            in that folder; `**/*.py` at the end for every such file at any depth. A name without `*` must
            exist, and so must the folder of one with it.
        dependencies: names of installed distributions.
        protocol_revision: of the protocol that the manifest is for.
        interpreter: the running interpreter's executable; its links are followed.

    Returns:
        `{schema_version, protocol_revision, interpreter {implementation, version, executable_hash}, entries
        [{path, sha256, size}], dependencies [{name, version, record_sha256}], manifest_hash}`, entries and
        dependencies sorted, the hash over the canonical form of the rest.

    Raises:
        ManifestError: an entry is no trusted regular file, or has a name that is not printable
            ASCII; a distribution is missing or has no RECORD.
    """
    above = package_folder.resolve().parent
    demand_trusted_folder(above, f"{above.name}, the folder above {PACKAGE},")
    tops = {True: package_folder, False: frozen_folder}
    paths: set[str] = set()
    for pattern in entries:
        paths.update(_expand(tops[pattern.startswith(f"{PACKAGE}/")], pattern))
    rows = []
    for path in sorted(paths):
        hashed = hash_file(tops[path.startswith(f"{PACKAGE}/")], _below_top(path), path)
        rows.append({"path": path, "sha256": hashed.sha256, "size": hashed.size})
    manifest: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "protocol_revision": protocol_revision,
        "interpreter": _interpreter(interpreter),
        "entries": rows,
        "dependencies": [_dependency(name) for name in sorted(set(dependencies))],
    }
    return {**manifest, "manifest_hash": _canonical_hash(manifest)}


def entry_digests(manifest: Mapping[str, object]) -> dict[str, str]:
    """Digest text of every entry, by path."""
    rows = cast("list[dict[str, str]]", manifest["entries"])
    return {row["path"]: row["sha256"] for row in rows}


def record_digests(manifest: Mapping[str, object]) -> dict[str, str]:
    """Digest text of the RECORD of every distribution, by name."""
    rows = cast("list[dict[str, str]]", manifest["dependencies"])
    return {row["name"]: row["record_sha256"] for row in rows}


def _below_top(path: str) -> str:
    """The name below its own folder: the package folder is the package itself."""
    return path.removeprefix(f"{PACKAGE}/")


def _expand(top: Path, pattern: str) -> Sequence[str]:
    """The entries that a pattern stands for, by their names in the manifest."""
    prefix = f"{PACKAGE}/" if pattern.startswith(f"{PACKAGE}/") else ""
    if "*" not in pattern:
        found = [_below_top(pattern)]
    else:
        folder, _, last = _below_top(pattern).rpartition("/")
        deep = folder.endswith("/**")
        folder = folder.removesuffix("/**")
        names = list_files(top, folder, Path(last).suffix, prefix)
        found = [
            name
            for name in names
            if fnmatch.fnmatchcase(name.rpartition("/")[2], last)
            and (deep or name.rpartition("/")[0] == folder)
        ]
    for name in found:
        if not (name.isascii() and name.isprintable()):
            raise ManifestError(f"{name!a} has a name that a manifest cannot hold; use printable ASCII.")
    return [f"{prefix}{name}" for name in found]


def _interpreter(executable: Path) -> dict[str, str]:
    """The interpreter's kind, version and bytes."""
    import platform  # noqa: PLC0415 - slow to load, and not every door needs it

    try:
        resolved = executable.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ManifestError(
            "The interpreter's own executable cannot be found; start it by its path."
        ) from error
    return {
        "implementation": sys.implementation.name,
        "version": platform.python_version(),
        "executable_hash": hash_lone_file(resolved).sha256,
    }


def _dependency(name: str) -> dict[str, str]:
    """An installed distribution's version, and the digest of the RECORD that lists its files."""
    from importlib import metadata  # noqa: PLC0415 - slow to load, and not every door needs it

    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise ManifestError(
            f"The distribution {name} is not installed; install the package again."
        ) from error
    records = [
        file
        for file in distribution.files or ()
        if file.name == "RECORD"
        and file.parent.suffix == ".dist-info"
        and len(file.parts) == len(("info", "RECORD"))
    ]
    if len(records) != 1:
        raise ManifestError(
            f"The distribution {name} has no RECORD of its files; install it from a wheel with pip."
        )
    place = Path(str(distribution.locate_file(records[0])))
    version = distribution.version
    if not version.isascii():
        raise ManifestError(f"The distribution {name} has a version that is not ASCII; install another one.")
    record = hash_lone_file(place, f"the RECORD of the distribution {name}")
    return {"name": name, "version": version, "record_sha256": record.sha256}


def _canonical_hash(value: object) -> str:
    """The object digest of evidence.md section 3.

    With ASCII texts and integers alone the standard library's form, sorted and without blanks, is RFC 8785.
    """
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"sha256:{hashlib.sha256(data.encode('ascii')).hexdigest()}"


def calibration_entries() -> tuple[str, ...]:
    """What an examination of a reviewer runs on, as patterns."""
    return (
        f"{PACKAGE}/__init__.py",
        *(f"{PACKAGE}/{room}/**/*.py" for room in ROOMS),
        "fixtures/licence-policy.json",
        "fixtures/pilot-gates.json",
        "fixtures/reviewer-bias-probe-answers.json",
        "fixtures/reviewer-bias-probes.json",
        "fixtures/reviewer-calibration-cases.json",
        "fixtures/reviewer-calibration-known-answers.json",
        "schemas/reviewer-calibration-*.json",
    )


def calibration_dependencies() -> tuple[str, ...]:
    """The distributions whose modules those rooms can load, with what these require in turn.

    One more would refuse every examination wherever it is not installed, one less cannot be loaded.
    """
    return (
        "annotated-types",
        "cffi",
        "cryptography",
        "filelock",
        "numpy",
        "psutil",
        "pycparser",
        "pydantic",
        "pydantic-core",
        "rfc8785",
        "ruamel-yaml",
        "securesystemslib",
        "typing-extensions",
        "typing-inspection",
    )


def calibration_manifest() -> dict[str, object]:
    """The manifest of the calibration protocol as it is installed here.

    Raises:
        ManifestError: see `build_manifest`; also when the frozen data are not where this code expects them.
    """
    package = Path(__file__).resolve().parents[1]
    return build_manifest(
        package_folder=package,
        frozen_folder=frozen_folder(package),
        entries=calibration_entries(),
        dependencies=calibration_dependencies(),
        protocol_revision=CALIBRATION_REVISION,
        interpreter=Path(sys.executable),
    )


def frozen_folder(package: Path) -> Path:
    """The folder of the frozen data: `frozen` in an installed package, else the root of the checkout.

    Whatever hashes frozen files and whatever reads them asks here, so both mean the same files.

    Args:
        package: folder of the import package.

    Raises:
        ManifestError: neither layout is there.
    """
    installed = package / "frozen"
    if installed.is_dir():
        return installed
    checkout = package.parents[1]
    if (checkout / "fixtures").is_dir():
        return checkout
    raise ManifestError("The frozen fixtures are not beside the code; install the package again.")
