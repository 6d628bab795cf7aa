"""Pictures: recall against queries per second, one curve for each library."""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from outpace.bench.ann.peers.outpace_ import DEFAULTS, OURS
from outpace.bench.ann.summary import Contest

_INK, _MUTED, _LINE, _PAPER, _OURS = "#1d2327", "#626b73", "#e1e5e7", "#ffffff", "#0f6b66"
# Told apart by hue and, in print, by the names at the ends of the lines.
_HUES = (
    "#b3501f", "#3b6ea8", "#8a6fb0", "#b8860b", "#5d8a3a", "#a83b5e", "#4f8c93", "#7a5c45",
    "#666666", "#c27ba0", "#2f4b7c", "#9c8f2e", "#d1495b", "#6c757d", "#00798c",
)  # fmt: skip
# Below this recall nobody chooses a setting, and the curves would be pressed into the corner.
_LEAST = 0.8


def svg(contest: Contest) -> str:
    """The picture as an element for the page."""
    return str(vl_convert.vegalite_to_svg(_spec(contest)))


def png(contest: Contest) -> bytes:
    """The picture as a file."""
    return bytes(vl_convert.vegalite_to_png(_spec(contest), scale=2))


def _spec(contest: Contest) -> dict[str, Any]:
    rows = [
        # The distance from perfect recall, so that .99 and .999 are as far apart as .9 and .99.
        {"peer": peer, "miss": max(1 - point.recall, 1e-4), "recall": point.recall, "qps": point.qps}
        for peer, points in contest.fronts.items()
        for point in points
        if point.recall >= _LEAST
    ]
    peers = list(contest.fronts)
    others = [peer for peer in peers if peer not in (OURS, DEFAULTS)]
    tones = {peer: _HUES[at % len(_HUES)] for at, peer in enumerate(others)} | {OURS: _OURS, DEFAULTS: "#66aaa5"}
    colour = alt.Color(
        "peer:N", scale=alt.Scale(domain=peers, range=[tones[peer] for peer in peers]), legend=alt.Legend(title=None)
    )
    x = alt.X(
        "miss:Q",
        scale=alt.Scale(type="log", reverse=True, domain=[1e-4, 1 - _LEAST]),
        axis=alt.Axis(
            title="recall@10", values=[0.2, 0.1, 0.05, 0.01, 0.001, 0.0001], labelExpr="format(1 - datum.value, '~f')"
        ),
    )
    y = alt.Y("qps:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(title="queries per second", format="~s"))
    base = alt.Chart(alt.InlineData(rows)).encode(x=x, y=y, color=colour)
    chart = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=24, opacity=1))
    title = f"{contest.data}, {contest.track} queries, {contest.stage} stage"
    heading = {"text": title, "anchor": "start", "fontSize": 16, "color": _INK, "offset": 12}
    styled = chart.properties(width=640, height=420).configure_axis(
        gridColor=_LINE, labelColor=_MUTED, titleColor=_MUTED, domainColor=_LINE, tickColor=_LINE
    )
    return {**styled.to_dict(), "title": heading, "background": _PAPER, "padding": 16}
