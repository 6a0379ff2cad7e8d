"""Rows by reference: read one at a time."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.bridge.references import rows_of
from skill_effectiveness.evidence.canonical import digest_bytes
from tests.support.private import out_root
from tests.support.trials import put

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


ROWS = 20_000


def test_rows_are_streamed(tmp_path: Path) -> None:
    with out_root(tmp_path) as root:
        data = b"".join(b'{"row":%d,"text":"%b"}\n' % (number, b"x" * 100) for number in range(ROWS))
        put(tmp_path / "root" / "rows.jsonl", data)
        payload = {"rows_path": "rows.jsonl", "rows_sha256": digest_bytes(data)}
        del data
        tracemalloc.start()
        try:
            count = sum(1 for _ in rows_of(root, payload, "rows"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert count == ROWS
    assert peak < 8_000_000
