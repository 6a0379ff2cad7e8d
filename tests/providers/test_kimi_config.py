"""What is taken from a user's Kimi configuration, and what a session gets."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.providers import ProviderCode, ProviderError
from skill_effectiveness.providers.kimi_config import Permissions, Selection, logins, select, users_home
from tests.support.kimi import write_configuration
from tests.support.provider_calls import surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

NOTHING = Permissions(allowed=())
MODEL = '[models.m]\nprovider = "p"\nmodel = "u"\n'
PROVIDER = '[providers.p]\ntype = "openai"\n'


def around_of(tmp_path: Path, text: str | bytes | None = None, **environ: str) -> Surroundings:
    home = tmp_path / "home"
    if text is None:
        write_configuration(home)
    else:
        (home / ".kimi-code").mkdir(parents=True)
        data = text if isinstance(text, bytes) else text.encode()
        (home / ".kimi-code" / "config.toml").write_bytes(data)
    return surroundings(tmp_path, HOME=str(home), **environ)


def session_file(selection: Selection, permissions: Permissions = NOTHING) -> dict[str, Any]:
    return tomllib.loads(selection.file(permissions).decode())


def refusal(alias: str, around: Surroundings) -> str:
    with pytest.raises(ProviderError) as caught:
        select(alias, around)
    assert caught.value.code is ProviderCode.INVALID_CALL
    return caught.value.sentence


class TestSelection:
    def test_one_model_of_one_provider_and_nothing_else(self, tmp_path: Path) -> None:
        """P3 F32: the session's file, whole; hooks, servers, rules, other models and keys stay out."""
        selection = select("fake-model", around_of(tmp_path))

        assert session_file(selection) == {
            "default_model": "fake-model",
            "providers": {
                "loop": {
                    "type": "openai",
                    "base_url": "http://127.0.0.1:9/v1",
                    "api_key": "key-canary",
                }
            },
            "models": {
                "fake-model": {
                    "provider": "loop",
                    "model": "underlying-model",
                    "max_context_size": 200000,
                }
            },
            "loop_control": {"max_attempts_per_step": 2},
            "telemetry": False,
            "builtin_product_skills": False,
            "permission": {"rules": [{"decision": "deny", "scope": "user", "pattern": "*"}]},
            "tools": {"enabled": ["none"]},
        }

    def test_what_is_bound(self, tmp_path: Path) -> None:
        """P2 R34: alias, provider, underlying model, and a hash without the key.

        The hash is that of `sha256sum` over the canonical text written out by hand.
        """
        binding = select("fake-model", around_of(tmp_path)).binding()

        assert dataclasses.asdict(binding) == {
            "binding_type": "kimi-selected-config-v1",
            "model_alias": "fake-model",
            "provider_id": "loop",
            "underlying_model": "underlying-model",
            "selected_config_hash": (
                "sha256:f4a1402b129d05628f1144b36a8a8f970c636763a1afbb40e602a6de2ffbd35d"
            ),
        }

    def test_a_new_key_is_the_same_configuration(self, tmp_path: Path) -> None:
        """R34: a credential is renewed; nothing else may change."""
        around = around_of(tmp_path)
        before = select("fake-model", around)
        place = tmp_path / "home" / ".kimi-code" / "config.toml"
        place.write_text(place.read_text().replace("key-canary", "new-canary"))
        renewed = select("fake-model", around)
        place.write_text(place.read_text().replace("127.0.0.1:9", "127.0.0.1:8"))
        moved = select("fake-model", around)

        assert before.binding() == renewed.binding()
        assert session_file(renewed)["providers"]["loop"]["api_key"] == "new-canary"
        assert before.binding() != moved.binding()
        assert "canary" not in repr(before)

    @pytest.mark.parametrize(
        "member",
        ['api_key = "{}"', 'env = {{ KIMI_API_KEY = "{}" }}', 'custom_headers = {{ Authorization = "{}" }}'],
    )
    def test_no_credential_enters_the_hash(self, tmp_path: Path, member: str) -> None:
        """R34: wherever it stands."""
        hashes = set()
        for key in ("one", "two"):
            folder = tmp_path / key
            folder.mkdir()
            around = around_of(folder, MODEL + PROVIDER + member.format(key))
            hashes.add(select("m", around).binding().selected_config_hash)

        assert len(hashes) == 1

    @pytest.mark.parametrize("member", ['custom_headers = {{ X-Route = "{}" }}', 'base_url = "http://{}/"'])
    def test_everything_else_does(self, tmp_path: Path, member: str) -> None:
        """F37: another way to a model is another binding."""
        hashes = set()
        for word in ("one", "two"):
            folder = tmp_path / word
            folder.mkdir()
            around = around_of(folder, MODEL + PROVIDER + member.format(word))
            hashes.add(select("m", around).binding().selected_config_hash)

        assert len(hashes) == 2

    def test_a_key_of_the_environment(self, tmp_path: Path) -> None:
        """P3 R33: it is in the session's file, and needs no variable there."""
        around = around_of(tmp_path, f'{MODEL}{PROVIDER}api_key_env = "MINE"\n', MINE="mine-canary")

        assert session_file(select("m", around))["providers"] == {
            "p": {"type": "openai", "api_key": "mine-canary"}
        }

    def test_a_key_that_is_not_there_stays_a_name(self, tmp_path: Path) -> None:
        """P7: the program says so itself."""
        around = around_of(tmp_path, f'{MODEL}{PROVIDER}api_key_env = "MINE"\n', MINE="")

        assert session_file(select("m", around))["providers"]["p"]["api_key_env"] == "MINE"

    def test_other_names_for_the_two_members(self, tmp_path: Path) -> None:
        around = around_of(tmp_path, f'[models."a.b/c:d"]\nprovider_id = "p"\nname = "u"\n{PROVIDER}')
        selection = select("a.b/c:d", around)

        assert (selection.provider_id, selection.underlying_model) == ("p", "u")
        assert session_file(selection)["models"] == {"a.b/c:d": {"provider_id": "p", "name": "u"}}

    def test_a_configuration_behind_a_link(self, tmp_path: Path) -> None:
        """People keep such files elsewhere."""
        around = around_of(tmp_path)
        place = tmp_path / "home" / ".kimi-code" / "config.toml"
        place.rename(tmp_path / "elsewhere.toml")
        place.symlink_to(tmp_path / "elsewhere.toml")

        assert select("fake-model", around).provider_id == "loop"


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("x = [", "not TOML"),
            (b"\xff", "not TOML"),
            ("x = " + "[" * 100_000, "not TOML"),
            ("a = 1\na = 2", "not TOML"),
            ("", "models have no table 'm'"),
            ("models = 1", "models have no table 'm'"),
            ("[models]\nm = 1", "models have no table 'm'"),
            (MODEL, "providers have no table 'p'"),
            (PROVIDER + '[models.m]\nmodel = "u"', "exactly one provider"),
            (PROVIDER + '[models.m]\nprovider = "p"', "exactly one model"),
            (PROVIDER + '[models.m]\nprovider = "p"\nprovider_id = "q"\nmodel = "u"', "exactly one provider"),
            (PROVIDER + '[models.m]\nprovider = "p"\nmodel = "u"\nname = "v"', "exactly one model"),
            (PROVIDER + '[models.m]\nprovider = "p"\nmodel = ""', "exactly one model"),
            (PROVIDER + '[models.m]\nprovider = 1\nmodel = "u"', "exactly one provider"),
            (PROVIDER + '[models.m]\nprovider = ["p"]\nmodel = "u"', "exactly one provider"),
            (MODEL + PROVIDER + "x = 2026-11-30", "a time"),
            (MODEL + PROVIDER + "x = nan", "not finite"),
            (MODEL + PROVIDER + "x = 1e999", "not finite"),
            (MODEL + PROVIDER + f"x = {2**63 - 1}", "no exact form"),
        ],
    )
    def test_what_does_not_name_one_model(self, tmp_path: Path, text: str | bytes, reason: str) -> None:
        """P2 F37: an alias is resolved or refused, in one sentence."""
        sentence = refusal("m", around_of(tmp_path, text))

        assert reason in sentence
        assert str(tmp_path) not in sentence

    def test_no_home(self, tmp_path: Path) -> None:
        """P2: nowhere to read from."""
        around = around_of(tmp_path)
        for environ in ({}, {"HOME": "relative"}, {"HOME": "/x", "KIMI_CODE_HOME": "relative"}):
            assert "absolute path" in refusal("m", replace(around, environ=environ))

    @pytest.mark.parametrize("kind", ["missing", "folder", "loop", "too large"])
    def test_what_is_no_file(self, tmp_path: Path, kind: str) -> None:
        """P3: never followed in circles, never waited for, never read without end."""
        around = around_of(tmp_path)
        place = tmp_path / "home" / ".kimi-code" / "config.toml"
        place.unlink()
        if kind == "folder":
            place.mkdir()
        elif kind == "loop":
            place.symlink_to(place.name)
        elif kind == "too large":
            place.write_bytes(b"#" * 1_048_577)

        with pytest.raises(FileError) as caught:
            select("fake-model", around)
        assert str(tmp_path) not in str(caught.value)


class TestPermissions:
    def test_none_at_all(self) -> None:
        """P9: the first rule denies everything, and no tool is on the list."""
        assert NOTHING.rules() == [{"decision": "deny", "scope": "user", "pattern": "*"}]
        assert NOTHING.tools() == {"enabled": ["none"]}

    def test_some(self) -> None:
        """P13: those that are allowed, then a denial of all."""
        permissions = Permissions(allowed=("Read", "Bash"))

        assert permissions.rules() == [
            {"decision": "allow", "scope": "user", "pattern": "Read"},
            {"decision": "allow", "scope": "user", "pattern": "Bash"},
            {"decision": "deny", "scope": "user", "pattern": "*"},
        ]
        assert permissions.tools() == {"enabled": ["Read", "Bash"]}

    def test_all_but_some(self) -> None:
        """P13: those that are denied, then a permission for all."""
        permissions = Permissions(denied=("FetchURL",))

        assert permissions.rules() == [
            {"decision": "deny", "scope": "user", "pattern": "FetchURL"},
            {"decision": "allow", "scope": "user", "pattern": "*"},
        ]
        assert permissions.tools() == {"disabled": ["FetchURL"]}


class TestHome:
    def test_where_it_is(self) -> None:
        """P3: the variable wins; a path that is not absolute is none."""
        assert str(users_home({"HOME": "/h"})) == "/h/.kimi-code"
        assert str(users_home({"HOME": "/h", "KIMI_CODE_HOME": "/k"})) == "/k"
        assert users_home({"HOME": "h"}) is None
        assert users_home({}) is None

    def test_the_login_state(self) -> None:
        """P3: tokens, their locks and the device, and nothing else of the home."""
        assert [(str(one.source), one.folder, one.below) for one in logins({"HOME": "/h"})] == [
            ("/h/.kimi-code/credentials", True, ("config",)),
            ("/h/.kimi-code/oauth", True, ("config",)),
            ("/h/.kimi-code/device_id", False, ("config",)),
        ]
        assert [one.where for one in logins({"KIMI_CODE_HOME": "/k"})] == [
            "credentials of KIMI_CODE_HOME",
            "oauth of KIMI_CODE_HOME",
            "device_id of KIMI_CODE_HOME",
        ]
        assert logins({}) == ()


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(NAMES, NAMES, st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4))
def test_whatever_the_tables_hold_comes_back(
    alias: str, provider_id: str, model: dict[str, Any], provider: dict[str, Any]
) -> None:
    """P3: another reader of TOML finds in the session's file what was selected."""
    found = session_file(Selection(alias, provider_id, "u", model, provider))

    assert found["models"] == {alias: model}
    assert found["providers"] == {provider_id: provider}
    assert found["default_model"] == alias
