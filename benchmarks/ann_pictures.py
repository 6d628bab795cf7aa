"""Pictures for the guide to the index, drawn from the committed result files.

    python benchmarks/ann_pictures.py        docs/images/ann-memory.svg, ann-filters.svg, ann-updates.svg

A picture is drawn where its result file is there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

ROOT = Path(__file__).resolve().parents[1]
TONES = {
    "outpace": "#0f6b66",
    "outpace-compact": "#66aaa5",
    "hnswlib": "#b3501f",
    "hnswlib-fetch": "#dd8f66",
    "usearch": "#3b6ea8",
    "faiss-hnsw": "#8a6fb0",
    "faiss-ivf": "#b8860b",
    "exact": "#7a7f85",
}
LINE, MUTED = "#e1e5e7", "#626b73"
LEVEL = "0.9"


def memory(result: dict[str, Any]) -> str:
    """Bytes of a vector by library, one panel for each data set, beside those of the float32 vector alone."""
    rows = [
        {"data": _short(name), "library": library, "times": each["times_vectors"]}
        for name, data in result["sets"].items()
        for library, each in data["libraries"].items()
    ]
    bars = (
        alt.Chart(alt.InlineData(rows))
        .mark_bar()
        .encode(
            y=alt.Y("library:N", sort=_order(rows), axis=alt.Axis(title=None, domain=False, ticks=False)),
            x=alt.X("times:Q", axis=alt.Axis(title="memory, times the float32 vectors")),
            color=_tones(rows, legend=False),
        )
    )
    return _svg(bars.properties(width=260, height=70), rows, "Memory of an index, measured")


def filters(result: dict[str, Any]) -> str:
    """Queries per second against what a random filter lets through, one panel for each data set."""
    rows = [
        {"data": _short(name), "library": library, "share": case["share"], "qps": speed["middle"]}
        for name, data in result["sets"].items()
        for case in data["cases"]
        if case["filter"] == "random"
        for library, speed in case["levels"][LEVEL]["qps"].items()
        if speed is not None
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X(
            "share:Q",
            scale=alt.Scale(type="log", reverse=True),
            axis=alt.Axis(
                title="share of the vectors that the filter allows", format="~%", values=[0.001, 0.01, 0.1, 0.5]
            ),
        ),
        y=alt.Y("qps:Q", scale=alt.Scale(type="log"), axis=alt.Axis(title="queries per second", format="~s")),
        color=_tones(rows, legend=True),
    )
    lines = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=40, opacity=1))
    return _svg(lines.properties(width=320, height=220), rows, f"Search with a random filter, at recall {LEVEL}")


def updates(result: dict[str, Any]) -> str:
    """Microseconds for a vector that comes or goes, by library and kind of change, one panel for each data set."""
    rows = [
        {"data": _short(name), "library": library, "change": change, "us": cost["middle"]}
        for name, data in result["sets"].items()
        for library, each in data["libraries"].items()
        for change, cost in each["microseconds"].items()
        if change.startswith(("add by", "remove by"))
    ]
    points = (
        alt.Chart(alt.InlineData(rows))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            y=alt.Y("change:N", sort=None, axis=alt.Axis(title=None, grid=True, domain=False, ticks=False)),
            x=alt.X(
                "us:Q",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(
                    title="microseconds per vector",
                    format=",~f",
                    values=[10**p for p in range(-1, 6)],
                    labelOverlap="greedy",
                    labelSeparation=6,
                ),
            ),
            color=_tones(rows, legend=True),
        )
    )
    return _svg(
        points.properties(width=320, height=170), rows, "Adding and removing, one thread, in batches of 1 and more"
    )


PICTURES: dict[str, Callable[[dict[str, Any]], str]] = {
    "ann-build.json ann-memory.svg": memory,
    "ann-filters.json ann-filters.svg": filters,
    "ann-updates.json ann-updates.svg": updates,
}


def _short(data: str) -> str:
    return data.split("-")[0]


def _order(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [library for library in TONES if any(row["library"] == library for row in rows)]


def _tones(rows: Sequence[dict[str, Any]], *, legend: bool) -> alt.Color:
    order = _order(rows)
    scale = alt.Scale(domain=order, range=[TONES[library] for library in order])
    return alt.Color("library:N", scale=scale, legend=alt.Legend(title=None) if legend else None)


def _svg(chart: Any, rows: Sequence[dict[str, Any]], title: str) -> str:
    names = list(dict.fromkeys(row["data"] for row in rows))
    faceted = chart.facet(facet=alt.Facet("data:N", sort=names, title=None), columns=2)
    styled = faceted.configure_axis(
        gridColor=LINE, domainColor=LINE, tickColor=LINE, labelColor=MUTED, titleColor=MUTED, titleFontWeight=400
    )
    heading = {"text": title, "anchor": "start", "fontSize": 15, "offset": 8}
    return str(
        vl_convert.vegalite_to_svg({**styled.to_dict(), "title": heading, "background": "#ffffff", "padding": 12})
    )


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for names, draw in PICTURES.items():
        source, target = names.split()
        path = ROOT / "benchmarks" / "results" / source
        if path.exists():
            (ROOT / "docs" / "images" / target).write_text(draw(json.loads(path.read_text())))
            print(f"wrote docs/images/{target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
