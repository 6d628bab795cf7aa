"""Index: nearest neighbours with a recall you name, in an index that can change, be filtered, saved and mapped."""

from __future__ import annotations

import errno
import operator
import os
import stat
import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outpace.ann import _native
from outpace.ann.arrays import Ids, as_numpy, copied_bytes, identifiers, rows, table, whole_number, within_64_bits
from outpace.ann.engines import Point, keeps_graph
from outpace.ann.memory import check_fits, free_bytes
from outpace.ann.precision import HALF_LARGEST, half_is_enough, holder, largest, narrowest, warn_of_loss
from outpace.ann.progress import Progress, shown

Metric = Literal["l2", "ip", "cosine"]
Engine = Literal["auto", "graph", "partitions"]
Profile = Literal["fast", "compact"]
Precision = Literal["auto", "half", "full"]
Distances = npt.NDArray[np.float32]

METRICS: tuple[Metric, ...] = ("l2", "ip", "cosine")
SCALARS = ("float32", "float16", "int8", "uint8")
ENGINES: tuple[Engine, ...] = ("auto", "graph", "partitions")

# Held out while the structure is built, used to measure recall, then added like any new vector.
HELD_OUT = 500

# Of the queries that `calibrate` is given: each is compared with every vector.
MOST_QUERIES = 1000

# An index of which this part changed is measured again: its lists and walks are not what they were.
CHANGED = 1 / 3


class Filter:
    """Which vectors a search may return. Made once, it serves many searches and follows changes of the index."""

    def __init__(self, where: object) -> None:
        values = as_numpy(where, "a filter")
        if values.ndim != 1:
            raise ValueError(f"a filter has {values.ndim} dimensions; give one truth value per id, or the allowed ids")
        if values.dtype == np.bool_:
            self.native = _native.Filter.of_mask(np.ascontiguousarray(values))
        elif values.size == 0:
            self.native = _native.Filter.of_ids(np.empty(0, dtype=np.int64))
        elif values.dtype.kind in "iu" and values.dtype.itemsize == 1:
            raise TypeError(
                f"a filter of {values.dtype} may be a mask or ids; give mask.astype(bool), or ids.astype(np.int64)"
            )
        elif values.dtype.kind in "iu":
            self.native = _native.Filter.of_ids(within_64_bits(values, "a filter's ids"))
        else:
            raise TypeError(f"a filter of {values.dtype} is neither a mask (bool) nor ids (whole numbers)")


class Index:
    """A vector index. Make one with `Index.build` or `Index.load`."""

    def __init__(self, handle: _native.Handle) -> None:
        self._handle = handle
        self._search = handle.search
        self._changes = threading.Lock()  # one change at a time, with the ids and the measuring that belong to it

    @classmethod
    def build(
        cls,
        vectors: object,
        *,
        metric: Metric = "l2",
        ids: object = None,
        engine: Engine = "auto",
        profile: Profile = "fast",
        precision: Precision = "auto",
        threads: int | None = None,
        seed: int = 0,
        lists: int = 0,
        reduced: int = 0,
        scan_bits: int = 0,
        candidates: int = 256,
        progress: Progress | bool | None = None,
        instruction_set: str = "",
        modules: str | os.PathLike[str] = "",
    ) -> Index:
        """An index of `vectors` (rows), whose recall is measured before it is returned.

        `precision` is of the stored copies that answers are ordered by: "auto" is half where half keeps the neighbours.
        `progress` is a function of the stage and of how much of it is done, which may raise to stop the build. Without
        one, a line says so on a terminal, if the build takes some seconds; True shows it in any case, False never.
        """
        given = as_numpy(vectors, "vectors")
        check_fits(copied_bytes(given) + given.size, free_bytes())  # at the least, before anything is copied
        data = table(given, "vectors")
        if len(data) == 0:
            raise ValueError("vectors are empty; an index needs at least one, since it learns from them")
        if metric not in METRICS:
            raise ValueError(f"metric={metric!r} is unknown; choose one of {', '.join(METRICS)}")
        if engine not in ENGINES:
            raise ValueError(f"engine={engine!r} is unknown; choose auto, graph or partitions")
        if profile not in ("fast", "compact"):
            raise ValueError(f"profile={profile!r} is unknown; choose fast or compact")
        if profile == "compact" and engine == "graph":
            raise ValueError("profile='compact' has no room for a graph; choose engine='partitions' or profile='fast'")
        if precision not in ("auto", "half", "full"):
            raise ValueError(f"precision={precision!r} is unknown; choose auto, half or full")
        seed = whole_number(seed, "seed", 0, 2**63 - 1)
        numbers = {"lists": lists, "reduced": reduced, "scan_bits": scan_bits, "candidates": candidates}
        for name, value in numbers.items():
            whole_number(value, name, 0, 2**31 - 1)
        workers = _workers(threads)
        names = np.arange(len(data), dtype=np.int64) if ids is None else identifiers(ids, len(data), "ids")
        if ids is not None and len(np.unique(names)) != len(names):
            raise ValueError("ids hold the same number twice; each vector needs its own")
        half = profile == "compact" or precision == "half"
        if half and metric != "cosine" and data.dtype == np.float32 and HALF_LARGEST < largest(data) < np.inf:
            raise ValueError(
                f"vectors go up to {largest(data):.3g}, and half precision ends at {HALF_LARGEST:.0f}; "
                "scale them down, or use precision='full' with profile='fast'"
            )
        with_graph = engine != "partitions" and profile == "fast"
        held = held_out(len(data), seed)

        def check_memory() -> None:
            peak = _native.Handle.estimate_peak(data, METRICS.index(metric), reduced, half, with_graph)
            check_fits(peak + (data.nbytes if len(held) else 0), free_bytes())

        check_memory()
        if precision == "auto" and metric == "l2" and data.dtype.kind == "f":
            data = narrowest(data)
        if precision == "auto" and not half:
            half = half_is_enough(data, metric, seed)
        elif half:
            warn_of_loss(data, metric, seed)
        if not half and data.dtype != np.float32:
            data = data.astype(np.float32)
        check_memory()
        kept = np.setdiff1d(np.arange(len(data)), held, assume_unique=True) if len(held) else None
        queries = np.ascontiguousarray(data[held] if len(held) else data[:HELD_OUT])
        with shown(progress, f"building an index of {len(data):,} vectors") as told:
            handle = _native.Handle.build(
                data if kept is None else np.ascontiguousarray(data[kept]),
                names if kept is None else np.ascontiguousarray(names[kept]),
                None if kept is None else queries,
                METRICS.index(metric),
                workers,
                seed,
                lists,
                reduced,
                scan_bits,
                half,
                profile == "compact",
                with_graph,
                candidates,
                instruction_set,
                os.fspath(modules),
                told,
            )
            handle.calibrate(queries, not len(held), False, workers, told)
        if engine == "auto" and profile == "fast":
            facts = handle.facts()
            points = [Point(*each) for each in handle.points()]
            if not keeps_graph(points, facts["memory"]["total"] / facts["count"], facts["dimension"]):
                handle.drop_graph()
        if len(held):
            handle.add(queries, np.ascontiguousarray(names[held]), workers, handle.exact_kind())
            handle.forget_changes()
            handle.shrink()
        return cls(handle)

    def search(
        self,
        queries: object,
        k: int = 10,
        *,
        recall: float | None = None,
        effort: int | None = None,
        depth: int | None = None,
        engine: Engine = "auto",
        where: object = None,
        threads: int | None = 1,
    ) -> tuple[Ids, Distances]:
        """The ids and distances of the nearest `k`, nearest first; one row for one query, a table for many."""
        # Arguments are checked and converted on the native side: at 100,000 queries a second each line here shows.
        if where is not None:
            where = (where if isinstance(where, Filter) else Filter(where)).native
        try:
            return self._search(queries, k, recall, effort, depth, engine, where, threads)  # type: ignore[arg-type]
        except TypeError:
            if threads is None:  # every core, as elsewhere
                return self._search(queries, k, recall, effort, depth, engine, where, _workers(None))
            _explain(k, recall, effort, depth, engine, threads)
            raise

    def exact(self, queries: object, k: int = 10, *, threads: int = 1) -> tuple[Ids, Distances]:
        """The true nearest `k`, by comparing with every vector: slow, and the measure of everything else."""
        if whole_number(k, "k", -(2**63), 2**63 - 1) < 1:
            raise ValueError(f"k={k}; at least one neighbour must be asked for")
        return self._handle.exact(rows(queries, "queries"), k, _workers(threads))

    def add(self, vectors: object, *, ids: object = None, threads: int | None = None) -> Ids:
        """Adds vectors and returns their ids: those given, or the numbers after the highest so far.

        Where a third of the index has changed since recall was measured, it is measured again, which takes a while.
        """
        data = table(vectors, "vectors")
        workers = _workers(threads)
        with self._changes:
            facts = self.stats()
            needed = holder(data, facts["exact"], facts["metric"])
            if ids is not None:
                names = identifiers(ids, len(data), "ids")
            else:
                first = self._handle.highest() + 1
                if first + len(data) - 1 > np.iinfo(np.int64).max:
                    raise ValueError(f"the highest id is {first - 1}, and there are none after it; give ids")
                names = np.arange(len(data), dtype=np.int64) + first
            if len(data):
                before = len(self)
                try:
                    self._handle.add(data, names, workers, SCALARS.index(needed))
                except MemoryError as fault:
                    raise MemoryError(
                        f"memory ended while vectors were added: the first {len(self) - before} of {len(data)} are in, "
                        "and the index is sound; free some memory and add the rest"
                    ) from fault
                self._measure_again(workers)
        return names

    def _measure_again(self, workers: int) -> None:
        count = len(self._handle)
        if count and self._handle.changed() > CHANGED * count:
            real = self._handle.real_queries()
            queries = real if len(real) else self._handle.sample(HELD_OUT, 0)
            self._handle.calibrate(queries, not len(real), bool(len(real)), workers, None)

    def remove(self, ids: object, *, threads: int | None = None) -> None:
        """Removes vectors by id; with an unknown id nothing is removed. Recall is measured again as after `add`."""
        values = np.atleast_1d(as_numpy(ids, "ids"))
        workers = _workers(threads)
        if values.size:
            with self._changes:
                self._handle.remove(identifiers(values, values.size, "ids"), workers)
                self._measure_again(workers)

    def calibrate(self, queries: object, *, threads: int | None = None) -> None:
        """Measures recall again, with queries as they really come, none of which should be a stored vector.

        Of very many, a thousand are drawn at random. Some hundred of them stay with the index, also in its file, for
        when recall is measured again.
        """
        given = table(queries, "queries")
        if len(given) == 0:
            raise ValueError("queries are empty; recall is measured on at least one, and well on some hundred")
        # Shuffled, since the first ones are kept, and a log may begin with those of one user or one hour.
        chosen = np.random.default_rng(0).permutation(len(given))[:MOST_QUERIES]
        given = np.ascontiguousarray(given[chosen])
        with self._changes:
            self._handle.calibrate(given, False, True, _workers(threads), None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to one file; at any moment the old file or the new one is there."""
        self._handle.save(os.fsdecode(path))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        mmap: bool = False,
        instruction_set: str = "",
        modules: str | os.PathLike[str] = "",
    ) -> Index:
        """Reads a saved index; with `mmap` it opens at once and parts are read when they are needed."""
        place = Path(os.fsdecode(path))
        facts = place.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, f"{place} is a folder; give the file that Index.save wrote")
        if not stat.S_ISREG(facts.st_mode):  # to open a pipe would be to wait for its other end
            raise _native.IndexFileError(f"{place} is no file but a pipe or a device; give one that Index.save wrote")
        if facts.st_size == 0:
            raise _native.IndexFileError(f"{place} is empty; give a file that Index.save wrote")
        return cls(_native.Handle.load(str(place), mmap, instruction_set, os.fspath(modules)))

    def stats(self) -> dict[str, Any]:
        """What the index holds, what it takes, how it was built and what it measured."""
        facts = self._handle.facts()
        facts["metric"] = METRICS[facts["metric"]]
        facts["exact"] = SCALARS[facts["exact"]]
        facts["engines"] = ["partitions", "graph"] if facts.pop("graph") else ["partitions"]
        return facts

    @property
    def ids(self) -> Ids:
        return self._handle.ids()

    def __len__(self) -> int:
        return len(self._handle)

    def __contains__(self, id: int) -> bool:
        number = operator.index(id)
        return -(2**63) <= number < 2**63 and self._handle.contains(number)

    def __repr__(self) -> str:
        facts = self.stats()
        shape = f"{len(self)} vectors of {facts['dimension']}"
        return f"Index({shape}, metric={facts['metric']!r}, engines={facts['engines']})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_bytes, (self._handle.to_bytes(),))


def _workers(threads: int | None) -> int:
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads} is below 1; leave it out to use every core")
    return threads or os.cpu_count() or 1


def _explain(k: object, recall: object, effort: object, depth: object, engine: object, threads: object) -> None:
    """Raises what names the argument of a search that is of the wrong kind or out of all bounds."""
    whole_number(k, "k", 1, 2**63 - 1)
    whole_number(threads, "threads", 1, 2**31 - 1)
    for name, value in (("effort", effort), ("depth", depth)):
        if value is not None:
            whole_number(value, name, 1, 2**31 - 1)
    if recall is not None and not isinstance(recall, (int, float, np.number)):
        raise TypeError(f"recall={recall!r} is no number in (0, 1]")
    if not isinstance(engine, str):
        raise TypeError(f"engine={engine!r} is unknown; choose {', '.join(ENGINES)}")


def _from_bytes(data: bytes) -> Index:
    return Index(_native.Handle.from_bytes(data, ""))


def held_out(count: int, seed: int) -> npt.NDArray[np.int64]:
    """Which vectors stand aside to measure recall: at most a twentieth, none of a very small set."""
    if count < 2000:
        return np.empty(0, dtype=np.int64)
    chosen = np.random.default_rng(seed).choice(count, min(HELD_OUT, count // 20), replace=False)
    return np.sort(chosen).astype(np.int64)
