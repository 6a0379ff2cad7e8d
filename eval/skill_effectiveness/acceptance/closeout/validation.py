"""`validate`: whether the policy loads, and what it requires.

Source: closeout.md, section 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.decision import shown
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, PolicyError
from skill_effectiveness.acceptance.closeout.site import differing, policy_at, worktree_policy
from skill_effectiveness.acceptance.closeout.words import NO_POLICY, SPEC_VERSION, UNRESOLVED, PolicyFrom

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.decision import Notice
    from skill_effectiveness.acceptance.closeout.policy import EffectivePolicy
    from skill_effectiveness.acceptance.closeout.site import Site
    from skill_effectiveness.evidence.strict import JsonValue


@dataclass(frozen=True, slots=True)
class Validation:
    """What came of it: a policy, or why there is none that can be used.

    Attributes:
        policy: the effective policy, also when it is absent.
        error: why it does not load.
        warnings: about the base commit's policy, when a base was named.
    """

    policy: EffectivePolicy | None = None
    error: CloseoutError | None = None
    warnings: tuple[Notice, ...] = ()

    @property
    def message(self) -> str:
        """What is told besides: why it does not load, or that there is none; else empty."""
        if self.error is not None:
            return shown(self.error.message)
        return NO_POLICY if self.policy is not None and self.policy.absent else ""

    def to_json(self) -> dict[str, JsonValue]:
        """The document for machines; `message` is there only when there is something to tell."""
        policy = self.policy
        document: dict[str, JsonValue] = {
            "specVersion": SPEC_VERSION,
            "ok": self.error is None,
            "absent": policy is not None and policy.absent,
            "path": policy.path if policy else None,
            "digest": policy.digest if policy else None,
            "items": [item.id for item in policy.items] if policy else [],
            "warnings": [{"code": each.code.value, "message": each.message} for each in self.warnings],
        }
        return document | ({"message": self.message} if self.message else {})


def validate_policy(site: Site, base: str | None) -> Validation:
    """Load the policy of a site; with a base, hold it against the policy of that commit."""
    try:
        used = None if site.policy_from is PolicyFrom.BASE else worktree_policy(site)
    except PolicyError as error:
        return Validation(error=error)
    if base is None:
        return Validation(used)
    commit = site.git.commit(base)
    if commit is None:
        advice = "Name a commit that this repository has."
        return Validation(error=CloseoutError(CloseoutCode.COMMITS_UNRESOLVED, UNRESOLVED, advice))
    at_base = policy_at(site.git, commit)
    if used is not None:
        return Validation(used, warnings=differing(used, at_base))
    return Validation(error=at_base) if isinstance(at_base, PolicyError) else Validation(at_base)
