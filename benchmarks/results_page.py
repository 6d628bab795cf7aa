"""The results page: every table of docs/results.md, made from the committed result files and nothing else.

    python benchmarks/results_page.py        writes docs/results.md

A figure that is typed in by hand drifts from what was measured; a test compares the page with the files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sections import contests, judging, search

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"

INTRODUCTION = """# Results

Every table below is made by `python benchmarks/results_page.py` from the files in `benchmarks/results/`, which hold the
samples or what was computed from them, the machine, the date and the command; the timings of vector search lie beside
them as `.csv.xz`. Losses stand beside wins. Times are of a shared two-core virtual machine
and are there for scale; what is claimed are ratios from interleaved runs. An interval is of 95% and more, or it says
how sure it is."""

# In the order of the page.
SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "judge-noise.json": judging.noise,
    "judge-noise-user.json": judging.noise,
    "judge-published.json": judging.published,
    "judge-exploits.json": judging.exploits,
    "judge-honest.json": judging.honest,
    "judge-overhead.json": judging.overhead,
    "resume.json": judging.resume,
    "loop-overhead.json": judging.loop_overhead,
    "moves.json": judging.moves,
    "strong-model.json": judging.strong_model,
    "init.json": judging.init,
    "ann-fuzz.json": search.ann_fuzz,
    "ann-recall.json": search.ann_recall,
    "ann-build.json": search.ann_build,
    "ann-filters.json": search.ann_filters,
    "ann-updates.json": search.ann_updates,
    "ann-threads.json": search.ann_threads,
    "ann-scale.json": search.ann_scale,
    "wheel.json": search.wheel,
}


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for file, section in SECTIONS.items():
        path = HERE / "results" / file
        if path.exists():
            parts.append(section(json.loads(path.read_text())))
    source, lists, packages = (ann_runs(part) for part in ("", "-lists", "-packages"))
    parts.append(contests.ann_in_short(source, lists, packages))
    parts += [contests.ann_bench(title, runs) for title, runs in source.items()]
    parts.append(contests.ann_bench_lists(lists))
    parts.append(contests.ann_bench_packages(packages, source, lists))
    return "\n\n".join(parts) + "\n"


def ann_runs(part: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The runs of `outpace bench ann` whose files end so: by title of the track, then by name of the file."""
    tracks = {
        title: sorted((HERE / "results").glob(f"ann-bench-*-{track}{part}.json"))
        for track, title in (("single", "one by one"), ("batch", "in one call"))
    }
    return {
        title: {path.stem: json.loads(path.read_text()) for path in paths} for title, paths in tracks.items() if paths
    }


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
    sys.exit(0)
