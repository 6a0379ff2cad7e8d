"""Write `schemas/` from the models, or with --check only name what differs (exit 1)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from skill_effectiveness.cli.schemas import published

FOLDER = Path(__file__).resolve().parent.parent / "schemas"


def main() -> int:
    """Compare the folder with the models, and write what differs unless asked only to check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a difference")
    check = parser.parse_args().check
    wanted = published()
    present = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.rglob("*.json")}
    differing = [name for name, data in wanted.items() if present.get(name) != data]
    foreign = sorted(set(present) - set(wanted))
    for name in differing:
        if check:
            print(f"schemas/{name} is not what its model says; run make schemas", file=sys.stderr)
        else:
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_bytes(wanted[name])
            print(f"wrote schemas/{name}")
    for name in foreign:
        print(f"schemas/{name} belongs to no model; remove it", file=sys.stderr)
    return 1 if foreign or (check and differing) else 0


if __name__ == "__main__":
    sys.exit(main())
