"""Drawing: the rows of a figure become an Altair chart, for the page or for a PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import vl_convert

from outpace.report.figures import FASTER, LABELS, NOT_CONFIRMED, NOT_FASTER, Row, times
from outpace.report.labels import PLACES, places
from outpace.report.scale import speed_scale
from outpace.report.svg import tidy

Chart = alt.LayerChart | alt.FacetChart | alt.VConcatChart

_CALM = {FASTER: "accent", NOT_FASTER: "muted", NOT_CONFIRMED: "muted", "too noisy": "muted"}
# With more trials than this, the intervals of those that never led would only blacken the picture.
_FEW = 60
# Room at the right for the figure that a line or a row ends with.
_END = 56
_SMALL, _LARGE = 28, 60
# Room at the left for the numbers of an axis of speeds; and so many dots of a line have names at most.
_AXIS, _NAMED = 42, 12


@dataclass(frozen=True)
class Look:
    """How wide a picture is, and its colours by role."""

    width: int
    colours: Mapping[str, str]

    @property
    def narrow(self) -> bool:
        """Whether it is for a phone."""
        return self.width < 500

    def __getitem__(self, role: str) -> str:
        return self.colours[role]


# In the page the style sheet colours the roles, so that one picture serves light, dark and print.
_ROLES = ("ink", "muted", "line", "accent", "fail", "band", "paper")
_IN_PAGE = {role: f"var(--{role})" for role in _ROLES}
WIDE, NARROW = Look(736, _IN_PAGE), Look(358, _IN_PAGE)
_PRINTED = ("#1d2327", "#626b73", "#e1e5e7", "#0f6b66", "#b3501f", "#cfe5e2", "#ffffff")
PRINTED = Look(736, dict(zip(_ROLES, _PRINTED, strict=True)))


def as_svg(chart: Chart, look: Look) -> str:
    """The chart as an element for the page."""
    drawn = vl_convert.vegalite_to_svg(_styled(chart, look))
    return tidy(drawn, kind="narrow" if look.narrow else "wide")


def as_png(chart: Chart, look: Look, title: str) -> bytes:
    """The chart as a picture of its own, with its title."""
    heading = {"text": title, "anchor": "start", "fontSize": 16, "color": look["ink"], "offset": 16}
    spec = {**_styled(chart, look), "title": heading, "background": look["paper"], "padding": 20}
    return bytes(vl_convert.vegalite_to_png(spec, scale=2))


# Pictures


def best_so_far(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """The climb: a line of the best proven so far, over all that was timed."""
    axis = SpeedAxis.over([row[key] for row in rows for key in ("ratio", "high")])
    x, y = _trials(last, look), axis.y("ratio")
    best = rows[-1]["best"]
    steps = [{"trial": 0, "best": 1.0}, *rows, {"trial": last, "best": best, "word": times(best)}]
    leaders = [row for row in rows if row["leads"]]
    others = [row for row in rows if not row["leads"]]
    line = _data(steps).mark_line(interpolate="step-after", color=look["accent"], strokeWidth=2, aria=False)
    return alt.layer(
        _rule([{"level": 1.0}], look["muted"], 1, dashed=True, y=axis.y("level")),
        _rule(others if len(rows) <= _FEW else [], look["line"], 2, x=x, y=axis.y("low"), y2="high:Q"),
        line.encode(x=x, y=axis.y("best")),
        _dots(others, x, y, look["muted"], _SMALL),
        _rule(leaders, look["accent"], 1.5, x=x, y=axis.y("low"), y2="high:Q"),
        _dots(leaders, x, y, look["accent"], _LARGE),
        _ends(steps[-1:] if leaders else [], x, axis.y("best"), look),
    ).properties(height=200 if look.narrow else 260)


def verdicts(rows: Sequence[Row], counts: Sequence[Row], last: int, look: Look) -> Chart:
    """One stroke per trial, in the row of its verdict, and the count at the end of each row."""
    y = _names("label", [row["label"] for row in counts], look)
    tones = alt.Scale(domain=list(LABELS), range=[look[_CALM.get(each, "fail")] for each in LABELS])
    colour = alt.Color("label:N", scale=tones, legend=None)
    strokes = _data(rows).mark_tick(thickness=3 if last <= 120 else 1, size=16, opacity=1)
    ends = [{**row, "trial": last, "word": str(row["count"])} for row in counts]
    return alt.layer(
        strokes.encode(x=_trials(last, look), y=y, color=colour, description="text:N"),
        _ends(ends, _trials(last, look), y, look, color=colour),
    ).properties(height=26 * len(counts))


def timings(rows: Sequence[Row], ratio: float, low: float, high: float, look: Look) -> Chart:
    """Each bucket's ratio over the interval that all of them together give."""
    axis = SpeedAxis.over([low, high, *(row["ratio"] for row in rows)], reach_one=False)
    end = max(row["bucket"] for row in rows) + 0.5
    whole = [{"from": 0.5, "to": end, "low": low, "high": high, "ratio": ratio, "word": times(ratio)}]
    band = _data(whole).mark_rect(color=look["band"], opacity=1, aria=False)
    return alt.layer(
        band.encode(x=_buckets(end, look, "from"), x2="to:Q", y=axis.y("low"), y2="high:Q"),
        _rule(whole, look["accent"], 1.5, x=_buckets(end, look, "from"), x2="to:Q", y=axis.y("ratio")),
        _dots(rows, _buckets(end, look), axis.y("ratio"), look["ink"], 36),
        _ends(whole, _buckets(end, look, "to"), axis.y("ratio"), look),
    ).properties(height=150 if look.narrow else 180)


def lineage(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """Parents joined to their children by speed, the winner's line in colour."""
    axis = SpeedAxis.over([row["ratio"] for row in rows])
    x, y = _trials(last, look), axis.y("ratio")
    others = [row for row in rows if not row["winning"]]
    winning = [{**row, "word": str(row["trial"])} for row in rows if row["winning"]]
    height = 190 if look.narrow else 240
    origin = [{"trial": 0, "ratio": 1.0, "text": "the reference"}]
    joined: dict[str, Any] = {
        "x": _trials(last, look, "parent"), "y": axis.y("parent_ratio"), "x2": "trial:Q", "y2": "ratio:Q"
    }  # fmt: skip
    return alt.layer(
        _rule(others, look["line"], 1.5, **joined),
        _rule(winning, look["accent"], 2, **joined),
        _dots(others, x, y, look["muted"], _SMALL),
        _dots(winning, x, y, look["accent"], _LARGE),
        _dots(origin, x, y, look["ink"], _LARGE),
        *_named(winning, [*others, *origin], axis, (x, y), (last, height), look),
    ).properties(height=height)


def _named(
    rows: Sequence[Row], others: Sequence[Row], axis: SpeedAxis, channels: tuple[alt.X, alt.Y], size: tuple[int, int],
    look: Look,
) -> list[alt.Chart]:  # fmt: skip
    """The trials' numbers at their dots, one layer for each way to stand beside one."""
    if not 0 < len(rows) <= _NAMED:
        return []
    last, height = size
    width = look.width - _AXIS - _END

    def at(row: Row) -> tuple[float, float]:
        return row["trial"] / max(last, 1) * width, (1 - axis.share(row["ratio"])) * height

    found = places([row["word"] for row in rows], [at(row) for row in rows], [at(row) for row in others], -4.0)
    layers = []
    for place in PLACES:
        here = [row for row, chosen in zip(rows, found, strict=True) if chosen == place]
        if here:
            layers.append(_words(here, *channels, look["accent"], dx=place.dx, dy=place.dy, align=place.align))
    return layers


def contrast(rows: Sequence[Row], look: Look) -> Chart:
    """For each trial the exemplars it was shown, where it landed, and how far beyond the better of them."""
    speeds = [row[key] for row in rows for key in ("slower", "faster", "ratio")]
    axis = SpeedAxis.over(speeds, reach_one=False)
    told = [
        {**row, "name": f"trial {row['trial']}", "word": _percent(row["gain"]), "tone": _tone(row["gain"]),
         "end": axis.domain[1]}
        for row in rows
    ]  # fmt: skip
    y = _names("name", [row["name"] for row in told], look)
    roles = ["accent", "muted", "fail"]
    tones = alt.Scale(domain=roles, range=[look[role] for role in roles])
    colour = alt.Color("tone:N", scale=tones, legend=None)
    rings = _data(told).mark_point(filled=False, color=look["muted"], size=44, strokeWidth=1.5, aria=False)
    dots = _data(told).mark_point(filled=True, opacity=1, size=70)
    return alt.layer(
        _rule(told, look["line"], 4, y=y, x=axis.x("slower"), x2="faster:Q"),
        rings.encode(y=y, x=axis.x("slower")),
        rings.encode(y=y, x=axis.x("faster")),
        dots.encode(y=y, x=axis.x("ratio"), color=colour, description="text:N"),
        _ends(told, axis.x("end"), y, look, color=colour),
    ).properties(height=26 * len(rows))


def costs(rows: Sequence[Row], last: int, look: Look) -> Chart:
    """What was spent by each trial, one panel for each measure, for their units differ."""
    panels = []
    for name in dict.fromkeys(row["measure"] for row in rows):
        series = [{"trial": 0, "total": 0.0}, *(row for row in rows if row["measure"] == name)]
        y = alt.Y("total:Q", title=None, axis=alt.Axis(tickCount=3, minExtent=34, maxExtent=34))
        x = _trials(last, look)
        end = [{**series[-1], "word": f"{series[-1]['total']:.3g}"}]
        panels.append(
            alt.layer(
                _data(series).mark_area(color=look["band"], opacity=1, aria=False).encode(x=x, y=y),
                _data(series).mark_line(color=look["accent"], strokeWidth=1.5, aria=False).encode(x=x, y=y),
                _ends(end, x, y, look),
            ).properties(width=look.width - 50 - _END, height=90, title=_panel_title(name, look))
        )
    return alt.vconcat(*panels, spacing=18)


def ablation(rows: Sequence[Row], look: Look) -> Chart:
    """How many times faster the winner is for each of its changes."""
    told = [{**row, "name": f"change {row['number']}", "start": 1.0} for row in rows]
    measured = [{**row, "word": times(row["ratio"])} for row in told if row["ratio"] is not None]
    noted = [{**row, "word": row["note"]} for row in told if row["note"]]
    axis = SpeedAxis.over([row[key] for row in measured for key in ("ratio", "low", "high")])
    y = _names("name", [row["name"] for row in told], look)
    return alt.layer(
        _rule([{"start": 1.0}], look["muted"], 1, dashed=True, x=axis.x("start")),
        _rule(measured, look["accent"], 2, y=y, x=axis.x("low"), x2="high:Q"),
        _dots(measured, axis.x("ratio"), y, look["accent"], _LARGE),
        _ends(measured, axis.x("high"), y, look),
        _words(noted, axis.x("start"), y, look["muted"], dx=8),
    ).properties(height=28 * len(rows))


# Axes


@dataclass(frozen=True)
class SpeedAxis:
    """A logarithmic axis of speed-ups."""

    domain: tuple[float, float]
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], *, reach_one: bool = True) -> SpeedAxis:
        """The axis that shows these values, and the reference's too where the picture has it."""
        return cls(*speed_scale([*values, 1.0] if reach_one else values))

    def share(self, ratio: float) -> float:
        """How far up the axis a speed-up stands, from 0 to 1."""
        low, high = (math.log(end) for end in self.domain)
        return min(max((math.log(ratio) - low) / (high - low), 0.0), 1.0)

    def x(self, field: str) -> alt.X:
        """The horizontal channel."""
        return alt.X(f"{field}:Q", title=None, scale=self._scale(), axis=self._axis())

    def y(self, field: str) -> alt.Y:
        """The vertical channel."""
        return alt.Y(f"{field}:Q", title=None, scale=self._scale(), axis=self._axis())

    def _scale(self) -> alt.Scale:
        return alt.Scale(type="log", domain=list(self.domain), nice=False, clamp=True)

    def _axis(self) -> alt.Axis:
        text = "format(datum.value, '~r') + '×'"
        return alt.Axis(values=list(self.ticks), labelExpr=text, labelOverlap=True)


def _trials(last: int, look: Look, field: str = "trial") -> alt.X:
    scale = alt.Scale(domain=[0, max(last, 1)], nice=False)
    return alt.X(f"{field}:Q", title="trial", scale=scale, axis=_whole_numbers(last, look))


def _buckets(end: float, look: Look, field: str = "bucket") -> alt.X:
    scale = alt.Scale(domain=[0.5, end], nice=False)
    return alt.X(f"{field}:Q", title="bucket", scale=scale, axis=_whole_numbers(int(end), look))


def _whole_numbers(last: int, look: Look) -> alt.Axis:
    # Labels of four digits side by side would run into each other on a phone.
    most = 8 if last < 100 or not look.narrow else 4
    # Each number under its place: pushed inwards, the last two would run into each other.
    return alt.Axis(grid=False, tickMinStep=1, format="d", tickCount=min(max(last, 1), most), labelFlush=False)


def _names(field: str, order: Sequence[str], look: Look) -> alt.Y:
    axis = alt.Axis(grid=False, labelPadding=10, labelColor=look["ink"], labelFontSize=13)
    return alt.Y(f"{field}:N", sort=list(order), title=None, axis=axis)


# Marks


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def _dots(rows: Sequence[Row], x: alt.X, y: alt.Y, colour: str, size: int) -> alt.Chart:
    marks: alt.Chart = _data(rows).mark_point(filled=True, opacity=1, size=size, color=colour)
    return _encoded(marks, x=x, y=y, description="text:N")


def _rule(rows: Sequence[Row], colour: str, width: float, *, dashed: bool = False, **channels: Any) -> alt.Chart:
    dash = [3, 3] if dashed else [1, 0]
    marks = _data(rows).mark_rule(color=colour, strokeWidth=width, strokeDash=dash, aria=False)
    return _encoded(marks, **channels)


def _words(
    rows: Sequence[Row], x: alt.X, y: alt.Y, colour: str, *, dx: int = 0, dy: int = 0,
    align: Literal["left", "center", "right"] = "left",
) -> alt.Chart:  # fmt: skip
    marks = _data(rows).mark_text(align=align, dx=dx, dy=dy, color=colour, fontSize=12, aria=False)
    return _encoded(marks, x=x, y=y, text="word:N")


def _ends(rows: Sequence[Row], x: alt.X, y: alt.Y, look: Look, **channels: Any) -> alt.Chart:
    marks = _data(rows).mark_text(align="left", dx=9, color=look["accent"], fontSize=13, fontWeight="bold", aria=False)
    return _encoded(marks, x=x, y=y, text="word:N", **channels)


def _encoded(marks: alt.Chart, **channels: Any) -> alt.Chart:
    chart: alt.Chart = marks.encode(**channels)
    return chart


def _panel_title(text: str, look: Look) -> alt.TitleParams:
    return alt.TitleParams(
        text, anchor="start", frame="group", color=look["muted"], fontSize=12, fontWeight="normal", offset=6
    )


def _percent(gain: float) -> str:
    return f"{(gain - 1) * 100:+.1f}%".replace("-", "−") if gain < 2 else f"{gain:.1f}×"


def _tone(gain: float) -> str:
    return "accent" if gain > 1.01 else "fail" if gain < 0.99 else "muted"


def _styled(chart: Chart, look: Look) -> dict[str, Any]:
    # What is drawn has no need to be checked against Vega's schema, which takes longer than the drawing.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["config"] = {
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": look["muted"], "labelFontSize": 12, "titleColor": look["muted"], "titleFontSize": 12,
            "domain": False, "ticks": False, "gridColor": look["line"], "labelPadding": 7,
            "titleFontWeight": "normal", "titleAnchor": "end", "titlePadding": 6,
        },
    }  # fmt: skip
    spec["background"] = None
    spec["padding"] = {"left": 2, "top": 8, "right": _END, "bottom": 2}
    if "vconcat" not in spec:
        spec["width"] = look.width
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec
