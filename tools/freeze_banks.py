"""Freeze the case banks: write their digests where the protocol pins them, and print them.

A maintainer's act, allowed only before any outcome is visible; afterwards another digest is another protocol.
The tool fills `known_answer_fixture_hash` in each cases file, the two judged digests in
fixtures/pilot-gates.json and the two probe digests in fixtures/licence-policy.json, and lays each of these
files out for reading (two spaces, members as authored, no escapes).

tests/protocol/test_gates.py and test_policy.py pin the bytes of the last two files and the digests of both
objects; after freezing, a person puts the new ones there.

With --check it writes nothing: it prints every authoring rule that a bank breaks and every stale digest. Exit
0 when there is none, else 1; a bank whose files are not there yet is named and counts as stale. Freezing
refuses a bank that breaks a rule.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.authoring import check_bank, rendered_bytes
from skill_effectiveness.protocol.cases import (
    BANK_FILES,
    AnswersFile,
    Bank,
    BankName,
    BankPins,
    CasesFile,
    pins_of,
)
from skill_effectiveness.protocol.document import parse_document
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.gates import GATES_FILE
from skill_effectiveness.protocol.policy import POLICY_FILE

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class PinPlace:
    """The file and the two members that pin a bank."""

    file: str
    answers: str
    cases: str


PLACES = {
    BankName.JUDGED: PinPlace(
        GATES_FILE, "reviewer_calibration_fixture_hash", "reviewer_calibration_case_fixture_hash"
    ),
    BankName.BIAS_PROBE: PinPlace(POLICY_FILE, "bias_probe_fixture_hash", "bias_probe_case_fixture_hash"),
}


def read_bank(root: Path, name: BankName) -> tuple[Bank, BankPins]:
    """The bank as its two files stand, under the digests they ought to be frozen with."""
    files = BANK_FILES[name]
    cases = parse_document(CasesFile, (root / files.cases).read_bytes(), files.cases)
    answers = parse_document(AnswersFile, (root / files.answers).read_bytes(), files.answers)
    pins = pins_of(cases, answers)
    stated = cases.model_copy(update={"known_answer_fixture_hash": pins.known_answer_fixture_hash})
    return Bank.verified(name, stated, answers, pins), pins


def wanted_members(name: BankName, pins: BankPins) -> dict[str, dict[str, str]]:
    """File to members and the digests they must hold."""
    place = PLACES[name]
    return {
        BANK_FILES[name].cases: {"known_answer_fixture_hash": pins.known_answer_fixture_hash},
        place.file: {place.answers: pins.known_answer_fixture_hash, place.cases: pins.case_fixture_hash},
    }


def read_members(root: Path, file: str) -> dict[str, Any]:
    """A document of this repository as plain JSON, members in their written order."""
    document = read_json((root / file).read_bytes(), Profile.DOCUMENT, want_object=True)
    return cast("dict[str, Any]", document)


def write_members(root: Path, file: str, members: dict[str, str]) -> None:
    """Set members of a document, laid out for reading."""
    document = read_members(root, file) | members
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    beside = (root / file).with_suffix(".new")
    beside.write_bytes(text.encode("utf-8"))
    beside.replace(root / file)


def handle(root: Path, name: BankName, *, check: bool) -> bool:
    """Freeze or check one bank; True when nothing is left to do."""
    files = BANK_FILES[name]
    missing = [file for file in (files.cases, files.answers) if not (root / file).exists()]
    if missing:
        print(f"{name}: not there yet: {', '.join(missing)}")
        return False
    bank, pins = read_bank(root, name)
    print(f"{name}: {len(bank.cases)} cases, {rendered_bytes(bank)} bytes rendered")
    print(f"  known_answer_fixture_hash={pins.known_answer_fixture_hash}")
    print(f"  case_fixture_hash={pins.case_fixture_hash}")
    findings = check_bank(bank)
    for finding in findings:
        print(f"  {finding.rule}: {finding.where or 'the bank'}: {finding.sentence}")
    if findings:
        return False
    stale = False
    for file, members in wanted_members(name, pins).items():
        present = read_members(root, file)
        if all(present.get(member) == digest for member, digest in members.items()):
            continue
        if check:
            print(f"  stale digest in {file}")
            stale = True
        else:
            write_members(root, file, members)
            print(f"  wrote {file}, SHA-256 {digest_bytes((root / file).read_bytes())}")
    return not stale


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Handle both banks; 0 when both are frozen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    done = []
    for name in BankName:
        try:
            done.append(handle(root, name, check=options.check))
        except (ProtocolError, EvidenceError, OSError) as error:
            print(f"{name}: {error}")
            done.append(False)
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
