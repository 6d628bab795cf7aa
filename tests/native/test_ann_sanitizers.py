"""The native index under the sanitizers: damaged files, and searches while vectors come and go."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from ann_programs import MEMORY, THREADS, build, instruction_sets
from kernel_programs import run

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the sets built here are those of x86-64")
INPUTS = 2000  # damaged files, shared out among the instruction sets
ROUNDS = 15  # of additions and removals


def test_a_damaged_file_is_refused_or_loads_as_an_index_that_works(tmp_path: Path) -> None:
    programs = build("file_fuzz", instruction_sets(), MEMORY, tmp_path)
    share = INPUTS // len(programs)
    for number, program in enumerate(programs.values()):
        ended = run([program, str(share), str(number * share)])
        assert ended.returncode == 0, ended.stderr
        counts = json.loads(ended.stdout)
        refused = sum(counts["refused"].values())
        assert refused + counts["loaded_checked"] + counts["loaded_unchecked"] == share
        # Were all refused, nothing would have been tried.
        assert min(refused, counts["loaded_checked"], counts["loaded_unchecked"]) > share / 50


def test_searches_beside_additions_and_removals_race_with_nothing(tmp_path: Path) -> None:
    (program,) = build("life_test", instruction_sets()[-1:], THREADS, tmp_path).values()
    ended = run([program, str(ROUNDS)])
    assert ended.returncode == 0, ended.stderr
