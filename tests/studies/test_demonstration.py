"""What the demonstration does when it is taken up again; the whole of it is tested as a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skill_effectiveness.calibration.licence import LicenceCode, LicenceFault, LicenceRefused
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.providers import SimulatedSettings
from skill_effectiveness.studies import demonstration
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SETTINGS = SimulatedSettings(accuracy=0.9, seed=1)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    """An empty private folder."""
    with PrivateRoot.create(tmp_path / "demo", RootKind.OUT, around=surroundings(), checkout=None) as held:
        yield held


class _Watch:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def step(self, sentence: str) -> None:
        """See `DemoWatch`."""
        self.said.append(sentence)


def refused(code: LicenceCode) -> LicenceRefused:
    return LicenceRefused(LicenceFault(code, "no."))


def licence(root: PrivateRoot, watch: _Watch) -> bytes:
    """What the demonstration does about the reviewer `careful`."""
    return demonstration._licence(root, "careful", SETTINGS, KEY, watch)  # type: ignore[arg-type]


def test_an_examination_that_was_cut_off(root: PrivateRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """S23 S67: calls that nobody answered stay, so the examination begins anew beside them."""
    folders: list[str] = []

    def examined(_root: PrivateRoot, _name: str, where: str, *_others: object) -> bytes:
        folders.append(where)
        if len(folders) < 3:
            raise refused(LicenceCode.USABLE_ANSWERS_TOO_FEW)
        return b"licence"

    monkeypatch.setattr(demonstration, "_examined", examined)
    watch = _Watch()
    assert licence(root, watch) == b"licence"
    assert folders == ["careful", "careful-2", "careful-3"]
    assert sum("begins anew" in sentence for sentence in watch.said) == 2


def test_another_refusal_is_one(root: PrivateRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """S67: nothing is tried until it fits."""

    def examined(*_given: object) -> bytes:
        raise refused(LicenceCode.ACCURACY_TOO_LOW)

    monkeypatch.setattr(demonstration, "_examined", examined)
    with pytest.raises(LicenceRefused):
        licence(root, _Watch())


def test_a_source_that_was_written_in_part(root: PrivateRoot) -> None:
    """S23 S67: what is missing is written, what is there stays."""
    licences = {"careful": b"{}\n"}
    folder = demonstration._source(root, licences)
    (folder / "tasks" / "note-amber" / "tests" / "test.sh").unlink()
    (folder / "study.yaml").write_bytes(b"mine\n")
    demonstration._source(root, licences)
    assert (folder / "tasks" / "note-amber" / "tests" / "test.sh").read_bytes()
    assert (folder / "study.yaml").read_bytes() == b"mine\n"
