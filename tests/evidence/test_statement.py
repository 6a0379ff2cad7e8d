from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.faults import CanonicalError, SealCode, SealError, StrictError
from skill_effectiveness.evidence.statement import (
    PredicateType,
    Statement,
    Subject,
    read_statement,
    write_statement,
)
from tests.support.seals import line, written_statement

if TYPE_CHECKING:
    from collections.abc import Mapping

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def about(*names: str, predicate: Mapping[str, Any] | None = None, sha256: str = ABC) -> Statement:
    subjects = tuple(Subject(name, sha256) for name in names)
    return Statement(subjects, PredicateType.BUNDLE, {} if predicate is None else predicate)


def faults_of(statement: Statement) -> list[tuple[str, str]]:
    with pytest.raises(SealError) as caught:
        write_statement(statement)
    return [(fault.code, fault.where) for fault in caught.value.faults]


def test_predicate_types_are_closed() -> None:
    assert sorted(PredicateType) == [
        "urn:skill-effectiveness:bundle:v1",
        "urn:skill-effectiveness:calibration:v1",
        "urn:skill-effectiveness:journal-head:v1",
        "urn:skill-effectiveness:plan:v1",
        "urn:skill-effectiveness:reviewer-licence:v1",
    ]


def test_subjects_are_made_from_bytes_or_digests() -> None:
    assert Subject.of("a", b"abc") == Subject("a", ABC) == Subject.of_digest("a", f"sha256:{ABC}")


def test_the_bytes_of_a_statement() -> None:
    """Canonical, subjects sorted by name; the in-toto Statement v1 members and no others."""
    assert write_statement(about("b", "a/c", predicate={"n": 1})) == (
        b'{"_type":"https://in-toto.io/Statement/v1","predicate":{"n":1},'
        b'"predicateType":"urn:skill-effectiveness:bundle:v1","subject":['
        b'{"digest":{"sha256":"%s"},"name":"a/c"},{"digest":{"sha256":"%s"},"name":"b"}]}'
    ) % (ABC.encode(), ABC.encode())


BAD_NAMES = [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "./a",
    "a\\b",
    "a\nb",
    "a\x00",
    "\x7f",
    "\udcff",
]


@pytest.mark.parametrize("name", [*BAD_NAMES, "x" * 256])
def test_names_are_relative_with_forward_slashes(name: str) -> None:
    """E65: a name that could lead out of the folder, or that is no name, is refused."""
    [(code, _)] = faults_of(about("ok", name))
    assert code is SealCode.SUBJECT_NAMES


@pytest.mark.parametrize("names", [("a", "A"), ("a", "a"), ("d/ß", "D/SS")])
def test_names_are_unique_after_case_folding(names: tuple[str, str]) -> None:
    [(code, where)] = faults_of(about(*names))
    assert code is SealCode.SUBJECT_NAMES
    assert where in names


def test_a_statement_has_a_subject() -> None:
    assert faults_of(about()) == [(SealCode.SUBJECT_NAMES, "")]


@pytest.mark.parametrize("sha256", ["", ABC[:-1], ABC + "0", ABC.upper(), f"sha256:{ABC}", ABC + "\n"])
def test_a_digest_is_64_lower_case_hex_digits(sha256: str) -> None:
    """E65: what verification would refuse is not signed."""
    assert faults_of(about("a", sha256=sha256)) == [(SealCode.SUBJECT_DIGEST, "a")]


def test_all_faults_are_told_at_once() -> None:
    """E7: names and digests together."""
    assert faults_of(about("/a", "b", sha256="x")) == [
        (SealCode.SUBJECT_NAMES, "/a"),
        (SealCode.SUBJECT_DIGEST, "/a"),
        (SealCode.SUBJECT_DIGEST, "b"),
    ]


def test_what_could_not_be_read_back_is_not_written() -> None:
    with pytest.raises(CanonicalError):
        write_statement(about("a", predicate={"n": (1,)}))
    with pytest.raises(StrictError):
        write_statement(about("a", predicate={"n": "\ufffe"}))
    with pytest.raises(StrictError):
        write_statement(about("a\ufffe"))


def test_a_statement_is_read_as_it_was_written() -> None:
    statement = about("a", "d/é", predicate={"n": [1, 0.5, None]})
    read = read_statement(write_statement(statement), own=True)
    assert (read.type, read.predicateType) == ("https://in-toto.io/Statement/v1", PredicateType.BUNDLE)
    assert read.statement(PredicateType.BUNDLE) == statement


@pytest.mark.parametrize("name", BAD_NAMES[:-1])
def test_bad_names_are_refused_on_reading_too(name: str) -> None:
    subject = [{"name": name, "digest": {"sha256": ABC}}]
    with pytest.raises(SealError) as caught:
        read_statement(line(written_statement(subject=subject)), own=False)
    assert [fault.code for fault in caught.value.faults] == [SealCode.SUBJECT_NAMES]


def test_unsorted_subjects_are_refused() -> None:
    subject = [{"name": name, "digest": {"sha256": ABC}} for name in ("b", "a")]
    with pytest.raises(SealError, match="not sorted"):
        read_statement(line(written_statement(subject=subject)), own=False)


def test_own_statements_have_one_byte_form() -> None:
    payload = line(written_statement())
    read_statement(payload[:-1], own=True)
    read_statement(payload, own=False)
    with pytest.raises(StrictError):
        read_statement(payload, own=True)
