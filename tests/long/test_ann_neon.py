"""The NEON kernels against the scalar ones, on an emulated processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_programs import NEON, NEON_DOT, InstructionSet, build, run


@pytest.mark.parametrize("kind", [NEON, NEON_DOT], ids=lambda kind: kind.name)
def test_kernels_agree_with_the_scalar_ones_and_touch_nothing_else(kind: InstructionSet, tmp_path: Path) -> None:
    # The address sanitizer does not run under the emulator; the test's guarded buffers do.
    ended = run(["qemu-aarch64", "-cpu", "max", build(kind, tmp_path, ["-static"])])
    assert ended.returncode == 0, ended.stderr
