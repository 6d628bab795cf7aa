"""A newcomer who types what the README says gets what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of this language, "" for plain ones."""
    found: list[str] = []
    inside: str | None = None
    for line in README.splitlines():
        if line.startswith("```"):
            inside = line[3:] if inside is None else None
            found += [""] if inside == language else []
        elif inside == language:
            found[-1] += line + "\n"
    return found


def test_the_five_minutes_of_the_readme(tmp_path: Path) -> None:
    (tmp_path / "slow.c").write_text(blocks("c")[0])
    commands = [line for block in blocks("") for line in block.splitlines() if line.startswith("outpace ")]
    steps = [line.split("#")[0].strip() for line in commands if "--dry-run" not in line]
    assert [step.split()[1] for step in steps] == ["init", "try", "run", "report", "export"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = {}
    for step in steps:
        done = subprocess.run(
            shlex.split(step), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{step}: {done.stdout}{done.stderr}"
        said[step.split()[1]] = done.stdout
    assert "Ready" in said["init"] and "no win" in said["try"]
    assert "the reference's speed" in said["run"] and "Receipt" in said["run"]
    # `moves` can change nothing of it but the flags, and the claim must not hide that.
    assert "all of it is compiler flags: -O3 -march=native" in said["run"]
    assert Path(tmp_path, said["report"].strip()).is_file()


def test_the_readme_s_index_finds_its_vector() -> None:
    told = blocks("python")
    assert len(told) == 1
    done = subprocess.run(
        [sys.executable, "-c", told[0] + "\nprint(ids[0], len(ids))"], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["0", "10"], done.stderr


def test_every_file_the_readme_points_to_is_there() -> None:
    root = Path(__file__).parents[2]
    links = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"^\| `([^`]+)`(?:, `[^`]+`)? \|", README, re.MULTILINE)
    assert links and all((root / link).exists() for link in links), [
        link for link in links if not (root / link).exists()
    ]


def test_the_targets_of_the_readme_are_in_the_makefile() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in re.findall(r"`?make ([a-z-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
