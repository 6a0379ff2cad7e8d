"""`run.py reviewers`: score a table, seal a pair, see it all once (calibration.md, sections 7 and 8)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final

import typer

from skill_effectiveness.calibration.sealing import SEAL, seal_pair
from skill_effectiveness.calibration.table import TableError, read_table, score_table
from skill_effectiveness.cli import demonstration, screen
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson, Ask, PassphraseFd, key_place, passphrase_of, signing_key
from skill_effectiveness.cli.next_step import tell_checker
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.cli.scores import print_score
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind

app = typer.Typer(
    add_completion=False,
    help="Score a table of verdicts, seal a published pair, or see a whole examination once.",
    rich_markup_mode=None,
)

TABLE_LIMIT: Final = 1_073_741_824


@app.command()
def score(
    table: Annotated[Path, typer.Argument(help="CSV of pairs with labels and verdicts in both orders.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Score verdicts that any judge gave on pairs with known labels."""
    around = surroundings()
    data = read_public(around.fs, absolute(table), TABLE_LIMIT)
    try:
        found = score_table(read_table(data))
    except TableError as wrong:
        for fault in wrong.faults:
            screen.complain(fault.sentence)
        count = "1 fault" if len(wrong.faults) == 1 else f"{len(wrong.faults)} faults"
        raise Refusal(
            CommandCode.TABLE_INVALID, f"The table cannot be scored: {count}, named above by row and column."
        ) from None
    print_score(found, as_json=as_json)


@app.command()
def seal(  # one parameter per option is what a command line is
    examination: Annotated[Path, typer.Argument(help="Folder of a published examination.", metavar="DIR")],
    key: Annotated[str, typer.Option(help="Name of a signing key, or the path of its .key file.")],
    out: Annotated[Path, typer.Option(help="New private folder for the pair and its seal.")],
    *,
    ask: Ask = False,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> None:
    """Copy one complete pair and sign it."""
    around = surroundings()
    name, root = key_place(key)
    private = signing_key(
        name, root, passphrase_of(around, ask=ask, descriptor=passphrase_fd, confirm=False), around
    )
    with (
        PrivateRoot.open(absolute(examination), RootKind.OUT, around=around, checkout=checkout()) as source,
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as target,
    ):
        sealed = seal_pair(source, private, target)
    values: dict[str, object] = {
        "calibration_status": sealed.result.calibration_status,
        "reviewer_family": sealed.result.reviewer_family,
        "synthetic": sealed.synthetic,
        "result": SEAL,
    }
    screen.results(values, as_json=as_json)
    tell_checker(key, "verify", out)


app.command("demo")(demonstration.demo)
