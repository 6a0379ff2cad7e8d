"""Running isolated: whatever the caller's environment says to the interpreter does not reach the evaluator.

Source: bridge.md section 2.

`isolate` is called first. Unless the process runs with `-I -B -X utf8` and without `-O` it replaces itself by
the same interpreter, the same door and the same arguments, with these switches alone and an environment of at
most `HOME`, `XDG_STATE_HOME`, `TMPDIR`, `LANG=C.UTF-8` and `TZ=UTC`.

A door still has to hand variables on: a provider's program needs `PATH`, proxies and its own key
(providers.md P3). They travel as data, never as the interpreter's environment: a memory file on descriptor 3
that is read once and closed. It holds the caller's environment but for the names that steer interpreters and
loaders; who is given what is judged later, by the allowlist of the room `providers`, because no vendor's name
may stand here. A caller who forges that file decides about nothing that its environment would not have
decided.

Nothing but modules that every interpreter has loaded at its start is imported here. What ran before, of the
caller's choice (`sitecustomize`, `usercustomize`), cannot be excluded from inside: a host that cares starts
the door with `-I -B -X utf8`.
"""

import os
import stat
import sys

from skill_effectiveness.launch.faults import ManifestError
from skill_effectiveness.launch.ownership import demand_trust

SWITCHES = ("-I", "-B", "-X", "utf8")
KEPT = ("HOME", "XDG_STATE_HOME", "TMPDIR")
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC"}
# Python's own switches and those of the dynamic loader; no program of ours or of a provider is given them.
NEVER_HANDED = (b"PYTHON", b"LD_", b"DYLD_")
HANDED_ON = 3
"""The descriptor of the memory file."""
MARK = b"skill-effectiveness environment 1\0"
READ_SIZE = 1 << 16


def isolate(door_file: str) -> dict[str, str]:
    """The caller's environment, as data, once the process runs isolated; else the process is replaced.

    In either case the process's own environment holds at most the five variables afterwards.

    Args:
        door_file: the door's own file, to be started again.

    Raises:
        ManifestError: the interpreter cannot be trusted or started, or did not run isolated when it was told
            to: the process is never replaced twice.
    """
    handed = _handed_on()
    if runs_isolated():
        entries = _worth_handing() if handed is None else handed
        # A caller's switch could lead bytecode here from a folder of its choice.
        sys.pycache_prefix = None
        reduced = reduced_environment()
        os.environ.clear()
        os.environ.update(reduced)
        return _decoded(entries)
    if handed is not None:
        raise ManifestError(
            "The interpreter does not run isolated although it was told to; "
            "start the door with a python that is no wrapper."
        )
    _replace_process(door_file)
    raise AssertionError("unreachable: the process was replaced")


def runs_isolated() -> bool:
    """Whether the three switches are on, and none that leaves statements of the bound code out."""
    switched = sys.flags.isolated and sys.flags.dont_write_bytecode and sys.flags.utf8_mode
    return bool(switched and not sys.flags.optimize)


def reduced_environment() -> dict[str, str]:
    """All that the evaluator's own process may have as environment."""
    return {name: os.environ[name] for name in KEPT if name in os.environ} | FIXED


def _replace_process(door_file: str) -> None:
    """Start this interpreter anew, from the very file that was found trustworthy."""
    if not sys.executable or "memfd_create" not in vars(os):
        raise ManifestError("This python cannot start itself again; start the door with -I -B -X utf8.")
    door = os.path.abspath(door_file)  # noqa: PTH100 - pathlib is not loaded yet, and no link is followed
    command = [sys.executable, *SWITCHES, door, *sys.argv[1:]]
    try:
        _hand_on(_worth_handing())
        program = os.path.realpath(sys.executable, strict=True)
        number = os.open(program, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        _demand_trusted_program(number)
        # By descriptor, so that nothing can be put in its place; the venv is found by the first argument.
        os.execve(number, command, reduced_environment())  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        raise ManifestError(
            f"The interpreter cannot be started again ({error.strerror}); start the door with -I -B -X utf8."
        ) from error


def _demand_trusted_program(number: int) -> None:
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        raise ManifestError("The interpreter is not a regular file; start the door by another python.")
    demand_trust(status, "the interpreter")


def _worth_handing() -> bytes:
    """The environment in the kernel's own form, without what steers interpreters and loaders."""
    return b"".join(
        b"%b=%b\0" % (name, value) for name, value in os.environb.items() if not name.startswith(NEVER_HANDED)
    )


def _hand_on(entries: bytes) -> None:
    """Put the environment where the isolated process looks for it."""
    number = os.memfd_create("skill-effectiveness-environment")
    rest = MARK + entries
    while rest:
        rest = rest[os.write(number, rest) :]
    if number != HANDED_ON:
        os.dup2(number, HANDED_ON)
        os.close(number)
    os.set_inheritable(HANDED_ON, True)  # noqa: FBT003 - no keyword there


def _handed_on() -> bytes | None:
    """What was handed on, read once and closed; None when descriptor 3 is nothing of ours, and left alone."""
    try:
        # At a position: a pipe, a terminal and a socket of the caller's refuse that, and lose nothing.
        if os.pread(HANDED_ON, len(MARK), 0) != MARK:
            return None
    except OSError:
        return None
    os.lseek(HANDED_ON, len(MARK), os.SEEK_SET)
    parts = []
    while part := os.read(HANDED_ON, READ_SIZE):
        parts.append(part)
    os.close(HANDED_ON)
    return b"".join(parts)


def _decoded(entries: bytes) -> dict[str, str]:
    """Names and values as `os.environ` would have them in UTF-8 mode."""
    pairs = (entry.partition(b"=") for entry in entries.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
