"""What a demanded confinement puts around a work call, with a small program in the place of an agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution import LimitName, Sandbox, Tracer
from skill_effectiveness.providers import Ending, ProviderError, SandboxKind, WorkCall, walls
from skill_effectiveness.providers.confinement import Confinement, Observation, Touch
from tests.support.fake_program import write_fake
from tests.support.provider_calls import codes
from tests.support.small_adapter import Place, Small

if TYPE_CHECKING:
    from skill_effectiveness.providers import CallOutcome

REAL = Surroundings.real()
BOTH = Sandbox.found(REAL) is not None and Tracer.found(REAL) is not None
needed = pytest.mark.skipif(not BOTH, reason="bubblewrap and strace are needed, and leave to use them")

HEAD = "prompt = sys.stdin.buffer.read()\n"
PRY = HEAD + (
    "def tried(path, mode='r'):\n"
    "    try: open(path, mode).close()\n"
    "    except OSError: return 'no'\n"
    "    return 'yes'\n"
    "open('made', 'w').write('x')\n"
    "tmp = os.environ['TMPDIR']\n"
    "places = [tried(secret), tried('/tmp/new', 'w'), tried(tmp + '/new'), tried('/x', 'w'), tried(hidden)]\n"
    "say({'answer': ' '.join([os.getcwd(), *places, os.environ.get('TASK', '-'), os.environ['SMALL_MODE']])})"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Prying:
    """A program that looks where it should not, and what came of it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.copy = place.tmp_path / "copy"
        self.hidden = place.tmp_path / "R"
        for folder in (self.copy, self.hidden):
            folder.mkdir()
        self.secret = place.tmp_path / "secret"
        self.secret.write_text("s")
        (self.hidden / "tests").write_text("t")

    def work(self, body: str = PRY, adapter: type[Small] = Small, **demanded: object) -> CallOutcome:
        held = {"place": "/app", "traced": True, "hidden": (self.hidden,)} | demanded
        confinement = Confinement(**held)  # type: ignore[arg-type]
        words = {"secret": str(self.secret), "hidden": str(self.hidden / "tests")}
        path = write_fake(self.place.tmp_path / "program", body, **words)
        program = adapter.at(path, around=self.place.around)
        program.writable = (self.copy,)
        call = WorkCall(
            "Mend.", self.copy, "fake-model", 30, confinement=confinement,
            environment={"TASK": "given", "SMALL_MODE": "forged"},
        )  # fmt: skip
        return program.work(call, around=self.place.around)


@pytest.fixture
def prying(place: Place) -> Prying:
    return Prying(place)


def seen(outcome: CallOutcome) -> Observation:
    assert outcome.observation is not None
    return outcome.observation


@needed
class TestConfined:
    def test_nothing_but_what_is_named_is_there(self, prying: Prying) -> None:
        """S13 F31 F32: and what was tried is told; the task's variables never go before the session's."""
        outcome = prying.work()
        assert outcome.answer == "/app no yes yes no no given work"
        assert outcome.sandbox is SandboxKind.BUBBLEWRAP
        observed = seen(outcome)
        assert observed.faults == ()
        assert (observed.complete, observed.enforced) == (True, True)
        assert Touch("open", "write", str(prying.copy / "made")) in observed.touched
        assert Touch("open", "read", str(prying.hidden / "tests")) in observed.refused
        assert outcome.began_empty

    def test_roots_are_what_is_shown(self, prying: Prying) -> None:
        """S13: every write root can be read, none lies in another, and the working copy is one."""
        observed = seen(prying.work())
        read, write = observed.read_roots, observed.write_roots
        assert set(write) < set(read)
        assert len(write) == 7
        assert str(prying.copy) in write
        assert not {"/", str(prying.place.tmp_path), "/tmp"} & set(read)  # noqa: S108 - a name
        for roots in (read, write):
            assert not [one for one in roots for other in roots if one.startswith(f"{other}/")]

    def test_what_must_be_hidden_is_never_shown(self, prying: Prying) -> None:
        """S13: the call is not begun."""
        outcome = prying.work(readable=(prying.place.tmp_path,))
        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["session_unavailable"])
        assert not (prying.copy / "made").exists()

    def test_what_is_named_is_shown_and_cannot_be_written(self, prying: Prying) -> None:
        """S8: `read_only` is what it says."""
        body = HEAD + (
            "def wrote():\n"
            "    try: open(secret, 'w')\n"
            "    except OSError: return 'no'\n"
            "say({'answer': open(secret).read() + ' ' + wrote()})"
        )
        outcome = prying.work(body, readable=(prying.secret,))
        assert outcome.answer == "s no"
        assert Touch("open", "read", str(prying.secret)) in seen(outcome).touched
        assert str(prying.secret) in seen(outcome).read_roots

    def test_without_a_record_the_walls_stand(self, prying: Prying) -> None:
        """S13: nothing touched is told, and nothing claimed to be complete."""
        observed = seen(prying.work(traced=False))
        assert (observed.enforced, observed.complete, observed.touched) == (True, False, ())


@needed
class TestRecordedOnly:
    def test_what_is_outside_is_told_and_the_record_proves_nothing(self, prying: Prying) -> None:
        """S21: whoever is not confined could reach the log."""
        outcome = prying.work(place=None)
        observed = seen(outcome)
        assert Touch("open", "read", str(prying.secret)) in observed.touched
        assert not any(str(prying.secret).startswith(root) for root in observed.read_roots)
        assert (observed.enforced, observed.complete) == (False, False)
        assert "within reach" in " ".join(observed.faults)


@needed
class TestLongRecords:
    BODY = HEAD + "open('begun', 'w').close()\nwhile True: open('/dev/null').close()"

    def test_a_record_that_becomes_too_long_ends_the_call(
        self, prying: Prying, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S13 F11: long before the call's time; the limit is named, and what was recorded is told."""
        monkeypatch.setattr(walls, "LOG_BYTES", 200_000)
        outcome = prying.work(self.BODY)
        assert (outcome.ending, outcome.limit) == (Ending.LIMIT, LimitName.TRACE_BYTES)
        assert (prying.copy / "begun").exists()
        assert outcome.latency_ms < 20_000
        assert Touch("open", "write", str(prying.copy / "begun")) in seen(outcome).touched

    def test_a_call_that_is_not_recorded_has_no_such_limit(
        self, prying: Prying, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """S13: nothing is written then."""
        monkeypatch.setattr(walls, "LOG_BYTES", 0)
        assert prying.work(traced=False).ending is Ending.SUCCESS


class TestNotHere:
    @pytest.mark.parametrize("demanded", [{"traced": False}, {"place": None}], ids=["sandbox", "record"])
    def test_what_cannot_be_had_starts_nothing(self, prying: Prying, demanded: dict[str, Any]) -> None:
        """S15: never less than was demanded."""
        around = prying.place.around
        prying.place.around = replace(around, environ={**around.environ, "PATH": str(prying.copy)})
        outcome = prying.work(**demanded)
        assert (outcome.ending, codes(outcome)) == (Ending.UNSTARTABLE, ["requisite_missing"])
        assert not (prying.copy / "made").exists()

    def test_a_program_that_lives_in_the_users_home(self, prying: Prying) -> None:
        """S15: it says so itself."""

        class AtHome(Small):
            confinable = False

        with pytest.raises(ProviderError, match="own home"):
            prying.work(adapter=AtHome)


class TestDemands:
    @pytest.mark.parametrize("path", ["/", "app", "/a/../b"])
    def test_a_place_is_a_path_of_its_own(self, path: str) -> None:
        """S8: absolute, and not everything."""
        with pytest.raises(ProviderError, match="place of the working copy"):
            Confinement(path)

    def test_what_is_named_is_absolute(self) -> None:
        """S8: for reading and for hiding."""
        for demanded in ({"readable": (Path("a"),)}, {"hidden": (Path("a"),)}):
            with pytest.raises(ProviderError, match="absolute"):
                Confinement(**demanded)  # type: ignore[arg-type]
