"""Each check of a private root, alone, and the ways around them that do not help."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import Place, RealFs
from skill_effectiveness.evidence.root import PrivateRoot, RootKind, find_checkout
from skill_effectiveness.evidence.rootwalk import Fence, ancestor_fault, check_form, identity_of, root_faults
from tests.support.private import AS_NOBODY, child_output, folder_of_nobody, mounts_permitted, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.fsops import FileSystem

MADE_PRIVATE = [RootKind.OUT, RootKind.STATE, RootKind.REPO]
FENCED = [RootKind.OUT, RootKind.STATE, RootKind.STORE]
ME = os.geteuid()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def refused(
    path: str | Path,
    kind: RootKind = RootKind.OUT,
    *,
    fs: FileSystem | None = None,
    checkout: Path | None = None,
    environ: dict[str, str] | None = None,
    create: bool = True,
) -> tuple[RootCode, ...]:
    """The codes with which a root is refused."""
    opening = PrivateRoot.create if create else PrivateRoot.open
    with pytest.raises(RootError) as caught:
        opening(path, kind, around=surroundings(fs, environ=environ), checkout=checkout)
    return tuple(fault.code for fault in caught.value.faults if isinstance(fault.code, RootCode))


def accepted(
    path: str | Path,
    kind: RootKind = RootKind.OUT,
    *,
    fs: FileSystem | None = None,
    checkout: Path | None = None,
    environ: dict[str, str] | None = None,
) -> Path:
    """The resolved path of a root that is accepted."""
    fs = FaultFs(fs or RealFs())
    around = surroundings(fs, environ=environ)
    with PrivateRoot.create(path, kind, around=around, checkout=checkout) as root:
        resolved = root.path
    assert fs.open_paths == []
    return resolved


def status(mode: int, user: int = ME) -> os.stat_result:
    return os.stat_result((mode, 7, 8, 2, user, 0, 0, 0, 0, 0))


def with_status(path: Path, change: Callable[[list[float]], None]) -> FaultFs:
    """The kernel, but with another status for one folder, by name and by descriptor."""

    def changed(real: os.stat_result) -> os.stat_result:
        fields = list(real)
        change(fields)
        return os.stat_result(fields)

    def about(seen: str) -> bool:
        return seen == str(path)

    return FaultFs(
        RealFs(),
        Injection("lstat", nth=0, about=about, change=changed),
        Injection("fstat", nth=0, about=about, change=changed),
    )


class TestForm:
    @pytest.mark.parametrize(
        "path", ["rel", "", ".", "./x", "~/x", "/", "//", "/.", "/a/../b", "/a/..", "/a\0b"]
    )
    def test_of_a_path_that_names_no_folder_of_ours(self, path: str) -> None:
        """E13: absolute, no NUL, no `..`, not `/`."""
        assert refused(path) == (RootCode.ROOT_FORM,)

    def test_of_the_home_folder_by_any_spelling(self, place: Path) -> None:
        """E13: not the home folder, as the environment names it, as the password database does, and by
        identity.
        """
        home = place / "home"
        home.mkdir(mode=0o700)
        (place / "link").symlink_to("home")
        for spelling in (home, f"{home}/", f"{place}/./home"):
            assert refused(spelling, environ={"HOME": str(home)}) == (RootCode.ROOT_FORM,)
        assert refused(home, environ={"HOME": str(place / "link")}) == (RootCode.ROOT_FORM,)
        assert refused(RealFs().user_home(), environ={"HOME": "/nowhere"}) == (RootCode.ROOT_FORM,)
        assert accepted(home / "below", environ={"HOME": str(home)}) == home / "below"

    def test_of_names_that_are_too_long_or_not_utf8(self) -> None:
        assert refused("/usr/" + "x" * 256) == (RootCode.ROOT_FORM,)
        assert refused("/usr/\udcff") == (RootCode.ROOT_FORM,)

    def test_sentences_show_the_path_escaped(self) -> None:
        with pytest.raises(RootError) as caught:
            check_form("\x1b[2J", ())
        assert str(caught.value).isprintable()

    def test_of_a_file_where_the_folder_belongs(self, place: Path) -> None:
        (place / "file").write_bytes(b"")
        assert refused(place / "file") == (RootCode.ROOT_FORM,)
        assert refused(place / "file" / "below") == (RootCode.ROOT_FORM,)


class TestLinks:
    def test_are_refused_as_the_root_and_above_it(self, place: Path) -> None:
        """E13: no component is a symbolic link."""
        (place / "real").mkdir(mode=0o700)
        (place / "link").symlink_to("real")
        (place / "dangling").symlink_to("none")
        # The folder of the link is not open to others, but it need not be root's: make sure that it is not.
        fs = with_status(place, lambda fields: fields.__setitem__(4, 4321))
        assert refused(place / "link") == (RootCode.ROOT_SYMLINK,)
        assert refused(place / "dangling") == (RootCode.ROOT_SYMLINK,)
        assert refused(place / "link" / "below", fs=as_user(fs, 4321)) == (RootCode.ROOT_SYMLINK,)
        assert list((place / "real").iterdir()) == []
        assert not (place / "none").exists()

    def test_a_link_of_the_system_above_the_root_is_resolved(self, place: Path) -> None:
        """E13: the exception is an ancestor link owned by root in a folder of root that others
        cannot write.
        """
        system = rooted(place)
        (place / "private" / "tmp").mkdir(parents=True)
        for number, target in enumerate(
            ("private/tmp", f"{place}/private/tmp", f"../{place.name}/private/tmp")
        ):
            (place / f"tmp{number}").symlink_to(target)
            resolved = accepted(place / f"tmp{number}" / "x" / "root", fs=system())
            assert resolved == place / "private" / "tmp" / "x" / "root"

    def test_but_only_once(self, place: Path) -> None:
        """E13: what the link leads to is walked without exception."""
        system = rooted(place)
        (place / "real").mkdir()
        (place / "second").symlink_to("real")
        (place / "first").symlink_to("second")
        (place / "loop").symlink_to("loop")
        assert refused(place / "first" / "root", fs=system()) == (RootCode.ROOT_SYMLINK,)
        assert refused(place / "loop" / "root", fs=system()) == (RootCode.ROOT_SYMLINK,)

    @pytest.mark.parametrize(
        ("link_owner", "folder_owner", "folder_mode", "code"),
        [
            (4321, 0, 0o755, RootCode.ROOT_SYMLINK),
            (0, 4321, 0o755, RootCode.ROOT_SYMLINK),
            (0, 0, 0o1777, RootCode.ROOT_SYMLINK),
            (0, 0, 0o775, RootCode.ROOT_ANCESTOR),
        ],
    )
    def test_not_one_that_others_could_have_made(
        self, place: Path, link_owner: int, folder_owner: int, folder_mode: int, code: RootCode
    ) -> None:
        """E13: a link of another owner, in a folder of another, or in one that others can write, is
        refused.
        """
        (place / "real").mkdir()
        (place / "link").symlink_to("real")

        def owner(fields: list[float]) -> None:
            fields[4] = folder_owner
            fields[0] = stat.S_IFDIR | folder_mode

        def link(fields: list[float]) -> None:
            fields[4] = link_owner

        folder = with_status(place, owner)
        fs = FaultFs(folder, *with_status(place / "link", link).injections)
        assert refused(place / "link" / "root", fs=as_user(fs, 4321)) == (code,)
        assert list((place / "real").iterdir()) == []

    def test_a_folder_swapped_for_a_link_is_not_followed(self, place: Path) -> None:
        """E14: a component swapped for a link between check and use is refused, wherever it stands."""
        target = place / "target"
        (target / "below").mkdir(parents=True, mode=0o700)
        for name, path in (("above", "above/below"), ("last", "last")):
            (place / path).mkdir(parents=True, mode=0o700)

            def swap(name: str = name) -> None:
                (place / name).rename(place / f"{name}-moved")
                (place / name).symlink_to("target")

            fs = FaultFs(RealFs(), Injection("open_dir", about=f"{place}/{name}".__eq__, before=swap))
            assert refused(place / path, fs=fs) == (RootCode.ROOT_SYMLINK,)
            assert fs.open_paths == []

    def test_a_folder_swapped_for_another_is_judged_again(self, place: Path) -> None:
        """E14: what counts is the folder that was opened, not the one that was looked at."""
        (place / "root").mkdir(mode=0o700)
        (place / "loose").mkdir(mode=0o755)

        def swap() -> None:
            (place / "root").rmdir()
            (place / "loose").rename(place / "root")

        fs = FaultFs(RealFs(), Injection("open_dir", about=lambda seen: seen == f"{place}/root", before=swap))
        assert refused(place / "root", fs=fs) == (RootCode.ROOT_MODE,)


def shown_as(place: Place, _real: object) -> Place:
    return place


def as_user(fs: FaultFs, user: int) -> FaultFs:
    """The same file system as seen by another user."""

    class Other(FaultFs):
        def user(self) -> int:
            return user

    def renumbered(real: os.stat_result) -> os.stat_result:
        # What this user owns is then the other one's; what root owns stays root's.
        return os.stat_result((*real[:4], user if real.st_uid == ME != 0 else real.st_uid, *real[5:]))

    return Other(fs, *(Injection(operation, nth=0, change=renumbered) for operation in ("lstat", "fstat")))


def rooted(place: Path) -> Callable[[], FaultFs]:
    """A file system in which the folder and its links are root's, closed to others, whoever runs the test."""

    def of_root(fields: list[float]) -> None:
        fields[4] = 0

    def link_of_root(real: os.stat_result) -> os.stat_result:
        fields: list[float] = list(real)
        if stat.S_ISLNK(real.st_mode):
            fields[4] = 0
        return os.stat_result(fields)

    def make() -> FaultFs:
        return FaultFs(with_status(place, of_root), Injection("lstat", nth=0, change=link_of_root))

    return make


class TestAncestors:
    @pytest.mark.parametrize("mode", [0o755, 0o700, 0o711, 0o1777, 0o1770, 0o555])
    def test_that_nobody_else_can_change(self, mode: int) -> None:
        assert ancestor_fault(status(stat.S_IFDIR | mode), "/a", ME) is None
        assert ancestor_fault(status(stat.S_IFDIR | mode, 0), "/a", ME) is None

    @pytest.mark.parametrize("mode", [0o775, 0o777, 0o757, 0o720, 0o702])
    def test_that_others_can_write_without_being_sticky(self, place: Path, mode: int) -> None:
        """E13: no ancestor is group- or world-writable unless sticky."""
        (place / "above").mkdir()
        (place / "above").chmod(mode)
        assert refused(place / "above" / "root") == (RootCode.ROOT_ANCESTOR,)
        assert list((place / "above").iterdir()) == []

    def test_of_another_user(self, place: Path) -> None:
        """E13: every ancestor is owned by root or the caller."""
        (place / "above").mkdir()
        fs = with_status(place / "above", lambda fields: fields.__setitem__(4, 4321))
        assert refused(place / "above" / "root", fs=fs) == (RootCode.ROOT_ANCESTOR,)
        assert list((place / "above").iterdir()) == []

    def test_that_may_be_searched_but_not_listed(self) -> None:
        code = AS_NOBODY + (
            "import sys, pathlib\n"
            "from tests.support.private import out_root\n"
            "become_nobody()\n"
            "above = pathlib.Path(sys.argv[1]) / 'above'\n"
            "(above / 'root').mkdir(parents=True)\n"
            "(above / 'root').chmod(0o700)\n"
            "above.chmod(0o311)\n"
            "with out_root(above) as root: root.publish('f', b'')\n"
            "above.chmod(0o711)\n"
            "print((above / 'root' / 'f').exists())\n"
        )
        with folder_of_nobody() as folder:
            assert child_output(code, folder) == "True"

    def test_that_the_kernel_does_not_let_us_search(self, place: Path) -> None:
        fs = FaultFs(RealFs(), Injection("lstat", errno.EACCES, about=lambda seen: seen == f"{place}/above"))
        with pytest.raises(FileError) as caught:
            PrivateRoot.create(place / "above", RootKind.OUT, around=surroundings(fs), checkout=None)
        assert caught.value.code is FileCode.NOT_READABLE
        assert fs.open_paths == []


class TestOwnerAndMode:
    @pytest.mark.parametrize("kind", MADE_PRIVATE)
    @pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o500, 0o600, 0o1700, 0o2700, 0o777])
    def test_private_kinds_are_exactly_0700(self, place: Path, kind: RootKind, mode: int) -> None:
        """E13 E17: any other mode is refused and stays as it is."""
        root = place / "root"
        root.mkdir()
        root.chmod(mode)
        assert refused(root, kind) == (RootCode.ROOT_MODE,)
        assert stat.S_IMODE(root.stat().st_mode) == mode

    @pytest.mark.parametrize(
        ("mode", "fine"), [(0o755, True), (0o700, True), (0o711, True), (0o775, False), (0o777, False)]
    )
    def test_a_store_only_keeps_others_from_writing(self, place: Path, mode: int, *, fine: bool) -> None:
        """E18: a 0755 store is accepted, 0775 and 0777 are not."""
        root = place / "root"
        root.mkdir()
        root.chmod(mode)
        if fine:
            assert accepted(root, RootKind.STORE) == root
        else:
            assert refused(root, RootKind.STORE) == (RootCode.ROOT_MODE,)
        assert stat.S_IMODE(root.stat().st_mode) == mode

    def test_belongs_to_the_effective_user(self, place: Path) -> None:
        """E13: another owner is refused, also root when the caller is not."""
        (place / "root").mkdir(mode=0o700)
        for kind in RootKind:
            fs = with_status(place / "root", lambda fields: fields.__setitem__(4, ME + 1))
            assert refused(place / "root", kind, fs=fs) == (RootCode.ROOT_OWNER,)

    def test_both_are_reported_together(self) -> None:
        """E13: owner and mode wrong at once give both faults."""
        faults = root_faults(status(stat.S_IFDIR | 0o755, ME + 1), "/a", RootKind.OUT, ME)
        assert [fault.code for fault in faults] == [RootCode.ROOT_OWNER, RootCode.ROOT_MODE]

    def test_as_another_user_meets_them(self) -> None:
        """E13: folders of root, and an own folder that cannot be opened, refused to an ordinary user."""
        code = AS_NOBODY + (
            "import sys, pathlib\n"
            "from skill_effectiveness.evidence.faults import RootError\n"
            "from skill_effectiveness.evidence.root import PrivateRoot, RootKind\n"
            "from tests.support.private import surroundings\n"
            "become_nobody()\n"
            "own = pathlib.Path(sys.argv[1]) / 'own'\n"
            "own.mkdir()\n"
            "own.chmod(0)\n"
            "for path in ('/usr/bin', own):\n"
            "    try: PrivateRoot.open(path, RootKind.OUT, around=surroundings(), checkout=None)\n"
            "    except RootError as error: print(*[fault.code for fault in error.faults])\n"
        )
        with folder_of_nobody() as folder:
            assert child_output(code, folder).splitlines() == ["root_owner root_mode", "root_mode"]


class TestMissing:
    @pytest.mark.parametrize("kind", MADE_PRIVATE)
    def test_is_made_private_with_everything_above(self, place: Path, kind: RootKind) -> None:
        assert accepted(place / "a" / "b" / "c", kind) == place / "a" / "b" / "c"
        for path in ("a", "a/b", "a/b/c"):
            assert stat.S_IMODE((place / path).stat().st_mode) == 0o700

    def test_folders_that_exist_keep_their_mode(self, place: Path) -> None:
        (place / "above").mkdir(mode=0o755)
        (place / "above").chmod(0o755)
        accepted(place / "above" / "root")
        assert stat.S_IMODE((place / "above").stat().st_mode) == 0o755

    def test_a_store_is_never_made(self, place: Path) -> None:
        """E13: a missing store is `root_missing`."""
        assert refused(place / "root", RootKind.STORE) == (RootCode.ROOT_MISSING,)
        assert list(place.iterdir()) == []

    @pytest.mark.parametrize("kind", RootKind)
    def test_nothing_is_made_by_opening(self, place: Path, kind: RootKind) -> None:
        assert refused(place / "a" / "root", kind, create=False) == (RootCode.ROOT_MISSING,)
        assert list(place.iterdir()) == []

    def test_somebody_faster_is_no_obstacle(self, place: Path) -> None:
        (place / "root").mkdir(mode=0o700)
        missing_once = Injection("lstat", errno.ENOENT, about=lambda seen: seen == f"{place}/root")
        assert accepted(place / "root", fs=FaultFs(RealFs(), missing_once)) == place / "root"

    @pytest.mark.parametrize(
        ("operation", "number", "code"),
        [
            ("mkdir", errno.ENOSPC, FileCode.NO_SPACE),
            ("mkdir", errno.EROFS, FileCode.NOT_WRITABLE),
            ("fsync_dir", errno.EIO, FileCode.IO_ERROR),
        ],
    )
    def test_a_folder_that_cannot_be_made(
        self, place: Path, operation: str, number: int, code: FileCode
    ) -> None:
        fs = FaultFs(RealFs(), Injection(operation, number))
        with pytest.raises(FileError) as caught:
            PrivateRoot.create(place / "a" / "root", RootKind.OUT, around=surroundings(fs), checkout=None)
        assert caught.value.code is code
        assert fs.open_paths == []
        assert accepted(place / "a" / "root") == place / "a" / "root"


class TestCheckout:
    @pytest.fixture
    def checkout(self, place: Path) -> Path:
        path = place / "work" / "checkout"
        (path / "out" / "deep").mkdir(parents=True)
        for folder in (place / "work", path, path / "out", path / "out" / "deep"):
            folder.chmod(0o700)
        return path

    @pytest.mark.parametrize("kind", FENCED)
    def test_is_not_a_place_for_evidence(self, checkout: Path, kind: RootKind) -> None:
        """E13: a root is not inside the checkout and not the checkout; nothing is made there."""
        for path in (checkout, checkout / "out", checkout / "out" / "deep"):
            assert refused(path, kind, checkout=checkout) == (RootCode.ROOT_IN_CHECKOUT,)
        assert refused(checkout / "new" / "root", kind, checkout=checkout) == (RootCode.ROOT_IN_CHECKOUT,)
        assert not (checkout / "new").exists()

    @pytest.mark.parametrize("kind", FENCED)
    def test_is_not_held_by_evidence(self, place: Path, checkout: Path, kind: RootKind) -> None:
        """E13: a root does not contain the checkout."""
        assert refused(place / "work", kind, checkout=checkout) == (RootCode.ROOT_HOLDS_CHECKOUT,)

    def test_a_neighbour_is_fine(self, place: Path, checkout: Path) -> None:
        assert accepted(place / "work" / "checkout-2", checkout=checkout) == place / "work" / "checkout-2"

    def test_may_hold_a_repo_root(self, checkout: Path) -> None:
        """E60: a `repo` root inside the checkout is accepted, and every other check still holds for it."""
        assert accepted(checkout / ".closeout", RootKind.REPO, checkout=checkout) == checkout / ".closeout"
        (checkout / "open").mkdir()
        (checkout / "open").chmod(0o755)
        (checkout / "link").symlink_to("out")
        assert refused(checkout / "open", RootKind.REPO, checkout=checkout) == (RootCode.ROOT_MODE,)
        assert refused(checkout / "link", RootKind.REPO, checkout=checkout) == (RootCode.ROOT_SYMLINK,)
        assert refused("relative", RootKind.REPO, checkout=checkout) == (RootCode.ROOT_FORM,)

    def test_is_found_behind_a_link_to_it(self, place: Path, checkout: Path) -> None:
        (place / "door").symlink_to(checkout)
        assert refused(checkout / "out", checkout=place / "door") == (RootCode.ROOT_IN_CHECKOUT,)

    def test_under_another_name_is_known_by_identity(self, place: Path, checkout: Path) -> None:
        """E15: a folder with the device and inode of the checkout is the checkout, whatever it is called."""
        (place / "elsewhere" / "root").mkdir(parents=True, mode=0o700)
        real = checkout.stat()

        def same(fields: list[float]) -> None:
            fields[1:3] = [real.st_ino, real.st_dev]

        fs = with_status(place / "elsewhere", same)
        assert refused(place / "elsewhere" / "root", fs=fs, checkout=checkout) == (RootCode.ROOT_IN_CHECKOUT,)

    def test_shown_in_part_by_a_bind_mount_is_known_by_its_place(self, place: Path, checkout: Path) -> None:
        """E15: a mount of a folder inside the checkout leads into the checkout; so does one of a folder
        above it, upwards.
        """
        (place / "mnt" / "root").mkdir(parents=True, mode=0o700)
        at = RealFs().open_dir(None, str(checkout))
        inside = RealFs().place(at)
        os.close(at)
        if inside is None:
            inside = Place("8:1", "/somewhere/checkout")
        for shown, code in (
            (f"{inside.path}/out/root", RootCode.ROOT_IN_CHECKOUT),
            (str(Path(inside.path).parent), RootCode.ROOT_HOLDS_CHECKOUT),
        ):
            fs = FaultFs(
                RealFs(),
                Injection(
                    "place",
                    nth=0,
                    about=lambda seen: seen.startswith(f"{place}/mnt/root"),
                    change=partial(shown_as, Place(inside.device, shown)),
                ),
                Injection(
                    "place", nth=0, about=lambda seen: seen == str(checkout), change=partial(shown_as, inside)
                ),
            )
            assert refused(place / "mnt" / "root", fs=fs, checkout=checkout) == (code,)

    def test_through_real_bind_mounts(self, place: Path, checkout: Path) -> None:
        """E15: the same with mounts of the kernel, where a test may make them (the cases above hold
        everywhere).
        """
        for name in ("whole", "part", "above"):
            (place / name).mkdir(mode=0o700)
        code = (
            "import subprocess, sys\n"
            "from skill_effectiveness.evidence.faults import RootError\n"
            "from skill_effectiveness.evidence.root import PrivateRoot, RootKind\n"
            "from tests.support.private import surroundings\n"
            "place, checkout = sys.argv[1:]\n"
            "from pathlib import Path\n"
            "shown = {'whole': checkout, 'part': f'{checkout}/out', 'above': f'{place}/work'}\n"
            "for target, source in shown.items():\n"
            "    subprocess.run(['mount', '--bind', source, f'{place}/{target}'], check=True)\n"
            "def attempt(path, checkout):\n"
            "    try:\n"
            "        around, fence = surroundings(), Path(checkout)\n"
            "        PrivateRoot.create(path, RootKind.OUT, around=around, checkout=fence).close()\n"
            "        print('accepted')\n"
            "    except RootError as error: print(error.code)\n"
            "attempt(f'{place}/whole/root', checkout)\n"
            "attempt(f'{place}/part', checkout)\n"
            "attempt(f'{place}/part/new', checkout)\n"
            "attempt(f'{place}/part/deep', checkout)\n"
            "attempt(f'{place}/above', checkout)\n"
            "attempt(f'{place}/work', f'{place}/above/checkout')\n"
            "attempt(f'{place}/above/beside', checkout)\n"
        )
        if mounts_permitted():
            assert child_output(code, place, checkout, prefix=("unshare", "-m")).splitlines() == [
                "root_in_checkout",
                "root_in_checkout",
                "root_in_checkout",
                "root_in_checkout",
                "root_holds_checkout",
                "root_holds_checkout",
                "accepted",
            ]
            assert not (checkout / "out" / "new").exists()

    def test_a_mount_below_an_open_root_is_seen(self, place: Path, checkout: Path) -> None:
        """E15: a child that shows the checkout is refused as well."""
        (place / "root" / "child").mkdir(parents=True)
        (place / "root").chmod(0o700)
        (place / "root" / "child").chmod(0o700)
        real = checkout.stat()

        def same(fields: list[float]) -> None:
            fields[1:3] = [real.st_ino, real.st_dev]

        around = surroundings(with_status(place / "root" / "child", same))
        with (
            PrivateRoot.open(place / "root", RootKind.OUT, around=around, checkout=checkout) as root,
            pytest.raises(RootError) as caught,
        ):
            root.child("child")
        assert caught.value.code is RootCode.ROOT_IN_CHECKOUT

    def test_the_fence_knows_every_folder_above(self, checkout: Path) -> None:
        fs = FaultFs(RealFs())
        fence = Fence.around(fs, checkout)
        assert fence.checkout == identity_of(checkout.stat())
        assert {identity_of(folder.stat()) for folder in checkout.parents} == fence.above
        assert fs.open_paths == []

    def test_that_is_missing_is_a_fault(self, place: Path) -> None:
        with pytest.raises(FileError) as caught:
            Fence.around(RealFs(), place / "none")
        assert caught.value.code is FileCode.MISSING


def file(path: Path) -> Path:
    """An empty file at this path, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


class TestFindCheckout:
    def test_is_the_nearest_folder_with_a_repository(self, place: Path) -> None:
        door = file(place / "a" / "b" / "c" / "run.py")
        (place / "a" / ".git").mkdir()
        (place / "a" / "b" / "pyproject.toml").write_text("")
        assert find_checkout(RealFs(), door) == place / "a"
        (place / "a" / "b" / ".git").write_text("gitdir: elsewhere")
        assert find_checkout(RealFs(), door) == place / "a" / "b"

    def test_else_the_nearest_project(self, place: Path) -> None:
        door = file(place / "a" / "b" / "run.py")
        (place / "a" / "pyproject.toml").write_text("")
        assert find_checkout(RealFs(), door) == place / "a"

    def test_else_the_package_itself(self, place: Path) -> None:
        found = find_checkout(RealFs(), file(place / "run.py"))
        assert (found.name, (found / "evidence" / "root.py").is_file()) == ("skill_effectiveness", True)

    def test_of_an_installed_distribution_is_its_package(self, place: Path) -> None:
        door = (
            place
            / "project"
            / ".venv"
            / "lib"
            / "python3.11"
            / "site-packages"
            / "skill_effectiveness"
            / "x.py"
        )
        file(door)
        (place / "project" / ".git").mkdir()
        assert find_checkout(RealFs(), door).name == "skill_effectiveness"

    def test_of_a_package_with_frozen_data_inside_is_that_package(self, place: Path) -> None:
        """E13: it is installed wherever it lies, so its results may lie in the project beside it."""
        package = place / "project" / "vendor" / "skill_effectiveness"
        (package / "frozen").mkdir(parents=True)
        (place / "project" / ".git").mkdir()
        assert find_checkout(RealFs(), file(package / "cli" / "door.py"), package) == package

    def test_goes_through_the_file_operations_it_is_given(self, place: Path) -> None:
        """E13: a folder that cannot be looked into is said and not taken for one without a repository."""
        door = file(place / "run.py")
        fs = FaultFs(RealFs(), Injection("lstat", errno.EACCES, about=lambda path: path.endswith(".git")))
        with pytest.raises(FileError):
            find_checkout(fs, door)

    def test_follows_a_link_to_the_door(self, place: Path) -> None:
        (place / "repo" / ".git").mkdir(parents=True)
        (place / "repo" / "run.py").write_text("")
        (place / "bin").mkdir()
        (place / "bin" / "run").symlink_to(place / "repo" / "run.py")
        assert find_checkout(RealFs(), place / "bin" / "run") == place / "repo"
