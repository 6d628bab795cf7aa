"""The pool: loaded indexes wait in their processes for their next turn, as many as memory allows."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from outpace.bench.ann import memory
from outpace.bench.ann.builds import Entry, slug
from outpace.bench.ann.datasets import Dataset
from outpace.bench.ann.messages import Load, Loaded
from outpace.bench.ann.process import PeerFailed, PeerProcess

_LOADING = 600.0
# Of the memory that is free when an index is loaded; the rest is for the next one's scratch and the page cache.
_SHARE = 0.5


class Pool:
    """Processes with one index each; the one unused for longest makes room."""

    def __init__(self, dataset: Dataset, data: Path, *, core: int, logs: Path) -> None:
        self._dataset, self._data, self._core, self._logs = dataset, data, core, logs
        self._live: OrderedDict[tuple[str, str], PeerProcess] = OrderedDict()

    def process(self, entry: Entry, index: Path) -> tuple[PeerProcess, Loaded | None]:
        """The process that holds this index, and what loading told if it had to be loaded."""
        key = (entry.peer, entry.configuration.name)
        if key in self._live:
            self._live.move_to_end(key)
            return self._live[key], None
        expected = 2 * memory.stored(index)
        while self._live and expected > _SHARE * memory.available():
            self._live.popitem(last=False)[1].close()
        log = self._logs / f"search-{slug(self._dataset.name)}-{slug(entry.peer)}-{slug(entry.configuration.name)}.txt"
        process = PeerProcess(entry.peer, threads=1, log=log)
        parameters = {**entry.configuration.build, **entry.configuration.opened}
        asked = Load(str(self._data), self._dataset.metric, parameters, str(index), self._core)
        try:
            reply = process.ask(asked, _LOADING)
            if not isinstance(reply, Loaded):
                raise PeerFailed("failed", f"answered with {type(reply).__name__}")
        except BaseException:
            process.close()
            raise
        self._live[key] = process
        return process, reply

    def drop(self, entry: Entry) -> None:
        """End the process of an index that has failed."""
        found = self._live.pop((entry.peer, entry.configuration.name), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """End them all."""
        while self._live:
            self._live.popitem()[1].close()
