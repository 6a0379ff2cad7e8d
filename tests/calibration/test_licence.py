from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skill_effectiveness.calibration.licence import LicenceCode, LicencePredicate, read_time, write_time
from skill_effectiveness.calibration.models import to_json
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import DocumentError
from skill_effectiveness.protocol.words import Verdict
from tests.support.examinations import INPUTS, OTHER, PROBES, Anything
from tests.support.licences import NOW, examined, granted, refused

POLICY = INPUTS.policy


class TestLicence:
    def test_it_names_the_reviewer_and_what_it_was_issued_from(self) -> None:
        judged, probes = examined(), examined(PROBES)
        licence = granted(judged, probes)
        assert to_json(licence.reviewer) == {
            "provider": "codex",
            "provider_cli_version": "tool 1.2.3",
            "provider_executable_hash": "sha256:" + 64 * "e",
            "model": "model-1",
            "reviewer_family": "family-1",
            "provider_binding_hash": None,
        }
        hashes = licence.calibration_hashes
        assert hashes.judged.result == digest_object(to_json(judged.calibration.result))
        assert hashes.bias_probe.evidence == probes.calibration.result.calibration_evidence_hash
        assert licence.bank_hashes.bias_probe.case_fixture_hash == POLICY.bias_probe_case_fixture_hash
        assert licence.policy_hash == INPUTS.policy_hash
        assert licence.canary_rule == POLICY.canary_rule

    def test_no_answer_can_be_learned_from_it(self) -> None:
        """It says whether probes were answered rightly, and never what is right."""
        said = str(to_json(granted().bias_sheet))
        assert not any(verdict.value in said for verdict in (Verdict.A_WIN, Verdict.B_WIN))

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            ({"synthetic": True}, ""),
            ({"expires_at": "2026-03-04T05:06:07Z"}, ""),
            ({"licence_id": 32 * "0"}, ""),
            ({"policy_hash": OTHER}, ""),
            ({"issued_at": "2026-02-30T05:06:07Z"}, "/issued_at"),
            ({"issued_at": "2026-03-04 05:06:07Z"}, "/issued_at"),
            ({"schema_version": True}, "/schema_version"),
            ({"more": 1}, "/more"),
        ],
    )
    def test_what_no_licence_says(self, change: dict[str, Anything], where: str) -> None:
        """R43: a real reviewer with a synthetic licence among them."""
        said = to_json(granted())
        assert validate(LicencePredicate, said) == granted()
        with pytest.raises(DocumentError) as caught:
            validate(LicencePredicate, said | change)
        assert [fault.where for fault in caught.value.faults] == [where]


class TestTimes:
    @pytest.mark.parametrize(
        "text", ["", "now", "2026-03-04", "2026-03-04T05:06:07+00:00", "2026-13-04T05:06:07Z"]
    )
    def test_times_have_one_form(self, text: str) -> None:
        assert refused(lambda: read_time(text)) == [(LicenceCode.TIME_FORM, None)]
        assert read_time(write_time(NOW)) == datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
