"""The `program` domain: any C or C++ function, Python callable or command, with the task's own judge.py."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from outpace.domains.base import Excuse, Input
from outpace.domains.interpreter import Interpreter
from outpace.domains.recipe import LIBRARY, THREADS_OWN, own_program, recipe
from outpace.errors import TaskError
from outpace.judge import abi, question
from outpace.judge.build import BuildPlan
from outpace.judge.compare import disagreement, nonfinite, other_form
from outpace.judge.jail import MIB, Bind, Confinement, JailKind
from outpace.judge.nudge import coarsest
from outpace.judge.question import Question
from outpace.judge.worker import Program
from outpace.task import Task
from outpace.task.candidate import Candidate

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

    # Building and starting

    def build_plan(self, candidate: Candidate) -> BuildPlan:
        """What to lay out and run so that this candidate can be started."""
        shim = abi.shim(self._signature, self._setup) if self._signature is not None else ""
        return recipe(self.task, candidate, shim)

    def program(self, kind: JailKind, folder: Path) -> Program:
        """The worker of the candidate built in `folder`; reference and candidate look the same from inside."""
        task, limits = self.task, self.task.limits
        place = Bind(folder, "/candidate")
        binds = [place, *(Bind(Path(path), path) for path in task.environment.paths)]
        variables = dict(task.environment.variables)
        hidden: tuple[str, ...] = ()
        if task.entry.kind == "c":
            inner: tuple[str, ...] = ("function", f"{place.seen_as(kind)}/{LIBRARY}")
            variables = {"GLIBC_TUNABLES": f"glibc.rtld.optional_static_tls={THREADS_OWN}", **variables}
        elif task.entry.kind == "command":
            inner = ("command", "--", self._program_path(place.seen_as(kind)), *task.entry.command[1:])
        else:
            interpreter = Interpreter.of(task)
            inner = self._python_worker(kind, interpreter, place)
            binds += [*self._worker_code(), *interpreter.binds, *interpreter.packages]
            hidden = interpreter.hidden
            variables = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **variables}
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
        return Program(
            confinement,
            inner,
            limits.seconds,
            limits.setup_seconds,
            by_message=task.entry.kind != "c",
            makes_ready=task.entry.kind == "python",
            serves_processes=task.entry.kind == "command",
        )

    def _program_path(self, folder: str) -> str:
        name = own_program(self.task)
        path = f"{folder}/{name}" if name else shutil.which(self.task.entry.command[0])
        if path is None:
            raise TaskError(
                f"[entry] command: there is no program '{self.task.entry.command[0]}' here; install it or build it"
            )
        return path

    def _python_worker(self, kind: JailKind, interpreter: Interpreter, place: Bind) -> tuple[str, ...]:
        entry = self.task.entry
        worker = self._worker_code()[0].seen_as(kind)
        regions = ("socket", "input", "output", "input_bytes", "output_bytes")
        memory = ("populate_input", "populate_output", "freed")
        called = (f"{place.seen_as(kind)}/{entry.module}", entry.function, entry.setup)
        # Arguments may be arrays, so that no honest candidate can do without it.
        wanted = self.task.environment
        beforehand = "numpy" if wanted.python or "numpy" in wanted.packages else ""
        folders = dict.fromkeys(str(Path(bind.seen_as(kind)).parent) for bind in interpreter.packages)
        # No site-packages but those that are named. The environment is ours: it fixes the seed of hashes, so that sets
        # have one order in all processes, and -I would ignore it.
        return (
            "exec",
            "--",
            interpreter.executable,
            "-s",
            "-P",
            "-S",
            worker,
            *(f"{{{name}}}" for name in (*regions, *memory)),
            *called,
            beforehand,
            *folders,
            *interpreter.folders,
        )

    @staticmethod
    def _worker_code() -> list[Bind]:
        return [Bind(_CODE / name, f"/outpace/{name}") for name in ("python_worker.py", "wire.py")]

    # Inputs and answers

    def make_input(self, rng: np.random.Generator) -> Input:
        return self._make_input(rng)

    def make_setup(self, rng: np.random.Generator) -> Input | None:
        return None if self._make_setup is None else self._make_setup(rng)

    def edge_inputs(self) -> Sequence[Input]:
        return [] if self._edge_inputs is None else list(self._edge_inputs())

    def question(self, inputs: Sequence[Input], *, known_blank: bool = False) -> Question:
        """One call, or a bundle of them, laid out for the worker."""
        if self._signature is not None:
            align = self.task.entry.align
            return question.function_question(self._signature, inputs, align=align, known_blank=known_blank)
        if self.task.entry.kind == "python":
            return question.python_question(inputs)
        (given,) = inputs
        return question.command_question(given, self.task.entry.outputs, self.task.limits.output_mb * MIB)

    def setup_question(self, data: Input) -> Question:
        """The set-up call laid out for the worker."""
        if self._setup is not None:
            return question.function_question(self._setup, [data], align=self.task.entry.align, setup=True)
        return question.python_question([data], setup=True)

    def check(self, given: Input, answer: Any, expected: Any, excuse: Excuse | None = None) -> str:
        """The task's own check, or a comparison; numbers that are not finite pass only where the task says so."""
        checking = self.task.checking
        if not checking.allow_nonfinite:
            reason = nonfinite(answer)
            if reason:
                return reason
        if self._check is None:
            return disagreement(
                expected, answer, checking.tolerance, floor=checking.floor, excuse=excuse, step=coarsest(given)
            )
        # A check that never thought of another form may find nothing in it, or all the memory of this machine: an array
        # of (0, 1) is as good as any number of elements to NumPy, and one of (n, 1) makes n * n of n.
        reason = "" if checking.any_form else other_form(expected, answer)
        return reason or str(self._check(given, answer, expected) or "")


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
