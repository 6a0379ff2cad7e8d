"""The distribution's Chromium, offline, in a folder of its own.

Where there is none, tests that need it are skipped with the reason; with SKILL_EFFECTIVENESS_BROWSER=required
in the environment they fail instead, so that a run which promised a browser cannot pass without one.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUIRED: Final = "SKILL_EFFECTIVENESS_BROWSER"
NAMES: Final = ("chromium", "chromium-browser")
ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """One window and what the page in it asked for."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.messages: list[dict[str, Any]] = []

    def show(self, page: Path, width: int, *, scheme: str = "light", script: bool = True) -> None:
        """Open a file at a width, everything recorded from here on."""
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self.command(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.driver.get_log("performance")
        self.messages.clear()
        self.driver.get_log("browser")
        self.driver.get(page.as_uri())

    def command(self, name: str, **given: Any) -> Any:  # noqa: ANN401 - the browser's own protocol
        return self.driver.execute_cdp_cmd(name, given)

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script answers
        return self.driver.execute_script(script)

    def asked(self) -> list[tuple[str, str | None]]:
        """Addresses asked for since `show`, the page itself among them, and what kept one from leaving."""
        self.messages += [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        blocked = {
            told["params"]["requestId"]: told["params"].get("blockedReason")
            for told in self.messages
            if told["method"] == "Network.loadingFailed"
        }
        return [
            (told["params"]["request"]["url"], blocked.get(told["params"]["requestId"]))
            for told in self.messages
            if told["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the console says: refused scripts, styles and requests among it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def programs() -> tuple[str, str]:
    """Chromium and its driver; the test is skipped, or fails where they are required."""
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    reason = "no chromium with its chromedriver on this machine: install both from the distribution"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def opened(folder: Path) -> Iterator[Browser]:
    """A browser with a fresh profile, without network, ended with the block."""
    browser, driver = programs()
    options = Options()
    options.binary_location = browser
    for argument in (*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "TMPDIR": str(folder)}
    window = webdriver.Chrome(options=options, service=Service(driver, env=environment))
    try:
        held = Browser(window)
        held.command("Network.enable")
        held.command(
            "Network.emulateNetworkConditions",
            offline=True, latency=0, downloadThroughput=0, uploadThroughput=0,
        )  # fmt: skip
        yield held
    finally:
        window.quit()
