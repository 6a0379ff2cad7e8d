"""`verify`: ten numbered checks, offline, with a public key."""

from __future__ import annotations

import base64
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from skill_effectiveness.calibration.sealing import FolderVerification, NumberedCheck, seal_pair
from skill_effectiveness.cli.verify import values
from skill_effectiveness.evidence.keys import public_key_id, public_pem
from tests.support.commands import Said, no_traceback, run, steers
from tests.support.examinations import open_out, run_examination
from tests.support.private import content
from tests.support.seals import KEY, OTHER_KEY, PAYLOAD_TYPE, line, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEAL = "seal.dsse.json"
EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"
PASSED = [f"check.{number}=pass" for number in range(1, 11)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed folder, made once."""
    folder = tmp_path_factory.mktemp("sealed")
    with open_out(folder) as out, open_out(folder, name="sealed") as sealed:
        run_examination(out)
        seal_pair(out, KEY, sealed)
    return folder / "sealed"


@pytest.fixture
def sealed(original: Path, home: Path) -> Path:
    """A copy of it, and the public key beside it."""
    shutil.copytree(original, home / "sealed")
    (home / "signer.pub").write_bytes(public_pem(KEY.public_key()))
    (home / "other.pub").write_bytes(public_pem(OTHER_KEY.public_key()))
    return home / "sealed"


def envelope(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / SEAL).read_bytes())
    return read


def statement(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(base64.b64decode(envelope(folder)["payload"]))
    return read


def rewrite(folder: Path, document: object) -> None:
    (folder / SEAL).write_bytes(line(document))


def sign_again(folder: Path, payload: bytes | dict[str, Any], payload_type: str = PAYLOAD_TYPE) -> None:
    """Sign something else with the right key."""
    data = payload if isinstance(payload, bytes) else line(payload)[:-1]
    rewrite(folder, wrapped(data, (public_key_id(KEY.public_key()), KEY), payload_type=payload_type))


def flip(path: Path) -> None:
    """Change one byte."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shape(folder: Path) -> None:
    rewrite(folder, {**envelope(folder), "more": 1})


def no_json(folder: Path) -> None:
    (folder / SEAL).write_bytes(b"\xef\xbb\xbf{")


def payload_type(folder: Path) -> None:
    sign_again(folder, base64.b64decode(envelope(folder)["payload"]), "application/json")


def loose_base64(folder: Path) -> None:
    rewrite(folder, {**envelope(folder), "payload": envelope(folder)["payload"] + "\n"})


def signed_by_another(folder: Path) -> None:
    payload = base64.b64decode(envelope(folder)["payload"])
    rewrite(folder, wrapped(payload, (public_key_id(KEY.public_key()), OTHER_KEY)))


def changed_payload(folder: Path) -> None:
    said = line({**statement(folder), "predicate": {}})[:-1]
    rewrite(folder, {**envelope(folder), "payload": base64.b64encode(said).decode()})


def loose_statement(folder: Path) -> None:
    sign_again(folder, base64.b64decode(envelope(folder)["payload"]).replace(b"{", b'{"_type":"x",', 1))


def other_type(folder: Path) -> None:
    sign_again(folder, statement(folder) | {"predicateType": "urn:skill-effectiveness:bundle:v1"})


def other_predicate(folder: Path) -> None:
    said = statement(folder)
    said["predicate"]["calibration_status"] = "passed"
    sign_again(folder, said)


def changed_evidence(folder: Path) -> None:
    flip(folder / EVIDENCE)


def changed_result(folder: Path) -> None:
    flip(folder / RESULT)


def missing_file(folder: Path) -> None:
    (folder / RESULT).unlink()


def line_ends(folder: Path) -> None:
    path = folder / EVIDENCE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def third_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("look here")


def link_inside(folder: Path) -> None:
    (folder / "notes.txt").symlink_to("/etc/passwd")


def fifo_inside(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def hostile_name(folder: Path) -> None:
    (folder / "a\x1b[2K\ncheck.9=pass").write_text("x")


def other_verdict_in_the_predicate(folder: Path) -> None:
    said = statement(folder)
    said["predicate"]["calibration_status"] = "fail"
    sign_again(folder, said)


TAMPERED: list[tuple[Callable[[Path], None], int]] = [
    (shape, 1),
    (no_json, 1),
    (payload_type, 2),
    (loose_base64, 3),
    (signed_by_another, 4),
    (changed_payload, 4),
    (loose_statement, 5),
    (other_type, 6),
    (other_predicate, 7),
    (changed_evidence, 8),
    (changed_result, 8),
    (missing_file, 8),
    (line_ends, 8),
    (third_file, 9),
    (link_inside, 9),
    (fifo_inside, 9),
    (hostile_name, 9),
    (other_verdict_in_the_predicate, 10),
]


class TestPass:
    def test_every_check_by_its_number_and_what_was_sealed(
        self, command: Callable[..., Said], sealed: Path
    ) -> None:
        """R43 R45: a pass; that it was simulated is said."""
        said = command("verify", sealed, "--pub", "signer.pub")
        assert said.code == 0
        assert said.out.splitlines() == [
            "verify_status=pass",
            *PASSED,
            "calibration_status=pass",
            "provider=simulated",
            "model=sim-1",
            "reviewer_family=simulated",
            "synthetic=true",
        ]
        *checks, outcome = said.err.splitlines()
        assert [each.split()[:2] for each in checks] == [[str(n), "pass"] for n in range(1, 11)]
        assert outcome.startswith("Every check that is to be made passed: ")

    def test_json_says_the_same(self, command: Callable[..., Said], sealed: Path) -> None:
        lines = command("verify", sealed, "--pub", "signer.pub").values
        document = command("verify", sealed, "--pub", "signer.pub", "--json").document
        assert document == {**lines, "synthetic": True}

    def test_as_a_process_and_with_modes_a_stranger_has(self, home: Path, sealed: Path) -> None:
        """R45: a copied folder is not private, and need not be."""
        sealed.chmod(0o755)
        for path in sealed.iterdir():
            path.chmod(0o644)
        said = run(home, "verify", "sealed", "--pub", "signer.pub")
        assert said.code == 0, said
        assert said.out.splitlines()[1:11] == PASSED

    def test_nothing_is_written(self, command: Callable[..., Said], home: Path, sealed: Path) -> None:
        before = content(home)
        command("verify", sealed, "--pub", "signer.pub")
        assert content(home) == before


class TestFail:
    @pytest.mark.parametrize(("tamper", "number"), TAMPERED, ids=[tamper.__name__ for tamper, _ in TAMPERED])
    def test_the_check_that_fails_is_named(
        self, command: Callable[..., Said], sealed: Path, tamper: Callable[[Path], None], number: int
    ) -> None:
        """R45: exit 1, the number in the lines, and nothing of what the pair says."""
        tamper(sealed)
        said = command("verify", sealed, "--pub", "signer.pub")
        assert said.code == 1
        assert said.values["verify_status"] == "fail"
        failed = [name for name, word in said.values.items() if name != "verify_status" and word == "fail"]
        assert failed[0] == f"check.{number}"
        assert len(said.values) == 11
        assert [said.values[f"check.{each}"] for each in range(1, number)] == ["pass"] * (number - 1)
        numbers = ", ".join(name.removeprefix("check.") for name in failed)
        outcome = f"Check{'s' if len(failed) > 1 else ''} {numbers} failed: do not rely on this folder; "
        assert len(said.err.splitlines()) == 11
        assert said.err.splitlines()[-1].startswith(outcome)
        assert steers(said.out + said.err) == []
        assert no_traceback(said)

    def test_another_key(self, command: Callable[..., Said], sealed: Path) -> None:
        """R45: what a stranger signed is no seal of the signer."""
        said = command("verify", sealed, "--pub", "other.pub", "--json")
        assert (said.code, said.document["check.4"], said.document["verify_status"]) == (1, "fail", "fail")

    def test_changed_line_ends_have_a_name(self, command: Callable[..., Said], sealed: Path) -> None:
        """E50: in the sentence of check 8."""
        line_ends(sealed)
        assert "line endings differ" in command("verify", sealed, "--pub", "signer.pub").err

    def test_no_path_on_stdout(self, command: Callable[..., Said], sealed: Path) -> None:
        """E58: whatever fails."""
        third_file(sealed)
        said = command("verify", sealed, "--pub", "signer.pub")
        assert "notes.txt" not in said.out
        assert "/" not in said.out

    @pytest.mark.parametrize("what", ["folder", "fifo", "link", "empty", "huge"])
    def test_a_seal_that_is_no_file(self, command: Callable[..., Said], sealed: Path, what: str) -> None:
        """F45: it answers; it never hangs."""
        path = sealed / SEAL
        path.unlink()
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to("/dev/zero")
        elif what == "huge":
            with path.open("wb") as file:
                file.truncate(1 << 31)
        else:
            path.touch()
        said = command("verify", sealed, "--pub", "signer.pub")
        assert (said.code, said.values["check.1"]) == (1, "fail")


class TestRefused:
    def test_no_folder_and_no_seal(self, command: Callable[..., Said], sealed: Path) -> None:
        assert command("verify", "nowhere", "--pub", "signer.pub").refusal
        (sealed / SEAL).unlink()
        told = command("verify", "sealed", "--pub", "signer.pub").refusal
        assert told.startswith(f"sealed: there is neither bundle.dsse.json nor {SEAL} in this folder")

    @pytest.mark.parametrize("what", ["file", "fifo", "link", "dangling", "below a file", "device"])
    def test_what_is_no_folder(
        self, command: Callable[..., Said], home: Path, sealed: Path, what: str
    ) -> None:
        """R45: exit 2, as for a folder that is not there; no check was made, so none failed."""
        path = home / "thing"
        if what == "file":
            path.touch()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to(sealed)
        elif what == "dangling":
            path.symlink_to("nowhere")
        elif what == "below a file":
            path.touch()
            path /= "inner"
        else:
            path = home.parent.joinpath("/dev/null")
        said = command("verify", path, "--pub", "signer.pub")
        assert path.name in said.refusal
        assert command("verify", path, "--pub", "signer.pub", "--json").document["status"] == "refused"

    @pytest.mark.parametrize("what", ["missing", "folder", "rubbish", "private", "other kind"])
    def test_no_key(self, command: Callable[..., Said], home: Path, sealed: Path, what: str) -> None:
        del sealed
        path = home / "key.pub"
        if what == "folder":
            path.mkdir()
        elif what == "rubbish":
            path.write_bytes(b"\x00\x1b[31m-----BEGIN")
        elif what == "private":
            path.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        elif what == "other kind":
            other = generate_private_key(SECP256R1()).public_key()
            path.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        said = command("verify", "sealed", "--pub", "key.pub")
        assert said.refusal
        assert steers(said.err) == []


def test_the_lines_of_a_failed_verification_never_name_the_pair() -> None:
    """R45: also if somebody handed over a pair beside a failed check."""
    checks = (
        NumberedCheck(1, "x", passed=False, sentence="x"),
        NumberedCheck(2, "y", passed=None, sentence="y"),
    )
    found = FolderVerification(checks, calibration=object())  # type: ignore[arg-type]
    assert values(found) == {"verify_status": "fail", "check.1": "fail", "check.2": "not_run"}
