"""`trials`: what is listed, shown and verified, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import skill_effectiveness.cli.trials as page
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.models import TrialKey
from skill_effectiveness.trials.prepare import prepare
from tests.support.bundles import judged, report, seal
from tests.support.commands import Said, no_traceback, steers
from tests.support.crash_images import fast_folder
from tests.support.private import content, imprint
from tests.support.trials import LIMITED, SAFE, Json, Place, cursor, order, put, put_lines, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Command = Callable[..., Said]

KEYS = [TrialKey("task-a", "profile-full", sample) for sample in (1, 2, 3)]


@pytest.fixture
def place() -> Iterator[Place]:
    """A store with a completed, a running and an unreadable trial."""
    with fast_folder() as folder:
        yield filled(Place(folder))


def filled(made: Place) -> Place:
    with made.open() as store:
        for sample in (1, 2, 3):
            prepare(store, order(budget=LIMITED, sample=sample))
        made.fill(KEYS[0])
        wanted = made.completion(
            KEYS[0],
            resume_cursor=cursor(5, tokens=10, cost_units=0.5),
            isolation_evidence=SAFE | {"provider_persistence": None},
            access_audit_complete=False,
        )
        checkpoint(store, KEYS[0], wanted)
        checkpoint(store, KEYS[1], request("running", resume_cursor=cursor(tokens=400)))
    put(made.trial(KEYS[2]) / "trial.json", b"{")
    return made


class TestList:
    def test_names_every_trial(self, command: Command, place: Place) -> None:
        """T56: result lines of `trials list`."""
        said = command("trials", "list", place.root)
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines() == [
            "trials=3",
            "trial.task-a/profile-full/sample-001=completed",
            "trial.task-a/profile-full/sample-002=running",
            "trial.task-a/profile-full/sample-003=unreadable",
        ]

    def test_as_one_object(self, command: Command, place: Place) -> None:
        """T56: the same with `--json`."""
        said = command("trials", "list", str(place.root), "--json")
        assert said.document["trials"] == 3
        assert said.document["trial.task-a/profile-full/sample-002"] == "running"

    def test_a_folder_that_is_no_store_stays_as_it_is(self, command: Command, home: Path) -> None:
        """T54: exit 2, never 1; nothing is made."""
        (home / "empty").mkdir(mode=0o700)
        assert "no store of trials" in command("trials", "list", "empty").refusal
        assert list((home / "empty").iterdir()) == []

    @pytest.mark.parametrize("words", [["list", "nowhere"], ["list"], ["list", "here", "more"], ["other"]])
    def test_is_refused(self, command: Command, words: list[str]) -> None:
        """T54: usage and missing folders are exit 2."""
        assert command("trials", *words).refusal


class TestShow:
    def test_a_completed_trial(self, command: Command, place: Place) -> None:
        """T56: result lines of `trials show`."""
        said = command("trials", "show", place.root, KEYS[0].path)
        document = place.document(KEYS[0])
        assert said.values == {
            "trial": "task-a/profile-full/sample-001",
            "status": "completed",
            "state_version": "1",
            "registry_schema": "paired-profile",
            "evidence_tier": "advisory-paired",
            "provider": "simulated",
            "model": "model-1",
            "stop_reason": "unknown",
            "breach": "false",
            "next_run_order": "5",
            "coverage_limitations": "complete_access_audit,provider_side_persistence_proof",
            "trial_fingerprint": document["trial_fingerprint"],
            "completion_binding_hash": document["completion_binding_hash"],
            "remaining.tokens": "990",
            "remaining.wall_time_seconds": "60.5",
            "remaining.tool_calls": "unlimited",
            "remaining.cost_units": "1.5",
        }

    def test_as_one_object(self, command: Command, place: Place) -> None:
        """T56: lists and nulls stay what they are."""
        shown = command("trials", "show", place.root, KEYS[0].path, "--json").document
        assert shown["coverage_limitations"] == ["complete_access_audit", "provider_side_persistence_proof"]
        assert (shown["remaining.tool_calls"], shown["breach"]) == (None, False)

    @pytest.mark.parametrize(
        ("trial", "told"),
        [
            ("task-a/profile-full/sample-009", "no trial"),
            ("task-a/profile-full/sample-003", "strict JSON"),
            ("task-a/profile-full/sample-9", "<task>/<arm>/sample-NNN"),
            ("../../etc/sample-001", "<task>/<arm>/sample-NNN"),
            ("task-a\x1b[2J/x/sample-001", "control character"),
        ],
    )
    def test_is_refused(self, command: Command, place: Place, trial: str, told: str) -> None:
        """T54: exit 2 with one sentence."""
        said = command("trials", "show", place.root, trial)
        assert told in said.refusal
        assert steers(said.err) == []

    def test_a_trial_from_another_place(self, command: Command, place: Place) -> None:
        place.edit(KEYS[1], arm_id="profile-off")
        assert "made for another place" in command("trials", "show", place.root, KEYS[1].path).refusal


class TestVerify:
    def test_completed_trials_that_hold(self, command: Command, place: Place) -> None:
        """T56: result lines of `trials verify`."""
        put(place.trial(KEYS[2]) / "trial.json", (place.trial(KEYS[1]) / "trial.json").read_bytes())
        before = content(place.root)
        said = command("trials", "verify", place.root)
        assert (said.code, said.out, said.err) == (0, "verify_status=pass\nverified=1\n", "")
        assert content(place.root) == before
        assert command("trials", "verify", place.root, KEYS[0].path).values["verified"] == "1"

    def test_one_that_drifted(self, command: Command, place: Place) -> None:
        """T54: a mutated outcome is exit 2, and every trial that does not hold is named."""
        put(place.trial(KEYS[0]) / "outcome" / "result.json", b'{"answer":"43"}')
        said = command("trials", "verify", place.root)
        assert (said.code, said.out) == (2, "")
        named = [line.split(": ")[1:3] for line in said.err.splitlines()[:2]]
        assert named == [[KEYS[0].path, "binding_mismatch"], [KEYS[2].path, "evidence_invalid"]]
        assert said.err.splitlines()[-1].startswith("skill_effectiveness_trial: 2 of 2 trials do not hold")
        refusal = command("trials", "verify", place.root, "--json").document
        assert refusal == {"status": "refused", "code": "binding_mismatch"}

    def test_one_that_has_not_completed(self, command: Command, place: Place) -> None:
        said = command("trials", "verify", place.root, KEYS[1].path)
        assert said.code == 2
        assert "has not completed" in said.err

    def test_a_marked_one(self, command: Command, place: Place) -> None:
        put_lines(place.trial(KEYS[0]) / "breach.json", [{}])
        said = command("trials", "verify", place.root, KEYS[0].path)
        assert (said.code, "isolation_breach" in said.err) == (2, True)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study R, judged and reported, with its bundle B and the public key."""
    folder = tmp_path_factory.mktemp("looked-at")
    with judged(folder, models=()) as made:
        report(made)
        seal(made)
    shutil.copyfile(folder / "state" / "keys" / "study.pub", folder / "study.pub")
    return folder


def looks(store: Path, trial: str) -> list[list[str | Path]]:
    """The three command lines over a store."""
    return [["trials", "list", store], ["trials", "show", store, trial], ["trials", "verify", store, trial]]


class TestLooking:
    """Nothing below the folder that is looked at is written, made or touched."""

    @pytest.mark.parametrize("which", ["made", "copied", "moved"])
    def test_into_a_store(self, command: Command, place: Place, which: str) -> None:
        """T9 T56: where it was made and anywhere else; its identity is read as it is."""
        root = place.root if which == "made" else place.base / which
        if which == "copied":
            shutil.copytree(place.root, root)
        elif which == "moved":
            place.root.rename(root)
        before = imprint(root)
        for words in looks(root, KEYS[0].path):
            assert (command(*words).code, imprint(root)) == (0, before)
        assert json.loads((root / "root.json").read_bytes())["located_at"] == [str(place.root)]

    def test_a_refusal_writes_nothing_either(self, command: Command, place: Place) -> None:
        """T54: a trial that is missing, one that drifted, an identity that is none."""
        moved = place.root.rename(place.base / "moved")
        put(moved / "trials" / KEYS[0].path / "outcome" / "result.json", b"{}")
        before = imprint(moved)
        _, *missing = looks(moved, "task-a/profile-full/sample-009")
        for words in [*missing, ["trials", "verify", moved]]:
            assert (command(*words).code, imprint(moved)) == (2, before)
        put(moved / "root.json", b"{}\n")
        before = imprint(moved)
        for words in looks(moved, KEYS[0].path):
            assert (command(*words).code, imprint(moved)) == (2, before)

    @pytest.mark.parametrize("name", ["R", "B"])
    def test_into_a_study_and_its_bundle(self, command: Command, study: Path, home: Path, name: str) -> None:
        """T56 S60: a bundle that was looked at still verifies, and verifying it writes nothing."""
        for folder in (study / name, Path(shutil.copytree(study / name, home / name))):
            before = imprint(folder)
            trial = next(iter(command("trials", "list", folder, "--json").document.keys() - {"trials"}))
            for words in looks(folder, trial.removeprefix("trial.")):
                assert (command(*words).code, imprint(folder)) == (0, before)
            assert command("journal", "verify", folder / "journal", "--without-state").code == 0
            if name == "B":
                said = command("verify", folder, "--pub", study / "study.pub")
                assert (said.code, said.values["verify_status"]) == (0, "pass")
            else:
                assert command("study", "status", folder).code == 0
                assert command("study", "watch", folder, "--once").code == 0
            assert imprint(folder) == before


@pytest.mark.parametrize("words", [["list"], ["show", KEYS[0].path], ["verify"]])
def test_something_unforeseen(
    command: Command, place: Place, home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """T53: exit 70, one line, and a crash file without any payload; not in the store, which may be sealed."""
    before = imprint(place.root)

    def broken(*_: Json) -> None:
        raise RuntimeError("secret payload")

    monkeypatch.setattr(page, "read_document", broken)
    monkeypatch.setattr(page, "replay", broken)
    said = command("trials", words[0], place.root, *words[1:])
    assert (said.code, said.out) == (70, "")
    assert no_traceback(said)
    assert "secret" not in said.err
    assert imprint(place.root) == before
    (crash,) = (home / ".local/state/skill-effectiveness/crash").iterdir()
    assert json.loads(crash.read_bytes())
    assert b"secret payload" not in crash.read_bytes()
