"""Drawing: the rows of a figure become an Altair chart, for the page or for a PNG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from outpace.report.figures import FASTER, LABELS, NOT_CONFIRMED, NOT_FASTER, Row, times
from outpace.report.svg import tidy

Chart = alt.Chart | alt.LayerChart | alt.VConcatChart

# Slower than this is drawn at the edge, or one hopeless candidate would flatten all the others.
SLOWEST = 0.2
_CALM = {FASTER: "accent", NOT_FASTER: "muted", NOT_CONFIRMED: "muted", "too noisy": "muted"}
# Above so many trials the intervals of those that never led are left out: they would only blacken the picture.
_FEW = 60


@dataclass(frozen=True)
class Look:
    """How wide a picture is, and its colours by role."""

    width: int
    colours: Mapping[str, str]

    @property
    def narrow(self) -> bool:
        return self.width < 500

    def __getitem__(self, role: str) -> str:
        return self.colours[role]


ROLES = ("ink", "muted", "line", "accent", "fail", "band", "paper")
# In the page the style sheet gives the roles their colours, so that one picture serves light, dark and print.
_IN_PAGE = {role: f"var(--{role})" for role in ROLES}
WIDE, NARROW = Look(736, _IN_PAGE), Look(358, _IN_PAGE)
PRINTED = Look(
    736,
    {
        "ink": "#1d2327", "muted": "#6a737b", "line": "#e3e6e8", "accent": "#0f6b66", "fail": "#b3501f",
        "band": "#cfe5e2", "paper": "#ffffff",
    },
)  # fmt: skip


def as_svg(chart: Chart, look: Look) -> str:
    """The chart as an element for the page."""
    drawn = vl_convert.vegalite_to_svg(_described(chart, look), vl_version="5.20")
    return tidy(drawn, kind="narrow" if look.narrow else "wide")


def as_png(chart: Chart, look: Look, title: str) -> bytes:
    """The chart as a picture of its own, with its title."""
    spec = _described(chart, look)
    spec["title"] = {
        "text": title,
        "anchor": "start",
        "fontSize": 16,
        "fontWeight": 600,
        "color": look["ink"],
        "offset": 14,
    }
    spec["background"] = look["paper"]
    spec["padding"] = 18
    return bytes(vl_convert.vegalite_to_png(spec, vl_version="5.20", scale=2))


def best_so_far(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """The climb: a line of the best proven so far, over all that was timed."""
    axis = speed_axis([row[key] for row in rows for key in ("ratio", "high")])
    steps = [{"trial": 0, "best": 1.0}, *rows, {"trial": last, "best": rows[-1]["best"] if rows else 1.0}]
    leaders = [row for row in rows if row["leads"]]
    others = [row for row in rows if not row["leads"]]
    x, y = _trials(last), axis.y("ratio")
    layers = [_level(1.0, "reference", axis, look)]
    if len(rows) <= _FEW:
        layers.append(_bars(others, x, axis, look["line"], 1.5))
    layers += [
        _data(steps).mark_line(interpolate="step-after", color=look["accent"], strokeWidth=2, aria=False).encode(x=x, y=axis.y("best")),
        _dots(others, x, y, look["muted"], 28),
        _bars(leaders, x, axis, look["accent"], 1.5),
        _dots(leaders, x, y, look["accent"], 60),
    ]  # fmt: skip
    if leaders:
        end = [{"trial": last, "best": leaders[-1]["ratio"], "label": times(leaders[-1]["ratio"])}]
        layers.append(
            _data(end)
            .mark_text(align="left", dx=7, color=look["accent"], fontSize=14, fontWeight=600, aria=False)
            .encode(x=x, y=axis.y("best"), text="label:N")
        )
    return alt.layer(*layers).properties(height=200 if look.narrow else 260, padding={"right": 52})


def verdicts(rows: Sequence[Row], counts: Sequence[Row], last: int, look: Look) -> Chart:
    """One stroke per trial, in the row of its verdict, and the count at the end of each row."""
    order = [row["label"] for row in counts]
    y = alt.Y(
        "label:N", sort=order, title=None, axis=alt.Axis(grid=False, labelPadding=8, labelColor=look["ink"])
    )
    tones = alt.Scale(domain=list(LABELS), range=[look[_CALM.get(each, "fail")] for each in LABELS])
    colour = alt.Color("label:N", scale=tones, legend=None)
    strokes = (
        _data(rows)
        .mark_tick(thickness=3 if last <= 120 else 1, size=16)
        .encode(x=_trials(last), y=y, color=colour, description="text:N")
    )
    labels = [{**row, "trial": last} for row in counts]
    numbers = (
        _data(labels)
        .mark_text(align="left", dx=9, fontSize=13, fontWeight=600, aria=False)
        .encode(x=_trials(last), y=y, text="count:Q", color=colour)
    )
    return alt.layer(strokes, numbers).properties(height=26 * max(len(order), 1), padding={"right": 40})


def timings(rows: Sequence[Row], ratio: float, low: float, high: float, look: Look) -> Chart:
    """Each bucket's ratio over the interval that all of them together give."""
    axis = speed_axis([low, high, *(row["ratio"] for row in rows)], reach_one=False)
    count = max(row["bucket"] for row in rows)
    x = alt.X("bucket:Q", title="bucket (a fresh pair of processes)", scale=alt.Scale(domain=[0.5, count + 0.5], nice=False), axis=alt.Axis(grid=False, tickMinStep=1, format="d"))  # fmt: skip
    band = [{"from": 0.5, "to": count + 0.5, "low": low, "high": high, "ratio": ratio, "label": times(ratio)}]
    across = x.copy()
    across.shorthand = "from:Q"
    whole = _data(band).encode(x=across, x2="to:Q")
    return alt.layer(
        whole.mark_rect(color=look["band"], opacity=1, aria=False).encode(y=axis.y("low"), y2="high:Q"),
        whole.mark_rule(color=look["accent"], strokeWidth=1.5, aria=False).encode(y=axis.y("ratio")),
        _dots(rows, x, axis.y("ratio"), look["ink"], 36),
        _data(band)
        .mark_text(align="left", dx=7, color=look["accent"], fontSize=14, fontWeight=600, aria=False)
        .encode(x=alt.X("to:Q", title=x.title), y=axis.y("ratio"), text="label:N"),
    ).properties(height=150 if look.narrow else 180, padding={"right": 52})


def lineage(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """Parents joined to their children by speed, the winner's line in colour."""
    axis = speed_axis([row["ratio"] for row in rows])
    x, y = _trials(last), axis.y("ratio")
    plain = [row for row in rows if not row["winning"]]
    winning = [row for row in rows if row["winning"]]
    origin = [{"trial": 0, "ratio": 1.0, "label": "reference"}]
    layers = [
        _links(plain, x, axis, look["line"], 1.2),
        _links(winning, x, axis, look["accent"], 2),
        _dots(plain, x, y, look["muted"], 28),
        _dots(winning, x, y, look["accent"], 60),
        _dots(origin, x, y, look["ink"], 50),
        _words(origin, x, y, "label:N", look["muted"], dy=14, align="left"),
    ]
    if len(winning) <= 12:
        named = [{**row, "label": f"{row['trial']}"} for row in winning]
        layers.append(_words(named, x, y, "label:N", look["accent"], dy=-12))
    return alt.layer(*layers).properties(height=190 if look.narrow else 240)


def contrast(rows: Sequence[Row], look: Look) -> Chart:
    """For each trial the exemplars it was shown, where it landed, and how far beyond the better of them."""
    axis = speed_axis([row[key] for row in rows for key in ("slower", "faster", "ratio")], reach_one=False)
    told = [
        {**row, "name": f"trial {row['trial']}", "label": _percent(row["gain"]), "tone": _tone(row["gain"]), "end": axis.domain[1]}
        for row in rows
    ]  # fmt: skip
    y = alt.Y("name:N", sort=[row["name"] for row in told], title=None, axis=alt.Axis(grid=False, labelPadding=8, labelColor=look["ink"]))  # fmt: skip
    roles = ["accent", "muted", "fail"]
    colour = alt.Color(
        "tone:N", scale=alt.Scale(domain=roles, range=[look[role] for role in roles]), legend=None
    )
    base = _data(told).encode(y=y)
    return alt.layer(
        base.mark_rule(color=look["line"], strokeWidth=5, strokeCap="round", aria=False).encode(x=axis.x("slower"), x2="faster:Q"),
        base.mark_point(filled=False, color=look["muted"], size=40, aria=False).encode(x=axis.x("slower")),
        base.mark_point(filled=False, color=look["muted"], size=40, aria=False).encode(x=axis.x("faster")),
        base.mark_point(filled=True, opacity=1, size=64).encode(x=axis.x("ratio"), color=colour, description="text:N"),
        base.mark_text(align="left", dx=10, fontSize=12, aria=False).encode(x=axis.x("end"), text="label:N", color=colour),
    ).properties(height=24 * max(len(rows), 1), padding={"right": 56})  # fmt: skip


def costs(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """What was spent by each trial, one panel for each measure, for their units differ."""
    panels = []
    for name in dict.fromkeys(row["measure"] for row in rows):
        series = [{"trial": 0, "total": 0.0}, *(row for row in rows if row["measure"] == name)]
        y = alt.Y("total:Q", title=None, axis=alt.Axis(tickCount=3, minExtent=34, maxExtent=34))
        line = _data(series).encode(x=_trials(last), y=y)
        end = [{**series[-1], "label": f"{series[-1]['total']:.3g} {name}"}]
        panels.append(
            alt.layer(
                line.mark_area(interpolate="linear", color=look["band"], opacity=1, aria=False),
                line.mark_line(color=look["accent"], strokeWidth=1.5, aria=False),
                _data(end).mark_text(align="right", baseline="bottom", dy=-6, fontSize=12, fontWeight=600, color=look["accent"], aria=False).encode(x=_trials(last), y=y, text="label:N"),
            ).properties(width=look.width - 60, height=90)
        )  # fmt: skip
    return alt.vconcat(*panels, spacing=14)


def ablation(rows: Sequence[Row], look: Look) -> Chart:
    """How many times faster the winner is for each of its changes."""
    told = [{**row, "name": f"change {row['number']}", "start": 1.0} for row in rows]
    measured = [{**row, "label": times(row["ratio"])} for row in told if row["ratio"] is not None]
    axis = speed_axis([row[key] for row in measured for key in ("ratio", "low", "high")])
    y = alt.Y("name:N", sort=[row["name"] for row in told], title=None, axis=alt.Axis(grid=False, labelPadding=8, labelColor=look["ink"]))  # fmt: skip
    bars = _data(measured).encode(y=y)
    return alt.layer(
        _data([{"start": 1.0}]).mark_rule(color=look["muted"], strokeDash=[3, 3], aria=False).encode(x=axis.x("start")),
        bars.mark_rule(color=look["accent"], strokeWidth=2, aria=False).encode(x=axis.x("low"), x2="high:Q"),
        bars.mark_point(filled=True, opacity=1, size=60, color=look["accent"], aria=False).encode(x=axis.x("ratio")),
        bars.mark_text(align="left", dx=8, fontSize=12, fontWeight=600, color=look["accent"], aria=False).encode(x=axis.x("high"), text="label:N"),
        _data([row for row in told if row["note"]])
        .mark_text(align="left", dx=8, fontSize=12, color=look["muted"], aria=False)
        .encode(y=y, x=axis.x("start"), text="note:N"),
    ).properties(height=26 * max(len(rows), 1), padding={"right": 52})  # fmt: skip


# Scales


@dataclass(frozen=True)
class SpeedAxis:
    """A logarithmic scale with ticks that people would choose."""

    domain: tuple[float, float]
    ticks: tuple[float, ...]

    def x(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=None, scale=self._scale(), axis=self._axis())

    def y(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=None, scale=self._scale(), axis=self._axis())

    def _scale(self) -> alt.Scale:
        return alt.Scale(type="log", domain=list(self.domain), nice=False, clamp=True)

    def _axis(self) -> alt.Axis:
        return alt.Axis(
            values=list(self.ticks), labelExpr="format(datum.value, '~r') + '×'", labelOverlap=True
        )


def speed_axis(values: Iterable[float], *, reach_one: bool = True) -> SpeedAxis:
    """A scale over these speed-ups, and over that of the reference where the picture shows it."""
    seen = [max(value, SLOWEST) for value in values if math.isfinite(value) and value > 0]
    low, high = (
        min([*seen, *([1.0] if reach_one or not seen else [])]),
        max([*seen, *([1.0] if reach_one or not seen else [])]),
    )
    # Never nearer than this: noise of a thousandth should look as small as it is.
    room = max(math.log(high / low) * 0.08, 0.015)
    domain = low * math.exp(-room), high * math.exp(room)
    return SpeedAxis(
        domain, tuple(tick for tick in _round_numbers(*domain) if domain[0] <= tick <= domain[1])
    )


def _round_numbers(low: float, high: float) -> list[float]:
    if high / low > 4:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        digits = (1, 2, 5) if high / low < 500 else (1,)
        return [digit * 10.0**decade for decade in decades for digit in digits]
    step = next(
        size * 10.0**power
        for power in range(-4, 6)
        for size in (1, 2, 5)
        if (high - low) / (size * 10.0**power) <= 6
    )
    return [round(step * at, 6) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _trials(last: int) -> alt.X:
    scale = alt.Scale(domain=[0, max(last, 1)], nice=False)
    return alt.X("trial:Q", title="trial", scale=scale, axis=alt.Axis(grid=False, tickMinStep=1, format="d"))


# Marks


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=[dict(row) for row in rows]))


def _dots(rows: Sequence[Row], x: alt.X, y: alt.Y, colour: str, size: int) -> alt.Chart:
    return (
        _data(rows)
        .mark_point(filled=True, opacity=1, size=size, color=colour)
        .encode(x=x, y=y, description="text:N")
    )


def _bars(rows: Sequence[Row], x: alt.X, axis: SpeedAxis, colour: str, width: float) -> alt.Chart:
    return (
        _data(rows)
        .mark_rule(color=colour, strokeWidth=width, aria=False)
        .encode(x=x, y=axis.y("low"), y2="high:Q")
    )


def _links(rows: Sequence[Row], x: alt.X, axis: SpeedAxis, colour: str, width: float) -> alt.Chart:
    start = x.copy()
    start.shorthand = "parent:Q"
    return (
        _data(rows)
        .mark_rule(color=colour, strokeWidth=width, aria=False)
        .encode(x=start, y=axis.y("parent_ratio"), x2="trial:Q", y2="ratio:Q")
    )


def _words(
    rows: Sequence[Row], x: alt.X, y: alt.Y, field: str, colour: str, *, dy: int, align: str = "center"
) -> alt.Chart:
    mark = _data(rows).mark_text(dy=dy, align=align, color=colour, fontSize=12, aria=False)
    return mark.encode(x=x, y=y, text=field)


def _level(value: float, name: str, axis: SpeedAxis, look: Look) -> alt.Chart | alt.LayerChart:
    data = _data([{"level": value, "name": name}])
    return alt.layer(
        data.mark_rule(color=look["muted"], strokeDash=[3, 3], aria=False).encode(y=axis.y("level")),
        data.mark_text(align="left", baseline="top", dx=4, dy=4, color=look["muted"], fontSize=12, aria=False).encode(y=axis.y("level"), x=alt.value(0), text="name:N"),
    )  # fmt: skip


def _percent(gain: float) -> str:
    return f"{(gain - 1) * 100:+.1f}%" if gain < 2 else f"{gain:.1f}×"


def _tone(gain: float) -> str:
    return "accent" if gain > 1.01 else "fail" if gain < 0.99 else "muted"


def _described(chart: Chart, look: Look) -> dict[str, Any]:
    if not isinstance(chart, alt.VConcatChart):
        chart = chart.properties(
            width=look.width, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
        )
    styled = (
        chart.configure(font="sans-serif", background="transparent")
        .configure_view(stroke=None)
        .configure_axis(
            domain=False, ticks=False, gridColor=look["line"], labelColor=look["muted"], labelFontSize=12,
            titleColor=look["muted"], titleFontSize=12, titleFontWeight="normal", titleAnchor="end", labelPadding=6,
        )
    )  # fmt: skip
    # Its own rows need no check against Vega's schema, which takes longer than the drawing.
    spec: dict[str, Any] = styled.to_dict(validate=False)
    return spec
