"""What a worker does with an order: an agent program with its own login and state, graders, assays."""

from __future__ import annotations

import errno
import json
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pytest

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.providers import CodexProvider
from skill_effectiveness.studies import cluster_worker
from skill_effectiveness.studies.runner import RunStatus
from skill_effectiveness.studies.working_agent import PlannedAgent, WorkingAgent
from skill_effectiveness.trials.models import AuditRow, Operation
from tests.support.clusters import InlineLink, Played, host_of, play_workers, pooled, run_on
from tests.support.crash_images import fast_folder
from tests.support.fake_program import write_fake
from tests.support.private import surroundings
from tests.support.provider_calls import DONE, THREAD, TURN, message
from tests.support.studies import Bench, bench, example, write
from tests.support.study_runs import outcomes, rows_of, state_of, types_of
from tests.support.working_studies import HEAD, OBEYING, files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.studies.agent import AttemptResult, Cancelled
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.root import StudyRoot
    from tests.support.clusters import InlineTicket

WORKS = (
    OBEYING
    + """
else:
    open("answer.sh", "w").write("#!/bin/sh\\n"); os.chmod("answer.sh", 0o755)
    open("seen.txt", "w").write(prompt + repr(skills))
answer()
"""
)
BLIND = """
if checked:
    open("exposure.txt", "w").write("none")
answer()
"""
"""An agent whose skills never arrive."""


class Place:
    """A planned study of a fake program, on a machine of its own."""

    def __init__(self, held: Bench, program: Path) -> None:
        self.bench = held
        self.program = program

    def worker(self, name: str, program: Path | None = None, **others: object) -> Played:
        """A worker that has the program too, or another one."""
        temporary = self.bench.folder / f"temporary-{name}"
        temporary.mkdir(mode=0o700, exist_ok=True)
        own = {"SKILL_EFFECTIVENESS_AGENT": str(program or self.program), "TMPDIR": str(temporary)}
        return Played(host_of(self.bench.folder, name, **own, **others))  # type: ignore[arg-type]

    def link(self, *names: str) -> InlineLink:
        return InlineLink({f"tcp://{name}": self.worker(name) for name in names})

    def agent(self, study: StudyRoot) -> PlannedAgent:
        return PlannedAgent(study, CodexProvider.at(self.program, around=self.bench.around))


@contextmanager
def placed(
    patch: pytest.MonkeyPatch, body: str = WORKS, edits: Mapping[str, str] | None = None
) -> Iterator[Place]:
    play_workers(patch)
    with fast_folder() as folder:
        home, temporary = folder / "home", folder / "temporary"
        home.mkdir(mode=0o700)
        temporary.mkdir(mode=0o700)
        environ = {"HOME": str(home), "TMPDIR": str(temporary), "PATH": "/usr/bin:/bin"}
        around = replace(surroundings(), environ=environ)
        program = write_fake(
            folder / "codex", HEAD + body, thread=THREAD, turn=TURN, done=DONE, said=message("done")
        )
        with bench(folder, around) as held:
            held.plan(write(folder / "study", files(program, edits)))
            yield Place(held, program)


@pytest.mark.slow
def test_an_agent_program_on_two_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30 S31: attempts, assays and grading all run there; what comes to it is what threads come to."""
    with placed(monkeypatch) as place:
        link = place.link("one", "two")
        assert run_on(place.bench, link, agent=place.agent).status is RunStatus.COMPLETE
        assert outcomes(place.bench) == dict.fromkeys((1, 2, 3, 4), ("completed", 1.0))
        kinds = [json.loads(order)["kind"] for _, order, _ in link.shipped]
        # Two arms, opening and close, on each of two hosts.
        assert (kinds.count("attempt"), kinds.count("grade"), kinds.count("assay")) == (4, 4, 8)
        assays = [row["body"]["result"] for row in rows_of(place.bench) if row["type"] == "assay"]
        assert assays == ["passed"] * 4
        seen = (place.bench.folder / "R/attempts").rglob("seen.txt")
        told = [path.read_text() for path in seen]
        assert sum("right-words" in text for text in told) == 2
        events = [path.read_text() for path in (place.bench.folder / "R/trials").rglob("events.jsonl")]
        assert all('"status":"clean"' in text for text in events)


@pytest.mark.slow
def test_hidden_tests_are_in_grade_orders_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: neither tests nor solution in any other order, and no worker keeps them."""
    with placed(monkeypatch) as place:
        link = place.link("one")
        run_on(place.bench, link, agent=place.agent)
        with place.bench.open() as study:
            task = study.task(study.plan.tasks[0].task_id)
            tests, solution = (
                [study.inputs.read(str(entry.sha256)) for entry in tree.files]
                for tree in (task.tests, task.solution)
            )
            seed = study.seed().hex()
        grades = [order for order in (json.loads(each) for _, each, _ in link.shipped) if "work" in order]
        assert {"arm", "slot", "sample", "salt", "attempt"} & set(grades[0]) == set()
        for _, order, given in link.shipped:
            everything = b"".join((order, *given))
            assert any(each in everything for each in tests) is (json.loads(order)["kind"] == "grade")
            assert not any(each in everything for each in solution)
            assert seed.encode() not in everything
            assert str(place.bench.folder).encode() not in order
            assert str(place.program).encode() not in everything
        kept = [path.read_bytes() for path in (place.bench.folder / "host-one").rglob("inputs/*")]
        assert kept
        assert not any(each in kept for each in (*tests, *solution))


@pytest.mark.slow
def test_an_assay_fails_where_one_host_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: passed only where all passed; the run is blocked before anything is started."""
    with placed(monkeypatch) as place:
        link = place.link("one", "two")
        link.players["tcp://two"].answers = [("done", b"failed")]
        outcome = run_on(place.bench, link, agent=place.agent)
        assert (outcome.status, outcome.reason) == (RunStatus.BLOCKED, "exposure_assay")
        assert "slot_started" not in types_of(place.bench)


class Joining(InlineLink):
    """A cluster to which hosts come once the first attempt is out."""

    coming: ClassVar[dict[str, Played]] = {}

    def send(self, address: str, order: bytes, given: Sequence[bytes], digest: str) -> InlineTicket:
        if json.loads(order)["kind"] == "attempt" and self.coming:
            self.players |= self.coming
            type(self).coming = {}
            time.sleep(0.2)
        return super().send(address, order, given, digest)


def kinds_at(link: InlineLink, address: str) -> list[str]:
    return [json.loads(order)["kind"] for at, order, _ in link.shipped if at == address]


@pytest.mark.slow
def test_a_host_that_comes_late_is_assayed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30 S34: for every arm, before its first attempt of a batch; one that fails gets no order."""
    with placed(monkeypatch) as place:
        link = Joining(place.link("one").players)
        bad = place.worker("three")
        bad.answers = [("done", b"failed")]
        Joining.coming = {"tcp://two": place.worker("two"), "tcp://three": bad}
        assert run_on(place.bench, link, agent=place.agent).status is RunStatus.COMPLETE
        late = kinds_at(link, "tcp://two")
        assert late[:3] == ["assay", "assay", "attempt"]
        # At the close both hosts that worked are asked again.
        assert late.count("assay") == 4
        assert kinds_at(link, "tcp://three") == ["assay"]
        assays = [row["body"]["result"] for row in rows_of(place.bench) if row["type"] == "assay"]
        assert assays == ["passed"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("apart", [True, False])
def test_who_can_speak_to_the_cluster_is_not_held(monkeypatch: pytest.MonkeyPatch, *, apart: bool) -> None:
    """S13 S33: over a plain connection an agent with the network could have anything run outside."""
    whole = WorkingAgent.attempt

    def attempt(self: WorkingAgent, order: AttemptOrder, at: str, cancelled: Cancelled) -> AttemptResult:
        result = whole(self, order, at, cancelled)
        row = AuditRow(actor="tested-agent", operation=Operation.READ, path="/usr/bin/true")
        observed = replace(
            result.observed, audit=(row,), roots_enforced=True, audit_complete=True, read_roots=("/usr",)
        )
        return replace(result, observed=observed)

    monkeypatch.setattr(WorkingAgent, "attempt", attempt)
    with placed(monkeypatch) as place:
        run_on(place.bench, place.link("one"), agent=place.agent, apart=apart)
        exits = [json.loads(path.read_bytes()) for path in place.bench.folder.rglob("exit.json")]
        told = {(each["isolation"]["roots_enforced"], each["isolation"]["audit_complete"]) for each in exits}
        assert (len(exits), told) == (4, {(apart, apart)})


def test_no_agent_where_it_would_be_shown_a_key_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """S13 S33: in its sandbox it has the network, so with a key it could have any worker do anything."""
    monkeypatch.setattr(cluster_worker, "key_files", lambda: ("/etc/dask/key.pem",))
    confined = {"sandbox: none": "sandbox: bubblewrap"}
    with placed(monkeypatch, edits=confined) as place, place.bench.open() as study:
        link = place.link("one")
        with pooled(study, link, place.agent(study)) as (clustered, pool):
            assert clustered.assay(1, "open", study.plan.arms[0].arm) == "failed"
            assert [fault for _, fault in pool.refused()] == ["cluster_key_shown"]


@pytest.mark.slow
def test_an_agent_that_sees_nothing_fails_its_assay(monkeypatch: pytest.MonkeyPatch) -> None:
    """S30: the nonce has to be written where the agent runs."""
    with placed(monkeypatch, BLIND) as place:
        outcome = run_on(place.bench, place.link("one"), agent=place.agent)
        assert outcome.reason == "exposure_assay"


@pytest.mark.slow
def test_another_program_gets_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """S32: of the same name, of other bytes; a like worker has them all."""
    with placed(monkeypatch) as place:
        other = write_fake(
            place.bench.folder / "codex-2", HEAD + "answer() ", thread=THREAD, turn=TURN, done=DONE,
            said=message("done"),
        )  # fmt: skip
        link = InlineLink({"tcp://one": place.worker("one"), "tcp://two": place.worker("two", other)})
        assert run_on(place.bench, link, agent=place.agent).status is RunStatus.COMPLETE
        assert link.players["tcp://two"].carried == []


@pytest.mark.parametrize("named", ["", "codex", "/nowhere/codex"])
def test_no_program_gets_no_order(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """S32: a worker without the agent, or with a relative path to one."""
    with placed(monkeypatch) as place:
        played = place.worker("one")
        environ = {**played.around.environ, "SKILL_EFFECTIVENESS_AGENT": named}
        played.around = replace(played.around, environ=environ)
        outcome = run_on(place.bench, InlineLink({"tcp://one": played}), agent=place.agent)
        assert outcome.reason == "no_like_worker.executable_hash"


@pytest.mark.slow
def test_a_program_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """S32: under the provider's name, where no variable names one."""
    with placed(monkeypatch) as place:
        played = place.worker("one")
        environ = {**played.around.environ, "PATH": f"{place.bench.folder}:/usr/bin:/bin"}
        del environ["SKILL_EFFECTIVENESS_AGENT"]
        played.around = replace(played.around, environ=environ)
        outcome = run_on(place.bench, InlineLink({"tcp://one": played}), agent=place.agent)
        assert outcome.status is RunStatus.COMPLETE


# The disk of a worker.


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    play_workers(monkeypatch)
    with fast_folder() as folder, bench(folder) as held:
        held.plan(example(folder, edits={"samples: 3": "samples: 1"}))
        yield held


def test_a_full_disk_before_the_call(four: Bench) -> None:
    """S31: nothing was begun, nothing is lost; the run says that no worker can."""
    full = FaultFs(RealFs(), *(Injection("write", errno.ENOSPC, nth=number) for number in range(1, 60)))
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one", fs=full))})
    outcome = run_on(four, link)
    assert (outcome.status, outcome.reason) == (RunStatus.BLOCKED, "no_like_worker.no_space")
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one"))})
    assert run_on(four, link).status is RunStatus.COMPLETE
    with state_of(four) as state:
        assert [each.ended for each in state.slots[1].attempts] == ["interrupted", "completed"]


def test_a_full_disk_after_the_call(four: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """S31: what was paid comes back although it could not be kept."""
    from skill_effectiveness.evidence.faults import Fault, FileCode, FileError  # noqa: PLC0415 - here alone
    from skill_effectiveness.studies.worker_store import WorkerStore  # noqa: PLC0415 - here alone

    def full(_store: WorkerStore, _digest: str, _parcel: bytes) -> None:
        raise FileError(Fault(FileCode.NO_SPACE, "done", "The disk is full."))

    monkeypatch.setattr(WorkerStore, "finish", full)
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one"))})
    assert run_on(four, link).status is RunStatus.COMPLETE
    assert types_of(four).count("slot_started") == 4


def test_an_order_under_another_name(four: Bench) -> None:
    """S30: what arrives is what was sent."""
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one"))})
    run_on(four, link)
    _, order, given = link.shipped[0]
    ticket = link.send("tcp://one", order, given, "sha256:" + "0" * 64)
    assert ticket.future.result(5) == ("unfit", b"order_digest")


def test_an_order_of_another_program(four: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """S32: a worker refuses by itself what its coordinator should not have sent."""
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one"))})
    run_on(four, link)
    monkeypatch.setattr(cluster_worker, "_manifest", lambda: "sha256:" + "1" * 64)
    _, order, given = link.shipped[0]
    ticket = link.send("tcp://one", order, given, link.players["tcp://one"].carried[0])
    assert ticket.future.result(5) == ("unfit", b"runtime_manifest_hash")


def test_inputs_that_are_not_there_are_asked_for(four: Bench) -> None:
    """S30: a worker whose store was removed says what it lacks, and begins nothing."""
    link = InlineLink({"tcp://one": Played(host_of(four.folder, "one"))})
    run_on(four, link)
    _, order, _ = link.shipped[0]
    link.players["tcp://one"].around = host_of(four.folder, "two")
    ticket = link.send("tcp://one", order, (), link.players["tcp://one"].carried[0])
    word, lacking = ticket.future.result(5)
    assert word == "missing"
    assert set(json.loads(lacking)) == set(json.loads(order)["inputs"])
