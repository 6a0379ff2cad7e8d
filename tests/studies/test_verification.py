"""Each numbered check of a bundle on its planted fault, and that nothing edited ever passes."""

from __future__ import annotations

import base64
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.studies import reporting
from skill_effectiveness.studies.bundle_form import ENVELOPE
from skill_effectiveness.studies.chronicle import Chronicle
from skill_effectiveness.studies.plan import read_plan
from skill_effectiveness.studies.plan_seal import seal_plan
from skill_effectiveness.studies.verification import verify_bundle
from tests.support.bundles import Bundle, bundle_of, judged, report, seal, sealed_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVERY = set(range(1, 15))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return sealed_study(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def bundle(whole: Bundle, tmp_path: Path) -> Bundle:
    """A copy that a test may spoil."""
    return whole.copy(tmp_path / "copy")


def first(bundle: Bundle, pattern: str) -> str:
    """The first file of a bundle that fits a pattern."""
    return str(min(bundle.path.glob(pattern)).relative_to(bundle.path))


class TestWhole:
    def test_passes(self, whole: Bundle) -> None:
        """S60: fourteen checks, each run and passed, with a sentence."""
        found = whole.verify()
        assert [check.number for check in found.checks] == sorted(EVERY)
        assert {check.passed for check in found.checks} == {True}
        assert all(check.sentence.startswith(f"Check {check.number} (") for check in found.checks)
        assert found.passed
        assert found.results is not None
        assert found.results.verdict.verdict_tier == "synthetic_not_a_tier"

    def test_a_copy_that_is_not_private_passes(self, bundle: Bundle) -> None:
        """S60: a stranger's copy has whatever modes and owner it has."""
        for path in bundle.path.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert bundle.verify().passed

    def test_another_key(self, whole: Bundle) -> None:
        """S60: signed by somebody else."""
        other = Bundle(whole.path, Ed25519PrivateKey.generate())
        words = other.words()
        assert words[1] is False
        assert {words[number] for number in EVERY - {1}} == {None}

    def test_no_folder(self, tmp_path: Path) -> None:
        """S65: refused, because there is nothing to judge."""
        with pytest.raises(FileError):
            verify_bundle(tmp_path / "absent", Ed25519PrivateKey.generate().public_key(), fs=RealFs())


class TestFiles:
    def test_envelope_missing(self, bundle: Bundle) -> None:
        """S60: check 1."""
        (bundle.path / ENVELOPE).unlink()
        assert bundle.failed() == {1}

    def test_envelope_edited(self, bundle: Bundle) -> None:
        """S60: check 1: another payload under the old signature."""
        envelope = bundle.document(ENVELOPE)
        payload = json.loads(base64.b64decode(envelope["payload"]))
        payload["predicate"]["synthetic"] = False
        text = json.dumps(payload, separators=(",", ":"), sort_keys=True)
        envelope["payload"] = base64.b64encode(text.encode()).decode()
        line = json.dumps(envelope, separators=(",", ":"), sort_keys=True) + "\n"
        (bundle.path / ENVELOPE).write_text(line)
        assert bundle.failed() == {1}

    def test_a_file_more(self, bundle: Bundle) -> None:
        """S60: check 2, and what it says names the file."""
        (bundle.path / "report" / "extra.txt").write_bytes(b"")
        assert bundle.failed() == {2}
        assert "report/extra.txt" in bundle.verify().checks[1].sentence

    def test_a_file_less(self, bundle: Bundle) -> None:
        """S60: check 2; nobody can make the root without it."""
        (bundle.path / "report" / "report.html").unlink()
        assert bundle.failed() == {2, 3}

    def test_a_link(self, bundle: Bundle) -> None:
        """S60: check 2: the same bytes behind a link are no file."""
        page = bundle.path / "report" / "report.html"
        page.rename(bundle.path.parent / "page")
        page.symlink_to(bundle.path.parent / "page")
        assert {2, 3} <= bundle.failed()

    def test_an_empty_folder(self, bundle: Bundle) -> None:
        """S60: check 2."""
        (bundle.path / "inputs").mkdir()
        assert bundle.failed() == {2}

    @pytest.mark.parametrize("claims", [{"merkle_root": "sha256:" + "0" * 64}, {"tree_size": 3}])
    def test_another_root(self, bundle: Bundle, claims: dict[str, object]) -> None:
        """S60: check 3: whoever has the key says another root or size."""
        bundle.reseal(**claims)
        assert bundle.failed() == {3}


def drop_row(bundle: Bundle) -> None:
    """The last row of the journal."""
    journal = bundle.path / "journal" / "000001.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))


def other_plan_seal(bundle: Bundle) -> None:
    """The plan's seal by somebody else."""
    data = (bundle.path / "plan.json").read_bytes()
    committed = (bundle.path / "commitments.jsonl").read_bytes()
    sealed = seal_plan(read_plan(data), data, committed, Ed25519PrivateKey.generate())
    (bundle.path / "plan.dsse.json").write_bytes(sealed)


def other_seed(bundle: Bundle) -> None:
    """Another seed in the openings."""
    bundle.edit("openings.jsonl", b'"seed":"00', b'"seed":"01')


def other_salt(bundle: Bundle) -> None:
    """One salt that opens nothing."""
    data = (bundle.path / "openings.jsonl").read_bytes()
    at = data.index(b'"salt":"') + 8
    (bundle.path / "openings.jsonl").write_bytes(data[:at] + b"0123" + data[at + 4 :])


def lost_exit(bundle: Bundle) -> None:
    """An attempt without its exit."""
    (bundle.path / first(bundle, "attempts/*/a1/exit.json")).unlink()


def foreign_attempt(bundle: Bundle) -> None:
    """An attempt that nobody started."""
    shutil.copytree(bundle.path / "attempts" / "1", bundle.path / "attempts" / "99")


def other_events(bundle: Bundle) -> None:
    """Events that were changed after completion."""
    bundle.edit(first(bundle, "trials/*/*/*/events.jsonl"), b'"status":"clean"', b'"status":"dirty"')


def other_status(bundle: Bundle) -> None:
    """A trial that says otherwise how it ended."""
    bundle.edit(first(bundle, "trials/*/*/*/trial.json"), b'"sample_index":1', b'"sample_index":2')


def other_grade(bundle: Bundle) -> None:
    """Two grades that differ."""
    name = first(bundle, "trials/*/*/*/grading/grade-replay.json")
    grade = bundle.document(name)
    grade["reward"] = 0.5
    line = json.dumps(grade, separators=(",", ":"), sort_keys=True) + "\n"
    (bundle.path / name).write_text(line)


def lost_grade(bundle: Bundle) -> None:
    """No second grade."""
    (bundle.path / first(bundle, "trials/*/*/*/grading/grade-replay.json")).unlink()


def other_assay(bundle: Bundle) -> None:
    """An assay that came out otherwise."""
    bundle.edit("assays/1-close.json", b'"full":"not_applicable"', b'"full":"passed"')


def other_vote(bundle: Bundle) -> None:
    """A vote that says something else than what was journalled."""
    name = first(bundle, "votes/*.json")
    vote = bundle.document(name)
    vote["verdict"] = "A win" if vote["verdict"] != "A win" else "B win"
    line = json.dumps(vote, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    (bundle.path / name).write_text(line)


def other_licence(bundle: Bundle) -> None:
    """Another licence under the old name."""
    name = first(bundle, "licences/*.json")
    data = (bundle.path / name).read_bytes()
    (bundle.path / name).write_bytes(data.replace(b'"sig":"', b'"sig":"A', 1))


def lost_mapping(bundle: Bundle) -> None:
    """A showing that nobody can open."""
    (bundle.path / first(bundle, "blinding/mappings/*.json")).unlink()


def other_showing(bundle: Bundle) -> None:
    """A reviewer was shown something else than the trials left."""
    name = first(bundle, "blinding/judge/*.json")
    shown = bundle.document(name)
    shown["A"]["files"][0]["text"] = "the full arm wrote this\n"
    line = json.dumps(shown, separators=(",", ":"), sort_keys=True) + "\n"
    (bundle.path / name).write_text(line)


def other_table(bundle: Bundle) -> None:
    """A reward that was changed in a table."""
    bundle.edit("report/trials.csv", b",completed,", b",crashed,")


def other_study(bundle: Bundle) -> None:
    """A study file that asks another question than the planned one."""
    bundle.edit("study.yaml", b"question: ", b"question: After all, ")


def other_counts(bundle: Bundle) -> None:
    """Counts that the journal does not give."""
    status = bundle.document("status.json")
    (bundle.path / "status.json").write_bytes(dump_line(status | {"attempts": status["attempts"] - 1}))


def other_model(bundle: Bundle) -> None:
    """An attempt that asked for another model."""
    name = first(bundle, "attempts/*/a1/exit.json")
    (bundle.path / name).write_bytes(dump_line(bundle.document(name) | {"model_requested": "better-model"}))


def other_task(bundle: Bundle) -> None:
    """A trial that names another task than its place does."""
    name = first(bundle, "trials/*/*/*/trial.json")
    trial = bundle.document(name)
    trial["task"]["task_id"] += "-easier"
    (bundle.path / name).write_bytes(dump_line(trial))


def reason_to_stop(bundle: Bundle) -> None:
    """A trial that completed and was stopped."""
    name = first(bundle, "trials/*/*/*/trial.json")
    (bundle.path / name).write_bytes(dump_line(bundle.document(name) | {"stop_reason": "timeout"}))


PLANTED: list[tuple[Callable[[Bundle], None], int, set[int]]] = [
    (drop_row, 4, {4}),
    (other_plan_seal, 5, {5}),
    (other_seed, 6, {6}),
    (other_salt, 6, {6}),
    (lost_exit, 7, {7}),
    (foreign_attempt, 7, {7}),
    (other_events, 8, {8, 13}),
    (other_status, 8, {8}),
    (other_grade, 9, {9}),
    (lost_grade, 9, {9}),
    (other_assay, 10, {10}),
    (other_vote, 11, {11, 13}),
    (other_licence, 11, {11, 13}),
    (lost_mapping, 12, {12, 13}),
    (other_showing, 12, {12}),
    (other_table, 13, {13}),
    (other_study, 5, {5}),
    (other_counts, 7, {7}),
    (other_model, 7, {7}),
    (other_task, 8, {8}),
    (reason_to_stop, 8, {8}),
]

STRAYS = [
    ("notes.txt", 2),
    ("blinding.key", 2),
    ("private/allocation.json", 2),
    ("inputs/" + "0" * 64, 2),
    ("crash/20260102.json", 2),
    ("attempts/1/a2/exit.json", 7),
    ("trials/note-amber/profile-off/sample-001/notes.json", 8),
    ("assays/9-open.json", 10),
    ("votes/vote-" + "0" * 32 + ".json", 11),
    ("licences/" + "0" * 32 + ".dsse.json", 11),
    ("blinding/judge/pair-" + "0" * 64 + ".json", 12),
    ("report/trials-2.csv", 13),
    ("report/history/results-" + "0" * 64 + ".json", 13),
]
"""Files that whoever has the key put beside the evidence, and the check that refuses each."""


@pytest.mark.parametrize(("plant", "check", "failing"), PLANTED, ids=[row[0].__name__ for row in PLANTED])
def test_planted(bundle: Bundle, plant: Callable[[Bundle], None], check: int, failing: set[int]) -> None:
    """S60: whoever has the key spoils one thing and signs again: its check fails, with one sentence."""
    plant(bundle)
    bundle.reseal()
    found = bundle.verify()
    failed = {each.number for each in found.checks if each.passed is False}
    assert check in failed
    assert failed == failing, [each.sentence for each in found.checks if each.passed is False]
    assert not found.passed
    assert found.results is None


@pytest.mark.parametrize(("name", "check"), STRAYS, ids=[row[0].replace("0" * 16, "") for row in STRAYS])
def test_a_file_that_nothing_explains(bundle: Bundle, name: str, check: int) -> None:
    """S60 S63: sealed with the rest, it is refused all the same: an attempt or a vote that was not told."""
    place = bundle.path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"{}\n")
    bundle.reseal()
    assert bundle.failed() == {check}
    assert name in bundle.verify().checks[check - 1].sentence


NAMING = [
    ("root.json", {8}),
    ("plan.json", {5}),
    ("frozen.json", {8, 11, 12, 13, 14}),
    ("status.json", {7}),
    ("attempts/*/a1/exit.json", {7}),
    ("trials/*/*/*/trial.json", {8, 9, 13}),
    ("trials/*/*/*/grading/grade-replay.json", {9}),
    ("trials/*/*/*/outcome/result.json", {12}),
    ("votes/*.json", {11, 13}),
    ("blinding/mappings/*.json", {12, 13}),
    ("blinding/judge/*.json", {12}),
    ("report/pairs.csv", {13}),
    ("report/results.json", {13, 14}),
]
"""Documents, and the checks in whose sentence they stand by their paths."""


@pytest.mark.parametrize(("pattern", "checks"), NAMING)
def test_a_document_with_a_line_more_is_named(bundle: Bundle, pattern: str, checks: set[int]) -> None:
    """S60: a check that cannot read a file says which one, not only where in it."""
    name = first(bundle, pattern)
    place = bundle.path / name
    place.write_bytes(place.read_bytes() + b"x\n")
    found = bundle.verify()
    assert {check.number for check in found.checks if name in check.sentence and check.number > 3} == checks


@pytest.mark.parametrize("name", ["report/report.html", "study.yaml", "status.json"])
def test_a_file_that_every_bundle_has(bundle: Bundle, name: str) -> None:
    """S60: left out and signed again, the bundle is not whole."""
    (bundle.path / name).unlink()
    bundle.reseal()
    assert 2 in bundle.failed()


def place_of(rows: list[dict[str, Any]], kind: str) -> int:
    """Where the first row of a type stands."""
    return next(number for number, row in enumerate(rows) if row["type"] == kind)


def like(rows: list[dict[str, Any]], kind: str, body: dict[str, object], after: int) -> None:
    """Put a row behind another one."""
    rows.insert(after + 1, {"type": kind, "body": body, "time": rows[after]["time"]})


def opened_late(rows: list[dict[str, Any]]) -> None:
    """A slot that was begun before the exposure of every arm was looked at."""
    at = place_of(rows, "slot_started")
    rows[at - 1 : at + 1] = [rows[at], rows[at - 1]]


def graded_again(rows: list[dict[str, Any]]) -> None:
    """A grade that came once arms were known."""
    grade = rows.pop(place_of(rows, "graded"))
    rows.insert(place_of(rows, "unblinded") + 1, grade)


def tried_again(rows: list[dict[str, Any]]) -> None:
    """A second attempt at a slot whose first one had completed."""
    at = place_of(rows, "attempt_ended")
    begun = next(row["body"] for row in rows if row["type"] == "slot_started")
    like(rows, "attempt_ended", rows[at]["body"] | {"attempt": 2}, at)
    like(rows, "slot_started", begun | {"attempt": 2}, at)


def stopped_early(rows: list[dict[str, Any]]) -> None:
    """Slots that were closed as decided, in a study whose size was fixed."""
    like(rows, "slots_closed", {"reason": "decided", "slots": 0}, place_of(rows, "unblinded") - 1)


def cheaper_vote(rows: list[dict[str, Any]]) -> None:
    """A vote that used something else than its file says."""
    rows[place_of(rows, "vote_ended")]["body"]["usage"]["input_tokens"] = 1


def other_purpose(rows: list[dict[str, Any]]) -> None:
    """A journal of something else."""
    rows[0]["body"]["purpose"] = "something else"


@pytest.mark.parametrize(
    ("change", "check", "told"),
    [
        (opened_late, 10, "before its batch was opened"),
        (graded_again, 7, "arms are known"),
        (tried_again, 7, "another one was begun"),
        (stopped_early, 7, "does not let the study stop early"),
        (cheaper_vote, 11, "used something else"),
        (other_purpose, 5, "not that of a study"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_another_course(
    bundle: Bundle, change: Callable[[list[dict[str, Any]]], None], check: int, told: str
) -> None:
    """S60: a journal with a whole chain that tells of a course which the plan does not allow."""
    bundle.rejournal(change)
    found = bundle.verify().checks[check - 1]
    assert found.passed is False
    assert told in found.sentence


def test_what_depends_on_a_failed_check_is_not_run(bundle: Bundle) -> None:
    """S60: without a journal nothing that follows from it is looked at."""
    drop_row(bundle)
    words = bundle.words()
    assert words[2] is words[3] is words[4] is False
    assert {words[number] for number in range(5, 15)} == {None}


def test_something_that_happened_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S60: check 14: a report that was made without a deviation that the journal has."""
    with judged(tmp_path) as study:
        monkeypatch.setattr(reporting, "read_chronicle", _silent(reporting.read_chronicle))
        report(study, abandon="nobody waits for more")
        monkeypatch.undo()
        seal(study)
        assert bundle_of(study).failed() == {14}


def _silent(read: Callable[..., Chronicle]) -> Callable[..., Chronicle]:
    def silenced(journal: object) -> Chronicle:
        told = read(journal)
        return Chronicle((), (), told.planned_at, told.unblinded_at, told.analysed)

    return silenced


class TestTampering:
    """Without the key nothing that is changed passes, whatever it is."""

    @given(data=st.data())
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_one_byte(self, whole: Bundle, tmp_path: Path, data: st.DataObject) -> None:
        """S60 S65: a byte of a file becomes another."""
        copy = _spoilt(whole, tmp_path)
        name = data.draw(st.sampled_from([one for one in copy.files() if (copy.path / one).stat().st_size]))
        held = bytearray((copy.path / name).read_bytes())
        at = data.draw(st.integers(0, len(held) - 1))
        held[at] ^= data.draw(st.integers(1, 255))
        (copy.path / name).write_bytes(bytes(held))
        assert not copy.verify().passed

    @given(data=st.data())
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_file_dropped_or_added(self, whole: Bundle, tmp_path: Path, data: st.DataObject) -> None:
        """S60 S65: a file goes, or one comes."""
        copy = _spoilt(whole, tmp_path)
        if data.draw(st.booleans()):
            (copy.path / data.draw(st.sampled_from(copy.files()))).unlink()
        else:
            name = data.draw(st.sampled_from(["x", "inclusion.json", "votes/x.json", ".x", "journal/x"]))
            (copy.path / name).write_bytes(data.draw(st.binary(max_size=20)))
        assert not copy.verify().passed

    @given(data=st.data())
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_row_dropped_or_repeated(self, whole: Bundle, tmp_path: Path, data: st.DataObject) -> None:
        """S60 S65: even where the files are signed again, the chain of the journal does not close."""
        copy = _spoilt(whole, tmp_path)
        journal = copy.path / "journal" / "000001.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = [] if data.draw(st.booleans()) else [lines[at], lines[at]]
        journal.write_bytes(b"".join(lines))
        copy.reseal()
        assert copy.words()[4] is False


def _spoilt(whole: Bundle, tmp_path: Path) -> Bundle:
    place = tmp_path / "spoilt"
    shutil.rmtree(place, ignore_errors=True)
    return whole.copy(place)
