"""Parcels: one form, read strictly, never extracted."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.studies import parcels
from skill_effectiveness.studies.agent import Observed
from skill_effectiveness.studies.cluster_orders import WorkerFacts
from skill_effectiveness.studies.file_trees import (
    EntryKind,
    FileTree,
    HeldTree,
    Oddity,
    OddityKind,
    TreeEntry,
)
from skill_effectiveness.studies.parcels import (
    Expected,
    ParcelCode,
    ParcelError,
    pack,
    put_in_place,
    tar,
    unpack,
    untar,
)
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.models import AccessMode, AuditRow, IsolationEvidence, Operation
from tests.support.study_runs import result

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.studies.agent import AttemptResult

ORDER = "sha256:" + "a" * 64
MANIFEST = "sha256:" + "b" * 64
WORKER = WorkerFacts(
    host="one",
    pid=7,
    versions={"python": "3.11.7"},
    runtime_manifest_hash=MANIFEST,
    executable_hash="sha256:" + "c" * 64,
    cli_version="1",
)
EXPECTED = Expected(ORDER, MANIFEST, WORKER)
ROW = AuditRow(
    actor="tested-agent", operation=Operation.OPEN, access_mode=AccessMode.READ, path="/attempt/work/ä"
)
TREE = FileTree.of(
    [
        TreeEntry("bin", EntryKind.FOLDER),
        TreeEntry("bin/run ä.sh", EntryKind.FILE, executable=True, size=3, sha256=digest_bytes(b"abc")),
        TreeEntry("empty", EntryKind.FILE, size=0, sha256=digest_bytes(b"")),
        TreeEntry("link", EntryKind.LINK, target="bin/run ä.sh"),
        TreeEntry("same", EntryKind.FILE, size=3, sha256=digest_bytes(b"abc")),
    ]
)
BLOBS = {digest_bytes(b"abc"): b"abc", digest_bytes(b""): b""}


def whole() -> AttemptResult:
    return result(
        files=HeldTree(TREE, lambda entry: BLOBS[str(entry.sha256)]),
        oddities=(Oddity("pipe", OddityKind.NOT_REGULAR),),
        observed=Observed(
            IsolationEvidence(fresh_session=True, forked_from_existing=False),
            (ROW,),
            audit_faults=("a line of an unknown form",),
        ),
        stream=b'{"a":1}\n',
        stderr=b"",
    )


def members() -> dict[str, bytes]:
    """The files of a sound parcel."""
    return untar(pack(whole(), ORDER, WORKER))


def refused(data: bytes, expected: Expected = EXPECTED) -> ParcelCode:
    with pytest.raises(ParcelError) as caught:
        unpack(data, expected)
    assert caught.value.sentence.endswith(".")
    return caught.value.code


# There and back.


def test_there_and_back() -> None:
    """S30: everything of an attempt, byte for byte, links and execute bits by the list."""
    sent = whole()
    found = unpack(pack(sent, ORDER, WORKER), EXPECTED)
    assert replace(found, files=None) == replace(sent, files=None)
    assert found.files is not None
    assert found.files.tree == TREE
    assert [found.files.blob(entry) for entry in TREE.files] == [b"abc", b"", b"abc"]


@pytest.mark.parametrize(
    "told",
    [
        result(),
        result("provider_error", detail="rate_limited", files=None, model_reported=None),
        result("contaminated", detail="canary", files=HeldTree.of_files({})),
    ],
)
def test_whatever_an_attempt_came_to(told: AttemptResult) -> None:
    """S30: with and without a tree; an empty tree is one."""
    found = unpack(pack(told, ORDER, WORKER), EXPECTED)
    assert (found.ended, found.detail, found.usage) == (told.ended, told.detail, told.usage)
    assert (found.files is None) is (told.files is None)


def test_a_tar_that_everybody_can_read() -> None:
    """S30: sorted regular files of nobody, at no time, whatever made them."""
    data = pack(whole(), ORDER, WORKER)
    with tarfile.open(fileobj=io.BytesIO(data)) as held:
        found = held.getmembers()
    abc, empty = (digest_bytes(each).removeprefix("sha256:") for each in (b"abc", b""))
    assert [each.name for each in found] == [
        "audit.jsonl",
        *sorted([f"collected/{abc}", f"collected/{empty}"]),
        "oddities.jsonl",
        "parcel.json",
        "stderr.bin",
        "stream.jsonl",
        "tree.json",
    ]
    assert {(each.type, each.mode, each.mtime, each.uid, each.uname) for each in found} == {
        (tarfile.REGTYPE, 0o600, 0, 0, "")
    }
    assert data == pack(whole(), ORDER, WORKER)


@given(st.dictionaries(st.sampled_from(["parcel.json", "stderr.bin", "tree.json"]), st.binary(max_size=1500)))
def test_files_there_and_back(files: dict[str, bytes]) -> None:
    """Any bytes, any padding."""
    assert untar(tar(files)) == files


# Too large.


def test_a_result_beyond_all_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: `limit` and `result_size`, and nothing of it is shipped."""
    monkeypatch.setattr(parcels, "LARGEST_PARCEL", 20_000)
    large = replace(whole(), stream=bytes(20_001))
    data = pack(large, ORDER, WORKER)
    assert len(data) < 20_000
    found = unpack(data, EXPECTED)
    assert (found.ended, found.detail) == (EndClass.LIMIT, "result_size")
    assert (found.files, found.stream, found.stderr, found.observed.audit) == (None, None, None, ())
    assert found.observed.audit_faults == ("more was left than is sent", "a line of an unknown form")
    kept = unpack(pack(replace(large, ended=EndClass.CONTAMINATED, detail="canary"), ORDER, WORKER), EXPECTED)
    assert (kept.ended, kept.detail) == (EndClass.CONTAMINATED, "canary")


def test_many_small_files_are_a_large_parcel(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: what counts is the parcel, with all its headers."""
    monkeypatch.setattr(parcels, "LARGEST_PARCEL", 20_000)
    many = HeldTree.of_files({f"f{number}": str(number).encode() for number in range(30)})
    assert unpack(pack(result(files=many), ORDER, WORKER), EXPECTED).detail == "result_size"


def test_a_parcel_beyond_all_size_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: before anything of it is read."""
    data = pack(whole(), ORDER, WORKER)
    monkeypatch.setattr(parcels, "LARGEST_PARCEL", len(data) - 1)
    assert refused(data) is ParcelCode.PARCEL_SIZE


# Hostile.


def other(name: str, **fields: object) -> Callable[[], bytes]:
    """A tar with one member more, of these fields."""

    def made() -> bytes:
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            member = tarfile.TarInfo(name)
            member.mode = 0o600
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(bytes(member.size)))
        return held.getvalue()[: 512 + -(-member.size // 512) * 512] + pack(whole(), ORDER, WORKER)

    return made


@pytest.mark.parametrize(
    "made",
    [
        other("/etc/passwd"),
        other("../outside"),
        other("a.json"),
        other("collected/../../x"),
        other("collected/" + "0" * 63),
        other("collected/" + "A" * 64),
        other(""),
        other("parcel.json/"),
    ],
)
def test_names_that_no_parcel_has(made: Callable[[], bytes]) -> None:
    """S30: absolute, climbing, unknown, almost right."""
    assert refused(made()) is ParcelCode.PARCEL_NAMES


NAME = "collected/" + "0" * 64


@pytest.mark.parametrize(
    "made",
    [
        other(NAME, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        other(NAME, type=tarfile.LNKTYPE, linkname="parcel.json"),
        other(NAME, type=tarfile.CHRTYPE),
        other(NAME, type=tarfile.FIFOTYPE),
        other(NAME, type=tarfile.DIRTYPE),
        other(NAME, type=tarfile.XHDTYPE),
        other(NAME, type=tarfile.GNUTYPE_LONGNAME, size=3),
        other(NAME, mode=0o4755),
        other(NAME, uid=1),
        other(NAME, mtime=1),
        other(NAME, uname="root"),
        other(NAME, size=1),
    ],
)
def test_members_that_are_no_plain_files(made: Callable[[], bytes]) -> None:
    """S30: links, devices, pipes, folders, extended headers, modes, owners, times."""
    assert refused(made()) in {ParcelCode.PARCEL_FORM, ParcelCode.PARCEL_NAMES}


def test_names_stand_once_and_in_order() -> None:
    """S30: a second file of a name could be another one."""
    files = {"parcel.json": b"{}", "tree.json": b"[]"}
    one, two = (tar({name: data})[:-1024] for name, data in files.items())
    end = bytes(1024)
    assert untar(one + two + end) == files
    for data in (two + one + end, one + one + end):
        assert refused(data) is ParcelCode.PARCEL_NAMES


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:0],
        lambda data: data[:-1],
        lambda data: data[:-512],
        lambda data: data[:-1024],
        lambda data: data[:700],
        lambda data: data + b"\0",
        lambda data: data + bytes(512),
        lambda data: data + data,
        lambda data: data[:-1] + b"x",
        lambda data: b"x" + data[1:],
        lambda data: data[:124] + b"77777777777" + data[135:],
        lambda data: data[:124] + b"-0000000001" + data[135:],
        lambda data: data[:124] + b" 0000000_10" + data[135:],
    ],
)
def test_bytes_that_are_no_whole_tar(change: Callable[[bytes], bytes]) -> None:
    """S30: cut off anywhere, something behind the end, sizes that lie."""
    assert refused(change(pack(whole(), ORDER, WORKER))) in {ParcelCode.PARCEL_FORM, ParcelCode.PARCEL_NAMES}


@settings(max_examples=300)
@given(st.data())
def test_any_byte_changed(data: st.DataObject) -> None:
    """S30: a parcel is refused, or is of the same content in the places that it does not sign."""
    sound = pack(whole(), ORDER, WORKER)
    place = data.draw(st.integers(0, len(sound) - 1))
    changed = bytearray(sound)
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        found = unpack(bytes(changed), EXPECTED)
    except ParcelError:
        return
    assert found.files is not None
    assert found.files.tree == TREE


def test_padding_holds_nothing() -> None:
    """S30: nothing is carried beside the files."""
    data = bytearray(tar({"parcel.json": b"{}"}))
    data[600] = 1
    assert refused(bytes(data)) is ParcelCode.PARCEL_FORM


def with_(**changes: bytes | None) -> bytes:
    """A parcel with some of its files changed, named with `__` for a point."""
    files: dict[str, bytes | None] = {**members()}
    files |= {name.replace("__", "."): data for name, data in changes.items()}
    return tar({name: data for name, data in files.items() if data is not None})


def head(**changes: object) -> bytes:
    return dump_line({**json.loads(members()["parcel.json"]), **changes})


def test_another_order() -> None:
    """S30: it answers what was asked and nothing else."""
    assert refused(with_(parcel__json=head(order_digest="sha256:" + "d" * 64))) is ParcelCode.PARCEL_ORDER


def test_another_worker() -> None:
    """S30: of the worker that was asked, and of the program that planned."""
    changed = {**json.loads(members()["parcel.json"])["worker"], "pid": 8}
    assert refused(with_(parcel__json=head(worker=changed))) is ParcelCode.PARCEL_WORKER
    data = pack(whole(), ORDER, WORKER)
    assert unpack(data, Expected(ORDER, MANIFEST)).ended is EndClass.COMPLETED
    assert refused(data, Expected(ORDER, "sha256:" + "e" * 64)) is ParcelCode.PARCEL_WORKER


@pytest.mark.parametrize(
    "line",
    [
        None,
        b"",
        b"{}\n",
        b"[]\n",
        head(ended="won"),
        head(schema_version=2),
        head(extra=1),
        head(detail="two words"),
        head()[:-1],
        b" " + head(),
        b'{"order_digest":"x",' + head()[1:],
    ],
)
def test_heads_that_are_none(line: bytes | None) -> None:
    """S30: missing, of another form, not canonical, with a name twice."""
    assert refused(with_(parcel__json=line)) is ParcelCode.PARCEL_DOCUMENT


def used(**counters: object) -> bytes:
    return head(usage=json.loads(members()["parcel.json"])["usage"] | counters)


@pytest.mark.parametrize(
    "line",
    [
        used(input_tokens=9_007_199_254_740_991, output_tokens=9_007_199_254_740_991),
        used(tool_calls=1_000_000_001),
        used(cost_units=1e308),
        used(wall_seconds=1e300),
        used(input_tokens=-1),
        head(audit_complete=True),
        head(read_roots=["/"]),
        head(write_roots=["/usr", "/usr"], read_roots=["/usr"]),
    ],
)
def test_heads_with_which_no_trial_could_be_completed(line: bytes) -> None:
    """S30 S26: refused when they arrive; once published, they would break each later run of the study."""
    assert refused(with_(parcel__json=line, audit__jsonl=None)) is ParcelCode.PARCEL_DOCUMENT


def test_what_is_completed_has_a_tree() -> None:
    """S30: there would be nothing to grade."""
    names = [name for name in members() if name == "tree.json" or name.startswith("collected/")]
    without = {name: data for name, data in members().items() if name not in names}
    without["parcel.json"] = head(tree=None)
    assert refused(tar(without)) is ParcelCode.PARCEL_DOCUMENT
    without["parcel.json"] = head(tree=None, ended="timeout")
    assert unpack(tar(without), EXPECTED).files is None


LISTING = TREE.listing


@pytest.mark.parametrize(
    "data",
    [
        with_(tree__json=None),
        with_(tree__json=b"[]"),
        with_(tree__json=LISTING + b"\n"),
        with_(tree__json=LISTING.replace(b'"bin/run', b'"../run')),
        with_(parcel__json=head(tree=None, ended="timeout")),
        with_(parcel__json=head(tree="sha256:" + "0" * 64)),
        with_(tree__json=None, parcel__json=head(tree=None, ended="timeout")),
        tar({name: data for name, data in members().items() if not name.startswith("collected/")}),
        tar({**members(), NAME: b""}),
        tar({name: b"abd" if data == b"abc" else data for name, data in members().items()}),
        tar({name: b"abcd" if data == b"abc" else data for name, data in members().items()}),
    ],
)
def test_trees_that_are_not_what_they_say(data: bytes) -> None:
    """S30: another list, another digest, files missing, too many, or others."""
    assert refused(data) is ParcelCode.PARCEL_TREE


def test_a_link_that_leads_out() -> None:
    """S30: named by a list whose digest is right."""
    tree = FileTree.of([TreeEntry("link", EntryKind.LINK, target="/etc/passwd")])
    data = pack(result(files=HeldTree(tree, lambda _entry: b"")), ORDER, WORKER)
    assert refused(data) is ParcelCode.PARCEL_TREE


@pytest.mark.parametrize("name", ["audit__jsonl", "oddities__jsonl"])
@pytest.mark.parametrize("data", [b"{}\n", b"\n", b"x", b'{"path":"/a"', b'{"path":"a","kind":"gold"}\n'])
def test_rows_that_are_none(name: str, data: bytes) -> None:
    """S30: every line of its form."""
    assert refused(with_(**{name: data})) is ParcelCode.PARCEL_DOCUMENT


# In place.


def test_an_audit_names_the_folder_here() -> None:
    """S30: a worker is told no path; rows of its attempt's folder are those of the coordinator's."""
    outside = ROW.model_copy(update={"path": "/attempts/other"})
    top = ROW.model_copy(update={"path": "/attempt"})
    sent = result(observed=Observed(audit=(ROW, outside, top), roots_enforced=True))
    found = put_in_place(sent, "/study/attempts/1/a1")
    assert [row.path for row in found.observed.audit] == [
        "/study/attempts/1/a1/work/ä",
        "/attempts/other",
        "/study/attempts/1/a1",
    ]
    assert found.observed.roots_enforced
