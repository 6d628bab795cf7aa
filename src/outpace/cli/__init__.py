"""The command line: one small file per command that parses, calls and prints."""

from __future__ import annotations

import sys

import cyclopts

from outpace import __version__
from outpace.cli import attack, bench, doctor, export, init, mcp, plain, prompt, report, run, show, tasks, trial, verify
from outpace.errors import OutpaceError

app = cyclopts.App(
    name="outpace",
    help="Makes code faster and proves it.",
    # `--no-jail` has no use for a `--no-no-jail` beside it.
    default_parameter=cyclopts.Parameter(negative=""),
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    error_formatter=plain.usage_error,
    error_console=plain.ERRORS,
)
app.command(run.run)
app.command(attack.attack)
app.command(doctor.doctor)
app.command(trial.try_, name="try")
app.command(verify.verify)
app.command(mcp.mcp)
app.command(report.report)
app.command(show.show)
app.command(export.export)
app.command(prompt.prompt)
app.command(tasks.tasks)
app.command(init.init)
app.command(bench.bench)


def main() -> None:
    """Run the command line; what a user can act on is one line, never a traceback."""
    try:
        status = app(sys.argv[1:])
    except OutpaceError as error:
        print(f"outpace: {plain.flat(error)}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(plain.broken_pipe())
    except KeyboardInterrupt:
        print("outpace: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
