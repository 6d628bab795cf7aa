"""The task: what may be edited, how it is built, called, checked and limited."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

EntryKind = Literal["c", "python", "command"]


@dataclass(frozen=True)
class Output:
    """In a judge's input: an array of this shape that the C function is to fill."""

    shape: tuple[int, ...]
    dtype: str

    def __init__(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> None:
        object.__setattr__(self, "shape", (shape,) if isinstance(shape, int) else tuple(shape))
        object.__setattr__(self, "dtype", np.dtype(dtype).str)


@dataclass(frozen=True)
class Build:
    """How sources become something that can be run; `command` is empty for a plain compile."""

    compiler: str = ""
    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    # Each group is a choice of one; "" stands for none of them. The policy may pick, and the headline
    # is also measured against the reference built with the best of these.
    flag_choices: tuple[tuple[str, ...], ...] = ()
    command: tuple[str, ...] = ()
    product: str = ""
    # Of a C function: files that make a library of their own, with the task's flags, which calls what the sources make.
    glue: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """What is called: a C function by its declaration, a Python callable, or a command."""

    kind: EntryKind
    function: str = ""
    setup: str = ""
    # Bytes of which the address of every array is a multiple, in C. 0: as its elements need it.
    align: int = 0
    module: str = ""
    command: tuple[str, ...] = ()
    # Files that a command leaves in its folder and that are part of its answer.
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """What a candidate may use; each limit that is hit is named in the verdict."""

    seconds: float = 10.0
    setup_seconds: float = 30.0
    build_seconds: float = 60.0
    memory_mb: int = 2048
    disk_mb: int = 256
    output_mb: int = 64
    processes: int = 1
    threads: int = 1

    @property
    def parallel(self) -> bool:
        """Whether a candidate may use several cores, so that its CPU time no longer tells how long it takes."""
        return self.threads > 1 or self.processes > 1


@dataclass(frozen=True)
class Environment:
    """What the candidate may see beside its own files."""

    python: str = ""
    packages: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checking:
    """How an answer is checked when the task's judge has no `check` of its own."""

    file: str = "judge.py"
    # How far a number may be off relative to its expected value, and how far in any case.
    tolerance: float = 0.0
    floor: float = 0.0
    allow_nonfinite: bool = False
    # Whether a task's own check also gets answers of other types, keys, lengths and shapes than the reference's.
    any_form: bool = False

    @property
    def agreement(self) -> str:
        """How closely numbers must agree, in words; "" where they must be equal."""
        relative = f"a relative {self.tolerance:g}" if self.tolerance else ""
        absolute = f"an absolute {self.floor:g}" if self.floor else ""
        return " plus ".join(filter(None, (relative, absolute)))


@dataclass(frozen=True)
class Timing:
    """How sure a claim must be, how long one timed turn lasts, and what use of the code a figure stands for."""

    margin: float = 1.01
    sample_ms: float = 6.0
    # How many inputs are asked as one question. Above 1 the figure is a throughput: a candidate sees them together.
    bundle: int = 1
    # Calls that a process of the user's makes; once-work is spread over them. 0: what the reference makes in 10 s.
    lifetime: int = 0


@dataclass(frozen=True)
class Task:
    """One optimisation problem; `files` holds every text of its folder, editable or not."""

    name: str
    description: str
    folder: Path
    editable: tuple[str, ...]
    files: Mapping[str, bytes]
    entry: Entry
    build: Build = Build()
    limits: Limits = Limits()
    environment: Environment = field(default_factory=Environment)
    checking: Checking = Checking()
    timing: Timing = Timing()

    @property
    def hash(self) -> str:
        """Names this task by its content, wherever its folder is."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(f"{name}\0{len(self.files[name])}\0".encode())
            digest.update(self.files[name])
        return digest.hexdigest()

    def text(self, name: str) -> str:
        """An editable file's text."""
        return self.files[name].decode()
