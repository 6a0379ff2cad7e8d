"""The published schemas are what the models say, and fit what the program writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.calibration.sealing import seal_pair
from skill_effectiveness.cli.schemas import published
from skill_effectiveness.protocol.words import BankName
from tests.support.examinations import PLAN, open_out, run_examination, simulated
from tests.support.licences import granted
from tests.support.private import REPOSITORY
from tests.support.seals import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMITTED = REPOSITORY / "schemas"
NAMES = sorted(published())
# Where an examination leaves a document of each schema; the attempt is its first.
WRITTEN = {
    "reviewer-calibration-binding": "reviewer-calibration-binding.json",
    "reviewer-calibration-evidence": "reviewer-calibration.json",
    "reviewer-calibration-metrics": "reviewer-calibration-metrics.json",
    "reviewer-calibration-result": "reviewer-calibration-result.json",
}
FROZEN = {
    "licence-policy": "fixtures/licence-policy.json",
    "pilot-gates": "fixtures/pilot-gates.json",
    "smoke-fixture": "fixtures/e10-smoke.json",
    "placebo-sentences": "fixtures/placebo-sentences.json",
    "arm-template": "arms/S1.json",
    "profile-arm-template": "arms/profile/profile-full.json",
}


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((COMMITTED / f"{name}.schema.json").read_bytes()))


def parts(schema: object) -> Iterator[dict[str, Any]]:
    """Every object inside a schema, the whole first."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(inner)


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an examination."""
    folder = tmp_path_factory.mktemp("schemas")
    with open_out(folder) as out:
        run_examination(out)
    return folder / "out"


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_file_is_what_the_model_says(name: str) -> None:
    assert (COMMITTED / name).read_bytes() == published()[name]


def test_nothing_else_is_published() -> None:
    found = (path.relative_to(COMMITTED).as_posix() for path in COMMITTED.rglob("*") if path.is_file())
    assert sorted(found) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_closed_schema_with_a_name_of_its_own(name: str) -> None:
    schema: dict[str, Any] = json.loads(published()[name])
    Draft202012Validator.check_schema(schema)
    own = f"urn:skill-effectiveness:schema:{name.removesuffix('.schema.json')}"
    # Those of closeout carry the paths that its specification gives them (C68).
    assert schema["$id"] == (name.replace("closeout/", "schema/") if name.startswith("closeout/") else own)
    # A condition names members of an object that is closed elsewhere.
    conditions = [one[word] for one in parts(schema) for word in ("if", "then", "else") if word in one]
    objects = [one for one in parts(schema) if "properties" in one and one not in conditions]
    assert objects
    # The bridge hands an arm on to `protocol`, which reads it exactly; a runtime may hold more (trials.md 2).
    open_by_contract = {"DeclaredManifest", "TrialRuntime"} if name == "bridge-request.schema.json" else set()
    opened = [one for one in objects if one.get("additionalProperties") is not False]
    assert {one.get("title") for one in opened} <= open_by_contract


@pytest.mark.parametrize(("name", "file"), WRITTEN.items())
def test_what_an_examination_writes_fits(examined: Path, name: str, file: str) -> None:
    document = json.loads((examined / file).read_bytes())
    validator(name).validate(document)
    assert not validator(name).is_valid(document | {"more": 1})
    first = next(iter(document))
    assert not validator(name).is_valid({key: value for key, value in document.items() if key != first})


@pytest.mark.parametrize("kind", ["intent", "ledger-entry", "observation", "sample"])
def test_what_an_attempt_writes_fits(examined: Path, kind: str) -> None:
    documents = [json.loads(path.read_bytes()) for path in (examined / "attempts/r01-a1").rglob("*.json")]
    fitting = [
        document for document in documents if validator(f"reviewer-calibration-{kind}").is_valid(document)
    ]
    assert len(fitting) == 1


def test_the_result_of_bias_probes_fits(tmp_path: Path) -> None:
    from dataclasses import replace  # noqa: PLC0415 - used here alone

    with open_out(tmp_path) as out:
        plan = replace(PLAN, bank=BankName.BIAS_PROBE)
        run_examination(out, simulated(bank=BankName.BIAS_PROBE), plan)
    document = json.loads((tmp_path / "out/bias-probe-result.json").read_bytes())
    validator("reviewer-bias-probe-result").validate(document)


def test_the_predicate_of_a_seal_fits(examined: Path, tmp_path: Path) -> None:
    import base64  # noqa: PLC0415 - used here alone

    with open_out(examined.parent) as source, open_out(tmp_path, name="sealed") as target:
        seal_pair(source, KEY, target)
    envelope = json.loads((tmp_path / "sealed/seal.dsse.json").read_bytes())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    validator("reviewer-calibration-seal-predicate").validate(statement["predicate"])


def test_a_licence_fits() -> None:
    said = to_json(granted())
    validator("reviewer-licence").validate(said)
    assert not validator("reviewer-licence").is_valid(said | {"more": 1})


@pytest.mark.parametrize(("name", "file"), FROZEN.items())
def test_the_frozen_inputs_fit(name: str, file: str) -> None:
    validator(name).validate(json.loads((REPOSITORY / file).read_bytes()))
