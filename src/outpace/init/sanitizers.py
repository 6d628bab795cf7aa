"""Sanitizers: the reference under gcc's and clang's memory and arithmetic checks, in buffers of exactly their size.

In the jail's regions an array is followed by padding, so that a read past its end goes unnoticed there and a candidate
could be measured against an answer that depends on it. Here each array is a heap block of its own.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.domains.recipe import private_files
from outpace.errors import TaskError
from outpace.judge import abi
from outpace.judge.abi import Parameter, Signature
from outpace.judge.build import BuildPlan, build, remove
from outpace.judge.jail import MIB, Bind, JailKind
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed
from outpace.task import Output, Task
from outpace.task.candidate import reference

FLAGS = (
    *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    *("-fno-omit-frame-pointer", "-g", "-O1"),
)
_PROGRAM, _INPUTS, _REPORT = "outpace-checked", "outpace-inputs.bin", "outpace-report.txt"
_ANSWERS = "outpace-answers.bin"
# The shadow memory is reserved, not used: the jail's limit on the address space has to leave room for it.
_SHADOW = 32 << 40
# The calls are made twice, with fresh memory and outputs filled differently, to see whether that matters.
_FILLS = (0xA5, 0x5A)
NOT_FINITE, TOO_LONG = 77, 78
# One block larger than this is memory for nothing, where the calls are small.
_LARGEST_BLOCK = 1024
# Instrumented code takes two to three times as long, and loading it a moment.
_SLOWER, _START_SECONDS = 10, 20.0

_DRIVER = """#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void outpace_call(const uint64_t* slots, uint64_t* result);
@SETUP@

enum { PARAMETERS = @COUNT@ };
static const char* const names[PARAMETERS + 1] = {@NAMES@""};
/* Which of them hold numbers that may not be finite, and whether the result is one: 4 or 8 bytes each. */
static const int floating[PARAMETERS + 1] = {@FLOATING@0}, floating_result = @FLOATING_RESULT@;
static unsigned char* blocks[PARAMETERS + 1];
static uint64_t sizes[PARAMETERS + 1], shown[PARAMETERS + 1];
static FILE* input;

/* Called by the sanitizer: its report tells a block by its address alone. */
void __asan_on_error(void) {
    for (int i = 0; i < PARAMETERS; ++i) {
        fprintf(stderr, "outpace-block: %s 0x%llx\\n", names[i], (unsigned long long)(uintptr_t)blocks[i]);
    }
}

static uint64_t word(void) {
    uint64_t value = 0;
    if (fread(&value, sizeof value, 1, input) != 1) exit(3);
    return value;
}

static int finite_all(const void* numbers, uint64_t bytes, int size) {
    for (uint64_t at = 0; size && at + size <= bytes; at += size) {
        float single;
        double number;
        memcpy(size == 4 ? (void*)&single : (void*)&number, (const char*)numbers + at, size);
        if (!isfinite(size == 4 ? single : number)) return 0;
    }
    return 1;
}

/* One call in a process of its own, with so much time: 0 where it ends well, with finite numbers. */
static int tried(const uint64_t* slots, uint64_t milliseconds) {
    const pid_t child = fork();
    if (child == 0) {
        /* A timer may count the slices of a scheduler, of which two are no long time yet. */
        const uint64_t patient = milliseconds + 20;
        const struct itimerval limit = {{0, 0}, {patient / 1000, patient % 1000 * 1000}};
        setitimer(ITIMER_PROF, &limit, NULL);
        alarm(2 + milliseconds / 1000);
        struct timespec begin, end;
        uint64_t result = 0;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        outpace_call(slots, &result);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        int finite = finite_all(&result, floating_result, floating_result);
        for (int i = 0; i < PARAMETERS; ++i) finite &= !shown[i] || finite_all(blocks[i], sizes[i], floating[i]);
        const double took = 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
        fprintf(stderr, "outpace-took: %.0f\\n", took);
        _exit(took > 1e6 * (double)milliseconds ? @TOO_LONG@ : finite ? 0 : @NOT_FINITE@);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(3);
    fprintf(stderr, "outpace-tried: %d\\n", WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status));
    return WIFSIGNALED(status) ? 256 : WEXITSTATUS(status);
}

/* A rung of a ladder ends with the first failure, and a ladder with the first rung that has none. */
static int failed, done;
static void climbed(uint64_t place, const uint64_t* slots) {
    static uint64_t last_ladder = -1, last_rung = -1;
    const uint64_t ladder = place >> 1 & 0x7fff, rung = place >> 16 & 0xffff;
    done = ladder == last_ladder && (done || (rung != last_rung && !failed));
    failed = ladder == last_ladder && rung == last_rung && failed;
    last_ladder = ladder, last_rung = rung;
    if (done || failed) return;
    failed = tried(slots, place >> 32);
    /* A busy machine may be to blame. */
    if (failed == @TOO_LONG@) failed = tried(slots, place >> 32);
}

int main(int count, char** arguments) {
    if (count < 4 || (input = fopen(arguments[1], "rb")) == NULL) return 3;
    FILE* answers = fopen(arguments[2], "wb");
    if (answers == NULL) return 3;
    const int fill = atoi(arguments[3]);
    for (uint64_t calls = word(), call = 0; call < calls; ++call) {
        const uint64_t set_up = word(), parameters = word();
        uint64_t slots[PARAMETERS + 16] = {0};
        for (uint64_t i = 0; i < parameters; ++i) {
            const uint64_t kind = word(), value = word();
            shown[i] = 0;
            blocks[i] = NULL;
            if (kind == 0) {
                slots[i] = value;
                continue;
            }
            sizes[i] = value;
            /* Memory of no size may be a null pointer, which an empty array is not. */
            blocks[i] = malloc(value ? value : 1);
            if (blocks[i] == NULL) return 3;
            if (kind == 3) {
                memset(blocks[i], fill, value);
            } else if (fread(blocks[i], 1, value, input) != value) {
                return 3;
            }
            shown[i] = kind >= 2;
            slots[i] = (uint64_t)(uintptr_t)blocks[i];
        }
        fprintf(stderr, "outpace-call: %llu\\n", (unsigned long long)call);
        uint64_t result = 0;
        if (count > 4) {
            climbed(set_up, slots);
        } else if (set_up) {
            @CALL_SETUP@
        } else {
            outpace_call(slots, &result);
        }
        fwrite(&result, sizeof result, 1, answers);
        for (uint64_t i = 0; i < parameters; ++i) {
            if (shown[i]) fwrite(blocks[i], 1, sizes[i], answers);
        }
        for (uint64_t i = 0; i < parameters && !set_up; ++i) free(blocks[i]);
    }
    fprintf(stderr, "outpace-end\\n");
    return fclose(answers) != 0;
}
"""


def missing(compiler: str, jail: JailKind, workspace: Path) -> str:
    """Why programs cannot be checked here, or "" when they can: some compilers come without the run-time libraries."""
    source = b"int main(void) { return 0; }\n"
    if compiler.endswith("++"):
        source = b"int main() { return 0; }\n"
    name = "probe.cpp" if compiler.endswith("++") else "probe.c"
    plan = BuildPlan({name: source}, ((compiler, *FLAGS, "-o", _PROGRAM, name),), _PROGRAM, 60, 1024 * MIB, 256 * MIB)
    folder = Path(tempfile.mkdtemp(prefix="sanitizer-probe-", dir=workspace))
    try:
        build(jail, plan, folder)
        said = _run(jail, folder, {}, 20, 1024 * MIB, _FILLS[0])
        return "" if said.endswith("status 0") else f"a program built with them does not start: {_first_line(said)}"
    except Failed as failure:
        return _first_line(failure.reason)
    finally:
        remove(folder)


class Checked:
    """One task's reference, built with the sanitizers; raises Failed where it does not build that way."""

    def __init__(self, task: Task, jail: JailKind, workspace: Path, flags: Sequence[str] = FLAGS) -> None:
        self._task, self._jail, self._flags = task, jail, flags
        self._signature = abi.parse_declaration(task.entry.function)
        self._setup = abi.parse_declaration(task.entry.setup) if task.entry.setup else None
        self._folder = Path(tempfile.mkdtemp(prefix="sanitized-", dir=workspace))
        build(jail, self._plan(), self._folder)

    def report(self, inputs: Sequence[Input], setup: Input | None = None) -> str:
        """What the sanitizers say to these calls, in a sentence with what to change; "" when nothing."""
        data = laid_out(self._task, inputs, setup)
        seconds = min(_START_SECONDS + _SLOWER * self._task.limits.seconds * len(inputs), 60.0)
        # Freed memory is kept for a while, to notice that it is used, and each block has walls around it.
        memory = 4 * self._task.limits.memory_mb * MIB + len(data)
        answers = []
        for fill in _FILLS:
            try:
                said = _run(self._jail, self._folder, {_INPUTS: data}, seconds, memory, fill)
            except Failed as failure:
                if failure.outcome is not Outcome.REFUSED:
                    raise
                reason = failure.reason.replace("the build", "it")
                return f"the reference does not come to an end under the sanitizers ({reason}); give it smaller inputs"
            if found := sentence(said):
                return found
            answers.append(np.frombuffer((self._folder / _ANSWERS).read_bytes(), np.uint8))
        # What nobody has written to looks different in the two runs, and nothing else may.
        untouched = (answers[0] == _FILLS[0]) & (answers[1] == _FILLS[1])
        if bool(((answers[0] != answers[1]) & ~untouched).any()):
            return (
                "the answer depends on memory that the reference has not written to: let it set what it allocates, "
                "and let make_input give an array, not an Output, for what it reads"
            )
        return ""

    def climb(self, calls: Sequence[tuple[int, int, int, Input]]) -> str:
        """What is said to calls with their ladders, rungs and milliseconds, each in a process of its own.

        A rung ends with its first failure, and a ladder with the first rung that has none.
        """
        data = struct.pack("<Q", len(calls)) + b"".join(
            _call(self._signature, given, ladder << 1 | rung << 16 | limit << 32)
            for ladder, rung, limit, given in calls
        )
        memory = 4 * self._task.limits.memory_mb * MIB + len(data)
        return _run(self._jail, self._folder, {_INPUTS: data}, 60.0, memory, _FILLS[0], climbing=True)

    def _plan(self) -> BuildPlan:
        task = self._task
        files = {name: content for name, content in task.files.items() if name not in private_files(task)}
        files["outpace-shim.c"] = abi.shim(self._signature, self._setup).encode()
        files["outpace-driver.c"] = driver(self._signature, self._setup).encode()
        own = ("outpace-shim.c", "outpace-driver.c")
        flags = (*reference(task).flags, *self._flags)
        commands = (
            *(("cc", *self._flags, "-c", "-o", f"{name}.o", name) for name in own),
            (
                task.build.compiler or "cc",
                *flags,
                "-o",
                _PROGRAM,
                *task.build.glue,
                *task.build.sources,
                *(f"{name}.o" for name in own),
                "-lm",
                "-lpthread",
            ),
        )
        limits = task.limits
        binds = tuple(Bind(Path(path), path) for path in task.environment.paths)
        # The instrumented code of a large file takes a compiler several times as long.
        return BuildPlan(files, commands, _PROGRAM, 3 * limits.build_seconds, 2048 * MIB, 512 * MIB, binds)


def driver(entry: Signature, setup: Signature | None) -> str:
    """A program that reads calls from a file and makes them, each array in a heap block of its own."""
    count = max(len(entry.parameters), len(setup.parameters) if setup else 0)
    names = [parameter.name for parameter in entry.parameters]
    floating = [each.dtype.itemsize if each.dtype.kind == "f" else 0 for each in entry.parameters]
    returned = np.dtype(abi.C_TYPES[entry.returns])
    return (
        _DRIVER.replace("@COUNT@", str(count))
        .replace("@NAMES@", "".join(f'"{name}", ' for name in names))
        .replace("@FLOATING@", "".join(f"{each}, " for each in floating))
        .replace("@FLOATING_RESULT@", str(returned.itemsize if returned.kind == "f" else 0))
        .replace("@NOT_FINITE@", str(NOT_FINITE))
        .replace("@TOO_LONG@", str(TOO_LONG))
        .replace("@SETUP@", "void outpace_setup(const uint64_t* slots, uint64_t* result);" if setup else "")
        .replace("@CALL_SETUP@", "outpace_setup(slots, &result);" if setup else "return 3;")
    )


def laid_out(task: Task, inputs: Sequence[Input], setup: Input | None = None) -> bytes:
    """These calls as the driver reads them."""
    entry = abi.parse_declaration(task.entry.function)
    calls = [(entry, given, 0) for given in inputs]
    if task.entry.setup and setup is not None:
        calls.insert(0, (abi.parse_declaration(task.entry.setup), setup, 1))
    return struct.pack("<Q", len(calls)) + b"".join(_call(*each) for each in calls)


def sentence(said: str) -> str:
    """A sanitizer's report as a sentence that ends with what to change; "" where the program ended well."""
    if re.search(r"^outpace-end\nstatus 0$", said, re.MULTILINE):
        return ""
    overflow = re.search(r"^(\S+?):(\d+):\d+: runtime error: (.*)$", said, re.MULTILINE)
    if overflow:
        return f"{_place(overflow[1], overflow[2])}: {_undefined(overflow[3])}"
    kind = re.search(r"ERROR: AddressSanitizer:? ([\w-]+)", said)
    if kind is None:
        return f"the reference ends the process under the sanitizers: {_first_line(_spoken(said))}"
    frame = re.search(r"^\s*#\d+ 0x\w+ in .* (\S+?):(\d+)(?::\d+)?$", _frames(said), re.MULTILINE)
    place = _place(frame[1], frame[2]) if frame else "the reference"
    access = re.search(r"^(READ|WRITE) of size (\d+)", said, re.MULTILINE)
    verb = {"READ": "reads", "WRITE": "writes"}[access[1]] if access else "accesses"
    size = f"{access[2]} bytes " if access else ""
    region = re.search(r"is located \d+ bytes (.*) (\d+)-byte region \[(0x\w+),", said)
    blocks = {
        int(address, 16): name for name, address in re.findall(r"^outpace-block: (\w+) (0x\w+)$", said, re.MULTILINE)
    }
    if region and kind[1] == "heap-buffer-overflow" and (name := blocks.get(int(region[3], 16))):
        side = "before the start" if re.search("left|before", region[1]) else "past the end"
        return (
            f"{place} {verb} {size}{side} of '{name}', which has {region[2]} bytes in that call; "
            f"let make_input make '{name}' as large as the function takes it to be, or mend the reference"
        )
    what = {
        "heap-buffer-overflow": f"{verb} {size}past the end of a block that it allocated",
        "stack-buffer-overflow": f"{verb} {size}past the end of an array on the stack",
        "global-buffer-overflow": f"{verb} {size}past the end of a global array",
        "heap-use-after-free": f"{verb} {size}that it has freed",
        "stack-overflow": "needs more stack than there is",
        "SEGV": f"{verb} an address where there is no memory",
        "attempting": "frees what it does not own",
    }.get(kind[1], kind[1])
    return f"{place} {what}; mend the reference, or let make_input keep to what it can take"


def _place(file: str, line: str) -> str:
    return f"{Path(file).name}:{line}"


def _undefined(what: str) -> str:
    if any(each in what for each in ("overflow", "cannot be represented", "shift", "outside the range")):
        return f"{what}, which C leaves undefined; give it smaller values in make_input, or mend the reference"
    if "misaligned" in what:
        return f"{what}, which C leaves undefined; read it with memcpy in the reference"
    if "out of bounds" in what:
        return f"{what}; let make_input keep to sizes that fit, or mend the reference"
    return f"{what}, which C leaves undefined; mend the reference, or let make_input avoid it"


def _frames(said: str) -> str:
    """The first stack of a report, without the driver's frames and those of the sanitizer's own functions."""
    first = said.partition("ERROR: AddressSanitizer")[2].partition("\n\n")[0]
    own = ("outpace-driver.c", "outpace-shim.c", "libsanitizer", "/sanitizer_common/", "asan_", " /usr/")
    return "\n".join(line for line in first.splitlines() if not any(name in line for name in own))


def _spoken(said: str) -> str:
    """What the program said beside our own lines; where that is nothing, how it ended."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("outpace-")]
    return "\n".join(lines)


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "it says nothing")


def _run(
    jail: JailKind,
    folder: Path,
    files: Mapping[str, bytes],
    seconds: float,
    memory: int,
    fill: int,
    *,
    climbing: bool = False,
) -> str:
    """What the checked program prints, with its status on the last line."""
    options = [
        "detect_leaks=0",  # looks at other threads with ptrace, which no jail allows, and a leak changes no answer
        "disable_coredump=0",  # asks for setrlimit, which the jail refuses, after it has done the same
        "max_malloc_fill_size=1073741824",
        f"malloc_fill_byte={fill}",
        "allocator_may_return_null=1",
        f"hard_rss_limit_mb={memory // MIB}",
        "print_legend=0",
        *([f"max_allocation_size_mb={_LARGEST_BLOCK}"] if climbing else []),
    ]
    asked = f"{_INPUTS} {_ANSWERS} {fill}{' 1' if climbing else ''}"
    script = f'"./{_PROGRAM}" {asked} > {_REPORT} 2>&1; echo "status $?" >> {_REPORT}'
    command = (f"ASAN_OPTIONS={':'.join(options)}", "UBSAN_OPTIONS=print_stacktrace=0", "sh", "-c", script)
    disk = 256 * MIB + 4 * sum(map(len, files.values()))
    build(jail, BuildPlan(files, (command,), _REPORT, seconds, _SHADOW, disk, show_processes=True), folder)
    return (folder / _REPORT).read_text(errors="replace").strip()


def _call(signature: Signature, given: Input, set_up: int) -> bytes:
    parameters = signature.parameters
    if sorted(given) != sorted(parameter.name for parameter in parameters):
        raise TaskError(
            f"make_input gives {sorted(given)}, but {signature.name} takes {sorted(each.name for each in parameters)}"
        )
    return struct.pack("<QQ", set_up, len(parameters)) + b"".join(_slot(each, given[each.name]) for each in parameters)


def _slot(parameter: Parameter, value: Any) -> bytes:
    if not parameter.pointer:
        raw = np.array(value).astype(parameter.dtype).tobytes() if parameter.dtype.kind == "f" else b""
        bits = int.from_bytes(raw.ljust(8, b"\0"), "little") if raw else int(value) % 2**64
        return struct.pack("<QQ", 0, bits)
    if isinstance(value, Output):
        return struct.pack("<QQ", 3, int(np.prod(value.shape)) * np.dtype(value.dtype).itemsize)
    if isinstance(value, str | bytes | bytearray):
        text = value.encode() if isinstance(value, str) else bytes(value)
        # The zero byte that docs/tasks.md promises after a text.
        content = text + (b"" if parameter.output else b"\0")
    else:
        content = np.ascontiguousarray(value).tobytes()
    return struct.pack("<QQ", 2 if parameter.output else 1, len(content)) + content
