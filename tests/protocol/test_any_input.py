"""Whatever comes in, the readers of this room answer with a record or with their own typed error."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.caller_gates import caller_gates
from skill_effectiveness.protocol.capability import parse_probe
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.event_rows import read_event_row
from skill_effectiveness.protocol.gates import GATES_FILE, load_gates
from skill_effectiveness.protocol.manifests import parse_manifest
from skill_effectiveness.protocol.registry_plan import build_plan, parse_plan
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.smoke_fixture import SMOKE_FIXTURE, parse_smoke_fixture
from skill_effectiveness.protocol.tasks import TaskError, parse_task
from skill_effectiveness.protocol.templates import parse_template
from tests.support.arms import profile_arm, profile_arms, skill_arm
from tests.support.frozen_documents import HELD_OUT, SKILLS, probe
from tests.support.json_values import json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FROZEN = load_gates(RealFs())
TYPED = (ArmError, EvidenceError, ProtocolError, TaskError)


def frozen(name: str) -> Any:  # noqa: ANN401 - any JSON
    return json.loads((frozen_folder() / name).read_bytes())


def smoke(value: object) -> object:
    return parse_smoke_fixture(json.dumps(value).encode())


READERS: dict[str, tuple[Callable[[Any], object], Any]] = {
    "template": (parse_template, frozen("arms/Sg.json")),
    "profile template": (parse_template, frozen("arms/profile/profile-full.json")),
    "manifest": (parse_manifest, to_json(skill_arm("S1"))),
    "profile manifest": (parse_manifest, to_json(profile_arm("full"))),
    "plan": (parse_plan, to_json(build_plan(profile_arms()))),
    "task": (parse_task, HELD_OUT),
    "probe": (parse_probe, probe()),
    "row": (read_event_row, SKILLS),
    "gates": (lambda value: caller_gates(FROZEN, value), frozen(GATES_FILE)),
    "smoke": (smoke, frozen(SMOKE_FIXTURE)),
}


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - any JSON
    """Every place inside a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inner:
        yield (*place, step)
        yield from places(below, (*place, step))


def put(document: Any, place: tuple[str | int, ...], value: object) -> Any:  # noqa: ANN401 - any JSON
    """The document with another value in one place."""
    changed = copy.deepcopy(document)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


@pytest.mark.parametrize("name", READERS)
class TestReaders:
    @settings(max_examples=40)
    @given(value=json_values)
    def test_any_value(self, name: str, value: object) -> None:
        read, _ = READERS[name]
        try:
            read(value)
        except TYPED as error:
            assert str(error).isprintable()  # noqa: PT017 - there may be none

    @settings(max_examples=40)
    @given(data=st.data(), value=json_values | st.sampled_from([True, 1, 1.0, "1", "", None, [], {}]))
    def test_a_good_document_with_one_place_changed(
        self, name: str, data: st.DataObject, value: object
    ) -> None:
        read, document = READERS[name]
        place = data.draw(st.sampled_from(list(places(document))))
        try:
            read(put(document, place, value))
        except TYPED as error:
            assert str(error).isprintable()  # noqa: PT017 - there may be none

    def test_the_document_itself(self, name: str) -> None:
        read, document = READERS[name]
        assert read(document)
