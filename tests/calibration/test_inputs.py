from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.words import BankName
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", list(BankName))
def test_a_bank_comes_with_the_rules_it_is_judged_by(name: BankName) -> None:
    inputs = load_inputs(RealFs(), name)
    gates = json.loads((frozen_folder() / "fixtures/pilot-gates.json").read_bytes())
    assert inputs.bank.name is name
    assert inputs.gates_hash == digest_object(gates)
    assert len(inputs.policy.probe_rules) == 12


@pytest.mark.parametrize("name", ["pilot-gates", "licence-policy"])
def test_rules_that_cannot_be_read_refuse_every_bank(tmp_path: Path, name: str) -> None:
    """R2: a bank without its rules is not examined."""
    fs = CopiedFs(tmp_path)
    fs.path(f"fixtures/{name}.json").write_bytes(b"{}")
    for bank in BankName:
        with pytest.raises(ProtocolError):
            load_inputs(fs, bank)
