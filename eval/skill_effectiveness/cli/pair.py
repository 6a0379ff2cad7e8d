"""`run.py pair blind`: make two outcomes into what a judge may see (trials.md, section 7)."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.crash import kept_in
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.cli.named_files import naming
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.registry_plan import parse_plan
from skill_effectiveness.trials.blinding import FOLDER, JUDGE, BlindOutcome, Position, blind_pair
from skill_effectiveness.trials.leaks import LeakRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings

app = typer.Typer(add_completion=False, help="Blind pairs of outcomes for a judge.", rich_markup_mode=None)

LIMIT: Final = 67_108_864
# As in task records (trials.md, section 1).
_OWNER: Final = re.compile(r"[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*")


@app.callback()
def _group() -> None:
    """Keep `blind` a word of its own while it is the only one."""


@app.command()
def blind(  # one parameter per option is what a command line is
    *,
    root: Annotated[Path, typer.Option(help="The controller's private folder, out of reach of every judge.")],
    plan: Annotated[Path, typer.Option(help="Registry plan of both arms.")],
    first: Annotated[Path, typer.Option(help="File with one outcome.")],
    second: Annotated[Path, typer.Option(help="File with the other; which is which does not matter.")],
    showing: Annotated[
        int, typer.Option(min=0, max=1, help="0, or 1 for the second showing, with seats changed.")
    ] = 0,
    owner: Annotated[
        list[str] | None, typer.Option(help="Expected owner to look for; may be repeated.")
    ] = None,
    treatment_text: Annotated[
        list[Path] | None, typer.Option(help="File with a treatment text to look for; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write mapping and judge file of a pair.

    Exit 0: written. 2: refused, also when a payload gives its arm away; then a file below blinding/leaks says
    where, and there is no judge file.
    """
    around = surroundings()
    with naming(plan):
        registry = parse_plan(read_json(_read(plan, around), Profile.DOCUMENT))
    sides = [_side(path, around) for path in (first, second)]
    # What is not UTF-8 in a treatment cannot be said again, so it separates words like any other sign.
    texts = [_read(path, around).decode("utf-8", "replace") for path in treatment_text or ()]
    rules = LeakRules(owners=_owners(owner or ()), profile_texts=texts)
    with (
        PrivateRoot.create(absolute(root), RootKind.OUT, around=around, checkout=checkout()) as controller,
        kept_in(controller),
    ):
        shown = blind_pair(controller, registry, *sides, rules=rules, position=Position(showing))
    values: dict[str, object] = {
        "pair_status": "blinded",
        "pair_id": shown.pair_id,
        "judge_input": f"{FOLDER}/{JUDGE}/{shown.pair_id}.json",
    }
    screen.results(values, as_json=as_json)
    return ExitCode.DONE


def _side(path: Path, around: Surroundings) -> BlindOutcome:
    with naming(path):
        return parse(BlindOutcome, _read(path, around), Profile.DOCUMENT)


def _owners(named: Sequence[str]) -> Sequence[str]:
    for owner in named:
        if not _OWNER.fullmatch(owner):
            told = (
                "An expected owner is written <namespace>:<name>, in lower-case letters, digits and hyphens."
            )
            raise Refusal(CommandCode.USAGE, told)
    return named


def _read(path: Path, around: Surroundings) -> bytes:
    return read_public(around.fs, absolute(path), LIMIT)
