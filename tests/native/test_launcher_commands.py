"""The command worker: each call in a folder of its own, nothing left behind, everything accounted for."""

from __future__ import annotations

import errno
import os
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import launcher_driver as d
import pytest

ROOM = 4096


@contextmanager
def command(script: str, *options: str, jail: d.Jail = d.PLAIN) -> Iterator[d.Worker]:
    mode = ["command", "--", "/bin/sh", "-c", script, "sh"]
    with d.worker(jail, mode, "--allow-fork", *options) as worker:
        worker.greet()
        yield worker


def run(worker: d.Worker, *parts: dict[str, Any]) -> list[Any]:
    """One call; its results in the order of their parts."""
    assert worker.ask(d.command_record(*parts)).status == d.DONE
    return results(worker, *parts)


def results(worker: d.Worker, *parts: dict[str, Any]) -> list[Any]:
    """What lies in the output region: statuses, usages, and streams or the numbers that stand for why there is none."""
    found: list[Any] = []
    (total,) = struct.unpack_from("<Q", worker.outputs, d.BYTES_AT)
    given, at = worker.answers(0, total), 0
    for each in parts:
        if each["kind"] == d.EXIT:
            found += struct.unpack_from("<q", given, at)
            at += 8
        elif each["kind"] == d.USAGE:
            found.append(struct.unpack_from("<3Q", given, at))
            at += 24
        elif each["kind"] in (d.STDOUT, d.OUTPUT_FILE):
            (length,) = struct.unpack_from("<Q", given, at)
            at += 8
            found.append(length if length >= d.MISSING else given[at : at + length])
            at += 0 if length >= d.MISSING else length + -length % 8
    assert at == total
    return found


STDOUT = d.part(d.STDOUT, room=ROOM)
EXIT = d.part(d.EXIT)


def output(script: str, *options: str, jail: d.Jail = d.PLAIN) -> bytes | int:
    with command(script, *options, jail=jail) as worker:
        (found,) = run(worker, STDOUT)
        assert isinstance(found, (bytes, int))
        return found


@pytest.mark.parametrize("kind", ["root", "user"])
def test_a_call_gets_its_input_files_and_arguments_and_gives_output_files_and_status(kind: str) -> None:
    script = 'cat; cat deep/in; printf "<%s>" "$@"; pwd; echo made > out; exit 9'
    with command(script, jail=d.namespaces(kind)) as worker:
        stdout, made, status = run(
            worker,
            d.part(d.STDIN, b"typed "),
            d.part(d.FILE, b"filed ", "deep/in"),
            d.part(d.ARGUMENT, b"a b"),
            d.part(d.ARGUMENT, b""),
            STDOUT,
            d.part(d.OUTPUT_FILE, name="out", room=ROOM),
            EXIT,
        )
        # Its folder has another name each time: a number would tell how many calls there were.
        assert re.fullmatch(rb"typed filed <a b><>/tmp/calls/\d{15,20}\n", stdout)
        assert (made, status) == (b"made\n", 9)
        worker.channel.close()
        assert worker.ending() == 0


def test_calls_of_a_question_have_folders_and_outputs_of_their_own() -> None:
    with command("ls; cat; touch mine") as worker:
        parts = [(d.part(d.STDIN, b"%d" % number), STDOUT) for number in range(3)]
        records = b""
        for each in parts:
            records += d.command_record(*each, base=len(records))
        assert worker.ask(records, count=3).status == d.DONE
        assert results(worker, *(part for each in parts for part in each)) == [b"0", b"1", b"2"]


def test_results_lie_in_the_order_of_their_parts_without_holes() -> None:
    file = d.part(d.OUTPUT_FILE, name="out", room=ROOM)
    with command("printf 123456789; printf 12345678 > out; exit 3") as worker:
        first = run(worker, file, EXIT, STDOUT, d.part(d.USAGE), EXIT)
        assert (first[:3], first[4]) == ([b"12345678", 3, b"123456789"], 3)
        assert struct.unpack_from("<Q", worker.outputs, d.BYTES_AT) == (8 + 8 + 8 + 8 + 16 + 24 + 8,)
        assert run(worker, EXIT, file) == [3, b"12345678"]


def test_results_that_the_region_cannot_hold_are_never_cut_short_in_silence() -> None:
    most = d.ANSWERS - 8
    for length, expected in ((most, bytes(most)), (most + 1, d.TOO_LONG)):
        with command(f"head -c {length} /dev/zero") as worker:
            assert run(worker, d.part(d.STDOUT, room=2 * d.REGION)) == [expected]
    with command(f"head -c {most} /dev/zero") as worker:
        reply = worker.ask(d.command_record(d.part(d.STDOUT, room=2 * d.REGION), EXIT))
        assert reply.status == d.FAULT and "fit" in reply.text
        assert run(worker, EXIT) == [0]


def test_every_message_is_one_answer_and_a_set_up_is_refused() -> None:
    with command("echo x") as worker:
        for _ in range(3):
            assert run(worker, STDOUT) == [b"x\n"]
        assert worker.ask(d.command_record(STDOUT), flags=d.IS_SETUP | d.WANTS_REPLY).status == d.FAULT
        worker.lay(d.command_record(EXIT), flags=0)
        end = time.monotonic() + d.PATIENCE
        while worker.answered() != worker.nonce:
            assert time.monotonic() < end
        assert results(worker, EXIT) == [0]
        worker.channel.setblocking(False)
        with pytest.raises(BlockingIOError):
            worker.hear()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("head -c 4096 /dev/zero > out", bytes(4096)),
        ("head -c 4097 /dev/zero > out", d.TOO_LONG),
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
        assert run(worker, d.part(d.OUTPUT_FILE, name="out", room=ROOM)) == [expected]


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
            assert run(worker, STDOUT, EXIT)[1] == status


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
        assert run(worker, STDOUT) == [b"done\n"]
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
        assert run(worker, STDOUT) == [b"done\n"]
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
        ((cpu, wall, _),) = run(worker, *(d.part(d.ARGUMENT, each) for each in arguments), d.part(d.USAGE))
        assert cpu >= 200_000_000
        assert wall >= 200_000_000


def test_a_call_inherits_the_standard_descriptors_alone() -> None:
    words = [str(word) for fd in range(64) for word in (d.number_of("fcntl"), fd, 1, 0, 0, 0, 0)]  # F_GETFD
    with d.worker(d.PLAIN, ["command", "--", str(d.compiled(d.RAW_PROGRAM)), *words]) as worker:
        worker.greet()
        (found,) = run(worker, d.part(d.STDIN, b""), STDOUT)
        assert [int(line) for line in found.split()] == [0] * 3 + [-errno.EBADF] * 61


def test_another_process_of_the_same_user_cannot_look_into_a_server() -> None:
    jail = d.Jail(start=d.unprivileged())
    with d.worker(jail, ["command", "--", "/bin/true"]) as worker:
        pid = worker.greet().pid
        for entry in ("mem", "environ", "maps", "fd/0"):
            command = ["head", "-c", "1", f"/proc/{pid}/{entry}"]
            looked = subprocess.run(command, capture_output=True, check=False, **d.unprivileged())
            assert looked.returncode != 0, entry


@pytest.mark.parametrize("kind", ["root", "user"])
def test_a_call_cannot_read_about_processes_but_what_the_processor_is(kind: str) -> None:
    d.needs_landlock()
    script = f"cat {' '.join(d.HIDDEN)}; ls /proc; ls /proc/self/fd; cd /proc/self; cat maps; head -c 9 /proc/cpuinfo"
    processor = Path("/proc/cpuinfo").read_bytes()[:9]
    for jail in (d.PLAIN, d.namespaces(kind)):
        assert output(script, jail=jail) == processor


def test_a_call_can_open_its_own_standard_input_and_output_by_name() -> None:
    with command("cat /dev/stdin > /dev/stdout", jail=d.Jail(start=d.unprivileged())) as worker:
        assert run(worker, d.part(d.STDIN, b"named"), STDOUT) == [b"named"]


IN_PLACE = """#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
/* tries every way to write to standard input */
int main(void) {
    int named = open("/dev/stdin", O_RDWR);
    for (int each = 0; each < 2; each++) {
        int fd = each ? named : 0;
        if (fd < 0) { printf("closed "); continue; }
        printf("%d%d%d%d ", pwrite(fd, "x", 1, 0) == 1, ftruncate(fd, 0) == 0,
               mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED,
               mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    }
    const char* seen = mmap(0, 4096, PROT_READ, MAP_SHARED, 0, 0);
    printf("%.5s", seen == MAP_FAILED ? "-" : seen);
}"""


def test_standard_input_cannot_be_worked_on_in_place() -> None:
    with d.worker(d.PLAIN, ["command", "--", str(d.compiled(IN_PLACE))]) as worker:
        worker.greet()
        for _ in range(2):
            (told,) = run(worker, d.part(d.STDIN, b"given"), STDOUT)
            assert told in (b"0001 0001 given", b"0001 closed given")


@pytest.mark.parametrize(
    "change", ["echo more >> in", "printf NEVER > in", ": > in", "printf X | dd of=in conv=notrunc 2>/dev/null"]
)
def test_a_call_that_changes_what_it_was_given_has_failed_unless_it_gives_that_back(change: str) -> None:
    given = d.part(d.FILE, b"given", "in")
    with command(change) as worker:
        reply = worker.ask(d.command_record(given, d.part(d.FILE, b"x", "other"), EXIT))
        assert reply.status == d.CALL_FAILED
        assert "it changed its input file in, which is not among the outputs" in reply.text
        (back,) = run(worker, given, d.part(d.OUTPUT_FILE, name="in", room=ROOM))
        assert isinstance(back, bytes) and back != b"given"


@pytest.mark.parametrize("use", ["cat in", "rm in", "mv in there", "touch in", "printf GIVEN > in; printf given > in"])
def test_a_call_may_do_with_what_it_was_given_what_leaves_it_as_it_was(use: str) -> None:
    with command(use) as worker:
        assert run(worker, d.part(d.FILE, b"given", "in"), EXIT) == [0]


@pytest.mark.parametrize("kind", ["root", "user"])
def test_the_server_is_closed_to_its_own_user_in_the_jail(kind: str) -> None:
    script = "cat /proc/$PPID/environ; cat /proc/$PPID/mem; ls /proc/$PPID/fd; echo end"
    assert output(script, jail=d.namespaces(kind)) == b"end\n"


def test_a_command_that_may_not_fork_cannot_but_runs() -> None:
    with d.worker(d.PLAIN, ["command", "--", "/bin/sh", "-c", "echo first; /bin/true; echo second"]) as worker:
        worker.greet()
        stdout, status = run(worker, STDOUT, EXIT)
        assert stdout == b"first\n" and status != 0


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
            assert run(worker, d.part(d.FILE, turn, "in"), STDOUT) == [b"in\n" + turn]


def test_a_call_whose_files_do_not_fit_has_failed_and_is_no_fault_of_the_judge() -> None:
    small = d.namespaces("root" if os.geteuid() == 0 else "user", "tmpfs\t/tmp\t65536")
    with command("cat in", jail=small) as worker:
        reply = worker.ask(d.command_record(d.part(d.FILE, bytes(200_000), "in")))
        assert reply.status == d.CALL_FAILED
        assert "No space" in reply.text
        assert run(worker, d.part(d.FILE, b"fits", "in"), STDOUT) == [b"fits"]


BAD_PARTS = {
    "name that leaves the folder": d.part(d.FILE, b"", "../x"),
    "absolute name": d.part(d.FILE, b"", "/x"),
    "empty name": d.part(d.FILE, b"", ""),
    "name with a zero byte": d.part(d.FILE, b"", "a\0b"),
    "argument with a zero byte": d.part(d.ARGUMENT, b"a\0b"),
    "output file that leaves the folder": d.part(d.OUTPUT_FILE, name="../x", room=64),
    "unknown kind": d.part(12),
}


@pytest.mark.parametrize("mistake", BAD_PARTS)
def test_a_part_that_makes_no_sense_is_a_fault_and_the_server_goes_on(mistake: str) -> None:
    with command("echo fine") as worker:
        assert worker.ask(d.command_record(BAD_PARTS[mistake])).status == d.FAULT
        assert run(worker, STDOUT) == [b"fine\n"]


BAD_REQUESTS = {
    "no records": {"count": 0},
    "more records than bytes": {"count": 2},
    "records beyond the region": {"size": d.REGION + 1},
    "records without an end": {"size": 2**64 - 8},
    "records cut off": {"size": 20},
}


@pytest.mark.parametrize("mistake", BAD_REQUESTS)
def test_a_question_that_does_not_fit_is_a_fault_and_the_server_goes_on(mistake: str) -> None:
    with command("echo fine") as worker:
        assert worker.ask(d.command_record(STDOUT), **BAD_REQUESTS[mistake]).status == d.FAULT
        assert run(worker, STDOUT) == [b"fine\n"]


def test_a_call_leaves_nothing_on_the_folder_that_all_share() -> None:
    place = d.scratch()
    before = place.stat()
    script = f'stat -c "%a %X" {place}; chmod 0711 {place}; touch -a -d @1 {place}'
    with command(script) as worker:
        first, second, third = (run(worker, STDOUT)[0] for _ in range(3))
    assert first == second == third
    # Without a jail it is a folder of this machine's, which is not to be opened to others.
    assert place.stat().st_mode == before.st_mode
