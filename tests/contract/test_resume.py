"""A run of the real judge, killed at four moments, ends like one that nobody touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import jail_or_skip
from outpace.judge.jail import bubblewrap_works

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "resume.py"


def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    jail_or_skip("fallback" if bubblewrap_works() else "bubblewrap")
    out = tmp_path / "resume.json"
    command = [sys.executable, BENCHMARK, "--kills", "4", "--trials", "10", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    phases = json.loads(out.read_text())["phases"]
    assert {name: (each["kills"], each["faults"]) for name, each in phases.items()} == {
        "replay": (2, []),
        "moves": (2, []),
    }
    assert {name: each["trials"] % 10 for name, each in phases.items()} == {"replay": 0, "moves": 0}
