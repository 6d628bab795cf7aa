"""The command line: one small file per command that parses, calls and prints."""

from __future__ import annotations

import sys

import cyclopts

from outpace import __version__
from outpace.cli import doctor, report, run, trial, verify
from outpace.errors import OutpaceError

app = cyclopts.App(
    name="outpace",
    help="Makes code faster and proves it.",
    version=__version__,
    result_action="return_value",
)
app.command(run.run)
app.command(doctor.doctor)
app.command(trial.try_, name="try")
app.command(verify.verify)
app.command(report.report)


def main() -> None:
    """Run the command line; what a user can act on is one line, never a traceback."""
    try:
        status = app()
    except OutpaceError as error:
        print(f"outpace: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("outpace: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
