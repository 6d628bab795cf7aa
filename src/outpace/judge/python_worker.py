"""The Python worker: runs inside the jail, loads the candidate's module and answers one question at a time.

Nothing here is trusted by the judge: the candidate shares this process. What is sent back is data in the fixed
format of `wire.py`, and all time spent here, encoding included, is on the candidate's clock.

Arguments: socket fd, input fd, output fd, input bytes, output bytes, how much of both to map at once, the largest
array that callers make and free, module file, function, setup function or "", a module to import beforehand or "",
then folders to import from.
"""

import contextlib
import importlib.util
import mmap
import os
import struct
import sys
import time
import traceback
from types import ModuleType
from typing import Any

REQUEST = struct.Struct("<IIQII")
REPLY = struct.Struct("<QIIQ232s")
LENGTH = struct.Struct("<Q")
NONCE = struct.Struct("<I")
# The desk in native/launcher/message.hpp: where the answer's nonce and length stand, and where answers begin.
ANSWERED_AT, CONVERTING_AT, BYTES_AT, CALLING_AT, PIECES_AT, DESK_BYTES = 64, 68, 72, 88, 128, 4096
SIZES = struct.Struct("<QQ")
PIECE = struct.Struct("<QQQ")
# Where an array keeps the address of its elements: right behind what every object has. To ask for the address itself
# makes a dozen objects, after every call and with cold caches.
POINTER_AT = object.__basicsize__
SETUP, WANTS_REPLY, FETCHES, CONVERTS, UNCHANGED, KEEPS, LETS_GO = 1, 2, 4, 16, 32, 64, 128
POPULATE_READ, POPULATE_WRITE = 22, 23  # MADV_POPULATE_*, which the mmap module does not name
DONE, HELLO, READY, LOAD_FAILED, CALL_FAILED = 0, 1, 2, 3, 6
# Made by `outpace init`: what it takes to call a function with other parameters, and to make its answer plain.
GLUE = "outpace_glue.py"
CHANGED = "it changes its arguments, which is no part of its answer: return what it changes, or change a copy"


def main() -> None:
    sock, input_fd, output_fd, input_bytes, output_bytes = map(int, sys.argv[1:6])
    populate_input, populate_output, freed = map(int, sys.argv[6:9])
    path, function_name, setup_name, beforehand = sys.argv[9:13]
    sys.path[:0] = sys.argv[13:]
    if beforehand:
        with contextlib.suppress(ImportError):  # an environment of the user's own may not have it
            # Never touched: malloc learns from it, as from any caller's inputs, that blocks so large come and go.
            importlib.import_module(beforehand).empty(freed, "u1")
    wire = load(os.path.join(os.path.dirname(__file__), "wire.py"), "outpace_wire")  # noqa: PTH118, PTH120 - few imports
    # The thread's CPU clock: under a limit on CPU time the kernel brings the process's up to date at ticks alone.
    pack_into, unpack, read, spent = wire.pack_into, wire.unpack, os.read, time.thread_time_ns

    inputs = mmap.mmap(input_fd, input_bytes, prot=mmap.PROT_READ)
    view = memoryview(inputs)
    desk = mmap.mmap(output_fd, output_bytes)
    answers = memoryview(desk)[DESK_BYTES:]
    # With the duplicates that mmap keeps: with a descriptor holes could be punched into a region.
    os.closerange(3, sock)
    os.closerange(sock + 1, max(sock, input_fd, output_fd) + 8)
    populate(inputs, POPULATE_READ, populate_input)
    populate(desk, POPULATE_WRITE, DESK_BYTES + populate_output)

    def say(nonce: int, status: int, detail: int = 0, text: str = "", value: int = 0) -> None:
        os.write(sock, REPLY.pack(nonce, status, detail, value, text.encode("utf-8", "replace")[-231:]))

    # Nothing of the candidate's has been looked for so far: its folder may hold modules of any name.
    sys.path[:0] = [os.path.dirname(path)]  # noqa: PTH120
    say(0, HELLO, text=str(time.monotonic_ns()), value=spent())
    glue = None
    try:
        module = load(path)
        function = getattr(module, function_name)
        named = os.path.basename(path) == GLUE  # noqa: PTH119 - few imports
        glue = module if named and hasattr(module, "function") else None
        setup = getattr(module, setup_name) if setup_name else None
    except BaseException as error:
        say(0, LOAD_FAILED, text=story(error, path))
        return
    say(0, READY)
    apart: list[tuple[int, int, Any]] = []
    held: list[list[tuple[int, int, Any]]] = []
    while True:
        # Without looking for the question first: while the judge copies, time spent looking would be on our clock.
        if not read(sock, 1):
            os._exit(0)
        nonce, count, _, flags, at = REQUEST.unpack_from(desk)
        number = end = 0
        # Kept until the next question: the judge reads these arrays. To free them is part of the calls. Some are kept
        # for longer, as callers do, and only then does it say which: what was given away is nobody's to use again.
        clock = spent() if flags & CONVERTS else 0
        if flags & LETS_GO:
            held.clear()
        if flags & KEEPS:
            held.append(apart)
        apart = []
        freed = spent() - clock if flags & CONVERTS else 0
        try:
            if flags & SETUP:
                assert setup is not None
                # It may keep arrays: later questions are written behind this one.
                setup(**unpack(view, at)[0])
            else:
                converting = given_away = 0
                calling = freed
                for number in range(count):  # noqa: B007 - told when a call fails
                    first = at
                    values, at = unpack(view, first)
                    clock = spent() if flags & CONVERTS else 0
                    again = kept(glue) if glue is not None and flags & CONVERTS else None
                    answer = function(**values)
                    calling += spent() - clock if flags & CONVERTS else 0
                    begin, end = end, pack_into(answer, answers, end + LENGTH.size, apart if flags & FETCHES else None)
                    LENGTH.pack_into(answers, begin, end - begin - LENGTH.size)
                    if flags & CONVERTS:
                        clock = spent()
                        given, _ = unpack(view, first)
                        pack_into(answer, answers, begin + LENGTH.size, [] if flags & FETCHES else None)
                        if again is not None:
                            again(function, given)
                        converting += spent() - clock
                        if flags & UNCHANGED and wire.plain(values) != wire.plain(given):
                            raise ValueError(CHANGED)
                        calling += spent() - clock
                    answer = None  # freed before the next call, which may want the memory
                    if len(apart) > given_away:
                        given_away = keep_own(apart, given_away)
                if flags & CONVERTS:
                    NONCE.pack_into(desk, CONVERTING_AT, min(converting, 2**32 - 1))
                    LENGTH.pack_into(desk, CALLING_AT, calling)
            at = PIECES_AT
            for offset, size, array in apart:
                PIECE.pack_into(desk, at, offset, id(array) + POINTER_AT, size)
                at += PIECE.size
            SIZES.pack_into(desk, BYTES_AT, end, len(apart))
            NONCE.pack_into(desk, ANSWERED_AT, nonce)
            if flags & WANTS_REPLY:
                say(nonce, DONE)
        except BaseException as error:
            say(nonce, CALL_FAILED, number, story(error, path))
            os._exit(1)


def holders(piece: tuple[int, int, Any]) -> int:
    """How many hold the array of this piece."""
    return sys.getrefcount(piece[2])


# As many as hold what nobody else holds.
NOBODY_ELSE = holders((0, 0, bytearray(1)))


def keep_own(apart: list[tuple[int, int, Any]], first: int) -> int:
    """Copy the arrays from the first one on that somebody else holds too; how many there are to be fetched.

    The judge spoils what it fetches. Whoever keeps an array that he returns keeps it for himself, and his caller wants
    one of its own: the copy is on the clock, in memory as fresh as that of any other array.
    """
    for at in range(first, len(apart)):
        if holders(apart[at]) > NOBODY_ELSE:
            offset, size, array = apart[at]
            apart[at] = offset, size, array.copy()
    return len(apart)


def kept(glue: Any) -> Any:
    """Let the glue's function keep its next answer; what is returned then calls the glue alone, which gets that one."""
    own, answers = glue.function, []

    def keeping(*given: Any, **named: Any) -> Any:
        answer = own(*given, **named)
        # One that is used up when it is read has to be given again.
        answers.append(list(answer) if hasattr(answer, "__next__") else answer)
        return iter(answers[0]) if hasattr(answer, "__next__") else answer

    def again(call: Any, values: Any) -> None:
        glue.function = lambda *_, **__: answers[0]
        try:
            call(**values)
        finally:
            glue.function = own

    glue.function = keeping
    return again


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
