"""`arms`: what is frozen, what is planned, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.registry_plan import build_plan
from tests.support.arms import PROFILE_ARMS, SKILL_ARMS, profile_arm, profile_arms, skill_arm, skill_arms
from tests.support.commands import Said, steers
from tests.support.private import REPOSITORY, content, wrong_modes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    Command = Callable[..., Said]


def words_of(home: Path, components: dict[str, Any]) -> list[str]:
    """The options that name these components, each in a file of its own."""
    words: list[str] = []
    for name, value in components.items():
        if value == "":
            words += ["--component", f"{name}="]
            continue
        path = home / f"{name}.part"
        structured = not isinstance(value, str)
        path.write_text(json.dumps(value, indent=3) if structured else value, encoding="utf-8")
        words += ["--structure" if structured else "--component", f"{name}={path.name}"]
    return words


def freeze(command: Command, home: Path, ref: str, components: dict[str, Any], *more: str) -> Said:
    return command("arms", "freeze", ref, "--out", "out", *words_of(home, components), *more)


def freeze_all(command: Command, home: Path, profiles: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - one of two
    """Freeze the arms of one registry; the options that name them."""
    refs = (
        {f"arms/profile/profile-{name}.json": PROFILE_ARMS[name] for name in ("off", "full")}
        if profiles
        else {f"arms/S{number}.json": components for number, components in SKILL_ARMS.items()}
    )
    words: list[str] = []
    for ref, components in refs.items():
        words += ["--manifest", "out/" + freeze(command, home, ref, components).values["manifest"]]
    return words


class TestFreeze:
    def test_what_is_printed_and_written(self, command: Command, home: Path) -> None:
        """T56: result lines of `arms freeze`, for either registry."""
        for ref, components, arm in (
            ("arms/S1.json", SKILL_ARMS["1"], skill_arm("S1")),
            ("arms/profile/profile-full.json", PROFILE_ARMS["full"], profile_arm("full")),
        ):
            said = freeze(command, home, ref, components)
            assert (said.code, said.err) == (0, "")
            assert said.out.splitlines() == [
                f"arm_id={arm.arm_id}",
                f"registry_schema={arm.registry_schema.value}",
                f"template_hash={arm.template_hash}",
                f"manifest_hash={arm.manifest_hash}",
                f"manifest=manifest-{arm.arm_id}.json",
            ]
            written = json.loads((home / f"out/manifest-{arm.arm_id}.json").read_bytes())
            assert written == to_json(arm)
        assert wrong_modes(home / "out") == []

    def test_machines_get_an_object(self, command: Command, home: Path) -> None:
        """T56: the same results as one object."""
        said = freeze(command, home, "arms/S1.json", SKILL_ARMS["1"], "--json")
        assert said.document["manifest_hash"] == skill_arm("S1").manifest_hash

    def test_a_component_is_the_bytes_of_its_file(self, command: Command, home: Path) -> None:
        (home / "layer").write_bytes(b"\xff\r\n")
        components = {name: value for name, value in SKILL_ARMS["1"].items() if name != "ccl_layer"}
        said = freeze(command, home, "arms/S1.json", components, "--component", "ccl_layer=layer")
        assert said.values["manifest_hash"] == skill_arm("S1", ccl_layer=b"\xff\r\n").manifest_hash

    def test_again_changes_nothing(self, command: Command, home: Path) -> None:
        first = freeze(command, home, "arms/S1.json", SKILL_ARMS["1"])
        held = content(home / "out")
        assert freeze(command, home, "arms/S1.json", SKILL_ARMS["1"]) == first
        assert content(home / "out") == held

    def test_other_content_is_refused_and_the_first_stays(self, command: Command, home: Path) -> None:
        freeze(command, home, "arms/S1.json", SKILL_ARMS["1"])
        held = content(home / "out")
        assert freeze(command, home, "arms/S1.json", {**SKILL_ARMS["1"], "ccl_layer": "x"}).refusal
        assert content(home / "out") == held

    def test_the_template_somebody_worked_from(self, command: Command, home: Path) -> None:
        """T1: the committed template, whatever is declared; a wider one has the diff code."""
        template = json.loads((REPOSITORY / "arms/S1.json").read_bytes())
        (home / "mine.json").write_text(json.dumps(template))
        assert freeze(command, home, "arms/S1.json", SKILL_ARMS["1"], "--declared", "mine.json").code == 0
        wider = template | {"allowlisted_diff": [*template["allowlisted_diff"], "system_prompt"]}
        (home / "mine.json").write_text(json.dumps(wider))
        said = freeze(command, home, "arms/S1.json", SKILL_ARMS["1"], "--declared", "mine.json", "--json")
        assert (said.code, said.document) == (2, {"status": "refused", "code": "unallowlisted_diff"})
        (home / "mine.json").write_text(json.dumps(template | {"arm_id": "full"}))
        said = freeze(command, home, "arms/S1.json", SKILL_ARMS["1"], "--declared", "mine.json", "--json")
        assert (said.code, said.document["code"]) == (2, "registry_mismatch")


class TestFreezeRefuses:
    def refused(self, said: Said, home: Path) -> str:
        assert not (home / "out").exists()
        assert steers(said.err) == []
        return said.refusal

    def test_an_unknown_template(self, command: Command, home: Path) -> None:
        said = freeze(command, home, "arms/S9.json", SKILL_ARMS["1"])
        assert "arms/profile/profile-off.json" in self.refused(said, home)

    def test_a_missing_component(self, command: Command, home: Path) -> None:
        said = command("arms", "freeze", "arms/S0.json", "--out", "out", "--component", "system_prompt=")
        assert "bootstrap" in self.refused(said, home)

    def test_an_off_arm_with_content(self, command: Command, home: Path) -> None:
        self.refused(freeze(command, home, "arms/S0.json", SKILL_ARMS["1"]), home)

    @pytest.mark.parametrize(
        "words",
        [
            ("--component", "ccl_layer"),
            ("--component", "=file"),
            ("--component", "ccl_layer=", "--component", "ccl_layer="),
            ("--component", "ccl_layer=", "--structure", "ccl_layer=list.json"),
            ("--structure", "ccl_layer="),
            ("--structure", "ccl_layer=number.json"),
        ],
    )
    def test_other_words(self, command: Command, home: Path, words: tuple[str, ...]) -> None:
        (home / "list.json").write_text("[]")
        (home / "number.json").write_text("1")
        said = command("arms", "freeze", "arms/S0.json", "--out", "out", *words, "--json")
        assert (said.code, said.document["code"]) == (2, "usage")
        self.refused(command("arms", "freeze", "arms/S0.json", "--out", "out", *words), home)

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"{", "bad_record"),
            (b'{"a": NaN}', "bad_record"),
            (b'{"a": 1, "a": 2}', "bad_record"),
            (b'{"a": 1.0}', "bad_record"),
        ],
    )
    def test_a_structure_that_is_none(self, command: Command, home: Path, data: bytes, code: str) -> None:
        (home / "tools.json").write_bytes(data)
        components = {name: value for name, value in SKILL_ARMS["0"].items() if name != "tool_schema"}
        words = [*words_of(home, components), "--structure", "tool_schema=tools.json", "--json"]
        said = command("arms", "freeze", "arms/S0.json", "--out", "out", *words)
        assert (said.code, said.document["code"]) == (2, code)
        assert not (home / "out").exists()

    def test_a_file_that_is_not_there_or_none(self, command: Command, home: Path) -> None:
        (home / "folder").mkdir()
        (home / "link").symlink_to(home / "folder")
        for name in ("nothing", "folder", "link"):
            said = command(
                "arms", "freeze", "arms/S0.json", "--out", "out", "--component", f"ccl_layer={name}"
            )
            assert name in self.refused(said, home)

    def test_the_checkout_as_a_place(self, command: Command, home: Path) -> None:
        words = words_of(home, SKILL_ARMS["0"])
        said = command("arms", "freeze", "arms/S0.json", "--out", REPOSITORY / "arms", *words)
        assert said.refusal


class TestPlan:
    @pytest.mark.parametrize("profiles", [False, True], ids=["skills", "profiles"])
    def test_what_is_printed_and_written(self, command: Command, home: Path, *, profiles: bool) -> None:
        """T56: result lines of `arms plan`."""
        plan = build_plan(profile_arms() if profiles else skill_arms())
        words = freeze_all(command, home, profiles)
        said = command("arms", "plan", *words, "--out", "out")
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines() == [
            f"registry_schema={plan.registry_schema.value}",
            f"arms={2 if profiles else 3}",
            f"arm_registry_hash={plan.arm_registry_hash}",
            f"plan_hash={plan.plan_hash}",
            "plan=arm-registry-plan.json",
        ]
        assert json.loads((home / "out/arm-registry-plan.json").read_bytes()) == to_json(plan)
        assert (
            command("arms", "plan", *words, "--out", "out", "--json").document["plan_hash"] == plan.plan_hash
        )

    def test_once(self, command: Command, home: Path) -> None:
        """T4: another plan in the same place is refused."""
        words = freeze_all(command, home)
        command("arms", "plan", *words, "--out", "out")
        held = content(home / "out")
        assert command("arms", "plan", *freeze_all(command, home, profiles=True), "--out", "out").refusal
        assert (home / "out/arm-registry-plan.json").read_bytes() == held["arm-registry-plan.json"]

    def test_a_part_or_a_mixture(self, command: Command, home: Path) -> None:
        """T4: a plan that lacks an arm, and one of two registries."""
        skills, profiles = freeze_all(command, home), freeze_all(command, home, profiles=True)
        for words, code in ((skills[2:], "plan_incomplete"), (skills + profiles, "registry_mismatch")):
            said = command("arms", "plan", *words, "--out", "plan", "--json")
            assert (said.code, said.document["code"]) == (2, code)
        assert not (home / "plan").exists()

    def test_a_difference_has_its_code(self, command: Command, home: Path) -> None:
        """T3: the diff code is the answer."""
        words = freeze_all(command, home)
        freeze(command, home, "arms/M0.json", SKILL_ARMS["0"])
        odd = command(
            "arms", "freeze", "arms/S2.json", "--out", "odd",
            *words_of(home, {**SKILL_ARMS["2"], "system_prompt": "Other.\n"}),
        ).values["manifest"]  # fmt: skip
        said = command("arms", "plan", *words[:4], "--manifest", f"odd/{odd}", "--out", "plan")
        assert "unallowlisted_diff:system_prompt" in said.refusal

    @pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"arm_id": "\\u001b[2J"}'])
    def test_a_file_that_is_no_manifest(self, command: Command, home: Path, data: bytes) -> None:
        (home / "m.json").write_bytes(data)
        said = command("arms", "plan", "--manifest", "m.json", "--out", "plan")
        assert said.refusal
        assert steers(said.err) == []
        assert not (home / "plan").exists()
