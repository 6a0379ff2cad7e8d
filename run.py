"""The command line: `python run.py …`; also installed as `skill-effectiveness`.

This file must load under any Python 3: whoever starts it with the wrong one is told which is right.
"""

import sys
from pathlib import Path

HINT = "run 'make setup' and use .venv/bin/python run.py"

sys.path.insert(0, str(Path(__file__).resolve().parent / "eval"))

if sys.version_info < (3, 11):  # noqa: UP036 - the sentence is for those below
    sys.stderr.write(f"skill_effectiveness_trial: Python 3.11 or newer is needed; {HINT}\n")
    sys.exit(2)

try:
    from skill_effectiveness.cli.main import main
except ModuleNotFoundError as missing:
    sys.stderr.write(f"skill_effectiveness_trial: {missing.name} is not installed here; {HINT}\n")
    sys.exit(2)
except KeyboardInterrupt:
    sys.exit(130)
except Exception as broken:  # noqa: BLE001 - nothing may leave as a traceback, whatever fails to load
    sys.stderr.write(
        f"skill_effectiveness_trial: the program cannot be loaded ({type(broken).__name__}); {HINT}\n"
    )
    sys.exit(70)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
