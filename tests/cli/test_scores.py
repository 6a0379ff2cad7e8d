"""`reviewers score`: figures of a table of verdicts, and every fault by row and column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785

from tests.support.commands import PREFIX, TABLE, Said, no_traceback, run, steers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = "pair_id,label,decision_ab,decision_ba"
ROW = "p1,A>B,A>B,B>A"
# Published with the data: JudgeBench (arXiv 2410.12784), table 1, o1-mini as judge.
PUBLISHED = {
    "knowledge": "58.44",
    "reasoning": "62.24",
    "math": "82.14",
    "coding": "78.57",
    "overall": "65.71",
}
COUNTS = {
    "knowledge": ("154", "90"),
    "reasoning": ("98", "61"),
    "math": ("56", "46"),
    "coding": ("42", "33"),
    "overall": ("350", "230"),
}


def rows(said: Said) -> dict[str, list[str]]:
    """The cells of the printed table by its first column."""
    lines = [line for line in said.out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    return {row[0]: row[1:] for row in cells}


class TestPublishedTable:
    def test_the_published_row_to_the_last_digit(self, command: Callable[..., Said]) -> None:
        """R46: accuracy per category and over all."""
        said = command("reviewers", "score", TABLE)
        assert (said.code, said.err) == (0, "")
        found = rows(said)
        assert {name: cells[2] for name, cells in found.items()} == PUBLISHED
        assert {name: (cells[0], cells[1]) for name, cells in found.items()} == COUNTS

    def test_flips_both_orders_first_text_and_length(self, command: Callable[..., Said]) -> None:
        """R46: the other figures of the last row."""
        overall = rows(command("reviewers", "score", TABLE))["overall"]
        assert overall[4:7] == ["110", "203", "0"]
        assert overall[7].startswith("367 of 656 ")
        assert overall[8].startswith("301 of 656 ")

    def test_the_same_figures_as_json(self, command: Callable[..., Said]) -> None:
        """R46: unrounded, in one canonical object."""
        said = command("reviewers", "score", TABLE, "--json")
        assert (said.code, said.err) == (0, "")
        document: dict[str, Any] = said.document
        assert said.out.encode() == rfc8785.dumps(document) + b"\n"
        overall = document["overall"]
        assert (overall["pairs"], overall["correct"], overall["flips"], overall["right_both"]) == (
            350,
            230,
            110,
            203,
        )
        assert overall["accuracy"]["value"] == 230 / 350
        assert (overall["first_shown"]["part"], overall["first_shown"]["whole"]) == (367, 656)
        assert (overall["longer"]["part"], overall["longer"]["whole"]) == (301, 656)
        assert {
            each["category"]: f"{100 * each['accuracy']['value']:.2f}" for each in document["categories"]
        } == {name: value for name, value in PUBLISHED.items() if name != "overall"}

    def test_as_a_process_of_its_own(self, home: Path) -> None:
        """R46: the documented command."""
        said = run(home, "reviewers", "score", TABLE)
        assert (said.code, said.err) == (0, "")
        assert {name: cells[2] for name, cells in rows(said).items()} == PUBLISHED


class TestShapes:
    def test_without_lengths_nothing_is_said_about_them(
        self, command: Callable[..., Said], home: Path
    ) -> None:
        (home / "t.csv").write_text(f"{HEAD}\n{ROW}\n")
        said = command("reviewers", "score", "t.csv")
        assert list(rows(said)) == ["overall"]
        assert rows(said)["overall"][8] == ""

    def test_a_share_of_nothing_is_unknown(self, command: Callable[..., Said], home: Path) -> None:
        (home / "t.csv").write_text(f"{HEAD}\np1,A>B,A=B,\n")
        assert rows(command("reviewers", "score", "t.csv"))["overall"][4:8] == ["1", "0", "1", "unknown"]
        document = command("reviewers", "score", "t.csv", "--json").document
        assert document["overall"]["first_shown"] == {"part": 0, "whole": 0, "value": None}

    @pytest.mark.parametrize("name", ["\x1b[2Kpass", "\u202ecba", "a\u2028b", "\x9b2J", "[/x]"])
    @pytest.mark.parametrize("option", [[], ["--json"]])
    def test_a_category_that_paints(
        self, command: Callable[..., Said], home: Path, name: str, option: list[str]
    ) -> None:
        """F21: a cell of a table that somebody sent."""
        (home / "t.csv").write_text(f"{HEAD},category\n{ROW},{name}\n", encoding="utf-8")
        said = command("reviewers", "score", "t.csv", *option)
        assert said.code == 0
        assert steers(said.out) == []

    def test_a_category_of_two_lines_is_one(self, command: Callable[..., Said], home: Path) -> None:
        """F21: a quoted line end inside a cell."""
        (home / "t.csv").write_text(f'{HEAD},category\n{ROW},"a\nb"\n')
        assert "a\\x0ab" in rows(command("reviewers", "score", "t.csv"))


FAULTS: dict[str, tuple[str, list[str]]] = {
    "unknown word": (
        f"{HEAD}\np1,A>B,A,B>A\np2,A=B,A>B,b>a\n",
        ["row 2, column decision_ab", "row 3, column label", "row 3, column decision_ba"],
    ),
    "repeated pair": (f"{HEAD}\n{ROW}\n{ROW}\n", ["row 3, column pair_id"]),
    "missing column": ("pair_id,label,decision_ab\np1,A>B,A>B\n", ["row 1, column decision_ba"]),
    "missing length": (f"{HEAD},chars_a\n{ROW},5\n", ["row 1, column chars_b"]),
    "repeated column": (f"{HEAD},label\n{ROW},A>B\n", ["row 1, column label"]),
    "too many fields": (f"{HEAD}\n{ROW},x\n", ["row 2"]),
    "empty id": (f"{HEAD}\n,A>B,A>B,B>A\n", ["row 2, column pair_id"]),
    "empty category": (f"{HEAD},category\n{ROW},\n", ["row 2, column category"]),
    "no number": (
        f"{HEAD},chars_a,chars_b\n{ROW},-1,1e3\n",
        ["row 2, column chars_a", "row 2, column chars_b"],
    ),
    "no row": (f"{HEAD}\n", ["the table"]),
    "nothing": ("", ["the table"]),
    "byte order mark": (f"\ufeff{HEAD}\n{ROW}\n", ["the table"]),
    "NUL": (f"{HEAD}\n{ROW}\0\n", ["the table"]),
    "open quote": (f'{HEAD}\n"p1,A>B\n', ["row 2"]),
}


class TestFaults:
    @pytest.mark.parametrize(("text", "places"), FAULTS.values(), ids=FAULTS)
    def test_each_by_row_and_column(
        self, command: Callable[..., Said], home: Path, text: str, places: list[str]
    ) -> None:
        (home / "t.csv").write_text(text, encoding="utf-8")
        said = command("reviewers", "score", "t.csv")
        assert (said.code, said.out) == (2, "")
        *faults, last = said.err.splitlines()
        assert [fault.split(":")[0] for fault in faults] == places
        assert last.startswith(f"{PREFIX}The table cannot be scored: {len(places)} fault")

    def test_not_utf_8(self, command: Callable[..., Said], home: Path) -> None:
        (home / "t.csv").write_bytes(f"{HEAD}\n{ROW}\n".encode() + b"\xff")
        said = command("reviewers", "score", "t.csv")
        assert said.code == 2
        assert said.err.startswith("the table: is not UTF-8 text")

    def test_all_of_them(self, command: Callable[..., Said], home: Path) -> None:
        bad = "".join(f"p{number},x,y,z\n" for number in range(200))
        (home / "t.csv").write_text(f"{HEAD}\n{bad}")
        said = command("reviewers", "score", "t.csv")
        assert len(said.err.splitlines()) == 601
        assert "row 201, column decision_ba" in said.err

    def test_machines_get_one_code(self, command: Callable[..., Said], home: Path) -> None:
        (home / "t.csv").write_text(f"{HEAD}\np1,x,A>B,B>A\n")
        said = command("reviewers", "score", "t.csv", "--json")
        assert said.code == 2
        assert json.loads(said.out) == {"status": "refused", "code": "table_invalid"}

    def test_nothing_of_the_table_is_quoted(self, command: Callable[..., Said], home: Path) -> None:
        """F21: a word that paints is named by its place."""
        (home / "t.csv").write_text(f"{HEAD}\np1,\x1b[32mA>B,A>B,B>A\n")
        assert steers(command("reviewers", "score", "t.csv").err) == []

    @pytest.mark.parametrize("what", ["missing", "folder", "fifo", "link"])
    def test_what_is_no_file(self, command: Callable[..., Said], home: Path, what: str) -> None:
        import os  # noqa: PLC0415 - used here alone

        path = home / "t.csv"
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to(TABLE)
        said = command("reviewers", "score", "t.csv")
        assert "t.csv" in said.refusal
        assert no_traceback(said)
