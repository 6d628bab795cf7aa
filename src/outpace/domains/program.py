"""The `program` domain: any C or C++ function, Python callable or command, with the task's own judge.py."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from outpace.candidate import Candidate
from outpace.domains.base import Input
from outpace.errors import TaskError
from outpace.judge import abi, batch
from outpace.judge.batch import Batch
from outpace.judge.build import BuildPlan
from outpace.judge.compare import difference, nonfinite
from outpace.judge.jail import MIB, Bind, Confinement, JailKind
from outpace.judge.worker import Program
from outpace.task import Task

_LIBRARY = "outpace-candidate.so"
_SHIM = "outpace-shim.c"
# Loading, set-up and the first calls may take this much longer than the reference's: a small table in C, an import
# such as NumPy's in Python.
ONCE_SECONDS = {"c": 0.02, "python": 0.3, "command": 0.3}
_CODE = Path(__file__).parents[1] / "judge"


class ProgramDomain:
    """A task.toml with its judge.py, ready to be asked."""

    def __init__(self, task: Task) -> None:
        self.task = task
        entry = task.entry
        self._signature = abi.parse_declaration(entry.function) if entry.kind == "c" else None
        self._setup = abi.parse_declaration(entry.setup) if entry.kind == "c" and entry.setup else None
        self._judge = _load_judge(task)
        self._make_input: Callable[[np.random.Generator], Input] = _required(self._judge, "make_input", task)
        self._make_setup = getattr(self._judge, "make_setup", None)
        self._edge_inputs = getattr(self._judge, "edge_inputs", None)
        self._check = getattr(self._judge, "check", None)
        if bool(entry.setup) != (self._make_setup is not None):
            raise TaskError(
                f"{task.checking.file}: make_setup and [entry] setup need each other; only one of them is there"
            )

    # Building

    def build_plan(self, candidate: Candidate) -> BuildPlan:
        """The task's files with the candidate's in their place; judge.py and the task file stay outside."""
        task, build = self.task, self.task.build
        private = {task.checking.file, "task.toml"}
        files = {name: content for name, content in task.files.items() if name not in private}
        files |= {name: text.encode() for name, text in candidate.files.items()}
        commands: list[tuple[str, ...]] = []
        product = build.product
        if task.entry.kind == "python":
            product = task.entry.module
        elif build.command:
            # A build command finds the chosen flags where make and its kin look for them.
            flags = " ".join(candidate.flags)
            commands.append((f"CFLAGS={flags}", f"CXXFLAGS={flags}", *build.command))
            if task.entry.kind == "c":
                commands += self._link_shim(files, (build.product,), build.compiler or "cc")
                product = _LIBRARY
        else:
            compile_flags = (*candidate.flags, "-o")
            if task.entry.kind == "c":
                files[_SHIM] = self._shim().encode()
                commands.append(("cc", "-O2", "-fPIC", "-c", "-o", "outpace-shim.o", _SHIM))
                commands.append(
                    (
                        build.compiler,
                        "-shared",
                        "-fPIC",
                        *compile_flags,
                        _LIBRARY,
                        *build.sources,
                        "outpace-shim.o",
                        "-lm",
                        "-lpthread",
                    )
                )
                product = _LIBRARY
            else:
                product = product or Path(task.entry.command[0]).name
                commands.append((build.compiler, *compile_flags, product, *build.sources, "-lm", "-lpthread"))
        limits = task.limits
        return BuildPlan(
            files,
            tuple(commands),
            product,
            limits.build_seconds,
            max(limits.memory_mb, 1024) * MIB,
            max(limits.disk_mb, 256) * MIB,
            tuple(Bind(Path(path), path) for path in task.environment.paths),
        )

    def _link_shim(self, files: dict[str, bytes], objects: tuple[str, ...], compiler: str) -> list[tuple[str, ...]]:
        files[_SHIM] = self._shim().encode()
        return [
            ("cc", "-O2", "-fPIC", "-c", "-o", "outpace-shim.o", _SHIM),
            (
                compiler,
                "-shared",
                "-o",
                _LIBRARY,
                "outpace-shim.o",
                *(f"./{name}" for name in objects),
                "-Wl,-rpath,$ORIGIN",
                "-lm",
                "-lpthread",
            ),
        ]

    def _shim(self) -> str:
        assert self._signature is not None
        return abi.shim(self._signature, self._setup)

    # Running

    def program(self, kind: JailKind, folder: Path) -> Program:
        """The worker of the candidate built in `folder`; reference and candidate look the same from inside."""
        task, limits = self.task, self.task.limits
        place = Bind(folder, "/candidate")
        binds = [place, *(Bind(Path(path), path) for path in task.environment.paths)]
        hidden: tuple[str, ...] = ()
        variables = dict(task.environment.variables)
        if task.entry.kind == "c":
            inner: tuple[str, ...] = ("function", f"{place.seen_as(kind)}/{_LIBRARY}")
        elif task.entry.kind == "command":
            inner = (
                "command",
                "--",
                _inside(task.entry.command[0], place.seen_as(kind)),
                *task.entry.command[1:],
            )
        else:
            python = PythonEnvironment.of(task)
            code = [Bind(_CODE / name, f"/outpace/{name}") for name in ("python_worker.py", "wire.py")]
            binds += [*code, *python.binds]
            hidden = python.hidden
            variables |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
            paths = [bind.seen_as(kind) for bind in python.packages]
            inner = (
                "exec",
                "--",
                python.executable,
                "-I",
                "-S",
                code[0].seen_as(kind),
                "{socket}",
                "{input}",
                "{output}",
                "{input_bytes}",
                "{output_bytes}",
                f"{place.seen_as(kind)}/{task.entry.module}",
                task.entry.function,
                task.entry.setup,
                str(Path(code[1].seen_as(kind)).parent),
                *dict.fromkeys(str(Path(path).parent) for path in paths),
                *python.folders,
            )
            binds += python.packages
        confinement = Confinement(
            binds=tuple(binds),
            hidden=hidden,
            environment=variables,
            folder=place.seen_as(kind),
            memory=limits.memory_mb * MIB,
            disk=limits.disk_mb * MIB,
            file_size=limits.disk_mb * MIB,
            cpu_seconds=3600,
            processes=limits.processes,
            threads=limits.threads,
            fork=task.entry.kind == "command" and limits.processes > 1,
        )
        return Program(confinement, inner, limits.seconds, limits.setup_seconds, ONCE_SECONDS[task.entry.kind])

    # Inputs and answers

    def make_input(self, rng: np.random.Generator) -> Input:
        return self._make_input(rng)

    def make_setup(self, rng: np.random.Generator) -> Input | None:
        return None if self._make_setup is None else self._make_setup(rng)

    def edge_inputs(self) -> Sequence[Input]:
        return [] if self._edge_inputs is None else list(self._edge_inputs())

    def batch(self, inputs: Sequence[Input]) -> Batch:
        output_bytes = self.task.limits.output_mb * MIB
        if self._signature is not None:
            return batch.function_batch(self._signature, inputs)
        if self.task.entry.kind == "python":
            return batch.python_batch(inputs, output_bytes)
        return batch.command_batch(inputs, self.task.entry.outputs, output_bytes)

    def setup_batch(self, data: Input) -> Batch:
        if self._setup is not None:
            return batch.function_batch(self._setup, [data])
        return batch.python_batch([data], self.task.limits.output_mb * MIB)

    def check(self, given: Input, answer: Any, expected: Any) -> str:
        """The task's own check, or a comparison; numbers that are not finite pass only where the task says so."""
        checking = self.task.checking
        if not checking.allow_nonfinite:
            reason = nonfinite(answer)
            if reason:
                return reason
        if self._check is None:
            return difference(expected, answer, checking.tolerance)
        return str(self._check(given, answer, expected) or "")


@dataclass(frozen=True)
class PythonEnvironment:
    """What a jailed Python sees: an interpreter with its standard library, and the packages the task names."""

    executable: str
    binds: tuple[Bind, ...]
    hidden: tuple[str, ...]
    packages: tuple[Bind, ...]
    folders: tuple[str, ...]

    @staticmethod
    def of(task: Task) -> PythonEnvironment:
        wanted = task.environment
        if wanted.python:
            # An environment of the user's own: its interpreter and everything installed into it.
            executable = Path(wanted.python)
            prefix = executable.parents[1]
            real = executable.resolve()
            binds = [Bind(path, str(path)) for path in {prefix, real.parents[1]} if not _in_system(path)]
            folders = tuple(str(path) for path in prefix.glob("lib/python3*/site-packages"))
            return PythonEnvironment(str(executable), tuple(binds), (), (), folders)
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
        return PythonEnvironment(str(executable), tuple(binds), tuple(sorted(hidden)), packages, ())


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


def _inside(command: str, folder: str) -> str:
    relative = "/" in command and not Path(command).is_absolute()
    return f"{folder}/{command.removeprefix('./')}" if relative else command


def _load_judge(task: Task) -> ModuleType:
    """The task's judge.py, run from its stored text so that a receipt's judge is the one that was hashed."""
    name = f"outpace_judge_{task.hash[:12]}"
    spec = importlib.util.spec_from_loader(name, loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    source = task.files[task.checking.file]
    try:
        exec(compile(source, str(task.folder / task.checking.file), "exec"), module.__dict__)
    except Exception as error:  # a user's file may fail in any way; all of them are one kind of trouble
        raise TaskError(
            f"{task.folder / task.checking.file} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return module


def _required(module: ModuleType, name: str, task: Task) -> Any:
    if not callable(getattr(module, name, None)):
        raise TaskError(f"{task.checking.file} has no function {name}(rng)")
    return getattr(module, name)
