"""The steps in one folder: each once, on what is really there."""

from __future__ import annotations

import itertools
import json
import shutil
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.controls import chain, steps
from skill_effectiveness.controls.candidates import freeze_reference
from skill_effectiveness.controls.documents import SelectorInput, line_of
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.steps import (
    Measured,
    declare_root,
    finalize_root,
    held,
    measure_root,
    prepare_root,
    read_measurement,
    read_preparation,
    read_selection,
)
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.registries import Scope
from tests.support.controls import (
    brief,
    candidate,
    contents,
    decision,
    measured_root,
    reference,
    request,
    selected_root,
)
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import content, out_root, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.root import PrivateRoot

CLAIM, STATE, INPUT = "active-control-claim.json", "controller-state.json", "selector-input.json"
SELECTION, MEASUREMENT = "active-control-selection.json", "owner-relative-measurement.json"
LOCKS = [".active-control.lock"]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        yield opened


def refused(call: Callable[[], object]) -> ControlError:
    with pytest.raises(ControlError) as caught:
        call()
    return caught.value


def artifacts(root: PrivateRoot) -> dict[str, bytes]:
    return {name: data for name, data in content(root.path).items() if not name.startswith(".active")}


def declared(root: PrivateRoot, scope: Scope = Scope.MAIN, **ids: str) -> Any:  # noqa: ANN401 - the evidence
    named = Measured(read_selection(root), read_measurement(root))
    slot = named.selection.decision.selected_opaque_id
    right = {"active": f"{slot}-{scope}", "oracle": f"oracle-owner-{scope}"}
    return declare_root(root, named, reference(), scope, **(right | ids))


class TestOrder:
    def test_what_lies_there_after_each_step(self, root: PrivateRoot) -> None:
        """A6: names, modes and bytes; nothing is ever rewritten."""
        found = prepare_root(root, request())
        assert sorted(root.names()) == sorted([*LOCKS, CLAIM, STATE, INPUT])
        before = artifacts(root)
        selection = finalize_root(root, decision(found.selector_input))
        assert artifacts(root) == before | {SELECTION: line_of(selection)}
        mark = f'{{"artifact_hash":"{selection.artifact_hash}","schema_version":1}}\n'
        assert root.read(".active-control-selection.lock") == mark.encode()
        measurement = measure_root(root, reference())
        mark = ".owner-relative-measurement.lock"
        before = artifacts(root)
        assert sorted(before) == sorted([CLAIM, STATE, INPUT, SELECTION, MEASUREMENT, mark])
        assert before[MEASUREMENT] == line_of(measurement)
        for scope in Scope:
            evidence = declared(root, scope)
            before |= {f"matched-call-evidence-{scope}.json": line_of(evidence)}
            assert artifacts(root) == before
        assert wrong_modes(root.path) == []
        assert stat.S_IMODE(root.path.stat().st_mode) == 0o700

    def test_a_step_needs_the_ones_before(self, root: PrivateRoot) -> None:
        other = chain.prepare(request(), root.around.entropy)
        made = decision(other.selector_input)
        assert refused(lambda: finalize_root(root, made)).code is ControlCode.STEP_MISSING
        assert refused(lambda: measure_root(root, reference())).code is ControlCode.STEP_MISSING
        prepare_root(root, request())
        assert refused(lambda: measure_root(root, reference())).code is ControlCode.STEP_MISSING
        # Another draw's selector input.
        assert refused(lambda: finalize_root(root, made)).code is ControlCode.DECISION_UNFIT


class TestOnce:
    def test_no_step_is_taken_twice(self, root: PrivateRoot) -> None:
        """A7: the first result stays byte for byte, also for other input."""
        found = prepare_root(root, request())
        taken: list[Callable[[], object]] = [
            lambda: prepare_root(root, request()),
            lambda: prepare_root(root, request(candidate("two"), candidate("one"))),
            lambda: prepare_root(root, request(asked=brief(), owner=freeze_reference(contents("two")))),
        ]
        finalize_root(root, decision(found.selector_input))
        taken += [
            lambda: finalize_root(root, decision(found.selector_input)),
            lambda: finalize_root(root, decision(found.selector_input, place=1)),
        ]
        measure_root(root, reference())
        taken += [lambda: measure_root(root, reference())]
        for scope in Scope:
            declared(root, scope)
        taken += [lambda: declared(root), lambda: declared(root, Scope.SUBAGENT)]
        before = artifacts(root)
        for call in taken:
            assert refused(call).code is ControlCode.ROOT_USED
            assert artifacts(root) == before

    def test_a_deleted_selection_is_not_chosen_again_after_a_measurement(self, root: PrivateRoot) -> None:
        """A7: what came after it says that there was one."""
        measured_root(root)
        (root.path / SELECTION).unlink()
        made = decision(read_preparation(root).selector_input, place=1)
        assert refused(lambda: finalize_root(root, made)).code is ControlCode.ROOT_SPENT
        (root.path / MEASUREMENT).unlink()
        assert refused(lambda: finalize_root(root, made)).code is ControlCode.ROOT_SPENT

    @pytest.mark.parametrize("place", [0, 1])
    def test_a_deleted_selection_comes_back_as_it_was_or_not_at_all(
        self, root: PrivateRoot, place: int
    ) -> None:
        """A7: before a measurement as well, taking a choice away gives no other."""
        shown = prepare_root(root, request()).selector_input
        finalize_root(root, decision(shown, place=place))
        sealed = root.read(SELECTION)
        (root.path / SELECTION).unlink()
        error = refused(lambda: finalize_root(root, decision(shown, place=1 - place)))
        assert (error.code, error.where) == (ControlCode.ROOT_SPENT, SELECTION)
        assert "that decision again" in error.sentence
        assert not (root.path / SELECTION).exists()
        finalize_root(root, decision(shown, place=place))
        assert root.read(SELECTION) == sealed

    def test_an_exchanged_selection_is_not_gone_on_with(self, root: PrivateRoot) -> None:
        """A7 A8: the other choice of the same draw, whole in itself, in the place of the sealed one."""
        found = prepare_root(root, request())
        finalize_root(root, decision(found.selector_input))
        other = chain.select(found, decision(found.selector_input, place=1))
        (root.path / SELECTION).write_bytes(line_of(other))
        assert refused(lambda: measure_root(root, reference())).code is ControlCode.ROOT_SPENT
        assert not root.exists(MEASUREMENT)

    def test_a_choice_that_died_is_made_by_the_same_decision(self, tmp_path: Path) -> None:
        """A6 A7: at every step; once it was marked, another decision is refused."""
        answers: set[str] = set()
        for nth in itertools.count(1):
            (tmp_path / str(nth)).mkdir(mode=0o700)
            with out_root(tmp_path / str(nth)) as opened:
                shown = prepare_root(opened, request()).selector_input
            with out_root(tmp_path / str(nth), MortalFs(RealFs(), nth)) as mortal:
                try:
                    finalize_root(mortal, decision(shown))
                    break
                except Died:
                    pass
            with out_root(tmp_path / str(nth)) as opened:
                marked = opened.exists(".active-control-selection.lock")
                if marked:
                    with pytest.raises(ControlError):
                        finalize_root(opened, decision(shown, place=1))
                try:
                    finalize_root(opened, decision(shown))
                    answers.add("finalized")
                except ControlError as error:
                    answers.add(error.code)
                assert read_selection(opened).decision == decision(shown)
        assert answers == {"finalized", ControlCode.ROOT_USED}
        assert nth > 10

    def test_two_at_once_prepare_once(self, tmp_path: Path) -> None:
        """A7: the second of two processes finds the first one's claim."""
        codes: list[str] = []

        def one() -> None:
            with out_root(tmp_path) as opened:
                try:
                    prepare_root(opened, request())
                    codes.append("prepared")
                except ControlError as error:
                    codes.append(error.code)

        with out_root(tmp_path) as opened:
            # So that nobody is caught while making the lock itself.
            with held(opened, "begin"):
                pass
            threads = [threading.Thread(target=one) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted(codes) == ["prepared", "root_used", "root_used", "root_used"]


class TestMeasuredFailure:
    OWNER = freeze_reference(contents("owner").model_copy(update={"main": "Be careful."}))

    def test_it_is_written_and_stays(self, root: PrivateRoot) -> None:
        """A11: a failure is a result."""
        selected_root(root, owner=self.OWNER)
        assert measure_root(root, self.OWNER).status == "fail"
        before = artifacts(root)
        assert json.loads(before[MEASUREMENT])["status"] == "fail"
        assert refused(lambda: measure_root(root, self.OWNER)).code is ControlCode.ROOT_USED
        assert artifacts(root) == before

    def test_deleting_it_does_not_give_another_attempt(self, root: PrivateRoot) -> None:
        """A11: and without it nothing goes on."""
        selected_root(root, owner=self.OWNER)
        measure_root(root, self.OWNER)
        (root.path / MEASUREMENT).unlink()
        error = refused(lambda: measure_root(root, self.OWNER))
        assert error.code is ControlCode.ROOT_SPENT
        assert "new one" in error.sentence
        assert refused(lambda: declared(root)).code is ControlCode.STEP_MISSING
        assert not (root.path / MEASUREMENT).exists()

    def test_nothing_is_declared_on_it(self, root: PrivateRoot) -> None:
        """A11: a matched call needs a passing one."""
        selected_root(root, owner=self.OWNER)
        measurement = measure_root(root, self.OWNER)
        selection = read_selection(root)
        slot = selection.decision.selected_opaque_id
        error = refused(
            lambda: declare_root(
                root,
                Measured(selection, measurement),
                self.OWNER,
                Scope.MAIN,
                active=f"{slot}-main",
                oracle="oracle-owner-main",
            )
        )
        assert error.code is ControlCode.MEASUREMENT_FAILED
        assert not (root.path / "matched-call-evidence-main.json").exists()

    def test_another_reference_is_no_attempt(self, root: PrivateRoot) -> None:
        """A11: it is refused, and the committed one can still be measured."""
        selected_root(root)
        error = refused(lambda: measure_root(root, freeze_reference(contents("two"))))
        assert error.code is ControlCode.REFERENCE_DIFFERS
        assert measure_root(root, reference()).status == "pass"


class TestForeign:
    @pytest.mark.parametrize(
        "name", ["notes.txt", ".hidden", "active-control-claim.json.bak", "crash", ".selector-input.pending"]
    )
    def test_an_unknown_name_stops_every_step_and_stays(self, root: PrivateRoot, name: str) -> None:
        """A6: named, and nothing is touched, not even by a lock."""
        (root.path / name).mkdir()
        error = refused(lambda: prepare_root(root, request()))
        assert (error.code, error.where) == (ControlCode.ROOT_FOREIGN, name)
        assert root.names() == (name,)

    def test_later_steps_judge_the_listing_too(self, root: PrivateRoot) -> None:
        measured_root(root)
        (root.path / "matched-call-evidence-other.json").touch(0o600)
        assert refused(lambda: measure_root(root, reference())).code is ControlCode.ROOT_FOREIGN
        assert refused(lambda: declared(root)).code is ControlCode.ROOT_FOREIGN

    def test_our_own_interrupted_writes_are_dropped(self, root: PrivateRoot) -> None:
        (root.path / f".{CLAIM}.0123456789abcdef.tmp").touch(0o600)
        prepare_root(root, request())
        assert sorted(root.names()) == sorted([*LOCKS, CLAIM, STATE, INPUT])

    def test_an_artifact_with_another_mode_is_refused(self, root: PrivateRoot) -> None:
        found = prepare_root(root, request())
        (root.path / STATE).chmod(0o644)
        with pytest.raises(FileError) as caught:
            finalize_root(root, decision(found.selector_input))
        assert caught.value.code is FileCode.FILE_MODE


class TestSpent:
    def staged(self, root: PrivateRoot, *names: str) -> None:
        """Leave what a crash leaves right after the claim, without these staged files."""
        found = prepare_root(root, request())
        for name, document in ((CLAIM, found.claim), (STATE, found.state), (INPUT, found.selector_input)):
            root.replace(f".{name.removesuffix('.json')}.pending.json", line_of(document))
            if name != CLAIM:
                root.remove(name)
        for name in names:
            root.remove(name)

    def test_a_claim_with_its_staged_state_is_finished(self, root: PrivateRoot) -> None:
        """A6: the same command gives the draw that was claimed."""
        self.staged(root)
        claim = root.read(CLAIM)
        found = prepare_root(root, request())
        assert root.read(CLAIM) == claim == line_of(found.claim)
        assert sorted(root.names()) == sorted([*LOCKS, CLAIM, STATE, INPUT])
        read_preparation(root)

    def test_other_input_does_not_finish_it(self, root: PrivateRoot) -> None:
        """A6: another brief, reference or candidate."""
        self.staged(root)
        before = content(root.path)
        third = candidate("one", commitment=b"somebody else")
        for other in (
            request(owner=freeze_reference(contents("two"))),
            request(third, candidate("two")),
        ):
            assert refused(lambda other=other: prepare_root(root, other)).code is ControlCode.ROOT_USED  # type: ignore[misc]
        after = content(root.path)
        assert {name: after[name] for name in before if not name.startswith(".active")} == {
            name: data for name, data in before.items() if not name.startswith(".active")
        }

    @pytest.mark.parametrize("name", [".controller-state.pending.json", ".selector-input.pending.json"])
    def test_a_claim_without_staged_state_is_spent(self, root: PrivateRoot, name: str) -> None:
        """A6: a new root, and nothing is touched."""
        self.staged(root, name)
        before = artifacts(root)
        error = refused(lambda: prepare_root(root, request()))
        assert error.code is ControlCode.ROOT_SPENT
        assert "start in a new one" in error.sentence
        assert artifacts(root) == before

    def test_a_claim_of_another_draw_is_spent(self, root: PrivateRoot) -> None:
        """A6: the staged state must have the request hash of the claim."""
        self.staged(root)
        other = chain.prepare(request(), root.around.entropy)
        for name, document in (("controller-state", other.state), ("selector-input", other.selector_input)):
            root.replace(f".{name}.pending.json", line_of(document))
        assert refused(lambda: prepare_root(root, request())).code is ControlCode.ROOT_SPENT

    def test_artifacts_without_their_claim_are_spent(self, root: PrivateRoot) -> None:
        """A6: a claim that was taken away."""
        prepare_root(root, request())
        (root.path / CLAIM).unlink()
        assert refused(lambda: prepare_root(root, request())).code is ControlCode.ROOT_SPENT

    def test_what_was_staged_by_halves_before_a_claim_is_drawn_anew(self, root: PrivateRoot) -> None:
        """A6: nobody was promised anything."""
        root.replace(".controller-state.pending.json", b"{")
        prepare_root(root, request())
        assert sorted(root.names()) == sorted([*LOCKS, CLAIM, STATE, INPUT])


def changed_bytes(data: bytes) -> Iterator[bytes]:
    """One byte changed, at about sixty places, the first and the last among them."""
    for place in sorted({0, len(data) - 2, len(data) - 1, *range(0, len(data), max(1, len(data) // 60))}):
        yield data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


class TestEveryByte:
    @pytest.mark.parametrize("name", [CLAIM, STATE, INPUT, SELECTION, MEASUREMENT])
    def test_a_changed_byte_is_found(self, root: PrivateRoot, name: str) -> None:
        """A8: in every artifact that a later step rests on."""
        measured_root(root)
        good = Measured(read_selection(root), read_measurement(root))
        slot = good.selection.decision.selected_opaque_id
        path = root.path / name
        data = path.read_bytes()
        for broken in changed_bytes(data):
            path.write_bytes(broken)
            error = refused(
                lambda: declare_root(
                    root,
                    good,
                    reference(),
                    Scope.MAIN,
                    active=f"{slot}-main",
                    oracle="oracle-owner-main",
                )
            )
            assert error.code in {ControlCode.DOCUMENT_INVALID, ControlCode.CHAIN_BROKEN}
        path.write_bytes(data)
        declared(root)

    @pytest.mark.parametrize("name", [CLAIM, STATE, INPUT])
    def test_finalize_reads_the_whole_chain_again(self, root: PrivateRoot, name: str) -> None:
        """A8: a byte changed between preparation and choice."""
        found = prepare_root(root, request())
        path = root.path / name
        data = path.read_bytes()
        for broken in changed_bytes(data):
            path.write_bytes(broken)
            made = decision(found.selector_input)
            assert refused(lambda made=made: finalize_root(root, made)).code in {  # type: ignore[misc]
                ControlCode.DOCUMENT_INVALID,
                ControlCode.CHAIN_BROKEN,
            }
        assert not (root.path / SELECTION).exists()

    def test_files_of_another_folder_are_refused(self, root: PrivateRoot, tmp_path: Path) -> None:
        """A8: each whole in itself, from another draw of the same request."""
        measured_root(root)
        (tmp_path / "other").mkdir(mode=0o700)
        with out_root(tmp_path / "other") as other:
            measured_root(other)
            named = Measured(read_selection(other), read_measurement(other))
            slot = named.selection.decision.selected_opaque_id
            error = refused(
                lambda: declare_root(
                    root, named, reference(), Scope.MAIN, active=f"{slot}-main", oracle="oracle-owner-main"
                )
            )
            assert error.code is ControlCode.CHAIN_BROKEN
            shutil.copy(other.path / SELECTION, root.path / SELECTION)
        assert refused(lambda: read_selection(root)).code is ControlCode.DECISION_UNFIT


def test_the_selector_input_reads_as_what_was_prepared(root: PrivateRoot) -> None:
    found = prepare_root(root, request())
    assert SelectorInput.model_validate_json(root.read(INPUT)) == found.selector_input
    assert steps.read_preparation(root) == found
