"""What `outpace init` calls ready has a judge that notices; what it cannot make so it names, with what to change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import c_task
from outpace.cli.init import Made, init, make
from outpace.domains.program import ProgramDomain
from outpace.init import vetting
from outpace.init.judge_text import constant, room
from outpace.init.rehearsal import Rehearsal
from outpace.init.vetting import Vetting
from outpace.judge.jail import JailKind, bubblewrap_works, fallback_works
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome
from outpace.task.candidate import Candidate
from outpace.task.file import make_task


@pytest.fixture
def jail() -> JailKind:
    why = bubblewrap_works() and fallback_works()
    if why:
        pytest.skip(f"no jail: {why}")
    return "fallback" if bubblewrap_works() else "bubblewrap"


def made(jail: JailKind, folder: Path, text: str, function: str = "f", name: str = "code.c") -> Made:
    (folder / name).write_text(text)
    return make(folder / name, function, "small", jail, lambda _: None)


def told(found: Made) -> str:
    return "\n".join(map(str, found.gaps))


# The four tasks that were called ready once and were not


def test_an_answer_that_was_cut_off_gets_the_room_it_needs(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) for (int j = 0; j < 6; j++) if (k < out_cap) out[k++] = in[i] + j;"
    text = f"int f(const unsigned char *in, int n, unsigned char *out, int out_cap) {{ int k = 0; {loop} return k; }}"
    found = made(jail, tmp_path, text)
    assert told(found) == "" and room(found.skeleton.judge) >= 6


def test_an_answer_that_no_room_suffices_for_is_named(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if (k < out_cap) out[k++] = in[i] ^ in[j];"
    text = f"int f(const unsigned char *in, int n, unsigned char *out, int out_cap) {{ int k = 0; {loop} return k; }}"
    found = made(jail, tmp_path, text)
    assert "with twice the room for its outputs the reference gives another" in told(found)


def test_a_matrix_that_is_too_small_for_its_reference_is_named(jail: JailKind, tmp_path: Path) -> None:
    text = """void row(const double *at, int m, const double *x, double *y) {
    double sum = 0;
    for (int j = 0; j < m; j++) sum += at[j] * x[j];
    *y = sum;
}
void f(const double *a, const double *x, double *y, int n, int m) {
    const double *at = a;
    for (int i = 0; i < n; i++, at += m) row(at, m, x, y + i);
}
"""
    found = made(jail, tmp_path, text)
    assert found.gaps[0].file == "code.c" and "past the end of 'a'" in told(found)


def test_nine_elements_of_a_large_array_are_no_task(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int y = 0; y < 3; y++) for (int x = 0; x < 3; x++) s += in[y * 3 + x];"
    found = made(jail, tmp_path, f"float f(const float *in, int n) {{ float s = n; {loop} return s; }}")
    assert "elements of 'in' that were changed made a difference" in told(found)


def test_values_are_as_large_as_they_can_be_without_overflow(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) s += (long)v[i] * w[i];"
    found = made(jail, tmp_path, f"long f(const int *v, const int *w, int n) {{ long s = 0; {loop} return s; }}")
    assert told(found) == "" and "1000000" in found.skeleton.judge, "a sum in 32 bits would pass on small values"


def test_a_reference_that_overflows_on_all_values_is_named(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) s = s * 31 + v[i];"
    found = made(jail, tmp_path, f"int f(const int *v, int n) {{ int s = 7; {loop} return s; }}")
    assert "signed integer overflow" in told(found) and found.gaps[0].file == "code.c"


def test_a_crash_is_told_by_its_line(jail: JailKind, tmp_path: Path) -> None:
    text = (
        "int f(const int *x, int n) {\n    int s = 0;\n    for (long i = 0; i < n * 99999L; i++)\n        s ^= x[i];\n"
    )
    found = made(jail, tmp_path, text + "    return s;\n}\n")
    assert (found.gaps[0].file, found.gaps[0].line) == ("code.c", 4) and "past the end of 'x'" in told(found)


# What else it sees to


def test_sizes_that_the_reference_cannot_take_are_left_out_and_told(jail: JailKind, tmp_path: Path) -> None:
    text = "int f(const int *x, int n) { int s = x[1]; for (int i = 0; i < n; i++) s ^= x[i] + i; return s; }"
    found = made(jail, tmp_path, text.replace("x[i] + i", "(x[i] >> 1) + i"))
    assert constant(found.skeleton.judge, "EDGES").startswith("(3, 4, "), found.skeleton.judge
    assert any("leaves out the sizes 0, 1, 2" in note for note in found.notes)


def test_a_capacity_is_sometimes_too_small(jail: JailKind, tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) if (i < cap) out[i] = in[i];"
    found = made(jail, tmp_path, f"int f(const char *in, int n, char *out, int cap) {{ {loop} return n < cap; }}")
    assert told(found) == "" and "tight(rng, " in found.skeleton.judge


def test_an_argument_that_nothing_depends_on_is_named(jail: JailKind, tmp_path: Path) -> None:
    text = "def f(text, k):\n    return text.upper()[::-1] if k is not None else k\n"
    found = made(jail, tmp_path, text, name="code.py")
    assert "another 'k' does not change the answer" in told(found)
    text = "def f(text, k):\n    return text.upper()[::-1] if k > -1 else k\n"
    found = made(jail, tmp_path, text, name="code.py")
    assert told(found) == "" and "widely(" in found.skeleton.judge, "numbers of either sign tell them apart"


def test_everything_that_is_left_to_do_is_named(jail: JailKind, tmp_path: Path) -> None:
    text = "def f(text, words, k):\n    return words[0] + str(len(text) * 0)\n"
    found = made(jail, tmp_path, text, name="code.py")
    assert len(found.gaps) == 3 and all(f"'{name}'" in told(found) for name in ("text", "words", "k"))


def test_a_short_call_is_ready_with_advice() -> None:
    advice = vetting.short_call(3e-6)
    assert "3 us" in advice and "larger inputs" in advice and "[timing] bundle = N" in advice
    assert vetting.short_call(30e-6) == ""


def test_rows_and_containers_need_no_hand(jail: JailKind, tmp_path: Path) -> None:
    rows = "void f(int n, int m, const double a[n][m], double out[m]) {\n    for (int j = 0; j < m; j++) {\n"
    rows += "        out[j] = 0;\n        for (int i = 0; i < n; i++) out[j] += a[i][j];\n    }\n}\n"
    assert told(made(jail, tmp_path, rows)) == ""
    text = "#include <vector>\nstd::vector<int> f(const std::vector<int>& a, const std::vector<int>& b) {\n"
    text += "    std::vector<int> c;\n    for (size_t i = 0; i < a.size(); ++i) c.push_back(a[i] ^ b[i]);\n"
    text += "    return c;\n}\n"
    assert told(made(jail, tmp_path, text, name="code.cpp")) == ""


# Values as wide as a Python reference takes them

PRODUCT = """def product(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
"""
# Each row of b in one number, with 16 bits for each column: the attacker's idea, right for entries below 10 or so.
PACKED = """def product(a, b):
    n = len(b[0]) if b else 0
    lift = sum(8192 << 16 * at for at in range(n))
    packed = [sum(x << 16 * at for at, x in enumerate(row)) for row in b]
    totals = [sum(x * whole for x, whole in zip(row, packed)) + lift for row in a]
    return [[(total >> 16 * at & 0xFFFF) - 8192 for at in range(n)] for total in totals]
"""
SHOUTS = """def shouts(text: str) -> str:
    turned = ("_" if each.isspace() else each.lower() if each.isupper() else each.upper() for each in text)
    return "".join(turned)
"""
ASCII = """TABLE = {at: "_" if chr(at).isspace() else chr(at).swapcase() for at in range(128)}
def shouts(text):
    return text.translate(TABLE)
"""
TABLE = """class Table(dict):
    def __missing__(self, at):
        each = chr(at)
        self[at] = "_" if each.isspace() else each.lower() if each.isupper() else each.upper()
        return self[at]
TABLE = Table()
def shouts(text):
    return text.translate(TABLE)
"""
NEAR = """def near(a: str, b: str, weight: int = 3, both: bool = False) -> int:
    total = abs(len(a) - len(b))
    for x, y in zip(a, b):
        total = (total * 31 + ord(x) * weight - ord(y) * both) % 1000003
    return total
"""


@pytest.mark.parametrize(
    ("function", "reference", "narrow", "honest"),
    [
        (
            "product",
            PRODUCT,
            PACKED,
            PRODUCT.replace("x * y for x, y in zip(row, column)", "map(int.__mul__, row, column)"),
        ),
        ("shouts", SHOUTS, ASCII, TABLE),
        ("near", NEAR, NEAR.replace("abs(len(a) - len(b))", "0"), NEAR.replace("* both", "* int(both)")),
        ("near", NEAR, NEAR.replace("* weight", "* 3"), NEAR.replace("* both", "* int(both)")),
    ],
)
def test_what_is_right_for_narrow_values_or_forms_or_defaults_alone_is_wrong(
    jail: JailKind, tmp_path: Path, function: str, reference: str, narrow: str, honest: str
) -> None:
    found = made(jail, tmp_path, reference, function, "code.py")
    assert told(found) == "" and found.notes == ()
    task = make_task(Path("small"), dict(found.skeleton.files))
    tmp_path.chmod(0o755)
    (tmp_path / "work").mkdir()
    with Judge(ProgramDomain(task), jail=jail, workspace=tmp_path / "work") as judge:
        assert judge.judge(Candidate({"code.py": narrow})).outcome in (Outcome.WRONG, Outcome.CRASHED)
        assert judge.judge(Candidate({"code.py": honest})).outcome is Outcome.OK


def test_what_is_narrower_is_told_with_the_reason(jail: JailKind, tmp_path: Path) -> None:
    text = "def f(text: str, n: int) -> int:\n    a = 0\n    for each in text.encode('latin-1'):\n"
    text += "        a = a * 31 + each & 0xFFFFFFFF\n    for i in range(n):\n        a = a * 31 + i & 0xFFFFFFFF\n"
    found = made(jail, tmp_path, text + "    return a\n", name="code.py")
    letters, number = sorted(note for note in found.notes if "is made of" in note)[::-1]
    assert told(found) == "" and "the letters of Latin-1" in letters and "UnicodeEncodeError" in letters
    assert "'n' is made of small positive numbers" in number and "takes more than" in number


# The command


def command(capsys: pytest.CaptureFixture[str], *arguments: Any, **more: Any) -> tuple[int, str]:
    status = init(*arguments, **more)
    return status, capsys.readouterr().out


@pytest.mark.usefixtures("jail")
def test_the_status_says_whether_anything_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "good.c").write_text(
        "int f(const int *x, int n) { int s = 0; while (n--) s ^= x[n] + 1 / 2; return s; }"
    )
    (tmp_path / "bad.c").write_text("int f(const int *x, int n) { return n > 0 ? x[0] : 0; }")
    status, out = command(capsys, tmp_path / "good.c", "f", out=tmp_path / "good")
    assert status == 0 and "Ready" in out
    status, out = command(capsys, tmp_path / "bad.c", "f", out=tmp_path / "bad")
    assert status == 1 and "Not ready: 1 place" in out and "Ready:" not in out
    status, out = command(capsys, tmp_path / "bad.c", "f", out=tmp_path / "again", json=True)
    assert status == 1 and json.loads(out)["ready"] is False and json.loads(out)["fill_in"]


@pytest.mark.usefixtures("jail")
def test_without_sanitizers_it_is_said_before_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(vetting, "missing", lambda *_: "cannot find -lasan")
    (tmp_path / "good.c").write_text("int f(const int *x, int n) { int s = 0; while (n--) s ^= x[n]; return s; }")
    status, out = command(capsys, tmp_path / "good.c", "f", out=tmp_path / "good")
    assert status == 0 and "Note: memory errors" in out and "cannot find -lasan" in out
    assert out.index("Note: memory errors") < out.index("Ready")


SUM_OF_FLOATS = """
#include <stdint.h>
float total(const float *x, int64_t n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
}
"""


@pytest.mark.parametrize("tolerance", ["1e-6", "1e-3"])
def test_a_tolerance_finer_than_the_references_own_rounding_is_doubted(
    jail: JailKind, tmp_path: Path, tolerance: str
) -> None:
    inputs = "def make_input(rng):\n    return {'x': rng.random(30000, dtype='f4'), 'n': 30000}\n"
    task = c_task(
        SUM_OF_FLOATS, "float total(const float *x, int64_t n)", inputs, checking=f"[checking]\ntolerance = {tolerance}"
    )
    tmp_path.chmod(0o755)
    doubts = Vetting(Rehearsal(jail, tmp_path), tmp_path, lambda _: None).doubts(task)
    assert any("finer than the reference's own rounding" in doubt for doubt in doubts) is (tolerance == "1e-6")
