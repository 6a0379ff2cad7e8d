"""`run.py reviewer-calibration`: examine a reviewer, two to five times (calibration.md, section 7)."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.calibration.binding import CLAIM
from skill_effectiveness.calibration.errors import ExaminationRefused, RefusalCode
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.repeats import (
    REPEATS,
    TIMEOUT_SECONDS,
    ExaminationPlan,
    check_plan,
    examine,
)
from skill_effectiveness.calibration.reviewer import ADAPTERS, Reviewer
from skill_effectiveness.cli import crash, screen, sheets
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.progress import ExaminationProgress
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.words import BankName
from skill_effectiveness.providers import SimulatedSettings
from skill_effectiveness.providers.simulated import LARGEST_SEED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.calibration.repeats import Examination
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider


class ProviderName(StrEnum):
    """Whoever can be named, which is whoever can be examined."""

    CODEX = "codex"
    CLAUDE = "claude"
    OPENCODE = "opencode"
    KIMI = "kimi"
    SIMULATED = "simulated"


SETTINGS: Final = ("accuracy", "position_bias", "flakiness", "refusal_rate", "seed")


_OPTIONS: Final = {
    RefusalCode.INVALID_REPEATS: "--repeats",
    RefusalCode.INVALID_TIMEOUT: "--timeout-seconds",
    RefusalCode.INVALID_MODEL: "--model",
    RefusalCode.INVALID_REVIEWER_FAMILY: "--reviewer-family",
}
"""The option behind each part of a plan that can be wrong by itself."""

CodexPath = Annotated[Path | None, typer.Option(help="Path of Codex's program, codex.", show_default=False)]
ClaudePath = Annotated[
    Path | None, typer.Option(help="Path of Claude's program, claude.", show_default=False)
]
OpencodePath = Annotated[
    Path | None, typer.Option(help="Path of OpenCode's program, opencode.", show_default=False)
]
KimiPath = Annotated[Path | None, typer.Option(help="Path of Kimi's program, kimi.", show_default=False)]
Rate = Annotated[
    float | None, typer.Option(min=0, max=1, help="Of a simulated reviewer, 0 to 1.", show_default=False)
]


def reviewer_calibration(  # one parameter per option is what a command line is
    *,
    provider: Annotated[
        ProviderName, typer.Option(help="Whose command line, or a simulated reviewer without any.")
    ],
    out: Annotated[Path, typer.Option(help="Private folder of the examination, outside any checkout.")],
    model: Annotated[
        str | None,
        typer.Option(help="The exact model; left out only for a simulated reviewer.", show_default=False),
    ] = None,
    reviewer_family: Annotated[
        str | None,
        typer.Option(
            help="The family the reviewer votes as; left out only for a simulated one.", show_default=False
        ),
    ] = None,
    codex_path: CodexPath = None,
    claude_path: ClaudePath = None,
    opencode_path: OpencodePath = None,
    kimi_path: KimiPath = None,
    repeats: Annotated[int, typer.Option(min=REPEATS[0], max=REPEATS[-1], help="How often.")] = 2,
    timeout_seconds: Annotated[
        int, typer.Option(min=TIMEOUT_SECONDS[0], max=TIMEOUT_SECONDS[-1], help="For each call.")
    ] = 220,
    bank: Annotated[BankName, typer.Option(help="Which cases.")] = BankName.JUDGED,
    accuracy: Rate = None,
    position_bias: Rate = None,
    flakiness: Rate = None,
    refusal_rate: Rate = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="Of a simulated reviewer.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what was begun in the folder.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
) -> int:
    """Examine a reviewer on blinded cases with known answers.

    Exit 0: passed. 1: completed and failed the gates, the pair is published. 2: refused, nothing published.
    """
    around = surroundings()
    programs = {"codex": codex_path, "claude": claude_path, "opencode": opencode_path, "kimi": kimi_path}
    values = (accuracy, position_bias, flakiness, refusal_rate, seed)
    given = {name: value for name, value in zip(SETTINGS, values, strict=True) if value is not None}
    program = matching_program(provider, programs, given)
    model = _named("model", model, provider)
    reviewer_family = _named("reviewer-family", reviewer_family, provider)
    plan = ExaminationPlan(model, reviewer_family, repeats, timeout_seconds, bank)
    demand_plan(plan, provider)
    # Before the folder is made: whoever names a program that is not there finds nothing to clean up.
    reviewer = reviewer_of(plan, provider, program, given, around)
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as root,
        crash.kept_in(root),
        told_how_to_go_on(screen.complain, partial(_going_on, root)),
        ExaminationProgress(f"{provider} {model}", repeats) as progress,
    ):
        found = examine(plan, reviewer, out=root, resume=resume, observer=progress)
        sheet = sheets.read_sheet(root, found)
    sheets.show(sheet, {reviewer_family: found.calibration_status})
    screen.results(result_values(found, reviewer_family), as_json=as_json)
    return ExitCode.NOT_PASSED if found.calibration_status == "fail" else ExitCode.DONE


def _named(option: str, given: str | None, provider: ProviderName) -> str:
    """What was given; a simulated reviewer is called what it is where nothing was.

    Raises:
        Refusal: `usage`: a real reviewer without it.
    """
    if given is not None:
        return given
    if provider is ProviderName.SIMULATED:
        return provider.value
    raise Refusal(CommandCode.USAGE, f"Missing option '--{option}'. See --help.")


def _going_on(root: PrivateRoot) -> str:
    """What to do after a signal."""
    try:
        begun = root.exists(CLAIM)
    except EvidenceError:
        begun = True  # a resume is right in a folder in which nothing was begun as well
    if begun:
        return "completed repeats are kept, so give the same command with --resume to go on."
    return "nothing was begun, so give the same command again."


def matching_program(
    provider: ProviderName, programs: Mapping[str, Path | None], settings: Mapping[str, object]
) -> Path | None:
    """The one path that belongs to the provider, absolute; None for the simulated one.

    That alone takes settings.

    Raises:
        Refusal: `program_mismatch`, `settings_mismatch`: paths and settings are not exactly its own.
    """
    given = {name: path for name, path in programs.items() if path is not None}
    if provider is ProviderName.SIMULATED:
        if given:
            raise Refusal(
                CommandCode.PROGRAM_MISMATCH,
                f"A simulated reviewer has no program; leave out --{min(given)}-path.",
            )
        if "accuracy" not in settings:
            raise Refusal(
                CommandCode.SETTINGS_MISMATCH, "Say how good the simulated reviewer is: --accuracy 0 to 1."
            )
        return None
    if settings:
        option = min(settings).replace("_", "-")
        raise Refusal(
            CommandCode.SETTINGS_MISMATCH,
            f"--{option} is for simulated reviewers only; leave it out for {provider}.",
        )
    if set(given) != {provider.value}:
        raise Refusal(
            CommandCode.PROGRAM_MISMATCH,
            f"Name the program by exactly --{provider}-path, and give no other provider's path.",
        )
    return absolute(given[provider.value])


def demand_plan(plan: ExaminationPlan, provider: ProviderName) -> None:
    """Refuse a plan that `repeats.check_plan` refuses, in words of the command line.

    Raises:
        typer.BadParameter: a value that no reviewer could have.
        Refusal: `family_mismatch`: reviewers of this provider belong to another family.
    """
    try:
        check_plan(plan, ADAPTERS[provider], simulated=provider is ProviderName.SIMULATED)
    except ExaminationRefused as refused:
        if refused.field is not None:
            raise Refusal(CommandCode.FAMILY_MISMATCH, refused.sentence) from refused
        raise typer.BadParameter(refused.sentence, param_hint=_OPTIONS[refused.code]) from refused


def reviewer_of(
    plan: ExaminationPlan,
    provider: ProviderName,
    program: Path | None,
    settings: Mapping[str, object],
    around: Surroundings,
) -> Reviewer:
    """The reviewer behind a program, bound to the plan's model, or the simulated one where there is none."""
    if program is None:
        simulated = SimulatedSettings.model_validate(dict(settings))
        return Reviewer.simulated(simulated, load_inputs(around.fs, plan.bank).bank)
    bound: Provider = ADAPTERS[provider].at(program, around=around)
    return Reviewer.real(bound.for_model(plan.model, around))


def result_values(found: Examination, reviewer_family: str) -> dict[str, object]:
    """The result lines of one examination."""
    values: dict[str, object] = {
        "execution_status": found.execution_status,
        "calibration_status": found.calibration_status,
        "reviewer_family": reviewer_family,
        "repeat_count": found.calibration.result.repeat_count,
        "result": found.result,
    }
    if found.calibration.synthetic:
        values["synthetic"] = True
    return values
