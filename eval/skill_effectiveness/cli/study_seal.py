"""`run.py study seal` and `prove`: a study for strangers, and one trial of it (studies.md section 8)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson, Ask, PassphraseFd  # noqa: TC001 - likewise
from skill_effectiveness.cli.next_step import tell_checker
from skill_effectiveness.cli.study_keys import DEFAULT_KEY, Key, signer, state_root
from skill_effectiveness.cli.study_status import StudyFolder, open_study
from skill_effectiveness.cli.verify import demand_sealed
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.bundle import prove as prove_trial
from skill_effectiveness.studies.bundle import seal_study
from skill_effectiveness.studies.bundle_form import ENVELOPE, INCLUSION

if TYPE_CHECKING:
    from skill_effectiveness.studies.bundle import SealedBundle


def seal(  # one parameter per option is what a command line is
    folder: StudyFolder,
    *,
    out: Annotated[Path, typer.Option(help="New private folder for the bundle.", metavar="B")],
    key: Key = None,
    ask: Ask = False,
    passphrase_fd: PassphraseFd = None,
    as_json: AsJson = False,
) -> int:
    """Copy the evidence of a reported study and sign all of it, with the key that sealed the plan.

    No key, no private run order and no hidden test goes into the copy. Exit 0: sealed, or sealed before and
    still the same. 2: there is no report yet, another key sealed the plan, or the folder holds other things.
    """
    around = surroundings()
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(around) as state,
        open_study(folder) as study,
        crash.kept_in(study.root),
        study.lock().hold(action="study seal"),
        study.journal(state) as journal,
    ):
        private = signer(key, state, ask=ask, descriptor=passphrase_fd)
        with PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as target:
            found = seal_study(study, journal, target, private)
    screen.results(seal_values(found, f"{out.name}/{ENVELOPE}"), as_json=as_json)
    tell_checker(key or DEFAULT_KEY, "verify", out)
    return ExitCode.DONE


def seal_values(found: SealedBundle, place: str) -> dict[str, object]:
    """What machines are told of a bundle."""
    return {
        "merkle_root": found.predicate.merkle_root,
        "tree_size": found.predicate.tree_size,
        "key_id": found.key_id,
        "bundle": place,
    }


def prove(
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle.", metavar="B")],
    *,
    trial: Annotated[
        str,
        typer.Option(
            help="TASK/ARM_ID/sample-NNN, such as fix-01/profile-full/sample-001: trial_id in trials.csv."
        ),
    ],
    out: Annotated[Path, typer.Option(help="New private folder for the proof.", metavar="D")],
    as_json: AsJson = False,
) -> int:
    """Take one trial out of a bundle, with the proofs that it stands there; `verify` checks them.

    Exit 0: written. 2: the bundle is none, or holds no such trial.
    """
    around, place = surroundings(), absolute(bundle)
    demand_sealed(place, around.fs)
    with PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as target:
        prove_trial(around.fs, place, trial, target)
    screen.results({"proof": f"{out.name}/{INCLUSION}"}, as_json=as_json)
    return ExitCode.DONE
