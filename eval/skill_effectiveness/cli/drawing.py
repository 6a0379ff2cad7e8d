"""Drawing with matplotlib as it was delivered, whatever a person has configured for plots of their own.

On import matplotlib reads the first configuration file that it finds: in the working folder before all
others, then where MATPLOTLIBRC and MPLCONFIGDIR lead, then below HOME; and it takes its backend from
MPLBACKEND. Any of these changes what is drawn, and one that is a FIFO is waited for. It also looks for fonts
below HOME and XDG_DATA_HOME, by a program that it finds on PATH. So it is loaded, and used, with private
folders in the place of all of them and with an environment that holds nothing else.
"""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.execution import SessionFolders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.figure import Figure

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings


def drawn_svg(draw: Callable[[type[Figure]], Figure], around: Surroundings) -> bytes:
    """The SVG of one figure.

    Args:
        draw: makes the figure, by the class that it is handed.
        around: where the private folders are made.

    Raises:
        EvidenceError: the private folders could not be made, or not removed.
    """
    with SessionFolders(around) as session, _nothing_of_the_person(session, around.fs):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, most commands draw nothing, and see above
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - likewise
        from matplotlib.figure import Figure  # noqa: PLC0415 - likewise

        with mpl.rc_context():
            # Somebody may have loaded it before us.
            mpl.rcdefaults()
            # Ids within the file are drawn from this, not from the clock.
            mpl.rcParams["svg.hashsalt"] = "skill-effectiveness"
            # Text stays text, for searching and for screen readers.
            mpl.rcParams["svg.fonttype"] = "none"
            # A heading with two dollar signs is no formula.
            mpl.rcParams["text.parse_math"] = False
            figure = draw(Figure)
            FigureCanvasSVG(figure)
            target = io.BytesIO()
            figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
            return target.getvalue()


@contextmanager
def _nothing_of_the_person(session: SessionFolders, fs: FileSystem) -> Iterator[None]:
    """Within it, this process has the private folders alone: as its environment and its working folder."""
    mine = {
        "HOME": str(session.home),
        "MPLCONFIGDIR": str(session.config),
        "TMPDIR": str(session.tmp),
        # Empty: no program is found.
        "PATH": str(session.data),
    }
    # By descriptor: the working folder may have been removed meanwhile, or lie where no path leads any more.
    with closing(fs, fs.open_dir(None, os.curdir, search=True)) as former, _environment(mine):
        os.chdir(session.work)
        try:
            yield
        finally:
            os.fchdir(former)


@contextmanager
def _environment(given: dict[str, str]) -> Iterator[None]:
    """Within it, this is the whole environment of the process, which libraries read as they like."""
    former = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(given)
        yield
    finally:
        os.environ.clear()
        os.environ.update(former)
