"""The four blocks and the conditions, as a library."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill_effectiveness.acceptance import loop as room
from skill_effectiveness.acceptance.loop import (
    BlockResult,
    LoopRefusedError,
    Measurement,
    Outcome,
    RunContext,
    StateView,
    agent,
    checks_pass,
    execute,
    file_exists,
    loop,
    run,
    seq,
    verdict_passed,
)
from skill_effectiveness.acceptance.loop.tree_files import PathRefusedError
from tests.support.loops import LoopRepository

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.loop import Agent, Block, RunResult

WRITE = "pathlib.Path('value').write_text(str(call))\n"


def fake(repository: LoopRepository, name: str, body: str, **others: Any) -> Agent:  # noqa: ANN401 - as agent takes
    command, *args = repository.agent(name, body)
    return agent(name, command=command, args=args, **others)


def carry_out(repository: LoopRepository, workflow: Block, **others: Any) -> RunResult:  # noqa: ANN401 - as execute takes
    repository.seen.clear()
    repository.git("checkout", "-q", "-f", ".")
    repository.git("clean", "-q", "-f", "-d")
    return execute(
        workflow,
        task="Do it.",
        worktree=repository.root,
        around=repository.around,
        observer=repository.seen.append,
        **others,
    )


def test_the_public_names() -> None:
    """L84 L63: what is exported, and nothing by accident."""
    assert sorted(room.__all__) == [
        "Agent", "Block", "BlockResult", "CommandMeasurement", "Condition", "LoopRefusedError", "Measurement",
        "Outcome", "RunContext", "RunResult", "StateView", "agent", "checks_pass", "execute", "file_exists",
        "loop", "run", "seq", "verdict_passed",
    ]  # fmt: skip


def _answer(given: Measurement, _view: StateView) -> Measurement:
    return given


class TestWorkflows:
    def test_the_review_loop(self, repository: LoopRepository) -> None:
        """L45 L63: coder and critic, until the verdict of the last step passes; blocks leave their events."""
        coder = fake(repository, "coder", WRITE)
        critic = fake(repository, "critic", "verdict('pass' if call == 2 else 'fail', feedback='again')\n")
        result = carry_out(
            repository, loop(body=seq([run(coder), run(critic)]), until=verdict_passed(), max=4)
        )
        assert result.ok
        assert (result.outcome, result.attempts) == (Outcome.PASSED, 2)
        assert (repository.root / "value").read_text() == "2"
        assert repository.prompt("coder", 2).splitlines()[-2] == "again"
        assert "Write your verdict" in repository.prompt("critic")
        assert "Write your verdict" not in repository.prompt("coder")
        blocks = [
            (event["type"][6:], event["kind"], event["name"], event["stepIndex"])
            for event in repository.of("block_started", "block_finished")
        ]
        assert blocks[:6] == [
            ("started", "loop", "loop", None),
            ("started", "seq", "seq", None),
            ("started", "run", "coder", 1),
            ("finished", "run", "coder", 1),
            ("started", "run", "critic", 2),
            ("finished", "run", "critic", 2),
        ]
        assert all("ok" in event for event in repository.of("block_finished"))

    def test_one_attempt_without_a_loop(self, repository: LoopRepository) -> None:
        """L59: every step exited with 0 and handed back valid outputs, and no more is said."""
        assert carry_out(repository, run(fake(repository, "a", WRITE))).ok
        result = carry_out(
            repository, seq([run(fake(repository, "b", "sys.exit(1)\n")), run(fake(repository, "c", ""))])
        )
        assert (result.ok, result.outcome, result.attempts) == (False, Outcome.EXHAUSTED, 1)
        assert repository.calls("c") == 0

    def test_blocks_nest(self, repository: LoopRepository) -> None:
        """L76 L40: a nested loop has a history of its own; steps are numbered through."""
        inner = loop(body=run(fake(repository, "inner", "")), until=file_exists("never"), max=5)
        outer = loop(
            body=seq([run(fake(repository, "outer", WRITE)), inner]), until=file_exists("never"), max=2
        )
        result = carry_out(repository, outer)
        assert (result.outcome, result.attempts) == (Outcome.EXHAUSTED, 2)
        assert repository.calls("inner") == 4, "each inner loop stood still after two attempts"
        steps = [event["stepIndex"] for event in repository.of("block_started") if event["kind"] == "run"]
        assert steps == [1, 2, 3, 4, 5, 6]
        reasons = [event["reason"] for event in repository.of("attempt_finished")]
        assert reasons.count("inner_loop_not_passed") == 2

    def test_loops_in_a_sequence(self, repository: LoopRepository) -> None:
        """L22: the attempts of both, and the first that does not pass ends it."""
        first = loop(body=run(fake(repository, "a", WRITE)), until=checks_pass(["grep -q 2 value"]), max=3)
        second = loop(body=run(fake(repository, "b", "")), until=file_exists("never"), max=2)
        result = carry_out(repository, seq([first, second]))
        assert (result.outcome, result.attempts) == (Outcome.LIMIT_CYCLE, 4)

    def test_prompts(self, repository: LoopRepository) -> None:
        """L34: a text or a function of the context; places and the agent's own context are always told."""
        one = run(
            fake(repository, "a", "", context="STATIC"),
            prompt=lambda ctx: f"Attempt {ctx.attempt}: {ctx.task}",
        )
        two = run(fake(repository, "b", ""), prompt="Other.")
        assert carry_out(repository, seq([one, two])).ok
        assert repository.prompt("a").startswith(
            "## Task\nAttempt 1: Do it.\n\n## Context\nSTATIC\n\n## Places"
        )
        assert repository.prompt("b").startswith("## Task\nOther.\n\n## Places")

    def test_wiring(self, repository: LoopRepository) -> None:
        """L35 L42: explicit inputs replace the default; an absent one fails before the agent starts."""
        designer = run(fake(repository, "a", "(out / 'design.md').write_text('DESIGN')\n"))
        other = run(fake(repository, "b", "(out / 'noise').write_text('x')\n"))
        reading = (
            "names = str([each.name for each in inputs.iterdir()])\n"
            "(base / 'seen').write_text(names + (inputs / 'spec.md').read_text())\n"
        )
        reader = run(fake(repository, "c", reading), inputs={"spec.md": "steps/1/out/design.md"})
        assert carry_out(repository, seq([designer, other, reader])).ok
        assert (repository.base / "seen").read_text() == "['spec.md']DESIGN"
        lost = run(fake(repository, "d", ""), inputs={"x": "steps/9/out/y"})
        assert not carry_out(repository, seq([designer, lost])).ok
        assert repository.calls("d") == 0
        assert repository.of("attempt_finished")[0]["reason"] == "input_unavailable"

    def test_blocks_of_others(self, repository: LoopRepository) -> None:
        """L63: anything with a kind and an execute stands beside ours."""

        class Touch:
            kind = "touch"

            def execute(self, ctx: RunContext) -> BlockResult:
                (ctx.worktree / "touched").write_text(ctx.task)
                return BlockResult(ok=True)

        class Broken:
            kind = "broken"

            def execute(self, ctx: RunContext) -> BlockResult:
                raise RuntimeError(str(ctx))

        class Refusing:
            kind = "refusing"

            def execute(self, ctx: RunContext) -> BlockResult:
                del ctx
                return BlockResult(ok=False)

        result = carry_out(repository, loop(body=Touch(), until=file_exists("touched"), max=1))
        assert result.ok
        assert [event["name"] for event in repository.of("block_started")] == ["loop", "touch"]
        assert carry_out(repository, Broken()).reason == "aborted: a block of kind broken raised RuntimeError"
        assert carry_out(repository, Refusing()).outcome is Outcome.EXHAUSTED

    def test_a_step_after_a_loop(self, repository: LoopRepository) -> None:
        """L71 L78: it was measured, so a failure there is none of this tool's."""
        good = loop(body=run(fake(repository, "a", "")), until=file_exists("value"), max=1)
        result = carry_out(repository, seq([good, run(fake(repository, "b", "sys.exit(3)\n"))]))
        assert (result.outcome, result.attempts) == (Outcome.EXHAUSTED, 1)
        assert "agent_failed" in result.reason

    def test_measurements_that_are_none(self, repository: LoopRepository) -> None:
        """L46 L78: "no" is true in Python, and passes nothing."""
        for answer in (
            Measurement("no"),  # type: ignore[arg-type]
            Measurement(True, 1),  # type: ignore[arg-type]  # noqa: FBT003 - as it is declared
            Measurement(False, "w", "\udc80"),  # noqa: FBT003 - as it is declared
        ):
            asked = loop(body=run(fake(repository, "a", "")), until=partial(_answer, answer), max=1)
            assert carry_out(repository, asked).outcome is Outcome.ABORTED

    def test_refusals(self, repository: LoopRepository) -> None:
        """L1 L14: nothing runs."""
        for make in (
            lambda: agent("a", command="x", args=[]),
            lambda: agent(" ", command="x", args=["{{prompt}}"]),
            lambda: seq([]),
            lambda: loop(body=seq([run(fake(repository, "a", ""))]), until=verdict_passed(), max=0),
            lambda: loop(body=seq([run(fake(repository, "a", ""))]), until=verdict_passed(), max=True),
            lambda: execute(run(fake(repository, "a", "")), task=" ", worktree=repository.root),
            lambda: execute(run(fake(repository, "a", "")), task="\udc80", worktree=repository.root),
            lambda: execute(
                run(fake(repository, "a", "")), task="t", worktree=repository.root, timeout_seconds=0
            ),
        ):
            with pytest.raises(LoopRefusedError):
                make()
        repository.write("value", "dirty")
        with pytest.raises(LoopRefusedError, match=r"^git working tree is dirty"):
            execute(
                run(fake(repository, "a", "")), task="t", worktree=repository.root, around=repository.around
            )
        assert repository.calls("a") == 0


class TestConditions:
    def measured(self, repository: LoopRepository, condition: Any, worker: str = WRITE) -> RunResult:  # noqa: ANN401 - any callable
        return carry_out(repository, loop(body=run(fake(repository, "w", worker)), until=condition, max=1))

    def test_checks(self, repository: LoopRepository) -> None:
        """L46 L47: every command has to exit with 0, and there has to be one."""
        assert self.measured(repository, checks_pass(["true", ["test", "-f", "value"]])).ok
        assert not self.measured(repository, checks_pass(["true", "false", "true"])).ok
        assert len(repository.of("check_result")) == 3
        assert not self.measured(repository, checks_pass([])).ok

    def test_files(self, repository: LoopRepository, tmp_path: Path) -> None:
        """L48 L49 L51: a regular file, not outside by a link; a path that leaves is refused."""
        worker = (
            "pathlib.Path('a').write_text('x')\npathlib.Path('d').mkdir(exist_ok=True)\n"
            f"os.symlink('/etc/hostname', 'out')\n"
            f"os.symlink('a', 'in')\nos.symlink({str(tmp_path)!r}, 'up')\n"
        )
        assert self.measured(repository, file_exists("a"), worker).ok
        assert self.measured(repository, file_exists("in"), worker).ok
        for path in ("d", "out", "up/loop/w.py", "nothing"):
            assert not self.measured(repository, file_exists(path), worker).ok
        for path in ("../x", "/etc/hostname", ".git/config", "a/../b", ""):
            with pytest.raises(PathRefusedError):
                file_exists(path)

    def test_reading(self, repository: LoopRepository) -> None:
        """L51: files of the tree and artifacts of steps; nothing outside, nothing of git."""
        seen: dict[str, Any] = {}

        def look(view: StateView) -> bool:
            seen["file"] = view.read_file("value")
            seen["absent"] = view.read_file("absent")
            seen["link"] = view.read_file("out")
            seen["bytes"] = view.read_file("bytes")
            seen["exists"] = (
                view.exists("value"),
                view.exists("absent"),
                view.exists("out"),
                view.exists("sub"),
            )
            seen["out"] = (
                view.step_out(1, "a/b"),
                view.step_out(1, "c"),
                view.step_out(2, "a/b"),
                view.step_out(0, "a"),
            )
            ran = view.run_command(["sh", "-c", "echo said; exit 3"])
            seen["ran"] = (ran.exit_code, ran.output)
            for path in ("../x", "/etc/passwd", ".git/config", "sub/.GIT/x"):
                with pytest.raises(PathRefusedError):
                    view.read_file(path)
                with pytest.raises(PathRefusedError):
                    view.exists(path)
            for path in ("../in/x", "/etc/passwd", ""):
                with pytest.raises(PathRefusedError):
                    view.step_out(1, path)
            return True

        worker = (
            WRITE + "(out / 'a').mkdir()\n(out / 'a' / 'b').write_text('artifact')\n"
            "os.symlink('/etc/hostname', 'out')\nos.mkdir('sub')\n"
            "pathlib.Path('bytes').write_bytes(b'\\xff')\n"
        )
        assert self.measured(repository, look, worker).ok
        assert seen == {
            "file": "1",
            "absent": None,
            "link": None,
            "bytes": None,
            "exists": (True, False, False, True),
            "out": ("artifact", None, None, None),
            "ran": (3, "said\n"),
        }

    def test_answers(self, repository: LoopRepository) -> None:
        """L46: a bool or a measurement; anything else, and any error, is no pass and no failure."""
        assert self.measured(repository, lambda _view: Measurement(passed=True)).ok
        assert self.measured(repository, lambda _view: False).outcome is Outcome.EXHAUSTED
        assert self.measured(repository, lambda _view: "yes").outcome is Outcome.ABORTED
        assert (
            self.measured(repository, lambda _view: 1 / 0).reason
            == "aborted: a condition raised ZeroDivisionError"
        )

    def test_a_swallowed_failure_still_aborts(self, repository: LoopRepository) -> None:
        """L60: a command that cannot be started is not passed over by whoever asked for it."""

        def careless(view: StateView) -> bool:
            try:
                view.run_command(["no-such-command"])
            except Exception:  # noqa: BLE001 - what a careless condition does
                return True
            return False

        assert self.measured(repository, careless).outcome is Outcome.ABORTED

    def test_a_command_that_changes_the_repository(self, repository: LoopRepository) -> None:
        """L52: fails, whatever it measured."""
        result = self.measured(repository, checks_pass([["sh", "-c", "echo changed > value"]]))
        assert result.outcome is Outcome.EXHAUSTED
        assert repository.of("attempt_finished")[0]["reason"] == "repository_changed"

    def test_only_the_last_step_of_the_iteration(self, repository: LoopRepository) -> None:
        """L50: an earlier step's verdict is no verdict, nor an earlier iteration's."""
        first = run(fake(repository, "a", "verdict()\n"))
        last = run(fake(repository, "b", WRITE + "verdict() if call == 9 else None\n"))
        result = carry_out(repository, loop(body=seq([first, last]), until=verdict_passed(), max=2))
        assert not result.ok

    def test_another_name(self, repository: LoopRepository) -> None:
        """L45: the file may be called otherwise."""
        worker = "(out / 'j').mkdir()\n(out / 'j' / 'v.json').write_text('{\"verdict\":\"pass\"}')\n"
        assert self.measured(repository, verdict_passed("j/v.json"), worker).ok


SECRET = "SAID-BY-THE-AGENT"


class TestStateViews:
    def test_its_members(self) -> None:
        """L84: five, and none that leads to output, results or the run."""
        members = {name for name, _ in inspect.getmembers(StateView) if not name.startswith("_")}
        assert members == {"worktree", "read_file", "exists", "run_command", "step_out"}

    def test_nothing_said_can_be_reached(self, repository: LoopRepository) -> None:
        """L84 F49: walking every object that hangs on a view finds no word of an agent."""
        found: list[object] = []

        def walk(view: StateView) -> bool:
            found.extend(reachable(view))
            return True

        worker = f"print({SECRET!r})\nprint({SECRET!r}, file=sys.stderr)\n" + WRITE
        assert carry_out(repository, loop(body=run(fake(repository, "w", worker)), until=walk, max=1)).ok
        assert len(found) > 20
        told = [each for each in found if isinstance(each, str | bytes)]
        assert not any(
            SECRET in (each if isinstance(each, str) else each.decode(errors="replace")) for each in told
        )
        assert not any(
            type(each).__name__ in {"Observed", "AgentExited", "RunResult", "Workplace"} for each in found
        )

    @pytest.mark.slow
    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.binary(max_size=300), st.binary(max_size=300))
    def test_output_never_decides(
        self, tmp_path_factory: pytest.TempPathFactory, stdout: bytes, stderr: bytes
    ) -> None:
        """L72: whatever bytes an agent prints, the outcome is the same."""
        repository = LoopRepository(tmp_path_factory.mktemp("said") / "loop")
        worker = f"sys.stdout.buffer.write({stdout!r})\nsys.stderr.buffer.write({stderr!r})\n" + WRITE
        body = run(fake(repository, "w", worker))
        for condition, outcome in (
            (file_exists("value"), Outcome.PASSED),
            (file_exists("no"), Outcome.EXHAUSTED),
        ):
            assert carry_out(repository, loop(body=body, until=condition, max=1)).outcome is outcome


def reachable(start: object) -> list[object]:
    """Every object that attributes, slots and containers lead to, modules and classes apart."""
    seen: dict[int, object] = {}
    waiting = [start]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or inspect.ismodule(each) or inspect.isroutine(each):
            continue
        seen[id(each)] = each
        waiting += list(getattr(each, "__dict__", {}).values())
        slots = [name for base in type(each).__mro__ for name in getattr(base, "__slots__", ())]
        waiting += [getattr(each, name) for name in slots if hasattr(each, name)]
        if dataclasses.is_dataclass(each):
            waiting += [getattr(each, field.name, None) for field in dataclasses.fields(each)]
        if isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += list(each)
    return list(seen.values())
