"""C declarations, shims, and how calls are laid out for the launcher."""

import re
import struct

import numpy as np
import pytest

from outpace.errors import TaskError
from outpace.judge import wire
from outpace.judge.abi import parse_declaration, shim
from outpace.judge.blank import POISON
from outpace.judge.question import BadAnswer, command_question, function_question, python_question
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
    question = function_question(signature, calls)
    assert question.answer_bytes == len(question.blank)
    answers = question.read(memoryview(question.blank), None)
    assert [answer["out"].shape for answer in answers] == [(2, 3)] * 3
    assert answers[0]["both"].dtype == np.int16
    assert isinstance(answers[0]["return"], int)


def test_chance_stands_behind_inputs_and_a_nul_behind_texts() -> None:
    signature = parse_declaration("int64_t f(const double *x, const char *text)")
    questions = [function_question(signature, [{"x": np.zeros(3), "text": "abc"}], align=64).data for _ in range(8)]
    x_at, text_at = (
        int.from_bytes(questions[0][at : at + 8], "little") for at in (16 + 8, 16 + 16 + 8)
    )  # the values of the first two slots
    assert {data[x_at : x_at + 24] for data in questions} == {bytes(24)}
    assert {data[text_at : text_at + 4] for data in questions} == {b"abc\0"}
    assert len({data[x_at + 24 : x_at + 32] for data in questions}) == 8
    assert len({data[text_at + 4 : text_at + 12] for data in questions}) == 8


def test_inputs_begin_wherever_their_elements_may() -> None:
    signature = parse_declaration("void f(const float *x, const char *text)")
    places: dict[int, set[int]] = {16 + 8: set(), 16 + 16 + 8: set()}
    for _ in range(4000):
        data = function_question(signature, [{"x": np.ones(3, "f4"), "text": "abc"}]).data
        for slot, found in places.items():
            at = int.from_bytes(data[slot : slot + 8], "little")
            assert data[at : at + 4] in (b"abc\0", np.float32(1).tobytes())
            found.add(at % 64)
    assert list(places.values()) == [set(range(0, 64, 4)), set(range(64))]


@pytest.mark.parametrize(("byte", "name"), [(8, "'both'"), (2 * 64 + 48, "'out'"), (4 * 64 + 8, "the result")])
def test_whoever_writes_past_an_output_is_wrong(byte: int, name: str) -> None:
    signature = parse_declaration("int64_t f(double *out, int16_t *both)")
    question = function_question(signature, [{"out": Output((2, 3), "f8"), "both": np.ones(4, "i2")}], align=64)
    region = bytearray(question.blank)
    region[byte - 1] ^= 1  # the last of what may be written
    question.read(memoryview(region), None)
    region[byte] ^= 1
    with pytest.raises(BadAnswer, match=f"wrote past the end of {name}"):
        question.read(memoryview(region), None)


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
        function_question(parse_declaration("void f(const double *x, int32_t n)"), [values])


def test_python_answers_are_length_checked() -> None:
    question = python_question([{"x": 1}, {"x": 2}])
    with pytest.raises(BadAnswer):
        question.read(memoryview(bytes([POISON]) * 1024 + NOTHING_FETCHED), None)
    with pytest.raises(BadAnswer):
        question.read(memoryview(bytes(12) + NOTHING_FETCHED), None)


NOTHING_FETCHED = bytes(8)


def test_nothing_but_whole_arrays_of_an_answer_may_be_fetched() -> None:
    region, apart = bytearray(40_000), []
    end = wire.pack_into([np.arange(1000.0), np.arange(999.0), "text" * 2000], memoryview(region), 8, apart)
    struct.pack_into("<Q", region, 0, end - 8)
    for at, size, array in apart:
        region[at : at + size] = array.tobytes()
    places = [(at, size) for at, size, _ in apart]
    assert len(places) == 2
    text_at = region.index(b"texttext")
    question = python_question([{"x": 1}])

    def read(*fetched: tuple[int, int]) -> list[object]:
        ranges = b"".join(struct.pack("<QQ", *each) for each in fetched)
        return question.read(memoryview(region[:end] + ranges + struct.pack("<Q", len(fetched))), None)

    np.testing.assert_array_equal(read(*places)[0][0], np.arange(1000.0))
    read(places[1])
    (first, size), _ = places
    for fetched in ((first, 64), (first + 64, size - 64), (text_at, 8000), (0, end)):
        with pytest.raises(BadAnswer, match="no whole array"):
            read(fetched)


@pytest.mark.parametrize("length", [2**64 - 1, 2**64 - 2, 4096, int.from_bytes(bytes([POISON]) * 8, "little")])
def test_a_command_that_left_no_file_or_too_much_is_refused(length: int) -> None:
    question = command_question({"stdin": b"x"}, ["out.txt"], 4096)
    answer = struct.pack("<q3QQ4s4xQ", 0, 1, 2, 3, 4, b"text", length)
    with pytest.raises(BadAnswer, match=r"out\.txt"):
        question.read(memoryview(answer), None)


def test_a_commands_answer_and_what_its_processes_took_are_read() -> None:
    question = command_question({"stdin": b"x"}, ["out.txt"], 4096)
    answer = memoryview(struct.pack("<q3QQ4s4xQ3s5x", 7, 1, 2, 3, 4, b"text", 3, b"end"))
    assert question.read(answer, None) == [{"stdout": b"text", "exit": 7, "files": {"out.txt": b"end"}}]
    assert question.usage is not None and question.usage(answer) == (1, 2, 3)


def test_a_command_input_may_not_hold_other_keys() -> None:
    with pytest.raises(TaskError, match="stdim"):
        command_question({"stdim": b"x"}, [], 4096)
