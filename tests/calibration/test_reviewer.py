from __future__ import annotations

import inspect
from typing import Any

import pytest

from skill_effectiveness.calibration.orientation import draw
from skill_effectiveness.calibration.reviewer import ADAPTERS, Reviewer
from skill_effectiveness.providers import CallKind, JudgeCall, SimulatedReviewer, SimulatedSettings, holding
from tests.support.examinations import BANK, PERFECT, Scripted, always
from tests.support.private import surroundings

SHOWN = draw(BANK, "s-1", bytes(range(32)))


class TestReal:
    def test_answers_as_it_is_whatever_is_shown(self) -> None:
        """R3: there is no way for a presentation to reach a real reviewer but the prompt."""
        adapter = Scripted(always("tie"))
        reviewer = Reviewer.real(adapter)
        assert reviewer.adapter_for(SHOWN, "s-1") is adapter
        assert reviewer.simulation is None

    @pytest.mark.parametrize("name", sorted(set(ADAPTERS) - {"simulated"}))
    def test_has_no_parameter_for_a_truth(self, name: str) -> None:
        """R3: neither when it is made nor when it is asked."""
        adapter: Any = ADAPTERS[name]
        for function in (adapter.__init__, adapter.judge):
            assert not any("truth" in parameter for parameter in inspect.signature(function).parameters)
        assert not any("truth" in field for field in JudgeCall.__slots__)


class TestSimulated:
    def answers(self, settings: SimulatedSettings, sample_id: str = "s-1") -> list[str]:
        """What it says about the cases in shown order."""
        import json  # noqa: PLC0415 - answers are text

        from skill_effectiveness.calibration.prompt import answer_schema, render  # noqa: PLC0415 - likewise

        adapter = Reviewer.simulated(settings, BANK).adapter_for(SHOWN, sample_id)
        call = JudgeCall(render(SHOWN), answer_schema(SHOWN), "sim-1", 5)
        answer = adapter.judge(call, around=surroundings()).answer
        assert answer is not None
        return [entry["verdict"] for entry in json.loads(answer)["judgments"]]

    def test_is_handed_the_truth_as_it_is_shown(self) -> None:
        """R44: accuracy 1 gives every known answer, turned to the seats."""
        assert self.answers(PERFECT) == [verdict.value for verdict in SHOWN.as_shown(BANK.truth)]

    def test_repeats_itself_in_another_sample_unless_it_is_flaky(self) -> None:
        """R44: draws are keyed by case, and by sample where they are drawn anew."""
        steady = SimulatedSettings(accuracy=0.5, seed=5)
        assert self.answers(steady, "s-1") == self.answers(steady, "s-2")
        flaky = SimulatedSettings(accuracy=0.5, flakiness=1.0, seed=5)
        assert self.answers(flaky, "s-1") != self.answers(flaky, "s-2")

    def test_keeps_its_five_settings(self) -> None:
        """R43: they stand in every binding and result."""
        settings = SimulatedSettings(accuracy=0.9, position_bias=0.1, flakiness=0.2, refusal_rate=0.3, seed=4)
        simulation = Reviewer.simulated(settings, BANK).simulation
        assert simulation is not None
        assert simulation.model_dump() == settings.model_dump()


class TestAdapters:
    def test_are_those_that_can_judge(self) -> None:
        assert list(ADAPTERS) == ["codex", "claude", "opencode", "kimi", "simulated"]
        assert dict(ADAPTERS) == dict(holding(CallKind.JUDGE))
        assert ADAPTERS["simulated"] is SimulatedReviewer

    @pytest.mark.parametrize(
        ("name", "family", "session", "tools", "fence"),
        [
            ("codex", None, "ephemeral", "read-only-observed-none", False),
            ("claude", "claude", "no-session-persistence", "verified-none", False),
            ("opencode", None, "private-xdg-explicit-model-export", "agent-disabled-observed-none", False),
            (
                "kimi",
                "moonshot",
                "private-kimi-home-explicit-model-stream",
                "config-denied-stream-audited-detection-only",
                True,
            ),
            ("simulated", "simulated", "simulated", "none", False),
        ],
    )
    def test_carry_the_labels_of_section_7(
        self,
        name: str,
        family: str | None,
        session: str,
        tools: str,
        fence: bool,  # noqa: FBT001 - a case of the table
    ) -> None:
        """R32: word for word; and only one may put its answer in a fence (P12)."""
        adapter = ADAPTERS[name]
        assert (adapter.family, adapter.session_label, adapter.tool_label) == (family, session, tools)
        assert adapter.json_fence is fence
