"""What a door gets handed, and what is answered when it cannot be opened or breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.doors import House

if TYPE_CHECKING:
    from pathlib import Path

DRIFTING = (
    "from pathlib import Path\n"
    "late = Path(__file__).parents[1] / 'evidence' / 'late.py'\n"
    "late.write_text('x = 2\\n')\n"
)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


class TestADoor:
    def test_gets_request_arguments_and_manifest(self, house: House) -> None:
        found = house.run("--flag", stdin=b'{"a":1}').found
        assert found["request"] == '{"a":1}'
        assert found["arguments"] == ["--flag"]
        assert found["manifest"]["protocol_revision"] == "skill-effectiveness.reviewer-calibration.v1"
        assert found["manifest"]["manifest_hash"].startswith("sha256:")

    def test_sees_another_manifest_when_one_byte_of_a_case_changed(self, house: House) -> None:
        """R2: that is what a request names, so it is drift before anything is called."""
        before = house.run().found["manifest"]["manifest_hash"]
        cases = house.root / "checkout" / "fixtures" / "reviewer-calibration-cases.json"
        cases.write_bytes(cases.read_bytes().replace(b"\n", b" "))
        assert house.run().found["manifest"]["manifest_hash"] != before

    def test_leaves_no_core_file(self, house: House) -> None:
        assert house.run().found["core"] == [0, 0]

    def test_lets_nobody_look_into_it(self, house: House) -> None:
        """P9: a program of the same user finds neither its folder nor its memory; the kernel says so."""
        house.door("import ctypes; found['dumpable'] = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)")
        assert house.run().found["dumpable"] == 0

    def test_gives_the_exit_code(self, house: House) -> None:
        house.door("started.answer(b'{}\\n'); return 2")
        answer = house.run()
        assert (answer.exit_code, answer.stdout) == (2, b"{}\n")

    def test_leaves_nothing_behind(self, house: House) -> None:
        """No bytecode cache, nor any other file."""
        before = sorted(house.root.rglob("*"))
        assert house.run(switches=(), environment={"HOME": str(house.root)}).exit_code == 0
        assert sorted(house.root.rglob("*")) == before


class TestWhatCannotBeOpened:
    def test_a_door_that_does_not_compile(self, house: House) -> None:
        house.write("calibration/door.py", "def main(:\n")
        assert "calibration/door.py does not compile" in house.run().refused("internal_error")

    def test_a_source_with_a_zero_byte(self, house: House) -> None:
        house.write("calibration/door.py", "\0")
        assert "does not compile" in house.run().refused("internal_error")

    def test_a_door_that_is_missing(self, house: House) -> None:
        (house.package / "calibration" / "door.py").unlink()
        assert "ModuleNotFoundError" in house.run().refused("internal_error")

    def test_a_door_without_an_entry(self, house: House) -> None:
        house.write("calibration/door.py", "x = 1\n")
        house.run().refused("internal_error")

    def test_a_door_that_misses_a_module(self, house: House) -> None:
        """The sentence names it; what the error quotes stays out."""
        house.door(before="import hypothesis\n")
        told = house.run().refused("internal_error")
        assert "ModuleNotFoundError hypothesis" in told

    def test_a_door_that_breaks_while_it_is_loaded(self, house: House) -> None:
        house.door(before="raise ValueError('/private/path')\n")
        answer = house.run()
        told = answer.refused("internal_error")
        assert "ValueError in skill_effectiveness.calibration.door, line 1" in told
        assert "/private/path" not in answer.stderr

    def test_a_folder_that_is_missing(self, house: House) -> None:
        (house.package / "providers" / "__init__.py").unlink()
        (house.package / "providers").rmdir()
        house.run().refused("runtime_manifest_unavailable")

    @pytest.mark.parametrize("mode", [0o775, 0o757])
    def test_a_folder_above_the_package_that_others_can_write(self, house: House, mode: int) -> None:
        """B15: they could put another package there."""
        house.package.parent.chmod(mode)
        told = house.run().refused("runtime_manifest_unavailable")
        assert "eval, the folder above skill_effectiveness, can be written by others" in told

    def test_a_distribution_that_is_missing(self, house: House) -> None:
        house.distribution("rfc8785", {"rfc8785.py": b""}).unlink()
        house.run().refused("runtime_manifest_unavailable")

    def test_a_name_from_outside_is_told_without_effect_on_a_terminal(self, house: House) -> None:
        house.write("evidence/\x1b[31m\u202eevil.py", "")
        told = house.run().refused("runtime_manifest_unavailable")
        assert told.isascii()
        assert told.isprintable()


class TestWhatBreaks:
    def test_something_unforeseen_is_answered_without_its_text(self, house: House) -> None:
        house.door("raise RuntimeError(request.decode())")
        answer = house.run(stdin=b"canary")
        assert "RuntimeError in skill_effectiveness.calibration.door" in answer.refused("internal_error")
        assert "canary" not in answer.stderr

    def test_a_library_that_exits_does_not_go_unanswered(self, house: House) -> None:
        house.door("sys.exit(0)")
        house.run().refused("internal_error")
        house.door(before="import sys\nsys.exit(0)\n")
        house.run().refused("internal_error")

    def test_something_unforeseen_after_the_answer_adds_no_second_one(self, house: House) -> None:
        house.door("started.answer(b'{}\\n'); raise RuntimeError")
        answer = house.run()
        assert (answer.exit_code, answer.stdout) == (4, b"{}\n")

    def test_a_late_refusal_is_the_answer(self, house: House) -> None:
        """A module that is loaded on first use drifted meanwhile."""
        house.write("evidence/late.py", "x = 1\n")
        house.door(DRIFTING + "import skill_effectiveness.evidence.late")
        assert "evidence/late.py changed" in house.run().refused("runtime_drift")

    @pytest.mark.parametrize("swallow", ["pass", "raise RuntimeError from None"])
    def test_a_refusal_that_somebody_swallowed_is_still_the_answer(self, house: House, swallow: str) -> None:
        house.write("evidence/late.py", "x = 1\n")
        house.door(
            DRIFTING + "try:\n    import skill_effectiveness.evidence.late\n"
            f"except BaseException:\n    {swallow}"
        )
        house.run().refused("runtime_drift")

    def test_a_refusal_in_the_doors_own_words_may_be_sent(self, house: House) -> None:
        """With the standard library still at hand, and nothing else."""
        house.write("evidence/late.py", "x = 1\n")
        house.write("evidence/other.py", "x = 1\n")
        house.door(
            DRIFTING + "try:\n    import skill_effectiveness.evidence.late\n"
            "except Exception as refusal:\n"
            "    code = refusal.code\n"
            "    import plistlib\n"
            "    try:\n        import skill_effectiveness.evidence.other\n"
            "    except Exception as again:\n        assert again is refusal\n"
            "    started.wire.send(code.encode() + b'\\n')\n"
            "    return 3"
        )
        answer = house.run()
        assert (answer.exit_code, answer.stdout) == (3, b"runtime_drift\n")
