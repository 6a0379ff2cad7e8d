"""Which documents of this room have a published JSON Schema."""

from __future__ import annotations

from skill_effectiveness.protocol.capability import CapabilityProbe
from skill_effectiveness.protocol.cases import AnswersFile, CasesFile
from skill_effectiveness.protocol.event_fixtures import EventFixtures
from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow
from skill_effectiveness.protocol.gates import PilotGates
from skill_effectiveness.protocol.manifests import ProfileManifest, SkillContentManifest
from skill_effectiveness.protocol.placebo_sentences import PlaceboSentences
from skill_effectiveness.protocol.policy import LicencePolicy
from skill_effectiveness.protocol.provider_capability import ProviderCapabilityResult
from skill_effectiveness.protocol.registry_plan import ProfilePlan, SkillContentPlan
from skill_effectiveness.protocol.smoke_fixture import SmokeFixture
from skill_effectiveness.protocol.tasks import HeldOutTask, TaskRecord, TaskReference
from skill_effectiveness.protocol.templates import ProfileTemplate, SkillContentTemplate


def published_models() -> dict[str, type]:
    """File name below `schemas/` and the model its schema is generated from."""
    return {
        "reviewer-case-bank.schema.json": CasesFile,
        "reviewer-known-answers.schema.json": AnswersFile,
        "pilot-gates.schema.json": PilotGates,
        "licence-policy.schema.json": LicencePolicy,
        "arm-template.schema.json": SkillContentTemplate,
        "profile-arm-template.schema.json": ProfileTemplate,
        "arm-manifest.schema.json": SkillContentManifest,
        "profile-arm-manifest.schema.json": ProfileManifest,
        "arm-registry-plan.schema.json": SkillContentPlan,
        "profile-arm-registry-plan.schema.json": ProfilePlan,
        "task.schema.json": TaskRecord,
        "held-out-task.schema.json": HeldOutTask,
        "task-reference.schema.json": TaskReference,
        "host-residual-row.schema.json": HostResidualRow,
        "skill-events-row.schema.json": SkillEventsRow,
        "skill-event-fixtures.schema.json": EventFixtures,
        "capability-probe.schema.json": CapabilityProbe,
        "provider-capability-result.schema.json": ProviderCapabilityResult,
        "smoke-fixture.schema.json": SmokeFixture,
        "placebo-sentences.schema.json": PlaceboSentences,
    }
