"""`reviewers seal`: which pair, which key, which folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.keys import key_place
from skill_effectiveness.cli.refusals import Refusal
from tests.support.examinations import open_out, run_examination
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

SEALED = {"reviewer-calibration.json", "reviewer-calibration-result.json", "seal.dsse.json"}


@pytest.fixture
def examined(home: Path) -> Path:
    """The folder of a published examination."""
    with open_out(home) as out:
        run_examination(out)
    return home / "out"


@pytest.fixture
def key(command: Callable[..., Said]) -> str:
    """The name of a signing key."""
    command("keys", "new", "lab")
    return "lab"


def with_passphrase(command: Callable[..., Said], text: bytes, *words: str | Path) -> Said:
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    try:
        return command(*words, "--passphrase-fd", str(reader))
    finally:
        os.close(reader)


class TestSeal:
    def test_a_pair_and_its_seal(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str
    ) -> None:
        """R45: exactly three private files."""
        said = command("reviewers", "seal", examined, "--key", key, "--out", "sealed")
        assert said.code == 0, said
        assert said.out.splitlines() == [
            "calibration_status=pass",
            "reviewer_family=simulated",
            "synthetic=true",
            "result=seal.dsse.json",
        ]
        assert set(content(home / "sealed")) == SEALED
        assert wrong_modes(home / "sealed") == []
        assert "verify sealed --pub " in said.err.splitlines()[-1]

    def test_json_says_the_same(self, command: Callable[..., Said], examined: Path, key: str) -> None:
        said = command("reviewers", "seal", examined, "--key", key, "--out", "sealed", "--json")
        assert said.out == (
            '{"calibration_status":"pass","result":"seal.dsse.json","reviewer_family":"simulated","synthetic":true}\n'
        )

    def test_doing_it_again_changes_nothing(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str
    ) -> None:
        words = ("reviewers", "seal", examined, "--key", key, "--out", "sealed")
        first = command(*words)
        before = content(home / "sealed")
        assert command(*words) == first
        assert content(home / "sealed") == before

    def test_a_key_by_its_path(self, command: Callable[..., Said], home: Path, examined: Path) -> None:
        command("keys", "new", "lab", "--root", "vault")
        for path in ("vault/keys/lab.key", home / "vault/keys/lab.key"):
            assert command("reviewers", "seal", examined, "--key", path, "--out", "sealed").code == 0

    def test_an_encrypted_key(self, command: Callable[..., Said], home: Path, examined: Path) -> None:
        with_passphrase(command, b"open sesame\n", "keys", "new", "lab")
        words = ("reviewers", "seal", examined, "--key", "lab", "--out", "sealed")
        assert "is encrypted" in command(*words).refusal
        assert "does not open" in with_passphrase(command, b"open barley\n", *words).refusal
        assert with_passphrase(command, b"wrong", *words, "--json").document["code"] == "key_passphrase"
        assert not (home / "sealed").exists()
        assert with_passphrase(command, b"open sesame", *words).code == 0

    def test_a_passphrase_for_a_key_that_has_none(
        self, command: Callable[..., Said], examined: Path, key: str
    ) -> None:
        words = ("reviewers", "seal", examined, "--key", key, "--out", "sealed")
        assert "leave it out" in with_passphrase(command, b"x", *words).refusal

    @pytest.mark.parametrize("name", ["reviewer-calibration.json", "reviewer-calibration-result.json"])
    def test_half_a_pair(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str, name: str
    ) -> None:
        """R19: it is refused here too."""
        (examined / name).unlink()
        said = command("reviewers", "seal", examined, "--key", key, "--out", "sealed", "--json")
        assert (said.code, said.document["code"]) == (2, "pair_incomplete")
        assert not (home / "sealed/seal.dsse.json").exists()

    def test_a_pair_that_does_not_load(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str
    ) -> None:
        """R19: an edited figure is a refusal, not a crash."""
        path = examined / "reviewer-calibration-result.json"
        path.write_bytes(
            path.read_bytes().replace(b'"calibration_status":"pass"', b'"calibration_status":"fail"')
        )
        said = command("reviewers", "seal", examined, "--key", key, "--out", "sealed", "--json")
        assert (said.code, said.document["code"]) == (2, "value_differs")
        assert not (home / "sealed/seal.dsse.json").exists()

    def test_a_target_that_holds_something(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str
    ) -> None:
        (home / "sealed").mkdir(mode=0o700)
        (home / "sealed/other").write_text("mine")
        said = command("reviewers", "seal", examined, "--key", key, "--out", "sealed", "--json")
        assert said.document["code"] == "target_occupied"
        assert set(content(home / "sealed")) == {"other"}

    def test_what_is_missing(
        self, command: Callable[..., Said], home: Path, examined: Path, key: str
    ) -> None:
        before = {path.name for path in home.iterdir()}
        assert command("reviewers", "seal", "nowhere", "--key", key, "--out", "sealed").refusal
        assert command("reviewers", "seal", examined, "--key", "other", "--out", "sealed").refusal
        assert {path.name for path in home.iterdir()} == before


class TestKeyPlace:
    def test_a_name(self) -> None:
        assert key_place("lab") == ("lab", None)

    def test_a_path(self, home: Path) -> None:
        assert key_place("/a/b/keys/lab.key") == ("lab", home.__class__("/a/b"))
        assert key_place("keys/lab.v2.key") == ("lab.v2", home)

    @pytest.mark.parametrize(
        "given", ["a/lab.key", "keys/lab.pub", "/keys/lab", "keys/", "./lab", "a/keys/lab.KEY"]
    )
    def test_a_path_that_is_none(self, home: Path, given: str) -> None:
        del home
        with pytest.raises(Refusal) as caught:
            key_place(given)
        assert caught.value.code == "key_form"
