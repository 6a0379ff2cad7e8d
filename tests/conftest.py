"""What every test may rely on, whatever started the run."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# A run started in the background or under nohup inherits ignored signals, and so would every child of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(_ignored, signal.SIG_DFL)

# Folders that tests make above private ones must not be open to a group, whatever the caller's mask.
os.umask(0o022)

# How fast a loaded machine draws examples says nothing about the code. `EXAMPLES` asks for more of them than
# an ordinary run has time for.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "50")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
