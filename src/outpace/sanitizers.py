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

from outpace.candidate import reference
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

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
_PROGRAM, _INPUTS, _REPORT = "outpace-checked", "outpace-inputs.bin", "outpace-report.txt"
_ANSWERS = "outpace-answers.bin"
# The shadow memory is reserved, not used: the jail's limit on the address space has to leave room for it.
_SHADOW = 32 << 40
# The calls are made twice, with fresh memory and outputs filled differently, to see whether that matters.
_FILLS = (0xA5, 0x5A)
# Instrumented code takes two to three times as long, and loading it a moment.
_SLOWER, _START_SECONDS = 10, 20.0

_DRIVER = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outpace_call(const uint64_t* slots, uint64_t* result);
@SETUP@

enum { PARAMETERS = @COUNT@ };
static const char* const names[PARAMETERS + 1] = {@NAMES@""};
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

int main(int count, char** arguments) {
    if (count != 4 || (input = fopen(arguments[1], "rb")) == NULL) return 3;
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
        if (set_up) {
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

    def __init__(self, task: Task, jail: JailKind, workspace: Path) -> None:
        self._task, self._jail = task, jail
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

    def _plan(self) -> BuildPlan:
        task = self._task
        files = {name: content for name, content in task.files.items() if name not in private_files(task)}
        files["outpace-shim.c"] = abi.shim(self._signature, self._setup).encode()
        files["outpace-driver.c"] = driver(self._signature, self._setup).encode()
        own = ("outpace-shim.c", "outpace-driver.c")
        flags = (*reference(task).flags, *FLAGS)
        commands = (
            *(("cc", *FLAGS, "-c", "-o", f"{name}.o", name) for name in own),
            (
                task.build.compiler or "cc",
                *flags,
                "-o",
                _PROGRAM,
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
    return (
        _DRIVER.replace("@COUNT@", str(count))
        .replace("@NAMES@", "".join(f'"{name}", ' for name in names))
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
    if "overflow" in what or "cannot be represented" in what or "shift" in what:
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


def _run(jail: JailKind, folder: Path, files: Mapping[str, bytes], seconds: float, memory: int, fill: int) -> str:
    """What the checked program prints, with its status on the last line."""
    options = [
        "detect_leaks=0",  # looks at other threads with ptrace, which no jail allows, and a leak changes no answer
        "disable_coredump=0",  # asks for setrlimit, which the jail refuses, after it has done the same
        "max_malloc_fill_size=1073741824",
        f"malloc_fill_byte={fill}",
        "allocator_may_return_null=1",
        f"hard_rss_limit_mb={memory // MIB}",
        "print_legend=0",
    ]
    script = f'"./{_PROGRAM}" {_INPUTS} {_ANSWERS} {fill} > {_REPORT} 2>&1; echo "status $?" >> {_REPORT}'
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
