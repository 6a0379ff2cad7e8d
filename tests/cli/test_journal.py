"""`journal`: a report on anything, and a pin made anew by a person who says why."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli.journal import EXITS
from skill_effectiveness.evidence.journal_faults import JournalStatus
from tests.support.commands import Said, no_traceback, steers
from tests.support.journals import FORMS, Desk, copied, edited, lines, put_lines, tear, template
from tests.support.private import content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REASON = "The pin was deleted by a clean-up script."
KEYS = [
    "journal_status",
    "journal_id",
    "count",
    "head",
    "segments",
    "tears",
    "unpinned",
    "torn_bytes",
    "findings",
    "warnings",
]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Desk]:
    base = tmp_path_factory.mktemp("templates").resolve()
    return {form: template(base, form, 4) for form in FORMS}


def state_of(home: Path) -> Path:
    return home / ".local/state/skill-effectiveness"


@pytest.fixture(params=FORMS)
def desk(request: pytest.FixtureRequest, templates: dict[str, Desk], home: Path) -> Desk:
    """A journal of four rows of ours, with the copy of its pin where commands look for it."""
    made = copied(templates[request.param], home)
    state = state_of(home)
    state.parent.mkdir(mode=0o700, parents=True)
    (made.base / "state").rename(state)
    return made


def named(desk: Desk) -> Path:
    """What a person names: the folder of the one form, the file of the other."""
    return desk.folder if desk.form == "segmented" else desk.rows()


def row_count(desk: Desk) -> int:
    """The rows of the template: four, and the first of the kernel."""
    return 5 if desk.form == "segmented" else 4


def unlocked(folder: Path) -> dict[str, bytes]:
    """Everything below a folder but lock files, which may be made."""
    return {name: data for name, data in content(folder).items() if not name.endswith(".lock")}


class TestVerify:
    def test_an_untouched_journal(self, desk: Desk, home: Path, command: Callable[..., Said]) -> None:
        """Every value in lines and in one object; nothing is written."""
        before = content(home)
        said = command("journal", "verify", named(desk))
        assert said.code == 0
        assert list(said.values) == KEYS
        assert said.values | {"journal_id": "", "head": ""} == {
            "journal_status": "intact",
            "journal_id": "",
            "count": str(row_count(desk)),
            "head": "",
            "segments": "1",
            "tears": "0",
            "unpinned": "0",
            "torn_bytes": "0",
            "findings": "0",
            "warnings": "0",
        }
        pin = json.loads(desk.pin.read_bytes())
        assert (said.values["journal_id"], said.values["head"]) == (pin["journal_id"], pin["head"])
        assert said.err == "Every row is there, unchanged, and the pin agrees.\n"
        document = command("journal", "verify", named(desk), "--json").document
        assert sorted(document) == sorted(KEYS)
        assert (document["journal_status"], document["count"]) == ("intact", row_count(desk))
        assert (document["findings"], document["warnings"]) == ([], [])
        assert content(home) == before

    def test_a_relative_name(
        self, desk: Desk, command: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(named(desk).parent)
        assert command("journal", "verify", named(desk).name).code == 0

    def test_what_a_crash_left_is_no_failure(self, desk: Desk, command: Callable[..., Said]) -> None:
        """E30 E36: a torn tail is recoverable, and acknowledged it is a tear; both exit 0."""
        tear(desk, b"torn")
        said = command("journal", "verify", named(desk))
        assert (said.code, said.values["journal_status"], said.values["torn_bytes"]) == (
            0,
            "recoverable",
            "4",
        )
        desk.state = False
        desk.fill(1)
        said = command("journal", "verify", named(desk))
        assert (said.code, said.values["journal_status"]) == (0, "intact_with_tears")
        assert (said.values["tears"], said.values["findings"]) == ("1", "0")

    def test_an_edited_row(self, desk: Desk, command: Callable[..., Said]) -> None:
        """E32: exit 1; each finding with its place, the sentence on stderr alone."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], edited(whole[2], prev="sha256:" + "1" * 64), *whole[3:]])
        offset = len(b"".join(whole[:2]))
        said = command("journal", "verify", named(desk))
        assert (said.code, said.values["journal_status"]) == (1, "damaged")
        assert {key: value for key, value in said.values.items() if key.startswith("findings")} == {
            "findings": "1",
            "findings.1.finding": "prev_mismatch",
            "findings.1.segment": "1",
            "findings.1.seq": "2",
            "findings.1.offset": str(offset),
        }
        told = said.err.splitlines()
        assert told[0].startswith("It was changed or lost something")
        assert told[1].startswith(f"prev_mismatch (file 1, row 2, byte {offset}): ")
        document = command("journal", "verify", named(desk), "--json").document
        assert document["findings"] == [
            {"finding": "prev_mismatch", "segment": 1, "seq": 2, "offset": offset}
        ]

    def test_yesterdays_copy(self, desk: Desk, command: Callable[..., Said]) -> None:
        """E34: the copy of the pin in the state folder leads, unless it is not to be asked."""
        whole = lines(desk.rows())
        last = json.loads(whole[-1])
        put_lines(desk.rows(), whole[:-1])
        pin = edited(
            desk.pin.read_bytes(),
            count=row_count(desk) - 1,
            head=last["prev"],
            offset=len(b"".join(whole[:-1])),
        )
        put_lines(desk.pin, [pin])
        said = command("journal", "verify", named(desk))
        assert (said.code, said.values["findings.1.finding"]) == (1, "rolled_back")
        said = command("journal", "verify", named(desk), "--without-state")
        assert (said.code, said.values["journal_status"]) == (0, "intact")

    @pytest.mark.parametrize(
        ("make", "why"),
        [
            (lambda _path: None, "missing"),
            (os.mkfifo, "wrong_kind"),
            (lambda path: path.mkdir(), "not_begun"),
            (lambda path: path.write_bytes(os.urandom(4_096)), "no_first_row"),
            (lambda path: path.write_bytes(b""), "not_begun"),
            (lambda path: path.symlink_to("/etc"), "wrong_kind"),
        ],
        ids=["missing", "fifo", "empty folder", "noise", "empty file", "link"],
    )
    def test_anything_else_is_a_report(
        self, home: Path, command: Callable[..., Said], make: Callable[[Path], object], why: str
    ) -> None:
        """E37: exit 2, and no folder for state is made for it."""
        make(home / "thing")
        said = command("journal", "verify", home / "thing")
        assert (said.code, said.values["journal_status"], said.values["why"]) == (2, "unreadable", why)
        assert said.values["journal_id"] == "unknown"
        assert not (home / ".local").exists()
        document = command("journal", "verify", home / "thing", "--json").document
        assert (document["why"], document["journal_id"]) == (why, None)

    def test_a_state_folder_that_is_not_private(
        self, desk: Desk, home: Path, command: Callable[..., Said]
    ) -> None:
        """What could betray a rollback is not silently left out."""
        state_of(home).chmod(0o755)
        said = command("journal", "verify", named(desk), "--json")
        assert (said.code, said.document) == (2, {"code": "root_mode", "status": "refused"})
        assert command("journal", "verify", named(desk), "--without-state").code == 0

    def test_names_and_paths_stay_on_stderr_and_steer_nothing(
        self, desk: Desk, home: Path, command: Callable[..., Said]
    ) -> None:
        """E58: machine output holds no path and no name of a file."""
        desk.torn.mkdir(mode=0o700)
        (desk.torn / "\x1b[2Jforeign").write_bytes(b"")
        for flags in ((), ("--json",)):
            said = command("journal", "verify", named(desk), *flags)
            assert said.code == 1
            assert "foreign_file" in said.out
            assert "[2J" not in said.out
            assert str(home) not in said.out
            assert not steers(said.out + said.err)
            no_traceback(said)


class TestRepin:
    def test_a_lost_pin(self, desk: Desk, home: Path, command: Callable[..., Said]) -> None:
        """E35 E62: with a reason it is made anew and copied; a row or the pin keeps the reason."""
        desk.pin.unlink()
        assert command("journal", "verify", named(desk)).values["findings.1.finding"] == "pin_missing"
        said = command("journal", "repin", named(desk), "--reason", REASON)
        assert (said.code, said.values["journal_status"]) == (0, "intact")
        kept = lines(desk.rows())[-1] if desk.form == "segmented" else desk.pin.read_bytes()
        assert REASON.encode() in kept
        assert (
            state_of(home) / f"pins/{said.values['journal_id']}.json"
        ).read_bytes() == desk.pin.read_bytes()
        assert command("journal", "verify", named(desk)).code == 0
        assert wrong_modes(desk.folder) == []

    def test_machines_get_the_report(self, desk: Desk, command: Callable[..., Said]) -> None:
        desk.pin.write_bytes(b"\0" * 200)
        said = command("journal", "repin", named(desk), "--reason", REASON, "--json")
        assert said.code == 0
        assert sorted(said.document) == sorted(KEYS)

    def test_on_a_machine_without_state(self, desk: Desk, home: Path, command: Callable[..., Said]) -> None:
        """A journal that was moved here: the state folder is made and gets the copy."""
        (home / ".local").rename(home / "elsewhere")
        desk.pin.unlink()
        assert command("journal", "repin", named(desk), "--reason", REASON).code == 0
        assert len(list((state_of(home) / "pins").iterdir())) == 1
        assert wrong_modes(state_of(home)) == []

    @pytest.mark.parametrize("reason", ["", " \n", "x" * 10_001, "\udcff"])
    def test_without_a_reason_nothing_happens(
        self, desk: Desk, command: Callable[..., Said], reason: str
    ) -> None:
        """E35: and bytes that are no text are no reason."""
        desk.pin.unlink()
        before = unlocked(desk.base)
        said = command("journal", "repin", named(desk), "--reason", reason, "--json")
        assert (said.code, said.document) == (2, {"code": "reason_needed", "status": "refused"})
        assert unlocked(desk.base) == before

    def test_the_reason_must_be_given(self, desk: Desk, command: Callable[..., Said]) -> None:
        said = command("journal", "repin", named(desk), "--json")
        assert (said.code, said.document["code"]) == (2, "usage")

    def test_a_right_pin_is_left_alone(self, desk: Desk, command: Callable[..., Said]) -> None:
        before = unlocked(desk.base)
        said = command("journal", "repin", named(desk), "--reason", REASON)
        assert "there is nothing to make anew" in said.refusal
        assert unlocked(desk.base) == before

    def test_wrong_rows_are_not_covered(self, desk: Desk, command: Callable[..., Said]) -> None:
        """F43: no new pin covers a damage of the rows."""
        whole = lines(desk.rows())
        put_lines(desk.rows(), [*whole[:2], *whole[3:]])
        before = unlocked(desk.base)
        said = command("journal", "repin", named(desk), "--reason", REASON, "--json")
        assert (said.code, said.document) == (2, {"code": "repin_refused", "status": "refused"})
        assert unlocked(desk.base) == before

    def test_where_there_is_none(self, desk: Desk, command: Callable[..., Said]) -> None:
        before = content(desk.base)
        said = command("journal", "repin", desk.folder / "other", "--reason", REASON, "--json")
        assert (said.code, said.document) == (2, {"code": "journal_missing", "status": "refused"})
        assert content(desk.base) == before

    def test_one_file_of_a_folder(
        self, templates: dict[str, Desk], home: Path, command: Callable[..., Said]
    ) -> None:
        """E62: it would become a journal of its own, whose pin is a stranger in the folder."""
        desk = copied(templates["segmented"], home)
        before = content(desk.base)
        said = command("journal", "repin", desk.rows(), "--reason", REASON, "--json")
        assert (said.code, said.document) == (2, {"code": "not_a_journal", "status": "refused"})
        assert "name the folder" in said.err
        assert content(desk.base) == before

    def test_a_folder_that_others_can_read(self, desk: Desk, command: Callable[..., Said]) -> None:
        """Nothing is made private for the sake of a repair."""
        desk.pin.unlink()
        (desk.base / "root").chmod(0o755)
        said = command("journal", "repin", named(desk), "--reason", REASON, "--json")
        assert (said.code, said.document) == (2, {"code": "root_mode", "status": "refused"})

    def test_group_max_of_a_file_whose_pin_does_not_say(
        self, desk: Desk, command: Callable[..., Said]
    ) -> None:
        """E62: row 0 of the other form says it, so there it is a mistake."""
        desk.pin.unlink()
        words = ("journal", "repin", named(desk), "--reason", REASON, "--group-max", "3", "--json")
        said = command(*words)
        if desk.form == "segmented":
            assert (said.code, said.document["code"]) == (2, "usage")
            assert not desk.pin.exists()
        else:
            assert said.code == 0
            assert json.loads(desk.pin.read_bytes())["group_max"] == 3


def test_every_status_has_an_exit() -> None:
    assert set(EXITS) == set(JournalStatus)
