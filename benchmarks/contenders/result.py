"""A result file: where its figures come from, and intervals as JSON holds them."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outpace import machine
from outpace.bench.ann.curve import Interval, interval


def heading(script: str) -> dict[str, Any]:
    """What every result file begins with."""
    return {
        "command": shlex.join(["python", f"benchmarks/{Path(script).name}", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(machine.describe()),
    }


def told(found: Interval | None) -> dict[str, float] | None:
    """An interval to five digits; None where there is none, because a level was not reached."""
    return None if found is None else {name: float(f"{value:.5g}") for name, value in asdict(found).items()}


def spread(values: list[float]) -> dict[str, float] | None:
    """The median over the rounds with its interval."""
    return told(interval(values))


def write(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {path}", flush=True)
