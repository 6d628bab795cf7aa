"""The independent loops: both functions get the same fresh inputs, with a clock around each call alone.

One for C functions (`loop.c`), one for Python functions, one for commands. They share nothing with the judge but a
task's `make_input` and its compiler flags: no jail, no worker, the wall clock instead of the CPU clock. Each has two
versions. *Warm*: the inputs were written by the core that makes the call, just before. *Sent*: they come from
another core, as the judge's do. Arguments of a Python function then arrive as bytes; reading them, and making bytes of
the answer, is part of the call. A task that is asked in bundles is in these loops too: the inputs of a bundle are
written together, and the clock goes around all of its calls.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib.util
import marshal
import mmap
import multiprocessing
import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from honest.kinds import Kind
from outpace.domains.program import ProgramDomain
from outpace.judge.abi import Signature, parse_declaration
from outpace.task import Output

HERE = Path(__file__).parent
# In the order of `enum mode` in loop.c.
MODES = ("warm", "sent", "flushed", "again", "posted")
ALIGN = 64
# Arrays of one Python call.
SHARED_BYTES = 64 << 20
Took = npt.NDArray[np.float64]
Loop = Callable[[str, int], Took]


@contextlib.contextmanager
def loop_of(kind: Kind, other_core: int, rng: np.random.Generator) -> Iterator[Loop]:
    """The loop of this kind: for a mode and a number of rounds, the nanoseconds of both sides in each round.

    The third column is the round trip between the two cores, where that was measured.
    """
    make = ProgramDomain(kind.task).make_input
    with tempfile.TemporaryDirectory(prefix="outpace-honest-") as folder:
        entry = kind.task.entry.kind
        if entry == "c":
            yield _c_loop(kind, make, Path(folder), other_core, rng)
        elif entry == "command":
            yield _command_loop(kind, make, Path(folder), other_core, rng)
        else:
            with contextlib.closing(Sender(other_core)) as sender:
                yield _python_loop(kind, make, sender, Path(folder), rng)


# C functions


def _c_loop(kind: Kind, make: Callable[..., Mapping[str, Any]], folder: Path, core: int, rng: Any) -> Loop:
    signature = parse_declaration(kind.task.entry.function)
    libraries = [_library(kind, side, signature, folder / str(side)) for side in (0, 1)]
    program = _compiled(folder / "loop", {"loop.c": (HERE / "loop.c").read_bytes()}, "cc", ["-O2", "-ldl"])
    inputs, bundle = folder / "inputs", kind.task.timing.bundle

    def loop(mode: str, count: int) -> Took:
        if mode == "sent" and kind.task.limits.threads > 1:
            mode = "posted"  # a core that waits awake could do none of the work
        given = [(int(rng.integers(2)), [make(rng) for _ in range(bundle)]) for _ in range(count)]
        inputs.write_bytes(b"".join(rounds(signature, given)))
        command = [program, *libraries, inputs, str(MODES.index(mode)), str(core)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return np.frombuffer(told, np.uint64).reshape(count, 3) / [bundle, bundle, 1]

    return loop


def rounds(signature: Signature, inputs: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]) -> Iterator[bytes]:
    """The inputs of each bundle, with who goes first, as `struct round` of loop.c and what it points to."""
    at = 0
    for first, bundle in inputs:
        arguments, image = b"", b""
        for given in bundle:
            one, content = laid_out(signature, given, len(image))
            arguments, image = arguments + one, image + content
        head = 7 * 8
        arguments_at = at + _up(head)
        image_at = arguments_at + _up(len(arguments))
        following = image_at + _up(len(image))
        width = len(arguments) // 8 // len(bundle)
        row = [first, arguments_at, image_at, len(image), following, len(bundle), width]
        yield _padded(np.array(row, "<u8").tobytes())
        yield _padded(arguments)
        yield _padded(image)
        at = following


def laid_out(signature: Signature, given: Mapping[str, Any], at: int = 0) -> tuple[bytes, bytes]:
    """The arguments of one call, numbers and where arrays lie on the desk, and the image that is copied to `at`."""
    arguments: list[int] = []
    image = b""
    for parameter in signature.parameters:
        value = given[parameter.name]
        if parameter.pointer:
            arguments.append(at + len(image))
            image += _padded(_bytes_of(value) + b"\0")  # a text ends with a zero
        else:
            arguments.append(int(value))
    # The last: where the result goes.
    return np.array([*arguments, at + len(image)], "<u8").tobytes(), image + bytes(ALIGN)


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, Output):
        value = np.zeros(value.shape, value.dtype)
    return value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes()


def _up(size: int) -> int:
    return size + -size % ALIGN


def _padded(raw: bytes) -> bytes:
    return raw.ljust(_up(len(raw)), b"\0")


def caller(signature: Signature) -> str:
    """C source of `honest_call`, which makes one call with the arrays on the desk."""
    arguments, types = [], []
    for position, parameter in enumerate(signature.parameters):
        if parameter.pointer:
            types.append(f"{parameter.c_type} *" if parameter.output else f"const {parameter.c_type} *")
            arguments.append(f"({types[-1]})(desk + arguments[{position}])")
        else:
            types.append(parameter.c_type)
            arguments.append(f"({parameter.c_type})arguments[{position}]")
    call = f"{signature.name}({', '.join(arguments)})"
    if signature.returns != "void":
        call = f"*({signature.returns} *)(desk + arguments[{len(arguments)}]) = {call}"
    return (
        f"#include <stdint.h>\n{signature.returns} {signature.name}({', '.join(types)});\n"
        f"void honest_call(char *desk, const uint64_t *arguments) {{\n    {call};\n}}\n"
    )


def _library(kind: Kind, side: int, signature: Signature, folder: Path) -> Path:
    folder.mkdir()
    (folder / "caller.c").write_text(caller(signature))
    subprocess.run(["cc", "-O2", "-fPIC", "-c", "caller.c"], cwd=folder, check=True)
    build = kind.task.build
    return _compiled(
        folder / "code.so", kind.sources(side), build.compiler, ["-shared", "-fPIC", *build.flags, "caller.o"]
    )


def _compiled(product: Path, files: Mapping[str, bytes], compiler: str, options: Sequence[str]) -> Path:
    folder = product.parent
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    subprocess.run([compiler, "-o", product.name, *files, *options, "-lm", "-lpthread"], cwd=folder, check=True)
    return product


# Python functions


def _python_loop(kind: Kind, make: Callable[..., Any], sender: Sender, folder: Path, rng: Any) -> Loop:
    functions = [_python_function(kind, side, folder) for side in (0, 1)]
    clock, loads, dumps = time.perf_counter_ns, pickle.loads, pickle.dumps

    bundle = kind.task.timing.bundle

    def warm(function: Callable[..., Any], given: Any) -> int:
        arguments = copy.deepcopy(given)
        begin = clock()
        for each in arguments:
            function(**each)
        return clock() - begin

    def sent(function: Callable[..., Any], given: Any) -> int:
        raw, buffers = sender.bring(given)
        kept: list[pickle.PickleBuffer] = []
        if not buffers:  # without arrays the interpreter's own format is the quicker one
            begin = clock()
            marshal.dumps([function(**each) for each in marshal.loads(raw)])
            return clock() - begin
        begin = clock()
        dumps([function(**each) for each in loads(raw, buffers=buffers)], 5, buffer_callback=kept.append)
        return clock() - begin

    def loop(mode: str, count: int) -> Took:
        took = np.zeros((count, 3))
        once = {"warm": warm, "sent": sent}[mode]
        gc.collect()
        gc.freeze()  # what this process holds beside is no business of the functions'
        for number in range(count):
            given = [make(rng) for _ in range(bundle)]
            for side in rng.permutation(2).tolist():
                took[number, side] = once(functions[side], given) / bundle
        gc.unfreeze()
        return took

    return loop


def _python_function(kind: Kind, side: int, folder: Path) -> Callable[..., Any]:
    path = folder / f"side{side}.py"
    (content,) = kind.sources(side).values()
    path.write_bytes(content)
    spec = importlib.util.spec_from_file_location(f"honest_{kind.name.replace('-', '_')}_{side}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, kind.task.entry.function)
    return function


class Sender:
    """A process on the other core that makes bytes of what it gets; arrays it writes to shared memory."""

    def __init__(self, core: int) -> None:
        self._memory = mmap.mmap(-1, SHARED_BYTES)
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=self._serve, args=(theirs, core), daemon=True)
        self._process.start()
        theirs.close()

    def bring(self, given: Any) -> tuple[bytes, list[memoryview]]:
        """The bytes, and the arrays that belong to them, as the other core has left them."""
        self._connection.send(given)
        raw, places = self._connection.recv()
        return raw, [memoryview(self._memory)[begin:end] for begin, end in places]

    def close(self) -> None:
        self._connection.send(None)
        self._process.join()
        self._connection.close()

    def _serve(self, connection: Connection, core: int) -> None:
        os.sched_setaffinity(0, {core})
        while (given := connection.recv()) is not None:
            buffers: list[pickle.PickleBuffer] = []
            raw, places, at = pickle.dumps(given, 5, buffer_callback=buffers.append), [], 0
            for buffer in buffers:
                content = buffer.raw()
                self._memory[at : at + content.nbytes] = content
                places.append((at, at + content.nbytes))
                at = _up(at + content.nbytes)
            connection.send((raw if places else marshal.dumps(given), places))


# Commands


def _command_loop(kind: Kind, make: Callable[..., Any], folder: Path, core: int, rng: Any) -> Loop:
    programs = [_program(kind, side, folder) for side in (0, 1)]

    def once(program: str, given: bytes, mode: str) -> int:
        with _file(given, core if mode == "sent" else None) as standard_input, _file(b"") as standard_output:
            files = [(os.POSIX_SPAWN_DUP2, standard_input, 0), (os.POSIX_SPAWN_DUP2, standard_output, 1)]
            begin = time.perf_counter_ns()
            process = os.posix_spawn(program, [program], {}, file_actions=files)
            os.waitpid(process, 0)
            return time.perf_counter_ns() - begin

    def loop(mode: str, count: int) -> Took:
        took = np.zeros((count, 3))
        for number in range(count):
            given = make(rng)["stdin"]
            raw = given.encode() if isinstance(given, str) else given
            for side in rng.permutation(2).tolist():
                took[number, side] = once(programs[side], raw, mode)
        return took

    return loop


@contextlib.contextmanager
def _file(content: bytes, core: int | None = None) -> Iterator[int]:
    """A file in memory, written by this core or by another one."""
    descriptor = os.memfd_create("file")
    cores = os.sched_getaffinity(0)
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.sched_setaffinity(0, cores)
        yield descriptor
    finally:
        os.sched_setaffinity(0, cores)
        os.close(descriptor)


def _program(kind: Kind, side: int, folder: Path) -> str:
    build = kind.task.build
    return str(_compiled(folder / str(side) / "program", kind.sources(side), build.compiler, build.flags))
