"""The tested agent of a planned study, bound again to what was frozen (studies.md section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.drivers import bound_provider, frozen_driver
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from skill_effectiveness.studies.simulated_driver import SimulatedAgent
from skill_effectiveness.studies.working_agent import PlannedAgent

if TYPE_CHECKING:
    from skill_effectiveness.studies.agent import TestedAgent
    from skill_effectiveness.studies.root import StudyRoot


def bound_agent(study: StudyRoot) -> TestedAgent:
    """The agent that a study was planned with.

    Raises:
        StudyError: `driver_differs`: it is not what was frozen; `plan_changed`: this program is not the one
            that planned; `driver_unsupported`.
        ProviderError, ExecutableError, EvidenceError, CalibrationError: agent or program cannot be looked at.
    """
    file = study.study()
    if frozen_driver(file, study.around) != study.plan.driver:
        sentence = "the tested agent is not the one that was frozen; restore it, or plan anew."
        raise StudyError(StudyCode.DRIVER_DIFFERS, "/driver", sentence)
    if runtime_manifest_hash() != study.plan.runtime_manifest_hash:
        sentence = "another version of this program made the plan; use that one, or plan anew."
        raise StudyError(StudyCode.PLAN_CHANGED, "/runtime_manifest_hash", sentence)
    if not file.driver.simulated:
        return PlannedAgent(study, bound_provider(file, study.around), [study.root.path])
    return SimulatedAgent(study.plan, file.simulated_settings(), Chance(study.seed()), study.around)
