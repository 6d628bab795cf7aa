"""The published figures are those of the committed result files."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import results_page
from sections.contests import ann_in_short, lowest, screened
from sections.judging import exploits
from sections.markdown import between

BENCHMARKS = Path(sys.path.pop(0))  # its other modules have plain names, and no test may pick one up by chance


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return results_page.pages()


def test_the_results_pages_are_made_from_the_result_files(pages: dict[str, str]) -> None:
    docs = BENCHMARKS.parent / "docs"
    assert {str(path.relative_to(docs)) for path in docs.glob("results/*.md")} | {"results.md"} == pages.keys()
    for name, made in pages.items():
        assert (docs / name).read_text() == made, f"{name}: run python benchmarks/results_page.py"


def test_every_result_has_a_section() -> None:
    known = {file for _, sections in results_page.PAGES.values() for file in sections}
    measured = {path.name for path in (BENCHMARKS / "results").glob("*.json")}
    others = {name for name in measured if name.startswith(("ann-bench-", "moves-table-"))}
    assert measured - others == known


def test_the_first_page_is_one_that_is_read(pages: dict[str, str]) -> None:
    assert len(pages["results.md"].split()) < 1200


def test_no_link_of_the_documents_leads_nowhere() -> None:
    root = BENCHMARKS.parent
    for page in [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/**/*.md"), *root.glob("tests/**/*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = link.partition("#")
            if path.startswith(("http", "mailto")):
                continue
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name} leads to {link}"
            if anchor and target.suffix == ".md":
                heads = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, link


def test_a_table_begins_a_paragraph_or_no_renderer_shows_it(pages: dict[str, str]) -> None:
    lines = "\n".join(pages.values()).split("\n")
    heads = [number for number, line in enumerate(lines) if re.fullmatch(r"\|(---\|)+", line)]
    assert len(heads) > 50
    for number in heads:
        assert lines[number - 1].startswith("| "), lines[number - 1][:80]
        assert lines[number - 2] == "", lines[number - 2][:80]


def _attacked(**again: int) -> dict[str, Any]:
    row = {"exploit": "zeros", "jail": "fallback", "found": "caught", "twin": "ok", "left": []}
    facts = {"cpu": "a", "cores": 2, "kernel": "6", "compiler": "cc", "python": "3"}
    return {"machine": facts, "command": "c", "date": "d", "rows": [row | again, row | again]}


def test_the_page_says_how_often_noise_had_cheats_and_twins_timed_again() -> None:
    assert "2 more timings of honest twins, and 4 of cheats" in exploits(_attacked(twin_again=1, cheat_again=2))
    assert "how often was not counted in this run" in exploits(_attacked())


def test_no_result_is_a_partial_one() -> None:
    for path in (BENCHMARKS / "results").glob("*.json"):
        assert '"partial"' not in path.read_text()[:200], f"{path.name} is of an unfinished run"


def test_the_figures_of_the_readme_are_those_of_the_results_page() -> None:
    root = BENCHMARKS.parent
    table = (root / "README.md").read_text().split("## What was measured")[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.split("\n") if line.startswith("| ") and "question" not in line]
    assert len(rows) >= 6
    results = (root / "docs" / "results.md").read_text()
    for _, question, answer, *_ in rows:
        found = re.findall(r"\d+(?:\.\d+)?", answer)
        for figure in found:
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d]|\.\d)", results), f"{question}: {figure}"
        # What an earlier judge found is called so as long as the results page does.
        of_it = [line for line in results.split("\n") if line.startswith("- ") and all(each in line for each in found)]
        if of_it:
            assert ("\\*" in answer) == all("(By an earlier judge.)" in line for line in of_it), question
    short = results.split("## Vector search: in short")[1]
    lowest = next(line for line in short.split("\n") if line.startswith("| all of these"))
    ratio, cells = re.findall(r"(\d+\.\d+) times as fast, (\d+ of \d+) contests", table)[0]
    assert f"{ratio} ({cells})" in lowest.split("|")[3]


def test_the_table_in_short_takes_the_lowest_of_all_contests() -> None:
    def run(peer: str, ratios: dict[str, str], *ours: str) -> dict[str, Any]:
        cells = [
            {"ours": own, "data": "tiny", "recall": recall, "ratio": ratio, "low": ratio, "high": ratio}
            for own in ours
            for recall, ratio in ratios.items()
        ]
        return {"ratios": cells, "screening": [{"peer": peer}, {"peer": "outpace-defaults"}]}

    source = {"one by one": {"a": run("glass", {"0.9": "2", "0.99": "8", "0.85-0.95": "9"}, "outpace")}}
    lists = {"one by one": {"b": run("scann", {"0.9": "4.5", "0.99": ""}, "outpace-defaults")}}
    packages = {"one by one": {"c": run("svs", {"0.9": "0.5", "0.99": "9"}, "outpace-defaults")}}
    told = [line.split(" | ") for line in ann_in_short(source, lists, packages).split("\n")[-4:]]
    assert [line[2] for line in told] == ["4.00 (2 of 2)", "", "", "2.00 (1 of 2)"]
    assert [line[3].rstrip(" |") for line in told] == ["", "4.50 (1 of 1)", "2.12 (1 of 2)", "2.12 (1 of 2)"]
    assert told[2][0] == "| up to 1 libraries from PyPI"


def test_the_screening_is_told_as_our_speed_over_each_librarys() -> None:
    def row(peer: str, recall: str, qps: str, final: str, entered: str = "1") -> dict[str, str]:
        return {"peer": peer, "recall": recall, "qps": qps, "final": final, "configurations": entered}

    run: dict[str, Any] = {
        "contests": [{"data": "tiny"}],
        "screening": [
            row("outpace-defaults", "0.9", "600", "yes"),
            row("outpace-defaults", "0.99", "", "yes"),
            row("far", "0.9", "100", "no"),
            row("far", "0.99", "", "no"),
            row("near", "0.9", "", "yes"),
            row("near", "0.99", "50", "yes"),
        ],
    }
    assert screened({"run": run}) == {
        "tiny": [
            {"library": "far", "0.9": "6.00", "0.99": "neither reaches it"},
            {"library": "**near**", "0.9": "not reached", "0.99": "ours does not reach it"},
        ]
    }
    run["screening"].append(row("tuned", "0.9", "900", "no", "2"))
    with pytest.raises(ValueError, match="run: tuned was screened with 2 configurations"):
        screened({"run": run})
    with pytest.raises(ValueError, match="outpace-defaults was not screened"):
        screened({"run": {"screening": []}})


def test_of_two_runs_the_cell_counts_where_ours_is_least_ahead() -> None:
    def cell(data: str, ratio: str, low: str, high: str) -> dict[str, str]:
        return {"data": data, "recall": "0.9", "ratio": ratio, "low": low, "high": high}

    source = [cell("a", "2.0", "1.5", "2.5"), cell("b", "8.0", "0.9", "9.0"), cell("c", "", "", "")]
    packages = [cell("a", "4.0", "1.1", "6.0"), cell("b", "0.5", "1.2", "0.7")]
    assert lowest(source, packages) == "1.00 over 2 cells, with the whole interval at or above 1 in 1 and below 1 in 1"


def test_an_interval_of_few_rounds_says_how_sure_it_is() -> None:
    found = {"middle": 2.0, "low": 1.5, "high": 2.5}
    assert between(found | {"sure": 0.97}) == "2 (1.5 to 2.5)"
    assert between(found | {"sure": 0.5}) == "2 (1.5 to 2.5, 50% sure)"
    assert between(found | {"sure": 0.0}) == "2", "one measurement has no interval"
    assert between(None) == "not reached"
