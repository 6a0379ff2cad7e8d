"""The study file of `study quick`."""

from __future__ import annotations

from skill_effectiveness.studies.quick import QuickOrder, quick_study
from skill_effectiveness.studies.study_file import read_study
from skill_effectiveness.studies.words import Arm, Network, Sandbox

SIMULATED = QuickOrder("/s/file-notes", "/t", "simulated", None, "m-1")


def test_an_ordinary_study_file() -> None:
    """S5: what is not asked for is as usual."""
    held = read_study(quick_study(SIMULATED))
    assert list(held.arms.by_name()) == [Arm.OFF, Arm.FULL]
    assert held.arms.full.skills == ("/s/file-notes",)
    assert (held.tasks, held.samples, held.reviewers) == ("/t", 3, ())
    assert held.question == "Does the skill file-notes change what the agent achieves on these tasks?"
    assert (held.isolation.sandbox, held.isolation.network) == (Sandbox.NONE, Network.NONE)
    assert quick_study(SIMULATED) == quick_study(SIMULATED)


def test_everything_that_can_be_asked_for() -> None:
    """S5 S7: budgets, reviewers, samples, a real agent and a placebo."""
    order = QuickOrder(
        'a "skill": #1',
        "/t",
        "claude",
        "/usr/bin/claude",
        "m-1",
        placebo=True,
        reviewers=[("/l.json", "/usr/bin/codex")],
        samples=5,
        tokens=1_000,
        cost_units=2.5,
        sandbox=True,
    )
    held = read_study(quick_study(order))
    assert held.driver.executable == "/usr/bin/claude"
    assert held.arms.reference is not None
    assert held.arms.reference.placebo
    assert [(one.licence, one.executable) for one in held.reviewers] == [("/l.json", "/usr/bin/codex")]
    assert (held.budgets.study.tokens, held.budgets.study.cost_units) == (1_000, 2.5)
    assert (held.samples, held.isolation.sandbox) == (5, Sandbox.BUBBLEWRAP)
    assert (held.arms.full.skills, held.isolation.network) == (('a "skill": #1',), Network.PROVIDER)


def test_prices_of_the_model() -> None:
    """S10 F39: under the name of the model that is asked for; without any, no settings."""
    price = {"input": "1.25", "output": "10", "reasoning": "12.5"}
    order = QuickOrder("/s/x", "/t", "codex", "/usr/bin/codex", "m-1", cost_units=2, price=price)
    stated = read_study(quick_study(order)).price()
    assert stated is not None
    assert (str(stated.input), str(stated.output), str(stated.reasoning)) == ("1.25", "10", "12.5")
    plain = QuickOrder("/s/x", "/t", "codex", "/usr/bin/codex", "m-1")
    assert read_study(quick_study(plain)).driver.settings == {}
