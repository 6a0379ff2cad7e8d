"""The study file: every key missing, wrong and unknown, told with its place."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.yaml12 import read_yaml
from skill_effectiveness.studies.errors import StudyCode
from skill_effectiveness.studies.example import example_files
from skill_effectiveness.studies.study_file import StudyFile, StudyFileError, read_study
from skill_effectiveness.studies.words import Arm, EndClass, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = example_files("first")["study.yaml"]
Path = tuple[str, ...]


def value() -> dict[str, Any]:
    """The example as a plain value, with every key that may be left out."""
    read: Any = read_yaml(EXAMPLE)
    read["attempts"] = 3
    read["driver"]["settings"] |= {"sleep_seconds": 0.0, "endings": {"timeout": 0.1}}
    read["isolation"]["read_only"] = ["/usr"]
    read["arms"]["full"] |= {"instructions": [], "hooks": []}
    read["arms"]["reference"] = {"skills": ["skills/other"], "placebo": False}
    read["reviewers"] = [{"licence": "a.json", "executable": None}]
    read["outcome"] |= {"pass_at": 1.0, "secondary": ["passed"]}
    read["analysis"] |= {"estimand": {"timeout": "graded"}, "base_rate": 0.5, "task_sd": 0.15}
    return read  # type: ignore[no-any-return]


def skill_content() -> dict[str, Any]:
    """A study of the other registry."""
    read = value()
    read |= {"registry": "skill-content", "tier": "causal"}
    del read["arms"]["reference"]
    read["arms"]["oracle"] = {"skills": ["skills/owner"]}
    return read


def data(study: object) -> bytes:
    """A study as YAML with one key a line, since JSON is YAML."""
    return json.dumps(study, indent=1).encode()


def refused(study: object) -> StudyFileError:
    with pytest.raises(StudyFileError) as caught:
        read_study(data(study))
    assert caught.value.code is StudyCode.STUDY_INVALID
    return caught.value


def paths(node: object, path: Path = ()) -> Sequence[Path]:
    """Every key of a value."""
    if not isinstance(node, dict):
        return []
    found: list[Path] = []
    for name, member in node.items():
        found += [(*path, name), *paths(member, (*path, name))]
    return found


def held(study: dict[str, Any], path: Path) -> dict[str, Any]:
    """What holds the last key of a path."""
    node: Any = study
    for name in path[:-1]:
        node = node[name]
    return node  # type: ignore[no-any-return]


def line_of(study: object, key: str) -> int:
    """The line of the first place where a key stands."""
    return next(
        number for number, line in enumerate(data(study).decode().splitlines(), 1) if f'"{key}":' in line
    )


OPTIONAL = {
    ("attempts",),
    ("driver", "settings", "sleep_seconds"),
    ("driver", "settings", "endings"),
    ("driver", "settings", "endings", "timeout"),
    ("arms", "reference"),
    ("arms", "reference", "placebo"),
    ("isolation", "read_only"),
    ("outcome", "pass_at"),
    ("outcome", "minimum_effect"),
    ("outcome", "secondary"),
    ("analysis", "alpha"),
    ("analysis", "estimand"),
    ("analysis", "estimand", "timeout"),
    ("analysis", "base_rate"),
    ("analysis", "task_sd"),
    *(("arms", arm, kind) for arm in ("full", "reference") for kind in ("skills", "instructions", "hooks")),
}
EVERY = paths(value())
OBJECTS = [(), *(path for path in EVERY if isinstance(held(value(), path)[path[-1]], dict))]


class TestEveryKey:
    def test_the_example_reads(self) -> None:
        """S8: with every key there, and with every default."""
        assert read_study(data(value())).attempts == 3
        study = read_study(EXAMPLE)
        assert (study.attempts, study.analysis.base_rate, study.analysis.task_sd) == (3, 0.5, 0.15)
        assert list(study.arms.by_name()) == [Arm.OFF, Arm.FULL]

    @pytest.mark.parametrize("path", EVERY, ids="/".join)
    def test_missing(self, path: Path) -> None:
        """S8: a key that is needed is told with the place where it belongs."""
        study = value()
        del held(study, path)[path[-1]]
        if path in OPTIONAL:
            read_study(data(study))
            return
        (fault,) = refused(study).faults
        assert fault.pointer == "/" + "/".join(path)
        assert fault.mark is not None
        around = path[:-1]
        assert fault.mark.line == (line_of(study, around[-1]) if len(around) > 1 else fault.mark.line)
        assert fault.pointer in str(fault)

    @pytest.mark.parametrize("path", EVERY, ids="/".join)
    @pytest.mark.parametrize("wrong", [["x", 1], -1e9, {"odd": True}], ids=["list", "number", "object"])
    def test_wrong(self, path: Path, wrong: object) -> None:
        """S8: a value that no key may have is told with line, column and key."""
        study = value()
        held(study, path)[path[-1]] = wrong
        error = refused(study)
        fault = next(fault for fault in error.faults if fault.pointer.startswith("/" + "/".join(path)))
        assert fault.mark is not None
        assert f"line {fault.mark.line}, column {fault.mark.column}, {fault.pointer}: " in str(error)

    @pytest.mark.parametrize("path", OBJECTS, ids="/".join)
    def test_unknown(self, path: Path) -> None:
        """S8: a key that is not known is told by its own line and column."""
        study = value()
        held(study, (*path, "x"))["unheard"] = 1
        faults = refused(study).faults
        fault = next(fault for fault in faults if fault.pointer == "/" + "/".join((*path, "unheard")))
        assert fault.mark == (line_of(study, "unheard"), len(path) + 2)

    @pytest.mark.parametrize(
        ("key", "text", "pointer"),
        [
            ("alpha: 0.05", "alpha: 0", "/analysis/alpha"),
            ("alpha: 0.05", "alpha: 0.5", "/analysis/alpha"),
            ("name: first", "name: First", "/name"),
            ("name: first", "name: " + "a" * 41, "/name"),
            ("samples: 3", "samples: 0", "/samples"),
            ("samples: 3", "samples: 3\nattempts: 6", "/attempts"),
            ("samples: 3", "samples: 3.0", "/samples"),
            ("base_rate: 0.4", "base_rate: 1.4", "/driver/settings/base_rate"),
            ("effect: 0.4", "effect: two", "/driver/settings/effect"),
            ("sides: two", "sides: less", "/analysis/sides"),
            ("executable: null", "executable: bin/agent", "/driver/executable"),
            ("minimum_effect: 0.3", "minimum_effect: 0", "/outcome/minimum_effect"),
        ],
    )
    def test_boundaries(self, key: str, text: str, pointer: str) -> None:
        """S8: values just beyond what is allowed."""
        lines = EXAMPLE.decode().replace(key, text)
        with pytest.raises(StudyFileError) as caught:
            read_study(lines.encode())
        (fault,) = caught.value.faults
        name = pointer.rsplit("/", 1)[1]
        (number,) = [n for n, line in enumerate(lines.splitlines(), 1) if line.strip().startswith(f"{name}:")]
        assert (fault.pointer, fault.mark and fault.mark.line) == (pointer, number)

    @pytest.mark.parametrize(
        "text", ["name: second\n", "--- {}\n", "x: .nan\n", "x: [\n", "? [a]\n: 1\n"], ids=str.strip
    )
    def test_no_text_of_this_form(self, text: str) -> None:
        """S8: a duplicate key, two documents, a number that is none and broken text have a line too."""
        with pytest.raises(StudyFileError, match=r"line \d+, column \d+"):
            read_study(EXAMPLE + text.encode())

    def test_many_faults_are_told_with_the_rest_counted(self) -> None:
        study = value() | {f"x{n}": n for n in range(15)}
        assert "And 5 more." in str(refused(study))


class TestArms:
    def test_the_other_registry_reads(self) -> None:
        """S9: the arms of a registry are its own."""
        assert set(read_study(data(skill_content())).arms.by_name()) == {Arm.OFF, Arm.FULL, Arm.ORACLE}

    def test_oracle_in_paired_profile(self) -> None:
        """S9: a registry has no arm of the other."""
        study = value()
        study["arms"]["oracle"] = {"skills": ["a"]}
        (fault,) = refused(study).faults
        assert (fault.pointer, fault.mark and fault.mark.line) == ("/arms/oracle", line_of(study, "oracle"))

    def test_reference_in_skill_content(self) -> None:
        """S9: a registry has no arm of the other."""
        study = skill_content()
        study["arms"]["reference"] = {"skills": ["a"]}
        (fault,) = refused(study).faults
        assert fault.pointer == "/arms/reference"

    def test_no_off(self) -> None:
        """S9: nothing is compared with nothing."""
        study = value()
        del study["arms"]["off"]
        (fault,) = refused(study).faults
        assert (fault.pointer, fault.mark and fault.mark.line) == ("/arms/off", line_of(study, "arms"))

    def test_no_oracle_in_skill_content(self) -> None:
        """S9: no part of a registry is a plan."""
        study = skill_content()
        del study["arms"]["oracle"]
        assert refused(study).faults[0].pointer == "/arms"

    @pytest.mark.parametrize(
        ("registry", "tier"), [("paired-profile", "causal"), ("skill-content", "advisory-paired")]
    )
    def test_tier_of_the_other(self, registry: str, tier: str) -> None:
        """S9: a registry has one tier."""
        study = value() if registry == "paired-profile" else skill_content()
        assert refused(study | {"tier": tier}).faults[0].pointer == "/tier"

    def test_off_names_nothing(self) -> None:
        study = value()
        study["arms"]["off"] = {"skills": ["a"]}
        assert refused(study).faults[0].pointer == "/arms/off"


class TestContradictions:
    @pytest.mark.parametrize(
        ("path", "wrong", "pointer"),
        [
            (("driver", "executable"), "/bin/agent", "/driver/executable"),
            (("driver", "settings", "endings"), {"completed": 0.5}, "/driver/settings/endings"),
            (("driver", "settings", "endings"), {"timeout": 0.6, "crashed": 0.6}, "/driver/settings/endings"),
            (("reviewers",), [{"licence": "a", "executable": "/bin/r"}], "/reviewers/0/executable"),
            (("outcome", "secondary"), ["reward"], "/outcome/secondary"),
            (("outcome", "secondary"), ["passed", "passed"], "/outcome/secondary"),
            (("analysis", "estimand"), {"void": "failure"}, "/analysis/estimand/void"),
            (("analysis", "estimand"), {"contaminated": "rerun"}, "/analysis/estimand/contaminated"),
            (("analysis", "estimand"), {"completed": "missing"}, "/analysis/estimand/completed"),
            (("analysis", "estimand"), {"crashed": "graded"}, "/analysis/estimand/crashed"),
            (("analysis", "estimand"), {"timeout": "value"}, "/analysis/estimand/timeout"),
            (("arms", "reference", "placebo"), True, "/arms/reference"),
            (("scope",), "subagent", "/scope"),
        ],
    )
    def test_two_keys(self, path: Path, wrong: object, pointer: str) -> None:
        study = value()
        held(study, path)[path[-1]] = wrong
        (fault,) = refused(study).faults
        assert fault.pointer == pointer

    def test_preference_without_a_reviewer(self) -> None:
        study = value() | {"reviewers": []}
        study["outcome"]["primary"] = "preference"
        assert refused(study).faults[0].pointer == "/outcome"

    def test_one_side_at_any_time(self) -> None:
        study = value()
        study["analysis"] |= {"stopping": "anytime", "sides": "greater"}
        assert refused(study).faults[0].pointer == "/analysis/sides"

    def test_a_real_driver_needs_programs(self) -> None:
        study = copy.deepcopy(value())
        study["driver"] |= {"provider": "other", "settings": {}}
        assert {fault.pointer for fault in refused(study).faults} == {
            "/driver/executable",
            "/reviewers/0/executable",
        }


def test_rules_are_whole() -> None:
    rules = read_study(data(value())).rules()
    assert rules[EndClass.TIMEOUT] is Rule.GRADED
    assert rules[EndClass.INTERRUPTED] is Rule.RERUN
    assert len(rules) == 7


class TestTheSettingsOfAProgram:
    """Prices, and nothing else."""

    def read(self, settings: object) -> StudyFile:
        study = value()
        study["driver"] |= {"provider": "codex", "executable": "/bin/true", "settings": settings}
        study["reviewers"] = []
        study["outcome"] = {"primary": "reward"}
        return read_study(json.dumps(study).encode())

    def test_prices_of_a_model(self) -> None:
        """S8 S10: of the very model that is asked for; numbers and texts alike."""
        model = value()["driver"]["model"]
        prices = {model: {"input": 1.25, "output": "10"}, "another": {"input": 1, "output": 1}}
        price = self.read({"prices": prices}).price()
        assert price is not None
        assert (str(price.input), str(price.output), price.cached_input) == ("1.25", "10", None)
        assert self.read({"prices": {"another": {"input": 1, "output": 1}}}).price() is None
        assert self.read({}).price() is None
        assert read_study(json.dumps(value()).encode()).price() is None

    @pytest.mark.parametrize(
        ("settings", "pointer"),
        [
            ({"base_rate": 0.4}, "/driver/settings/base_rate"),
            ({"price": {}}, "/driver/settings/price"),
            ({"prices": []}, "/driver/settings/prices"),
            ({"prices": {"m": {"input": 1}}}, "/driver/settings/prices/m/output"),
            ({"prices": {"m": {"input": 0, "output": 1}}}, "/driver/settings/prices/m/input"),
            ({"prices": {"m": {"input": 1, "output": "ten"}}}, "/driver/settings/prices/m/output"),
            ({"prices": {"m": {"input": 1, "output": 1, "image": 1}}}, "/driver/settings/prices/m/image"),
        ],
    )
    def test_everything_else_is_refused(self, settings: object, pointer: str) -> None:
        """S8: at its place; nothing that is written down is passed over."""
        with pytest.raises(StudyFileError) as refused:
            self.read(settings)
        assert [fault.pointer for fault in refused.value.faults] == [pointer]
