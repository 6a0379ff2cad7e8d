"""From the plain JSON of a caller to an order for a trial, every misfit by its code.

Source: trials.md, sections 3 and 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError
from skill_effectiveness.protocol.manifests import parse_manifest
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.protocol.registry_plan import parse_plan
from skill_effectiveness.protocol.tasks import TaskError, parse_task
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    ExpectedIsolation,
    IsolationEvidence,
    IsolationRoots,
    TrialBudget,
    TrialRuntime,
    read_record,
)
from skill_effectiveness.trials.prepare import PrepareOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.protocol.tasks import Task

NEEDED: Final = ("task", "manifest", "runtime", "budget", "sample_index")
EXPECTED: Final = ("expected_isolation_evidence", "expected_read_allow_roots", "expected_write_allow_roots")
OPTIONAL: Final = ("registry_schema", "registry_plan", *EXPECTED)


def read_order(value: Mapping[str, JsonValue], *, study: bool = False) -> PrepareOrder:
    """The order that a caller's fields make.

    Args:
        value: `NEEDED`, and of `OPTIONAL` what applies. The three expected fields stand together; of them the
            evidence may be null.
        study: whether a plan is needed.

    Raises:
        TrialError: `bad_record`: a field is absent, unknown or malformed; `registry_mismatch`: of two
            registries; `where` is the JSON pointer.
    """
    for name in NEEDED:
        if name not in value:
            raise _bad(name, "This field is needed; add it.")
    for name in value:
        if name not in (*NEEDED, *OPTIONAL):
            raise _bad(name, "This field is not known here; remove it or correct its name.")
    return PrepareOrder(
        task=_task(value["task"]),
        manifest=_manifest(value["manifest"]),
        runtime=read_record(TrialRuntime, value["runtime"], what="/runtime"),
        budget=read_record(TrialBudget, value["budget"], what="/budget"),
        sample_index=_index(value["sample_index"]),
        registry_schema=_registry(value["registry_schema"]) if "registry_schema" in value else None,
        plan=_plan(value["registry_plan"]) if "registry_plan" in value else None,
        study=study,
        expected=_expected(value),
    )


def _bad(name: str, sentence: str) -> TrialError:
    return TrialError(TrialCode.BAD_RECORD, f"/{name}", sentence, field=name)


def _task(value: JsonValue) -> Task:
    try:
        return parse_task(value)
    except TaskError as error:
        raise TrialError(TrialCode.BAD_RECORD, f"/task{error.where}", error.sentence, field="task") from error


def _manifest(value: JsonValue) -> ArmManifest:
    try:
        return parse_manifest(value)
    except ArmError as error:
        raise _of_arm("manifest", error) from error


def _plan(value: JsonValue) -> ArmRegistryPlan:
    try:
        return parse_plan(value)
    except ArmError as error:
        raise _of_arm("registry_plan", error) from error


def _of_arm(name: str, error: ArmError) -> TrialError:
    mixed = error.code is ArmCode.REGISTRY_MISMATCH
    code = TrialCode.REGISTRY_MISMATCH if mixed else TrialCode.BAD_RECORD
    return TrialError(code, f"/{name}", error.sentence, field=name)


def _index(value: JsonValue) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST_INTEGER:
        raise _bad("sample_index", "Samples are numbered by whole numbers from 1.")
    return value


def _registry(value: JsonValue) -> RegistrySchema:
    try:
        return RegistrySchema(str(value))
    except ValueError:
        known = " and ".join(RegistrySchema)
        raise TrialError(
            TrialCode.REGISTRY_MISMATCH,
            "/registry_schema",
            f"There is no such registry; the registries are {known}.",
            field="registry_schema",
        ) from None


def _expected(value: Mapping[str, JsonValue]) -> ExpectedIsolation | None:
    given = [name for name in EXPECTED if name in value]
    if not given:
        return None
    for name in EXPECTED:
        if name not in value:
            raise _bad(
                name, "What a completed trial recorded is given whole: evidence and both lists of roots."
            )
    roots = read_record(
        IsolationRoots, {name.removeprefix("expected_"): value[name] for name in EXPECTED[1:]}
    )
    evidence = value[EXPECTED[0]]
    return ExpectedIsolation(
        None if evidence is None else read_record(IsolationEvidence, evidence, what=f"/{EXPECTED[0]}"),
        roots.read_allow_roots,
        roots.write_allow_roots,
    )
