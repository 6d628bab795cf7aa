"""The results pages: every figure of docs/results.md and docs/results/, made from the committed result files alone.

    python benchmarks/results_page.py        writes them all

A figure that is typed in by hand drifts from what was measured; a test compares the pages with the files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sections import contests, judging, search
from sections.headlines import headline
from sections.markdown import machines

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"

Result = dict[str, Any]

INTRODUCTION = """# Results

What was measured, in short; behind each line is a page with all of it. Everything here is made by
`python benchmarks/results_page.py` from the files in [`benchmarks/results/`](../benchmarks/results), which hold the
figures, the machine, the date and the command that makes them again. Losses stand beside wins. All figures are of small
shared machines and are ratios from interleaved runs; a time is there for scale alone."""

# The pages, what they are about, and their sections in order, each of one file.
PAGES: Mapping[str, tuple[str, Mapping[str, Callable[[Result], str]]]] = {
    "judge": (
        "The judge, measured",
        {
            "judge-noise.json": judging.noise,
            "judge-noise-user.json": judging.noise,
            "judge-published.json": judging.published,
            "judge-exploits.json": judging.exploits,
            "judge-honest.json": judging.honest,
            "judge-overhead.json": judging.overhead,
            "init.json": judging.init,
        },
    ),
    "loop": (
        "The loop and the policies, measured",
        {
            "resume.json": judging.resume,
            "loop-overhead.json": judging.loop_overhead,
            "moves.json": judging.moves,
            "strong-model.json": judging.strong_model,
        },
    ),
    "vector-index": (
        "The vector index, measured",
        {
            "ann-recall.json": search.ann_recall,
            "ann-build.json": search.ann_build,
            "ann-filters.json": search.ann_filters,
            "ann-updates.json": search.ann_updates,
            "ann-threads.json": search.ann_threads,
            "ann-scale.json": search.ann_scale,
            "ann-fuzz.json": search.ann_fuzz,
            "wheel.json": search.wheel,
        },
    ),
}
# Which of them have a headline, by the part of the first page.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "The judge": (
        "judge-noise.json",
        "judge-exploits.json",
        "judge-honest.json",
        "judge-overhead.json",
        "init.json",
    ),
    "The loop and the policies": ("resume.json", "loop-overhead.json", "moves.json", "strong-model.json"),
    "The vector index": (
        "ann-recall.json",
        "ann-build.json",
        "ann-filters.json",
        "ann-updates.json",
        "ann-threads.json",
        "ann-scale.json",
        "ann-fuzz.json",
    ),
}
PICTURE = "![Recall against queries per second on mnist](images/ann-bench-mnist-784-euclidean-single.svg)"


def pages() -> dict[str, str]:
    """Every page by its name below docs/."""
    source, lists, packages = (ann_runs(part) for part in ("", "-lists", "-packages"))
    found = {f"results/{name}.md": _page(title, sections) for name, (title, sections) in PAGES.items()}
    for name, title in (("one-by-one", "one by one"), ("one-call", "in one call")):
        found[f"results/search-{name}.md"] = contests.ann_bench(title, source[title])
    found["results/search-lists.md"] = contests.ann_bench_lists(lists)
    found["results/search-packages.md"] = contests.ann_bench_packages(packages, source, lists)
    found = {name: _indented(text) + "\n" for name, text in found.items()}
    parts = [INTRODUCTION]
    for title, files in HEADLINES.items():
        lines = [headline(file, result) for file in files if (result := read(file))]
        parts += [f"## {title}", "\n".join(lines)]
    parts += [contests.ann_in_short(source, lists, packages), PICTURE]
    return {"results.md": "\n\n".join(parts) + "\n"} | found


def read(file: str) -> Result | None:
    """A result, if there is one."""
    path = RESULTS / file
    return json.loads(path.read_text()) if path.exists() else None


def _page(title: str, sections: Mapping[str, Callable[[Result], str]]) -> str:
    told = [(section, result) for file, section in sections.items() if (result := read(file))]
    parts = [f"# {title}", *(section(result) for section, result in told), machines([result for _, result in told])]
    return "\n\n".join(parts)


def _indented(text: str) -> str:
    """The same for a page that lies one folder deeper."""
    return text.replace("](images/", "](../images/").replace("](bench-ann.md", "](../bench-ann.md")


def ann_runs(part: str) -> dict[str, dict[str, Result]]:
    """The runs of `outpace bench ann` whose files end so: by title of the track, then by name of the file."""
    tracks = {
        title: sorted(RESULTS.glob(f"ann-bench-*-{track}{part}.json"))
        for track, title in (("single", "one by one"), ("batch", "in one call"))
    }
    return {
        title: {path.stem: json.loads(path.read_text()) for path in paths} for title, paths in tracks.items() if paths
    }


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    (DOCS / "results").mkdir(exist_ok=True)
    for name, text in pages().items():
        (DOCS / name).write_text(text)
        print(f"wrote docs/{name}")
    sys.exit(0)
