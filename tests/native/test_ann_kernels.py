"""The kernels of every instruction set this machine has, against the scalar ones, under the sanitizers."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from kernel_programs import AVX2, AVX512, UNOPTIMISED, InstructionSet, build, run

SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def processor_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sets built here are those of x86-64")
@pytest.mark.parametrize("kind", [UNOPTIMISED, AVX2, AVX512], ids=lambda kind: kind.name)
def test_kernels_agree_with_the_scalar_ones_and_touch_nothing_else(kind: InstructionSet, tmp_path: Path) -> None:
    missing = kind.needs - processor_flags()
    if missing:
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    ended = run([build(kind, tmp_path, SANITIZERS)])
    assert ended.returncode == 0, ended.stderr
