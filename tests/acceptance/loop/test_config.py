"""The configuration: what it may say, how defaults are merged, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skill_effectiveness.acceptance.loop.config import Configuration, read_config, with_context
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.words import LimitCycle
from skill_effectiveness.evidence.fsops import RealFs

AGENT = {"command": "codex", "args": ["exec", "{{prompt}}"]}
OTHER = {"command": "claude", "args": ["-p", "{{prompt}}"]}
JOB = {"name": "a", "task": "t", "worker": AGENT, "checks": ["true"]}


def read(document: object) -> Configuration:
    return read_config(document if isinstance(document, bytes) else json.dumps(document).encode())


def refused(document: object) -> str:
    with pytest.raises(LoopRefusedError) as caught:
        read(document)
    return str(caught.value)


def listed(*jobs: dict[str, Any], **others: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"repo": "/r", "jobs": list(jobs)} | others


def test_the_example_of_the_contract() -> None:
    """L6 L7: defaults first, job keys win."""
    found = read(
        {
            "repo": "/absolute/path/to/app",
            "defaults": {"worker": AGENT, "checks": ["python -m pytest -q"], "maxAttempts": 4},
            "jobs": [
                {"name": "expiry", "task": "Reject.", "constraints": ["Keep the error format"]},
                {"name": "docs", "task": "Describe.", "checks": [], "reviewer": OTHER},
            ],
        }
    )
    first, second = found.jobs
    assert found.repo == Path("/absolute/path/to/app")
    assert first.checks == (("python", "-m", "pytest", "-q"),)
    assert (first.keys.max_attempts, first.reviewer) == (4, None)
    assert second.checks == ()
    assert second.reviewer is not None
    assert second.reviewer.command == "claude"


def test_absent_keys() -> None:
    """L11: the values that stand for what is absent."""
    keys = read(listed(JOB)).jobs[0].keys
    assert (keys.max_attempts, keys.timeout_seconds, keys.isolate, keys.verbose) == (3, 900, True, False)
    assert (keys.clean_checks, keys.bind_verdict, keys.limit_cycle) == (True, False, LimitCycle.ON)
    assert (keys.context, keys.constraints, keys.protected_paths, keys.worker.pass_env) == ((), (), (), ())


def test_a_shallow_merge() -> None:
    """L8: the worker of a job replaces the default whole."""
    defaults = {"worker": AGENT | {"passEnv": ["X"]}, "checks": ["true"]}
    found = read(listed({"name": "a", "task": "t", "worker": OTHER}, defaults=defaults))
    assert (found.jobs[0].keys.worker.command, found.jobs[0].keys.worker.pass_env) == ("claude", ())


def test_a_flat_configuration() -> None:
    """L9 L10: one job named `default`; keys of a job beside `jobs` are an error."""
    flat = {name: value for name, value in JOB.items() if name != "name"}
    assert [job.name for job in read({"repo": "/r"} | flat).jobs] == ["default"]
    assert [job.name for job in read({"repo": "/r"} | JOB).jobs] == ["a"]
    merged = {"repo": "/r", "defaults": {"checks": ["true"]}, "task": "t", "worker": AGENT}
    assert [job.name for job in read(merged).jobs] == ["default"]
    assert refused(listed(JOB, task="x")).startswith("config: /task ")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (b"{", "config: "),
        (b"[]", "config: "),
        (b'{"repo":"/r","repo":"/r","jobs":[]}', "config: /repo "),
        ({"jobs": [JOB]}, "config: /repo "),
        (listed(), "config: /jobs "),
        (listed(JOB, extra=1), "config: /extra "),
        (listed(JOB, defaults={"maxAttempt": 1}), "config: /defaults/maxAttempt "),
        (listed(JOB, defaults=None), "config: /defaults "),
        (listed(JOB | {"extra": 1}), "config: /jobs/0/extra "),
        (listed(JOB | {"max_attempts": 1}), "config: /jobs/0/max_attempts "),
        (listed(JOB | {"maxAttempts": 0}), "config: /jobs/0/maxAttempts "),
        (listed(JOB | {"maxAttempts": 2.0}), "config: /jobs/0/maxAttempts "),
        (listed(JOB | {"maxAttempts": True}), "config: /jobs/0/maxAttempts "),
        (listed(JOB | {"timeoutSeconds": "9"}), "config: /jobs/0/timeoutSeconds "),
        (listed(JOB | {"isolate": 1}), "config: /jobs/0/isolate "),
        (listed(JOB | {"reviewer": None}), "config: /jobs/0/reviewer "),
        (listed(JOB | {"worker": {"command": "x"}}), "config: /jobs/0/worker/args "),
        (listed(JOB | {"worker": AGENT | {"env": {}}}), "config: /jobs/0/worker/env "),
        (listed(JOB | {"checks": [[]]}), "config: /jobs/0/checks/0 "),
        (listed(JOB | {"limitCycle": "maybe"}), "config: /jobs/0/limitCycle "),
        (listed(JOB | {"task": " "}), "config: /jobs/0/task "),
        (listed(JOB | {"name": "../x"}), "config: /jobs/0/name "),
        (listed({"task": "t", "worker": AGENT, "checks": ["true"]}), "config: /jobs/0/name "),
        (listed(JOB, JOB), "config: /jobs/1/name "),
        (listed(JOB, repo="relative"), "config: /repo "),
    ],
)
def test_what_is_no_configuration(document: object, told: str) -> None:
    """L6 L11 L12: the pointer and the reason."""
    assert refused(document).startswith(told)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"checks": []}, "nothing decides"),
        ({"worker": AGENT | {"args": ["exec"]}}, "exactly one argument"),
        ({"worker": AGENT | {"args": ["{{prompt}}", "{{prompt}}"]}}, "exactly one argument"),
        ({"reviewer": AGENT | {"args": ["x={{prompt}}"]}}, "exactly one argument"),
        ({"checks": ["a | b"]}, "not read by a shell"),
        ({"task": "a\0b"}, "NUL"),
        ({"checks": ["a\0b"]}, "NUL"),
        ({"protectedPaths": ["../x"]}, "protected path ../x: "),
        ({"protectedPaths": ["/etc"]}, "protected path /etc: "),
        ({"protectedPaths": [".git/config"]}, "protected path .git/config: "),
    ],
)
def test_what_is_no_job(keys: dict[str, Any], reason: str) -> None:
    """L13 L14 L16: the job and the reason."""
    told = refused(listed(JOB | keys))
    assert told.startswith("job a: ")
    assert reason in told


def test_an_array_is_taken_as_it_is() -> None:
    """L16: operators are words there."""
    assert read(listed(JOB | {"checks": [["sh", "-c", "a | b"]]})).jobs[0].checks == (("sh", "-c", "a | b"),)


class TestContext:
    def loaded(self, top: Path, path: str) -> str:
        found = with_context(read(listed(JOB | {"context": [path]})), RealFs(), top)
        return found.jobs[0].context[0][1]

    def refused(self, top: Path, path: str) -> str:
        with pytest.raises(LoopRefusedError) as caught:
            self.loaded(top, path)
        return str(caught.value)

    def test_whole_up_to_the_limit(self, tmp_path: Path) -> None:
        """L17 L18: 61,440 bytes and not one more; never truncated."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.md").write_text("x" * 61_440)
        assert self.loaded(tmp_path, "docs/a.md") == "x" * 61_440
        (tmp_path / "docs" / "a.md").write_text("x" * 61_441)
        assert self.refused(tmp_path, "docs/a.md") == "context docs/a.md: is longer than 61440 bytes"

    def test_what_it_may_not_be(self, tmp_path: Path) -> None:
        """L18: absent, no UTF-8, a link, outside."""
        top = tmp_path / "top"
        (top / "folder").mkdir(parents=True)
        (top / "bytes").write_bytes(b"\xff")
        (top / "nul").write_bytes(b"a\0b")
        (tmp_path / "secret").write_text("s")
        (top / "out").symlink_to(tmp_path / "secret")
        (top / "in").symlink_to("bytes")
        (top / "linked").symlink_to("folder")
        (top / "folder" / "a").write_text("a")
        for path, reason in {
            "nothing": "does not exist",
            "bytes": "is not UTF-8",
            "nul": "NUL",
            "folder": "is not a regular file",
            "in": "symbolic link",
            "linked/a": "symbolic link",
            "out": "does not exist in the repository",
            "../secret": "relative",
            "/etc/passwd": "relative",
            ".git/config": ".git",
        }.items():
            told = self.refused(top, path)
            assert told.startswith(f"context {path}: ")
            assert reason in told
