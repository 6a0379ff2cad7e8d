"""The plot: a whole, harmless, repeatable SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from skill_effectiveness.cli.plots import Bar, Panel, reviewer_plot

GOOD = Panel(
    "good: pass",
    (
        Bar("known-answer accuracy", 0.9722, 0.82, 1.0, 0.8),
        Bar("order flips", 0.05, 0.01, 0.2),
        Bar("share", 0.5),
    ),
)
BAD = Panel(
    "careless: fail", (Bar("known-answer accuracy", 0.6111, 0.41, 0.78, 0.8), Bar("order flips", 0.7))
)
ALLOWED = {
    "svg", "metadata", "defs", "style", "g", "path", "use", "text", "clipPath", "rect", "tspan",
    "RDF", "Work", "type", "format",
}  # fmt: skip


def drawn(*panels: Panel) -> ET.Element:
    return ET.fromstring(reviewer_plot(panels).decode())  # noqa: S314 - our own


def names(root: ET.Element) -> set[str]:
    return {element.tag.rpartition("}")[2] for element in root.iter()}


def texts(root: ET.Element) -> set[str]:
    return {"".join(element.itertext()) for element in root.iter() if element.tag.endswith("}text")}


def test_well_formed_with_every_heading_label_and_figure() -> None:
    root = drawn(GOOD, BAD)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert {
        "good: pass", "careless: fail", "known-answer accuracy", "order flips", "share",
        "0.972", "0.611", "0.050", "0.700", "0.500",
    } <= texts(root)  # fmt: skip


def heights(root: ET.Element, text: str) -> list[float]:
    """How far down in the picture each occurrence of a text stands."""
    found = []
    for element in root.iter():
        if element.tag.endswith("}text") and "".join(element.itertext()) == text:
            placed = re.search(r"translate\([\d.]+ ([\d.]+)\)", element.get("transform", ""))
            found.append(float(placed[1] if placed else element.get("y", "nan")))
    return found


def test_equal_labels_share_a_row_although_a_panel_lacks_one() -> None:
    """A reviewer without a flip rate must not show its first-seat share under that name."""
    root = drawn(GOOD, Panel("less", (Bar("known-answer accuracy", 0.6, gate=0.8), Bar("share", 0.4))))
    (label,) = heights(root, "share")
    (whole,), (less,) = heights(root, "0.500"), heights(root, "0.400")
    (flips,) = heights(root, "0.050")
    assert whole == less
    assert abs(label - whole) < abs(label - flips)


def test_nothing_runs_and_nothing_is_fetched() -> None:
    """F21: no script, no handler, no address but those of the form itself."""
    source = reviewer_plot([GOOD, BAD]).decode()
    root = drawn(GOOD, BAD)
    assert names(root) <= ALLOWED
    attributes = {name.rpartition("}")[2] for element in root.iter() for name in element.attrib}
    assert [name for name in attributes if name.lower().startswith("on")] == []
    links = [
        value for element in root.iter() for name, value in element.attrib.items() if name.endswith("href")
    ]
    assert [link for link in links if not link.startswith("#")] == []
    assert "@import" not in source
    assert not re.search(r"url\((?!#)", source)


def test_equal_panels_equal_bytes() -> None:
    assert reviewer_plot([GOOD, BAD]) == reviewer_plot([GOOD, BAD])
    assert reviewer_plot([GOOD, BAD]) != reviewer_plot([BAD, GOOD])
    assert not re.search(rb"\d{4}-\d\d-\d\dT", reviewer_plot([GOOD])), "no time of drawing"


def test_no_style_of_the_person_s_own_gets_in() -> None:
    plain = reviewer_plot([GOOD])
    with mpl.rc_context(
        {"lines.linewidth": 9, "axes.facecolor": "red", "font.size": 30, "svg.hashsalt": "x"}
    ):
        assert reviewer_plot([GOOD]) == plain
        assert mpl.rcParams["lines.linewidth"] == 9


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("$\\frac{1}{0}$ & $x$", "$\\frac{1}{0}$ & $x$"),
        ("a\x1b[31m\x00\ufffe", "a\\x1b[31m\\x00\\ufffe"),
        ("\u202eabc\nb", "\\u202eabc\\x0ab"),
    ],
)
def test_a_heading_is_text(given: str, shown: str) -> None:
    """F21: whatever a reviewer is called, the file stays well formed and shows it."""
    root = drawn(Panel(given, (Bar(given, 0.5),)))
    assert shown in texts(root)
    assert names(root) <= ALLOWED


def test_a_gate_colours_what_it_decides() -> None:
    above, below = (Panel("x", (Bar("y", value, gate=0.8),)) for value in (0.8, 0.79))
    assert b"#1a7f5a" in reviewer_plot([above])
    assert b"#b3432b" not in reviewer_plot([above])
    assert b"#b3432b" in reviewer_plot([below])
