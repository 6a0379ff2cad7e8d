"""What a provider must declare to exist, and what it answers to a call it does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import pytest

from skill_effectiveness.providers import (
    CallKind,
    CallOutcome,
    CodexProvider,
    Ending,
    Provider,
    ProviderCode,
    ProviderError,
    ReadCall,
    SimulatedReviewer,
    SimulatedSettings,
    WorkCall,
)
from tests.support.provider_calls import question, surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable

DECLARED: dict[str, Any] = {
    "name": "x",
    "family": None,
    "session_label": "s",
    "tool_label": "t",
    "json_fence": False,
    "call_kinds": frozenset({CallKind.JUDGE}),
}


def judge(self: Provider, call: object, *, around: object, cancelled: object = None) -> CallOutcome:
    del self, call, around, cancelled
    return CallOutcome(Ending.NO_ANSWER)


class TestHalfBuiltProviders:
    @pytest.mark.parametrize("forgotten", DECLARED)
    def test_every_attribute_must_be_declared(self, forgotten: str) -> None:
        """P13: a provider that does not say what it is is no class at all."""
        declared = {name: value for name, value in DECLARED.items() if name != forgotten}

        with pytest.raises(TypeError, match=f"does not declare {forgotten}"):
            type("Half", (Provider,), {**declared, "judge": judge})

    def test_a_declared_kind_needs_its_method(self) -> None:
        """P13: it cannot claim a call it does not hold."""
        with pytest.raises(TypeError, match=r"declares .*judge.* and holds \[\]"):
            type("Half", (Provider,), DECLARED)

    @pytest.mark.parametrize("kinds", [{CallKind.READ}, {CallKind.JUDGE, CallKind.WORK}, set()])
    def test_declared_kinds_are_exactly_the_held_ones(self, kinds: set[CallKind]) -> None:
        """P13: nor hide one it holds."""
        with pytest.raises(TypeError, match="declares"):
            type("Half", (Provider,), {**DECLARED, "call_kinds": frozenset(kinds), "judge": judge})

    def test_without_its_abstract_methods_no_object_can_be_made(self) -> None:
        half = type("Half", (Provider,), {**DECLARED, "judge": judge})

        with pytest.raises(TypeError, match="environment_keys"):
            half()


class Silent(Provider):
    """A provider that holds judge calls and nothing else."""

    name: ClassVar[str] = "silent"
    family: ClassVar[str | None] = None
    session_label: ClassVar[str] = "s"
    tool_label: ClassVar[str] = "t"
    json_fence: ClassVar[bool] = False
    call_kinds: ClassVar[frozenset[CallKind]] = frozenset({CallKind.JUDGE})

    judge = judge

    @classmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        raise AssertionError(path, around)

    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(environ)

    def identify(self, around: Surroundings) -> Executable:
        raise AssertionError(around)


class TestCallsThatAreNotHeld:
    @pytest.mark.parametrize("kind", [CallKind.READ, CallKind.WORK])
    def test_they_are_refused_by_a_typed_error(self, kind: CallKind) -> None:
        """P13: asking for a kind that is not held starts nothing."""
        with pytest.raises(ProviderError) as caught:
            Silent().require(kind)

        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED
        assert caught.value.sentence == (
            f"silent holds no {kind} calls (it holds: judge); choose a provider that does."
        )

    def test_a_held_kind_passes(self) -> None:
        Silent().require(CallKind.JUDGE)

    def test_judge_itself_refuses_where_it_is_not_held(self, tmp_path: Path) -> None:
        with pytest.raises(ProviderError) as caught:
            Provider.judge(Silent(), question(), around=surroundings(tmp_path))
        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED

    def test_read_itself_refuses_where_it_is_not_held(self, tmp_path: Path) -> None:
        """P13: nothing is started."""
        call = ReadCall("Look at this.", tmp_path, "fake-model", 5)
        with pytest.raises(ProviderError) as caught:
            Silent().read(call, around=surroundings(tmp_path))
        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED
        assert "no read calls" in caught.value.sentence

    def test_work_itself_refuses_where_it_is_not_held(self, tmp_path: Path) -> None:
        """P13: nothing is started."""
        call = WorkCall("Mend this.", tmp_path, "fake-model", 5)
        with pytest.raises(ProviderError) as caught:
            Silent().work(call, around=surroundings(tmp_path))
        assert caught.value.code is ProviderCode.CALL_KIND_UNSUPPORTED
        assert "no work calls" in caught.value.sentence


class TestAllKinds:
    @pytest.mark.parametrize("kinds", [{"judge"}, {"read"}, {"work"}, {"judge", "read", "work"}])
    def test_a_provider_may_hold_any_of_them(self, kinds: set[str]) -> None:
        """P13: each kind by the method of its name, and by nothing else."""
        held = frozenset(CallKind(kind) for kind in kinds)
        methods = dict.fromkeys(kinds, judge)
        made = type("Made", (Provider,), {**DECLARED, "call_kinds": held, **methods})
        assert made.__dict__["call_kinds"] == held
        for kind in set(CallKind) - held:
            with pytest.raises(TypeError, match="declares"):
                type("Half", (Provider,), {**DECLARED, "call_kinds": held | {kind}, **methods})
            with pytest.raises(TypeError, match="declares"):
                type("Half", (Provider,), {**DECLARED, "call_kinds": held, **methods, kind.value: judge})


class TestTheProvidersThereAre:
    def test_codex_says_what_can_be_proved(self) -> None:
        """P9 R32: the labels of codex."""
        assert CodexProvider.name == "codex"
        assert CodexProvider.family is None
        assert CodexProvider.session_label == "ephemeral"
        assert CodexProvider.tool_label == "read-only-observed-none"
        assert CodexProvider.json_fence is False
        assert CodexProvider.call_kinds == {CallKind.JUDGE, CallKind.READ, CallKind.WORK}

    def test_simulated_says_that_it_is(self) -> None:
        """R32: the labels of the simulated reviewer."""
        reviewer = SimulatedReviewer(SimulatedSettings(accuracy=1.0))

        assert reviewer.name == "simulated"
        assert reviewer.family == "simulated"
        assert reviewer.session_label == "simulated"
        assert reviewer.tool_label == "none"
        assert reviewer.json_fence is False
        assert reviewer.call_kinds == {CallKind.JUDGE}

    def test_simulated_is_bound_to_no_program(self, tmp_path: Path) -> None:
        """P2: whoever names a program for it is told."""
        with pytest.raises(ProviderError) as caught:
            SimulatedReviewer.at(tmp_path / "program", around=surroundings(tmp_path))
        assert caught.value.code is ProviderCode.NO_PROGRAM
