"""The published figures are those of the committed result files."""

import importlib.util
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
