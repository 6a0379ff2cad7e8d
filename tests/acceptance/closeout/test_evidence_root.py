"""Storing records: numbers, places, and what a kill at any step leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.evidence_root import EvidenceRoot, last_attempt, record_bytes
from skill_effectiveness.acceptance.closeout.layout import Place, attempt_of
from skill_effectiveness.acceptance.closeout.records import read_record
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from tests.support.closeout import BASE_ID, DIGEST, HEAD_ID, command_record
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import content, surroundings, wrong_modes

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.closeout.records import Artifact, Record
    from skill_effectiveness.evidence.fsops import FileSystem

PLACE = Place(DIGEST, HEAD_ID, "q/check")
FOLDERS = f"{'d' * 64}/{HEAD_ID}/q/check"


def make(attempt: int, artifacts: tuple[Artifact, ...]) -> Record:
    plain = [artifact.model_dump() for artifact in artifacts]
    return read_record(json.dumps(command_record("q/check", attempt, artifacts=plain)).encode())


def opened(tmp_path: Path, fs: FileSystem | None = None) -> EvidenceRoot:
    return EvidenceRoot.open(tmp_path / ".closeout", surroundings(fs))


class TestStoring:
    def test_attempts_are_numbered_and_never_overwritten(self, tmp_path: Path) -> None:
        """C47: 1, 2, 3; the earlier ones stay byte for byte."""
        with opened(tmp_path) as root:
            for number in (1, 2, 3):
                record, digest = root.store(PLACE, make, b"log %d" % number, 1)
                assert record.attempt == number
                assert digest.startswith("sha256:")
            found = content(tmp_path / ".closeout")
            assert found[f"evidence/{FOLDERS}/2.json"] == record_bytes(root.records()[1].record)
            assert found[f"logs/{FOLDERS}/1.log"] == b"log 1"
            assert [stored.record.attempt for stored in root.records()] == [1, 2, 3]
        assert wrong_modes(tmp_path / ".closeout") == []
        assert list((tmp_path / ".closeout" / "staging").iterdir()) == []
        assert found[".gitignore"] == b"*\n"

    def test_a_record_elsewhere_counts_too(self, tmp_path: Path) -> None:
        """C47: the greatest attempt of item, head and digest, wherever it lies and whatever its base."""
        with opened(tmp_path) as root:
            root.store(PLACE, make, None, 1)
            folder = tmp_path / ".closeout" / "evidence"
            other = command_record("q/check", 7, base="0" * 40)
            (folder / "x.json").write_text(json.dumps(other))
            least = last_attempt(root.records(), PLACE) + 1
            assert root.store(PLACE, make, None, least)[0].attempt == 8

    def test_a_log_that_a_kill_left_keeps_its_number(self, tmp_path: Path) -> None:
        """C65: the next attempt does not take it."""
        with opened(tmp_path) as root:
            root.store(PLACE, make, b"x", 1)
            (tmp_path / ".closeout" / "evidence" / FOLDERS / "1.json").unlink()
            assert root.store(PLACE, make, b"y", 1)[0].attempt == 2

    def test_numbers_end(self, tmp_path: Path) -> None:
        """C47: a record's schema ends at 100,000."""
        with opened(tmp_path) as root, pytest.raises(CloseoutError) as caught:
            root.store(PLACE, make, None, 100_001)
        assert caught.value.code is CloseoutCode.EVIDENCE_NOT_STORED

    @pytest.mark.parametrize(
        ("digest", "head", "item"),
        [
            ("d" * 64, HEAD_ID, "a"),
            (DIGEST, "HEAD", "a"),
            (DIGEST, HEAD_ID + "\n", "a"),
            (DIGEST, HEAD_ID, ""),
            (DIGEST, HEAD_ID, "../a"),
            (DIGEST, HEAD_ID, "a//b"),
            (DIGEST, HEAD_ID, "/a"),
            (DIGEST, HEAD_ID, "a/."),
            (DIGEST, HEAD_ID, "A"),
            ("", HEAD_ID, "a"),
        ],
    )
    def test_illegal_places(self, digest: str, head: str, item: str) -> None:
        """C47: nothing outside the layout is ever written."""
        with pytest.raises(CloseoutError) as caught:
            Place(digest, head, item)
        assert caught.value.message == "evidence path is invalid"

    @pytest.mark.parametrize(
        ("name", "attempt"),
        [("1.json", 1), ("12.log", 12), ("0.json", 0), ("01.json", 0), ("x", 0), ("1.json.tmp", 0)],
    )
    def test_names_of_attempts(self, name: str, attempt: int) -> None:
        assert attempt_of(name) == attempt

    @pytest.mark.parametrize("operation", ["create_exclusive", "write", "fsync", "link", "mkdir"])
    def test_a_full_disk(self, tmp_path: Path, operation: str) -> None:
        """C65: evidence_not_stored; no record, and the same call succeeds afterwards."""
        with opened(tmp_path):
            pass
        fs = FaultFs(RealFs(), Injection(operation, 28, nth=2 if operation == "create_exclusive" else 1))
        with opened(tmp_path, fs) as root:
            with pytest.raises(CloseoutError) as caught:
                root.store(PLACE, make, b"log", 1)
            assert caught.value.code is CloseoutCode.EVIDENCE_NOT_STORED
            assert root.records() == ()
            root.store(PLACE, make, b"log", 1)
            assert len(root.records()) == 1

    def test_a_kill_at_every_step(self, tmp_path: Path) -> None:
        """C65: no record or a whole one, and the next start goes on and leaves no staged file."""
        nth = 0
        outcomes = set()
        while True:
            nth += 1
            place = tmp_path / str(nth)
            place.mkdir()
            with opened(place) as root:
                root.store(PLACE, make, b"first", 1)
            fs = MortalFs(RealFs(), nth)
            try:
                with opened(place, fs) as root:
                    root.store(PLACE, make, b"second", 1)
            except Died:
                pass
            with opened(place) as root:
                found = [stored.record.attempt for stored in root.records()]
                assert found in ([1], [1, 2])
                outcomes.add(len(found))
                last = root.store(PLACE, make, b"third", 1)[0].attempt
                assert last > found[-1]
                assert all(stored.broken_artifact is None for stored in root.records())
            assert list((place / ".closeout" / "staging").iterdir()) == []
            assert wrong_modes(place / ".closeout") == []
            if not fs.dead:
                break
        assert outcomes == {1, 2}
        assert nth > 10


class TestDecisions:
    def test_a_decision_is_replaced_when_it_changes(self, tmp_path: Path) -> None:
        """C48: keeping the same again changes nothing."""
        kept = tmp_path / ".closeout" / "decisions" / "g" / "h.json"
        files = []
        with opened(tmp_path) as root:
            for data in (b"1\n", b"1\n", b"2\n"):
                root.keep_decision(("decisions", "g"), "h.json", data)
                files.append((kept.stat().st_ino, kept.stat().st_mtime_ns))
                assert kept.read_bytes() == data
        assert files[0] == files[1] != files[2]


class TestArtifacts:
    @pytest.mark.parametrize(
        "path", ["/etc/passwd", "../x", "a/../../x", "x\0", "logs", "nothing/x", ".", ""]
    )
    def test_a_path_that_leads_outside_names_nothing(self, tmp_path: Path, path: str) -> None:
        """C51: it is absent, whatever its hash says; nothing outside is read."""
        from skill_effectiveness.acceptance.closeout.evaluation import Candidate, Inputs  # noqa: PLC0415 - for this one

        (tmp_path / "x").write_bytes(b"")
        empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        record = command_record("q/check", artifacts=[{"path": path or "?", "sha256": empty}])
        with opened(tmp_path) as root:
            root.store(PLACE, make, b"", 1)
            (tmp_path / ".closeout" / "evidence" / "x.json").write_text(json.dumps(replace_attempt(record)))
            inputs = Inputs(BASE_ID, HEAD_ID, DIGEST, Candidate(), "1")
            found = {stored.record.attempt: stored.broken_artifact for stored in root.records(inputs)}
        assert found[1] is None
        assert found[9] is not None


def replace_attempt(record: dict[str, object]) -> dict[str, object]:
    return {**record, "attempt": 9}
