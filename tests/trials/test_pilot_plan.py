from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_plan import read_design, read_plan
from tests.support import trials
from tests.support.pilots import Pilot
from tests.support.trials import CONTENT, PROFILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.trials.pilot_plan import Design, PlanIndex
    from tests.support.pilots import Anything

CONFIG = trials.digest("f")


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Pilot:
    """A plan; nothing was run."""
    return Pilot(tmp_path_factory.mktemp("plan"))


def design_of(pilot: Pilot) -> Design:
    return read_design(pilot.expected.tasks, pilot.expected.manifests)


def index_of(pilot: Pilot, rows: Anything = None, *, samples_min: int = 3) -> PlanIndex:
    given = pilot.rows if rows is None else rows
    return read_plan(design_of(pilot), given, config_hash=CONFIG, samples_min=samples_min)


def refused(pilot: Pilot, rows: Anything, *, samples_min: int = 3) -> PilotError:
    with pytest.raises(PilotError) as caught:
        index_of(pilot, rows, samples_min=samples_min)
    assert caught.value.code is PilotCode.PLAN_INVALID
    return caught.value


class TestRows:
    def test_a_sound_plan(self, pilot: Pilot) -> None:
        found = index_of(pilot)
        assert len(found.trials) == 12
        assert (found.provider, found.model) == ("codex", "model-1")
        assert [trial.run_order for trial in found.trials.values()] == list(range(1, 13))

    def test_the_binding_is_the_digest_of_the_whole(self, pilot: Pilot) -> None:
        """T48: computed while the rows stream by, equal to the digest of the object they make."""
        whole = {
            "config_hash": CONFIG,
            "expected_tasks": pilot.expected.tasks,
            "expected_manifest_hashes": sorted(arm.manifest_hash for arm in pilot.manifests.values()),
            "expected_trials": pilot.rows,
        }
        assert index_of(pilot).binding_hash == digest_object(whole)

    @pytest.mark.parametrize(
        "field",
        [
            "task_hash",
            "manifest_hash",
            "runtime_hash",
            "runner_hash",
            "experiment_plan_hash",
            "trial_fingerprint",
        ],
    )
    def test_every_hash_is_computed_again(self, pilot: Pilot, field: str) -> None:
        rows = copy.deepcopy(pilot.rows)
        rows[3][field] = trials.digest("9")
        assert refused(pilot, rows).where == f"expected_trials#/3/{field}"

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("task_id",), "task-z"),
            (("arm_id",), "arm-z"),
            (("task_reference", "task_family"), "plan"),
            (("runtime", "session_id"), "another"),
            (("fingerprint_input", "sample_index"), 2),
            (("fingerprint_input", "task", "task_family"), "plan"),
            (("fingerprint_input", "runtime", "model"), "another"),
            (("fingerprint_input", "budget", "tokens"), 5),
            (("fingerprint_input", "trial_location_hash"), trials.digest("9")),
        ],
    )
    def test_every_part_fits_the_rest(self, pilot: Pilot, path: tuple[str, ...], value: Anything) -> None:
        rows = copy.deepcopy(pilot.rows)
        node = rows[0]
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = value
        assert refused(pilot, rows).where.startswith("expected_trials#/0/")

    @pytest.mark.parametrize(
        "change",
        [
            lambda row: row.pop("runtime"),
            lambda row: row.update(extra=1),
            lambda row: row.update(sample_index=True),
            lambda row: row.update(run_order=0),
            lambda row: row.update(task_hash="sha256:x"),
        ],
    )
    def test_a_row_has_exactly_its_fields(self, pilot: Pilot, change: Callable[[Anything], object]) -> None:
        rows = copy.deepcopy(pilot.rows)
        change(rows[1])
        assert refused(pilot, rows).where.startswith("expected_trials#/1/")

    def test_run_orders_have_no_gap(self, pilot: Pilot) -> None:
        for orders in ([2, *range(2, 13)], [*range(2, 14)]):
            rows = [row | {"run_order": order} for row, order in zip(pilot.rows, orders, strict=True)]
            assert refused(pilot, rows).where == "expected_trials#/run_order"

    def test_a_trial_is_planned_once(self, pilot: Pilot) -> None:
        assert refused(pilot, [*pilot.rows, pilot.rows[0] | {"run_order": 13}]).where.endswith("/12")

    def test_every_cell_has_its_samples(self, pilot: Pilot) -> None:
        """T41: a plan without an arm, or with too few samples of one, is none."""
        without = [row for row in pilot.rows if row["arm_id"] != "profile-full"]
        rows = [row | {"run_order": order} for order, row in enumerate(without, start=1)]
        assert "samples" in refused(pilot, rows).sentence
        assert "samples" in refused(pilot, pilot.rows, samples_min=4).sentence
        assert refused(pilot, [])

    def test_one_provider_and_one_model(self, pilot: Pilot, tmp_path: Path) -> None:
        other = Pilot(tmp_path, provider="claude")
        assert "one provider" in refused(pilot, [*pilot.rows[:-1], other.rows[-1]]).sentence


class TestDesigns:
    def test_arms(self, pilot: Pilot) -> None:
        found = design_of(pilot)
        assert [(arm.arm_id, arm.is_off, arm.calls_are_matched, arm.diff_faults) for arm in found.arms] == [
            ("profile-off", True, False, ()),
            ("profile-full", False, False, ()),
        ]
        content = read_design(
            pilot.expected.tasks, [to_json(arm) for arm in trials.manifests(CONTENT).values()]
        )
        assert [(arm.arm_id, arm.is_off, arm.calls_are_matched) for arm in content.arms] == [
            ("S0", True, False),
            ("S1", False, True),
            ("S2", False, False),
        ]

    @pytest.mark.parametrize("registry", [PROFILE, CONTENT])
    def test_the_registry_hash_is_that_of_the_plan(self, pilot: Pilot, registry: Anything) -> None:
        arms = list(trials.manifests(registry).values())
        found = read_design(pilot.expected.tasks, [to_json(arm) for arm in arms])
        assert found.arm_registry_hash == build_plan(arms).arm_registry_hash

    @pytest.mark.parametrize("left", [["profile-off"], ["profile-full"], []])
    def test_a_missing_arm(self, pilot: Pilot, left: list[str]) -> None:
        """T41: off and full, or nothing is compared."""
        arms = [to_json(pilot.manifests[arm]) for arm in left]
        with pytest.raises(PilotError):
            read_design(pilot.expected.tasks, arms)

    def test_two_registries(self, pilot: Pilot) -> None:
        """T4: are never judged together."""
        arms = [*trials.manifests(PROFILE).values(), *trials.manifests(CONTENT).values()]
        with pytest.raises(PilotError) as caught:
            read_design(pilot.expected.tasks, [to_json(arm) for arm in arms])
        assert caught.value.code is PilotCode.PLAN_INVALID

    @pytest.mark.parametrize("name", ["tasks", "manifests"])
    def test_one_is_there_twice_or_malformed(self, pilot: Pilot, name: str) -> None:
        good = {"tasks": pilot.expected.tasks, "manifests": pilot.expected.manifests}
        for spoiled in ([*good[name], good[name][0]], [{}], [1]):
            with pytest.raises(PilotError):
                read_design(**(good | {name: spoiled}))

    def test_an_edited_manifest(self, pilot: Pilot) -> None:
        arms = copy.deepcopy(list(pilot.expected.manifests))
        arms[1]["component_hashes"]["driver"] = trials.digest("9")  # type: ignore[index,call-overload]
        with pytest.raises(PilotError):
            read_design(pilot.expected.tasks, arms)
