"""The feeder: one question after another, each answer copied out in its time, and nothing left for the rival."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import launcher_driver as d
import pytest
from feeder_seat import (
    SECOND,
    SQUARE,
    function,
    number,
    numbers_of,
    on_one_core,
    python_function,
    question,
    seated,
)

from outpace.judge.blank import POISON
from outpace.judge.feeder import Lot, Told
from outpace.judge.question import command_question, python_question

BOTH_WAYS = pytest.mark.parametrize("replies", [False, True], ids=["polling", "one core"])


# Answers.


@BOTH_WAYS
def test_every_question_gets_its_own_answer_in_order(replies: bool) -> None:
    with function(SQUARE) as seat:
        for first in (1, 1000):  # a second turn begins where the first one stopped
            values = range(first, first + 500)
            turn = seat.turn([number(value) for value in values], replies=replies)
            assert turn.told is Told.FINISHED
            assert numbers_of(turn) == [value * value for value in values]
            assert d.state(seat.pid) == "T"


def test_questions_of_several_calls_and_lengths_keep_their_answers_apart() -> None:
    with function(SQUARE) as seat:
        turn = seat.turn([number(1), number(2, 3, 4), number(5), number(*range(100))])
        assert [len(answer) for answer in turn.answers] == [8, 24, 8, 800]
        assert numbers_of(turn) == [n * n for n in (1, 2, 3, 4, 5, *range(100))]


def test_one_core_for_both_gives_the_same_answers() -> None:
    with function(SQUARE) as seat, on_one_core(seat):
        questions = [number(value, value + 1) for value in range(300)]
        turn = seat.turn(questions, replies=True)
        assert turn.told is Told.FINISHED
        assert numbers_of(turn) == [n * n for value in range(300) for n in (value, value + 1)]
        assert numbers_of(turn) == numbers_of(seat.turn(questions, replies=True))


def test_a_call_that_writes_nothing_does_not_pass_for_the_last_answer() -> None:
    with function("void outpace_call(const uint64_t* s, uint64_t* r) { if (s[0] % 2) *r = s[0]; }") as seat:
        turn = seat.turn([number(value) for value in (1, 2, 3, 4)])
        poison = int.from_bytes(bytes([POISON]) * 8, "little")
        assert numbers_of(turn) == [1, poison, 3, poison]


def test_set_up_is_asked_like_a_question() -> None:
    source = "static uint64_t kept; void outpace_setup(const uint64_t* s, uint64_t* r) { kept = s[0]; }"
    source += "void outpace_call(const uint64_t* s, uint64_t* r) { *r = kept + s[0]; }"
    with function(source) as seat:
        setup = question(d.record((d.IMMEDIATE, 40)), answer_bytes=0, setup=True)
        turn = seat.turn([setup, number(2), number(3)])
        assert turn.told is Told.FINISHED
        assert numbers_of(turn) == [42, 43]


@BOTH_WAYS
def test_a_command_answers_by_message(replies: bool) -> None:
    mode = ["command", "--", "/bin/sh", "-c", 'cat; printf "%s" "$@" > out', "sh"]
    with seated(d.worker(d.PLAIN, mode, "--allow-fork")) as seat:
        given = [{"stdin": f"{n}" * n, "args": ["a" * n]} for n in range(8)]
        questions = [command_question(each, ["out"], d.ANSWERS) for each in given]
        turn = seat.turn(questions, replies=replies)
        assert turn.told is Told.FINISHED
        found = [q.read(answer)[0] for q, answer in zip(questions, turn.answers, strict=True)]
        assert [each["stdout"] for each in found] == [each["stdin"].encode() for each in given]  # type: ignore[attr-defined]
        assert [each["files"]["out"] for each in found] == [b"a" * n for n in range(8)]


@BOTH_WAYS
def test_a_python_function_answers_at_any_length(replies: bool) -> None:
    with python_function("def solve(n):\n    return 'x' * n") as seat:
        sizes = [0, 1, 1000, 7, 100_000, 0]
        questions = [python_question([{"n": n}]) for n in sizes]
        turn = seat.turn(questions, replies=replies)
        assert turn.told is Told.FINISHED
        found = [q.read(answer)[0] for q, answer in zip(questions, turn.answers, strict=True)]
        assert found == ["x" * n for n in sizes]


def test_a_set_up_stays_where_it_lies_and_later_questions_lie_behind_it() -> None:
    source = """
        static const int64_t* kept;
        void outpace_setup(const uint64_t* s, uint64_t* r) { kept = (const int64_t*)s[0]; }
        void outpace_call(const uint64_t* s, uint64_t* r) { *r = kept[0] + *(const int64_t*)s[0]; }"""
    with function(source) as seat:
        given = d.record((d.INPUT, 48), (d.RESULT, 0))
        setup = question(given, answer_bytes=0, more=(1000).to_bytes(8, "little") * 1000, setup=True)
        asked = [question(given, more=n.to_bytes(8, "little")) for n in (1, 2)]
        turn = seat.turn([setup, asked[0]])
        assert (turn.told, numbers_of(turn)) == (Told.FINISHED, [1001])
        kept = Lot([setup], ()).kept
        assert kept == 8192
        turn = seat.turn(asked, kept=kept)
        assert (turn.told, numbers_of(turn)) == (Told.FINISHED, [1001, 1002])
        # What was set up with is still there.
        assert bytes(seat.worker.inputs[:48]) == given


# What is in the worker's sight.


def test_no_question_is_in_sight_before_the_last_one_is_answered() -> None:
    # The largest byte of the input region behind the records.
    source = """void outpace_call(const uint64_t* s, uint64_t* r) {
        const unsigned char* in = (const unsigned char*)s[0];
        uint64_t most = 0;
        for (uint64_t at = 0; at < s[1]; at++) if (in[at] > most) most = in[at];
        *r = most;
    }"""
    with function(source) as seat:
        records = d.record((d.INPUT, 64), (d.IMMEDIATE, 100_000), (d.RESULT, 0))
        turn = seat.turn([question(records, more=bytes([n]) * (100_000 - 1000 * n)) for n in range(1, 60)])
        assert numbers_of(turn) == list(range(1, 60))


# A thread that watches the first and the last word of a large input, and counts how often they were of two questions.
WATCH = """#include <pthread.h>
static const volatile uint64_t *first, *last;
static volatile uint64_t torn, looks;
static void* watch(void* nothing) {
    for (;;) {
        uint64_t before = *first, end = *last, after = *first;
        if (before == after && before != end) torn++;
        looks++;
    }
    return nothing;
}
void outpace_call(const uint64_t* s, uint64_t* r) {
    pthread_t thread;
    first = (const uint64_t*)s[0]; last = (const uint64_t*)s[1];
    if (looks == 0) pthread_create(&thread, 0, watch, 0);
    for (uint64_t seen = looks; looks == seen;);
    *r = torn;
}"""


def test_a_thread_never_sees_half_a_question() -> None:
    with function(WATCH, "--threads", "2") as seat:
        words = 100_000
        records = d.record((d.INPUT, 64), (d.INPUT, 64 + 8 * (words - 1)), (d.RESULT, 0))
        questions = [question(records, more=struct.pack("<Q", n) * words) for n in range(1, 100)]
        turn = seat.turn(questions, threads=1)
        assert turn.told is Told.FINISHED
        assert numbers_of(turn) == [0] * 99


# A thread that counts at the start of the answers for as long as it runs.
COUNTER = """#include <pthread.h>
static volatile uint64_t* counter;
static void* count(void* nothing) { for (;;) ++*counter; return nothing; }
void outpace_call(const uint64_t* s, uint64_t* r) {
    pthread_t thread;
    if (counter == 0) { counter = (volatile uint64_t*)s[0]; pthread_create(&thread, 0, count, 0); }
    for (uint64_t seen = *counter; *counter == seen;);
}"""


def test_threads_stand_still_while_an_answer_is_read_and_after_the_turn() -> None:
    with function(COUNTER, "--threads", "2") as seat:
        for _ in range(30):
            turn = seat.turn(2 * [question(d.record((d.OUTPUT, 0)))], threads=1)
            assert turn.told is Told.FINISHED
            # The thread ran until it was stopped for the answer; had it run on, the region would be ahead.
            assert bytes(turn.answers[-1]) == seat.worker.answers(0, 8)
            states = {path.read_text().rpartition(")")[2].split()[0] for path in tasks(seat.pid)}
            assert states == {"T"}
        assert len(list(tasks(seat.pid))) == 2


def tasks(pid: int) -> Iterator[Path]:
    return Path(f"/proc/{pid}/task").glob("*/stat")


# Limits.


SPIN_ON_ZERO = "void outpace_call(const uint64_t* s, uint64_t* r) { while (s[0] == 0); *r = s[0]; }"
NAP = """#include <time.h>
void outpace_call(const uint64_t* s, uint64_t* r) { struct timespec t = {0, 50000000}; nanosleep(&t, 0); *r = s[0]; }"""


@BOTH_WAYS
@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_without_an_answer_ends_the_turn_at_the_calls_limit(replies: bool, threads: int) -> None:
    with function(SPIN_ON_ZERO, "--threads", str(threads)) as seat:
        begin, patience = time.monotonic(), d.PATIENCE * SECOND
        limits = {"limit": SECOND // 2, "turn_limit": patience}
        turn = seat.turn([number(7), number(0), number(8)], replies=replies, threads=threads > 1, **limits)
        assert turn.told is Told.TIMED_OUT and time.monotonic() - begin < d.PATIENCE
        assert numbers_of(turn) == [7]
        assert d.state(seat.pid) == "T"


@BOTH_WAYS
def test_a_turn_ends_at_its_own_limit_even_where_each_call_keeps_to_its(replies: bool) -> None:
    with function(NAP) as seat:
        turn = seat.turn([number(5)] * 200, replies=replies, turn_limit=SECOND // 2)
        assert turn.told is Told.TIMED_OUT
        assert len(turn.answers) < 200 and set(numbers_of(turn)) <= {5}
        assert turn.wall >= SECOND // 2
    with function(SPIN_ON_ZERO) as seat:
        turn = seat.turn([number(0)], replies=replies, turn_limit=SECOND // 2)
        assert (turn.told, turn.answers) == (Told.TIMED_OUT, ())


def test_a_question_of_many_calls_has_the_limit_of_each() -> None:
    with function(NAP) as seat:
        turn = seat.turn([number(*range(20))], limit=SECOND // 2)  # a second of naps
        assert turn.told is Told.FINISHED
        assert numbers_of(turn) == list(range(20))


# Workers that say something.


ENDS = {
    "an exit": "_exit(3);",
    "a crash": "*(volatile char*)0 = 1;",
    "a forbidden call": "syscall(__NR_socket, 1, 1, 0);",
    # Whatever descriptor its socket has.
    "a message": "static char text[256]; for (int fd = 3; fd < 64; fd++) (void)!write(fd, text, 256); for (;;);",
}


@BOTH_WAYS
@pytest.mark.parametrize("end", ENDS)
def test_a_worker_that_dies_or_sends_a_message_ends_the_turn(end: str, replies: bool) -> None:
    source = f"void outpace_call(const uint64_t* s, uint64_t* r) {{ if (s[0] == 0) {{ {ENDS[end]} }} *r = s[0]; }}"
    with function(source) as seat:
        turn = seat.turn([number(7), number(8), number(0), number(9)], replies=replies)
        assert turn.told is Told.SPEAKS
        assert numbers_of(turn) == [7, 8]
        # What it had to say is left for the judge to read.
        word = seat.worker.hear()
        if end == "a forbidden call":
            assert word is not None and (word.status, word.detail) == (d.FORBIDDEN, d.number_of("socket"))
        else:
            assert (word is not None) == (end == "a message")


@BOTH_WAYS
def test_a_question_that_the_worker_refuses_ends_the_turn(replies: bool) -> None:
    with function(SQUARE) as seat:
        turn = seat.turn([number(7), question(d.record((d.INPUT, d.REGION + 1)))], replies=replies)
        assert (turn.told, numbers_of(turn)) == (Told.SPEAKS, [49])
        word = seat.worker.hear()
        assert word is not None and word.status == d.FAULT


def test_a_worker_that_is_gone_before_its_turn_is_told_of() -> None:
    with function(SQUARE) as seat:
        seat.worker.process.kill()
        seat.worker.ending()
        turn = seat.turn([number(7)])
        assert (turn.told, turn.answers) == (Told.SPEAKS, ())


# Lengths.


def test_an_answer_that_claims_more_than_its_region_is_not_read() -> None:
    source = """void outpace_call(const uint64_t* s, uint64_t* r) {
        *(uint64_t*)(s[0] - 4096 + 72) = s[1];
    }"""
    with function(source) as seat:
        claims = [d.ANSWERS, d.ANSWERS + 1]
        questions = [question(d.record((d.OUTPUT, 0), (d.IMMEDIATE, n)), answer_bytes=None) for n in claims]
        turn = seat.turn(questions)
        assert turn.told is Told.TOO_LONG
        # And that nothing of it was fetched from elsewhere.
        assert [len(answer) for answer in turn.answers] == [d.ANSWERS + 8]


def test_a_question_that_the_regions_cannot_hold_is_not_asked() -> None:
    with function(SQUARE) as seat:
        too_much = question(d.record((d.IMMEDIATE, 1)), more=bytes(d.REGION))
        assert seat.turn([too_much]).told is Told.TOO_LONG
        assert seat.turn([question(d.record((d.IMMEDIATE, 1)), answer_bytes=d.ANSWERS + 1)]).told is Told.TOO_LONG
        assert numbers_of(seat.turn([number(3)])) == [9]


def test_answers_beyond_the_room_for_a_turn_are_told_of() -> None:
    with function(SQUARE) as seat:
        turn = seat.turn([number(1), number(2), number(3)], room=20)
        assert (turn.told, numbers_of(turn)) == (Told.NO_ROOM, [1, 4])


# Clocks.

CPU = """#include <time.h>
static void burn(void) {
    struct timespec t; long end = 0, now;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        now = t.tv_sec * 1000000000L + t.tv_nsec;
        if (end == 0) end = now + 200000000;
    } while (now < end);
}
"""


def test_cpu_time_spent_after_an_answer_is_on_the_next_turn() -> None:
    # Writes the answer and its nonce by itself, and does its work when the next question is there.
    source = """void outpace_call(const uint64_t* s, uint64_t* r) {
        char* desk = (char*)s[0] - 4096;
        *r = s[1];
        if (s[1] == 0) return;
        const uint32_t nonce = *(volatile uint32_t*)desk;
        __atomic_store_n((uint32_t*)(desk + 64), nonce, __ATOMIC_SEQ_CST);
        while (*(volatile uint32_t*)desk == nonce);
        burn();
    }"""
    with function(CPU + source) as seat:
        marks = []
        for value in (0, 1, 0):
            records = d.record((d.OUTPUT, 0), (d.IMMEDIATE, value), (d.RESULT, 0))
            turn = seat.turn([question(records)])
            assert (turn.told, numbers_of(turn)) == (Told.FINISHED, [value])
            marks.append(turn.cpu)
        assert marks[2] - marks[1] >= 200_000_000


def test_cpu_time_of_a_turn_is_what_its_calls_took() -> None:
    with function(CPU + "void outpace_call(const uint64_t* s, uint64_t* r) { if (s[0]) burn(); *r = s[0]; }") as seat:
        idle, busy = seat.turn([number(0)] * 3), seat.turn([number(1)] * 3)
        assert busy.cpu - idle.cpu >= 600_000_000
        assert busy.wall >= 600_000_000 and busy.wall > idle.wall
        assert busy.resident > 0


# A worker that goes to sleep long after the question was laid down.
SLOW_TO_SLEEP = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
struct reply { uint64_t nonce; uint32_t status, detail; uint64_t value; char text[232]; };
int main(int count, char** words) {
    int channel = atoi(words[1]); char byte;
    volatile uint32_t* desk = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(words[2]), 0);
    struct reply say = {0, 2};
    send(channel, &say, sizeof say, 0);
    while (desk[0] == 0);
    usleep(100000);  /* preempted before it sleeps */
    if (recv(channel, &byte, 1, 0) != 1) return 1;
    desk[16] = desk[0];
    say.nonce = desk[0]; say.status = 0;
    send(channel, &say, sizeof say, 0);
    pause();
}"""


@BOTH_WAYS
def test_a_worker_that_falls_asleep_after_the_question_was_laid_down_is_woken(replies: bool) -> None:
    mode = ["exec", "--", str(d.compiled(SLOW_TO_SLEEP)), "{socket}", "{output}"]
    with seated(d.worker(d.PLAIN, mode)) as seat:
        assert seat.turn([number(1)], replies=replies, limit=3 * SECOND).told is Told.FINISHED


def test_what_the_feeder_copies_is_no_waiting_of_the_workers() -> None:
    with function(SQUARE) as seat, on_one_core(seat):
        records = d.record((d.IMMEDIATE, 3), (d.RESULT, 0))
        large = question(records, more=bytes(d.REGION - len(records)))
        turn = seat.turn([large] * 200, replies=1)
        # No machine copies more than 500 GB a second.
        assert 200 * d.REGION * SECOND // (500 * 10**9) < turn.delay < turn.wall


def test_a_turn_that_ran_into_its_limit_has_the_wall_time_to_show_for_it() -> None:
    with function(SPIN_ON_ZERO, "--threads", "2") as seat:
        turn = seat.turn([number(0)], threads=1, turn_limit=SECOND // 2)
        assert turn.told is Told.TIMED_OUT
        assert turn.wall >= SECOND // 2


# Takes memory, and is named like the line that the judge looks for.
MEMORY = """#include <pthread.h>
#include <sys/mman.h>
__attribute__((constructor)) static void forge(void) { pthread_setname_np(pthread_self(), "RssAnon:\\t1"); }
void outpace_call(const uint64_t* s, uint64_t* r) {
    volatile char* at = mmap(0, s[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t byte = 0; byte < s[0]; byte += 4096) at[byte] = 1;
    *r = 0;
}"""


def test_memory_is_counted_whatever_a_worker_calls_itself() -> None:
    size = 8 << 20
    with function(MEMORY) as seat:
        before, after = (seat.turn([number(taken)]).resident for taken in (4096, size))
        assert size <= after - before < 2 * size
