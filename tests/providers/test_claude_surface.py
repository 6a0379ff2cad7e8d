"""The validator of a session's surface: what was asked for, the pinned built-ins, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skill_effectiveness.providers.claude_surface import Surface, differences
from tests.support.claude_streams import CONFIG, JUDGING, MODEL, init

WORKING = Surface(
    MODEL,
    frozenset({"Bash", "Skill"}),
    "acceptEdits",
    CONFIG,
    plugin=("local", "/session/data/local"),
    skills=frozenset({"local:review-work"}),
)
MOUNTED = {"name": "local", "path": "/session/data/local", "source": "local@inline"}


def working(**changed: object) -> dict[str, Any]:
    """The first event of a session with one mounted skill."""
    told: dict[str, Any] = {
        "tools": ["Skill", "Bash"],
        "permissionMode": "acceptEdits",
        "plugins": [MOUNTED],
        "skills": ["local:review-work", "doctor"],
        "slash_commands": ["local:review-work", "doctor", "compact"],
    }
    return init(**(told | changed))


class TestWhatWasAskedFor:
    def test_a_judge_session(self) -> None:
        """P9: the one tool by which the answer is given, and pinned built-ins."""
        assert differences(init(), JUDGING) == []

    def test_a_work_session_with_a_mount(self) -> None:
        """P9: the order of names says nothing."""
        assert differences(working(), WORKING) == []

    def test_memory_of_the_session_itself_is_nobody_elses(self) -> None:
        assert differences(init(memory_paths={"auto": f"{CONFIG}/projects/x/memory/"}), JUDGING) == []

    def test_members_that_are_known_may_be_absent_where_they_only_add(self) -> None:
        """P9: an older or later version that does not list them lists nothing in them."""
        told = init()
        for name in ("capabilities", "sandbox_enabled", "apiKeySource"):
            del told[name]
        assert differences(told, JUDGING) == []


class TestWhatWasNot:
    @pytest.mark.parametrize(
        "changed",
        [
            {"tools": ["StructuredOutput", "Bash"]},
            {"tools": []},
            {"tools": ["Bash"]},
            {"tools": ["StructuredOutput", "StructuredOutput"]},
            {"tools": "StructuredOutput"},
            {"tools": None},
            {"mcp_servers": [{"name": "x", "status": "connected"}]},
            {"mcp_servers": None},
            {"mcp_servers": {}},
            {"plugins": [{"name": "cc-plugin-x", "path": "builtin", "source": "cc-plugin-x@builtin"}]},
            {
                "plugins": [
                    {"name": "cc-plugin-privacy", "path": "/home/x", "source": "cc-plugin-privacy@builtin"}
                ]
            },
            {
                "plugins": [
                    {"name": "cc-plugin-privacy", "path": "builtin", "source": "cc-plugin-privacy@market"}
                ]
            },
            {"plugins": [MOUNTED]},
            {"plugins": ["cc-plugin-privacy"]},
            {"plugins": None},
            {"skills": ["users-own"]},
            {"skills": [["doctor"]]},
            {"skills": None},
            {"slash_commands": ["users-own"]},
            {"slash_commands": None},
            {"terminal_slash_commands": ["users-own"]},
            {"agents": ["claude", "users-own"]},
            {"agents": None},
            {"permissionMode": "bypassPermissions"},
            {"permissionMode": "acceptEdits"},
            {"permissionMode": None},
            {"additional_directories": ["/home/x"]},
            {"output_style": "users-own"},
            {"memory_paths": {"auto": "/home/x/.claude/memory/"}},
            {"memory_paths": {"auto": f"{CONFIG}-of-another/memory"}},
            {"memory_paths": "/home/x"},
            {"capabilities": [{"may": "everything"}]},
            {"model": ""},
            {"model": None},
            {"cwd": ["/workspace/wd"]},
        ],
        ids=str,
    )
    def test_one_difference_alone(self, changed: dict[str, Any]) -> None:
        """P9 R31: each of them makes it another session."""
        assert len(differences(init(**changed), JUDGING)) == 1

    @pytest.mark.parametrize(
        "changed",
        [
            {"plugins": []},
            {"plugins": [{**MOUNTED, "path": "/home/x/plugin"}]},
            {"plugins": [MOUNTED, MOUNTED]},
            {"skills": ["doctor"]},
            {"skills": ["local:review-work", "local:other"]},
            {"skills": ["local:review-work", "review-work"]},
        ],
        ids=str,
    )
    def test_a_mount_that_is_not_there_as_it_was_laid(self, changed: dict[str, Any]) -> None:
        """F31 F36: an arm without its skill, or with more than it."""
        assert differences(working(**changed), WORKING) != []

    def test_a_skill_without_a_mount(self) -> None:
        """F31: the other arm's skill."""
        bare = replace(WORKING, plugin=None, skills=frozenset())
        assert len(differences(working(), bare)) == 3


class TestWhatIsNotKnown:
    @pytest.mark.parametrize("value", [["x"], {"x": 1}])
    def test_a_list_or_an_object_that_holds_something(self, value: object) -> None:
        """P9: whatever it is called."""
        assert differences(init(novelty=value), JUDGING) == ["novelty: unknown and not empty"]

    @pytest.mark.parametrize("name", ["allow_everything", "permissionsBypassed", "hooks_on", "extra_tool"])
    @pytest.mark.parametrize("value", [True, 1, "all"])
    def test_a_name_that_sounds_of_authority(self, name: str, value: object) -> None:
        """P9: and is not false."""
        assert differences(init(**{name: value}), JUDGING) == [f"{name}: unknown and not empty"]

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    def test_what_is_empty_widens_nothing(self, value: object) -> None:
        assert differences(init(novelty=value, allow_everything=value), JUDGING) == []

    @pytest.mark.parametrize("value", [True, 3, "dark"])
    def test_one_value_under_a_harmless_name(self, value: object) -> None:
        """P9: a later version may say more of itself."""
        assert differences(init(view_theme=value), JUDGING) == []
