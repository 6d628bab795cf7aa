"""The loop that the judge is compared with times both functions on the same inputs, and its table says who agrees."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outpace.domains.program import ProgramDomain
from outpace.judge.abi import parse_declaration
from outpace.task import Output
from outpace.task.file import make_task

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import judge_honest
from honest import loops
from honest.kinds import Kind, kinds
from sections.judging import honest

sys.path.pop(0)  # its other modules have plain names, and no test may pick one up by chance


def test_there_are_twenty_kinds_in_every_language() -> None:
    found = kinds()
    assert len(found) >= 20
    assert {kind.language for kind in found} == {"C", "C++", "Python", "C command", "C++ command"}
    for kind in found:
        assert kind.name == kind.task.folder.name
        assert kind.sources(0) != kind.sources(1)
        assert not [name for name in kind.task.files if name.startswith("faster.")], "the judge must not see it"
        one, other = (ProgramDomain(kind.task).make_input(np.random.default_rng(seed)) for seed in (1, 2))
        assert repr(one) != repr(other), "inputs must be fresh"


def test_a_kind_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match="no kind 'nothing'"):
        kinds(["nothing"])


def test_the_figure_is_the_ratio_of_sums_and_leaves_interrupted_rounds_out() -> None:
    took = np.array([[300.0, 100.0, 50.0], [100.0, 50.0, 50.0]] * 200)
    figure = judge_honest.estimate(took)
    assert figure.ratio == pytest.approx(400 / 150), "of sums: the mean of the ratios would be 2.5"
    assert figure.low <= figure.ratio <= figure.high
    assert (figure.reference_us, figure.candidate_us) == pytest.approx((0.2, 0.075))
    assert figure.round_trip_ns == 50
    took[7] = (300.0, 9_000_000.0, 50.0)
    assert judge_honest.estimate(took).ratio == pytest.approx(400 / 150, rel=0.01)


def test_figures_agree_within_a_tenth_of_each_other() -> None:
    assert judge_honest.agree(1.1, 1.0) and judge_honest.agree(1.0, 1.1)
    assert not judge_honest.agree(1.12, 1.0) and not judge_honest.agree(1.0, 1.12)


@pytest.mark.parametrize(
    ("warm", "sent", "word"),
    [(2.0, 2.1, "both"), (4.0, 2.1, "sent"), (2.1, 4.0, "warm"), (3.0, 4.0, "neither")],
)
def test_the_table_says_which_loop_the_judge_agrees_with(warm: float, sent: float, word: str) -> None:
    assert judge_honest.agreement({"ratio": 2.0}, {"warm": {"ratio": warm}, "sent": {"ratio": sent}}) == word
    assert judge_honest.agreement(None, {}) == "no figure"


def test_arguments_say_where_arrays_lie_in_the_image() -> None:
    signature = parse_declaration("double f(const char *text, int64_t n, double *out)")
    arguments, image = loops.laid_out(signature, {"text": b"abc", "n": 3, "out": Output(2, "float64")})
    text, n, out, result = np.frombuffer(arguments, "<u8").tolist()
    assert (image[text : text + 4], n) == (b"abc\0", 3)
    assert text % loops.ALIGN == out % loops.ALIGN == result % loops.ALIGN == 0
    assert text + 4 <= out and out + 16 <= result and result + 8 <= len(image)


def _kind(entry: str, files: dict[str, bytes], faster: str) -> Kind:
    name = next(iter(files))
    head = f'name = "tiny"\neditable = ["{name}"]\n[entry]\n{entry}\n'
    return Kind(make_task(Path("tiny"), {"task.toml": head.encode(), **files}), faster)


# Each writes what it was given to a file, so that a test can see it.
_SPY = """#include <stdint.h>
#include <stdio.h>
int64_t spy(const int64_t *x, int64_t n) {
    FILE *file = fopen("PLACE", "ab");
    fwrite("SIDE", 1, 1, file);
    fwrite(x, sizeof *x, (size_t)n, file);
    fclose(file);
    return x[0];
}
"""


@pytest.mark.parametrize("mode", ["warm", "sent", "flushed", "posted"])
def test_both_c_functions_get_the_same_fresh_inputs_in_random_order(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "seen"
    source = _SPY.replace("PLACE", str(place))
    judge = b"def make_input(rng):\n    return {'x': rng.integers(0, 2**62, 4), 'n': 4}\n"
    files = {"spy.c": source.replace("SIDE", "r").encode(), "judge.py": judge}
    kind = _kind(
        'kind = "c"\nfunction = "int64_t spy(const int64_t *x, int64_t n)"', files, source.replace("SIDE", "c")
    )
    with loops.loop_of(kind, 0, np.random.default_rng(1)) as loop:
        took = loop(mode, 40)
    assert took.shape == (40, 3) and (took[:, :2] > 0).all()
    assert (took[:, 2] > 0).all() == (mode == "sent")
    raw, size = place.read_bytes(), 1 + 4 * 8
    calls = [(raw[at : at + 1], raw[at + 1 : at + size]) for at in range(0, len(raw), size)]
    assert len(calls) == 80
    for first, second in zip(calls[::2], calls[1::2], strict=True):
        assert {first[0], second[0]} == {b"r", b"c"} and first[1] == second[1]
    assert len({given for _, given in calls}) == 40
    assert 5 < sum(side == b"r" for side, _ in calls[::2]) < 35


@pytest.mark.parametrize("mode", ["warm", "sent"])
def test_a_python_function_that_changes_its_arguments_does_not_change_the_others(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "seen"
    source = (
        f"def spy(x, y):\n    with open({str(place)!r}, 'a') as file:\n        file.write(f'{{x}} {{y.tolist()}}|')\n"
        "    x.clear()\n    return y\n"
    )
    judge = b"def make_input(rng):\n    return {'x': rng.integers(0, 9**9, 2).tolist(), 'y': rng.random(2)}\n"
    files = {"spy.py": source.encode(), "judge.py": judge}
    kind = _kind('kind = "python"\nmodule = "spy.py"\nfunction = "spy"', files, source)
    with loops.loop_of(kind, 0, np.random.default_rng(1)) as loop:
        assert (loop(mode, 10)[:, :2] > 0).all()
    seen = place.read_text().split("|")[:-1]
    assert seen[::2] == seen[1::2] and len(set(seen)) == 10


@pytest.mark.parametrize("mode", ["warm", "sent"])
def test_both_commands_get_the_same_standard_input(tmp_path: Path, mode: str) -> None:
    place = tmp_path / "seen"
    source = (
        '#include <stdio.h>\nint main(void) {\n    char text[64] = "";\n    FILE *file = fopen("PLACE", "ab");\n'
        '    fgets(text, sizeof text, stdin);\n    fprintf(file, "%s|", text);\n    return fclose(file);\n}\n'
    ).replace("PLACE", str(place))
    judge = b"def make_input(rng):\n    return {'stdin': str(rng.integers(0, 2**62))}\n"
    kind = _kind('kind = "command"\ncommand = ["./spy"]', {"spy.c": source.encode(), "judge.py": judge}, source)
    with loops.loop_of(kind, 0, np.random.default_rng(1)) as loop:
        assert (loop(mode, 5)[:, :2] > 0).all()
    seen = place.read_text().split("|")[:-1]
    assert seen[::2] == seen[1::2] and len(set(seen)) == 5


def test_the_page_names_what_agrees_with_neither_loop() -> None:
    figure = {"ratio": 2.0, "low": 1.9, "high": 2.1, "reference_us": 20.0, "candidate_us": 10.0, "round_trip_ns": 99.6}
    row: dict[str, Any] = {
        "kind": "tiny", "what": "A trick: it is quick.", "language": "C", "outcome": "ok", "judge": figure,
        "warm": figure, "sent": figure | {"ratio": 3.0}, "agrees": "warm", "again": 0,
    }  # fmt: skip
    facts = {"cpu": "a", "cores": 2, "kernel": "6", "compiler": "cc", "python": "3"}
    result = {
        "machine": facts, "command": "c", "date": "d", "agree": 1.1,
        "rows": [
            row, row | {"agrees": "neither", "again": 1}, row | {"outcome": "wrong", "judge": None, "agrees": "x"},
        ],
        "dissected": {"tiny": {"again": figure, "warm": figure, "sent": figure, "flushed": figure}},
    }  # fmt: skip
    told = honest(result)
    assert "2 of 3 were judged `ok`. Within 10% the judge agrees with both loops in 0" in told
    assert "with the warm one alone in 1, with neither in 1. 1 were measured once more" in told
    rows = [line for line in told.split("\n") if line.startswith("| A trick |")]
    assert "| 2.00 (1.90 to 2.10) | 2.00 (1.90 to 2.10) | 3.00 (1.90 to 2.10) | 20 / 10 |" in rows[0]
    assert rows[1].endswith("| 100 | **neither** |") and "| wrong |" in rows[2]
