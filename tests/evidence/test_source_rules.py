"""Rules about the source itself: who may touch files and make digests, and what runs before verification."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import skill_effectiveness.evidence.faults

PACKAGE = Path(skill_effectiveness.evidence.faults.__file__).parents[1]
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")

READING = {
    "open",
    "read_text",
    "read_bytes",
    "FileIO",
    "access",
    "stat",
    "lstat",
    "listdir",
    "scandir",
    "walk",
}
# Asked of a path, without arguments; methods of ours of the same name are told what they are asked about.
QUESTIONS = {
    "exists", "is_dir", "is_file", "is_symlink", "is_mount", "stat", "lstat", "iterdir", "resolve",
    "readlink", "owner", "samefile",
}  # fmt: skip
WRITING = {
    "write_text", "write_bytes", "touch", "mkdir", "rename", "replace", "unlink", "rmdir", "chmod",
    "symlink_to", "hardlink_to", "makedirs", "remove", "removedirs", "link", "symlink", "truncate",
    "fsync", "fdatasync", "mkfifo", "rmtree", "copyfile", "copytree", "move",
}  # fmt: skip
# Words that are also methods of text, lists or records mean the file system only on these modules.
FILE_MODULES = {"os", "shutil", "io", "tempfile", "pathlib", "Path", "hashlib"}
ALSO_OTHER_THINGS = {
    "replace",
    "remove",
    "link",
    "move",
    "access",
    "stat",
    "lstat",
    "listdir",
    "scandir",
    "walk",
}

EXCEPTIONS = {
    # Its own process loads nothing of the package, and reads only what the kernel says about processes.
    "execution/supervisor.py": ["from io import FileIO", "os.listdir"],
    # A link to login state inside a folder that the child may fill as it likes; no evidence lies there.
    "execution/session.py": [".symlink_to"],
}


def breaches(source: str, *, may_read: bool) -> list[str]:
    """Uses of the file system or of hashlib in a module outside `evidence`."""
    forbidden = WRITING if may_read else WRITING | READING
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        found += _imported(node, forbidden, _modules(may_read=may_read))
        found += _used(node, forbidden)
        found += [] if may_read else _asked(node)
    return found


def _imported(node: ast.AST, forbidden: set[str], modules: set[str]) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [f"import {name.name}" for name in names if name.name in modules]
        case ast.ImportFrom(module=str(module)) if module in modules:
            return [f"from {module}"]
        case ast.ImportFrom(module=str(module), names=names) if module in FILE_MODULES:
            return [f"from {module} import {name.name}" for name in names if name.name in forbidden]
    return []


def _used(node: ast.AST, forbidden: set[str]) -> list[str]:
    match node:
        case ast.Call(func=ast.Name(id="open")) if "open" in forbidden:
            return ["open()"]
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if owner in FILE_MODULES:
            return [f"{owner}.{attribute}"] if attribute in forbidden else []
        case ast.Attribute(value=ast.Name(id=owner), attr="open") if owner[:1].isupper():
            # A class of ours that opens something of its own, such as `PrivateRoot.open`.
            return []
        case ast.Attribute(attr=attribute) if attribute in forbidden - ALSO_OTHER_THINGS:
            return [f".{attribute}"]
    return []


def _asked(node: ast.AST) -> list[str]:
    """Questions to the file system by way of a path, but for where a module's own file lies."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="resolve", value=ast.Call(args=[ast.Name(id="__file__")])), args=[]
        ):
            return []
        case ast.Call(func=ast.Attribute(attr=attribute), args=[]) if attribute in QUESTIONS:
            return [f"path.{attribute}()"]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=attribute):
            return [f"os.path.{attribute}"]
    return []


def _modules(*, may_read: bool) -> set[str]:
    return {"shutil", "tempfile"} | (set() if may_read else {"hashlib"})


def modules_outside() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "evidence")


@pytest.mark.parametrize("path", modules_outside(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_evidence_touches_files_and_makes_digests(path: Path) -> None:
    """E57: outside `evidence` no module opens, renames, fsyncs or hashes; `launch` may read and hash, not
    write.
    """
    may_read = path.relative_to(PACKAGE).parts[0] == "launch"
    allowed = EXCEPTIONS.get(path.relative_to(PACKAGE).as_posix(), [])
    assert set(breaches(path.read_text(encoding="utf-8"), may_read=may_read)) <= set(allowed)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os\nos.open('f', 0)", ["os.open"]),
        ("open('f')", ["open()"]),
        (
            "import os\nos.rename('a', 'b'); os.replace('a', 'b'); os.fsync(1)",
            ["os.rename", "os.replace", "os.fsync"],
        ),
        ("import hashlib", ["import hashlib"]),
        ("from hashlib import sha256", ["from hashlib"]),
        ("from os import open", ["from os import open"]),
        ("from io import FileIO, BytesIO", ["from io import FileIO"]),
        ("import io\nio.open('f'); io.StringIO()", ["io.open"]),
        (
            "def f(p):\n    return p.read_text(), p.read_bytes(), p.write_text('x')",
            [".read_text", ".read_bytes", ".write_text"],
        ),
        ("p.open(); (a / 'b').open('w'); p.rename('q')", [".open", ".open", ".rename"]),
        ("'a'.replace('b', 'c'); [].remove(1); PrivateRoot.open('p')", []),
        ("import os\nos.environ; os.getpid()", []),
        (
            "import os\nos.access('f', 1); os.stat('f'); os.listdir('d'); os.scandir('d')",
            ["os.access", "os.stat", "os.listdir", "os.scandir"],
        ),
        (
            "(folder / 'x').exists(); p.is_dir(); p.is_file(); p.iterdir(); p.resolve(strict=True); p.stat()",
            [
                "path.exists()",
                "path.is_dir()",
                "path.is_file()",
                "path.iterdir()",
                "path.resolve()",
                "path.stat()",
            ],
        ),
        ("os.path.realpath('f')", ["os.path.realpath"]),
        ("Path(__file__).resolve().parents[1]; root.exists('f'); fs.resolve('p'); fs.listdir(3)", []),
    ],
)
def test_the_check_finds_what_it_looks_for(source: str, found: list[str]) -> None:
    """E57: the check itself, on small sources."""
    assert sorted(breaches(source, may_read=False)) == sorted(found)


def test_a_reader_may_read_but_not_write() -> None:
    """E57: what `launch` may do."""
    assert breaches("import hashlib\nopen('f', 'rb').read()\np.read_bytes()", may_read=True) == []
    assert breaches("p.write_bytes(b'')", may_read=True) == [".write_bytes"]


@pytest.mark.parametrize("room", ["", "launch", "evidence", "protocol", "calibration"])
def test_files_that_run_before_verification_are_empty(room: str) -> None:
    """E64: these `__init__` files hold nothing."""
    assert (PACKAGE / room / "__init__.py").read_bytes() == b""


def test_inside_evidence_the_kernel_is_called_in_one_module() -> None:
    """E57: every file system call of the room itself stands in `fsops`."""
    for path in sorted((PACKAGE / "evidence").glob("*.py")):
        if path.name not in {"fsops.py", "fsdoubles.py"}:
            allowed = {"import hashlib"} if path.name == "canonical.py" else set()
            # The same words are methods of our own classes here, so only uses of the modules count.
            found = {
                use
                for use in breaches(path.read_text(encoding="utf-8"), may_read=False)
                if not use.startswith(".")
            }
            assert found <= allowed, path.name
