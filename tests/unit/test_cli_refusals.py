"""What the command line refuses before anything is judged, and what it says to do instead."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cli_facts import FILES, lay_out

from conftest import Cli
from outpace.cli.alone import alone_in
from outpace.errors import OutpaceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small task."""
    made = tmp_path / "total"
    lay_out(made)
    return made


# One run at a time


def test_a_second_run_in_a_folder_is_refused_with_the_first_ones_process(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    script = "import sys, time\nfrom pathlib import Path\nfrom outpace.cli.alone import alone_in\n"
    script += "with alone_in(Path(sys.argv[1])):\n    print('in', flush=True)\n    time.sleep(600)\n"
    first = subprocess.Popen([sys.executable, "-c", script, str(place)], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "in\n"
        with pytest.raises(OutpaceError) as told, alone_in(place):
            pass
    finally:
        first.kill()
        first.wait()
        first.stdout.close()
    assert f"in use by another run, process {first.pid}: wait until it has ended, stop it with" in str(told.value)
    # Killed, it leaves nothing that would have to be removed by hand.
    with alone_in(place), pytest.raises(OutpaceError, match=f"process {os.getpid()}"), alone_in(place):
        pass


@pytest.mark.parametrize("words", [("--trials", "0"), ("--trials", "-3"), ("--minutes", "0"), ("--minutes", "nan")])
@pytest.mark.parametrize("command", ["run", "attack"])
def test_a_limit_that_leaves_nothing_to_do_is_refused(
    command: str, words: tuple[str, ...], cli: Cli, folder: Path, tmp_path: Path
) -> None:
    status, _, err = cli(command, str(folder), *words)
    assert status == 1 and f"{words[0]} " in err and "give a number above 0" in err
    assert not (tmp_path / ".outpace").exists()


@pytest.mark.parametrize("command", ["run", "attack"])
def test_a_task_with_nothing_to_try_is_refused_at_once(command: str, cli: Cli, folder: Path, tmp_path: Path) -> None:
    text = textwrap.dedent(FILES["task.toml"]).replace('build = { flag_choices = [["-O2", "-O3"]] }', "")
    (folder / "task.toml").write_text(text)
    status, _, err = cli(command, str(folder))
    assert status == 1 and "nothing to try: mark lines of sum.c with" in err and "flag_choices" in err
    assert not (tmp_path / ".outpace").exists()


def test_flags_may_be_given_as_the_help_says(cli: Cli, folder: Path) -> None:
    # Refused by the task, not by the command line.
    _, out, err = cli("try", str(folder), "--no-jail", "--flags", "-O9 -funheard-of")
    assert "not among those the task allows" in out, err
    status, _, err = cli("attack", str(folder), "--honest-flags", "-O3 -march=native", "--trials", "0")
    assert status == 1 and "--trials 0" in err
