"""The environment a provider's program gets: an allowlist, never our own with something taken out.

Source: providers.md P3.

A name that is not listed here or by the adapter does not pass, so a credential of another provider cannot,
whatever it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

INHERITED: Final = frozenset(
    {
        "PATH",
        "LANG",
        "LC_ALL",
        "TERM",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        *_PROXIES,
        *(name.lower() for name in _PROXIES),
    }
)
"""Names whose value is passed on, as it is but for PATH. HOME and TMPDIR are always those of the session."""

_SEARCHED: Final = "PATH"


def child_environment(
    environ: Mapping[str, str], *, session: Mapping[str, str], own_keys: Collection[str]
) -> dict[str, str]:
    """The whole environment of a provider's program.

    Args:
        environ: ours.
        session: variables that point at the session's private folders; they win over everything.
        own_keys: names of this provider's own credentials and settings, passed on where they are set.
    """
    passed = {name: value for name, value in environ.items() if name in INHERITED or name in own_keys}
    if _SEARCHED in passed:
        # A relative or empty entry means the working folder, which may be a checkout of anybody's.
        absolute = [folder for folder in passed.pop(_SEARCHED).split(":") if folder.startswith("/")]
        passed |= {_SEARCHED: ":".join(absolute)} if absolute else {}
    return passed | dict(session)


def environment_names(
    environ: Mapping[str, str], *, session: Collection[str], own_keys: Collection[str]
) -> tuple[str, ...]:
    """The sorted names that `child_environment` would pass, for the record."""
    return tuple(sorted(child_environment(environ, session=dict.fromkeys(session, ""), own_keys=own_keys)))
