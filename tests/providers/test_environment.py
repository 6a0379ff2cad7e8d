"""The environment of a provider's program: what passes and, above all, what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.providers.environment import child_environment, environment_names

OURS = {
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "TERM": "xterm",
    "HTTPS_PROXY": "http://proxy:1",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/etc/ca.pem",
    "SSL_CERT_DIR": "/etc/ca",
    "HOME": "/home/someone",
    "TMPDIR": "/elsewhere",
    "OWN_KEY": "own-canary",
    "OPENAI_API_KEY": "foreign-canary",
    "ANTHROPIC_API_KEY": "foreign-canary",
    "AWS_SECRET_ACCESS_KEY": "foreign-canary",
    "GITHUB_TOKEN": "foreign-canary",
    "SSH_AUTH_SOCK": "/run/agent",
    "USER": "someone",
    "LOGNAME": "someone",
    "LD_PRELOAD": "/evil.so",
    "PYTHONPATH": "/evil",
    "RUST_LOG": "trace",
    "XDG_CONFIG_HOME": "/home/someone/.config",
    "SSL_CERT_PASSWORD": "foreign-canary",
}


class TestAllowlist:
    def test_exactly_the_listed_names_pass(self) -> None:
        """P3: everything else stays out, foreign credentials and login names included."""
        passed = child_environment(
            OURS, session={"HOME": "/s/home", "TMPDIR": "/s/tmp"}, own_keys=("OWN_KEY",)
        )

        assert passed == {
            "PATH": "/usr/bin",
            "LANG": "C.UTF-8",
            "LC_ALL": "C",
            "TERM": "xterm",
            "HTTPS_PROXY": "http://proxy:1",
            "no_proxy": "localhost",
            "SSL_CERT_FILE": "/etc/ca.pem",
            "SSL_CERT_DIR": "/etc/ca",
            "OWN_KEY": "own-canary",
            "HOME": "/s/home",
            "TMPDIR": "/s/tmp",
        }

    def test_a_name_that_is_not_set_is_not_made_up(self) -> None:
        assert child_environment({}, session={"HOME": "/s"}, own_keys=("OWN_KEY",)) == {"HOME": "/s"}

    def test_the_sessions_folders_win(self) -> None:
        """P3 F32: nothing from outside overrides a session variable, not even an own key of that name."""
        passed = child_environment({"HOME": "/real"}, session={"HOME": "/s"}, own_keys=("HOME",))

        assert passed == {"HOME": "/s"}

    @given(st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=4), max_size=12))
    def test_the_recorded_names_are_the_passed_names(self, environ: dict[str, str]) -> None:
        """P3: the record of names is never another list than the environment itself."""
        passed = child_environment(environ, session={"HOME": "/s"}, own_keys=("K",))

        assert environment_names(environ, session=("HOME",), own_keys=("K",)) == tuple(sorted(passed))
        assert not {"HOME": "/s"}.items() - passed.items()


@pytest.mark.parametrize(
    ("path", "passed"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        ("/usr/bin::/bin:", "/usr/bin:/bin"),
        (".:bin:/bin:./x", "/bin"),
        ("", None),
        (".", None),
    ],
)
def test_no_program_is_looked_for_in_the_working_folder(path: str, passed: str | None) -> None:
    """P3 F32: that may be a checkout with programs in it, and an empty entry is enough to find them."""
    given = child_environment({"PATH": path}, session={}, own_keys=())

    assert given.get("PATH") == passed
