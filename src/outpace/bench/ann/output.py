"""Output: the summary as CSV, Markdown, pictures and one page that needs nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from outpace.bench.ann.builds import slug
from outpace.bench.ann.curve import Cell, Interval
from outpace.bench.ann.peers.outpace_ import DEFAULTS, OURS
from outpace.bench.ann.sampling import CONFIDENCE
from outpace.bench.ann.summary import Contest, IndexLine, Speed, Summary
from outpace.report.page import write
from outpace.report.svg import tidy

Table = tuple[Sequence[str], list[list[str]]]

LEFT = "Screened and not timed again, with ours for comparison. One pass over queries of the first half, per second:"


def publish(summary: Summary, out: Path, command: str) -> list[Path]:
    """Write everything; the paths that were written."""
    files: dict[Path, str | bytes] = {
        out / "levels.csv": _csv(levels(summary)),
        out / "points.csv": _csv(points(summary)),
        out / "ratios.csv": _csv(ratios(summary)),
        out / "screening.csv": _csv(screening(summary)),
        out / "indexes.csv": _csv(indexes(summary)),
        out / "results.md": markdown(summary, command),
        out / "results.json": json.dumps(record(summary, command), indent=1) + "\n",
    }
    drawn = {}
    try:
        from outpace.bench.ann import picture
    except ImportError:
        pass  # the page says so
    else:
        for contest in summary.contests:
            drawing = picture.svg(contest)
            files[out / f"{_name(contest)}.svg"] = drawing
            files[out / f"{_name(contest)}.png"] = picture.png(contest)
            drawn[_name(contest)] = tidy(drawing, kind="wide")
    files[out / "index.html"] = page(summary, command, drawn)
    for path, content in files.items():
        write(path, content)
    return list(files)


def _name(contest: Contest) -> str:
    return slug(f"{contest.data}-{contest.track}")


# Tables


def levels(summary: Summary) -> Table:
    """The speed of every library at every level."""
    head = ("data", "track", "stage", "queries", "rounds", "peer", "recall", "qps", "low", "high", "confidence")
    rows = [
        [
            *_where(contest),
            peer,
            speed.figure,
            _number(speed.qps),
            *(["", "", ""] if speed.spread is None else _ends(speed.spread)),
        ]
        for contest in summary.contests
        for peer, speeds in contest.speeds.items()
        for speed in speeds
    ]
    return head, rows


def points(summary: Summary) -> Table:
    """The settings worth using of every library."""
    head = ("data", "track", "stage", "queries", "rounds", "peer", "effort", "recall", "qps")
    rows = [
        [*_where(contest), peer, f"{point.effort:g}", f"{point.recall:.5f}", _number(point.qps)]
        for contest in summary.contests
        for peer, front in contest.fronts.items()
        for point in front
    ]
    return head, rows


def ratios(summary: Summary) -> Table:
    """Ours against the best peer, cell by cell."""
    head = (
        "data", "track", "stage", "queries", "rounds", "ours", "recall", "best_peer", "peer_qps", "our_qps", "ratio",
        "low", "high", "confidence", "verdict",
    )  # fmt: skip
    rows = []
    for contest in summary.contests:
        for own, cells in contest.cells.items():
            for cell in cells:
                spread = ["", "", "", ""] if cell.ratio is None else [f"{cell.ratio.middle:.4f}", *_ends(cell.ratio, 4)]
                speeds = [_number(cell.peer), _number(cell.ours)]
                rows.append([*_where(contest), own, cell.name, cell.best_peer or "", *speeds, *spread, cell.verdict])
    return head, rows


def screening(summary: Summary) -> Table:
    """What every library did in the screening, and whether it was timed again in the final stage."""
    head = ("data", "track", "queries", "peer", "configurations", "recall", "qps", "final")
    rows = [
        [
            contest.data,
            contest.track,
            f"{found.begin}-{found.end}",
            peer,
            str(found.configurations),
            speed.figure,
            _number(speed.qps),
            "yes" if found.final else "no",
        ]
        for contest in summary.contests
        for peer, found in contest.screened.items()
        for speed in found.speeds
    ]
    return head, rows


def indexes(summary: Summary) -> Table:
    """What every index cost to build and to hold."""
    head = (
        "data", "peer", "version", "configuration", "status", "build_seconds", "threads", "budget_seconds",
        "build_peak_mb", "memory_mb", "file_mb", "load_seconds", "reason",
    )  # fmt: skip
    return head, [_index(line) for line in summary.indexes]


def _index(line: IndexLine) -> list[str]:
    row = line.row
    built = row.status == "built"
    return [
        row.data,
        row.peer,
        row.version,
        row.configuration,
        row.status,
        f"{row.seconds:.1f}" if built else "",
        str(row.threads),
        f"{row.budget:g}",
        _megabytes(row.peak_bytes) if built else "",
        "" if line.memory_bytes is None else _megabytes(line.memory_bytes),
        _megabytes(row.stored_bytes) if built else "",
        "" if line.load_seconds is None else f"{line.load_seconds:.2f}",
        row.reason,
    ]


def _where(contest: Contest) -> list[str]:
    return [
        contest.data,
        contest.track,
        contest.stage,
        f"{contest.begin}-{contest.end}",
        str(contest.rounds),
    ]


def _ends(spread: Interval, digits: int = 1) -> list[str]:
    return [f"{spread.low:.{digits}f}", f"{spread.high:.{digits}f}", f"{spread.sure:.3f}"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.3f}" if count < 1e7 else f"{count / 1e6:.0f}"


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table[0])
    writer.writerows(table[1])
    return text.getvalue()


def record(summary: Summary, command: str) -> dict[str, Any]:
    """Everything that is published, with what made it, for programs."""
    return {
        "command": command,
        "machines": [msgspec.to_builtins(each) for each in summary.machines],
        "contests": [
            {
                "data": each.data,
                "track": each.track,
                "stage": each.stage,
                "rounds": each.rounds,
                "sampled": each.sampled,
                "method": method(each),
                "calls": each.calls,
            }
            for each in summary.contests
        ],
        "levels": _records(levels(summary)),
        "ratios": _records(ratios(summary)),
        "screening": _records(screening(summary)),
        "points": _records(points(summary)),
        "indexes": _records(indexes(summary)),
        "failures": _records(failure_table(summary)),
    }


def _records(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table[0], row, strict=True)) for row in table[1]]


# What people read


def speed_table(contest: Contest) -> Table:
    """Libraries down, levels across; the fastest first."""
    return _speeds(contest.speeds)


def left_table(contest: Contest) -> Table:
    """The screening of the libraries that were not timed again, beside ours."""
    left = {peer for peer, each in contest.screened.items() if contest.stage == "final" and not each.final}
    told = {
        peer: each.speeds
        for peer, each in contest.screened.items()
        if left and (peer in left or peer in (OURS, DEFAULTS))
    }
    head, rows = _speeds(told)
    return (head[0], "configurations", *head[1:]), [
        [row[0], str(contest.screened[row[0]].configurations), *row[1:]] for row in rows
    ]


def _speeds(found: dict[str, list[Speed]]) -> Table:
    names = [speed.figure for speed in next(iter(found.values()), [])]
    order = sorted(found, key=lambda peer: [-(speed.qps or 0) for speed in found[peer]])
    return ("library", *names), [[peer, *(_told(speed.qps, speed.spread) for speed in found[peer])] for peer in order]


def _told(qps: float | None, spread: Interval | None) -> str:
    if qps is None:
        return "not reached"
    if spread is None or spread.sure == 0:
        return f"{qps:,.0f}"
    return f"{qps:,.0f} [{spread.low:,.0f} to {spread.high:,.0f}{_unsure(spread)}]"


def ratio_table(contest: Contest) -> Table:
    """Ours against the best peer of each level."""
    rows = [
        [own, cell.name, cell.best_peer or "none", _verdict(cell)]
        for own, cells in contest.cells.items()
        for cell in cells
    ]
    return ("ours", "recall", "best peer", "ratio"), rows


def _verdict(cell: Cell) -> str:
    if cell.ratio is None:
        return cell.verdict
    if cell.ratio.sure == 0:
        return f"{cell.ratio.middle:.2f} (one round)"
    return f"{cell.ratio.middle:.2f} [{cell.ratio.low:.2f} to {cell.ratio.high:.2f}{_unsure(cell.ratio)}]"


def _unsure(spread: Interval) -> str:
    return "" if spread.sure >= CONFIDENCE else f", {spread.sure:.0%}"


def cost_table(summary: Summary) -> Table:
    """Build time and memory."""
    rows = [
        [row[0], row[1], row[3], row[5] or row[4], row[8], row[9], row[10]]
        for row in (_index(line) for line in summary.indexes)
    ]
    return ("data", "library", "index", "build s", "build peak MB", "memory MB", "file MB"), rows


def failure_table(summary: Summary) -> Table:
    """Everything that did not work, each with its reason."""
    rows = [list(each) for each in summary.failures]
    rows += [
        [line.row.data, line.row.peer, line.row.configuration, line.row.status, line.row.reason]
        for line in summary.indexes
        if line.row.status != "built"
    ]
    rows += [["", each.peer, "", "not run", each.reason] for each in summary.missing]
    return ("data", "library", "index", "what", "why"), rows


def method(contest: Contest) -> str:
    """How a table came about, in a few sentences."""
    half = "second" if contest.stage == "final" else "first"
    sure = max((speed.spread.sure for each in contest.speeds.values() for speed in each if speed.spread), default=0.0)
    over = "over rounds, and over the queries that recall is counted on" if contest.sampled else "over rounds"
    spread = f"Brackets: {sure:.0%} interval {over}." if sure else "One round: no interval."
    how = "one by one" if contest.track == "single" else "in one call"
    return (
        f"Stage {contest.stage}, {contest.rounds} rounds, queries {contest.begin} to {contest.end}: those are "
        f"of the {half} half, and settings are chosen on the first. Asked {how} with one thread, k=10. Queries per "
        f"second. {spread} In {contest.waiting:.0%} of the measurements the core was shared with other work."
        f"{_several(contest.calls)}"
    )


def _several(calls: Sequence[str]) -> str:
    """The commands, where one alone does not tell how the measurements came about."""
    return "" if len(calls) < 2 else f" Measured by {', then by '.join(f'`{call}`' for call in calls)}."


def means(summary: Summary) -> list[str]:
    """One sentence for each of our two rows."""
    told = []
    for track in sorted({contest.track for contest in summary.contests}):
        for own in (OURS, DEFAULTS):
            mean, cells = summary.mean(own, track), summary.level_cells(own, track)
            compared = sum(cell.ratio is not None for cell in cells)
            left_out = [f"{cell.name}: {cell.verdict}" for cell in cells if cell.ratio is None]
            if mean is not None:
                rest = f"; not averaged: {', '.join(left_out)}" if left_out else ""
                told.append(
                    f"{own}, {track}: {mean:.2f} times the best peer, geometric mean of {compared} cells{rest}."
                )
    return told


def markdown(summary: Summary, command: str) -> str:
    """The results as a text."""
    parts = ["# Vector search results", f"Made by `{command}`.", *_machines(summary), *means(summary)]
    for contest in summary.contests:
        parts += [f"## {contest.data}, {contest.track} queries", method(contest), _grid(speed_table(contest))]
        if contest.cells:
            parts.append(_grid(ratio_table(contest)))
        if left_table(contest)[1]:
            parts += [LEFT, _grid(left_table(contest))]
    parts += ["## Build time and memory", _grid(cost_table(summary))]
    if failure_table(summary)[1]:
        parts += ["## What did not work", _grid(failure_table(summary))]
    return "\n\n".join(parts) + "\n"


def _machines(summary: Summary) -> list[str]:
    return [
        f"Machine: {each.cpu}, {each.cores} cores ({', '.join(each.flags)}), timed on core {each.core}, governor "
        f"{each.governor}, Linux {each.kernel}, Python {each.python}, outpace {each.outpace}, {each.started}."
        for each in summary.machines
    ]


def _grid(table: Table) -> str:
    head, rows = table
    return "\n".join(_line(row) for row in (head, ["---"] * len(head), *rows))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def page(summary: Summary, command: str, drawn: dict[str, str]) -> str:
    """The results as one HTML page."""
    contests: list[dict[str, Any]] = [
        {
            "title": f"{contest.data}, {contest.track} queries",
            "method": method(contest),
            # The only markup that is not escaped: it has been built anew from known elements.
            "svg": Markup(drawn.get(_name(contest), "")),
            "tables": [speed_table(contest), *([ratio_table(contest)] if contest.cells else [])],
            "left": left_table(contest),
        }
        for contest in summary.contests
    ]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    rest = [("Build time and memory", cost_table(summary)), ("What did not work", failure_table(summary))]
    return environment.from_string(_PAGE).render(
        command=command,
        means=means(summary),
        machines=_machines(summary),
        contests=contests,
        left_out=LEFT,
        rest=[(title, table) for title, table in rest if table[1]],
        pictures=bool(drawn),
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Vector search results</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;color:#1d2327;background:#fff;max-width:60rem;margin:2rem auto;padding:0 1rem}
svg{width:100%;height:auto}.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-size:.875rem}
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #e1e5e7;vertical-align:top}
th{color:#626b73;font-weight:600}p.small{color:#626b73;font-size:.875rem}code{overflow-wrap:anywhere}
</style></head><body>
{% macro grid(table) %}<div class="scroll"><table><thead><tr>
{% for cell in table[0] %}<th scope="col">{{ cell }}</th>{% endfor %}</tr></thead><tbody>
{% for row in table[1] %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>{% endmacro %}
<h1>Vector search results</h1>
<p class="small">Made by <code>{{ command }}</code></p>
{% for text in machines %}<p class="small">{{ text }}</p>{% endfor %}
{% for text in means %}<p>{{ text }}</p>{% endfor %}
{% if not pictures %}<p>No pictures: they need the extra <code>report</code> (pip install 'outpace[report]').</p>
{% endif %}
{% for contest in contests %}<h2>{{ contest.title }}</h2><p class="small">{{ contest.method }}</p>
{{ contest.svg }}{% for table in contest.tables %}{{ grid(table) }}{% endfor %}
{% if contest.left[1] %}<p class="small">{{ left_out }}</p>{{ grid(contest.left) }}{% endif %}
{% endfor %}
{% for title, table in rest %}<h2>{{ title }}</h2>{{ grid(table) }}{% endfor %}
</body></html>
"""
