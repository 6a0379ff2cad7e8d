"""Hold `protected-lines.json` to the sources and to what it was before (trials.md section 8).

A protected line is one function, table or test whose meaning people rely on. Its digest is over its source
text. Two things are checked:

1. every digest is that of the source as it is now;
2. a digest that differs from that of the base commit, a line that was moved and one that was taken out need
   one new `review` and one new `challenge` (the strongest objection, and its answer) that name the old digest
   and the new one, by two authors, neither of them an author of the change. Records are only ever appended.

Authors are what people say they are: this rule keeps a change from happening in passing, it proves nothing.

The base is `--base`, else PROTECTED_LINES_BASE, else where this branch left its upstream, else the last
commit (if protected files were changed since) or the one before it. Without any, only the first is checked.
`--write` brings the digests up to date; the records are for people to write.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
NAME: Final = "protected-lines.json"
REMOVED: Final = "removed"
KINDS: Final = ("review", "challenge")
LINE_KEYS: Final = ("id", "path", "symbol", "digest")
RECORD_KEYS: Final = ("line_id", "kind", "old_digest", "new_digest", "author", "date", "text")
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LEAST_TEXT: Final = 40
"""Characters; a review that says nothing is none."""


@dataclass(frozen=True)
class Protected:
    """The file: its lines by id, and its records."""

    lines: dict[str, dict[str, str]]
    records: list[dict[str, str]]


class MalformedError(Exception):
    """The file is not of its form; the text says where."""


def read(text: str) -> Protected:
    """The file, exact in its members.

    Raises:
        MalformedError: it is not of the form.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise MalformedError(f"not JSON: {error}") from error
    if not isinstance(document, dict) or set(document) != {"lines", "records"}:
        raise MalformedError("exactly the members lines and records")
    lines = [_exact(each, LINE_KEYS, "lines") for each in document["lines"]]
    records = [_exact(each, RECORD_KEYS, "records") for each in document["records"]]
    by_id = {line["id"]: line for line in lines}
    if len(by_id) != len(lines):
        raise MalformedError("two lines have one id")
    if any(not DIGEST.fullmatch(line["digest"]) for line in lines):
        raise MalformedError("a digest of a line is sha256: and 64 lowercase hex digits")
    for record in records:
        if record["kind"] not in KINDS or not DATE.fullmatch(record["date"]) or not record["author"].strip():
            raise MalformedError("a record has a kind, a date YYYY-MM-DD and an author")
        if len(record["text"].strip()) < LEAST_TEXT:
            raise MalformedError(f"the text of a record has at least {LEAST_TEXT} characters")
    return Protected(by_id, records)


def _exact(value: Any, keys: tuple[str, ...], where: str) -> dict[str, str]:  # noqa: ANN401 - JSON
    if not isinstance(value, dict) or set(value) != set(keys):
        raise MalformedError(f"each of {where} has exactly {', '.join(keys)}")
    if not all(isinstance(each, str) for each in value.values()):
        raise MalformedError(f"each member of {where} is text")
    return value


def source_text(source: str, symbol: str) -> str | None:
    """The text of one definition, decorators included; None where the source has no such symbol, or two.

    Args:
        source: of a Python module.
        symbol: a function, class or assigned name, in classes with dots: `TestMapping.test_table`.
    """
    body = ast.parse(source).body
    *outer, last = symbol.split(".")
    for name in outer:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        if len(classes) != 1:
            return None
        body = classes[0].body
    found = [node for node in body if last in _names(node)]
    if len(found) != 1:
        return None
    node = found[0]
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


def digest_of(line: dict[str, str], root: Path) -> str | None:
    """The digest of a line as its source is now; None where there is no such symbol."""
    path = root / line["path"]
    text = source_text(path.read_text(encoding="utf-8"), line["symbol"]) if path.is_file() else None
    return None if text is None else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def source_faults(now: Protected, root: Path) -> list[str]:
    """Lines whose digest is not that of their source."""
    faults = []
    for line in now.lines.values():
        found = digest_of(line, root)
        if found is None:
            faults.append(f"{line['id']}: {line['path']} has no single {line['symbol']}")
        elif found != line["digest"]:
            faults.append(
                f"{line['id']}: {line['path']} {line['symbol']} was changed; it is {found} now. Have the "
                "change reviewed and challenged by two others, add both records, and write the digest."
            )
    return faults


def change_faults(base: Protected, now: Protected, authors: set[str]) -> list[str]:
    """What was changed since the base without the two records that it needs.

    Args:
        base: the file as it was.
        now: as it is.
        authors: of the change, names and addresses.
    """
    if now.records[: len(base.records)] != base.records:
        return ["records of the base were changed or taken out; records are only ever appended"]
    added = now.records[len(base.records) :]
    own = {author.casefold().strip() for author in authors}
    faults = []
    for name, before in base.lines.items():
        after = now.lines.get(name)
        if after == before:
            continue
        goal = REMOVED if after is None else after["digest"]
        named = [
            record
            for record in added
            if (record["line_id"], record["old_digest"], record["new_digest"])
            == (name, before["digest"], goal)
        ]
        by = {
            kind: {record["author"].casefold().strip() for record in named if record["kind"] == kind} - own
            for kind in KINDS
        }
        if not any(one != other for one in by["review"] for other in by["challenge"]):
            faults.append(
                f"{name}: {before['digest']} became {goal} without a review and a challenge that name both, "
                "by two authors, neither of them an author of the change"
            )
    return faults


def git(root: Path, *words: str) -> str | None:
    """What git answers; None when it does not."""
    program = shutil.which("git")
    if program is None:
        return None
    done = subprocess.run(  # noqa: S603 - the words are ours
        [program, "-C", str(root), *words], capture_output=True, text=True, check=False
    )
    return done.stdout.strip("\n") if done.returncode == 0 else None


def base_of(root: Path, given: str | None) -> str | None:
    """The commit to compare with; None where there is none.

    Raises:
        MalformedError: the one that was named is no commit.
    """
    if given:
        found = git(root, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")
        if found is None:
            raise MalformedError(f"{given} is no commit here")
        return found
    head = git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None:
        return None
    left = git(root, "merge-base", "HEAD", "@{upstream}")
    if left is not None and left != head:
        return left
    changed = git(root, "status", "--porcelain", "--", NAME)
    return head if changed else git(root, "rev-parse", "--verify", "--quiet", "HEAD~1")


def authors_since(root: Path, base: str, now: Protected) -> set[str]:
    """Names and addresses of whoever changed the file or a protected source since a commit."""
    paths = [NAME, *sorted({line["path"] for line in now.lines.values()})]
    logged = git(root, "log", "--format=%an%n%ae%n%cn%n%ce", f"{base}..HEAD", "--", *paths) or ""
    own = (git(root, "config", "user.name"), git(root, "config", "user.email"))
    uncommitted = [each for each in own if each] if git(root, "status", "--porcelain", "--", *paths) else []
    return {author for author in [*logged.splitlines(), *uncommitted] if author}


def faults_of(root: Path, base: str | None) -> list[str]:
    """Everything that is wrong.

    Raises:
        MalformedError: the file, or its base, is not of its form.
    """
    now = read((root / NAME).read_text(encoding="utf-8"))
    faults = source_faults(now, root)
    commit = base_of(root, base)
    before = None if commit is None else git(root, "show", f"{commit}:{NAME}")
    if commit is not None and before is not None:
        faults += change_faults(read(before), now, authors_since(root, commit, now))
    return faults


def write(root: Path) -> None:
    """Bring the digests up to date."""
    document = json.loads((root / NAME).read_text(encoding="utf-8"))
    for line in document["lines"]:
        line["digest"] = digest_of(line, root) or line["digest"]
    (root / NAME).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Print what is wrong; 1 when something is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", default=os.environ.get("PROTECTED_LINES_BASE"), help="commit to compare with"
    )
    parser.add_argument("--write", action="store_true", help="write the digests of the sources as they are")
    options = parser.parse_args(arguments)
    try:
        if options.write:
            write(root)
        faults = faults_of(root, options.base)
    except (MalformedError, OSError) as error:
        faults = [str(error)]
    for fault in faults:
        print(f"{NAME}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
