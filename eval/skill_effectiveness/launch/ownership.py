"""Who may have changed a file or folder.

Source: bridge.md sections 2 and 3.

Nothing but modules that every interpreter has loaded at its start is imported here, because this runs before
the process runs isolated.
"""

import os
import stat

from skill_effectiveness.launch.faults import ManifestError

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def demand_trust(status: os.stat_result, shown: str) -> None:
    """Demand that nobody but its owner can change it, and that its owner is the user or root.

    Raises:
        ManifestError: with the reason.
    """
    if status.st_uid not in (os.geteuid(), 0):
        raise ManifestError(f"{shown} belongs to another user; install the package as yourself.")
    if status.st_mode & OTHERS_WRITE:
        raise ManifestError(f"{shown} can be written by others; take group and world write permission away.")
