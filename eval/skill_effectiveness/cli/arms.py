"""`run.py arms`: freeze an arm's content under hashes, and plan which frozen arms belong together.

Source: trials.md, sections 1 and 11. Both commands write under a private folder and may be repeated: the same
bytes again change nothing, other bytes are refused.

| command | writes | stdout |
|---|---|---|
| `freeze` | `manifest-<arm id>.json` | `arm_id, registry_schema, template_hash, manifest_hash, manifest` |
| `plan` | `arm-registry-plan.json` | `registry_schema, arms, arm_registry_hash, plan_hash, plan` |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.crash import kept_in
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer evaluates it
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import read_public
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.arm_errors import bad_record
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.manifests import freeze_manifest, parse_manifest
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.protocol.templates import parse_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.document import FrozenModel
    from skill_effectiveness.protocol.manifests import ArmManifest, Component

app = typer.Typer(
    add_completion=False, help="Freeze arms and plan which of them belong together.", rich_markup_mode=None
)

COMPONENT_LIMIT: Final = 16_777_216
"""Bytes; a component is what an agent is given to read."""
DOCUMENT_LIMIT: Final = 1_048_576
"""Bytes of a template or manifest file, each far below this."""
PLAN_FILE: Final = "arm-registry-plan.json"

Out = Annotated[Path, typer.Option("--out", help="Private folder to write in.", show_default=False)]


@app.command()
def freeze(
    template: Annotated[
        str, typer.Argument(help="Committed template, such as arms/S1.json.", metavar="TEMPLATE")
    ],
    *,
    out: Out,
    component: Annotated[
        list[str] | None,
        typer.Option("--component", metavar="NAME=FILE", help="A component's bytes; NAME= for an empty one."),
    ] = None,
    structure: Annotated[
        list[str] | None,
        typer.Option("--structure", metavar="NAME=FILE", help="A component that is a JSON structure."),
    ] = None,
    declared: Annotated[
        Path | None,
        typer.Option("--declared", help="The template you worked from; it must be the committed one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Freeze one arm: its committed template and the hash of every byte the agent is given."""
    around = surroundings()
    fs = around.fs
    given = dict(_components(fs, component or (), structure or ()))
    claimed = None if declared is None else parse_template(_document(fs, declared, "arm template"))
    manifest = freeze_manifest(fs, template, given, declared=claimed)
    name = f"manifest-{manifest.arm_id}.json"
    _publish(out, name, manifest)
    values = {
        "arm_id": manifest.arm_id,
        "registry_schema": str(manifest.registry_schema),
        "template_hash": manifest.template_hash,
        "manifest_hash": manifest.manifest_hash,
        "manifest": name,
    }
    screen.results(values, as_json=as_json)


@app.command()
def plan(
    *,
    manifest: Annotated[
        list[Path], typer.Option("--manifest", help="A frozen arm; once for each.", show_default=False)
    ],
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Plan the registry of these arms; it is published once."""
    fs = surroundings().fs
    built = build_plan([_manifest(fs, path) for path in manifest])
    _publish(out, PLAN_FILE, built)
    values = {
        "registry_schema": str(built.registry_schema),
        "arms": len(built.manifest_hashes),
        "arm_registry_hash": built.arm_registry_hash,
        "plan_hash": built.plan_hash,
        "plan": PLAN_FILE,
    }
    screen.results(values, as_json=as_json)


def _publish(out: Path, name: str, document: FrozenModel) -> None:
    with (
        PrivateRoot.create(absolute(out), RootKind.OUT, around=surroundings(), checkout=checkout()) as root,
        kept_in(root),
    ):
        root.publish(name, dump_line(to_json(document)))


def _manifest(fs: FileSystem, path: Path) -> ArmManifest:
    return parse_manifest(_document(fs, path, "arm manifest"))


def _document(fs: FileSystem, path: Path, what: str) -> JsonValue:
    data = read_public(fs, absolute(path), DOCUMENT_LIMIT)
    try:
        return read_json(data, Profile.DOCUMENT)
    except EvidenceError as error:
        raise bad_record(f"{what} {path.name}", error) from error


def _components(
    fs: FileSystem, files: Sequence[str], structures: Sequence[str]
) -> Iterator[tuple[str, Component]]:
    """Every component that was named, each once.

    Raises:
        Refusal: `usage`.
        EvidenceError: a file cannot be read.
        ArmError: `bad_record`.
    """
    seen: set[str] = set()
    for form, words in (("--component", files), ("--structure", structures)):
        for word in words:
            name, sign, place = word.partition("=")
            if not (name and sign) or name in seen or not (place or form == "--component"):
                sentence = f"{form} takes NAME=FILE, and each component is given once. See --help."
                raise Refusal(CommandCode.USAGE, sentence)
            seen.add(name)
            yield name, _content(fs, place, structured=form == "--structure")


def _content(fs: FileSystem, place: str, *, structured: bool) -> Component:
    if not place:
        return ""
    path = absolute(place)
    if not structured:
        return read_public(fs, path, COMPONENT_LIMIT)
    found = _document(fs, path, "component")
    if isinstance(found, dict | list):
        return found
    raise Refusal(
        CommandCode.USAGE, f"{path.name} holds neither a JSON object nor an array; use --component."
    )
