from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.calibration.observer import Silent

if TYPE_CHECKING:
    import pytest

    from skill_effectiveness.calibration.observer import Observer


def test_a_library_call_that_nobody_watches_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    observer: Observer = Silent()
    observer.leftovers_found(1, 2, 0)
    observer.repeat_started(1, 2, 1)
    observer.call_started(220)
    observer.call_ended("success")
    observer.repeat_kept(1, 2)
    observer.published("pass")
    assert capfd.readouterr() == ("", "")
