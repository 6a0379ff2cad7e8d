"""List which numbered statements have a test and which have none.

The statements and their short titles stand in docs/statements.md as rows `| E1 | … |`. A test claims
statements by starting its docstring with their ids (`E20 E21: …`). A claim on an id that no row defines is an
error, so that a typing mistake cannot count as coverage.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([A-Z]\d{1,3}) \| (.+?) \|$")
CLAIM = re.compile(r"^((?:[A-Z]\d{1,3})(?: [A-Z]\d{1,3})*):")


def titles() -> dict[str, str]:
    """Statement id to title, in the order of the page."""
    found = {}
    for line in (ROOT / "docs" / "statements.md").read_text(encoding="utf-8").splitlines():
        if match := ROW.match(line):
            if match[1] in found:
                sys.exit(f"docs/statements.md defines {match[1]} twice")
            found[match[1]] = match[2]
    return found


def claims() -> dict[str, list[str]]:
    """Statement id to the tests that claim it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if not node.name.startswith(("test", "Test")):
                continue
            if match := CLAIM.match((ast.get_docstring(node) or "").strip()):
                for statement in match[1].split():
                    found[statement].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def main() -> int:
    """Print the table; 1 when a test claims an unknown statement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--tests", action="store_true", help="name every test")
    options = parser.parse_args()
    known, claimed = titles(), claims()
    unknown = sorted(set(claimed) - set(known))
    if options.json:
        print(
            json.dumps(
                {"claimed": claimed, "missing": [s for s in known if s not in claimed], "unknown": unknown}
            )
        )
        return 1 if unknown else 0
    for letter in dict.fromkeys(statement[0] for statement in known):
        group = [statement for statement in known if statement[0] == letter]
        covered = [statement for statement in group if statement in claimed]
        print(f"{letter}: {len(covered)} of {len(group)} statements have a test")
        for statement in covered:
            tests = claimed[statement]
            print(
                f"  {statement:<4} {len(tests):>3} test{'s' if len(tests) != 1 else ' '}  {known[statement]}"
            )
            if options.tests:
                for test in tests:
                    print(f"         {test}")
        missing = [statement for statement in group if statement not in claimed]
        print(f"{letter}: without a test: {len(missing)}")
        for statement in missing:
            print(f"  {statement:<4} {known[statement]}")
    for statement in unknown:
        print(f"unknown statement {statement}: {', '.join(claimed[statement])}", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
