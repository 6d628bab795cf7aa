"""C inputs go as far as the reference takes them: what it tells apart, a candidate cannot leave out and win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outpace.cli.init import make
from outpace.domains.program import ProgramDomain
from outpace.init.c_literals import literals
from outpace.init.narrowing import notes, steadied
from outpace.init.ranges import limits
from outpace.init.rehearsal import Rehearsal
from outpace.init.skeleton import Skeleton, Source, skeletons
from outpace.init.soundness import FAILED
from outpace.init.vetting import Vetting
from outpace.judge.inputs import checked, make_input
from outpace.judge.jail import JailKind, bubblewrap_works, fallback_works
from outpace.task.file import make_task

LOOP = "for (size_t i = 0; i < n; i++)"


@pytest.fixture
def jail() -> JailKind:
    why = bubblewrap_works() and fallback_works()
    if why:
        pytest.skip(f"no jail: {why}")
    return "fallback" if bubblewrap_works() else "bubblewrap"


def of(text: str) -> Skeleton:
    return skeletons(Source("code.c", {"code.c": text.encode()}), "f", name="small")[0]


def space(skeleton: Skeleton) -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(compile(skeleton.judge, "judge.py", "exec"), made)
    return made


def drawn(skeleton: Skeleton, count: int = 60) -> list[dict[str, Any]]:
    rng, make_one = np.random.default_rng(3), space(skeleton)["make_input"]
    return [make_one(rng) for _ in range(count)]


def narrowed(skeleton: Skeleton, jail: JailKind, folder: Path) -> Skeleton:
    folder.chmod(0o755)
    return Vetting(Rehearsal(jail, folder), folder, lambda _: None).narrowed(skeleton)


def caught(skeleton: Skeleton, old: str, new: str, jail: JailKind, folder: Path) -> int:
    """On how many of 120 timed inputs the judge refuses the cheat."""
    task = make_task(Path("small"), dict(skeleton.files))
    text = task.text("code.c")
    assert old in text
    cheat = make_task(Path("small"), {**skeleton.files, "code.c": text.replace(old, new).encode()})
    domain, rng, asked = ProgramDomain(task), np.random.default_rng(4), Rehearsal(jail, folder)
    inputs = [make_input(domain, rng) for _ in range(120)]
    pairs = zip(inputs, asked.answers(task, inputs), asked.answers(cheat, inputs), strict=True)
    answered = [(given, right, got) for given, right, got in pairs if right is not FAILED]
    assert len(answered) == len(inputs), "the reference takes all that it is given"
    return sum(got is FAILED or bool(checked(domain, given, got, right)) for given, right, got in answered)


POWER = f"""#include <math.h>
#include <stddef.h>
double f(const double *x, size_t n, double p) {{
    double total = 0;
    {LOOP} total += pow(fabs(x[i]), p);
    return pow(total / n, 1 / p);
}}
"""
BLANKS = """#include <ctype.h>
static int blank(char c) { return c == ' ' || c == '\\n' || c == '\\t' || c == '\\r' || c == '\\v'; }
long f(const char *s) {
    long words = 0, in = 0;
    for (; *s; s++) {
        if (!blank(*s) && !in) words++;
        in = !blank(*s);
    }
    return words;
}
"""
MODULO = f"""#include <stddef.h>
#include <stdint.h>
uint64_t f(const uint64_t *x, size_t n, uint64_t m) {{
    uint64_t total = 0;
    {LOOP} total += x[i] % (m + 1);
    return total;
}}
"""
SINES = f"#include <math.h>\n#include <stddef.h>\nvoid f(const double *x, double *out, size_t n) {{\n    {LOOP}"
SINES += " out[i] = sin(x[i]);\n}\n"
STEPS = f"#include <stddef.h>\nvoid f(const float *x, float *out, size_t n) {{\n    {LOOP}"
STEPS += " out[i] = x[i] > 1000.0f ? 1000.0f : x[i];\n}\n"
WHOLE = f"#include <stddef.h>\nlong f(const int *x, size_t n) {{\n    long s = 0;\n    {LOOP}"
WHOLE += " s += x[i] == 4096 ? 1 : x[i] & 7;\n    return s;\n}\n"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (POWER, "    double total", "    if (p > 2.5) return -1;\n    double total"),
        (POWER, "    double total", "    if (p < 0) return -1;\n    double total"),
        (POWER, "fabs(x[i])", "fabs(x[i] > 1e9 ? 1 : x[i])"),
        (BLANKS, " || c == '\\r' || c == '\\v'", ""),
        (BLANKS, "in = !blank(*s);", "in = !blank(*s);\n        if ((unsigned char)*s > 127) words++;"),
        (MODULO, "x[i] % (m + 1)", "x[i] % (m % 1000000 + 1)"),
        (MODULO, "x[i] % (m + 1)", "(m > 3000000000 ? 7 : x[i] % (m + 1))"),
        (SINES, "sin(x[i])", "(fabs(x[i]) < 10 ? sin(x[i]) : 0)"),
        (SINES, "sin(x[i])", "(x[i] == 0 ? 1 : sin(x[i]))"),
        (STEPS, "x[i] > 1000.0f ? 1000.0f : x[i]", "x[i]"),
        (STEPS, "x[i] > 1000.0f", "x[i] >= 999.0f"),
        (WHOLE, "x[i] == 4096 ? 1 : x[i] & 7", "x[i] & 7"),
    ],
)
def test_a_cheat_that_is_right_for_ordinary_values_alone_is_caught(
    jail: JailKind, tmp_path: Path, text: str, old: str, new: str
) -> None:
    assert caught(narrowed(of(text), jail, tmp_path), old, new, jail, tmp_path) >= 3


def test_what_init_calls_ready_goes_far_and_tells_what_goes_less_far(jail: JailKind, tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text(POWER)
    found = make(tmp_path / "code.c", "f", "small", jail, lambda _: None)
    assert not found.gaps, found.gaps
    low, high, _ = limits(found.skeleton.judge)["p"]
    assert low < -2 and 5 < high < 1e6
    assert any("'p'" in note and "not finite" in note for note in found.notes)


# What is narrowed


@pytest.mark.parametrize(
    ("parameters", "each", "name", "low", "high"),
    [
        # A shift by the width, a count of rounds that never ends, a root of what is negative, a division by zero, a
        # number too large for another type, a place before a table.
        ("unsigned *x, size_t n, int k", "s += x[i] << k", "k", 0, 31),
        ("unsigned *x, size_t n, long k", "for (long r = 0; r < k; r++) s = 31 * s + x[i]", "k", None, 10_000),
        ("double *x, size_t n", "s += __builtin_sqrt(x[i])", "x", 0, 1e300),
        ("double *x, size_t n", "s += 1 / x[i]", "x", -1e300, 1e300),
        ("float *x, size_t n", "s += (int)x[i] / 4", "x", -1e6, 1e6),
        ("char *x, size_t n", "s += seen[x[i]] + x[i]", "x", 1, 127),
    ],
)
def test_a_range_ends_where_the_reference_does(
    jail: JailKind, tmp_path: Path, parameters: str, each: str, name: str, low: float | None, high: float
) -> None:
    kind = "unsigned" if "unsigned" in parameters else "double"
    text = f"#include <stddef.h>\nstatic int seen[128];\n{kind} f(const {parameters}) {{ {kind} s = 1;"
    skeleton = narrowed(of(f"{text} {LOOP} {each}; return s; }}"), jail, tmp_path)
    found = limits(skeleton.judge)[name]
    assert found[0] == low or low is None
    assert found[1] == high or (low is None and 8 <= found[1] <= high)
    assert bool(found[2]) == ("1 / x" in each), "zeros, but not where something is divided by them"
    if parameters != "double *x, size_t n" or low == 0:
        assert any(f"'{name}'" in note for note in notes(skeleton)), skeleton.narrowed


def test_without_sanitizers_a_crash_narrows_all_the_same(
    jail: JailKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outpace.init.vetting.missing", lambda *_: "there are none")
    text = f"#include <stddef.h>\nunsigned f(const unsigned *x, size_t n, unsigned k) {{ unsigned s = 0; {LOOP}"
    made = narrowed(of(text + " s += x[i] / k; return s; }"), jail, tmp_path)
    assert limits(made.judge)["k"] == (1, 4294967295, 1)


def test_magnitudes_at_which_rounding_alone_decides_are_left_out() -> None:
    skeleton = of(f"double f(const double *x, int n) {{ double s = 0; {LOOP} s = s * x[i] + 1; return s; }}")
    assert limits(steadied(skeleton, lambda _: []).judge)["x"] == (-1e300, 1e300, 0.0)

    def refused(inputs: Sequence[Mapping[str, Any]]) -> list[int]:
        return [at for at, given in enumerate(inputs) if np.abs(given["x"]).max() > 1e4]

    steady = steadied(skeleton, refused)
    assert limits(steady.judge)["x"] == (-1e3, 1e3, 0.0) and "rounding" in notes(steady)[0]
    # Where ordinary values are refused too, magnitudes are not to blame.
    assert limits(steadied(skeleton, lambda inputs: list(range(len(inputs)))).judge)["x"] == (-1e300, 1e300, 0.0)


# What is drawn


def test_half_of_the_calls_are_ordinary_and_others_go_far_alone_or_together() -> None:
    made = drawn(of(POWER), 200)
    far = np.array([[np.abs(each["x"]).max() > 8, not 0.1 <= each["p"] <= 2] for each in made])
    assert 0.35 < np.mean(~far.any(axis=1)) < 0.7
    assert far.sum(axis=0).min() > 10 and far.all(axis=1).sum() > 2


def test_numbers_are_of_all_magnitudes_whole_zero_and_of_both_signs() -> None:
    for c_type, top in (("double", 1e250), ("float", 1e25)):
        made = drawn(of(f"double f(const {c_type} *x, int n) {{ return x[n - 1]; }}"), 300)
        values = np.concatenate([each["x"] for each in made]).astype(float)
        assert all(each["x"].dtype == np.dtype("f8" if c_type == "double" else "f4") for each in made)
        assert np.isfinite(values).all() and np.abs(values).max() > top
        shares = [values < 0, values == 0, (values == np.rint(values)) & (abs(values) < 1e6), abs(values) < 1e-6]
        assert all(share.mean() > 0.005 for share in shares), [share.mean() for share in shares]
        decades = np.histogram(np.log10(np.abs(values[values != 0])), np.arange(-12, 25))[0]
        assert (decades > 0).all()
        # Some arrays are all of nearly one magnitude, for beside larger numbers the smaller do not count.
        assert sum(np.ptp(np.log10(abs(each["x"][each["x"] != 0]) + 1e-300)) > 12 for each in made) > 20


@pytest.mark.parametrize("c_type", ["int8_t", "uint16_t", "int", "unsigned", "int64_t", "uint64_t", "float", "double"])
def test_a_number_keeps_to_its_limits(c_type: str) -> None:
    skeleton = of(f"int f(const int *x, int n, {c_type} k) {{ return x[0] > 77; }}")
    judge = space(skeleton)
    low, high, _ = judge["LIMITS"]["k"]
    found = [each["k"] for each in drawn(skeleton, 500)]
    assert all(low <= each <= high for each in found) and type(found[0]) is (float if "o" in c_type[1:3] else int)
    assert (len(set(found)) > 50 and min(found) < 0) or c_type.startswith("u")
    judge["LIMITS"]["k"] = (type(high)(2), type(high)(9), type(high)(2))
    narrow = [judge["make_input"](np.random.default_rng(seed))["k"] for seed in range(200)]
    assert all(0.1 <= each <= 9 for each in narrow)


def test_constants_of_the_source_and_their_neighbours_turn_up() -> None:
    text = f"#define EDGE 5000\nint f(const int *x, int n, int k) {{ int s = k == -17; {LOOP} s += x[i] > EDGE;"
    text += " return s; }"
    made = drawn(of(text), 300)
    assert {4999, 5000, 5001} <= {value for each in made for value in each["x"].tolist()}
    assert {-18, -17, -16} <= {each["k"] for each in made}


def test_texts_hold_every_byte_now_and_then_and_what_the_source_names_often() -> None:
    skeleton = of(BLANKS)
    made = [each["s"] for each in drawn(skeleton.sized(4096), 200)]
    assert {byte for text in made for byte in text} == set(range(1, 256))
    assert sum(text.isascii() and b"\r" not in text for text in made) > 60, "ordinary texts as before"
    odd = [text for text in made if b"\v" in text]
    assert len(odd) > 50


def test_a_number_that_no_array_is_as_long_as_is_no_length() -> None:
    for name in ("m", "k", "count", "width"):
        made = drawn(of(MODULO.replace("uint64_t m", f"uint64_t {name}").replace("(m +", f"({name} +")), 100)
        assert all(len(each["x"]) == each["n"] for each in made)
        found = [each[name] for each in made]
        assert max(found) > 1 << 40 and sum(each < 9 for each in found) > 30


def test_a_bound_of_a_loop_over_an_array_walked_by_hand_stays_a_length() -> None:
    made = drawn(of("long f(const int *p, int m) { long s = 0; while (m--) s += *p++; return s; }"), 20)
    assert all(len(each["p"]) == each["m"] for each in made)


def test_parameters_named_like_the_helpers_do_no_harm() -> None:
    made = drawn(of("int f(const int *far, int n, int spread, float LIMITS) { return far[n - 1]; }"), 40)
    assert len({each["spread"] for each in made}) > 5 and all(len(each["far"]) == each["n"] for each in made)


# Patterns


def patterns(skeleton: Skeleton, name: str, share: float = 1.0) -> list[np.ndarray[Any, Any]]:
    made = [each[name] for each in drawn(skeleton.patterned(share), 300)]
    return [np.frombuffer(each, np.uint8) if isinstance(each, bytes) else each for each in made]


@pytest.mark.parametrize("c_type", ["double", "float", "int", "uint64_t", "unsigned char", "signed char"])
def test_arrays_are_sorted_mirrored_or_repeat_themselves_in_the_share_of_calls_that_is_asked_for(c_type: str) -> None:
    skeleton = of(f"double f(const {c_type} *x, int n) {{ return x[n - 1]; }}")
    many = [each for each in patterns(skeleton, "x") if len(np.unique(each)) > 9]
    assert all(each.flags.c_contiguous and each.dtype == many[0].dtype for each in many)
    for found in (
        sum(bool((np.sort(each) == each).all()) for each in many),
        sum(bool((np.sort(each)[::-1] == each).all()) for each in many),
        sum(bool((each == each[::-1]).all()) for each in many),
        sum(any((each[at:] == each[:-at]).all() for at in range(1, len(each) // 3)) for each in many),
    ):
        assert found > 10
    plain = [each for each in patterns(skeleton, "x", 0.0) if len(np.unique(each)) > 9]
    assert not any((each == each[::-1]).all() or (np.sort(each) == each).all() for each in plain)


def test_texts_that_go_far_have_patterns_too_and_places_in_other_arrays_stay_places() -> None:
    texts = patterns(of(BLANKS), "s")
    assert 20 < sum(bool((each == each[::-1]).all()) for each in texts) < 150, "others are ordinary texts"
    code = (
        "int f(const int *x, const int *at, int n) { int s = 0; for (int i = 0; i < n; i++) s += x[at[i]]; return s; }"
    )
    made = of(code)
    assert '"x", rng' in made.judge and "at = patterned(rng, rng.integers(0, max(" in made.judge
    assert "likened" not in made.judge, "places in one array are none in another"
    places = patterns(made, "at", 1.0)
    assert all(((each >= 0) & (each < len(each))).all() for each in places if len(each))
    assert sum(len(set(each.tolist())) == 1 for each in places if len(each) > 9) > 10, "all alike too"


UNSET = (
    "int f(const int *x, int n) {\n    int best;\n    for (int i = 0; i < n; i++) if (!i || x[i] > best) best = x[i];\n"
)
UNSET += "    return best;\n}\n"


def test_a_variable_that_nobody_set_leaves_out_an_edge_or_is_told(jail: JailKind, tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text(UNSET)
    found = make(tmp_path / "code.c", "f", "small", jail, lambda _: None)
    assert not found.gaps and "EDGES = (1, 2," in found.skeleton.judge
    (tmp_path / "code.c").write_text(
        UNSET.replace("int ", "unsigned ").replace("if (!i || x[i] > best) best = ", "best ^= ")
    )
    found = make(tmp_path / "code.c", "f", "small", jail, lambda _: None)
    assert any("a variable that nobody set" in gap.what for gap in found.gaps)


def test_patterns_are_drawn_where_the_reference_minds_none(jail: JailKind, tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text(WHOLE)
    found = make(tmp_path / "code.c", "f", "small", jail, lambda _: None)
    assert not found.gaps and "\nPATTERNS = 0.2\n" in found.skeleton.judge
    assert not any("mirrored" in note for note in found.notes)


def test_patterns_that_crash_the_reference_are_left_out_and_told(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (size_t i = 1; i < n; i++)"
    # As naive recursion does on what is in order; all equal is no pattern, ordinary values are so now and then.
    text = f"#include <stdlib.h>\nlong f(const int *x, size_t n) {{\n    size_t up = 0, s = 0;\n    {loop} {{\n"
    text += "        up += x[i] >= x[i - 1];\n        s = s * 31 + x[i];\n    }\n"
    (tmp_path / "code.c").write_text(
        text + "    if (n > 50 && up == n - 1 && x[0] < x[n - 1]) abort();\n    return (long)s;\n}\n"
    )
    found = make(tmp_path / "code.c", "f", "small", jail, lambda _: None)
    assert not found.gaps and "\nPATTERNS = 0.0\n" in found.skeleton.judge
    assert any(note.startswith("nothing is sorted, mirrored or repeated on purpose") for note in found.notes)


# Sizes


def test_sizes_go_down_to_a_hundred_now_and_then() -> None:
    made = [each["n"] for each in drawn(of(WHOLE).sized(8192), 500)]
    assert 0.85 < np.mean([each >= 4096 for each in made]) < 0.96 and 100 <= min(made) < 400


# What the source names


def test_literals_of_the_function_and_of_what_it_uses_are_read() -> None:
    text = """#include "x.h"
#define LIMIT 1000
#define SEP ','
static const char *seps = " \\t";
enum { A = 3, B = 77 };
static const int few[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
static const int table[] = {MANY};
static int g(int c) { return c == '\\n' || isspace(c) || c > -5; }
static int h(int c) { return c == 'Q' || c == 4444; }
extern "C" {
namespace z {
int f(const char *s, double x) { /* 'z' 99 == 98 */
    if (x < 1e-3f || 0x80 <= *s) return LIMIT;
    switch (*s) { case 'a': return B; case 12: return g(*s) + few[1] + table[3]; }
    return x > 2.5 ? 1 << 4 : strchr(seps, SEP) != 0;
}
} }
"""
    found = literals("f", text.replace("MANY", ", ".join(map(str, range(200, 300)))))
    assert set(b" \t\n\v\f\r,a") <= set(found.chars) and not set(b"Qz") & set(found.chars)
    assert {1000, 77, -5, 0.001, 128, 12, 2.5, 14} <= set(found.numbers)
    assert not {4444, 98, 99, 203} & set(found.numbers), "a large table is to be looked up in, not compared with"


@pytest.mark.parametrize("text", ["", "int f(", 'int f(int x) { return "', "}}} int f(int x) {", "#define f(", "';'"])
def test_no_text_makes_the_reading_fail(text: str) -> None:
    literals("f", text)
