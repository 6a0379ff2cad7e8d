"""`study report`, `seal`, `prove`, `verify` and `activation` as command lines: exits and keys."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.cli import activation
from skill_effectiveness.studies.results import results_line
from skill_effectiveness.studies.verification import StudyVerification
from tests.support.bundles import judged, report, seal
from tests.support.commands import no_traceback
from tests.support.study_results import full_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.commands import Said

    Command = Callable[..., Said]

SAYS = [
    "gate_status", "verdict_tier", "conclusion", "effect", "interval", "p", "tasks", "to_decide_tasks",
    "result",
]  # fmt: skip
CHECKS = [f"check.{number}" for number in range(1, 15)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study R, judged, with its bundle B and the public key, made once."""
    folder = tmp_path_factory.mktemp("study")
    with judged(folder, models=()) as study:
        shutil.copytree(folder / "R", folder / "run")
        report(study)
        seal(study)
    shutil.copyfile(folder / "state" / "keys" / "study.pub", folder / "study.pub")
    return folder


@pytest.fixture
def place(original: Path, home: Path) -> Path:
    """The same at home."""
    for name in ("R", "B", "run"):
        shutil.copytree(original / name, home / name)
    shutil.copyfile(original / "study.pub", home / "study.pub")
    return home


class TestReport:
    def test_lines(self, command: Command, place: Path) -> None:
        """S1 S2: every key, exit 3 for a synthetic study, and where to look."""
        said = command("study", "report", "run")
        assert (said.code, list(said.values)) == (3, SAYS)
        assert said.values["verdict_tier"] == "synthetic_not_a_tier"
        assert said.values["result"] == "report/results.json"
        assert said.err.splitlines()[-2:] == [
            f"look at {place}/run/report/report.html",
            "Now: run.py study seal run --out B",
        ]
        again = command("study", "report", "run", "--json")
        assert (again.code, sorted(again.document)) == (3, sorted(SAYS))

    @pytest.mark.parametrize("word", ["improves", "harms", "equivalent", "underpowered", "inconclusive"])
    def test_a_required_word(self, command: Command, place: Path, word: str) -> None:
        """S3: another word is exit 1."""
        del place
        said = command("study", "report", "run", "--require", word)
        assert said.code == (3 if said.values["conclusion"] == word else 1)

    def test_refused(self, command: Command, place: Path) -> None:
        """S65: no such word, no reason, no study."""
        del place
        assert "not one of" in command("study", "report", "run", "--require", "proves").refusal
        assert "one line" in command("study", "report", "run", "--abandon", " ").refusal
        assert "one line" in command("study", "report", "run", "--abandon", "a\nb").refusal
        assert command("study", "report", "absent", "--json").code == 2


class TestSeal:
    def test_another_key_than_the_plans(self, command: Command, place: Path) -> None:
        """S1: the default key of this home has not sealed that plan."""
        said = command("study", "seal", "R", "--out", "C", "--json")
        assert (said.code, said.document["code"]) == (2, "plan_seal")
        assert not list((place / "C").iterdir())

    def test_no_report(self, command: Command, place: Path) -> None:
        """S1: exit 2."""
        del place
        said = command("study", "seal", "run", "--out", "C", "--json")
        assert (said.code, said.document["code"]) == (2, "report_missing")


class TestVerify:
    def test_lines(self, command: Command, place: Path) -> None:
        """S1 S60: fourteen checks, tier and word."""
        del place
        said = command("verify", "B", "--pub", "study.pub")
        assert (said.code, list(said.values)) == (0, ["verify_status", *CHECKS, "verdict_tier", "conclusion"])
        assert set(said.values.values()) >= {"pass", "synthetic_not_a_tier"}
        assert len(said.err.splitlines()) == 15
        assert said.err.splitlines()[-1].startswith("Every check that is to be made passed: ")
        assert command("verify", "B", "--pub", "study.pub", "--json").document["check.14"] == "pass"

    def test_edited(self, command: Command, place: Path) -> None:
        """S1 S65: exit 1, and nothing that the study says."""
        (place / "B" / "report" / "report.html").write_bytes(b"")
        said = command("verify", "B", "--pub", "study.pub")
        assert said.code == 1
        assert (said.values["verify_status"], said.values["check.2"]) == ("fail", "fail")
        assert (said.values["verdict_tier"], said.values["conclusion"]) == ("unknown", "unknown")

    @pytest.mark.parametrize("data", [b"", b"\x00\xff", b"{}\n", b"[" * 100_000])
    def test_garbage(self, command: Command, place: Path, data: bytes) -> None:
        """S65: a check failed, whatever lies there."""
        (place / "B" / "bundle.dsse.json").write_bytes(data)
        said = command("verify", "B", "--pub", "study.pub")
        assert (said.code, said.values["check.1"], said.values["check.14"]) == (1, "fail", "not_run")
        assert no_traceback(said)

    def test_without_its_seal(self, command: Command, place: Path) -> None:
        """S65: what is plainly a study's folder fails check 1."""
        (place / "B" / "bundle.dsse.json").unlink()
        said = command("verify", "B", "--pub", "study.pub")
        assert (said.code, said.values["check.1"]) == (1, "fail")

    def test_nothing_there(self, command: Command, place: Path) -> None:
        """S1: exit 2 without a folder, and without a key."""
        del place
        assert command("verify", "absent", "--pub", "study.pub").code == 2
        assert command("verify", "B", "--pub", "absent.pub").code == 2


class TestProve:
    def test_one_trial(self, command: Command, place: Path) -> None:
        """S1 S62: written, and verified by two checks."""
        del place
        trial = "note-amber/profile-off/sample-001"
        said = command("study", "prove", "B", "--trial", trial, "--out", "D")
        assert (said.code, said.values) == (0, {"proof": "D/inclusion.json"})
        checked = command("verify", "D", "--pub", "study.pub")
        assert checked.code == 0
        assert checked.values["trial"] == trial
        assert [key for key, word in checked.values.items() if word == "pass"] == [
            "verify_status", "check.1", "check.3",
        ]  # fmt: skip

    def test_no_such_trial(self, command: Command, place: Path) -> None:
        """S1: exit 2."""
        del place
        said = command("study", "prove", "B", "--trial", "x", "--out", "D", "--json")
        assert (said.code, said.document["code"]) == (2, "trial_unknown")

    def test_no_bundle(self, command: Command, place: Path) -> None:
        """S1 S65: a study, or any folder, in the place of a bundle: what to name, and nothing is made."""
        (place / "any").mkdir()
        for named, told in (("R", "seal it first"), ("any", "nothing was sealed here")):
            assert told in command("study", "prove", named, "--trial", "x", "--out", "D").refusal
        assert not (place / "D").exists()


class TestActivation:
    def words(self, results: str = "B/report/results.json", bundle: str = "B") -> list[str]:
        return [
            "activation", "record", "--results", results, "--bundle", bundle, "--pub", "study.pub",
            "--reason", "for the team", "--out", "used.json",
        ]  # fmt: skip

    def test_synthetic(self, command: Command, place: Path) -> None:
        """S2 S64: exit 3, and nothing is written."""
        said = command(*self.words())
        assert said.code == 3
        assert list(said.values) == ["activation_status", "verdict_hash", "verdict_tier"]
        assert said.values["activation_status"] == "not_evaluated"
        assert not (place / "used.json").exists()

    def test_edited_limitations(self, command: Command, place: Path) -> None:
        """S64: exit 2."""
        results = json.loads((place / "B" / "report" / "results.json").read_bytes())
        results["verdict"]["coverage_limitations"] = ["mount_evidence"]
        (place / "edited.json").write_text(json.dumps(results, separators=(",", ":"), sort_keys=True) + "\n")
        said = command(*self.words("edited.json"), "--json")
        assert (said.code, said.document["code"]) == (2, "activation_invalid")

    def test_other_results(self, command: Command, place: Path) -> None:
        """S64: exit 1."""
        (place / "other.json").write_bytes(results_line(full_study().results))
        said = command(*self.words("other.json"))
        assert (said.code, said.values["activation_status"]) == (1, "differs")

    def test_a_bundle_that_does_not_verify(self, command: Command, place: Path) -> None:
        """S64: exit 1."""
        shutil.copyfile(place / "B" / "report" / "results.json", place / "mine.json")
        (place / "B" / "report" / "report.html").write_bytes(b"")
        said = command(*self.words("mine.json"))
        assert (said.code, said.values["activation_status"]) == (1, "bundle_not_verified")

    def test_recorded(self, command: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """S1 S64: a verdict that passed: written, shown, verified, and refused once it was edited."""
        passed = full_study().results
        (place / "passed.json").write_bytes(results_line(passed))
        root = "sha256:" + "7" * 64

        def verified(*_: object, **__: object) -> StudyVerification:
            return _Passed((), passed, root)

        with monkeypatch.context() as patched:
            patched.setattr(activation, "verify_bundle", verified)
            self.used(command, place, root)
        other = command("activation", "verify", "used.json", "--bundle", "B", "--pub", "study.pub")
        assert (other.code, other.values["activation_status"]) == (1, "differs")

    def used(self, command: Command, place: Path, root: str) -> None:
        said = command(*self.words("passed.json"))
        assert (said.code, said.values["activation_status"]) == (0, "recorded")
        shown = command("activation", "show", "used.json")
        assert shown.code == 0
        assert shown.values["coverage_limitations"] == "complete_access_audit,mount_evidence"
        assert shown.values["merkle_root"] == root
        checked = command("activation", "verify", "used.json", "--bundle", "B", "--pub", "study.pub")
        assert (checked.code, checked.values["activation_status"]) == (0, "verified")
        assert command(*self.words("passed.json")).code == 2
        data = (place / "used.json").read_bytes()
        (place / "used.json").write_bytes(data.replace(b'"mount_evidence"', b'"memory_isolation_proof"'))
        assert command("activation", "show", "used.json", "--json").document["code"] == "activation_invalid"
        (place / "used.json").write_bytes(data)


class _Passed(StudyVerification):
    """A verification in which every check passed."""

    @property
    def passed(self) -> bool:
        return True
