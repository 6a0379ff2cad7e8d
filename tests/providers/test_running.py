"""The children of a call, inside a sandbox where there is one."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import Ended, Sandbox
from skill_effectiveness.providers import (
    CallKind,
    Ending,
    SandboxKind,
    WorkCall,
)
from skill_effectiveness.providers.command_line import (
    Aftermath,
    Login,
    Told,
)
from tests.support.fake_program import write_fake
from tests.support.provider_calls import codes, question
from tests.support.small_adapter import Place, Small


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WORKS = Sandbox.found(Surroundings.real()) is not None
needed = pytest.mark.skipif(not WORKS, reason="bubblewrap is not installed, or may not be used here")

TRY = (
    "prompt = sys.stdin.buffer.read()\n"
    "def tried(path):\n"
    "    try: open(path + '/tried', 'w')\n"
    "    except OSError: return 'no'\n"
    "    return 'yes'\n"
    "say({'answer': ' '.join(map(tried, ['.', folder, os.environ['HOME'], os.environ['SMALL_DATA']]))})"
)


class TestSandboxes:
    def test_without_one_permissions_are_all_there_is(self, place: Place) -> None:
        """P13: and the record says so."""
        place.around = replace(place.around, environ={**place.around.environ, "PATH": str(place.folder)})
        small = place.small(TRY)
        small.writable = ()
        outcome = place.ask(small, CallKind.READ)

        assert outcome.sandbox is SandboxKind.PERMISSIONS_ONLY
        assert outcome.answer == "yes yes yes yes"

    def test_a_program_with_one_of_its_own_is_run_as_it_is(self, place: Place) -> None:
        """P13: nothing is wrapped that did not ask for it."""
        assert place.ask(place.small(TRY), CallKind.READ).answer == "yes yes yes yes"

    @needed
    @pytest.mark.parametrize(
        ("kind", "expected"), [(CallKind.READ, "no no yes yes"), (CallKind.WORK, "yes no yes yes")]
    )
    def test_inside_only_the_session_and_what_is_named_is_written(
        self, place: Place, kind: CallKind, expected: str
    ) -> None:
        """P13: a reader nothing of the checkout, a worker its working copy."""
        small = place.small(TRY)
        small.writable = () if kind is CallKind.READ else (place.folder,)
        outcome = place.ask(small, kind)

        assert outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert outcome.answer == expected
        assert (place.folder / "tried").exists() is (kind is CallKind.WORK)

    @needed
    def test_a_worker_can_be_kept_from_reading_too(self, place: Place) -> None:
        """P13 F31: only the system, the program, its session and what is named is there for it."""
        for name in ("shown", "hidden"):
            (place.tmp_path / name).mkdir()
            (place.tmp_path / name / "file").write_text(name)
        body = (
            "prompt = sys.stdin.buffer.read()\n"
            "places = [folder + '/shown/file', folder + '/hidden/file', '.', os.environ['SMALL_DATA']]\n"
            "say({'answer': ' '.join(str(os.path.exists(place)) for place in places)})"
        )
        small = place.small(body)
        small.writable = (place.folder,)
        # The fake program's interpreter is no part of the system.
        roots = (Path(sys.prefix), Path(sys.base_prefix), place.tmp_path / "shown")
        call = WorkCall("Mend.", place.folder, "fake-model", 20, read_roots=roots)
        outcome = small.work(call, around=place.around)

        assert outcome.sandbox is SandboxKind.BUBBLEWRAP
        assert outcome.answer == "True False True True"

    @needed
    def test_inside_a_login_can_be_renewed(self, place: Place) -> None:
        """P3 P13: the real file behind the link is written, and nothing beside it."""
        real = place.tmp_path / "real"
        real.mkdir()
        (real / "auth.json").write_text("old")

        class WithLogin(Small):
            linked = (Login(real / "auth.json", "auth.json of REAL"),)
            writable = ()

        body = (
            "config = os.path.dirname(os.environ['SMALL_HOME'])\n"
            "open(config + '/auth.json', 'w').write('renewed')\n"
            "try: open(os.path.dirname(os.readlink(config + '/auth.json')) + '/beside', 'w')\n"
            "except OSError: say({'answer': 'refused'})"
        )
        provider = WithLogin.at(write_fake(place.tmp_path / "program", body), around=place.around)

        assert place.ask(provider, CallKind.READ).answer == "refused"
        assert (real / "auth.json").read_text() == "renewed"

    @needed
    def test_a_place_that_is_not_there_starts_nothing(self, place: Place) -> None:
        """P6: unstartable with a reason, before anything is paid for."""
        small = place.small("open(folder + '/ran', 'w')")
        small.writable = (place.tmp_path / "missing",)
        outcome = place.ask(small, CallKind.READ)

        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["session_unavailable"])

    @needed
    def test_a_further_child_is_inside_too(self, place: Place) -> None:
        """P13: there is no way around it."""

        def after(after: Aftermath) -> Told:
            output = after.run(["/bin/sh", "-c", "touch later || echo refused"])
            return Told(export=output.stdout if output else None)

        small = place.small()
        small.writable, small.after = (), after
        outcome = place.ask(small, CallKind.READ)

        assert outcome.recording is not None
        assert outcome.recording.export == b"refused\n"
        assert os.listdir(place.folder) == []  # noqa: PTH208 - names are all that is asked for


class TestWhatWasStopped:
    """A call whose program ended well, and whose adapter could not ask what it had to know."""

    @pytest.mark.parametrize(("needed", "ending"), [(True, Ending.CANCELLED), (False, Ending.SUCCESS)])
    def test_our_stop_before_it_could_ask(self, place: Place, *, needed: bool, ending: Ending) -> None:
        """P6: cancelled where a success needed it; whoever needs nothing more has its answer."""
        small, stop = place.small(), []

        def after(after: Aftermath) -> Told:
            assert after.stopped() is None
            stop.append(True)
            assert after.run(["/bin/true"]) is None
            assert after.stopped() is Ended.CANCELLED
            return Told(stopped=after.stopped()) if needed else Told()

        small.after = after
        outcome = small.judge(question(), around=place.around, cancelled=lambda: bool(stop))

        assert (outcome.ending, outcome.exit_code) == (ending, 0)
        assert outcome.recording is not None

    def test_time_that_is_over_before_it_could_ask(self, place: Place) -> None:
        """P6: timeout."""
        small = place.small()
        clock, later = place.around.monotonic, [0.0]

        def after(after: Aftermath) -> Told:
            later.append(1_000.0)
            assert after.run(["/bin/true"]) is None
            return Told(stopped=after.stopped())

        small.after = after
        around = replace(place.around, monotonic=lambda: clock() + sum(later))
        assert small.judge(question(), around=around).ending is Ending.TIMEOUT

    def test_a_child_that_errs_is_no_stop(self, place: Place) -> None:
        """P6: what it did is the adapter's to judge, and no stop of ours explains it."""
        small = place.small()
        seen: list[tuple[int | None, Ended | None]] = []

        def after(after: Aftermath) -> Told:
            output = after.run(["/bin/false"])
            assert output is not None
            seen.append((output.process.exit_code, after.stopped()))
            return Told()

        small.after = after
        place.ask(small)
        assert seen == [(1, None)]
