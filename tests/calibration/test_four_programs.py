"""Examining each of the four command lines: what is sealed, what is not published, what a child sees."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.calibration.documents import Declared, result_document
from skill_effectiveness.calibration.errors import ExaminationRefused, PairRefused, RefusalCode
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.loader import load_calibration
from skill_effectiveness.calibration.models import to_line
from skill_effectiveness.calibration.repeats import ExaminationPlan, examine
from skill_effectiveness.calibration.reviewer import ADAPTERS, Reviewer, binds_configuration
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.words import BankName
from tests.support import claude_streams, kimi, opencode_fake
from tests.support.examinations import manifest
from tests.support.four_programs import (
    CLAUDE_ANSWER,
    CLAUDE_RESULT,
    FAMILIES,
    GOOD,
    MODELS,
    OPENCODE_PARTS,
    calls,
    write_program,
)
from tests.support.opencode_fake import with_ripgrep
from tests.support.provider_calls import left_behind

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.calibration.repeats import Examination
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider

pytestmark = pytest.mark.slow

FOUR = tuple(MODELS)
EVIDENCE, RESULT = "reviewer-calibration.json", "reviewer-calibration-result.json"

FOREIGN = {
    "OPENAI_API_KEY": "foreign-openai",
    "ANTHROPIC_API_KEY": "foreign-anthropic",
    "CODEX_API_KEY": "foreign-codex",
    "MOONSHOT_API_KEY": "foreign-moonshot",
    "KIMI_API_KEY": "foreign-kimi",
    "GEMINI_API_KEY": "foreign-gemini",
    "AWS_SECRET_ACCESS_KEY": "foreign-aws",
    "GITHUB_TOKEN": "foreign-github",
}


class House:
    """A home with a program in it, and the folder of its examination."""

    def __init__(self, tmp_path: Path, provider: str, **environ: str) -> None:
        self.place, self.provider = tmp_path, provider
        self.home = tmp_path / "home"
        self.home.mkdir(exist_ok=True)
        self.around: Surroundings = with_ripgrep(tmp_path, HOME=str(self.home), **environ)
        if provider == "kimi":
            kimi.write_configuration(self.home)

    def program(self, **said: Any) -> Path:  # noqa: ANN401 - of `write_program`
        return write_program(self.place / self.provider, self.place, self.provider, **said)

    def adapter(self, **said: Any) -> Provider:  # noqa: ANN401 - likewise
        return ADAPTERS[self.provider].at(self.program(**said), around=self.around)

    def examine(self, adapter: Provider, *, repeats: int = 2, resume: bool = False) -> Examination:
        plan = ExaminationPlan(MODELS[self.provider], FAMILIES[self.provider], repeats, 20)
        with PrivateRoot.create(self.place / "out", RootKind.OUT, around=self.around, checkout=None) as out:
            return examine(plan, Reviewer.real(adapter), out=out, resume=resume, manifest=manifest)

    @property
    def result(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.place / "out" / RESULT).read_bytes())
        return document

    @property
    def published(self) -> list[str]:
        return [name for name in (EVIDENCE, RESULT) if (self.place / "out" / name).exists()]


class TestGood:
    @pytest.mark.parametrize("provider", FOUR)
    def test_a_sound_one_passes_under_its_labels(self, tmp_path: Path, provider: str) -> None:
        """R32 R43: two calls, a pair that loads, labels word for word, and nothing synthetic."""
        house = House(tmp_path, provider)
        found = house.examine(house.adapter())
        assert found.calibration_status == "pass"
        assert len(calls(tmp_path)) == 2
        result = house.result
        adapter = ADAPTERS[provider]
        assert result["requested_session_mode"] == adapter.session_label
        assert result["tool_access"] == adapter.tool_label
        assert (result["provider"], result["reviewer_family"]) == (provider, FAMILIES[provider])
        assert result["runner_contract"] == f"{provider}-cli-reviewer-calibration-v1"
        assert not {"synthetic", "simulation"} & result.keys()
        samples = [*(tmp_path / "out" / "attempts").rglob("samples/r*.json")]
        assert len(samples) == 2
        for sample in samples:
            assert json.loads(sample.read_bytes())["tool_access"] == adapter.tool_label
        evidence, data = ((tmp_path / "out" / name).read_bytes() for name in (EVIDENCE, RESULT))
        inputs = load_inputs(house.around.fs, BankName.JUDGED)
        assert load_calibration(evidence, data, inputs=inputs) == found.calibration
        assert not found.calibration.synthetic
        assert left_behind(house.around) == []

    def test_an_answer_may_stand_in_a_fence_where_the_provider_may_use_one(self, tmp_path: Path) -> None:
        """R32 P12: for kimi, and for no other."""
        fenced = "```json\n@answer\n```"
        house = House(tmp_path, "kimi")
        said = [kimi.VERSION_LINE, kimi.message(fenced), kimi.HINT]
        assert house.examine(house.adapter(documents=said)).calibration_status == "pass"
        (tmp_path / "other").mkdir()
        other = House(tmp_path / "other", "opencode")
        parts = (opencode_fake.step_start(), opencode_fake.text(fenced), opencode_fake.step_finish())
        adapter = other.adapter(documents=opencode_fake.stream(*parts), export=opencode_fake.exported(*parts))
        with pytest.raises(ExaminationRefused, match="answer_invalid"):
            other.examine(adapter)


def opencode_with(*parts: dict[str, Any], **export: Any) -> dict[str, Any]:  # noqa: ANN401 - of `exported`
    return {
        "documents": opencode_fake.stream(*parts),
        "export": opencode_fake.exported(*parts, **export),
    }


def codex_item(**item: object) -> dict[str, Any]:
    first, turn, *rest = GOOD["codex"]
    return {"documents": [first, turn, {"type": "item.completed", "item": {"id": "i", **item}}, *rest]}


def claude_init(**changed: object) -> dict[str, Any]:
    return {"documents": [claude_streams.init(**changed), CLAUDE_ANSWER, CLAUDE_RESULT]}


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "codex, wrong model": (
        "codex",
        codex_item(type="error", message="model rerouted: model-1 -> model-2 (capacity)"),
        "model_mismatch",
    ),
    "codex, extra tool": ("codex", codex_item(type="web_search", query="x"), "tool_activity"),
    "codex, unknown surface": ("codex", codex_item(type="teleport"), "tool_activity"),
    "codex, tool event": ("codex", codex_item(type="command_execution", command="ls"), "tool_activity"),
    "claude, wrong model": ("claude", claude_init(model="claude-other-1"), "model_mismatch"),
    "claude, extra tool": ("claude", claude_init(tools=["StructuredOutput", "Bash"]), "stream_invalid"),
    "claude, unknown surface": ("claude", claude_init(mcp_servers=[{"name": "x"}]), "stream_invalid"),
    "claude, tool event": (
        "claude",
        {
            "documents": [
                claude_streams.init(),
                claude_streams.said(claude_streams.used("Bash", command="ls")),
                CLAUDE_RESULT,
            ]
        },
        "tool_activity",
    ),
    "opencode, wrong model": (
        "opencode",
        opencode_with(*OPENCODE_PARTS, model="fake/other"),
        "model_mismatch",
    ),
    "opencode, unknown surface": (
        "opencode",
        opencode_with(*OPENCODE_PARTS, agent="build"),
        "stream_invalid",
    ),
    "opencode, extra tool": (
        "opencode",
        {"export": opencode_fake.exported(opencode_fake.tool("webfetch"), *OPENCODE_PARTS)},
        "tool_activity",
    ),
    "opencode, tool event": (
        "opencode",
        opencode_with(opencode_fake.step_start(), opencode_fake.tool(), *OPENCODE_PARTS[1:]),
        "tool_activity",
    ),
    "kimi, wrong model": ("kimi", {"wire": [kimi.USAGE | {"model": "other"}]}, "model_mismatch"),
    "kimi, extra tool": (
        "kimi",
        {"documents": [kimi.VERSION_LINE, *kimi.tool("WebSearch"), kimi.message("@answer"), kimi.HINT]},
        "tool_activity",
    ),
    "kimi, unknown surface": (
        "kimi",
        {"documents": [kimi.VERSION_LINE, {"role": "oracle", "content": "@answer"}, kimi.HINT]},
        "no_answer",
    ),
    "kimi, tool event": (
        "kimi",
        {"documents": [kimi.VERSION_LINE, *kimi.tool(), kimi.message("@answer"), kimi.HINT]},
        "tool_activity",
    ),
}


class TestFaults:
    @pytest.mark.parametrize(("provider", "said", "ending"), FAULTS.values(), ids=FAULTS)
    def test_nothing_is_published(
        self, tmp_path: Path, provider: str, said: dict[str, Any], ending: str
    ) -> None:
        """R31: one call, its ending, and no pair."""
        house = House(tmp_path, provider)
        with pytest.raises(ExaminationRefused) as caught:
            house.examine(house.adapter(**said))
        assert caught.value.code is RefusalCode.REPEAT_FAILED
        assert caught.value.field == ending
        assert len(calls(tmp_path)) == 1
        assert house.published == []
        assert left_behind(house.around) == []

    @pytest.mark.parametrize("provider", FOUR)
    def test_a_session_that_is_used_twice(self, tmp_path: Path, provider: str) -> None:
        """R31: both answers are good, and they are not independent."""
        house = House(tmp_path, provider)
        with pytest.raises(ExaminationRefused) as caught:
            house.examine(house.adapter(reused=True))
        assert caught.value.code is RefusalCode.SESSION_REUSED
        assert house.published == []


class TestChildren:
    @pytest.mark.parametrize("provider", ["opencode", "kimi"])
    def test_no_foreign_credential_reaches_one(self, tmp_path: Path, provider: str) -> None:
        """R33: neither by its environment nor by its configuration."""
        house = House(tmp_path, provider, **FOREIGN)
        house.examine(house.adapter())
        for call in calls(tmp_path):
            seen = json.dumps(call)
            passed = {name for name, value in FOREIGN.items() if value in seen}
            allowed = set(ADAPTERS[provider].own_keys) & FOREIGN.keys()  # type: ignore[attr-defined]
            assert passed <= allowed
            assert "foreign-canary" not in seen
        stated = house.result["provider_environment_keys"]
        assert set(stated) & FOREIGN.keys() <= allowed


class TestKimi:
    def test_its_configuration_is_sealed(self, tmp_path: Path) -> None:
        """R34: what the alias meant, without a credential, and its hash beside it."""
        house = House(tmp_path, "kimi")
        found = house.examine(house.adapter())
        bound = house.result["provider_binding"]
        assert bound == {
            "binding_type": "kimi-selected-config-v1",
            "model_alias": "fake-model",
            "provider_id": "loop",
            "underlying_model": "underlying-model",
            "selected_config_hash": bound["selected_config_hash"],
        }
        assert house.result["provider_binding_hash"] == digest_object(bound)
        assert found.calibration.result.provider_binding_hash == digest_object(bound)
        assert b"key-canary" not in b"".join(
            path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()
        )

    def test_it_is_read_once_for_all_repeats(self, tmp_path: Path) -> None:
        """R34: edited between two calls, nothing sealed and nothing asked changes."""
        house = House(tmp_path, "kimi")
        config = house.home / ".kimi-code" / "config.toml"
        program = house.program()
        body = program.read_text().replace(
            "import uuid\n",
            "import uuid\n"
            f"edited = open({str(config)!r}).read().replace('underlying-model', 'another-model')\n"
            f"open({str(config)!r}, 'w').write(edited)\n",
        )
        program.write_text(body)
        house.examine(ADAPTERS["kimi"].at(program, around=house.around), repeats=3)
        assert "another-model" in config.read_text()
        assert house.result["provider_binding"]["underlying_model"] == "underlying-model"
        given = [tomllib.loads(call["config"])["models"]["fake-model"]["model"] for call in calls(tmp_path)]
        assert given == ["underlying-model"] * 3

    def test_a_resume_needs_the_same_configuration(self, tmp_path: Path) -> None:
        """R29 R34: another one is refused by its field, and no call is made; the same goes on."""
        house = House(tmp_path, "kimi")
        cut = house.adapter(documents=GOOD["kimi"][:-1])
        with pytest.raises(ExaminationRefused):
            house.examine(cut)
        config = house.home / ".kimi-code" / "config.toml"
        before = config.read_text()
        config.write_text(before.replace("underlying-model", "another-model"))
        with pytest.raises(ExaminationRefused) as caught:
            house.examine(ADAPTERS["kimi"].at(tmp_path / "kimi", around=house.around), resume=True)
        assert caught.value.code is RefusalCode.BINDING_DIFFERS
        assert caught.value.field == "provider_binding.underlying_model"
        assert len(calls(tmp_path)) == 1
        config.write_text(before + "# a remark\n")
        with pytest.raises(ExaminationRefused) as again:
            house.examine(ADAPTERS["kimi"].at(tmp_path / "kimi", around=house.around), resume=True)
        assert again.value.code is RefusalCode.REPEAT_FAILED
        assert len(calls(tmp_path)) == 2

    def test_a_pair_without_its_binding_does_not_load(self, tmp_path: Path) -> None:
        """R34 R43: nor one of another provider with one."""
        house = House(tmp_path, "kimi")
        found = house.examine(house.adapter()).calibration
        inputs = load_inputs(house.around.fs, BankName.JUDGED)
        stated = Declared(**{name: getattr(found.result, name) for name in Declared.__slots__})
        bound = stated.provider_binding
        assert bound is not None
        for changed in (
            replace(stated, provider_binding=None),
            replace(stated, provider_binding=bound.model_copy(update={"model_alias": "another"})),
        ):
            result = result_document(changed, found.evidence, inputs)
            with pytest.raises(PairRefused) as caught:
                load_calibration(to_line(found.evidence), to_line(result), inputs=inputs)
            assert caught.value.field.endswith(":/provider_binding")


def test_only_kimi_binds_a_configuration() -> None:
    """R34: every other provider takes nothing from there."""
    assert [name for name, adapter in ADAPTERS.items() if binds_configuration(adapter)] == ["kimi"]
