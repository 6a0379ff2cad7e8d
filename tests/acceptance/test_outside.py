"""Places inside and outside of checkouts."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.outside import lies_in_checkout
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.surroundings import Surroundings

if TYPE_CHECKING:
    from pathlib import Path

AROUND = Surroundings.real()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that git, or a person, takes for the top of a checkout."""
    made = tmp_path / "checkout"
    (made / ".git").mkdir(parents=True)
    (made / "below").mkdir()
    return made


def test_outside(tmp_path: Path, checkout: Path) -> None:
    """C2: beside one, and where nothing is yet."""
    assert not lies_in_checkout(tmp_path / "store", AROUND)
    assert not lies_in_checkout(checkout.parent / "a" / "b", AROUND)


@pytest.mark.parametrize("place", ["", "below", "below/not/there", "not/there"])
def test_inside(checkout: Path, place: str) -> None:
    """C2: at its top and anywhere below, whether or not it is there."""
    assert lies_in_checkout(checkout / place, AROUND)


@pytest.mark.parametrize("place", ["linked", "linked/store", "linked/not/there"])
def test_a_link_into_one(checkout: Path, tmp_path: Path, place: str) -> None:
    """C2: no folder that the path names is a checkout; the one that it leads to is."""
    (tmp_path / "linked").symlink_to(checkout / "below")
    assert lies_in_checkout(tmp_path / place, AROUND)


def test_a_link_out_of_one(checkout: Path, tmp_path: Path) -> None:
    """C2: whoever may change the checkout may change the link."""
    (checkout / "out").symlink_to(tmp_path)
    assert lies_in_checkout(checkout / "out" / "store", AROUND)


def test_a_dangling_mark(tmp_path: Path) -> None:
    """C2: the name is enough, wherever it leads."""
    (tmp_path / ".git").symlink_to(tmp_path / "nowhere")
    assert lies_in_checkout(tmp_path / "store", AROUND)


@pytest.mark.parametrize("operation", ["lstat", "resolve"])
def test_what_cannot_be_told(tmp_path: Path, operation: str) -> None:
    """C2: not knowing is no permission."""
    around = replace(AROUND, fs=FaultFs(AROUND.fs, Injection(operation, errno.EACCES)))
    with pytest.raises(FileError):
        lies_in_checkout(tmp_path / "store", around)
