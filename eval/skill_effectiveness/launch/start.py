"""The first code of a door: runs isolated, loads `launch` from its source bytes, hands over to it.

Source: bridge.md section 2.

A door compiles this file from its bytes, registers it as the module it is and calls `enter`. The rest of the
room is loaded by `FirstFinder` in the same way: from source bytes, each file read once, `__pycache__` neither
read nor written. Nothing can be compared with the runtime manifest yet, because these files compute it; so
the bytes are kept, and the verifying importer refuses to start over any that the manifest does not have.

Nothing but modules that every interpreter has loaded at its start is imported here; `importlib` is none of
them, the frozen module behind it is.
"""

import _signal  # type: ignore[import-not-found] # what `signal` is made of, without its enumerations
import os
import sys
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

PACKAGE = "skill_effectiveness"
ROOM = f"{PACKAGE}.launch"
OWN_NAME = "launch/start.py"
BRIDGE = "bridge"
"""The door that answers a manifest probe with no more than this room."""


def enter(door: str, door_file: str, source: bytes) -> int:
    """Run a door; the process may be replaced by an isolated one on the way.

    Args:
        door: its name in `doors.DOORS`.
        door_file: its own file.
        source: the bytes this module was made from.

    Returns:
        The exit code of the door's contract. Whatever goes wrong is answered in the door's words.
    """
    # As `bridge.py` does: until a door hears signals itself, SIGINT ends it without a traceback.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    here = os.path.abspath(__file__)  # noqa: PTH100 - pathlib is not loaded yet, and no link is followed
    finder = FirstFinder(here.removesuffix(f"/{OWN_NAME}"), source)
    finder.install()
    from skill_effectiveness.launch.faults import ManifestError  # noqa: PLC0415 - the finder has to be there
    from skill_effectiveness.launch.isolation import isolate  # noqa: PLC0415 - likewise

    try:
        environ = isolate(door_file)
    except ManifestError as refused:
        from skill_effectiveness.launch.entrance import turn_away  # noqa: PLC0415 - needs other modules

        return turn_away(door, refused)
    if door == BRIDGE:
        from skill_effectiveness.launch.bridge_entrance import open_bridge  # noqa: PLC0415 - likewise

        return open_bridge(here.removesuffix(f"/eval/{PACKAGE}/{OWN_NAME}"), environ, finder)
    from skill_effectiveness.launch.entrance import open_door  # noqa: PLC0415 - not before it runs isolated

    return open_door(door, environ, finder)


class FirstFinder:
    """Finds and loads `launch`, and nothing else of the package, from one tree.

    Attributes:
        folder: the package's own folder, absolute.
        sources: the bytes of every file that runs, by name below that folder; this one included.
        modules: what was made from them, by module name.
    """

    def __init__(self, folder: str, source: bytes) -> None:
        """The package's folder, and the bytes that this module was made from."""
        self.folder = folder
        self.sources = {OWN_NAME: source}
        self.modules = {__name__: sys.modules[__name__]}

    def install(self) -> None:
        """Answer first from now on; what the ordinary way loaded of the package is forgotten."""
        for name in [name for name in sys.modules if _below(PACKAGE, name) and name != __name__]:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The spec of a module of `launch`; ModuleNotFoundError for another one of the package."""
        if not _below(PACKAGE, fullname):
            return None
        if fullname != PACKAGE and not _below(ROOM, fullname):
            raise ModuleNotFoundError(f"{fullname} is not part of launch", name=fullname)
        is_package = fullname in {PACKAGE, ROOM}
        place = fullname.removeprefix(PACKAGE).replace(".", "/").lstrip("/")
        relative = f"{place}/__init__.py".lstrip("/") if is_package else f"{place}.py"
        spec = ModuleSpec(fullname, None, origin=f"{self.folder}/{relative}", is_package=is_package)
        spec.loader = self  # type: ignore[assignment] # its abstract class is in a module not loaded yet
        if is_package:
            spec.submodule_search_locations = [f"{self.folder}/{place}".rstrip("/")]
        spec.loader_state = relative
        spec.has_location = True
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run the code made from the one read of its file."""
        spec = vars(module)["__spec__"]
        if spec.loader_state not in self.sources:
            with open(spec.origin, "rb") as file:  # noqa: PTH123 - pathlib is not loaded yet
                self.sources[spec.loader_state] = file.read()
        self.modules[spec.name] = module
        code = compile(self.sources[spec.loader_state], spec.origin, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - what an importer does


def _below(package: str, name: str) -> bool:
    """Whether a dotted name is the package or in it."""
    return name == package or name.startswith(f"{package}.")
