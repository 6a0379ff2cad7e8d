"""The command line: `python run.py …`; also installed as `skill-effectiveness`.

This file must load under any Python 3: whoever starts it with the wrong one is told which is right.
"""

import sys

HINT = "run 'make setup' and use .venv/bin/python run.py"
code, told = 0, ""

try:
    import contextlib
    import os
    import signal
    from pathlib import Path

    # Nothing needs tidying while the program loads, and an exception in the middle of an import could be
    # swallowed or printed by whoever is being imported. The command line takes over from here.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: os._exit(128 + number))
    sys.path.insert(0, str(Path(__file__).resolve().parent / "eval"))
    if sys.version_info < (3, 11):  # noqa: UP036 - the sentence is for those below
        code, told = 2, "Python 3.11 or newer is needed"
    else:
        from skill_effectiveness.cli.main import main
except ModuleNotFoundError as missing:
    code, told = 2, f"{missing.name} is not installed here"
except KeyboardInterrupt:
    sys.exit(130)
except Exception as broken:  # noqa: BLE001 - nothing may leave as a traceback, whatever fails to load
    code, told = 70, f"the program cannot be loaded ({type(broken).__name__})"

if told:
    # To nobody, perhaps: the exit code says it all the same.
    with contextlib.suppress(OSError):
        os.write(2, f"skill_effectiveness_trial: {told}; {HINT}\n".encode("ascii", "backslashreplace"))
    sys.exit(code)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
