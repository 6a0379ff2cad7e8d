"""What a study says about the isolation of a real agent, held against this machine and its adapter.

Source: studies.md section 1. Everything that is written in `isolation` and `environment` is kept, or refused
here by its name; nothing is left out in silence, and nothing is replaced by less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.resolution import holds
from skill_effectiveness.evidence.root import state_path
from skill_effectiveness.execution import Sandbox as Bubblewrap
from skill_effectiveness.execution import Tracer
from skill_effectiveness.execution.sandbox import SHOWN
from skill_effectiveness.providers.task_environment import refused_name
from skill_effectiveness.studies.task_folder import WORKDIR
from skill_effectiveness.studies.words import Audit, Network, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.providers import Provider
    from skill_effectiveness.studies.loading import LoadedStudy

_NEW_INSIDE: Final = ("/proc", "/dev", "/run", "/tests", "/logs", "/solution")


def isolation_faults(loaded: LoadedStudy, provider: Provider, around: Surroundings) -> Iterator[str]:
    """Sentences for everything that cannot be kept, each with its place.

    Args:
        loaded: the study; its driver is a program.
        provider: the adapter of its driver, bound.
        around: PATH and files of this machine.
    """
    isolation = loaded.study.isolation
    confined = isolation.sandbox is Sandbox.BUBBLEWRAP
    if confined:
        yield from _sandbox_faults(provider, around)
    if isolation.audit is Audit.STRACE and Tracer.found(around) is None:
        yield (
            "/isolation/audit: strace is not here, is too old, or may not watch processes; install one of "
            "2021 or newer, or write none."
        )
    if (confined or isolation.audit is Audit.STRACE) and _home_is_shown(around):
        yield (
            "/isolation: your home lies in folders of the system, which an agent is shown; run this as "
            "a user whose home is elsewhere, or write none for both."
        )
    if isolation.network is Network.NONE:
        yield "/isolation/network: a real agent reaches its model over the network; write provider."
    if isolation.read_only and not confined and isolation.audit is Audit.NONE:
        yield (
            "/isolation/read_only: without a sandbox and an audit nothing holds an agent to these places; "
            "write sandbox: bubblewrap, or take them out."
        )
    yield from _place_faults(loaded, around)
    yield from _task_faults(loaded, provider, confined=confined)


def _sandbox_faults(provider: Provider, around: Surroundings) -> Iterator[str]:
    if not provider.confinable:
        yield (
            f"/isolation/sandbox: {provider.name} runs in the user's own home, which a sandbox would hide; "
            "write none, or choose another provider."
        )
    if Bubblewrap.found(around) is None:
        yield (
            "/isolation/sandbox: bubblewrap is not here, or may not make namespaces; install it and let "
            "users make namespaces, or write none."
        )


def _home_is_shown(around: Surroundings) -> bool:
    named = (around.environ.get("HOME", ""), around.fs.user_home())
    homes = [_resolved(around.fs, home) for home in named if home.startswith("/") and home != "/"]
    return any(holds(_resolved(around.fs, shown), home) for shown in SHOWN for home in homes)


def _place_faults(loaded: LoadedStudy, around: Surroundings) -> Iterator[str]:
    """Places that an agent would be shown and must not be, or that are not there."""
    fs = around.fs
    hidden = [str(loaded.base), str(loaded.base / loaded.study.tasks), str(state_path(around))]
    home = around.environ.get("HOME", "")
    for index, path in enumerate(loaded.study.isolation.read_only):
        where = f"/isolation/read_only/{index}"
        try:
            resolved = fs.resolve(path)
            fs.lstat(None, resolved)
        except (OSError, ValueError):
            yield f"{where}: this is not there; correct it, or take it out."
            continue
        if resolved == "/" or (home.startswith("/") and holds(resolved, _resolved(fs, home))):
            yield f"{where}: this is everything, or a whole home; name what the agent's program needs of it."
        elif any(holds(resolved, place) or holds(place, resolved) for place in _all(fs, hidden)):
            yield f"{where}: this reaches the study, its tasks or its state, which no agent may see."


def _task_faults(loaded: LoadedStudy, provider: Provider, *, confined: bool) -> Iterator[str]:
    for task in loaded.tasks:
        told = f"task {task.task_id}: environment"
        for name in sorted(task.environment_env):
            if refused_name(name, provider):
                yield f"{told}.env: {name} is the agent's own, its user's or its provider's; take it out."
        if task.workdir != WORKDIR and not confined:
            yield f"{told}.workdir: only a sandbox has the working copy there; write sandbox: bubblewrap."
        elif confined and any(holds(place, task.workdir) for place in (*SHOWN, *_NEW_INSIDE)):
            yield f"{told}.workdir: this lies in the system's own folders; choose one such as {WORKDIR}."


def _all(fs: FileSystem, places: list[str]) -> list[str]:
    """Places by their names, and by what the names lead to."""
    return [*places, *(_resolved(fs, place) for place in places)]


def _resolved(fs: FileSystem, path: str) -> str:
    try:
        return fs.resolve(path)
    except (OSError, ValueError):
        return path
