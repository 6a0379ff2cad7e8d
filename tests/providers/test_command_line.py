"""The shell that every adapter of a real program shares, driven by the smallest adapter there is."""

from __future__ import annotations

import errno
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution import Ended
from skill_effectiveness.providers import (
    CallKind,
    Ending,
    ProviderCode,
    ProviderError,
    WarningCode,
)
from skill_effectiveness.providers.command_line import (
    Aftermath,
    CannotAskError,
    CommandLine,
    Login,
    Told,
    prompt_argument,
)
from skill_effectiveness.providers.events import (
    SessionStarted,
    TurnFailed,
)
from tests.support.fake_program import write_fake
from tests.support.provider_calls import codes, question
from tests.support.small_adapter import DECLARED, GOOD, Place, Small

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestHalfBuiltAdapters:
    @pytest.mark.parametrize("forgotten", DECLARED)
    def test_every_attribute_must_be_declared(self, forgotten: str) -> None:
        """P13: an adapter that does not say what it is is no class at all."""
        declared = {name: value for name, value in DECLARED.items() if name != forgotten}

        with pytest.raises(TypeError, match=f"does not declare {forgotten}"):
            type("Half", (CommandLine,), {**declared, "to_judge": Small.to_judge})

    def test_a_declared_kind_needs_its_hook(self) -> None:
        """P13: it cannot claim a call that it does not hold, nor hide one."""
        with pytest.raises(TypeError, match=r"declares .*judge.* and holds \[\]"):
            type("Half", (CommandLine,), DECLARED)
        with pytest.raises(TypeError, match="declares"):
            type("Half", (CommandLine,), {**DECLARED, "to_judge": Small.to_judge, "to_work": Small.to_work})

    @pytest.mark.parametrize("kind", [CallKind.READ, CallKind.WORK])
    def test_a_kind_that_is_not_held_starts_nothing(self, place: Place, kind: CallKind) -> None:
        """P13: refused by a typed error."""
        judging: Any = type("Judging", (CommandLine,), {**DECLARED, "to_judge": Small.to_judge})
        path = write_fake(
            place.tmp_path / "program", "open(folder + '/ran', 'w')", folder=str(place.tmp_path)
        )

        with pytest.raises(ProviderError) as caught:
            place.ask(judging.at(path, around=place.around), kind)
        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED
        assert not (place.tmp_path / "ran").exists()


class TestSessions:
    @pytest.mark.parametrize("kind", CallKind)
    def test_the_environment_is_what_was_declared(self, place: Place, kind: CallKind) -> None:
        """P3: folders, fixed settings, what the call sets, own keys; the recorded names are the real ones."""
        tell = (
            "given = open('/proc/self/environ').read().rstrip('\\0').split('\\0')\n"
            "json.dump(dict(one.split('=', 1) for one in given), open(folder + '/told', 'w'))\n"
        )
        small = place.small(tell + GOOD)

        assert place.ask(small, kind).ending is Ending.SUCCESS
        told = json.loads((place.tmp_path / "told").read_text())
        assert set(told) == {*small.environment_keys(place.around.environ), "SKILL_EFFECTIVENESS_CALL"}
        session = told["HOME"].removesuffix("/home")
        assert session.startswith(place.around.environ["TMPDIR"] + "/skill-effectiveness-")
        assert {
            name: told[name] for name in sorted(told) if name.startswith("SMALL") or name == "TMPDIR"
        } == {
            "SMALL_API_KEY": "own-key",
            "SMALL_DATA": f"{session}/data",
            "SMALL_HOME": f"{session}/config/small",
            "SMALL_MODE": kind.value,
            "SMALL_SETTING": '{"on": 1}',
            "TMPDIR": session + "/tmp",  # noqa: S108 - of the session
        }

    @pytest.mark.parametrize("kind", CallKind)
    def test_the_prompt_is_on_stdin_and_that_is_closed(self, place: Place, kind: CallKind) -> None:
        """F7 P4: a program that reads to the end finds it."""
        outcome = place.ask(place.small("say({'answer': sys.stdin.read()})"), kind)

        assert outcome.answer == {"judge": "Which is better?", "read": "Look.", "work": "Mend."}[kind.value]

    def test_logins_are_linked_where_they_are_wanted(self, place: Place) -> None:
        """P3: files and folders, each in its place; one that is missing is no fault."""
        real = place.tmp_path / "real"
        (real / "oauth").mkdir(parents=True)
        (real / "auth.json").write_text("login")
        (real / "oauth" / "token").write_text("token")

        class WithLogin(Small):
            linked = (
                Login(real / "auth.json", "auth.json of REAL", ("data", "small")),
                Login(real / "oauth", "oauth of REAL", folder=True),
                Login(real / "missing", "missing of REAL"),
            )

        body = (
            "seen = os.environ['SMALL_DATA'] + '/small/auth.json'\n"
            "token = os.path.dirname(os.environ['SMALL_HOME']) + '/oauth/token'\n"
            "open(token, 'w').write('renewed')\n"
            "say({'answer': open(seen).read()})"
        )
        path = write_fake(place.tmp_path / "program", body)
        provider = WithLogin.at(path, around=place.around)
        provider.check_login(place.around)

        assert place.ask(provider).answer == "login"
        assert (real / "oauth" / "token").read_text() == "renewed"
        assert (real / "auth.json").read_text() == "login"

    @pytest.mark.parametrize(
        ("folder", "told"), [(True, "is not a folder"), (False, "is not a regular file")]
    )
    def test_a_login_of_another_kind_is_told_before_anything_is_spent(
        self, place: Place, *, folder: bool, told: str
    ) -> None:
        """P3: and by the name that people know, never by its path."""
        source = place.tmp_path / "login"
        source.touch() if folder else source.mkdir()

        class WithLogin(Small):
            linked = (Login(source, "login of REAL", folder=folder),)

        provider = WithLogin.at(write_fake(place.tmp_path / "program", GOOD), around=place.around)
        with pytest.raises(FileError, match=f"The login file login of REAL {told}") as caught:
            provider.check_login(place.around)
        assert caught.value.code is FileCode.NOT_REGULAR
        assert codes(place.ask(provider)) == ["session_unavailable"]


class TestRecordings:
    def test_everything_said_is_kept(self, place: Place) -> None:
        """P5 F18 F20: byte for byte, lone surrogates and halves of characters too."""
        body = GOOD + "raw(b'{\"answer\":\"\\\\ud800\"}\\r\\n\\xc3'); sys.stderr.buffer.write(b'\\xff')"
        outcome = place.ask(place.small(body))

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.recording is not None
        assert outcome.recording.stdout == b'{"answer": "yes"}\n{"answer":"\\ud800"}\r\n\xc3'
        assert outcome.recording.stderr == b"\xff"
        assert outcome.recording.export is None

    def test_a_call_that_was_not_started_has_none(self, place: Place) -> None:
        """P6: nor a sandbox."""
        small = place.small()
        small.executable.path.unlink()
        outcome = place.ask(small)

        assert (outcome.ending, outcome.recording, outcome.sandbox) == (Ending.UNSTARTABLE, None, None)

    def test_a_worker_may_say_more_than_a_judge(self, place: Place) -> None:
        """F17 P5: a line of two megabytes is read in one, and refused by name in the other."""
        small = place.small("prompt = sys.stdin.buffer.read(); say({'answer': 'y' * 2_000_000})")

        assert place.ask(small, CallKind.WORK).ending is Ending.SUCCESS
        assert place.ask(small, CallKind.JUDGE).limit == "line_bytes"
        assert place.ask(small, CallKind.READ).limit == "line_bytes"


class TestHooks:
    def test_what_cannot_be_asked_starts_nothing(self, place: Place) -> None:
        """P6: unstartable, with the adapter's reason."""
        small = place.small("open(folder + '/ran', 'w')")
        small.cannot = CannotAskError(WarningCode.REQUISITE_MISSING, "rg is not on PATH")
        outcome = place.ask(small)

        assert outcome.ending is Ending.UNSTARTABLE
        assert [(one.code.value, one.text) for one in outcome.warnings] == [
            ("requisite_missing", "rg is not on PATH")
        ]
        assert not (place.tmp_path / "ran").exists()

    @pytest.mark.parametrize("prompt", ["x" * 122_879, "é" * 61_439])
    def test_a_prompt_below_120_kib_is_an_argument(self, prompt: str) -> None:
        """P4: in bytes."""
        assert prompt_argument(prompt) == prompt

    @pytest.mark.parametrize("prompt", ["x" * 122_880, "é" * 61_440, "a\0b"])
    def test_another_is_none(self, prompt: str) -> None:
        """P4: nor one that an argument cannot hold."""
        with pytest.raises(CannotAskError) as caught:
            prompt_argument(prompt)
        assert caught.value.code is WarningCode.PROMPT_TOO_LONG
        assert "x" not in caught.value.sentence.replace("bytes", "")


class TestAfterwards:
    def test_what_is_told_afterwards_counts_as_told_at_the_end(self, place: Place) -> None:
        """P6 P8: a failure that only stderr shows is the provider's error all the same."""
        small = place.small(GOOD)
        small.after = lambda _: Told((TurnFailed("late"),), export=b"export")
        outcome = place.ask(small)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert isinstance(outcome.events[-1], TurnFailed)
        assert outcome.recording is not None
        assert outcome.recording.export == b"export"

    def test_a_further_child_runs_in_the_same_session(self, place: Place) -> None:
        """P10 P3: the same environment and folder, nothing on its stdin, its output as it came."""
        seen: list[Aftermath] = []

        def after(after: Aftermath) -> Told:
            seen.append(after)
            output = after.run([after.asked.argv[0], "export"])
            assert output is not None
            return Told(export=output.stdout)

        small = place.small(
            "if sys.argv[1] == 'export':\n"
            "    told = [os.environ['SMALL_DATA'], os.getcwd(), sys.stdin.read()]\n"
            "    raw(json.dumps(told).encode() + b'\\n\\nhalf')\n"
            "    sys.exit(0)\n" + GOOD
        )
        small.after = after
        outcome = place.ask(small, CallKind.WORK)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.recording is not None
        told, end = (outcome.recording.export or b"").split(b"\n", 1)
        assert end == b"\nhalf"
        assert json.loads(told) == [str(seen[0].session.folders.data), str(place.folder), ""]
        assert seen[0].process.exit_code == 0
        assert seen[0].events[0] == SessionStarted("s-1")

    def test_a_further_child_has_the_rest_of_the_calls_time(self, place: Place) -> None:
        """P6 P10: it cannot make a call longer, and what it started is gone."""
        ends: list[Ended] = []

        def after(after: Aftermath) -> Told:
            output = after.run([after.asked.argv[0], "export"])
            ends.append(output.process.ended if output else Ended.UNSTARTABLE)
            return Told()

        small = place.small("if sys.argv[1] == 'export':\n    os.fork(); time.sleep(60)\n" + GOOD)
        small.after = after
        began = time.monotonic()
        outcome = place.ask(small, seconds=1)

        assert ends == [Ended.WALL_TIMEOUT]
        assert outcome.ending is Ending.SUCCESS
        assert time.monotonic() - began < 4

    @pytest.mark.parametrize("why", ["timeout", "cancelled"])
    def test_after_a_call_that_is_over_nothing_more_is_started(self, place: Place, why: str) -> None:
        """P6: neither when its time is over nor when we stopped it."""
        given: list[object] = []

        def after(after: Aftermath) -> Told:
            given.append(after.run([after.asked.argv[0], "export"]))
            return Told()

        small = place.small("time.sleep(60)")
        small.after = after
        seconds, cancelled = (0.2, False) if why == "timeout" else (20.0, True)
        outcome = small.judge(question(seconds=seconds), around=place.around, cancelled=lambda: cancelled)

        assert outcome.ending.value == why
        assert given == [None]

    def test_what_a_further_child_leaves_is_killed_and_told(self, place: Place) -> None:
        """P10: as what the program itself leaves."""

        def after(after: Aftermath) -> Told:
            after.run([after.asked.argv[0], "export"])
            return Told()

        leave = (
            "if sys.argv[1] == 'export':\n"
            "    if os.fork() == 0:\n"
            "        os.setsid(); os.closerange(0, 3); time.sleep(60)\n"
            "    sys.exit(0)\n"
        )
        small = place.small(leave + GOOD)
        small.after = after
        outcome = place.ask(small)

        assert (outcome.ending, outcome.survivors) == (Ending.SUCCESS, 1)
        assert codes(outcome) == ["processes_left"]

    def test_a_record_that_cannot_be_read_does_not_unmake_the_call(self, place: Place) -> None:
        """P6 P8: it was made and paid for, so it is not `unstartable`."""

        def after(_: Aftermath) -> Told:
            raise FileError(Fault(FileCode.NOT_REGULAR, "wire.jsonl", "wire.jsonl is a folder."))

        small = place.small()
        small.after = after
        outcome = place.ask(small)

        assert outcome.ending is Ending.STREAM_INVALID
        assert outcome.exit_code == 0
        assert outcome.recording is not None


def test_a_session_that_could_not_be_removed_keeps_its_answer(place: Place) -> None:
    """P3: it was paid for; the record says that something stayed."""
    stuck = Injection("rmdir", errno.EIO, nth=0, about=lambda path: path.endswith("/work"))
    small = place.small()
    around = replace(place.around, fs=FaultFs(place.around.fs, stuck))
    outcome = small.judge(question(), around=around)

    assert (outcome.ending, codes(outcome)) == (Ending.SUCCESS, ["session_left"])
