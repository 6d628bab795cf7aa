"""The recipe: how a candidate of a program task is built."""

from __future__ import annotations

from pathlib import Path

from outpace.judge.build import BuildPlan
from outpace.judge.jail import MIB, Bind
from outpace.task import Task
from outpace.task.candidate import Candidate, in_order

LIBRARY, _CODE = "outpace-candidate.so", "outpace-code.so"
_SHIM, _SHIM_OBJECT = "outpace-shim.c", "outpace-shim.o"
_LIBRARIES = ("-lm", "-lpthread")
# In a library any function or variable may be replaced by another one of its name, so that a compiler neither inlines
# nor sees through it, and what belongs to a thread is found by a call; in the program that users build none of that is
# so. The word `static` would be worth 6x, and to leave out `_Thread_local` 1.4x where it is worth 1.1x.
_AS_IN_A_PROGRAM = ("-fno-semantic-interposition", "-ftls-model=initial-exec", "-Wl,-Bsymbolic")
# What one library alone holds, as without glue, is nobody else's to replace.
_ALONE = "-fvisibility=hidden"
# How much of a thread's own memory a candidate may have so; the C library sets as much aside for each thread.
THREADS_OWN = 256 * 1024
Command = tuple[str, ...]


def recipe(task: Task, candidate: Candidate, shim: str) -> BuildPlan:
    """The task's files with the candidate's in their place, and the commands; `shim` is "" without a C function."""
    files = {name: content for name, content in task.files.items() if name not in private_files(task)}
    files |= {name: text.encode() for name, text in candidate.files.items()}
    commands: list[Command] = []
    if shim:
        files[_SHIM] = shim.encode()
        commands.append(("cc", "-O2", "-fPIC", "-c", "-o", _SHIM_OBJECT, _SHIM))
    if task.entry.kind != "python":
        commands += _compile(task, in_order(task, candidate.flags))
    if task.entry.kind == "command" and (python := _python_of(task)):
        # As from the second run on everywhere else: nobody compiles his own modules anew each time.
        script = '"$1" -m compileall -q --invalidation-mode unchecked-hash . >/dev/null || true'
        commands.append(("/bin/sh", "-c", script, "sh", python))
    limits = task.limits
    return BuildPlan(
        files,
        tuple(commands),
        product(task),
        limits.build_seconds,
        # A compiler needs more than most of what it compiles.
        max(limits.memory_mb, 1024) * MIB,
        max(limits.disk_mb, 256) * MIB,
        tuple(Bind(Path(path), path) for path in task.environment.paths),
    )


def private_files(task: Task) -> set[str]:
    """What neither a candidate nor a policy gets to see."""
    return {task.checking.file, "task.toml"}


def product(task: Task) -> str:
    """The file that must be there after the build."""
    if task.entry.kind == "python":
        return task.entry.module
    if task.entry.kind == "c":
        return LIBRARY
    return task.build.product or own_program(task)


def own_program(task: Task) -> str:
    """The file in the built folder that a command starts, or "" when it is a program of the system."""
    name = task.entry.command[0].removeprefix("./")
    built = name in (task.build.product, *task.files) or bool(task.build.sources)
    return name if built and not Path(name).is_absolute() else ""


def _python_of(task: Task) -> str:
    """The interpreter of a command that is a Python program, or "" where it is none."""
    program = task.entry.command[0]
    if Path(program).name.startswith("python"):
        return program
    first = task.files.get(program.removeprefix("./"), b"").split(b"\n")[0].decode("utf-8", "replace")
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    return next((word for word in words if Path(word).name.startswith("python")), "")


def _compile(task: Task, flags: tuple[str, ...]) -> list[Command]:
    build = task.build
    if build.command:
        # A build command finds the chosen flags where make and its kin look for them.
        joined = " ".join(flags)
        commands: list[Command] = [(f"CFLAGS={joined}", f"CXXFLAGS={joined}", *build.command)]
        if task.entry.kind == "c":
            origin = ("-Wl,-rpath,$ORIGIN", f"./{build.product}")
            commands.append((build.compiler or "cc", "-shared", "-o", LIBRARY, _SHIM_OBJECT, *origin, *_LIBRARIES))
        return commands
    if task.entry.kind == "c":
        shared = (build.compiler, "-shared", "-fPIC", *_AS_IN_A_PROGRAM)
        if not build.glue:
            return [(*shared, _ALONE, *flags, "-o", LIBRARY, *build.sources, _SHIM_OBJECT, *_LIBRARIES)]
        # Glue makes what the function takes, and copies what it answers. In one library with the candidate, or in one
        # unit, the candidate could define what it is made of: classes, operators, memmove. So it finds all that it
        # needs elsewhere before it gets to look for that here.
        last = ("-Wl,-z,defs", "-Wl,-rpath,$ORIGIN", f"./{_CODE}")
        system = (*(("-lstdc++",) if build.compiler == "c++" else ()), *_LIBRARIES, "-lc")
        return [
            (*shared, *flags, "-o", _CODE, *build.sources, *_LIBRARIES),
            (*shared, *task.build.flags, "-o", LIBRARY, *build.glue, _SHIM_OBJECT, *system, *last),
        ]
    if build.sources:
        return [(build.compiler, *flags, "-o", product(task), *build.sources, *_LIBRARIES)]
    return []  # a script
