"""The access audit: what a row says, where its path leads, and that nothing is kept."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.resolution import PathResolver, UnresolvedError
from skill_effectiveness.trials.audit import audit, check_rows, parse_row, read_row
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import Breach

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.trials import Json


def row(operation: str, path: str, mode: str | None = None, **others: object) -> bytes:
    value: dict[str, object] = {"actor": "tested-agent", "operation": operation, "path": path}
    if mode is not None:
        value["access_mode"] = mode
    return json.dumps(value | others, sort_keys=True, separators=(",", ":")).encode()


def judged(*lines: bytes, read: Json = ("/in",), write: Json = ("/out",)) -> Json:
    return audit(lines, read, write, lambda path: path)


class TestPlaces:
    @pytest.mark.parametrize(
        "line",
        [
            row("read", "/in"),
            row("read", "/in/a/b"),
            row("enumerate", "/in"),
            row("open", "/in/a", "read"),
            row("open", "/out/a", "write"),
            row("write", "/out"),
            row("write", "/out/a b/ü"),
        ],
    )
    def test_inside_the_roots_of_its_operation_is_fine(self, line: bytes) -> None:
        found = judged(line)
        assert (found.rows, found.breaches, found.fault) == (1, (), None)

    @pytest.mark.parametrize(
        ("line", "breach"),
        [
            (row("read", "/etc/passwd"), Breach.READ_OUTSIDE_ROOTS),
            (row("read", "/inside"), Breach.READ_OUTSIDE_ROOTS),
            (row("read", "/out/a"), Breach.READ_OUTSIDE_ROOTS),
            (row("enumerate", "/"), Breach.READ_OUTSIDE_ROOTS),
            (row("open", "/out/a", "read"), Breach.READ_OUTSIDE_ROOTS),
            (row("open", "/in/a", "write"), Breach.WRITE_OUTSIDE_ROOTS),
            (row("write", "/in/a"), Breach.WRITE_OUTSIDE_ROOTS),
            (row("write", "/outer"), Breach.WRITE_OUTSIDE_ROOTS),
        ],
    )
    def test_outside_is_a_breach(self, line: bytes, breach: Breach) -> None:
        """T18: a path outside the roots of its operation, in any operation."""
        assert judged(row("read", "/in/a"), line).breaches == (breach,)

    def test_a_breach_counts_beside_malformed_rows(self) -> None:
        """A malformed row never hides what another one shows."""
        found = judged(b"{", row("read", "/x"), b"[]", row("read", "/y"), row("write", "/y"))
        assert found.breaches == (Breach.READ_OUTSIDE_ROOTS, Breach.WRITE_OUTSIDE_ROOTS)
        assert (found.rows, found.breach_rows) == (5, 3)
        assert found.fault.where == "access-audit.jsonl:1"


class TestRows:
    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"  ",
            b"[]",
            b"null",
            b"{",
            b"\xff",
            row("delete", "/in"),
            row("open", "/in"),
            row("read", "/in", "read"),
            row("read", "in"),
            row("read", "/in", actor="controller"),
            row("read", "/in", extra=1),
            row("read", "/in") + b"{}",
            b'{"actor":"tested-agent","operation":"read","path":"/in","path":"/in"}',
            b'{"actor":"tested-agent","operation":"read","path":"\\ud800"}',
        ],
    )
    def test_malformed_ones_are_named(self, line: bytes) -> None:
        found = judged(row("read", "/in"), line)
        assert found.fault is not None
        assert (found.fault.code, found.fault.where) == (TrialCode.EVIDENCE_INVALID, "access-audit.jsonl:2")
        with pytest.raises(TrialError) as caught:
            check_rows([row("read", "/in"), line])
        assert caught.value.where == "access-audit.jsonl:2"

    @given(
        path=st.text(max_size=12) | st.from_regex(r"/[ -~]{0,12}", fullmatch=True),
        operation=st.sampled_from(["read", "open", "enumerate", "write", "delete"]),
        mode=st.sampled_from([None, "read", "write", "append"]),
        actor=st.sampled_from(["tested-agent", "controller"]),
        ascii_only=st.booleans(),
        separators=st.sampled_from([(",", ":"), (", ", ": "), (",  ", ":"), (" ,", " :")]),
    )
    def test_the_fast_way_is_the_strict_way(  # one argument per part of a spelling
        self,
        path: str,
        operation: str,
        mode: str | None,
        actor: str,
        separators: tuple[str, str],
        *,
        ascii_only: bool,
    ) -> None:
        value = {"actor": actor, "operation": operation, "path": path}
        if mode is not None:
            value["access_mode"] = mode
        line = json.dumps(value, sort_keys=True, separators=separators, ensure_ascii=ascii_only)
        assert outcome(read_row, line.encode()) == outcome(parse_row, line.encode())

    @given(st.binary(max_size=60) | st.from_regex(rb'\{"a[a-z_":{},/-]{0,60}\}', fullmatch=True))
    def test_the_fast_way_takes_nothing_else(self, line: bytes) -> None:
        assert outcome(read_row, line) == outcome(parse_row, line)

    @pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
    def test_the_usual_spellings_need_no_parser(
        self, separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """T21: with and without blanks between the members, as Python and most other programs write them."""
        monkeypatch.setattr("skill_effectiveness.trials.audit.parse_row", None)
        for operation, mode in (("read", None), ("enumerate", None), ("open", "read"), ("write", None)):
            value = json.loads(row(operation, "/in/a b", mode))
            line = json.dumps(value, sort_keys=True, separators=separators).encode()
            assert read_row(line) == ("/in/a b", operation == "write")


def outcome(read: Json, line: bytes) -> object:
    try:
        return read(line)
    except TrialError as error:
        return error.code


class TestResolution:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        (tmp_path / "in" / "sub").mkdir(parents=True)
        (tmp_path / "secret").mkdir()
        (tmp_path / "in" / "to_file").symlink_to(tmp_path / "secret" / "key")
        (tmp_path / "in" / "to_folder").symlink_to("../secret")
        (tmp_path / "in" / "inside").symlink_to("sub")
        (tmp_path / "in" / "loop").symlink_to("loop")
        return tmp_path.resolve()

    def found(self, place: Path, path: str) -> Json:
        return audit(
            [row("read", f"{place}/in/{path}")], [f"{place}/in"], ["/out"], PathResolver(RealFs()).resolve
        )

    @pytest.mark.parametrize(
        "path",
        [
            "to_file",
            "to_folder/key",
            "to_folder",
            "sub/../../secret/key",
            "inside/../../secret",
            "..",
            "sub/../..",
        ],
    )
    def test_links_and_dots_are_resolved_before_the_check(self, place: Path, path: str) -> None:
        """T20: the text lies inside the root, the file does not."""
        assert self.found(place, path).breaches == (Breach.READ_OUTSIDE_ROOTS,)

    @pytest.mark.parametrize("path", ["inside/x", "to_folder/../in/sub", "gone/deep/file", ".", "sub//x/."])
    def test_what_stays_inside_is_fine(self, place: Path, path: str) -> None:
        """T20: also when the link stays inside, and when nothing is there any more."""
        found = self.found(place, path)
        assert (found.breaches, found.fault) == ((), None)

    def test_what_nobody_can_tell_is_no_breach_and_no_proof(self, place: Path) -> None:
        found = self.found(place, "loop")
        assert found.breaches == ()
        assert found.fault.code is TrialCode.EVIDENCE_INVALID


class TestSize:
    ROWS = 50_000

    def lines(self) -> Iterator[bytes]:
        for number in range(self.ROWS):
            yield row("read", f"/in/file-{number % 500}")

    def test_each_distinct_path_is_resolved_once(self) -> None:
        """T21: 50,000 rows over 500 paths ask 500 times, and no row is kept."""
        asked: list[str] = []

        def resolve(path: str) -> str:
            asked.append(path)
            return path

        tracemalloc.start()
        try:
            found = audit(self.lines(), ["/in"], ["/out"], resolve)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (found.rows, found.breaches) == (self.ROWS, ())
        assert (len(asked), len(set(asked))) == (500, 500)
        assert peak < 2_000_000

    def test_one_that_cannot_be_resolved_is_asked_for_again(self) -> None:
        def resolve(_: str) -> str:
            raise UnresolvedError

        assert audit([row("read", "/in")] * 3, ["/in"], ["/out"], resolve).rows == 3
