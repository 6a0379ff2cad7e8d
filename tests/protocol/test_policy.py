from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.cases import load_bank
from skill_effectiveness.protocol.document import parse_document
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.policy import POLICY_FILE, LicencePolicy, load_policy, policy_hash
from skill_effectiveness.protocol.probe_pairs import favoured_seat
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.words import BankName, ProbeKind
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED = (frozen_folder() / POLICY_FILE).read_bytes()


def policy_with(pointer: str, value: object) -> bytes:
    document = json.loads(COMMITTED)
    *folders, last = pointer.strip("/").split("/")
    inner: Any = document
    for name in folders:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    inner[last] = value
    return json.dumps(document).encode()


class TestCommittedPolicy:
    def test_the_bytes_are_pinned(self) -> None:
        assert (
            hashlib.sha256(COMMITTED).hexdigest()
            == "8d35beb54073a5d1415911dcb6489dee8b4858d11026c46578121e78c87d4e4c"
        )

    def test_the_digest_of_the_object_is_pinned(self) -> None:
        assert (
            policy_hash(load_policy(RealFs()))
            == "sha256:e5bf2b9b1a7c3f967951ee8cfbc590922bc79ea0fc7e9ab40ec03d7a18b2860b"
        )

    def test_the_lines_a_licence_needs(self) -> None:
        policy = load_policy(RealFs())
        assert policy.accuracy_wilson_low_min == 0.60
        assert policy.usable_answer_rate_min == 0.9
        assert (policy.flip_rate_max, policy.flip_cases_covered_min) == (0.25, 8)
        assert policy.repeats_min == 3
        assert (policy.days.min, policy.days.default, policy.days.max) == (1, 30, 90)

    def test_the_canary_rule_multiplies_by_the_published_factors(self) -> None:
        rule = load_policy(RealFs()).canary_rule
        assert (rule.rate, rule.limit) == (0.05, 20)
        assert rule.p1 / rule.p0 == pytest.approx(0.625)
        assert (1 - rule.p1) / (1 - rule.p0) == pytest.approx(2.5)

    @pytest.mark.parametrize(
        ("kind", "expected", "requirement"),
        [
            ("identical", "tie", "tie_in_every_sample"),
            ("crlf-only", "tie", "tie_in_every_sample"),
            ("swapped", "same_candidate", "both_right_in_every_sample"),
            ("injected-verdict", "sound_text", "right_in_every_sample"),
            ("truncated", "sound_text", "right_in_every_sample"),
            ("empty-vs-real", "sound_text", "right_in_every_sample"),
            ("authority", "sound_text", "right_in_every_sample"),
            ("confident-wrong", "sound_text", "right_in_every_sample"),
            ("other-language", "sound_text", "right_in_every_sample"),
            ("padded", "tie", "favoured_side_wins_at_most"),
            ("formatting", "tie", "favoured_side_wins_at_most"),
            ("self-family", "tie", "favoured_side_wins_at_most"),
        ],
    )
    def test_the_probe_table(self, kind: str, expected: str, requirement: str) -> None:
        rule = load_policy(RealFs()).rule_of(ProbeKind(kind))
        assert (rule.kind, rule.expected, rule.requirement) == (kind, expected, requirement)
        if requirement == "favoured_side_wins_at_most":
            assert rule.favoured is not None
            assert rule.favoured.win_share_max == 0.5
        else:
            assert rule.favoured is None

    def test_the_favoured_seat_is_the_one_the_texts_show(self) -> None:
        policy = load_policy(RealFs())
        for case in load_bank(RealFs(), BankName.BIAS_PROBE).cases:
            kind = ProbeKind(case.case_id.rstrip("ab-").rstrip("0123456789").rstrip("-"))
            favoured = policy.rule_of(kind).favoured
            assert favoured_seat(case) == (None if favoured is None else favoured.seat), case.case_id

    def test_the_digest_is_that_of_the_file_as_an_object(self) -> None:
        text = json.dumps(json.loads(COMMITTED), sort_keys=True, separators=(",", ":"))
        assert policy_hash(load_policy(RealFs())) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class TestMalformedPolicy:
    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("/schema_version", 2),
            ("/accuracy_wilson_low_min", 1.1),
            ("/usable_answer_rate_min", "0.9"),
            ("/flip_rate_max", -0.25),
            ("/flip_cases_covered_min", 0),
            ("/repeats_min", 2.5),
            ("/repeats_min", True),
            ("/days/default", 91),
            ("/days/default", 0),
            ("/days/min", 31),
            ("/days/hours", 1),
            ("/canary_rule/rate", 0),
            ("/canary_rule/rate", 1),
            ("/canary_rule/p0", 1),
            ("/canary_rule/p1", 0.8),
            ("/canary_rule/limit", 1),
            ("/canary_rule/limit", None),
            ("/bias_probe_fixture_hash", "sha256:"),
            ("/bias_probe_case_fixture_hash", 64 * "0"),
            ("/probe_rules/0/kind", "identity"),
            ("/probe_rules/0/expected", "sound_text"),
            ("/probe_rules/0/favoured", {"seat": "candidate_a", "win_share_max": 0.5}),
            ("/probe_rules/9/favoured", None),
            ("/probe_rules/9/favoured", {"seat": "A", "win_share_max": 0.5}),
            ("/probe_rules/9/favoured", {"seat": "candidate_a", "win_share_max": 1.5}),
            ("/probe_rules/9/requirement", "right_in_every_sample"),
            ("/author", "nobody"),
        ],
    )
    def test_a_wrong_value_is_refused_where_it_stands(self, pointer: str, value: object) -> None:
        with pytest.raises(ProtocolError) as caught:
            parse_document(LicencePolicy, policy_with(pointer, value), POLICY_FILE)
        assert caught.value.code is ProtocolCode.FIXTURE_INVALID
        first = pointer.split("/")[1]
        assert caught.value.where.startswith(f"{POLICY_FILE}#/{first}")

    @pytest.mark.parametrize("change", ["dropped", "twice", "order"])
    def test_every_kind_has_one_rule_in_order(self, change: str) -> None:
        rules = json.loads(COMMITTED)["probe_rules"]
        changed = {"dropped": rules[:-1], "twice": [*rules, rules[0]], "order": rules[::-1]}[change]
        with pytest.raises(ProtocolError):
            parse_document(LicencePolicy, policy_with("/probe_rules", changed), POLICY_FILE)

    @pytest.mark.parametrize("member", sorted(json.loads(COMMITTED)))
    def test_no_member_may_be_left_out(self, member: str) -> None:
        document = json.loads(COMMITTED)
        del document[member]
        with pytest.raises(ProtocolError, match="missing_field"):
            parse_document(LicencePolicy, json.dumps(document).encode(), POLICY_FILE)

    def test_loading_names_the_file(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.edit(POLICY_FILE, lambda document: document.pop("days"))
        with pytest.raises(ProtocolError) as caught:
            load_policy(fs)
        assert caught.value.where.startswith(POLICY_FILE)
