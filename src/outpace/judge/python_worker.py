"""The Python worker: runs inside the jail, loads the candidate's module and serves calls to it.

Nothing here is trusted by the judge: the candidate shares this process. What is sent back is data in the fixed
format of `wire.py`, and all time spent here, encoding included, is on the candidate's clock.

Arguments: socket fd, input fd, output fd, input bytes, output bytes, module file, function, setup function or "",
then folders to import from.
"""

import importlib.util
import mmap
import os
import struct
import sys
import traceback
from types import ModuleType
from typing import Any

REQUEST = struct.Struct("<QIIQQ")
REPLY = struct.Struct("<QIIQ232s")
LENGTH = struct.Struct("<Q")
SETUP, LOAD, GO, _, PREPARE = 1, 2, 3, 4, 5
POPULATE_READ, POPULATE_WRITE = 22, 23  # MADV_POPULATE_*, which the mmap module does not name
DONE, READY, LOAD_FAILED, CALL_FAILED = 0, 2, 3, 6


def main() -> None:
    sock, input_fd, output_fd, input_bytes, output_bytes = map(int, sys.argv[1:6])
    path, function_name, setup_name = sys.argv[6:9]
    sys.path[:0] = [os.path.dirname(path), *sys.argv[9:]]  # noqa: PTH120 - few imports: they cost every worker
    wire = load(os.path.join(os.path.dirname(__file__), "wire.py"), "outpace_wire")  # noqa: PTH118, PTH120
    pack_into, unpack = wire.pack_into, wire.unpack

    inputs = mmap.mmap(input_fd, input_bytes, prot=mmap.PROT_READ)
    view = memoryview(inputs)
    outputs = mmap.mmap(output_fd, output_bytes)
    answers = memoryview(outputs)
    os.close(input_fd)
    os.close(output_fd)

    def say(nonce: int, status: int, detail: int = 0, text: str = "") -> None:
        os.write(sock, REPLY.pack(nonce, status, detail, 0, text.encode("utf-8", "replace")[-231:]))

    try:
        module = load(path)
        function = getattr(module, function_name)
        setup = getattr(module, setup_name) if setup_name else None
    except BaseException as error:
        say(0, LOAD_FAILED, text=story(error, path))
        return
    say(0, READY)
    loaded: list[dict[str, Any]] = []
    while True:
        nonce, verb, count, first, second = REQUEST.unpack(os.read(sock, REQUEST.size))
        number = 0
        try:
            if verb == LOAD:
                loaded, at = [], first
                for _ in range(count):
                    values, at = unpack(view, at)
                    loaded.append(values)
            elif verb == GO:
                at = 0
                for number, values in enumerate(loaded):  # noqa: B007 - told when a call fails
                    end = pack_into(function(**values), answers, at + LENGTH.size)
                    LENGTH.pack_into(answers, at, end - at - LENGTH.size)
                    at = end
            elif verb == SETUP:
                assert setup is not None
                setup(**unpack(view, first)[0])
            elif verb == PREPARE:
                populate(inputs, POPULATE_READ, first)
                populate(outputs, POPULATE_WRITE, second)
            else:
                os._exit(0)
            say(nonce, DONE)
        except BaseException as error:
            say(nonce, CALL_FAILED, number, story(error, path))
            os._exit(1)


def populate(region: mmap.mmap, advice: int, size: int) -> None:
    """Map the first `size` bytes now, so that no call pays for the first touch."""
    if size:
        try:
            region.madvise(advice, 0, min(size + -size % mmap.PAGESIZE, len(region)))
        except OSError:  # a kernel before 5.14
            for at in range(0, size, mmap.PAGESIZE):
                if advice == POPULATE_READ:
                    region[at]
                else:
                    region[at] = region[at]


def load(path: str, name: str = "") -> ModuleType:
    """The module in this file, by default under its own name, so that its classes and errors read naturally."""
    name = name or os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122 - as above
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def story(error: BaseException, path: str) -> str:
    """The error and the candidate's own line that raised it, short enough for one reply."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f"line {frames[-1].lineno}: " if frames else ""
    return where + "".join(traceback.format_exception_only(type(error), error)).strip()[:200]


main()
