"""Rounds: in each, every library has its turn in random order, and every measurement is written down at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from outpace import machine
from outpace.bench.ann.builds import Builder, Entry
from outpace.bench.ann.datasets import Dataset
from outpace.bench.ann.log import Log, MemoryRow, Stage, TimeRow, Track
from outpace.bench.ann.messages import Sweep, Swept
from outpace.bench.ann.peers.base import Parameters
from outpace.bench.ann.plan import Slice, effort_key
from outpace.bench.ann.pool import Pool
from outpace.bench.ann.process import PeerFailed
from outpace.bench.ann.recall import found, missed
from outpace.bench.ann.sampling import written
from outpace.judge.cores import exclusive, kept_off

# A call in one batch cannot be cut short, so that it is waited for much longer than for single queries.
_PATIENCE = 20.0
_TRIES = 3


@dataclass(frozen=True)
class Rules:
    """What is the same for every library."""

    stage: Stage
    track: Track
    rounds: int
    queries: Slice
    k: int = 10
    seconds: float = 20.0
    seed: int = 0


@dataclass(frozen=True)
class Bench:
    """One data set with its files."""

    dataset: Dataset
    data: Path
    builder: Builder
    log: Log
    core: int
    tell: Callable[[str], None]

    def run(self, entries: Sequence[Entry], rules: Rules) -> None:
        """Measure what the log does not hold yet."""
        ready = [entry for entry in entries if self._built(entry)]
        pool = Pool(self.dataset, self.data, core=self.core, logs=self.builder.logs)
        try:
            with kept_off((self.core,)):
                for number in range(rules.rounds):
                    self._round(number, ready, rules, pool)
        finally:
            pool.close()

    def _built(self, entry: Entry) -> bool:
        self.tell(f"{self.dataset.name}: building {entry.peer} {entry.configuration.name}")
        row, fresh = self.builder.built(self.dataset, self.data, entry)
        if fresh or row not in self.log.rows:
            self.log.append(row)
        return row.status == "built"

    def _round(self, number: int, entries: Sequence[Entry], rules: Rules, pool: Pool) -> None:
        # From the seed and the round alone, so that a resumed run has the order that it would have had.
        chance = random.Random(f"{rules.seed} {self.dataset.key} {rules.stage} {rules.track} {number}")
        peers = sorted({entry.peer for entry in entries})
        chance.shuffle(peers)
        if rules.stage == "final":
            self._forget_part(number, entries, rules)
        done = {_key(row) for row in self.log.times()}
        broken = {
            (row.peer, row.version, row.configuration)
            for row in self.log.times()
            if row.status != "ok"
            and (row.stage, row.track, row.data_key) == (rules.stage, rules.track, self.dataset.key)
        }
        for peer in peers:
            todo = [
                (entry, effort)
                for entry in entries
                for effort in entry.configuration.efforts
                if entry.peer == peer and _key(self._blank(entry, effort, rules, number)) not in done
            ]
            chance.shuffle(todo)
            # One index after another, each with its efforts in random order: an index is loaded once in a turn.
            for entry, effort in sorted(todo, key=lambda each: peer_order(each[0], number)):
                if (entry.peer, entry.version, entry.configuration.name) in broken:
                    continue
                self.tell(f"{self.dataset.name}: {rules.stage} round {number + 1} of {rules.rounds}, {peer}")
                row = self._undisturbed(entry, effort, rules, number, pool)
                self.log.append(row)
                if row.status != "ok":
                    broken.add((entry.peer, entry.version, entry.configuration.name))

    def _forget_part(self, number: int, entries: Sequence[Entry], rules: Rules) -> None:
        """Drop a round of which something is missing: libraries are compared inside a round, so it is of one time."""
        wanted = {
            _key(self._blank(entry, effort, rules, number))
            for entry in entries
            for effort in entry.configuration.efforts
        }
        here = (self.dataset.key, rules.stage, rules.track)
        rows = [row for row in self.log.times() if (row.data_key, row.stage, row.track) == here]
        failed = {(row.peer, row.configuration) for row in rows if row.status != "ok"}
        timed = [row for row in rows if row.round == number and row.status == "ok"]
        missing = wanted - {_key(row) for row in timed}
        if timed and any((key[1], key[3]) not in failed for key in missing):
            unwanted = {id(row) for row in timed}
            self.log.forget(lambda row: id(row) in unwanted)

    def _undisturbed(self, entry: Entry, effort: Parameters, rules: Rules, number: int, pool: Pool) -> TimeRow:
        """A measurement; again, a few times, where others used the core. The last one counts and tells what it is."""
        for _ in range(_TRIES):
            row = self._measured(entry, effort, rules, number, pool)
            if row.status != "ok" or not row.waited:
                break
        return row

    def _measured(self, entry: Entry, effort: Parameters, rules: Rules, number: int, pool: Pool) -> TimeRow:
        row = self._blank(entry, effort, rules, number)
        asked = Sweep(
            dict(effort),
            rules.k,
            rules.queries.begin,
            rules.queries.end,
            rules.queries.warm_begin,
            rules.queries.warm_end,
            rules.track == "batch",
            rules.seconds,
        )
        try:
            with exclusive((self.core,)):  # loading too: some libraries time themselves then, to tune what they do
                process, loaded = pool.process(entry, self.builder.index_folder(self.dataset, entry) / "index")
                if loaded is not None:
                    self._note_memory(entry, loaded.seconds, loaded.bytes_before, loaded.bytes_after)
                load = machine.load().load_average
                reply = process.ask(asked, _PATIENCE * rules.seconds + 60)
        except PeerFailed as fault:
            pool.drop(entry)
            return msgspec.structs.replace(row, status=fault.status, reason=fault.reason)
        if not isinstance(reply, Swept):
            return msgspec.structs.replace(row, status="failed", reason=f"answered with {type(reply).__name__}")
        answers = np.frombuffer(reply.ids, dtype=np.int64).reshape(reply.count, rules.k)
        rows = slice(rules.queries.begin, rules.queries.begin + reply.count)
        counts = missed(answers, self.dataset.train, self.dataset.queries[rows], self.dataset.neighbors[rows], rules.k)
        return msgspec.structs.replace(
            row,
            answered=reply.count,
            wall_seconds=reply.wall_seconds,
            cpu_seconds=reply.cpu_seconds,
            recall=found(counts, rules.k),
            load_average=load,
            missed=written(counts) if rules.stage == "final" else "",  # the screening has no intervals
        )

    def _blank(self, entry: Entry, effort: Parameters, rules: Rules, number: int) -> TimeRow:
        return TimeRow(
            self.dataset.name,
            self.dataset.key,
            entry.peer,
            entry.version,
            entry.configuration.name,
            rules.stage,
            rules.track,
            number,
            dict(effort),
            rules.k,
            rules.queries.begin,
            rules.queries.end,
            "ok",
        )

    def _note_memory(self, entry: Entry, seconds: float, before: int, after: int) -> None:
        names = (self.dataset.name, self.dataset.key, entry.peer, entry.version, entry.configuration.name)
        self.log.append(MemoryRow(*names, seconds, before, after))


def peer_order(entry: Entry, number: int) -> int:
    """The place of a configuration in its library's turn; another one in every round."""
    return random.Random(f"{entry.peer} {entry.configuration.name} {number}").getrandbits(32)


def _key(row: TimeRow) -> tuple[object, ...]:
    return (
        row.data_key,
        row.peer,
        row.version,
        row.configuration,
        row.stage,
        row.track,
        row.round,
        effort_key(row.effort),
        row.k,
        row.begin,
        row.end,
    )
