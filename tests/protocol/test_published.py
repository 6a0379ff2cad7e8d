from __future__ import annotations

import json

import jsonschema
import pytest

from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.published import published_models
from skill_effectiveness.protocol.resources import frozen_folder

DOCUMENTS = [
    ("reviewer-case-bank.schema.json", "fixtures/reviewer-bias-probes.json"),
    ("reviewer-case-bank.schema.json", "fixtures/reviewer-calibration-cases.json"),
    ("reviewer-known-answers.schema.json", "fixtures/reviewer-bias-probe-answers.json"),
    ("reviewer-known-answers.schema.json", "fixtures/reviewer-calibration-known-answers.json"),
    ("pilot-gates.schema.json", "fixtures/pilot-gates.json"),
    ("licence-policy.schema.json", "fixtures/licence-policy.json"),
    ("smoke-fixture.schema.json", "fixtures/e10-smoke.json"),
    ("placebo-sentences.schema.json", "fixtures/placebo-sentences.json"),
    *(("arm-template.schema.json", f"arms/{scope}{arm}.json") for scope in "SM" for arm in "012g"),
    *(
        ("profile-arm-template.schema.json", f"arms/profile/profile-{arm}.json")
        for arm in ("off", "full", "reference")
    ),
]


def test_the_documents_of_this_room() -> None:
    assert {
        name.removesuffix(".schema.json"): model.__name__ for name, model in published_models().items()
    } == {
        "reviewer-case-bank": "CasesFile",
        "reviewer-known-answers": "AnswersFile",
        "pilot-gates": "PilotGates",
        "licence-policy": "LicencePolicy",
        "arm-template": "SkillContentTemplate",
        "profile-arm-template": "ProfileTemplate",
        "arm-manifest": "SkillContentManifest",
        "profile-arm-manifest": "ProfileManifest",
        "arm-registry-plan": "SkillContentPlan",
        "profile-arm-registry-plan": "ProfilePlan",
        "task": "TaskRecord",
        "held-out-task": "HeldOutTask",
        "task-reference": "TaskReference",
        "host-residual-row": "HostResidualRow",
        "skill-events-row": "SkillEventsRow",
        "skill-event-fixtures": "EventFixtures",
        "capability-probe": "CapabilityProbe",
        "provider-capability-result": "ProviderCapabilityResult",
        "smoke-fixture": "SmokeFixture",
        "placebo-sentences": "PlaceboSentences",
    }


@pytest.mark.parametrize(("schema", "document"), DOCUMENTS)
def test_another_validator_accepts_the_committed_documents_and_refuses_an_unknown_member(
    schema: str, document: str
) -> None:
    model = published_models()[schema]
    assert issubclass(model, FrozenModel)
    validator = jsonschema.Draft202012Validator(model.model_json_schema())
    value = json.loads((frozen_folder() / document).read_bytes())
    validator.validate(value)
    assert not validator.is_valid(value | {"author": "nobody"})
    assert not validator.is_valid(
        {name: member for name, member in value.items() if name != "schema_version"}
    )
