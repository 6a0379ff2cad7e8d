"""Programs without an adapter: called by one argument, answering by a file, observed in nothing else."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import ExecutableError, Sandbox
from skill_effectiveness.providers import (
    UNKNOWN_USAGE,
    CallKind,
    CommandProvider,
    CommandSettings,
    Ending,
    Mount,
    ProviderCode,
    ProviderError,
    ReadCall,
    ReplyError,
    SandboxKind,
    WorkCall,
    one_json_object,
)
from skill_effectiveness.providers.events import Unanswered
from tests.support.fake_program import VERSION, write_fake
from tests.support.leavings import nothing_left
from tests.support.provider_calls import SCHEMA, codes, question, surroundings

if TYPE_CHECKING:
    from skill_effectiveness.providers import CallOutcome

FIND = (
    "import re\n"
    "prompt = next(word for word in sys.argv if 'Write your answer' in word)\n"
    "target = re.search(r'to the file (\\S+?)[.,] ', prompt)[1]\n"
)
WRITE = FIND + "open(target, 'w').write(answer)\n"


class Place:
    """A program, a user with a home, and a folder to read or work in."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.home = tmp_path / "home"
        self.folder = tmp_path / "folder"
        for folder in (self.home, self.folder):
            folder.mkdir()
        self.around = surroundings(tmp_path, HOME=str(self.home), ANTHROPIC_API_KEY="foreign-canary")

    def provider(
        self, body: str, settings: CommandSettings | None = None, **given: object
    ) -> CommandProvider:
        path = write_fake(self.tmp_path / "program", body, folder=str(self.tmp_path), **given)
        return CommandProvider.configured(path, settings or CommandSettings(), around=self.around)

    def read(self, body: str, settings: CommandSettings | None = None, **given: object) -> CallOutcome:
        call = ReadCall("Look at it.", self.folder, "some-model", 20)
        outcome = self.provider(body, settings, **given).read(call, around=self.around)
        nothing_left(self.around)
        return outcome

    def work(self, body: str, *, seconds: float = 20, mount: Mount | None = None) -> CallOutcome:
        call = WorkCall("Mend it.", self.folder, "some-model", seconds, mount=mount)
        outcome = self.provider(body, answer="done").work(call, around=self.around)
        nothing_left(self.around)
        return outcome


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestSettings:
    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("-p",),
            ("{{prompt}}", "{{prompt}}"),
            ("-p={{prompt}}",),
            ("{{prompt}}", "x{{prompt}}"),
            ("a\0", "{{prompt}}"),
        ],
    )
    def test_exactly_one_word_is_the_prompt(self, words: tuple[str, ...]) -> None:
        """P14: none, two, or the word inside a longer one is refused."""
        self.refused(words=words)

    @pytest.mark.parametrize("key", ["", "A B", "A=B", "HOME", "TMPDIR", "1A"])
    def test_a_variable_to_pass_on_is_one_and_not_ours(self, key: str) -> None:
        """P3 P14: session folders cannot be configured away."""
        self.refused(keys=(key,))

    def test_a_place_to_write_is_absolute(self) -> None:
        self.refused(writable=(Path("relative"),))

    def test_words_are_never_read_by_a_shell(self) -> None:
        """P14: they reach the program as they are."""
        settings = CommandSettings(("-m", "$(touch x); *", "{{prompt}}", "--"))

        assert settings.argv(Path("/bin/program"), "`a` $b\nc") == [
            "/bin/program", "-m", "$(touch x); *", "`a` $b\nc", "--",
        ]  # fmt: skip

    def refused(self, **settings: Any) -> None:  # noqa: ANN401 - every field once
        with pytest.raises(ProviderError) as caught:
            CommandSettings(**settings)
        assert caught.value.code is ProviderCode.INVALID_COMMAND
        assert caught.value.sentence.startswith("This program cannot be called so: ")


class TestLabels:
    def test_nothing_is_said_to_be_observed(self) -> None:
        """P9 P13 P14: the labels, and read and work calls only."""
        assert CommandProvider.name == "command"
        assert CommandProvider.family is None
        assert CommandProvider.session_label == "not-observed"
        assert CommandProvider.tool_label == "not-observed"
        assert CommandProvider.json_fence is False
        assert CommandProvider.call_kinds == {CallKind.READ, CallKind.WORK}

    def test_a_judge_call_is_refused(self, place: Place) -> None:
        """P13 P14: nothing is started."""
        provider = place.provider("open(folder + '/ran', 'w')")

        with pytest.raises(ProviderError) as caught:
            provider.judge(question(), around=place.around)
        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED
        assert not (place.tmp_path / "ran").exists()

    def test_a_program_is_bound_to_its_version(self, place: Place) -> None:
        """P2 P14: as every other."""
        assert place.provider("").executable.version == VERSION
        silent = place.tmp_path / "silent"
        silent.write_text("#!/bin/sh\n")
        silent.chmod(0o755)
        with pytest.raises(ExecutableError):
            CommandProvider.at(silent, around=place.around)


class TestTheAnswerFile:
    def test_a_file_is_the_answer_and_output_is_not(self, place: Place) -> None:
        """P14 P8 F37 F40: stdout and stderr are kept, never parsed; model and cost are not known."""
        body = WRITE + "print('{\"fake\": 1}\\nhalf', end='')\nprint('trouble', file=sys.stderr)"
        outcome = place.read(body, answer='{"findings":[]}')

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, '{"findings":[]}')
        assert (outcome.session_id, outcome.observed_model, outcome.usage) == (None, None, UNKNOWN_USAGE)
        assert outcome.exit_code == 0
        assert outcome.recording is not None
        assert outcome.recording.stdout == b'{"fake": 1}\nhalf'
        assert outcome.recording.stderr == b"trouble\n"

    def test_bytes_that_are_no_text_are_kept_too(self, place: Place) -> None:
        """F18 F20 P7 P14: as they came, and nowhere but in the private recording."""
        outcome = place.read(
            WRITE + "raw(b'canary \\xff\\xc3'); time.sleep(0.05); raw(b'\\xbc\\n')", answer="x"
        )

        assert outcome.recording is not None
        assert outcome.recording.stdout == b"canary \xff\xc3\xbc\n"
        assert "canary" not in repr(outcome)

    def test_trouble_that_is_told_decides_nothing(self, place: Place) -> None:
        """F13 F14 P11 P14: whatever it says of itself, the file and the exit are what counts; asked once."""
        body = WRITE + "open('starts', 'a').write('x'); say(said); sys.stderr.write('retrying')"
        outcome = place.work(body.replace("said", "{'is_error': True, 'error': 'rate limited'}"))

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "done")
        assert (place.folder / "starts").read_text() == "x"

    def test_sessions_at_once_have_a_file_each(self, place: Place) -> None:
        """F41 P3: no folder is shared but the home, which is the user's own choice."""
        provider = place.provider(FIND + "time.sleep(0.3); open(target, 'x').write(prompt[:1])")
        calls = [WorkCall(f"{number} of three", place.folder, "some-model", 20) for number in range(3)]

        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(lambda call: provider.work(call, around=place.around), calls))
        assert [outcome.answer for outcome in outcomes] == ["0", "1", "2"]

    def test_a_fence_is_left_for_the_caller_to_refuse(self, place: Place) -> None:
        """F25 P12: nothing is taken out of anything."""
        fenced = '```json\n{"findings":[]}\n```'
        outcome = place.read(WRITE, answer=fenced)

        assert outcome.answer == fenced
        with pytest.raises(ReplyError):
            one_json_object(fenced, allow_json_fence=CommandProvider.json_fence)

    def test_what_looks_like_a_stream_is_none(self, place: Place) -> None:
        """P14: a verdict that is printed is no verdict, whoever's form it has."""
        said = [{"type": "thread.started", "thread_id": "x"}, {"type": "turn.completed"}, {"result": "yes"}]
        outcome = place.read("say(*said)", said=said)

        assert outcome.ending is Ending.NO_ANSWER
        assert outcome.events == (Unanswered("no answer file"),)
        assert outcome.session_id is None

    @pytest.mark.parametrize(
        "body",
        [
            "",
            "print('done')",
            FIND + "os.rmdir(os.path.dirname(target))",
            FIND + "open(target, 'w')",
            FIND + "open(target, 'w').write(' \\n')",
        ],
    )
    def test_no_file_or_a_blank_one_is_no_answer(self, place: Place, body: str) -> None:
        """P14 P6 F12 F16: exit 0 all the same."""
        assert place.read(body).ending is Ending.NO_ANSWER

    @pytest.mark.parametrize(
        "make",
        [
            "os.symlink(folder + '/secret', target)",
            "os.rmdir(os.path.dirname(target)); os.symlink(folder + '/away', os.path.dirname(target))",
            "os.mkdir(target)",
            "os.mkfifo(target)",
            "open(target, 'wb').write(b'\\xff\\xfe')",
            "open(target, 'w').write('x' * (1 << 20) + 'x')",
        ],
        ids=["link", "link to a folder", "folder", "pipe", "no UTF-8", "too large"],
    )
    def test_what_is_no_such_file_is_no_valid_answer(self, place: Place, make: str) -> None:
        """P14 F48: read strictly; a link is not followed, a pipe not hung on."""
        (place.tmp_path / "secret").write_text("secret")
        (place.tmp_path / "away").mkdir()
        (place.tmp_path / "away" / "answer").write_text("secret")
        outcome = place.read(FIND + make)

        assert outcome.ending is Ending.ANSWER_INVALID
        assert outcome.answer is None

    def test_an_answer_of_another_form_is_the_callers_to_judge(self, place: Place) -> None:
        """P12: the text as it was written, also where a schema was asked for."""
        call = ReadCall("Look.", place.folder, "some-model", 20, SCHEMA)
        body = WRITE + "raw(prompt.encode())"
        outcome = place.provider(body, answer="no object").read(call, around=place.around)

        assert (outcome.ending, outcome.answer) == (Ending.SUCCESS, "no object")
        assert outcome.recording is not None
        prompt = outcome.recording.stdout.decode()
        assert prompt.startswith("Look.\n\nWrite your answer to the file /")
        assert json.loads(prompt.split("JSON Schema:\n")[1]) == SCHEMA

    @pytest.mark.parametrize("end", ["sys.exit(3)", "os.kill(os.getpid(), 9)"])
    def test_a_file_beside_a_bad_end_does_not_count(self, place: Place, end: str) -> None:
        """P6 P14: exit code 0 belongs to every success."""
        outcome = place.work(WRITE + end)

        assert (outcome.ending, outcome.answer) == (Ending.STREAM_INVALID, None)

    def test_the_folder_is_private_and_gone_afterwards(self, place: Place) -> None:
        """P3 P14: nobody else's to read, and not where the checkout is."""
        body = (
            WRITE
            + "open(folder + '/mode', 'w').write(f'{os.stat(os.path.dirname(target)).st_mode:o} {target}')"
        )
        place.read(body, CommandSettings(writable=(place.tmp_path,)), answer="x")
        mode, target = (place.tmp_path / "mode").read_text().split()

        assert mode == "40700"
        assert target.startswith(place.around.environ["TMPDIR"] + "/skill-effectiveness-")


class TestTheEnvironment:
    TELL = WRITE + (
        "given = open('/proc/self/environ').read().rstrip('\\0').split('\\0')\n"
        "given = dict(one.split('=', 1) for one in given)\n"
        "json.dump([given, os.getcwd(), sys.argv], open(folder + '/told', 'w'))\n"
    )

    def told(
        self, place: Place, *, keys: tuple[str, ...] = (), private_home: bool = False
    ) -> tuple[dict[str, str], str, list[str]]:
        found = CommandSettings(keys=keys, private_home=private_home, writable=(place.tmp_path,))
        provider = place.provider(self.TELL, found, answer="x")
        outcome = provider.read(ReadCall("Look.", place.folder, "some-model", 20), around=place.around)
        assert outcome.ending is Ending.SUCCESS
        environment, cwd, argv = json.loads((place.tmp_path / "told").read_text())
        environment.pop("PWD", None)  # of the sandbox
        assert set(environment) == {
            *provider.environment_keys(place.around.environ),
            "SKILL_EFFECTIVENESS_CALL",
        }
        assert ("real_home" in codes(outcome)) is not found.private_home
        return environment, cwd, argv

    def test_the_home_is_the_real_one_and_that_is_recorded(self, place: Place) -> None:
        """P14 P3: its login lives there; credentials of others stay out, the temporary folder is private."""
        environment, cwd, argv = self.told(place)

        assert environment["HOME"] == str(place.home)
        assert environment["TMPDIR"].startswith(place.around.environ["TMPDIR"] + "/skill-effectiveness-")
        assert "foreign-canary" not in json.dumps(environment)
        assert cwd == str(place.folder)
        assert len(argv) == 2

    def test_a_private_home_and_keys_can_be_configured(self, place: Place) -> None:
        """P14 P3: own keys in, the real home out."""
        place.around = replace(place.around, environ={**place.around.environ, "SOME_API_KEY": "own-key"})
        environment, _, _ = self.told(place, keys=("SOME_API_KEY", "NOT_SET"), private_home=True)

        assert environment["SOME_API_KEY"] == "own-key"
        assert "NOT_SET" not in environment
        assert environment["HOME"].startswith(place.around.environ["TMPDIR"] + "/")

    def test_even_for_its_version_it_has_a_home_of_its_own(self, place: Place) -> None:
        """F32 P3: nothing is asked of it then that would need a login."""
        program = place.tmp_path / "told-version"
        program.write_text('#!/bin/sh\nenv > "$0.env"\necho 1\n')
        program.chmod(0o755)
        CommandProvider.at(program, around=place.around)

        assert f"HOME={place.home}" not in (place.tmp_path / "told-version.env").read_text().splitlines()


class TestPrompts:
    def test_stdin_is_closed(self, place: Place) -> None:
        """F7 P4 P14: a program that waits for input finds its end."""
        outcome = place.work(FIND + "open(target, 'w').write(repr(sys.stdin.read()))")

        assert outcome.answer == "''"
        assert "prompt_unread" not in codes(outcome)

    @pytest.mark.parametrize(("bytes_", "ending"), [(121_000, Ending.SUCCESS), (122_880, Ending.UNSTARTABLE)])
    def test_a_prompt_is_below_120_kib(self, place: Place, bytes_: int, ending: Ending) -> None:
        """P4 P14: longer ones start nothing."""
        provider = place.provider(WRITE + "open(folder + '/ran', 'w')", answer="x")
        call = WorkCall("é" * (bytes_ // 2), place.folder, "some-model", 20)
        outcome = provider.work(call, around=place.around)

        assert outcome.ending is ending
        assert (place.tmp_path / "ran").exists() is (ending is Ending.SUCCESS)
        assert ("prompt_too_long" in codes(outcome)) is (ending is Ending.UNSTARTABLE)

    def test_a_nul_is_no_argument(self, place: Place) -> None:
        """P6 P14: unstartable, and no traceback."""
        outcome = place.provider("").work(WorkCall("a\0b", place.folder, "m", 20), around=place.around)

        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["prompt_too_long"])


class TestWork:
    def test_the_working_copy_is_changed_and_nothing_is_written_into_it_by_us(self, place: Place) -> None:
        """P13 P14: as the user, and recorded so."""
        outcome = place.work(WRITE + "open('made', 'w')")

        assert outcome.ending is Ending.SUCCESS
        assert outcome.sandbox is SandboxKind.UNCONFINED
        assert os.listdir(place.folder) == ["made"]  # noqa: PTH208 - names are all that is asked for

    @pytest.mark.parametrize("kind", ["skills", "instructions"])
    def test_what_an_arm_gives_cannot_be_given(self, place: Place, kind: str) -> None:
        """P14 F33: an arm that would not be one starts nothing."""
        mount = Mount((place.tmp_path / "skill",)) if kind == "skills" else Mount(instructions="Be good.")
        outcome = place.work("open(folder + '/ran', 'w')", mount=mount)

        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["mount_unsupported"])
        assert not (place.tmp_path / "ran").exists()

    def test_an_arm_that_gives_nothing_is_one(self, place: Place) -> None:
        assert place.work(WRITE, mount=Mount()).ending is Ending.SUCCESS


class TestLimits:
    def test_a_program_that_stays(self, place: Place) -> None:
        """P6 P10 F6: a written answer is no end; nothing is alive after the wall limit."""
        outcome = place.work(WRITE + "os.fork()\ntime.sleep(60)", seconds=1)

        assert (outcome.ending, outcome.answer) == (Ending.TIMEOUT, None)

    def test_a_flood(self, place: Place) -> None:
        """P5 P14: by name, although nothing of it is read."""
        outcome = place.read("while True: raw(b'x\\n' * 9999)")

        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, "lines")

    def test_a_line_without_end(self, place: Place) -> None:
        """P5 F17: by name."""
        outcome = place.read("while True: raw(b'x' * 65536)")

        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, "line_bytes")

    def test_our_own_stop(self, place: Place) -> None:
        """P6: cancelled, whatever was written."""
        provider = place.provider(WRITE + "time.sleep(60)", answer="x")
        call = WorkCall("Mend it.", place.folder, "some-model", 20)

        assert provider.work(call, around=place.around, cancelled=lambda: True).ending is Ending.CANCELLED

    def test_what_outlives_it_is_gone_when_the_answer_counts(self, place: Place) -> None:
        """P10: and told."""
        outcome = place.work(
            WRITE + "if os.fork() == 0:\n    os.setsid(); os.closerange(0, 3); time.sleep(60)"
        )

        assert outcome.ending is Ending.SUCCESS
        assert outcome.survivors == 1


def bubblewrap_works() -> bool:
    return Sandbox.found(Surroundings.real()) is not None


class TestTheSandbox:
    def test_without_one_a_reader_is_unconfined_and_recorded_so(self, place: Place) -> None:
        """P13 P14: it is detected, never brought along."""
        place.around = without_bubblewrap(place)

        assert place.read(WRITE, answer="x").sandbox is SandboxKind.UNCONFINED

    @pytest.mark.skipif(not bubblewrap_works(), reason="bubblewrap is not installed, or may not be used here")
    def test_a_reader_changes_nothing_but_what_is_configured(self, place: Place) -> None:
        """P13 P14: neither the checkout nor the home; the places that it needs, yes."""
        body = WRITE + (
            "def tried(path):\n"
            "    try: open(path, 'w')\n"
            "    except OSError: return False\n"
            "    return True\n"
            "raw(json.dumps([tried(p) for p in ('x', os.environ['HOME'] + '/x', folder + '/x',"
            " os.environ['HOME'] + '/own/x', os.environ['TMPDIR'] + '/x')]).encode())"
        )
        (place.home / "own").mkdir()
        outcome = place.read(body, CommandSettings(writable=(place.home / "own",)), answer="x")

        assert outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert outcome.ending is Ending.SUCCESS
        assert outcome.recording is not None
        assert json.loads(outcome.recording.stdout) == [False, False, False, True, True]
        assert not (place.folder / "x").exists()


def without_bubblewrap(place: Place) -> Surroundings:
    """The same, with a PATH on which there is nothing but git."""
    tools = place.tmp_path / "tools"
    tools.mkdir()
    git = shutil.which("git")
    if git is not None:
        (tools / "git").symlink_to(git)
    return replace(place.around, environ={**place.around.environ, "PATH": str(tools)})
