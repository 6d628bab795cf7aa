"""The command worker: each call in a folder of its own, nothing left behind, everything accounted for."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import launcher_driver as d
import pytest

ROOM = 4096


@contextmanager
def command(script: str, *options: str, jail: d.Jail = d.PLAIN) -> Iterator[d.Worker]:
    mode = ["command", "--", "/bin/sh", "-c", script, "sh"]
    with d.worker(jail, mode, "--allow-fork", *options) as worker:
        worker.greet()
        yield worker


def run(worker: d.Worker, *parts: dict[str, object]) -> None:
    assert worker.ask(d.LOAD, d.command_record(*parts)).status == d.DONE
    assert worker.ask(d.GO).status == d.DONE


def stream(worker: d.Worker, at: int = 0) -> bytes | int:
    """What was captured at this place of the output region, or the number that stands for why not."""
    (length,) = struct.unpack_from("<Q", worker.outputs, at)
    return length if length > d.REGION else worker.outputs[at + 8 : at + 8 + length]


def exit_status(worker: d.Worker, at: int) -> int:
    return int(struct.unpack_from("<q", worker.outputs, at)[0])


def output(script: str, *options: str, jail: d.Jail = d.PLAIN) -> bytes | int:
    with command(script, *options, jail=jail) as worker:
        run(worker, d.part(d.STDOUT, at=0, room=ROOM))
        return stream(worker)


@pytest.mark.parametrize("kind", ["root", "user"])
def test_a_call_gets_its_input_files_and_arguments_and_gives_output_files_and_status(kind: str) -> None:
    script = 'cat; cat deep/in; printf "<%s>" "$@"; pwd; echo made > out; exit 9'
    with command(script, jail=d.namespaces(kind)) as worker:
        run(
            worker,
            d.part(d.STDIN, b"typed "),
            d.part(d.FILE, b"filed ", "deep/in"),
            d.part(d.ARGUMENT, b"a b"),
            d.part(d.ARGUMENT, b""),
            d.part(d.STDOUT, at=0, room=ROOM),
            d.part(d.OUTPUT_FILE, name="out", at=ROOM, room=ROOM),
            d.part(d.EXIT, at=2 * ROOM),
        )
        assert stream(worker) == b"typed filed <a b><>/tmp/calls/1\n"
        assert stream(worker, ROOM) == b"made\n"
        assert exit_status(worker, 2 * ROOM) == 9
        worker.tell(d.QUIT)
        assert worker.ending() == 0


def test_calls_of_a_batch_have_folders_and_outputs_of_their_own() -> None:
    with command("ls; cat; touch mine") as worker:
        records = b""
        for number in range(3):
            parts = (d.part(d.STDIN, b"%d" % number), d.part(d.STDOUT, at=number * ROOM, room=ROOM))
            records += d.command_record(*parts, base=len(records))
        assert worker.ask(d.LOAD, records, count=3).status == d.DONE
        assert worker.ask(d.GO).status == d.DONE
        assert [stream(worker, number * ROOM) for number in range(3)] == [b"0", b"1", b"2"]
        assert worker.ask(d.GO).status == d.FAULT


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("head -c 4088 /dev/zero > out", bytes(4088)),
        ("head -c 4089 /dev/zero > out", d.TOO_LONG),
        (": > out", b""),
        (":", d.MISSING),
        ("mkdir out", d.MISSING),
        ("mkfifo out", d.MISSING),
        ("ln -s /etc/passwd out", d.MISSING),
        ("echo x > out; chmod 000 out; [ $(id -u) = 0 ] && rm out", d.MISSING),
    ],
)
def test_an_output_file_counts_only_if_it_is_a_regular_one_that_fits(script: str, expected: bytes | int) -> None:
    with command(script) as worker:
        run(worker, d.part(d.OUTPUT_FILE, name="out", at=0, room=ROOM))
        assert stream(worker) == expected


def test_standard_output_that_does_not_fit_is_said_so() -> None:
    assert output("head -c 5000 /dev/zero") == d.TOO_LONG


@pytest.mark.parametrize(
    ("script", "options", "status"),
    [
        ("kill -TERM $$", (), 128 + signal.SIGTERM),
        ("exec head -c 2000000 /dev/zero", ("--file-size", "1000000"), 128 + signal.SIGXFSZ),
        ("while :; do :; done", ("--cpu-seconds", "1"), 128 + signal.SIGKILL),
    ],
)
def test_a_call_that_is_killed_has_128_and_the_signal_as_its_status(
    script: str, options: tuple[str, ...], status: int
) -> None:
    with command(script, *options) as worker:
        for _ in range(2):  # limits are each call's own, so the second one gets as far as the first
            run(worker, d.part(d.STDOUT, at=0, room=ROOM), d.part(d.EXIT, at=ROOM))
            assert exit_status(worker, ROOM) == status


def alive(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(entry.name)
    return found


@pytest.mark.parametrize(
    "leave",
    [
        "sleep {0} &",
        "(setsid sh -c 'trap \"\" TERM HUP INT; sleep {0} & sleep {0} & wait' &)",
        "(sleep {0} & kill -STOP $!)",
        "sh -c 'sleep {0} & sleep {0} & sleep {0} &'; (while :; do (sleep {0} &); done) &",
    ],
)
def test_nothing_of_a_call_is_alive_when_the_judge_gets_its_reply(leave: str) -> None:
    mark = f"{os.getpid()}{abs(hash(leave)) % 10**6}"
    with command(leave.format(mark) + "\necho done") as worker:
        run(worker, d.part(d.STDOUT, at=0, room=ROOM))
        assert stream(worker) == b"done\n"
        assert alive(mark) == []


CHAIN = """#include <unistd.h>
int main(void) {  /* leaves processes that are never older than a fork: each starts the next and ends */
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            for (;;) { setsid(); if (fork()) _exit(0); }
}"""


def test_a_chain_of_processes_that_outruns_its_own_death_is_caught() -> None:
    program = d.compiled(CHAIN)
    with command(f"{program}; echo done") as worker:
        run(worker, d.part(d.STDOUT, at=0, room=ROOM))
        assert stream(worker) == b"done\n"
        assert [p for p in Path("/proc").glob("[0-9]*/exe") if os.path.realpath(p) == str(program)] == []


BURN = """#include <time.h>
#include <unistd.h>
/* burns 0.2 s of CPU, in a grandchild that nobody waits for if asked to */
int main(int count, char** words) {
    if (count > 1 && fork() == 0) { if (fork()) _exit(0); } else if (count > 1) { pause(); }
    struct timespec t;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); while (t.tv_sec == 0 && t.tv_nsec < 200000000);
    if (count > 1) kill(0, 9);
}"""


@pytest.mark.parametrize("arguments", [(), (b"orphan",)])
def test_cpu_time_counts_the_whole_tree_and_orphans_too(arguments: tuple[bytes, ...]) -> None:
    program = d.compiled("#define _GNU_SOURCE\n#include <signal.h>\n" + BURN)
    script = f'setsid {program} "$@"; exit 0'
    with command(script) as worker:
        run(worker, *(d.part(d.ARGUMENT, each) for each in arguments), d.part(d.USAGE, at=0, room=24))
        cpu, wall, _ = struct.unpack_from("<3Q", worker.outputs, 0)
        assert cpu >= 200_000_000
        assert wall >= 200_000_000


def test_a_call_inherits_the_standard_descriptors_alone_and_cannot_read_the_server() -> None:
    script = "exec ls /proc/self/fd"
    assert output(script) == b"0\n1\n2\n3\n"  # 3 is the folder being listed
    assert output("cat /proc/$PPID/environ /proc/$PPID/mem; echo end") == b"end\n"


@pytest.mark.parametrize("kind", ["root", "user"])
def test_the_server_is_closed_to_its_own_user_in_the_jail(kind: str) -> None:
    script = "cat /proc/$PPID/environ; cat /proc/$PPID/mem; ls /proc/$PPID/fd; echo end"
    assert output(script, jail=d.namespaces(kind)) == b"end\n"


def test_a_command_that_may_not_fork_cannot_but_runs() -> None:
    with d.worker(d.PLAIN, ["command", "--", "/bin/sh", "-c", "echo first; /bin/true; echo second"]) as worker:
        worker.greet()
        run(worker, d.part(d.STDOUT, at=0, room=ROOM), d.part(d.EXIT, at=ROOM))
        assert stream(worker) == b"first\n"
        assert exit_status(worker, ROOM) != 0


@pytest.mark.parametrize(
    "sabotage",
    [
        "mkdir ../2; ln -s /etc ../3",
        "mkdir -p ../2/a ../3/a; chmod 000 ../2 ../3",
        "rm -rf ../../calls*",
        "chmod 000 ..; cd /",
    ],
)
def test_a_call_cannot_spoil_the_folder_of_the_next(sabotage: str) -> None:
    with command(f"ls; cat in; {sabotage}", jail=d.Jail(start=d.unprivileged())) as worker:
        for turn in (b"one", b"two", b"three"):
            run(worker, d.part(d.FILE, turn, "in"), d.part(d.STDOUT, at=0, room=ROOM))
            assert stream(worker) == b"in\n" + turn


def test_a_call_whose_files_do_not_fit_has_failed_and_is_no_fault_of_the_judge() -> None:
    small = d.namespaces("root" if os.geteuid() == 0 else "user", "tmpfs\t/tmp\t65536")
    with command("cat in", jail=small) as worker:
        reply = worker.ask(d.LOAD, d.command_record(d.part(d.FILE, bytes(200_000), "in")))
        assert reply.status == d.CALL_FAILED
        assert "No space" in reply.text
        run(worker, d.part(d.FILE, b"fits", "in"), d.part(d.STDOUT, at=0, room=ROOM))
        assert stream(worker) == b"fits"


BAD_PARTS = {
    "name that leaves the folder": d.part(d.FILE, b"", "../x"),
    "absolute name": d.part(d.FILE, b"", "/x"),
    "empty name": d.part(d.FILE, b"", ""),
    "name with a zero byte": d.part(d.FILE, b"", "a\0b"),
    "argument with a zero byte": d.part(d.ARGUMENT, b"a\0b"),
    "output beyond the region": d.part(d.STDOUT, at=d.REGION - 8, room=16),
    "output without room for its length": d.part(d.STDOUT, at=0, room=7),
    "status beyond the region": d.part(d.EXIT, at=d.REGION - 7),
    "usage beyond the region": d.part(d.USAGE, at=d.REGION - 23),
    "output file that leaves the folder": d.part(d.OUTPUT_FILE, name="../x", at=0, room=64),
    "unknown kind": d.part(12),
}


@pytest.mark.parametrize("mistake", BAD_PARTS)
def test_a_part_that_makes_no_sense_is_a_fault_and_the_server_goes_on(mistake: str) -> None:
    with command("echo fine") as worker:
        assert worker.ask(d.LOAD, d.command_record(BAD_PARTS[mistake])).status == d.FAULT
        assert worker.ask(d.GO).status == d.FAULT
        run(worker, d.part(d.STDOUT, at=0, room=ROOM))
        assert stream(worker) == b"fine\n"
