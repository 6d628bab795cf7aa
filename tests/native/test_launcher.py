"""The function worker: what a library's code can do, what it cannot, and what the judge is told."""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import launcher_driver as d
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ADD = "void outpace_call(const uint64_t* s, uint64_t* r) { *r = s[0] + s[1]; }"
JAILS = {
    "no jail": lambda: d.PLAIN,
    "own namespaces, root": lambda: d.namespaces("root"),
    "own namespaces, user": lambda: d.namespaces("user"),
    "bubblewrap, root": lambda: d.bubblewrap("root"),
    "bubblewrap, user": lambda: d.bubblewrap("user"),
}


@pytest.mark.parametrize("kind", JAILS)
def test_a_function_is_served_in_every_kind_of_jail_and_its_worker_has_the_pid_it_greets_with(
    kind: str,
) -> None:
    with d.function(ADD, jail=JAILS[kind]()) as worker:
        hello = worker.greet()
        assert worker.call((d.IMMEDIATE, 2**40), (d.IMMEDIATE, 2)) == 2**40 + 2
        assert b"function" in Path(f"/proc/{hello.pid}/cmdline").read_bytes().split(b"\0")


def test_the_calls_of_a_question_run_in_order_and_every_result_keeps_its_bits() -> None:
    source = "static double sum; void outpace_call(const uint64_t* s, uint64_t* r)"
    source += "{ sum += *(const double*)s[0]; __builtin_memcpy(r, &sum, 8); }"
    with d.function(source) as worker:
        worker.greet()
        worker.inputs[4096:4120] = struct.pack("<3d", 0.5, -2.25, 1e300)
        calls = b"".join(d.record((d.INPUT, 4096 + 8 * n), (d.RESULT, 64 + 8 * n)) for n in range(3))
        assert worker.ask(calls, count=3).status == d.DONE
        assert struct.unpack("<3d", worker.answers(64, 88)) == (0.5, -1.75, 1e300)


# Reads every page of both regions, writes to those of the output, and tells how many faults that took.
FAULTS = """#include <sys/resource.h>
static long faults(void) { struct rusage used; getrusage(RUSAGE_SELF, &used); return used.ru_minflt; }
void outpace_call(const uint64_t* s, uint64_t* r) {
    volatile char *in = (char*)s[0], *out = (char*)s[1];
    long before = faults();
    for (uint64_t at = 0; at < s[2]; at += 4096) { (void)in[at]; out[at] = out[at]; }
    *r = faults() - before;
}"""
TOUCH_ALL = ((d.INPUT, 0), (d.OUTPUT, 0), (d.IMMEDIATE, d.ANSWERS))


@pytest.mark.parametrize("size", [d.REGION, 100 * d.REGION])
def test_populating_maps_the_regions_without_changing_them_and_stays_within(size: int) -> None:
    inputs, answers = os.urandom(d.REGION), os.urandom(d.ANSWERS)
    options = ("--populate-input", str(size), "--populate-output", str(size))
    with d.function(FAULTS, *options, inputs=inputs, answers=answers) as worker:
        worker.greet()
        assert (worker.inputs[:], worker.answers(0, d.ANSWERS)) == (inputs, answers)
        assert worker.call(*TOUCH_ALL) < 5
    with d.function(FAULTS) as worker:
        worker.greet()
        assert worker.call(*TOUCH_ALL) > d.ANSWERS // 4096 // 2


@pytest.mark.parametrize("size", [0, 1, 2**64 - 1])
def test_whatever_size_is_to_be_populated_the_worker_serves(size: int) -> None:
    with d.function(ADD, "--populate-input", str(size), "--populate-output", str(size)) as worker:
        worker.greet()
        assert worker.call((d.IMMEDIATE, 1), (d.IMMEDIATE, 2)) == 3


BURN = """#include <time.h>
static long cpu(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
                        return t.tv_sec * 1000000000L + t.tv_nsec; }
static void burn(void) { long end = cpu() + 200000000; while (cpu() < end); }
"""


def test_the_greeting_tells_the_cpu_time_before_the_candidates_code_and_nothing_of_a_constructors() -> None:
    source = BURN + "__attribute__((constructor)) static void first(void) { burn(); }\n" + ADD
    with d.function(source) as worker:
        hello = worker.greet()
        spent = time.clock_gettime_ns((~hello.pid << 3) | 2)
        assert 0 < hello.value <= spent - 200_000_000


def test_each_mode_greets_with_its_cpu_time() -> None:
    for mode in (["exec", "--", "/bin/true"], ["command", "--", "/bin/true"]):
        with d.worker(d.PLAIN, mode) as worker:
            hello = worker.hear()
            assert hello is not None and hello.status == d.HELLO and hello.value > 0


SET_UP = d.IS_SETUP | d.WANTS_REPLY


def test_set_up_reaches_the_library_and_is_refused_where_there_is_none() -> None:
    source = "static uint64_t kept; void outpace_setup(const uint64_t* s, uint64_t* r) { kept = s[0]; }"
    source += "void outpace_call(const uint64_t* s, uint64_t* r) { *r = kept + s[0]; }"
    with d.function(source) as worker:
        worker.greet()
        assert worker.ask(d.record((d.IMMEDIATE, 40)), flags=SET_UP).status == d.DONE
        assert worker.call((d.IMMEDIATE, 2)) == 42
        assert worker.ask(2 * d.record((d.IMMEDIATE, 9)), count=2, flags=SET_UP).status == d.FAULT
        assert worker.call((d.IMMEDIATE, 2)) == 42
    with d.function(ADD) as worker:
        worker.greet()
        assert worker.ask(d.record((d.IMMEDIATE, 40)), flags=SET_UP).status == d.FAULT


END, ANSWERS = d.REGION, d.ANSWERS
BAD_QUESTIONS = {
    "input beyond the region": (d.record((d.INPUT, END + 1)), {}),
    "output beyond the region": (d.record((d.OUTPUT, ANSWERS + 1)), {}),
    "result across the end": (d.record((d.RESULT, ANSWERS - 8 + 4)), {}),
    "result beyond the region": (d.record((d.RESULT, ANSWERS)), {}),
    "result at an odd place": (d.record((d.RESULT, 4)), {}),
    "result that is not last": (d.record((d.RESULT, 0), (d.IMMEDIATE, 1)), {}),
    "unknown kind of slot": (d.record((9, 0)), {}),
    "no records": (b"", {"count": 0}),
    "more records than bytes": (d.record((d.IMMEDIATE, 1)), {"count": 2}),
    "more slots than bytes": (struct.pack("<IIQ", 1000, 0, 16), {}),
    "record shorter than its header": (struct.pack("<IIQ", 0, 0, 0), {}),
    "record longer than the request": (struct.pack("<IIQ", 0, 0, 64), {}),
    "records beyond the region": (d.record((d.IMMEDIATE, 1)), {"size": END + 1}),
    "records without an end": (d.record((d.IMMEDIATE, 1)), {"size": 2**64 - 8}),
    "misaligned record": (struct.pack("<IIQI", 0, 0, 20, 0) + struct.pack("<IIQ", 0, 0, 16), {"count": 2}),
}


@pytest.mark.parametrize("mistake", BAD_QUESTIONS)
def test_a_question_that_does_not_fit_is_a_fault_and_the_worker_goes_on(mistake: str) -> None:
    records, request = BAD_QUESTIONS[mistake]
    with d.function(ADD) as worker:
        worker.greet()
        assert worker.ask(records, **request).status == d.FAULT
        assert worker.call((d.IMMEDIATE, 1), (d.IMMEDIATE, 2)) == 3


def test_whatever_the_records_say_a_question_is_answered_and_the_worker_lives() -> None:
    ends = [edge + step for edge in (ANSWERS, END) for step in (-8, -1, 0, 1)]
    near = st.sampled_from([0, 1, 8, 16, 64, *ends, 2**32, 2**63, 2**64 - 8, 2**64 - 1])
    slots = st.tuples(st.integers(0, 5), near)
    headers = st.tuples(st.integers(0, 5), near)

    with d.function("void outpace_call(const uint64_t* s, uint64_t* r) { *r = -1; }") as worker:
        worker.greet()

        @settings(deadline=None, max_examples=300, database=None)
        @given(headers, st.lists(slots, max_size=4), st.integers(0, 3), st.none() | near)
        def holds(header: tuple[int, int], rows: list[tuple[int, ...]], count: int, size: int | None) -> None:
            body = struct.pack("<IIQ", header[0], 0, header[1]) + d.record(*rows)[16:]
            for records in (body, d.record(*rows)):
                reply = worker.ask(records, count=count, size=size)
                assert reply.status in (d.DONE, d.FAULT)

        holds()


COUNT = "static uint64_t calls; void outpace_call(const uint64_t* s, uint64_t* r) { *r = ++calls; }"


def test_a_question_is_answered_once_however_often_the_worker_is_woken() -> None:
    with d.function(COUNT) as worker:
        pid = worker.greet().pid
        for number in (1, 2):
            assert worker.call() == number
            d.wait_for_state(pid, "S")
            for _ in range(20):
                worker.wake()
            d.wait_for_state(pid, "S")


def test_a_desk_without_a_nonce_holds_no_question() -> None:
    with d.function(COUNT) as worker:
        pid = worker.greet().pid
        worker.nonce = -1
        worker.lay(d.record((d.RESULT, 0)))
        d.wait_for_state(pid, "S")
        assert worker.answers(0, 8) == bytes(8)
        worker.nonce = 2**32 - 2
        assert worker.call() == 1


def test_without_a_wish_for_a_reply_the_desk_alone_tells_of_the_answer() -> None:
    with d.function(ADD) as worker:
        pid = worker.greet().pid
        records = d.record((d.IMMEDIATE, 20), (d.IMMEDIATE, 3), (d.RESULT, 8))
        worker.lay(records, flags=0)
        end = time.monotonic() + d.PATIENCE
        while worker.answered() != worker.nonce:
            assert time.monotonic() < end
        assert worker.answers(8, 16) == struct.pack("<Q", 23)
        d.wait_for_state(pid, "S")
        worker.channel.setblocking(False)
        with pytest.raises(BlockingIOError):
            worker.hear()


@pytest.mark.parametrize("source", ["int other;", "void missing(void); void outpace_call(void) { missing(); }"])
def test_a_library_that_cannot_be_loaded_is_reported_with_the_loaders_words(source: str) -> None:
    with d.function(source) as worker:
        hello, failed = worker.hear(), worker.hear()
        assert hello is not None and hello.status == d.HELLO
        assert failed is not None and failed.status == d.LOAD_FAILED
        assert "outpace_call" in failed.text or "missing" in failed.text


def test_writing_to_an_input_crashes_and_the_pages_cannot_be_made_writable() -> None:
    with d.function(d.RAW) as worker:
        worker.greet()
        arguments = [(d.IMMEDIATE, d.number_of("mprotect")), (d.INPUT, 0), *d.immediates(4096, 3)[:5]]
        assert worker.call(*arguments) == -errno.EACCES
    with d.function("void outpace_call(const uint64_t* s, uint64_t* r) { *(char*)s[0] = 1; }") as worker:
        worker.greet()
        worker.lay(d.record((d.INPUT, 0)))
        assert worker.hear() is None
        assert worker.ending() == -signal.SIGSEGV


A_THREAD = 0x100 | 0x800 | 0x10000  # CLONE_VM, CLONE_SIGHAND, CLONE_THREAD
FORBIDDEN_IN_A_CALL = {
    "openat": (-100, 0, 0), "socket": (socket.AF_UNIX, 1), "socketpair": (1, 1), "execve": (0,),
    "ptrace": (0,), "bpf": (0,), "clone": (A_THREAD,), "sched_setaffinity": (0, 0, 0), "mount": (0,),
    "prlimit64": (0, 7, 0, 0), "memfd_create": (0,), "kill": (-1, 0), "timer_create": (0,),
    "setitimer": (0,), "io_uring_setup": (1, 0), "process_vm_readv": (1,), "ftruncate": (0, 0),
    "fcntl": (0, 1), "userfaultfd": (0,), "setpriority": (0, 0, 5), "seccomp": (1, 0, 0),
    "shmget": (0, 4096, 0o1600), "unshare": (0,),
}  # fmt: skip


@pytest.mark.parametrize("name", FORBIDDEN_IN_A_CALL)
def test_a_forbidden_system_call_ends_the_worker_and_the_judge_learns_its_number(name: str) -> None:
    with d.function(d.RAW) as worker:
        worker.greet()
        reply = worker.ask(d.record(*d.immediates(d.number_of(name), *FORBIDDEN_IN_A_CALL[name])))
        assert (reply.status, reply.detail) == (d.FORBIDDEN, d.number_of(name))
        assert worker.ending() == 124


def test_a_worker_may_signal_itself_and_nobody_else() -> None:
    with d.function(d.RAW) as worker:
        pid = worker.greet().pid
        assert worker.call(*d.immediates(d.number_of("tgkill"), pid, pid, 0)) == 0
        other = d.record(*d.immediates(d.number_of("tgkill"), os.getpid(), os.getpid(), 0))
        assert worker.ask(other).status == d.FORBIDDEN


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (("rt_sigaction", signal.SIGSYS, 0, 0, 8), -errno.EPERM),
        (("rt_sigaction", signal.SIGUSR1, 0, 0, 8), 0),
        (("prctl", 1, 0), -errno.EINVAL),  # PR_SET_PDEATHSIG
        (("clone3", 0, 0), -errno.ENOSYS),
        (("ioctl", 1, 0x5401), -errno.ENOTTY),
        (("close", 9999), -errno.EBADF),
    ],
)
def test_harmless_system_calls_get_an_answer(call: tuple[object, ...], value: int) -> None:
    name, *arguments = call
    with d.function(d.RAW) as worker:
        worker.greet()
        assert worker.call(*d.immediates(d.number_of(str(name)), *map(int, arguments))) == value  # type: ignore[call-overload]


def test_no_descriptor_but_the_socket_and_the_standard_ones_is_left_in_a_worker() -> None:
    secret = os.memfd_create("secret")
    try:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with d.started(d.PLAIN, ["exec", "--", "/bin/cat"], [secret], **pipes) as process:
            assert process.stdin is not None and process.stdout is not None
            with process.stdin as stdin:
                stdin.write(b"up\n")
                stdin.flush()
                assert process.stdout.readline() == b"up\n"
                assert sorted(fd.name for fd in Path(f"/proc/{process.pid}/fd").iterdir()) == ["0", "1", "2"]
        with d.function(d.RAW) as worker:
            worker.greet()
            found = [worker.call(*d.immediates(d.number_of("lseek"), fd, 0, 1)) for fd in range(64)]
            assert [
                fd for fd, value in enumerate(found) if value != -errno.EBADF and fd > 2 and value != -errno.ESPIPE
            ] == []
            assert found.count(-errno.ESPIPE) == 1  # the socket
    finally:
        os.close(secret)


def constructor(body: str) -> str:
    includes = "#include <fcntl.h>\n#include <signal.h>\nstatic long found;\n"
    return f"{includes}__attribute__((constructor)) static void first(void) {{ {body} }}\n" + (
        "void outpace_call(const uint64_t* s, uint64_t* r) { *r = found; }"
    )


@pytest.mark.parametrize(
    "name", ["socket", "execve", "clone", "ptrace", "memfd_create", "unlinkat", "ftruncate", "setitimer"]
)
def test_a_constructor_that_makes_a_forbidden_call_is_caught_before_ready(name: str) -> None:
    with d.function(constructor(f"syscall(__NR_{name}, 0, 0, 0, 0, 0, 0);")) as worker:
        hello, caught = worker.hear(), worker.hear()
        assert hello is not None and hello.status == d.HELLO
        assert caught is not None and (caught.status, caught.detail) == (d.FORBIDDEN, d.number_of(name))
        assert worker.ending() == 124


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ('found = open("/proc/cpuinfo", O_RDONLY) >= 0;', 1),
        ('found = open("/usr/bin/env", O_RDONLY) >= 0;', 1),
        ('found = open("/tmp/x", O_RDWR | O_CREAT, 0600) < 0 ? -errno : 0;', -errno.EACCES),
        ('found = open("/tmp", O_TMPFILE | O_WRONLY, 0600) < 0 ? -errno : 0;', -errno.EACCES),
        ("found = signal(SIGSYS, SIG_IGN) == SIG_ERR ? -errno : 0;", -errno.EPERM),
        ("found = fcntl(2, F_GETFL) < 0 ? -errno : 0;", 0),
    ],
)
def test_a_constructor_may_read_files_but_not_write_them_or_hide_its_traps(body: str, value: int) -> None:
    with d.function(constructor(body)) as worker:
        worker.greet()
        assert worker.call() == value


@pytest.mark.parametrize("path", d.HIDDEN)
def test_a_constructor_cannot_read_about_processes(path: str) -> None:
    d.needs_landlock()
    with d.function(constructor(f'found = open("{path}", O_RDONLY) < 0 ? -errno : 0;')) as worker:
        worker.greet()
        assert worker.call() == -errno.EACCES


def test_a_constructor_can_read_what_the_processor_is() -> None:
    body = 'int file = open("/proc/cpuinfo", O_RDONLY); char text[64]; found = read(file, text, sizeof text);'
    with d.function(constructor(body)) as worker:
        worker.greet()
        assert worker.call() == 64


THREADS = """#include <pthread.h>
static void* other(void* p) { *(uint64_t*)p = 7; return p; }
void outpace_call(const uint64_t* s, uint64_t* r) {
    pthread_t t; *r = sysconf(_SC_NPROCESSORS_ONLN) > 0;
    if (pthread_create(&t, 0, other, r) == 0) pthread_join(t, 0);
}"""


def test_threads_start_only_where_more_than_one_is_allowed() -> None:
    with d.function(THREADS, "--threads", "2") as worker:
        worker.greet()
        assert worker.call() == 7
    with d.function(THREADS) as worker:
        worker.greet()
        assert worker.ask(d.record((d.RESULT, 0))).status == d.FORBIDDEN


def test_ordinary_code_runs_under_the_last_filter() -> None:
    source = """
    #include <cstdio>
    #include <cstdlib>
    #include <stdexcept>
    #include <string>
    #include <vector>
    static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
    extern "C" void outpace_call(const uint64_t* s, uint64_t* r) {
        std::vector<int> numbers(1 << 20);
        for (int& each : numbers) each = std::rand();
        std::qsort(numbers.data(), numbers.size(), sizeof(int), compare);
        try { throw std::runtime_error("kept"); }
        catch (const std::exception& e) { *r = std::string(e.what()).size(); }
        std::printf("%d\\n", numbers[0]); std::fflush(stdout);
    }"""
    with d.function(source) as worker:
        worker.greet()
        assert worker.call() == 4


def test_a_sleeping_call_survives_being_stopped_and_continued() -> None:
    source = """#include <time.h>
    void outpace_call(const uint64_t* s, uint64_t* r) {
        struct timespec t = {0, 300000000};
        *(volatile char*)s[0] = 1;
        *r = nanosleep(&t, 0) == 0 ? 5 : -errno;
    }"""
    with d.function(source) as worker:
        pid = worker.greet().pid
        worker.lay(d.record((d.OUTPUT, 512), (d.RESULT, 0)))
        while worker.answers(512, 513) == b"\0" or d.state(pid) == "R":
            pass
        os.kill(pid, signal.SIGSTOP)
        d.wait_for_state(pid, "T")
        os.kill(pid, signal.SIGCONT)
        reply = worker.hear()
        assert reply is not None and reply.status == d.DONE
        assert worker.answers(0, 1) == b"\5"


def test_a_worker_that_waits_for_a_question_survives_being_stopped_and_continued() -> None:
    with d.function(ADD) as worker:
        pid = worker.greet().pid
        d.wait_for_state(pid, "S")
        os.kill(pid, signal.SIGSTOP)
        d.wait_for_state(pid, "T")
        worker.lay(d.record((d.IMMEDIATE, 1), (d.IMMEDIATE, 2), (d.RESULT, 0)))
        os.kill(pid, signal.SIGCONT)
        reply = worker.hear()
        assert reply is not None and reply.status == d.DONE
        assert worker.answers(0, 1) == b"\3"


def test_a_worker_whose_judge_has_hung_up_ends_without_running_the_candidates_destructors() -> None:
    source = """static char* output;
    __attribute__((destructor)) static void last(void) { if (output) *output = 99; }
    void outpace_call(const uint64_t* s, uint64_t* r) { output = (char*)s[0]; }"""
    with d.function(source) as worker:
        worker.greet()
        worker.channel.close()
        worker.lay(d.record((d.OUTPUT, 512)))
        assert worker.ending() == 125
        assert worker.answered() == worker.nonce
        assert worker.answers(512, 513) == b"\0"


def test_a_worker_that_waits_for_a_question_dies_with_its_parent() -> None:
    outer = ("sh", "-c", '"$@" & wait', "sh")
    with d.function(ADD, jail=d.Jail(outer, str(d.room() / "launch"))) as worker:
        pid = worker.greet().pid
        assert pid != worker.process.pid
        d.wait_for_state(pid, "S")
        worker.process.kill()
        assert worker.hear() is None


def test_another_process_of_the_same_user_cannot_look_into_a_worker() -> None:
    jail = d.Jail(start=d.unprivileged())
    with d.function(ADD, jail=jail) as worker:
        pid = worker.greet().pid
        for entry in ("mem", "environ", "maps", "fd/0"):
            # Not in the jail, where nobody's entries can be read at all.
            command = ["head", "-c", "1", f"/proc/{pid}/{entry}"]
            looked = subprocess.run(command, capture_output=True, check=False, **d.unprivileged())
            assert looked.returncode != 0, entry
