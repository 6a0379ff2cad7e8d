"""The report as a reader meets it: Chromium, offline, on a telephone's width and on a desk's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.support.browsers import Browser, opened
from tests.support.study_results import full_study, study
from tests.support.study_tables import from_thirds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.browser

WIDTHS = pytest.mark.parametrize("width", [400, 1400])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("browser")) as held:
        yield held


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(full_study(anytime=True).page())
    return path


def visible(browser: Browser, selector: str) -> list[str]:
    return [e.text for e in browser.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()]


@WIDTHS
def test_the_effect_is_read_at_once(browser: Browser, page: Path, width: int) -> None:
    """S55: effect, interval and word stand on the first screen, in type larger than all else."""
    browser.show(page, width)
    driver = browser.driver
    assert driver.find_element(By.ID, "effect").text == "+0.44"
    assert driver.find_element(By.ID, "interval").text == "\N{MINUS SIGN}0.14 to +1.00"
    assert driver.find_element(By.ID, "word").text == "inconclusive"
    for name in ("effect", "interval", "word", "sentence"):
        box = driver.find_element(By.ID, name).rect
        assert box["y"] + box["height"] < 900
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    sizes = browser.run(
        "return [...document.querySelectorAll('body *')].filter(e => !e.childElementCount"
        " && e.textContent.trim()).map(e => [parseFloat(getComputedStyle(e).fontSize), e.id])"
        ".sort((a, b) => b[0] - a[0])[0]"
    )
    assert sizes[1] == "effect"


@WIDTHS
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_runs_over_the_edge(browser: Browser, page: Path, width: int, scheme: str) -> None:
    """S55: no sideways scrolling of the page, in both colour schemes, with the hostile pair open."""
    browser.show(page, width, scheme=scheme)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    ground = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(int(n) for n in ground[4:-1].split(",")) > 384) is (scheme == "light")


@WIDTHS
def test_a_pair_opens(browser: Browser, page: Path, width: int) -> None:
    """S55: by keyboard; side by side on a desk, one below the other on a telephone."""
    browser.show(page, width)
    pair = browser.driver.find_elements(By.CSS_SELECTOR, "details.pair")[0]
    assert visible(browser, "details.pair pre") == []
    pair.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    full, off = pair.find_elements(By.TAG_NAME, "pre")
    assert full.text.startswith("diff --git a/app.py b/app.py")
    assert "pass" in off.text
    assert (full.rect["y"] == off.rect["y"]) is (width == 1400)


@WIDTHS
def test_filter_by_task(browser: Browser, page: Path, width: int) -> None:
    """S55: task, preference and text; the count is told to who cannot see it."""
    browser.show(page, width)
    driver = browser.driver
    Select(driver.find_element(By.ID, "filter-task")).select_by_visible_text("fix-03")
    assert [text.split("\n")[0] for text in visible(browser, "#task-table tbody th")] == ["fix-03"]
    assert [name.split(",")[0] for name in visible(browser, ".pair-name")] == ["fix-03"] * 3
    count = driver.find_element(By.ID, "filter-count")
    assert (count.text, count.get_attribute("aria-live")) == ("1 of 12 tasks, 3 of 34 pairs", "polite")
    Select(driver.find_element(By.ID, "filter-preference")).select_by_value("loss")
    assert len(visible(browser, ".pair-name")) == 1
    Select(driver.find_element(By.ID, "filter-task")).select_by_value("")
    Select(driver.find_element(By.ID, "filter-preference")).select_by_value("")
    driver.find_element(By.ID, "filter-text").send_keys("gnihton")
    assert visible(browser, ".pair-name") == ["fix-01, sample 2"]
    driver.find_element(By.ID, "filter-text").send_keys(Keys.ENTER)
    assert driver.current_url == page.as_uri()


@WIDTHS
def test_without_script(browser: Browser, page: Path, width: int) -> None:
    """S55: everything is there and pairs open; only the filters are not offered."""
    browser.show(page, width, script=False)
    assert visible(browser, "#filters") == []
    assert len(visible(browser, ".pair-name")) == 34
    pair = browser.driver.find_elements(By.CSS_SELECTOR, "details.pair")[0]
    pair.find_element(By.TAG_NAME, "summary").click()
    assert pair.find_elements(By.TAG_NAME, "pre")[0].is_displayed()


@WIDTHS
def test_hostile_text_is_inert(browser: Browser, page: Path, width: int) -> None:
    """S56 F21: shown as written, run nowhere, asked for nowhere, in one element and in no table."""
    browser.show(page, width)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.driver.title == "style-guide: inconclusive"
    shown = next(text for text in visible(browser, "details.pair pre") if "gnihton" in text)
    assert "<script>document.title='owned'</script>" in shown
    assert "⟨U+001B⟩[31mPASSED" in shown
    assert "]]> <![CDATA[ {{ 7*7 }}" in shown
    assert browser.run("return document.querySelectorAll('img, iframe, object, link, form').length") == 1
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.run("return getComputedStyle(document.body).display") == "block"
    assert not [text for text in visible(browser, "td, th, dd") if "owned" in text]


@WIDTHS
def test_no_request_leaves(browser: Browser, page: Path, width: int) -> None:
    """S55: the file is all that is asked for, and nothing had to be refused."""
    browser.show(page, width)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.asked() == [(page.as_uri(), None)]
    assert browser.complaints() == []


def test_an_injected_script_would_not_run(browser: Browser, page: Path) -> None:
    """S56: even past the escaping, the page's policy runs none but its own."""
    browser.show(page, 1400)
    browser.run(
        "const s = document.createElement('script'); s.textContent = \"document.title='owned'\";"
        "document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x'; document.body.append(i);"
    )
    assert browser.driver.title == "style-guide: inconclusive"
    assert [url for url, blocked in browser.asked() if not blocked] == [page.as_uri()]
    assert ("http://127.0.0.1:9/x", "csp") in browser.asked()
    assert any("Content Security Policy" in said for said in browser.complaints())


@WIDTHS
def test_a_study_without_reviewers(browser: Browser, tmp_path: Path, width: int) -> None:
    """S55: the smallest report is whole too."""
    path = tmp_path / "small.html"
    path.write_bytes(study(from_thirds((1, 0, 2, 1, -1, 3, 1, 1))).page())
    browser.show(path, width)
    assert browser.driver.find_element(By.ID, "effect").text == "+0.33"
    assert browser.complaints() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_it_prints(browser: Browser, page: Path) -> None:
    """S55: closed pairs are opened on paper, and filters left out."""
    browser.show(page, 1400)
    data = browser.command("Page.printToPDF", printBackground=True)["data"]
    assert len(data) > 50_000
    browser.command("Emulation.setEmulatedMedia", media="print")
    assert visible(browser, "#filters") == []
    heights = browser.run(
        "return [...document.querySelectorAll('details.pair pre')].map(e => e.offsetHeight)"
    )
    assert len(heights) >= 34
    assert min(heights) > 0
