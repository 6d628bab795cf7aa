"""The wheel that `make wheel` built, installed into a fresh environment: on this processor, and on older ones."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wheel_programs import OLDER, install, life, newest_wheel


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(newest_wheel(), tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every processor leaves its index."""
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture(scope="module")
def native(python: Path, folder: Path) -> dict[str, Any]:
    return life(python, folder)


def test_the_wheel_is_for_many_linuxes() -> None:
    assert "-manylinux_" in newest_wheel().name


def test_the_wheel_brings_the_commands_and_a_launcher_that_runs(python: Path) -> None:
    (launcher,) = python.parents[1].glob("lib/python*/site-packages/outpace/bin/outpace-launch")
    assert "no mode given" in subprocess.run([launcher], capture_output=True, text=True).stderr
    assert subprocess.run([python.parent / "outpace", "--help"], capture_output=True).returncode == 0


def test_an_index_is_built_saved_mapped_and_searched_on_this_processor(native: dict[str, Any], python: Path) -> None:
    assert native["package"].startswith(str(python.parents[1]))
    assert native["answers"] == dict.fromkeys(["native, graph", "native, partitions"], native["true"])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulated processors are of x86-64")
@pytest.mark.parametrize(("processor", "instruction_set"), OLDER.items())
def test_an_older_processor_uses_what_it_has_and_finds_the_same(
    native: dict[str, Any], python: Path, folder: Path, processor: str, instruction_set: str
) -> None:
    seen = life(python, folder, processor)
    assert seen["instruction_set"] == instruction_set
    assert {"native, graph", f"{processor}, graph"} <= set(seen["answers"])
    for name, answers in seen["answers"].items():
        assert answers == native["true"], name
