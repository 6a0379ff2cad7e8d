"""Each check of a study on its planted fault."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skill_effectiveness.calibration.licensing import seal_licence
from skill_effectiveness.studies.checks import CheckName, CheckReport, CheckStatus, check_study
from skill_effectiveness.studies.errors import StudyCode, StudyError
from tests.support.licences import licence_of
from tests.support.private import surroundings
from tests.support.published import REAL, SIMULATED
from tests.support.studies import example, loaded, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.calibration.documents import Declared

ISSUED = datetime(2026, 3, 5, tzinfo=UTC)
ONE_REVIEWER = "reviewers:\n  - {licence: r.json, executable: null}"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PASS, FAIL, ABSENT = CheckStatus.PASS, CheckStatus.FAIL, CheckStatus.ABSENT
TASK = "tasks/note-amber"
SETTINGS = "settings:\n    base_rate: 0.4\n    task_sd: 0.1\n    effect: 0.4"
"""Those of the simulated agent of the example, which a real one has no use for."""


def report(study: Path, *, allow_missing_oracle: bool = False) -> CheckReport:
    return check_study(
        loaded(study),
        trusted=[KEY.public_key()],
        around=surroundings(),
        allow_missing_oracle=allow_missing_oracle,
    )


def failed(found: CheckReport) -> dict[CheckName, str]:
    """The checks that failed and what they say."""
    assert not found.passed
    return {each.name: " ".join(each.findings) for each in found.results if each.status is FAIL}


def study(folder: Path, files: Mapping[str, bytes], **edits: str) -> Path:
    """The example with one task, some files of it replaced, and some keys."""
    return write(example(folder, tasks=1, edits=edits), files)


class TestPassing:
    def test_the_example(self, tmp_path: Path) -> None:
        """S15: a study without a fault passes every check that can be made on it."""
        found = report(example(tmp_path, tasks=2))
        assert found.passed
        statuses = {each.name: each.status for each in found.results}
        assert statuses == dict.fromkeys(CheckName, PASS) | {CheckName.LICENCES: ABSENT}


class TestTheStudy:
    def test_schema(self, tmp_path: Path) -> None:
        """S15: a task that is refused; what needs tasks is not looked at."""
        found = report(study(tmp_path, {f"{TASK}/environment/Dockerfile": b"FROM x\n"}))
        assert "note-amber: needs_image" in failed(found)[CheckName.SCHEMA]
        assert found.status(CheckName.ORACLE) is ABSENT

    @pytest.mark.parametrize(
        ("script", "needs"),
        [
            (b"echo 1 > /logs/verifier/reward.txt\n", True),
            (b"true\ncd /app && ls\n", True),
            (b'cat "/tests/data"\n', True),
            (b"ls ${TASK_DIR:-/app} $TASK_DIR/tests ./app/x a/logs\n", False),
        ],
    )
    def test_fixed_paths_need_a_sandbox(self, tmp_path: Path, script: bytes, *, needs: bool) -> None:
        """S15: without a sandbox a script names no place that is there in one alone."""
        found = report(study(tmp_path, {f"{TASK}/tests/helper.sh": script}))
        assert (found.status(CheckName.SCHEMA) is FAIL) is needs
        if needs:
            line = 2 if script.startswith(b"true") else 1
            told = failed(found)[CheckName.SCHEMA]
            assert "needs_sandbox: tests/helper.sh" in told
            assert f"(line {line})" in told

    def test_driver(self, tmp_path: Path) -> None:
        """S15: it can be driven, and its program bound; what rests on that is absent otherwise."""
        for provider, told in (("cursor", "/driver/provider"), ("codex", "/driver/executable")):
            edits = {
                "provider: simulated": f"provider: {provider}",
                "executable: null": "executable: /bin/true",
                SETTINGS: "settings: {}",
            }
            found = report(study(tmp_path / provider, {}, **edits))
            assert told in failed(found)[CheckName.DRIVER]
            assert found.status(CheckName.MODEL) is ABSENT
            assert found.status(CheckName.TREATMENT_DIFF) is ABSENT

    def test_price(self, tmp_path: Path) -> None:
        """S10 S15: what has no known price cannot have a limit of cost."""
        edits = {
            "provider: simulated": "provider: codex",
            "executable: null": "executable: /bin/true",
            SETTINGS: "settings: {}",
            "study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: null}": (
                "study: {tokens: null, wall_time_seconds: null, tool_calls: null, cost_units: 3}"
            ),
        }
        found = report(study(tmp_path, {}, **edits))
        assert "/budgets/study/cost_units" in failed(found)[CheckName.PRICE]

    def test_treatment_diff(self, tmp_path: Path) -> None:
        """S15 S35: an arm that does not differ where its treatment says."""
        edits = {"    skills: [skills/file-notes]": "    skills: []"}
        found = report(study(tmp_path, {}, **edits))
        assert "allowlisted_diff_not_realized:profile_payload" in failed(found)[CheckName.TREATMENT_DIFF]

    def test_treatment_diff_of_the_other_registry(self, tmp_path: Path) -> None:
        """S15 S35: a full arm of skill content is bootstrap and hooks as well."""
        edits = {
            "registry: paired-profile": "registry: skill-content",
            "tier: advisory-paired": "tier: causal",
            "tasks: tasks": "  oracle: {skills: [skills/file-notes]}\ntasks: tasks",
        }
        found = report(study(tmp_path, {}, **edits))
        assert "allowlisted_diff_not_realized:" in failed(found)[CheckName.TREATMENT_DIFF]

    def test_skill_content_that_is_whole(self, tmp_path: Path) -> None:
        edits = {
            "registry: paired-profile": "registry: skill-content",
            "tier: advisory-paired": "tier: causal",
            "scope: main": "scope: subagent",
            "    skills: [skills/file-notes]": (
                "    skills: [skills/file-notes]\n    instructions: [boot.md]\n    hooks: [hooks.json]\n"
                "  oracle: {skills: [skills/file-notes], hooks: [hooks.json]}"
            ),
        }
        files = {"boot.md": b"Begin with the skill.\n", "hooks.json": b"{}\n"}
        assert report(study(tmp_path, files, **edits)).passed


class TestInstructions:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (b"One.\nUse File-Notes now.\n", "(line 2) names the skill file-notes"),
            (
                b"A\nB\nPut exactly the asked words into it, one line, please.\n",
                "(line 3) holds eight or more words",
            ),
        ],
    )
    def test_prompt_leak(self, tmp_path: Path, text: bytes, told: str) -> None:
        """S15: an instruction that gives the treatment away, with its line."""
        found = report(study(tmp_path, {f"{TASK}/instruction.md": text}))
        assert told in failed(found)[CheckName.PROMPT_LEAK]

    def test_part_of_a_word_is_no_name(self, tmp_path: Path) -> None:
        found = report(study(tmp_path, {f"{TASK}/instruction.md": b"my-file-notes and file-notes2\n"}))
        assert found.passed


def test_task_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    """S15 S65: refused before a plan is made, since their trials could not lie side by side."""
    folder = study(tmp_path, {})
    shutil.copytree(folder / TASK, folder / "tasks" / "NOTE-amber")
    assert "the same name but for case; rename one." in failed(report(folder))[CheckName.SCHEMA]


class TestScripts:
    def test_oracle_that_fails(self, tmp_path: Path) -> None:
        """S15: a solution that does not pass."""
        found = report(study(tmp_path, {f"{TASK}/solution/solve.sh": b"true\n"}))
        assert "reward 0.0" in failed(found)[CheckName.ORACLE]

    def test_oracle_that_is_absent(self, tmp_path: Path) -> None:
        """S15: a fault, unless it is allowed."""
        folder = study(tmp_path, {})
        (folder / TASK / "solution" / "solve.sh").unlink()
        assert report(folder).status(CheckName.ORACLE) is ABSENT
        assert not report(folder).passed
        assert report(folder, allow_missing_oracle=True).passed

    def test_nothing_passes(self, tmp_path: Path) -> None:
        """S15: a grader that passes everybody."""
        found = report(study(tmp_path, {f"{TASK}/tests/test.sh": b'echo 1 > "$TASK_LOGS/reward.txt"\n'}))
        assert "doing nothing passes" in failed(found)[CheckName.NOTHING]

    def test_nothing_scores_as_the_oracle(self, tmp_path: Path) -> None:
        """S15: a grader that tells nobody apart."""
        files = {f"{TASK}/tests/test.sh": b'echo 0.5 > "$TASK_LOGS/reward.txt"\n'}
        found = failed(report(study(tmp_path, files)))
        assert "scores as the solution does" in found[CheckName.NOTHING]

    @pytest.mark.parametrize(
        "script",
        [
            b'cd "$TASK_DIR"; (cat reward.txt 2>/dev/null || echo 0) > "$TASK_LOGS/reward.txt"',
            b'n=0; grep -rqs PASSED "$TASK_DIR" && n=1; echo $n > "$TASK_LOGS/reward.txt"',
        ],
        ids=["planted reward", "printed verdict"],
    )
    def test_forged(self, tmp_path: Path, script: bytes) -> None:
        """S15 S41: a grader that believes what lies in the tree."""
        found = failed(report(study(tmp_path, {f"{TASK}/tests/test.sh": script})))
        assert "planted reward files" in found[CheckName.FORGED]

    def test_a_grader_that_is_none(self, tmp_path: Path) -> None:
        """S15: no reward at all is a fault of the task."""
        found = failed(report(study(tmp_path, {f"{TASK}/tests/test.sh": b"exit 0\n"})))
        assert "grader_failed" in found[CheckName.NOTHING]


class TestLicences:
    def check(
        self,
        tmp_path: Path,
        declared: Declared,
        *,
        signed_by: Ed25519PrivateKey = KEY,
        at: datetime = ISSUED,
        edits: Mapping[str, str] | None = None,
    ) -> CheckReport:
        """The report of a study with one reviewer."""
        folder = example(tmp_path, tasks=1, edits={"reviewers: []": ONE_REVIEWER, **(edits or {})})
        (folder / "r.json").write_bytes(seal_licence(licence_of(declared), signed_by))
        return check_study(loaded(folder), trusted=[KEY.public_key()], around=surroundings(now=at))

    def test_a_simulated_reviewer_beside_a_simulated_driver(self, tmp_path: Path) -> None:
        """S39: both of one world, signed and live."""
        assert self.check(tmp_path, SIMULATED).status(CheckName.LICENCES) is PASS

    def test_a_simulated_reviewer_beside_a_real_driver(self, tmp_path: Path) -> None:
        """S15 S39: a synthetic licence counts only where everything is simulated."""
        edits = {
            "provider: simulated": "provider: codex",
            "executable: null\n  model": "executable: /bin/true\n  model",
            SETTINGS: "settings: {}",
            "{licence: r.json, executable: null}": "{licence: r.json, executable: /bin/true}",
        }
        told = failed(self.check(tmp_path, SIMULATED, edits=edits))[CheckName.LICENCES]
        assert "counts only where everything is simulated" in told

    def test_a_real_reviewer_beside_a_simulated_driver(self, tmp_path: Path) -> None:
        """S15 S39: nor the other way round."""
        told = failed(self.check(tmp_path, REAL))[CheckName.LICENCES]
        assert "every reviewer is simulated" in told

    def test_a_foreign_signature(self, tmp_path: Path) -> None:
        """S15 S39: only keys of this place are trusted."""
        foreign = Ed25519PrivateKey.from_private_bytes(bytes(32))
        told = failed(self.check(tmp_path, SIMULATED, signed_by=foreign))[CheckName.LICENCES]
        assert "not live (signature)" in told

    def test_an_expired_one(self, tmp_path: Path) -> None:
        """S15 S39: the failing part is named."""
        later = datetime(2026, 9, 1, tzinfo=UTC)
        told = failed(self.check(tmp_path, SIMULATED, at=later))[CheckName.LICENCES]
        assert "not live (expired)" in told

    def test_what_is_no_licence(self, tmp_path: Path) -> None:
        folder = example(tmp_path, tasks=1, edits={"reviewers: []": ONE_REVIEWER})
        (folder / "r.json").write_bytes(b"{}")
        with pytest.raises(StudyError) as caught:
            loaded(folder)
        assert (caught.value.code, caught.value.where) == (StudyCode.LICENCE_REFUSED, "/reviewers/0/licence")
