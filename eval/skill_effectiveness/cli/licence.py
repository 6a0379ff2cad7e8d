"""`run.py licence`: issue, show and check a reviewer's licence to vote (calibration.md, section 9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.calibration.licence import LicenceRefused, read_time
from skill_effectiveness.calibration.licensing import (
    NamedReviewer,
    check_licence,
    claimed_licence,
    issue_licence,
    read_licence,
    reviewer_at,
    verified_licence,
)
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.reviewer import ADAPTERS
from skill_effectiveness.calibration.standing import LicenceStatus
from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import PREFIX, ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import (
    AsJson,
    Ask,
    PassphraseFd,
    key_place,
    passphrase_of,
    public_key,
    signing_key,
)
from skill_effectiveness.cli.next_step import tell_checker
from skill_effectiveness.cli.refusals import CommandCode, Refusal, Refused, answer, refusals
from skill_effectiveness.evidence.root import PrivateRoot, RootKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.calibration.standing import Standing
    from skill_effectiveness.evidence.surroundings import Surroundings

app = typer.Typer(
    add_completion=False, help="Issue, show and check the licences of reviewers.", rich_markup_mode=None
)

FARTHEST_DAYS: Final = 36_500
LicenceFile = Annotated[Path, typer.Argument(help="Licence file.", metavar="FILE")]

_TOLD: Final = {
    LicenceStatus.LIVE: "The licence is live.",
    LicenceStatus.SIGNATURE: "The key you gave did not sign this licence; nothing it says counts.",
    LicenceStatus.NOT_YET: "The licence does not count yet.",
    LicenceStatus.EXPIRED: "The licence has expired; examine the reviewer again.",
    LicenceStatus.DRIFT: "Something is not what was licensed any more; examine the reviewer again.",
    LicenceStatus.REVOKED: "The licence was revoked by known answers among its votes.",
}


@app.command()
def issue(  # one parameter per option is what a command line is
    *,
    calibration: Annotated[Path, typer.Option(help="Folder of the passed calibration.")],
    probes: Annotated[Path, typer.Option(help="Folder of the examination with the bias probes.")],
    key: Annotated[str, typer.Option(help="Name of a signing key, or the path of its .key file.")],
    out: Annotated[Path, typer.Option(help="Licence file to write, new.")],
    days: Annotated[
        int | None,
        typer.Option(
            min=-FARTHEST_DAYS,
            max=FARTHEST_DAYS,
            help="How long it lives; the policy allows 1 to 90, by default 30.",
            show_default=False,
        ),
    ] = None,
    ask: Ask = False,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Turn a passed calibration into a licence.

    Exit 0: written. 1: a line of the policy is not met. 2: bad input, or no passing pair. Nothing is written
    unless it is 0.
    """
    around = surroundings()
    name, root = key_place(key)
    passphrase = passphrase_of(around, ask=ask, descriptor=passphrase_fd, confirm=False)
    try:
        private = signing_key(name, root, passphrase, around)
        with (
            PrivateRoot.open(
                absolute(calibration), RootKind.OUT, around=around, checkout=checkout()
            ) as judged,
            PrivateRoot.open(absolute(probes), RootKind.OUT, around=around, checkout=checkout()) as probed,
        ):
            licence = issue_licence(judged, probed, private, absolute(out), days=days)
    except refusals() as refused:
        return _refused(refused, as_json=as_json)
    values: dict[str, object] = {
        "licence_status": "issued",
        "licence_id": licence.licence_id,
        "expires_at": licence.expires_at,
        "result": out.name,
    }
    if licence.synthetic:
        values["synthetic"] = True
    screen.results(values, as_json=as_json)
    tell_checker(key, "licence", "check", out)
    return ExitCode.DONE


def _refused(refused: Refused, *, as_json: bool) -> int:
    """Why there is no licence: every sentence on stderr, the first reason on stdout."""
    met = isinstance(refused, LicenceRefused) and refused.code.policy
    sentences = (
        [fault.sentence for fault in refused.faults]
        if isinstance(refused, LicenceRefused)
        else [str(refused)]
    )
    for sentence in sentences:
        screen.complain(f"{PREFIX}: {sentence}")
    told = answer(refused) if as_json else {}
    screen.results({"licence_status": "refused", "reason": refused.code.value, **told}, as_json=as_json)
    return ExitCode.NOT_PASSED if met else ExitCode.REFUSED


@app.command()
def show(file: LicenceFile, *, as_json: AsJson = False) -> None:
    """Print what a licence says. Its signature is not looked at."""
    licence = claimed_licence(read_licence(absolute(file), surroundings().fs))
    screen.complain("Whoever signed this was not looked at; `licence check` does that.")
    said = to_json(licence)
    screen.results(dict(said) if as_json else dict(_flat("", said)), as_json=as_json)


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Every single value under its dotted name."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _flat(f"{name}.{key}" if name else key, inner)
        case list():
            for number, inner in enumerate(value):
                yield from _flat(f"{name}.{number}", inner)
        case None:
            yield name, "none"
        case _:
            yield name, value


@app.command()
def check(
    file: LicenceFile,
    *,
    pub: Annotated[Path, typer.Option(help="Public key file of the issuer.")],
    executable: Annotated[
        Path | None, typer.Option(help="The reviewer's program as it is now.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model it is asked with.", show_default=False)] = None,
    at: Annotated[
        str | None,
        typer.Option(help="UTC time such as 2026-03-04T05:06:07Z (default: now).", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check whether a licence is live. Exit 0: live. 1: not, with the first failing part. 2: unreadable.

    Known answers among its votes may have revoked it; only whoever holds the votes knows, and no file named
    here tells.
    """
    around = surroundings()
    when = around.now() if at is None else read_time(at)
    key = public_key(pub, around)
    licence = verified_licence(read_licence(absolute(file), around.fs), key)
    named = NamedReviewer() if licence is None else _named(licence, executable, model, around)
    standing = check_licence(licence, named, when, fs=around.fs)
    screen.complain(_told(standing))
    values: dict[str, object] = {"licence_status": standing.word}
    if licence is not None and licence.synthetic:
        values["synthetic"] = True
        screen.complain("Its reviewer is simulated: it counts only where everything is.")
    screen.results(values, as_json=as_json)
    return ExitCode.DONE if standing.status is LicenceStatus.LIVE else ExitCode.NOT_PASSED


def _named(
    licence: LicencePredicate, executable: Path | None, model: str | None, around: Surroundings
) -> NamedReviewer:
    if executable is None:
        return NamedReviewer(model=model)
    provider = licence.reviewer.provider
    if provider not in ADAPTERS:
        raise Refusal(
            CommandCode.PROVIDER_NOT_EXAMINED,
            f"This version cannot bind a program of {provider}; leave out --executable.",
        )
    return replace(reviewer_at(licence, absolute(executable), around), model=model)


def _told(standing: Standing) -> str:
    told = _TOLD[standing.status]
    return f"{told} ({standing.field})" if standing.field else told
