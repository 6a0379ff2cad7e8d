"""Keys of a cluster, and whether an agent would be shown one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dask import config as dask_config

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies.cluster_keys import key_files, shows_a_key

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("distributed")


def test_what_is_configured_is_known() -> None:
    """S13 S33: of every role; a key in memory is no file."""
    tls = "distributed.comm.tls"
    held = {f"{tls}.client.key": "/k/client.pem", f"{tls}.worker.key": "/k/worker.pem"}
    with dask_config.set(held | {f"{tls}.scheduler.key": "-----BEGIN\nKEY-----\n"}):
        assert key_files() == ("/k/client.pem", "/k/worker.pem")
    assert key_files() == ()


def test_where_a_sandbox_would_show_one(tmp_path: Path) -> None:
    """S13 S33: among the system's folders, in a read-only place, and through a link."""
    fs, inside = RealFs(), tmp_path / "shown"
    inside.mkdir()
    (inside / "key.pem").touch()
    (tmp_path / "link").symlink_to(inside)
    assert not shows_a_key([str(inside / "key.pem")], [], fs)
    assert not shows_a_key([], ["/"], fs)
    for key, read_only in (
        ("/etc/dask/key.pem", []),
        (str(inside / "key.pem"), [str(inside)]),
        (str(tmp_path / "link/key.pem"), [str(inside)]),
        (str(inside / "key.pem"), [str(tmp_path / "link")]),
    ):
        assert shows_a_key([key], read_only, fs)
