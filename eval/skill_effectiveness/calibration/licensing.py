"""Issuing, showing and checking licence files (calibration.md, section 9; evidence.md, section 9).

A licence file is one sealed statement. Its one subject is the licence itself, as a file of the name
`reviewer-licence.json` would hold it, and its predicate is the same licence: whoever has the file needs
nothing else to check it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration import finalization, repeats
from skill_effectiveness.calibration.grant import Examined, grant
from skill_effectiveness.calibration.inputs import load_inputs
from skill_effectiveness.calibration.licence import (
    BankHashes,
    BothBanks,
    LicenceCode,
    LicenceFault,
    LicencePredicate,
    LicenceRefused,
)
from skill_effectiveness.calibration.models import to_json, to_line
from skill_effectiveness.calibration.prompt import prompt_hash
from skill_effectiveness.calibration.receipts import FINALIZATION_INTENT
from skill_effectiveness.calibration.reviewer import ADAPTERS, binds_configuration
from skill_effectiveness.calibration.standing import Present, judge_standing
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError, SealCode
from skill_effectiveness.evidence.fsops import read_public, write_new_public
from skill_effectiveness.evidence.seal import PredicateType, Statement, Subject, sign, unverified, verify
from skill_effectiveness.evidence.subjects import HeldSubjects
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.calibration.standing import Standing
    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.seal import Verification
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Executable
    from skill_effectiveness.providers import Provider, ProviderBinding

SUBJECT: Final = "reviewer-licence.json"
LICENCE_LIMIT: Final = 1_048_576
_PREDICATES: Final = {PredicateType.REVIEWER_LICENCE: LicencePredicate}
_UNTRUSTED: Final = frozenset({SealCode.SIGNATURE})


# Issuing.


def issue_licence(
    calibration: PrivateRoot,
    probes: PrivateRoot,
    key: Ed25519PrivateKey,
    out: Path,
    *,
    days: int | None = None,
) -> LicencePredicate:
    """Write the licence that two examinations earn to a new file.

    Args:
        calibration: folder of an examination with the judged bank, or root of a finalized calibration.
        probes: folder of an examination with the bias probes.
        key: signs.
        out: absolute; must not exist.
        days: how long the licence lives; by default as long as the policy says.

    Raises:
        LicenceRefused: there is no licence; nothing was written.
        ExaminationRefused, CalibrationError, PairError, PairRefused: a folder holds no whole examination.
        ProtocolError: the frozen inputs cannot be read.
        EvidenceError: a file could not be read or written.
    """
    around = calibration.around
    inputs = load_inputs(around.fs, BankName.BIAS_PROBE)
    licence = grant(
        read_calibration(calibration),
        _read_examination(probes, BankName.BIAS_PROBE),
        inputs.policy,
        policy_hash=inputs.policy_hash,
        prompt_hash=prompt_hash(),
        days=inputs.policy.days.default if days is None else days,
        now=around.now(),
    )
    write_new_public(around.fs, out, seal_licence(licence, key))
    return licence


def seal_licence(licence: LicencePredicate, key: Ed25519PrivateKey) -> bytes:
    """The bytes of a licence file."""
    subject = Subject.of(SUBJECT, to_line(licence))
    return sign(Statement((subject,), PredicateType.REVIEWER_LICENCE, to_json(licence)), key)


def read_calibration(folder: PrivateRoot) -> Examined:
    """The examination with the judged bank that a folder holds, taken by either door.

    Raises:
        As `issue_licence`.
    """
    if not folder.exists(FINALIZATION_INTENT):
        return _read_examination(folder, BankName.JUDGED)
    found = finalization.derive_again(folder)
    # Single samples name the code that asked, not its prompt; equal code has asked with an equal prompt.
    return Examined(found.calibration, found.sheet, None)


def _read_examination(folder: PrivateRoot, bank: BankName) -> Examined:
    found = repeats.derive_again(folder, bank)
    return Examined(found.calibration, found.sheet, found.binding.prompt_hash)


# Reading.


def read_licence(path: Path, fs: FileSystem) -> bytes:
    """The bytes of a licence file, which need not be private.

    Raises:
        FileError: it cannot be read, or is larger than any licence.
    """
    return read_public(fs, path, LICENCE_LIMIT)


def claimed_licence(data: bytes) -> LicencePredicate:
    """What a licence file says, whoever signed it.

    Raises:
        LicenceRefused: `licence_unreadable`.
    """
    try:
        statement, predicate = unverified(data, _PREDICATES)
    except EvidenceError as error:
        raise _unreadable(error.faults[0].sentence) from error
    if not isinstance(predicate, LicencePredicate):
        raise _unreadable("it holds something else")
    if statement.subjects != (Subject.of(SUBJECT, to_line(predicate)),):
        raise _unreadable("its subject is not the licence")
    return predicate


def verified_licence(data: bytes, public_key: Ed25519PublicKey) -> LicencePredicate | None:
    """The licence that a trusted key has signed; None when this key has not.

    Raises:
        LicenceRefused: `licence_unreadable`: it is no envelope, or what was signed is no licence.
    """
    found = verify(data, [public_key], subjects=_Itself(data), predicates=_PREDICATES)
    if found.passed:
        return _of(found)
    failed = found.failures[0]
    if failed.name in _UNTRUSTED:
        return None
    raise _unreadable(failed.sentence)


def _of(found: Verification) -> LicencePredicate:
    if not isinstance(found.predicate, LicencePredicate):
        raise _unreadable("it holds something else")
    return found.predicate


def _unreadable(told: str) -> LicenceRefused:
    return LicenceRefused(LicenceFault(LicenceCode.LICENCE_UNREADABLE, f"This is no licence file: {told}"))


class _Itself:
    """The licence as the one subject of its own seal.

    A seal looks at its subjects only after signature and predicate were accepted; not before is anything of
    the payload read here.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def names(self) -> Iterable[str]:
        """See `SubjectSource`."""
        return self._held().names()

    def chunks(self, name: str) -> Iterator[bytes]:
        """See `SubjectSource`."""
        return self._held().chunks(name)

    def _held(self) -> HeldSubjects:
        _, predicate = unverified(self._data, _PREDICATES)
        return HeldSubjects({SUBJECT: to_line(predicate)} if isinstance(predicate, LicencePredicate) else {})


# Checking.


@dataclass(frozen=True, slots=True)
class NamedReviewer:
    """The reviewer a licence is checked for; None for what was not named.

    Attributes:
        executable: its program.
        model: the model it is asked with.
        binding: what its provider takes from the user's configuration.
    """

    executable: Executable | None = None
    model: str | None = None
    binding: ProviderBinding | None = None


def present(fs: FileSystem, reviewer: NamedReviewer) -> Present:
    """What this installation and the named reviewer are now.

    Raises:
        ProtocolError: the frozen inputs cannot be read.
    """
    judged, probes = load_inputs(fs, BankName.JUDGED), load_inputs(fs, BankName.BIAS_PROBE)
    banks = [
        BankHashes(
            known_answer_fixture_hash=inputs.bank.known_answer_fixture_hash,
            case_fixture_hash=inputs.bank.case_fixture_hash,
        )
        for inputs in (judged, probes)
    ]
    now = Present(
        prompt_hash=prompt_hash(),
        bank_hashes=BothBanks(judged=banks[0], bias_probe=banks[1]),
        policy_hash=judged.policy_hash,
        canary_rule=judged.policy.canary_rule,
        model=reviewer.model,
        provider_binding_hash=None if reviewer.binding is None else digest_object(asdict(reviewer.binding)),
    )
    if reviewer.executable is None:
        return now
    return replace(
        now,
        provider_executable_hash=reviewer.executable.sha256,
        provider_cli_version=reviewer.executable.version,
    )


def reviewer_at(licence: LicencePredicate, path: Path, around: Surroundings) -> NamedReviewer:
    """The reviewer behind the program at a path, asked for the licensed model as things are now.

    Raises:
        KeyError: this version has no adapter of the provider.
        ProviderError: the provider has no program, or its configuration does not have the model any more.
        ExecutableError, EvidenceError: the program or the configuration cannot be bound.
    """
    adapter: Provider = ADAPTERS[licence.reviewer.provider].at(path, around=around)
    if binds_configuration(type(adapter)):
        adapter = adapter.for_model(licence.reviewer.model, around)
    return NamedReviewer(adapter.identify(around), licence.reviewer.model, adapter.binding)


def check_licence(
    licence: LicencePredicate | None,
    reviewer: NamedReviewer,
    at: datetime,
    *,
    fs: FileSystem,
    revoked: bool = False,
) -> Standing:
    """How a licence stands here: `standing.judge_standing` against this installation.

    Raises:
        ProtocolError: the frozen inputs cannot be read.
    """
    return judge_standing(licence, present(fs, reviewer), at, revoked=revoked)
