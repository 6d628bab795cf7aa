"""The report in a browser: nothing runs, nothing is fetched, and nothing is wider than a phone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools import Page, chromium

import report_archives as made
from outpace.archive import Archive, RunRecord
from outpace.report import page as report_page
from outpace.report.gallery import pictures


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium is installed")
    with chromium(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def dozen(archive: Archive) -> RunRecord:
    return made.many(archive, 12)


def few(archive: Archive) -> RunRecord:
    return made.many(archive, 40)


@pytest.fixture(params=[made.climbed, made.hostile, few, dozen])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    make: Callable[[Archive], RunRecord] = request.param
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        facts = made.facts(archive, make(archive))
    drawn = {each.name: (each.title, each.caption, each.svg()) for each in pictures(facts)}
    path = tmp_path / "report.html"
    report_page.write(path, report_page.render(facts, drawn))
    return path


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_quiet_fetches_nothing_and_fits(browser: Page, written: Path, width: int) -> None:
    browser.open(written, width=width)
    assert browser.complaints() == []
    assert browser.requests() == [written.as_uri()]
    assert browser.evaluate("document.scripts.length") == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure').length") > 0


def test_one_picture_of_each_pair_is_shown(browser: Page, written: Path) -> None:
    drawn = "[...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 0)"
    seen = f"{drawn}.map(s => s.getAttribute('class'))"
    for width, kind in ((390, "narrow"), (1280, "wide")):
        browser.open(written, width=width)
        shown = browser.evaluate(seen)
        assert set(shown) == {kind}
        assert len(shown) == browser.evaluate("document.querySelectorAll('figure').length")


OVERLAPS = """
[...document.querySelectorAll('svg')].flatMap(svg => {
  const rect = e => e.getBoundingClientRect();
  const dots = [...svg.querySelectorAll('path')].map(rect).filter(
    r => r.width > 3 && r.width < 13 && Math.abs(r.width - r.height) < 2);
  // The box of a text is that of its font; its letters take the middle of it.
  const words = [...svg.querySelectorAll('text')].filter(t => rect(t).width > 0).map(t => {
    const r = rect(t);
    const edge = r.height / 5;
    return {text: t.textContent, left: r.left, right: r.right, top: r.top + edge, bottom: r.bottom - edge};
  });
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return words.flatMap((word, at) => [
    ...dots.filter(dot => meet(word, dot)).map(() => word.text + ' over a dot'),
    ...words.slice(at + 1).filter(other => meet(word, other)).map(other => word.text + ' over ' + other.text)]);
})
"""


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_word_lies_over_a_dot_or_another_word(browser: Page, written: Path, width: int) -> None:
    browser.open(written, width=width)
    assert browser.evaluate(OVERLAPS) == []


def test_pictures_take_their_colours_from_the_scheme(browser: Page, written: Path) -> None:
    colour = "getComputedStyle([...document.querySelectorAll('svg.wide text')].at(-1)).fill"
    browser.open(written, width=1280)
    light = browser.evaluate(colour)
    browser.open(written, width=1280, dark=True)
    assert light.startswith("rgb")
    assert browser.evaluate(colour) != light


def test_a_page_that_does_run_a_script_is_noticed(browser: Page, tmp_path: Path) -> None:
    loud = tmp_path / "loud.html"
    loud.write_text("<img src=http://localhost:9/x.png><script>console.error('here'); nothing()</script>")
    browser.open(loud, width=390)
    assert len(browser.complaints()) >= 2
    assert "http://localhost:9/x.png" in browser.requests()
