"""What sections are made of: tables, intervals, and where a result comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

SURE = 0.95  # an interval that is less sure says so: below six rounds none can be


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of rows that share their keys."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10 else f"{value:.1f}"
    return str(value).replace("|", "\\|")


def made(result: dict[str, Any]) -> str:
    """Where a result comes from; the page says more of the machine at its end."""
    return f"`{result['command']}`, {result.get('date', '2026')}, {_machine(result['machine'])}."


def machines(results: Sequence[dict[str, Any]]) -> str:
    """Each machine of these results once, as the end of a page."""
    facts = [result["machine"] for result in results if "machine" in result]
    told = {
        f"- {_machine(each)}: Linux {each['kernel']}, {each['compiler']}, Python {each['python']}": None
        for each in facts
    }
    return "\n".join(["## Machines", "", *told])


def _machine(facts: dict[str, Any]) -> str:
    return f"{facts['cpu']} with {facts['cores']} cores"


def listed(parts: Sequence[str]) -> str:
    """The parts of a sentence's list."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def between(found: dict[str, float] | None, absent: str = "not reached") -> str:
    """A median with its interval, which a single measurement does not have."""
    if found is None:
        return absent
    if found["sure"] == 0:
        return short(found["middle"])
    unsure = f", {found['sure']:.0%} sure" if found["sure"] < SURE else ""
    return f"{short(found['middle'])} ({short(found['low'])} to {short(found['high'])}{unsure})"


def short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sets_of(result: dict[str, Any], told: Callable[[dict[str, Any]], str]) -> str:
    """A part for each data set."""
    parts = []
    for name, found in result["sets"].items():
        size = f"{found['vectors']:,} vectors of {found['dimension']} dimensions"
        parts.append(f"**{name}**, {size}.\n\n{told(found)}")  # a table must begin a paragraph
    return "\n\n".join(parts)
