"""The command line: `python run.py …`; also installed as `skill-effectiveness`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "eval"))

try:
    from skill_effectiveness.cli.main import main
except ModuleNotFoundError as missing:
    sys.exit(
        f"skill_effectiveness: {missing.name} is not installed here; run 'make setup' and use .venv/bin/python run.py"
    )

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
