"""The interpreter of a Python task: what a jailed Python sees of this machine."""

from __future__ import annotations

import importlib.metadata
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from outpace.errors import TaskError
from outpace.judge.jail import Bind
from outpace.task import Task


@dataclass(frozen=True)
class Interpreter:
    """What a jailed Python sees: an interpreter with its standard library, and the packages the task names."""

    executable: str
    binds: tuple[Bind, ...]
    hidden: tuple[str, ...]
    packages: tuple[Bind, ...]
    folders: tuple[str, ...]

    @staticmethod
    def of(task: Task) -> Interpreter:
        wanted = task.environment
        if wanted.python:
            # An environment of the user's own: its interpreter and everything installed into it.
            executable = Path(wanted.python)
            prefix = executable.parents[1]
            real = executable.resolve()
            binds = [Bind(path, str(path)) for path in {prefix, real.parents[1]} if not _in_system(path)]
            folders = tuple(str(path) for path in prefix.glob("lib/python3*/site-packages"))
            return Interpreter(str(executable), tuple(binds), (), (), folders)
        base = Path(sys.base_prefix)
        executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        binds = [] if _in_system(base) else [Bind(base, str(base))]
        scheme = sysconfig.get_paths(vars={"base": str(base), "platbase": str(base)})
        hidden = {
            path
            for path in (scheme["purelib"], scheme["platlib"], "/usr/lib/python3/dist-packages")
            if Path(path).is_dir()
        }
        packages = tuple(bind for name in wanted.packages for bind in _distribution(name, task))
        return Interpreter(str(executable), tuple(binds), tuple(sorted(hidden)), packages, ())


def _distribution(name: str, task: Task) -> list[Bind]:
    """The top-level files and folders of an installed distribution, each bound alone so that nothing else is seen."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise TaskError(
            f"task {task.name} wants the package '{name}', which is not installed here; run `pip install {name}`"
        ) from None
    tops = sorted({file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")})
    places = [Path(str(distribution.locate_file(top))) for top in tops]
    return [Bind(place.resolve(), f"/packages/{place.name}") for place in places if place.exists()]


def _in_system(path: Path) -> bool:
    return path.is_relative_to("/usr")  # bound already, see jail.py
