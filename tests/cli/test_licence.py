"""`licence issue`, `show`, `check`: exits and lines of calibration.md, section 9."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from skill_effectiveness.calibration.licensing import seal_licence
from skill_effectiveness.evidence.keys import public_pem
from skill_effectiveness.protocol.words import BankName
from tests.support.commands import Said, codex_that_answers, no_traceback, steers
from tests.support.examinations import BANK, PLAN, PROBES, open_out, run_examination, simulated
from tests.support.licences import granted
from tests.support.seals import KEY, OTHER_KEY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.protocol.cases import Bank

ISSUE = ("licence", "issue", "--calibration", "judged", "--probes", "probes", "--key", "lab")
THREE = replace(PLAN, repeats=3)


@pytest.fixture
def examined(command: Callable[..., Said], home: Path) -> Path:
    """Both examinations of a simulated reviewer, and a signing key with its public part."""
    with open_out(home, name="judged") as judged, open_out(home, name="probes") as probes:
        run_examination(judged, plan=THREE)
        run_examination(probes, simulated(bank=BankName.BIAS_PROBE), replace(THREE, bank=BankName.BIAS_PROBE))
    command("keys", "new", "lab")
    command("keys", "export", "lab", "--out", "lab.pub")
    return home


@pytest.fixture
def held(home: Path) -> Path:
    """A real reviewer's licence of 4 March 2026, and two public keys."""
    (home / "l.json").write_bytes(seal_licence(granted(), KEY))
    (home / "signer.pub").write_bytes(public_pem(KEY.public_key()))
    (home / "other.pub").write_bytes(public_pem(OTHER_KEY.public_key()))
    return home


class TestIssue:
    def test_a_licence(self, command: Callable[..., Said], examined: Path) -> None:
        """R35 R39 R43: exit 0; live at once; that it is synthetic is said."""
        said = command(*ISSUE, "--out", "l.json")
        assert said.code == 0, said
        assert list(said.values) == ["licence_status", "licence_id", "expires_at", "result", "synthetic"]
        assert (said.values["licence_status"], said.values["result"]) == ("issued", "l.json")
        assert said.err.splitlines()[-1].endswith("licence check l.json --pub lab.pub")
        assert said.values["synthetic"] == "true"
        assert (examined / "l.json").stat().st_mode & 0o777 in (0o644, 0o600)
        checked = command("licence", "check", "l.json", "--pub", "lab.pub", "--model", "sim-1")
        assert (checked.code, checked.out) == (0, "licence_status=live\nsynthetic=true\n")
        assert "simulated" in checked.err

    def test_a_line_of_the_policy_is_not_met(self, command: Callable[..., Said], examined: Path) -> None:
        """R35: exit 1, and nothing is written."""
        said = command(*ISSUE, "--out", "l.json", "--days", "91")
        assert (said.code, said.out) == (1, "licence_status=refused\nreason=days_out_of_range\n")
        assert said.err == "skill_effectiveness_trial: A licence lives 1 to 90 days, not 91.\n"
        assert not (examined / "l.json").exists()

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (("--probes", "judged"), "pair_incomplete"),
            (("--calibration", "probes"), "pair_incomplete"),
            (("--calibration", "nowhere"), "root_missing"),
            (("--key", "nobody"), "missing"),
            (("--out", "lab.pub"), "exists_different"),
        ],
    )
    def test_bad_input(
        self, command: Callable[..., Said], examined: Path, words: tuple[str, ...], reason: str
    ) -> None:
        """R35 R39: exit 2 with the reason, no path, and nothing is written."""
        said = command(*ISSUE, "--out", "l.json", *words)
        assert (said.code, said.out) == (2, f"licence_status=refused\nreason={reason}\n")
        assert len(said.err.splitlines()) == 1
        assert not (examined / "l.json").exists()
        document = command(*ISSUE, "--out", "l.json", *words, "--json").document
        assert document == {
            "licence_status": "refused",
            "reason": reason,
            "status": "refused",
            "code": reason,
        }

    def test_half_a_pair(self, command: Callable[..., Said], examined: Path) -> None:
        """R19 R35: exit 2."""
        (examined / "judged/reviewer-calibration-result.json").unlink()
        said = command(*ISSUE, "--out", "l.json")
        assert (said.code, said.values["reason"]) == (2, "pair_incomplete")

    def test_days_that_are_no_number(self, command: Callable[..., Said], examined: Path) -> None:
        del examined
        assert "--days" in command(*ISSUE, "--out", "l.json", "--days", "1.5").refusal


class TestShow:
    def test_the_predicate_as_lines(self, command: Callable[..., Said], held: Path) -> None:
        del held
        said = command("licence", "show", "l.json")
        assert said.code == 0
        assert said.values["artifact_contract"] == "skill-effectiveness-reviewer-licence-v1"
        assert said.values["reviewer.model"] == "model-1"
        assert said.values["reviewer.provider_binding_hash"] == "none"
        assert said.values["metrics.decided.n1"] == "16"
        assert said.values["bias_sheet.kinds.0.kind"] == "identical"
        assert "licence check" in said.err

    def test_json_is_the_predicate(self, command: Callable[..., Said], held: Path) -> None:
        del held
        document = command("licence", "show", "l.json", "--json").document
        assert document["canary_rule"] == {"rate": 0.05, "p0": 0.8, "p1": 0.5, "limit": 20}

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"\x1b[2J\n", b"[" * 100_000])
    def test_unreadable(self, command: Callable[..., Said], home: Path, data: bytes) -> None:
        """F45: exit 2, one sentence that steers no terminal."""
        (home / "l.json").write_bytes(data)
        said = command("licence", "show", "l.json")
        assert "no licence file" in said.refusal
        assert no_traceback(said)
        assert steers(said.err) == []

    def test_no_file(self, command: Callable[..., Said], home: Path) -> None:
        del home
        assert command("licence", "show", "l.json", "--json").document["code"] == "missing"


class TestCheck:
    @pytest.mark.parametrize(
        ("words", "word"),
        [
            (("--at", "2026-03-04T05:06:07Z"), "live"),
            (("--at", "2026-03-04T05:06:06Z"), "not_yet"),
            (("--at", "2026-04-03T05:06:07Z"), "expired"),
            (("--at", "2026-03-05T00:00:00Z", "--model", "model-1"), "live"),
            (("--at", "2026-03-05T00:00:00Z", "--model", "model-2"), "drift:model"),
            (("--at", "2026-03-05T00:00:00Z", "--pub", "other.pub"), "signature"),
        ],
    )
    def test_the_first_failing_part(
        self, command: Callable[..., Said], held: Path, words: tuple[str, ...], word: str
    ) -> None:
        """R37: exit 0 when live, else 1 with its name."""
        del held
        said = command("licence", "check", "l.json", "--pub", "signer.pub", *words)
        assert (said.code, said.out) == (int(word != "live"), f"licence_status={word}\n")
        assert len(said.err.splitlines()) == 1

    def test_a_changed_payload(self, command: Callable[..., Said], held: Path) -> None:
        """R37: bad signature."""
        envelope = json.loads((held / "l.json").read_bytes())
        envelope["payload"] = envelope["payload"][:40] + "AAAA" + envelope["payload"][44:]
        document = json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"
        (held / "l.json").write_text(document)
        said = command("licence", "check", "l.json", "--pub", "signer.pub")
        assert (said.code, said.out) == (1, "licence_status=signature\n")

    def test_a_program_that_was_changed(self, command: Callable[..., Said], home: Path) -> None:
        """R35 R37 R43: a real program, licensed and then exchanged; nothing of it is synthetic."""
        every = SimpleNamespace(
            cases=(*BANK.cases, *PROBES.bank.cases), truth=(*BANK.truth, *PROBES.bank.truth)
        )
        program = codex_that_answers(home / "codex", cast("Bank", every))
        common = ("--provider", "codex", "--model", "model-1", "--reviewer-family", "family-1")
        for name, bank in (("judged", "judged"), ("probes", "bias-probe")):
            words = (*common, "--codex-path", program, "--repeats", "3", "--bank", bank, "--out", name)
            assert command("reviewer-calibration", *words).code == 0
        command("keys", "new", "lab")
        command("keys", "export", "lab", "--out", "lab.pub")
        issued = command(*ISSUE, "--out", "l.json")
        assert (issued.code, "synthetic" in issued.values) == (0, False), issued
        check = (
            "licence",
            "check",
            "l.json",
            "--pub",
            "lab.pub",
            "--executable",
            program,
            "--model",
            "model-1",
        )
        assert command(*check).values == {"licence_status": "live"}
        program.write_bytes(program.read_bytes() + b"\n# newer\n")
        changed = command(*check)
        assert (changed.code, changed.values) == (
            1,
            {"licence_status": "drift:provider_executable_hash"},
        )

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (("--at", "tomorrow"), "time_form"),
            (("--pub", "nowhere.pub"), "missing"),
            (("--executable", "nowhere"), "missing"),
        ],
    )
    def test_bad_input(
        self, command: Callable[..., Said], held: Path, words: tuple[str, ...], code: str
    ) -> None:
        """R37: exit 2."""
        del held
        said = command("licence", "check", "l.json", "--pub", "signer.pub", *words, "--json")
        assert (said.code, said.document["code"]) == (2, code)

    def test_a_simulated_reviewer_has_no_program(self, command: Callable[..., Said], examined: Path) -> None:
        command(*ISSUE, "--out", "l.json")
        words = ("licence", "check", "l.json", "--pub", "lab.pub", "--executable", examined / "lab.pub")
        assert command(*words, "--json").document["code"] == "no_program"

    def test_unreadable(self, command: Callable[..., Said], held: Path) -> None:
        """R37: exit 2, whatever the key."""
        (held / "l.json").write_bytes(b"{}\n")
        said = command("licence", "check", "l.json", "--pub", "signer.pub", "--json")
        assert (said.code, said.document["code"]) == (2, "licence_unreadable")
