from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from securesystemslib.dsse import Envelope as DsseEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError, SealCode, SealError
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.evidence.keys import load_public_key, public_key_id
from skill_effectiveness.evidence.seal import (
    PredicateType,
    Statement,
    Subject,
    Verification,
    sign,
    unverified,
    verify,
)
from skill_effectiveness.evidence.subjects import FolderSubjects, HeldSubjects
from tests.support.seals import (
    HELD,
    KEY,
    OTHER_KEY,
    PREDICATES,
    Count,
    line,
    seal_of,
    source_of,
    statement_of,
    wrapped,
    written_statement,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

S = SealCode
KEY_ID = public_key_id(KEY.public_key())
OTHER_ID = public_key_id(OTHER_KEY.public_key())
PUBLIC_KEYS = [KEY.public_key()]


def judge(envelope: bytes, held: dict[str, bytes] | None = None, **options: Any) -> Verification:  # noqa: ANN401 - passed on
    arguments = {"subjects": source_of(HELD if held is None else held), "predicates": PREDICATES, **options}
    return verify(envelope, arguments.pop("keys", PUBLIC_KEYS), **arguments)


def outcome(verification: Verification) -> str:
    """One letter for each step: passed, FAILED, not run."""
    return "".join({True: "p", False: "F", None: "-"}[check.passed] for check in verification.checks)


def own(statement: object, *, key: Any = KEY, key_id: str = KEY_ID, payload_type: str | None = None) -> bytes:  # noqa: ANN401 - a key
    """A validly signed envelope in our byte form around any statement."""
    payload = line(statement)[:-1]
    options = {} if payload_type is None else {"payload_type": payload_type}
    return line(wrapped(payload, (key_id, key), **options))


# A good seal.


def test_a_good_seal_passes_nine_numbered_steps() -> None:
    verification = judge(seal_of())
    assert verification.passed
    assert outcome(verification) == "ppppppppp"
    assert [check.number for check in verification.checks] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [check.name for check in verification.checks] == [
        "envelope_shape",
        "payload_type",
        "payload_base64",
        "signature",
        "payload_json",
        "statement_type",
        "predicate",
        "subject_digest",
        "unnamed_file",
    ]
    assert verification.checks[3].sentence == "Step 4 (signature): enough of your keys signed it."
    assert verification.statement == verification.require() == statement_of()
    assert verification.predicate == Count(count=1)
    assert verification.failures == ()


def test_a_seal_is_one_canonical_line_and_the_same_every_time() -> None:
    data = seal_of()
    assert data == seal_of()
    assert data == line(json.loads(data))


def test_subjects_are_sorted_when_signed() -> None:
    statement = Statement((Subject.of("b", b""), Subject.of("a", b"")), PredicateType.PLAN, {"count": 1})
    assert [s.name for s in judge(sign(statement, KEY), {"a": b"", "b": b""}).require().subjects] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("names", [(), ("/etc/passwd",), ("a", "A"), ("../a",)])
def test_bad_names_are_not_signed(names: tuple[str, ...]) -> None:
    """E65: `subject_names`."""
    statement = Statement(tuple(Subject.of(name, b"") for name in names), PredicateType.PLAN, {})
    with pytest.raises(SealError) as caught:
        sign(statement, KEY)
    assert {fault.code for fault in caught.value.faults} == {S.SUBJECT_NAMES}


def test_a_folder_is_sealed_and_verified(tmp_path: Path) -> None:
    for name, data in HELD.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "seal.dsse.json").write_bytes(seal_of())
    source = FolderSubjects(RealFs(), tmp_path, besides=["seal.dsse.json"])
    assert judge(seal_of(), subjects=source).passed
    (tmp_path / "d" / "more").mkdir()
    verification = judge(seal_of(), subjects=source)
    assert outcome(verification) == "ppppppppF"
    assert verification.failures[0].sentence == (
        "Step 9 (unnamed file): d/more/ is present, but the seal does not name it."
    )


# Each step, alone. A statement may be validly signed and still be wrong.

CASES: dict[str, tuple[bytes, SealCode]] = {
    "no bytes": (b"", S.ENVELOPE_SHAPE),
    "random bytes": (bytes(range(256)), S.ENVELOPE_SHAPE),
    "deep nesting": (b"[" * 100_000, S.ENVELOPE_SHAPE),
    "a list": (b"[]\n", S.ENVELOPE_SHAPE),
    "no signatures": (line({**wrapped(b"", (KEY_ID, KEY)), "signatures": []}), S.ENVELOPE_SHAPE),
    "spaces in the envelope": (seal_of().replace(b",", b", ", 1), S.ENVELOPE_SHAPE),
    "the last line feed missing": (seal_of()[:-1], S.ENVELOPE_SHAPE),
    "a payload type of its own, signed": (
        own(written_statement(), payload_type="text/plain"),
        S.PAYLOAD_TYPE,
    ),
    "a payload type with a suffix": (
        own(written_statement(), payload_type="application/vnd.in-toto+json;v=1"),
        S.PAYLOAD_TYPE,
    ),
    "base64 without padding": (seal_of().replace(b'=="', b'"'), S.PAYLOAD_BASE64),
    "base64 of another alphabet": (
        line({**wrapped(b"\xfb\xff", (KEY_ID, KEY)), "payload": "-_8="}),
        S.PAYLOAD_BASE64,
    ),
    "another key": (own(written_statement(), key=OTHER_KEY, key_id=OTHER_ID), S.SIGNATURE),
    "another key under our id": (own(written_statement(), key=OTHER_KEY), S.SIGNATURE),
    "our key under another id": (own(written_statement(), key_id=OTHER_ID), S.SIGNATURE),
    "a payload that is not JSON": (line(wrapped(b"hello", (KEY_ID, KEY))), S.PAYLOAD_JSON),
    "a payload with a member twice": (
        line(wrapped(b'{"_type":"","_type":""}', (KEY_ID, KEY))),
        S.PAYLOAD_JSON,
    ),
    "a payload with a line feed": (line(wrapped(line(written_statement()), (KEY_ID, KEY))), S.PAYLOAD_JSON),
    "no subject member": (own(written_statement(subject=...)), S.PAYLOAD_JSON),
    "no subjects": (own(written_statement(subject=[])), S.PAYLOAD_JSON),
    "a member more": (own(written_statement(more=1)), S.PAYLOAD_JSON),
    "a predicate that is no object": (own(written_statement(predicate=[])), S.PAYLOAD_JSON),
    "a digest in capitals": (
        own(written_statement(subject=[{"name": "a", "digest": {"sha256": "A" * 64}}])),
        S.PAYLOAD_JSON,
    ),
    "a digest more": (
        own(written_statement(subject=[{"name": "a", "digest": {"sha256": "a" * 64, "md5": ""}}])),
        S.PAYLOAD_JSON,
    ),
    "a subject outside": (
        own(written_statement(subject=[{"name": "../a", "digest": {"sha256": "a" * 64}}])),
        S.PAYLOAD_JSON,
    ),
    "another statement type": (
        own(written_statement(_type="https://in-toto.io/Statement/v0.1")),
        S.STATEMENT_TYPE,
    ),
    "an unknown predicate type": (own(written_statement(predicateType="urn:x")), S.STATEMENT_TYPE),
    "a predicate type not expected here": (
        own(written_statement(predicateType="urn:skill-effectiveness:bundle:v1")),
        S.STATEMENT_TYPE,
    ),
    "a predicate with a fraction": (own(written_statement(predicate={"count": "1"})), S.PREDICATE),
    "a predicate with a member more": (own(written_statement(predicate={"count": 1, "x": 1})), S.PREDICATE),
}


@pytest.mark.parametrize("name", CASES)
def test_each_step_fails_alone_and_stops_the_rest(name: str) -> None:
    """E46 E65: payload type, `_type` and predicate type fail at their step though the signature is valid."""
    data, code = CASES[name]
    verification = judge(data)
    number = list(SealCode).index(code) + 1
    assert outcome(verification) == "p" * (number - 1) + "F" + "-" * (9 - number)
    [failure] = verification.failures
    assert (failure.number, failure.name) == (number, code)
    assert failure.sentence.startswith(f"Step {number} ({code.replace('_', ' ')}): ")
    assert (
        verification.checks[-1].sentence == "Step 9 (unnamed file): not run, because an earlier step failed."
    )
    assert not verification.passed
    assert verification.statement is None
    assert verification.predicate is None


SUBJECT_CASES: dict[str, tuple[dict[str, bytes], str, list[str]]] = {
    "a changed byte": (
        {**HELD, "a.txt": b"One\ntwo\n"},
        "pppppppFp",
        ["Step 8 (subject digest): a.txt has other bytes than were sealed."],
    ),
    "a missing file": (
        {"a.txt": HELD["a.txt"]},
        "pppppppFp",
        ["Step 8 (subject digest): d/b.bin does not exist."],
    ),
    "a file more": (
        {**HELD, "evil\x1b[2J": b""},
        "ppppppppF",
        ["Step 9 (unnamed file): evil\\x1b[2J is present, but the seal does not name it."],
    ),
    "a renamed file": (
        {"A.txt": HELD["a.txt"], "d/b.bin": HELD["d/b.bin"]},
        "pppppppFF",
        [
            "Step 8 (subject digest): a.txt does not exist.",
            "Step 9 (unnamed file): A.txt is present, but the seal does not name it.",
        ],
    ),
    "everything changed": (
        {"a.txt": b"", "d/b.bin": b"", "x": b"", "y": b""},
        "pppppppFF",
        [
            "Step 8 (subject digest): a.txt has other bytes than were sealed. (1 more like this.)",
            "Step 9 (unnamed file): x is present, but the seal does not name it. (1 more like this.)",
        ],
    ),
}


@pytest.mark.parametrize("name", SUBJECT_CASES)
def test_subjects_are_held_against_the_files(name: str) -> None:
    """E65: steps 8 and 9 are both run."""
    held, steps, sentences = SUBJECT_CASES[name]
    verification = judge(seal_of(), held)
    assert outcome(verification) == steps
    assert [check.sentence for check in verification.failures] == sentences
    with pytest.raises(SealError) as caught:
        verification.require()
    assert [fault.code for fault in caught.value.faults] == [check.name for check in verification.failures]


def test_every_code_is_seen() -> None:
    """E65: the tests of this file fail at every step, and `subject_names` is raised by signing."""
    seen = {code for _, code in CASES.values()} | {S.SUBJECT_DIGEST, S.UNNAMED_FILE, S.SUBJECT_NAMES}
    assert seen == set(SealCode)


class Unlistable(HeldSubjects):
    def names(self) -> Iterator[str]:
        raise FileError(Fault(FileCode.NOT_READABLE, "d", "d cannot be read."))


def test_a_folder_that_cannot_be_listed_does_not_pass() -> None:
    verification = judge(seal_of(), subjects=Unlistable(HELD))
    assert outcome(verification) == "ppppppppF"
    assert verification.failures[0].sentence == "Step 9 (unnamed file): d cannot be read."


def test_the_first_of_several_misfits_is_told_with_its_place() -> None:
    verification = judge(own(written_statement(predicate={"x": "hunter2"})))
    assert verification.failures[0].sentence == (
        "Step 7 (predicate): at /count: This field is needed; add it. (1 more like this.)"
    )


@given(st.binary(max_size=80))
def test_any_bytes_are_judged(data: bytes) -> None:
    """F45: verification of garbage is a failed check, never an error."""
    assert outcome(judge(data)) == "F--------"


# Every byte counts.


@pytest.mark.parametrize("flip", [0x01, 0x02, 0x20, 0x80])
def test_a_byte_changed_anywhere_in_the_seal_fails_at_one_step(flip: int) -> None:
    """E46: layout, key id, base64 and signature of our own seals leave no byte free."""
    data = seal_of()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= flip
        failures = judge(bytes(changed)).failures
        assert len(failures) == 1, position
        assert failures[0].sentence.startswith(f"Step {failures[0].number} (")


def test_a_byte_dropped_or_doubled_anywhere_in_the_seal_fails() -> None:
    data = seal_of()
    for position in range(len(data)):
        assert len(judge(data[:position] + data[position + 1 :]).failures) == 1
        assert len(judge(data[: position + 1] + data[position:]).failures) == 1


@pytest.mark.parametrize("name", HELD)
def test_a_byte_changed_anywhere_in_a_subject_fails_at_step_8(name: str) -> None:
    for position in range(len(HELD[name])):
        for flip in range(1, 256):
            changed = bytearray(HELD[name])
            changed[position] ^= flip
            assert outcome(judge(seal_of(), {**HELD, name: bytes(changed)})) == "pppppppFp"


# Keys and thresholds.


def two_signatures(*keys: tuple[str, Any]) -> bytes:
    return line(wrapped(line(written_statement())[:-1], *keys))


BOTH = [KEY.public_key(), OTHER_KEY.public_key()]


@pytest.mark.parametrize("by_us", [True, False])
def test_the_same_key_counts_once(*, by_us: bool) -> None:
    """E47: neither a repeated signature nor a repeated key meets threshold 2.

    A second signature by a key that was not handed in is for others to judge in a foreign envelope. In a seal
    of ours nobody could tell it from bytes that somebody added, so the seal verifies with both keys only; nor
    does one that repeats the first.
    """
    twice = two_signatures((KEY_ID, KEY), (KEY_ID, KEY))
    assert judge(twice, keys=PUBLIC_KEYS * 2, own=by_us).passed is not by_us
    assert outcome(judge(twice, keys=PUBLIC_KEYS * 2, threshold=2, own=by_us)) == "pppF-----"
    assert outcome(judge(twice, keys=BOTH, threshold=2, own=by_us)) == "pppF-----"
    both = two_signatures((KEY_ID, KEY), (OTHER_ID, OTHER_KEY))
    assert judge(both, keys=BOTH, threshold=2, own=by_us).passed
    assert outcome(judge(both, keys=PUBLIC_KEYS, threshold=2, own=by_us)) == "pppF-----"
    assert judge(both, keys=BOTH, own=by_us).passed
    assert judge(both, keys=PUBLIC_KEYS, own=by_us).passed is not by_us
    assert outcome(judge(both, keys=BOTH, threshold=3, own=by_us)) == "pppF-----"


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "added",
    [
        {"keyid": "", "sig": ""},
        {"keyid": "x" * 64, "sig": "AAAA"},
        {"keyid": OTHER_ID, "sig": base64.b64encode(bytes(64)).decode()},
        {"keyid": KEY_ID, "sig": base64.b64encode(bytes(64)).decode()},
        {"keyid": "", "sig": None},
        {"keyid": OTHER_ID, "sig": None},
    ],
)
def test_nothing_can_be_added_to_the_signatures_of_our_own_seal(
    added: dict[str, str | None], place: int
) -> None:
    """E46: nor a good signature under another name; foreign envelopes may hold what we cannot check."""
    envelope = wrapped(line(written_statement())[:-1], (KEY_ID, KEY))
    good = envelope["signatures"][0]
    envelope["signatures"].insert(place, {**added, "sig": added["sig"] or good["sig"]})
    assert outcome(judge(line(envelope))) == "pppF-----"
    assert judge(line(envelope), own=False).passed


def test_a_seal_by_nobody_we_trust_is_told_as_that() -> None:
    verification = judge(two_signatures((OTHER_ID, OTHER_KEY), ("x", OTHER_KEY)))
    [failure] = verification.failures
    assert failure.sentence.endswith("0 of the keys you gave signed this, but 1 must; check the keys.")


def test_the_same_key_under_two_ids_counts_once() -> None:
    """E47: `keyid` is a hint, not a count."""
    twice = two_signatures(("one", KEY), ("two", KEY))
    assert judge(twice, keys=BOTH, own=False).passed
    assert outcome(judge(twice, keys=BOTH, threshold=2, own=False)) == "pppF-----"


@pytest.mark.parametrize("threshold", [0, -1])
def test_a_threshold_is_at_least_one(threshold: int) -> None:
    """E47: nobody's signature is never enough."""
    assert outcome(judge(seal_of(), threshold=threshold)) == "pppF-----"
    assert outcome(judge(seal_of(), keys=[], threshold=threshold)) == "pppF-----"
    assert outcome(judge(seal_of(), keys=[])) == "pppF-----"


# Line endings.


@pytest.mark.parametrize("text", [b"\n", b"a\nb\n", b"a\n\nb", b"\ra\n", b"x" * 3_000_000 + b"\n"])
def test_line_endings_differ(text: bytes) -> None:
    """E50: a sealed file that went through unix2dos is told from one that was edited."""
    seal = seal_of({"f": text})
    verification = judge(seal, {"f": text.replace(b"\n", b"\r\n")})
    assert outcome(verification) == "pppppppFp"
    assert verification.failures[0].sentence == (
        "Step 8 (subject digest): line endings differ: f was converted to CRLF; restore the original file."
    )


def test_other_differences_are_not_line_endings() -> None:
    """E50: a byte more than the line endings is a change."""
    seal = seal_of({"f": b"a\nb\n"})
    for changed in (b"a\r\nB\r\n", b"a\rb\r", b"a\r\r\nb\r\r\n", b"a\nb"):
        assert "other bytes" in judge(seal, {"f": changed}).failures[0].sentence


class ByteByByte(HeldSubjects):
    def chunks(self, name: str) -> Iterator[bytes]:
        for byte in b"".join(super().chunks(name)):
            yield bytes([byte])


def test_a_line_end_across_chunks_is_seen() -> None:
    """E50: CR and LF may come in different chunks."""
    verification = judge(seal_of({"f": b"a\nb\r"}), subjects=ByteByByte({"f": b"a\r\nb\r"}))
    assert "line endings differ" in verification.failures[0].sentence


def test_line_endings_of_the_seal_itself() -> None:
    """E50: unix2dos on the seal."""
    verification = judge(seal_of().replace(b"\n", b"\r\n"))
    assert outcome(verification) == "F--------"
    assert "line endings differ" in verification.failures[0].sentence


def test_a_seal_with_crlf_and_other_faults_is_not_about_line_endings() -> None:
    verification = judge(seal_of().replace(b"\n", b"\r\n").replace(b",", b", ", 1))
    assert "not the canonical form" in verification.failures[0].sentence


# Other DSSE clients.


def foreign_key(key_id: str) -> SSlibKey:
    return SSlibKey.from_crypto(KEY.public_key(), keyid=key_id)


def test_another_client_verifies_our_seal() -> None:
    """E45: securesystemslib accepts an envelope made here, and refuses it changed."""
    envelope = DsseEnvelope.from_dict(json.loads(seal_of()))
    assert envelope.verify([foreign_key(KEY_ID)], 1).keys() == {KEY_ID}
    assert json.loads(envelope.payload) == written_statement()
    envelope.payload = envelope.payload.replace(b"a.txt", b"b.txt")
    with pytest.raises(VerificationError):
        envelope.verify([foreign_key(KEY_ID)], 1)


def foreign_envelope(payload: bytes) -> dict[str, Any]:
    envelope = DsseEnvelope(payload, "application/vnd.in-toto+json", {})
    envelope.sign(CryptoSigner(KEY))
    written: dict[str, Any] = envelope.to_dict()
    return written


def test_an_envelope_of_another_client_verifies_here() -> None:
    """E45: the reverse; its layout and its key ids are its own."""
    data = json.dumps(foreign_envelope(json.dumps(written_statement(), indent=1).encode()), indent=2).encode()
    assert json.loads(data)["signatures"][0]["keyid"] != KEY_ID
    verification = judge(data, own=False)
    assert verification.passed
    assert verification.statement == statement_of()
    assert outcome(judge(data)) == "F--------"


def test_a_changed_envelope_of_another_client_fails() -> None:
    """E45: content is covered whoever wrote it."""
    written = foreign_envelope(json.dumps(written_statement(predicate={"count": 2})).encode())
    written["payload"] = foreign_envelope(json.dumps(written_statement()).encode())["payload"]
    assert outcome(judge(json.dumps(written).encode(), own=False)) == "pppF-----"


# Seals of former days: once valid, valid for ever.


class CalibrationPredicate(BaseModel):
    """The predicate of a calibration seal, version 1 (calibration.md section 7)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_version: int
    calibration_status: str
    provider: str
    model: str
    reviewer_family: str
    provider_executable_hash: str
    runner_hash: str
    synthetic: bool


def test_the_calibration_seal_of_version_1() -> None:
    """E45: a stored seal, its subjects and its public key."""
    folder = Path(__file__).parents[1] / "data" / "seals" / "calibration-v1"
    key = load_public_key((folder / "signer.pub").read_bytes())
    source = FolderSubjects(RealFs(), folder / "sealed", besides=["seal.dsse.json"])
    verification = verify(
        (folder / "sealed" / "seal.dsse.json").read_bytes(),
        [key],
        subjects=source,
        predicates={PredicateType.CALIBRATION: CalibrationPredicate},
    )
    assert verification.passed, verification.failures
    assert public_key_id(key) == KEY_ID
    assert isinstance(verification.predicate, CalibrationPredicate)
    assert verification.predicate.synthetic is True


class TestUnverified:
    """What a seal claims, for showing alone."""

    def test_it_is_what_was_sealed_whoever_signed_it(self) -> None:
        statement, predicate = unverified(sign(statement_of(), OTHER_KEY), PREDICATES)
        assert statement == statement_of()
        assert predicate == Count(count=1)

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"", S.ENVELOPE_SHAPE),
            (
                wrapped(line(written_statement())[:-1], (KEY_ID, KEY), payload_type="text/plain"),
                S.PAYLOAD_TYPE,
            ),
            (wrapped(b"{", (KEY_ID, KEY)), S.PAYLOAD_JSON),
            (wrapped(line(written_statement(_type="x"))[:-1], (KEY_ID, KEY)), S.STATEMENT_TYPE),
            (wrapped(line(written_statement(predicate={}))[:-1], (KEY_ID, KEY)), S.PREDICATE),
        ],
    )
    def test_the_first_step_that_fails_is_told(self, data: bytes | dict[str, Any], code: SealCode) -> None:
        """E46: each but the signature, and without a number."""
        with pytest.raises(SealError) as caught:
            unverified(data if isinstance(data, bytes) else line(data), PREDICATES)
        assert caught.value.code is code
        assert "Step" not in caught.value.faults[0].sentence
