"""Which names a private folder may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.evidence.names import (
    check_collision,
    check_name,
    check_outside_id,
    check_written_name,
    temporary_name,
    temporary_of,
)


@pytest.mark.parametrize(
    "name", ["a", "ä" * 127, "x" * 255, "...", ".hidden", "with blank", "a\u2028b", "😀"]
)
def test_names_that_are_fine(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "/",
        "a\0b",
        "a\nb",
        "a\x7fb",
        "a\x85b",
        "\x1b[2J",
        "x" * 256,
        "ä" * 128,
        "\ud800",
    ],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(FileError) as caught:
        check_name(name, "folder/")
    assert caught.value.code is FileCode.NAME_FORM
    assert caught.value.faults[0].where.isprintable()
    assert str(caught.value).isprintable()


def test_a_written_name_leaves_room_for_its_temporary() -> None:
    check_written_name("x" * 233)
    with pytest.raises(FileError) as caught:
        check_written_name("x" * 234)
    assert caught.value.code is FileCode.NAME_FORM


def test_a_written_name_is_never_of_the_form_that_is_swept() -> None:
    with pytest.raises(FileError) as caught:
        check_written_name(".a.0123456789abcdef.tmp")
    assert caught.value.code is FileCode.NAME_FORM
    check_written_name("a.0123456789abcdef.tmp")
    check_written_name(".a.0123456789ABCDEF.tmp")


@pytest.mark.parametrize("text", ["a", "A-1_b.c", "0", "..."])
def test_ids_from_outside_that_are_fine(text: str) -> None:
    check_outside_id(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a b", "ä", "a\n", "a/b", "a\0", "$", "a" * 256])
def test_ids_from_outside_that_are_refused(text: str) -> None:
    with pytest.raises(FileError) as caught:
        check_outside_id(text)
    assert caught.value.code is FileCode.NAME_FORM


@pytest.mark.parametrize(("name", "other"), [("a", "A"), ("straße", "STRASSE"), ("\u017f", "s")])
def test_names_equal_after_case_folding_collide(name: str, other: str) -> None:
    with pytest.raises(FileError) as caught:
        check_collision(name, ["x", other])
    assert caught.value.code is FileCode.NAME_COLLISION
    check_collision(name, ["x", name])


def test_a_temporary_is_known_by_its_form() -> None:
    assert (
        temporary_name("report.json", bytes.fromhex("00112233445566ff"))
        == ".report.json.00112233445566ff.tmp"
    )
    assert temporary_of(".report.json.00112233445566ff.tmp") == "report.json"
    for other in (
        "report.json.00112233445566ff.tmp",
        ".r.0011.tmp",
        ".r.00112233445566FF.tmp",
        "..00112233445566ff.tmp",
    ):
        assert temporary_of(other) is None


@given(st.text(min_size=1), st.binary(min_size=8, max_size=8))
def test_every_temporary_names_its_file(name: str, token: bytes) -> None:
    assert temporary_of(temporary_name(name, token)) == name
