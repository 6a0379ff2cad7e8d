"""Bubblewrap around a program: found or not, and what it keeps from happening."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, Limits, Place, Sandbox, View, run_process
from tests.support.leavings import carrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.execution import ProcessResult

REAL = Surroundings.real()
FOUND = Sandbox.found(REAL)
needed = pytest.mark.skipif(FOUND is None, reason="bubblewrap is not installed, or may not be used here")


def with_path(*folders: Path | str) -> Surroundings:
    return replace(REAL, environ={"PATH": ":".join(map(str, folders))})


def program(folder: Path, text: str, mode: int = 0o755) -> Path:
    folder.mkdir()
    path = folder / "bwrap"
    path.write_text(text)
    path.chmod(mode)
    return folder


class TestFinding:
    def test_none_on_the_path_is_none(self, tmp_path: Path) -> None:
        """P13: detected, never brought along."""
        assert Sandbox.found(with_path(tmp_path)) is None
        assert Sandbox.found(replace(REAL, environ={})) is None

    @pytest.mark.parametrize(
        ("text", "mode"),
        [("#!/bin/sh\nexit 1\n", 0o755), ("#!/bin/sh\nkill -9 $$\n", 0o755), ("no program", 0o755)],
        ids=["refuses", "dies", "is none"],
    )
    def test_one_that_may_not_work_here_is_none(self, tmp_path: Path, text: str, mode: int) -> None:
        """P13: some machines do not let users make namespaces, so it is tried."""
        assert Sandbox.found(with_path(program(tmp_path / "bin", text, mode))) is None

    def test_the_first_that_can_be_run_counts(self, tmp_path: Path) -> None:
        """P13: as a shell would find it; places that are not absolute are no places."""
        bad = program(tmp_path / "bad", "", 0o644)
        good = program(tmp_path / "good", "#!/bin/sh\nexit 0\n")
        found = Sandbox.found(with_path("", "relative", bad, tmp_path / "missing", good))

        assert found == Sandbox(good / "bwrap")

    def test_trying_it_shows_it_nothing_of_the_users(self, tmp_path: Path) -> None:
        """P3: no variable, and itself as the program to run."""
        folder = program(tmp_path / "bin", '#!/bin/sh\necho "$@" > "$0.told"\nenv >> "$0.told"\n')

        around = replace(REAL, environ={"PATH": str(folder), "HOME": "/home-canary"})

        assert Sandbox.found(around) is not None
        told = (folder / "bwrap.told").read_text()
        assert f"-- {folder}/bwrap --version" in told
        assert "canary" not in told


class TestWords:
    """The order of places is the order in which bubblewrap lays them."""

    SANDBOX = Sandbox(Path("/usr/bin/bwrap"))

    def test_outer_places_come_before_those_in_them(self) -> None:
        places = [Path("/a/b/c"), Path("/a"), Path("/a/b"), Path("/a")]
        words = self.SANDBOX.reading(["/bin/true"], folder=Path("/a"), writable=places)

        assert [words[at + 1] for at, word in enumerate(words) if word == "--bind"] == [
            "/a",
            "/a/b",
            "/a/b/c",
        ]

    def test_what_may_be_written_comes_after_what_may_be_read(self) -> None:
        words = self.SANDBOX.working(
            ["/bin/true"], folder=Path("/r/w"), readable=[Path("/r")], writable=[Path("/r/w")]
        )

        assert words.index("--bind") > max(at for at, word in enumerate(words) if word == "/r")

    def test_words_of_the_program_are_never_words_for_bubblewrap(self) -> None:
        """P13: whatever they are."""
        argv = ["/bin/echo", "--bind", "/", "/"]
        words = self.SANDBOX.reading(argv, folder=Path("/"), writable=[])

        assert words[-5:] == ["--", *argv]
        assert words.count("--") == 1


class Inside:
    """What a shell script can do inside."""

    def __init__(self, tmp_path: Path) -> None:
        self.outside = tmp_path / "outside"
        self.own = tmp_path / "own"
        for folder in (self.outside, self.own):
            folder.mkdir()
        (self.outside / "file").write_text("seen\n")
        self.said: list[str] = []

    def reading(self, script: str, *, wall_seconds: float = 20) -> ProcessResult:
        assert FOUND is not None
        return self.run(
            FOUND.reading(["/bin/sh", "-c", script], folder=self.own, writable=[self.own]),
            wall_seconds=wall_seconds,
        )

    def working(self, script: str, *readable: Path) -> ProcessResult:
        assert FOUND is not None
        return self.run(
            FOUND.working(["/bin/sh", "-c", script], folder=self.own, readable=readable, writable=[self.own])
        )

    def run(
        self, argv: list[str], *, wall_seconds: float = 20, cancelled: Callable[[], bool] = lambda: False
    ) -> ProcessResult:
        def keep(line: bytes) -> bool:
            self.said.append(line.decode())
            return False

        return run_process(
            argv,
            cwd=self.own,
            env={"PATH": "/usr/bin:/bin", "OUT": str(self.outside), "HOST": str(os.getpid())},
            stdin=b"asked\n",
            limits=Limits(wall_seconds),
            on_line=keep,
            cancelled=cancelled,
            around=REAL,
        )


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


SETTINGS = (
    "for place in kernel/core_pattern kernel/hostname vm/swappiness fs/suid_dumpable net/ipv4/ip_forward; do"
    ' held=$(cat "/proc/sys/$place") &&'
    ' (echo "$held" > "/proc/sys/$place") 2>/dev/null && echo "wrote $place";'
    " done; echo end"
)
"""Writes what is there already, so that the machine stays as it is, wherever it comes to pass."""


@needed
@pytest.mark.parametrize("kind", ["reading", "working"])
def test_the_kernels_settings_cannot_be_written(inside: Inside, kind: str) -> None:
    """P13: they are root's without any capability; one of them starts a program outside, as root."""
    getattr(inside, kind)(SETTINGS)

    assert inside.said == ["end"]


@needed
class TestReading:
    def test_everything_can_be_read_and_only_what_is_named_written(self, inside: Inside) -> None:
        """P13: the checkout, the home, the system, /dev/shm of the machine."""
        script = (
            'cat "$OUT/file" -; pwd; echo x > made && echo own;'
            'for place in "$OUT/x" "$OUT/file" /x /etc/x /run/x /tmp/x-of-a-test; do'
            ' (echo x > "$place") 2>/dev/null && echo "wrote $place"; done; rm -f "$OUT/file" 2>/dev/null;'
            "echo x > /dev/null && echo x > /dev/shm/x-of-a-test && echo end"
        )
        result = inside.reading(script)

        assert inside.said == ["seen", "asked", str(inside.own), "own", "end"]
        assert (result.ended, result.exit_code) == (Ended.EXITED, 0)
        assert (inside.own / "made").read_text() == "x\n"
        assert (inside.outside / "file").exists()
        assert not Path("/dev/shm/x-of-a-test").exists()  # noqa: S108 - it must not be there

    def test_a_mount_cannot_be_made_writable_again(self, inside: Inside) -> None:
        """P13: no capability is left, also where the tests run as root."""
        inside.reading(
            "grep -i ^CapEff /proc/self/status | tr -d '\\t'; mount -o remount,rw,bind / 2>/dev/null;"
            '(echo x > "$OUT/x") 2>/dev/null && echo wrote'
        )

        assert inside.said == ["CapEff:0000000000000000"]

    def test_processes_outside_are_neither_seen_nor_signalled(self, inside: Inside) -> None:
        """P13 P10: a process namespace of its own."""
        inside.reading('kill -0 "$HOST" 2>/dev/null && echo seen; ls /proc | grep -c "^[0-9]"')

        assert len(inside.said) == 1
        assert int(inside.said[0]) < 10

    def test_of_run_only_what_the_system_needs_is_shown(self, inside: Inside) -> None:
        """P13: sockets of daemons that would do anything for the user are out of reach."""
        inside.reading("ls /run")

        assert set(inside.said) <= {"systemd", "resolvconf", "NetworkManager", "current-system", "media"}

    @pytest.mark.parametrize("place", ["/dev/shm", "/run"])  # noqa: S108 - where temporary folders may lie
    def test_folders_of_ours_may_lie_where_everything_is_new(self, inside: Inside, place: str) -> None:
        """P13: a person's TMPDIR may be there, and a checkout too."""
        if not os.access(place, os.W_OK):
            pytest.skip(f"{place} cannot be written here")
        with TemporaryDirectory(dir=place) as folder:
            (Path(folder) / "own").mkdir()
            (Path(folder) / "file").write_text("seen\n")
            assert FOUND is not None
            script = (
                "cat file; echo x > own/made && echo own; (echo x > made) 2>/dev/null && echo wrote; true"
            )
            argv = FOUND.reading(
                ["/bin/sh", "-c", script], folder=Path(folder), writable=[Path(folder) / "own"]
            )
            inside.own = Path(folder)
            inside.run(argv)

            assert inside.said == ["seen", "own"]
            assert (Path(folder) / "own" / "made").exists()

    @pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
    def test_how_the_program_ends_is_how_it_ended(self, inside: Inside, script: str, code: int) -> None:
        """P6: an exit code is the program's own."""
        result = inside.reading(script)

        assert (result.ended, result.exit_code) == (Ended.EXITED, code)

    def test_nothing_outlives_the_program(self, inside: Inside) -> None:
        """P10 F8: session leaders and double forks die with the namespace."""
        inside.reading("setsid sh -c 'sleep 60 & sleep 60' >/dev/null 2>&1 & echo end")

        assert inside.said == ["end"]
        assert not carrying(str(inside.outside))

    def test_nothing_outlives_a_timeout(self, inside: Inside) -> None:
        """P10 F9: also what ignores TERM."""
        began = time.monotonic()
        result = inside.reading("trap '' TERM; sleep 60 & while true; do sleep 1; done", wall_seconds=0.5)

        assert result.ended is Ended.WALL_TIMEOUT
        assert time.monotonic() - began < 3.5
        assert not carrying(str(inside.outside))


@needed
class TestWorking:
    def test_only_the_system_and_what_is_named_is_there(self, inside: Inside) -> None:
        """P13: neither the home nor the rest of the disk."""
        script = (
            'cat "$OUT/file" 2>/dev/null && echo shown; ls "$OUT" 2>/dev/null; ls -d /boot /root 2>/dev/null;'
            "echo x > made && echo own; (echo x > /x) 2>/dev/null && echo root"
        )
        result = inside.working(script)

        assert inside.said == ["own"]
        assert result.ended is Ended.EXITED
        assert (inside.own / "made").exists()

    def test_what_is_named_for_reading_can_be_read_only(self, inside: Inside) -> None:
        """P13: and what may be written in it can be written."""
        inside.working(
            'cat "$OUT/file"; (echo x > "$OUT/x") 2>/dev/null && echo wrote; echo x > made && echo own',
            inside.own.parent,
        )

        assert inside.said == ["seen", "own"]


class TestView:
    VIEW = View(
        (
            Place(Path("/x/copy"), "/app", writable=True),
            Place(Path("/x/new"), "/new"),
            Place.same(Path("/opt/a/b")),
        ),
        Path("/x/inside"),
    )

    @pytest.mark.parametrize(
        ("inside", "outside"),
        [
            ("/app", "/x/copy"),
            ("/app/a/b", "/x/copy/a/b"),
            ("/apple", "/x/inside/apple"),
            ("/new/t", "/x/new/t"),
            ("/opt/a/b/c", "/opt/a/b/c"),
            ("/usr/lib/x", "/usr/lib/x"),
            ("/home/user", "/x/inside/home/user"),
            ("/proc/1/fd", "/x/inside/proc/1/fd"),
            ("/", "/x/inside"),
        ],
    )
    def test_what_a_path_inside_is_called_outside(self, inside: str, outside: str) -> None:
        """S13: by the innermost place that holds it."""
        assert self.VIEW.outside(inside) == outside
        assert self.VIEW.shows(inside) is not outside.startswith("/x/inside")


@needed
class TestHolding:
    def held(self, inside: Inside, script: str, *, closed: bool = True, **more: bool) -> ProcessResult:
        assert FOUND is not None
        places = [Place(inside.own, "/app", writable=True), Place(inside.outside, "/app/shown")]
        links = [("/bin-of-ours/name", "/app/shown/file")]
        argv = FOUND.holding(
            ["/bin/sh", "-c", script], folder="/app", places=places, links=links, throwaway=not closed, **more
        )
        return inside.run(argv)

    def test_places_are_where_they_are_named(self, inside: Inside) -> None:
        """S13: and nowhere else; a link is a link."""
        self.held(
            inside,
            'pwd; cat shown/file; cat /bin-of-ours/name; echo x > made && echo own; ls "$OUT" 2>/dev/null;'
            "(echo x > shown/x) 2>/dev/null && echo wrote; (echo x > /x) 2>/dev/null && echo root; readlink "
            "/bin-of-ours/name",
        )
        assert inside.said == ["/app", "seen", "seen", "own", "/app/shown/file"]
        assert (inside.own / "made").exists()

    def test_what_is_new_may_be_thrown_away(self, inside: Inside) -> None:
        """S14: scripts of tasks write where they like, and it is gone afterwards."""
        self.held(inside, "mkdir /new && echo x > /new/x && echo made", closed=False)
        assert inside.said == ["made"]
        assert not Path("/new").exists()

    def test_without_a_network(self, inside: Inside) -> None:
        """S14: loopback alone."""
        self.held(inside, "cat /proc/net/dev | grep -c :", network=False)
        assert inside.said == ["1"]
