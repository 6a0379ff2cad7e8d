"""Evidence records: what is one, and that the short way of reading takes no more than the strict one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.closeout.records import (
    CommandRecord,
    RecordError,
    ReviewRecord,
    read_findings,
    read_record,
    strict_value,
)
from tests.support.closeout import command_record, finding, review_record


def read(value: object) -> object:
    return read_record(value if isinstance(value, bytes) else json.dumps(value).encode())


def refused(value: object) -> str:
    with pytest.raises(RecordError) as caught:
        read(value)
    return str(caught.value)


class TestRecords:
    def test_valid_records(self) -> None:
        """C36: every member at its limits."""
        assert isinstance(read(command_record()), CommandRecord)
        assert isinstance(read(command_record(exec={"exitCode": None, "signal": "SIGSEGV"})), CommandRecord)
        assert isinstance(read(command_record(head="c" * 64, base="d" * 64, attempt=100_000)), CommandRecord)
        assert isinstance(read(command_record(itemId="x" * 256)), CommandRecord)
        many = [finding(severity) for severity in ("P0", "P1", "P2", "P3")] * 50
        assert isinstance(read(review_record(findings=many)), ReviewRecord)
        assert isinstance(
            read(review_record(producer={"session": "", "model": "", "provider": ""})), ReviewRecord
        )
        artifacts = [{"path": "p" * 512, "sha256": "0" * 64}] * 16
        assert isinstance(read(review_record(artifacts=artifacts)), ReviewRecord)

    @pytest.mark.parametrize(
        ("value", "where"),
        [
            (command_record(outcome="pass"), "/outcome"),
            (review_record(outcome="pass"), "/outcome"),
            (command_record(specVersion="0.2"), "/specVersion"),
            (command_record(recordType="note"), "/recordType"),
            (command_record(recordType="review"), "/producer/session"),
            (command_record(itemId=""), "/itemId"),
            (command_record(itemId="x" * 257), "/itemId"),
            (command_record(base="A" * 40), "/base"),
            (command_record(base="a" * 39), "/base"),
            (command_record(head="a" * 41), "/head"),
            (command_record(head="a" * 40 + "\n"), "/head"),
            (command_record(policyDigest="d" * 64), "/policyDigest"),
            (command_record(policyDigest="sha256:" + "D" * 64), "/policyDigest"),
            (command_record(attempt=0), "/attempt"),
            (command_record(attempt=100_001), "/attempt"),
            (command_record(attempt=True), "/attempt"),
            (command_record(attempt="1"), "/attempt"),
            (command_record(attempt=1.0), "/attempt"),
            (command_record(artifacts=[{"path": "", "sha256": "0" * 64}]), "/artifacts/0/path"),
            (command_record(artifacts=[{"path": "a", "sha256": "0" * 63}]), "/artifacts/0/sha256"),
            (command_record(artifacts=[{"path": "a", "sha256": "0" * 64}] * 17), "/artifacts"),
            (command_record(evaluator={"name": "", "version": "1"}), "/evaluator/name"),
            (command_record(producer={"version": "v" * 65}), "/producer/version"),
            (command_record(producer={"session": "x"}), "/producer/session"),
            (command_record(exec={"exitCode": "0"}), "/exec/exitCode"),
            (command_record(exec={"durationMs": -1}), "/exec/durationMs"),
            (command_record(exec={"signal": None}), "/exec/signal"),
            (command_record(exec={"signal": ""}), "/exec/signal"),
            (command_record(exec={"signal": "SEGV"}), "/exec/signal"),
            (command_record(exec={"dirty": 0}), "/exec/dirty"),
            (command_record(exec={"note": "x"}), "/exec/note"),
            (review_record(findings=[finding()] * 201), "/findings"),
            (review_record(findings=[finding("P4")]), "/findings/0/severity"),
            (review_record(findings=[finding() | {"outcome": "x"}]), "/findings/0/outcome"),
            (review_record(findings=[finding() | {"location": ""}]), "/findings/0/location"),
            (review_record(findings=[finding() | {"location": "x" * 513}]), "/findings/0/location"),
            (review_record(findings=[finding() | {"evidence": "x" * 8001}]), "/findings/0/evidence"),
            (review_record(producer={"session": None}), "/producer/session"),
            (review_record(producer={"model": "x" * 257}), "/producer/model"),
            (review_record(producer={"version": "1"}), "/producer/version"),
        ],
    )
    def test_misfits_name_their_place(self, value: object, where: str) -> None:
        """C36 C38: closed objects; an outcome is no member of any record."""
        assert refused(value).startswith(f"{where} ")

    @pytest.mark.parametrize("name", sorted(command_record()))
    def test_every_member_is_needed(self, name: str) -> None:
        """C36: none has a default."""
        record = command_record()
        del record[name]
        assert refused(record).startswith(f"/{name} ")

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b" ",
            b"{",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"{}",
            b"\xff",
            b"\xef\xbb\xbf{}",
            b"NaN",
            json.dumps(command_record()).encode() + b"{}",
            json.dumps(command_record()).encode().replace(b'"attempt": 1', b'"attempt": 1, "attempt": 1'),
            json.dumps(command_record())
            .encode()
            .replace(b'"dirty": false', b'"dirty": true, "dirty": false'),
            json.dumps(command_record())
            .encode()
            .replace(b'"dirty": false', b'"dirty": true, "dirt\\u0079": false'),
            json.dumps(review_record())
            .encode()
            .replace(b'"findings": []', b'"findings": [], "findings": []'),
            json.dumps(command_record()).encode().replace(b'"durationMs": 5', b'"durationMs": -0'),
            json.dumps(command_record()).encode().replace(b'"exitCode": 0', b'"exitCode":-0'),
            json.dumps(command_record())
            .encode()
            .replace(b'"durationMs": 5', b'"durationMs": 9007199254740992'),
            json.dumps(command_record()).encode().replace(b'"exitCode": 0', b'"exitCode": -9007199254740992'),
            json.dumps(command_record()).encode().replace(b'"exitCode": 0', b'"exitCode": ' + b"1" * 70),
            json.dumps(review_record()).encode().replace(b"reviewer-model", b"\\ud800"),
            json.dumps(review_record()).encode().replace(b"reviewer-model", b"\\ufffe"),
            json.dumps(review_record()).encode().replace(b"reviewer-model", b"\xef\xbf\xbe"),
            json.dumps(review_record()).encode().replace(b"reviewer-model", b"\xef\xb7\x90"),
            json.dumps(review_record()).encode().replace(b"reviewer-model", b"\xed\xa0\x80"),
            b"[" * 100_000,
        ],
    )
    def test_what_is_not_strict_json(self, data: bytes) -> None:
        """C36: doubled members, negative zero, numbers and texts that cannot be kept exactly."""
        assert refused(data)

    @pytest.mark.parametrize(
        "text", ["a -0 b", "[-0]", "é \u2028", '\\" : :', "\ue000", "\\\\", "𝄞", "\ufffd"]
    )
    def test_texts_may_hold_what_numbers_and_members_may_not(self, text: str) -> None:
        record = review_record(producer={"model": text})
        for data in (json.dumps(record), json.dumps(record, ensure_ascii=False)):
            found = read(data.encode())
            assert isinstance(found, ReviewRecord)
            assert found.producer.model == text


MUTATED = st.sampled_from(["delete", "double", "byte", "swap"])


class TestTheShortWay:
    @given(st.sampled_from([command_record(), review_record(findings=[finding()])]), MUTATED, st.data())
    @example(command_record(exec={"signal": "SIGSEGV"}), "double", None)
    def test_it_accepts_nothing_that_the_strict_reader_refuses(
        self, record: dict[str, Any], how: str, data: st.DataObject | None
    ) -> None:
        """C36: over cut, doubled and changed bytes, what is read is what the strict reader reads."""
        text = json.dumps(record).encode()
        if data is not None:
            start, end = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
            part = text[start:end]
            changed = {
                "delete": b"",
                "double": part + part,
                "byte": data.draw(st.binary(max_size=3)),
                "swap": part[::-1],
            }
            text = text[:start] + changed[how] + text[end:]
        try:
            found = read_record(text)
        except RecordError:
            return
        value = strict_value(text)
        assert found.model_dump(mode="json", exclude_unset=True) == value


class TestFindings:
    def test_findings_are_an_array_of_findings(self) -> None:
        assert [each.severity for each in read_findings([dict(finding("P0")), dict(finding("P3"))])] == [
            "P0",
            "P3",
        ]
        assert read_findings([]) == ()

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ([1], "/0 is not an object"),
            ([dict(finding()), {}], "/1/severity is missing"),
            ([finding() | {"x": 1}], "/0/x is not a member of a finding"),
            ([finding() | {"evidence": ""}], "/0/evidence is empty"),
            ([finding() | {"evidence": 3}], "/0/evidence is not text"),
            ([finding() | {"location": "x" * 513}], "/0/location is too long"),
            ([finding("P5")], "/0/severity is not one of P0, P1, P2, P3"),
            ([dict(finding())] * 201, "/ holds more than 200 findings"),
        ],
    )
    def test_the_reason_names_the_place_and_quotes_nothing(self, value: Any, reason: str) -> None:  # noqa: ANN401 - any JSON, or any member
        with pytest.raises(RecordError) as caught:
            read_findings(value)
        assert str(caught.value) == reason
