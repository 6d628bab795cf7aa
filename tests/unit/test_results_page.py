"""The published figures are those of the committed result files."""

import importlib.util
import re
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_results_page_is_made_from_the_result_files() -> None:
    spec = importlib.util.spec_from_file_location("results_page", BENCHMARKS / "results_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.page()
    assert (BENCHMARKS.parent / "docs" / "results.md").read_text() == made, "run python benchmarks/results_page.py"


def test_no_result_is_a_partial_one() -> None:
    for path in (BENCHMARKS / "results").glob("*.json"):
        assert '"partial"' not in path.read_text()[:200], f"{path.name} is of an unfinished run"


def test_the_readme_tells_the_figures_of_the_results_page() -> None:
    root = BENCHMARKS.parent
    part = (root / "docs" / "results.md").read_text().split("## Vector search: queries one by one")[1]
    means = re.findall(r"geometric mean (\d\.\d\d) over (\d+) cells of (\d+)", part)[:2]
    readme = re.search(
        r"single queries (\S+) times .*?and (\S+) times with its defaults .geometric means of (\d+)",
        (root / "README.md").read_text(),
        re.DOTALL,
    )
    assert readme is not None
    assert means == [(readme[1], readme[3], readme[3]), (readme[2], readme[3], readme[3])]
