"""What every provider offers, and what it must declare to exist.

Source: providers.md P2, P12, P13.

The normal way is `Adapter.at(path, around=around)`, then `provider.judge(call, around=around)`. A provider
that does not hold a kind of call refuses it by a typed error before anything is started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Self

from skill_effectiveness.execution import never
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.errors import ProviderCode, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers.binding import ProviderBinding
    from skill_effectiveness.providers.calls import CallOutcome, Cancelled, JudgeCall, ReadCall, WorkCall
    from skill_effectiveness.providers.launch import Launch, Treatment


class Provider(ABC):
    """One agent command line, bound to one exact program.

    A subclass declares all six class attributes and holds exactly the kinds of call it declares; anything
    less is a TypeError where the class is written, not where it is used. One that is written with
    `abstract=True` is no provider yet, and declares nothing.

    Attributes:
        name: the provider's word in every record.
        family: the reviewer family it belongs to; `None` when the caller may name any.
        session_label: what is known of its sessions.
        tool_label: what is known of its tool surface, exactly (providers.md P9).
        json_fence: whether its answer may stand in exactly one fence (providers.md P12).
        call_kinds: the kinds of call it holds.
        confinable: whether a work call of it can be put into a sandbox that shows nothing of the user's.
    """

    name: ClassVar[str]
    family: ClassVar[str | None]
    session_label: ClassVar[str]
    tool_label: ClassVar[str]
    json_fence: ClassVar[bool]
    call_kinds: ClassVar[frozenset[CallKind]]
    confinable: ClassVar[bool] = False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        missing = [name for name in _DECLARED if not hasattr(cls, name)]
        if missing:
            raise TypeError(f"{cls.__name__} does not declare {', '.join(missing)}")
        held = cls.held()
        if not cls.call_kinds or held != cls.call_kinds:
            raise TypeError(f"{cls.__name__} declares {sorted(cls.call_kinds)} and holds {sorted(held)}")

    @classmethod
    def held(cls) -> frozenset[CallKind]:
        """The kinds of call that the class really holds, by the look of it."""
        return frozenset(
            kind for kind, method in _METHODS.items() if getattr(cls, method) is not getattr(Provider, method)
        )

    @classmethod
    @abstractmethod
    def at(cls, path: Path, *, around: Surroundings) -> Self:
        """Bind the program at an absolute path, as it is now.

        Raises:
            ExecutableError: see `identify`.
            ProviderError: `no_program` where nothing is ever started.
        """

    @abstractmethod
    def environment_keys(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Sorted names of the variables that a call's program would get from this environment; no values.

        The mark that `execution` gives to every child of ours is not among them.
        """

    @abstractmethod
    def identify(self, around: Surroundings) -> Executable:
        """The program as it is now.

        Raises:
            ExecutableError: it is missing, unusable, or states no version in one line.
        """

    def for_model(self, model: str, around: Surroundings) -> Provider:
        """This provider with all that it takes from the user's configuration for a model read and frozen.

        Asked once before the calls that belong together: whatever is edited afterwards changes none of them.
        A provider that takes nothing from there is itself.

        Raises:
            ProviderError: `invalid_call`: it does not follow from the model id, or from the configuration,
                which model of which provider is meant.
            FileError: the configuration cannot be read.
        """
        del model, around
        return self

    @property
    def binding(self) -> ProviderBinding | None:
        """What `for_model` froze; `None` where there was nothing to freeze."""
        return None

    def check_login(self, around: Surroundings) -> None:
        """Return only if a call could let the program see the user's login, or there is none to see.

        Asked before anything is spent on a call; a provider that shares no login file has nothing to refuse.

        Raises:
            FileError: the login file is there and cannot be one. Its sentence names it by the variables that
                lead to it, never by a path.
        """
        del around

    def judge(self, call: JudgeCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """Put one question to a fresh session without tools, and wait for the end of everything it started.

        Never asks twice, and never raises for what the program or the model does.

        Raises:
            ProviderError: `call_kind_unsupported`.
        """
        del call, around, cancelled
        raise self._unsupported(CallKind.JUDGE)

    def read(self, call: ReadCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """Let a fresh session read a checkout, and wait for the end of everything it started.

        As `judge`, except that commands may be run in a read-only sandbox.

        Raises:
            ProviderError: `call_kind_unsupported`.
        """
        del call, around, cancelled
        raise self._unsupported(CallKind.READ)

    def work(self, call: WorkCall, *, around: Surroundings, cancelled: Cancelled = never) -> CallOutcome:
        """Let a fresh session change its own working copy, and wait for the end of everything it started.

        Raises:
            ProviderError: `call_kind_unsupported`.
        """
        del call, around, cancelled
        raise self._unsupported(CallKind.WORK)

    def launch(self, call: WorkCall, *, around: Surroundings) -> Launch:
        """What a work call would start, and what would be laid for it; nothing is started.

        Raises:
            ProviderError: `call_kind_unsupported`; `invalid_call`: the program cannot be started so.
            EvidenceError: something cannot be laid down.
        """
        del call, around
        raise self._unsupported(CallKind.WORK)

    def treatment(self, model: str, *, skills: bool, instructions: bool) -> Treatment:
        """What a mount changes of a work call's launch, as declared; see `CommandLine`.

        Raises:
            ProviderError: `call_kind_unsupported`.
        """
        del model, skills, instructions
        raise self._unsupported(CallKind.WORK)

    def require(self, kind: CallKind) -> None:
        """Return only if this provider holds that kind of call.

        Raises:
            ProviderError: `call_kind_unsupported`.
        """
        if kind not in self.call_kinds:
            raise self._unsupported(kind)

    def _unsupported(self, kind: CallKind) -> ProviderError:
        held = ", ".join(sorted(self.call_kinds))
        return ProviderError(
            ProviderCode.CALL_KIND_UNSUPPORTED,
            f"{self.name} holds no {kind} calls (it holds: {held}); choose a provider that does.",
        )


_DECLARED: Final = ("name", "family", "session_label", "tool_label", "json_fence", "call_kinds")
_METHODS: Final = {CallKind.JUDGE: "judge", CallKind.READ: "read", CallKind.WORK: "work"}
