"""Index programs: the native index and one of its test programs, built under a sanitizer for an instruction set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_programs import ANN, AVX2, AVX512, FLAGS, UNDEFINED_IN_HEADERS, InstructionSet, run

MEMORY = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
# Compiled for what the sanitizers report, not for speed.
LIGHT = (*FLAGS, "-O1", "-g1", *UNDEFINED_IN_HEADERS)
BASELINE = ("-march=x86-64-v2",)
SCALAR = InstructionSet("scalar", 0, BASELINE)
SLOTS = ("construct", "refine", "search")


def instruction_sets() -> tuple[InstructionSet, ...]:
    """The plainest set, and the best that this processor has."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return (SCALAR, *[kind for kind in (AVX512, AVX2) if kind.needs <= flags][:1])


def build(program: str, kinds: Sequence[InstructionSet], sanitizer: Sequence[str], folder: Path) -> dict[str, Path]:
    """The program of native/ann/tests once for each set, by the set's name."""

    def made(name: str, *words: str | Path) -> Path:
        ended = run(["g++", *LIGHT, *sanitizer, *words, "-o", folder / name])
        assert ended.returncode == 0, f"g++ could not make {name}:\n{ended.stderr}"
        return folder / name

    # One unit for all sources: most of the time would go into reading the same headers again.
    everything = folder / "index.cpp"
    everything.write_text("".join(f'#include "{path}"\n' for path in sorted((ANN / "src").glob("*.cpp"))))
    index = made("index.o", *BASELINE, "-c", everything)
    main = made(f"{program}.o", *BASELINE, "-c", ANN / "tests" / f"{program}.cpp")
    programs = {}
    for kind in kinds:
        defined = (f"-DOUTPACE_ISA={kind.name}", f"-DOUTPACE_ISA_LEVEL={kind.level}")
        slots = [
            made(f"{kind.name}-{slot}.o", *kind.flags, *defined, "-c", ANN / "slots" / f"{slot}.cpp") for slot in SLOTS
        ]
        programs[kind.name] = made(f"{program}-{kind.name}", main, index, *slots, "-pthread", "-ldl")
    return programs
