"""The command line: `python run.py …`; also installed as `skill-effectiveness`.

This file alone must run under any interpreter: whoever starts it with the wrong one is told which is right.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "eval"))

HINT = "skill_effectiveness_trial: {}; run 'make setup' and use .venv/bin/python run.py\n"


def start():
    """Load the command line and hand over; its exit code comes back."""
    if sys.version_info < (3, 11):  # noqa: UP036 - older ones get here
        sys.stderr.write(HINT.format("Python 3.11 or newer is needed"))
        return 2
    try:
        from skill_effectiveness.cli.main import main
    except ModuleNotFoundError as missing:
        sys.stderr.write(HINT.format("{} is not installed here".format(missing.name)))
        return 2
    except KeyboardInterrupt:
        return 130
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(start())
