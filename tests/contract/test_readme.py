"""A newcomer who types what the README says gets what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from model_server import says, serving

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


def test_the_model_example_of_the_readme_works_as_written(tmp_path: Path) -> None:
    (command,) = [line for block in blocks("") for line in block.splitlines() if "--dry-run" in line]
    (tmp_path / "slow.c").write_text(blocks("c")[0])
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("OPENAI_API_KEY", None)

    def typed(words: str) -> tuple[int, str]:
        done = subprocess.run(
            shlex.split(words), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    assert typed("outpace init slow.c dot")[0] == 0
    with serving(says("no code at all")) as book:
        here = command.replace("http://localhost:8000/v1", book.url)
        assert here != command
        status, said = typed(here)
        assert status == 0 and "No model was called" in said, said
        assert book.requests == []
        # And so do the ways to end it that the README names.
        for limit in ("--tokens 1000000", "--money 5 --price-in 1 --price-out 1"):
            begun = here.replace(" --dry-run", f" {limit}").replace("--trials 20", "--trials 1")
            status, said = typed(f"{begun} --name {limit.split()[0].strip('-')}")
            assert status == 0 and "1 unusable" in said, said
        assert book.requests[0][2]["model"] == "MODEL"


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
    targets = re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE)
    assert {"run", "test", "help"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_says_where_make_has_put_the_program() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (folder,) = re.findall(r"^VENV := (.*)$", makefile, re.MULTILINE)
    steps = [line for block in blocks("") for line in block.splitlines()]
    first = next(number for number, line in enumerate(steps) if line.startswith("outpace "))
    assert f". {folder}/bin/activate" in steps[:first]


def test_every_target_is_listed_by_make_help() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_what_the_quick_tests_leave_out_is_there() -> None:
    root = Path(__file__).parents[2]
    told = re.search(r"^SLOW := ((?:.*\\\n)*.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert told is not None
    for name in told[1].replace("\\\n", " ").split():
        assert list((root / "tests/unit").glob(f"test_{name.replace('%', '*')}.py")), name
