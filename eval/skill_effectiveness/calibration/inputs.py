"""The frozen inputs an examination is held against: one case bank, the gates and the licence policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.protocol.cases import Bank, BankName, load_bank
from skill_effectiveness.protocol.gates import PilotGates, gates_hash, load_gates
from skill_effectiveness.protocol.policy import LicencePolicy, load_policy, policy_hash

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem


@dataclass(frozen=True, slots=True)
class FrozenInputs:
    """One bank, verified against the frozen digests, and the rules its answers are judged by."""

    bank: Bank
    gates: PilotGates
    policy: LicencePolicy

    @property
    def gates_hash(self) -> str:
        """The object digest of the gates."""
        return gates_hash(self.gates)

    @property
    def policy_hash(self) -> str:
        """The object digest of the licence policy."""
        return policy_hash(self.policy)


def load_inputs(fs: FileSystem, name: BankName) -> FrozenInputs:
    """Read the frozen inputs of this installation.

    Raises:
        ProtocolError: `fixture_invalid` when a file is missing or malformed, or a bank is not the frozen one.
    """
    return FrozenInputs(load_bank(fs, name), load_gates(fs), load_policy(fs))
