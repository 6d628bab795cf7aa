"""`outpace doctor`: say what this machine can vouch for."""

from __future__ import annotations

import dataclasses
import json as json_module

from rich.console import Console
from rich.table import Table

from outpace import doctor as examination

_MARKS = {"good": "[green]good[/]", "weak": "[yellow]weak[/]", "missing": "[red]missing[/]"}


def doctor(*, json: bool = False) -> int:
    """Say which jail is in force, what it lacks, what disturbs timings, and the commands that fix it.

    Parameters
    ----------
    json
        Print the findings as JSON.
    """
    findings = examination.examine()
    if json:
        print(json_module.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for finding in findings:
            table.add_row(finding.subject, _MARKS[finding.state], finding.detail)
            if finding.fix:
                table.add_row("", "fix", finding.fix)
        Console().print(table)
    return 1 if any(finding.state == "missing" for finding in findings) else 0
