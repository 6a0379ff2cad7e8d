"""Why a door does not open: one class a reason, each with its closed code.

Source: bridge.md section 3; calibration.md section 3. These classes are all there are; a door maps every one
of them to a word of its own contract (`doors.py`).

This module imports nothing, because it is loaded before the process runs isolated.
"""


class LaunchError(Exception):
    """Base of them all. The text names files, for people only; machines get the door's word.

    Attributes:
        code: the closed word of this room.
    """

    code = ""


class ManifestError(LaunchError):
    """The running code cannot be bound: a file of it, the interpreter or a RECORD cannot be trusted."""

    code = "runtime_manifest_unavailable"


class DriftError(LaunchError):
    """Code is not what was bound, or something else than the verifying importer offers it."""

    code = "runtime_drift"


class UnloadableError(LaunchError):
    """Bound and verified code cannot be loaded: it does not compile, or misses a module."""

    code = "code_unloadable"


class UndeliverableError(LaunchError):
    """The request cannot be read, or the answer not be written."""

    code = "wire_broken"


class UnforeseenError(LaunchError):
    """Anything else. The text names where it happened, never what it happened to."""

    code = "unforeseen"
