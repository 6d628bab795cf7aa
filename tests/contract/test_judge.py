"""What the judge says of candidates that are right, slow, broken, wrong or greedy, in every jail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import c_task, command_task, python_task
from outpace.errors import TaskError
from outpace.judge.interview import Interview
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.schedule import Plan
from outpace.judge.timing import Stopwatch
from outpace.judge.verdict import Outcome
from outpace.task import Task
from outpace.task.candidate import Candidate, reference
from outpace.task.file import make_task

MakeJudge = Callable[[Task, JailKind], Judge]

SUM = """
#include <stdint.h>
double total(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
}
"""
SUM_JUDGE = """
def make_input(rng):
    n = int(rng.integers(20000, 40000))
    return {"x": rng.random(n), "n": n}
"""
SUM_FUNCTION = "double total(const double *x, int64_t n)"
TOLERANT = "[checking]\ntolerance = 1e-9"
LIMITS = "[limits]\nseconds = 1\nbuild_seconds = 20\nmemory_mb = 256"


@pytest.fixture
def sums() -> Task:
    return c_task(SUM, SUM_FUNCTION, SUM_JUDGE, checking=TOLERANT, limits=LIMITS)


def attempt(task: Task, source: str) -> Candidate:
    return Candidate({task.editable[0]: source}, task.build.flags)


def verdict_of(judge: Judge, candidate: Candidate) -> tuple[Outcome, str]:
    verdict = judge.judge(candidate)
    return verdict.outcome, verdict.reason


def test_an_unchanged_reference_is_right_and_no_win(sums: Task, jail: JailKind, judge_of: MakeJudge) -> None:
    verdict = judge_of(sums, jail).judge(reference(sums))
    assert verdict.outcome in (Outcome.OK, Outcome.TOO_NOISY)
    assert verdict.speed_up is None or not verdict.speed_up.win
    assert verdict.buckets


def test_twice_the_speed_is_a_win(jail: JailKind, judge_of: MakeJudge) -> None:
    twice = "for (int64_t i = 0; i < n; ++i) sum += x[i];"
    slow = SUM.replace(twice, twice + ' __asm__ volatile("" : "+x"(sum)); sum = 0; ' + twice)
    task = c_task(slow, SUM_FUNCTION, SUM_JUDGE, checking=TOLERANT)
    found = judge_of(task, jail).judge(attempt(task, SUM)).speed_up
    assert found is not None and found.win and found.low <= found.ratio <= found.high


CASES = {
    "does not compile": (
        "double total(const double *x, long n) { return y; }",
        Outcome.BUILD_FAILED,
        "undeclared",
    ),
    "lacks the function": ("int other;", Outcome.CRASHED, "total"),
    "divides by null": (
        SUM.replace("double sum = 0;", "double sum = *(volatile double *)0;"),
        Outcome.CRASHED,
        "SIGSEGV",
    ),
    "aborts": (
        "#include <stdlib.h>\n" + SUM.replace("double sum = 0;", "double sum = 0; abort();"),
        Outcome.CRASHED,
        "SIGABRT",
    ),
    "is wrong": (SUM.replace("i < n", "i < n - 1"), Outcome.WRONG, "is expected"),
    "answers nothing": (
        "#include <stdint.h>\ndouble total(const double *x, int64_t n) { (void)x; (void)n; return 0; }",
        Outcome.WRONG,
        "is expected",
    ),
    "answers NaN": (SUM.replace("return sum", "return sum / 0.0 * 0.0"), Outcome.WRONG, "nan"),
    "never ends": (
        SUM.replace("double sum = 0;", "double sum = 0; for (volatile int i = 0;; ++i) {}"),
        Outcome.TIMED_OUT,
        "limit",
    ),
    "takes too much memory": (
        "#include <stdlib.h>\n#include <string.h>\n"
        + SUM.replace(
            "double sum = 0;",
            "double sum = 0; volatile char *m = malloc(1u << 30); "
            "for (unsigned i = 0; i < 1u << 30; i += 4096) m[i] = 1;",
        ),
        None,
        "",
    ),
    "opens a socket": (
        "#include <sys/socket.h>\n"
        + SUM.replace("double sum = 0;", "double sum = 0; socket(AF_INET, SOCK_STREAM, 0);"),
        Outcome.CHEATING,
        "socket",
    ),
    "writes to its input": (
        SUM.replace("double sum = 0;", "double sum = 0; ((double *)x)[0] = 0;"),
        Outcome.CRASHED,
        "SIGSEGV",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_candidate_that(name: str, sums: Task, jail: JailKind, judge_of: MakeJudge) -> None:
    source, expected, words = CASES[name]
    outcome, reason = verdict_of(judge_of(sums, jail), attempt(sums, source))
    # Where control groups cap memory the tree is killed; elsewhere malloc fails and the candidate crashes by itself.
    assert outcome == expected or (expected is None and outcome in (Outcome.REFUSED, Outcome.CRASHED))
    assert words in reason


def test_edits_outside_the_marked_lines_are_unusable(jail: JailKind, judge_of: MakeJudge) -> None:
    marked = SUM.replace("    double sum = 0;", "    // outpace: begin\n    double sum = 0;").replace(
        "    return sum;", "    // outpace: end\n    return sum;"
    )
    task = c_task(marked, SUM_FUNCTION, SUM_JUDGE, checking=TOLERANT)
    outcome, reason = verdict_of(judge_of(task, jail), attempt(task, marked.replace("return sum", "return sum + 0")))
    assert outcome is Outcome.UNUSABLE and "outside" in reason


def test_flags_that_the_task_does_not_allow_are_unusable(sums: Task, jail: JailKind, judge_of: MakeJudge) -> None:
    candidate = Candidate(reference(sums).files, ("-Ofast",))
    outcome, reason = verdict_of(judge_of(sums, jail), candidate)
    assert outcome is Outcome.UNUSABLE and "-Ofast" in reason


PYTHON = """
def solve(items):
    total = 0
    for item in items:
        total += item * item
    return {"total": total, "first": items[:3]}
"""
PYTHON_JUDGE = """
def make_input(rng):
    return {"items": rng.integers(0, 1000, 3000).tolist()}
"""
PYTHON_CASES = {
    "raises": ("def solve(items):\n    return items[10**6]\n", Outcome.CRASHED, "line 2: IndexError"),
    "does not parse": ("def solve(items:\n", Outcome.CRASHED, "SyntaxError"),
    "returns an object": (
        "class Lazy:\n    pass\ndef solve(items):\n    return Lazy()\n",
        Outcome.CRASHED,
        "Lazy cannot be sent",
    ),
    "leaves by exit": ("import os\ndef solve(items):\n    os._exit(0)\n", Outcome.CRASHED, "ended by itself"),
    "imports what it may not see": (
        "import numpy\ndef solve(items):\n    return 1\n",
        Outcome.CRASHED,
        "No module named 'numpy'",
    ),
    "starts a thread": (
        "import threading\ndef solve(items):\n    threading.Thread(target=print).start()\n",
        Outcome.CRASHED,
        "start new thread",
    ),
    "opens a socket": (
        "import socket\ndef solve(items):\n    socket.socket()\n",
        Outcome.CRASHED,
        "PermissionError",
    ),
    "loops for ever": ("def solve(items):\n    while True: pass\n", Outcome.TIMED_OUT, "limit"),
}


@pytest.mark.parametrize("name", PYTHON_CASES)
def test_a_python_candidate_that(name: str, jail: JailKind, judge_of: MakeJudge) -> None:
    source, expected, words = PYTHON_CASES[name]
    task = python_task(PYTHON, PYTHON_JUDGE, LIMITS)
    outcome, reason = verdict_of(judge_of(task, jail), attempt(task, source))
    assert (outcome, words in reason) == (expected, True), reason


def rehearse(judge: Judge, candidate: Candidate) -> Plan:
    """Build and check without timing, for tests that are about answers alone."""
    own, theirs = judge._reference_folder(), judge._build(candidate)
    programs = (judge.domain.program(judge.jail, own), judge.domain.program(judge.jail, theirs))
    return Stopwatch(Interview(judge.domain, judge.jail, programs, judge.cores, 1)).rehearse()


def test_python_sees_the_packages_it_was_given(jail: JailKind, judge_of: MakeJudge) -> None:
    source = "import numpy as np\ndef solve(x):\n    return np.sort(x)\n"
    judge = "def make_input(rng):\n    return {'x': rng.random(5000)}\n"
    task = python_task(source, judge, '[environment]\npackages = ["numpy"]')
    assert rehearse(judge_of(task, jail), reference(task)).seconds > 0


def test_set_up_data_reaches_the_worker_once(jail: JailKind, judge_of: MakeJudge) -> None:
    source = """
    table = []
    def prepare(values):
        table.extend(values)
    def solve(at):
        return table[at] + len(table)
    """
    judge = """
    def make_setup(rng):
        return {"values": rng.integers(0, 10**6, 100).tolist()}
    def make_input(rng):
        return {"at": int(rng.integers(100))}
    """
    task = python_task(source, judge, "")
    files = {**task.files, "task.toml": task.files["task.toml"] + b'setup = "prepare"\n'}
    from outpace.task.file import make_task

    task = make_task(task.folder, files)
    assert rehearse(judge_of(task, jail), reference(task)).seconds > 0


def test_a_command_gets_files_and_streams(jail: JailKind, judge_of: MakeJudge) -> None:
    source = """
    #include <stdio.h>
    int main(int argc, char **argv) {
        int c;
        FILE *extra = fopen("extra.txt", "r"), *out = fopen("out.txt", "w");
        while ((c = getchar()) != EOF) putchar(c ^ 1);
        while ((c = fgetc(extra)) != EOF) fputc(c, out);
        fprintf(out, "%s", argv[1]);
        return argc;
    }
    """
    judge = """
    def make_input(rng):
        return {"stdin": rng.bytes(1000), "files": {"extra.txt": rng.bytes(50)}, "args": ["a b"]}
    def check(input, output, expected):
        if output["stdout"] != bytes(b ^ 1 for b in input["stdin"]):
            return "stdout"
        if output["files"]["out.txt"] != input["files"]["extra.txt"] + b"a b":
            return "file"
        return "" if output["exit"] == 2 else "exit"
    """
    task = command_task(source, judge, 'outputs = ["out.txt"]')
    assert rehearse(judge_of(task, jail), reference(task)).seconds > 0


def test_arrays_in_place_and_returned_values_come_back(jail: JailKind, judge_of: MakeJudge) -> None:
    source = """
    #include <stdint.h>
    #include <stdlib.h>
    static int order(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }
    int32_t arrange(int32_t *values, uint16_t n, float scale, float *out, const char *text) {
        qsort(values, n, sizeof *values, order);
        for (int i = 0; i < n; ++i) out[i] = values[i] * scale;
        return -(int32_t)text[3];
    }
    """
    judge = """
    import numpy as np
    from outpace.task import Output
    def make_input(rng):
        n = int(rng.integers(50, 100))
        values = rng.integers(-1000, 1000, n, dtype="int32")
        return {"values": values, "n": n, "scale": 0.5, "out": Output(n, "float32"), "text": "abcd"}
    def check(input, output, expected):
        ordered = np.sort(input["values"])
        good = np.array_equal(output["values"], ordered) and np.allclose(output["out"], ordered * 0.5)
        return "" if good and output["return"] == -ord("d") else f"got {output}"
    """
    task = c_task(
        source,
        "int32_t arrange(int32_t *values, uint16_t n, float scale, float *out, const char *text)",
        judge,
    )
    judge_here = judge_of(task, jail)
    assert rehearse(judge_here, reference(task)).seconds > 0
    outcome, reason = verdict_of(judge_here, attempt(task, source.replace("i < n", "i <= n")))
    assert (outcome, reason) == (Outcome.WRONG, "a call wrote past the end of 'out'")


def test_a_repository_with_its_own_build_is_judged(jail: JailKind, judge_of: MakeJudge) -> None:
    from pathlib import Path

    from outpace.task.file import make_task

    files = {
        "task.toml": b'name = "repo"\neditable = ["lib/a.c", "lib/b.c"]\n'
        b'[build]\ncommand = ["make", "-s"]\nproduct = "libsum.so"\nflags = ["-O2"]\n'
        b'[entry]\nkind = "c"\nfunction = "long add(long a, long b)"\n',
        "Makefile": b"libsum.so: lib/a.c lib/b.c\n\tcc $(CFLAGS) -shared -fPIC -o $@ $^\n",
        "lib/a.c": b"long inner(long a, long b);\nlong add(long a, long b) { return inner(a, b); }\n",
        "lib/b.c": b"long inner(long a, long b) { return a + 2 * b; }\n",
        "judge.py": b"def make_input(rng):\n    return {'a': int(rng.integers(1000)), 'b': int(rng.integers(1000))}\n",
    }
    task = make_task(Path("repo"), files)
    assert rehearse(judge_of(task, jail), reference(task)).seconds > 0


RED_TEAM = {
    "a constant program passes": ("def check(input, output, expected):\n    return ''\n", "passes the check"),
    "the check rejects the reference": (
        "def check(input, output, expected):\n    return 'no'\n",
        "rejects the reference's own answer",
    ),
}


@pytest.mark.parametrize("name", RED_TEAM)
def test_a_task_is_refused_when(name: str, jail: JailKind, judge_of: MakeJudge) -> None:
    check, words = RED_TEAM[name]
    task = c_task(SUM, SUM_FUNCTION, SUM_JUDGE + check, checking=TOLERANT)
    with pytest.raises(TaskError, match=words):
        judge_of(task, jail).inspect()


def test_a_task_whose_output_ignores_its_input_is_refused(judge_of: MakeJudge, jail: JailKind) -> None:
    task = c_task(
        "double total(const double *x, long n) { return x[0] * 0 + 1; }",
        "double total(const double *x, long n)",
        SUM_JUDGE,
    )
    with pytest.raises(TaskError, match="does not depend on its input"):
        judge_of(task, jail).inspect()


def test_a_reference_that_does_not_build_is_the_tasks_error(judge_of: MakeJudge, jail: JailKind) -> None:
    task = c_task("double total(", SUM_FUNCTION, SUM_JUDGE)
    with pytest.raises(TaskError, match="does not build"):
        judge_of(task, jail).judge(reference(task))


ALIGNED = """
#include <stdint.h>
typedef struct { float part[16] __attribute__((aligned(64))); } line;
float total(const float *x, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i += 16) {
        if ((uintptr_t)(x + i) % 64) __builtin_trap();
        for (int64_t k = 0; k < 16; ++k) sum += ((const line *)(x + i))->part[k];
    }
    return sum;
}
"""


def test_a_reference_that_needs_aligned_arrays_is_told_how_to_get_them(judge_of: MakeJudge, jail: JailKind) -> None:
    inputs = 'def make_input(rng):\n    return {"x": rng.integers(0, 9, 1600).astype("f4"), "n": 1600}'
    task = c_task(ALIGNED, "float total(const float *x, int64_t n)", inputs)
    with pytest.raises(TaskError, match=r"the reference itself failed \(crashed\).*promise them with \[entry\] align"):
        verdict = judge_of(task, jail).judge(reference(task))
        pytest.fail(f"it was judged {verdict.outcome}: {verdict.reason}")
    promised = dataclasses.replace(task, entry=dataclasses.replace(task.entry, align=64))
    assert rehearse(judge_of(promised, jail), reference(promised)).seconds > 0


def test_a_failing_make_input_is_the_tasks_error(judge_of: MakeJudge, jail: JailKind) -> None:
    task = c_task(SUM, SUM_FUNCTION, "def make_input(rng):\n    return 1 / 0\n")
    with pytest.raises(TaskError, match="ZeroDivisionError"):
        judge_of(task, jail).judge(reference(task))


KEEPING_C = """
#include <stdint.h>
static const double *table;
void prepare(const double *rows) { table = rows; }
double score(const double *query, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += table[i] * query[i];
    return sum;
}
"""
KEEPING_PYTHON = """
def prepare(rows):
    global table
    table = rows
def score(query, n):
    return float(table @ query)
"""
KEEPING = {
    "c": (
        'kind = "c"\nfunction = "double score(const double *query, int64_t n)"\n'
        'setup = "void prepare(const double *rows)"',
        {"code.c": KEEPING_C},
    ),
    "python": (
        'kind = "python"\nmodule = "code.py"\nfunction = "score"\nsetup = "prepare"\n'
        '[environment]\npackages = ["numpy"]',
        {"code.py": KEEPING_PYTHON},
    ),
}
KEEPING_JUDGE = """
import numpy as np
def make_setup(rng):
    return {"rows": np.arange(5000.0)}
def make_input(rng):
    return {"query": rng.integers(-9, 9, 5000).astype(float), "n": 5000}
"""


@pytest.mark.parametrize("language", KEEPING)
def test_what_a_set_up_was_given_may_be_kept(language: str, jail: JailKind, judge_of: MakeJudge) -> None:
    toml, files = KEEPING[language]
    whole = {
        "task.toml": f'name = "keeping"\neditable = ["{next(iter(files))}"]\n[entry]\n{toml}\n',
        "judge.py": KEEPING_JUDGE,
        **files,
    }
    judge = judge_of(make_task(Path("keeping"), {name: text.encode() for name, text in whole.items()}), jail)
    program = judge.domain.program(jail, judge._reference_folder())
    ask = Interview(judge.domain, jail, (program, program), judge.cores, 1)
    inputs = ask.some_inputs(3)
    rows = np.arange(5000.0)
    found = [answer["return"] if language == "c" else answer for answer in ask.reference_answers(inputs)]
    assert found == [float(rows @ each["query"]) for each in inputs]


def test_a_python_reference_that_changes_its_arguments_is_refused(jail: JailKind, judge_of: MakeJudge) -> None:
    source = """
        def solve(x):
            for at, value in enumerate(x):
                x[at] = value / len(x)
            return len(x)
    """
    judge = judge_of(python_task(source, "def make_input(rng):\n    return {'x': rng.random(500).tolist()}\n"), jail)
    with pytest.raises(TaskError, match="changes its arguments"):
        judge.judge(reference(judge.domain.task))


def test_a_python_task_that_is_mostly_conversion_is_refused(judge_of: MakeJudge) -> None:
    make_input = "def make_input(rng):\n    return {'x': rng.random(4000).tolist()}\n"
    judge = judge_of(python_task("def solve(x):\n    return [x[0], x[-1]]\n", make_input), best_jail())
    with pytest.raises(TaskError, match="converting arguments and answers takes"):
        judge.inspect()


def test_samples_of_a_command_and_of_threads_can_be_kept(jail: JailKind, judge_of: MakeJudge) -> None:
    program = "#include <stdio.h>\nint main(void) { return getchar() == EOF; }\n"
    command = command_task(program, "def make_input(rng):\n    return {'stdin': rng.bytes(8)}\n")
    threads = c_task(SUM, SUM_FUNCTION, SUM_JUDGE, checking=TOLERANT, limits=f"{LIMITS}\nthreads = 2")
    for task in (command, threads):
        judge = judge_of(task, jail)
        programs = (judge.domain.program(jail, judge._reference_folder()),) * 2
        watch = Stopwatch(Interview(judge.domain, jail, programs, judge.cores, 1))
        bucket = watch.bucket(watch.rehearse())
        samples = (bucket.again, bucket.candidate.start, bucket.reference.start, *bucket.candidate.turns)
        assert all(number >= 0 for sample in samples for number in dataclasses.astuple(sample))


def test_sets_have_one_order_in_all_processes(jail: JailKind, judge_of: MakeJudge) -> None:
    source = "def solve(words):\n    return list(set(words))\n"
    make_input = "def make_input(rng):\n    return {'words': [str(number) for number in rng.integers(0, 1000, 100)]}\n"
    judge = judge_of(python_task(source, make_input), jail)
    programs = (judge.domain.program(jail, judge._reference_folder()),) * 2
    Stopwatch(Interview(judge.domain, jail, programs, judge.cores, 1)).rehearse()
