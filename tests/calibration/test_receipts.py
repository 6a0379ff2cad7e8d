from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.ledger import Standing, judge_receipts
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.receipts import artifact_root_hash, read_listing, sweep
from skill_effectiveness.evidence.canonical import digest_object, dump_line
from tests.support.examinations import ORIENTATION, line, open_out, receipts

if TYPE_CHECKING:
    from pathlib import Path


class TestReading:
    def test_receipts_are_found_by_name(self, tmp_path: Path) -> None:
        root = open_out(tmp_path)
        found = receipts("a.b", artifact_root_hash(root))
        root.publish(".orientation.key", ORIENTATION)
        with root.child("sample-ledger", create=True) as place:
            place.publish("a.b.json", line(found.ledger))
        with root.child("samples", create=True) as place:
            place.publish("a.b.json", line(found.sample))
            place.publish(".a.b.intent.json", line(found.intent))
        with root.child("observations", create=True) as place:
            place.publish("a.b.json", line(found.observation))
        state = judge_receipts(read_listing(root))
        assert (state.standing, set(state.complete)) == (Standing.OPEN, {"a.b"})

    def test_the_root_is_bound_by_its_path(self, tmp_path: Path) -> None:
        root = open_out(tmp_path)
        assert artifact_root_hash(root) == digest_object({"artifact_root": str((tmp_path / "out").resolve())})

    def test_an_empty_root_has_no_receipts(self, tmp_path: Path) -> None:
        assert judge_receipts(read_listing(open_out(tmp_path))).standing is Standing.OPEN

    @pytest.mark.parametrize("name", ["note.txt", ".hidden", "a.json~", "-a.json"])
    def test_an_unknown_name_is_told(self, tmp_path: Path, name: str) -> None:
        """R11: and stays where it is."""
        root = open_out(tmp_path)
        with root.child("samples", create=True) as place:
            place.publish(name, b"x")
        assert read_listing(root).strays == (f"samples/{name}",)

    def test_a_leftover_of_an_interrupted_write_is_no_receipt(self, tmp_path: Path) -> None:
        root = open_out(tmp_path)
        with root.child("samples", create=True) as place:
            place.publish("a", b"x")
        leftover = tmp_path / "out" / "samples" / ".a.json.0123456789abcdef.tmp"
        (tmp_path / "out" / "samples" / "a").rename(leftover)
        assert read_listing(root).strays == ()
        sweep(root)
        assert not leftover.exists()

    def test_logs_of_calls_are_found_by_name(self, tmp_path: Path) -> None:
        """R11: what they hold is not asked, only that there was a call."""
        root = open_out(tmp_path)
        with root.child("provider-log", create=True) as place:
            place.publish("a.json", b"x")
            place.publish("note.txt", b"x")
        found = read_listing(root)
        assert found.logs == {"a"}
        assert found.strays == ("provider-log/note.txt",)

    @pytest.mark.parametrize("folder", ["sample-ledger", "samples", "observations", "provider-log"])
    def test_a_linked_folder_is_not_entered(self, tmp_path: Path, folder: str) -> None:
        """R11: what lies behind a link is not this root's."""
        root = open_out(tmp_path)
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (tmp_path / "out" / folder).symlink_to(tmp_path / "elsewhere")
        sweep(root)
        assert judge_receipts(read_listing(root)).standing is Standing.QUARANTINED

    def test_a_file_others_can_write_is_not_believed(self, tmp_path: Path) -> None:
        root = open_out(tmp_path)
        with root.child("sample-ledger", create=True) as place:
            place.publish(
                "a.json",
                dump_line({**to_json(receipts("a", artifact_root_hash(root)).ledger), "state": "reserved"}),
            )
        assert judge_receipts(read_listing(root)).standing is Standing.RESERVED
        (tmp_path / "out" / "sample-ledger" / "a.json").chmod(0o666)
        assert judge_receipts(read_listing(root)).standing is Standing.QUARANTINED
