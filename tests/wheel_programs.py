"""Wheel programs: the wheel in a fresh environment, and an index's life there, on this processor or an older one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

DIST = Path(__file__).parents[1] / "dist"
# Emulated processors, and the instruction set that is to be chosen there: the oldest that NumPy's wheels serve, and one
# with AVX2 but no AVX-512.
OLDER = {"Nehalem-v1": "scalar", "Haswell": "avx2"}
PATIENCE = 1200  # seconds until a hung program fails the test instead of the suite

# Whole numbers, so that every processor must find the same; the seed has no two neighbours at the same distance.
# Every index file in the folder is searched: its own, and those that other processors left there. What is true is to be
# taken from this processor: NumPy's AVX2 argsort goes wrong in qemu 7.2.
LIFE = """
import json, sys
from pathlib import Path
import numpy as np
import outpace.ann
from outpace.ann import Index

folder, name = Path(sys.argv[1]), sys.argv[2]
random = np.random.default_rng(1)
vectors = random.integers(0, 256, (3000, 24), dtype=np.uint8)
queries = random.integers(0, 256, (50, 24), dtype=np.uint8)
index = Index.build(vectors, engine="graph", threads=1)
index.save(folder / f"{name}.index")
answers = {}
for file in folder.glob("*.index"):
    loaded = Index.load(file, mmap=True)
    for engine in ("graph", "partitions"):
        answers[f"{file.stem}, {engine}"] = loaded.search(queries, 10, effort=1000, engine=engine)[0].tolist()
gaps = vectors[None].astype(int) - queries[:, None]
print(json.dumps({
    "package": outpace.ann.__file__,
    "instruction_set": index.stats()["instruction_set"],
    "answers": answers,
    "true": (gaps**2).sum(axis=2).argsort(axis=1)[:, :10].tolist(),
}))
"""


def newest_wheel() -> Path:
    wheels = sorted(DIST.glob("outpace-*.whl"), key=lambda path: path.stat().st_mtime)
    assert wheels, f"there is no wheel in {DIST}; run make wheel"
    return wheels[-1]


def install(wheel: Path, folder: Path) -> Path:
    """The Python of a fresh environment that holds the wheel and what it asks for."""
    python = folder / "bin" / "python"
    _run([sys.executable, "-m", "venv", folder])
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
    return python


def life(python: Path, folder: Path, processor: str = "") -> dict[str, Any]:
    """What LIFE tells; its index stays in `folder`. Without `processor` it is the one of this machine."""
    emulator = ["qemu-x86_64", "-cpu", processor] if processor else []
    told = _run([*emulator, python, "-I", "-c", LIFE, folder, processor or "native"])
    seen: dict[str, Any] = json.loads(told)
    return seen


def _run(command: list[str | Path]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, f"{command[:4]} ended with {ended.returncode}:\n{ended.stderr[-2000:]}"
    return ended.stdout
