"""The two probes against the start of a bare isolated interpreter, each in processes of their own.

Contenders take turns, so that a slow spell of the machine hits all; the best round of each counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Figure, best_seconds, report
from tests.support.bridge import Bridge


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="skill-effectiveness-bridge-") as folder:
        bridge = Bridge(Path(folder).resolve())
        first = json.dumps(bridge.request("probe", {"phase": "manifest"})).encode()
        pinned = {"phase": "full", "pinned_manifest": bridge.manifest()}
        second = json.dumps(bridge.request("probe", pinned)).encode()

        def run(command: list[str], data: bytes) -> None:
            subprocess.run(command, input=data, capture_output=True, check=True, env=bridge.environment)  # noqa: S603 - our own

        bare, manifest, full = best_seconds(
            lambda: run([sys.executable, "-I", "-c", "pass"], b""),
            lambda: run(bridge.command(), first),
            lambda: run(bridge.command(), second),
            rounds=15,
        )
    print(f"bare={bare * 1e3:.1f}ms manifest={manifest * 1e3:.1f}ms full={full * 1e3:.1f}ms")
    return report(
        Figure("bridge_manifest_probe", manifest / bare, 4),
        Figure("bridge_full_probe_warm", full / bare, 8),
    )


if __name__ == "__main__":
    sys.exit(main())
