"""Every closed word of the journal and of the Merkle trees is given in the situation it names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from skill_effectiveness.evidence.faults import MerkleCode
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal_faults import (
    Finding,
    JournalCode,
    JournalError,
    JournalStatus,
    Unreadable,
)
from skill_effectiveness.evidence.journal_verify import verify_segments
from skill_effectiveness.evidence.merkle import (
    InclusionProof,
    MerkleError,
    Tree,
    TreeHead,
    inclusion_proof,
    leaf_hash,
    verify_inclusion,
)
from tests.support.journals import Desk, add, copied, edited, lines, put_lines, template

if TYPE_CHECKING:
    from skill_effectiveness.evidence.journal_faults import JournalReport

Situation: TypeAlias = Callable[[Desk], object]


def opened(desk: Desk, **options: object) -> None:
    with desk.open(**options):  # type: ignore[arg-type]
        pass


def changed(desk: Desk) -> None:
    with desk.open() as journal:
        desk.pin.write_bytes(b"")
        add(journal, 9)


def closed(desk: Desk) -> None:
    with desk.roots() as (root, state):
        journal = desk.open_in(root, state)
        journal.close()
        add(journal, 9)


def appended(desk: Desk, *rows: int) -> None:
    with desk.open() as journal:
        add(journal, *rows, note="\ud800")


def foreign(desk: Desk) -> None:
    desk.rows().write_bytes(b"something else\n")
    desk.pin.unlink()
    opened(desk)


def pinless(desk: Desk) -> None:
    desk.pin.unlink()
    opened(desk)


def torn_too_often(desk: Desk) -> None:
    single = Desk(desk.base, "single")
    single.fill(1)
    single.torn.mkdir(mode=0o700)
    for number in range(2_600):
        data = b"%d" % number
        (single.torn / f"1-{hashlib.sha256(data).hexdigest()}.bin").write_bytes(data)
    opened(single)


REFUSALS: dict[JournalCode, Situation] = {
    JournalCode.JOURNAL_MISSING: lambda desk: opened(desk, name="none", create=False),
    JournalCode.NOT_A_JOURNAL: foreign,
    JournalCode.JOURNAL_DAMAGED: pinless,
    JournalCode.JOURNAL_CHANGED: changed,
    JournalCode.JOURNAL_DEAD: closed,
    JournalCode.PURPOSE_DIFFERS: lambda desk: opened(desk, purpose="another"),
    JournalCode.ROW_REFUSED: lambda desk: appended(desk, 1),
    JournalCode.GROUP_SIZE: appended,
    JournalCode.PIN_FULL: torn_too_often,
    JournalCode.REASON_NEEDED: lambda desk: desk.pin.unlink() or desk.repin(""),
    JournalCode.REPIN_REFUSED: lambda desk: desk.repin("because"),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    base = tmp_path_factory.mktemp("template").resolve()
    return template(base, "segmented", 6, segment_limit=400, group_max=2)


@pytest.fixture
def desk(filled: Desk, tmp_path: Path) -> Desk:
    return copied(filled, tmp_path.resolve())


@pytest.mark.parametrize("code", JournalCode)
def test_each_refusal(desk: Desk, code: JournalCode) -> None:
    """E58 E65: the code, a relative `where`, and a printable sentence that ends and holds no path."""
    with pytest.raises(JournalError) as caught:
        REFUSALS[code](desk)
    for fault in caught.value.faults:
        assert fault.code == code
        assert not Path(fault.where).is_absolute()
        assert str(desk.base) not in fault.sentence + fault.where
        assert fault.sentence.isprintable()
        assert fault.sentence.endswith(".")


def without(desk: Desk, at: int) -> None:
    whole = lines(desk.rows())
    put_lines(desk.rows(), [*whole[:at], *whole[at + 1 :]])


def with_row(desk: Desk, at: int, row: bytes) -> None:
    whole = lines(desk.rows())
    put_lines(desk.rows(), [*whole[:at], row, *whole[at + 1 :]])


def rolled_back(desk: Desk) -> None:
    # The copy goes on from here as if there had been more.
    put_lines(desk.copy(), [edited(desk.copy().read_bytes(), count=99)])


def renamed(desk: Desk) -> None:
    last = desk.last()
    last.rename(desk.rows(int(last.stem) + 1))


def behind(desk: Desk) -> None:
    pin, copy = desk.pin.read_bytes(), desk.copy().read_bytes()
    desk.fill(5, 6)
    desk.pin.write_bytes(pin)
    desk.copy().write_bytes(copy)


def torn(desk: Desk) -> None:
    with desk.last().open("ab") as file:
        file.write(b"torn")


def evidence_gone(desk: Desk) -> None:
    torn(desk)
    opened(desk)
    for path in desk.torn.iterdir():
        path.unlink()


def late(desk: Desk) -> None:
    with_row(desk, 1, edited(lines(desk.rows())[1], time="2099-01-01T00:00:00.000Z"))


HARMS: dict[Finding, Situation] = {
    Finding.BAD_ROW: lambda desk: with_row(desk, 1, b"{}\n"),
    Finding.PREV_MISMATCH: lambda desk: with_row(desk, 1, edited(lines(desk.rows())[1], body={})),
    Finding.SEQ_GAP: lambda desk: without(desk, 1),
    Finding.TRUNCATED: lambda desk: put_lines(desk.last(), lines(desk.last())[:-1]),
    Finding.SEGMENT_MISSING: lambda desk: desk.rows(1).unlink(),
    Finding.SEGMENT_ORDER: renamed,
    Finding.ROLLED_BACK: rolled_back,
    Finding.PIN_DAMAGED: lambda desk: desk.pin.write_bytes(b"{}\n"),
    Finding.PIN_MISSING: lambda desk: desk.pin.unlink(),
    Finding.PIN_BEHIND: behind,
    Finding.TEAR_EVIDENCE_MISSING: evidence_gone,
    Finding.FOREIGN_FILE: lambda desk: (desk.folder / "x").write_bytes(b""),
    Finding.TIME_BACKWARDS: late,
}


@pytest.mark.parametrize("finding", Finding)
def test_each_finding(desk: Desk, finding: Finding) -> None:
    """E58 E65: it is among what verification says."""
    HARMS[finding](desk)
    report = desk.verify()
    assert finding in {told.finding for told in (*report.findings, *report.warnings)}
    assert (finding is Finding.TIME_BACKWARDS) is (finding not in {told.finding for told in report.findings})


def unfinished(desk: Desk) -> JournalReport:
    torn(desk)
    return desk.verify()


def settled(desk: Desk) -> JournalReport:
    torn(desk)
    opened(desk)
    return desk.verify()


def harmed(desk: Desk) -> JournalReport:
    desk.pin.unlink()
    return desk.verify()


STATES: dict[JournalStatus, Callable[[Desk], JournalReport]] = {
    JournalStatus.INTACT: lambda desk: desk.verify(),
    JournalStatus.INTACT_WITH_TEARS: settled,
    JournalStatus.RECOVERABLE: unfinished,
    JournalStatus.DAMAGED: harmed,
    JournalStatus.UNREADABLE: lambda desk: verify_segments(RealFs(), desk.base),
}


@pytest.mark.parametrize("status", JournalStatus)
def test_each_status(desk: Desk, status: JournalStatus) -> None:
    """E65: with a sentence for people."""
    report = STATES[status](desk)
    assert report.status is status
    assert report.sentence.endswith(".")


def emptied(desk: Desk) -> Path:
    folder = desk.base / "empty"
    folder.mkdir()
    return folder


def nonsense(desk: Desk) -> Path:
    (emptied(desk) / "000001.jsonl").write_bytes(b"x\n")
    return desk.base / "empty"


def fenced(desk: Desk) -> Path:
    # Deeper than any path may be: the kernel refuses to look.
    return desk.base / ("n" * 300)


REASONS: dict[Unreadable, Callable[[Desk], Path]] = {
    Unreadable.MISSING: lambda desk: desk.base / "none",
    Unreadable.WRONG_KIND: lambda desk: desk.pin,
    Unreadable.NOT_BEGUN: emptied,
    Unreadable.NO_FIRST_ROW: nonsense,
    Unreadable.NOT_READABLE: fenced,
}


@pytest.mark.parametrize("why", Unreadable)
def test_each_reason(desk: Desk, why: Unreadable) -> None:
    """E65 E37: why something is no journal."""
    report = verify_segments(RealFs(), REASONS[why](desk))
    assert (report.status, report.why) == (JournalStatus.UNREADABLE, why)
    assert str(desk.base) not in report.sentence
    assert report.sentence.endswith(".")
    assert os.sep not in report.why


LEAVES = [leaf_hash(bytes([number])) for number in range(5)]
PROOFS: dict[MerkleCode, Callable[[], object]] = {
    MerkleCode.PROOF_RANGE: lambda: inclusion_proof(LEAVES, 5),
    MerkleCode.PROOF_LENGTH: lambda: verify_inclusion(
        LEAVES[0], InclusionProof(leaf_index=0, tree_size=5, hashes=()), Tree(LEAVES).head
    ),
    MerkleCode.PROOF_ROOT: lambda: verify_inclusion(
        LEAVES[0], inclusion_proof(LEAVES, 0), TreeHead(5, bytes(32))
    ),
}


@pytest.mark.parametrize("code", MerkleCode)
def test_each_refusal_of_a_proof(code: MerkleCode) -> None:
    """E65: the code and a sentence."""
    with pytest.raises(MerkleError) as caught:
        PROOFS[code]()
    assert caught.value.code == code
    assert caught.value.faults[0].sentence.endswith(".")
