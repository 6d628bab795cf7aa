"""`outpace bench`: benchmarks under the same rules for this library and its peers."""

from __future__ import annotations

import datetime
import json as json_module
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import cyclopts
from cyclopts import Parameter
from rich.console import Console

from outpace import __version__, machine
from outpace.cli import plain
from outpace.errors import OutpaceError
from outpace.judge.cores import timing_cores

if TYPE_CHECKING:
    from outpace.bench.ann.log import MachineRow
    from outpace.bench.ann.summary import Summary

bench = cyclopts.App(name="bench", help="Measure this library against its peers.")


@bench.command
def ann(
    *,
    data: Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())] = None,
    peers: Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())] = None,
    out: Path = Path("ann-results"),
    stage: Literal["screen", "final", "all"] = "all",
    track: Literal["single", "batch"] = "single",
    rounds: int = 8,
    queries: int = 1000,
    screen_queries: int = 500,
    levels: Annotated[list[float] | None, Parameter(consume_multiple=True, negative=())] = None,
    configurations: int = 4,
    threads_build: int = os.cpu_count() or 1,
    build_budget: float = 1800.0,
    retry_failed: bool = False,
    list_peers: bool = False,
    json: bool = False,
) -> int:
    """Time vector search libraries: queries per second at levels of recall, build time and memory.

    First every library is screened with its configurations on the first half of the queries; then the best three of
    each level and ours are timed in interleaved rounds on the second half. Stopped at any moment, the same command goes
    on where it was.

    Parameters
    ----------
    data
        HDF5 files as ann-benchmarks lays them out, or names of data sets.
    peers
        Libraries to run; by default all that are installed. `module:class` enters one of your own.
    out
        Where indexes, measurements and results are kept.
    stage
        One of the stages alone.
    track
        Queries one by one, or in one call.
    rounds
        Rounds of the final stage; an interval of 95% takes six.
    queries
        Queries of the final stage, at most half of the data set's.
    screen_queries
        Queries of the screening, at most half of the data set's.
    levels
        Levels of recall; by default 0.90, 0.95, 0.99 and 0.999.
    configurations
        How many each library enters with, the most promising first; most of the time goes into building them.
    threads_build
        Threads for building an index; searching always has one.
    build_budget
        Seconds that an index may take to build, the same for every library.
    retry_failed
        Try again what failed in an earlier call with the same --out.
    list_peers
        Say which libraries can be imported, and end.
    json
        Print what was found as JSON.
    """
    # Not at the top: every other command would pay for loading these.
    from outpace.bench.ann import campaign, output
    from outpace.bench.ann.curve import LEVELS
    from outpace.bench.ann.datasets import data_folder, locate
    from outpace.bench.ann.log import Log, alone
    from outpace.bench.ann.peers import find, names
    from outpace.bench.ann.summary import summarise

    wanted = tuple(peers or names())
    for peer in wanted:
        find(peer)  # a name that is wrong is told before anything is built
    if list_peers:
        return _list(wanted, json=json)
    if not data:
        raise OutpaceError("nothing to search in: name a file or a data set with --data")
    counts = {
        "rounds": rounds, "queries": queries, "screen-queries": screen_queries, "configurations": configurations,
        "threads-build": threads_build,
    }  # fmt: skip
    for name, value in counts.items():
        if value < 1:
            raise OutpaceError(f"--{name} is {value}: it must be at least 1")
    aims = tuple(sorted(levels or LEVELS))
    if not all(0 < level <= 1 for level in aims):
        raise OutpaceError(f"--levels are {', '.join(f'{level:g}' for level in aims)}: recall lies between 0 and 1")
    paths = [locate(each, data_folder()) for each in data]
    core = timing_cores(1)[0]
    settings = campaign.Settings(
        wanted, stage, track, rounds, queries, screen_queries, aims, configurations, threads_build, build_budget, core,
        out, retry_failed,
    )  # fmt: skip
    command = shlex.join(["outpace", *sys.argv[1:]])
    with alone(out):
        log = Log(out / "measurements.jsonl")
        with Console(stderr=True).status("starting") as status:
            campaign.run(paths, settings, log, _here(core, command), status.update)
        summary = summarise(log, aims)
        written = output.publish(summary, out, command)
    if json:
        print(json_module.dumps(output.record(summary, command), indent=1))
    else:
        _print(summary, written)
    return 0


def _list(wanted: tuple[str, ...], *, json: bool) -> int:
    from outpace.bench.ann import campaign

    with tempfile.TemporaryDirectory(prefix="outpace-peers-") as folder:
        found = {peer: campaign.presence(peer, Path(folder)) for peer in wanted}
    if json:
        told = [{"peer": peer, "version": version, "reason": why} for peer, (version, why) in found.items()]
        print(json_module.dumps(told, indent=1))
    else:
        for line in plain.aligned([[peer, version or "not installed", why] for peer, (version, why) in found.items()]):
            print(line)
    return 0


def _here(core: int, command: str) -> MachineRow:
    from outpace.bench.ann.log import MachineRow

    facts = machine.describe()
    started = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return MachineRow(
        facts.cpu, list(facts.flags), facts.cores, core, facts.memory_mb, facts.governor, facts.kernel, facts.python,
        __version__, started, command,
    )  # fmt: skip


def _print(summary: Summary, written: list[Path]) -> None:
    from outpace.bench.ann import output

    for contest in summary.contests:
        print(f"{contest.data}, {contest.track} queries, {contest.stage} stage, queries per second at recall")
        head, rows = output.speed_table(contest)
        for line in plain.aligned([list(head), *rows]):
            print(f"  {line}")
        if contest.cells:
            head, rows = output.ratio_table(contest)
            for line in plain.aligned([list(head), *rows]):
                print(f"  {line}")
        head, rows = output.left_table(contest)
        if rows:
            print(f"  {output.LEFT}")
            for line in plain.aligned([list(head), *rows]):
                print(f"  {line}")
    for sentence in output.means(summary):
        print(sentence)
    failed = output.failure_table(summary)[1]
    if failed:
        print("did not take part or failed:")
        for line in plain.aligned(failed):
            print(f"  {line}")
    for path in written:
        print(path)
