"""Programs that attack the process that watches over them."""

from __future__ import annotations

import ctypes

PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
# CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON: with these root may look into any process (capabilities(7)).
LOOKING = (19, 21, 38)

# Says what can be had of the parent: the links of its folder and program, its environment, memory map,
# memory and descriptors, and a copy of one of these.
SPYING = """
import ctypes, json, os
boss = f"/proc/{os.getppid()}/"
found = {}
def attempt(name, what):
    try:
        found[name] = bool(what()) or "nothing"
    except OSError as fault:
        found[name] = fault.errno
def read(name):
    with open(boss + name, "rb") as file:
        return file.read(100)
for name in ("cwd", "exe"):
    attempt(name, lambda: os.readlink(boss + name))
for name in ("environ", "maps", "mem"):
    attempt(name, lambda: read(name))
def link():
    return os.readlink(boss + "fd/1")
attempt("fd", link)
def copied():
    number = ctypes.CDLL(None, use_errno=True).syscall(438, os.pidfd_open(os.getppid()), 1, 0)  # pidfd_getfd
    if number < 0:
        raise OSError(1, "no copy")
    return True
attempt("copy", copied)
print(json.dumps(found))
"""

# Copies every socket of the parent for itself: `channels`. Needs rights that only root has here.
STEALING = """
import ctypes, socket
boss = os.pidfd_open(os.getppid())
numbers = [int(name) for name in os.listdir(f"/proc/{os.getppid()}/fd")]
def stolen(number):
    copy = ctypes.CDLL(None).syscall(438, boss, number, 0)  # pidfd_getfd
    try:
        return socket.socket(fileno=copy)
    except (OSError, ValueError):
        return None  # no descriptor, or no socket
channels = [one for one in map(stolen, numbers) if one is not None]
assert channels
"""


def drop_root_s_sight() -> None:
    """What this process starts from now on is to others as programs of any one user are, root's too.

    For a process that ends soon: what is dropped does not come back.
    """
    call = ctypes.CDLL(None, use_errno=True).prctl
    for capability in LOOKING:
        if call(PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            assert call(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
