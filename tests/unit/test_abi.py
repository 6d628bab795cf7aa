"""C declarations, shims, and how calls are laid out for the launcher."""

import re

import numpy as np
import pytest

from outpace.errors import TaskError
from outpace.judge.abi import parse_declaration, shim
from outpace.judge.batch import POISON, BadAnswer, command_batch, function_batch, python_batch
from outpace.task import Output


def test_an_ordinary_declaration_is_understood() -> None:
    signature = parse_declaration(
        'extern "C" double sum(const double *restrict x, size_t n, float* out, unsigned char flags[4]);'
    )
    assert signature.name == "sum"
    assert signature.returns == "double"
    assert [(p.name, p.c_type, p.pointer, p.output) for p in signature.parameters] == [
        ("x", "double", True, False),
        ("n", "size_t", False, False),
        ("out", "float", True, True),
        ("flags", "unsigned char", True, True),
    ]


def test_names_and_types_that_resemble_keywords_are_read_whole() -> None:
    signature = parse_declaration("unsigned long int f(int restrict_me, const std::int32_t *x, long long int y)")
    assert [(p.name, p.c_type) for p in signature.parameters] == [
        ("restrict_me", "int"),
        ("x", "int32_t"),
        ("y", "long long"),
    ]
    assert signature.returns == "unsigned long"


def test_no_parameters_and_void_are_understood() -> None:
    assert parse_declaration("void tick(void)").parameters == ()
    assert parse_declaration("int tick()").returns == "int"


@pytest.mark.parametrize(
    "text",
    [
        "sum",
        "double sum(struct Point p)",
        "char *name(int x)",
        "double f(double **x)",
        "int f(int x, int x)",
        "int f(void x)",
        "std::vector<int> f(int x)",
    ],
)
def test_what_cannot_cross_the_jail_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(TaskError, match=re.escape(text)):
        parse_declaration(text)


def test_the_shim_declares_and_calls_the_function() -> None:
    code = shim(parse_declaration("double scale(const float *x, double by, int32_t n)"), None)
    assert "double scale(const float *x, double by, int32_t n);" in code
    assert "outpace_call" in code and "outpace_setup" not in code


def test_outputs_come_back_from_where_they_were_promised() -> None:
    signature = parse_declaration("int64_t f(const int32_t *x, int32_t n, double *out, int16_t *both)")
    calls = [
        {"x": np.arange(5, dtype="i4"), "n": 5, "out": Output((2, 3), "f8"), "both": np.ones(4, "i2")} for _ in range(3)
    ]
    batch = function_batch(signature, calls)
    region = np.full(batch.output_bytes, POISON, np.uint8)
    answers = batch.read(memoryview(region.tobytes()))
    assert [answer["out"].shape for answer in answers] == [(2, 3)] * 3
    assert answers[0]["both"].dtype == np.int16
    assert isinstance(answers[0]["return"], int)


@pytest.mark.parametrize(
    "values",
    [
        {"x": np.zeros(2, "f4"), "n": 2},
        {"x": np.zeros(2, "f8"), "n": 2.5e300},
        {"x": np.zeros(2, "f8"), "n": 2**31},
        {"x": np.zeros(2, "f8"), "m": 2},
        {"x": Output(2, "f8"), "n": 2},
        {"x": b"bytes", "n": 2},
    ],
)
def test_inputs_that_do_not_fit_the_declaration_are_the_tasks_error(values: dict[str, object]) -> None:
    with pytest.raises(TaskError):
        function_batch(parse_declaration("void f(const double *x, int32_t n)"), [values])


def test_python_answers_are_length_checked() -> None:
    batch = python_batch([{"x": 1}, {"x": 2}], 1024)
    with pytest.raises(BadAnswer):
        batch.read(memoryview(bytes([POISON]) * 1024))
    with pytest.raises(BadAnswer):
        batch.read(memoryview(bytes(12)))


def test_a_command_that_left_no_file_or_too_much_is_refused() -> None:
    batch = command_batch([{"stdin": b"x"}], ["out.txt"], 4096)
    with pytest.raises(BadAnswer):
        batch.read(memoryview(bytes([POISON]) * batch.output_bytes))


def test_a_command_input_may_not_hold_other_keys() -> None:
    with pytest.raises(TaskError, match="stdim"):
        command_batch([{"stdim": b"x"}], [], 4096)
