"""The registry: one draw and one measured choice for each pair."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.registry import PURPOSE, PairRegistry
from skill_effectiveness.controls.steps import finalize_root, measure_root, prepare_root, read_preparation
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.journal import Journal
from tests.support.controls import candidate, decision, plain_hash, reference, request, text_hash
from tests.support.killing_fs import Died, MortalFs
from tests.support.private import out_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[PairRegistry]:
    with folder(tmp_path, "registry") as opened:
        yield PairRegistry(opened, None)


@contextmanager
def folder(tmp_path: Path, name: str, fs: FileSystem | None = None) -> Iterator[PrivateRoot]:
    (tmp_path / name).mkdir(mode=0o700, exist_ok=True)
    with out_root(tmp_path / name, fs) as opened:
        yield opened


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(ControlError) as caught:
        call()
    assert caught.value.code is ControlCode.PAIR_REUSED


def rows(registry: PairRegistry) -> list[tuple[str, dict[str, object]]]:
    with Journal.open(registry.root, purpose=PURPOSE, state=None) as journal:
        return [(row.type, dict(row.body)) for row in journal.rows() if row.type != "journal_open"]


def test_preparation_and_measurement_are_rows(registry: PairRegistry, tmp_path: Path) -> None:
    """A9: their bodies, by hand."""
    with folder(tmp_path, "a") as root:
        found = prepare_root(root, request(), registry)
        selection = finalize_root(root, decision(found.selector_input))
        measure_root(root, reference(), registry)
        body = {
            "pair_hash": plain_hash(sorted([candidate("one").package_hash, candidate("two").package_hash])),
            "root_hash": text_hash(str(root.path)),
            "request_hash": found.claim.request_hash,
        }
    assert rows(registry) == [
        ("preparation", body),
        ("measurement", body | {"selection_artifact_hash": selection.artifact_hash}),
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_a_second_folder_is_refused(registry: PairRegistry, tmp_path: Path, turned: bool) -> None:  # noqa: FBT001 - both orders
    """A9: for the pair in either order of the arguments; nothing is claimed there."""
    with folder(tmp_path, "a") as root:
        prepare_root(root, request(), registry)
    pair = (candidate("one"), candidate("two"))
    with folder(tmp_path, "b") as root:
        refused(lambda: prepare_root(root, request(*pair[:: -1 if turned else 1]), registry))
        assert not [name for name in root.names() if not name.startswith(".")]
    assert [kind for kind, _ in rows(registry)] == ["preparation"]


def test_another_pair_is_free(registry: PairRegistry, tmp_path: Path) -> None:
    """A9: one candidate of a pair may be in another pair."""
    with folder(tmp_path, "a") as root:
        prepare_root(root, request(), registry)
    with folder(tmp_path, "b") as root:
        prepare_root(root, request(candidate("one"), candidate("two", commitment=b"third")), registry)
    assert len(rows(registry)) == 2


def test_the_same_folder_emptied_is_a_second_draw(registry: PairRegistry, tmp_path: Path) -> None:
    """A9: deleting a draw that one does not like gives no other."""
    with folder(tmp_path, "a") as root:
        prepare_root(root, request(), registry)
        shutil.rmtree(root.path)
    with folder(tmp_path, "a") as root:
        refused(lambda: prepare_root(root, request(), registry))


def test_a_copy_is_not_measured_as_well(registry: PairRegistry, tmp_path: Path) -> None:
    """A9: a folder copied before the choice, with the other choice in it."""
    with folder(tmp_path, "a") as root:
        prepare_root(root, request(), registry)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        finalize_root(root, decision(read_preparation(root).selector_input))
        measure_root(root, reference(), registry)
    with folder(tmp_path, "b") as root:
        finalize_root(root, decision(read_preparation(root).selector_input, place=1))
        refused(lambda: measure_root(root, reference(), registry))
        assert not root.exists("owner-relative-measurement.json")


def test_a_measurement_alone_is_remembered_too(registry: PairRegistry, tmp_path: Path) -> None:
    """A9: a registry that was not named at the preparation."""
    with folder(tmp_path, "a") as root:
        finalize_root(root, decision(prepare_root(root, request()).selector_input))
        measure_root(root, reference(), registry)
    with folder(tmp_path, "b") as root:
        refused(lambda: prepare_root(root, request(), registry))


def test_a_preparation_that_died_is_finished_with_its_own_draw(
    registry: PairRegistry, tmp_path: Path
) -> None:
    """A6 A9: at every step the same command goes through, and the pair has one row."""
    steps, answers = 0, set()
    for nth in range(1, 400, 3):
        steps += 1
        name = f"at-{nth}"
        pair = (candidate("one", commitment=name.encode()), candidate("two"))
        fs = MortalFs(RealFs(), nth)
        try:
            with folder(tmp_path, name, fs) as root:
                prepare_root(root, request(*pair), registry)
        except Died:
            pass
        if not fs.dead:
            break
        with folder(tmp_path, name) as root:
            try:
                found = prepare_root(root, request(*pair), registry)
            except ControlError as error:
                # Everything was published, and only the answer was lost.
                answers.add(error.code)
                found = read_preparation(root)
            assert read_preparation(root) == found
        with folder(tmp_path, f"{name}-again") as root:
            refused(lambda pair=pair, root=root: prepare_root(root, request(*pair), registry))  # type: ignore[misc]
    assert steps > 10
    assert answers <= {ControlCode.ROOT_USED}
    assert len(rows(registry)) == steps
