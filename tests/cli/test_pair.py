"""`pair blind`: exits, lines and files of trials.md, sections 7 and 11."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.protocol.document import to_json
from tests.support.blinding import PLANS, TREATMENT, sides
from tests.support.commands import Said, no_traceback
from tests.support.private import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REGISTRIES = sorted(PLANS)
BLIND = (
    "pair",
    "blind",
    "--root",
    "controller",
    "--plan",
    "plan.json",
    "--first",
    "a.json",
    "--second",
    "b.json",
)


def lay_out(home: Path, registry: str = "paired-profile", **payloads: object) -> None:
    (home / "plan.json").write_text(json.dumps(to_json(PLANS[registry])))
    for name, side in zip("ab", sides(registry, **payloads), strict=True):  # type: ignore[arg-type]
        (home / f"{name}.json").write_text(json.dumps(side.model_dump(mode="json")))
    (home / "treatment.md").write_text(TREATMENT)


class TestBlinded:
    @pytest.mark.parametrize("registry", REGISTRIES)
    def test_lines_and_files(self, command: Callable[..., Said], home: Path, registry: str) -> None:
        """T56 T31: exit 0, three lines, mapping and judge file."""
        lay_out(home, registry)
        said = command(*BLIND)
        assert (said.code, said.err) == (0, "")
        pair_id = said.values["pair_id"]
        assert said.out == (
            f"pair_status=blinded\npair_id={pair_id}\njudge_input=blinding/judge/{pair_id}.json\n"
        )
        assert sorted(content(home / "controller")) == [
            "blinding.key",
            f"blinding/judge/{pair_id}.json",
            f"blinding/mappings/{pair_id}.json",
        ]

    def test_again_and_the_other_way_round(self, command: Callable[..., Said], home: Path) -> None:
        """T31: the same lines and files."""
        lay_out(home)
        said = command(*BLIND)
        files = content(home)
        assert command(*BLIND).out == said.out
        assert command(*BLIND[:-4], "--first", "b.json", "--second", "a.json").out == said.out
        assert content(home) == files

    def test_second_showing(self, command: Callable[..., Said], home: Path) -> None:
        """T36: another id, seats changed."""
        lay_out(home)
        shown = [json.loads(command(*BLIND, "--showing", n, "--json").out) for n in ("0", "1")]
        files = [json.loads((home / "controller" / one["judge_input"]).read_bytes()) for one in shown]
        assert shown[0]["pair_id"] != shown[1]["pair_id"]
        assert (files[0]["A"], files[0]["B"]) == (files[1]["B"], files[1]["A"])


class TestRefused:
    @pytest.mark.parametrize(
        ("off", "words"),
        [
            ({"text": "as PROFILE-OFF"}, ()),
            ({"text": TREATMENT}, ("--treatment-text", "treatment.md")),
            ({"text": "asked study:pdf"}, ("--owner", "study:pdf")),
        ],
    )
    def test_a_leak(
        self, command: Callable[..., Said], home: Path, off: object, words: tuple[str, ...]
    ) -> None:
        """T33 T54: exit 2, one line that names the leak file, no judge file."""
        lay_out(home, off=off)
        said = command(*BLIND, *words)
        assert (said.code, said.out) == (2, "")
        key, leak = sorted(content(home / "controller"), key=lambda name: "leaks" in name)
        assert key == "blinding.key"
        assert said.err == (
            "skill_effectiveness_trial: A judge payload gives its arm away, so the pair is not shown; "
            f"{leak} says where.\n"
        )

    def test_a_leak_for_machines(self, command: Callable[..., Said], home: Path) -> None:
        """T33: the closed word, and nothing of the payload."""
        lay_out(home, off=["profile-off"])
        assert json.loads(command(*BLIND, "--json").out) == {"code": "leak", "status": "refused"}

    @pytest.mark.parametrize(
        ("name", "text", "code"),
        [
            ("plan.json", "{}", "bad_record"),
            ("plan.json", "{", "syntax"),
            ("plan.json", None, "missing"),
            ("a.json", "[]", "wrong_type"),
            ("a.json", '{"outcome_id":"x"}', "missing_field"),
            ("b.json", None, "missing"),
        ],
    )
    def test_bad_input(
        self, command: Callable[..., Said], home: Path, name: str, text: str | None, code: str
    ) -> None:
        """T54: exit 2, and the controller's folder is not even made."""
        lay_out(home)
        (home / name).unlink()
        if text is not None:
            (home / name).write_text(text)
        said = command(*BLIND, "--json")
        assert (said.code, json.loads(said.out)["code"]) == (2, code)
        assert no_traceback(said)
        assert not (home / "controller").exists()

    @pytest.mark.parametrize(
        "words", [("--owner", "-:-"), ("--owner", "Nobody"), ("--showing", "2"), ("--treatment-text", "none")]
    )
    def test_bad_words(self, command: Callable[..., Said], home: Path, words: tuple[str, ...]) -> None:
        """T54: exit 2."""
        lay_out(home)
        said = command(*BLIND, *words)
        assert said.code == 2
        assert no_traceback(said)
        assert not (home / "controller").exists()

    def test_plan_of_the_other_registry(self, command: Callable[..., Said], home: Path) -> None:
        """T31: outcomes belong to one plan."""
        lay_out(home)
        (home / "plan.json").write_text(json.dumps(to_json(PLANS["skill-content"])))
        assert json.loads(command(*BLIND, "--json").out)["code"] == "other_plan"

    def test_a_treatment_that_is_no_text(self, command: Callable[..., Said], home: Path) -> None:
        """T32: what can be read of it counts all the same."""
        lay_out(home, off=[TREATMENT])
        (home / "treatment.md").write_bytes(b"\xff\xfe" + TREATMENT.encode() + b"\x80")
        assert command(*BLIND, "--treatment-text", "treatment.md").code == 2
