"""Lines of a private file, with its digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.row_files import RowFile, row_file
from skill_effectiveness.evidence.strict import Profile
from tests.support.private import out_root

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = Profile.ROW.max_bytes


@given(st.lists(st.binary(max_size=9) | st.sampled_from([b"\n", b"\n\n", b"a\n"]), max_size=8))
def test_cuts_at_line_feeds_alone(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    file = RowFile(chunks)
    expected = data.split(b"\n")
    torn = expected.pop()
    assert list(file.lines()) == [*expected, *([torn] if torn else [])]
    assert file.torn is bool(torn)
    assert file.digest == "sha256:" + hashlib.sha256(data).hexdigest()


def test_keeps_one_byte_more_than_a_row_may_have() -> None:
    long = b"x" * (LIMIT + 5)
    chunks = [long[:10], long[10:], b"\n", long + b"\n" + long]
    assert [len(line) for line in RowFile(chunks).lines()] == [LIMIT + 1] * 3


def test_reads_a_private_file(tmp_path: Path) -> None:
    with out_root(tmp_path) as root:
        root.publish("rows.jsonl", b"1\n2\n")
        with row_file(root, "rows.jsonl") as file:
            assert list(file.lines()) == [b"1", b"2"]
            assert not file.torn


def test_and_no_other(tmp_path: Path) -> None:
    with out_root(tmp_path) as root:
        (tmp_path / "root" / "rows.jsonl").touch(mode=0o644)
        for name, code in (("rows.jsonl", FileCode.FILE_MODE), ("none", FileCode.MISSING)):
            with pytest.raises(FileError) as caught, row_file(root, name):
                pass
            assert caught.value.code is code
