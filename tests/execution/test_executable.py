"""Which program exactly."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import ExecutableCode, ExecutableError, identify, locate
from skill_effectiveness.execution.executable import one_line
from tests.support.crippled import crippled
from tests.support.private import child_output
from tests.support.processes import PATH

AROUND = Surroundings.real()

# printf '#!/bin/sh\necho tool 1.2\n' | sha256sum
SCRIPT = b"#!/bin/sh\necho tool 1.2\n"
SCRIPT_DIGEST = "sha256:d5a4d9788655cd454b3067d18b475a2fa811a474ccb00980f1a85fb1538c29b7"


# In the supervisor's process.
LACKS = {
    "no process": "def none(): raise BlockingIOError(11, 'again')\nos.fork = none\n",
    "no memory for one": "def none(): raise OSError(12, 'memory')\nos.fork = none\n",
    "no descriptor": "def none(): raise OSError(24, 'many')\nos.pipe = none\n",
    "no descriptor for the program": "def none(_): raise OSError(24, 'many')\nos.dup = none\n",
}


def script(folder: Path, body: str = "echo tool 1.2", name: str = "tool") -> Path:
    path = folder / name
    path.write_bytes(b"#!/bin/sh\n" + body.encode() + b"\n")
    path.chmod(0o755)
    return path


def refused(path: Path, *, around: Surroundings = AROUND, seconds: float = 20) -> ExecutableCode:
    with pytest.raises(ExecutableError) as caught:
        identify(path, env=PATH, around=around, timeout_seconds=seconds)
    assert str(caught.value)
    return caught.value.code


class TestLocating:
    def test_follows_links_and_starts_nothing(self, tmp_path: Path) -> None:
        """R8: it can be asked before a program may be started."""
        path = script(tmp_path, f"touch {tmp_path}/started")
        (tmp_path / "link").symlink_to(path)
        assert locate(tmp_path / "link", around=AROUND) == path.resolve()
        assert not (tmp_path / "started").exists()

    def test_refuses_what_cannot_be_executed(self, tmp_path: Path) -> None:
        for path, code in (
            (Path("tool"), ExecutableCode.NOT_ABSOLUTE),
            (tmp_path / "missing", ExecutableCode.MISSING),
            (tmp_path, ExecutableCode.NOT_REGULAR),
            (Path(f"{tmp_path}/a\0b"), ExecutableCode.UNREADABLE),
        ):
            with pytest.raises(ExecutableError) as caught:
                locate(path, around=AROUND)
            assert caught.value.code is code


class TestAProgram:
    def test_is_its_path_its_bytes_and_its_version(self, tmp_path: Path) -> None:
        """P2: absolute path, SHA-256, one-line version."""
        path = script(tmp_path)
        assert path.read_bytes() == SCRIPT
        found = identify(path, env=PATH, around=AROUND)
        assert (found.path, found.resolved, found.version) == (path, path.resolve(), "tool 1.2")
        assert found.sha256 == SCRIPT_DIGEST

    def test_behind_links_is_hashed_and_called_by_its_name(self, tmp_path: Path) -> None:
        """P2: links are followed for the hash; some programs look at the name they are called by."""
        real = script(tmp_path, 'echo "${0##*/}"')
        (tmp_path / "step").symlink_to(real)
        (tmp_path / "name").symlink_to("step")
        found = identify(tmp_path / "name", env=PATH, around=AROUND)
        assert (found.path, found.resolved, found.version) == (
            tmp_path / "name",
            real.resolve(),
            "name",
        )

    def test_gets_the_environment_of_the_caller_and_no_input(self, tmp_path: Path) -> None:
        """P3 P4: also for its version."""
        path = script(tmp_path, 'cat; echo "$ONE $HOME."')
        assert identify(path, env={"ONE": "1", **PATH}, around=AROUND).version == "1 ."

    @pytest.mark.parametrize("output", ["printf 'x 1'", "printf 'x 1\\n'", "echo x 1; echo noise >&2"])
    def test_has_one_line_with_or_without_its_end(self, tmp_path: Path, output: str) -> None:
        assert identify(script(tmp_path, output), env=PATH, around=AROUND).version == "x 1"


class TestNoProgram:
    def test_a_relative_path(self) -> None:
        assert refused(Path("bin/true")) is ExecutableCode.NOT_ABSOLUTE

    def test_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "dangling").symlink_to("nowhere")
        script(tmp_path)
        for name in ("none", "dangling", "tool/below"):
            assert refused(tmp_path / name) is ExecutableCode.MISSING

    def test_not_a_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo", 0o700)
        assert refused(tmp_path) is ExecutableCode.NOT_REGULAR
        assert refused(tmp_path / "fifo") is ExecutableCode.NOT_REGULAR
        assert refused(Path("/dev/null")) is ExecutableCode.NOT_REGULAR

    def test_not_executable(self, tmp_path: Path) -> None:
        path = script(tmp_path)
        path.chmod(0o644)
        assert refused(path) is ExecutableCode.NOT_EXECUTABLE

    def test_one_that_may_not_be_executed_by_us(self, tmp_path: Path) -> None:
        """P2: whatever its mode says; the file system is asked, and nothing is started."""
        fs = FaultFs(AROUND.fs, Injection("may_execute", nth=0, change=lambda _: False))
        assert refused(script(tmp_path), around=replace(AROUND, fs=fs)) is ExecutableCode.NOT_EXECUTABLE

    def test_permission_is_that_of_the_effective_user(self, tmp_path: Path) -> None:
        """P2: the one under whom it would run, not the one who started us."""
        path = script(tmp_path)
        path.chmod(0o700)
        code = (
            "import os, sys\n"
            "from skill_effectiveness.evidence.fsops import RealFs\n"
            "if os.geteuid() == 0: os.setresuid(65534, 0, 0)\n"
            "print(RealFs().may_execute(None, sys.argv[1]), RealFs().may_execute(None, sys.argv[2]))"
        )
        (tmp_path / "text").touch(0o600)
        assert child_output(code, path, tmp_path / "text") == "True False"

    def test_a_circle_of_links(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        assert refused(tmp_path / "a") is ExecutableCode.UNREADABLE

    @pytest.mark.parametrize(
        ("operation", "number", "code"),
        [
            ("resolve", errno.EACCES, ExecutableCode.UNREADABLE),
            ("lstat", errno.EACCES, ExecutableCode.UNREADABLE),
            ("open_read", errno.EACCES, ExecutableCode.UNREADABLE),
            ("read", errno.EIO, ExecutableCode.UNREADABLE),
            ("open_read", errno.ENOENT, ExecutableCode.MISSING),
        ],
    )
    def test_one_that_cannot_be_read(
        self, tmp_path: Path, operation: str, number: int, code: ExecutableCode
    ) -> None:
        """P2: what cannot be hashed cannot be bound, and is not started."""
        path = script(tmp_path, f"touch {tmp_path}/started; echo 1")
        around = replace(AROUND, fs=FaultFs(AROUND.fs, Injection(operation, number)))
        assert refused(path, around=around) is code
        assert not (tmp_path / "started").exists()

    @pytest.mark.parametrize(
        "body",
        [
            "true",
            "echo",
            "echo '  '",
            "echo a; echo b",
            "echo a; printf b",
            "echo; echo a",
            "printf 'a\\r\\n'",
            "printf 'a\\033[1m\\n'",
            "printf 'a\\tb\\n'",
            "printf '\\377\\n'",
            "echo a; exit 1",
            "echo a; kill -9 $$",
            "head -c 2000 /dev/zero | tr '\\0' x",
            "exec yes",
        ],
    )
    def test_one_without_a_version_of_one_line(self, tmp_path: Path, body: str) -> None:
        """P2: anything else than one line of text and exit code 0."""
        assert refused(script(tmp_path, body)) is ExecutableCode.NO_VERSION

    def test_one_that_takes_too_long(self, tmp_path: Path) -> None:
        assert refused(script(tmp_path, "echo a; sleep 60"), seconds=0.3) is ExecutableCode.NO_VERSION

    def test_one_that_cannot_be_started(self, tmp_path: Path) -> None:
        path = tmp_path / "tool"
        path.write_bytes(b"no program")
        path.chmod(0o755)
        assert refused(path) is ExecutableCode.NO_VERSION

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"no program", "neither a program of this machine nor a script"),
            (b"", "neither a program of this machine nor a script"),
            (b"#!/nowhere/node\n", "a script whose interpreter is not there"),
            (b"#!/\n", "or the interpreter it names may not be executed"),
            (b"#!/bin/sh\nkill -SEGV $$\n", "was ended by signal 11"),
            (b"#!/bin/sh\nsleep 60\n", "did not end within 0.5 s"),
            (b"#!/bin/sh\nkill -9 $PPID\nsleep 60\n", "could not be watched to its end"),
            (b"#!/bin/sh\necho a\necho b\n", "did not print exactly one line"),
        ],
        ids=[
            "text",
            "empty",
            "interpreter missing",
            "interpreter a folder",
            "crash",
            "wait",
            "unwatched",
            "two",
        ],
    )
    def test_what_was_wrong_is_told_in_words(self, tmp_path: Path, content: bytes, told: str) -> None:
        """P2: not everything that prints no version is a wrapper."""
        path = tmp_path / "tool"
        path.write_bytes(content)
        path.chmod(0o755)
        with pytest.raises(ExecutableError, match=told) as caught:
            identify(path, env=PATH, around=AROUND, timeout_seconds=0.5)
        assert caught.value.code is ExecutableCode.NO_VERSION

    def test_every_code_has_a_test(self) -> None:
        assert {str(code) for code in ExecutableCode} == {
            "not_absolute",
            "missing",
            "not_regular",
            "not_executable",
            "unreadable",
            "no_version",
            "no_resources",
            "no_session_folders",
        }


class TestAMachineThatHasNothingLeft:
    """P2: says nothing about the program, and is never told as its fault."""

    @pytest.mark.parametrize("operation", ["resolve", "lstat", "open_read"])
    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
    def test_to_look_at_it(self, tmp_path: Path, operation: str, number: int) -> None:
        around = replace(AROUND, fs=FaultFs(AROUND.fs, Injection(operation, number)))
        assert refused(script(tmp_path), around=around) is ExecutableCode.NO_RESOURCES

    @pytest.mark.parametrize("lack", LACKS.values(), ids=LACKS.keys())
    def test_to_start_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lack: str) -> None:
        crippled(monkeypatch, lack)
        with pytest.raises(ExecutableError, match="no process, memory or descriptor was left") as caught:
            identify(script(tmp_path), env=PATH, around=AROUND)
        assert caught.value.code is ExecutableCode.NO_RESOURCES

    def test_not_even_to_watch_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        assert refused(script(tmp_path)) is ExecutableCode.NO_RESOURCES

    def test_under_a_real_limit(self, tmp_path: Path) -> None:
        """As `ulimit -n` sets it: at every number of descriptors it is as it is, or not looked at."""
        path = script(tmp_path)
        code = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from skill_effectiveness.evidence.surroundings import Surroundings\n"
            "from skill_effectiveness.execution import ExecutableError, identify\n"
            "around, found = Surroundings.real(), []\n"
            "for limit in (3, 4, 6, 8, 10, 12, 13, 14, 40):\n"
            "    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, 4096))\n"
            "    try:\n"
            "        found.append(identify(Path(sys.argv[1]), env={}, around=around).version)\n"
            "    except ExecutableError as error:\n"
            "        found.append(error.code.value)\n"
            "print(found[0], found[-1], *sorted(set(found) - {'no_resources', 'tool 1.2'}))"
        )
        assert child_output(code, path) == "no_resources tool 1.2"

    def test_is_no_change_of_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = identify(script(tmp_path), env=PATH, around=AROUND)
        crippled(monkeypatch, LACKS["no process"])
        assert found.unchanged(AROUND, PATH)
        script(tmp_path, "echo tool 1.2 ")
        assert not found.unchanged(AROUND, PATH)


class TestUnchanged:
    def test_as_it_was(self, tmp_path: Path) -> None:
        assert identify(script(tmp_path), env=PATH, around=AROUND).unchanged(AROUND, PATH)

    def test_other_bytes(self, tmp_path: Path) -> None:
        """P2: a difference after the call is seen."""
        found = identify(script(tmp_path), env=PATH, around=AROUND)
        script(tmp_path, "echo tool 1.2 ")
        assert not found.unchanged(AROUND, PATH)

    def test_another_version_from_the_same_bytes(self, tmp_path: Path) -> None:
        path = script(tmp_path, f"cat {tmp_path}/version")
        (tmp_path / "version").write_text("1\n")
        found = identify(path, env=PATH, around=AROUND)
        (tmp_path / "version").write_text("2\n")
        assert not found.unchanged(AROUND, PATH)

    def test_a_link_that_leads_elsewhere(self, tmp_path: Path) -> None:
        """P2: equal bytes in another place are another program."""
        first, second = script(tmp_path, name="first"), script(tmp_path, name="second")
        (tmp_path / "tool").symlink_to(first)
        found = identify(tmp_path / "tool", env=PATH, around=AROUND)
        (tmp_path / "tool").unlink()
        (tmp_path / "tool").symlink_to(second)
        assert not found.unchanged(AROUND, PATH)

    def test_gone(self, tmp_path: Path) -> None:
        found = identify(script(tmp_path), env=PATH, around=AROUND)
        found.path.unlink()
        assert not found.unchanged(AROUND, PATH)


class TestOneLine:
    @given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1))
    def test_printable_text_is_itself(self, text: str) -> None:
        expected = text if text.strip() and text.isprintable() else None
        assert one_line([text.encode()], b"") == expected
        assert one_line([], text.encode()) == expected

    @given(st.lists(st.binary(), max_size=3), st.binary())
    def test_never_more_than_one(self, lines: list[bytes], rest: bytes) -> None:
        if len(lines) + bool(rest) != 1:
            assert one_line(lines, rest) is None
