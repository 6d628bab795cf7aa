"""Kernel programs: the native kernel test, built for one instruction set beside the scalar one."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ANN = Path(__file__).parents[1] / "native" / "ann"
FLAGS = ("-std=c++20", "-O3", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", f"-I{ANN / 'include'}")
# gcc's own header of AVX-512 intrinsics starts from values it leaves undefined.
UNDEFINED_IN_HEADERS = ("-Wno-uninitialized", "-Wno-maybe-uninitialized")
PATIENCE = 600  # seconds until a hung program fails the test instead of the suite


@dataclass(frozen=True)
class InstructionSet:
    name: str
    level: int  # OUTPACE_ISA_LEVEL
    flags: tuple[str, ...]
    needs: frozenset[str] = frozenset()  # as /proc/cpuinfo names them
    compiler: str = "g++"
    scalar_flags: tuple[str, ...] = ("-march=x86-64-v2",)


# The scalar kernels again: what the optimiser makes of them must be what they say.
UNOPTIMISED = InstructionSet("unoptimised", 0, ("-O0",))
AVX2 = InstructionSet("avx2", 2, ("-march=x86-64-v3",), frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2"}))
AVX512 = InstructionSet(
    "avx512",
    3,
    (
        *(f"-mavx512{part}" for part in ("f", "bw", "dq", "vl", "vnni", "vbmi")),
        *("-mf16c", "-mfma", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt", "-mprefer-vector-width=512"),
        *UNDEFINED_IN_HEADERS,
    ),
    frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512vbmi"}),
)
NEON = InstructionSet(
    "neon", 1, ("-march=armv8-a",), compiler="aarch64-linux-gnu-g++", scalar_flags=("-march=armv8-a",)
)
NEON_DOT = replace(NEON, name="neon_dot", flags=("-march=armv8.2-a+dotprod",))


def build(kind: InstructionSet, folder: Path, more: Sequence[str] = ()) -> Path:
    """The test program of the set, in `folder`; `more` goes to every compilation and to the link."""

    def made(name: str, *words: str | Path) -> Path:
        ended = run([kind.compiler, *more, *words, "-o", folder / name])
        assert ended.returncode == 0, f"{kind.compiler} could not make {name} for {kind.name}:\n{ended.stderr}"
        return folder / name

    def kernels(name: str, level: int, flags: Sequence[str]) -> Path:
        defined = (f"-DOUTPACE_ISA={name}", f"-DOUTPACE_ISA_LEVEL={level}")
        return made(f"{name}.o", *FLAGS, *flags, *defined, "-c", ANN / "tests" / "kernel_set.cpp")

    tested = kernels(kind.name, kind.level, kind.flags)
    scalar = kernels("scalar", 0, kind.scalar_flags)
    test = (f"-DOUTPACE_TESTED={kind.name}", ANN / "tests" / "kernels_test.cpp")
    return made(f"test_{kind.name}", *FLAGS, *kind.scalar_flags, "-O1", *test, tested, scalar)


def run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
