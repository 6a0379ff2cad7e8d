"""Pairs: what a judge gets, what the controller keeps, and what is refused."""

from __future__ import annotations

import copy
import errno
import hashlib
import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import (
    DocumentError,
    EvidenceError,
    FileError,
    KeyFileError,
    StrictError,
)
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection, RecordingFs
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.trials.blinding import (
    BlindingCode,
    BlindingRefused,
    BlindOutcome,
    JudgeInput,
    Position,
    blind_pair,
    read_mapping,
)
from skill_effectiveness.trials.leaks import LeakRules
from tests.support.blinding import ARMS, PLANS, TREATMENT, outcome, sides
from tests.support.crash_images import fast_folder
from tests.support.private import content, out_root, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from skill_effectiveness.evidence.root import PrivateRoot

REGISTRIES = sorted(PLANS)
RULES = LeakRules(profile_texts=[TREATMENT])
KEY = bytes(range(32))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[PrivateRoot]:
    with out_root(tmp_path) as opened:
        opened.publish("blinding.key", KEY)
        yield opened


def blind(
    root: PrivateRoot,
    pair: tuple[BlindOutcome, BlindOutcome],
    registry: str = "paired-profile",
    position: Position = Position.FIRST,
    rules: LeakRules = RULES,
) -> JudgeInput:
    return blind_pair(root, PLANS[registry], *pair, rules=rules, position=position)


def refused(
    root: PrivateRoot,
    pair: tuple[BlindOutcome, BlindOutcome],
    registry: str = "paired-profile",
    rules: LeakRules = RULES,
) -> BlindingRefused:
    with pytest.raises(BlindingRefused) as caught:
        blind(root, pair, registry, rules=rules)
    return caught.value


def by_hand(value: object) -> str:
    """The keyed digest by the standard library; all texts here are ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hmac.new(KEY, text.encode("ascii"), hashlib.sha256).hexdigest()


def digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def named_by_hand(registry: str) -> dict[str, object]:
    plan = PLANS[registry]
    pair = sorted(sides(registry), key=lambda side: side.outcome_id)
    return {
        "arm_registry_hash": plan.arm_registry_hash,
        "arm_registry_plan_hash": plan.plan_hash,
        "members": [
            {
                "outcome_id": side.outcome_id,
                "arm_id": side.arm_id,
                "manifest_hash": side.manifest_hash,
                "judge_payload_hash": digest(side.judge_payload),
            }
            for side in pair
        ],
    }


@pytest.mark.parametrize("registry", REGISTRIES)
class TestAPair:
    def test_id_and_seats_follow_the_rule(self, root: PrivateRoot, registry: str) -> None:
        """T31: both are keyed digests, under either registry."""
        shown = blind(root, sides(registry), registry)
        assert shown.pair_id == f"pair-{by_hand(named_by_hand(registry))}"
        order = sorted(
            ("slot-2", "slot-7"),
            key=lambda outcome_id: by_hand({"pair_id": shown.pair_id, "outcome_id": outcome_id}),
        )
        payloads = {side.outcome_id: side.judge_payload for side in sides(registry)}
        assert [payloads[outcome_id] for outcome_id in order] == [shown.A, shown.B]
        mapping = read_mapping(root, shown.pair_id)
        assert order == [mapping.mapping.A, mapping.mapping.B]

    def test_which_side_is_given_first_plays_no_part(
        self, root: PrivateRoot, registry: str, tmp_path: Path
    ) -> None:
        """T31: the same answer and, to the byte, the same files."""
        first, second = sides(registry)
        shown = blind(root, (first, second), registry)
        files = content(tmp_path)
        assert blind(root, (second, first), registry) == shown
        assert content(tmp_path) == files

    def test_another_key_gives_another_id(self, root: PrivateRoot, registry: str, tmp_path: Path) -> None:
        """T31: deterministic per key, and by no other means."""
        other_place = tmp_path / "other"
        other_place.mkdir(mode=0o700)
        with out_root(other_place) as other:
            other.publish("blinding.key", KEY[::-1])
            assert blind(other, sides(registry), registry).pair_id != (
                blind(root, sides(registry), registry).pair_id
            )

    def test_files_and_modes(self, root: PrivateRoot, registry: str, tmp_path: Path) -> None:
        """T31 T35: key, mapping and judge file, 0600 in 0700 folders, and nothing else."""
        pair_id = blind(root, sides(registry), registry).pair_id
        assert sorted(content(tmp_path / "root")) == [
            "blinding.key",
            f"blinding/judge/{pair_id}.json",
            f"blinding/mappings/{pair_id}.json",
        ]
        assert wrong_modes(tmp_path / "root") == []

    def test_judge_input_has_four_members(self, root: PrivateRoot, registry: str, tmp_path: Path) -> None:
        """T35: in the answer and in the file, which says the same."""
        shown = blind(root, sides(registry), registry)
        data = (tmp_path / "root/blinding/judge" / f"{shown.pair_id}.json").read_bytes()
        file = json.loads(data)
        assert sorted(file) == ["A", "B", "pair_id", "schema_version"]
        assert file == {"schema_version": 1, "pair_id": shown.pair_id, "A": shown.A, "B": shown.B}
        assert sorted(type(shown).model_fields) == ["A", "B", "pair_id", "schema_version"]

    def test_nothing_of_an_arm_in_the_judge_file(
        self, root: PrivateRoot, registry: str, tmp_path: Path
    ) -> None:
        """T35: no id, hash, outcome or treatment word reaches it."""
        shown = blind(root, sides(registry), registry)
        text = (tmp_path / "root/blinding/judge" / f"{shown.pair_id}.json").read_text("utf-8")
        plan = PLANS[registry]
        for secret in (*plan.manifest_hashes, *plan.manifest_hashes.values(), plan.plan_hash, "slot-"):
            assert secret.removeprefix("sha256:") not in text

    def test_mapping_holds_the_registry(self, root: PrivateRoot, registry: str, tmp_path: Path) -> None:
        """T31: exactly its five members."""
        shown = blind(root, sides(registry), registry)
        held = json.loads((tmp_path / "root/blinding/mappings" / f"{shown.pair_id}.json").read_bytes())
        plan = PLANS[registry]
        assert held["arm_registry_hash"] == plan.arm_registry_hash
        assert held["arm_registry_plan_hash"] == plan.plan_hash
        assert set(held["mapping"].values()) == {"slot-2", "slot-7"}
        assert sorted(held) == [
            "arm_registry_hash",
            "arm_registry_plan_hash",
            "mapping",
            "pair_id",
            "schema_version",
        ]

    def test_the_second_showing(self, root: PrivateRoot, registry: str) -> None:
        """T36: seats changed, and an id of its own that only the key can join to the first."""
        first = blind(root, sides(registry), registry)
        second = blind(root, sides(registry), registry, Position.SECOND)
        assert (second.A, second.B) == (first.B, first.A)
        assert second.pair_id == f"pair-{by_hand(named_by_hand(registry) | {'position': 1})}"
        assert second.pair_id != first.pair_id
        one, other = read_mapping(root, first.pair_id), read_mapping(root, second.pair_id)
        assert (one.mapping.A, one.mapping.B) == (other.mapping.B, other.mapping.A)

    def test_mapping_is_durable_before_the_judge_file_begins(self, tmp_path: Path, registry: str) -> None:
        """T34: by the steps that were taken."""
        recording = RecordingFs(RealFs())
        with out_root(tmp_path, recording) as opened:
            pair_id = blind(opened, sides(registry), registry).pair_id
        steps = [(step.operation, f"{step.path} {step.target}") for step in recording.steps]
        mapped = next(n for n, step in enumerate(steps) if f"/mappings/{pair_id}.json" in step[1])
        begun = next(n for n, step in enumerate(steps) if "/judge" in step[1])
        assert mapped < begun
        synced = [path for operation, path in steps[mapped:begun] if operation == "fsync_dir"]
        assert any("blinding/mappings" in path for path in synced)


class TestSeats:
    def test_are_even_over_many_pairs(self) -> None:
        """T31: the treated side sits in A about as often as in B, over 200 pairs."""
        treated = 0
        with fast_folder() as folder, out_root(folder) as root:
            for number in range(200):
                off, full = sides("paired-profile", off={"n": number})
                shown = blind(root, (off, full))
                treated += full.judge_payload == shown.A
        assert abs(treated - 100) < 4 * (200 * 0.25) ** 0.5


class TestDetachedCopies:
    def test_changing_one_changes_no_other(self, root: PrivateRoot) -> None:
        """T35: neither the caller's payload nor the file follows what is done to the answer."""
        payload: JsonValue = {"deep": [{"list": [1, 2]}]}
        before = copy.deepcopy(payload)
        shown = blind(root, sides("paired-profile", off=payload))
        held = shown.A if before == shown.A else shown.B
        assert isinstance(held, dict)
        held["deep"] = "changed"
        assert payload == before
        assert blind(root, sides("paired-profile", off=payload)).pair_id == shown.pair_id

    def test_order_of_members_is_that_of_the_canonical_form(self, root: PrivateRoot) -> None:
        """T35: the order in which a program made the members could tell which program it was."""
        shown = blind(root, sides("paired-profile", off={"b": 1, "a": {"z": 0, "y": 0}}))
        held = shown.A if "z" in json.dumps(shown.A) else shown.B
        assert json.dumps(held) == '{"a": {"y": 0, "z": 0}, "b": 1}'

    @given(st.dictionaries(st.text("xyz", max_size=3), st.integers(-9, 9) | st.text("xyz "), max_size=4))
    def test_payloads_arrive_as_they_were(self, payload: dict[str, JsonValue]) -> None:
        """T35: nothing is added, taken out or changed."""
        with fast_folder() as folder, out_root(folder) as root:
            shown = blind(root, sides("paired-profile", off=payload, full={"other": []}))
            assert sorted(map(json.dumps, [shown.A, shown.B])) == sorted(
                [json.dumps(payload, sort_keys=True), '{"other": []}']
            )


LEAKING: dict[str, JsonValue] = {
    "arm_id": {"text": "as profile-full would"},
    "metadata_key": {"deep": [{"treatment": None}]},
    "digest": ["sha256:" + "0" * 64],
    "owner_prefix": "ccl-skills:x",
    "metadata_token": {"arm id: 3": 0},
    "profile_text": {"text": f"I was told: {TREATMENT}"},
}


class TestLeaks:
    @pytest.mark.parametrize("kind", LEAKING)
    @pytest.mark.parametrize("leaking", [0, 1])
    def test_either_side_refuses_the_pair(
        self, root: PrivateRoot, kind: str, leaking: int, tmp_path: Path
    ) -> None:
        """T33: a leak file for the controller, no judge file and no mapping."""
        payloads: list[JsonValue] = [{"n": 0}, {"n": 1}]
        payloads[leaking] = LEAKING[kind]
        pair = sides("paired-profile", *payloads)
        error = refused(root, pair)
        assert error.code is BlindingCode.LEAK
        files = set(content(tmp_path / "root"))
        assert files == {"blinding.key", f"blinding/leaks/{error.leak_file}"}
        held = json.loads((tmp_path / "root/blinding/leaks" / str(error.leak_file)).read_bytes())
        assert {leak["outcome_id"] for leak in held["leaks"]} == {pair[leaking].outcome_id}
        assert {leak["kind"] for leak in held["leaks"]} == {kind}
        assert wrong_modes(tmp_path / "root") == []

    def test_the_leak_file_points(self, root: PrivateRoot, tmp_path: Path) -> None:
        """T33: pointer, kind, offset and length, and nothing of the text."""
        pair = sides("paired-profile", off={"a": ["no", "so PROFILE-OFF said"]})
        error = refused(root, pair)
        data = (tmp_path / "root/blinding/leaks" / str(error.leak_file)).read_bytes()
        assert json.loads(data)["leaks"] == [
            {"outcome_id": "slot-7", "pointer": "/a/1", "kind": "arm_id", "offset": 3, "length": 11}
        ]
        assert b"said" not in data
        assert error.leak_file == hashlib.sha256(data).hexdigest() + ".json"
        assert str(error.leak_file) in str(error)

    @pytest.mark.parametrize("registry", REGISTRIES)
    def test_every_registered_arm_and_hash_counts(self, root: PrivateRoot, registry: str) -> None:
        """T32: also those that are no side of the pair, although the caller named none."""
        plan = PLANS[registry]
        secrets = [*plan.manifest_hashes, *plan.manifest_hashes.values(), plan.plan_hash]
        for secret in [*secrets, plan.arm_registry_hash.removeprefix("sha256:")]:
            error = refused(root, sides(registry, full=[secret]), registry, LeakRules())
            assert error.code is BlindingCode.LEAK

    def test_is_refused_again_with_the_same_file(self, root: PrivateRoot, tmp_path: Path) -> None:
        """T33: and for both showings alike."""
        pair = sides("paired-profile", off=["profile-off"])
        refused(root, pair)
        files = content(tmp_path)
        refused(root, (pair[1], pair[0]))
        with pytest.raises(BlindingRefused):
            blind(root, pair, position=Position.SECOND)
        assert content(tmp_path) == files

    def test_what_was_shown_when_less_was_looked_for_is_withdrawn(
        self, root: PrivateRoot, tmp_path: Path
    ) -> None:
        """T33: no judge file of either showing outlives the refusal; what it meant can still be opened."""
        pair = sides("paired-profile", off=[TREATMENT])
        shown = [blind(root, pair, position=position, rules=LeakRules()) for position in Position]
        refused(root, pair)
        names = list(content(tmp_path / "root"))
        assert not any(name.startswith("blinding/judge/") for name in names)
        assert [read_mapping(root, one.pair_id).pair_id for one in shown] == [one.pair_id for one in shown]

    def test_a_full_disk_leaves_no_judge_file_either(self, root: PrivateRoot, tmp_path: Path) -> None:
        """T33: the judge file goes before the leak file comes."""
        pair = sides("paired-profile", off=[TREATMENT])
        blind(root, pair, rules=LeakRules())
        full = FaultFs(RealFs(), Injection("write", errno.ENOSPC, about=lambda path: "/leaks/" in path))
        with out_root(tmp_path, full) as same, pytest.raises(FileError):
            blind(same, pair)
        names = list(content(tmp_path / "root"))
        assert not any("/judge/" in name or "/leaks/" in name for name in names)

    def test_a_payload_of_nothing_but_leaks(self, root: PrivateRoot, tmp_path: Path) -> None:
        """T33: the list is bounded."""
        error = refused(root, sides("paired-profile", off=["profile-off"] * 3_000))
        held = json.loads((tmp_path / "root/blinding/leaks" / str(error.leak_file)).read_bytes())
        assert len(held["leaks"]) == 1_000


class TestRefused:
    def test_one_arm(self, root: PrivateRoot) -> None:
        """T31: two samples of one arm are no pair."""
        plan = PLANS["paired-profile"]
        pair = outcome(plan, "profile-off", "a", 1), outcome(plan, "profile-off", "b", 2)
        assert refused(root, pair).code is BlindingCode.NOT_TWO_ARMS

    def test_one_outcome(self, root: PrivateRoot) -> None:
        """T31: nor is one outcome under two arms."""
        plan = PLANS["paired-profile"]
        pair = outcome(plan, "profile-off", "a", 1), outcome(plan, "profile-full", "a", 2)
        assert refused(root, pair).code is BlindingCode.NOT_TWO_OUTCOMES

    @pytest.mark.parametrize("which", [0, 1])
    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"arm_registry_plan_hash": "sha256:" + "0" * 64}, BlindingCode.OTHER_PLAN),
            ({"manifest_hash": "sha256:" + "0" * 64}, BlindingCode.OUTSIDE_PLAN),
            ({"arm_id": "profile-late"}, BlindingCode.OUTSIDE_PLAN),
        ],
    )
    def test_what_is_not_in_the_plan(
        self, root: PrivateRoot, which: int, change: dict[str, str], code: BlindingCode, tmp_path: Path
    ) -> None:
        """T31: each hash of either side, and nothing is written."""
        pair = list(sides("paired-profile"))
        pair[which] = BlindOutcome(**(pair[which].model_dump() | change))
        assert refused(root, (pair[0], pair[1])).code is code
        assert list(content(tmp_path / "root")) == ["blinding.key"]

    def test_the_other_registry(self, root: PrivateRoot) -> None:
        """T31: outcomes of one registry under the plan of the other."""
        assert refused(root, sides("skill-content"), "paired-profile").code is BlindingCode.OTHER_PLAN

    @pytest.mark.parametrize("payload", [2**53, "\ud800", "\ufffe", {"a": [-(2**60)]}])
    def test_what_has_no_form(self, root: PrivateRoot, payload: JsonValue, tmp_path: Path) -> None:
        """T35: such a payload could not be written for a judge."""
        assert refused(root, sides("paired-profile", full=payload)).code is BlindingCode.PAYLOAD_FORM
        assert list(content(tmp_path / "root")) == ["blinding.key"]

    def test_too_deep(self, root: PrivateRoot) -> None:
        """T35: one level is the judge file's own."""
        deep: JsonValue = 0
        for _ in range(63):
            deep = [deep]
        assert blind(root, sides("paired-profile", full=deep)).schema_version == 1
        assert refused(root, sides("paired-profile", full=[deep])).code is BlindingCode.PAYLOAD_FORM

    def test_a_short_key(self, tmp_path: Path) -> None:
        with out_root(tmp_path) as opened:
            opened.publish("blinding.key", b"short")
            with pytest.raises(KeyFileError):
                blind(opened, sides("paired-profile"))


class TestInterrupted:
    @pytest.mark.parametrize("number", range(1, 26))
    def test_any_operation_may_fail(self, tmp_path: Path, number: int) -> None:
        """T34: whichever it is, no judge file is without its mapping, and the repeat finishes the pair."""
        with out_root(tmp_path):
            pass
        failing = FaultFs(RealFs(), Injection("*", errno.EIO, nth=number))
        with out_root(tmp_path, failing) as root, suppress(EvidenceError):
            blind(root, sides("paired-profile"))
        names = [name.rpartition("/")[2] for name in content(tmp_path / "root") if "/mappings/" in name]
        shown = [name.rpartition("/")[2] for name in content(tmp_path / "root") if "/judge/" in name]
        assert {name for name in shown if not name.startswith(".")} <= set(names)
        with out_root(tmp_path) as root:
            pair_id = blind(root, sides("paired-profile")).pair_id
            assert read_mapping(root, pair_id).pair_id == pair_id

    def test_racing_controllers_end_with_one_pair(self, tmp_path: Path) -> None:
        """T31: eight at once, none with a key of its own."""
        out_root(tmp_path).close()

        def once(_: int) -> str:
            with out_root(tmp_path) as root:
                return blind(root, sides("paired-profile")).pair_id

        with ThreadPoolExecutor(8) as pool:
            (pair_id,) = set(pool.map(once, range(8)))
        assert f"blinding/judge/{pair_id}.json" in content(tmp_path / "root")


class TestReadMapping:
    def test_of_no_pair(self, root: PrivateRoot) -> None:
        blind(root, sides("paired-profile"))
        with pytest.raises(EvidenceError):
            read_mapping(root, "pair-" + "0" * 64)

    def test_a_way_out_of_the_folder(self, root: PrivateRoot) -> None:
        blind(root, sides("paired-profile"))
        with pytest.raises(EvidenceError):
            read_mapping(root, "../judge/x")

    def test_an_edited_one(self, root: PrivateRoot, tmp_path: Path) -> None:
        pair_id = blind(root, sides("paired-profile")).pair_id
        path = tmp_path / "root/blinding/mappings" / f"{pair_id}.json"
        path.write_bytes(b" " + path.read_bytes())
        with pytest.raises(StrictError):
            read_mapping(root, pair_id)

    def test_a_moved_one(self, root: PrivateRoot, tmp_path: Path) -> None:
        """T36: the mapping of one showing does not open the other."""
        first = blind(root, sides("paired-profile")).pair_id
        second = blind(root, sides("paired-profile"), position=Position.SECOND).pair_id
        folder = tmp_path / "root/blinding/mappings"
        (folder / f"{second}.json").write_bytes((folder / f"{first}.json").read_bytes())
        with pytest.raises(DocumentError):
            read_mapping(root, second)


def test_arms_of_these_tests_are_in_their_plans() -> None:
    assert all(set(ARMS[registry]) <= set(PLANS[registry].manifest_hashes) for registry in REGISTRIES)
