"""Protected lines: what a change of one needs, and that it is noticed."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import protected_lines
from tools.protected_lines import MalformedError, change_faults, main, read, source_text

CHECKOUT = Path(__file__).parents[2]
OLD, NEW = "sha256:" + 64 * "a", "sha256:" + 64 * "b"
LONG = "Looked at the change and at what relies on it; the strongest objection does not hold."


def line(digest: str = OLD, **other: str) -> dict[str, str]:
    return {"id": "mapping", "path": "mapping.py", "symbol": "TABLE", "digest": digest} | other


def record(kind: str, author: str, **other: str) -> dict[str, str]:
    given = {"line_id": "mapping", "kind": kind, "old_digest": OLD, "new_digest": NEW, "author": author}
    return given | {"date": "2026-11-30", "text": LONG} | other


def document(*records: dict[str, str], lines: list[dict[str, str]] | None = None) -> str:
    return json.dumps({"lines": [line()] if lines is None else lines, "records": list(records)})


BASE = read(document())
BOTH = (record("review", "Rita"), record("challenge", "Chan"))


def changed(*records: dict[str, str], lines: list[dict[str, str]] | None = None) -> list[str]:
    """Faults of a change by Ann, of this line's digest unless told otherwise."""
    now = read(document(*records, lines=[line(NEW)] if lines is None else lines))
    return change_faults(BASE, now, {"Ann", "ann@example.org"})


class TestRule:
    def test_no_change_needs_nothing(self) -> None:
        """T38: nor does a new line."""
        assert changed(lines=[line()]) == []
        assert changed(lines=[line(), line(NEW, id="other")]) == []

    def test_a_review_and_a_challenge_by_two_others(self) -> None:
        """T38: in either order, among other records."""
        assert changed(*BOTH) == []
        assert changed(*reversed(BOTH)) == []
        assert changed(record("review", "Ann"), *BOTH) == []

    @pytest.mark.parametrize(
        "records",
        [
            (),
            (record("review", "Rita"),),
            (record("challenge", "Chan"),),
            (record("review", "Rita"), record("review", "Chan")),
            (record("review", "Rita"), record("challenge", "Rita")),
            (record("review", "Rita"), record("challenge", "RITA ")),
            (record("review", "Ann"), record("challenge", "Chan")),
            (record("review", "Rita"), record("challenge", "ann")),
            (record("review", "Rita"), record("challenge", "ANN@example.org")),
            (BOTH[0], record("challenge", "Chan", new_digest=OLD)),
            (BOTH[0], record("challenge", "Chan", old_digest=NEW)),
            (BOTH[0], record("challenge", "Chan", line_id="other")),
        ],
    )
    def test_anything_less_is_refused(self, records: tuple[dict[str, str], ...]) -> None:
        """T38: one of both, one author for both, an author of the change, another digest or line."""
        assert [fault.split(":")[0] for fault in changed(*records)] == ["mapping"]

    @pytest.mark.parametrize("other", [{"path": "copy.py"}, {"symbol": "COPY"}])
    def test_a_line_that_points_elsewhere_was_changed(self, other: dict[str, str]) -> None:
        """T38: else a copy could be protected and the original edited."""
        moved = [line(**other)]
        assert len(changed(lines=moved)) == 1
        both = [one | {"new_digest": OLD} for one in BOTH]
        assert changed(*both, lines=moved) == []

    def test_a_line_that_was_taken_out_was_changed(self) -> None:
        """T38: or a line would be changed in two steps."""
        assert len(changed(lines=[])) == 1
        assert changed(*(one | {"new_digest": "removed"} for one in BOTH), lines=[]) == []

    def test_records_are_only_appended(self) -> None:
        """T38: neither edited, taken out nor put in front."""
        base = read(document(*BOTH, lines=[line(NEW)]))
        third = record("review", "Tom", old_digest=NEW)
        for records in (
            BOTH[:1],
            (),
            (BOTH[1], BOTH[0]),
            (third, *BOTH),
            (BOTH[0] | {"text": LONG + "!"}, BOTH[1]),
        ):
            now = read(document(*records, lines=[line(NEW)]))
            assert change_faults(base, now, set()) != []
        assert change_faults(base, read(document(*BOTH, third, lines=[line(NEW)])), set()) == []

    def test_old_records_answer_for_no_new_change(self) -> None:
        """T38: going back and forth again needs two new ones."""
        base = read(document(*BOTH))
        assert len(change_faults(base, read(document(*BOTH, lines=[line(NEW)])), set())) == 1


class TestForm:
    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "[]",
            '{"lines": []}',
            document(lines=[line("sha256:0")]),
            document(lines=[line(), line()]),
            document(lines=[line(note="x")]),
            document(record("approval", "Rita")),
            document(record("review", " ")),
            document(record("review", "Rita", date="yesterday")),
            document(record("review", "Rita", text="ok")),
            document(record("review", "Rita", more="x")),
        ],
    )
    def test_is_exact(self, text: str) -> None:
        """T38: fields, kinds, dates, and a text that says something."""
        with pytest.raises(MalformedError):
            read(text)


SOURCE = '''\
TABLE: dict = {
    1: 2,
}
OTHER = 3


@decorated
def judge(x):
    return x


class Test:
    def test_table(self):
        """Doc."""
        assert TABLE
'''


class TestSource:
    @pytest.mark.parametrize(
        ("symbol", "text"),
        [
            ("TABLE", "TABLE: dict = {\n    1: 2,\n}"),
            ("OTHER", "OTHER = 3"),
            ("judge", "@decorated\ndef judge(x):\n    return x"),
            ("Test.test_table", '    def test_table(self):\n        """Doc."""\n        assert TABLE'),
            ("Test.other", None),
            ("test_table", None),
            ("Nobody.test_table", None),
        ],
    )
    def test_is_the_whole_definition(self, symbol: str, text: str | None) -> None:
        """T38: decorators included, nothing around it."""
        assert source_text(SOURCE, symbol) == text

    def test_a_name_defined_twice_is_none(self) -> None:
        """T38: the second would win where the first is protected."""
        assert source_text(SOURCE + "OTHER = 4\n", "OTHER") is None


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose one commit protects a table."""
    commit(tmp_path, "TABLE = 1\n", "Ann")
    return tmp_path


def commit(root: Path, source: str, author: str, *records: dict[str, str]) -> None:
    (root / "mapping.py").write_text(source)
    digest = f"sha256:{hashlib.sha256(source.strip().encode()).hexdigest()}"
    (root / protected_lines.NAME).write_text(document(*records, lines=[line(digest)]))
    if not (root / ".git").exists():
        git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", author)
    git(root, "config", "user.email", f"{author.lower()}@example.org")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")


def git(root: Path, *words: str) -> None:
    program = shutil.which("git")
    assert program is not None
    subprocess.run(  # noqa: S603 - the words are ours
        [program, "-C", str(root), *words],
        check=True,
        env={"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": "/usr/bin:/bin"},
    )


def both(before: str, after: str) -> list[dict[str, str]]:
    old, new = (f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" for text in (before, after))
    return [one | {"old_digest": old, "new_digest": new} for one in BOTH]


class TestRepository:
    def test_the_first_commit_protects(self, repository: Path) -> None:
        assert main([], repository) == 0

    def test_a_source_that_is_not_its_digest(
        self, repository: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """T38: whatever the base is."""
        (repository / "mapping.py").write_text("TABLE = 2\n")
        assert main([], repository) == 1
        assert "mapping.py TABLE was changed" in capsys.readouterr().err

    def test_a_new_digest_alone_does_not_help(self, repository: Path) -> None:
        """T38: before the commit and after it."""
        (repository / "mapping.py").write_text("TABLE = 2\n")
        assert main(["--write"], repository) == 1
        commit(repository, "TABLE = 2\n", "Ann")
        assert main([], repository) == 1
        assert main(["--base", "HEAD~1"], repository) == 1

    def test_both_records_do(self, repository: Path) -> None:
        """T38: unless one of them is by whoever made the change."""
        records = both("TABLE = 1", "TABLE = 2")
        commit(repository, "TABLE = 2\n", "Ann", *records)
        assert main([], repository) == 0
        commit(repository, "TABLE = 3\n", "Rita", *records, *both("TABLE = 2", "TABLE = 3"))
        assert main([], repository) == 1

    def test_a_base_that_is_none(self, repository: Path) -> None:
        """T38: a mistyped name compares with nothing, so it is refused."""
        assert main(["--base", "nowhere"], repository) == 1

    def test_without_a_history_the_sources_are_checked(self, tmp_path: Path, repository: Path) -> None:
        del tmp_path
        shutil.rmtree(repository / ".git")
        assert main([], repository) == 0
        (repository / "mapping.py").unlink()
        assert main([], repository) == 1

    def test_a_file_that_is_gone(self, repository: Path) -> None:
        """T38: protects nothing and is noticed."""
        (repository / protected_lines.NAME).unlink()
        assert main([], repository) == 1


class TestThisCheckout:
    def test_the_digests_are_those_of_the_sources(self) -> None:
        """T38: what is committed is what is protected."""
        now = read((CHECKOUT / protected_lines.NAME).read_text())
        assert protected_lines.source_faults(now, CHECKOUT) == []

    def test_the_mapping_and_its_test_are_protected(self) -> None:
        """T37 T38: by these names."""
        now = read((CHECKOUT / protected_lines.NAME).read_text())
        places = {(one["path"].rsplit("/", 1)[-1], one["symbol"]) for one in now.lines.values()}
        assert places >= {
            ("provider_capability.py", "OUTCOMES"),
            ("provider_capability.py", "outcome_of"),
            ("test_provider_capability.py", "TestMapping.test_is_this_table"),
        }

    def test_the_rule_is_part_of_the_check_before_a_change_goes_in(self) -> None:
        """T38: `make lint`, which CI runs."""
        target = (CHECKOUT / "Makefile").read_text().split("\nlint:", 1)[1].split("\n\n", 1)[0]
        assert "tools/protected_lines.py" in target
        assert "make lint" in (CHECKOUT / ".ci" / "run").read_text()
