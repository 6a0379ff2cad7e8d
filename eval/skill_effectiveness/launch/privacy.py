"""What other processes of the user can find out about this one, a reviewer's program among them.

Source: evidence.md section 9 (no core file holds a key); prctl(2), PR_SET_DUMPABLE.

Held in memory are keys, passphrases, requests and known answers. Closed to others are memory, descriptors,
environment, working folder and executable; what stays visible under /proc is the command line. Root, and
whoever has CAP_SYS_PTRACE, sees everything.
"""

from __future__ import annotations

import resource
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def close_to_others() -> None:
    """No core file, and no look into this process from outside, where the platform can do that.

    A program started later is open again as soon as it runs.
    """
    import ctypes  # noqa: PLC0415 - loads a library, which not every door may

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        call = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return  # not Linux: the core files are all that can be helped
    unused = ctypes.c_ulong(0)
    call(_PR_SET_DUMPABLE, unused, unused, unused, unused)
