"""Kernel error numbers become closed codes in one place."""

from __future__ import annotations

import errno

import pytest

from skill_effectiveness.evidence.errnos import file_error, reported
from skill_effectiveness.evidence.faults import FileCode, FileError


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "no_space"),
        (errno.EDQUOT, "no_space"),
        (errno.EFBIG, "no_space"),
        (errno.EIO, "io_error"),
        (errno.EROFS, "not_writable"),
        (errno.EACCES, "not_writable"),
        (errno.EPERM, "not_writable"),
        (errno.ENOENT, "missing"),
        (errno.ELOOP, "file_symlink"),
        (errno.EISDIR, "not_regular"),
        (errno.ENOTDIR, "not_regular"),
        (errno.ENXIO, "not_regular"),
        (errno.ENAMETOOLONG, "name_form"),
    ],
)
def test_each_number_has_its_code(number: int, code: str) -> None:
    error = file_error(OSError(number, "text of the kernel", "/some/path"), "report.json")
    assert error.code == code
    assert error.faults[0].where == "report.json"
    assert "report.json" in str(error)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_permission_error_while_reading_has_a_code_of_its_own(number: int) -> None:
    assert file_error(OSError(number, ""), "f", reading=True).code is FileCode.NOT_READABLE


def test_an_unknown_number_is_an_io_error_and_named() -> None:
    error = file_error(OSError(errno.EMFILE, ""), "f")
    assert error.code is FileCode.IO_ERROR
    assert "EMFILE" in str(error)
    assert file_error(OSError("no number at all"), "f").code is FileCode.IO_ERROR


def test_the_kernels_error_stays_reachable() -> None:
    cause = OSError(errno.ENOLCK, "")
    with pytest.raises(FileError) as caught, reported("f"):
        raise cause
    assert caught.value.__cause__ is cause


def test_no_sentence_repeats_the_path_of_the_kernel() -> None:
    """E58: the text of a fault is made from the relative name, never from the kernel's path."""
    for number in errno.errorcode:
        assert "/secret" not in str(file_error(OSError(number, "x", "/secret/place"), "f"))
